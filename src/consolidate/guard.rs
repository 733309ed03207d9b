//! The loss guard: no entry goes without a reason.
//!
//! [`losses`] pairs old entries with new ones and explains those that are
//! gone; [`verdict`] holds what is left unexplained against the limits.
//!
//! One file because pairing, reasons and limits are read together.
//!
//! # Identity of an entry
//!
//! File, kind, heading path and cited sources; similarity of text decides
//! within equal citations, else over the file. So a topic that moves from the
//! recent days to the older ones, or a count that goes up, is not a loss.
//!
//! # Source
//!
//! DESIGN 6, loss guard.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::consolidate::judge::FreshNote;
use crate::domain::entry::{Entry, EntryKind};
use crate::domain::id::ThreadId;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::withheld::{Withheld, WithheldWhat};
use crate::text::shingles::{self, SAME_SIMILARITY_MIN, Wording};

/// Alike enough within one heading, or for a successor that a newer source
/// or a note brought.
const SUCCESSOR_SIMILARITY_MIN: f64 = 0.25;
/// Alike enough for a statement on the same sources; a topic or task is the same in any words.
const CITED_SIMILARITY_MIN: f64 = 0.3;
/// Alike enough below the same headings.
const NEAR_SIMILARITY_MIN: f64 = 0.4;

/// `[guard]`: how much may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuardLimits {
    /// Unexplained losses up to this number always pass.
    pub(crate) unexplained_max: usize,
    /// Above the number, up to this share of all entries passes.
    pub(crate) unexplained_percent_max: usize,
    /// What a worker may retire: this share, but at least `retired_min`.
    pub(crate) retired_percent_max: usize,
    pub(crate) retired_min: usize,
    /// Baselines over which unexplained losses add up.
    pub(crate) baselines_counted: usize,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self {
            unexplained_max: 3,
            unexplained_percent_max: 10,
            retired_percent_max: 10,
            retired_min: 3,
            baselines_counted: 10,
        }
    }
}

/// Why an entry is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A person deleted, reverted or forgot it: nobody's loss.
    Withheld,
    /// Near-equal text stands elsewhere.
    Merged {
        into: TreePath,
    },
    /// Out of the summary, but in the handbook or a recap that is referred to.
    Demoted {
        to: TreePath,
    },
    /// Everything it cited has left the inputs.
    Unsupported,
    /// A note or a newer source says otherwise.
    Contradicted {
        by: String,
    },
    /// The worker took it out and said why.
    Retired {
        reason: String,
    },
    /// Unexplained, and the person took the result as it is.
    Accepted,
    Unexplained,
}

impl Reason {
    /// In commit messages and diagnostics.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Withheld => "the person took it away".to_owned(),
            Self::Merged { into } => format!("merged into {into}"),
            Self::Demoted { to } => format!("demoted to {to}"),
            Self::Unsupported => "its sources are gone".to_owned(),
            Self::Contradicted { by } => format!("contradicted by {by}"),
            Self::Retired { reason } => format!("retired: {reason}"),
            Self::Accepted => "accepted by the person".to_owned(),
            Self::Unexplained => "no reason given".to_owned(),
        }
    }
}

/// An entry that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) entry: Entry,
    pub(crate) reason: Reason,
}

/// What [`losses`] compares and knows.
pub(crate) struct GuardFacts<'a> {
    pub(crate) old: &'a [Entry],
    pub(crate) new: &'a [Entry],
    /// Recap text by path, of the new tree.
    pub(crate) recaps: &'a BTreeMap<TreePath, String>,
    /// The new summary is close to its budget, so room had to be made.
    pub(crate) is_full: bool,
    /// The consumed version of recaps that changed in this pass or left.
    pub(crate) old_recaps: &'a BTreeMap<ThreadId, String>,
    /// Threads with a recap in the new tree.
    pub(crate) threads: &'a BTreeSet<ThreadId>,
    /// Threads whose recap is new or changed in this pass.
    pub(crate) fresh_threads: &'a BTreeSet<ThreadId>,
    /// Notes that are new or changed in this pass.
    pub(crate) fresh_notes: &'a [FreshNote],
    /// Text of notes that are gone since the last baseline.
    pub(crate) gone_notes: &'a [String],
    /// What code took out for a note, normalised.
    pub(crate) taken_out: &'a BTreeMap<String, TreePath>,
    /// What the worker says it took out: text and reason.
    pub(crate) retired: &'a [(String, String)],
    /// What a person took away, home and folder.
    pub(crate) withheld: &'a [Withheld],
}

/// The old entries that have no counterpart, each with its explanation.
pub(crate) fn losses(facts: &GuardFacts<'_>) -> Vec<Loss> {
    let gone = unpaired(facts.old, facts.new);
    if gone.is_empty() {
        return Vec::new();
    }
    let reading = Reading::of(facts);
    gone.into_iter()
        .map(|entry| Loss {
            reason: explain(entry, &reading),
            entry: entry.clone(),
        })
        .collect()
}

/// The facts with what explaining asks of every text, computed once.
struct Reading<'a> {
    facts: &'a GuardFacts<'a>,
    sources: Sources,
    /// Of each new entry.
    new: Vec<Wording>,
    /// Normalised text of each recap, beside its own.
    recaps: Vec<(&'a TreePath, &'a String, String)>,
    old_recaps: BTreeMap<&'a ThreadId, String>,
}

impl<'a> Reading<'a> {
    fn of(facts: &'a GuardFacts<'a>) -> Self {
        let recaps = facts.recaps.iter();
        let old_recaps = facts.old_recaps.iter();
        Self {
            facts,
            sources: Sources::of(facts.old),
            new: facts.new.iter().map(|it| Wording::of(&it.text)).collect(),
            recaps: recaps
                .map(|(path, text)| (path, text, shingles::normalise(text)))
                .collect(),
            old_recaps: old_recaps
                .map(|(id, text)| (id, shingles::normalise(text)))
                .collect(),
        }
    }

    /// New entries with their wordings.
    fn new_entries(&self) -> impl Iterator<Item = (&'a Entry, &Wording)> {
        self.facts.new.iter().zip(&self.new)
    }
}

/// The old entries without a counterpart.
fn unpaired<'a>(old: &'a [Entry], new: &[Entry]) -> Vec<&'a Entry> {
    let pairs = old.iter().zip(pairs(old, new));
    let gone = pairs.filter(|(_, counterpart)| counterpart.is_none());
    gone.map(|(entry, _)| entry).collect()
}

/// Pairs entries in rounds, from sure to likely: for each old one the index of
/// its counterpart among the new ones, `None` when it is gone.
pub(crate) fn pairs(old: &[Entry], new: &[Entry]) -> Vec<Option<usize>> {
    let mut found = vec![None; old.len()];
    let (mut old, mut new) = (Known::all(old), Known::all(new));
    pair_equals(&mut old, &mut new, &mut found);
    let rounds: [fn(&Known<'_>, &Known<'_>) -> f64; 3] = [
        |a, b| {
            let is_same = a.cites() && a.sources == b.sources;
            match a.entry.kind {
                EntryKind::Bullet => above(is_same, a.similarity(b), CITED_SIMILARITY_MIN),
                _ => f64::from(is_same) * a.similarity(b).max(f64::EPSILON),
            }
        },
        |a, b| {
            let is_near = a.entry.headings == b.entry.headings;
            let is_recount = is_near && !a.cites() && a.wordless == b.wordless;
            let similarity = a.similarity(b).max(f64::from(is_recount));
            let fits = is_near && (!a.cites() || !b.cites() || a.shares_source(b));
            above(fits, similarity, NEAR_SIMILARITY_MIN)
        },
        |a, b| above(true, a.similarity(b), SAME_SIMILARITY_MIN),
    ];
    for likeness in rounds {
        pair_off(&mut old, &mut new, &mut found, likeness);
    }
    found
}

/// The first round: the same words in the same file, in order.
fn pair_equals(old: &mut Vec<Known<'_>>, new: &mut Vec<Known<'_>>, found: &mut [Option<usize>]) {
    let mut free: BTreeMap<(&TreePath, EntryKind, String), VecDeque<usize>> = BTreeMap::new();
    for it in new.iter() {
        free.entry(it.key()).or_default().push_back(it.index);
    }
    old.retain(|gone| {
        let counterpart = free.get_mut(&gone.key()).and_then(VecDeque::pop_front);
        found[gone.index] = counterpart;
        counterpart.is_none()
    });
    let taken: BTreeSet<usize> = found.iter().flatten().copied().collect();
    new.retain(|it| !taken.contains(&it.index));
}

fn above(fits: bool, similarity: f64, similarity_min: f64) -> f64 {
    if fits && similarity >= similarity_min {
        similarity
    } else {
        0.0
    }
}

/// Takes out every old entry that has a free new one of the same file and
/// kind with a likeness above zero, the best first come.
fn pair_off(
    old: &mut Vec<Known<'_>>,
    new: &mut Vec<Known<'_>>,
    found: &mut [Option<usize>],
    likeness: fn(&Known<'_>, &Known<'_>) -> f64,
) {
    old.retain(|gone| {
        let mut best: Option<(usize, f64)> = None;
        for (index, candidate) in new.iter().enumerate() {
            let is_peer =
                candidate.entry.path == gone.entry.path && candidate.entry.kind == gone.entry.kind;
            if !is_peer {
                continue;
            }
            let alike = likeness(gone, candidate);
            if alike > best.map_or(0.0, |(_, best)| best) {
                best = Some((index, alike));
            }
        }
        match best {
            Some((index, _)) => {
                found[gone.index] = Some(new.remove(index).index);
                false
            }
            None => true,
        }
    });
}

/// An entry with what pairing asks of it, computed once.
struct Known<'a> {
    /// Among all of its side.
    index: usize,
    entry: &'a Entry,
    wording: Wording,
    /// Without digits: "12 sessions" and "13 sessions" are one statement.
    wordless: String,
    sources: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn all(entries: &'a [Entry]) -> Vec<Self> {
        let sources = Sources::of(entries);
        let each = entries.iter().enumerate();
        each.map(|(index, entry)| Self::new(index, entry, &sources))
            .collect()
    }

    fn new(index: usize, entry: &'a Entry, sources: &Sources) -> Self {
        let wording = Wording::of(&entry.text);
        let plain = wording.words().chars();
        let wordless = plain.filter(|c| !c.is_numeric()).collect();
        let (threads, files) = sources.of_entry(entry);
        let threads = threads.iter().map(ToString::to_string);
        Self {
            sources: threads.chain(files).collect(),
            index,
            entry,
            wording,
            wordless,
        }
    }

    fn key(&self) -> (&'a TreePath, EntryKind, String) {
        let words = self.wording.words().to_owned();
        (&self.entry.path, self.entry.kind, words)
    }

    fn cites(&self) -> bool {
        !self.sources.is_empty()
    }

    fn shares_source(&self, other: &Self) -> bool {
        !self.sources.is_disjoint(&other.sources)
    }

    fn similarity(&self, other: &Self) -> f64 {
        self.wording.similarity(&other.wording)
    }
}

/// File, title of the group, number of the task.
type TaskKey = (TreePath, String, u32);

/// What the tasks of a handbook rest on, so that a statement which ends in
/// `[Task 2]` rests on the same.
struct Sources {
    by_task: BTreeMap<TaskKey, (Vec<ThreadId>, Vec<String>)>,
}

impl Sources {
    fn of(entries: &[Entry]) -> Self {
        let mut by_task = BTreeMap::new();
        for task in entries.iter().filter(|it| it.kind == EntryKind::Task) {
            let number = task.text.strip_prefix("Task ").and_then(leading_number);
            if let (Some(number), Some(group)) = (number, task.headings.first()) {
                let cited = (task.thread_ids.clone(), task.recap_files.clone());
                by_task.insert((task.path.clone(), group.clone(), number), cited);
            }
        }
        Self { by_task }
    }

    /// Its own citations, else those of the tasks that it names.
    fn of_entry(&self, entry: &Entry) -> (Vec<ThreadId>, Vec<String>) {
        let mut threads = entry.thread_ids.clone();
        let mut files = entry.recap_files.clone();
        let Some(group) = entry.headings.first() else {
            return (threads, files);
        };
        if !threads.is_empty() || !files.is_empty() || entry.kind != EntryKind::Bullet {
            return (threads, files);
        }
        for part in entry.text.split("[Task ").skip(1) {
            let Some(number) = leading_number(part) else {
                continue;
            };
            let key = (entry.path.clone(), group.clone(), number);
            if let Some((more_threads, more_files)) = self.by_task.get(&key) {
                threads.extend(more_threads.iter().cloned());
                files.extend(more_files.iter().cloned());
            }
        }
        (threads, files)
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..digits].parse().ok()
}

fn explain(entry: &Entry, reading: &Reading<'_>) -> Reason {
    let wording = Wording::of(&entry.text);
    None.or_else(|| withheld(entry, reading.facts))
        .or_else(|| merged(entry, &wording, reading))
        .or_else(|| demoted(entry, &wording, reading))
        .or_else(|| unsupported(entry, reading))
        .or_else(|| contradicted(entry, &wording, reading))
        .or_else(|| retired(&wording, reading.facts))
        .unwrap_or(Reason::Unexplained)
}

/// Comes before every other reason: whatever the worker says of it, the entry
/// went because the person wanted it gone.
fn withheld(entry: &Entry, facts: &GuardFacts<'_>) -> Option<Reason> {
    let is_taken_away = facts.withheld.iter().any(|held| match &held.what {
        WithheldWhat::Entry(hashes) => shingles::matches(hashes, &entry.text),
        _ => false,
    });
    is_taken_away.then_some(Reason::Withheld)
}

fn merged(entry: &Entry, wording: &Wording, reading: &Reading<'_>) -> Option<Reason> {
    let holds = |(_, new): &(&Entry, &Wording)| {
        wording.similarity(new) >= SAME_SIMILARITY_MIN
            || contains_whole(new.words(), wording.words())
    };
    let (into, _) = reading.new_entries().find(holds)?;
    let into = into.path.clone();
    Some(match (entry.path.kind(), into.kind()) {
        (FileKind::Summary, FileKind::Handbook) => Reason::Demoted { to: into },
        _ => Reason::Merged { into },
    })
}

/// A summary entry may live on in the handbook or in a recap, as long as
/// something still leads there. Where no handbook could (version 2) and the
/// summary is full, room had to be made, and the recap is found by a search.
fn demoted(entry: &Entry, wording: &Wording, reading: &Reading<'_>) -> Option<Reason> {
    if entry.path.kind() != FileKind::Summary {
        return None;
    }
    let facts = reading.facts;
    let (threads, files) = reading.sources.of_entry(entry);
    let name_of = |file: &String| file.rsplit('/').next().unwrap_or(file).to_owned();
    let is_source = |path: &TreePath, text: &String| {
        files.iter().any(|file| name_of(file) == path.name())
            || threads.iter().any(|id| text.contains(id.as_str()))
    };
    let is_topic = entry.kind == EntryKind::Topic;
    let holds = |(path, text, normal): &(&TreePath, &String, String)| {
        contains_whole(normal, wording.words()) || (is_topic && is_source(path, text))
    };
    let leads_to = |path: &TreePath, text: &String| {
        facts.new.iter().any(|new| {
            new.recap_files
                .iter()
                .any(|file| name_of(file) == path.name())
                || new.thread_ids.iter().any(|id| text.contains(id.as_str()))
        })
    };
    let has_handbook = (facts.new.iter()).any(|new| new.path.kind() == FileKind::Handbook);
    let stands_alone = facts.is_full && !has_handbook;
    let is_kept =
        |it: &&(&TreePath, &String, String)| holds(it) && (stands_alone || leads_to(it.0, it.1));
    let (path, ..) = reading.recaps.iter().find(is_kept)?;
    Some(Reason::Demoted {
        to: (*path).clone(),
    })
}

fn unsupported(entry: &Entry, reading: &Reading<'_>) -> Option<Reason> {
    let facts = reading.facts;
    let (threads, files) = reading.sources.of_entry(entry);
    if threads.is_empty() && files.is_empty() {
        let rests_on_gone_note = entry.is_from_note
            && (facts.gone_notes.iter()).any(|note| speaks_of(note, &entry.text));
        let is_gone = rests_on_gone_note || rests_on_gone_words(entry, reading);
        return is_gone.then_some(Reason::Unsupported);
    }
    let has_recap = |file: &String| {
        let name = file.rsplit('/').next().unwrap_or(file);
        facts.recaps.keys().any(|path| path.name() == name)
    };
    let is_cited_still = threads.iter().any(|id| facts.threads.contains(id))
        || (threads.is_empty() && files.iter().any(has_recap));
    let is_supported = is_cited_still && !is_superseded(entry, &threads, reading);
    (!is_supported).then_some(Reason::Unsupported)
}

/// A line of the summary that cites nothing: a session that left, or has a
/// newer recap, said it in these words, and no recap does any more.
fn rests_on_gone_words(entry: &Entry, reading: &Reading<'_>) -> bool {
    let words = shingles::normalise(own_words(entry));
    let says_it = |normal: &String| contains_whole(normal, &words);
    let mut recaps = reading.recaps.iter().map(|(.., normal)| normal);
    entry.path.kind() == FileKind::Summary
        && reading.old_recaps.values().any(says_it)
        && !recaps.any(says_it)
}

/// What an entry took from elsewhere: a topic without its keywords, a task
/// without number and outcome, a preference without the project it holds in;
/// none of them with the mark of a cut.
fn own_words(entry: &Entry) -> &str {
    let text = entry.text.trim();
    let words = match entry.kind {
        EntryKind::Topic => text.split([':', '：']).next().unwrap_or(text),
        EntryKind::Task => {
            let title = text.split_once(':').map_or(text, |(_, title)| title);
            title.rsplit_once(',').map_or(title, |(title, _)| title)
        }
        EntryKind::TaskGroup | EntryKind::Bullet => {
            let scope = text.rfind(" (in ").filter(|_| text.ends_with(')'));
            scope.map_or(text, |at| &text[..at])
        }
    };
    words.trim_end_matches('…')
}

/// The session said it in these words, has a newer recap, and does not say it
/// any more; nor does another of the cited sessions.
fn is_superseded(entry: &Entry, threads: &[ThreadId], reading: &Reading<'_>) -> bool {
    let words = shingles::normalise(own_words(entry));
    let says_it = |normal: &String| contains_whole(normal, &words);
    let said_it = |id: &ThreadId| reading.old_recaps.get(id).is_some_and(says_it);
    let still_says_it = |id: &ThreadId| {
        let recaps = reading.recaps.iter();
        let mut of_thread = recaps.filter(|(_, text, _)| text.contains(id.as_str()));
        of_thread.any(|(.., normal)| says_it(normal))
    };
    threads.iter().any(said_it) && !threads.iter().any(still_says_it)
}

fn contradicted(entry: &Entry, wording: &Wording, reading: &Reading<'_>) -> Option<Reason> {
    let facts = reading.facts;
    if let Some(note) = facts.taken_out.get(wording.words()) {
        let by = note.to_string();
        return Some(Reason::Contradicted { by });
    }
    let mut notes = facts.fresh_notes.iter();
    if let Some(note) = notes.find(|note| note.asks_about(&entry.text)) {
        let by = note.path.to_string();
        return Some(Reason::Contradicted { by });
    }
    let is_newer = |(new, said): &(&Entry, &Wording)| {
        let is_fresh = new
            .thread_ids
            .iter()
            .any(|id| facts.fresh_threads.contains(id));
        let is_successor = new.path == entry.path
            && new.kind == entry.kind
            && wording.similarity(said) >= SUCCESSOR_SIMILARITY_MIN;
        is_fresh && is_successor
    };
    let (successor, _) = reading.new_entries().find(is_newer)?;
    let by = successor.thread_ids.first()?.to_string();
    Some(Reason::Contradicted { by })
}

fn retired(wording: &Wording, facts: &GuardFacts<'_>) -> Option<Reason> {
    let names_it = |(text, reason): &&(String, String)| {
        !reason.trim().is_empty() && Wording::of(text).similarity(wording) >= SAME_SIMILARITY_MIN
    };
    let (_, reason) = facts.retired.iter().find(names_it)?;
    Some(Reason::Retired {
        reason: reason.trim().to_owned(),
    })
}

/// Whether a note is about an entry: a good part of the shorter text is in
/// the longer one. Notes are sentences around the statement they are about.
pub(crate) fn speaks_of(note: &str, entry: &str) -> bool {
    let entry = Wording::of(entry);
    note.lines()
        .chain([note])
        .any(|part| Wording::of(part).similarity(&entry) >= SUCCESSOR_SIMILARITY_MIN)
        || contains_whole(&shingles::normalise(note), entry.words())
}

/// Whether two texts say the same, one of them perhaps with more around it.
pub(crate) fn is_near_equal(a: &str, b: &str) -> bool {
    let (a, b) = (Wording::of(a), Wording::of(b));
    a.similarity(&b) >= SAME_SIMILARITY_MIN
        || contains_whole(a.words(), b.words())
        || contains_whole(b.words(), a.words())
}

/// Whether normalised `words` stand as a whole in normalised `text`.
fn contains_whole(text: &str, words: &str) -> bool {
    !words.is_empty() && text.contains(words)
}

/// What earlier baselines lost, oldest first, as their messages say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LossCount {
    /// Entries before the baseline.
    pub(crate) entries: usize,
    pub(crate) unexplained: usize,
}

/// What is wrong with a set of losses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GuardFault {
    /// Nothing is left although there are inputs.
    NothingLeft,
    TooManyUnexplained {
        unexplained: usize,
        entries: usize,
    },
    TooManyRetired {
        retired: usize,
        retired_max: usize,
    },
    /// Each baseline stayed within the limits, together they do not.
    TooManyOverTime {
        unexplained: usize,
        entries: usize,
        baselines: usize,
    },
}

impl GuardFault {
    /// For people, and for a worker that may mend it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::NothingLeft => "no entry is left although there are inputs".to_owned(),
            Self::TooManyUnexplained {
                unexplained,
                entries,
            } => format!("{unexplained} of {entries} entries would go without a reason"),
            Self::TooManyRetired {
                retired,
                retired_max,
            } => format!("{retired} entries would be retired, {retired_max} are allowed"),
            Self::TooManyOverTime {
                unexplained,
                entries,
                baselines,
            } => format!(
                "{unexplained} of {entries} entries would have gone without a reason over {baselines} baselines"
            ),
        }
    }
}

/// Holds losses against the limits.
///
/// What the person took away counts neither as lost nor as having been there.
/// `earlier` are the counts of the baselines before, newest last; only the
/// last `baselines_counted − 1` are added to this one.
pub(crate) fn verdict(
    losses: &[Loss],
    old_count: usize,
    new_count: usize,
    has_inputs: bool,
    earlier: &[LossCount],
    limits: &GuardLimits,
) -> Vec<GuardFault> {
    let mut faults = Vec::new();
    let taken_away = count(losses, |reason| *reason == Reason::Withheld);
    let is_all_taken_away = taken_away > 0 && taken_away == old_count;
    let old_count = old_count.saturating_sub(taken_away);
    if has_inputs && new_count == 0 && !is_all_taken_away {
        faults.push(GuardFault::NothingLeft);
    }
    let unexplained = count(losses, |reason| *reason == Reason::Unexplained);
    let is_too_many = exceeds(unexplained, old_count, limits);
    if is_too_many || unexplained * 2 > old_count {
        faults.push(GuardFault::TooManyUnexplained {
            unexplained,
            entries: old_count,
        });
    }
    let retired = count(losses, |reason| matches!(reason, Reason::Retired { .. }));
    let retired_max = (old_count * limits.retired_percent_max / 100).max(limits.retired_min);
    if retired > retired_max {
        faults.push(GuardFault::TooManyRetired {
            retired,
            retired_max,
        });
    }
    if faults.is_empty() {
        faults.extend(over_time(unexplained, old_count, earlier, limits));
    }
    faults
}

/// The share counts from the entries at the start of the counted baselines.
fn over_time(
    unexplained: usize,
    old_count: usize,
    earlier: &[LossCount],
    limits: &GuardLimits,
) -> Option<GuardFault> {
    let counted = limits.baselines_counted.saturating_sub(1);
    let window = &earlier[earlier.len().saturating_sub(counted)..];
    let total = window.iter().map(|past| past.unexplained).sum::<usize>() + unexplained;
    let entries = (window.iter().map(|past| past.entries)).fold(old_count, usize::max);
    (unexplained > 0 && exceeds(total, entries, limits)).then_some(GuardFault::TooManyOverTime {
        unexplained: total,
        entries,
        baselines: window.len() + 1,
    })
}

fn exceeds(unexplained: usize, entries: usize, limits: &GuardLimits) -> bool {
    unexplained > limits.unexplained_max
        && unexplained * 100 > entries * limits.unexplained_percent_max
}

fn count(losses: &[Loss], is_such: impl Fn(&Reason) -> bool) -> usize {
    losses.iter().filter(|loss| is_such(&loss.reason)).count()
}

#[cfg(test)]
mod tests;
