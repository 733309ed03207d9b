//! Where main has been: Git's own log of the branch, which we write as well.
//!
//! # Limits
//!
//! Git drops entries after 90 days, those of commits that main does not reach
//! any more after 30, and their objects with them. What is not there any more
//! is not known, and that is no error. Only the end of a long log is read.

use crate::domain::id::ObjectId;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::sys::fs;

/// Most bytes of the log that are read, from its end: some 5,000 moves.
const LOG_BYTES_MAX: u64 = 1024 * 1024;

const LOG: &str = "logs/refs/heads/main";

/// What we write before the subject of a commit of ours.
const OURS: &str = "memrev: ";

/// One move of main.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    /// `None` for the first commit.
    pub(crate) old: Option<ObjectId>,
    pub(crate) new: ObjectId,
    /// We made the commit that main moved to.
    pub(crate) is_ours: bool,
    /// A person put a commit on top, or in the place of the last one.
    pub(crate) is_commit: bool,
}

impl Store {
    /// The moves of main, newest first. Lines that cannot be read are left
    /// out.
    ///
    /// # Errors
    ///
    /// When the log cannot be read; a missing one is empty.
    pub(crate) fn moves(&self) -> Result<Vec<Move>, StoreError> {
        let file = self.git_dir().join(LOG);
        if !fs::is_taken(&file) {
            return Ok(Vec::new());
        }
        let bytes = fs::read_tail(&file, LOG_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().rev().filter_map(parse).collect())
    }
}

fn parse(line: &str) -> Option<Move> {
    let (facts, message) = line.split_once('\t').unwrap_or((line, ""));
    let mut ids = facts.split(' ').map(ObjectId::parse);
    let old = ids.next()??;
    let new = ids.next()??;
    Some(Move {
        old: Some(old).filter(|old| *old != ObjectId::from_bytes([0; 20])),
        new,
        is_ours: message.starts_with(OURS),
        is_commit: message.starts_with("commit"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Move, parse};
    use crate::domain::id::ObjectId;

    #[test]
    fn lines_of_git_and_of_memrev_are_told_apart() {
        let (zero, one, two) = ("0".repeat(40), "11".repeat(20), "22".repeat(20));
        let id = |byte| ObjectId::from_bytes([byte; 20]);
        let check = |message: &str, old: &str, expected: Option<(Option<ObjectId>, bool, bool)>| {
            let line = format!("{old} {two} Ada <ada@example.org> 1764576000 +0100{message}");
            let found = expected.map(|(old, is_ours, is_commit)| Move {
                old,
                new: id(0x22),
                is_ours,
                is_commit,
            });
            assert_eq!(parse(&line), found, "{line}");
        };
        let ours = "\tmemrev: baseline: 1 note";
        check(ours, &one, Some((Some(id(0x11)), true, false)));
        check("\tmemrev: init", &zero, Some((None, true, false)));
        let amend = "\tcommit (amend): baseline: 1 note";
        check(amend, &one, Some((Some(id(0x11)), false, true)));
        let reset = "\treset: moving to HEAD~1";
        check(reset, &one, Some((Some(id(0x11)), false, false)));
        check("", &one, Some((Some(id(0x11)), false, false)));
        check(ours, "cut off", None);
    }
}
