//! Everything in the home beside the memory folders' repositories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::id::ObjectId;
use crate::domain::version::MemoryVersion;
use crate::history::purge::{Parts, PurgeError};
use crate::sys::fs::{self, EntryType};
use crate::sys::home::Home;
use crate::sys::stop;
use crate::text::needle::{Needles, PURGED};

/// A larger file of the home is nothing that memrev writes, in bytes.
const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The start of a file that zstd compressed.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Every file of the home that holds it, or has it in its name; but what is
/// in the repositories, which are looked through by their objects, and the
/// rows of the ledger.
pub(super) fn files_with(home: &Home, needles: &Needles) -> Result<Vec<PathBuf>, PurgeError> {
    let mut found = Vec::new();
    for file in files(home.root())? {
        let name = file.strip_prefix(home.root()).unwrap_or(&file);
        if needles.is_in(name.as_os_str().as_encoded_bytes()) || holds(&file, needles)? {
            found.push(file);
        }
    }
    Ok(found)
}

fn holds(file: &Path, needles: &Needles) -> Result<bool, PurgeError> {
    let bytes = match fs::read(file, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    if needles.is_in(&bytes) {
        return Ok(true);
    }
    let is_packed = bytes.starts_with(&ZSTD_MAGIC);
    let unpacked = is_packed.then(|| zstd::decode_all(bytes.as_slice()).ok());
    Ok(unpacked
        .flatten()
        .is_some_and(|bytes| needles.is_in(&bytes)))
}

/// Every plain file below a folder, sorted, without repositories' objects: those
/// are compressed and looked at elsewhere.
fn files(root: &Path) -> Result<Vec<PathBuf>, PurgeError> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::list(&folder)? {
            let is_objects = folder.ends_with(".git") && entry.path.ends_with("objects");
            match entry.kind {
                EntryType::Folder if !is_objects => folders.push(entry.path),
                EntryType::File => files.push(entry.path),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Takes it out of every file; what may be deleted is deleted. Gives the files
/// that had it.
pub(super) fn clean(
    parts: &Parts<'_>,
    needles: Option<&Needles>,
    new_blobs: &BTreeMap<ObjectId, ObjectId>,
) -> Result<Vec<PathBuf>, PurgeError> {
    let home = parts.home;
    let mut locks = Vec::new();
    for version in MemoryVersion::ALL {
        let file = home.extractions_lock(version);
        locks.push(crate::sys::lock::FileLock::acquire(
            &file,
            parts.policy.lock_wait,
        )?);
    }
    for folder in [home.staging(), home.cache()] {
        for entry in fs::list(&folder)? {
            fs::remove_all_or_file(&entry.path)?;
        }
        stop::point("purge.folder_emptied");
    }
    rename_withheld(home, new_blobs)?;
    let Some(needles) = needles else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let ledger = home.ledger_file();
    let ledger_name = ledger
        .file_name()
        .unwrap_or_default()
        .as_encoded_bytes()
        .to_owned();
    for file in files_with(home, needles)? {
        let name = file.file_name().unwrap_or_default();
        let is_in_git = file.components().any(|part| part.as_os_str() == ".git");
        let is_ledger =
            name.as_encoded_bytes().starts_with(&ledger_name) && file.parent() == Some(home.root());
        if is_in_git {
            continue;
        }
        if is_ledger {
            // The ledger itself is cleaned by its rows; what was set aside of
            // a damaged one may be deleted.
            let end = &name.as_encoded_bytes()[ledger_name.len()..];
            if !matches!(end, b"" | b"-wal" | b"-shm" | b"-journal") {
                fs::remove(&file)?;
                found.push(file);
            }
            continue;
        }
        scrub_file(&file, home.root(), needles)?;
        stop::point("purge.home_file_cleaned");
        found.push(file);
    }
    Ok(found)
}

fn scrub_file(file: &Path, root: &Path, needles: &Needles) -> Result<(), PurgeError> {
    let bytes = fs::read(file, FILE_BYTES_MAX)?;
    if let Some(scrubbed) = needles.scrub(&bytes) {
        fs::reword(file, &scrubbed)?;
    }
    let relative = file.strip_prefix(root).unwrap_or(file);
    if let Some(name) = relative.to_str().and_then(|name| needles.scrub_text(name)) {
        let target = root.join(name.replace(PURGED, "purged"));
        if let Some(folder) = target.parent() {
            fs::make_folders(folder)?;
        }
        fs::rename(file, &target)?;
        if let Some(folder) = file.parent() {
            fs::remove_if_empty(folder)?;
        }
    }
    Ok(())
}

/// What withholds a version of an input names it by its id, which may be new.
fn rename_withheld(home: &Home, new: &BTreeMap<ObjectId, ObjectId>) -> Result<(), PurgeError> {
    if new.is_empty() {
        return Ok(());
    }
    for entry in fs::list(&home.withheld())? {
        if entry.kind != EntryType::File {
            continue;
        }
        let Some(text) = fs::read_text_if_any(&entry.path, FILE_BYTES_MAX)? else {
            continue;
        };
        let mut renamed = text.clone();
        for word in text.split(|c: char| !c.is_ascii_hexdigit()) {
            let id = ObjectId::parse(word).and_then(|id| new.get(&id));
            if let Some(id) = id {
                renamed = renamed.replace(word, &id.to_string());
            }
        }
        if renamed != text {
            fs::reword(&entry.path, renamed.as_bytes())?;
        }
    }
    Ok(())
}
