//! What is there to do: the selection, the planned tree and its news.
//!
//! Reads files and blobs, writes nothing; `run` and `pending` both ask it.
//!
//! One file because the survey of the head and that of a kept result gather
//! the same things.

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::ConsolidateError;
use crate::consolidate::absorb::Place;
use crate::consolidate::edits::kind_in;
use crate::consolidate::judge::{self, Beside, Fault, OutputFile, Outputs};
use crate::consolidate::mend;
use crate::consolidate::past::{self, Past};
use crate::consolidate::plan::{self, Before, Plan, PlanFacts, Planned};
use crate::consolidate::select::{self, Candidate, SelectPolicy, Selection};
use crate::consolidate::theirs::{self, Sorted, Theirs, TheirsFacts};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::path::{FileKind, RECAPS, SUMMARY, TreePath};
use crate::domain::recap::Recap;
use crate::domain::session::MemoryMode;
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::Withheld;
use crate::ledger::UsageByThread;
use crate::model::{ChangedInput, WorkerMode};
use crate::recaps::Extractions;
use crate::store::diff::{DiffSide, FileDiff, diff_file};
use crate::store::history::Consumption;
use crate::store::merge::Merged;
use crate::store::message::{ChangeKind, Input};
use crate::store::{Blob, Snapshot, Store};
use crate::text::recap;
use crate::text::redact;
use crate::text::strip;

/// Reference 3.4, for both versions.
const SUMMARY_FIRST_LINE: &str = "v1";

/// Where the text of a blob comes from: the store, or the work tree of a
/// person's edit that is not committed yet.
pub(crate) struct Texts<'a> {
    pub(crate) store: &'a Store,
    pub(crate) uncommitted: BTreeMap<ObjectId, String>,
}

impl<'a> Texts<'a> {
    /// Of committed blobs only.
    pub(crate) const fn of(store: &'a Store) -> Self {
        Self {
            store,
            uncommitted: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&self, id: ObjectId) -> Result<String, ConsolidateError> {
        if let Some(text) = self.uncommitted.get(&id) {
            return Ok(text.clone());
        }
        let bytes = self.store.blob(id)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// Surveys a commit: reads its tree and history, then [`survey`].
///
/// # Errors
///
/// As [`survey`].
pub(crate) fn survey_head(
    place: &Place<'_>,
    head: ObjectId,
    withheld: &[Withheld],
    usage: &UsageByThread,
    only: Option<&BTreeSet<ThreadId>>,
) -> Result<(Survey, Past), ConsolidateError> {
    let snapshot = place.store.snapshot(head)?;
    let past = past::read(place.store, head, place.policy.guard.baselines_counted)?;
    let consumption = place.store.consumption(head)?;
    let survey = survey(
        place,
        &Ground {
            texts: &Texts::of(place.store),
            files: &snapshot.files,
            past: &past,
            head,
            consumption: &consumption,
            usage,
            withheld,
            only,
        },
    )?;
    Ok((survey, past))
}

/// What is known before anything is decided.
pub(crate) struct Ground<'a> {
    pub(crate) texts: &'a Texts<'a>,
    /// The head tree, a person's uncommitted edits included.
    pub(crate) files: &'a BTreeMap<TreePath, Blob>,
    pub(crate) past: &'a Past,
    /// The commit that it all rests on.
    pub(crate) head: ObjectId,
    pub(crate) consumption: &'a Consumption,
    pub(crate) usage: &'a UsageByThread,
    pub(crate) withheld: &'a [Withheld],
    pub(crate) only: Option<&'a BTreeSet<ThreadId>>,
}

/// What [`survey`] found.
pub(crate) struct Survey {
    /// The head tree it rests on.
    pub(crate) files: BTreeMap<TreePath, Blob>,
    pub(crate) base: BTreeMap<TreePath, Blob>,
    pub(crate) selection: Selection,
    pub(crate) plan: Plan,
    /// What no baseline has consumed.
    pub(crate) inputs: Vec<Input>,
    /// The consumed version of those that changed or went.
    pub(crate) before: Vec<ChangedInput>,
    /// The memory files at the head.
    pub(crate) outputs: Outputs,
    /// What is wrong with them and not a person's.
    pub(crate) faults: Vec<Fault>,
    /// What is wrong with a person's lines.
    pub(crate) their_faults: Vec<Fault>,
    pub(crate) theirs: Theirs,
    /// Secrets in them that a person committed.
    pub(crate) secrets: Vec<Fault>,
    /// Text of every recap of the planned tree.
    pub(crate) recaps: BTreeMap<TreePath, String>,
    /// Of a kept attempt: inputs that must not take part any more.
    pub(crate) kept_out: Vec<Fault>,
    /// Its notes and resources.
    others: BTreeSet<TreePath>,
}

impl Survey {
    /// The files beside which memory files are valid or not.
    pub(crate) fn beside(&self, summary_bytes_max: usize) -> Beside<'_> {
        Beside {
            recaps: &self.recaps,
            others: &self.others,
            summary_bytes_max,
        }
    }

    /// No input changed and the outputs are valid.
    pub(crate) fn is_idle(&self) -> bool {
        !plan::has_work(&self.plan, &self.inputs, &self.files) && self.faults.is_empty()
    }

    /// When the first input leaves by age.
    pub(crate) fn holds_until(&self) -> Option<Timestamp> {
        let ends = [self.selection.holds_until, self.plan.holds_until];
        ends.into_iter().flatten().min()
    }

    fn summary(&self) -> Option<&str> {
        let is_summary = |(path, _): &(&TreePath, &OutputFile)| path.as_str() == SUMMARY;
        let (_, file) = self.outputs.iter().find(is_summary)?;
        (!file.text.trim().is_empty()).then_some(file.text.as_str())
    }

    /// Whether there is something to bring up to date.
    pub(crate) fn mode(&self) -> WorkerMode {
        match self.summary() {
            Some(_) => WorkerMode::Incremental,
            None => WorkerMode::Init,
        }
    }

    /// The summary is not in the format of this program.
    pub(crate) fn has_foreign_summary(&self) -> bool {
        (self.summary()).is_some_and(|text| text.lines().next() != Some(SUMMARY_FIRST_LINE))
    }

    /// Paths of what a worker sees.
    pub(crate) fn shown_paths(&self) -> Vec<TreePath> {
        let is_shown = |path: &&TreePath| !self.plan.hidden.contains(*path);
        self.plan.files.keys().filter(is_shown).cloned().collect()
    }

    /// The consumed version of recaps that changed, by thread.
    pub(crate) fn old_recaps(&self) -> BTreeMap<ThreadId, String> {
        let threads: BTreeMap<&TreePath, &ThreadId> = (self.inputs.iter())
            .filter_map(|input| Some((&input.path, input.thread_id.as_ref()?)))
            .collect();
        (self.before.iter())
            .filter_map(|before| {
                let thread_id = (*threads.get(&before.path)?).clone();
                let old = before.old.as_ref()?;
                Some((thread_id, old.unredacted().to_owned()))
            })
            .collect()
    }

    /// Threads with a recap in the planned tree.
    pub(crate) fn threads(&self) -> BTreeSet<ThreadId> {
        let chosen = self.selection.chosen.iter();
        chosen.map(|it| it.recap.header.thread_id.clone()).collect()
    }

    /// Whether there is anything to remember.
    pub(crate) fn has_sources(&self) -> bool {
        !self.recaps.is_empty() || !self.others.is_empty()
    }
}

/// Surveys a memory folder.
///
/// # Errors
///
/// When recaps, files or Git's data cannot be read.
pub(crate) fn survey(place: &Place<'_>, ground: &Ground<'_>) -> Result<Survey, ConsolidateError> {
    let candidates = candidates(place, ground)?;
    let policy = SelectPolicy {
        recaps_max: place.policy.recaps_max,
        unused_days_max: place.policy.unused_days_max,
        only: ground.only.cloned(),
    };
    let selection = select::select(candidates, ground.withheld, &policy, place.now);
    let plan = plan::plan(&PlanFacts {
        version: place.version,
        head: ground.files,
        chosen: &selection.chosen,
        withheld: ground.withheld,
        now: place.now,
    });
    let base = last_published(place, ground.past)?;
    let before = Before {
        version: place.version,
        base: &base,
        consumption: ground.consumption,
    };
    let mut inputs = plan::inputs(&plan, &before);
    name_threads(&mut inputs, &selection);
    let changed = changed_inputs(ground.texts, &inputs, &before)?;
    let recaps = recap_texts(ground.texts, &plan)?;
    let outputs = outputs_of(place.version, ground.texts, ground.files)?;
    let secrets = mend::secrets(&outputs, |path| {
        let old = base.get(path).map(|blob| ground.texts.get(blob.id));
        old.transpose()
    })?;
    let mut survey = Survey {
        files: ground.files.clone(),
        base,
        selection,
        inputs,
        before: changed,
        others: others(place, &plan),
        plan,
        outputs,
        faults: Vec::new(),
        their_faults: Vec::new(),
        theirs: Theirs::default(),
        secrets,
        recaps,
        kept_out: Vec::new(),
    };
    let sorted = sorted_errors(place, ground, &survey)?;
    survey.faults = sorted.workers;
    survey.their_faults = sorted.persons;
    survey.theirs = sorted.theirs;
    Ok(survey)
}

/// What is wrong with the memory files at the head, by who has to mend it.
fn sorted_errors(
    place: &Place<'_>,
    ground: &Ground<'_>,
    survey: &Survey,
) -> Result<Sorted, ConsolidateError> {
    // A summary over its budget is a person's doing, since none is published,
    // and no reason to call a worker when nothing else changed.
    let (version, beside) = (place.version, survey.beside(usize::MAX));
    let errors = judge::errors_in_outputs(version, &survey.outputs, beside, false);
    if errors.is_empty() {
        return Ok(Sorted::default());
    }
    let mut recaps = BTreeMap::new();
    let mut others = BTreeSet::new();
    for (path, blob) in &survey.base {
        match kind_in(version, path) {
            FileKind::Recap => {
                recaps.insert(path.clone(), ground.texts.get(blob.id)?);
            }
            FileKind::Note | FileKind::Resource => {
                others.insert(path.clone());
            }
            _ => {}
        }
    }
    let base = outputs_of(version, ground.texts, &survey.base)?;
    let beside = Beside {
        recaps: &recaps,
        others: &others,
        summary_bytes_max: usize::MAX,
    };
    let base_errors = judge::errors_in_outputs(version, &base, beside, false);
    let entries = judge::all_entries(&survey.outputs);
    let own = past::person_entries(place.store, version, ground.head, &entries)?;
    let facts = TheirsFacts {
        outputs: &survey.outputs,
        base: &base,
        base_errors: &base_errors,
        own: &own,
    };
    Ok(theirs::sort(errors, &facts))
}

/// A kept result on a certain head.
pub(crate) struct Offered<'a> {
    /// What it folded in.
    pub(crate) inputs: &'a [Input],
    /// How the head changes by it.
    pub(crate) merged: &'a Merged,
}

/// Surveys the tree that a kept result makes of `head`: the sources beside its
/// memory files are those that it rests on, whatever else is pending by now.
///
/// # Errors
///
/// As [`survey`].
pub(crate) fn survey_offered(
    place: &Place<'_>,
    head: ObjectId,
    withheld: &[Withheld],
    offered: &Offered<'_>,
) -> Result<(Survey, Past), ConsolidateError> {
    let files = place.store.snapshot(head)?.files;
    let past = past::read(place.store, head, place.policy.guard.baselines_counted)?;
    let ground = Ground {
        texts: &Texts::of(place.store),
        files: &files,
        past: &past,
        head,
        consumption: &place.store.consumption(head)?,
        usage: &BTreeMap::new(),
        withheld,
        only: None,
    };
    let plan = plan::offered(place.version, &files, offered.merged, withheld);
    let base = last_published(place, &past)?;
    let before = Before {
        version: place.version,
        base: &base,
        consumption: ground.consumption,
    };
    let inputs = offered.inputs.to_vec();
    let before = changed_inputs(ground.texts, &inputs, &before)?;
    let recaps = recap_texts(ground.texts, &plan)?;
    let selection = selection_of(place, &ground, &recaps);
    let kept_out = kept_out(&inputs, &selection, &plan);
    let outputs = outputs_of(place.version, ground.texts, ground.files)?;
    let mut survey = Survey {
        base,
        selection,
        inputs,
        before,
        others: others(place, &plan),
        plan,
        outputs,
        faults: Vec::new(),
        their_faults: Vec::new(),
        theirs: Theirs::default(),
        secrets: Vec::new(),
        recaps,
        kept_out,
        files: files.clone(),
    };
    survey.theirs = sorted_errors(place, &ground, &survey)?.theirs;
    Ok((survey, past))
}

/// The recaps of a tree that is given: all that may take part are chosen.
fn selection_of(
    place: &Place<'_>,
    ground: &Ground<'_>,
    recaps: &BTreeMap<TreePath, String>,
) -> Selection {
    const DAYS: i64 = 36_500;
    let parsed = recaps.iter().filter_map(|(path, text)| {
        let recap = recap::parse(path.name(), text).ok()?;
        let copy = redact::redact_str(text);
        Some(candidate(place, ground, recap, path.clone(), copy))
    });
    let policy = SelectPolicy {
        recaps_max: usize::MAX,
        unused_days_max: DAYS,
        only: None,
    };
    select::select(parsed.collect(), ground.withheld, &policy, place.now)
}

/// Inputs of a kept result that a person withholds or keeps out by now.
fn kept_out(inputs: &[Input], selection: &Selection, plan: &Plan) -> Vec<Fault> {
    let is_out = |input: &&Input| {
        let thread_id = input.thread_id.as_ref();
        let reason = thread_id.and_then(|id| selection.left_out.get(id));
        input.change != ChangeKind::Deleted
            && (plan.hidden.contains(&input.path) || reason.is_some())
    };
    let out = inputs.iter().filter(is_out);
    out.map(|input| Fault::KeptOut {
        path: input.path.clone(),
    })
    .collect()
}

/// Notes and resources that a worker sees.
fn others(place: &Place<'_>, plan: &Plan) -> BTreeSet<TreePath> {
    let is_other = |path: &&TreePath| {
        let kind = kind_in(place.version, path);
        let is_source = matches!(kind, FileKind::Note | FileKind::Resource);
        is_source && !plan.hidden.contains(*path)
    };
    plan.files.keys().filter(is_other).cloned().collect()
}

/// Every recap that might take part: what the extractions hold, and what only
/// the head tree holds (the extractions folder may have been deleted).
fn candidates(place: &Place<'_>, ground: &Ground<'_>) -> Result<Vec<Candidate>, ConsolidateError> {
    let loaded = Extractions::open(place.home.root(), place.version).load_all()?;
    let (mut found, mut shadowed) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for stored in loaded.recaps.values() {
        let name = stored.path.file_name().and_then(|name| name.to_str());
        let Some(path) = name.and_then(|name| TreePath::parse(&format!("{RECAPS}/{name}"))) else {
            continue;
        };
        let recap = strip::forgotten(&stored.recap, ground.withheld)
            .unwrap_or_else(|| stored.recap.clone());
        let copy = recap::print_memory_copy(&recap);
        let stored = candidate(place, ground, recap, path, copy);
        let head = ground.files.get(&stored.path);
        let is_other = head.is_some_and(|head| head.id != stored.blob);
        if is_other && is_withheld(ground, &stored) {
            // A later version was taken back: the one of before stays.
            shadowed.push(stored);
            continue;
        }
        names.insert(stored.path.clone());
        found.push(stored);
    }
    for (path, blob) in ground.files {
        if path.kind() != FileKind::Recap || names.contains(path) {
            continue;
        }
        let text = ground.texts.get(blob.id)?;
        let Ok(recap) = recap::parse(path.name(), &text) else {
            continue;
        };
        let is_shadowed = shadowed.iter().any(|it| it.path == *path);
        if is_shadowed || !loaded.recaps.contains_key(&recap.header.thread_id) {
            let (recap, copy) = match strip::forgotten(&recap, ground.withheld) {
                Some(stripped) => {
                    let copy = recap::print_memory_copy(&stripped);
                    (stripped, copy)
                }
                None => (recap, redact::redact_str(&text)),
            };
            found.push(candidate(place, ground, recap, path.clone(), copy));
        }
    }
    let has_head: BTreeSet<TreePath> = found.iter().map(|it| it.path.clone()).collect();
    shadowed.retain(|it| !has_head.contains(&it.path));
    found.extend(shadowed);
    Ok(found)
}

fn is_withheld(ground: &Ground<'_>, candidate: &Candidate) -> bool {
    (ground.withheld.iter()).any(|held| select::holds_back(held, candidate))
}

fn candidate(
    place: &Place<'_>,
    ground: &Ground<'_>,
    recap: Recap,
    path: TreePath,
    copy: Redacted,
) -> Candidate {
    let thread_id = &recap.header.thread_id;
    let usage = ground.usage.get(thread_id).copied().unwrap_or_default();
    let mode = place.modes.get(thread_id).copied();
    Candidate {
        path,
        blob: Store::blob_id(copy.as_str().as_bytes()),
        copy,
        usage_count: usage.count,
        last_used: usage.last_used,
        mode: mode.unwrap_or(MemoryMode::Enabled),
        recap,
    }
}

fn name_threads(inputs: &mut [Input], selection: &Selection) {
    let threads: BTreeMap<&TreePath, &ThreadId> = (selection.chosen.iter())
        .map(|it| (&it.path, &it.recap.header.thread_id))
        .collect();
    for input in inputs {
        if let Some(thread_id) = threads.get(&input.path) {
            input.thread_id = Some((*thread_id).clone());
        }
    }
}

fn changed_inputs(
    texts: &Texts<'_>,
    inputs: &[Input],
    before: &Before<'_>,
) -> Result<Vec<ChangedInput>, ConsolidateError> {
    let mut changed = Vec::new();
    for input in inputs.iter().filter(|input| input.path.kind().is_input()) {
        let old = match before.consumed(&input.path) {
            Some(consumed) => Some(Raw::new(texts.get(consumed.blob)?)),
            None => None,
        };
        changed.push(ChangedInput {
            path: input.path.clone(),
            old,
            is_removed: input.change == ChangeKind::Deleted,
        });
    }
    Ok(changed)
}

fn recap_texts(
    texts: &Texts<'_>,
    plan: &Plan,
) -> Result<BTreeMap<TreePath, String>, ConsolidateError> {
    let mut recaps = BTreeMap::new();
    for (path, planned) in &plan.files {
        if path.kind() == FileKind::Recap {
            recaps.insert(path.clone(), planned_text(texts, planned)?);
        }
    }
    Ok(recaps)
}

/// The text of a file of the planned tree.
///
/// # Errors
///
/// When a blob cannot be read.
pub(crate) fn planned_text(
    texts: &Texts<'_>,
    planned: &Planned,
) -> Result<String, ConsolidateError> {
    match planned {
        Planned::Head(blob) => texts.get(blob.id),
        Planned::New { content, .. } => Ok(content.as_str().to_owned()),
    }
}

/// The memory files of a tree.
fn outputs_of(
    version: MemoryVersion,
    texts: &Texts<'_>,
    files: &BTreeMap<TreePath, Blob>,
) -> Result<Outputs, ConsolidateError> {
    let mut outputs = Outputs::new();
    for (path, blob) in files {
        if kind_in(version, path).is_output() {
            let file = OutputFile {
                text: texts.get(blob.id)?,
                executable: blob.executable,
            };
            outputs.insert(path.clone(), file);
        }
    }
    Ok(outputs)
}

/// The diff a worker reads: each consumed version against the planned one,
/// memory files against the last baseline.
///
/// # Errors
///
/// When a blob cannot be read.
pub(crate) fn worker_diff(
    place: &Place<'_>,
    texts: &Texts<'_>,
    survey: &Survey,
) -> Result<Vec<FileDiff>, ConsolidateError> {
    let news: BTreeMap<&TreePath, &ChangedInput> =
        survey.before.iter().map(|it| (&it.path, it)).collect();
    let mut paths: BTreeSet<&TreePath> = survey.plan.files.keys().collect();
    paths.extend(survey.base.keys());
    paths.extend(news.keys().copied());
    let mut diffs = Vec::new();
    for path in paths {
        let planned = survey.plan.files.get(path);
        let shown = planned.filter(|_| !survey.plan.hidden.contains(path));
        let base = survey.base.get(path);
        let old = match (kind_in(place.version, path), news.get(path)) {
            (FileKind::Withheld, _) => continue,
            (_, Some(input)) => (input.old.as_ref()).map(|old| old.unredacted().to_owned()),
            (kind, None) if kind.is_input() => continue,
            _ if shown.map(Planned::blob) == base.map(|blob| blob.id) => continue,
            _ => base.map(|blob| texts.get(blob.id)).transpose()?,
        };
        let new = shown
            .map(|planned| planned_text(texts, planned))
            .transpose()?;
        let executable = base.is_some_and(|blob| blob.executable);
        let side = |text| diff_side(text, executable);
        diffs.extend(diff_file(
            path,
            old.as_deref().map(side),
            new.as_deref().map(side),
        ));
    }
    Ok(diffs)
}

const fn diff_side(text: &str, executable: bool) -> DiffSide<'_> {
    DiffSide {
        content: text.as_bytes(),
        executable,
    }
}

/// The sessions whose recaps a tree holds.
///
/// # Errors
///
/// When a blob cannot be read.
pub(crate) fn head_threads(
    store: &Store,
    snapshot: &Snapshot,
) -> Result<BTreeSet<ThreadId>, ConsolidateError> {
    let texts = Texts::of(store);
    let mut threads = BTreeSet::new();
    for (path, blob) in &snapshot.files {
        if path.kind() == FileKind::Recap {
            let recap = recap::parse(path.name(), &texts.get(blob.id)?);
            threads.extend(recap.map(|recap| recap.header.thread_id));
        }
    }
    Ok(threads)
}

/// The files of the last baseline; none before the first.
fn last_published(
    place: &Place<'_>,
    past: &Past,
) -> Result<BTreeMap<TreePath, Blob>, ConsolidateError> {
    Ok(match past.last_baseline {
        Some(commit) => place.store.snapshot(commit)?.files,
        None => BTreeMap::new(),
    })
}
