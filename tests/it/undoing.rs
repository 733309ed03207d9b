//! Taking back any baseline of many, compared with the real `git`.
//!
//! Every line of the memory file is there once in all of its history, so that
//! what undoing a baseline must come to can be said without merging: what it
//! brought goes, what it took comes back, and all else stays.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Run, Sandbox, beside_each_other};

pub(crate) const FILE: &str = "MEMORY.md";
const BASELINES: usize = 40;
const PAIRS: usize = 100;
/// Boxes in which the pairs are tried beside each other.
const BOXES: usize = 4;

/// A small generator, the same at every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A handbook whose every line is new in the world.
struct Handbook {
    lines: Vec<String>,
    number: usize,
}

impl Handbook {
    fn line(&mut self, start: &str) -> String {
        self.number += 1;
        format!("{start}{}: what was learnt then", self.number)
    }

    fn begin() -> Self {
        let mut handbook = Self {
            lines: Vec::new(),
            number: 0,
        };
        for _ in 0..8 {
            handbook.group();
        }
        handbook
    }

    /// A group at the end, as most baselines bring one.
    fn group(&mut self) {
        let heading = self.line("# Task Group: work ");
        self.lines.push(heading);
        for _ in 0..6 {
            let bullet = self.line("- entry ");
            self.lines.push(bullet);
        }
    }

    fn bullet(&self, dice: &mut Dice) -> usize {
        loop {
            let at = dice.below(self.lines.len());
            if self.lines[at].starts_with("- ") {
                return at;
            }
        }
    }

    /// What a baseline does.
    fn change(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.below(3) {
            let at = self.bullet(dice);
            match dice.below(6) {
                0 => self.group(),
                1 => drop(self.lines.remove(at)),
                2 => self.lines[at] = self.line("- reworded "),
                _ => {
                    let bullet = self.line("- entry ");
                    self.lines.insert(at + 1, bullet);
                }
            }
        }
    }

    fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// Imports the baselines; the commits, oldest first. Nothing of the first is
/// taken back: it makes the file.
pub(crate) fn baselines(sandbox: &Sandbox, dice: &mut Dice) -> Vec<String> {
    let mut handbook = Handbook::begin();
    let mut stream = String::new();
    for number in 0..BASELINES {
        let text = handbook.text();
        let message = format!(
            "baseline: {FILE}\n\nMemrev-Kind: baseline\nMemrev-Run: run-{number}\nMemrev-Version: v1\n"
        );
        let from = if number == 0 {
            "from refs/heads/main^0\n"
        } else {
            ""
        };
        let at = 1_770_000_000 + number * 3_600;
        writeln!(
            stream,
            "commit refs/heads/main\ncommitter memrev <memrev@localhost> {at} +0000\ndata {}\n{message}\n{from}M 100644 inline {FILE}\ndata {}\n{text}",
            message.len(),
            text.len()
        )
        .unwrap();
        handbook.change(dice);
    }
    let file = sandbox.path("stream");
    sandbox.write_at(&file, &stream);
    let mut import =
        sandbox.git_command(&sandbox.memories(), &["fast-import", "--quiet", "--force"]);
    let status = import.stdin(std::fs::File::open(file).unwrap()).status();
    assert!(status.unwrap().success());
    let all = sandbox.git(&["rev-list", "--reverse", "--first-parent", "main"]);
    let before = all.lines().count() - BASELINES;
    all.lines().skip(before).map(str::to_owned).collect()
}

fn lines_at(sandbox: &Sandbox, commit: &str) -> Vec<String> {
    let text = sandbox.git(&["show", &format!("{commit}:{FILE}")]);
    text.lines().map(str::to_owned).collect()
}

fn set(lines: &[String]) -> BTreeSet<&str> {
    lines.iter().map(String::as_str).collect()
}

/// What `git revert` makes of the file, if it can: its merge, without a work
/// tree.
fn by_git(sandbox: &Sandbox, head: &str, target: &str) -> Option<String> {
    let base = format!("--merge-base={target}");
    let arguments = [
        "merge-tree",
        "--write-tree",
        &base,
        head,
        &format!("{target}^"),
    ];
    let run = Run::of(
        sandbox
            .git_command(&sandbox.memories(), &arguments)
            .output()
            .unwrap(),
    );
    match run.code {
        Some(0) => Some(sandbox.git(&["show", &format!("{}:{FILE}", run.stdout.trim())])),
        Some(1) => None,
        _ => panic!("git merge-tree: {}", run.stderr),
    }
}

/// How often it came out which way.
#[derive(Default)]
struct Counts {
    as_git: AtomicUsize,
    beyond_git: AtomicUsize,
    conflicts: AtomicUsize,
}

fn take_back(sandbox: &Sandbox, head: &str, target: &str, counts: &Counts) {
    sandbox.git(&["reset", "-q", "--hard", head]);
    let run = sandbox.run(&["revert", target, "--retry"]);
    let git = by_git(sandbox, head, target);
    let name = format!("{target} below {head}: {}", run.stderr);
    let before = lines_at(sandbox, head);
    if run.code == Some(1) {
        assert_eq!(git, None, "git can do it, {name}");
        assert!(run.stderr.contains("nothing was written"), "{name}");
        assert_eq!(sandbox.head(), head, "{name}");
        assert_eq!(
            sandbox.read(FILE).lines().collect::<Vec<_>>(),
            before,
            "{name}"
        );
        counts.conflicts.fetch_add(1, Ordering::Relaxed);
        return;
    }
    assert_eq!(run.code, Some(0), "{name}");
    let text = sandbox.read(FILE);
    if let Some(git) = git {
        assert_eq!(text, git, "{name}");
        counts.as_git.fetch_add(1, Ordering::Relaxed);
    } else {
        counts.beyond_git.fetch_add(1, Ordering::Relaxed);
    }
    let then = lines_at(sandbox, target);
    let parent = lines_at(sandbox, &format!("{target}^"));
    let (then, parent) = (set(&then), set(&parent));
    let mut expected: BTreeSet<&str> = &set(&before) - &(&then - &parent);
    expected.extend(&parent - &then);
    let after: Vec<&str> = text.lines().collect();
    assert_eq!(after.len(), expected.len(), "{name}");
    assert_eq!(
        after.iter().copied().collect::<BTreeSet<&str>>(),
        expected,
        "{name}"
    );
    // What stays is in its order.
    let stays: Vec<&str> = (before.iter().map(String::as_str))
        .filter(|line| expected.contains(line))
        .collect();
    let is_old: BTreeSet<&str> = stays.iter().copied().collect();
    let kept: Vec<&str> = after
        .into_iter()
        .filter(|line| is_old.contains(line))
        .collect();
    assert_eq!(kept, stays, "{name}");
}

#[test]
fn any_baseline_below_any_number_of_others_is_taken_back_as_git_would_and_theirs_stays() {
    let mut dice = Dice(7);
    let sandbox = Sandbox::new();
    let commits = baselines(&sandbox, &mut dice);
    let pairs: Vec<(usize, usize)> = (0..PAIRS)
        .map(|_| {
            let head = 1 + dice.below(BASELINES - 1);
            (head, 1 + dice.below(head))
        })
        .collect();
    let counts = Counts::default();
    let boxes: Vec<Sandbox> = (0..BOXES).map(|_| sandbox.copy()).collect();
    let shares: Vec<usize> = (0..BOXES).collect();
    beside_each_other(&shares, |share| {
        for (head, target) in pairs.iter().skip(*share).step_by(BOXES) {
            take_back(&boxes[*share], &commits[*head], &commits[*target], &counts);
        }
    });
    let [as_git, beyond_git, conflicts] =
        [counts.as_git, counts.beyond_git, counts.conflicts].map(AtomicUsize::into_inner);
    assert_eq!(as_git + beyond_git + conflicts, PAIRS);
    // Each of the three was tried.
    assert!(40 <= as_git, "{as_git}");
    assert!(3 <= beyond_git, "{beyond_git}");
    assert!(3 <= conflicts, "{conflicts}");
}
