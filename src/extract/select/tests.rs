//! Each session is a value made by `session`, changed by the case; `check`
//! compares what a pass says about it. The time is always [`NOW`].

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::{ProptestConfig, any, prop, proptest};

use super::{Candidate, Policy, Reason, Selection, Switch, select};
use crate::domain::id::ThreadId;
use crate::domain::limits::SCAN_SESSIONS_MAX;
use crate::domain::session::{Agent, MemoryMode, SessionHead, Source};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::ledger::{Demand, Job, JobError, JobKind, JobState};

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_500);
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

#[test]
fn only_interactive_sessions_are_extracted() {
    let exec = Source::Exec;
    let words = |source: Source| check(&with_source(source), &policy());
    assert_eq!(words(Source::Interactive), "chosen");
    assert_eq!(words(exec.clone()), "not interactive: exec");
    assert_eq!(
        words(Source::Other("mcp".to_owned())),
        "not interactive: mcp"
    );
    assert_eq!(
        words(Source::SubAgent { parent: None }),
        "a sub-agent's file, read with its parent"
    );
    let include_exec = Policy {
        include_exec: true,
        ..policy()
    };
    assert_eq!(check(&with_source(exec), &include_exec), "chosen");
}

#[test]
fn the_current_session_and_our_own_are_left_out() {
    let current = session("a", DAY);
    let here = Policy {
        current: Some(&current.thread_id),
        ..policy()
    };
    assert_eq!(check(&current, &here), "the session this runs in");
    let ours = SessionHead {
        is_ours: true,
        ..session("a", DAY)
    };
    assert_eq!(check(&ours, &policy()), "written by one of our own workers");
}

#[test]
fn sessions_without_enabled_memory_are_left_out() {
    let head = session("a", DAY);
    for (mode, expected) in [
        (MemoryMode::Enabled, "chosen"),
        (MemoryMode::Disabled, "its memory mode is disabled"),
        (MemoryMode::Polluted, "external content reached it"),
    ] {
        let candidate = Candidate {
            mode,
            ..candidate(&head)
        };
        assert_eq!(check_candidate(candidate, &policy()), expected);
    }
}

#[test]
fn what_is_switched_off_stays_off_also_when_named() {
    let head = session("a", DAY);
    let named = BTreeSet::from([head.thread_id.clone()]);
    for policy in [
        policy(),
        Policy {
            named: Some(&named),
            ..policy()
        },
    ] {
        for (switch, expected) in [
            (Switch::Agent, "its agent is switched off"),
            (Switch::Project, "its project is switched off"),
        ] {
            let candidate = Candidate {
                switched_off: Some(switch),
                ..candidate(&head)
            };
            assert_eq!(check_candidate(candidate, &policy), expected);
        }
    }
}

#[test]
fn age_and_idle_limits_are_inclusive_to_the_millisecond() {
    for (age_millis, expected) in [
        (10 * DAY, "chosen"),
        (10 * DAY + 1, "older than 10 days: 2027-01-05"),
        (6 * HOUR, "chosen"),
        (
            6 * HOUR - 1,
            "not idle long enough until 2027-01-15T08:00:00+00:00",
        ),
        (
            -HOUR,
            "not idle long enough until 2027-01-15T15:00:00+00:00",
        ),
    ] {
        assert_eq!(
            check(&session("a", age_millis), &policy()),
            expected,
            "{age_millis}"
        );
    }
    let any_age = Policy {
        age_days_max: None,
        idle_hours_min: None,
        ..policy()
    };
    assert_eq!(check(&session("a", 900 * DAY), &any_age), "chosen");
    assert_eq!(check(&session("a", 0), &any_age), "chosen");
}

#[test]
fn an_unchanged_session_is_skipped_by_recap_or_by_watermark() {
    let head = session("a", DAY);
    let seconds = |seconds| Some(Timestamp::from_seconds(head.updated_at.seconds() + seconds));
    for (stored, success, expected) in [
        (None, None, "chosen"),
        (seconds(-1), None, "chosen"),
        (seconds(0), None, "unchanged since it was extracted"),
        (seconds(1), None, "unchanged since it was extracted"),
        (None, seconds(-1), "chosen"),
        (None, seconds(0), "unchanged since it was extracted"),
    ] {
        let job = Job {
            success_watermark: success,
            ..job(JobState::Pending)
        };
        let candidate = Candidate {
            stored_until: stored,
            job: Some(&job),
            ..candidate(&head)
        };
        assert_eq!(
            check_candidate(candidate, &policy()),
            expected,
            "{stored:?} {success:?}"
        );
    }
}

#[test]
fn withheld_sessions_come_back_only_with_something_newer() {
    let head = session("a", DAY);
    for (seconds, expected) in [(0, "withheld"), (-1, "chosen")] {
        let until = Timestamp::from_seconds(head.updated_at.seconds() + seconds);
        let withheld = [Withheld {
            id: "w".to_owned(),
            reason: WithheldReason::Forgotten,
            since: NOW,
            what: WithheldWhat::Thread {
                thread_id: head.thread_id.clone(),
                until,
            },
        }];
        let policy = Policy {
            withheld: &withheld,
            ..policy()
        };
        assert_eq!(check(&head, &policy), expected);
    }
}

#[test]
fn failed_sessions_wait_unless_something_is_newer_or_a_person_asks() {
    let head = session("a", DAY);
    let retry_at = NOW.plus_seconds(60);
    let waiting = JobState::Waiting { retry_at };
    let old = Some(head.updated_at.minus_seconds(1));
    let same = Some(head.updated_at.floor_to_second());
    for (state, watermark, is_by_hand, expected) in [
        (
            waiting.clone(),
            same,
            false,
            "failed, tried again at 2027-01-15T08:01:00+00:00",
        ),
        (waiting.clone(), old, false, "chosen"),
        (waiting, same, true, "chosen"),
        (JobState::Waiting { retry_at: NOW }, same, false, "chosen"),
        (
            JobState::Exhausted,
            same,
            false,
            "failed too often, waits for a change",
        ),
        (JobState::Exhausted, old, false, "chosen"),
        (JobState::Exhausted, same, true, "chosen"),
    ] {
        let job = Job {
            input_watermark: watermark,
            ..job(state.clone())
        };
        let candidate = Candidate {
            job: Some(&job),
            ..candidate(&head)
        };
        let policy = Policy {
            is_by_hand,
            ..policy()
        };
        assert_eq!(check_candidate(candidate, &policy), expected, "{state:?}");
    }
}

#[test]
fn sessions_that_failed_stand_behind_those_that_were_not_tried() {
    let heads = [
        session("a", DAY),
        session("b", 2 * DAY),
        session("c", 3 * DAY),
    ];
    let job = Job {
        input_watermark: Some(heads[0].updated_at),
        last_error: Some(JobError::ReplyUnusable),
        ..job(JobState::Exhausted)
    };
    let mut candidates = heads.each_ref().map(candidate);
    candidates[0].job = Some(&job);
    let by_hand = Policy {
        sessions_max: Some(2),
        is_by_hand: true,
        ..policy()
    };
    assert_eq!(chosen(&select(&candidates, &by_hand, NOW)), [1, 2]);
    let all = Policy {
        sessions_max: None,
        ..by_hand
    };
    assert_eq!(chosen(&select(&candidates, &all, NOW)), [1, 2, 0]);
}

#[test]
fn sessions_that_wait_do_not_use_up_the_limit() {
    let (newer, older) = (session("a", DAY), session("b", 2 * DAY));
    let job = Job {
        input_watermark: Some(newer.updated_at),
        ..job(JobState::Exhausted)
    };
    let candidates = [
        Candidate {
            job: Some(&job),
            ..candidate(&newer)
        },
        candidate(&older),
    ];
    let selection = select(
        &candidates,
        &Policy {
            sessions_max: Some(1),
            ..policy()
        },
        NOW,
    );
    assert_eq!(chosen(&selection), [1]);
}

#[test]
fn a_pass_takes_the_newest_up_to_its_limit() {
    let heads = [
        session("a", 3 * DAY),
        session("b", DAY),
        session("c", 2 * DAY),
    ];
    let candidates = heads.each_ref().map(candidate);
    let selection = select(
        &candidates,
        &Policy {
            sessions_max: Some(2),
            ..policy()
        },
        NOW,
    );
    assert_eq!(chosen(&selection), [1, 2]);
    assert_eq!(
        selection.left_out[0].reason,
        Reason::BeyondLimit { sessions_max: 2 }
    );
    let all = select(
        &candidates,
        &Policy {
            sessions_max: None,
            ..policy()
        },
        NOW,
    );
    assert_eq!(chosen(&all), [1, 2, 0]);
}

#[test]
fn a_pass_looks_at_the_newest_5000_before_it_asks_what_is_done() {
    let count = SCAN_SESSIONS_MAX + 1;
    let heads: Vec<_> = (0..count)
        .map(|index| session(&format!("t{index}"), DAY + i64::try_from(index).unwrap()))
        .collect();
    let done = |head: &SessionHead| Some(head.updated_at);
    let candidates: Vec<_> = heads
        .iter()
        .map(|head| Candidate {
            stored_until: done(head),
            ..candidate(head)
        })
        .collect();
    let selection = select(&candidates, &policy(), NOW);
    assert_eq!(chosen(&selection), Vec::<usize>::new());
    assert_eq!(selection.left_out[count - 2].reason, Reason::Unchanged);
    assert_eq!(selection.left_out[count - 1].reason, Reason::BeyondScan);
}

#[test]
fn named_sessions_are_taken_past_age_idle_time_limit_and_earlier_success() {
    let heads = [session("a", 900 * DAY), session("b", 0), session("c", DAY)];
    let named = BTreeSet::from([heads[0].thread_id.clone(), heads[1].thread_id.clone()]);
    let policy = Policy {
        named: Some(&named),
        sessions_max: Some(1),
        ..policy()
    };
    let mut candidates = heads.each_ref().map(candidate);
    let selection = select(&candidates, &policy, NOW);
    assert_eq!(chosen(&selection), [1, 0]);
    assert_eq!(selection.chosen[0].demand, Demand::Anew);
    assert_eq!(selection.left_out[0].reason, Reason::NotNamed);
    candidates[0].stored_until = Some(heads[0].updated_at);
    assert_eq!(chosen(&select(&candidates, &policy, NOW)), [1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn selection_does_not_depend_on_the_order_of_candidates(
        ages in prop::collection::vec(0..12 * DAY, 1..20),
        rotation in any::<usize>(),
        sessions_max in 0_usize..6,
    ) {
        let mut heads: Vec<_> = (ages.iter().enumerate())
            .map(|(index, age)| session(&format!("t{index}"), *age))
            .collect();
        let policy = Policy { sessions_max: Some(sessions_max), ..policy() };
        let names = |heads: &[SessionHead]| {
            let candidates: Vec<_> = heads.iter().map(candidate).collect();
            let selection = select(&candidates, &policy, NOW);
            assert_eq!(selection.chosen.len() + selection.left_out.len(), heads.len());
            let named = |index: &usize| heads[*index].thread_id.clone();
            chosen(&selection).iter().map(named).collect::<Vec<_>>()
        };
        let straight = names(&heads);
        let middle = rotation % heads.len();
        heads.rotate_left(middle);
        assert_eq!(names(&heads), straight);
    }
}

fn policy() -> Policy<'static> {
    Policy {
        age_days_max: Some(10),
        idle_hours_min: Some(6),
        sessions_max: None,
        ..Policy::default()
    }
}

fn session(thread_id: &str, age_millis: i64) -> SessionHead {
    SessionHead {
        agent: Agent::Codex,
        thread_id: ThreadId::parse(thread_id).unwrap(),
        rollout_path: PathBuf::from("/sessions").join(thread_id),
        cwd: None,
        project: None,
        git_branch: None,
        source: Source::Interactive,
        mode: MemoryMode::Enabled,
        started_at: None,
        updated_at: Timestamp::from_millis(NOW.millis() - age_millis),
        is_ours: false,
        forked_from: None,
        first_record: None,
    }
}

fn with_source(source: Source) -> SessionHead {
    SessionHead {
        source,
        ..session("a", DAY)
    }
}

fn candidate(head: &SessionHead) -> Candidate<'_> {
    Candidate {
        head,
        mode: head.mode,
        switched_off: None,
        stored_until: None,
        job: None,
    }
}

fn job(state: JobState) -> Job {
    Job {
        version: MemoryVersion::V1,
        kind: JobKind::Extract,
        key: "a".to_owned(),
        state,
        started_at: None,
        finished_at: None,
        retries_left: 0,
        failures: 0,
        last_error: None,
        input_watermark: None,
        success_watermark: None,
    }
}

fn check(head: &SessionHead, policy: &Policy<'_>) -> String {
    check_candidate(candidate(head), policy)
}

fn check_candidate(candidate: Candidate<'_>, policy: &Policy<'_>) -> String {
    let selection = select(&[candidate], policy, NOW);
    match &selection.left_out[..] {
        [] => "chosen".to_owned(),
        [left_out] => left_out.reason.to_string(),
        _ => panic!("one candidate, several answers"),
    }
}

fn chosen(selection: &Selection) -> Vec<usize> {
    selection.chosen.iter().map(|chosen| chosen.index).collect()
}
