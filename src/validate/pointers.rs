//! `P`: references in the memory files to recaps, sessions and other files.

use std::collections::{BTreeMap, BTreeSet};

use super::{Diagnostics, Place, Tree, quote};
use crate::domain::entry::EntryKind;
use crate::domain::id::ThreadId;
use crate::domain::path::{FileKind, TreePath};
use crate::text::document::{self, Document};
use crate::text::entries;
use crate::text::pointers::{self, Target};
use crate::text::recap;

/// Which recaps are there, by file name, with the sessions they are about.
struct Known<'a> {
    /// What a recap says of its transcript, by file name and by session.
    rollouts: BTreeMap<String, String>,
    threads_by_recap: BTreeMap<&'a str, Option<ThreadId>>,
    threads: BTreeSet<ThreadId>,
}

pub(super) fn check(tree: &Tree<'_>, found: &mut Diagnostics) {
    let known = known(tree);
    for (path, text) in tree.files {
        let is_markdown = path.as_str().to_ascii_lowercase().ends_with(".md");
        if !path.kind().is_output() || !is_markdown {
            continue;
        }
        let document = document::parse(text, entries::markdown_start(path, text));
        check_targets(path, text, &document, &known, found);
        check_rollouts(path, text, &document, &known, found);
        check_links(tree, path, text, &document, found);
        if matches!(path.kind(), FileKind::Summary | FileKind::Handbook) {
            check_pairs(path, text, &known, found);
        }
    }
}

fn known<'a>(tree: &Tree<'a>) -> Known<'a> {
    let threads_by_recap: BTreeMap<&str, Option<ThreadId>> = tree
        .of_kind(FileKind::Recap)
        .map(|(path, text)| {
            let fields = recap::read_fields(text).ok();
            let thread_id =
                fields.and_then(|(fields, _)| ThreadId::parse(fields.text("thread_id")?));
            (path.name(), thread_id)
        })
        .collect();
    Known {
        rollouts: rollouts(tree),
        threads: threads_by_recap.values().flatten().cloned().collect(),
        threads_by_recap,
    }
}

fn rollouts(tree: &Tree<'_>) -> BTreeMap<String, String> {
    let mut rollouts = BTreeMap::new();
    for (path, text) in tree.of_kind(FileKind::Recap) {
        let Ok((fields, _)) = recap::read_fields(text) else {
            continue;
        };
        if let Some(rollout) = fields.text("rollout_path") {
            rollouts.insert(path.name().to_owned(), rollout.to_owned());
            let thread_id = fields.text("thread_id");
            rollouts.extend(thread_id.map(|id| (id.to_owned(), rollout.to_owned())));
        }
    }
    rollouts
}

/// A line that cites one recap and names a transcript names the recap's.
fn check_rollouts(
    path: &TreePath,
    text: &str,
    document: &Document,
    known: &Known<'_>,
    found: &mut Diagnostics,
) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let line_start = start;
        start += line.len();
        let Some(named) = pointers::rollout_of(line, &known.rollouts) else {
            continue;
        };
        let bytes = line_start + named.bytes.start..line_start + named.bytes.end;
        if !named.is_right && !document.is_in_code(bytes.start) {
            found.add_other_rollout(Place::at(path, text, bytes));
        }
    }
}

fn check_targets(
    path: &TreePath,
    text: &str,
    document: &Document,
    known: &Known<'_>,
    found: &mut Diagnostics,
) {
    for pointer in pointers::find(text) {
        if document.is_in_code(pointer.bytes.start) {
            continue;
        }
        let place = Place::at(path, text, pointer.bytes);
        match pointer.target {
            Target::Recap(name) if !known.threads_by_recap.contains_key(name.as_str()) => {
                found.add_missing_recap(place, &name);
            }
            Target::Thread(id) if !known.threads.contains(&id) => {
                found.add_unknown_thread(place, &id);
            }
            Target::Recap(_) | Target::Thread(_) => {}
        }
    }
}

/// Links between memory files, relative to the file or to the folder.
fn check_links(
    tree: &Tree<'_>,
    path: &TreePath,
    text: &str,
    document: &Document,
    found: &mut Diagnostics,
) {
    let folder = path
        .as_str()
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder);
    for (target, bytes) in &document.links {
        let target = target.split(['#', '?']).next().unwrap_or_default();
        let target = target.strip_prefix("./").unwrap_or(target);
        let is_memory_file = target.to_ascii_lowercase().ends_with(".md") && !target.contains(':');
        if !is_memory_file || !pointers::find(&text[bytes.clone()]).is_empty() {
            continue;
        }
        let is_there = [target.to_owned(), format!("{folder}/{target}")]
            .iter()
            .any(|candidate| {
                TreePath::parse(candidate).is_some_and(|path| tree.files.contains_key(&path))
            });
        if !is_there {
            found.add_dead_link(Place::at(path, text, bytes.clone()), target);
        }
    }
}

/// An entry that cites one recap and one session cites the recap's session.
fn check_pairs(path: &TreePath, text: &str, known: &Known<'_>, found: &mut Diagnostics) {
    for entry in entries::parse(path, text) {
        let ([recap], [thread_id]) = (&entry.recap_files[..], &entry.thread_ids[..]) else {
            continue;
        };
        let actual = known.threads_by_recap.get(recap.as_str());
        let is_other = matches!(actual, Some(Some(actual)) if actual != thread_id);
        if is_other && entry.kind != EntryKind::TaskGroup && known.threads.contains(thread_id) {
            let line = text[entry.bytes.clone()].lines().next().unwrap_or_default();
            let bytes = entry.bytes.start..entry.bytes.start + line.len();
            found.add_mismatched_pair(Place::at(path, text, bytes), recap, thread_id);
        }
    }
}

impl Diagnostics {
    fn add_missing_recap(&mut self, place: Place<'_>, name: &str) {
        let message = format!("there is no recap {}", quote(name));
        self.add("P001", place, &message, None);
    }

    fn add_unknown_thread(&mut self, place: Place<'_>, thread_id: &ThreadId) {
        let message = format!("no recap is about the session `{thread_id}`");
        self.add("P002", place, &message, None);
    }

    fn add_dead_link(&mut self, place: Place<'_>, target: &str) {
        let message = format!("the link leads to {}, which is not there", quote(target));
        self.add("P003", place, &message, None);
    }

    fn add_mismatched_pair(&mut self, place: Place<'_>, recap: &str, thread_id: &ThreadId) {
        let message = format!(
            "the recap {} is not about the session `{thread_id}`",
            quote(recap)
        );
        self.add("P004", place, &message, None);
    }

    fn add_other_rollout(&mut self, place: Place<'_>) {
        let message = "the recap names another transcript as its `rollout_path`";
        let hint = Some("copy the path from the recap's header");
        self.add("P005", place, message, hint);
    }
}
