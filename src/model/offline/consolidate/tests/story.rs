//! Inputs as text: blocks that begin with `@@`.
//!
//! ```text
//! @@ recap a example.org/ledger 2026-12-01      id, project, day
//! @@ note 2026-12-02 prefer-uv                  day, slug
//! @@ person MEMORY.md                           entries, one a line
//! @@ withheld                                   texts, one a line
//! @@ resource chronicle/2026-12-01T00-00-00-x.md
//! ```

use std::collections::BTreeMap;

use crate::domain::entry::{Entry, EntryKind};
use crate::domain::id::ThreadId;
use crate::domain::item::Trust;
use crate::domain::path::TreePath;
use crate::domain::recap::{Recap, RecapHeader};
use crate::domain::session::Agent;
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::domain::withheld::{Withheld, WithheldReason, WithheldWhat};
use crate::model::offline::consolidate::{
    Before, NoteInput, OfflineInputs, OfflineOutput, RecapInput, RemovedNote, RemovedRecap,
    ResourceInput, consolidate,
};
use crate::text::{note, redact, shingles};

/// A memory folder that goes from pass to pass.
pub(super) struct Folder {
    pub(super) version: MemoryVersion,
    pub(super) summary_bytes_max: usize,
    pub(super) summary: Option<String>,
    pub(super) handbook: Option<String>,
    recaps: BTreeMap<TreePath, Recap>,
    notes: BTreeMap<TreePath, String>,
}

impl Folder {
    pub(super) fn new(version: MemoryVersion) -> Self {
        Self {
            version,
            summary_bytes_max: 8_000,
            summary: None,
            handbook: None,
            recaps: BTreeMap::new(),
            notes: BTreeMap::new(),
        }
    }

    /// Consolidates what `story` says is staged now, and takes the result.
    pub(super) fn pass(&mut self, story: &str) -> OfflineOutput {
        let inputs = self.inputs(story);
        let output = consolidate(&inputs);
        self.take(&inputs, &output);
        output
    }

    pub(super) fn take(&mut self, inputs: &OfflineInputs, output: &OfflineOutput) {
        self.summary = Some(output.summary.as_str().to_owned());
        self.handbook = output
            .handbook
            .as_ref()
            .map(|text| text.as_str().to_owned());
        let recaps = inputs.recaps.iter();
        self.recaps = recaps
            .map(|one| (one.path.clone(), one.recap.clone()))
            .collect();
        let notes = inputs.notes.iter().map(|one| &one.note);
        self.notes = notes
            .map(|one| (one.path.clone(), one.text.unredacted().to_owned()))
            .collect();
    }

    /// What `story` says is staged now, against what the last pass consumed.
    pub(super) fn inputs(&self, story: &str) -> OfflineInputs {
        let mut inputs = OfflineInputs {
            version: self.version,
            recaps: Vec::new(),
            removed_recaps: Vec::new(),
            notes: Vec::new(),
            removed_notes: Vec::new(),
            resources: Vec::new(),
            head_summary: self.summary.clone().map(Raw::new),
            head_handbook: self.handbook.clone().map(Raw::new),
            person_entries: Vec::new(),
            rewritings: Vec::new(),
            withheld: Vec::new(),
            summary_bytes_max: self.summary_bytes_max,
        };
        for block in story.split("@@ ").skip(1) {
            let (head, body) = block.split_once('\n').unwrap_or((block, ""));
            let words: Vec<&str> = head.split_whitespace().collect();
            match words.as_slice() {
                ["recap", id, project, day] => {
                    inputs.recaps.push(self.recap(id, project, day, body));
                }
                ["note", day, slug] => inputs.notes.push(self.note(day, slug, body)),
                ["person", file] => inputs.person_entries.extend(person(file, body)),
                ["withheld"] => inputs.withheld.extend(body.lines().map(withheld)),
                ["resource", path] => inputs.resources.push(ResourceInput {
                    path: TreePath::parse(&format!(
                        "extensions/{}",
                        path.replacen('/', "/resources/", 1)
                    ))
                    .unwrap(),
                    text: Raw::new(body),
                    trust: Trust::External,
                    is_new: true,
                }),
                _ => panic!("no such block: `{head}`"),
            }
        }
        self.removed(&mut inputs);
        inputs
    }

    fn removed(&self, inputs: &mut OfflineInputs) {
        for (path, recap) in &self.recaps {
            if !inputs.recaps.iter().any(|one| one.path == *path) {
                inputs.removed_recaps.push(RemovedRecap {
                    path: path.clone(),
                    recap: Some(recap.clone()),
                });
            }
        }
        for (path, text) in &self.notes {
            if !inputs.notes.iter().any(|one| one.note.path == *path) {
                inputs.removed_notes.push(RemovedNote {
                    note: note::parse(path, text).ok(),
                });
            }
        }
    }

    fn recap(&self, id: &str, project: &str, day: &str, body: &str) -> RecapInput {
        let recap = recap(id, project, day, body);
        let path =
            TreePath::parse(&format!("rollout_summaries/{day}T10-00-00-000{id}.md")).unwrap();
        let before = match self.recaps.get(&path) {
            Some(old) if *old == recap => Before::Same,
            Some(old) => Before::Other(Some(old.clone())),
            None => Before::Absent,
        };
        RecapInput {
            path,
            recap,
            before,
        }
    }

    fn note(&self, day: &str, slug: &str, body: &str) -> NoteInput {
        let path =
            TreePath::parse(&format!("extensions/ad_hoc/notes/{day}T09-00-00-{slug}.md")).unwrap();
        let note = note::parse(&path, body).unwrap();
        let before = match self.notes.get(&path) {
            Some(old) if old == note.text.unredacted() => Before::Same,
            Some(old) => Before::Other(note::parse(&path, old).ok()),
            None => Before::Absent,
        };
        NoteInput { note, before }
    }
}

/// `external/…` as project makes the whole recap external.
fn recap(id: &str, project: &str, day: &str, body: &str) -> Recap {
    let at = Timestamp::parse_rfc3339(&format!("{day}T12:00:00Z")).unwrap();
    let trust = if project.starts_with("external") {
        Trust::External
    } else {
        Trust::Own
    };
    Recap {
        header: RecapHeader {
            thread_id: ThreadId::parse(&format!("thread-1{id}")).unwrap(),
            agent: Some(Agent::Codex),
            updated_at: at,
            extracted_at: None,
            rollout_path: redact::redact_str(&format!("/s/{id}.jsonl")),
            cwd: Some(redact::redact_str(&format!(
                "/w/{}",
                project.rsplit('/').next().unwrap()
            ))),
            project: Some(redact::redact_str(project)),
            git_branch: None,
            model: None,
            prompt: None,
            trust: Some(trust),
            items_read: None,
            adopted_at: None,
            asked_at: None,
            slug: None,
            raw_memory: None,
        },
        body: redact::redact_str(body),
    }
}

fn person(file: &str, body: &str) -> Vec<Entry> {
    let path = TreePath::parse(file).unwrap();
    let lines = body.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| Entry {
            path: path.clone(),
            kind: EntryKind::Bullet,
            headings: Vec::new(),
            text: line.to_owned(),
            bytes: 0..0,
            line_number: 1,
            thread_ids: Vec::new(),
            recap_files: Vec::new(),
            is_from_note: false,
        })
        .collect()
}

fn withheld(text: &str) -> Withheld {
    Withheld {
        id: text.to_owned(),
        reason: WithheldReason::Forgotten,
        since: Timestamp::default(),
        what: WithheldWhat::Entry(shingles::hash_entry([7; 16], text)),
    }
}

/// The text of an output, for the eye.
pub(super) fn both(output: &OfflineOutput) -> String {
    let handbook = output.handbook.as_ref().map_or("", Redacted::as_str);
    format!("{}\n=== handbook\n{handbook}", output.summary)
}

/// The handbook's groups, tasks and statements: without the lines below a
/// group's heading, files and keywords.
pub(super) fn brief_handbook(text: &str) -> String {
    let mut kept = Vec::new();
    let mut is_list = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('#') {
            is_list = line == "### rollout_summary_files" || line == "### keywords";
        }
        if !is_list && !line.starts_with("scope: ") && !line.starts_with("applies_to: ") {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// The summary without blank lines and without its profile.
pub(super) fn brief_summary(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let from = lines.skip_while(|line| *line != "## User preferences");
    from.collect::<Vec<_>>().join("\n")
}

/// Passes one after the other, separated by `=== `; the last one's result.
#[track_caller]
pub(super) fn passes(version: MemoryVersion, story: &str) -> (Folder, OfflineOutput) {
    let mut folder = Folder::new(version);
    let mut last = None;
    for pass in story.split("=== pass\n") {
        last = Some(folder.pass(pass));
    }
    (folder, last.expect("splitting gives at least one part"))
}

pub(super) fn trimmed(text: &str) -> String {
    text.lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
