//! What a model is shown of a session.
//!
//! Version 1 is a JSON array of everything, cut in the middle. Version 2 is
//! rows with a label; they are chosen by tier, the person's words first, and
//! shown in their order. Everything is redacted before anything is cut, so
//! that no half of a secret is left.
//!
//! # Source
//!
//! Reference 5.6 and 5.7, with their numbers. Rows carry the line of the
//! transcript, so that what is made of them can be looked up.

use serde::Serialize;

use crate::domain::item::{Item, ItemKind, Provenance, Trust};
use crate::domain::limits::{BYTES_PER_TOKEN, FRAGMENT_BYTES_MAX, INPUT_TOKENS_DEFAULT};
use crate::domain::session::{MEMORY_OPEN, Session, SessionHead, WORKER_MARK};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::model::SessionFacts;
use crate::sys::ids::hex;
use crate::text::redact::{redact, redact_item, redact_str};
use crate::text::truncate::{fragments, middle_bytes, middle_tokens};

/// Share of a model's window that can be used, and of that the share that the
/// transcript may take, in percent.
const EFFECTIVE_PERCENT: usize = 95;
const TRANSCRIPT_PERCENT: usize = 70;

/// Room for a truncation marker, in bytes.
const RESERVE: usize = 96;
const TOOL_OUTPUT_BYTES_MAX: usize = 2_000 * BYTES_PER_TOKEN - RESERVE;
const ROW_BYTES_MAX: usize = 10_000 - RESERVE;

/// Stands for a run of rows that are left out.
const GAP: &str = "[... response items omitted ...]\n";

/// A session that may be shown and written down.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) facts: SessionFacts,
    pub(crate) items: Vec<Item<Redacted>>,
}

/// Redacts a session.
pub(crate) fn prepare(session: Session) -> Prepared {
    Prepared {
        facts: SessionFacts {
            uses_memory: !session.citations.is_empty(),
            ..facts(&session.head)
        },
        items: (session.items.into_iter())
            .filter(is_shown)
            .map(redact_item)
            .collect(),
    }
}

/// Instructions and skills that a harness put in are known already, and our own
/// memory is no evidence. The rest of the context stays (reference 5.4).
fn is_shown(item: &Item) -> bool {
    if item.provenance != Provenance::HarnessContext {
        return true;
    }
    let text = item.text.unredacted().trim();
    let is_between = |open: &str, close: &str| {
        let begins = text
            .get(..open.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(open));
        let end = text
            .len()
            .checked_sub(close.len())
            .and_then(|at| text.get(at..));
        begins && end.is_some_and(|end| end.eq_ignore_ascii_case(close))
    };
    !is_between("# AGENTS.md instructions", "</INSTRUCTIONS>")
        && !is_between("<skill>", "</skill>")
        && !text.lines().any(|line| line.trim() == MEMORY_OPEN)
}

fn facts(head: &SessionHead) -> SessionFacts {
    SessionFacts {
        agent: head.agent,
        thread_id: head.thread_id.clone(),
        rollout_path: redact_str(&head.rollout_path.to_string_lossy()),
        cwd: head.cwd.as_ref().map(redact),
        project: head
            .project
            .as_ref()
            .map(|project| redact_str(project.as_str())),
        git_branch: head.git_branch.as_ref().map(redact),
        started_at: head.started_at,
        updated_at: head.updated_at,
        uses_memory: false,
    }
}

/// Tokens of a transcript that fit into a model with this window, and that
/// a person wants to send at most.
pub(crate) fn tokens_max(context_tokens: Option<usize>, wanted_max: Option<usize>) -> usize {
    let fitting = context_tokens.map_or(INPUT_TOKENS_DEFAULT, |window| {
        let effective = window.saturating_mul(EFFECTIVE_PERCENT) / 100;
        (effective.saturating_mul(TRANSCRIPT_PERCENT) / 100).max(1)
    });
    wanted_max.map_or(fitting, |most| fitting.min(most.max(1)))
}

/// A prompt with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    name: &'static str,
    text: String,
}

/// Why a template cannot be used: a person's own may have mistakes.
#[derive(Debug, thiserror::Error)]
#[error("the prompt `{name}` cannot be filled in: {reason}")]
pub(crate) struct TemplateError {
    pub(crate) name: &'static str,
    pub(crate) reason: String,
}

impl Template {
    /// The name of a version's prompt, which is also its file's stem.
    pub(crate) const fn name_of(version: MemoryVersion) -> &'static str {
        match version {
            MemoryVersion::V1 => "extract-v1",
            MemoryVersion::V2 => "extract-v2",
        }
    }

    /// The prompt that comes with the program.
    pub(crate) fn built_in(version: MemoryVersion) -> Self {
        let text = match version {
            MemoryVersion::V1 => include_str!("../../prompts/extract-v1.md"),
            MemoryVersion::V2 => include_str!("../../prompts/extract-v2.md"),
        };
        Self {
            name: Self::name_of(version),
            text: text.to_owned(),
        }
    }

    /// A person's own prompt.
    ///
    /// # Errors
    ///
    /// When it is no template, or asks for something that is not there.
    pub(crate) fn own(version: MemoryVersion, text: String) -> Result<Self, TemplateError> {
        let name = Self::name_of(version);
        let template = Self { name, text };
        template.fill(&Places::default())?;
        Ok(template)
    }

    /// Name and hash, as recap headers have it: `extract-v1@1f0c44e09ab2`.
    pub(crate) fn identity(&self) -> Redacted {
        let hash = hex(&blake3::hash(self.text.as_bytes()).as_bytes()[..6]);
        redact_str(&format!("{}@{hash}", self.name))
    }

    fn fill(&self, places: &Places<'_>) -> Result<String, TemplateError> {
        let mut environment = minijinja::Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        let places = minijinja::Value::from_pairs([
            ("rollout_path", places.path),
            ("rollout_cwd", places.cwd),
            ("rollout_git_branch", places.git_branch),
            ("rollout_contents", places.contents),
        ]);
        (environment.render_str(&self.text, places)).map_err(|error| TemplateError {
            name: self.name,
            reason: error.to_string(),
        })
    }
}

#[derive(Default)]
struct Places<'a> {
    path: &'a str,
    cwd: &'a str,
    git_branch: &'a str,
    contents: &'a str,
}

/// The prompt as user messages, the first of which begins with the mark by
/// which readers know our own sessions.
///
/// # Errors
///
/// When a person's own template cannot be filled in.
pub(crate) fn render(
    version: MemoryVersion,
    session: &Prepared,
    template: &Template,
    tokens_max: usize,
) -> Result<Vec<Redacted>, TemplateError> {
    let contents = match version {
        MemoryVersion::V1 => middle_tokens(&json_array(&session.items), tokens_max),
        MemoryVersion::V2 => rows_within(&session.items, tokens_max),
    };
    let facts = &session.facts;
    let known = |value: &Option<Redacted>| {
        value
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), |value| value.as_str().to_owned())
    };
    let filled = template.fill(&Places {
        path: facts.rollout_path.as_str(),
        cwd: &known(&facts.cwd),
        git_branch: &known(&facts.git_branch),
        contents: &contents,
    })?;
    let prompt = redact_str(&format!("{WORKER_MARK}\n\n{filled}"));
    Ok(match version {
        MemoryVersion::V1 => vec![prompt],
        MemoryVersion::V2 => (fragments(prompt.as_str(), FRAGMENT_BYTES_MAX).into_iter())
            .map(redact_fragment)
            .collect(),
    })
}

/// A part of a prompt that was redacted as a whole. It is redacted once more
/// to become text that can be sent; nothing is left in it to find.
fn redact_fragment(part: &str) -> Redacted {
    redact_str(part)
}

/// An item as a model sees it.
#[derive(Serialize)]
struct Row<'a> {
    /// Line of the transcript; a sub-agent's comes with the number of its part.
    line: u32,
    #[serde(skip_serializing_if = "is_zero")]
    part: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_ok: Option<bool>,
    /// What came from outside is marked; own content is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<&'static str>,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
const fn is_zero(part: &u16) -> bool {
    *part == 0
}

impl<'a> Row<'a> {
    fn new(item: &'a Item<Redacted>, text: &'a str) -> Self {
        let (call, result_ok) = match &item.kind {
            ItemKind::Message => (None, None),
            ItemKind::ToolCall { tool, .. } => (Some(tool.as_str()), None),
            ItemKind::ToolOutput { succeeded, .. } => (None, *succeeded),
        };
        Self {
            line: item.place.line_number,
            part: item.place.part,
            from: None,
            call,
            result_ok,
            trust: (item.trust == Trust::External).then_some(item.trust.label()),
            text,
            omitted: (0 < item.media_count)
                .then(|| format!("[{} images or recordings omitted]", item.media_count)),
        }
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("a row has nothing that JSON cannot say")
    }
}

fn json_array(items: &[Item<Redacted>]) -> String {
    let mut array = String::from("[");
    for (index, item) in items.iter().enumerate() {
        if 0 < index {
            array.push_str(",\n");
        }
        let row = Row {
            from: Some(item.provenance.label()),
            ..Row::new(item, item.text.as_str())
        };
        array.push_str(&row.json());
    }
    array.push(']');
    array
}

/// The rows of version 2 within a budget. Empty when not even that is kept.
fn rows_within(items: &[Item<Redacted>], tokens_max: usize) -> String {
    let budget = tokens_max.saturating_mul(BYTES_PER_TOKEN);
    let mut chosen: Vec<Option<String>> = vec![None; items.len()];
    // Each row pays for the gap behind it, this for the one before the first.
    let mut left = budget.saturating_sub(GAP.len());
    for tier in Provenance::ALL {
        let of_tier = items
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, item)| item.provenance == tier);
        for (index, item) in of_tier {
            if left <= GAP.len() + RESERVE {
                break;
            }
            let mut row = row(item);
            if left < row.len() + GAP.len() {
                row = middle_bytes(&row, left - GAP.len() - RESERVE);
            }
            left = left.saturating_sub(row.len() + GAP.len());
            chosen[index] = Some(row);
        }
    }
    let mut text = String::new();
    let mut in_gap = false;
    for row in chosen {
        match &row {
            Some(row) => text.push_str(row),
            None if in_gap => {}
            None => text.push_str(GAP),
        }
        in_gap = row.is_none();
    }
    if budget < text.len() {
        String::new()
    } else {
        text
    }
}

fn row(item: &Item<Redacted>) -> String {
    let text = item.text.as_str();
    let is_output = matches!(item.kind, ItemKind::ToolOutput { .. });
    let cut = is_output.then(|| middle_bytes(text, TOOL_OUTPUT_BYTES_MAX));
    let json = Row::new(item, cut.as_deref().unwrap_or(text)).json();
    let row = format!("[{}]\n{json}\n", item.provenance.label());
    middle_bytes(&row, ROW_BYTES_MAX)
}

#[cfg(test)]
mod tests;
