//! Named points at which a test can stop the program.
//!
//! `point("publish.after_record")` does nothing in ordinary use. With the
//! hidden variable `MEMREV_STOP` the process dies or freezes there, so that
//! tests can look at what is on disk between any two steps:
//!
//! | value | effect |
//! | --- | --- |
//! | `kill:<n>` | dies (as by `kill -9`) at the n-th point it reaches, counted from 1 |
//! | `kill:<name>` | dies at the first point of that name |
//! | `freeze:<name>` | stops itself there until it gets a `SIGCONT` |
//! | `trace:<file>` | appends each point's name to the file |
//!
//! Beside the logger this is the only global state: it is read once and
//! passing it through every call would hide the calls that matter.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

enum Plan {
    Nothing,
    KillAt(u64),
    KillNamed(String),
    FreezeNamed(String),
    Trace(PathBuf),
}

static PLAN: OnceLock<Plan> = OnceLock::new();
static REACHED: AtomicU64 = AtomicU64::new(0);

/// Marks a point between two steps; see the module's header.
pub(crate) fn point(name: &str) {
    match PLAN.get_or_init(plan) {
        Plan::Nothing => {}
        Plan::KillAt(number) => {
            if REACHED.fetch_add(1, Ordering::SeqCst) + 1 == *number {
                die();
            }
        }
        Plan::KillNamed(wanted) => {
            if wanted == name {
                die();
            }
        }
        Plan::FreezeNamed(wanted) => {
            if wanted == name && REACHED.fetch_add(1, Ordering::SeqCst) == 0 {
                freeze();
            }
        }
        Plan::Trace(file) => {
            if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
                // A test that cannot trace fails by its missing lines.
                // One write, so that the lines of two threads do not mix.
                file.write_all(format!("{name}\n").as_bytes()).ok();
            }
        }
    }
}

fn plan() -> Plan {
    let Ok(value) = std::env::var("MEMREV_STOP") else {
        return Plan::Nothing;
    };
    match value.split_once(':') {
        Some(("kill", at)) => match at.parse() {
            Ok(number) => Plan::KillAt(number),
            Err(_) => Plan::KillNamed(at.to_owned()),
        },
        Some(("freeze", name)) => Plan::FreezeNamed(name.to_owned()),
        Some(("trace", file)) => Plan::Trace(PathBuf::from(file)),
        _ => Plan::Nothing,
    }
}

/// With several threads the signal may reach another one first; this one
/// waits for its end and does nothing more.
#[cfg(unix)]
fn die() {
    signal_self(rustix::process::Signal::KILL);
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// As for [`die`]: the pause is longer than a signal takes.
#[cfg(unix)]
fn freeze() {
    signal_self(rustix::process::Signal::STOP);
    std::thread::sleep(std::time::Duration::from_millis(100));
}

#[cfg(unix)]
fn signal_self(signal: rustix::process::Signal) {
    let this = rustix::process::getpid();
    // Sending a signal to oneself cannot fail; a test would notice.
    let _ = rustix::process::kill_process(this, signal);
}

#[cfg(not(unix))]
fn die() {
    std::process::abort();
}

#[cfg(not(unix))]
fn freeze() {}
