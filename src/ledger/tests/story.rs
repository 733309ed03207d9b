//! Tells a story to real ledgers; see `stories` for the words.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Home, at, thread};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{
    ConsolidationClaim, ConsolidationEnd, Demand, ExtractionClaim, ExtractionEnd, Job, JobError,
    JobState, Lease, Ledger, LedgerError, Pace, TakenIn,
};
use crate::sys::process::ProcessIdentity;

#[track_caller]
pub(super) fn check(story: &str, expected: &str) {
    let home = Home::new();
    let mut processes: HashMap<&str, (Ledger, Option<Lease>)> = HashMap::new();
    let mut told = String::new();
    for line in story.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let now = at(time(words[0]));
        let outcome = match words[1..] {
            ["jobs"] => jobs(&home.open(), now),
            ["enqueue", watermark] => {
                let watermark = at(watermark[1..].parse().unwrap());
                told_ok(
                    home.open()
                        .enqueue_consolidation(MemoryVersion::V1, watermark),
                )
            }
            [who, ref verb @ ..] => {
                let process = processes.entry(who).or_insert_with(|| start(&home, who));
                step(process, verb, now)
            }
            _ => panic!("a line is `<time> <who> <verb>`, got `{line}`"),
        };
        writeln!(told, "{outcome}").unwrap();
    }
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

fn start(home: &Home, who: &str) -> (Ledger, Option<Lease>) {
    let mut ledger = home.open();
    if who == "dead" {
        ledger.holder = ProcessIdentity {
            boot_id: "an earlier boot".to_owned(),
            ..ledger.holder
        };
    }
    (ledger, None)
}

fn step(process: &mut (Ledger, Option<Lease>), verb: &[&str], now: Timestamp) -> String {
    let (ledger, held) = process;
    match *verb {
        ["extract", ref wanted @ ..] => extract(ledger, held, MemoryVersion::V1, wanted, now),
        ["extract2", ref wanted @ ..] => extract(ledger, held, MemoryVersion::V2, wanted, now),
        ["consolidate", pace] => consolidate(ledger, held, pace, now),
        ["renew"] => match ledger.renew(held.as_ref().unwrap(), now) {
            Ok(lease) => format!("until {}", lease.until.seconds()),
            Err(error) => error.to_string(),
        },
        ref end => {
            let lease = held.clone().unwrap();
            told_ok(if lease.key == "global" {
                ledger.finish_consolidation(&lease, consolidation_end(end), now)
            } else {
                ledger.finish_extraction(&lease, extraction_end(end), now)
            })
        }
    }
}

/// `<thread> @<updated at>`, then nothing, `by-hand`, `anew` or `of <most>`.
fn extract(
    ledger: &mut Ledger,
    held: &mut Option<Lease>,
    version: MemoryVersion,
    words: &[&str],
    now: Timestamp,
) -> String {
    let (demand, running_max) = match words[2..] {
        ["by-hand"] => (Demand::ByHand, 8),
        ["anew"] => (Demand::Anew, 8),
        ["of", most] => (Demand::Due, most.parse().unwrap()),
        _ => (Demand::Due, 8),
    };
    let updated_at = at(words[1][1..].parse().unwrap());
    let thread_id = thread(words[0]);
    let claim = ledger.claim_extraction(version, &thread_id, updated_at, running_max, demand, now);
    match claim.unwrap() {
        ExtractionClaim::Claimed(lease) => granted(held.insert(lease)),
        ExtractionClaim::UpToDate => "up to date".to_owned(),
        ExtractionClaim::Running { until, .. } => format!("running until {}", until.seconds()),
        ExtractionClaim::RetryLater { at } => format!("retry later at {}", at.seconds()),
        ExtractionClaim::RetryExhausted => "retry exhausted".to_owned(),
        ExtractionClaim::AtCapacity { running } => format!("{running} running"),
    }
}

fn consolidate(
    ledger: &mut Ledger,
    held: &mut Option<Lease>,
    pace: &str,
    now: Timestamp,
) -> String {
    let pace = match pace {
        "by-hand" => Pace::ByHand,
        "notes" => Pace::WatcherNotes,
        _ => Pace::Background,
    };
    let claim = ledger.claim_consolidation(MemoryVersion::V1, pace, now);
    let claim = claim.unwrap();
    match claim {
        ConsolidationClaim::Claimed(lease) => granted(held.insert(lease)),
        ConsolidationClaim::Running { until, .. } => format!("running until {}", until.seconds()),
        ConsolidationClaim::Cooldown { until } => {
            format!("cooldown until {}", until.seconds())
        }
        ConsolidationClaim::RetryLater { at } => {
            format!("retry later at {}", at.seconds())
        }
    }
}

fn granted(lease: &Lease) -> String {
    match lease.input_watermark.seconds() {
        mark if lease.key == "global" && 1 < mark => {
            format!("until {}, input {mark}", lease.until.seconds())
        }
        _ => format!("until {}", lease.until.seconds()),
    }
}

fn consolidation_end(words: &[&str]) -> ConsolidationEnd {
    match words {
        ["done", watermark] => ConsolidationEnd::Done(taken_in(watermark)),
        ["idle", watermark] => ConsolidationEnd::Idle(taken_in(watermark)),
        ["fail"] => ConsolidationEnd::Failed(JobError::LossGuard),
        ["fail-until", moment] => {
            ConsolidationEnd::FailedUntil(JobError::ModelUnavailable, at(time(moment)))
        }
        ["park"] => ConsolidationEnd::Parked(JobError::HeadMoved),
        ["release"] => ConsolidationEnd::Released,
        _ => panic!("unknown verb {words:?}"),
    }
}

fn taken_in(watermark: &str) -> TakenIn {
    TakenIn {
        watermark: at(watermark.parse().unwrap()),
        selected: 1,
    }
}

fn extraction_end(words: &[&str]) -> ExtractionEnd {
    match words {
        ["done"] => ExtractionEnd::Done,
        ["fail"] => ExtractionEnd::Failed(JobError::LossGuard),
        ["fail-until", moment] => {
            ExtractionEnd::FailedUntil(JobError::ModelUnavailable, at(time(moment)))
        }
        ["release"] => ExtractionEnd::Released,
        _ => panic!("unknown verb {words:?}"),
    }
}

fn told_ok(result: Result<(), LedgerError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

fn jobs(ledger: &Ledger, now: Timestamp) -> String {
    let jobs = ledger.jobs(MemoryVersion::V1, now).unwrap();
    let lines: Vec<String> = jobs.iter().map(job_line).collect();
    lines.join(" ; ")
}

fn job_line(job: &Job) -> String {
    let name = if job.key == "global" {
        "consolidate"
    } else {
        &job.key
    };
    let mut line = format!("{name} {}", job.state.label());
    match &job.state {
        JobState::Running { until, .. } => write!(line, " until {}", until.seconds()).unwrap(),
        JobState::Waiting { retry_at } | JobState::Parked { retry_at } => {
            write!(line, " at {}", retry_at.seconds()).unwrap();
        }
        JobState::Done {
            cooldown_until: Some(until),
        } => write!(line, ", cools until {}", until.seconds()).unwrap(),
        _ => {}
    }
    if let Some(error) = job.last_error {
        write!(line, " {}", error.label()).unwrap();
    }
    // A watermark of one second is the stories' way to say "whatever".
    let told = |mark: Option<Timestamp>| mark.filter(|mark| at(1) < *mark || name != "consolidate");
    if let Some(input) = told(job.input_watermark) {
        write!(line, ", input {}", input.seconds()).unwrap();
    }
    if let Some(success) = told(job.success_watermark) {
        write!(line, ", success {}", success.seconds()).unwrap();
    }
    line
}

/// `90`, `6h`, `6h+10`, `1h-1`.
fn time(text: &str) -> i64 {
    let Some((hours, rest)) = text.split_once('h') else {
        return text.parse().unwrap();
    };
    let seconds: i64 = if rest.is_empty() {
        0
    } else {
        rest.parse().unwrap()
    };
    hours.parse::<i64>().unwrap() * 3600 + seconds
}
