//! Whether anything can have changed since a pass had nothing to do.
//!
//! A pass is a function of files, the configuration and the time. When it had
//! nothing to do, it leaves a hash of the names, sizes and times of everything
//! it looked at, and until when that answer holds. The next pass that finds
//! the same hash in time answers "nothing to do" without opening the ledger,
//! the repository or a single transcript.
//!
//! # Crash safety
//!
//! The file is a cache: without it, or with a damaged one, a pass looks at
//! everything.
//!
//! # Limits
//!
//! The answer holds for an hour at most, so that whatever depends on the time
//! alone (retention, windows, expiry) is seen then.

use std::path::{Path, PathBuf};

use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::sessions::Discovery;
use crate::sys::fs::{self, FsError, Surveyed};
use crate::sys::home::Home;
use crate::sys::ids::hex;

/// Longest time that an idle answer holds, in seconds.
pub(crate) const HOLDS_SECONDS_MAX: i64 = 3_600;

/// A file changed less than this before the answer was written may have
/// changed again without a trace, as with Git's index. In milliseconds.
const RACY_MILLIS: i64 = 50;

/// Small: a mark, a hash and a number.
const FILE_BYTES_MAX: u64 = 512;

const MARK: &str = "memrev-idle 1";

/// A look at everything that decides what a pass does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    hash: [u8; 32],
    /// Newest change among files that people and agents write.
    newest: Timestamp,
}

/// Looks at the home and the transcripts. `request` tells passes apart that
/// would take other sessions.
pub(crate) fn look(
    home: &Home,
    versions: &[MemoryVersion],
    discovery: &Discovery,
    request: &str,
) -> Look {
    let mut hasher = blake3::Hasher::new();
    let mut newest = Timestamp::default();
    let mut add = |path: &Path, size_bytes: u64, modified: Timestamp, is_ours: bool| {
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(&[0]);
        hasher.update(&size_bytes.to_le_bytes());
        hasher.update(&modified.millis().to_le_bytes());
        if !is_ours {
            newest = newest.max(modified);
        }
    };
    for found in &discovery.found {
        add(&found.path, found.size, found.modified, false);
        for part in &found.sub_agents {
            let (size_bytes, modified) = fs::size_and_time(part).unwrap_or_default();
            add(part, size_bytes, modified, false);
        }
    }
    for file in by_hand(home, versions) {
        add(&file.path, file.size_bytes, file.modified, false);
    }
    for version in versions {
        // Recaps there are replaced, never changed in place, so the folder's
        // own time tells, and thousands of files need no look.
        let folder = home.extractions(*version);
        let modified = fs::folder_modified(&folder).unwrap_or_default();
        add(&folder, 0, modified, false);
    }
    for path in ours(home, versions) {
        let (size_bytes, modified) = fs::size_and_time(&path).unwrap_or_default();
        add(&path, size_bytes, modified, true);
    }
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(request.as_bytes());
    Look {
        hash: *hasher.finalize().as_bytes(),
        newest,
    }
}

/// Files that a person, an agent or another tool may change at any time.
fn by_hand(home: &Home, versions: &[MemoryVersion]) -> Vec<Surveyed> {
    let mut files = Vec::new();
    for version in versions {
        files.extend(fs::survey(&home.memory_folder(*version)));
    }
    for folder in [home.withheld(), home.prompts()] {
        files.extend(fs::survey(&folder));
    }
    for file in [home.config_file(), home.modes_file()] {
        files.extend(fs::survey(&file));
    }
    files
}

/// Files that only programs change, each time in size or by much time.
fn ours(home: &Home, versions: &[MemoryVersion]) -> Vec<PathBuf> {
    let ledger = home.ledger_file();
    let mut files = vec![ledger.with_extension("sqlite-wal"), ledger];
    for version in versions {
        let git = home.memory_folder(*version).join(".git");
        for name in [
            "HEAD",
            "index",
            "index.lock",
            "packed-refs",
            "refs/heads/main",
            "logs/HEAD",
            "memrev/publication",
        ] {
            files.push(git.join(name));
        }
        for name in [
            "MERGE_HEAD",
            "REVERT_HEAD",
            "CHERRY_PICK_HEAD",
            "BISECT_LOG",
        ] {
            files.push(git.join(name));
        }
    }
    files
}

/// Whether an earlier pass saw the same and its answer still holds.
pub(crate) fn holds(home: &Home, look: Look, now: Timestamp) -> bool {
    let file = file(home);
    let Some((_, written)) = fs::size_and_time(&file) else {
        return false;
    };
    let text = fs::read_text_if_any(&file, FILE_BYTES_MAX).ok().flatten();
    let Some((from, until)) = text.as_deref().and_then(|text| parse(text, look)) else {
        return false;
    };
    let is_settled = look.newest.millis() + RACY_MILLIS < written.millis();
    is_settled && from <= now && now < until
}

/// Leaves the answer "nothing to do" for the next pass.
///
/// # Errors
///
/// When the cache cannot be written; the caller may go on without.
pub(crate) fn remember(
    home: &Home,
    look: Look,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), FsError> {
    let until = until.min(now.plus_seconds(HOLDS_SECONDS_MAX));
    let text = format!(
        "{MARK}\n{}\n{}\n{}\n",
        hex(&look.hash),
        now.millis(),
        until.millis()
    );
    fs::replace(&file(home), text.as_bytes())
}

fn file(home: &Home) -> PathBuf {
    home.cache().join("idle")
}

/// From when and until when the answer holds, if it is one to this look.
fn parse(text: &str, look: Look) -> Option<(Timestamp, Timestamp)> {
    let mut lines = text.lines();
    let fits = lines.next()? == MARK && lines.next()? == hex(&look.hash);
    let mut millis = || lines.next()?.parse().ok().map(Timestamp::from_millis);
    let (from, until) = (millis()?, millis()?);
    fits.then_some((from, until))
}
