//! How the handbook's parts are written.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::note::NOTE_MARK;
use crate::domain::path::RECAPS;
use crate::domain::time::Timestamp;
use crate::model::offline::consolidate::facts::{Group, Kind, Source, Statement, Task};
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::outline::{Block, Section};

/// Key and title of the group that holds what only notes say.
pub(super) const NOTES_KEY: &str = "extensions/ad_hoc";

pub(in crate::model::offline::consolidate) const NOTES_TITLE: &str = "notes";

/// Most bytes of a project's identity.
const KEY_BYTES_MAX: usize = 300;

/// Most task marks that a bullet carries: the newest ones.
const REFERENCES_MAX: usize = 6;

pub(super) fn notes_group(statements: Vec<Statement>) -> Group {
    Group {
        key: NOTES_KEY.to_owned(),
        title: NOTES_TITLE.to_owned(),
        cwd: None,
        newest_at: Timestamp::default(),
        tasks: Vec::new(),
        statements,
    }
}

/// How a group's tasks are numbered.
#[derive(Default)]
pub(super) struct Numbers {
    /// By index of the new group's tasks.
    pub(super) of_task: BTreeMap<usize, u32>,
    /// Numbers of the head whose task is no more.
    pub(super) gone: BTreeSet<u32>,
}

pub(super) fn lead_only(group: &Group) -> Section {
    let mut section = Section::new(1, &format!("Task Group: {}", group.title));
    section
        .blocks
        .push(Block::paragraph(lead_lines(group).join("\n")));
    section
}

/// The lead of the group that holds what only notes say.
pub(in crate::model::offline::consolidate) fn notes_lead() -> [String; 2] {
    lead_lines(&notes_group(Vec::new()))
}

/// `scope:` and `applies_to:`.
pub(super) fn lead_lines(group: &Group) -> [String; 2] {
    if group.key == NOTES_KEY {
        return [
            "scope: what notes ask to remember".to_owned(),
            "applies_to: cwd=any; reuse_rule=holds until a note changes it".to_owned(),
        ];
    }
    if group.key.starts_with("extensions/") {
        return [
            format!("scope: what lies in {}/resources", group.key),
            "applies_to: cwd=any; reuse_rule=open the file before relying on it".to_owned(),
        ];
    }
    let key = if group.key.is_empty() {
        "unknown folders".to_owned()
    } else {
        line::of_header(&group.key, KEY_BYTES_MAX)
    };
    // A semicolon ends the folder.
    let cwd = group.cwd.as_deref().unwrap_or("unknown").replace(';', ",");
    [
        format!("scope: sessions in {key}"),
        format!(
            "applies_to: cwd={cwd}; reuse_rule=this project; check against the code before relying on it"
        ),
    ]
}

/// `title, outcome`.
pub(super) fn task_title(task: &Task) -> String {
    format!("{}, {}", task.title, task.outcome.label())
}

pub(super) fn file_bullet(source: &Source) -> String {
    format!(
        "- {RECAPS}/{} (cwd={}, rollout_path={}, updated_at={}, thread_id={})",
        source.path.name(),
        source.cwd.as_deref().unwrap_or("unknown"),
        source.rollout_path,
        source.updated_at,
        source.thread_id,
    )
}

pub(super) fn bullet(one: &Statement, numbers: &Numbers) -> Block {
    let mut text = format!("- {}", one.text);
    if let Some(note) = &one.note {
        text.push_str(" (");
        text.push_str(note.as_str());
        text.push(')');
    }
    let of_tasks: Vec<u32> = one
        .tasks
        .iter()
        .filter_map(|task| numbers.of_task.get(task).copied())
        .collect();
    let newest = &of_tasks[of_tasks.len().saturating_sub(REFERENCES_MAX)..];
    if one.kind != Kind::Said && !newest.is_empty() {
        let marks = newest.iter().map(|number| format!("[Task {number}]"));
        text.push(' ');
        text.extend(marks);
    }
    if one.note.is_some() {
        text.push(' ');
        text.push_str(NOTE_MARK);
    }
    Block::bullet(text)
}

impl Numbers {
    pub(super) fn is_gone(&self, number: u32) -> bool {
        self.gone.contains(&number)
    }
}
