//! A home with rollouts and recorded answers, and passes over it, for tests.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Pass, Report, Task};
use crate::domain::id::ThreadId;
use crate::domain::recap::Recap;
use crate::domain::session::{Agent, SessionHead};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::extract::input::Template;
use crate::ledger::{Budget, DayLimits, Demand, Job, JobKind, JobState, Ledger};
use crate::model::Model;
use crate::model::offline::Offline;
use crate::model::replay::Replay;
use crate::recaps::Extractions;
use crate::sessions::{Found, read_head};
use crate::sys::clock::FixedClock;
use crate::sys::fs::{make_folders, remove, replace};

/// The time of every pass.
pub(super) const NOW: Timestamp = Timestamp::from_seconds(1_796_200_000);

/// A transcript and its head.
pub(super) type Session = (Found, SessionHead);

/// A home with rollouts, recorded answers and a ledger.
pub(super) struct Home {
    pub(super) folder: tempfile::TempDir,
}

impl Home {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a rollout; its records are a second apart.
    pub(super) fn session(&self, id: &str, records: &[serde_json::Value]) -> Session {
        let thread_id = thread_id(id);
        let meta = json!({"type": "session_meta", "payload": {"id": thread_id.as_str(), "cwd": "/w/ledger",
            "originator": "codex_cli_rs", "cli_version": "0.140.0", "source": "cli", "git": {"branch": "main"}}});
        let mut text = String::new();
        let mut second = 0;
        for record in [&meta].into_iter().chain(records) {
            let records = record
                .as_array()
                .map_or_else(|| vec![record.clone()], Clone::clone);
            for mut record in records {
                record["timestamp"] = json!(format!("2026-12-01T05:00:{second:02}.000Z"));
                second += 1;
                text.push_str(&record.to_string());
                text.push('\n');
            }
        }
        let path = self
            .path("sessions")
            .join(format!("rollout-2026-12-01T05-00-00-{thread_id}.jsonl"));
        make_folders(path.parent().unwrap()).unwrap();
        replace(&path, text.as_bytes()).unwrap();
        let found = Found::at(Agent::Codex, &path, None).unwrap();
        let head = read_head(&found).unwrap();
        (found, head)
    }

    /// Records answers for a session (`any` for all).
    pub(super) fn answers(&self, id: &str, text: &str) {
        let name = if id == "any" {
            "any".to_owned()
        } else {
            thread_id(id).to_string()
        };
        let path = self.path("replay/extract").join(format!("{name}.json"));
        make_folders(path.parent().unwrap()).unwrap();
        replace(&path, text.as_bytes()).unwrap();
    }

    pub(super) fn requests(&self) -> Vec<serde_json::Value> {
        let log = std::fs::read_to_string(self.path("replay/requests.jsonl")).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(super) fn pass(&self, version: MemoryVersion) -> TestPass<'_> {
        TestPass {
            home: self,
            version,
            calls_max: None,
            day_limits: DayLimits::default(),
            external_pollutes: false,
            is_cancelled: false,
            forgets_ledger: false,
        }
    }

    pub(super) fn ledger(&self) -> Ledger {
        Ledger::open(&self.path("ledger.sqlite"), NOW)
            .unwrap()
            .ledger
    }

    pub(super) fn recap(&self, version: MemoryVersion, id: &str) -> Option<Recap> {
        let loaded = Extractions::open(self.folder.path(), version)
            .load_all()
            .unwrap();
        loaded
            .recaps
            .get(&thread_id(id))
            .map(|stored| stored.recap.clone())
    }

    pub(super) fn job(&self, version: MemoryVersion, id: &str) -> Option<Job> {
        let jobs = self.ledger().jobs(version, NOW).unwrap();
        jobs.into_iter()
            .find(|job| job.key == thread_id(id).as_str())
    }

    pub(super) fn is_consolidation_asked_for(&self, version: MemoryVersion) -> bool {
        let jobs = self.ledger().jobs(version, NOW).unwrap();
        jobs.iter()
            .any(|job| job.kind == JobKind::Consolidate && job.state == JobState::Pending)
    }
}

pub(super) struct TestPass<'a> {
    pub(super) home: &'a Home,
    pub(super) version: MemoryVersion,
    pub(super) calls_max: Option<u64>,
    pub(super) day_limits: DayLimits,
    pub(super) external_pollutes: bool,
    pub(super) is_cancelled: bool,
    /// Begins with a new ledger, as if the old one had been deleted.
    pub(super) forgets_ledger: bool,
}

impl TestPass<'_> {
    pub(super) fn run_offline(self, sessions: &[&Session]) -> Vec<Report> {
        self.run(&Offline, sessions)
    }

    pub(super) fn run_replay(self, sessions: &[&Session]) -> Vec<Report> {
        let folder = self.home.path("replay");
        self.run(&Replay::open(&folder).unwrap(), sessions)
    }

    fn run(self, model: &dyn Model, sessions: &[&Session]) -> Vec<Report> {
        let home = self.home;
        if self.forgets_ledger {
            for name in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"] {
                remove(&home.path(name)).unwrap();
            }
        }
        let ledger = Mutex::new(home.ledger());
        let told = AtomicBool::new(false);
        let tasks: Vec<Task<'_>> = (sessions.iter())
            .map(|session| Task {
                found: &session.0,
                head: &session.1,
                demand: Demand::Due,
                external_pollutes: self.external_pollutes,
            })
            .collect();
        let reports = Pass {
            version: self.version,
            model,
            template: &Template::built_in(self.version),
            ledger: &ledger,
            extractions: &Extractions::open(home.folder.path(), self.version),
            lock_file: &home.path("extractions.lock"),
            lock_wait: Duration::from_secs(10),
            clock: &FixedClock(NOW),
            purged: &crate::domain::withheld::Purged::default(),
            running_max: 1_000,
            budget: &Budget::new(self.calls_max, self.day_limits),
            leaves_enough: &|_| true,
            counts_citations: true,
            is_cancelled: &|| self.is_cancelled,
            progress: &|_| told.store(true, Ordering::Relaxed),
        }
        .run(&tasks);
        assert!(told.into_inner());
        assert!(reports.iter().all(|report| report.ledger_problem.is_none()));
        reports
    }
}

pub(super) fn thread_id(id: &str) -> ThreadId {
    let number = blake3::hash(id.as_bytes()).to_hex();
    ThreadId::parse(&format!("0194f5a6-89ab-7cde-8123-{}", &number[..12])).unwrap()
}

pub(super) fn human(text: &str) -> serde_json::Value {
    json!([
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": text}},
    ])
}

pub(super) fn answer(text: &str) -> serde_json::Value {
    json!({"type": "response_item", "payload": {"type": "message", "role": "assistant", "phase": "final_answer",
        "content": [{"type": "output_text", "text": text}]}})
}

pub(super) fn run(command: &str, exit_code: i32, output: &str) -> serde_json::Value {
    let arguments = json!({"command": ["bash", "-lc", command]}).to_string();
    let output = json!({"output": output, "metadata": {"exit_code": exit_code}}).to_string();
    json!([
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": command}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": command, "output": output}},
    ])
}
