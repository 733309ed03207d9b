//! The only integration binary: house rules, and the program driven as people
//! drive it.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, run programs and write files"
)]

mod house;
mod layers;
