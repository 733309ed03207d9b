//! A home with a clock, a person, and a worker that does what it is told.

use crate::domain::path::WORKSPACE_DIFF;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::consolidate::accept::{self, DecideParts, Decision};
use crate::consolidate::attempts::{self, SeenAttempt};
use crate::consolidate::{
    ConsolidateError, ConsolidateReport, ConsolidateRequest, Outcome, Parts, Pending, PendingParts,
    Policy, pending, run,
};
use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::session::MemoryMode;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{Budget, Ledger, Pace};
use crate::model::{
    ConsolidationRequest, ExtractionRequest, Model, ModelError, Reply, WorkerReport,
};
use crate::recaps::Extractions;
use crate::store::author::Author;
use crate::store::{Store, StorePaths};
use crate::sys::clock::FixedClock;
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::lock::FileLock;
use crate::text::recap;
use crate::text::redact::redact_str;

/// Long before any file of these tests was written, so that no file looks as
/// if somebody were still at it.
pub(super) const NOON: Timestamp = Timestamp::from_seconds(1_764_576_000);

type Script = dyn Fn(&ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> + Send + Sync;

/// A worker that follows a script and counts its calls.
pub(super) struct Scripted {
    script: Box<Script>,
    pub(super) calls: Mutex<Vec<Call>>,
}

/// What a worker was given.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) diff: String,
    pub(super) prompt: String,
    pub(super) diagnostics: Vec<String>,
    pub(super) changes: Vec<String>,
}

impl Model for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn is_free(&self) -> bool {
        true
    }

    fn extract(&self, _request: &ExtractionRequest<'_>) -> Result<Reply, ModelError> {
        panic!("a consolidation extracts nothing")
    }

    fn consolidate(&self, request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> {
        let diff = std::fs::read_to_string(request.staging.join(WORKSPACE_DIFF)).unwrap();
        self.calls.lock().unwrap().push(Call {
            diff,
            prompt: request.prompt.as_str().to_owned(),
            diagnostics: request.diagnostics.unwrap_or_default().to_vec(),
            changes: (request.changes.iter())
                .map(|it| {
                    format!(
                        "{} old={} removed={}",
                        it.path,
                        it.old.is_some(),
                        it.is_removed
                    )
                })
                .collect(),
        });
        (self.script)(request)
    }
}

/// What a person may say about an attempt.
pub(super) enum Word {
    Accept,
    WouldAccept,
    Reject,
}

pub(super) struct Sandbox {
    /// `None` in a process that only works on another one's folders.
    temporary: Option<tempfile::TempDir>,
    pub(super) home: Home,
    pub(super) version: MemoryVersion,
    pub(super) now: Timestamp,
    pub(super) policy: Policy,
    pub(super) modes: BTreeMap<ThreadId, MemoryMode>,
    pub(super) pace: Pace,
    pub(super) only: Option<BTreeSet<ThreadId>>,
    pub(super) review: bool,
    pub(super) model: Scripted,
    /// Leaves `git fsck` to the test.
    pub(super) is_hasty: bool,
    ids: Ids,
}

impl Sandbox {
    /// Version 1, with a worker that does its work well.
    pub(super) fn new() -> Self {
        Self::of(MemoryVersion::V1)
    }

    pub(super) fn of(version: MemoryVersion) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut sandbox = Self::at(&temporary.path().join("home"), version);
        sandbox.temporary = Some(temporary);
        sandbox.home.make().unwrap();
        sandbox.init(version);
        sandbox
    }

    /// Works on folders that are there already.
    pub(super) fn at(home: &Path, version: MemoryVersion) -> Self {
        Self {
            home: Home::new(home.to_owned()),
            temporary: None,
            version,
            now: NOON,
            policy: Policy {
                renew_every: Duration::from_millis(5),
                lock_wait: Duration::from_secs(5),
                ..Policy::default()
            },
            modes: BTreeMap::new(),
            pace: Pace::ByHand,
            only: None,
            review: false,
            model: scripted(good_work),
            is_hasty: false,
            ids: Ids::new(None),
        }
    }

    pub(super) fn init(&self, version: MemoryVersion) {
        let paths = StorePaths::in_home(self.home.root(), version.folder());
        drop(Store::init(paths, NOON).unwrap());
    }

    pub(super) fn script(
        &mut self,
        script: impl Fn(&ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError>
        + Send
        + Sync
        + 'static,
    ) {
        self.model = scripted(script);
    }

    pub(super) fn try_run(&mut self) -> Result<ConsolidateReport, ConsolidateError> {
        let mut ledger = self.ledger();
        let person = Author {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
        };
        let result = run(
            &mut Parts {
                is_cancelled: &|| false,
                home: &self.home,
                ledger: &mut ledger,
                model: &self.model,
                clock: &FixedClock(self.now),
                ids: &self.ids,
                modes: &self.modes,
                person: &person,
                policy: &self.policy,
                budget: &Budget::default(),
            },
            &ConsolidateRequest {
                version: self.version,
                pace: self.pace,
                only: self.only.clone(),
                review: self.review,
            },
        );
        if !self.is_hasty {
            self.git(&["fsck", "--strict", "--no-dangling"]);
        }
        self.now = self.now.plus_seconds(60);
        result
    }

    #[track_caller]
    pub(super) fn run(&mut self) -> ConsolidateReport {
        self.try_run().unwrap()
    }

    /// A person's word about the newest attempt, or the one given.
    #[track_caller]
    pub(super) fn decide(&mut self, word: &Word, run: Option<&RunId>) -> Decision {
        let person = Author {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
        };
        let parts = DecideParts {
            home: &self.home,
            clock: &FixedClock(self.now),
            ids: &self.ids,
            modes: &self.modes,
            person: &person,
            policy: &self.policy,
        };
        let attempts = self.attempts();
        let is_wanted = |it: &&SeenAttempt| run.is_none_or(|run| it.run == *run);
        let attempt = attempts.iter().find(is_wanted).unwrap();
        let version = self.version;
        let decision = match word {
            Word::Accept => accept::accept(&parts, &mut self.ledger(), version, attempt),
            Word::WouldAccept => accept::would_accept(&parts, version, attempt),
            Word::Reject => accept::reject(&parts, version, attempt, false),
        };
        self.git(&["fsck", "--strict", "--no-dangling"]);
        self.now = self.now.plus_seconds(60);
        decision.unwrap()
    }

    /// Newest first.
    pub(super) fn attempts(&self) -> Vec<SeenAttempt> {
        let paths = StorePaths::in_home(self.home.root(), self.version.folder());
        let store = Store::open(paths).unwrap();
        attempts::list(&store, store.head().unwrap()).unwrap()
    }

    /// Runs, and expects a baseline and a clean folder.
    #[track_caller]
    pub(super) fn run_done(&mut self) -> ConsolidateReport {
        let report = self.run();
        assert!(
            matches!(report.outcome, Outcome::Done { .. }),
            "{:?} {:?}",
            report.outcome,
            report.complaints
        );
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        report
    }

    #[track_caller]
    pub(super) fn run_idle(&mut self) -> ConsolidateReport {
        let before = self.calls();
        let report = self.run();
        assert_eq!(report.outcome, Outcome::NothingToDo, "{:?}", report.inputs);
        assert_eq!(self.calls(), before, "the worker was called");
        report
    }

    #[track_caller]
    pub(super) fn pending(&self) -> Pending {
        self.try_pending().unwrap()
    }

    pub(super) fn try_pending(&self) -> Result<Pending, ConsolidateError> {
        let ledger = self.ledger();
        let parts = PendingParts {
            home: &self.home,
            ledger: Some(&ledger),
            modes: &self.modes,
            policy: &self.policy,
            now: self.now,
        };
        pending(&parts, self.version)
    }

    pub(super) fn ledger(&self) -> Ledger {
        Ledger::open(&self.home.ledger_file(), self.now)
            .unwrap()
            .ledger
    }

    pub(super) fn calls(&self) -> usize {
        self.model.calls.lock().unwrap().len()
    }

    pub(super) fn last_call(&self) -> Call {
        self.model.calls.lock().unwrap().last().unwrap().clone()
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.home.memory_folder(self.version)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let file = self.folder().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[track_caller]
    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder().join(path)).unwrap()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.folder().join(path).exists()
    }

    pub(super) fn remove(&self, path: &str) {
        std::fs::remove_file(self.folder().join(path)).unwrap();
    }

    /// Puts text at the end of a file, as a person with an editor would.
    pub(super) fn append(&self, path: &str, text: &str) {
        self.write(path, &format!("{}{text}", self.read(path)));
    }

    #[track_caller]
    pub(super) fn replace(&self, path: &str, old: &str, new: &str) {
        let text = self.read(path);
        assert!(text.contains(old), "{path} has no {old:?}:\n{text}");
        self.write(path, &text.replace(old, new));
    }

    /// A person writes [`OWN_LINE`] into the handbook.
    pub(super) fn write_own_line(&self) {
        let heading = "## User preferences\n\n";
        self.replace("MEMORY.md", heading, &format!("{heading}{OWN_LINE}"));
    }

    /// A new extraction of session `n`, updated some hours after its begin.
    pub(super) fn extract(&self, n: u8, hours: i64, fact: &str) {
        let lock_file = self.home.extractions_lock(self.version);
        let lock = FileLock::acquire(&lock_file, Duration::from_secs(5)).unwrap();
        let extractions = Extractions::open(self.home.root(), self.version);
        extractions.store(&lock, &recap_of(n, hours, fact)).unwrap();
    }

    pub(super) fn extraction(&self, n: u8) -> Option<Recap> {
        let extractions = Extractions::open(self.home.root(), self.version);
        let mut loaded = extractions.load_all().unwrap();
        loaded.recaps.remove(&thread(n)).map(|stored| stored.recap)
    }

    pub(super) fn note(&self, name: &str, text: &str) {
        self.write(&format!("extensions/ad_hoc/notes/{name}.md"), text);
    }

    #[track_caller]
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let output = self.git_command().args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    fn git_command(&self) -> Command {
        let mut command = Command::new("git");
        (command.arg("-C").arg(self.folder()))
            .env("HOME", self.home.root())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.org")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.org");
        command
    }

    pub(super) fn head(&self) -> ObjectId {
        ObjectId::parse(&self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    /// Subjects, newest first.
    pub(super) fn log(&self) -> Vec<String> {
        let log = self.git(&["log", "--format=%s"]);
        log.lines().map(str::to_owned).collect()
    }

    #[expect(clippy::unused_self, reason = "reads as a place in the sandbox")]
    pub(super) fn recap_file(&self, n: u8) -> String {
        format!("rollout_summaries/{}", file_name(n))
    }

    pub(super) fn withheld_count(&self) -> usize {
        let files = std::fs::read_dir(self.home.withheld()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| Path::new(name).extension().is_some_and(|it| it == "yaml"))
            .count()
    }
}

fn scripted(
    script: impl Fn(&ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError>
    + Send
    + Sync
    + 'static,
) -> Scripted {
    Scripted {
        script: Box::new(script),
        calls: Mutex::default(),
    }
}

pub(super) fn thread(n: u8) -> ThreadId {
    ThreadId::parse(&format!("019adc00-0000-7000-8000-0000000000{n:02}")).unwrap()
}

pub(super) fn file_name(n: u8) -> String {
    let stem = crate::text::recap_name::stem(&thread(n), NOON, None);
    format!("{stem}.md")
}

pub(super) fn recap_of(n: u8, hours: i64, fact: &str) -> Recap {
    let updated_at = NOON.minus_days(1).plus_seconds(hours * 3_600);
    Recap {
        header: RecapHeader {
            thread_id: thread(n),
            agent: None,
            updated_at,
            extracted_at: Some(updated_at),
            rollout_path: redact_str("/rollouts/a.jsonl"),
            cwd: Some(redact_str("/work/demo")),
            project: Some(redact_str("example.org/demo")),
            git_branch: None,
            model: None,
            prompt: None,
            trust: None,
            items_read: Some(7),
            adopted_at: None,
            asked_at: None,
            slug: None,
            raw_memory: Some(redact_str(&format!("### Task 1\n- {fact}"))),
        },
        body: redact_str(&format!("# Session {n}\n\n- {fact}\n")),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a worker gives back")]
pub(super) fn finished() -> Result<WorkerReport, ModelError> {
    Ok(WorkerReport {
        finished: true,
        words: redact_str("Folded in what was new."),
        ..WorkerReport::default()
    })
}

/// What a person wrote by hand.
const OWN_LINE: &str = "- Never push on Fridays.\n";

/// Good work but for one thing: the person's own line is gone.
pub(super) fn work_without_own_line(
    request: &ConsolidationRequest<'_>,
) -> Result<WorkerReport, ModelError> {
    good_work(request)?;
    let file = request.staging.join("MEMORY.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, text.replace(OWN_LINE, "")).unwrap();
    finished()
}

/// Makes both files anew from recaps and notes, and keeps lines that are in
/// the old handbook and do not cite anything.
pub(super) fn good_work(request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> {
    write_memory(request, |_| true);
    finished()
}

/// As [`good_work`], with only the recaps and notes whose text passes.
pub(super) fn write_memory(request: &ConsolidationRequest<'_>, takes: impl Fn(&str) -> bool) {
    let recaps = texts(&request.staging.join("rollout_summaries"));
    let notes = texts(&request.staging.join("extensions/ad_hoc/notes"));
    let mut tasks = String::new();
    let mut facts = String::new();
    let mut topics = String::new();
    let mut kept = own_lines(request);
    let mut number = 0;
    for (name, text) in &recaps {
        let Ok(recap) = recap::parse(name, text) else {
            continue;
        };
        let fact = recap.body.as_str().lines().last().unwrap_or_default();
        let fact = fact.trim_start_matches("- ");
        if !takes(fact) {
            continue;
        }
        number += 1;
        let id = &recap.header.thread_id;
        let at = recap.header.updated_at;
        let _ = write!(
            tasks,
            "## Task {number}: {fact}, success\n\n### rollout_summary_files\n\n- {name} (cwd=/work/demo, \
             rollout_path=/rollouts/a.jsonl, updated_at={at}, thread_id={id})\n\n### keywords\n\n- demo, word{number}\n\n"
        );
        let _ = writeln!(facts, "- {fact} [Task {number}]");
        let _ = match request.version {
            MemoryVersion::V1 => {
                writeln!(topics, "- {fact}: demo, thread_id={id}\n  - desc: {name}")
            }
            MemoryVersion::V2 => {
                writeln!(
                    topics,
                    "- rollout_summaries/{name} — {fact}; thread_id={id}"
                )
            }
        };
        kept.retain(|line| !line.contains(fact));
    }
    for text in notes.values() {
        let line = format!("- {} [ad-hoc note]", text.trim());
        if takes(text) {
            kept.retain(|old| *old != line);
            kept.push(line);
        }
    }
    let kept = kept.join("\n");
    if request.version == MemoryVersion::V1 {
        let text = format!(
            "# Task Group: demo\n\nscope: the demo project\napplies_to: cwd=/work/demo; reuse_rule=only there\n\n\
             {tasks}## User preferences\n\n{kept}\n\n## Reusable knowledge\n\n{facts}\n\
             ## Failures and how to do differently\n"
        );
        std::fs::write(request.staging.join("MEMORY.md"), text).unwrap();
    }
    let kept = if request.version == MemoryVersion::V2 {
        &kept
    } else {
        ""
    };
    let text = format!(
        "v1\n\n## User Profile\n\nWorks on one project.\n\n## User preferences\n\n{kept}\n\n## General Tips\n\n\
         ## What's in Memory\n\n### demo\n\n#### 2025-12-01\n\n{topics}"
    );
    std::fs::write(request.staging.join("memory_summary.md"), text).unwrap();
}

/// Lines below "User preferences" of the file that keeps them.
fn own_lines(request: &ConsolidationRequest<'_>) -> Vec<String> {
    let name = match request.version {
        MemoryVersion::V1 => "MEMORY.md",
        MemoryVersion::V2 => "memory_summary.md",
    };
    let old = std::fs::read_to_string(request.staging.join(name)).unwrap_or_default();
    let section = old.split("## User preferences").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("- "));
    lines.map(str::to_owned).collect()
}

fn texts(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}
