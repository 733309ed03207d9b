//! Sessions for tests, written as stories: one line per event.
//!
//! | line | items |
//! | --- | --- |
//! | `human TEXT` | the person's message; lines that begin no event go on with it |
//! | `final TEXT`, `say TEXT`, `agent TEXT`, `context TEXT` | the others' words |
//! | `run COMMAND \| RESULT` | a shell call and its output: `ok …`, `failed …`, else unknown |
//! | `edit PATH` | a patch |
//! | `external TEXT` | the output of a web tool |
//! | `pause HOURS` | time that passes |
//!
//! Every item is one line of the rollout and one second.

use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::text::redact::redact_str;

/// When each story begins: 2026-12-01 05:00 UTC.
pub(crate) const BEGIN: Timestamp = Timestamp::from_seconds(1_796_101_200);

pub(crate) fn items(story: &str) -> Vec<Item<Redacted>> {
    let mut told = Story {
        items: Vec::new(),
        at: BEGIN,
    };
    for (verb, text) in events(story) {
        told.tell(verb, &text);
    }
    told.items
}

const VERBS: &[&str] = &[
    "human", "final", "say", "agent", "context", "run", "edit", "external", "pause",
];

fn events(story: &str) -> Vec<(&str, String)> {
    let mut events: Vec<(&str, String)> = Vec::new();
    for line in story.lines() {
        let (verb, text) = line.split_once(' ').unwrap_or((line, ""));
        match events.last_mut() {
            _ if VERBS.contains(&verb) => events.push((verb, text.to_owned())),
            Some((_, text)) => {
                text.push('\n');
                text.push_str(line);
            }
            None => panic!("a story begins with an event, got `{line}`"),
        }
    }
    events
}

struct Story {
    items: Vec<Item<Redacted>>,
    at: Timestamp,
}

impl Story {
    fn tell(&mut self, verb: &str, text: &str) {
        let words = |provenance| (provenance, Trust::Own);
        let (provenance, trust) = match verb {
            "human" => words(Provenance::Human),
            "final" => words(Provenance::AssistantFinal),
            "say" => words(Provenance::AssistantCommentary),
            "agent" => words(Provenance::OtherAgent),
            "context" => words(Provenance::HarnessContext),
            "pause" => {
                let hours: i64 = text.parse().unwrap();
                self.at = self.at.plus_seconds(hours * 3_600);
                return;
            }
            "run" => return self.run(text),
            "edit" => return self.edit(text),
            "external" => {
                self.push(
                    Provenance::Tool,
                    Trust::External,
                    self.output("web", None),
                    text,
                );
                return;
            }
            _ => unreachable!("events() knows the verbs"),
        };
        self.push(provenance, trust, ItemKind::Message, text);
    }

    fn run(&mut self, text: &str) {
        let (command, result) = text.rsplit_once(" | ").unwrap_or((text, ""));
        let call_id = format!("c{}", self.items.len());
        let call = ItemKind::ToolCall {
            call_id: call_id.clone(),
            tool: "shell".to_owned(),
            files: Vec::new(),
        };
        self.push(Provenance::Tool, Trust::Own, call, command);
        let succeeded = match result.split(' ').next() {
            Some("ok") => Some(true),
            Some("failed") => Some(false),
            _ => None,
        };
        let output = result.split_once(' ').map_or("", |(_, rest)| rest);
        self.push(
            Provenance::Tool,
            Trust::Own,
            self.output(&call_id, succeeded),
            output,
        );
    }

    fn edit(&mut self, path: &str) {
        let call = ItemKind::ToolCall {
            call_id: format!("c{}", self.items.len()),
            tool: "apply_patch".to_owned(),
            files: vec![redact_str(path)],
        };
        self.push(Provenance::Tool, Trust::Own, call, "*** Begin Patch\n");
    }

    #[expect(clippy::unused_self, reason = "reads like the other verbs")]
    fn output(&self, call_id: &str, succeeded: Option<bool>) -> ItemKind<Redacted> {
        ItemKind::ToolOutput {
            call_id: call_id.to_owned(),
            succeeded,
        }
    }

    fn push(&mut self, provenance: Provenance, trust: Trust, kind: ItemKind<Redacted>, text: &str) {
        let line_number = u32::try_from(self.items.len() + 1).unwrap();
        self.items.push(Item {
            place: Place {
                part: 0,
                line_number,
            },
            at: Some(self.at),
            provenance,
            trust,
            kind,
            text: redact_str(text),
            media_count: 0,
        });
        self.at = self.at.plus_seconds(1);
    }
}
