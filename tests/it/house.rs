//! Rules of the house that a compiler does not know.

use std::fs;
use std::path::{Path, PathBuf};

/// A longer file has to say in its header why it is one.
const FILE_LINES_MAX: usize = 600;

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in rust_files() {
        assert!(text.starts_with("//! "), "{path} has no header");
    }
}

#[test]
fn long_files_say_why() {
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        let header: String = text.lines().take_while(|l| l.starts_with("//!")).collect();
        let says_why = header.contains("One file because");
        assert!(
            lines <= FILE_LINES_MAX || says_why,
            "{path} has {lines} lines; over {FILE_LINES_MAX} its header has to say `One file because …`"
        );
    }
}

#[test]
fn only_redaction_makes_redacted_text() {
    for (path, text) in rust_files() {
        let is_test = path.starts_with("tests/") || path.contains("/tests");
        let may = path.starts_with("src/text/redact") || path == "src/domain/text.rs" || is_test;
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let hits = code.filter(|line| line.contains("Redacted::seal")).count();
        assert!(
            may || hits == 0,
            "{path} calls `Redacted::seal`; call `text::redact` instead"
        );
    }
}

#[test]
fn nothing_is_left_for_later() {
    let markers = ["todo", "unimplemented"].map(|word| format!("{word}!("));
    let ignored = format!("#[{}", "ignore");
    for (path, text) in rust_files() {
        for marker in markers.iter().chain([&ignored]) {
            assert!(
                !text.contains(marker.as_str()),
                "{path} still has `{marker}`"
            );
        }
        for word in ["TODO", "FIXME", "XXX"] {
            let alone = text
                .split(|c: char| !c.is_alphanumeric())
                .any(|part| part == word);
            assert!(
                !alone || path == "tests/it/house.rs",
                "{path} still has `{word}`"
            );
        }
    }
}

#[test]
fn prompts_and_schemas_are_all_used() {
    let code: String = rust_files().into_iter().map(|(_, text)| text).collect();
    for folder in ["prompts", "schemas"] {
        for path in files_below(&root().join(folder)) {
            let name = path
                .strip_prefix(root())
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            assert!(code.contains(&name), "nothing names `{name}`");
        }
    }
}

#[test]
fn the_changelog_has_an_open_section() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(text.contains("## Unreleased"));
}

#[test]
fn every_dependency_says_what_it_saves_us() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut is_dependency = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency = line.contains("dependencies]");
        } else if is_dependency && line.contains('=') {
            let name = line.split_whitespace().next().unwrap();
            let row = format!("| `{name}` |");
            assert!(
                contributing.contains(&row),
                "CONTRIBUTING.md has no row for `{name}`"
            );
        }
    }
}

#[test]
fn every_test_that_conformance_names_exists() {
    let code: String = rust_files().into_iter().map(|(_, text)| text).collect();
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let mut named = 0;
    for name in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        let is_test = 3 < name.matches('_').count();
        if is_test {
            named += 1;
            let declared = format!("fn {name}(");
            assert!(code.contains(&declared), "there is no test `{name}`");
        }
    }
    assert!(80 < named, "only {named} tests were found in the table");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Path from the root and text of every Rust file of ours, sorted.
fn rust_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches"] {
        for path in files_below(&root().join(folder)) {
            if path.extension().is_some_and(|end| end == "rs") {
                let name = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}
