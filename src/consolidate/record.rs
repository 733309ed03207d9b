//! What an attempt beside main must say of itself, so that it can be shown and
//! taken up again without the process that made it.
//!
//! One line of JSON in the commit's `Memrev-Record` trailer. Redacted when it
//! is written; what is read back is raw again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::consolidate::Complaint;
use crate::domain::id::ThreadId;
use crate::domain::text::Redacted;
use crate::model::{Retired, Skipped, WorkerReport};
use crate::text::redact::redact_str;

/// Most entries of each list, so that a message stays one that Git shows.
const LISTED_MAX: usize = 200;

/// Codes of faults that a look at the kept files cannot clear: what they speak
/// of is not among these files.
const STANDING: [&str; 9] = [
    "not-allowed",
    "symlink",
    "unfit",
    "flood",
    "too-large",
    "not-utf8",
    "secret",
    "withheld",
    "not-finished",
];

/// The record of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// Its files are kept, not only what was said about them.
    pub(crate) is_whole: bool,
    /// Its worker applies notes by itself.
    pub(crate) applies_notes: bool,
    /// Code and words of what spoke against it.
    pub(crate) faults: Vec<(String, String)>,
    /// Entry and reason.
    retired: Vec<(String, String)>,
    /// Thread id of a new recap that was left out, and reason.
    skipped: Vec<(String, String)>,
    /// Text of entries that forget notes removed.
    pub(crate) forgotten: Vec<String>,
}

impl Record {
    /// Of a result whose files may not be kept, `is_whole` is false and its
    /// words stay out too.
    pub(crate) fn new(is_whole: bool, complaints: &[Complaint], report: &WorkerReport) -> Self {
        let clean = |text: &str| redact_str(text).into_string();
        let faults = complaints.iter().take(LISTED_MAX);
        let faults = faults.map(|it| (it.code.to_owned(), clean(it.words.as_str())));
        let listed_max = if is_whole { LISTED_MAX } else { 0 };
        let retired = report.retired.iter().take(listed_max);
        let skipped = report.skipped.iter().take(listed_max);
        let forgotten = report.forgotten.iter().take(listed_max);
        Self {
            is_whole,
            applies_notes: false,
            faults: faults.collect(),
            retired: retired
                .map(|it| (clean(&it.entry), clean(&it.reason)))
                .collect(),
            skipped: skipped
                .map(|it| (it.thread_id.to_string(), clean(&it.reason)))
                .collect(),
            forgotten: forgotten.map(|it| clean(it)).collect(),
        }
    }

    /// As one line.
    pub(crate) fn print(&self) -> Redacted {
        let text = serde_json::to_string(self).expect("strings and lists become JSON");
        redact_str(&text)
    }

    /// `None` when it is damaged.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    pub(crate) fn retired(&self) -> Vec<Retired> {
        let retired = self.retired.iter().map(|(entry, reason)| Retired {
            entry: entry.clone(),
            reason: reason.clone(),
        });
        retired.collect()
    }

    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let skipped = self.skipped.iter().filter_map(|(thread_id, reason)| {
            Some(Skipped {
                thread_id: ThreadId::parse(thread_id)?,
                reason: reason.clone(),
            })
        });
        skipped.collect()
    }

    /// The first fault that no later look can clear.
    pub(crate) fn standing(&self) -> Option<&str> {
        let is_standing = |(code, _): &&(String, String)| STANDING.contains(&code.as_str());
        let (_, words) = self.faults.iter().find(is_standing)?;
        Some(words)
    }
}

/// Every text in a record's line, whichever version wrote it: in the line
/// itself quotation marks and line ends stand as JSON writes them.
pub(crate) fn texts(line: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut pending: Vec<Value> = serde_json::from_str(line).into_iter().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(all) => pending.extend(all),
            Value::Object(all) => pending.extend(all.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::Record;
    use crate::consolidate::Complaint;
    use crate::domain::id::ThreadId;
    use crate::model::{Retired, Skipped, WorkerReport};
    use crate::text::redact::redact_str;

    fn complaint(code: &'static str, words: &str) -> Complaint {
        Complaint {
            code,
            words: redact_str(words),
        }
    }

    #[test]
    fn what_cannot_be_looked_at_again_stands() {
        for (code, stands) in [
            ("loss", false),
            ("S003", false),
            ("person", false),
            ("conflict", false),
            ("not-finished", true),
            ("not-allowed", true),
            ("secret", true),
        ] {
            let report = WorkerReport::default();
            let record = Record::new(true, &[complaint(code, "words")], &report);
            assert_eq!(record.standing().is_some(), stands, "{code}");
        }
    }

    #[test]
    fn its_texts_are_as_they_were_before_json() {
        let report = report("say \"yes\"\n\tthen\u{7}", "ü");
        let line = Record::new(true, &[], &report).print();
        let texts = super::texts(line.as_str());
        assert!(
            texts.iter().any(|text| text == "say \"yes\"\n\tthen\u{7}"),
            "{texts:?}"
        );
        assert_eq!(super::texts("{ damaged"), Vec::<String>::new());
    }

    fn report(entry: &str, reason: &str) -> WorkerReport {
        WorkerReport {
            retired: vec![Retired {
                entry: entry.to_owned(),
                reason: reason.to_owned(),
            }],
            skipped: vec![Skipped {
                thread_id: ThreadId::parse("t-1").unwrap(),
                reason: reason.to_owned(),
            }],
            forgotten: vec![entry.to_owned()],
            ..WorkerReport::default()
        }
    }

    #[test]
    fn a_record_without_files_has_no_words_of_the_result() {
        let report = report("old words", "old words");
        let record = Record::new(false, &[complaint("secret", "line 3")], &report);
        assert!(!record.print().as_str().contains("old words"));
        assert_eq!(Record::parse("{\"is_whole\": "), None);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_as_it_was(entry in any::<String>(), words in any::<String>()) {
            let record = Record::new(true, &[complaint("loss", &words)], &report(&entry, &words));
            let printed = record.print();
            prop_assert!(!printed.as_str().contains('\n'));
            let clean = Record::parse(printed.as_str()).map(|it| it.print());
            prop_assert_eq!(clean, Some(printed));
        }
    }
}
