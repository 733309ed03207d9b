//! The corpus, and what has no place in it.
//!
//! A case is a folder under `tests/corpus/validate/good` or `bad`. The memory
//! folder lies in `v1/` or `v2/`; `facts.txt`, where needed, has lines such as
//! `symlink: skills/x`, `not-utf8: a.md`, `result`, `summary_bytes_max: 100`,
//! `file: path` (a further file holding one line of text, for names that not every file
//! system takes), `secret: path` and `control: path` (a file gets a line with a secret or an escape
//! character, which cannot stand in a repository). A bad case has its diagnostics beside it in
//! `diagnostics.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::render;
use super::rules::RULES;
use super::wire;
use super::{Diagnostic, Diagnostics, Facts, Level, Tree, check, errors_only};
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;

struct Case {
    name: String,
    folder: PathBuf,
    version: MemoryVersion,
    files: BTreeMap<TreePath, String>,
    facts: Facts,
}

impl Case {
    fn diagnostics(&self) -> Vec<Diagnostic> {
        check(&self.files, self.version, &self.facts)
    }

    fn read(folder: PathBuf) -> Self {
        let version = MemoryVersion::ALL
            .into_iter()
            .find(|version| folder.join(version.label()).is_dir())
            .unwrap_or(MemoryVersion::V1);
        let mut case = Self {
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            files: BTreeMap::new(),
            facts: Facts::default(),
            version,
            folder,
        };
        let root = case.folder.join(version.label());
        case.add_folder(&root, "");
        let facts = fs::read_to_string(case.folder.join("facts.txt")).unwrap_or_default();
        facts.lines().for_each(|line| case.add_fact(line));
        case
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let entry = entry.unwrap();
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.add_folder(&entry.path(), &format!("{path}/"));
            } else {
                let text = fs::read_to_string(entry.path()).unwrap();
                self.files.insert(TreePath::parse(&path).unwrap(), text);
            }
        }
    }

    fn add_fact(&mut self, line: &str) {
        let (key, value) = line.split_once(": ").unwrap_or((line, ""));
        let path = || TreePath::parse(value).unwrap();
        match key {
            "result" => self.facts.is_result = true,
            "summary_bytes_max" => self.facts.summary_bytes_max = Some(value.parse().unwrap()),
            "symlink" => self.facts.symlinks.push(path()),
            "not-utf8" => self.facts.not_utf8.push(path()),
            "file" => {
                self.files.insert(path(), "Some text.\n".to_owned());
            }
            "secret" => {
                let secret = format!(
                    "Use gh{}{} here.\n",
                    "p_", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xYz0a"
                );
                self.files.entry(path()).or_default().push_str(&secret);
            }
            "control" => {
                self.files
                    .entry(path())
                    .or_default()
                    .push_str("\nred: \u{1b}[31mtext\n");
            }
            _ => panic!("{}: what is `{line}`?", self.name),
        }
    }
}

fn cases(kind: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/validate")
        .join(kind);
    let mut folders: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    folders.into_iter().map(Case::read).collect()
}

#[test]
fn good_folders_have_no_diagnostics() {
    for case in cases("good") {
        let diagnostics = case.diagnostics();
        assert!(
            diagnostics.is_empty(),
            "{}:\n{}",
            case.name,
            render::text(&diagnostics, &case.files)
        );
    }
}

#[test]
fn bad_folders_have_exactly_the_diagnostics_beside_them() {
    let mut wrong = Vec::new();
    for case in cases("bad") {
        let expected = fs::read_to_string(case.folder.join("diagnostics.txt")).unwrap_or_default();
        let told = render::text(&case.diagnostics(), &case.files);
        if told != expected {
            wrong.push(format!("== {}\n{told}", case.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// F006 needs a file of ten megabytes and is tested below.
#[test]
fn every_rule_has_a_bad_folder() {
    let seen: BTreeSet<&str> = (cases("bad").iter())
        .flat_map(|case| {
            case.diagnostics()
                .into_iter()
                .map(|diagnostic| diagnostic.code)
        })
        .chain(["F006"])
        .collect();
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(seen, all);
    assert_eq!(all.len(), RULES.len(), "a code is used twice");
}

fn tree(files: &[(&str, &str)]) -> BTreeMap<TreePath, String> {
    let parse = |(path, text): &(&str, &str)| (TreePath::parse(path).unwrap(), (*text).to_owned());
    files.iter().map(parse).collect()
}

#[test]
fn huge_files_are_errors() {
    let size = usize::try_from(SNAPSHOT_FILE_BYTES_MAX).unwrap();
    let codes = |bytes: usize| -> Vec<_> {
        let files = tree(&[("notes.txt", &"a".repeat(bytes))]);
        let facts = Facts::default();
        let tree = Tree {
            files: &files,
            version: MemoryVersion::V2,
            facts: &facts,
        };
        let mut found = Diagnostics::default();
        // The other rules would read ten megabytes too, slowly without optimisation.
        super::files::check(&tree, &mut found);
        found
            .all
            .into_iter()
            .map(|diagnostic| diagnostic.code)
            .collect()
    };
    assert_eq!(codes(size), Vec::<&str>::new());
    assert_eq!(codes(size + 1), ["F006"]);
}

/// Cases 25 and 26: whatever a worker leaves in place of memory is refused.
#[test]
fn empty_and_chatty_results_are_errors() {
    let recap =
        "---\nthread_id: a1\nupdated_at: 2026-12-01T05:33:44Z\nrollout_path: /r\n---\n\nText.\n";
    let headings =
        "v1\n\n## User Profile\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n";
    for version in MemoryVersion::ALL {
        for summary in [
            "",
            " \n\t\n",
            "v1\n",
            headings,
            "I need permission to write to memory_summary.md. Should I go on?\n",
            "Here is the updated file:\n\n```markdown\nv1\n\n## User Profile\n```\n",
            "I'm sorry, but I can't help with that.\n",
            "v1\n\n## User Profile\n\nI’m sorry, I was unable to read the recaps.\n\n## User preferences\n\n## General Tips\n\n## What's in Memory\n",
            "抱歉，我需要权限才能更新这个文件。\n",
        ] {
            let files = tree(&[
                ("memory_summary.md", summary),
                ("MEMORY.md", "# Task Group: a\n\nscope: a\napplies_to: b\n"),
                ("rollout_summaries/2026-12-01T05-33-44-ILrR.md", recap),
            ]);
            let errors = errors_only(check(&files, version, &Facts::default()));
            assert!(!errors.is_empty(), "{version} {summary:?}");
            assert!(
                errors
                    .iter()
                    .all(|error| error.path.as_str() == "memory_summary.md")
            );
        }
    }
}

#[test]
fn an_empty_folder_is_fine_until_a_worker_made_it() {
    let nothing = BTreeMap::new();
    assert_eq!(check(&nothing, MemoryVersion::V1, &Facts::default()), []);
    let facts = Facts {
        is_result: true,
        ..Facts::default()
    };
    let codes: Vec<_> = check(&nothing, MemoryVersion::V1, &facts)
        .into_iter()
        .map(|d| d.code)
        .collect();
    assert_eq!(codes, ["M001", "S001"]);
}

#[test]
fn no_secret_is_repeated_in_any_format() {
    for case in cases("bad") {
        let diagnostics = case.diagnostics();
        for told in [
            render::text(&diagnostics, &case.files),
            render::github(&diagnostics),
            wire::json(&diagnostics),
            wire::sarif(&diagnostics),
        ] {
            assert!(
                !crate::text::redact::contains_secret(&told),
                "{}:\n{told}",
                case.name
            );
            assert!(!told.contains('\u{1b}'), "{}", case.name);
        }
    }
}

#[test]
fn formats_carry_code_place_and_words() {
    let files = tree(&[("memory_summary.md", "# äMemory\n")]);
    let diagnostics = check(&files, MemoryVersion::V1, &Facts::default());
    let first = &diagnostics[..1];
    assert_eq!(
        render::text(first, &files),
        "memory_summary.md:1:1: error[S002] the first line is `# äMemory` and must be `v1`\n  \
         | # äMemory\n  | ^^^^^^^^^\n"
    );
    assert_eq!(
        render::github(first),
        "::error file=memory_summary.md,line=1,col=1,title=S002::the first line is `# äMemory` and must be `v1`\n"
    );
    let json: serde_json::Value = serde_json::from_str(&wire::json(first)).unwrap();
    assert_eq!(json[0]["code"], "S002");
    assert_eq!(json[0]["end"], 10);
    let sarif: serde_json::Value = serde_json::from_str(&wire::sarif(first)).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "S002");
    assert_eq!(first[0].level, Level::Error);
}
