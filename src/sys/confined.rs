//! A folder out of which no path leads.
//!
//! Each part of a path is opened by name in the folder opened before it, and
//! never through a symbolic link, so that what is read and written lies below
//! the root however the folder was prepared.
//!
//! # Crash safety
//!
//! None: for private copies that are worth nothing after a crash.

use std::path::{Path, PathBuf};

use crate::domain::path::TreePath;
use crate::sys::fs::{self, EntryType, FsError};

/// Deepest folder that is listed.
const DEPTH_MAX: usize = 16;
/// Most files that are listed.
const FILES_MAX: usize = 20_000;

/// The root. Paths are relative to it.
#[derive(Debug)]
pub(crate) struct Confined {
    root: PathBuf,
}

impl Confined {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// A regular file's bytes, `None` when nothing has this name.
    ///
    /// # Errors
    ///
    /// When it is larger, no regular file, or behind a symbolic link.
    pub(crate) fn read(&self, path: &TreePath, bytes_max: u64) -> Result<Option<Vec<u8>>, FsError> {
        let read = self.inside(path, false, |file| fs::read(file, bytes_max));
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file whole, making the folders above it.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or lies behind a symbolic link.
    pub(crate) fn write(&self, path: &TreePath, bytes: &[u8]) -> Result<(), FsError> {
        self.inside(path, true, |file| {
            let is_executable = fs::is_executable(file);
            fs::write_unflushed(file, bytes, is_executable)
        })
    }

    /// Removes a file, and the folders that it leaves empty.
    ///
    /// # Errors
    ///
    /// When it cannot be removed, or lies behind a symbolic link.
    pub(crate) fn remove(&self, path: &TreePath) -> Result<(), FsError> {
        self.inside(path, false, fs::remove)?;
        let mut folder = Path::new(path.as_str()).parent();
        while let Some(below) = folder.filter(|below| !below.as_os_str().is_empty()) {
            fs::remove_if_empty(&self.root.join(below))?;
            folder = below.parent();
        }
        Ok(())
    }

    /// Paths and sizes in bytes of all regular files whose paths are fit to be
    /// one, sorted.
    ///
    /// # Errors
    ///
    /// When a folder cannot be listed.
    pub(crate) fn files(&self) -> Result<Vec<(TreePath, u64)>, FsError> {
        let mut files = Vec::new();
        let mut folders = vec![(self.root.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::list(&folder)? {
                match entry.kind {
                    EntryType::Folder if depth < DEPTH_MAX => folders.push((entry.path, depth + 1)),
                    EntryType::File if files.len() < FILES_MAX => {
                        let size = fs::size_and_time(&entry.path).map_or(0, |(size, _)| size);
                        files.extend(self.name(&entry.path).map(|path| (path, size)));
                    }
                    _ => {}
                }
            }
        }
        files.sort();
        Ok(files)
    }

    fn name(&self, path: &Path) -> Option<TreePath> {
        let below = path.strip_prefix(&self.root).ok()?;
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        TreePath::parse(&parts?.join("/"))
    }

    /// Calls `act` with a path that names the file in its folder, which was
    /// reached without a link. The verbs of `sys::fs` follow none at the end.
    #[cfg(target_os = "linux")]
    fn inside<T>(
        &self,
        path: &TreePath,
        makes: bool,
        act: impl FnOnce(&Path) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        use std::os::fd::AsRawFd as _;

        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

        let whole = self.root.join(path.as_str());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let at = |source: rustix::io::Errno| FsError::at("reach", &whole)(source.into());
        let root = rustix::fs::openat(CWD, &self.root, flags, Mode::empty()).map_err(at)?;
        let (folder, name) = split(path);
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let open = |below: &str| rustix::fs::openat2(&root, below, flags, Mode::empty(), resolve);
        let mut opened = open(folder);
        if makes && matches!(opened, Err(rustix::io::Errno::NOENT)) {
            make(&root, folder).map_err(at)?;
            opened = open(folder);
        }
        let opened = opened.map_err(at)?;
        // Through the opened folder: its path may lead elsewhere by now.
        let through = format!("/proc/self/fd/{}/{name}", opened.as_raw_fd());
        act(Path::new(&through)).map_err(|error| FsError {
            path: whole,
            ..error
        })
    }

    /// Elsewhere each part is looked at; nobody else writes in this folder.
    #[cfg(not(target_os = "linux"))]
    fn inside<T>(
        &self,
        path: &TreePath,
        makes: bool,
        act: impl FnOnce(&Path) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let whole = self.root.join(path.as_str());
        let mut folder = self.root.clone();
        for part in split(path).0.split('/').filter(|part| *part != ".") {
            folder.push(part);
            if std::fs::symlink_metadata(&folder).is_ok_and(|it| it.is_symlink()) {
                let source = std::io::Error::other("a symbolic link is in the way");
                return Err(FsError::at("reach", &whole)(source));
            }
        }
        if makes {
            fs::make_folders(&folder)?;
        }
        act(&whole)
    }
}

/// The folder, `.` for the root itself, and the name in it.
fn split(path: &TreePath) -> (&str, &str) {
    path.as_str()
        .rsplit_once('/')
        .unwrap_or((".", path.as_str()))
}

/// Makes the folders of a path one by one, each in the one before it.
#[cfg(target_os = "linux")]
fn make(root: &std::os::fd::OwnedFd, folder: &str) -> Result<(), rustix::io::Errno> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mut at = rustix::fs::openat2(root, ".", flags, Mode::empty(), resolve)?;
    for part in folder.split('/') {
        match rustix::fs::mkdirat(&at, part, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        at = rustix::fs::openat2(&at, part, flags, Mode::empty(), resolve)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Confined;
    use crate::domain::path::TreePath;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    #[test]
    fn files_are_written_read_listed_and_removed_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let confined = Confined::new(root.path());
        confined.write(&path("skills/a/SKILL.md"), b"one").unwrap();
        confined.write(&path("MEMORY.md"), b"three").unwrap();
        confined.write(&path("MEMORY.md"), b"two").unwrap();
        assert_eq!(
            confined.read(&path("MEMORY.md"), 9).unwrap().unwrap(),
            b"two"
        );
        assert_eq!(confined.read(&path("none/at/all"), 9).unwrap(), None);
        let files = confined.files().unwrap();
        let files: Vec<_> = files
            .iter()
            .map(|(path, size)| (path.as_str(), *size))
            .collect();
        assert_eq!(files, [("MEMORY.md", 3), ("skills/a/SKILL.md", 3)]);
        confined.remove(&path("skills/a/SKILL.md")).unwrap();
        assert!(!root.path().join("skills").exists());
        confined.read(&path("MEMORY.md"), 2).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let confined = Confined::new(root.path());
        let target = outside.path().join("f.md");
        crate::sys::fs::replace(&target, b"theirs").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("skills")).unwrap();
        std::os::unix::fs::symlink(&target, root.path().join("MEMORY.md")).unwrap();
        for name in ["skills/f.md", "skills/new/f.md", "MEMORY.md"] {
            confined.read(&path(name), 99).unwrap_err();
            confined.write(&path(name), b"ours").unwrap_err();
        }
        confined.remove(&path("skills/f.md")).unwrap_err();
        assert_eq!(crate::sys::fs::read(&target, 99).unwrap(), b"theirs");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(confined.files().unwrap(), []);
    }
}
