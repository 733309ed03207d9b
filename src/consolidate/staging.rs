//! The worker's private copy on disk: written before it, read back after it.
//!
//! # Crash safety
//!
//! Nothing here is flushed: a staging folder that a crash leaves is worth
//! nothing and may be deleted at any time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::consolidate::ConsolidateError;
use crate::consolidate::judge::{Outputs, Seen};
use crate::consolidate::plan::{Plan, Planned};
use crate::domain::id::RunId;
use crate::domain::limits::{NEW_BYTES_MAX, NEW_FILES_MAX, SNAPSHOT_FILE_BYTES_MAX};
use crate::domain::path::{TreePath, WORKSPACE_DIFF};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::store::Store;
use crate::sys::fs::{self, EntryType, FsError};
use crate::sys::home::Home;
use crate::text::redact;

/// Deepest folder that is looked into.
const DEPTH_MAX: usize = 16;

/// One run's staging folder; removed when dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: PathBuf,
}

/// The memory files of the head, and what code made of them before the worker.
pub(crate) struct Prepared<'a> {
    pub(crate) old: &'a Outputs,
    pub(crate) new: &'a Outputs,
}

impl Prepared<'_> {
    fn is_changed(&self, path: &TreePath) -> bool {
        self.old.get(path) != self.new.get(path)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // A leftover is swept by the next run.
        fs::remove_all(&self.folder).ok();
    }
}

impl Staging {
    /// Writes what the worker may see of `plan` to `<home>/staging/<run>/`,
    /// and removes what killed runs left there: the caller holds the lease, so
    /// no other run of this version is alive.
    ///
    /// # Errors
    ///
    /// When a file cannot be read from the store or written.
    pub(crate) fn write(
        home: &Home,
        version: MemoryVersion,
        run: &RunId,
        plan: &Plan,
        store: &Store,
        prepared: &Prepared<'_>,
        diff: &Redacted,
    ) -> Result<Self, ConsolidateError> {
        let ending = format!("-{version}");
        sweep(&home.staging(), &ending).map_err(ConsolidateError::Staging)?;
        let staging = Self {
            folder: home.staging().join(format!("{run}{ending}")),
        };
        let made = fs::make_folders(&staging.folder);
        made.map_err(ConsolidateError::Staging)?;
        for (path, planned) in &plan.files {
            if plan.hidden.contains(path) || prepared.is_changed(path) {
                continue;
            }
            match planned {
                Planned::Head(blob) => {
                    let bytes = store.blob(blob.id)?;
                    staging.put(path.as_str(), &bytes, blob.executable)?;
                }
                Planned::New { content, .. } => {
                    staging.put(path.as_str(), content.as_str().as_bytes(), false)?;
                }
            }
        }
        for (path, file) in prepared.new {
            if prepared.is_changed(path) {
                let text = redact::redact_str(&file.text);
                staging.put(path.as_str(), text.as_str().as_bytes(), file.executable)?;
            }
        }
        staging.put(WORKSPACE_DIFF, diff.as_str().as_bytes(), false)?;
        Ok(staging)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn put(&self, path: &str, bytes: &[u8], executable: bool) -> Result<(), ConsolidateError> {
        let target = self.folder.join(path);
        let folder = target.parent().unwrap_or(&self.folder);
        fs::make_folders(folder)
            .and_then(|()| fs::write_unflushed(&target, bytes, executable))
            .map_err(ConsolidateError::Staging)
    }

    /// Everything that lies in the folder now, by path below it. Of a flood of
    /// files that are not in `plan` only the flood is told.
    ///
    /// # Errors
    ///
    /// When a folder cannot be listed or a file not read.
    pub(crate) fn read_back(
        &self,
        plan: &Plan,
    ) -> Result<BTreeMap<String, Seen>, ConsolidateError> {
        let mut seen = BTreeMap::new();
        let (mut files, mut bytes) = (0, 0_u64);
        let mut folders = vec![(self.folder.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::list(&folder).map_err(ConsolidateError::Staging)? {
                let name = relative(&self.folder, &entry.path);
                if entry.kind == EntryType::Folder && depth < DEPTH_MAX {
                    folders.push((entry.path, depth + 1));
                    continue;
                }
                if !is_planned(plan, &name) {
                    let size = fs::size_and_time(&entry.path).map_or(0, |(size, _)| size);
                    // One that is too large is refused for that by itself.
                    bytes = bytes.saturating_add(size.min(SNAPSHOT_FILE_BYTES_MAX));
                    files += 1;
                }
                if NEW_FILES_MAX < files || NEW_BYTES_MAX < bytes {
                    let flood = Seen::Flood { files, bytes };
                    return Ok(BTreeMap::from([(name, flood)]));
                }
                let found = match entry.kind {
                    EntryType::File => look(&entry.path)?,
                    EntryType::Symlink => Seen::Symlink,
                    EntryType::Folder => Seen::Unfit {
                        why: "lies deeper than folders may",
                    },
                    EntryType::Other => Seen::Unfit {
                        why: "is neither a file nor a folder",
                    },
                };
                seen.insert(name, found);
            }
        }
        Ok(seen)
    }
}

fn is_planned(plan: &Plan, name: &str) -> bool {
    let path = TreePath::parse(name);
    name == WORKSPACE_DIFF || path.is_some_and(|path| plan.files.contains_key(&path))
}

fn look(path: &Path) -> Result<Seen, ConsolidateError> {
    let size = fs::size_and_time(path).map_or(0, |(bytes, _)| bytes);
    if size > SNAPSHOT_FILE_BYTES_MAX {
        return Ok(Seen::TooLarge { bytes: size });
    }
    let bytes = fs::read(path, SNAPSHOT_FILE_BYTES_MAX).map_err(ConsolidateError::Staging)?;
    let executable = fs::is_executable(path);
    Ok(Seen::File { bytes, executable })
}

/// The path below `root` with `/` between its parts; bytes that are not UTF-8
/// become replacement characters, which no planned path has.
fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Removes folders whose names have this ending.
fn sweep(folder: &Path, ending: &str) -> Result<(), FsError> {
    for entry in fs::list(folder)? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        if entry.kind == EntryType::Folder && name.is_some_and(|name| name.ends_with(ending)) {
            fs::remove_all(&entry.path)?;
        }
    }
    Ok(())
}
