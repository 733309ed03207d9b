//! One consolidation, in the ten steps of DESIGN 6.
//!
//! # Crash safety
//!
//! Until step 9 nothing of ours is in the memory folder but, perhaps, a
//! commit of the person's own edits. A stop in step 9 is finished or undone
//! by the next run (step 2). A stop before step 10 costs a survey: the next
//! run finds nothing to do.
//!
//! # Not in here
//!
//! No decisions: what takes part, what is refused and what a message says is
//! decided in the pure files.

use crate::consolidate::absorb::{self, Absorbed, Hands, Place};
use crate::consolidate::attempt::{self, Attempt, Bench, BenchTask, Worked, Workshop};
use crate::consolidate::attempts::{self, Standing};
use crate::consolidate::books::Books;
use crate::consolidate::ended::Ended;
use crate::consolidate::idle::{IdleFacts, IdleKey};
use crate::consolidate::input;
use crate::consolidate::judge::{self, Fault};
use crate::consolidate::lost;
use crate::consolidate::mend;
use crate::consolidate::past::{self, Past};
use crate::consolidate::plan;
use crate::consolidate::publish::{self, Press, Printed};
use crate::consolidate::staging::{self, Staging};
use crate::consolidate::survey::{self, Survey, Texts};
use crate::consolidate::worker::Office as _;
use crate::consolidate::{
    Complaint, ConsolidateError, ConsolidateReport, ConsolidateRequest, Outcome, Parts,
};
use crate::domain::id::{ObjectId, RunId};
use crate::domain::text::Redacted;
use crate::ledger::{ConsolidationClaim, ConsolidationEnd, Pace, TakenIn, UsageByThread};
use crate::model::Model;
use crate::notes::withheld_set::WithheldSet;
use crate::store::author::Author;
use crate::store::message::AttemptState;
use crate::store::{Snapshot, Store, StorePaths};
use crate::sys::clock::Clock;
use crate::sys::ids::Ids;
use crate::sys::stop;
use crate::text::redact::redact_str;

/// Runs one consolidation, from the claim to the mark of success.
///
/// # Errors
///
/// [`ConsolidateError`]; everything that has a place in the report is an
/// [`Outcome`] instead. The ledger is told either way.
pub(crate) fn run(
    parts: &mut Parts<'_>,
    request: &ConsolidateRequest,
) -> Result<ConsolidateReport, ConsolidateError> {
    let now = parts.clock.now();
    let paths = StorePaths::in_home(parts.home.root(), request.version.folder());
    let store = Store::open(paths)?;
    let run = parts.ids.run_id(now);
    let mut report = ConsolidateReport::new(run.clone());

    // 1. Claim the job.
    let claim = (parts.ledger).claim_consolidation(request.version, request.pace, now)?;
    let lease = match claim {
        ConsolidationClaim::Claimed(lease) => lease,
        other => {
            report.outcome = not_claimed(other);
            return Ok(report);
        }
    };
    stop::point("consolidate.claimed");

    let pass = Pass {
        place: Place {
            home: parts.home,
            version: request.version,
            store: &store,
            modes: parts.modes,
            policy: parts.policy,
            now,
        },
        request,
        run,
        model: parts.model,
        clock: parts.clock,
        person: parts.person,
        ids: parts.ids,
        is_cancelled: parts.is_cancelled,
    };
    let mut books = Books {
        ledger: &mut *parts.ledger,
        lease,
        clock: parts.clock,
        budget: (!parts.model.is_free()).then_some(parts.budget),
        model_name: redact_str(parts.model.name()),
        has_worked: false,
    };
    let result = pass.steps(&mut books, &mut report);

    // 10. Tell the ledger.
    let ended = match &result {
        Ok(ended) => ended.clone(),
        Err(error) => Ended::after(error, books.has_worked),
    };
    let was_lost = books.close(ended.mark);
    stop::point("consolidate.marked");
    result?;
    report.outcome = match ended.outcome {
        Outcome::Done { baseline } => Outcome::Done { baseline },
        // Whoever took the job over has the inputs now: nothing of ours waits.
        _ if was_lost => Outcome::Busy { holder: None },
        outcome => outcome,
    };
    Ok(report)
}

fn not_claimed(claim: ConsolidationClaim) -> Outcome {
    match claim {
        ConsolidationClaim::Cooldown { until } | ConsolidationClaim::RetryLater { at: until } => {
            Outcome::Deferred { until }
        }
        ConsolidationClaim::Running { holder, .. } => Outcome::Busy {
            holder: Some(holder),
        },
        ConsolidationClaim::Claimed(_) => Outcome::Busy { holder: None },
    }
}

/// A consolidation under way: what does not change in it.
struct Pass<'a> {
    place: Place<'a>,
    request: &'a ConsolidateRequest,
    run: RunId,
    model: &'a dyn Model,
    clock: &'a dyn Clock,
    person: &'a Author,
    ids: &'a Ids,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// What step 2 found.
struct Prepared {
    head: ObjectId,
    withheld: WithheldSet,
    usage: UsageByThread,
}

impl Pass<'_> {
    fn steps(
        &self,
        books: &mut Books<'_>,
        report: &mut ConsolidateReport,
    ) -> Result<Ended, ConsolidateError> {
        // 2. Recover, check, commit what a person did.
        let Some(prepared) = self.prepare(books, report)? else {
            return Ok(nothing_to_do(books, None));
        };
        // 2, 3. The selection, and the next tree before the worker.
        let (mut survey, past) = self.survey(&prepared, prepared.head, &prepared.withheld)?;
        survey.faults.extend(self.brought_back(&prepared, &survey)?);
        report.inputs.clone_from(&survey.inputs);
        report.again = lost::again(self.place.store, &survey.inputs)?;
        let held = prepared.withheld.as_slice();
        report.held_back = plan::held_back(self.place.version, &survey.files, held);
        report.left_out.clone_from(&survey.selection.left_out);
        report.complaints = survey.faults.iter().map(Fault::complaint).collect();
        let mut to_mend = survey.secrets.clone();
        if !survey.is_idle() {
            let (left, unfit) = (&report.left_files, &report.unfit);
            to_mend.extend(mend::unfit_files(self.place.version, left, unfit));
        }
        if let Some(fault) = to_mend.first() {
            report.complaints = to_mend.iter().map(Fault::complaint).collect();
            return Ok(Ended::held_up(fault.job_error()));
        }
        // 4. Nothing new and nothing wrong?
        if survey.is_idle() {
            self.remember_idle(&prepared, &survey)?;
            return Ok(nothing_to_do(books, Some(&survey)));
        }
        // A person's word about exactly this, given or awaited?
        if let Some(outcome) = self.standing(&prepared, &survey)? {
            let mark = Some(ConsolidationEnd::Idle(taken_in(books, None)));
            return Ok(Ended { outcome, mark });
        }
        if (self.is_cancelled)() {
            return Ok(Ended::stopped());
        }
        self.produce(&prepared, &survey, &past, books, report)
    }

    /// `None` when the last answer, nothing to do, still holds.
    fn prepare(
        &self,
        books: &mut Books<'_>,
        report: &mut ConsolidateReport,
    ) -> Result<Option<Prepared>, ConsolidateError> {
        let (place, store) = (&self.place, self.place.store);
        let lock = store.lock(place.policy.lock_wait)?;
        let recovery = store.recover(&lock)?;
        report.recovered = recovery.finished.is_some() || recovery.discarded.is_some();
        report.set_aside = recovery.set_aside;
        let head = store.readiness()?;
        store.keep_staged(&lock, &self.run, place.now)?;
        stop::point("consolidate.recovered");

        let snapshot = store.snapshot(head)?;
        self.settle(books, &snapshot)?;
        let usage = books.ledger.usage(place.version)?;
        let withheld = absorb::load_withheld(place, &snapshot)?;
        let sorted = absorb::sort_out(place, &snapshot, withheld.as_slice())?;
        if sorted.taken.is_empty() && self.is_known_idle(head, &usage, &withheld)? {
            report.left_files = absorb::worth_telling(sorted.left);
            report.unfit = sorted.unfit;
            report.held_back = plan::held_back(place.version, &snapshot.files, withheld.as_slice());
            return Ok(None);
        }
        let past = past::read(store, head, place.policy.guard.baselines_counted)?;
        let hands = Hands {
            lock: &lock,
            run: &self.run,
            person: self.person,
            ids: self.ids,
        };
        let absorbed = absorb::absorb(place, &hands, head, &past)?;
        let (head, withheld) = (absorbed.head, absorbed.withheld.clone());
        tell(report, absorbed);
        report.expired = attempts::expire(store, &lock, head, place.now)?;
        Ok(Some(Prepared {
            head,
            withheld,
            usage,
        }))
    }

    /// With a new ledger every recap of the head tree counts as used now.
    fn settle(&self, books: &mut Books<'_>, snapshot: &Snapshot) -> Result<(), ConsolidateError> {
        let version = self.place.version;
        if !books.ledger.is_settled(version)? {
            let threads = survey::head_threads(self.place.store, snapshot)?;
            books.ledger.settle(version, &threads, self.place.now)?;
        }
        Ok(())
    }

    fn idle_key(
        &self,
        head: ObjectId,
        usage: &UsageByThread,
        withheld: &WithheldSet,
    ) -> Result<IdleKey, ConsolidateError> {
        let facts = IdleFacts {
            version: self.place.version,
            head,
            usage,
            modes: self.place.modes,
            withheld: withheld.as_slice(),
            policy: self.place.policy,
        };
        IdleKey::of(self.place.home, &facts)
    }

    fn is_known_idle(
        &self,
        head: ObjectId,
        usage: &UsageByThread,
        withheld: &WithheldSet,
    ) -> Result<bool, ConsolidateError> {
        if self.request.only.is_some() {
            return Ok(false);
        }
        let key = self.idle_key(head, usage, withheld)?;
        Ok(key.is_known(self.place.home, self.place.version, self.place.now))
    }

    fn remember_idle(&self, prepared: &Prepared, survey: &Survey) -> Result<(), ConsolidateError> {
        if self.request.only.is_some() {
            return Ok(());
        }
        let key = self.idle_key(prepared.head, &prepared.usage, &prepared.withheld)?;
        key.remember(self.place.home, self.place.version, survey.holds_until())
    }

    fn survey(
        &self,
        prepared: &Prepared,
        head: ObjectId,
        withheld: &WithheldSet,
    ) -> Result<(Survey, Past), ConsolidateError> {
        let only = self.request.only.as_ref();
        let usage = &prepared.usage;
        survey::survey_head(&self.place, head, withheld.as_slice(), usage, only)
    }

    /// What is withheld and stands in the memory files all the same: a reset
    /// lifts nothing, so the worker takes it out again.
    fn brought_back(
        &self,
        prepared: &Prepared,
        survey: &Survey,
    ) -> Result<Vec<Fault>, ConsolidateError> {
        let withheld = prepared.withheld.as_slice();
        let entries = judge::all_entries(&survey.outputs);
        let faults = judge::brought_back(&entries, withheld, &[]);
        if faults.is_empty() {
            return Ok(faults);
        }
        let place = &self.place;
        let own = past::person_entries(place.store, place.version, prepared.head, &entries)?;
        Ok(judge::brought_back(&entries, withheld, &own))
    }

    /// While a result over the same inputs waits, or after one was rejected,
    /// no worker is called for them; a person at the terminal may try again
    /// what was rejected.
    fn standing(
        &self,
        prepared: &Prepared,
        survey: &Survey,
    ) -> Result<Option<Outcome>, ConsolidateError> {
        let attempts = attempts::list(self.place.store, prepared.head)?;
        Ok(match attempts::standing(&attempts, &survey.inputs) {
            Some(Standing::Waits { run }) => Some(Outcome::Waits { run, is_new: false }),
            Some(Standing::Rejected { run }) if self.request.pace != Pace::ByHand => {
                Some(Outcome::HeldBack { run })
            }
            _ => None,
        })
    }

    fn produce(
        &self,
        prepared: &Prepared,
        survey: &Survey,
        past: &Past,
        books: &mut Books<'_>,
        report: &mut ConsolidateReport,
    ) -> Result<Ended, ConsolidateError> {
        let place = &self.place;
        let texts = Texts::of(place.store);
        let held = prepared.withheld.as_slice();
        let task = BenchTask::of(&survey.inputs, self.model);
        let bench = Bench::new(place, survey, past, held, prepared.head, &texts, task)?;
        // 5. Staging, with the workspace diff.
        let staging = self.stage(survey, &bench, &texts)?;
        stop::point("consolidate.staged");
        // 6, 7. The worker, and the judgement of what it left.
        let worked = self.work(survey, &bench, &staging, books)?;
        stop::point("consolidate.worked");
        let attempt = match worked {
            Worked::Judged(attempt) => attempt,
            Worked::LeaseLost => return Ok(Ended::lost()),
            Worked::Denied(denial) => return Ok(Ended::used_up(denial)),
            Worked::Failed { tokens, .. } if (self.is_cancelled)() => {
                report.tokens = tokens;
                return Ok(Ended::stopped());
            }
            Worked::Failed {
                error,
                words,
                wrote,
                tokens,
                patience_seconds,
            } => {
                let code = error.label();
                report.complaints = vec![Complaint { code, words }];
                report.tokens = tokens;
                let mut ended = Ended::failed(error, false, wrote);
                if let Some(seconds) = patience_seconds {
                    ended.mark = Some(books.hold(error, seconds));
                }
                return Ok(ended);
            }
        };
        books.has_worked = true;
        books.lift_hold();
        report.tokens = attempt.tokens;
        (report.unmatched_notes).clone_from(&attempt.report.unmatched_notes);
        let resurvey = |head, withheld: &WithheldSet| self.survey(prepared, head, withheld);
        let press = Press {
            place,
            bench: &bench,
            survey,
            resurvey: &resurvey,
            head: prepared.head,
            run: &self.run,
            worker: self.model.name(),
            is_accepted: false,
            person: self.person,
            ids: self.ids,
            clock: self.clock,
        };
        if let Some(fault) = attempt.verdict.faults.first() {
            return keep_refused(report, &press, &attempt, fault);
        }
        stop::point("consolidate.judged");
        if (self.is_cancelled)() {
            return Ok(Ended::stopped());
        }
        // 8. Is the lease still ours?
        if !books.renew() {
            return keep(report, &press, &attempt, &[], Ended::lost());
        }
        stop::point("consolidate.renewed");
        // 9. Publish, or let the person look first.
        if self.request.review {
            return keep_for_review(report, &press, &attempt, books);
        }
        publish_and_tell(&press, &attempt, books, report)
    }

    fn stage(
        &self,
        survey: &Survey,
        bench: &Bench<'_>,
        texts: &Texts<'_>,
    ) -> Result<Staging, ConsolidateError> {
        let place = &self.place;
        let diff = input::workspace_diff(&survey::worker_diff(place, texts, survey)?);
        Staging::write(
            place.home,
            place.version,
            &self.run,
            &survey.plan,
            place.store,
            &staging::Prepared {
                old: &survey.outputs,
                new: &bench.prepared(),
            },
            &diff,
        )
    }

    fn work(
        &self,
        survey: &Survey,
        bench: &Bench<'_>,
        staging: &Staging,
        books: &mut Books<'_>,
    ) -> Result<Worked, ConsolidateError> {
        let shop = Workshop {
            bench,
            staging,
            prompt: attempt::prompt(&self.place, survey, bench, staging.folder())?,
            model: self.model,
            clock: self.clock,
            is_cancelled: self.is_cancelled,
        };
        attempt::work(&shop, books)
    }
}

fn publish_and_tell(
    press: &Press<'_>,
    attempt: &Attempt,
    books: &mut Books<'_>,
    report: &mut ConsolidateReport,
) -> Result<Ended, ConsolidateError> {
    match publish::publish(press, attempt, &mut || books.renew())? {
        Printed::Published {
            published,
            absorbed,
            outputs,
            left_out,
        } => {
            for it in absorbed {
                tell(report, it);
            }
            report.complaints.clear();
            let came_back = |fault: &&Fault| matches!(fault, Fault::Withheld { .. });
            let taken_out = press.survey.faults.iter().filter(came_back);
            report.taken_out_again = taken_out.map(Fault::complaint).collect();
            report.skipped = left_out;
            report.outputs = attempt::output_changes(&press.survey.outputs, &outputs);
            Ok(Ended {
                outcome: Outcome::Done {
                    baseline: published.commit,
                },
                mark: Some(ConsolidationEnd::Done(taken_in(books, Some(press.survey)))),
            })
        }
        Printed::Refused {
            error,
            faults,
            parks,
            absorbed,
        } => {
            for it in absorbed {
                tell(report, it);
            }
            let ended = Ended::failed(error, parks, true);
            keep(report, press, attempt, &faults, ended)
        }
        Printed::LeaseLost => keep(report, press, attempt, &[], Ended::lost()),
    }
}

fn keep_refused(
    report: &mut ConsolidateReport,
    press: &Press<'_>,
    attempt: &Attempt,
    first: &Fault,
) -> Result<Ended, ConsolidateError> {
    let faults = &attempt.verdict.faults;
    let parks = faults.iter().any(Fault::parks);
    let ended = Ended::failed(first.job_error(), parks, true);
    keep(report, press, attempt, faults, ended)
}

/// Keeps a good result until a person has decided about it.
fn keep_for_review(
    report: &mut ConsolidateReport,
    press: &Press<'_>,
    attempt: &Attempt,
    books: &Books<'_>,
) -> Result<Ended, ConsolidateError> {
    let state = AttemptState::Waiting;
    report.attempt = Some(publish::keep(press, attempt, state, &[], &[])?);
    report.complaints.clear();
    report.outputs = attempt::output_changes(&press.survey.outputs, &attempt.outputs);
    let outcome = Outcome::Waits {
        run: press.run.clone(),
        is_new: true,
    };
    // The cooldown begins: a result was paid for.
    let mark = Some(ConsolidationEnd::Done(taken_in(books, None)));
    Ok(Ended { outcome, mark })
}

/// Keeps an attempt beside main, and says why it was not published.
fn keep(
    report: &mut ConsolidateReport,
    press: &Press<'_>,
    attempt: &Attempt,
    faults: &[Fault],
    ended: Ended,
) -> Result<Ended, ConsolidateError> {
    report.complaints = faults.iter().map(Fault::complaint).collect();
    let mut complaints = report.complaints.clone();
    let (state, error) = match &ended.outcome {
        Outcome::Parked { error } => (AttemptState::Parked, Some(*error)),
        Outcome::FailedAfter { error } | Outcome::FailedBefore { error } => {
            (AttemptState::Refused, Some(*error))
        }
        _ => (AttemptState::Refused, None),
    };
    if complaints.is_empty() {
        complaints.push(match error {
            Some(error) => Complaint {
                code: error.label(),
                words: Redacted::literal(error.words()),
            },
            None => Complaint {
                code: "lease-lost",
                words: Redacted::literal("another process took the job over meanwhile"),
            },
        });
    }
    report.attempt = Some(publish::keep(press, attempt, state, &complaints, faults)?);
    Ok(ended)
}

fn tell(report: &mut ConsolidateReport, absorbed: Absorbed) {
    report.edit = absorbed.edit.or(report.edit);
    report.left_files = absorb::worth_telling(absorbed.left);
    report.unfit = absorbed.unfit;
    report.reverts.extend(absorbed.reverts);
}

fn nothing_to_do(books: &Books<'_>, survey: Option<&Survey>) -> Ended {
    Ended {
        outcome: Outcome::NothingToDo,
        mark: Some(ConsolidationEnd::Idle(taken_in(books, survey))),
    }
}

fn taken_in(books: &Books<'_>, survey: Option<&Survey>) -> TakenIn {
    let chosen = survey.map_or(&[][..], |survey| &survey.selection.chosen);
    let newest = chosen.iter().map(|it| it.recap.header.updated_at).max();
    let known = books.lease.input_watermark;
    TakenIn {
        watermark: newest.map_or(known, |newest| newest.max(known)),
        selected: chosen.len(),
    }
}
