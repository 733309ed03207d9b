//! The offline rules at work in a staging folder: read, fold, write.
//!
//! # Not in here
//!
//! No decisions: [`consolidate`] makes them all, from values to values.
//!
//! # Crash safety
//!
//! Staging is private and thrown away after a crash, so nothing is flushed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use crate::domain::item::Trust;
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::note::Note;
use crate::domain::path::{
    EXTENSIONS, FileKind, HANDBOOK, NOTES, RAW_MEMORIES, RECAPS, SUMMARY, TreePath,
};
use crate::domain::recap::Recap;
use crate::domain::text::{Raw, Redacted};
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::{
    Before, NoteInput, OfflineInputs, OfflineOutput, RecapInput, RemovedNote, RemovedRecap,
    ResourceInput, consolidate,
};
use crate::model::offline::raw_memories;
use crate::model::{
    ChangedInput, ConsolidationRequest, ModelError, Retired, Skipped, Tokens, WorkerReport,
};
use crate::sys::fs::{self, EntryType, FsError};
use crate::text::pointers::{self, Target};
use crate::text::{note, recap, redact};

/// How many folders deep resources are looked for.
const RESOURCE_DEPTH_MAX: u32 = 8;

/// Why the rules leave a new recap out of the handbook or the summary.
const NO_TASK: &str = "no task of it may stand in the handbook: withheld, or taken out before";
const NO_ROOM: &str = "no room in the summary, or what it says is withheld";

/// A line of an extension's instructions that vouches for its resources.
const OWN_TRUST: &str = "trust: own";

/// Edits the memory files in the staging folder of `request`.
///
/// # Errors
///
/// [`ModelError::Files`] when staging cannot be read or written,
/// [`ModelError::Cancelled`] when the caller says stop.
pub(crate) fn work(request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> {
    let inputs = gather(request).map_err(ModelError::Files)?;
    let output = consolidate(&inputs);
    if !request.meter.keep_going() {
        return Err(ModelError::Cancelled);
    }
    write(request.staging, &inputs, &output).map_err(ModelError::Files)?;
    let skipped = skipped(&inputs, &output);
    let retired = output.retired.into_iter().map(|entry| Retired {
        entry: entry.text.into_string(),
        reason: entry.reason.label().to_owned(),
    });
    let forgotten = output.forgotten.into_iter();
    Ok(WorkerReport {
        finished: true,
        has_read_prompt: false,
        words: output.words,
        retired: retired.collect(),
        skipped,
        unmatched_notes: output.unmatched_notes,
        forgotten: forgotten.map(Redacted::into_string).collect(),
        tokens: Tokens::default(),
    })
}

/// New and changed recaps that the file which leads to recaps does not cite.
fn skipped(inputs: &OfflineInputs, output: &OfflineOutput) -> Vec<Skipped> {
    let (text, reason) = match &output.handbook {
        Some(handbook) => (handbook, NO_TASK),
        None => (&output.summary, NO_ROOM),
    };
    let mut cited = BTreeSet::new();
    for pointer in pointers::find(text.as_str()) {
        cited.insert(match pointer.target {
            Target::Recap(name) => name,
            Target::Thread(thread_id) => thread_id.to_string(),
        });
    }
    let is_left_out = |one: &&RecapInput| {
        let thread_id = one.recap.header.thread_id.as_str();
        one.before != Before::Same && !cited.contains(one.path.name()) && !cited.contains(thread_id)
    };
    (inputs.recaps.iter().filter(is_left_out))
        .map(|one| Skipped {
            thread_id: one.recap.header.thread_id.clone(),
            reason: reason.to_owned(),
        })
        .collect()
}

/// Files that say what they said before are left alone.
fn write(staging: &Path, inputs: &OfflineInputs, output: &OfflineOutput) -> Result<(), FsError> {
    let files = [
        (SUMMARY, Some(&output.summary), &inputs.head_summary),
        (HANDBOOK, output.handbook.as_ref(), &inputs.head_handbook),
    ];
    for (name, text, before) in files {
        let Some(text) = text else { continue };
        if before.as_ref().map(Raw::unredacted) != Some(text.as_str()) {
            fs::write_unflushed(&staging.join(name), text.as_str().as_bytes(), false)?;
        }
    }
    Ok(())
}

fn gather(request: &ConsolidationRequest<'_>) -> Result<OfflineInputs, FsError> {
    let changes = Changes(request.changes);
    let staging = request.staging;
    let raw_memories = read(staging, RAW_MEMORIES)?.unwrap_or_default();
    let raw_memories = raw_memories::parse(&raw_memories);
    let mut inputs = OfflineInputs {
        version: request.version,
        recaps: Vec::new(),
        removed_recaps: Vec::new(),
        notes: Vec::new(),
        removed_notes: Vec::new(),
        resources: Vec::new(),
        head_summary: read(staging, SUMMARY)?.map(Raw::new),
        head_handbook: match request.version {
            MemoryVersion::V1 => read(staging, HANDBOOK)?.map(Raw::new),
            MemoryVersion::V2 => None,
        },
        person_entries: request.person_entries.to_vec(),
        rewritings: request.rewritings.to_vec(),
        withheld: request.withheld.to_vec(),
        summary_bytes_max: request.summary_bytes_max,
    };
    for (path, text) in files(staging, RECAPS)? {
        // One that does not parse takes no part; the validator says so.
        let Ok(mut recap) = recap::parse(path.name(), &text) else {
            continue;
        };
        let raw_memory = raw_memories.get(&recap.header.thread_id);
        recap.header.raw_memory = raw_memory.map(|text| redact::redact_str(text));
        let before = changes.before(&path, |old| parse_recap(&path, old));
        inputs.recaps.push(RecapInput {
            path,
            recap,
            before,
        });
    }
    for (path, text) in files(staging, NOTES)? {
        let Ok(note) = note::parse(&path, &text) else {
            continue;
        };
        let before = changes.before(&path, |old| parse_note(&path, old));
        inputs.notes.push(NoteInput { note, before });
    }
    add_removed(&changes, &mut inputs);
    add_resources(staging, &changes, &mut inputs)?;
    Ok(inputs)
}

struct Changes<'a>(&'a [ChangedInput]);

impl Changes<'_> {
    fn of(&self, path: &TreePath) -> Option<&ChangedInput> {
        self.0.iter().find(|change| change.path == *path)
    }

    fn before<T>(&self, path: &TreePath, parse: impl Fn(&str) -> Option<T>) -> Before<T> {
        match self.of(path) {
            None => Before::Same,
            Some(change) => match &change.old {
                None => Before::Absent,
                Some(old) => Before::Other(parse(old.unredacted())),
            },
        }
    }
}

fn parse_recap(path: &TreePath, text: &str) -> Option<Recap> {
    recap::parse(path.name(), text).ok()
}

fn parse_note(path: &TreePath, text: &str) -> Option<Note> {
    note::parse(path, text).ok()
}

fn add_removed(changes: &Changes<'_>, inputs: &mut OfflineInputs) {
    for change in changes.0.iter().filter(|change| change.is_removed) {
        let path = &change.path;
        let old = change.old.as_ref().map(Raw::unredacted);
        match path.kind() {
            FileKind::Recap => {
                inputs.removed_recaps.push(RemovedRecap {
                    path: path.clone(),
                    recap: old.and_then(|old| parse_recap(path, old)),
                });
            }
            FileKind::Note => inputs.removed_notes.push(RemovedNote {
                note: old.and_then(|old| parse_note(path, old)),
            }),
            _ => {}
        }
    }
}

fn add_resources(
    staging: &Path,
    changes: &Changes<'_>,
    inputs: &mut OfflineInputs,
) -> Result<(), FsError> {
    for folder in fs::list(&staging.join(EXTENSIONS))? {
        let name = folder.path.file_name().and_then(|name| name.to_str());
        let (EntryType::Folder, Some(name)) = (folder.kind, name) else {
            continue;
        };
        let instructions = read(staging, &format!("{EXTENSIONS}/{name}/instructions.md"))?;
        let says_own =
            instructions.is_some_and(|text| text.lines().any(|line| line.trim() == OWN_TRUST));
        let mut found = Vec::new();
        let below = format!("{EXTENSIONS}/{name}/resources");
        collect(staging, &below, RESOURCE_DEPTH_MAX, &mut found)?;
        for (path, text) in found {
            inputs.resources.push(ResourceInput {
                is_new: changes.of(&path).is_some(),
                path,
                text: Raw::new(text),
                trust: if says_own {
                    Trust::Own
                } else {
                    Trust::External
                },
            });
        }
    }
    Ok(())
}

fn collect(
    staging: &Path,
    below: &str,
    depth_left: u32,
    found: &mut Vec<(TreePath, String)>,
) -> Result<(), FsError> {
    found.extend(files(staging, below)?);
    if depth_left == 0 {
        return Ok(());
    }
    for entry in fs::list(&staging.join(below))? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        if let (EntryType::Folder, Some(name)) = (entry.kind, name) {
            collect(staging, &format!("{below}/{name}"), depth_left - 1, found)?;
        }
    }
    Ok(())
}

/// The Markdown files of a folder, sorted. Links, other names and files that
/// are no text are passed over: the validator has its word on them.
fn files(staging: &Path, folder: &str) -> Result<Vec<(TreePath, String)>, FsError> {
    let mut files = Vec::new();
    for entry in fs::list(&staging.join(folder))? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        let (EntryType::File, Some(name)) = (entry.kind, name) else {
            continue;
        };
        let path = TreePath::parse(&format!("{folder}/{name}"));
        let Some(path) = path.filter(|_| entry.path.extension() == Some(OsStr::new("md"))) else {
            continue;
        };
        if let Some(text) = read(staging, path.as_str())? {
            files.push((path, text));
        }
    }
    Ok(files)
}

/// `None` when there is no such file or it is no text.
fn read(staging: &Path, path: &str) -> Result<Option<String>, FsError> {
    match fs::read_text_if_any(&staging.join(path), SNAPSHOT_FILE_BYTES_MAX) {
        Err(error) if error.source.kind() == std::io::ErrorKind::InvalidData => Ok(None),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::work;
    use crate::domain::path::TreePath;
    use crate::domain::text::{Raw, Redacted};
    use crate::domain::version::MemoryVersion;
    use crate::model::{ChangedInput, ConsolidationRequest, ModelError, Unmetered};
    use crate::sys::fs;

    const RECAP: &str = "rollout_summaries/2026-12-01T10-00-00-abcd.md";
    const NOTE: &str = "extensions/ad_hoc/notes/2026-12-02T10-00-00-uv.md";

    fn recap(knowledge: &str) -> String {
        format!(
            "---\nthread_id: t-1\nupdated_at: 2026-12-01T12:00:00+00:00\nrollout_path: /s/t.jsonl\ncwd: /w/x\n---\n\n\
             # a session\n\n## Task 1: do it\n\nReusable knowledge:\n- {knowledge}\n"
        )
    }

    fn put(staging: &std::path::Path, path: &str, text: &str) {
        let file = staging.join(path);
        fs::make_folders(file.parent().unwrap()).unwrap();
        fs::replace(&file, text.as_bytes()).unwrap();
    }

    fn request<'a>(
        staging: &'a std::path::Path,
        changes: &'a [ChangedInput],
        meter: &'a Unmetered,
    ) -> ConsolidationRequest<'a> {
        ConsolidationRequest {
            version: MemoryVersion::V1,
            staging,
            prompt: Redacted::default(),
            changes,
            withheld: &[],
            person_entries: &[],
            rewritings: &[],
            summary_bytes_max: 8_000,
            diagnostics: None,
            meter,
        }
    }

    fn change(path: &str, old: Option<&str>, is_removed: bool) -> ChangedInput {
        ChangedInput {
            path: TreePath::parse(path).unwrap(),
            old: old.map(Raw::new),
            is_removed,
        }
    }

    #[test]
    fn a_staging_folder_is_read_folded_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let staging = folder.path();
        put(staging, RECAP, &recap("the port is 8080"));
        put(staging, NOTE, "use uv in every project");
        put(
            staging,
            "extensions/ad_hoc/notes/broken.md",
            "---\nkind: dance\n---\nx",
        );
        put(
            staging,
            "extensions/web/instructions.md",
            "what I read\ntrust: own\n",
        );
        put(
            staging,
            "extensions/web/resources/deep/2026-12-01T00-00-00-x.md",
            "# A page",
        );
        let raw = "# Raw Memories\n\nintro\n\n## Thread `t-1`\nupdated_at: 2026-12-01T12:00:00+00:00\n\n---\nkeywords: alpha, beta\n---\n";
        put(staging, "raw_memories.md", raw);
        let changes = [change(RECAP, None, false), change(NOTE, None, false)];
        let report = work(&request(staging, &changes, &Unmetered { is_wanted: true })).unwrap();
        assert!(report.finished);
        let text = |name: &str| {
            fs::read_text_if_any(&staging.join(name), 99_999)
                .unwrap()
                .unwrap()
        };
        for part in [
            "- the port is 8080 [Task 1]",
            "- alpha, beta",
            "use uv in every project",
            "A page — extensions/web/resources/deep/",
        ] {
            assert!(
                text("MEMORY.md").contains(part),
                "{part}\n{}",
                text("MEMORY.md")
            );
        }
        assert!(!text("MEMORY.md").contains("(external source)"));
        assert!(text("memory_summary.md").starts_with("v1\n"));

        // The recap changed and the note went: what each said before goes.
        put(staging, RECAP, &recap("the host is example.org"));
        fs::remove(&staging.join(NOTE)).unwrap();
        let changes = [
            change(RECAP, Some(&recap("the port is 8080")), false),
            change(NOTE, Some("use uv in every project"), true),
        ];
        let report = work(&request(staging, &changes, &Unmetered { is_wanted: true })).unwrap();
        assert!(text("MEMORY.md").contains("- the host is example.org [Task 1]"));
        assert!(!text("MEMORY.md").contains("8080") && !text("MEMORY.md").contains("uv"));
        assert!(
            report
                .retired
                .iter()
                .any(|one| one.entry == "the port is 8080"),
            "{:?}",
            report.retired
        );
    }

    #[test]
    fn a_worker_that_is_told_to_stop_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), RECAP, &recap("the port is 8080"));
        let error = work(&request(
            folder.path(),
            &[],
            &Unmetered { is_wanted: false },
        ))
        .unwrap_err();
        assert!(matches!(error, ModelError::Cancelled));
        assert!(!fs::is_taken(&folder.path().join("memory_summary.md")));
    }
}
