//! Many baselines with a summary that is full nearly from the start: memory
//! must not freeze, and it must not bleed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::support::{Sandbox, recap_of};
use crate::consolidate::departure::Departure;
use crate::consolidate::message;
use crate::domain::entry::Entry;
use crate::domain::id::ThreadId;
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::model::Model as _;
use crate::model::offline::Offline;
use crate::recaps::Extractions;
use crate::sys::lock::FileLock;
use crate::text::entries;
use crate::text::redact::redact_str;
use crate::text::shingles;

/// It holds over 100 as well, which takes more than a minute on a busy machine.
const BASELINES: u32 = 40;

/// Older sessions leave from the thirty-first baseline on.
const RECAPS_MAX: usize = 30;

/// Full after about ten sessions.
const SUMMARY_BYTES_MAX: usize = 2_600;

const DOINGS: [&str; 7] = [
    "mend", "teach", "measure", "rename", "split", "port", "guard",
];
const THINGS: [&str; 11] = [
    "the parser grammar",
    "das Farbschema",
    "billing ledgers",
    "the weather widget",
    "検索の索引",
    "kernel modules",
    "les modèles de courriel",
    "the audio mixer",
    "chess openings",
    "шрифты",
    "tax tables",
];

#[test]
fn a_full_memory_of_version_one_takes_in_what_is_new_and_loses_nothing() {
    check(MemoryVersion::V1);
}

#[test]
fn a_full_memory_of_version_two_takes_in_what_is_new_and_loses_nothing() {
    check(MemoryVersion::V2);
}

#[track_caller]
fn check(version: MemoryVersion) {
    let mut sandbox = Sandbox::of(version);
    sandbox.script(|request| Offline.consolidate(request));
    sandbox.policy.summary_bytes_max = SUMMARY_BYTES_MAX;
    sandbox.policy.recaps_max = RECAPS_MAX;
    sandbox.is_hasty = true;
    let mut before = Seen::default();
    let (mut full, mut let_go) = (0, 0);
    for n in 1..=BASELINES {
        extract(&sandbox, n);
        sandbox.run_done();
        let after = Seen::of(&sandbox);
        let bytes = after.summary.len();
        assert!(bytes <= SUMMARY_BYTES_MAX, "baseline {n}: {bytes}");
        full += u32::from(SUMMARY_BYTES_MAX * 2 <= bytes * 3);
        let id = thread(n);
        let leading = &after.leading;
        assert!(
            leading.contains(id.as_str()),
            "nothing leads to session {n}:\n{leading}"
        );
        let_go += after.check_lost(&before, version);
        before = after;
    }
    assert!(BASELINES / 2 <= full, "full after {full} baselines");
    assert!(0 < let_go, "nothing was let go");
    check_messages(&sandbox);
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

fn thread(n: u32) -> ThreadId {
    ThreadId::parse(&format!("019adc00-0000-7000-8000-{n:012}")).unwrap()
}

/// A session of its own about something that others were about as well.
fn extract(sandbox: &Sandbox, n: u32) {
    let doing = DOINGS[n as usize % DOINGS.len()];
    let thing = THINGS[n as usize * 5 % THINGS.len()];
    let title = format!("{doing} {thing} for case {n}");
    let wish = if n.is_multiple_of(4) {
        format!(
            "\nPreference signals:\n- always: \"From now on keep {thing} of case {n} apart\" (line 33)\n"
        )
    } else {
        String::new()
    };
    let body = format!(
        "# {title}\n\ncodex session in `example.org/demo`, cwd `/work/demo`.\n\n## Task 1: {title}\n\n\
         Outcome: success (line 57: `cargo test` passed)\n\nRequests:\n- \"{title}\" (line 12)\n{wish}\n\
         Reusable knowledge:\n- {thing} of case {n} live in `/run/{doing}/{n}` (line 57)\n"
    );
    let mut recap = recap_of(1, i64::from(n), "");
    recap.header.thread_id = thread(n);
    recap.header.raw_memory = None;
    recap.body = redact_str(&body);
    let lock_file = sandbox.home.extractions_lock(sandbox.version);
    let lock = FileLock::acquire(&lock_file, std::time::Duration::from_secs(5)).unwrap();
    let extractions = Extractions::open(sandbox.home.root(), sandbox.version);
    extractions.store(&lock, &recap).unwrap();
}

/// What is in the folder after a baseline.
#[derive(Default)]
struct Seen {
    summary: String,
    /// The file that leads to the recaps: the handbook, else the summary.
    leading: String,
    leading_words: String,
    /// By name: text and normalised text.
    recaps: BTreeMap<String, (String, String)>,
}

impl Seen {
    fn of(sandbox: &Sandbox) -> Self {
        let leading = sandbox.read(match sandbox.version {
            MemoryVersion::V1 => "MEMORY.md",
            MemoryVersion::V2 => "memory_summary.md",
        });
        let files = std::fs::read_dir(sandbox.folder().join("rollout_summaries")).unwrap();
        let recap = |path: PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(path).unwrap();
            let words = shingles::normalise(&text);
            (name, (text, words))
        };
        Self {
            summary: sandbox.read("memory_summary.md"),
            leading_words: shingles::normalise(&leading),
            leading,
            recaps: files.map(|file| recap(file.unwrap().path())).collect(),
        }
    }

    /// Each entry that left the summary is in the handbook, or in a recap of
    /// the folder that the handbook leads to, or its recap left. Version 2 has
    /// no handbook: there the recap has to do. How many left.
    #[track_caller]
    fn check_lost(&self, before: &Self, version: MemoryVersion) -> u32 {
        let path = TreePath::parse("memory_summary.md").unwrap();
        let now = shingles::normalise(&self.summary);
        let mut lost = 0;
        for entry in entries::parse(&path, &before.summary) {
            let words = shingles::normalise(&entry.text);
            if entries::is_count(&entry) || now.contains(&words) {
                continue;
            }
            lost += 1;
            let is_told = |(name, recap): (&String, &(String, String))| {
                let leads = version == MemoryVersion::V2 || self.leading.contains(name.as_str());
                leads && says(recap, &entry)
            };
            let has_left = |(name, recap): (&String, &(String, String))| {
                !self.recaps.contains_key(name) && says(recap, &entry)
            };
            let is_kept = self.leading_words.contains(&words) || self.recaps.iter().any(is_told);
            assert!(
                is_kept || before.recaps.iter().any(has_left),
                "lost: {:?}\n{}",
                entry.text,
                self.leading
            );
        }
        lost
    }
}

/// It is what the entry cites, or has its words: all, or those before the
/// project that it holds in, or before the keywords of a topic.
fn says((text, words): &(String, String), entry: &Entry) -> bool {
    if entry.thread_ids.iter().any(|id| text.contains(id.as_str())) {
        return true;
    }
    let all = entry.text.split(" (in ").next().unwrap_or_default();
    let title = entry.text.split(": ").next().unwrap_or_default();
    [all, title.trim_end_matches('…')].iter().any(|it| {
        let it = shingles::normalise(it);
        !it.is_empty() && words.contains(&it)
    })
}

/// No baseline lost anything without a reason, and each says so.
#[track_caller]
fn check_messages(sandbox: &Sandbox) {
    let log = sandbox.git(&["log", "--format=%B%x00", "--grep=^Memrev-Kind: baseline"]);
    let messages: Vec<&str> = log
        .split('\0')
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    assert_eq!(messages.len(), BASELINES as usize);
    for message in messages {
        assert_eq!(message::loss_count(message).unexplained, 0, "{message}");
        let ways = message::departures(message);
        let is_told = |way: &Departure| !matches!(way, Departure::Unexplained | Departure::Untold);
        assert!(ways.values().all(is_told), "{message}");
    }
}
