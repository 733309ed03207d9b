//! One attempt: the worker in staging, and the judgement of what it left.
//!
//! Steps 6 and 7 of [`mod@super::run`]. Nothing here touches the memory folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::consolidate::absorb::Place;
use crate::consolidate::coverage::FreshRecap;
use crate::consolidate::guard::GuardLimits;
use crate::consolidate::input::{self, Prompt, PromptFacts};
use crate::consolidate::judge::{self, Fault, FreshNote, JudgeFacts, OutputFile, Outputs, Verdict};
use crate::consolidate::past::{self, Past};
use crate::consolidate::plan;
use crate::consolidate::staging::Staging;
use crate::consolidate::survey::{self, Survey, Texts};
use crate::consolidate::worker::{self, Office, Rhythm, WorkerEnd};
use crate::consolidate::{ConsolidateError, OutputChange};
use crate::domain::entry::{Entry, Rewriting};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::note::NoteKind;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::text::Redacted;
use crate::domain::withheld::Withheld;
use crate::ledger::{Denial, JobError};
use crate::model::offline::consolidate::orders::{self, Carried, OrderInputs};
use crate::model::offline::consolidate::{Before, NoteInput, RemovedNote};
use crate::model::{
    ChangedInput, ConsolidationRequest, Meter, Model, ModelError, Skipped, Tokens, WorkerReport,
};
use crate::store::diff::{DiffSide, diff_file};
use crate::store::message::{ChangeKind, Input};
use crate::store::{NewFile, TreeChange};
use crate::sys::clock::Clock;
use crate::sys::fs;
use crate::text::note;
use crate::text::redact;

/// First line, headings and profile of a summary whose entries are all a
/// person's, in bytes.
const SUMMARY_FRAME_BYTES: usize = 1_500;

/// Calls of the worker in one attempt: the work, and one chance to mend it.
const CALLS_MAX: usize = 2;

/// Largest prompt template of a person's own, in bytes.
const TEMPLATE_BYTES_MAX: u64 = 256 * 1024;

/// What the judge must know besides a result; the same for every result that
/// grows from one head.
pub(crate) struct Bench<'a> {
    pub(crate) place: &'a Place<'a>,
    pub(crate) survey: &'a Survey,
    pub(crate) past: &'a Past,
    pub(crate) withheld: &'a [Withheld],
    pub(crate) limits: &'a GuardLimits,
    person_entries: Vec<Entry>,
    rewritings: Vec<Rewriting>,
    old_recaps: BTreeMap<ThreadId, String>,
    threads: BTreeSet<ThreadId>,
    fresh_threads: BTreeSet<ThreadId>,
    fresh_recaps: Vec<FreshRecap>,
    fresh_notes: Vec<FreshNote>,
    gone_notes: Vec<String>,
    /// The worker applies notes by itself, to summary and handbook.
    applies_notes: bool,
    carried: Carried,
}

/// Which inputs a result answers for, and who applies notes.
#[derive(Clone, Copy)]
pub(crate) struct BenchTask<'a> {
    /// What the worker was given: what came later is for the next pass.
    pub(crate) inputs: &'a [Input],
    /// The worker applies notes by itself, to summary and handbook.
    pub(crate) applies_notes: bool,
}

impl<'a> BenchTask<'a> {
    /// All these inputs, for this worker.
    pub(crate) fn of(inputs: &'a [Input], model: &dyn Model) -> Self {
        Self {
            inputs,
            applies_notes: model.applies_notes(),
        }
    }

    fn has(&self, input: &Input) -> bool {
        self.has_version(&input.path, input.blob)
    }

    fn has_version(&self, path: &TreePath, blob: ObjectId) -> bool {
        let mut inputs = self.inputs.iter();
        inputs.any(|it| it.path == *path && it.blob == blob)
    }

    fn has_path(&self, path: &TreePath) -> bool {
        self.inputs.iter().any(|it| it.path == *path)
    }
}

impl<'a> Bench<'a> {
    /// Gathers what the inputs of this pass say.
    ///
    /// # Errors
    ///
    /// When a note or the history cannot be read.
    pub(crate) fn new(
        place: &'a Place<'a>,
        survey: &'a Survey,
        past: &'a Past,
        withheld: &'a [Withheld],
        head: ObjectId,
        texts: &Texts<'_>,
        task: BenchTask<'_>,
    ) -> Result<Self, ConsolidateError> {
        let current = judge::all_entries(&survey.outputs);
        let own = past::person_words(place.store, place.version, head, &current)?;
        let mut bench = Self {
            place,
            survey,
            past,
            withheld,
            limits: &place.policy.guard,
            person_entries: own.entries,
            rewritings: own.rewritings,
            old_recaps: survey.old_recaps(),
            threads: survey.threads(),
            fresh_threads: BTreeSet::new(),
            fresh_recaps: Vec::new(),
            fresh_notes: Vec::new(),
            gone_notes: Vec::new(),
            applies_notes: task.applies_notes,
            carried: Carried::default(),
        };
        for input in survey.inputs.iter().filter(|input| task.has(input)) {
            let is_gone = input.change == ChangeKind::Deleted;
            match input.path.kind() {
                FileKind::Recap if !is_gone => {
                    let Some(thread_id) = input.thread_id.clone() else {
                        continue;
                    };
                    bench.fresh_threads.insert(thread_id.clone());
                    let path = input.path.clone();
                    bench.fresh_recaps.push(FreshRecap { path, thread_id });
                }
                FileKind::Note if is_gone => bench.gone_notes.push(texts.get(input.blob)?),
                FileKind::Note => {
                    let text = texts.get(input.blob)?;
                    bench.fresh_notes.extend(fresh_note(&input.path, &text));
                }
                _ => {}
            }
        }
        // What an edited note said before supports nothing any more.
        for before in &survey.before {
            let is_of_task = task.has_path(&before.path);
            if let (FileKind::Note, false, true, Some(old)) = (
                before.path.kind(),
                before.is_removed,
                is_of_task,
                &before.old,
            ) {
                bench.gone_notes.push(old.unredacted().to_owned());
            }
        }
        bench.carried = bench.carry_out(texts, task)?;
        Ok(bench)
    }

    /// A new or edited note asks to forget something.
    pub(crate) fn has_forget_note(&self) -> bool {
        let forgets = |note: &FreshNote| note.asking.kind() == NoteKind::Forget;
        self.fresh_notes.iter().any(forgets)
    }

    /// What notes ask for, done to the memory files of the head.
    fn carry_out(
        &self,
        texts: &Texts<'_>,
        task: BenchTask<'_>,
    ) -> Result<Carried, ConsolidateError> {
        let survey = self.survey;
        let changed: BTreeMap<&TreePath, &ChangedInput> =
            survey.before.iter().map(|it| (&it.path, it)).collect();
        let (mut notes, mut removed) = (Vec::new(), Vec::new());
        for path in survey.shown_paths() {
            let Some(planned) = survey.plan.files.get(&path) else {
                continue;
            };
            if path.kind() != FileKind::Note {
                continue;
            }
            let text = survey::planned_text(texts, planned)?;
            let Ok(note) = note::parse(&path, &text) else {
                continue;
            };
            let old = |it: &ChangedInput| {
                let old = it.old.as_ref()?;
                note::parse(&path, old.unredacted()).ok()
            };
            let known = match changed.get(&path) {
                None => Some((note, Before::Same)),
                // It came while the worker worked, or changed: the next pass's.
                Some(it) if !task.has_version(&path, planned.blob()) => {
                    old(it).map(|old| (old, Before::Same))
                }
                Some(it) if it.old.is_none() => Some((note, Before::Absent)),
                Some(it) => Some((note, Before::Other(old(it)))),
            };
            notes.extend(known.map(|(note, before)| NoteInput { note, before }));
        }
        for it in survey.before.iter().filter(|it| it.is_removed) {
            let is_of_task = task.has_path(&it.path);
            if let (FileKind::Note, true, Some(old)) = (it.path.kind(), is_of_task, &it.old) {
                removed.push(RemovedNote {
                    note: note::parse(&it.path, old.unredacted()).ok(),
                });
            }
        }
        let files = survey.outputs.iter();
        Ok(orders::carry_out(&OrderInputs {
            version: self.place.version,
            files: files
                .map(|(path, file)| (path.clone(), file.text.clone()))
                .collect(),
            notes: &notes,
            removed: &removed,
            person_entries: &self.person_entries,
            withheld: self.withheld,
            summary_bytes_max: self.summary_bytes_max(),
            only_skills: self.applies_notes,
        }))
    }

    /// The memory files that the worker finds in staging.
    pub(crate) fn prepared(&self) -> Outputs {
        judge::with_texts(&self.survey.outputs, &self.carried.files)
    }

    /// For another bench of the same kind.
    pub(crate) const fn applies_notes(&self) -> bool {
        self.applies_notes
    }

    /// The budget of a summary, or what the person's own entries need when
    /// they let them grow: those are not the worker's to drop, and memory must
    /// not freeze over them.
    fn summary_bytes_max(&self) -> usize {
        let own = self.person_entries.iter();
        let own = own.filter(|entry| entry.path.kind() == FileKind::Summary);
        let own: usize = own.map(|entry| entry.bytes.len()).sum();
        (self.place.policy.summary_bytes_max).max(own.saturating_add(SUMMARY_FRAME_BYTES))
    }

    pub(crate) fn judge(&self, new: &Outputs, report: &WorkerReport) -> Verdict {
        judge::judge(&JudgeFacts {
            version: self.place.version,
            old: &self.survey.outputs,
            new,
            beside: self.survey.beside(self.summary_bytes_max()),
            old_recaps: &self.old_recaps,
            threads: &self.threads,
            fresh_threads: &self.fresh_threads,
            fresh_notes: &self.fresh_notes,
            gone_notes: &self.gone_notes,
            carried: &self.carried,
            is_by_code: !self.applies_notes,
            fresh_recaps: &self.fresh_recaps,
            retired: &report.retired,
            skipped: &report.skipped,
            withheld: self.withheld,
            person_entries: &self.person_entries,
            theirs: &self.survey.theirs,
            earlier: &self.past.earlier,
            limits: self.limits,
            has_inputs: self.survey.has_sources(),
        })
    }
}

fn fresh_note(path: &TreePath, text: &str) -> Option<FreshNote> {
    let note = note::parse(path, text).ok()?;
    Some(FreshNote::of(&note))
}

impl Bench<'_> {
    /// What code did for notes is reported as if the worker had done it: what
    /// was forgotten, and which notes match nothing.
    fn add_orders(&self, report: &mut WorkerReport, verdict: &Verdict) {
        let forgotten = self.carried.forgotten.iter();
        report.forgotten.extend(forgotten.cloned());
        if self.applies_notes {
            return;
        }
        let is_matched = |path: &TreePath| {
            let mut notes = self.fresh_notes.iter().filter(|note| note.path == *path);
            notes.any(|note| {
                let mut losses = verdict.losses.iter();
                losses.any(|loss| note.asks_about(&loss.entry.text))
            })
        };
        let unmatched = self.carried.unmatched.iter();
        report.unmatched_notes = unmatched.filter(|it| !is_matched(it)).cloned().collect();
    }
}

/// A result that was judged.
pub(crate) struct Attempt {
    pub(crate) outputs: Outputs,
    pub(crate) report: WorkerReport,
    pub(crate) verdict: Verdict,
    /// The template that the worker was asked by, if it read the prompt.
    pub(crate) prompt: Option<Redacted>,
    /// Of all calls.
    pub(crate) tokens: Tokens,
}

/// How an attempt ended.
pub(crate) enum Worked {
    Judged(Box<Attempt>),
    /// There is nothing to judge; `wrote` says whether staging was touched.
    Failed {
        error: JobError,
        words: Redacted,
        wrote: bool,
        tokens: Tokens,
        /// How long the service wants not to be asked, if it said so.
        patience_seconds: Option<u64>,
    },
    /// The budgets do not allow the first call that it wanted to make.
    Denied(Denial),
    LeaseLost,
}

/// What a call of the worker needs.
pub(crate) struct Workshop<'a> {
    pub(crate) bench: &'a Bench<'a>,
    pub(crate) staging: &'a Staging,
    pub(crate) prompt: Prompt,
    pub(crate) model: &'a dyn Model,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// The prompt of a worker in `staging`: ours, or the person's own template.
///
/// # Errors
///
/// When the person's template cannot be read or rendered.
pub(crate) fn prompt(
    place: &Place<'_>,
    survey: &Survey,
    bench: &Bench<'_>,
    staging: &Path,
) -> Result<Prompt, ConsolidateError> {
    let file = format!("consolidate-{}.md", place.version);
    let template = place.home.prompts().join(file);
    let own = fs::read_text_if_any(&template, TEMPLATE_BYTES_MAX);
    let own = own.map_err(ConsolidateError::Staging)?;
    let facts = PromptFacts {
        version: place.version,
        mode: survey.mode(),
        resets_summary: survey.has_foreign_summary(),
        staging: &staging.to_string_lossy(),
        paths: &survey.shown_paths(),
        person_entries: &bench.person_entries,
        orders: &bench.carried.told,
        summary_bytes_max: place.policy.summary_bytes_max,
        template: own.as_deref(),
    };
    input::prompt(&facts).map_err(|error| ConsolidateError::Prompt {
        template,
        problem: error.to_string(),
    })
}

/// Runs the worker, judges what it left, and lets it mend that once.
///
/// # Errors
///
/// When staging cannot be read back.
pub(crate) fn work(
    shop: &Workshop<'_>,
    office: &mut dyn Office,
) -> Result<Worked, ConsolidateError> {
    let mut diagnostics: Option<Vec<String>> = None;
    let mut tokens = Tokens::default();
    let (mut retired, mut skipped) = (Vec::new(), Vec::<Skipped>::new());
    for call_number in 1..=CALLS_MAX {
        let mut report = match call(shop, diagnostics.as_deref(), office) {
            WorkerEnd::Reported(report) => report,
            WorkerEnd::LeaseLost => return Ok(Worked::LeaseLost),
            WorkerEnd::Denied(denial) if call_number == 1 => return Ok(Worked::Denied(denial)),
            // What was begun and paid for is an attempt that failed: given
            // back as untried, every pass would begin it, and pay, again.
            WorkerEnd::Denied(denial) | WorkerEnd::UsedUp(denial) => {
                return failed(shop, &limit(denial.limit()), tokens);
            }
            WorkerEnd::TimeUp => {
                return failed(shop, &limit("of time (`worker.seconds_max`)"), tokens);
            }
            WorkerEnd::Failed(error) => return failed(shop, &error, tokens),
        };
        tokens = tokens.plus(report.tokens);
        retired.append(&mut report.retired);
        report.retired.clone_from(&retired);
        skipped.append(&mut report.skipped);
        report.skipped.clone_from(&skipped);
        let attempt = look(shop, report, tokens)?;
        let may_mend = !attempt.verdict.faults.iter().any(Fault::parks);
        if attempt.verdict.is_accepted() || call_number == CALLS_MAX || !may_mend {
            return Ok(Worked::Judged(Box::new(attempt)));
        }
        diagnostics = Some(attempt.verdict.faults.iter().map(Fault::words).collect());
    }
    unreachable!("the last call returns")
}

fn call(shop: &Workshop<'_>, diagnostics: Option<&[String]>, office: &mut dyn Office) -> WorkerEnd {
    let (bench, policy) = (shop.bench, shop.bench.place.policy);
    let rhythm = Rhythm {
        renew_every: policy.renew_every,
        time_max: policy.worker_time_max,
    };
    let ask = |meter: &dyn Meter| {
        shop.model.consolidate(&ConsolidationRequest {
            version: bench.place.version,
            staging: shop.staging.folder(),
            prompt: shop.prompt.text.clone(),
            changes: &bench.survey.before,
            withheld: bench.withheld,
            person_entries: &bench.person_entries,
            rewritings: &bench.rewritings,
            summary_bytes_max: policy.summary_bytes_max,
            diagnostics,
            meter,
        })
    };
    worker::drive(shop.clock, rhythm, shop.is_cancelled, ask, office)
}

fn look(
    shop: &Workshop<'_>,
    mut report: WorkerReport,
    tokens: Tokens,
) -> Result<Attempt, ConsolidateError> {
    let bench = shop.bench;
    let seen = shop.staging.read_back(&bench.survey.plan)?;
    let (outputs, mut faults) = judge::touched(bench.place.version, &bench.survey.plan, &seen);
    if !report.finished {
        faults.insert(0, Fault::NotFinished);
    }
    let is_flood = |fault: &Fault| matches!(fault, Fault::Flood { .. });
    // What was not looked at cannot be judged.
    let mut verdict = if faults.iter().any(is_flood) {
        Verdict::default()
    } else {
        bench.judge(&outputs, &report)
    };
    faults.append(&mut verdict.faults);
    verdict.faults = faults;
    bench.add_orders(&mut report, &verdict);
    Ok(Attempt {
        prompt: (report.has_read_prompt).then(|| shop.prompt.identity.clone()),
        outputs,
        report,
        verdict,
        tokens,
    })
}

const fn limit(limit: &'static str) -> ModelError {
    ModelError::LimitReached { limit }
}

fn failed(
    shop: &Workshop<'_>,
    error: &ModelError,
    tokens: Tokens,
) -> Result<Worked, ConsolidateError> {
    let bench = shop.bench;
    let seen = shop.staging.read_back(&bench.survey.plan)?;
    let (outputs, faults) = judge::touched(bench.place.version, &bench.survey.plan, &seen);
    Ok(Worked::Failed {
        error: job_error(error),
        words: redact::redact_str(&error.to_string()),
        wrote: outputs != bench.prepared() || !faults.is_empty(),
        tokens,
        patience_seconds: error.patience_seconds(),
    })
}

const fn job_error(error: &ModelError) -> JobError {
    match error {
        ModelError::Unreachable { .. }
        | ModelError::RateLimited { .. }
        | ModelError::TimedOut { .. } => JobError::ModelUnavailable,
        ModelError::Refused { .. } => JobError::ModelRefused,
        ModelError::TooLong | ModelError::Unusable { .. } => JobError::ReplyUnusable,
        ModelError::LimitReached { .. } => JobError::LimitReached,
        ModelError::Cancelled => JobError::WorkerUnfinished,
        ModelError::Files(_) => JobError::StagingFailed,
    }
}

/// How a tree with these outputs differs from the head tree of the survey.
pub(crate) fn changes(survey: &Survey, new: &Outputs) -> Vec<TreeChange> {
    let mut changes = plan::changes(&survey.plan, &survey.files);
    let paths: BTreeSet<&TreePath> = survey.outputs.keys().chain(new.keys()).collect();
    for path in paths {
        let (old, new) = (survey.outputs.get(path), new.get(path));
        if old == new {
            continue;
        }
        let file = new.map(|file| NewFile {
            // The judge lets no secret through: the same words.
            content: redact::redact_str(&file.text),
            executable: file.executable,
        });
        let path = path.clone();
        changes.push(TreeChange { path, file });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// Lines that came and went, per output file that changed.
pub(crate) fn output_changes(old: &Outputs, new: &Outputs) -> Vec<OutputChange> {
    let paths: BTreeSet<&TreePath> = old.keys().chain(new.keys()).collect();
    let mut changes = Vec::new();
    for path in paths {
        let (old, new) = (old.get(path).map(side), new.get(path).map(side));
        changes.extend(diff_file(path, old, new).map(|diff| OutputChange {
            path: path.clone(),
            kind: diff.kind,
            lines_added: diff.lines_added,
            lines_removed: diff.lines_removed,
        }));
    }
    changes
}

const fn side(file: &OutputFile) -> DiffSide<'_> {
    DiffSide {
        content: file.text.as_bytes(),
        executable: file.executable,
    }
}
