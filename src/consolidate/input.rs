//! What the worker reads: raw memories, the workspace diff, the prompt.

use std::fmt::Write as _;

use minijinja::{Environment, UndefinedBehavior, context};

use crate::consolidate::select::Candidate;
use crate::domain::entry::Entry;
use crate::domain::id::ThreadId;
use crate::domain::path::{EXTENSIONS, RECAPS, TreePath, WORKSPACE_DIFF};
use crate::domain::session::WORKER_MARK;
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::model::WorkerMode;
use crate::store::diff::FileDiff;
use crate::store::message::ChangeKind;
use crate::sys::ids::hex;
use crate::text::redact;

const PROMPT_V1: &str = include_str!("../../prompts/consolidate-v1.md");
const PROMPT_V2: &str = include_str!("../../prompts/consolidate-v2.md");

/// Most bytes of diff text that a worker is given (reference 6.6).
pub(crate) const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most of the person's entries that a prompt lists; the judge knows all.
const PERSON_ENTRIES_LISTED_MAX: usize = 200;

/// `raw_memories.md` where no session has a raw memory.
const NO_RAW_MEMORIES: &str = "# Raw Memories\n\nNo raw memories yet.\n";
/// Begins the block of a session.
const RAW_BLOCK: &str = "## Thread `";

/// `raw_memories.md`: the raw memory of each recap, by thread id so that its
/// diff is quiet (reference 3.3).
pub(crate) fn raw_memories(chosen: &[Candidate]) -> Redacted {
    let with_raw = |candidate: &&Candidate| raw_memory(candidate).is_some();
    if !chosen.iter().any(|candidate| with_raw(&candidate)) {
        return redact::redact_str(NO_RAW_MEMORIES);
    }
    let mut text = String::from(
        "# Raw Memories\n\nOne block per session, in ascending order of thread ids.\n\n",
    );
    for candidate in chosen.iter().filter(with_raw) {
        let header = &candidate.recap.header;
        let cwd = header.cwd.as_ref().map_or("", Redacted::as_str);
        let _ = writeln!(text, "{RAW_BLOCK}{}`", header.thread_id);
        let _ = writeln!(text, "updated_at: {}", header.updated_at);
        let _ = writeln!(text, "cwd: {cwd}");
        let _ = writeln!(text, "rollout_path: {}", header.rollout_path);
        let _ = writeln!(text, "rollout_summary_file: {}", candidate.path.name());
        let _ = writeln!(text, "\n{}\n", raw_memory(candidate).unwrap_or_default());
    }
    redact::redact_str(&text)
}

/// `raw_memories.md` without the blocks of some sessions.
pub(crate) fn without_sessions(raw_memories: &str, gone: &[&ThreadId]) -> String {
    let is_gone = |block: &str| {
        let id = block.split('`').next().unwrap_or_default();
        gone.iter().any(|thread_id| thread_id.as_str() == id)
    };
    let mut blocks = raw_memories.split(RAW_BLOCK);
    let head = blocks.next().unwrap_or_default();
    let left: Vec<&str> = blocks.filter(|block| !is_gone(block)).collect();
    if left.is_empty() {
        return NO_RAW_MEMORIES.to_owned();
    }
    let each = left.into_iter().map(|block| format!("{RAW_BLOCK}{block}"));
    format!("{head}{}", each.collect::<String>())
}

fn raw_memory(candidate: &Candidate) -> Option<&str> {
    let raw = candidate.recap.header.raw_memory.as_ref()?.as_str().trim();
    (!raw.is_empty()).then_some(raw)
}

/// `phase2_workspace_diff.md`: what changed since the last baseline.
///
/// The diff text is cut at [`DIFF_BYTES_MAX`], at a character's border.
///
/// # Source
///
/// Reference 6.6, row 80.
pub(crate) fn workspace_diff(diffs: &[FileDiff]) -> Redacted {
    let mut text = String::from(
        "# Memory Workspace Diff\n\n\
         Generated before this run from the last baseline. Read it first; do not edit it.\n\n\
         ## Status\n",
    );
    if diffs.is_empty() {
        text.push_str("- none\n");
    }
    for diff in diffs {
        let letter = match diff.kind {
            ChangeKind::Added => 'A',
            ChangeKind::Modified => 'M',
            ChangeKind::Deleted => 'D',
        };
        let _ = writeln!(text, "- {letter} {}", diff.path);
    }
    text.push_str("\n## Diff\n\n");
    let mut body = String::new();
    for diff in diffs {
        body.push_str(&diff.text);
        if body.len() > DIFF_BYTES_MAX {
            break;
        }
    }
    let body = redact::redact_str(&body);
    let kept = floor_char_boundary(body.as_str(), DIFF_BYTES_MAX);
    let fence = fence_for(&body.as_str()[..kept]);
    let _ = writeln!(text, "{fence}diff");
    text.push_str(&body.as_str()[..kept]);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if kept < body.as_str().len() {
        let _ = writeln!(text, "[workspace diff truncated at {DIFF_BYTES_MAX} bytes]");
    }
    let _ = writeln!(text, "{fence}");
    redact::redact_str(&text)
}

/// A fence longer than any run of backticks in the text.
fn fence_for(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}

fn floor_char_boundary(text: &str, bytes_max: usize) -> usize {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// What the prompt of a consolidation tells.
pub(crate) struct PromptFacts<'a> {
    pub(crate) version: MemoryVersion,
    pub(crate) mode: WorkerMode,
    /// The summary is there, but does not begin with `v1`.
    pub(crate) resets_summary: bool,
    /// The staging folder as the worker can open it.
    pub(crate) staging: &'a str,
    /// Paths of the staged tree.
    pub(crate) paths: &'a [TreePath],
    pub(crate) person_entries: &'a [Entry],
    /// What code did for notes already.
    pub(crate) orders: &'a [String],
    pub(crate) summary_bytes_max: usize,
    /// A person's own template instead of ours.
    pub(crate) template: Option<&'a str>,
}

/// What a worker is asked, and by which template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) text: Redacted,
    /// Name and hash of the template: `consolidate-v1@1f0c44e09ab2`.
    pub(crate) identity: Redacted,
}

/// Renders the prompt of a worker that reads prompts.
///
/// # Errors
///
/// When a person's own template cannot be rendered; a test rules it out for
/// the built-in ones.
pub(crate) fn prompt(facts: &PromptFacts<'_>) -> Result<Prompt, minijinja::Error> {
    let built_in = match facts.version {
        MemoryVersion::V1 => PROMPT_V1,
        MemoryVersion::V2 => PROMPT_V2,
    };
    let template = facts.template.unwrap_or(built_in);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let rendered = environment.render_str(
        template,
        context! {
            mark => WORKER_MARK,
            staging => facts.staging,
            diff_file => WORKSPACE_DIFF,
            mode => facts.mode.to_string(),
            resets_summary => facts.resets_summary,
            extensions => extensions(facts.paths),
            orders => facts.orders.join("\n"),
            person_entries => person_entries(facts.person_entries),
            recaps => RECAPS,
            summary_bytes_max => facts.summary_bytes_max,
        },
    )?;
    let hash = hex(&blake3::hash(template.as_bytes()).as_bytes()[..6]);
    let identity = redact::redact_str(&format!("consolidate-{}@{hash}", facts.version));
    // A template of a person's own may have left the mark out.
    let text = if rendered.contains(WORKER_MARK) {
        redact::redact_str(&rendered)
    } else {
        redact::redact_str(&format!("{WORKER_MARK}\n\n{rendered}"))
    };
    Ok(Prompt { text, identity })
}

/// The extensions with their files; empty when there is none besides what is
/// withheld.
fn extensions(paths: &[TreePath]) -> String {
    let mut text = String::new();
    let inside = format!("{EXTENSIONS}/");
    for path in paths {
        if path.as_str().starts_with(&inside) {
            let _ = writeln!(text, "{path}");
        }
    }
    text.trim_end().to_owned()
}

fn person_entries(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries.iter().take(PERSON_ENTRIES_LISTED_MAX) {
        let _ = writeln!(text, "{}: {}", entry.path, entry.text.trim());
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
