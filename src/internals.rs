//! What benches may reach of the inside. Not for users, and not stable.

use std::error::Error;
use std::path::Path;

use crate::domain::id::ObjectId;
use crate::domain::path::TreePath;
use crate::domain::session::Agent;
use crate::domain::time::Timestamp;
use crate::sessions::{self, Found};
use crate::store::author::Author;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{NewFile, Publication, Store, StorePaths, TreeChange};
use crate::sys::ids::Ids;
use crate::text::redact;

/// Reads a whole transcript and gives the number of its records.
///
/// # Errors
///
/// When the agent is unknown or the transcript cannot be read.
pub fn read_transcript(agent: &str, path: &Path) -> Result<u64, Box<dyn Error>> {
    let agent = Agent::parse(agent).ok_or("no such agent")?;
    let found = Found::at(agent, path, None).ok_or("no such file")?;
    Ok(sessions::read(&found)?.report.records)
}

/// A memory folder in which baselines are published again and again.
pub struct BaselineBench {
    store: Store,
    head: ObjectId,
    ids: Ids,
    now: Timestamp,
}

impl BaselineBench {
    /// Makes a repository around the files of `folder` and commits them.
    ///
    /// # Errors
    ///
    /// When the repository cannot be made.
    pub fn new(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let now = Timestamp::from_seconds(1_770_000_000);
        let paths = StorePaths {
            folder: folder.to_owned(),
            lock_file: folder.with_extension("lock"),
        };
        let store = Store::init(paths, now)?;
        let head = store.head()?;
        let snapshot = store.snapshot(head)?;
        let mut files = Vec::new();
        for change in store.changes(&snapshot)?.files {
            let bytes = store.read_work_tree(&change.path)?.unwrap_or_default();
            files.push((change.path, String::from_utf8(bytes)?));
        }
        let changes: Vec<TreeChange> = files.into_iter().map(tree_change).collect();
        let message = CommitMessage::new(CommitKind::Edit, redact::redact_str("begin"));
        let lock = store.lock(std::time::Duration::ZERO)?;
        let head = store.commit_paths(&lock, head, &changes, &message, &Author::memrev(), now)?;
        drop(lock);
        Ok(Self {
            store,
            head,
            ids: Ids::new(Some("bench")),
            now,
        })
    }

    /// Publishes new versions of the files named.
    ///
    /// # Errors
    ///
    /// When they cannot be published.
    pub fn publish(&mut self, files: &[(String, String)]) -> Result<(), Box<dyn Error>> {
        let mut changes = Vec::new();
        for (path, text) in files {
            let path = TreePath::parse(path).ok_or("no such path")?;
            changes.push(tree_change((path, text.clone())));
        }
        let lock = self.store.lock(std::time::Duration::ZERO)?;
        let run = self.ids.run_id(self.now);
        let subject = redact::redact_str("baseline: 5 recaps");
        let publication = Publication {
            run: &run,
            expected_head: self.head,
            changes,
            message: CommitMessage::new(CommitKind::Baseline, subject),
            author: Author::memrev(),
        };
        self.head = self.store.publish(&lock, &publication, self.now)?.commit;
        Ok(())
    }
}

fn tree_change((path, text): (TreePath, String)) -> TreeChange {
    TreeChange {
        path,
        file: Some(NewFile {
            content: redact::redact_str(&text),
            executable: false,
        }),
    }
}
