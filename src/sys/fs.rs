//! Few verbs on files; each error names the verb and the path.
//!
//! One file because a reader who needs a verb looks for it among the others.
//!
//! # Crash safety
//!
//! [`replace`] writes a side file, flushes it, renames it over the old one and
//! flushes the folder: after a crash the old or the new content is there.
//!
//! # Limits
//!
//! Reads are bounded by the caller. Symbolic links are refused where a verb
//! says so, and never followed when writing.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::time::Timestamp;
use crate::sys::ids::Ids;

/// What was attempted on which path, and why it did not work.
#[derive(Debug, thiserror::Error)]
#[error("could not {attempt} `{path}`")]
pub(crate) struct FsError {
    pub(crate) attempt: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) source: std::io::Error,
}

impl FsError {
    pub(crate) fn at(attempt: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            attempt,
            path,
            source,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.source.kind() == ErrorKind::NotFound
    }
}

/// What a directory holds at a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FolderEntry {
    pub(crate) path: PathBuf,
    pub(crate) kind: EntryType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryType {
    File,
    Folder,
    Symlink,
    Other,
}

/// Reads a regular file of at most `bytes_max` bytes; a symbolic link is an error.
///
/// # Errors
///
/// When it cannot be read, is no regular file or is larger.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FsError> {
    let attempt = "read";
    let file = open_no_follow(path).map_err(FsError::at(attempt, path))?;
    let metadata = file.metadata().map_err(FsError::at(attempt, path))?;
    if !metadata.is_file() {
        let source = std::io::Error::other("it is not a regular file");
        return Err(FsError::at(attempt, path)(source));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(bytes_max)).unwrap_or(0));
    (file.take(bytes_max.saturating_add(1)))
        .read_to_end(&mut bytes)
        .map_err(FsError::at(attempt, path))?;
    if bytes.len() as u64 > bytes_max {
        let source = std::io::Error::other(format!("it is larger than {bytes_max} bytes"));
        return Err(FsError::at(attempt, path)(source));
    }
    Ok(bytes)
}

/// The last `bytes_max` bytes of a regular file, or all of a smaller one.
///
/// # Errors
///
/// When it cannot be read.
pub(crate) fn read_tail(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FsError> {
    let attempt = "read the end of";
    let mut file = open_no_follow(path).map_err(FsError::at(attempt, path))?;
    let size_bytes = file.metadata().map_err(FsError::at(attempt, path))?.len();
    let from = size_bytes.saturating_sub(bytes_max);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))
        .and_then(|_| file.take(bytes_max).read_to_end(&mut bytes))
        .map_err(FsError::at(attempt, path))?;
    Ok(bytes)
}

/// Like [`read`], for UTF-8 text. `None` when there is no such file.
///
/// # Errors
///
/// As [`read`], and when the bytes are not UTF-8.
pub(crate) fn read_text_if_any(path: &Path, bytes_max: u64) -> Result<Option<String>, FsError> {
    let bytes = match read(path, bytes_max) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let not_utf8 = |error: std::string::FromUtf8Error| {
        let source = std::io::Error::new(ErrorKind::InvalidData, error.utf8_error());
        FsError::at("read", path)(source)
    };
    String::from_utf8(bytes).map(Some).map_err(not_utf8)
}

/// Reads a file that a person named, who may have put a link there.
///
/// # Errors
///
/// As [`read_text_if_any`]; a missing file is an error too.
pub(crate) fn read_named(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FsError> {
    let real = std::fs::canonicalize(path).map_err(FsError::at("read", path))?;
    read(&real, bytes_max)
}

/// Whether others than its owner may read the file at `path`; false where the
/// system has no such thing, or there is no file.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

fn open_no_follow(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(i32::try_from(flags.bits()).expect("open flags fit an int"));
    }
    options.open(path)
}

/// The entries of a folder, sorted by name. Links are not followed.
///
/// # Errors
///
/// When the folder cannot be listed; a missing one is an empty list.
pub(crate) fn list(folder: &Path) -> Result<Vec<FolderEntry>, FsError> {
    let attempt = "list";
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FsError::at(attempt, folder)(error)),
    };
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FsError::at(attempt, folder))?;
        let file_type = entry.file_type().map_err(FsError::at(attempt, folder))?;
        let kind = match () {
            () if file_type.is_symlink() => EntryType::Symlink,
            () if file_type.is_dir() => EntryType::Folder,
            () if file_type.is_file() => EntryType::File,
            () => EntryType::Other,
        };
        listed.push(FolderEntry {
            path: entry.path(),
            kind,
        });
    }
    listed.sort();
    Ok(listed)
}

/// A regular file as a folder lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListedFile {
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) modified: Timestamp,
}

/// The regular files of a folder with sizes and times, sorted by name; a
/// missing folder has none. A file that goes meanwhile is left out.
///
/// # Errors
///
/// When the folder cannot be listed.
pub(crate) fn list_files(folder: &Path) -> Result<Vec<ListedFile>, FsError> {
    let attempt = "list";
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FsError::at(attempt, folder)(error)),
    };
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FsError::at(attempt, folder))?;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            listed.push(ListedFile {
                path: entry.path(),
                size_bytes: metadata.len(),
                modified: modified(&metadata),
            });
        }
    }
    listed.sort();
    Ok(listed)
}

/// Makes `folder` and what is missing above it, each with mode 0700.
///
/// # Errors
///
/// When one of them cannot be made, or is a file or symbolic link.
pub(crate) fn make_folders(folder: &Path) -> Result<(), FsError> {
    let attempt = "make the folder";
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder).map_err(FsError::at(attempt, folder))
}

/// Makes a folder of our own, mode 0700, in the system's place for temporary
/// ones. The caller removes it.
///
/// # Errors
///
/// When it cannot be made.
pub(crate) fn make_temporary_folder(name: &str, ids: &Ids) -> Result<PathBuf, FsError> {
    let folder = std::env::temp_dir().join(format!("{name}-{}", ids.token()));
    make_folders(&folder)?;
    Ok(folder)
}

/// Puts `bytes` at `path` whole or not at all, flushed, mode 0600.
///
/// # Errors
///
/// When a step fails; the old file is then still there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let attempt = "replace";
    let side = side_path(path);
    let written = write_new(&side, bytes).and_then(|()| std::fs::rename(&side, path));
    if let Err(source) = written {
        // The side file holds nothing that is not in memory; a leftover is
        // swept by name.
        std::fs::remove_file(&side).ok();
        return Err(FsError::at(attempt, path)(source));
    }
    flush_folder_of(path)
}

/// As [`replace`], with the time of change and the permissions of the file
/// that is there: to everybody else it is the same file.
///
/// # Errors
///
/// As [`replace`], and when there is no file.
pub(crate) fn reword(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let attempt = "reword";
    let side = side_path(path);
    let written = std::fs::symlink_metadata(path).and_then(|old| {
        write_new(&side, bytes)?;
        std::fs::set_permissions(&side, old.permissions())?;
        let file = File::options().read(true).open(&side)?;
        file.set_modified(old.modified()?)?;
        std::fs::rename(&side, path)
    });
    if let Err(source) = written {
        std::fs::remove_file(&side).ok();
        return Err(FsError::at(attempt, path)(source));
    }
    flush_folder_of(path)
}

/// Creates `path` with `bytes`, whole or not at all, flushed, mode 0600.
/// `Ok(false)` when something is there already, which is left alone.
///
/// # Errors
///
/// When the file cannot be written; then nothing has its name.
pub(crate) fn create_new(path: &Path, bytes: &[u8]) -> Result<bool, FsError> {
    if is_taken(path) {
        return Ok(false);
    }
    let side = side_path(path);
    // A link to the side file takes the name only if nobody has it, which a
    // rename would not respect.
    let created = write_new(&side, bytes).and_then(|()| std::fs::hard_link(&side, path));
    std::fs::remove_file(&side).ok();
    match created {
        Ok(()) => flush_folder_of(path).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) if error.kind() == ErrorKind::Unsupported => create_in_place(path, bytes),
        Err(error) => Err(FsError::at("create", path)(error)),
    }
}

/// For file systems without hard links: a file that could not be written to
/// its end is taken away again.
fn create_in_place(path: &Path, bytes: &[u8]) -> Result<bool, FsError> {
    match write_new(path, bytes) {
        Ok(()) => flush_folder_of(path).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            std::fs::remove_file(path).ok();
            Err(FsError::at("create", path)(error))
        }
    }
}

/// Writes a file that may be lost: not flushed, not atomic, mode 0600, or
/// 0700 when `executable`. For staging and caches; refuses to write through a
/// symbolic link.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write_unflushed(path: &Path, bytes: &[u8], executable: bool) -> Result<(), FsError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW;
        options
            .mode(if executable { 0o700 } else { 0o600 })
            .custom_flags(i32::try_from(flags.bits()).expect("open flags fit an int"));
    }
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(bytes));
    written.map_err(FsError::at("write", path))
}

/// Whether the owner may execute the file; never where there is no such bit.
pub(crate) fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::symlink_metadata(path);
        metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0)
    }
    #[cfg(not(unix))]
    false
}

/// Whether anybody may execute what is there, through links; where there is no
/// such bit, whether it is a file.
pub(crate) fn can_execute(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}

/// When a folder's list of names last changed; `None` when there is no such
/// folder.
pub(crate) fn folder_modified(path: &Path) -> Option<Timestamp> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    metadata.is_dir().then(|| modified(&metadata))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = new_options(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Adds `bytes` to the end of a file, which is made with mode 0600.
///
/// # Errors
///
/// When it cannot be opened or written.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let mut options = new_options(0o600);
    options.create_new(false).create(true).append(true);
    let opened = options.open(path);
    opened
        .and_then(|mut file| file.write_all(bytes))
        .map_err(FsError::at("append to", path))
}

/// Closes a folder to everybody but its owner: mode 0700.
///
/// # Errors
///
/// When its mode cannot be set.
pub(crate) fn make_private(folder: &Path) -> Result<(), FsError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder, mode).map_err(FsError::at("close", folder))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

/// For a file that must not exist yet.
fn new_options(mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(mode);
    }
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Marks side files of ours: `.name.memrev-<pid>.tmp`.
const SIDE_MARK: &str = ".memrev-";

fn side_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new("file"));
    let mut side = OsStr::new(".").to_owned();
    side.push(name);
    side.push(format!(
        "{SIDE_MARK}{}-{}.tmp",
        std::process::id(),
        side_number()
    ));
    path.with_file_name(side)
}

/// Two threads may write files of the same name.
fn side_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether a file name is that of a side file a crash may have left.
pub(crate) fn is_side_file(name: &str) -> bool {
    name.starts_with('.') && name.contains(SIDE_MARK) && has_extension(name, "tmp")
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|end| end == extension)
}

/// Removes a file; a missing one is fine.
///
/// # Errors
///
/// When it is there and cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<(), FsError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FsError::at("remove", path)(error)),
    }
}

/// Removes a folder that has nothing in it; any other is left alone.
///
/// # Errors
///
/// When the system refuses for another reason.
pub(crate) fn remove_if_empty(folder: &Path) -> Result<(), FsError> {
    match std::fs::remove_dir(folder) {
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
            ) =>
        {
            Err(FsError::at("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a folder with everything in it; links in it are removed, not
/// followed; a missing one is fine.
///
/// # Errors
///
/// When something cannot be removed.
pub(crate) fn remove_all(folder: &Path) -> Result<(), FsError> {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FsError::at("remove", folder)(error)),
    }
}

/// Removes whatever lies at `path`, a folder with everything in it.
///
/// # Errors
///
/// When something cannot be removed.
pub(crate) fn remove_all_or_file(path: &Path) -> Result<(), FsError> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => remove_all(path),
        _ => remove(path),
    }
}

/// Flushes the folder that holds `path`, so that a rename in it survives.
///
/// # Errors
///
/// When the folder cannot be opened or flushed.
pub(crate) fn flush_folder_of(path: &Path) -> Result<(), FsError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    flush_folder(folder)
}

/// Flushes a folder.
///
/// # Errors
///
/// When the folder cannot be opened or flushed.
pub(crate) fn flush_folder(folder: &Path) -> Result<(), FsError> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(FsError::at("flush the folder", folder))
}

/// Moves a file within a file system, over what is there, and flushes the
/// folder it goes to.
///
/// # Errors
///
/// When it cannot be moved.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), FsError> {
    std::fs::rename(from, to).map_err(FsError::at("move", from))?;
    flush_folder_of(to)
}

/// Whether anything, be it a dangling link, has this name.
pub(crate) fn is_taken(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Tells a file from another one that took its name. `None` when there is
/// none, or where the system has no such numbers.
pub(crate) fn file_id(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Whether processes on this machine may share memory through files of this
/// folder: not on network, FUSE and pass-through file systems. Unknown ones
/// count as local.
pub(crate) fn is_on_local_disk(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        // statfs(2), linux/magic.h: NFS, SMB, CIFS, SMB2, FUSE, 9P, AFS, Ceph,
        // Lustre, VirtualBox and HGFS shares.
        const REMOTE: [u32; 11] = [
            0x6969,
            0x517B,
            0xFF53_4D42,
            0xFE53_4D42,
            0x6573_5546,
            0x0102_1997,
            0x5346_414F,
            0x00C3_6400,
            0x0BD0_0BD0,
            0x786F_4256,
            0xBACB_ACBC,
        ];
        let Ok(found) = rustix::fs::statfs(folder) else {
            return true;
        };
        // The width of `f_type` differs between machines; the numbers have 32 bits.
        let bytes = found.f_type.to_ne_bytes();
        let low = if cfg!(target_endian = "little") {
            &bytes[..4]
        } else {
            &bytes[bytes.len() - 4..]
        };
        !REMOTE.iter().any(|magic| magic.to_ne_bytes() == low)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        true
    }
}

/// A regular file and what the file system says of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Surveyed {
    pub(crate) path: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) modified: Timestamp,
}

/// Every file below `folder`, sorted by path, without what lies in a `.git`
/// folder and without following links. What cannot be looked at is left out:
/// a survey answers "did something change", and a change of that is one.
pub(crate) fn survey(folder: &Path) -> Vec<Surveyed> {
    let walk = walkdir::WalkDir::new(folder)
        .follow_links(false)
        .into_iter()
        .filter_entry(|entry| entry.file_name() != ".git");
    let files = walk.filter_map(Result::ok).filter_map(|entry| {
        if entry.file_type().is_dir() {
            return None;
        }
        let metadata = entry.metadata().ok()?;
        Some(Surveyed {
            size_bytes: metadata.len(),
            modified: modified(&metadata),
            path: entry.into_path(),
        })
    });
    let mut files: Vec<Surveyed> = files.collect();
    files.sort();
    files
}

/// What a folder takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OnDisk {
    /// Of the disk, where the system tells, else of the files.
    pub(crate) bytes: u64,
    /// Files and folders.
    pub(crate) entries: usize,
}

/// Adds up a folder that may change meanwhile; stops at more than
/// `entries_max`. Links are not followed.
pub(crate) fn on_disk(folder: &Path, entries_max: usize) -> OnDisk {
    let mut sum = OnDisk::default();
    let walk = walkdir::WalkDir::new(folder).follow_links(false);
    for entry in walk.into_iter().filter_map(Result::ok) {
        sum.entries += 1;
        if entries_max < sum.entries {
            break;
        }
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        #[cfg(unix)]
        let bytes = std::os::unix::fs::MetadataExt::blocks(&metadata).saturating_mul(512);
        #[cfg(not(unix))]
        let bytes = metadata.len();
        sum.bytes = sum.bytes.saturating_add(bytes);
    }
    sum
}

/// Size and time of change of a regular file; `None` for anything else.
pub(crate) fn size_and_time(path: &Path) -> Option<(u64, Timestamp)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    metadata
        .is_file()
        .then(|| (metadata.len(), modified(&metadata)))
}

/// When the file was last changed, by the file system's word.
pub(crate) fn modified(metadata: &std::fs::Metadata) -> Timestamp {
    let time = metadata.modified().ok();
    let since_epoch = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let millis = since_epoch.map_or(0, |duration| duration.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{create_new, is_side_file, list, make_folders, read, read_text_if_any, replace};

    #[test]
    fn replace_leaves_one_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.md");
        make_folders(path.parent().unwrap()).unwrap();
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"two");
        assert_eq!(list(path.parent().unwrap()).unwrap().len(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn create_new_never_overwrites() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n.md");
        assert!(create_new(&path, b"first").unwrap());
        assert!(!create_new(&path, b"second").unwrap());
        assert_eq!(read(&path, 99).unwrap(), b"first");
    }

    #[test]
    fn reads_are_bounded_and_refuse_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        replace(&path, b"12345").unwrap();
        let error = read(&path, 4).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("could not read `{}`", path.display())
        );
        assert_eq!(error.source.to_string(), "it is larger than 4 bytes");
        assert_eq!(
            read_text_if_any(&folder.path().join("none"), 4).unwrap(),
            None
        );
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            read(&link, 99).unwrap_err();
        }
    }

    #[test]
    fn side_files_are_known_by_name() {
        assert!(is_side_file(".n.md.memrev-42.tmp"));
        assert!(!is_side_file("n.md"));
        assert!(!is_side_file(".n.md.swp"));
    }
}
