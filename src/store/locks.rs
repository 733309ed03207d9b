//! Git's own lock files, taken so that a killed process leaves no riddle.
//!
//! Git programs agree on a file by creating `<file>.lock`. A lock that a
//! crash left must never be guessed away by its age. So ours is a hard link
//! of a *proof* under `.git/memrev/locks/`: a lock file that is the same file
//! as its proof is ours, and whoever holds the store's own lock may remove it.
//! Where there are no hard links, equal content takes that place; ours names
//! its process or the new commit, so no other program writes the same.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::error::StoreError;
use crate::sys::fs::{self, FsError};
use crate::sys::process::ProcessIdentity;
use crate::sys::swap;

/// How long a lock of another Git program is waited for.
const WAIT: Duration = Duration::from_secs(2);

/// Longest lock file that is compared with its proof, in bytes.
const LOCK_BYTES_MAX: u64 = 4096;

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub(super) struct GitLock {
    lock: PathBuf,
    proof: PathBuf,
    target: PathBuf,
}

impl GitLock {
    /// Locks `.git/<name>`; `content` is what the lock file holds, for people
    /// the process that holds it, for a ref its new value.
    pub(super) fn take(
        git_dir: &Path,
        name: &str,
        content: Option<&str>,
    ) -> Result<Self, StoreError> {
        let target = git_dir.join(name);
        let mut lock = target.clone().into_os_string();
        lock.push(".lock");
        let held = Self {
            lock: PathBuf::from(lock),
            proof: proofs(git_dir).join(name.replace('/', "%")),
            target,
        };
        fs::make_folders(&proofs(git_dir))?;
        if let Some(folder) = held.target.parent() {
            fs::make_folders(folder)?;
        }
        sweep_one(&held.lock, &held.proof)?;
        let identity = format!("memrev {}\n", ProcessIdentity::current());
        fs::write_unflushed(&held.proof, content.unwrap_or(&identity).as_bytes(), false)?;
        if content.is_some() {
            // It is to become the file that it locks.
            swap::flush_file(&held.proof)?;
        }
        let taken = swap::wait_for(WAIT, || {
            swap::link_new(&held.proof, &held.lock).map(|new| new.then_some(()))
        })?;
        if taken.is_some() {
            return Ok(held);
        }
        let path = held.lock.clone();
        held.forget()?;
        let holder = "another Git program, or was left behind by one".to_owned();
        Err(StoreError::GitLocked { path, holder })
    }

    /// Makes the lock file the new content of what it locks.
    pub(super) fn commit(self) -> Result<(), StoreError> {
        swap::move_over(&self.lock, &self.target)?;
        Ok(())
    }

    /// Removes the proof of a lock that was not taken.
    fn forget(self) -> Result<(), FsError> {
        let proof = self.proof.clone();
        std::mem::forget(self);
        fs::remove(&proof)
    }
}

impl Drop for GitLock {
    fn drop(&mut self) {
        // A failure leaves what the next taker or recovery sweeps.
        let _unlocked = sweep_one(&self.lock, &self.proof);
    }
}

/// Removes locks that a killed process of ours left. The caller holds the
/// store's lock, so no living one has any.
pub(super) fn sweep(git_dir: &Path) -> Result<(), StoreError> {
    for entry in fs::list(&proofs(git_dir))? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        match name {
            Some(name) if !fs::is_side_file(name) => {
                let mut lock = git_dir.join(name.replace('%', "/")).into_os_string();
                lock.push(".lock");
                sweep_one(Path::new(&lock), &entry.path)?;
            }
            _ => fs::remove(&entry.path)?,
        }
    }
    Ok(())
}

fn sweep_one(lock: &Path, proof: &Path) -> Result<(), FsError> {
    let is_ours = || {
        if swap::is_same_file(lock, proof) {
            return true;
        }
        let content = |path| fs::read(path, LOCK_BYTES_MAX).ok();
        let proven = content(proof).filter(|bytes| !bytes.is_empty());
        proven.is_some() && proven == content(lock)
    };
    if is_ours() {
        fs::remove(lock)?;
    }
    fs::remove(proof)
}

fn proofs(git_dir: &Path) -> PathBuf {
    git_dir.join("memrev").join("locks")
}

#[cfg(test)]
mod tests {
    use super::{GitLock, sweep};
    use crate::store::error::StoreError;
    use crate::sys::fs::create_new;

    #[test]
    fn only_a_lock_that_is_proven_ours_is_swept() {
        let git_dir = tempfile::tempdir().unwrap();
        let at = |name: &str| git_dir.path().join(name);
        let held = GitLock::take(git_dir.path(), "index", None).unwrap();
        assert!(at("index.lock").exists());
        std::mem::forget(held);
        create_new(&at("HEAD.lock"), b"").unwrap();
        sweep(git_dir.path()).unwrap();
        assert!(!at("index.lock").exists());
        assert!(at("HEAD.lock").exists());
        assert!(matches!(
            GitLock::take(git_dir.path(), "HEAD", None),
            Err(StoreError::GitLocked { .. })
        ));
        assert!(at("HEAD.lock").exists());
    }

    #[test]
    fn a_dropped_lock_is_gone_and_a_committed_one_is_the_file() {
        let git_dir = tempfile::tempdir().unwrap();
        let at = |name: &str| git_dir.path().join(name);
        drop(GitLock::take(git_dir.path(), "refs/heads/main", Some("x\n")).unwrap());
        assert!(!at("refs/heads/main.lock").exists());
        let lock = GitLock::take(git_dir.path(), "refs/heads/main", Some("x\n")).unwrap();
        lock.commit().unwrap();
        assert_eq!(std::fs::read(at("refs/heads/main")).unwrap(), b"x\n");
        assert!(!at("refs/heads/main.lock").exists());
        sweep(git_dir.path()).unwrap();
        assert!(at("refs/heads/main").exists());
    }
}
