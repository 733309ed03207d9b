//! The words of our commits, made from the diff and never from a model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::consolidate::coverage::LeftOutRecap;
use crate::consolidate::departure::Departure;
use crate::consolidate::guard::{GuardFault, Loss, LossCount, Reason};
use crate::consolidate::record::Record;
use crate::consolidate::{Complaint, OutputChange};
use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::{FileKind, TreePath};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::model::Tokens;
use crate::store::message::{AttemptState, ChangeKind, CommitKind, CommitMessage, Input};
use crate::text::redact;
use crate::text::truncate;

/// Longest subject, in characters; Git shows about this much.
const SUBJECT_CHARS_MAX: usize = 100;
/// Most of a worker's own words that a message keeps, in bytes.
const WORDS_BYTES_MAX: usize = 4_000;
/// Most losses that are listed one by one: `status` counts them from here.
const LOSSES_LISTED_MAX: usize = 500;
/// Longest reason of a loss, in bytes.
const REASON_BYTES_MAX: usize = 300;
/// Most recaps that are listed one by one.
const LEFT_OUT_LISTED_MAX: usize = 50;
/// Begins the line that [`loss_count`] reads back.
const ENTRIES_LINE: &str = "Entries: ";
/// The line that [`counts_anew`] looks for.
const ANEW_LINE: &str = "Over the limits of the loss guard, which counts anew from here:";
/// Stands above the list of losses.
const GONE_LINE: &str = "Gone:";
/// Stands above the worker's own words.
const REPORT_LINE: &str = "Worker report:";

/// What a baseline's message is made of.
pub(crate) struct BaselineFacts<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) version: MemoryVersion,
    pub(crate) worker: &'a str,
    pub(crate) inputs: &'a [Input],
    pub(crate) outputs: &'a [OutputChange],
    pub(crate) entries_before: usize,
    pub(crate) entries_after: usize,
    pub(crate) losses: &'a [Loss],
    /// New recaps that nothing cites, with the worker's reasons.
    pub(crate) left_out: &'a [LeftOutRecap],
    /// The worker's own words: a claim, kept apart.
    pub(crate) words: &'a str,
    /// The template it was asked by, if it read one.
    pub(crate) prompt: Option<&'a Redacted>,
    pub(crate) tokens: u64,
    /// A person accepted it; limits of the loss guard that it goes over.
    pub(crate) accepted_over: Option<&'a [GuardFault]>,
}

/// The message of a baseline.
///
/// Subject: inputs, then outputs with the lines that came and went, such as
/// `baseline: 2 recaps, 1 note; MEMORY.md +14 -3, memory_summary.md +2 -1`.
pub(crate) fn baseline(facts: &BaselineFacts<'_>) -> CommitMessage {
    let mut message = CommitMessage::new(CommitKind::Baseline, subject(facts))
        .body(redact::redact_str(&body(facts)))
        .run(facts.run.clone())
        .version(facts.version)
        .worker(facts.worker)
        .prompt(facts.prompt)
        .inputs(facts.inputs.iter().cloned());
    message = message.body(report(facts.words));
    message.tokens(facts.tokens)
}

fn report(words: &str) -> Redacted {
    let words = words.trim();
    if words.is_empty() {
        return Redacted::default();
    }
    let words = truncate::middle_bytes(words, WORDS_BYTES_MAX);
    redact::redact_str(&format!("{REPORT_LINE}\n{words}"))
}

/// All that a call of the worker took.
pub(crate) const fn tokens_in_all(tokens: Tokens) -> u64 {
    tokens.input.saturating_add(tokens.output)
}

fn subject(facts: &BaselineFacts<'_>) -> Redacted {
    let came_in = inputs_in_words(facts.inputs);
    let changed = outputs_in_words(facts.outputs);
    let accepted = facts.accepted_over.map_or("", |_| "accepted, ");
    let told = match (came_in.as_str(), changed.as_str()) {
        ("", "") => "memory files checked".to_owned(),
        ("", changed) => format!("memory files mended; {changed}"),
        (came_in, "") => format!("{came_in}; memory files unchanged"),
        (came_in, changed) => format!("{came_in}; {changed}"),
    };
    one_line(&format!("baseline: {accepted}{told}"))
}

fn one_line(text: &str) -> Redacted {
    let redacted = redact::redact_str(text);
    if redacted.as_str().chars().count() <= SUBJECT_CHARS_MAX {
        return redacted;
    }
    let mut cut: String = text.chars().take(SUBJECT_CHARS_MAX - 1).collect();
    cut.push('…');
    redact::redact_str(&cut)
}

/// `2 recaps, 1 note`: by kind, what came or changed before what went.
pub(crate) fn inputs_in_words(inputs: &[Input]) -> String {
    const KINDS: [(&str, &str); 5] = [
        ("recap", "recaps"),
        ("note", "notes"),
        ("resource", "resources"),
        ("instruction", "instructions"),
        ("edit", "edits"),
    ];
    let mut parts = Vec::new();
    for is_removal in [false, true] {
        for (one, many) in KINDS {
            let is_such = |input: &&Input| {
                kind_word(input.path.kind()) == one
                    && (input.change == ChangeKind::Deleted) == is_removal
            };
            let count = inputs.iter().filter(is_such).count();
            if count > 0 {
                let noun = if count == 1 { one } else { many };
                let ending = if is_removal { " removed" } else { "" };
                parts.push(format!("{count} {noun}{ending}"));
            }
        }
    }
    parts.join(", ")
}

const fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Recap => "recap",
        FileKind::Note => "note",
        FileKind::Resource => "resource",
        FileKind::Instructions => "instruction",
        _ => "edit",
    }
}

/// `MEMORY.md +14 -3`; more than two skills are added up.
fn outputs_in_words(outputs: &[OutputChange]) -> String {
    let (skills, files): (Vec<_>, Vec<_>) = outputs
        .iter()
        .partition(|output| output.path.kind() == FileKind::Skill);
    let lines = |name: &str, added: usize, removed: usize| format!("{name} +{added} -{removed}");
    let mut parts: Vec<String> = files
        .iter()
        .map(|it| lines(it.path.as_str(), it.lines_added, it.lines_removed))
        .collect();
    if skills.len() > 2 {
        let added = skills.iter().map(|it| it.lines_added).sum();
        let removed = skills.iter().map(|it| it.lines_removed).sum();
        parts.push(lines(
            &format!("{} skill files", skills.len()),
            added,
            removed,
        ));
    } else {
        let each = skills.iter();
        parts.extend(each.map(|it| lines(it.path.as_str(), it.lines_added, it.lines_removed)));
    }
    parts.join(", ")
}

fn body(facts: &BaselineFacts<'_>) -> String {
    let mut text = String::new();
    if let Some(over) = facts.accepted_over {
        text.push_str("Accepted by a person.\n");
        text.push_str(&over_in_words(over));
        text.push('\n');
    }
    if !facts.inputs.is_empty() {
        text.push_str("Inputs:\n");
        for input in facts.inputs {
            let _ = writeln!(text, "- {} {}", letter(input.change), input.path);
        }
        text.push('\n');
    }
    if !facts.outputs.is_empty() {
        text.push_str("Outputs:\n");
        for output in facts.outputs {
            let (added, removed) = (output.lines_added, output.lines_removed);
            let letter = letter(output.kind);
            let _ = writeln!(text, "- {letter} {} +{added} -{removed}", output.path);
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{ENTRIES_LINE}{} before, {} after, {} gone without a reason",
        facts.entries_before,
        facts.entries_after,
        unexplained(facts.losses)
    );
    text.push_str(&losses_in_words(facts.losses));
    text.push_str(&left_out_in_words(facts.left_out));
    text.trim_end().to_owned()
}

fn over_in_words(over: &[GuardFault]) -> String {
    let mut text = String::new();
    if !over.is_empty() {
        let _ = writeln!(text, "{ANEW_LINE}");
    }
    for fault in over {
        let _ = writeln!(text, "- {}", fault.words());
    }
    text
}

fn unexplained(losses: &[Loss]) -> usize {
    let is_such = |loss: &&Loss| loss.reason == Reason::Unexplained;
    losses.iter().filter(is_such).count()
}

fn losses_in_words(losses: &[Loss]) -> String {
    let mut text = String::new();
    if losses.is_empty() {
        return text;
    }
    let _ = writeln!(text, "\n{GONE_LINE}");
    for loss in losses.iter().take(LOSSES_LISTED_MAX) {
        let (path, line) = (&loss.entry.path, loss.entry.line_number);
        let _ = writeln!(
            text,
            "- {path}:{line}: {}",
            in_one_line(&loss.reason.words())
        );
    }
    if losses.len() > LOSSES_LISTED_MAX {
        let _ = writeln!(text, "- and {} more", losses.len() - LOSSES_LISTED_MAX);
    }
    text
}

/// A worker's words in a list of ours: on one line, so that none of them is
/// taken for a line of ours, and bounded.
fn in_one_line(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    truncate::middle_bytes(&words.join(" "), REASON_BYTES_MAX)
}

fn left_out_in_words(left_out: &[LeftOutRecap]) -> String {
    let mut text = String::new();
    if left_out.is_empty() {
        return text;
    }
    text.push_str("\nSkipped, by the worker's word:\n");
    for it in left_out.iter().take(LEFT_OUT_LISTED_MAX) {
        let _ = writeln!(text, "- {}: {}", it.path, in_one_line(it.reason.as_str()));
    }
    if LEFT_OUT_LISTED_MAX < left_out.len() {
        let _ = writeln!(text, "- and {} more", left_out.len() - LEFT_OUT_LISTED_MAX);
    }
    text
}

/// Reads back what a baseline's body says about its losses. Memory that
/// another program wrote, or an older message, counts as nothing lost.
pub(crate) fn loss_count(body: &str) -> LossCount {
    let numbers = |line: &str| -> Option<LossCount> {
        let mut words = line.strip_prefix(ENTRIES_LINE)?.split([' ', ',']);
        let entries = words.next()?.parse().ok()?;
        let unexplained = words.filter_map(|word| word.parse().ok()).nth(1)?;
        Some(LossCount {
            entries,
            unexplained,
        })
    };
    body.lines().find_map(numbers).unwrap_or_default()
}

/// Reads back which entries a baseline let go, by file and line in the tree
/// before it, and how.
pub(crate) fn departures(body: &str) -> BTreeMap<(TreePath, u32), Departure> {
    let ours = body.lines().take_while(|line| *line != REPORT_LINE);
    let list = ours.skip_while(|line| *line != GONE_LINE).skip(1);
    let told = |line: &str| {
        let (path, rest) = line.strip_prefix("- ")?.split_once(':')?;
        let (line_number, words) = rest.split_once(": ")?;
        let place = (TreePath::parse(path)?, line_number.parse().ok()?);
        Some((place, Departure::parse(words)))
    };
    list.map_while(|line| line.starts_with("- ").then(|| told(line)))
        .flatten()
        .collect()
}

/// Whether a person accepted this baseline although it went over the limits
/// of the loss guard: what was lost before was theirs to see then.
pub(crate) fn counts_anew(body: &str) -> bool {
    let ours = body.lines().take_while(|line| *line != REPORT_LINE);
    ours.into_iter().any(|line| line == ANEW_LINE)
}

/// The message of what a person did since: `edit: 1 note, MEMORY.md`.
pub(crate) fn edit(
    run: &RunId,
    version: MemoryVersion,
    changes: &BTreeMap<TreePath, ChangeKind>,
) -> CommitMessage {
    let (mut inputs, mut names) = (Vec::new(), Vec::new());
    for (path, change) in changes {
        match path.kind() {
            FileKind::Recap | FileKind::Note | FileKind::Resource | FileKind::Instructions => {
                inputs.push(Input {
                    change: *change,
                    path: path.clone(),
                    blob: ObjectId::from_bytes([0; 20]),
                    thread_id: None,
                });
            }
            FileKind::Withheld => {}
            _ => names.push(path.to_string()),
        }
    }
    let mut parts = vec![inputs_in_words(&inputs)];
    parts.extend(names);
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push("what is withheld".to_owned());
    }
    let mut text = String::new();
    for (path, change) in changes {
        let _ = writeln!(text, "- {} {path}", letter(*change));
    }
    CommitMessage::new(
        CommitKind::Edit,
        one_line(&format!("edit: {}", parts.join(", "))),
    )
    .body(redact::redact_str(text.trim_end()))
    .run(run.clone())
    .version(version)
}

/// What the message of an attempt is made of.
pub(crate) struct AttemptFacts<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) version: MemoryVersion,
    pub(crate) worker: &'a str,
    pub(crate) state: AttemptState,
    pub(crate) complaints: &'a [Complaint],
    pub(crate) record: &'a Record,
    pub(crate) inputs: &'a [Input],
    /// Empty when the files are not kept.
    pub(crate) losses: &'a [Loss],
    pub(crate) words: &'a str,
    pub(crate) prompt: Option<&'a Redacted>,
    pub(crate) tokens: u64,
}

/// The message of an attempt, kept beside main.
pub(crate) fn attempt(facts: &AttemptFacts<'_>) -> CommitMessage {
    let words = if facts.record.is_whole {
        facts.words
    } else {
        ""
    };
    CommitMessage::new(CommitKind::Kept, attempt_subject(facts))
        .body(redact::redact_str(attempt_body(facts).trim_end()))
        .body(report(words))
        .run(facts.run.clone())
        .version(facts.version)
        .worker(facts.worker)
        .prompt(facts.prompt)
        .inputs(facts.inputs.iter().cloned())
        .tokens(facts.tokens)
        .attempt(facts.state, &facts.record.print())
}

fn attempt_subject(facts: &AttemptFacts<'_>) -> Redacted {
    let state = facts.state.label();
    let why = match facts.complaints {
        [] => inputs_in_words(facts.inputs),
        [one] => one.code.to_owned(),
        [first, more @ ..] => format!("{} and {} more", first.code, more.len()),
    };
    one_line(&format!("attempt: {state}, {why}"))
}

fn attempt_body(facts: &AttemptFacts<'_>) -> String {
    let mut text = String::from(match facts.state {
        AttemptState::Waiting => "Waits for a person's word.\n",
        AttemptState::Rejected => "Rejected by a person.\n",
        AttemptState::Refused | AttemptState::Parked => "Not published:\n",
    });
    for complaint in facts.complaints {
        // One line each, so that none of it is taken for a line of ours.
        let words = complaint.words.as_str().replace(['\n', '\r'], " ");
        let _ = writeln!(text, "- [{}] {words}", complaint.code);
    }
    text.push_str(&losses_in_words(facts.losses));
    text
}

/// `A`, `M` or `D`.
pub(crate) const fn letter(change: ChangeKind) -> char {
    match change {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Deleted => 'D',
    }
}

#[cfg(test)]
mod tests;
