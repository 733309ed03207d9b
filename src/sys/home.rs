//! Where things lie in the home (DESIGN 2).

use std::path::{Path, PathBuf};

use crate::domain::version::MemoryVersion;
use crate::sys::fs::{self, FsError};

/// The folder that holds everything memrev keeps; `~/.memrev` by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    root: PathBuf,
}

impl Home {
    /// `root` must be absolute.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// What a person chose.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Sessions set disabled or polluted, by whom and when.
    pub(crate) fn modes_file(&self) -> PathBuf {
        self.root.join("modes.yaml")
    }

    /// The Git work tree of a version.
    pub(crate) fn memory_folder(&self, version: MemoryVersion) -> PathBuf {
        self.root.join(version.folder())
    }

    /// Every recap of a version within retention.
    pub(crate) fn extractions(&self, version: MemoryVersion) -> PathBuf {
        self.root.join("extractions").join(version.label())
    }

    /// Held for moments by whoever writes recaps of a version.
    pub(crate) fn extractions_lock(&self, version: MemoryVersion) -> PathBuf {
        self.root.join(format!("extractions_{version}.lock"))
    }

    /// What is withheld, one file each.
    pub(crate) fn withheld(&self) -> PathBuf {
        self.root.join("withheld")
    }

    /// For keyed hashes; never leaves the home.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.root.join("key")
    }

    /// A person's own prompts, if any.
    pub(crate) fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    /// Usage and lease metadata; may be deleted.
    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.root.join("ledger.sqlite")
    }

    /// Private copies that workers edit; may be deleted.
    pub(crate) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    /// May be deleted.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// Logs for people who ask what happened; may be deleted.
    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Makes the root and the folders every command may count on, mode 0700.
    ///
    /// # Errors
    ///
    /// When one of them cannot be made.
    pub(crate) fn make(&self) -> Result<(), FsError> {
        fs::make_folders(&self.root)?;
        for folder in [self.withheld(), self.staging(), self.cache(), self.log()] {
            fs::make_folders(&folder)?;
        }
        for version in MemoryVersion::ALL {
            fs::make_folders(&self.extractions(version))?;
        }
        Ok(())
    }
}
