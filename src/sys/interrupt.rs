//! Ctrl-C and SIGTERM: the first asks to stop, the second does not ask.
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
    /// second one ends it.
    ///
    /// # Errors
    ///
    /// When the system refuses; the signals end the process then, as ever.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
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
