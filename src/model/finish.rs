//! The end of a worker that reads prompts: how it says that it has finished.
//!
//! A program says it with a JSON object as its last words, a model in our own
//! tool loop with the arguments of `finish`. Either is a claim: the judge looks
//! at the files.

use minijinja::{Environment, context};
use serde::Deserialize;

use crate::domain::id::ThreadId;
use crate::domain::path::TreePath;
use crate::domain::text::{Raw, Redacted};
use crate::model::{Retired, Skipped, WorkerReport};
use crate::text::redact::redact_str;
use crate::text::truncate::middle_bytes;

/// What such a program is told after the prompt.
const FINISH_COMMAND: &str = include_str!("../../prompts/finish-command.md");
/// What any worker is told when its result was refused.
const MEND: &str = include_str!("../../prompts/mend.md");

/// The JSON schema of a program's last words.
pub(crate) const SCHEMA: &str = include_str!("../../schemas/worker-report.json");

/// Most entries of each list that are looked at; the loss guard allows fewer.
const LISTED_MAX: usize = 500;
/// Most recaps that are skipped: as many as one pass can hand over.
const SKIPPED_MAX: usize = 4_096;
/// Longest entry or reason, in bytes.
const ENTRY_BYTES_MAX: usize = 8 * 1024;
/// Most of a worker's own words that are kept, in bytes.
const WORDS_BYTES_MAX: usize = 8 * 1024;

/// A worker's last words.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finish {
    /// A program has to say so; calling `finish` is saying so.
    #[serde(default)]
    pub(super) finished: Option<bool>,
    #[serde(default)]
    pub(super) report: String,
    #[serde(default)]
    retired: Vec<RetiredWords>,
    #[serde(default)]
    skipped: Vec<SkippedWords>,
    #[serde(default)]
    forgotten: Vec<String>,
    #[serde(default)]
    unmatched_notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetiredWords {
    entry: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SkippedWords {
    thread_id: String,
    reason: String,
}

impl SkippedWords {
    /// `None` when that is no thread id.
    pub(super) fn into_skipped(self) -> Option<Skipped> {
        Some(Skipped {
            thread_id: ThreadId::parse(self.thread_id.trim())?,
            reason: middle_bytes(&self.reason, ENTRY_BYTES_MAX),
        })
    }
}

impl Finish {
    /// A program's last words: a JSON object, alone or at the end of what it
    /// said. `None` when there is none of this shape.
    pub(super) fn parse(said: &Raw) -> Option<Self> {
        let text = said.unredacted().trim();
        let text = text.strip_suffix("```").map_or(text, str::trim_end);
        // Each place where an object may begin, the first one first: the
        // outermost object that reaches to the end is the one meant.
        let begins = text.match_indices('{').take(LISTED_MAX);
        begins
            .filter_map(|(at, _)| serde_json::from_str::<Self>(&text[at..]).ok())
            .find(|finish| finish.finished.is_some())
    }

    /// As the judge takes it. Texts are cut to what counts, lists likewise.
    pub(super) fn into_report(self, is_finished: bool) -> WorkerReport {
        let cut = |text: String| middle_bytes(&text, ENTRY_BYTES_MAX);
        let retired = self.retired.into_iter().take(LISTED_MAX);
        let skipped = self.skipped.into_iter().take(SKIPPED_MAX);
        let forgotten = self.forgotten.into_iter().take(LISTED_MAX);
        let notes = self.unmatched_notes.iter().take(LISTED_MAX);
        WorkerReport {
            finished: is_finished,
            has_read_prompt: true,
            words: redact_str(&middle_bytes(self.report.trim(), WORDS_BYTES_MAX)),
            retired: retired
                .map(|one| Retired {
                    entry: cut(one.entry),
                    reason: cut(one.reason),
                })
                .collect(),
            skipped: skipped.filter_map(SkippedWords::into_skipped).collect(),
            forgotten: forgotten.map(cut).collect(),
            unmatched_notes: notes.filter_map(|path| TreePath::parse(path)).collect(),
            ..WorkerReport::default()
        }
    }
}

/// The prompt of a program, with how to end and, on a second try, what was
/// wrong.
pub(super) fn command_prompt(prompt: &Redacted, diagnostics: Option<&[String]>) -> Redacted {
    let mut text = format!("{prompt}\n\n{FINISH_COMMAND}");
    if let Some(diagnostics) = diagnostics {
        text.push('\n');
        text.push_str(mend(diagnostics).as_str());
    }
    redact_str(&text)
}

/// What a worker is told when its result was refused.
pub(super) fn mend(diagnostics: &[String]) -> Redacted {
    let lines: Vec<String> = diagnostics.iter().map(|line| format!("- {line}")).collect();
    let places = context! { diagnostics => lines.join("\n") };
    let rendered = Environment::new().render_str(MEND, places);
    redact_str(&rendered.expect("a prompt of ours with one place to fill in"))
}

#[cfg(test)]
mod tests {
    use super::Finish;
    use crate::domain::text::Raw;

    #[test]
    fn last_words_are_an_object_that_reaches_to_the_end() {
        for (said, finished) in [
            (r#"{"finished": true}"#, Some(true)),
            (r#"{"finished": false, "report": "no"}"#, Some(false)),
            (
                "I am done.\n{\"finished\": true, \"report\": \"a {b}\"}\n",
                Some(true),
            ),
            ("```json\n{\"finished\": true}\n```", Some(true)),
            (r#"{"finished": true} and more"#, None),
            (r#"{"finished": true, "note": 1}"#, None),
            (r#"{"report": "all good"}"#, None),
            ("I have updated the files.", None),
            ("", None),
            ("{{{{{{{{", None),
        ] {
            let parsed = Finish::parse(&Raw::new(said)).and_then(|finish| finish.finished);
            assert_eq!(parsed, finished, "{said}");
        }
    }

    #[test]
    fn lists_become_what_the_judge_takes() {
        let said = r#"{"finished": true, "report": " moved ports ", "retired": [{"entry": "a", "reason": "old"}],
            "skipped": [{"thread_id": "a1", "reason": "small talk"}, {"thread_id": "../x", "reason": "no id"}],
            "forgotten": ["b"], "unmatched_notes": ["extensions/ad_hoc/notes/x.md", "../etc/passwd"]}"#;
        let report = Finish::parse(&Raw::new(said)).unwrap().into_report(true);
        assert_eq!(report.words.as_str(), "moved ports");
        assert_eq!((report.retired.len(), report.forgotten.len()), (1, 1));
        assert_eq!(report.unmatched_notes.len(), 1);
        assert_eq!(report.skipped.len(), 1);
    }
}
