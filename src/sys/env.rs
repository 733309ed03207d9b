//! The environment, read once at start into a value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::domain::time::Timestamp;
use crate::sys::clock::{Clock, FixedClock, SystemClock};
use crate::sys::walls::{self, Support};

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
    /// `$MEMREV_WALLS=none`: as on a kernel that keeps none. Hidden, for tests.
    pub(crate) has_no_walls: bool,
    /// What programs that we start may be given of it.
    pub(crate) variables: Variables,
}

/// The whole environment. It may hold keys: nothing of it is ever shown.
#[derive(Clone, Default)]
pub(crate) struct Variables(BTreeMap<OsString, OsString>);

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variables({})", self.0.len())
    }
}

/// What a program needs to find itself, its login, the network and the
/// person's language. Names that end in `*` are beginnings.
const PASSED_ON: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "XDG_*",
    // The system's store of passwords.
    "DBUS_SESSION_BUS_ADDRESS",
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SYSTEMROOT",
];

impl Variables {
    /// The environment of a program: the usual names, those of `more`, and of
    /// `PATH` the absolute folders.
    pub(crate) fn for_program(&self, more: &[String]) -> Vec<(OsString, OsString)> {
        let is_usual = |name: &str| {
            PASSED_ON.iter().any(|usual| match usual.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == *usual,
            })
        };
        let passed = (self.0.iter()).filter(|(name, _)| {
            (name.to_str()).is_some_and(|name| is_usual(name) || more.iter().any(|it| it == name))
        });
        let mut passed: Vec<_> = passed
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let path = self.search_path().map(std::env::split_paths);
        let path = path.map(|folders| folders.filter(|folder| folder.is_absolute()));
        // Folders of a `PATH` have no separator in them.
        if let Some(Ok(path)) = path.map(std::env::join_paths) {
            passed.push(("PATH".into(), path));
        }
        passed
    }

    /// The variable `name`, when it is set to text that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let value = self.0.get(&OsString::from(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    pub(crate) fn search_path(&self) -> Option<&OsString> {
        self.0.get(&OsString::from("PATH"))
    }
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
            has_no_walls: text("MEMREV_WALLS").is_some_and(|word| word == "none"),
            home,
            user_home,
            current_dir,
            variables: Variables(variables.clone()),
        })
    }

    /// How far this kernel keeps programs from writing elsewhere.
    pub(crate) fn walls_support(&self) -> Support {
        if self.has_no_walls {
            Support::None
        } else {
            walls::support()
        }
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

    use super::{Environment, Variables};

    #[test]
    fn a_program_is_given_the_usual_variables_and_those_that_are_named() {
        let all = [
            ("PATH", "/usr/bin:.:tools:/bin"),
            ("HOME", "/home/ada"),
            ("LC_TIME", "de_DE"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("MY_KEY", "y"),
            ("MEMREV_HOME", "/m"),
        ];
        let all = all.map(|(name, value)| (name.into(), value.into()));
        let passed = Variables(all.into()).for_program(&["MY_KEY".to_owned()]);
        let passed: Vec<String> = (passed.iter())
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(
            passed,
            [
                "HOME=/home/ada",
                "LC_TIME=de_DE",
                "MY_KEY=y",
                "PATH=/usr/bin:/bin"
            ]
        );
    }

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
