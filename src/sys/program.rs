//! One program run within bounds, and ended with everything it started.
//!
//! Between us and the program stands a second process of ours, the supervisor
//! (`sys::supervise`). It holds one end of a pipe: when this process ends, by
//! whatever means, the pipe closes and the supervisor ends the program and all
//! that came of it. The same happens at the time limit, at the output limit,
//! and when the caller says stop.
//!
//! # Not in here
//!
//! What programs are run, and what their output means.

use std::ffi::OsString;
use std::io::{BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::sys::walls::Walls;

/// First argument of the supervisor and of the program's first moments.
pub(crate) const SUPERVISE: &str = "__supervise";
pub(crate) const CONFINE: &str = "__confine";

/// How often the caller is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Longest wait for the supervisor to end everything once it has to.
pub(super) const ENDING_SECONDS_MAX: u64 = 10;

/// Longest description that the supervisor sends and takes, in bytes.
pub(super) const HEAD_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What to run, and within which bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Absolute.
    pub(crate) file: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Its working folder, absolute.
    pub(crate) folder: PathBuf,
    /// Its whole environment.
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) seconds_max: u64,
    pub(crate) output_bytes_max: u64,
    /// What its working folder and `scratch` may grow by, in bytes on disk.
    pub(crate) disk_bytes_max: u64,
    /// `None`: it writes where it likes.
    pub(crate) walls: Option<Walls>,
    /// Removed when everything has ended, also when this process is gone.
    pub(crate) scratch: Option<PathBuf>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    /// By itself; no code when a signal ended it.
    Exited {
        code: Option<i32>,
    },
    TimeUp,
    /// Standard output went over its limit.
    TooMuchOutput,
    /// Its folders grew over their limit.
    TooMuchOnDisk,
    /// The caller said stop, or is gone.
    Stopped,
    NotStarted {
        reason: String,
    },
}

/// What is left of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) end: End,
    pub(crate) stdout: Vec<u8>,
    /// Its last bytes.
    pub(crate) stderr: Vec<u8>,
    /// Processes that were still at work when the program had ended by itself.
    pub(crate) left_behind: u32,
}

/// What the supervisor says at the end, before the two outputs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) end: End,
    pub(super) left_behind: u32,
    pub(super) stdout_bytes: usize,
    pub(super) stderr_bytes: usize,
}

/// What the supervisor is told, before the program's input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: Program,
    pub(super) input_bytes: usize,
}

/// Why nothing can be said of a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("could not start the process that watches over `{file}`")]
    NoSupervisor {
        file: String,
        source: std::io::Error,
    },
    #[error("the process that watched over `{file}` broke off")]
    SupervisorLost { file: String },
}

/// Runs `program` to its end with `input` on its standard input. `keep_going`
/// is asked every tenth of a second.
///
/// # Errors
///
/// [`ProgramError`] when the supervisor fails; how the program fares is in
/// [`Ended`].
pub(crate) fn run(
    program: &Program,
    input: &[u8],
    keep_going: &dyn Fn() -> bool,
) -> Result<Ended, ProgramError> {
    let file = || program.file.to_string_lossy().into_owned();
    let mut supervisor = start().map_err(|source| ProgramError::NoSupervisor {
        file: file(),
        source,
    })?;
    let lost = || ProgramError::SupervisorLost { file: file() };
    let (stdin, stdout) = (supervisor.stdin.take(), supervisor.stdout.take());
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        end(&mut supervisor);
        return Err(lost());
    };
    let order = Order {
        program: program.clone(),
        input_bytes: input.len(),
    };
    let bytes_max = program.output_bytes_max;
    let ended = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        scope.spawn(move || sender.send(read_report(stdout, bytes_max)).ok());
        let mut line = send_order(stdin, &order, input);
        let mut give_up_at = Instant::now()
            + Duration::from_secs(program.seconds_max)
            + Duration::from_secs(ENDING_SECONDS_MAX);
        loop {
            match receiver.recv_timeout(ASK_EVERY) {
                Ok(ended) => break ended,
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if line.is_some() && !keep_going() {
                line = None;
                give_up_at = Instant::now() + Duration::from_secs(ENDING_SECONDS_MAX);
            }
            if give_up_at <= Instant::now() {
                // With the supervisor goes the program itself; its pipe closes
                // and the reader comes back.
                end(&mut supervisor);
                give_up_at += Duration::from_secs(ENDING_SECONDS_MAX);
            }
        }
    });
    supervisor.wait().ok();
    ended.ok_or_else(lost)
}

/// The supervisor in a process group of its own, so that Ctrl-C reaches this
/// process alone, which then closes the pipe.
fn start() -> std::io::Result<Child> {
    let mut command = Command::new(this_program()?);
    command
        .arg(SUPERVISE)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    command.spawn()
}

/// This binary, also when another one has taken its place meanwhile.
pub(super) fn this_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}

fn end(supervisor: &mut Child) {
    // It may have ended meanwhile; both calls then do nothing.
    supervisor.kill().ok();
    supervisor.wait().ok();
}

/// The open line, or `None` when the supervisor is gone already.
fn send_order(mut line: ChildStdin, order: &Order, input: &[u8]) -> Option<ChildStdin> {
    let head = serde_json::to_vec(order).ok()?;
    let length = u64::try_from(head.len()).ok()?.to_be_bytes();
    line.write_all(&length).ok()?;
    line.write_all(&head).ok()?;
    line.write_all(input).ok()?;
    line.flush().ok()?;
    Some(line)
}

/// `None` when it breaks off before its end.
fn read_report(stdout: impl Read, bytes_max: u64) -> Option<Ended> {
    let mut reader = BufReader::new(stdout);
    let head = read_framed(&mut reader)?;
    let report: Report = serde_json::from_slice(&head).ok()?;
    let mut take = |bytes: usize| {
        let within = u64::try_from(bytes).is_ok_and(|bytes| bytes <= bytes_max.max(HEAD_BYTES_MAX));
        let mut part = vec![0; if within { bytes } else { 0 }];
        reader.read_exact(&mut part).ok()?;
        within.then_some(part)
    };
    Some(Ended {
        end: report.end,
        left_behind: report.left_behind,
        stdout: take(report.stdout_bytes)?,
        stderr: take(report.stderr_bytes)?,
    })
}

/// A length in eight bytes, then as many bytes.
pub(super) fn read_framed(reader: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 8];
    reader.read_exact(&mut length).ok()?;
    let length = u64::from_be_bytes(length);
    if HEAD_BYTES_MAX < length {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    reader.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// Finds a program by name in the absolute folders of a `PATH`, or takes an
/// absolute path as it is. Relative folders are passed over: a program's
/// working folder may hold anything.
pub(crate) fn find(name: &str, search_path: Option<&OsString>) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    if path.components().count() != 1 {
        return None;
    }
    let folders = std::env::split_paths(search_path?);
    let mut files = folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name));
    files.find(|file| file.is_file() && crate::sys::fs::can_execute(file))
}
