//! A person's word about an attempt: take it as it is, or let it go.
//!
//! [`accept`] checks everything that a publication checks, on the head as it
//! is by now: the merge with what the person did since, the allow-list,
//! validation, secrets, what is withheld, the person's entries. The limits of
//! the loss guard alone give way. Then it publishes as a consolidation does.
//!
//! # Crash safety
//!
//! The head moves in `Store::publish`, the ref of the attempt goes afterwards.
//! A stop in between leaves an attempt that is a baseline already: it is shown
//! as such, and the next pass or `accept` takes it away. [`reject`] is one
//! update of one ref.

use std::collections::BTreeMap;

use crate::consolidate::absorb::{self, Hands, Place};
use crate::consolidate::attempt::{self, Attempt, Bench, BenchTask};
use crate::consolidate::attempts::{self, BothSides, Obstacle, SeenAttempt};
use crate::consolidate::beside::{self, Turn};
use crate::consolidate::edits::kind_in;
use crate::consolidate::guard::GuardFault;
use crate::consolidate::judge::{Fault, Outputs, Verdict};
use crate::consolidate::message::{self, AttemptFacts};
use crate::consolidate::past::{self, Past};
use crate::consolidate::publish::{self, Press, Printed, merged_file};
use crate::consolidate::record::Record;
use crate::consolidate::survey::{self, Offered, Survey, Texts};
use crate::consolidate::{Complaint, ConsolidateError, LeftFile, OutputChange, Policy};
use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::session::MemoryMode;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{ConsolidationEnd, Holder, JobError, Ledger, TakenIn};
use crate::model::{Tokens, WorkerReport};
use crate::notes::withheld_set::WithheldSet;
use crate::store::author::Author;
use crate::store::message::{AttemptState, Input};
use crate::store::{KeptKind, Store, StorePaths, Unfit};
use crate::sys::clock::Clock;
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::stop;

/// Everything outside that a decision uses.
pub(crate) struct DecideParts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) ids: &'a Ids,
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    /// The author of edit commits.
    pub(crate) person: &'a Author,
    pub(crate) policy: &'a Policy,
}

/// What became of a person's word.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) run: RunId,
    pub(crate) outcome: Decided,
    /// The commit of what the person did since.
    pub(crate) edit: Option<ObjectId>,
    /// What the person did that was left alone.
    pub(crate) left_files: Vec<LeftFile>,
    pub(crate) unfit: Vec<Unfit>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<OutputChange>,
    /// Limits of the loss guard that gave way.
    pub(crate) over: Vec<String>,
}

/// How it ended.
#[derive(Debug, Clone)]
pub(crate) enum Decided {
    Published {
        baseline: ObjectId,
    },
    /// It would be, or would have been let go: a dry run.
    Would,
    Rejected,
    /// It is a baseline since an earlier `accept`.
    Already {
        baseline: ObjectId,
    },
    Blocked {
        obstacle: Obstacle,
    },
    /// The person and the attempt changed the same lines.
    Conflicts {
        sides: Vec<BothSides>,
    },
    /// It does not pass what nobody can overrule.
    Refused {
        complaints: Vec<Complaint>,
    },
    /// Somebody else decided about it meanwhile.
    Gone,
    Busy {
        holder: Option<Holder>,
    },
}

impl Decision {
    fn of(attempt: &SeenAttempt, outcome: Decided) -> Self {
        Self {
            run: attempt.run.clone(),
            outcome,
            edit: None,
            left_files: Vec::new(),
            unfit: Vec::new(),
            inputs: attempt.inputs.clone(),
            outputs: Vec::new(),
            over: Vec::new(),
        }
    }
}

/// The attempt that a person means, in one version's memory; `None` when
/// there is none.
///
/// # Errors
///
/// When refs or commits cannot be read.
pub(crate) fn find(
    home: &Home,
    version: MemoryVersion,
    name: &str,
) -> Result<Option<SeenAttempt>, ConsolidateError> {
    let store = open(home, version)?;
    let attempts = attempts::list(&store, store.head()?)?;
    Ok(attempts::find(&attempts, name).cloned())
}

fn open(home: &Home, version: MemoryVersion) -> Result<Store, ConsolidateError> {
    let paths = StorePaths::in_home(home.root(), version.folder());
    Ok(Store::open(paths)?)
}

/// Publishes an attempt on a person's word.
///
/// # Errors
///
/// When the store is not ours to write now, or a part of it fails. The head
/// then stands where it was, or recovery finishes what was begun.
pub(crate) fn accept(
    parts: &DecideParts<'_>,
    ledger: &mut Ledger,
    version: MemoryVersion,
    attempt: &SeenAttempt,
) -> Result<Decision, ConsolidateError> {
    let store = open(parts.home, version)?;
    if let Some(obstacle) = &attempt.obstacle {
        return blocked(parts, &store, attempt, obstacle);
    }
    let mut turn = match Turn::take(ledger, version, parts.clock)? {
        Ok(turn) => turn,
        Err(holder) => return Ok(Decision::of(attempt, Decided::Busy { holder })),
    };
    stop::point("accept.claimed");
    let place = place(parts, version, &store);
    let result = publish_accepted(parts, &place, attempt, &mut turn);
    let decided = result.as_ref().ok();
    match decided.map(|(decision, taken_in)| (&decision.outcome, *taken_in)) {
        Some((Decided::Published { .. }, taken_in)) => turn.end(ConsolidationEnd::Done(taken_in)),
        // It waits for the person; passes in the background wait with it.
        Some((Decided::Conflicts { .. }, _)) => {
            turn.end(ConsolidationEnd::Parked(JobError::PersonOverruled));
        }
        Some((Decided::Refused { .. }, _)) => {
            turn.end(ConsolidationEnd::Parked(JobError::ResultInvalid));
        }
        _ => turn.give_back(),
    }
    stop::point("accept.marked");
    result.map(|(decision, _)| decision)
}

fn place<'a>(parts: &'a DecideParts<'_>, version: MemoryVersion, store: &'a Store) -> Place<'a> {
    Place {
        home: parts.home,
        version,
        store,
        modes: parts.modes,
        policy: parts.policy,
        now: parts.clock.now(),
    }
}

/// What an `accept` would come to on the committed head; nothing is written.
///
/// # Errors
///
/// When the store cannot be read.
pub(crate) fn would_accept(
    parts: &DecideParts<'_>,
    version: MemoryVersion,
    attempt: &SeenAttempt,
) -> Result<Decision, ConsolidateError> {
    let store = open(parts.home, version)?;
    let head = store.readiness()?;
    if let Some(obstacle) = attempt.obstacle.clone() {
        return Ok(Decision::of(attempt, Decided::Blocked { obstacle }));
    }
    let place = place(parts, version, &store);
    let past = past::read(&store, head, place.policy.guard.baselines_counted)?;
    let withheld = absorb::load_withheld(&place, &store.snapshot(head)?)?;
    let withheld = absorb::foresee(&place, head, &past, &withheld)?;
    let mut decision = Decision::of(attempt, Decided::Would);
    match look(&place, attempt, head, &withheld)? {
        Looked::Conflicts(paths) => {
            let sides = attempts::both_sides(&store, attempt, head, &paths)?;
            decision.outcome = Decided::Conflicts { sides };
        }
        Looked::Judged(judged) => tell(&mut decision, &judged),
    }
    Ok(decision)
}

fn tell(decision: &mut Decision, judged: &Judged) {
    decision.outputs = attempt::output_changes(&judged.survey.outputs, &judged.outputs);
    let over = judged.verdict.accepted_over.iter().flatten();
    decision.over = over.map(GuardFault::words).collect();
    if !judged.verdict.is_accepted() {
        let faults = judged.verdict.faults.iter();
        let complaints = faults.map(Fault::complaint).collect();
        decision.outcome = Decided::Refused { complaints };
    }
}

/// Says why not; an attempt that is a baseline already goes.
fn blocked(
    parts: &DecideParts<'_>,
    store: &Store,
    attempt: &SeenAttempt,
    obstacle: &Obstacle,
) -> Result<Decision, ConsolidateError> {
    let Obstacle::Published { baseline } = *obstacle else {
        let obstacle = obstacle.clone();
        return Ok(Decision::of(attempt, Decided::Blocked { obstacle }));
    };
    let lock = store.lock(parts.policy.lock_wait)?;
    store.recover(&lock)?;
    attempts::remove(store, &lock, attempt)?;
    Ok(Decision::of(attempt, Decided::Already { baseline }))
}

/// An attempt on a certain head.
enum Looked {
    Conflicts(Vec<TreePath>),
    Judged(Box<Judged>),
}

struct Judged {
    survey: Survey,
    past: Past,
    outputs: Outputs,
    verdict: Verdict,
}

/// Merges the attempt with the head and judges what comes of it.
fn look(
    place: &Place<'_>,
    attempt: &SeenAttempt,
    head: ObjectId,
    withheld: &WithheldSet,
) -> Result<Looked, ConsolidateError> {
    let merged = place
        .store
        .merge_commits(attempt.base, head, attempt.commit)?;
    if !merged.conflicts.is_empty() {
        return Ok(Looked::Conflicts(merged.conflicts));
    }
    let offered = Offered {
        inputs: &attempt.inputs,
        merged: &merged,
    };
    let (survey, past) = survey::survey_offered(place, head, withheld.as_slice(), &offered)?;
    let mut outputs = survey.outputs.clone();
    for file in &merged.files {
        if kind_in(place.version, &file.path).is_output() {
            match &file.file {
                Some(text) => outputs.insert(file.path.clone(), merged_file(text)),
                None => outputs.remove(&file.path),
            };
        }
    }
    let texts = Texts::of(place.store);
    let blocked = withheld.as_slice();
    let bench = Bench::new(place, &survey, &past, blocked, head, &texts, task(attempt))?;
    let mut verdict = bench.judge(&outputs, &report_of(attempt));
    verdict.faults.extend(survey.kept_out.iter().cloned());
    verdict.accept();
    drop(bench);
    Ok(Looked::Judged(Box::new(Judged {
        survey,
        past,
        outputs,
        verdict,
    })))
}

fn publish_accepted(
    parts: &DecideParts<'_>,
    place: &Place<'_>,
    attempt: &SeenAttempt,
    turn: &mut Turn<'_>,
) -> Result<(Decision, TakenIn), ConsolidateError> {
    let store = place.store;
    let own_run = parts.ids.run_id(place.now);
    let mut decision = Decision::of(attempt, Decided::Gone);
    let nothing = TakenIn {
        watermark: Timestamp::default(),
        selected: 0,
    };
    let taken = {
        let lock = store.lock(place.policy.lock_wait)?;
        let hands = Hands {
            lock: &lock,
            run: &own_run,
            person: parts.person,
            ids: parts.ids,
        };
        beside::take_in(place, &hands)?
    };
    decision.edit = taken.edit;
    decision.left_files = absorb::worth_telling(taken.left);
    decision.unfit = taken.unfit;
    stop::point("accept.taken_in");
    let (head, withheld) = (taken.head, taken.withheld);
    // What the person did may have decided it.
    match seen_again(store, head, attempt)? {
        None => return Ok((decision, nothing)),
        Some(seen) => {
            if let Some(obstacle) = seen.obstacle {
                decision.outcome = Decided::Blocked { obstacle };
                return Ok((decision, nothing));
            }
        }
    }
    let judged = match look(place, attempt, head, &withheld)? {
        Looked::Judged(judged) => judged,
        Looked::Conflicts(paths) => {
            let sides = attempts::both_sides(store, attempt, head, &paths)?;
            decision.outcome = Decided::Conflicts { sides };
            return Ok((decision, nothing));
        }
    };
    tell(&mut decision, &judged);
    if !judged.verdict.is_accepted() {
        return Ok((decision, nothing));
    }
    stop::point("accept.judged");
    let chosen = &judged.survey.selection.chosen;
    let newest = chosen.iter().map(|it| it.recap.header.updated_at).max();
    let taken_in = TakenIn {
        watermark: newest.unwrap_or_default(),
        selected: chosen.len(),
    };
    print(
        parts,
        place,
        attempt,
        turn,
        &judged,
        (head, &withheld),
        &mut decision,
    )?;
    Ok((decision, taken_in))
}

/// The attempt as it stands now, if it still is the same.
fn seen_again(
    store: &Store,
    head: ObjectId,
    attempt: &SeenAttempt,
) -> Result<Option<SeenAttempt>, ConsolidateError> {
    let attempts = attempts::list(store, head)?;
    let mut same = attempts.into_iter();
    Ok(same.find(|it| it.run == attempt.run && it.commit == attempt.commit))
}

/// Publishes what was judged good, and takes the attempt away.
fn print(
    parts: &DecideParts<'_>,
    place: &Place<'_>,
    attempt: &SeenAttempt,
    turn: &mut Turn<'_>,
    judged: &Judged,
    (head, withheld): (ObjectId, &WithheldSet),
    decision: &mut Decision,
) -> Result<(), ConsolidateError> {
    let store = place.store;
    let texts = Texts::of(store);
    let (survey, past) = (&judged.survey, &judged.past);
    let blocked = withheld.as_slice();
    let bench = Bench::new(place, survey, past, blocked, head, &texts, task(attempt))?;
    let resurvey = |head: ObjectId, withheld: &WithheldSet| {
        let merged = store.merge_commits(attempt.base, head, attempt.commit)?;
        let offered = Offered {
            inputs: &attempt.inputs,
            merged: &merged,
        };
        survey::survey_offered(place, head, withheld.as_slice(), &offered)
    };
    let press = Press {
        place,
        bench: &bench,
        survey,
        resurvey: &resurvey,
        head,
        run: &attempt.run,
        worker: &attempt.worker,
        is_accepted: true,
        person: parts.person,
        ids: parts.ids,
        clock: parts.clock,
    };
    let result = as_result(attempt, judged);
    // Asked under the folder's lock: whoever rejects it needs that lock too.
    let mut may_go_on = || {
        let is_there = matches!(seen_again(store, head, attempt), Ok(Some(_)));
        is_there && turn.renew()
    };
    match publish::publish(&press, &result, &mut may_go_on)? {
        Printed::Published {
            published, outputs, ..
        } => {
            stop::point("accept.published");
            decision.outputs = attempt::output_changes(&survey.outputs, &outputs);
            let baseline = published.commit;
            decision.outcome = Decided::Published { baseline };
            let lock = store.lock(place.policy.lock_wait)?;
            attempts::remove(store, &lock, attempt)?;
        }
        Printed::Refused { faults, .. } => {
            decision.outcome = not_printed(store, attempt, &faults)?;
        }
        Printed::LeaseLost => decision.outcome = Decided::Gone,
    }
    Ok(())
}

fn task(attempt: &SeenAttempt) -> BenchTask<'_> {
    let record = attempt.record.as_ref();
    BenchTask {
        inputs: &attempt.inputs,
        applies_notes: record.is_some_and(|record| record.applies_notes),
    }
}

/// What the worker said when it made the attempt.
fn report_of(attempt: &SeenAttempt) -> WorkerReport {
    let record = attempt.record.clone().unwrap_or_default();
    WorkerReport {
        finished: true,
        has_read_prompt: attempt.prompt.is_some(),
        words: attempt.words.clone(),
        retired: record.retired(),
        skipped: record.skipped(),
        forgotten: record.forgotten,
        ..WorkerReport::default()
    }
}

fn as_result(attempt: &SeenAttempt, judged: &Judged) -> Attempt {
    Attempt {
        outputs: judged.outputs.clone(),
        report: report_of(attempt),
        verdict: judged.verdict.clone(),
        prompt: attempt.prompt.clone(),
        tokens: Tokens {
            input: attempt.tokens,
            ..Tokens::default()
        },
    }
}

fn not_printed(
    store: &Store,
    attempt: &SeenAttempt,
    faults: &[Fault],
) -> Result<Decided, ConsolidateError> {
    let conflicts = faults.iter().filter_map(|fault| match fault {
        Fault::Conflict { path } => Some(path.clone()),
        _ => None,
    });
    let conflicts: Vec<TreePath> = conflicts.collect();
    if !conflicts.is_empty() {
        let sides = attempts::both_sides(store, attempt, store.head()?, &conflicts)?;
        return Ok(Decided::Conflicts { sides });
    }
    if faults.is_empty() {
        // By another word about the same attempt, or by something else.
        return Ok(match seen_again(store, store.head()?, attempt)? {
            None => Decided::Gone,
            Some(_) => Decided::Blocked {
                obstacle: Obstacle::Moved,
            },
        });
    }
    let complaints = faults.iter().map(Fault::complaint).collect();
    Ok(Decided::Refused { complaints })
}

/// Lets an attempt go. What it was about stays known, so that passes in the
/// background do not try the same again.
///
/// # Errors
///
/// When the store cannot be locked or written.
pub(crate) fn reject(
    parts: &DecideParts<'_>,
    version: MemoryVersion,
    attempt: &SeenAttempt,
    is_dry_run: bool,
) -> Result<Decision, ConsolidateError> {
    let store = open(parts.home, version)?;
    let decided = |outcome| Ok(Decision::of(attempt, outcome));
    match &attempt.obstacle {
        Some(obstacle @ Obstacle::Rejected) => {
            let obstacle = obstacle.clone();
            return decided(Decided::Blocked { obstacle });
        }
        Some(Obstacle::Published { baseline }) => {
            let baseline = *baseline;
            return decided(Decided::Already { baseline });
        }
        _ if is_dry_run => return decided(Decided::Would),
        _ => {}
    }
    let lock = store.lock(parts.policy.lock_wait)?;
    store.recover(&lock)?;
    if seen_again(&store, store.head()?, attempt)?.is_none() {
        return decided(Decided::Gone);
    }
    let record = Record::new(false, &[], &WorkerReport::default());
    let message = message::attempt(&AttemptFacts {
        run: &attempt.run,
        version,
        worker: &attempt.worker,
        state: AttemptState::Rejected,
        complaints: &[],
        record: &record,
        inputs: &attempt.inputs,
        losses: &[],
        words: Redacted::default().as_str(),
        prompt: attempt.prompt.as_ref(),
        tokens: attempt.tokens,
    });
    store.keep_ref(
        &lock,
        KeptKind::Attempt,
        &attempt.run,
        attempt.base,
        &[],
        &message,
        parts.clock.now(),
    )?;
    stop::point("reject.written");
    decided(Decided::Rejected)
}
