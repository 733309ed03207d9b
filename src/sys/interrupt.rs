//! Ctrl-C, SIGTERM and a terminal that goes away: the first asks to stop, the
//! second does not ask.
//!
//! What must be whole is whole at any instant (see the crash tests), so the
//! second signal may simply end the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell reports for a program that Ctrl-C ended: 128 and the signal.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether somebody asked this process to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the signals set this instead of ending the process; a
    /// second one ends it. A terminal's end is no reason to stop where whoever
    /// started us chose to ignore it (`nohup`).
    ///
    /// # Errors
    ///
    /// When the system refuses; the signals end the process then, as ever.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        #[cfg(unix)]
        for signal in listened_to(&std::fs::read_to_string(STATUS).unwrap_or_default()) {
            use signal_hook::flag;
            let asked = || Arc::clone(&interrupt.0);
            // In this order: the first signal finds the flag still clear.
            flag::register_conditional_shutdown(signal, i32::from(EXIT_CODE), asked())?;
            flag::register(signal, asked())?;
        }
        Ok(interrupt)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Where Linux says which signals this process ignores (proc(5), `SigIgn`).
/// Elsewhere none is known to be. Scripts start jobs with SIGINT ignored, and
/// still stop them with it: that one is always heard.
#[cfg(unix)]
const STATUS: &str = "/proc/self/status";

#[cfg(unix)]
fn listened_to(status: &str) -> Vec<i32> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_ignored = mask.unwrap_or(0) >> (SIGHUP - 1) & 1 == 1;
    let mut signals = vec![SIGINT, SIGTERM];
    signals.extend((!is_ignored).then_some(SIGHUP));
    signals
}

#[cfg(all(test, unix))]
mod tests {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    use super::listened_to;

    #[test]
    fn a_terminal_that_is_ignored_from_the_start_stays_so() {
        for (status, expected) in [
            ("", &[SIGINT, SIGTERM, SIGHUP][..]),
            ("SigIgn:\t0000000000001000\n", &[SIGINT, SIGTERM, SIGHUP]),
            ("Name:\tx\nSigIgn:\t0000000000000001\n", &[SIGINT, SIGTERM]),
            ("SigIgn:\t0000000000000003\n", &[SIGINT, SIGTERM]),
            ("SigIgn:\tzz\n", &[SIGINT, SIGTERM, SIGHUP]),
        ] {
            assert_eq!(listened_to(status), expected, "{status}");
        }
    }
}
