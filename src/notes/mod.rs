//! Notes and withheld entries: loaded, written, matched.
//!
//! # Not in here
//!
//! What a note asks for is decided in `text`, what follows from it by the
//! worker. Entries to be withheld are named by the stages and only kept here.

pub(crate) mod purged;
pub(crate) mod withheld_set;

use std::path::Path;

use crate::domain::path::{NOTE_INSTRUCTIONS, NOTES, WITHHELD_INSTRUCTIONS};
use crate::sys::fs::{self, FsError};

/// Says in the memory folder what notes are, for people and workers alike.
pub(crate) const INSTRUCTIONS: &str = include_str!("../../prompts/ad-hoc-notes.md");

/// Says there what is withheld.
const WITHHELD: &str = include_str!("../../prompts/withheld.md");

/// What every memory folder is given, by path.
pub(crate) const SEEDS: [(&str, &str); 2] = [
    (NOTE_INSTRUCTIONS, INSTRUCTIONS),
    (WITHHELD_INSTRUCTIONS, WITHHELD),
];

/// Puts the instructions into a memory folder unless something is there. Gives
/// those that are new.
///
/// # Errors
///
/// When they cannot be written.
pub(crate) fn seed_instructions(
    memory_folder: &Path,
) -> Result<Vec<(&'static str, &'static str)>, FsError> {
    let mut new = Vec::new();
    for (path, text) in SEEDS {
        let file = memory_folder.join(path);
        if fs::is_taken(&file) {
            continue;
        }
        if let Some(folder) = file.parent() {
            fs::make_folders(folder)?;
        }
        if fs::create_new(&file, text.as_bytes())? {
            new.push((path, text));
        }
    }
    fs::make_folders(&memory_folder.join(NOTES))?;
    Ok(new)
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
        assert_eq!(seed_instructions(folder.path()).unwrap().len(), 2);
        assert_eq!(fs::read(&file, 9_999).unwrap(), INSTRUCTIONS.as_bytes());
        fs::replace(&file, b"mine").unwrap();
        assert_eq!(seed_instructions(folder.path()).unwrap(), []);
        assert_eq!(fs::read(&file, 9_999).unwrap(), b"mine");
    }
}
