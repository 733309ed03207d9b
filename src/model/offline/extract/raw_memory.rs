//! The raw memory of version 1: what of a recap may be used again, under a
//! front matter by which consolidation routes it (reference 5.9).

use std::fmt::Write as _;

use crate::domain::text::Redacted;
use crate::model::SessionFacts;
use crate::model::offline::extract::lines::List;
use crate::model::offline::extract::render::TaskText;
use crate::model::offline::extract::words::one_line;
use crate::model::offline::shape::Outcome;

/// What goes into a raw memory; requests and steps stay in the recap.
const LISTS: &[List] = &[
    List::Preferences,
    List::Knowledge,
    List::Failures,
    List::References,
];

pub(crate) fn print(
    facts: &SessionFacts,
    title: &str,
    keywords: &[String],
    outcomes: &[Outcome],
    tasks: &[TaskText],
) -> String {
    let text = |value: Option<&Redacted>| one_line(value.map_or("", Redacted::as_str));
    let group = group(facts);
    let first_task = tasks.first().map_or(title, |task| task.title.as_str());
    let keywords = keywords.join(", ");
    let cwd = text(facts.cwd.as_ref());
    let mut printed = String::from("---\n");
    for (key, value) in [
        ("description", title),
        ("task", first_task),
        ("task_group", &group),
        ("task_outcome", together(outcomes).label()),
        ("cwd", &cwd),
        ("keywords", &keywords),
    ] {
        let _ = writeln!(printed, "{key}: {}", yaml(value));
    }
    printed.push_str("---\n");
    for (index, (task, outcome)) in tasks.iter().zip(outcomes).enumerate() {
        let _ = writeln!(printed, "\n### Task {}: {}\n", index + 1, task.title);
        let _ = writeln!(printed, "task: {}\ntask_group: {group}", task.title);
        let _ = writeln!(printed, "task_outcome: {}", outcome.label());
        printed.push_str(&task.lists(LISTS));
    }
    printed
}

/// The project's name; the agent's where there is none, as in a home folder.
fn group(facts: &SessionFacts) -> String {
    let identity = (facts.project.as_ref().or(facts.cwd.as_ref())).map(Redacted::as_str);
    let name = identity.and_then(|identity| {
        let trimmed = identity.trim_end_matches(['/', '\\']);
        if is_home(trimmed) {
            return None;
        }
        trimmed
            .rsplit(['/', '\\'])
            .next()
            .filter(|name| !name.is_empty())
    });
    one_line(name.unwrap_or(facts.agent.label()))
}

/// `/home/NAME`, `/Users/NAME`, `C:\Users\NAME`: named after a person.
fn is_home(folder: &str) -> bool {
    let parts: Vec<&str> = folder.split(['/', '\\']).collect();
    let is_root = |part: &str| part.is_empty() || part.ends_with(':');
    folder == "/root" || matches!(parts[..], [root, "home" | "Users", _] if is_root(root))
}

/// One outcome for all: the common one, else partial.
fn together(outcomes: &[Outcome]) -> Outcome {
    match outcomes {
        [] => Outcome::Uncertain,
        [first, rest @ ..] if rest.iter().all(|outcome| outcome == first) => *first,
        _ => Outcome::Partial,
    }
}

/// A YAML scalar: as it is where that is safe, else in double quotes, whose
/// escapes YAML shares with JSON.
fn yaml(value: &str) -> String {
    let begins_well = value
        .chars()
        .next()
        .is_some_and(|c| c.is_alphanumeric() || c == '/');
    let is_plain = |c: char| c.is_alphanumeric() || " _-./,()".contains(c);
    let looks_typed = value.parse::<f64>().is_ok()
        || ["true", "false", "null", "yes", "no", "on", "off"]
            .contains(&value.to_lowercase().as_str());
    if begins_well && value.chars().all(is_plain) && value.trim() == value && !looks_typed {
        value.to_owned()
    } else {
        serde_json::Value::from(value).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{is_home, yaml};

    #[test]
    fn a_home_folder_is_no_project() {
        for (folder, expected) in [
            ("/home/me", true),
            ("/Users/me", true),
            ("C:\\Users\\me", true),
            ("/root", true),
            ("/home/me/src", false),
            ("/w/ledger", false),
            ("example.org/home/x", false),
        ] {
            assert_eq!(is_home(folder), expected, "{folder}");
        }
    }

    #[test]
    fn scalars_are_quoted_where_yaml_would_read_something_else() {
        for value in [
            "fix the parser",
            "修复解析器",
            "a: b",
            "# no",
            "- x",
            "",
            "1.5",
            "yes",
            "say \"hi\"",
            "/w/x",
            "C:\\w",
            "`x`",
            "null",
        ] {
            let read: serde_yaml::Value = serde_yaml::from_str(&yaml(value)).unwrap();
            assert_eq!(read.as_str(), Some(value), "{}", yaml(value));
        }
    }
}
