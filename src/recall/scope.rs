//! Which topics of a summary a new session is given.
//!
//! Profile, preferences and tips hold everywhere. Topics stand under
//! `## What's in Memory`, grouped by project (`### <project>`, and
//! `#### <project>` below "Older Memory Topics"), so a group's heading says
//! whose it is.

use std::fmt::Write as _;

use crate::domain::limits::SUMMARY_TOKENS_MAX;
use crate::domain::project::Project;
use crate::text::truncate;

const TOPICS: &str = "## What's in Memory";
const OLDER: &str = "### Older Memory Topics";

/// Which topics, in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything as it stands; cut in the middle when too long.
    All,
    /// Everything, this project's topics first; what does not fit is dropped
    /// from the end, a topic at a time.
    Ranked,
    /// What holds everywhere and this project's topics.
    Project,
}

/// A summary fitted to a scope and a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scoped {
    pub(crate) text: String,
    /// Headings of what was left out, in order, without repeats.
    pub(crate) left_out: Vec<String>,
}

/// A heading below the topics and the lines up to the next one.
#[derive(Debug, Clone)]
struct Group {
    heading: String,
    /// Top-level bullets with what is nested in them, and other lines.
    blocks: Vec<String>,
    is_older: bool,
}

/// Fits `summary` to the scope and to `bytes_max` bytes.
pub(crate) fn apply(
    summary: &str,
    scope: Scope,
    project: Option<&Project>,
    bytes_max: usize,
) -> Scoped {
    if scope == Scope::All {
        return Scoped {
            text: truncate::middle_tokens(summary, SUMMARY_TOKENS_MAX),
            left_out: Vec::new(),
        };
    }
    let (before, topics, after) = split_topics(summary);
    let mut groups = parse_groups(topics);
    let mut left_out = Vec::new();
    let mut before = before.to_owned();
    let mut after = after.to_owned();
    if scope == Scope::Project {
        groups.retain(|group| {
            let stays = is_of(group, project);
            if !stays {
                push_once(&mut left_out, &group.heading);
            }
            stays
        });
        before = without_others(&before, project, &left_out);
        after = without_others(&after, project, &left_out);
    } else {
        // A stable sort: own groups first, each side in its own order, and
        // older topics stay behind the recent ones.
        groups.sort_by_key(|group| (group.is_older, !is_of(group, project)));
    }
    loop {
        let text = print(&before, &groups, &after, note(scope, &left_out).as_deref());
        if text.len() <= bytes_max {
            return Scoped { text, left_out };
        }
        let Some(group) = groups.last_mut() else {
            // No topic is left: a person let the rest grow.
            return Scoped {
                text: truncate::middle_tokens(&text, SUMMARY_TOKENS_MAX),
                left_out,
            };
        };
        push_once(&mut left_out, &group.heading);
        group.blocks.pop();
        if group.blocks.is_empty() {
            groups.pop();
        }
    }
}

fn push_once(headings: &mut Vec<String>, heading: &str) {
    if !headings.iter().any(|listed| listed == heading) {
        headings.push(heading.to_owned());
    }
}

/// The summary up to and with the topics' heading, the topics, the rest.
fn split_topics(summary: &str) -> (&str, &str, &str) {
    let Some(start) = find_line(summary, 0, |line| line.trim_end() == TOPICS) else {
        return (summary, "", "");
    };
    let body = summary[start..]
        .find('\n')
        .map_or(summary.len(), |end| start + end + 1);
    let end = find_line(summary, body, |line| {
        line.starts_with("## ") || line.starts_with("# ")
    });
    let end = end.unwrap_or(summary.len());
    (&summary[..body], &summary[body..end], &summary[end..])
}

/// Byte offset of the first line at or after `from` that `wanted` takes,
/// outside of fenced code.
fn find_line(text: &str, from: usize, wanted: impl Fn(&str) -> bool) -> Option<usize> {
    let mut offset = 0;
    let mut is_fenced = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if offset >= from && !is_fenced && wanted(line) {
            return Some(offset);
        }
        offset += line.len();
    }
    None
}

fn parse_groups(topics: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut is_older = false;
    let mut is_fenced = false;
    for line in topics.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if !is_fenced && line.trim_end() == OLDER {
            is_older = true;
            continue;
        }
        let mark = if is_older { "#### " } else { "### " };
        match line.strip_prefix(mark) {
            Some(heading) if !is_fenced => groups.push(Group {
                heading: heading.trim().to_owned(),
                blocks: Vec::new(),
                is_older,
            }),
            _ => push_line(&mut groups, line, is_older),
        }
    }
    groups.retain(|group| group.blocks.iter().any(|block| !block.trim().is_empty()));
    groups
}

fn push_line(groups: &mut Vec<Group>, line: &str, is_older: bool) {
    if groups.last().is_none_or(|group| group.is_older != is_older) {
        if line.trim().is_empty() {
            return;
        }
        groups.push(Group {
            heading: String::new(),
            blocks: Vec::new(),
            is_older,
        });
    }
    let Some(group) = groups.last_mut() else {
        return;
    };
    match group.blocks.last_mut() {
        Some(block) if !(line.starts_with("- ") || line.starts_with("#### ")) => {
            block.push_str(line);
        }
        _ => group.blocks.push(line.to_owned()),
    }
}

/// A group belongs to a project when its heading is the project's identity,
/// its name, or its name followed by the identity in parentheses.
fn is_of(group: &Group, project: Option<&Project>) -> bool {
    let Some(project) = project else {
        return group.heading.is_empty();
    };
    let heading = group.heading.as_str();
    heading.is_empty()
        || heading == project.as_str()
        || heading == project.name()
        || heading == format!("{} ({})", project.name(), project.as_str())
}

/// Says what was left out; other projects are not named to this one.
fn note(scope: Scope, left_out: &[String]) -> Option<String> {
    match (scope, left_out.len()) {
        (_, 0) => None,
        (Scope::Project, 1) => Some("topics of another project".to_owned()),
        (Scope::Project, count) => Some(format!("topics of {count} other projects")),
        _ => Some(named(left_out)),
    }
}

/// Takes out the bullets that are about other projects: those that say so
/// (`(in ledger)`) and those that name one of `others`.
fn without_others(text: &str, project: Option<&Project>, others: &[String]) -> String {
    let mut kept = String::new();
    let mut is_left_out = false;
    for line in text.split_inclusive('\n') {
        let is_nested = line.starts_with([' ', '\t']) && !line.trim().is_empty();
        if !is_nested {
            is_left_out = line.starts_with("- ")
                && (is_said_of_another(line, project) || names_one_of(line, others));
        }
        if !is_left_out {
            kept.push_str(line);
        }
    }
    kept
}

fn is_said_of_another(line: &str, project: Option<&Project>) -> bool {
    let Some((_, rest)) = line.rsplit_once("(in ") else {
        return false;
    };
    let Some((said, _)) = rest.split_once(')') else {
        return false;
    };
    !project.is_some_and(|project| said == project.name() || said == project.as_str())
}

fn names_one_of(line: &str, others: &[String]) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let others = others.iter().filter(|other| !other.is_empty());
    others.into_iter().any(|other| {
        line.match_indices(other.as_str()).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + other.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
    })
}

fn print(before: &str, groups: &[Group], after: &str, left_out: Option<&str>) -> String {
    let mut text = before.to_owned();
    let mut has_older = false;
    for group in groups {
        if group.is_older && !has_older {
            has_older = true;
            write!(text, "\n{OLDER}\n").ok();
        }
        if !group.heading.is_empty() {
            let mark = if group.is_older { "####" } else { "###" };
            write!(text, "\n{mark} {}\n", group.heading).ok();
        }
        text.extend(group.blocks.iter().map(String::as_str));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if let Some(left_out) = left_out {
        write!(text, "\n[left out: {left_out}]\n").ok();
    }
    text.push_str(after);
    text
}

/// At most five names, then a count, so that the marker itself stays small.
fn named(headings: &[String]) -> String {
    const NAMED_MAX: usize = 5;
    let names: Vec<&str> = (headings.iter().take(NAMED_MAX))
        .map(|heading| match heading.as_str() {
            "" => "other topics",
            heading => heading,
        })
        .collect();
    let rest = headings.len() - names.len();
    let names = names.join(", ");
    if rest == 0 {
        format!("topics of {names}")
    } else {
        format!("topics of {names} and {rest} more projects")
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, apply};
    use crate::domain::project::Project;

    const SUMMARY: &str = "v1\n\n## User preferences\n\n- always run the tests\n\n## What's in Memory\n\n\
        ### ledger\n\n#### 2026-01-02\n\n- export: csv, empty file\n  - desc: fixed\n- import: xml\n\n\
        ### shop\n\n#### 2026-01-01\n\n- cart: totals\n\n\
        ### Older Memory Topics\n\n#### ledger\n\n- old ledger work\n\n#### shop\n\n- old shop work\n";

    fn of(scope: Scope, project: &str, bytes_max: usize) -> (String, Vec<String>) {
        let project = Project::new(project.to_owned());
        let scoped = apply(SUMMARY, scope, Some(&project), bytes_max);
        (scoped.text, scoped.left_out)
    }

    #[test]
    fn all_is_the_summary_itself() {
        assert_eq!(
            of(Scope::All, "/p/shop", 10_000),
            (SUMMARY.to_owned(), vec![])
        );
    }

    #[test]
    fn ranked_puts_the_own_project_first_and_loses_nothing_that_fits() {
        let (text, left_out) = of(Scope::Ranked, "/p/shop", 10_000);
        assert!(left_out.is_empty());
        let at = |needle: &str| text.find(needle).unwrap();
        assert!(at("- cart") < at("- export"));
        assert!(at("- import") < at("old shop work"));
        assert!(at("old shop work") < at("old ledger work"));
        for line in SUMMARY.lines().filter(|line| line.starts_with('-')) {
            assert_eq!(text.matches(line).count(), 1, "{line}");
        }
    }

    #[test]
    fn project_gives_nothing_of_another_project() {
        let (text, left_out) = of(Scope::Project, "example.org/team/ledger", 10_000);
        assert_eq!(left_out, ["shop"]);
        assert!(text.contains("- always run the tests"));
        assert!(text.contains("old ledger work"));
        assert!(!text.contains("cart") && !text.contains("old shop work"));
        assert!(text.contains("[left out: topics of another project]"));
    }

    #[test]
    fn preferences_of_another_project_stay_with_it() {
        let summary = SUMMARY.replace(
            "- always run the tests\n",
            "- Projects: 2; most sessions in ledger (1), shop (1).\n- \"never round\" (in shop)\n  - why: money\n\
             - \"use tabs\" (in ledger)\n- always run the tests\n",
        );
        let ledger = Project::new("example.org/team/ledger".to_owned());
        let text = apply(&summary, Scope::Project, Some(&ledger), 10_000).text;
        assert!(!text.contains("shop") && !text.contains("money"), "{text}");
        assert!(
            text.contains("use tabs") && text.contains("- always run the tests"),
            "{text}"
        );
        let ranked = apply(&summary, Scope::Ranked, Some(&ledger), 10_000).text;
        assert!(ranked.contains("never round"));
    }

    #[test]
    fn a_namesake_prefix_is_another_project() {
        let (text, _) = of(Scope::Project, "/p/ledger-b", 10_000);
        assert!(!text.contains("export"));
    }

    #[test]
    fn whole_topics_go_from_the_end_until_the_rest_fits() {
        for bytes_max in 150..SUMMARY.len() + 60 {
            let (text, left_out) = of(Scope::Ranked, "/p/ledger", bytes_max);
            assert!(text.len() <= bytes_max, "{} > {bytes_max}", text.len());
            assert!(text.contains("- always run the tests"));
            let is_whole = !text.contains("- export") || text.contains("desc: fixed");
            assert!(is_whole, "a topic was cut in two");
            let lines = |text: &str| text.lines().filter(|l| l.starts_with("- ")).count();
            assert_eq!(lines(&text) == lines(SUMMARY), left_out.is_empty());
        }
    }
}
