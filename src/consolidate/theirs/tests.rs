//! Each case: the head, the last baseline, what is wrong with the head and who
//! has to mend it, and what is held against a result.

use std::collections::{BTreeMap, BTreeSet};

use super::{TheirsFacts, sort};
use crate::consolidate::fault::Fault;
use crate::consolidate::judge::{self, Beside, OutputFile, Outputs};
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::text::entries;

const DEAD: &str = "- the plan is in rollout_summaries/2026-01-01T00-00-00-aaaa-gone.md";

#[test]
fn an_error_that_came_with_a_persons_line_is_theirs_while_it_stands() {
    for line in [
        DEAD,
        "- the plan is of thread_id=019a0000-0000-7000-8000-0000000000ff",
        "Please let me know before you push.",
        "- write \u{202e}abc backwards",
        "<<<<<<< mine\n- a b\n=======\n- c d\n>>>>>>> theirs",
    ] {
        Case::of(line, "").check("theirs", "");
        // Rewrapped or moved, it is the same line.
        let moved = Case::of(line, "");
        assert_eq!(moved.judge(&summary(&format!("- more\n\n{line}\n"))), "");
    }
}

#[test]
fn an_error_that_a_baseline_let_pass_stays_theirs() {
    Case::of(DEAD, DEAD).check("theirs", "");
}

#[test]
fn the_same_pointer_in_other_words_is_the_workers() {
    let case = Case::of(DEAD, "");
    let other = "- another is in rollout_summaries/2026-01-01T00-00-00-aaaa-gone.md";
    assert_eq!(case.judge(&summary(&format!("{DEAD}\n{other}"))), "P001");
    assert_eq!(case.judge(&summary(&DEAD.replace("gone", "lost"))), "P001");
}

#[test]
fn what_went_wrong_with_a_line_of_the_baseline_is_a_workers() {
    let mut case = Case::of(DEAD, DEAD);
    case.base_recaps.insert(
        path("rollout_summaries/2026-01-01T00-00-00-aaaa-gone.md"),
        "thread_id: a1\nupdated_at: 2026-01-01T00:00:00+00:00\nrollout_path: /r\n\nsaid\n"
            .to_owned(),
    );
    case.check("worker", "P001");
    // But for a line that the person wrote.
    case.own = true;
    case.check("theirs", "");
}

#[test]
fn a_whole_file_is_a_workers_to_mend() {
    let mut case = Case::of("- x y z", "- x y z");
    case.head = case.head.replace("## General Tips", "## Tips");
    case.check("worker", "S005");
}

#[test]
fn a_memory_that_a_baseline_left_empty_calls_nobody() {
    let mut case = Case::of("", "");
    case.has_note = true;
    case.check("", "S006");
    case.base = summary("- something is said");
    case.check("worker", "S006");
}

struct Case {
    head: String,
    base: String,
    base_recaps: BTreeMap<TreePath, String>,
    own: bool,
    has_note: bool,
}

impl Case {
    fn of(head: &str, base: &str) -> Self {
        Self {
            head: summary(head),
            base: summary(base),
            base_recaps: BTreeMap::new(),
            own: false,
            has_note: false,
        }
    }

    /// Who has to mend the head, and what speaks against leaving it as it is.
    #[track_caller]
    fn check(&self, who: &str, against: &str) {
        let sorted = self.sort();
        let told = [
            (!sorted.persons.is_empty()).then_some("theirs"),
            (!sorted.workers.is_empty()).then_some("worker"),
        ];
        let told: Vec<&str> = told.into_iter().flatten().collect();
        assert_eq!(told.join(" "), who, "{}", self.head);
        assert_eq!(self.judge(&self.head), against, "{}", self.head);
    }

    fn sort(&self) -> super::Sorted {
        let (head, base) = (outputs(&self.head), outputs(&self.base));
        let own = entries::parse(&path("memory_summary.md"), &self.head);
        sort(
            self.errors(&head, &BTreeMap::new()),
            &TheirsFacts {
                outputs: &head,
                base: &base,
                base_errors: &self.errors(&base, &self.base_recaps),
                own: if self.own { &own } else { &[] },
            },
        )
    }

    fn judge(&self, new: &str) -> String {
        let new = outputs(new);
        let errors = self.errors(&new, &BTreeMap::new());
        let left = self.sort().theirs.excuse(&new, errors);
        let codes: Vec<&str> = left.iter().map(Fault::code).collect();
        codes.join(" ")
    }

    fn errors(&self, files: &Outputs, recaps: &BTreeMap<TreePath, String>) -> Vec<Fault> {
        let note = self.has_note.then(|| path("extensions/ad_hoc/notes/n.md"));
        let others: BTreeSet<TreePath> = note.into_iter().collect();
        let beside = Beside {
            recaps,
            others: &others,
            summary_bytes_max: usize::MAX,
        };
        judge::errors_in_outputs(MemoryVersion::V2, files, beside, false)
    }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn summary(tips: &str) -> String {
    format!(
        "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n{tips}\n\n## What's in Memory\n"
    )
}

fn outputs(text: &str) -> Outputs {
    let file = OutputFile {
        text: text.to_owned(),
        executable: false,
    };
    BTreeMap::from([(path("memory_summary.md"), file)])
}
