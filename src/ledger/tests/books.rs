//! Usage, marks, spend, and what a reset leaves.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::{ProptestConfig, any, proptest};

use super::{Home, at, thread};
use crate::domain::session::{Agent, Citation, MemoryMode, Source};
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{
    Budget, CallPermit, DayLimits, Demand, Denial, ExtractionClaim, ExtractionEnd, JobError, Lease,
    Ledger, Mark,
};

const V1: MemoryVersion = MemoryVersion::V1;
const V2: MemoryVersion = MemoryVersion::V2;

fn citation(answer: &str, occurrence: u32, cited: &[&str]) -> Citation {
    Citation {
        thread_ids: cited.iter().map(|id| thread(id)).collect(),
        answer: Raw::new(answer),
        occurrence,
        at: None,
    }
}

fn uses(ledger: &Ledger, version: MemoryVersion) -> Vec<(String, u64, i64)> {
    let usage = ledger.usage(version).unwrap();
    let told = |usage: &crate::ledger::usage::Usage| usage.last_used.unwrap().seconds();
    (usage.iter())
        .map(|(id, usage)| (id.to_string(), usage.count, told(usage)))
        .collect()
}

#[test]
fn an_answer_counts_once_per_distinct_session_it_cites() {
    let home = Home::new();
    let mut ledger = home.open();
    let mut tell = |citing: &str, citation: Citation, now: i64| {
        ledger
            .record_citations(V1, &thread(citing), &[citation], at(now))
            .unwrap()
    };
    assert_eq!(
        tell("c", citation("see x and y", 0, &["x", "y", "x"]), 10),
        1
    );
    assert_eq!(
        tell("c", citation("see x and y", 0, &["x", "y"]), 20),
        0,
        "told again"
    );
    assert_eq!(
        tell("c", citation("\n see x and y \n", 0, &["x"]), 21),
        0,
        "space around it"
    );
    assert_eq!(
        tell("c", citation("see x and y", 1, &["x"]), 30),
        1,
        "said again"
    );
    assert_eq!(
        tell("d", citation("see x and y", 0, &["x"]), 40),
        1,
        "another session"
    );
    assert_eq!(tell("d", citation("see nothing", 0, &[]), 50), 1);
    assert_eq!(
        uses(&ledger, V1),
        [("x".to_owned(), 3, 40), ("y".to_owned(), 1, 10)]
    );
    assert_eq!(uses(&ledger, V2), [], "usage goes to the selected version");
}

#[test]
fn a_use_is_dated_by_its_answer_but_never_in_the_future() {
    let home = Home::new();
    let mut ledger = home.open();
    for (answer, answered_at, last_used) in [("a", 500, 500), ("b", 100, 500), ("c", 9_000, 1_000)]
    {
        let mut citation = citation(answer, 0, &["x"]);
        citation.at = Some(at(answered_at));
        ledger
            .record_citations(V1, &thread("c"), &[citation], at(1_000))
            .unwrap();
        assert_eq!(uses(&ledger, V1)[0].2, last_used);
    }
}

#[test]
fn the_first_pass_with_a_new_ledger_counts_the_head_tree_as_used_now() {
    let home = Home::new();
    let mut ledger = home.open();
    assert!(!ledger.is_settled(V1).unwrap());
    ledger
        .record_citations(V1, &thread("c"), &[citation("x", 0, &["x"])], at(10))
        .unwrap();
    let head: BTreeSet<_> = [thread("x"), thread("y")].into();
    ledger.settle(V1, &head, at(99)).unwrap();
    assert!(ledger.is_settled(V1).unwrap());
    assert!(
        !ledger.is_settled(V2).unwrap(),
        "each version has a first pass"
    );
    assert_eq!(
        uses(&ledger, V1),
        [("x".to_owned(), 1, 99), ("y".to_owned(), 0, 99)]
    );
}

fn claimed(ledger: &mut Ledger, version: MemoryVersion, id: &str) -> Lease {
    let claim = ledger.claim_extraction(version, &thread(id), at(5), 9, Demand::Due, at(10));
    match claim.unwrap() {
        ExtractionClaim::Claimed(lease) => lease,
        other => panic!("{other:?}"),
    }
}

#[test]
fn watermarks_tell_selection_what_is_done() {
    let home = Home::new();
    let mut ledger = home.open();
    let lease = claimed(&mut ledger, V1, "a");
    claimed(&mut ledger, V1, "b");
    ledger
        .finish_extraction(&lease, ExtractionEnd::Done, at(11))
        .unwrap();
    let done = ledger.extracted_until(V1).unwrap();
    assert_eq!(done.into_iter().collect::<Vec<_>>(), [(thread("a"), at(5))]);
    assert!(ledger.extracted_until(V2).unwrap().is_empty());
}

#[test]
fn reset_forgets_jobs_and_usage_of_one_version_only() {
    let home = Home::new();
    let mut ledger = home.open();
    for version in MemoryVersion::ALL {
        claimed(&mut ledger, version, "a");
        let answer = citation(version.label(), 0, &["x"]);
        ledger
            .record_citations(version, &thread("c"), &[answer], at(1))
            .unwrap();
    }
    ledger.put_marks(&[mark("/logs/a.jsonl")], 1).unwrap();
    let model = Redacted::literal("m");
    ledger.add_tokens(&model, 1, 1, at(0)).unwrap();
    let lease = claimed(&mut ledger, V1, "b");
    ledger.reset(V1).unwrap();
    assert_eq!(ledger.jobs(V1, at(0)).unwrap(), []);
    assert_eq!(ledger.jobs(V2, at(0)).unwrap().len(), 1);
    assert_eq!((uses(&ledger, V1).len(), uses(&ledger, V2).len()), (0, 1));
    assert_eq!(
        ledger.marks(1).unwrap().len(),
        1,
        "sessions are not forgotten"
    );
    assert_eq!(ledger.spend_since("1970-01-01").unwrap().len(), 1);
    let ended = ledger.finish_extraction(&lease, ExtractionEnd::Done, at(11));
    assert!(
        ended.unwrap_err().is_lost(),
        "work begun before the reset does not count"
    );
}

#[test]
fn forgetting_a_session_drops_its_job_and_usage() {
    let home = Home::new();
    let mut ledger = home.open();
    claimed(&mut ledger, V1, "a");
    claimed(&mut ledger, V1, "b");
    let answer = citation("a", 0, &["a", "b"]);
    ledger
        .record_citations(V1, &thread("c"), &[answer], at(1))
        .unwrap();
    ledger.forget_thread(V1, &thread("a")).unwrap();
    assert_eq!(uses(&ledger, V1), [("b".to_owned(), 1, 1)]);
    assert_eq!(ledger.jobs(V1, at(10)).unwrap().len(), 1);
}

#[test]
fn spend_is_kept_by_day_and_model_and_limits_are_hard() {
    let home = Home::new();
    let mut ledger = home.open();
    let [small, large] = ["small", "large"].map(Redacted::literal);
    let limits = DayLimits {
        calls_max: Some(3),
        tokens_max: Some(1_000),
    };
    let budget = Budget::new(None, limits);
    let noon = at(12 * 3_600);
    let until = at(24 * 3_600);
    let take = |ledger: &mut Ledger, model, now| ledger.take_call(model, &budget, now).unwrap();
    assert_eq!(take(&mut ledger, &small, noon), CallPermit::Granted);
    assert_eq!(take(&mut ledger, &large, noon), CallPermit::Granted);
    ledger.add_tokens(&large, 600, 399, noon).unwrap();
    assert_eq!(take(&mut ledger, &large, noon), CallPermit::Granted);
    assert_eq!(
        take(&mut ledger, &small, noon),
        CallPermit::Denied(Denial::CallsOfDay { until })
    );
    assert_eq!(
        take(&mut ledger, &small, until),
        CallPermit::Granted,
        "a new day"
    );
    ledger.add_tokens(&small, 1_000, 0, until).unwrap();
    let refused = CallPermit::Denied(Denial::TokensOfDay {
        until: at(48 * 3_600),
    });
    assert_eq!(take(&mut ledger, &small, until), refused);
    // No claim of a back end can make the sum overflow.
    for _ in 0..3 {
        ledger
            .add_tokens(&small, u64::MAX, u64::MAX, until)
            .unwrap();
    }
    assert_eq!(take(&mut ledger, &small, until), refused);

    let told: Vec<String> = (ledger.spend_since("1970-01-01").unwrap().iter())
        .map(|spend| {
            format!(
                "{} {} {}+{} {}",
                spend.day, spend.model, spend.tokens_in, spend.tokens_out, spend.calls
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "1970-01-01 large 600+399 2",
            "1970-01-01 small 0+0 1",
            "1970-01-02 small 3000001000+3000000000 1",
        ]
    );
    assert_eq!(ledger.spend_since("1970-01-02").unwrap().len(), 1);
}

fn mark(path: &str) -> Mark {
    Mark {
        path: PathBuf::from(path),
        size_bytes: 12,
        modified: Timestamp::from_millis(1_700_000_000_123),
        agent: Agent::Claude,
        thread_id: thread("a"),
        started_at: Some(Timestamp::from_millis(-5)),
        updated_at: Timestamp::from_millis(1_700_000_000_456),
        source: Source::Interactive,
        mode: MemoryMode::Enabled,
        is_ours: false,
        forked_from: None,
        first_record: None,
        cwd: Some(Redacted::literal("/home/ada/p")),
        project: None,
        git_branch: None,
    }
}

fn as_read(mark: &Mark) -> Mark<Raw> {
    let raw = |text: &Option<Redacted>| text.as_ref().map(|text| Raw::new(text.as_str()));
    Mark {
        path: mark.path.clone(),
        size_bytes: mark.size_bytes,
        modified: mark.modified,
        agent: mark.agent,
        thread_id: mark.thread_id.clone(),
        started_at: mark.started_at,
        updated_at: mark.updated_at,
        source: match &mark.source {
            Source::Other(_) => Source::Other("other".to_owned()),
            source => source.clone(),
        },
        mode: mark.mode,
        is_ours: mark.is_ours,
        forked_from: mark.forked_from.clone(),
        first_record: None,
        cwd: raw(&mark.cwd),
        project: raw(&mark.project),
        git_branch: raw(&mark.git_branch),
    }
}

#[test]
fn marks_come_back_but_for_what_a_transcript_calls_itself() {
    let home = Home::new();
    let mut ledger = home.open();
    let mut marks = vec![
        mark("/logs/b.jsonl"),
        mark("/logs/a.jsonl"),
        mark("/logs/ü.jsonl"),
    ];
    marks[0].source = Source::Other("words of a transcript".to_owned());
    marks[0].mode = MemoryMode::Disabled;
    marks[0].is_ours = true;
    marks[1].source = Source::SubAgent {
        parent: Some(thread("p")),
    };
    marks[1].forked_from = Some(thread("f"));
    marks[1].started_at = None;
    marks[1].project = Some(Redacted::literal("example.org/team/p"));
    marks[2].source = Source::Exec;
    marks[2].agent = Agent::Codex;
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(b"/logs/\xff.jsonl");
        marks[2].path = PathBuf::from(name);
    }
    ledger.put_marks(&marks, 3).unwrap();
    let read = ledger.marks(3).unwrap();
    assert_eq!(read.len(), 3);
    for mark in &marks {
        assert_eq!(read.get(&mark.path), Some(&as_read(mark)));
    }
    assert_eq!(
        ledger.marks(4).unwrap().len(),
        0,
        "other readers look again"
    );
    marks[0].size_bytes = 99;
    ledger.put_marks(&marks[..1], 4).unwrap();
    let changed = ledger.marks(4).unwrap();
    assert_eq!(changed.get(&marks[0].path).unwrap().size_bytes, 99);
    assert_eq!(changed.get(&marks[1].path), None);
    assert_eq!(ledger.marks(3).unwrap().len(), 2);
    ledger
        .forget_marks(&[marks[1].path.clone(), PathBuf::from("/none")])
        .unwrap();
    assert_eq!(ledger.marks(3).unwrap().len(), 1);
}

#[test]
fn a_row_that_this_version_cannot_read_is_passed_over() {
    let home = Home::new();
    let mut ledger = home.open();
    ledger.put_marks(&[mark("/a"), mark("/b")], 1).unwrap();
    let change = "UPDATE session_marks SET agent = 'later' WHERE path = CAST('/a' AS BLOB)";
    assert_eq!(ledger.connection.execute(change, []).unwrap(), 1);
    assert_eq!(ledger.marks(1).unwrap().len(), 1);
    let change = "INSERT INTO jobs (version, kind, key, status, last_error, retries_left, failures,
         input_watermark) VALUES ('v1', 'extract', 'a', 'error', 'of_the_future', 3, 1, 0)";
    ledger.connection.execute(change, []).unwrap();
    let jobs = ledger.jobs(V1, at(0)).unwrap();
    assert_eq!(jobs[0].last_error, Some(JobError::Unrecognised));
}

#[test]
fn error_codes_are_short_and_their_own() {
    let labels: BTreeSet<_> = JobError::ALL.iter().map(|error| error.label()).collect();
    assert_eq!(labels.len(), JobError::ALL.len());
    for error in JobError::ALL {
        assert_eq!(JobError::parse(error.label()), *error);
        assert!(!error.words().ends_with('.'));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever numbers a damaged row holds, asking about it comes to an end.
    #[test]
    fn no_row_makes_it_panic(
        numbers in proptest::array::uniform8(any::<i64>()),
        status in "running|done|error|parked|pending|other",
        now in any::<i64>(),
    ) {
        let home = Home::new();
    let mut ledger = home.open();
        let sql = "INSERT INTO jobs (version, kind, key, status, holder, started_at, finished_at,
             lease_until, retry_at, retries_left, failures, input_watermark, success_watermark)
             VALUES ('v1', 'consolidate', 'global', ?1, '1/2/3', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let [a, b, c, d, e, f, g, h] = numbers;
        ledger.connection.execute(sql, rusqlite::params![status, a, b, c, d, e, f, g, h]).unwrap();
        let now = Timestamp::from_millis(now);
        drop(ledger.jobs(V1, now).unwrap());
        for pace in [crate::ledger::Pace::Background, crate::ledger::Pace::ByHand] {
            let claim = ledger.claim_consolidation(V1, pace, now).unwrap();
            if let crate::ledger::ConsolidationClaim::Claimed(lease) = claim {
                let end = crate::ledger::ConsolidationEnd::Failed(JobError::DiffFailed);
                ledger.finish_consolidation(&lease, end, now).unwrap();
            }
        }
        drop(ledger.enqueue_consolidation(V1, now));
    }
}
