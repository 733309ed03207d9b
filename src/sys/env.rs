//! The environment, read once at start into a value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::domain::time::Timestamp;
use crate::sys::clock::{Clock, FixedClock, SystemClock};

/// What the process was started with. Paths are absolute.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// `$MEMREV_HOME`, else `~/.memrev`.
    pub(crate) home: PathBuf,
    /// The person's own home folder.
    pub(crate) user_home: PathBuf,
    pub(crate) current_dir: PathBuf,
    /// `$USER`: the author of hand edits when Git does not know one.
    pub(crate) user_name: Option<String>,
    /// `$CODEX_HOME`, else `~/.codex`.
    pub(crate) codex_home: PathBuf,
    /// `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub(crate) claude_home: PathBuf,
    /// `$MEMREV_WORKER` is set: one of our own workers started this process.
    pub(crate) is_worker: bool,
    /// `$MEMREV_NOW`, RFC 3339: a clock that stands still. Hidden, for tests.
    pub(crate) now: Option<Timestamp>,
    /// `$MEMREV_SEED`: makes run ids and salts repeatable. Hidden, for tests.
    pub(crate) seed: Option<String>,
    /// `$MEMREV_REPLAY`: folder of recorded answers. Hidden, for tests.
    pub(crate) replay: Option<PathBuf>,
    /// `$MEMREV_LOG`: `debug`, `info`, …
    pub(crate) log: Option<String>,
}

/// Why the environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("no home folder: neither `HOME` nor `MEMREV_HOME` is set to an absolute path")]
    NoHome,
    #[error("could not read the current folder")]
    NoCurrentDir(#[source] std::io::Error),
}

impl Environment {
    /// Reads the process environment. Called once, by `cli`.
    ///
    /// # Errors
    ///
    /// When there is no home folder or no current folder.
    pub(crate) fn read() -> Result<Self, EnvironmentError> {
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let current_dir = std::env::current_dir().map_err(EnvironmentError::NoCurrentDir)?;
        Self::from_variables(&variables, current_dir)
    }

    fn from_variables(
        variables: &BTreeMap<OsString, OsString>,
        current_dir: PathBuf,
    ) -> Result<Self, EnvironmentError> {
        let get = |name: &str| {
            variables
                .get(&OsString::from(name))
                .filter(|value| !value.is_empty())
        };
        let text = |name: &str| get(name).and_then(|value| value.to_str().map(str::to_owned));
        let folder = |name: &str| get(name).map(|value| current_dir.join(Path::new(value)));

        let user_home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let home = folder("MEMREV_HOME").or_else(|| Some(user_home.as_ref()?.join(".memrev")));
        let home = home.ok_or(EnvironmentError::NoHome)?;
        let user_home = user_home.unwrap_or_else(|| home.clone());
        Ok(Self {
            codex_home: folder("CODEX_HOME").unwrap_or_else(|| user_home.join(".codex")),
            claude_home: folder("CLAUDE_CONFIG_DIR").unwrap_or_else(|| user_home.join(".claude")),
            user_name: text("USER").or_else(|| text("LOGNAME")),
            is_worker: get("MEMREV_WORKER").is_some(),
            now: text("MEMREV_NOW").and_then(|value| Timestamp::parse_rfc3339(&value)),
            seed: text("MEMREV_SEED"),
            replay: folder("MEMREV_REPLAY"),
            log: text("MEMREV_LOG"),
            home,
            user_home,
            current_dir,
        })
    }

    /// The clock this process goes by.
    pub(crate) fn clock(&self) -> Box<dyn Clock> {
        match self.now {
            Some(now) => Box::new(FixedClock(now)),
            None => Box::new(SystemClock),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Environment;

    #[test]
    fn folders_follow_their_variables_and_are_absolute() {
        let read = |pairs: &[(&str, &str)]| {
            let variables = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into()));
            Environment::from_variables(&variables.collect(), PathBuf::from("/work"))
        };
        let plain = read(&[("HOME", "/home/ada")]).unwrap();
        assert_eq!(plain.home, Path::new("/home/ada/.memrev"));
        assert_eq!(plain.codex_home, Path::new("/home/ada/.codex"));
        assert_eq!(plain.claude_home, Path::new("/home/ada/.claude"));

        let moved = read(&[
            ("HOME", "/home/ada"),
            ("MEMREV_HOME", "memory"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", ""),
        ])
        .unwrap();
        assert_eq!(moved.home, Path::new("/work/memory"));
        assert_eq!(moved.codex_home, Path::new("/c"));
        assert_eq!(moved.claude_home, Path::new("/home/ada/.claude"));

        assert!(read(&[]).is_err());
    }
}
