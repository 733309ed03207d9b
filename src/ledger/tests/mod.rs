//! The ledger on real files: stories of leases, races, damage, caches.

mod books;
mod files;
mod races;
mod stories;
mod story;

use std::path::PathBuf;

use crate::domain::id::ThreadId;
use crate::domain::time::Timestamp;
use crate::ledger::Ledger;

/// A ledger in a folder of its own.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    /// Without waiting for the disk, which no test here takes the power from.
    fn open(&self) -> Ledger {
        let ledger = Ledger::open(&self.path(), at(0)).unwrap().ledger;
        let relaxed = ledger.connection.pragma_update(None, "synchronous", "OFF");
        relaxed.unwrap();
        ledger
    }

    /// File names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let listed = crate::sys::fs::list(self.folder.path()).unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        listed.into_iter().map(|entry| name(entry.path)).collect()
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn thread(id: &str) -> ThreadId {
    ThreadId::parse(id).unwrap()
}
