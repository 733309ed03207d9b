//! Header fields that try to be more than words.

use super::story::{Folder, both};
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;
use crate::model::offline::consolidate::{OfflineInputs, consolidate};
use crate::text::pointers::{self, Target};
use crate::text::redact;

const STORY: &str = "@@ recap a p/x 2026-12-01\n## Task 1: one\nKeywords: alpha\n\
    Preference signals:\n- always: \"always use tabs\"\nReusable knowledge:\n- a fact of this place\n";

const HOSTILE: [&str; 9] = [
    "/work/# Task Group: x - (recap: rollout_summaries/x.md)",
    "/work/thread_id=0194f5a6-89ab",
    "/work/2026-12-01T05-33-44-none.md",
    "# Task Group: evil\n## Task 9: evil\n- a bullet",
    "- [ad-hoc note] [Task 7]",
    "extensions/ad_hoc",
    "thread_id",
    "/work/a; reuse_rule=everything",
    "```\n<!--",
];

/// Every reference is to the recap that is there; one group, no second line.
#[track_caller]
fn check(inputs: &OfflineInputs, hostile: &str) {
    let output = consolidate(inputs);
    let text = both(&output);
    for pointer in pointers::find(&text) {
        let is_known = match &pointer.target {
            Target::Recap(name) => name == "2026-12-01T10-00-00-000a.md",
            Target::Thread(id) => id.as_str() == "thread-1a",
        };
        assert!(is_known, "{hostile:?} became {pointer:?}:\n{text}");
    }
    let handbook = output.handbook.as_ref().map_or("", Redacted::as_str);
    let starting = |start: &str| {
        handbook
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    assert!(starting("# ") <= 1 && starting("## Task ") <= 1, "{text}");
    assert_eq!(starting("```") + starting("<!--"), 0, "{text}");
    assert!(text.lines().all(|line| line.len() < 3_000), "{text}");
    if !handbook.is_empty() {
        assert!(
            handbook.contains("- a fact of this place [Task 1]\n"),
            "{text}"
        );
        assert!(handbook.contains("\napplies_to: cwd="), "{text}");
        let mut lead = handbook
            .lines()
            .filter(|line| line.starts_with("applies_to: "));
        let reuse = lead
            .next()
            .map_or(0, |line| line.matches("; reuse_rule=").count());
        assert_eq!(reuse, 1, "{text}");
    }
}

#[test]
fn header_fields_are_words_and_nothing_else() {
    let long = "/work/".to_owned() + &"日本語".repeat(2_000);
    for hostile in HOSTILE.into_iter().chain([long.as_str()]) {
        for version in MemoryVersion::ALL {
            let inputs = || Folder::new(version).inputs(STORY);
            let field = || redact::redact_str(hostile);
            let mut with_cwd = inputs();
            with_cwd.recaps[0].recap.header.cwd = Some(field());
            check(&with_cwd, hostile);
            with_cwd.recaps[0].recap.header.project = None;
            check(&with_cwd, hostile);
            let mut with_project = inputs();
            with_project.recaps[0].recap.header.project = Some(field());
            check(&with_project, hostile);
            let mut with_path = inputs();
            with_path.recaps[0].recap.header.rollout_path = field();
            check(&with_path, hostile);
            let mut with_slug = inputs();
            let header = &mut with_slug.recaps[0].recap.header;
            header.slug = Some(hostile.to_owned());
            with_slug.recaps[0].recap.body =
                redact::redact_str("Reusable knowledge:\n- a fact of this place\n");
            check(&with_slug, hostile);
            let hostile_line = hostile.replace('\n', " ");
            let story = STORY
                .replace("Task 1: one", &format!("Task 1: {hostile_line}"))
                .replace("Keywords: alpha", &format!("Keywords: {hostile_line}, b1"));
            check(&Folder::new(version).inputs(&story), hostile);
        }
    }
}

#[test]
fn a_group_of_a_hostile_folder_is_found_again() {
    for hostile in HOSTILE {
        let mut folder = Folder::new(MemoryVersion::V1);
        let mut pass = |story: &str| {
            let mut inputs = folder.inputs(story);
            for one in &mut inputs.recaps {
                one.recap.header.project = Some(redact::redact_str(hostile));
            }
            let output = consolidate(&inputs);
            folder.take(&inputs, &output);
            both(&output)
        };
        pass(STORY);
        let more = STORY
            .replace("recap a", "recap b")
            .replace("one", "another thing");
        let both_at_once = pass(&format!("{STORY}{more}"));
        let groups = both_at_once.lines().filter(|line| line.starts_with("# "));
        assert_eq!(groups.count(), 1, "{both_at_once}");
    }
}
