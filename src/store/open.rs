//! Making and opening the repository of a memory folder.
//!
//! # Crash safety
//!
//! `init` builds the whole repository in a folder beside `.git` and renames
//! it into place: there is no half-made one.
//!
//! # Compatibility
//!
//! `.git/memrev-format` holds a number. A store with another number is only
//! read. A repository without the file (made by a person or another tool) is
//! taken over by `init`, history included.

use std::path::Path;
use std::time::Duration;

use crate::domain::id::ObjectId;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{CommitKind, CommitMessage};
use crate::store::{Store, StorePaths, commit, objects};
use crate::sys::fs::{self, EntryType};
use crate::sys::lock::FileLock;
use crate::sys::stop::point;
use crate::sys::swap;

/// The format this program writes.
pub(super) const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "memrev-format";
const FORMAT_BYTES_MAX: u64 = 64;

/// Where `init` builds. Named as a side file, so that nobody takes it for content.
const BUILD_FOLDER: &str = ".memrev-init.tmp";

/// How long `init` waits for another process.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// So that the person's own `git` sees what we see, whatever their global
/// settings: no conversions, no signing, no monitor; hooks of this folder only.
const CONFIG: &str = "\
[core]
\tautocrlf = false
\tsafecrlf = false
\tfsmonitor = false
\tuntrackedCache = false
\tsplitIndex = false
\thooksPath = .git/hooks
\texcludesFile =
\tsharedRepository = 0600
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[index]
\tskipHash = false
";

/// Overrides the attributes of the person and of `.gitattributes` files.
const ATTRIBUTES: &str = "* -text !eol -ident !filter !working-tree-encoding\n";

/// Files of ours that are never content.
const EXCLUDE: &str = "/phase2_workspace_diff.md\n.*.memrev-*.tmp\n/.memrev-init.tmp\n";

/// Packs that a process can know: it adds one per commit, and `tidy_packs`
/// keeps their number far below.
const PACKS_MAX: u16 = 4096;

const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

impl Store {
    /// Makes the folder's repository, with an empty first commit of kind
    /// `init`, unless it has one already. Files in the folder are left alone
    /// and uncommitted: the first commit after it lists each as added.
    ///
    /// # Errors
    ///
    /// When the folder is a symbolic link, `.git` is something else than a
    /// repository of its own, or a newer memrev made it.
    pub(crate) fn init(paths: StorePaths, now: Timestamp) -> Result<Self, StoreError> {
        refuse_link(&paths.folder)?;
        fs::make_folders(&paths.folder)?;
        let _lock = FileLock::acquire(&paths.lock_file, LOCK_WAIT)?;
        fs::remove_all(&paths.folder.join(BUILD_FOLDER))?;
        if !exists(&paths.folder.join(".git")) {
            build(&paths, now)?;
        }
        let store = Self::open(paths)?;
        store.take_over(now)?;
        Ok(store)
    }

    /// Opens it where there is one.
    ///
    /// # Errors
    ///
    /// As [`Self::open`], but for a missing or empty folder.
    pub(crate) fn open_if_there(paths: StorePaths) -> Result<Option<Self>, StoreError> {
        match Self::open(paths) {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::NotThere { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens exactly `<folder>/.git`; an outer repository is never looked for.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotThere`] for a missing or empty folder,
    /// [`StoreError::NoRepository`] for one whose `.git` is missing, and when
    /// `.git` is no folder or damaged.
    pub(crate) fn open(paths: StorePaths) -> Result<Self, StoreError> {
        let folder = &paths.folder;
        refuse_link(folder)?;
        let unusable = |why: String| StoreError::Unusable {
            folder: folder.clone(),
            why,
        };
        let git_dir = folder.join(".git");
        Self::return_interrupted(&paths)?;
        match git_dir.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(unusable("it is not a folder".to_owned())),
            Err(_) => return Err(missing(folder)),
        }
        let options = (gix::open::Options::isolated())
            .open_path_as_is(true)
            .object_store_slots(gix::odb::store::init::Slots::Given(PACKS_MAX))
            .with(gix::sec::Trust::Full);
        let repository =
            gix::ThreadSafeRepository::open_opts(git_dir.clone(), options).map_err(|error| {
                if is_head_damaged(&git_dir) {
                    let what = "HEAD is empty or unreadable".to_owned();
                    let folder = folder.clone();
                    return StoreError::Damaged { folder, what };
                }
                unusable(error.to_string())
            })?;
        let local = repository.to_thread_local();
        if local.object_hash() != gix::hash::Kind::Sha1 {
            return Err(unusable("its objects are not named by SHA-1".to_owned()));
        }
        let has_executable_bit =
            cfg!(unix) && local.config_snapshot().boolean("core.fileMode") != Some(false);
        let format = fs::read_text_if_any(&git_dir.join(FORMAT_FILE), FORMAT_BYTES_MAX)?;
        let format = format.map(|text| text.trim().to_owned());
        Ok(Self {
            unknown_format: format.filter(|found| *found != FORMAT.to_string()),
            has_executable_bit,
            repository,
            paths,
        })
    }

    /// Brings a repository that `build` did not make up to what it makes.
    fn take_over(&self, now: Timestamp) -> Result<(), StoreError> {
        let git_dir = self.git_dir();
        if self.unknown_format.is_some() || exists(&git_dir.join(FORMAT_FILE)) {
            return Ok(());
        }
        self.assert_whole()?;
        settle(&git_dir)?;
        let is_unborn = commit::main_of(&self.repository(), self.folder()).is_err();
        if is_unborn && self.readiness_is_unborn()? {
            self.write_root_commit(now)?;
        }
        fs::replace(&git_dir.join(FORMAT_FILE), format!("{FORMAT}\n").as_bytes())?;
        Ok(())
    }

    /// A head that names a missing commit is damage, not a new repository.
    fn assert_whole(&self) -> Result<(), StoreError> {
        match self.head() {
            Ok(head) => self.commit(head).map(drop),
            Err(StoreError::NotOurs { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn write_root_commit(&self, now: Timestamp) -> Result<(), StoreError> {
        let repository = self.writer();
        let empty = gix::ObjectId::empty_tree(gix::hash::Kind::Sha1);
        (repository.write_object(gix::objs::Tree::empty()))
            .map_err(self.while_trying_to("write the empty tree"))?;
        let subject = Redacted::literal("init: an empty memory");
        let message = CommitMessage::new(CommitKind::Init, subject);
        let author = Author::memrev();
        let root = objects::Draft {
            tree: empty,
            parents: Vec::new(),
            message: &message,
            author: &author,
            now,
        };
        let root = self.write_commit(&repository, &root)?;
        self.move_main(&repository, None, &root, &message, now)
    }
}

/// Whether HEAD is there, but names neither a ref nor a commit.
fn is_head_damaged(git_dir: &Path) -> bool {
    let head = git_dir.join("HEAD");
    let text = fs::read(&head, CONFIG_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let names_commit = ObjectId::parse(text.trim()).is_some();
    exists(&head) && !text.starts_with("ref: refs/") && !names_commit
}

fn build(paths: &StorePaths, now: Timestamp) -> Result<(), StoreError> {
    let folder = paths.folder.join(BUILD_FOLDER);
    fs::make_folders(&folder)?;
    let options = gix::create::Options {
        destination_must_be_empty: Some(false),
        ..gix::create::Options::default()
    };
    gix::create::into(&folder, gix::create::Kind::WithWorktree, options).map_err(|source| {
        StoreError::Git {
            attempt: "make a repository",
            folder: paths.folder.clone(),
            source: source.into(),
        }
    })?;
    point("init.created");
    let built = StorePaths {
        folder: folder.clone(),
        lock_file: paths.lock_file.clone(),
    };
    let git_dir = folder.join(".git");
    // The samples are of no use here, and hooks of ours go there later.
    fs::remove_all(&git_dir.join("hooks"))?;
    Store::open(built)?.take_over(now)?;
    private(&git_dir)?;
    point("init.built");
    swap::flush_file_system(&folder)?;
    swap::move_new_folder(&git_dir, &paths.folder.join(".git"))?;
    point("init.in_place");
    fs::flush_folder(&paths.folder)?;
    fs::remove_all(&folder)?;
    Ok(())
}

/// Adds our local configuration; the person's own lines stay.
fn settle(git_dir: &Path) -> Result<(), StoreError> {
    let config = git_dir.join("config");
    let text = fs::read_text_if_any(&config, CONFIG_BYTES_MAX)?.unwrap_or_default();
    if !text.contains(CONFIG) {
        let newline = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        fs::replace(&config, format!("{text}{newline}{CONFIG}").as_bytes())?;
    }
    fs::make_folders(&git_dir.join("info"))?;
    for (name, lines) in [("attributes", ATTRIBUTES), ("exclude", EXCLUDE)] {
        let path = git_dir.join("info").join(name);
        let text = fs::read_text_if_any(&path, CONFIG_BYTES_MAX)?.unwrap_or_default();
        if !text.contains(lines) {
            fs::replace(&path, format!("{lines}{text}").as_bytes())?;
        }
    }
    Ok(())
}

/// Closes the repository to others; what is inside needs no mode of its own.
fn private(git_dir: &Path) -> Result<(), StoreError> {
    Ok(fs::make_private(git_dir)?)
}

fn refuse_link(folder: &Path) -> Result<(), StoreError> {
    let is_link = folder
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    if is_link {
        return Err(StoreError::FolderIsLink {
            folder: folder.to_owned(),
        });
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn missing(folder: &Path) -> StoreError {
    let is_content = |entry: &fs::FolderEntry| {
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        name != BUILD_FOLDER && (entry.kind != EntryType::Folder || has_files(&entry.path))
    };
    let folder = folder.to_owned();
    match fs::list(&folder) {
        Ok(entries) if entries.iter().any(is_content) => StoreError::NoRepository { folder },
        _ => StoreError::NotThere { folder },
    }
}

/// Whether there is anything but folders; unreadable ones count as content.
fn has_files(folder: &Path) -> bool {
    fs::list(folder).map_or(true, |entries| {
        (entries.iter()).any(|entry| entry.kind != EntryType::Folder || has_files(&entry.path))
    })
}
