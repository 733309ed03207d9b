//! The outside: clock, files, locks, processes, environment.
//!
//! Every look at the system passes through here, so that the rest takes
//! `now`, paths and seeds as values.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one module that asks the system"
)]

pub(crate) mod clock;
pub(crate) mod confined;
pub(crate) mod env;
pub(crate) mod fs;
pub(crate) mod home;
pub(crate) mod ids;
pub(crate) mod interrupt;
pub(crate) mod lock;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod project;
pub(crate) mod stop;
pub(crate) mod supervise;
pub(crate) mod swap;
pub(crate) mod walls;
