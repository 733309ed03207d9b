//! The program in a box: its own home, clock, seed and transcripts.
//!
//! Nothing here sleeps, asks the network or touches anything outside of one
//! temporary folder.

pub(crate) mod server;
mod transcript;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

pub(crate) use transcript::{Transcript, thread_id};

/// When the sandbox's clock starts.
pub(crate) const START: &str = "2026-03-10T12:00:00Z";

/// A temporary folder with a home for memrev and for the agents.
pub(crate) struct Sandbox {
    root: TempDir,
    now: String,
    variables: Vec<(String, String)>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    /// An empty box; nothing is initialised.
    pub(crate) fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["user", "codex/sessions", "claude/projects", "work"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self {
            root,
            now: START.to_owned(),
            variables: Vec::new(),
        }
    }

    /// A box in which `memrev init` was run.
    pub(crate) fn new() -> Self {
        let sandbox = Self::empty();
        sandbox.run(&["init"]).success();
        sandbox
    }

    /// A box with the same contents, to go on from here in several ways.
    pub(crate) fn copy(&self) -> Self {
        let root = tempfile::tempdir().unwrap();
        let from = format!("{}/.", self.root.path().display());
        let mut command = Command::new("cp");
        command.arg("-a").arg(from).arg(root.path());
        assert!(command.status().unwrap().success());
        Self {
            root,
            now: self.now.clone(),
            variables: self.variables.clone(),
        }
    }

    /// Sets the clock.
    pub(crate) fn at(&mut self, now: &str) -> &mut Self {
        now.clone_into(&mut self.now);
        self
    }

    /// Sets an environment variable for every later command.
    pub(crate) fn variable(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The version 1 memory folder.
    pub(crate) fn memories(&self) -> PathBuf {
        self.home().join("memories")
    }

    /// Replaces the configuration; memory is switched on before `more`.
    pub(crate) fn configure(&self, more: &str) -> &Self {
        let text = format!("[features]\nmemories = true\n{more}");
        fs::create_dir_all(self.home()).unwrap();
        fs::write(self.home().join("config.toml"), text).unwrap();
        self
    }

    /// Puts a transcript where its agent would.
    pub(crate) fn session(&self, transcript: &Transcript) -> PathBuf {
        let path = self.path(&transcript.relative_path());
        self.write_at(&path, &transcript.text());
        path
    }

    /// Writes a file below the version 1 memory folder.
    pub(crate) fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.memories().join(relative);
        self.write_at(&path, text);
        path
    }

    pub(crate) fn write_at(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        // A minute old by the box's clock, so that it counts as settled.
        let now: jiff::Timestamp = self.now.parse().unwrap();
        let seconds = u64::try_from(now.as_second()).unwrap() - 60;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(modified).unwrap();
    }

    /// Writes a file in the box with these permissions.
    pub(crate) fn write_at_mode(&self, relative: &str, text: &str, mode: u32) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path(relative);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Reads a file below the version 1 memory folder.
    pub(crate) fn read(&self, relative: &str) -> String {
        let path = self.memories().join(relative);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Names in a folder below the home, sorted; none when it is missing.
    pub(crate) fn names(&self, relative: &str) -> Vec<String> {
        let entries = fs::read_dir(self.home().join(relative));
        let mut names: Vec<String> = entries
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Runs memrev to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().unwrap())
    }

    /// Starts memrev with `MEMREV_STOP` set.
    pub(crate) fn start_stopping(&self, stop: &str, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.env("MEMREV_STOP", stop);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The stop points that a command goes through, in order.
    pub(crate) fn trace(&self, arguments: &[&str]) -> Vec<String> {
        let file = self.path("trace");
        let child = self.start_stopping(&format!("trace:{}", file.display()), arguments);
        let run = Run::of(child.wait_with_output().unwrap());
        run.success();
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs memrev until it freezes itself at the stop point.
    pub(crate) fn freeze_at(&self, point: &str, arguments: &[&str]) -> Frozen {
        let child = self.start_stopping(&format!("freeze:{point}"), arguments);
        let pid = Pid::from_child(&child);
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "`{point}` was never reached: {status:?}");
        Frozen { child }
    }

    /// Runs memrev, killed at the stop point. True when the point was reached.
    pub(crate) fn kill_at(&self, stop: &str, arguments: &[&str]) -> bool {
        let child = self.start_stopping(&format!("kill:{stop}"), arguments);
        let output = child.wait_with_output().unwrap();
        output.status.code().is_none()
    }

    /// The program, ready to run in this box and nowhere else.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memrev"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("user"))
            .env("MEMREV_HOME", self.home())
            .env("CODEX_HOME", self.path("codex"))
            .env("CLAUDE_CONFIG_DIR", self.path("claude"))
            .env("MEMREV_NOW", &self.now)
            .env("MEMREV_SEED", "sandbox");
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    /// Runs the real `git` in the version 1 memory folder; it has to succeed.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.memories(), arguments)
    }

    pub(crate) fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let run = Run::of(self.git_command(folder, arguments).output().unwrap());
        assert_eq!(run.code, Some(0), "git {arguments:?}: {}", run.stderr);
        run.stdout
    }

    /// `git` without system or user configuration, as the person `Ada`.
    pub(crate) fn git_command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("user"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.invalid")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.invalid")
            .env("GIT_AUTHOR_DATE", &self.now)
            .env("GIT_COMMITTER_DATE", &self.now);
        command
    }

    /// Subjects of the commits on main, newest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let log = self.git(&["log", "--format=%s", "main"]);
        log.lines().map(str::to_owned).collect()
    }

    /// Path, size and content hash of every file in the home, but locks and
    /// the ledger's own side files.
    pub(crate) fn fingerprint(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.home()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((path.clone(), fs::read(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// The repository is sound and `git status` has nothing to say.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let memories = self.memories();
        self.git_in(&memories, &["fsck", "--strict", "--no-dangling"]);
        let status = self.git_in(&memories, &["status", "--porcelain"]);
        assert_eq!(status, "", "the work tree differs from the head");
    }
}

/// Runs the cases in a few threads: each has a box of its own, and much of the
/// time is spent waiting for locks that a frozen process holds.
pub(crate) fn beside_each_other<T: Sync>(cases: &[T], case: impl Fn(&T) + Sync) {
    const THREADS: usize = 8;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(one) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    case(one);
                }
            });
        }
    });
}

/// A process that stopped itself at a stop point.
pub(crate) struct Frozen {
    child: Child,
}

impl Frozen {
    /// Sends it what Ctrl-C sends; it takes notice when it goes on.
    pub(crate) fn ask_to_stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Lets it go on, and waits for its end.
    pub(crate) fn resume(self) -> Run {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
        Run::of(self.child.wait_with_output().unwrap())
    }
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn exit(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn success(self) -> Self {
        self.exit(0)
    }

    /// Something of this kind was said on stdout.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text),
            "no {text:?} in\n{}",
            self.stdout
        );
        self
    }

    /// Something of this kind was said on stderr.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "no {text:?} in\n{}",
            self.stderr
        );
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}:\n{}", self.stdout))
    }
}
