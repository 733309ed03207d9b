//! How a task ended, by evidence alone: what the person said about it, what
//! the last check gave, whether the work was broken off. What an assistant
//! claims is no evidence.

use crate::domain::item::{Item, Place, Provenance};
use crate::domain::text::Redacted;
use crate::model::offline::extract::tasks::{Message, Task};
use crate::model::offline::extract::words::one_line;
use crate::model::offline::extract::work::Command;
use crate::model::offline::shape::Outcome;
use crate::text::cues::Cue;

/// An outcome and what it rests on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    pub(crate) evidence: Evidence,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The person's own words.
    Said {
        line: String,
        place: Place,
    },
    /// The last check.
    Check {
        command: String,
        passed: bool,
        place: Place,
    },
    /// Broken off by the person.
    Aborted {
        place: Place,
    },
    /// Nothing but that the person went on to something else.
    WentOn {
        place: Place,
    },
    None,
}

/// Judges a task. `next` is the message that opened the task behind it.
pub(crate) fn judge(
    task: &Task,
    items: &[Item<Redacted>],
    commands: &[Command],
    next: Option<&Message>,
) -> Verdict {
    let checks = || {
        commands
            .iter()
            .filter(|command| command.is_check && command.succeeded.is_some())
    };
    let last_check = checks().next_back();
    let some_passed = checks().any(|check| check.succeeded == Some(true));
    if let Some(verdict) = by_feedback(task, last_check, next) {
        return verdict;
    }
    if let Some(verdict) = by_rejection(task, items, last_check, next) {
        return verdict;
    }
    if let Some(place) = aborted(task, items) {
        let outcome = if some_passed {
            Outcome::Partial
        } else {
            Outcome::Uncertain
        };
        return Verdict {
            outcome,
            evidence: Evidence::Aborted { place },
        };
    }
    if let Some(check) = last_check {
        let passed = check.succeeded == Some(true);
        let outcome = match (passed, some_passed) {
            (true, _) => Outcome::Success,
            (false, true) => Outcome::Partial,
            (false, false) => Outcome::Fail,
        };
        let evidence = Evidence::Check {
            command: check.line.clone(),
            passed,
            place: check.result_place,
        };
        return Verdict { outcome, evidence };
    }
    let answered = (items[task.items.clone()].iter())
        .any(|item| item.provenance == Provenance::AssistantFinal);
    let last_act =
        (commands.iter().rev()).find(|command| !command.only_looks && command.succeeded.is_some());
    if let Some(act) = last_act.filter(|act| act.succeeded == Some(false)) {
        let evidence = Evidence::Check {
            command: act.line.clone(),
            passed: false,
            place: act.result_place,
        };
        let outcome = if answered {
            Outcome::Uncertain
        } else {
            Outcome::Fail
        };
        return Verdict { outcome, evidence };
    }
    match next {
        Some(next) if answered => Verdict {
            outcome: Outcome::Success,
            evidence: Evidence::WentOn { place: next.place },
        },
        _ => Verdict {
            outcome: Outcome::Uncertain,
            evidence: Evidence::None,
        },
    }
}

/// The last thing the person said about the work; the first sentence of the
/// next task counts for this one.
fn by_feedback(
    task: &Task,
    last_check: Option<&Command>,
    next: Option<&Message>,
) -> Option<Verdict> {
    if let Some((line, place, accepts)) = next.and_then(first_feedback) {
        let outcome = if accepts {
            Outcome::Success
        } else {
            Outcome::Fail
        };
        return Some(Verdict {
            outcome,
            evidence: Evidence::Said { line, place },
        });
    }
    let (message, line, accepts) = (task.messages.iter().skip(1).rev()).find_map(|message| {
        last_feedback(message).map(|(line, accepts)| (message, line, accepts))
    })?;
    let mended = last_check.is_some_and(|check| {
        check.succeeded == Some(true) && message.item_index < check.item_index
    });
    let outcome = match (accepts, mended) {
        (true, _) => Outcome::Success,
        (false, true) => Outcome::Partial,
        (false, false) => Outcome::Fail,
    };
    let evidence = Evidence::Said {
        line,
        place: message.place,
    };
    Some(Verdict { outcome, evidence })
}

/// The last attempt was taken back, and nothing shows that the next one was
/// better.
fn by_rejection(
    task: &Task,
    items: &[Item<Redacted>],
    last_check: Option<&Command>,
    next: Option<&Message>,
) -> Option<Verdict> {
    let message =
        (task.messages.iter().skip(1).rev()).find(|message| message.has(Cue::Correction))?;
    let behind = message.item_index + 1..task.items.end;
    let answered = (items.get(behind)?.iter()).any(|item| {
        matches!(
            item.provenance,
            Provenance::AssistantFinal | Provenance::Tool
        )
    });
    let checked = last_check.is_some_and(|check| message.item_index < check.item_index);
    if checked || (answered && next.is_some()) {
        return None;
    }
    let outcome = if answered {
        Outcome::Uncertain
    } else {
        Outcome::Fail
    };
    let sentence = (message.sentences.iter()).find(|sentence| sentence.cues.has(Cue::Correction));
    let evidence = Evidence::Said {
        line: sentence
            .map_or(&message.own, |sentence| &sentence.text)
            .clone(),
        place: message.place,
    };
    Some(Verdict { outcome, evidence })
}

fn first_feedback(message: &Message) -> Option<(String, Place, bool)> {
    let sentence = message.sentences.first()?;
    let accepts = sentence.cues.has(Cue::Accept);
    let complains = sentence.cues.has(Cue::Complaint);
    (accepts != complains).then(|| (one_line(&sentence.text), message.place, accepts))
}

fn last_feedback(message: &Message) -> Option<(String, bool)> {
    message.sentences.iter().rev().find_map(|sentence| {
        let accepts = sentence.cues.has(Cue::Accept);
        let complains = sentence.cues.has(Cue::Complaint);
        (accepts != complains).then(|| (one_line(&sentence.text), accepts))
    })
}

/// Where the person broke the work off, if nothing came after.
fn aborted(task: &Task, items: &[Item<Redacted>]) -> Option<Place> {
    let items = &items[task.items.clone()];
    for item in items.iter().rev() {
        match item.provenance {
            Provenance::HarnessContext if says_aborted(item.text.as_str()) => {
                return Some(item.place);
            }
            Provenance::Tool if says_aborted(item.text.as_str()) => return Some(item.place),
            Provenance::HarnessContext => {}
            _ => return None,
        }
    }
    None
}

fn says_aborted(text: &str) -> bool {
    let text = text.trim_start();
    [
        "<turn_aborted>",
        "[Request interrupted by user",
        "aborted by user",
        "turn aborted",
    ]
    .iter()
    .any(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::{Evidence, judge};
    use crate::domain::item::Item;
    use crate::domain::text::Redacted;
    use crate::model::offline::extract::fixture::items;
    use crate::model::offline::extract::{tasks, work};

    #[test]
    fn what_the_person_said_last_beats_everything() {
        check(
            "human fix the parser please now\nrun cargo test | failed\nhuman thanks, works now",
            "success said 4",
        );
        check(
            "human fix the parser please now\nrun cargo test | ok\nhuman 还是报错",
            "fail said 4",
        );
        check(
            "human fix the parser please now\nhuman it still fails\nrun cargo test | ok",
            "partial said 2",
        );
    }

    #[test]
    fn the_first_words_of_the_next_request_count_for_this_one() {
        check(
            "human fix the parser please now\nfinal done\nhuman Perfect. Now write the release announcement text",
            "success said 3; uncertain none",
        );
    }

    #[test]
    fn else_the_last_check_decides() {
        check(
            "human fix the parser please now\nrun cargo test | failed\nrun cargo test | ok",
            "success check 5",
        );
        check(
            "human fix the parser please now\nrun cargo test | ok\nrun cargo test | failed",
            "partial check 5",
        );
        check(
            "human fix the parser please now\nrun cargo test | failed\nfinal all tests pass",
            "fail check 3",
        );
    }

    #[test]
    fn a_rejected_attempt_is_no_success() {
        check(
            "human fix the parser please now\nrun cargo test | ok\nfinal done\nhuman No, not with a regex",
            "fail said 5",
        );
        check(
            "human fix the parser please now\nrun cargo test | ok\nhuman I don't want a regex\nedit a.rs\nfinal done",
            "uncertain said 4",
        );
        check(
            "human fix the parser please now\nrun cargo test | ok\nhuman 我不想用正则\nrun cargo test | ok",
            "success check 6",
        );
        check(
            "human fix the flicker please now\nfinal done\nhuman no it isn't. leave it, I'll do it myself",
            "fail said 3",
        );
    }

    #[test]
    fn without_a_check_the_last_failure_is_the_evidence() {
        check(
            "human deploy the page to staging\nrun fly deploy | failed no token",
            "fail check 3",
        );
        check(
            "human deploy the page to staging\nrun fly deploy | failed no token\nrun fly deploy -c x | ok",
            "uncertain none",
        );
    }

    #[test]
    fn work_that_was_broken_off_is_never_a_success() {
        check(
            "human fix the parser please now\nrun cargo test | ok\ncontext <turn_aborted>",
            "partial aborted 4",
        );
        check(
            "human fix the parser please now\ncontext [Request interrupted by user]",
            "uncertain aborted 2",
        );
    }

    #[test]
    fn without_evidence_the_last_task_is_uncertain() {
        check(
            "human fix the parser please now\nfinal it is done and works",
            "uncertain none",
        );
        check(
            "human fix the parser please now\nfinal done\nhuman write the release announcement text",
            "success went on 3; uncertain none",
        );
    }

    #[track_caller]
    fn check(story: &str, expected: &str) {
        let items: Vec<Item<Redacted>> = items(story);
        let tasks = tasks::split(&items);
        let work = work::gather(&items, None);
        let told: Vec<String> = (tasks.iter().enumerate())
            .map(|(index, task)| {
                let next = tasks.get(index + 1).map(|task| &task.messages[0]);
                let verdict = judge(task, &items, work.commands_in(&task.items), next);
                let evidence = match verdict.evidence {
                    Evidence::Said { place, .. } => format!("said {}", place.line_number),
                    Evidence::Check { place, .. } => format!("check {}", place.line_number),
                    Evidence::Aborted { place } => format!("aborted {}", place.line_number),
                    Evidence::WentOn { place } => format!("went on {}", place.line_number),
                    Evidence::None => "none".to_owned(),
                };
                format!("{} {evidence}", verdict.outcome.label())
            })
            .collect();
        assert_eq!(told.join("; "), expected, "{story}");
    }
}
