//! Where random bytes come from, so that tests can have the same ones again.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::id::RunId;
use crate::domain::time::Timestamp;

/// A source of ids, tokens and salts.
#[derive(Debug)]
pub(crate) struct Ids {
    seed: Option<[u8; 32]>,
    drawn: AtomicU64,
}

impl Ids {
    /// With a seed, the n-th draw of every process is the same.
    pub(crate) fn new(seed: Option<&str>) -> Self {
        Self {
            seed: seed.map(|text| *blake3::hash(text.as_bytes()).as_bytes()),
            drawn: AtomicU64::new(0),
        }
    }

    /// Sixteen fresh bytes.
    ///
    /// # Panics
    ///
    /// When the system has no randomness to give; nothing can be made safe then.
    pub(crate) fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        match &self.seed {
            None => getrandom::fill(&mut bytes).expect("the system gives random bytes"),
            Some(seed) => {
                let index = self.drawn.fetch_add(1, Ordering::Relaxed);
                let hash = blake3::keyed_hash(seed, &index.to_le_bytes());
                bytes.copy_from_slice(&hash.as_bytes()[..16]);
            }
        }
        bytes
    }

    /// A token for a lease: 32 hexadecimal digits.
    pub(crate) fn token(&self) -> String {
        hex(&self.bytes())
    }

    /// The name of a new run: its time, then six random digits.
    pub(crate) fn run_id(&self, now: Timestamp) -> RunId {
        let stamp: String = now.file_stamp().chars().filter(|c| *c != '-').collect();
        RunId::new(format!("{stamp}-{}", hex(&self.bytes()[..3])))
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
