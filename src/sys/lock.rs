//! File locks, held for moments.
//!
//! # Crash safety
//!
//! The kernel drops a lock when its process ends, however it ends. The file
//! stays; only the lock on it means anything, so nothing is ever broken by age.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sys::process::ProcessIdentity;

/// How often a busy lock is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

/// A held lock of which the threads of this process take turns; dropping it
/// lets go.
#[derive(Debug)]
pub(crate) struct LockInTurn<'a> {
    pub(crate) lock: FileLock,
    /// Dropped after the lock, so that the next thread finds it free.
    _turn: MutexGuard<'a, ()>,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another process holds it; `holder` is what it wrote about itself.
    #[error("`{path}` is locked by {holder}")]
    Busy { path: PathBuf, holder: String },
    /// Locking what a link leads to would lock something else.
    #[error("`{path}` is a symbolic link, not a lock file; remove it, it is made anew")]
    IsLink { path: PathBuf },
    #[error("could not lock `{path}`")]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl FileLock {
    /// Takes the lock on `path`, waiting at most `wait`.
    ///
    /// # Errors
    ///
    /// [`LockError::Busy`] when the time is up, naming the holder.
    pub(crate) fn acquire(path: &Path, wait: Duration) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600).custom_flags(libc_o_nofollow());
        }
        let is_link = || {
            path.symlink_metadata()
                .is_ok_and(|found| found.is_symlink())
        };
        let mut file = match options.open(path) {
            Err(_) if is_link() => {
                let path = path.to_owned();
                return Err(LockError::IsLink { path });
            }
            opened => opened.map_err(io)?,
        };
        let deadline = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(io(source)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(RETRY_EVERY);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Busy {
                        path: path.to_owned(),
                        holder: holder(&mut file),
                    });
                }
            }
        }
        // The text only helps people; a lock without it is still a lock.
        let identity = ProcessIdentity::current();
        file.set_len(0)
            .and_then(|()| writeln!(file, "{identity}"))
            .ok();
        Ok(Self { _file: file })
    }
}

impl<'a> LockInTurn<'a> {
    /// Takes the lock on `path`, waiting at most `wait` for other processes.
    /// Threads that share `turn` wake each other; trying a file lock again and
    /// again, they would sleep through most of the time in which it is free.
    ///
    /// # Errors
    ///
    /// As [`FileLock::acquire`].
    pub(crate) fn acquire(
        turn: &'a Mutex<()>,
        path: &Path,
        wait: Duration,
    ) -> Result<Self, LockError> {
        let asked = Instant::now();
        // What a thread that panicked in its turn was writing is whole or not
        // there: see the users of file locks.
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Who waited behind another thread has waited for the file, too.
        let lock = FileLock::acquire(path, wait.saturating_sub(asked.elapsed()))?;
        Ok(Self { lock, _turn: turn })
    }
}

#[cfg(unix)]
fn libc_o_nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("open flags fit an int")
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(256).read_to_string(&mut text));
    match ProcessIdentity::parse(text.trim()) {
        Some(identity) if read.is_ok() => format!("process {}", identity.pid),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FileLock, LockError};

    #[cfg(unix)]
    #[test]
    fn a_link_is_no_lock_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memories.lock");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        let error = FileLock::acquire(&path, Duration::ZERO).unwrap_err();
        assert!(matches!(error, LockError::IsLink { .. }), "{error}");
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn a_busy_lock_names_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memories.lock");
        let held = FileLock::acquire(&path, Duration::ZERO).unwrap();
        let busy = FileLock::acquire(&path, Duration::from_millis(1)).unwrap_err();
        let expected = format!(
            "`{}` is locked by process {}",
            path.display(),
            std::process::id()
        );
        assert!(matches!(busy, LockError::Busy { .. }));
        assert_eq!(busy.to_string(), expected);
        drop(held);
        // Another test may just be starting a process, which has the lock too
        // until its program runs: so there is a wait here as everywhere.
        FileLock::acquire(&path, Duration::from_secs(10)).unwrap();
    }
}
