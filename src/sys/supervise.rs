//! The supervisor of one program, and the program's first moments.
//!
//! Both are this binary under hidden names. `memrev __supervise` reads an
//! order from its standard input, starts the program, feeds it, gathers its
//! output, looks at the size of its folders, and ends it with all its descendants: at the limits, when the line
//! to the one who ordered it closes, or when the program has ended. On Linux
//! orphans become the supervisor's children, so none escapes by losing its
//! parent. `memrev __confine` is the program before it is the program: it
//! asks the kernel to die with the supervisor, allows no core dumps, closes
//! itself in, and becomes the program.
//!
//! # Limits
//!
//! Elsewhere than on Linux the program's process group is ended; one that
//! leaves the group stays.

use std::process::ExitCode;

/// The supervisor. Always succeeds: how the program fared is in its report.
pub(crate) fn supervise() -> ExitCode {
    #[cfg(unix)]
    unix::supervise();
    ExitCode::SUCCESS
}

/// Becomes the program; comes back only when that is not possible.
pub(crate) fn confine(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    #[cfg(unix)]
    unix::confine(arguments);
    #[cfg(not(unix))]
    let _ = arguments;
    ExitCode::from(127)
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsString;
    use std::io::{Read, Write as _};
    use std::os::unix::process::CommandExt as _;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

    use crate::sys::fs::OnDisk;
    use crate::sys::program::{
        CONFINE, ENDING_SECONDS_MAX, End, Order, Program, Report, read_framed, this_program,
    };
    use crate::sys::walls::{self, Walls};

    /// Begins what is said when the program could not be started.
    const NOT_STARTED: &str = "memrev-not-started: ";

    /// Last bytes of standard error that are kept.
    const STDERR_BYTES_MAX: usize = 16 * 1024;

    /// What the program started may take this long to end after it.
    const GRACE: Duration = Duration::from_secs(1);

    /// Pause between two looks at the folders' size.
    const DISK_EVERY: Duration = Duration::from_millis(200);

    /// Files and folders that a program may make in its folders.
    const NEW_ENTRIES_MAX: usize = 50_000;

    /// Largest file that a program can write anywhere, in bytes: far above the
    /// log of an agent, far below a disk.
    const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

    /// Pause between two looks at what is still alive.
    const LOOK_EVERY: Duration = Duration::from_millis(5);

    enum Event {
        Exited,
        TooMuchOutput,
        LineClosed,
    }

    pub(super) fn supervise() {
        let mut stdin = std::io::stdin();
        let Some(order) =
            read_framed(&mut stdin).and_then(|head| serde_json::from_slice::<Order>(&head).ok())
        else {
            return;
        };
        let mut input = vec![0; order.input_bytes];
        if stdin.read_exact(&mut input).is_err() {
            return;
        }
        let (sender, events) = channel();
        let line = sender.clone();
        // Ends with the process: it waits for the one who gave the order.
        std::thread::spawn(move || {
            let mut byte = [0];
            std::io::stdin().read_exact(&mut byte).ok();
            line.send(Event::LineClosed).ok();
        });
        let (report, stdout, stderr) = watch_over(&order.program, input, &sender, &events);
        if let Some(scratch) = &order.program.scratch {
            crate::sys::fs::remove_all(scratch).ok();
        }
        tell(&report, &stdout, &stderr).ok();
    }

    /// Nobody may be left to hear it.
    fn tell(report: &Report, stdout: &[u8], stderr: &[u8]) -> std::io::Result<()> {
        let head = serde_json::to_vec(report).map_err(std::io::Error::other)?;
        let mut out = std::io::stdout().lock();
        out.write_all(&(head.len() as u64).to_be_bytes())?;
        out.write_all(&head)?;
        out.write_all(stdout)?;
        out.write_all(stderr)?;
        out.flush()
    }

    fn watch_over(
        program: &Program,
        input: Vec<u8>,
        sender: &Sender<Event>,
        events: &Receiver<Event>,
    ) -> (Report, Vec<u8>, Vec<u8>) {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
        let deadline = Instant::now() + Duration::from_secs(program.seconds_max);
        let mut disk = Disk::of(program);
        let mut child = match start(program) {
            Ok(child) => child,
            Err(error) => {
                let reason = error.to_string();
                return told(End::NotStarted { reason }, 0, Vec::new(), Vec::new());
            }
        };
        let (stdout, stderr) = attend(&mut child, input, program.output_bytes_max, sender);
        let cut_short = wait_for_end(&mut disk, deadline, events);
        let left_behind = match cut_short {
            None => leftovers(&mut child),
            Some(_) => 0,
        };
        end_all(&mut child);
        let code = child.wait().ok().and_then(|status| status.code());
        let (stdout, stderr) = (stdout.take(), stderr.take());
        let end = cut_short.unwrap_or_else(|| exited(code, &stderr));
        // The flood may have been noticed only after the end.
        let end = match end {
            End::Exited { .. } if is_over(&stdout, program.output_bytes_max) => End::TooMuchOutput,
            end => end,
        };
        let stdout = if end == End::TooMuchOutput {
            Vec::new()
        } else {
            stdout
        };
        told(end, left_behind, stdout, stderr)
    }

    /// Why it has to end, or `None` when it did by itself.
    fn wait_for_end(disk: &mut Disk, deadline: Instant, events: &Receiver<Event>) -> Option<End> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            return match events.recv_timeout(left.min(disk.pause)) {
                Ok(Event::Exited) => disk.is_over().then_some(End::TooMuchOnDisk),
                Ok(Event::TooMuchOutput) => Some(End::TooMuchOutput),
                Ok(Event::LineClosed) | Err(RecvTimeoutError::Disconnected) => Some(End::Stopped),
                Err(RecvTimeoutError::Timeout) if deadline <= Instant::now() => Some(End::TimeUp),
                Err(RecvTimeoutError::Timeout) if disk.is_over() => Some(End::TooMuchOnDisk),
                Err(RecvTimeoutError::Timeout) => continue,
            };
        }
    }

    /// The folders of a program, and how large they may become.
    struct Disk {
        folders: Vec<PathBuf>,
        bytes_max: u64,
        entries_max: usize,
        /// Until the next look.
        pause: Duration,
    }

    impl Disk {
        /// At the start: what lies there now does not count.
        fn of(program: &Program) -> Self {
            let mut folders = vec![program.folder.clone()];
            let below = |scratch: &PathBuf| !program.folder.starts_with(scratch);
            // The scratch folder may hold the working folder.
            match &program.scratch {
                Some(scratch) if below(scratch) => folders.push(scratch.clone()),
                Some(scratch) => folders = vec![scratch.clone()],
                None => {}
            }
            let now = size(&folders, usize::MAX);
            Self {
                folders,
                bytes_max: now.bytes.saturating_add(program.disk_bytes_max),
                entries_max: now.entries.saturating_add(NEW_ENTRIES_MAX),
                pause: DISK_EVERY,
            }
        }

        fn is_over(&mut self) -> bool {
            let began = Instant::now();
            let now = size(&self.folders, self.entries_max);
            // Looking must not become the work.
            self.pause = DISK_EVERY.max(began.elapsed() * 10);
            self.bytes_max < now.bytes || self.entries_max < now.entries
        }
    }

    fn size(folders: &[PathBuf], entries_max: usize) -> OnDisk {
        let mut sum = OnDisk::default();
        for folder in folders {
            let one = crate::sys::fs::on_disk(folder, entries_max);
            sum.bytes = sum.bytes.saturating_add(one.bytes);
            sum.entries = sum.entries.saturating_add(one.entries);
        }
        sum
    }

    fn is_over(stdout: &[u8], bytes_max: u64) -> bool {
        bytes_max < stdout.len() as u64
    }

    fn told(
        end: End,
        left_behind: u32,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    ) -> (Report, Vec<u8>, Vec<u8>) {
        let report = Report {
            end,
            left_behind,
            stdout_bytes: stdout.len(),
            stderr_bytes: stderr.len(),
        };
        (report, stdout, stderr)
    }

    fn exited(code: Option<i32>, stderr: &[u8]) -> End {
        let said = String::from_utf8_lossy(stderr);
        match said.trim().strip_prefix(NOT_STARTED) {
            Some(reason) if code == Some(127) => End::NotStarted {
                reason: reason.to_owned(),
            },
            _ => End::Exited { code },
        }
    }

    /// The program by way of [`confine`].
    fn start(program: &Program) -> std::io::Result<Child> {
        let walls = serde_json::to_string(&program.walls).map_err(std::io::Error::other)?;
        Command::new(this_program()?)
            .arg(CONFINE)
            .arg(std::process::id().to_string())
            .arg(walls)
            .arg(&program.file)
            .args(&program.arguments)
            .current_dir(&program.folder)
            .env_clear()
            .envs(program.variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }

    /// Feeds the program and gathers what it says, each on a thread that ends
    /// when nobody has the other end of its pipe any more.
    fn attend(
        child: &mut Child,
        input: Vec<u8>,
        output_bytes_max: u64,
        sender: &Sender<Event>,
    ) -> (Heard, Heard) {
        if let Some(mut stdin) = child.stdin.take() {
            // A program need not read its input to the end.
            std::thread::spawn(move || stdin.write_all(&input).ok());
        }
        let (stdout, stderr) = (Heard::default(), Heard::default());
        let bytes_max = usize::try_from(output_bytes_max).unwrap_or(usize::MAX);
        if let Some(pipe) = child.stdout.take() {
            let (heard, sender) = (stdout.clone(), sender.clone());
            std::thread::spawn(move || {
                listen(pipe, |part| heard.add(part, bytes_max, &sender));
                heard.close();
            });
        }
        if let Some(pipe) = child.stderr.take() {
            let heard = stderr.clone();
            std::thread::spawn(move || {
                listen(pipe, |part| heard.add_last(part, STDERR_BYTES_MAX));
                heard.close();
            });
        }
        let pid = Pid::from_child(child);
        let sender = sender.clone();
        std::thread::spawn(move || {
            // It stays there to be reaped, so that its number is not given away.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) =
                rustix::process::waitid(WaitId::Pid(pid), options)
            {}
            sender.send(Event::Exited).ok();
        });
        (stdout, stderr)
    }

    fn listen(mut pipe: impl Read, mut hear: impl FnMut(&[u8])) {
        let mut part = vec![0; 64 * 1024];
        loop {
            match pipe.read(&mut part) {
                Ok(0) => return,
                Ok(length) => hear(&part[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// What one pipe has said so far.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<(Vec<u8>, bool)>>);

    impl Heard {
        fn lock(&self) -> std::sync::MutexGuard<'_, (Vec<u8>, bool)> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Keeps one byte more than allowed, as the sign of too much.
        fn add(&self, part: &[u8], bytes_max: usize, sender: &Sender<Event>) {
            let mut said = self.lock();
            let room = bytes_max.saturating_add(1).saturating_sub(said.0.len());
            said.0.extend_from_slice(&part[..part.len().min(room)]);
            if bytes_max < said.0.len() && 0 < room {
                sender.send(Event::TooMuchOutput).ok();
            }
        }

        fn add_last(&self, part: &[u8], bytes_max: usize) {
            let mut said = self.lock();
            said.0.extend_from_slice(part);
            let over = said.0.len().saturating_sub(bytes_max);
            said.0.drain(..over);
        }

        fn close(&self) {
            self.lock().1 = true;
        }

        /// Everything, once the pipe is closed or time is up: where not every
        /// descendant can be ended, one may keep it open.
        fn take(&self) -> Vec<u8> {
            let give_up_at = Instant::now() + GRACE;
            while !self.lock().1 && Instant::now() < give_up_at {
                std::thread::park_timeout(LOOK_EVERY);
            }
            std::mem::take(&mut self.lock().0)
        }
    }

    /// How many processes the ended program left at work.
    fn leftovers(child: &mut Child) -> u32 {
        let give_up_at = Instant::now() + GRACE;
        loop {
            let alive = alive(child).len();
            if alive == 0 || give_up_at <= Instant::now() {
                return u32::try_from(alive).unwrap_or(u32::MAX);
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Ends the program and everything that came of it.
    fn end_all(child: &mut Child) {
        let give_up_at = Instant::now() + Duration::from_secs(ENDING_SECONDS_MAX / 2);
        let group = Pid::from_child(child);
        loop {
            // Nobody of that number is what we want.
            rustix::process::kill_process_group(group, Signal::KILL).ok();
            let alive = alive(child);
            for pid in &alive {
                rustix::process::kill_process(*pid, Signal::KILL).ok();
            }
            if alive.is_empty() || give_up_at <= Instant::now() {
                return;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Descendants of this process that have not ended. A fork between two
    /// looks is seen by the next one.
    #[cfg(target_os = "linux")]
    fn alive(_: &mut Child) -> Vec<Pid> {
        use std::collections::BTreeSet;

        let mut processes = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<i32>().ok());
            let Some(pid) = pid else { continue };
            let stat = std::fs::read_to_string(entry.path().join("stat"));
            let Some((state, parent)) = stat.ok().as_deref().and_then(state_and_parent) else {
                continue;
            };
            processes.push((pid, parent, state));
        }
        let mut family = BTreeSet::from([rustix::process::getpid().as_raw_nonzero().get()]);
        loop {
            let before = family.len();
            let children = processes
                .iter()
                .filter(|(_, parent, _)| family.contains(parent));
            let children: Vec<i32> = children.map(|(pid, _, _)| *pid).collect();
            family.extend(children);
            if family.len() == before {
                break;
            }
        }
        let this = rustix::process::getpid();
        let ended = |state: char| matches!(state, 'Z' | 'X');
        (processes.into_iter())
            .filter(|(pid, _, state)| family.contains(pid) && !ended(*state))
            .filter_map(|(pid, _, _)| Pid::from_raw(pid))
            .filter(|pid| *pid != this)
            .collect()
    }

    /// Fields 3 and 4 of `/proc/<pid>/stat`, which follow the name (proc(5)).
    #[cfg(target_os = "linux")]
    pub(super) fn state_and_parent(stat: &str) -> Option<(char, i32)> {
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((state, fields.next()?.parse().ok()?))
    }

    #[cfg(not(target_os = "linux"))]
    fn alive(child: &mut Child) -> Vec<Pid> {
        match child.try_wait() {
            Ok(None) => vec![Pid::from_child(child)],
            _ => Vec::new(),
        }
    }

    pub(super) fn confine(mut arguments: impl Iterator<Item = OsString>) {
        let (supervisor, walls) = (arguments.next(), arguments.next());
        let Some(file) = arguments.next() else { return };
        let problem = match prepare(supervisor.as_ref(), walls.as_ref()) {
            Ok(()) => Command::new(&file).args(arguments).exec(),
            Err(error) => error,
        };
        let mut stderr = std::io::stderr().lock();
        let words = format!("{NOT_STARTED}`{}`: {problem}", file.to_string_lossy());
        stderr.write_all(words.as_bytes()).ok();
    }

    fn prepare(supervisor: Option<&OsString>, walls: Option<&OsString>) -> std::io::Result<()> {
        let odd = || std::io::Error::other("this is no order");
        let supervisor = supervisor.and_then(|pid| pid.to_str()).ok_or_else(odd)?;
        #[cfg(target_os = "linux")]
        {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        // It may have gone before it could be bound to.
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().to_string());
        if parent.as_deref() != Some(supervisor) {
            return Err(std::io::Error::other("the one who started this is gone"));
        }
        let none = Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        rustix::process::setrlimit(Resource::Core, none)?;
        // The limit of who started us stays where it is lower.
        let now = rustix::process::getrlimit(Resource::Fsize);
        let lower = |limit: Option<u64>| Some(limit.unwrap_or(u64::MAX).min(FILE_BYTES_MAX));
        let file = Rlimit {
            current: lower(now.current),
            maximum: lower(now.maximum),
        };
        rustix::process::setrlimit(Resource::Fsize, file)?;
        let walls = walls.and_then(|walls| walls.to_str()).ok_or_else(odd)?;
        match serde_json::from_str::<Option<Walls>>(walls).map_err(std::io::Error::other)? {
            Some(walls) => walls::close_in(&walls),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::unix::state_and_parent;

    #[test]
    fn a_name_may_hold_anything() {
        for (stat, parsed) in [
            ("12 (sh) S 7 12 12 0", Some(('S', 7))),
            ("12 (a) b) (c) Z 1 12", Some(('Z', 1))),
            ("12 (sh)", None),
            ("", None),
        ] {
            assert_eq!(state_and_parent(stat), parsed, "{stat}");
        }
    }
}
