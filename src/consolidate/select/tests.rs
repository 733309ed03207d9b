//! Each case is a table of recaps; the expectation names who is chosen, in
//! the order of the result, and why the others are not.

use std::collections::BTreeSet;

use super::{Candidate, SelectPolicy, select};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::session::MemoryMode;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};

const DAY: i64 = 86_400;
const NOW_DAY: i64 = 100;

#[test]
fn the_result_stands_by_thread_id() {
    check("c at=99 | a at=98 | b at=97", 10, &[], "a b c");
}

#[test]
fn usage_ranks_before_recency_before_session_time_before_id() {
    check(
        "a at=99 | b at=90 uses=1 used=91 | c at=99 used=95 | d at=99",
        1,
        &[],
        "b; a: rank 3; c: rank 4; d: rank 2",
    );
}

#[test]
fn the_time_of_extraction_does_not_rank() {
    check(
        "a at=90 extracted=100 | b at=91 extracted=92",
        1,
        &[],
        "b; a: rank 2",
    );
}

#[test]
fn the_window_counts_from_the_latest_sign_and_includes_its_start() {
    check(
        "a at=70 | b at=69 | c at=1 used=70 | d at=1 extracted=71 | e at=1 adopted=72 | f at=1 asked=73",
        10,
        &[],
        "a c d e f; b: unused since 69",
    );
}

#[test]
fn only_enabled_sessions_with_something_to_say_take_part() {
    check(
        "a at=99 mode=disabled | b at=99 mode=polluted | c at=99 empty | d at=99",
        10,
        &[],
        "d; a: disabled; b: polluted; c: no-op",
    );
}

#[test]
fn a_withheld_session_comes_back_only_with_something_newer() {
    let held = [thread("a", 98), thread("b", 98)];
    check("a at=98 | b at=99", 10, &held, "b; a: withheld");
}

#[test]
fn a_withheld_version_holds_back_just_that_one() {
    let held = [input("a", 7)];
    check(
        "a at=98 blob=7 | b at=98 blob=7",
        10,
        &held,
        "b; a: withheld",
    );
    check("a at=98 blob=8", 10, &held, "a");
}

#[test]
fn a_selection_says_until_when_it_holds() {
    let candidates = vec![parse("a at=80"), parse("b at=75 used=90")];
    let selection = select(candidates, &[], &policy(10), day(NOW_DAY));
    assert_eq!(selection.holds_until, Some(day(110)));
}

#[test]
fn the_order_of_candidates_does_not_matter() {
    let table = ["a at=99", "b at=90 uses=2", "c at=98", "d at=97 uses=1"];
    let names = |order: &[usize]| {
        let candidates = order.iter().map(|index| parse(table[*index])).collect();
        let selection = select(candidates, &[], &policy(2), day(NOW_DAY));
        selection
            .chosen
            .iter()
            .map(|it| it.recap.header.thread_id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&[0, 1, 2, 3]), ["b", "d"]);
    assert_eq!(names(&[3, 1, 0, 2]), ["b", "d"]);
}

#[test]
fn a_person_may_name_sessions() {
    let mut policy = policy(10);
    policy.only = Some(BTreeSet::from([ThreadId::parse("b").unwrap()]));
    let candidates = vec![parse("a at=99"), parse("b at=99")];
    let selection = select(candidates, &[], &policy, day(NOW_DAY));
    assert_eq!(selection.chosen.len(), 1);
    assert_eq!(selection.left_out.len(), 1);
}

#[track_caller]
fn check(table: &str, recaps_max: usize, withheld: &[Withheld], expected: &str) {
    let candidates = table.split('|').map(parse).collect();
    let selection = select(candidates, withheld, &policy(recaps_max), day(NOW_DAY));
    let chosen = (selection.chosen.iter()).map(|it| it.recap.header.thread_id.to_string());
    let mut told = vec![chosen.collect::<Vec<_>>().join(" ")];
    for (thread_id, reason) in &selection.left_out {
        told.push(format!("{thread_id}: {}", words(reason)));
    }
    assert_eq!(told.join("; "), expected);
}

fn words(reason: &super::LeftOut) -> String {
    use super::LeftOut;
    match reason {
        LeftOut::NoOp => "no-op".to_owned(),
        LeftOut::Mode(mode) => mode.label().to_owned(),
        LeftOut::Withheld(_) => "withheld".to_owned(),
        LeftOut::Unused { since } => format!("unused since {}", since.seconds() / DAY),
        LeftOut::BeyondLimit { rank_number } => format!("rank {rank_number}"),
        LeftOut::NotNamed => "not named".to_owned(),
    }
}

fn policy(recaps_max: usize) -> SelectPolicy {
    SelectPolicy {
        recaps_max,
        unused_days_max: 30,
        only: None,
    }
}

/// A row such as `a at=99 uses=1 used=91 mode=disabled`; numbers are days.
fn parse(row: &str) -> Candidate {
    let mut words = row.split_whitespace();
    let name = words.next().unwrap();
    let mut candidate = plain(name);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let at = || day(value.parse().unwrap());
        let header = &mut candidate.recap.header;
        match key {
            "at" => header.updated_at = at(),
            "extracted" => header.extracted_at = Some(at()),
            "adopted" => header.adopted_at = Some(at()),
            "asked" => header.asked_at = Some(at()),
            "used" => candidate.last_used = Some(at()),
            "uses" => candidate.usage_count = value.parse().unwrap(),
            "mode" => candidate.mode = MemoryMode::parse(value).unwrap(),
            "blob" => candidate.blob = ObjectId::from_bytes([value.parse().unwrap(); 20]),
            "empty" => candidate.recap.body = Redacted::default(),
            _ => panic!("unknown key `{key}`"),
        }
    }
    candidate
}

fn plain(name: &str) -> Candidate {
    let header = RecapHeader {
        thread_id: ThreadId::parse(name).unwrap(),
        agent: None,
        updated_at: day(1),
        extracted_at: None,
        rollout_path: Redacted::default(),
        cwd: None,
        project: None,
        git_branch: None,
        model: None,
        prompt: None,
        trust: None,
        items_read: None,
        adopted_at: None,
        asked_at: None,
        slug: None,
        raw_memory: None,
    };
    Candidate {
        recap: Recap {
            header,
            body: crate::text::redact::redact_str("what happened"),
        },
        path: path(name),
        copy: Redacted::default(),
        blob: ObjectId::from_bytes([0; 20]),
        usage_count: 0,
        last_used: None,
        mode: MemoryMode::Enabled,
    }
}

fn path(name: &str) -> TreePath {
    TreePath::parse(&format!("rollout_summaries/{name}.md")).unwrap()
}

fn thread(name: &str, until_day: i64) -> Withheld {
    held(WithheldWhat::Thread {
        thread_id: ThreadId::parse(name).unwrap(),
        until: day(until_day),
    })
}

fn input(name: &str, blob: u8) -> Withheld {
    held(WithheldWhat::Input {
        path: path(name),
        blob: ObjectId::from_bytes([blob; 20]),
    })
}

fn held(what: WithheldWhat) -> Withheld {
    Withheld {
        id: "w1".to_owned(),
        reason: WithheldReason::Forgotten,
        since: day(1),
        what,
    }
}

fn day(number: i64) -> Timestamp {
    Timestamp::from_seconds(number * DAY)
}
