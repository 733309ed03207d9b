//! Renames that lose nothing, whatever another program does meanwhile.
//!
//! # Compatibility
//!
//! [`exchange`] needs Linux or macOS and a file system that can do it; callers
//! have a second way for [`Exchange::Unsupported`].

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::sys::fs::FsError;

/// How often something that is in the way is looked at again.
const RETRY_EVERY: Duration = Duration::from_millis(10);

/// What became of an [`exchange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    Done,
    /// One of the two is missing; nothing happened.
    Missing,
    /// This file system cannot do it; nothing happened.
    Unsupported,
}

/// Swaps what lies at the two paths, in one instant.
///
/// # Errors
///
/// When the system refuses for another reason; nothing happened then.
pub(crate) fn exchange(one: &Path, other: &Path) -> Result<Exchange, FsError> {
    match rename_with(one, other, How::Exchange) {
        Ok(()) => Ok(Exchange::Done),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Exchange::Missing),
        Err(error) if is_unsupported(&error) => Ok(Exchange::Unsupported),
        Err(error) => Err(FsError::at("swap", other)(error)),
    }
}

/// Renames a plain file to a name where nothing may lie. `Ok(false)` when
/// something does; both are then left alone.
///
/// # Errors
///
/// When `from` is missing or cannot be moved.
pub(crate) fn move_new(from: &Path, to: &Path) -> Result<bool, FsError> {
    let moved = match rename_with(from, to, How::NoReplace) {
        // A hard link never replaces anything, either.
        Err(error) if is_unsupported(&error) => {
            std::fs::hard_link(from, to).and_then(|()| std::fs::remove_file(from))
        }
        other => other,
    };
    match moved {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(FsError::at("move a file to", to)(error)),
    }
}

/// Renames over whatever lies there.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn move_over(from: &Path, to: &Path) -> Result<(), FsError> {
    std::fs::rename(from, to).map_err(FsError::at("move a file to", to))
}

/// Renames a folder to a name where nothing may lie but an empty folder.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn move_new_folder(from: &Path, to: &Path) -> Result<(), FsError> {
    std::fs::rename(from, to).map_err(FsError::at("move a folder to", to))
}

/// Gives a file a second name, or where that is not possible a copy.
/// `Ok(false)` when something lies at `to` already.
///
/// # Errors
///
/// When `from` is missing or `to` cannot be made.
pub(crate) fn link_new(from: &Path, to: &Path) -> Result<bool, FsError> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FsError::at("link a file to", to)(error))
        }
        Err(_) => copy_new(from, to),
    }
}

fn copy_new(from: &Path, to: &Path) -> Result<bool, FsError> {
    let bytes = crate::sys::fs::read(from, u64::MAX)?;
    crate::sys::fs::create_new(to, &bytes)
}

/// Whether the two names are of one file. No where the system does not tell.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let of = |path: &Path| std::fs::symlink_metadata(path).ok();
        match (of(one), of(other)) {
            (Some(one), Some(other)) => one.dev() == other.dev() && one.ino() == other.ino(),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        false
    }
}

/// Makes a file's content durable.
///
/// # Errors
///
/// When it cannot be opened or flushed.
pub(crate) fn flush_file(file: &Path) -> Result<(), FsError> {
    let opened = File::open(file);
    opened
        .and_then(|file| file.sync_all())
        .map_err(FsError::at("flush", file))
}

/// Makes everything written to the file system of `folder` durable.
///
/// # Errors
///
/// When the folder cannot be opened or the system cannot flush.
pub(crate) fn flush_file_system(folder: &Path) -> Result<(), FsError> {
    let opened = File::open(folder).map_err(FsError::at("flush", folder))?;
    flush_all(&opened).map_err(FsError::at("flush", folder))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn flush_all(folder: &File) -> std::io::Result<()> {
    rustix::fs::syncfs(folder).map_err(Into::into)
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn flush_all(_folder: &File) -> std::io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

#[cfg(not(unix))]
fn flush_all(_folder: &File) -> std::io::Result<()> {
    Ok(())
}

/// Asks `ready` again and again until it gives something or `wait` is over.
///
/// # Errors
///
/// The first error of `ready`.
pub(crate) fn wait_for<T, E>(
    wait: Duration,
    mut ready: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let deadline = Instant::now() + wait;
    loop {
        if let Some(value) = ready()? {
            return Ok(Some(value));
        }
        if deadline <= Instant::now() {
            return Ok(None);
        }
        std::thread::sleep(RETRY_EVERY);
    }
}

#[derive(Clone, Copy)]
enum How {
    Exchange,
    NoReplace,
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_with(from: &Path, to: &Path, how: How) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let flags = match how {
        How::Exchange => RenameFlags::EXCHANGE,
        How::NoReplace => RenameFlags::NOREPLACE,
    };
    renameat_with(CWD, from, CWD, to, flags).map_err(Into::into)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_with(_from: &Path, _to: &Path, _how: How) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Old kernels and some file systems answer "invalid argument" to a flag
/// they do not know (`rename(2)`).
fn is_unsupported(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported | ErrorKind::InvalidInput
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Exchange, exchange, is_same_file, link_new, move_new, wait_for};
    use crate::sys::fs::{read, replace};

    #[test]
    fn nothing_is_lost_by_a_swap_or_a_move() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        replace(&at("a"), b"a").unwrap();
        replace(&at("b"), b"b").unwrap();
        match exchange(&at("a"), &at("b")).unwrap() {
            Exchange::Done => assert_eq!(read(&at("a"), 9).unwrap(), b"b"),
            other => assert_eq!(other, Exchange::Unsupported),
        }
        assert_ne!(exchange(&at("a"), &at("none")).unwrap(), Exchange::Done);
        assert!(!move_new(&at("a"), &at("b")).unwrap());
        assert!(move_new(&at("a"), &at("c")).unwrap());
        assert!(!at("a").exists());
        assert!(link_new(&at("c"), &at("d")).unwrap());
        assert!(!link_new(&at("c"), &at("b")).unwrap());
        assert_eq!(is_same_file(&at("c"), &at("d")), cfg!(unix));
        assert!(!is_same_file(&at("c"), &at("b")));
    }

    #[test]
    fn waiting_ends() {
        let mut asked = 0;
        let answer = wait_for(Duration::from_mins(1), || {
            asked += 1;
            Ok::<_, ()>((asked == 3).then_some(asked))
        });
        assert_eq!(answer, Ok(Some(3)));
        let never = wait_for(Duration::from_millis(1), || Ok::<Option<()>, ()>(None));
        assert_eq!(never, Ok(None));
    }
}
