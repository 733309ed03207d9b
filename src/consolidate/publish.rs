//! Keeps a refused attempt, or publishes an accepted one.
//!
//! Steps 8 and 9 of [`mod@super::run`]. The head moves in `Store::publish` and
//! nowhere else.
//!
//! # Crash safety
//!
//! What forget notes removed is withheld in the home before the baseline is
//! published; a stop in between leaves the note pending, and it is applied
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::consolidate::absorb::{self, Absorbed, Hands, Place};
use crate::consolidate::attempt::{self, Attempt, Bench, BenchTask};
use crate::consolidate::beside;
use crate::consolidate::coverage::LeftOutRecap;
use crate::consolidate::edits::{self, LeftAlone, kind_in};
use crate::consolidate::guard;
use crate::consolidate::judge::{self, Fault, OutputFile, Outputs, Verdict};
use crate::consolidate::message::{self, AttemptFacts, BaselineFacts};
use crate::consolidate::orders;
use crate::consolidate::past::{self, Past};
use crate::consolidate::record::Record;
use crate::consolidate::survey::{Survey, Texts};
use crate::consolidate::{Complaint, ConsolidateError, LeftFile};
use crate::domain::entry::Entry;
use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::time::Timestamp;
use crate::domain::withheld::{Withheld, WithheldReason};
use crate::ledger::JobError;
use crate::notes::withheld_set::{self, WithheldSet};
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::merge::{Merged, MergedText};
use crate::store::message::{AttemptState, CommitMessage};
use crate::store::{KeptKind, NewFile, Publication, Published, StoreLock, TreeChange};
use crate::sys::clock::Clock;
use crate::sys::ids::Ids;
use crate::sys::stop;
use crate::text::redact;

/// How often a publication is tried again after the head or a file moved.
const TRIES_MAX: usize = 3;
/// How often an editor is waited for that saved a file just now.
const WAITS_MAX: usize = 5;
/// Longest single wait for an editor.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Surveys another head, with what is withheld by then.
pub(crate) type Resurvey<'a> =
    &'a dyn Fn(ObjectId, &WithheldSet) -> Result<(Survey, Past), ConsolidateError>;

/// What publishing needs.
pub(crate) struct Press<'a> {
    pub(crate) place: &'a Place<'a>,
    pub(crate) bench: &'a Bench<'a>,
    pub(crate) survey: &'a Survey,
    pub(crate) resurvey: Resurvey<'a>,
    /// The head that the attempt grew from.
    pub(crate) head: ObjectId,
    pub(crate) run: &'a RunId,
    pub(crate) worker: &'a str,
    /// A person takes the result as it is: limits of the loss guard do not
    /// count, everything else does.
    pub(crate) is_accepted: bool,
    pub(crate) person: &'a Author,
    pub(crate) ids: &'a Ids,
    pub(crate) clock: &'a dyn Clock,
}

/// How publishing ended.
pub(crate) enum Printed {
    Published {
        published: Published,
        absorbed: Vec<Absorbed>,
        outputs: Outputs,
        left_out: Vec<LeftOutRecap>,
    },
    /// The store moved in a way that the attempt must not survive.
    Refused {
        error: JobError,
        faults: Vec<Fault>,
        parks: bool,
        absorbed: Vec<Absorbed>,
    },
    LeaseLost,
}

/// Publishes an accepted attempt; merges it with what a person did meanwhile.
///
/// # Errors
///
/// When the store cannot be read or written. The head then stands where it
/// was, or recovery finishes what was begun.
pub(crate) fn publish(
    press: &Press<'_>,
    attempt: &Attempt,
    renew: &mut dyn FnMut() -> bool,
) -> Result<Printed, ConsolidateError> {
    let store = press.place.store;
    let mut absorbed = Vec::new();
    let (mut tries_left, mut waits_left) = (TRIES_MAX, WAITS_MAX);
    while tries_left > 0 {
        let lock = store.lock(press.place.policy.lock_wait)?;
        store.recover(&lock)?;
        let now = press.clock.now();
        let taken = take_in(press, &lock, now)?;
        let (head, mut withheld) = (taken.head, taken.withheld.clone());
        let fresh_until = fresh_until(press, attempt, &taken.left);
        let uncommitted = uncommitted(&taken);
        absorbed.push(taken);
        if let (Some(quiet_at), true) = (fresh_until, waits_left > 0) {
            drop(lock);
            waits_left -= 1;
            wait(now, quiet_at);
            continue;
        }
        tries_left -= 1;
        let ready = match prepare(press, attempt, head, &withheld)? {
            Ok(ready) => ready,
            Err((error, faults)) => return Ok(refused(error, faults, absorbed)),
        };
        let faults = in_the_way(&uncommitted, &ready.changes);
        if !faults.is_empty() {
            let error = JobError::NeedsMending;
            return Ok(refused(error, faults, absorbed));
        }
        let forgotten = forget(press, attempt, &ready, &mut withheld)?;
        stop::point("consolidate.forgotten_written");
        // The token is proven at the last moment, under the folder's lock.
        if !renew() {
            return Ok(Printed::LeaseLost);
        }
        let publication = Publication {
            run: press.run,
            expected_head: head,
            changes: with_copies(ready.changes.clone(), &forgotten),
            message: word(press, attempt, &ready),
            author: Author::memrev(),
        };
        match store.publish(&lock, &publication, now) {
            Ok(published) => {
                stop::point("consolidate.published");
                return Ok(Printed::Published {
                    published,
                    absorbed,
                    outputs: ready.outputs,
                    left_out: ready.verdict.left_out,
                });
            }
            Err(StoreError::Moved { .. } | StoreError::WorkTreeChanged { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(refused(JobError::HeadMoved, Vec::new(), absorbed))
}

fn refused(error: JobError, faults: Vec<Fault>, absorbed: Vec<Absorbed>) -> Printed {
    Printed::Refused {
        parks: error == JobError::HeadMoved || faults.iter().any(Fault::parks),
        error,
        faults,
        absorbed,
    }
}

/// Commits what a person did while the worker worked.
fn take_in(
    press: &Press<'_>,
    lock: &StoreLock,
    now: Timestamp,
) -> Result<Absorbed, ConsolidateError> {
    let place = Place {
        now,
        ..*press.place
    };
    let head = press.place.store.readiness()?;
    let past = past::read(
        press.place.store,
        head,
        press.bench.limits.baselines_counted,
    )?;
    let hands = Hands {
        lock,
        run: press.run,
        person: press.person,
        ids: press.ids,
    };
    absorb::absorb(&place, &hands, head, &past)
}

/// When the last of the files to be published that somebody saved just now
/// has been quiet long enough to be committed as theirs.
fn fresh_until(press: &Press<'_>, attempt: &Attempt, left: &[LeftFile]) -> Option<Timestamp> {
    let changes = attempt::changes(press.survey, &attempt.outputs);
    let paths: BTreeSet<&TreePath> = changes.iter().map(|change| &change.path).collect();
    left.iter()
        .filter(|file| paths.contains(&file.path))
        .filter_map(|file| match file.reason {
            LeftAlone::TooFresh { quiet_at } => Some(quiet_at),
            _ => None,
        })
        .max()
}

/// What the person has in the folder that stays uncommitted until they mend it,
/// with the reason.
fn uncommitted(taken: &Absorbed) -> BTreeMap<String, String> {
    let is_lasting = |file: &&LeftFile| !matches!(file.reason, LeftAlone::TooFresh { .. });
    let left = taken.left.iter().filter(is_lasting);
    let left = left.map(|file| (file.path.to_string(), file.reason.to_string()));
    let unfit = taken.unfit.iter();
    let unfit = unfit.map(|it| (it.path.clone(), it.why.to_string()));
    unfit.chain(left).collect()
}

/// Files that would have to be overwritten.
fn in_the_way(uncommitted: &BTreeMap<String, String>, changes: &[TreeChange]) -> Vec<Fault> {
    let fault = |change: &TreeChange| {
        let why = uncommitted.get(change.path.as_str())?.clone();
        let path = change.path.clone();
        Some(Fault::InTheWay { path, why })
    };
    changes.iter().filter_map(fault).collect()
}

/// Waits for the moment, without the folder's lock.
fn wait(now: Timestamp, quiet_at: Timestamp) {
    let millis = quiet_at.millis().saturating_sub(now.millis()).max(1);
    let time = Duration::from_millis(u64::try_from(millis).unwrap_or(1)).min(WAIT_MAX);
    let (sender, receiver) = channel::<()>();
    // Nobody sends: this is a wait with a deadline.
    receiver.recv_timeout(time).ok();
    drop(sender);
}

/// What is to be published on a certain head.
struct Ready {
    changes: Vec<TreeChange>,
    /// The memory files before and after.
    old: Outputs,
    outputs: Outputs,
    verdict: Verdict,
}

fn prepare(
    press: &Press<'_>,
    attempt: &Attempt,
    head: ObjectId,
    withheld: &WithheldSet,
) -> Result<Result<Ready, (JobError, Vec<Fault>)>, ConsolidateError> {
    let changes = attempt::changes(press.survey, &attempt.outputs);
    if head == press.head {
        return Ok(Ok(Ready {
            changes,
            old: press.survey.outputs.clone(),
            outputs: attempt.outputs.clone(),
            verdict: attempt.verdict.clone(),
        }));
    }
    let store = press.place.store;
    if !past::moved_by_person_only(store, press.head, head)? {
        return Ok(Err((JobError::HeadMoved, Vec::new())));
    }
    let merged = store.merge_changes(press.head, head, &changes)?;
    if !merged.conflicts.is_empty() {
        let conflicts = merged.conflicts.into_iter();
        let faults = conflicts.map(|path| Fault::Conflict { path }).collect();
        return Ok(Err((JobError::PersonOverruled, faults)));
    }
    rejudge(press, attempt, head, withheld, &merged)
}

/// Runs the whole judgement on the merged tree: the person's new entries are
/// theirs in it, and what they removed is withheld.
fn rejudge(
    press: &Press<'_>,
    attempt: &Attempt,
    head: ObjectId,
    withheld: &WithheldSet,
    merged: &Merged,
) -> Result<Result<Ready, (JobError, Vec<Fault>)>, ConsolidateError> {
    let (survey, past) = (press.resurvey)(head, withheld)?;
    let texts = Texts::of(press.place.store);
    let bench = Bench::new(
        press.place,
        &survey,
        &past,
        withheld.as_slice(),
        head,
        &texts,
        BenchTask {
            inputs: &press.survey.inputs,
            applies_notes: press.bench.applies_notes(),
        },
    )?;
    let mut outputs = survey.outputs.clone();
    let mut changes = Vec::new();
    for file in &merged.files {
        let new = file.file.as_ref().map(merged_file);
        if kind_in(press.place.version, &file.path).is_output() {
            match &new {
                Some(new) => outputs.insert(file.path.clone(), new.clone()),
                None => outputs.remove(&file.path),
            };
        }
        changes.push(TreeChange {
            path: file.path.clone(),
            file: new.map(|new| NewFile {
                content: redact::redact_str(&new.text),
                executable: new.executable,
            }),
        });
    }
    let mut verdict = bench.judge(&outputs, &attempt.report);
    verdict.faults.extend(survey.kept_out.iter().cloned());
    if press.is_accepted {
        verdict.accept();
    }
    match verdict.faults.first() {
        Some(fault) => Ok(Err((fault.job_error(), verdict.faults))),
        None => Ok(Ok(Ready {
            changes,
            old: survey.outputs,
            outputs,
            verdict,
        })),
    }
}

pub(crate) fn merged_file(text: &MergedText) -> OutputFile {
    OutputFile {
        text: text.content.unredacted().to_owned(),
        executable: text.executable,
    }
}

/// Withholds what forget notes made the worker remove: entries that were
/// there before and are not there any more.
fn forget(
    press: &Press<'_>,
    attempt: &Attempt,
    ready: &Ready,
    withheld: &mut WithheldSet,
) -> Result<Vec<Withheld>, ConsolidateError> {
    if attempt.report.forgotten.is_empty() || !press.bench.has_forget_note() {
        return Ok(Vec::new());
    }
    let named = &attempt.report.forgotten;
    let lines = |outputs: &Outputs| {
        let mut lines = judge::all_entries(outputs);
        lines.extend(orders::in_skills(outputs));
        lines
    };
    let left = lines(&ready.outputs);
    let is_gone = |entry: &Entry| {
        let text = &entry.text;
        edits::states_something(entry)
            && named.iter().any(|it| guard::is_near_equal(it, text))
            && !left.iter().any(|it| guard::is_near_equal(&it.text, text))
    };
    let mut gone = lines(&ready.old);
    gone.retain(is_gone);
    let held = absorb::hold(&gone, WithheldReason::Forgotten, withheld, press.ids);
    let new = absorb::name(held, press.ids, press.place.now);
    withheld_set::save(press.place.home.root(), &new).map_err(ConsolidateError::Withheld)?;
    *withheld = WithheldSet::union(withheld.as_slice().iter().cloned().chain(new.clone()));
    Ok(new)
}

/// Copies of what is withheld since the survey come along.
fn with_copies(mut changes: Vec<TreeChange>, new: &[Withheld]) -> Vec<TreeChange> {
    changes.extend(beside::copies(new));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn word(press: &Press<'_>, attempt: &Attempt, ready: &Ready) -> CommitMessage {
    message::baseline(&BaselineFacts {
        run: press.run,
        version: press.place.version,
        worker: press.worker,
        inputs: &press.survey.inputs,
        outputs: &attempt::output_changes(&ready.old, &ready.outputs),
        entries_before: ready.verdict.entries_before,
        entries_after: ready.verdict.entries_after,
        losses: &ready.verdict.losses,
        left_out: &ready.verdict.left_out,
        words: attempt.report.words.as_str(),
        prompt: attempt.prompt.as_ref(),
        tokens: message::tokens_in_all(attempt.tokens),
        accepted_over: ready.verdict.accepted_over.as_deref(),
    })
}

/// Keeps an attempt that is not published on `refs/memrev/attempts/<run>`.
/// One with a secret, something withheld, a link or a huge file is kept only
/// as what was said about it.
///
/// # Errors
///
/// When the store cannot be locked or written.
pub(crate) fn keep(
    press: &Press<'_>,
    attempt: &Attempt,
    state: AttemptState,
    complaints: &[Complaint],
    faults: &[Fault],
) -> Result<ObjectId, ConsolidateError> {
    let is_whole = !faults.iter().any(Fault::bars_keeping);
    let report = &attempt.report;
    let mut record = Record::new(is_whole, complaints, report);
    record.applies_notes = press.bench.applies_notes();
    let (changes, losses) = if is_whole {
        let changes = attempt::changes(press.survey, &attempt.outputs);
        (changes, attempt.verdict.losses.as_slice())
    } else {
        (Vec::new(), &[][..])
    };
    let place = press.place;
    let message = message::attempt(&AttemptFacts {
        run: press.run,
        version: place.version,
        worker: press.worker,
        state,
        complaints,
        record: &record,
        inputs: &press.survey.inputs,
        losses,
        words: report.words.as_str(),
        prompt: attempt.prompt.as_ref(),
        tokens: message::tokens_in_all(attempt.tokens),
    });
    let lock = place.store.lock(place.policy.lock_wait)?;
    let kept = place.store.keep_ref(
        &lock,
        KeptKind::Attempt,
        press.run,
        press.head,
        &changes,
        &message,
        place.now,
    )?;
    stop::point("consolidate.attempt_kept");
    Ok(kept.commit)
}
