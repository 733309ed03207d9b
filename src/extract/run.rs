//! Extracts sessions: reads, asks, stores, writes down how it ended.
//!
//! One session goes through the numbered steps of [`Pass::one`]; up to
//! [`EXTRACTIONS_AT_ONCE_MAX`] go at once. What a session came to is returned,
//! nothing is printed.
//!
//! # Crash safety
//!
//! Before the recap file is stored nothing has happened but a lease, which the
//! next pass takes over because this process is gone. After it, the file says
//! that the session is done, also when the ledger does not know it yet.
//!
//! # Locking
//!
//! The ledger is asked for moments, the file lock is held while one file is
//! written. Neither is held while a model works.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::id::ThreadId;
use crate::domain::item::{Item, Provenance, Trust};
use crate::domain::limits::EXTRACTIONS_AT_ONCE_MAX;
use crate::domain::quota::RateLimits;
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::session::{Citation, ReadReport, SessionHead};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Purged;
use crate::extract::grounding::Grounding;
use crate::extract::input::{self, Prepared, Template, TemplateError};
use crate::extract::reply::{self, Answer, Finding, ReplyError};
use crate::ledger::{
    Budget, Demand, Denial, ExtractionClaim, ExtractionEnd, JobError, Lease, Ledger, LedgerError,
};
use crate::model::{ExtractionRequest, Model, ModelError, Reply, Tokens};
use crate::recaps::{Extractions, RecapsError, Stored};
use crate::sessions::{self, Found, ReadError};
use crate::sys::clock::Clock;
use crate::sys::lock::{LockError, LockInTurn};
use crate::sys::stop;
use crate::text::purged;
use crate::text::redact::redact_str;

use self::meter::SessionMeter;

/// Everything outside that an extraction uses, and its limits.
pub(crate) struct Pass<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) model: &'a dyn Model,
    pub(crate) template: &'a Template,
    pub(crate) ledger: &'a Mutex<Ledger>,
    pub(crate) extractions: &'a Extractions,
    /// Held while a recap file is written.
    pub(crate) lock_file: &'a Path,
    pub(crate) lock_wait: Duration,
    pub(crate) clock: &'a dyn Clock,
    /// What must not come out of a session again.
    pub(crate) purged: &'a Purged,
    /// Extractions that may run over all processes.
    pub(crate) running_max: u32,
    /// What back ends that cost something may spend.
    pub(crate) budget: &'a Budget,
    /// Whether what a service says of its limits leaves enough to go on.
    pub(crate) leaves_enough: &'a (dyn Fn(&RateLimits) -> bool + Sync),
    /// This version's usage counts: citations found in transcripts go there.
    pub(crate) counts_citations: bool,
    /// A person wants to stop; checked between steps.
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Told of each session as it ends, from several threads.
    pub(crate) progress: &'a (dyn Fn(&Report) + Sync),
}

/// A session to extract.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) found: &'a Found,
    pub(crate) head: &'a SessionHead,
    pub(crate) demand: Demand,
    /// `disable_on_external_context` is on, and no person enabled this
    /// session: content from outside keeps it out of memory.
    pub(crate) external_pollutes: bool,
}

/// What became of one session.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) thread_id: ThreadId,
    pub(crate) rollout_path: PathBuf,
    pub(crate) outcome: Outcome,
    pub(crate) tokens: Tokens,
    /// What became of the records of the rollout; all zero when it was not read.
    pub(crate) reading: ReadReport,
    /// Lines of the reply that gave out as the person's what they did not say.
    pub(crate) ungrounded: usize,
    /// The session ended well and the ledger could not be told. The recap
    /// file says it all the same.
    pub(crate) ledger_problem: Option<LedgerError>,
}

/// What comes up on the way, whatever the end.
#[derive(Debug, Default)]
struct Seen {
    tokens: Tokens,
    reading: ReadReport,
    ungrounded: usize,
    ledger_problem: Option<LedgerError>,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// There is a recap now.
    Stored {
        path: PathBuf,
    },
    /// Nothing worth keeping; the answer is kept. `had_recap` when an older
    /// recap went with it.
    NothingToKeep {
        had_recap: bool,
    },
    /// Another process had stored the same or a newer state.
    NotNewer,
    /// Not tried: see the claim.
    NotClaimed(ExtractionClaim),
    /// One of our own workers wrote it, which only the whole file showed.
    Ours,
    /// External content reached it: the caller sets its mode.
    Polluted,
    /// Given back untried.
    NotTried(Halt),
    /// The lease ran out and another process has the session.
    LeaseLost,
    Failed(Failure),
}

/// Why the rest of a pass is not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancelled,
    Denied(Denial),
    /// The service said that little of the quota is left.
    Quota,
    /// The model could not be reached or asked for patience: the sessions
    /// behind would only fail in the same way.
    Model,
}

/// Why a session failed. It is tried again after a wait.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It was there when we looked. Gone files are not found again, so this
    /// is reported once.
    #[error("source gone: `{}`", path.display())]
    SourceGone { path: PathBuf },
    #[error(transparent)]
    Session(ReadError),
    #[error(transparent)]
    Template(TemplateError),
    #[error(transparent)]
    Model(ModelError),
    #[error(transparent)]
    Reply(ReplyError),
    #[error("the recap could not be stored")]
    Store(#[source] RecapsError),
    #[error("the recap could not be stored")]
    Lock(#[source] LockError),
    #[error("the ledger could not be asked")]
    Ledger(#[source] LedgerError),
}

impl Failure {
    /// In the ledger, which holds no text.
    const fn job_error(&self) -> JobError {
        match self {
            Self::SourceGone { .. } | Self::Session(_) => JobError::SessionUnreadable,
            Self::Template(_) => JobError::InputsUnreadable,
            Self::Model(error) => match error {
                ModelError::Refused { .. } | ModelError::TooLong => JobError::ModelRefused,
                ModelError::Unusable { .. } => JobError::ReplyUnusable,
                ModelError::LimitReached { .. } | ModelError::Cancelled => JobError::LimitReached,
                _ => JobError::ModelUnavailable,
            },
            Self::Reply(_) => JobError::ReplyUnusable,
            Self::Store(_) | Self::Lock(_) | Self::Ledger(_) => JobError::RecapNotStored,
        }
    }

    const fn halts(&self) -> bool {
        matches!(
            self,
            Self::Model(ModelError::Unreachable { .. } | ModelError::RateLimited { .. })
        )
    }
}

impl Pass<'_> {
    /// Extracts `tasks` in their order, several at once; the reports come in
    /// the same order.
    pub(crate) fn run(&self, tasks: &[Task<'_>]) -> Vec<Report> {
        let state = State::default();
        let next = AtomicUsize::new(0);
        let reports: Vec<Mutex<Option<Report>>> = tasks.iter().map(|_| Mutex::default()).collect();
        let threads = tasks.len().min(EXTRACTIONS_AT_ONCE_MAX);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(index) = take(&next, tasks.len()) {
                        let report = self.report(&tasks[index], &state);
                        (self.progress)(&report);
                        *lock(&reports[index]) = Some(report);
                    }
                });
            }
        });
        (reports.into_iter())
            .filter_map(|report| report.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    fn report(&self, task: &Task<'_>, state: &State) -> Report {
        let mut seen = Seen::default();
        let outcome = self.one(task, state, &mut seen);
        if let Outcome::Failed(failure) = &outcome
            && failure.halts()
        {
            state.halted.store(true, Ordering::Relaxed);
        }
        Report {
            thread_id: task.head.thread_id.clone(),
            rollout_path: task.head.rollout_path.clone(),
            outcome,
            tokens: seen.tokens,
            reading: seen.reading,
            ungrounded: seen.ungrounded,
            ledger_problem: seen.ledger_problem,
        }
    }

    fn one(&self, task: &Task<'_>, state: &State, seen: &mut Seen) -> Outcome {
        // 1. The right to do it.
        if let Some(halt) = self.halt(state) {
            return Outcome::NotTried(halt);
        }
        let lease = match self.claim(task) {
            Ok(ExtractionClaim::Claimed(lease)) => lease,
            Ok(claim) => return Outcome::NotClaimed(claim),
            Err(error) => return Outcome::Failed(Failure::Ledger(error)),
        };
        stop::point("extract.claimed");

        // 2. to 6. See there.
        let outcome = self
            .extract(task, &lease, state, seen)
            .unwrap_or_else(|end| end);

        // 7. How it ended. The recap file is there already, if there is one.
        let end = match &outcome {
            Outcome::Failed(failure) => self.failed(failure, seen),
            Outcome::NotTried(_) | Outcome::Polluted => ExtractionEnd::Released,
            _ => ExtractionEnd::Done,
        };
        if !matches!(outcome, Outcome::LeaseLost) {
            let problem = self.finish(&lease, end, &outcome).err();
            seen.ledger_problem = problem.or(seen.ledger_problem.take());
        }
        stop::point("extract.finished");
        outcome
    }

    /// Steps 2 to 6. `Err` is an end before a recap could be stored.
    fn extract(
        &self,
        task: &Task<'_>,
        lease: &Lease,
        state: &State,
        seen: &mut Seen,
    ) -> Result<Outcome, Outcome> {
        // 2. The session, as it is now.
        let mut session = sessions::read(task.found).map_err(|error| match error {
            ReadError::Gone { path } => Outcome::Failed(Failure::SourceGone { path }),
            error => Outcome::Failed(Failure::Session(error)),
        })?;
        seen.reading = std::mem::take(&mut session.report);
        // What other sessions of the same folder tell of its project counts.
        session.head.project.clone_from(&task.head.project);
        if session.head.is_ours {
            return Err(Outcome::Ours);
        }
        if session.has_external && task.external_pollutes {
            return Err(Outcome::Polluted);
        }
        self.count_citations(&session.head.thread_id, &session.citations)
            .map_err(|error| Outcome::Failed(Failure::Ledger(error)))?;
        let prepared = input::prepare(session);
        stop::point("extract.session_read");

        // 3. and 4. The question, and an answer that has the right form. Where
        // nobody said anything there is nothing to ask (reference row 32).
        let asked = if prepared.items.iter().any(is_human) {
            let meter = SessionMeter::new(self, state);
            let asked = self.ask(&prepared, &meter);
            seen.tokens = meter.tokens();
            let asked = asked?;
            if let Answer::Kept(finding) = &asked.answer {
                seen.ungrounded = finding.ungrounded;
            }
            asked
        } else {
            Asked::nothing()
        };
        stop::point("extract.answered");

        // 5. Only who still has the lease may store.
        let renewed = lock(self.ledger).renew(lease, self.clock.now());
        renewed.map_err(|error| {
            if error.is_lost() {
                Outcome::LeaseLost
            } else {
                Outcome::Failed(Failure::Ledger(error))
            }
        })?;
        stop::point("extract.lease_renewed");

        // 6. The recap file.
        let mut recap = self.recap(task, &prepared, asked);
        purged::scrub_recap(self.purged, &mut recap);
        let stored = self.store(&recap, state)?;
        stop::point("extract.stored");
        Ok(match stored {
            Stored::NotNewer => Outcome::NotNewer,
            Stored::Written { replaced, .. } if recap.is_no_op() => Outcome::NothingToKeep {
                had_recap: replaced,
            },
            Stored::Written { path, .. } => Outcome::Stored { path },
        })
    }

    /// A service that asks for patience is left alone from now on, not only
    /// for the sake of this session.
    fn failed(&self, failure: &Failure, seen: &mut Seen) -> ExtractionEnd {
        let error = failure.job_error();
        let patience_seconds = match failure {
            Failure::Model(error) => error.patience_seconds(),
            _ => None,
        };
        let Some(seconds) = patience_seconds else {
            return ExtractionEnd::Failed(error);
        };
        let now = self.clock.now();
        let until = now.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX));
        let name = redact_str(self.model.name());
        seen.ledger_problem = lock(self.ledger).hold(&name, until, now).err();
        ExtractionEnd::FailedUntil(error, until)
    }

    fn halt(&self, state: &State) -> Option<Halt> {
        if (self.is_cancelled)() {
            return Some(Halt::Cancelled);
        }
        if state.is_quota_low.load(Ordering::Relaxed) {
            return Some(Halt::Quota);
        }
        state.halted.load(Ordering::Relaxed).then_some(Halt::Model)
    }

    fn claim(&self, task: &Task<'_>) -> Result<ExtractionClaim, LedgerError> {
        lock(self.ledger).claim_extraction(
            self.version,
            &task.head.thread_id,
            task.head.updated_at,
            self.running_max,
            task.demand,
            self.clock.now(),
        )
    }

    /// Writes down the end, and that there is something to consolidate: a new
    /// recap, or one that went (reference rows 47 and 48).
    fn finish(
        &self,
        lease: &Lease,
        end: ExtractionEnd,
        outcome: &Outcome,
    ) -> Result<(), LedgerError> {
        let now = self.clock.now();
        let mut ledger = lock(self.ledger);
        ledger.finish_extraction(lease, end, now)?;
        let is_news = matches!(
            outcome,
            Outcome::Stored { .. } | Outcome::NothingToKeep { had_recap: true }
        );
        if is_news {
            ledger.enqueue_consolidation(self.version, lease.input_watermark)?;
        }
        Ok(())
    }

    fn count_citations(
        &self,
        citing: &ThreadId,
        citations: &[Citation],
    ) -> Result<(), LedgerError> {
        if !self.counts_citations || citations.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        lock(self.ledger).record_citations(self.version, citing, citations, now)?;
        Ok(())
    }

    /// Asks the model: once more with a longer reply when it was cut off, and
    /// once more with half of the prompt when it was too long.
    fn ask(&self, prepared: &Prepared, meter: &SessionMeter<'_>) -> Result<Asked, Outcome> {
        let was_rendered = AtomicBool::new(false);
        let template_error = Mutex::new(None);
        let tokens_max = AtomicUsize::new(input::tokens_max(
            self.model.context_tokens(),
            self.model.input_tokens_max(),
        ));
        let render = || {
            was_rendered.store(true, Ordering::Relaxed);
            let tokens_max = tokens_max.load(Ordering::Relaxed);
            input::render(self.version, prepared, self.template, tokens_max).unwrap_or_else(
                |error| {
                    *lock(&template_error) = Some(error);
                    Vec::new()
                },
            )
        };
        let (mut wants_longer_reply, mut is_shrunk) = (false, false);
        loop {
            if let Some(halt) = self.halt(meter.state) {
                return Err(Outcome::NotTried(halt));
            }
            let request = ExtractionRequest {
                version: self.version,
                facts: &prepared.facts,
                items: &prepared.items,
                schema: reply::schema(self.version),
                wants_longer_reply,
                meter,
                render: &render,
            };
            stop::point("extract.before_model");
            let answered = self.model.extract(&request);
            if let Some(error) = lock(&template_error).take() {
                return Err(Outcome::Failed(Failure::Template(error)));
            }
            let reply = match answered {
                Err(ModelError::TooLong) if !is_shrunk && was_rendered.load(Ordering::Relaxed) => {
                    is_shrunk = true;
                    let halved = tokens_max.load(Ordering::Relaxed) / 2;
                    tokens_max.store(halved.max(1), Ordering::Relaxed);
                    continue;
                }
                Err(error) => return Err(meter.outcome(error)),
                Ok(reply) => reply,
            };
            meter.note_answer();
            // A back end that says what it rests on copies; others may believe.
            let grounding = match reply.rests_on {
                Some(_) => Grounding::none(),
                None => Grounding::of(&prepared.items),
            };
            match reply::parse(self.version, &reply.text, &grounding) {
                Err(error) if !wants_longer_reply && is_cut(&error, &reply) => {
                    wants_longer_reply = true;
                }
                Err(error) => return Err(Outcome::Failed(Failure::Reply(error))),
                Ok(answer) => {
                    return Ok(Asked {
                        answer,
                        trust: reply.rests_on.unwrap_or_else(|| lowest_trust(prepared)),
                        used_prompt: was_rendered.load(Ordering::Relaxed),
                    });
                }
            }
        }
    }

    fn recap(&self, task: &Task<'_>, prepared: &Prepared, asked: Asked) -> Recap {
        let facts = &prepared.facts;
        let now = self.clock.now().floor_to_second();
        let finding = match asked.answer {
            Answer::Kept(finding) => finding,
            Answer::Nothing => Finding::nothing(),
        };
        Recap {
            header: RecapHeader {
                thread_id: facts.thread_id.clone(),
                agent: Some(facts.agent),
                updated_at: facts.updated_at.floor_to_second(),
                extracted_at: Some(now),
                rollout_path: facts.rollout_path.clone(),
                cwd: facts.cwd.clone(),
                project: facts.project.clone(),
                git_branch: facts.git_branch.clone(),
                model: Some(redact_str(self.model.name())),
                prompt: asked.used_prompt.then(|| self.template.identity()),
                trust: Some(asked.trust),
                items_read: Some(prepared.items.len() as u64),
                adopted_at: None,
                asked_at: (task.demand == Demand::Anew).then_some(now),
                slug: finding.slug,
                raw_memory: finding.raw_memory,
            },
            body: finding.recap,
        }
    }

    fn store(&self, recap: &Recap, state: &State) -> Result<Stored, Outcome> {
        let held = LockInTurn::acquire(&state.storing, self.lock_file, self.lock_wait)
            .map_err(|error| Outcome::Failed(Failure::Lock(error)))?;
        stop::point("extract.locked");
        (self.extractions.store(&held.lock, recap))
            .map_err(|error| Outcome::Failed(Failure::Store(error)))
    }
}

/// What the threads of a pass share.
#[derive(Default)]
struct State {
    halted: AtomicBool,
    is_quota_low: AtomicBool,
    /// Whose turn it is to store a recap.
    storing: Mutex<()>,
}

/// An answer and what goes into the header with it.
struct Asked {
    answer: Answer,
    trust: Trust,
    used_prompt: bool,
}

impl Asked {
    const fn nothing() -> Self {
        Self {
            answer: Answer::Nothing,
            trust: Trust::Own,
            used_prompt: false,
        }
    }
}

fn is_human(item: &Item<Redacted>) -> bool {
    item.provenance == Provenance::Human
}

/// Whether more room for the reply can help.
const fn is_cut(error: &ReplyError, reply: &Reply) -> bool {
    reply.is_cut || matches!(error, ReplyError::CutOff)
}

/// A reply that does not say what it rests on rests on everything.
fn lowest_trust(prepared: &Prepared) -> Trust {
    let trusts = prepared.items.iter().map(|item| item.trust);
    trusts.min().unwrap_or(Trust::Own)
}

fn take(next: &AtomicUsize, count: usize) -> Option<usize> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    (index < count).then_some(index)
}

/// A panic of another thread is told by its own join; the value is whole,
/// because every change to it is one assignment or one transaction.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The prompt that a session would be asked with, for `--dry-run`.
///
/// # Errors
///
/// When the session cannot be read or the template cannot be filled in.
pub(crate) fn preview(
    found: &Found,
    version: MemoryVersion,
    template: &Template,
    model: &dyn Model,
) -> Result<Vec<Redacted>, Failure> {
    let session = sessions::read(found).map_err(Failure::Session)?;
    let prepared = input::prepare(session);
    let tokens_max = input::tokens_max(model.context_tokens(), model.input_tokens_max());
    input::render(version, &prepared, template, tokens_max).map_err(Failure::Template)
}

mod meter;

#[cfg(test)]
mod home;
#[cfg(test)]
mod tests;
