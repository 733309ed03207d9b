//! The only integration binary: house rules, and the program driven as people
//! drive it.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, run programs and write files"
)]

mod agents;
mod attempts;
mod backends;
mod faults;
mod forget;
mod hands;
mod history;
mod house;
mod layers;
mod limits;
mod mending;
mod notes;
mod output;
mod own_lines;
mod packing;
mod pass;
mod programs;
mod purge;
mod races;
mod release;
mod replay;
mod reset;
mod revert;
mod services;
mod support;
mod surroundings;
mod survival;
mod switches;
mod told;
mod tools;
mod undoing;
mod why;
mod year;
