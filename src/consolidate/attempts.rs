//! Results that stand beside main: listed, held against what is asked for
//! anew, let go when they are old.
//!
//! A result that is refused, parked or waits for a person lies on
//! `refs/memrev/attempts/<run>` as a commit whose parent is the head it grew
//! from. Its message says why, its trailers which inputs it folded in.
//!
//! # Not in here
//!
//! Nothing is published; see [`mod@super::accept`].

use std::collections::{BTreeMap, BTreeSet};

use crate::consolidate::OutputChange;
use crate::consolidate::edits::kind_in;
use crate::consolidate::past;
use crate::consolidate::record::Record;
use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::store::diff::{DiffSide, FileDiff, diff_file};
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::message::{AttemptState, CommitKind, Input};
use crate::store::{KeptKind, KeptRef, Store, StoreLock};
use crate::sys::stop;
use crate::text::redact::redact_str;

/// How long an attempt that nobody took up is kept, in days.
pub(crate) const ATTEMPT_DAYS_MAX: i64 = 30;

/// How many of them are kept, the newest first.
pub(crate) const ATTEMPTS_MAX: usize = 20;

/// How far main is searched for the baselines that attempts became.
const COMMITS_MAX: usize = 2_000;

/// The line above the worker's own words. What stands above it is ours, and
/// no line of that is like it.
const REPORT_LINE: &str = "\nWorker report:\n";

/// One attempt, with everything that can be said of it now.
#[derive(Debug, Clone)]
pub(crate) struct SeenAttempt {
    pub(crate) run: RunId,
    pub(crate) commit: ObjectId,
    /// The head it grew from.
    pub(crate) base: ObjectId,
    pub(crate) at: Timestamp,
    pub(crate) state: AttemptState,
    pub(crate) worker: String,
    /// Name and hash of the template that the worker was asked by.
    pub(crate) prompt: Option<Redacted>,
    pub(crate) tokens: u64,
    /// The worker's own words.
    pub(crate) words: Redacted,
    pub(crate) inputs: Vec<Input>,
    /// `None` when it cannot be read.
    pub(crate) record: Option<Record>,
    /// A later one that waits for the same inputs, or for more.
    pub(crate) superseded_by: Option<RunId>,
    /// Why it cannot be accepted, as far as can be told without judging it.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why an attempt cannot be accepted, whatever a person says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("it is baseline {} already", .baseline.short())]
    Published { baseline: ObjectId },
    #[error("it was rejected, and nothing of it was kept")]
    Rejected,
    #[error("only what was said about it was kept, not its files: {why}")]
    NotKept { why: Redacted },
    #[error("nobody can overrule this: {words}")]
    Standing { words: Redacted },
    #[error("what it needs to be taken up again cannot be read")]
    NoRecord,
    #[error("memory moved on since, by more than edits")]
    Moved,
}

impl SeenAttempt {
    fn kept(&self) -> KeptRef {
        KeptRef {
            kind: KeptKind::Attempt,
            run: self.run.clone(),
            commit: self.commit,
        }
    }

    /// Nobody has decided about it, and it can still be accepted.
    pub(crate) fn waits(&self) -> bool {
        self.state == AttemptState::Waiting
            && self.superseded_by.is_none()
            && self.obstacle.is_none()
    }
}

/// All attempts of a memory, newest first.
///
/// # Errors
///
/// When refs or commits cannot be read.
pub(crate) fn list(store: &Store, head: ObjectId) -> Result<Vec<SeenAttempt>, StoreError> {
    let mut seen = Vec::new();
    for kept in store.kept_refs(KeptKind::Attempt)? {
        match store.commit(kept.commit) {
            Ok(commit) => seen.extend(see(&kept, commit)),
            // A ref to something that a `git gc` took: nothing to show.
            Err(StoreError::NoObject { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let bases: BTreeSet<ObjectId> = seen.iter().map(|it: &SeenAttempt| it.base).collect();
    let steps = steps(store, head, bases)?;
    for attempt in &mut seen {
        attempt.obstacle = match published(&steps, attempt) {
            Some(baseline) => Some(Obstacle::Published { baseline }),
            None => obstacle(store, head, attempt)?,
        };
    }
    seen.sort_by(|a, b| (b.at, &b.run).cmp(&(a.at, &a.run)));
    mark_superseded(&mut seen);
    Ok(seen)
}

fn see(kept: &KeptRef, commit: Commit) -> Option<SeenAttempt> {
    let base = commit.parents.first().copied()?;
    let trailers = commit.trailers;
    let report = commit.body.unredacted().split_once(REPORT_LINE);
    Some(SeenAttempt {
        run: kept.run.clone(),
        commit: kept.commit,
        base,
        at: commit.at,
        state: trailers.attempt.unwrap_or(AttemptState::Refused),
        worker: trailers.worker.unwrap_or_default(),
        prompt: trailers.prompt.as_deref().map(redact_str),
        tokens: trailers.tokens.unwrap_or_default(),
        words: redact_str(report.map_or("", |(_, words)| words.trim())),
        inputs: trailers.inputs,
        record: trailers.record.as_deref().and_then(Record::parse),
        superseded_by: None,
        obstacle: None,
    })
}

/// A commit of main, and the run that made it a baseline.
type Step = (ObjectId, Option<RunId>);

/// Main from `head` down to the last of `bases`.
fn steps(
    store: &Store,
    head: ObjectId,
    mut bases: BTreeSet<ObjectId>,
) -> Result<Vec<Step>, StoreError> {
    let mut steps = Vec::new();
    for commit in store.history(head).take(COMMITS_MAX) {
        if bases.is_empty() {
            break;
        }
        let commit = commit?;
        bases.remove(&commit.id);
        let is_baseline = commit.trailers.kind == Some(CommitKind::Baseline);
        steps.push((commit.id, commit.trailers.run.filter(|_| is_baseline)));
    }
    Ok(steps)
}

/// The baseline that an attempt became: made by its run, after its base.
fn published(steps: &[Step], attempt: &SeenAttempt) -> Option<ObjectId> {
    let mut since = steps.iter().take_while(|(id, _)| *id != attempt.base);
    let (baseline, _) = since.find(|(_, run)| run.as_ref() == Some(&attempt.run))?;
    Some(*baseline)
}

fn obstacle(
    store: &Store,
    head: ObjectId,
    attempt: &SeenAttempt,
) -> Result<Option<Obstacle>, StoreError> {
    if attempt.state == AttemptState::Rejected {
        return Ok(Some(Obstacle::Rejected));
    }
    let Some(record) = &attempt.record else {
        return Ok(Some(Obstacle::NoRecord));
    };
    let words = record.standing().map(redact_str);
    if !record.is_whole {
        let why = words.unwrap_or_default();
        return Ok(Some(Obstacle::NotKept { why }));
    }
    if let Some(words) = words {
        return Ok(Some(Obstacle::Standing { words }));
    }
    let is_near = past::moved_by_person_only(store, attempt.base, head)?;
    Ok((!is_near).then_some(Obstacle::Moved))
}

/// A later one with all inputs of an earlier one takes its place.
fn mark_superseded(newest_first: &mut [SeenAttempt]) {
    let waiting: Vec<(RunId, BTreeSet<Input>)> = (newest_first.iter())
        .filter(|it| it.state == AttemptState::Waiting)
        .map(|it| (it.run.clone(), it.inputs.iter().cloned().collect()))
        .collect();
    let mut later = 0;
    for attempt in newest_first {
        if attempt.state != AttemptState::Waiting {
            continue;
        }
        let covers = |(_, inputs): &&(RunId, BTreeSet<Input>)| {
            attempt.inputs.iter().all(|input| inputs.contains(input))
        };
        let by = waiting[..later].iter().find(covers);
        attempt.superseded_by = by.map(|(run, _)| run.clone());
        later += 1;
    }
}

/// The one attempt that a person means: its run, or how it begins.
pub(crate) fn find<'a>(attempts: &'a [SeenAttempt], name: &str) -> Option<&'a SeenAttempt> {
    let mut found = attempts
        .iter()
        .filter(|it| !name.is_empty() && it.run.as_str().starts_with(name));
    let first = found.next();
    let exact = attempts.iter().find(|it| it.run.as_str() == name);
    exact.or(if found.next().is_none() { first } else { None })
}

/// A person's word, given or awaited, about exactly these inputs: then no
/// worker is called for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A result waits for `accept` or `reject`.
    Waits { run: RunId },
    /// A result was rejected; only a person at the terminal tries again.
    Rejected { run: RunId },
}

/// What stands about `inputs`, all that is pending now. The newest counts.
pub(crate) fn standing(attempts: &[SeenAttempt], inputs: &[Input]) -> Option<Standing> {
    let inputs: BTreeSet<&Input> = inputs.iter().collect();
    let is_same = |it: &&SeenAttempt| it.inputs.iter().collect::<BTreeSet<_>>() == inputs;
    let run = |it: &SeenAttempt| it.run.clone();
    for attempt in attempts.iter().filter(is_same) {
        match attempt.state {
            AttemptState::Waiting if attempt.waits() => {
                return Some(Standing::Waits { run: run(attempt) });
            }
            AttemptState::Rejected => return Some(Standing::Rejected { run: run(attempt) }),
            _ => {}
        }
    }
    None
}

/// Lines that came and went in the memory files, per file.
///
/// # Errors
///
/// When a blob cannot be read.
pub(crate) fn outputs(
    store: &Store,
    version: MemoryVersion,
    attempt: &SeenAttempt,
) -> Result<Vec<OutputChange>, StoreError> {
    let files = store.diff(Some(attempt.base), attempt.commit)?;
    Ok((files.into_iter())
        .filter(|file| kind_in(version, &file.path).is_output())
        .map(|file| OutputChange {
            path: file.path,
            kind: file.kind,
            lines_added: file.lines_added,
            lines_removed: file.lines_removed,
        })
        .collect())
}

/// The attempts that are let go: old ones, and the oldest past a number. One
/// that waits is never among them; nor is the newest rejected one, since it
/// holds back passes in the background.
pub(crate) fn expired(attempts: &[SeenAttempt], now: Timestamp) -> Vec<&SeenAttempt> {
    let oldest = now.minus_days(ATTEMPT_DAYS_MAX);
    let mut gone = Vec::new();
    let (mut kept, mut has_rejected) = (0, false);
    for attempt in attempts {
        let is_holding = attempt.state == AttemptState::Rejected && !has_rejected;
        has_rejected |= attempt.state == AttemptState::Rejected;
        let is_published = matches!(attempt.obstacle, Some(Obstacle::Published { .. }));
        let is_undecided =
            attempt.state == AttemptState::Waiting && attempt.superseded_by.is_none();
        if is_published {
            gone.push(attempt);
        } else if is_undecided || is_holding {
            // It says what happened to it, however old.
        } else if attempt.at < oldest || ATTEMPTS_MAX <= kept {
            gone.push(attempt);
        } else {
            kept += 1;
        }
    }
    gone
}

/// Lets old ones go; gives their runs.
///
/// # Errors
///
/// When refs cannot be read or removed.
pub(crate) fn expire(
    store: &Store,
    lock: &StoreLock,
    head: ObjectId,
    now: Timestamp,
) -> Result<Vec<RunId>, StoreError> {
    let attempts = list(store, head)?;
    let mut runs = Vec::new();
    for attempt in expired(&attempts, now) {
        store.remove_kept_ref(lock, &attempt.kept())?;
        stop::point("consolidate.attempt_expired");
        // One that became a baseline is not lost, so it is not told of.
        if !matches!(attempt.obstacle, Some(Obstacle::Published { .. })) {
            runs.push(attempt.run.clone());
        }
    }
    Ok(runs)
}

/// Takes one away.
///
/// # Errors
///
/// When the ref cannot be removed.
pub(crate) fn remove(
    store: &Store,
    lock: &StoreLock,
    attempt: &SeenAttempt,
) -> Result<(), StoreError> {
    store.remove_kept_ref(lock, &attempt.kept())
}

/// How main would change by an attempt.
pub(crate) struct AgainstMain {
    pub(crate) files: Vec<FileDiff>,
    /// Files that both changed in the same lines: then the diff is from where
    /// the attempt began.
    pub(crate) conflicts: Vec<TreePath>,
}

/// # Errors
///
/// When a commit, tree or blob cannot be read.
pub(crate) fn against_main(
    store: &Store,
    attempt: &SeenAttempt,
    head: ObjectId,
) -> Result<AgainstMain, StoreError> {
    let merged = store.merge_commits(attempt.base, head, attempt.commit)?;
    if head == attempt.base || !merged.conflicts.is_empty() {
        return Ok(AgainstMain {
            files: store.diff(Some(attempt.base), attempt.commit)?,
            conflicts: merged.conflicts,
        });
    }
    let before = store.snapshot(head)?.files;
    let mut files = Vec::new();
    for file in &merged.files {
        let blob = before.get(&file.path);
        let old = blob.map(|blob| store.blob(blob.id)).transpose()?;
        let old = old.as_deref().map(|content| DiffSide {
            content,
            executable: blob.is_some_and(|blob| blob.executable),
        });
        let new = file.file.as_ref().map(|text| DiffSide {
            content: text.content.unredacted().as_bytes(),
            executable: text.executable,
        });
        files.extend(diff_file(&file.path, old, new));
    }
    Ok(AgainstMain {
        files,
        conflicts: Vec::new(),
    })
}

/// Both sides of a file that cannot be merged, each as a diff from where they
/// parted.
#[derive(Debug, Clone)]
pub(crate) struct BothSides {
    pub(crate) path: TreePath,
    pub(crate) yours: Redacted,
    pub(crate) theirs: Redacted,
}

/// # Errors
///
/// When a blob cannot be read.
pub(crate) fn both_sides(
    store: &Store,
    attempt: &SeenAttempt,
    head: ObjectId,
    paths: &[TreePath],
) -> Result<Vec<BothSides>, StoreError> {
    let side = |new: ObjectId| -> Result<BTreeMap<TreePath, Redacted>, StoreError> {
        let files = store.diff(Some(attempt.base), new)?.into_iter();
        let files = files.map(|file| (file.path, redact_str(&file.text)));
        Ok(files.collect())
    };
    let (mut yours, mut theirs) = (side(head)?, side(attempt.commit)?);
    let each = paths.iter().map(|path| BothSides {
        path: path.clone(),
        yours: yours.remove(path).unwrap_or_default(),
        theirs: theirs.remove(path).unwrap_or_default(),
    });
    Ok(each.collect())
}

#[cfg(test)]
mod tests {
    use super::{
        ATTEMPTS_MAX, Obstacle, SeenAttempt, Standing, expired, find, mark_superseded, standing,
    };
    use crate::domain::id::{ObjectId, RunId};
    use crate::domain::path::TreePath;
    use crate::domain::text::Redacted;
    use crate::domain::time::Timestamp;
    use crate::store::message::{AttemptState, ChangeKind, Input};

    const NOW: Timestamp = Timestamp::from_seconds(1_764_576_000);

    /// `<run> <state> <days old> <inputs by letter>`
    fn attempt(line: &str) -> SeenAttempt {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [run, state, days, inputs] = words[..] else {
            panic!("`{line}` is no attempt");
        };
        SeenAttempt {
            run: RunId::new(run.to_owned()),
            commit: ObjectId::from_bytes([1; 20]),
            base: ObjectId::from_bytes([2; 20]),
            at: NOW.minus_days(days.parse().unwrap()),
            state: AttemptState::parse(state).unwrap(),
            worker: "scripted".to_owned(),
            prompt: None,
            tokens: 0,
            words: Redacted::default(),
            inputs: inputs.chars().map(input).collect(),
            record: None,
            superseded_by: None,
            obstacle: None,
        }
    }

    fn input(letter: char) -> Input {
        Input {
            change: ChangeKind::Added,
            path: TreePath::parse(&format!("rollout_summaries/{letter}.md")).unwrap(),
            blob: ObjectId::from_bytes([3; 20]),
            thread_id: None,
        }
    }

    fn attempts(lines: &str) -> Vec<SeenAttempt> {
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut seen: Vec<SeenAttempt> = lines.map(attempt).collect();
        mark_superseded(&mut seen);
        seen
    }

    #[track_caller]
    fn check_expired(lines: &str, expected: &[&str]) {
        let seen = attempts(lines);
        let runs: Vec<&str> = expired(&seen, NOW)
            .iter()
            .map(|it| it.run.as_str())
            .collect();
        assert_eq!(runs, expected);
    }

    #[test]
    fn old_attempts_go_and_undecided_ones_never() {
        check_expired(
            "e refused 1 a
             d parked 30 a
             c refused 31 a
             b waiting 400 a
             a waiting 401 b",
            &["c"],
        );
    }

    #[test]
    fn a_superseded_one_goes_as_any_other() {
        check_expired(
            "b waiting 0 ab
             a waiting 31 a",
            &["a"],
        );
    }

    #[test]
    fn the_newest_rejection_stays_since_it_holds_the_background_back() {
        check_expired(
            "b rejected 90 a
             a rejected 91 b",
            &["a"],
        );
    }

    #[test]
    fn past_a_number_the_oldest_go() {
        let lines: Vec<String> = (0..ATTEMPTS_MAX + 2)
            .map(|n| format!("r{n} refused 0 a"))
            .collect();
        let last = [format!("r{ATTEMPTS_MAX}"), format!("r{}", ATTEMPTS_MAX + 1)];
        check_expired(&lines.join("\n"), &[&last[0], &last[1]]);
    }

    #[track_caller]
    fn check_standing(lines: &str, inputs: &str, expected: Option<&str>) {
        let inputs: Vec<Input> = inputs.chars().map(input).collect();
        let found = standing(&attempts(lines), &inputs).map(|standing| match standing {
            Standing::Waits { run } => format!("waits {run}"),
            Standing::Rejected { run } => format!("rejected {run}"),
        });
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn a_word_counts_for_exactly_the_same_inputs() {
        check_standing("a waiting 0 xy", "xy", Some("waits a"));
        check_standing("a waiting 0 xy", "yx", Some("waits a"));
        check_standing("a waiting 0 xy", "x", None);
        check_standing("a waiting 0 xy", "xyz", None);
        check_standing("a rejected 0 xy", "xy", Some("rejected a"));
        check_standing("a refused 0 xy", "xy", None);
        check_standing("a parked 0 xy", "xy", None);
        check_standing("b rejected 0 xy\na waiting 1 xy", "xy", Some("rejected b"));
    }

    #[test]
    fn what_cannot_be_accepted_any_more_holds_nothing_up() {
        let mut seen = attempts("a waiting 0 x");
        seen[0].obstacle = Some(Obstacle::Moved);
        assert_eq!(standing(&seen, &[input('x')]), None);
    }

    #[test]
    fn the_beginning_of_a_run_is_enough_when_it_is_one() {
        let seen = attempts("abc refused 0 a\nabd refused 0 a\nx refused 0 a\nxy refused 0 a");
        let found = |name: &str| find(&seen, name).map(|it| it.run.to_string());
        assert_eq!(found("abc"), Some("abc".to_owned()));
        assert_eq!(found("ab"), None);
        assert_eq!(found("x"), Some("x".to_owned()));
        assert_eq!(found(""), None);
    }
}
