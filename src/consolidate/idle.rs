//! Remembers that there was nothing to do, so that looking again is cheap.
//!
//! The answer "nothing to do" depends on the head, the extractions, usage,
//! modes, what is withheld and the settings, and it holds until the first
//! recap or resource leaves by age. All of that is hashed into one key; the
//! key of the last such answer lies in `cache/`. Deleting it costs one survey.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::consolidate::{ConsolidateError, Policy};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::ledger::UsageByThread;
use crate::recaps::Extractions;
use crate::sys::fs;
use crate::sys::home::Home;

/// Changes when the same inputs would be answered differently.
const RULES: &str = "idle 1";
/// A key file holds a hash and a number.
const FILE_BYTES_MAX: u64 = 256;

/// Everything an idle answer depends on, hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdleKey(String);

/// What goes into a key.
pub(crate) struct IdleFacts<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) head: ObjectId,
    pub(crate) usage: &'a UsageByThread,
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    pub(crate) withheld: &'a [Withheld],
    pub(crate) policy: &'a Policy,
}

impl IdleKey {
    /// Looks at the extractions folder and hashes all facts.
    ///
    /// # Errors
    ///
    /// When the folder cannot be listed.
    pub(crate) fn of(home: &Home, facts: &IdleFacts<'_>) -> Result<Self, ConsolidateError> {
        let signature = Extractions::open(home.root(), facts.version).signature()?;
        let policy = facts.policy;
        let limits = (
            policy.recaps_max,
            policy.unused_days_max,
            policy.summary_bytes_max,
        );
        let text = format!(
            "{RULES}|{}|{}|{signature:?}|{:?}|{:?}|{:?}|{limits:?}",
            facts.version, facts.head, facts.usage, facts.modes, facts.withheld,
        );
        Ok(Self(blake3::hash(text.as_bytes()).to_hex().to_string()))
    }

    /// Whether the last idle answer was this one and still holds.
    pub(crate) fn is_known(&self, home: &Home, version: MemoryVersion, now: Timestamp) -> bool {
        let Ok(Some(text)) = fs::read_text_if_any(&file(home, version), FILE_BYTES_MAX) else {
            return false;
        };
        let mut words = text.split_whitespace();
        let is_same = words.next() == Some(self.0.as_str());
        let holds_until = words.next().and_then(|word| word.parse::<i64>().ok());
        is_same && holds_until.is_some_and(|until| now < Timestamp::from_seconds(until))
    }

    /// Remembers this answer. `holds_until` is when the first input leaves by
    /// age, `None` for never.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(crate) fn remember(
        &self,
        home: &Home,
        version: MemoryVersion,
        holds_until: Option<Timestamp>,
    ) -> Result<(), ConsolidateError> {
        let until = holds_until.map_or(i64::MAX / 1000, Timestamp::seconds);
        let text = format!("{} {until}\n", self.0);
        fs::make_folders(&home.cache())
            .and_then(|()| fs::write_unflushed(&file(home, version), text.as_bytes(), false))
            .map_err(ConsolidateError::Cache)
    }
}

fn file(home: &Home, version: MemoryVersion) -> PathBuf {
    home.cache().join(format!("idle-{version}"))
}
