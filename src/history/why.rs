//! Why memory says something: from a line to the commit that brought it, to
//! the recaps and notes it rests on, to the session, to the line of the
//! transcript.
//!
//! # Limits
//!
//! Which line of a recap a line of memory rests on is found by its words, so
//! it is a good guess where a model wrote both. A link that is missing is said.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use crate::consolidate::hands;
use crate::domain::entry::{Entry, EntryKind};
use crate::domain::id::{ObjectId, ThreadId};
use crate::domain::item::{Item, Provenance};
use crate::domain::path::{FileKind, RECAPS, TreePath};
use crate::domain::session::{Agent, SessionHead};
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::history::blame::{self, Blame, Spot};
use crate::history::log::is_end_of;
use crate::sessions::{self, Found};
use crate::store::error::StoreError;
use crate::store::history::Commit;
use crate::store::message::{ChangeKind, CommitKind};
use crate::store::trail::LineMap;
use crate::store::{Blob, Store};
use crate::text::entries;
use crate::text::recap;
use crate::text::recap_name;
use crate::text::shingles;

/// Share of a line's words from which another one is taken for its source,
/// where nothing cites it.
const SOURCE_LIKENESS_MIN: f64 = 0.3;
/// Where a recap's name has the hash of its thread: after the stamp.
const HASH_IN_NAME: Range<usize> = 20..24;
/// Most sources that are shown of one line.
const SOURCES_MAX: usize = 5;
/// Items shown before and after the one that is meant.
const ITEMS_AROUND: usize = 3;
/// Most lines of a transcript that one source leads to.
const PLACES_MAX: usize = 3;

/// What a person asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// A line of a file as it lies in the folder, 1-based.
    Line {
        path: TreePath,
        line_number: usize,
    },
    Phrase(String),
}

/// Why a question leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WhyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{path}` has {lines} lines")]
    NoLine { path: TreePath, lines: usize },
    #[error("memory has no file `{name}`")]
    NoFile { name: String },
    #[error("no entry of memory holds these words")]
    NoEntry,
}

/// Where a line of memory comes from.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// As it stands now.
    pub(crate) spot: Spot,
    /// `None`: no commit holds it yet.
    pub(crate) origin: Option<Origin>,
}

/// The commit behind it, and what that rests on.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) commit: Commit,
    pub(crate) blame: Blame,
    /// A person wrote it.
    pub(crate) is_by_person: bool,
    /// Best first.
    pub(crate) sources: Vec<Source>,
}

/// A recap or note.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) path: TreePath,
    /// The line cites it; otherwise the commit took it in.
    pub(crate) is_cited: bool,
    /// 1-based line of it that says the same, and its words.
    pub(crate) line: Option<(usize, Raw)>,
    pub(crate) session: Option<SessionLink>,
    /// What is missing on the way, in words.
    pub(crate) gap: Option<String>,
}

/// The session of a recap.
#[derive(Debug, Clone)]
pub(crate) struct SessionLink {
    pub(crate) thread_id: ThreadId,
    pub(crate) agent: Option<Agent>,
    pub(crate) rollout_path: String,
    pub(crate) evidence: Vec<Evidence>,
}

/// A line of a transcript with its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    /// The one that is meant.
    pub(crate) line_number: u32,
    pub(crate) items: Vec<EvidenceItem>,
}

#[derive(Debug, Clone)]
pub(crate) struct EvidenceItem {
    pub(crate) line_number: u32,
    pub(crate) provenance: Provenance,
    pub(crate) at: Option<Timestamp>,
    pub(crate) text: Raw,
}

/// What an answer is looked up in.
pub(crate) struct Library<'a> {
    pub(crate) store: &'a Store,
    pub(crate) head: ObjectId,
    /// Every transcript that there is.
    pub(crate) found: Vec<(&'a Found, &'a SessionHead)>,
}

/// Takes `FILE:LINE` for a line where there is such a file, and all else for a
/// phrase.
///
/// # Errors
///
/// When it names a Markdown file that memory does not have.
pub(crate) fn question(store: &Store, head: ObjectId, text: &str) -> Result<Question, WhyError> {
    let parts = text.rsplit_once(':');
    let parts = parts.and_then(|(file, line)| Some((file, line.parse::<usize>().ok()?)));
    let Some((file, line_number)) = parts else {
        return Ok(Question::Phrase(text.to_owned()));
    };
    let inside = file.strip_prefix(&format!("{}/", store.folder().display()));
    let file = inside.unwrap_or(file);
    let files = store.snapshot(head)?.files;
    let exact = files.keys().find(|path| path.as_str() == file);
    let path = exact.or_else(|| files.keys().find(|path| is_end_of(path.as_str(), file)));
    match path {
        Some(path) => Ok(Question::Line {
            path: path.clone(),
            line_number,
        }),
        None if Path::new(file).extension().is_some_and(|it| it == "md") => Err(WhyError::NoFile {
            name: file.to_owned(),
        }),
        None => Ok(Question::Phrase(text.to_owned())),
    }
}

/// Answers a question: one answer for a line, one for each entry that holds a
/// phrase, at most `count_max`; and how many there are.
///
/// # Errors
///
/// When there is no such line or entry, or the history cannot be read.
pub(crate) fn answer(
    library: &Library<'_>,
    question: &Question,
    count_max: usize,
) -> Result<(Vec<Answer>, usize), WhyError> {
    match question {
        Question::Line { path, line_number } => {
            Ok((vec![about_line(library, path, *line_number)?], 1))
        }
        Question::Phrase(phrase) => {
            let spots = holding(library, phrase)?;
            if spots.is_empty() {
                return Err(WhyError::NoEntry);
            }
            let count = spots.len();
            let shown = spots.into_iter().take(count_max);
            let answers: Result<Vec<Answer>, WhyError> = shown
                .map(|spot| about(library, spot.clone(), Some(spot)))
                .collect();
            Ok((answers?, count))
        }
    }
}

/// Entries of the head that hold the words, whatever their case, width and
/// line ends.
fn holding(library: &Library<'_>, phrase: &str) -> Result<Vec<Spot>, WhyError> {
    let wanted = shingles::normalise(phrase);
    let mut spots = Vec::new();
    if wanted.is_empty() {
        return Ok(spots);
    }
    for (path, blob) in library.store.snapshot(library.head)?.files {
        if !hands::is_memory_file(path.kind()) {
            continue;
        }
        let text = library.store.text(blob.id)?;
        for entry in entries::parse(&path, text.unredacted()) {
            if entry.kind != EntryKind::TaskGroup
                && shingles::normalise(&entry.text).contains(&wanted)
            {
                let line = usize::try_from(entry.line_number).unwrap_or(1) - 1;
                let line_text = text.unredacted().lines().nth(line).unwrap_or_default();
                spots.push(Spot {
                    path: path.clone(),
                    line,
                    text: Raw::new(line_text),
                });
            }
        }
    }
    Ok(spots)
}

/// A line as the person sees it may stand elsewhere in the head, or nowhere.
fn about_line(
    library: &Library<'_>,
    path: &TreePath,
    line_number: usize,
) -> Result<Answer, WhyError> {
    let store = library.store;
    let head = store.trail().blob_at(library.head, path)?;
    let head = head.map(|blob| store.text(blob.id)).transpose()?;
    let head = head.as_ref().map_or("", Raw::unredacted);
    let bytes = store.read_work_tree(path)?;
    let now = match bytes.map(String::from_utf8) {
        Some(Ok(text)) => text,
        _ => head.to_owned(),
    };
    let lines = now.lines().count();
    let line = line_number.checked_sub(1).filter(|line| *line < lines);
    let Some(line) = line else {
        return Err(WhyError::NoLine {
            path: path.clone(),
            lines,
        });
    };
    let spot = Spot {
        path: path.clone(),
        line,
        text: Raw::new(now.lines().nth(line).unwrap_or_default()),
    };
    let map = LineMap::between(head, &now);
    let committed = map.old_of_new.get(line).copied().flatten();
    let in_head = committed.map(|line| Spot {
        line,
        ..spot.clone()
    });
    about(library, spot, in_head)
}

fn about(library: &Library<'_>, spot: Spot, in_head: Option<Spot>) -> Result<Answer, WhyError> {
    let Some(in_head) = in_head else {
        return Ok(Answer { spot, origin: None });
    };
    let blame = blame::blame(library.store, library.head, in_head.clone())?;
    let commit = library.store.commit(blame.commit)?;
    let is_by_person = matches!(commit.trailers.kind, None | Some(CommitKind::Edit));
    let sources = if is_by_person {
        Vec::new()
    } else {
        sources(library, &in_head, &blame, &commit)?
    };
    Ok(Answer {
        spot,
        origin: Some(Origin {
            commit,
            blame,
            is_by_person,
            sources,
        }),
    })
}

/// What the line rests on: what it cites now or cited when it came, else what
/// its commit took in and that says the same.
fn sources(
    library: &Library<'_>,
    now: &Spot,
    blame: &Blame,
    commit: &Commit,
) -> Result<Vec<Source>, WhyError> {
    let store = library.store;
    let mut words = blame.spot.text.unredacted().to_owned();
    let mut cited = BTreeSet::new();
    for (at, spot) in [(commit.id, &blame.spot), (library.head, now)] {
        let files = store.snapshot(at)?.files;
        let Some(text) = text_at(store, &files, &spot.path)? else {
            continue;
        };
        let all = entries::parse(&spot.path, &text);
        let around = around(&all, &text, spot.line);
        if let Some(entry) = around.first() {
            words.clone_from(&entry.text);
        }
        for entry in &around {
            cited.extend(cited_by(entry, &files));
            cited.extend(tasks_of(entry, &all).flat_map(|task| cited_by(task, &files)));
            if !cited.is_empty() {
                break;
            }
        }
    }
    let taken_in: Vec<TreePath> = (commit.trailers.inputs.iter())
        .filter(|input| input.change != ChangeKind::Deleted)
        .map(|input| input.path.clone())
        .collect();
    let then = store.snapshot(commit.id)?.files;
    let today = store.snapshot(library.head)?.files;
    let mut found: Vec<(f64, Source)> = Vec::new();
    let candidates: BTreeSet<&TreePath> = cited.iter().chain(&taken_in).collect();
    for path in candidates {
        let is_cited = cited.contains(path);
        let text = match text_at(store, &then, path)? {
            Some(text) => Some(text),
            None => text_at(store, &today, path)?,
        };
        let line = text.as_deref().and_then(|text| closest(&words, text));
        let likeness = line.map_or(0.0, |(likeness, ..)| likeness);
        if is_cited || SOURCE_LIKENESS_MIN <= likeness {
            let line = line.map(|(_, line, text)| (line + 1, Raw::new(text)));
            let source = source(library, path, text.as_deref(), line, &words, is_cited);
            found.push((likeness, source));
        }
    }
    found.sort_by(|(a, one), (b, other)| {
        (other.is_cited, b)
            .partial_cmp(&(one.is_cited, a))
            .unwrap_or(Ordering::Equal)
    });
    Ok(found
        .into_iter()
        .take(SOURCES_MAX)
        .map(|(_, it)| it)
        .collect())
}

fn text_at(
    store: &Store,
    files: &BTreeMap<TreePath, Blob>,
    path: &TreePath,
) -> Result<Option<String>, WhyError> {
    let Some(blob) = files.get(path) else {
        return Ok(None);
    };
    match store.text(blob.id) {
        Ok(text) => Ok(Some(text.unredacted().to_owned())),
        Err(StoreError::NotText { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The entries that hold a line, the innermost first.
fn around<'a>(all: &'a [Entry], text: &str, line: usize) -> Vec<&'a Entry> {
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut around: Vec<&Entry> = (all.iter())
        .filter(|entry| entry.bytes.contains(&start))
        .collect();
    around.sort_by_key(|entry| entry.bytes.len());
    around
}

fn cited_by(entry: &Entry, files: &BTreeMap<TreePath, Blob>) -> Vec<TreePath> {
    let of_file = |name: &String| TreePath::parse(&format!("{RECAPS}/{name}"));
    let mut cited: Vec<TreePath> = entry.recap_files.iter().filter_map(of_file).collect();
    if cited.is_empty() && !entry.thread_ids.is_empty() {
        // The name of a recap holds a hash of its thread's id.
        let hash = |id: &ThreadId| {
            let stem = recap_name::stem(id, Timestamp::from_seconds(0), None);
            stem.rsplit('-').next().unwrap_or_default().to_owned()
        };
        let hashes: BTreeSet<String> = entry.thread_ids.iter().map(hash).collect();
        let is_named = |path: &&TreePath| {
            let found = path.name().get(HASH_IN_NAME);
            path.kind() == FileKind::Recap && found.is_some_and(|found| hashes.contains(found))
        };
        cited.extend(files.keys().filter(is_named).cloned());
    }
    cited
}

/// `[Task 2]` at the end of a bullet names a task of the same group.
fn tasks_of<'a>(entry: &'a Entry, all: &'a [Entry]) -> impl Iterator<Item = &'a Entry> {
    let group = entry.headings.first();
    all.iter().filter(move |task| {
        let title = task.text.split(':').next().unwrap_or_default();
        task.kind == EntryKind::Task
            && task.headings.first() == group
            && title.starts_with("Task ")
            && (entry.text.contains(&format!("[{title}]"))
                || entry.text.contains(&format!("[{title},"))
                || entry.text.contains(&format!(", {title}]"))
                || entry.headings.contains(&task.text))
    })
}

/// The line that says most of the same, with its number.
fn closest<'a>(words: &str, text: &'a str) -> Option<(f64, usize, &'a str)> {
    let wanted = shingles::normalise(words);
    let likeness = |line: &str| {
        let said = shingles::normalise(line);
        let is_inside = !said.is_empty() && 10 < wanted.len() && said.contains(&wanted);
        if is_inside {
            1.0
        } else {
            shingles::similarity(words, line)
        }
    };
    let lines = text.lines().enumerate();
    let mut best: Option<(f64, usize, &str)> = None;
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let likeness = likeness(line);
        if 0.0 < likeness && best.is_none_or(|(most, ..)| most < likeness) {
            best = Some((likeness, number, line));
        }
    }
    best
}

fn source(
    library: &Library<'_>,
    path: &TreePath,
    text: Option<&str>,
    line: Option<(usize, Raw)>,
    words: &str,
    is_cited: bool,
) -> Source {
    let mut source = Source {
        path: path.clone(),
        is_cited,
        line,
        session: None,
        gap: None,
    };
    let Some(text) = text else {
        source.gap = Some("the file is not in the history any more".to_owned());
        return source;
    };
    if path.kind() != FileKind::Recap {
        return source;
    }
    let Ok(recap) = recap::parse(path.name(), text) else {
        source.gap = Some("the recap has no header that can be read".to_owned());
        return source;
    };
    let header = recap.header;
    let mut session = SessionLink {
        thread_id: header.thread_id.clone(),
        agent: header.agent,
        rollout_path: header.rollout_path.as_str().to_owned(),
        evidence: Vec::new(),
    };
    let of_thread = (library.found.iter()).find(|(_, head)| head.thread_id == header.thread_id);
    match of_thread.map(|(found, _)| sessions::read(found)) {
        Some(Ok(read)) => {
            let said = source
                .line
                .as_ref()
                .map_or("", |(_, text)| text.unredacted());
            session.evidence = evidence(&read.items, said, words);
            if session.evidence.is_empty() {
                source.gap = Some("no line of the transcript says the same".to_owned());
            }
        }
        Some(Err(error)) => source.gap = Some(error.to_string()),
        None if header.adopted_at.is_some() => {
            source.gap = Some("the recap was adopted; its transcript is not here".to_owned());
        }
        None => source.gap = Some("its transcript is gone".to_owned()),
    }
    source.session = Some(session);
    source
}

/// The lines that the recap names, else the one that says the same.
fn evidence(items: &[Item], said: &str, words: &str) -> Vec<Evidence> {
    let own: Vec<&Item> = items.iter().filter(|item| item.place.part == 0).collect();
    let at = |line_number: u32| {
        let is_near = |item: &&Item| line_number <= item.place.line_number;
        own.iter().position(is_near)
    };
    let mut indexes: Vec<usize> = line_numbers(said).into_iter().filter_map(at).collect();
    if indexes.is_empty() {
        let by_likeness = own.iter().enumerate().filter_map(|(index, item)| {
            let (likeness, ..) = closest(words, item.text.unredacted())?;
            let is_human = item.provenance == Provenance::Human;
            (SOURCE_LIKENESS_MIN <= likeness).then_some((likeness, is_human, index))
        });
        let best = by_likeness.max_by(|a, b| {
            let order = (a.0).total_cmp(&b.0);
            order.then(a.1.cmp(&b.1)).then(b.2.cmp(&a.2))
        });
        indexes.extend(best.map(|(.., index)| index));
    }
    indexes.dedup();
    let shown = |item: &&Item| EvidenceItem {
        line_number: item.place.line_number,
        provenance: item.provenance,
        at: item.at,
        text: item.text.clone(),
    };
    (indexes.into_iter().take(PLACES_MAX))
        .map(|index| {
            let end = (index + ITEMS_AROUND + 1).min(own.len());
            Evidence {
                line_number: own[index].place.line_number,
                items: own[index.saturating_sub(ITEMS_AROUND)..end]
                    .iter()
                    .map(shown)
                    .collect(),
            }
        })
        .collect()
}

/// `(line 15)`, `lines 3-17`: the first number of each.
fn line_numbers(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for (at, _) in text.match_indices("line") {
        let rest = text[at + "line".len()..].trim_start_matches('s');
        let Some(rest) = rest.strip_prefix(' ') else {
            continue;
        };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        numbers.extend(digits.parse::<u32>().ok());
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::{closest, line_numbers};

    #[test]
    fn a_recap_names_lines_in_words() {
        for (text, expected) in [
            ("- always: \"x\" (line 15)", &[15][..]),
            ("lines 3-17 of the rollout; line 20, 2 times", &[3, 20]),
            ("a line, lines", &[]),
            ("nothing", &[]),
        ] {
            assert_eq!(line_numbers(text), expected, "{text}");
        }
    }

    #[test]
    fn the_line_that_says_the_same_is_found() {
        let text =
            "# Tasks\n\n- use tabs\n- always: \"Always run the whole suite first.\" (line 3)\n";
        let found = closest("Always run the whole suite first", text);
        assert_eq!(found.map(|(_, line, _)| line), Some(3));
        assert_eq!(closest("nothing alike", ""), None);
    }
}
