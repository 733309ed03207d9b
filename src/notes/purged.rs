//! What was purged, as hashes with the home's key.
//!
//! `withheld/purged/<id>` in the home, one line `<bytes> <hash>` per form.
//! They have no copy in memory folders: without the key they say nothing, and
//! the key never leaves the home.
//!
//! # Crash safety
//!
//! Files are created whole and never changed.

use std::path::{Path, PathBuf};

use crate::domain::time::Timestamp;
use crate::domain::withheld::{Purged, PurgedText};
use crate::sys::fs::{self, EntryType, FsError};
use crate::sys::home::Home;
use crate::sys::ids::{Ids, hex};
use crate::sys::stop;
use crate::text::purged::hash;

/// Largest file of hashes, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why it is not known what was purged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PurgedError {
    #[error(transparent)]
    Files(#[from] FsError),
    #[error("`{}` does not hold what it should", path.display())]
    Damaged { path: PathBuf },
}

/// Everything that was purged from this home.
///
/// # Errors
///
/// When a file cannot be read: nothing is extracted then.
pub(crate) fn load(home: &Home) -> Result<Purged, PurgedError> {
    let mut purged = Purged::default();
    let files = fs::list(&folder(home.root()))?;
    let files = files
        .into_iter()
        .filter(|entry| entry.kind == EntryType::File);
    for entry in files {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        if fs::is_side_file(&name) {
            continue;
        }
        let text = fs::read_text_if_any(&entry.path, FILE_BYTES_MAX)?.unwrap_or_default();
        for line in text.lines() {
            let text = parse(line).ok_or_else(|| PurgedError::Damaged {
                path: entry.path.clone(),
            })?;
            purged.texts.push(text);
        }
    }
    if !purged.texts.is_empty() {
        purged.key = key(home)?;
    }
    purged.texts.sort();
    purged.texts.dedup();
    Ok(purged)
}

/// Keeps the hash of every form; those that are known are not written again.
///
/// # Errors
///
/// When key or hashes cannot be written.
pub(crate) fn save(
    home: &Home,
    forms: &[String],
    ids: &Ids,
    now: Timestamp,
) -> Result<(), PurgedError> {
    let known = load(home)?;
    let key = made_key(home, ids)?;
    let lines = forms.iter().map(|form| hash(&key, form));
    let new: Vec<PurgedText> = lines.filter(|text| !known.texts.contains(text)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let lines = new
        .iter()
        .map(|text| format!("{} {}\n", text.bytes, hex(&text.hash)));
    let folder = folder(home.root());
    fs::make_folders(&folder)?;
    let name = format!("{}-{}", now.file_stamp(), hex(&ids.bytes()[..4]));
    fs::create_new(&folder.join(name), lines.collect::<String>().as_bytes())?;
    stop::point("notes.purged_saved");
    Ok(())
}

/// What a receipt says of purged texts.
///
/// # Errors
///
/// When there is no key yet and none can be made.
pub(crate) fn receipt(home: &Home, texts: &[String], ids: &Ids) -> Result<String, PurgedError> {
    let key = made_key(home, ids)?;
    Ok(hex(&hash(&key, &texts.join("\n")).hash[..16]))
}

fn folder(home: &Path) -> PathBuf {
    home.join("withheld").join("purged")
}

/// Makes the home's key when it has none.
fn made_key(home: &Home, ids: &Ids) -> Result<[u8; 32], PurgedError> {
    if !fs::is_taken(&home.key_file()) {
        let text = format!("{}{}\n", hex(&ids.bytes()), hex(&ids.bytes()));
        fs::create_new(&home.key_file(), text.as_bytes())?;
        stop::point("notes.key_made");
    }
    key(home)
}

fn key(home: &Home) -> Result<[u8; 32], PurgedError> {
    let path = home.key_file();
    let text = fs::read_text_if_any(&path, 1024)?;
    let bytes = text.and_then(|text| from_hex(text.trim()));
    bytes.ok_or(PurgedError::Damaged { path })
}

fn parse(line: &str) -> Option<PurgedText> {
    let (bytes, hash) = line.split_once(' ')?;
    Some(PurgedText {
        bytes: bytes.parse().ok().filter(|bytes| 0 < *bytes)?,
        hash: from_hex(hash)?,
    })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{load, save};
    use crate::domain::time::Timestamp;
    use crate::sys::fs;
    use crate::sys::home::Home;
    use crate::sys::ids::Ids;
    use crate::text::purged::scrub;

    #[test]
    fn what_was_purged_is_known_again_and_not_readable() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        assert!(load(&home).unwrap().texts.is_empty());
        let forms = ["blue moon".to_owned(), "blue\\tmoon".to_owned()];
        for _ in 0..2 {
            save(&home, &forms, &Ids::new(None), Timestamp::from_seconds(9)).unwrap();
        }
        let purged = load(&home).unwrap();
        assert_eq!(purged.texts.len(), 2);
        assert_eq!(scrub(&purged, "a blue moon").unwrap(), "a [purged]");
        let files = fs::list(&home.withheld().join("purged")).unwrap();
        assert_eq!(files.len(), 1);
        let text = fs::read(&files[0].path, 9_999).unwrap();
        assert!(!String::from_utf8(text).unwrap().contains("moon"));
        fs::replace(&files[0].path, b"what\n").unwrap();
        assert!(load(&home).is_err(), "nothing may come in then");
    }
}
