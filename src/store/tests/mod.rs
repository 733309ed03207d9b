//! Stores on real folders, with the `git` program as the judge.

#![expect(
    clippy::disallowed_methods,
    reason = "the judge is another program, and a person edits files as they like"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{
    Change, NewFile, Publication, Published, Store, StoreLock, StorePaths, TreeChange,
};

mod basics;
mod crash;
mod damage;
mod editing;
mod packing;
mod past;
#[cfg(target_os = "linux")]
mod pruned;
#[cfg(unix)]
mod purging;
mod ready;
mod sparse;

/// When everything in these tests happens.
const NOW: Timestamp = Timestamp::from_seconds(1_764_576_000);

/// One memory folder in a home of its own.
struct Folder {
    temporary: tempfile::TempDir,
    store: Store,
}

impl Folder {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let store = Store::init(paths(temporary.path()), NOW).unwrap();
        Self { temporary, store }
    }

    /// A folder with some files, committed.
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self::new();
        for (path, text) in files {
            folder.write(path, text);
        }
        folder.commit_all("edit: start");
        folder
    }

    fn at(&self, path: &str) -> PathBuf {
        self.store.folder().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.at(path)).ok()
    }

    fn lock(&self) -> StoreLock {
        self.store.lock(Duration::from_secs(20)).unwrap()
    }

    fn head(&self) -> ObjectId {
        self.store.head().unwrap()
    }

    /// `A a.md` and so on.
    fn changes(&self) -> Vec<String> {
        let head = self.store.snapshot(self.head()).unwrap();
        let changes = self.store.changes(&head).unwrap();
        changes.files.iter().map(shown).collect()
    }

    /// Commits all that changed, as a person's edit.
    fn commit_all(&self, subject: &str) -> ObjectId {
        let head = self.head();
        let snapshot = self.store.snapshot(head).unwrap();
        let found = self.store.changes(&snapshot).unwrap().files;
        let changes: Vec<TreeChange> = found
            .iter()
            .map(|change| TreeChange {
                path: change.path.clone(),
                file: change.new.map(|new| NewFile {
                    content: redacted(&self.read(change.path.as_str()).unwrap()),
                    executable: new.executable,
                }),
            })
            .collect();
        let message = CommitMessage::new(CommitKind::Edit, redacted(subject));
        let author = Author::memrev();
        (self.store)
            .commit_paths(&self.lock(), head, &changes, &message, &author, NOW)
            .unwrap()
    }

    fn publish(&self, changes: &[(&str, Option<&str>)]) -> Result<Published, StoreError> {
        self.publish_on(self.head(), changes)
    }

    fn publish_on(
        &self,
        expected_head: ObjectId,
        changes: &[(&str, Option<&str>)],
    ) -> Result<Published, StoreError> {
        let publication = Publication {
            run: &run("r1"),
            expected_head,
            changes: tree_changes(changes),
            message: CommitMessage::new(CommitKind::Baseline, redacted("baseline: test")),
            author: Author::memrev(),
        };
        self.store.publish(&self.lock(), &publication, NOW)
    }

    /// Runs the person's `git` in the folder.
    fn git(&self, arguments: &[&str]) -> String {
        git_in(self.store.folder(), arguments)
    }

    /// What a Git user sees is in order: nothing to say, nothing damaged.
    #[track_caller]
    fn assert_in_order(&self) {
        assert_eq!(
            self.git(&["status", "--porcelain", "--untracked-files=all"]),
            ""
        );
        assert_eq!(self.git(&["fsck", "--strict", "--no-dangling"]), "");
        assert_eq!(
            self.git(&["write-tree"]),
            self.git(&["rev-parse", "HEAD^{tree}"])
        );
        assert_eq!(self.changes(), Vec::<String>::new());
    }
}

fn paths(home: &Path) -> StorePaths {
    StorePaths::in_home(home, "memories")
}

fn run(name: &str) -> RunId {
    RunId::new(name.to_owned())
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn redacted(text: &str) -> Redacted {
    Redacted::literal(Box::leak(text.to_owned().into_boxed_str()))
}

fn tree_changes(changes: &[(&str, Option<&str>)]) -> Vec<TreeChange> {
    let change = |(at, text): &(&str, Option<&str>)| TreeChange {
        path: path(at),
        file: text.map(|text| NewFile {
            content: redacted(text),
            executable: false,
        }),
    };
    changes.iter().map(change).collect()
}

fn shown(change: &Change) -> String {
    format!("{} {}", change.kind.letter(), change.path)
}

/// Runs `git` as a person with no settings would; it must succeed.
#[track_caller]
fn git_in(folder: &Path, arguments: &[&str]) -> String {
    git_with(folder, arguments, &[])
}

#[track_caller]
fn git_with(folder: &Path, arguments: &[&str], environment: &[(&str, &OsStr)]) -> String {
    let said = run_git(folder, arguments, environment);
    said.unwrap_or_else(|said| panic!("git {arguments:?}: {said}"))
}

/// What `git` says, with success or without.
fn run_git(
    folder: &Path,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
) -> Result<String, String> {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.parent().unwrap_or(folder))
        .envs(environment.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.trim_end().to_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(text + &String::from_utf8_lossy(&output.stderr))
}
