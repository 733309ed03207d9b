//! The memory folder of a version, made when it is not there.

use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::notes;
use crate::service::LOCK_WAIT;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{NewFile, Store, StorePaths, TreeChange};
use crate::sys::fs::FsError;
use crate::sys::home::Home;
use crate::sys::stop;
use crate::text::redact;

/// Why a folder is not ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FsError),
}

/// Opens the repository of a version, making home, folder and repository when
/// they are missing, and seeds the instructions for notes and for what is withheld.
///
/// # Errors
///
/// When the folder cannot be made or is not ours to write.
pub(crate) fn prepare(
    home: &Home,
    version: MemoryVersion,
    now: Timestamp,
) -> Result<Store, FolderError> {
    home.make()?;
    let paths = StorePaths::in_home(home.root(), version.folder());
    let store = match Store::open(paths.clone()) {
        Ok(store) => store,
        Err(StoreError::NotThere { .. }) => Store::init(paths, now)?,
        Err(error) => return Err(error.into()),
    };
    stop::point("service.folder_made");
    let new = notes::seed_instructions(&home.memory_folder(version))?;
    if !new.is_empty() {
        stop::point("service.instructions_seeded");
        commit_instructions(&store, &new, now)?;
    }
    Ok(store)
}

/// The instructions are ours: they are committed as such, before a pass could
/// take them for a person's edit.
fn commit_instructions(
    store: &Store,
    new: &[(&str, &str)],
    now: Timestamp,
) -> Result<(), FolderError> {
    let lock = store.lock(LOCK_WAIT)?;
    store.recover(&lock)?;
    let head = store.readiness()?;
    let change = |(path, text): &(&str, &str)| {
        Some(TreeChange {
            path: TreePath::parse(path)?,
            file: Some(NewFile {
                content: redact::redact_str(text),
                executable: false,
            }),
        })
    };
    let changes: Vec<TreeChange> = new.iter().filter_map(change).collect();
    let subject = redact::redact_str("init: instructions for notes and what is withheld");
    let message = CommitMessage::new(CommitKind::Init, subject);
    store.commit_paths(&lock, head, &changes, &message, &Author::memrev(), now)?;
    Ok(())
}
