//! Notes and withheld entries: loaded, written, matched.
//!
//! # Not in here
//!
//! What a note asks for is decided in `text`, what follows from it by the
//! worker. Entries to be withheld are named by the stages and only kept here.

pub(crate) mod purged;
pub(crate) mod withheld_set;

use std::path::Path;

use crate::domain::path::NOTE_INSTRUCTIONS;
use crate::sys::fs::{self, FsError};

/// Says in the memory folder what notes are, for people and workers alike.
pub(crate) const INSTRUCTIONS: &str = include_str!("../../prompts/ad-hoc-notes.md");

/// Puts the instructions for notes into a memory folder unless something is
/// there. True when they are new.
///
/// # Errors
///
/// When they cannot be written.
pub(crate) fn seed_instructions(memory_folder: &Path) -> Result<bool, FsError> {
    let file = memory_folder.join(NOTE_INSTRUCTIONS);
    if fs::is_taken(&file) {
        return Ok(false);
    }
    if let Some(folder) = file.parent() {
        fs::make_folders(&folder.join("notes"))?;
    }
    fs::create_new(&file, INSTRUCTIONS.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{INSTRUCTIONS, seed_instructions};
    use crate::domain::path::NOTE_INSTRUCTIONS;
    use crate::sys::fs;

    #[test]
    fn seeding_never_overwrites_the_persons_instructions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(NOTE_INSTRUCTIONS);
        assert!(seed_instructions(folder.path()).unwrap());
        assert_eq!(fs::read(&file, 9_999).unwrap(), INSTRUCTIONS.as_bytes());
        fs::replace(&file, b"mine").unwrap();
        assert!(!seed_instructions(folder.path()).unwrap());
        assert_eq!(fs::read(&file, 9_999).unwrap(), b"mine");
    }
}
