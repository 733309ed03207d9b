//! A single crate has no Cargo.toml lines between its parts, so this test
//! plays their role: a module may name only the modules listed for it.

use std::fs;
use std::path::{Path, PathBuf};

const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("text", &["domain"]),
    ("sys", &["domain"]),
    ("validate", &["domain", "text"]),
    ("config", &["domain", "text", "sys"]),
    ("store", &["domain", "sys"]),
    ("ledger", &["domain", "sys"]),
    ("sessions", &["domain", "text", "sys"]),
    ("recaps", &["domain", "text", "sys"]),
    ("model", &["domain", "text", "sys"]),
    ("notes", &["domain", "text", "sys", "store"]),
    (
        "recall",
        &["domain", "text", "sys", "store", "ledger", "recaps"],
    ),
    (
        "extract",
        &[
            "domain", "text", "sys", "sessions", "recaps", "ledger", "model",
        ],
    ),
    (
        "consolidate",
        &[
            "domain", "text", "sys", "validate", "notes", "recaps", "store", "ledger", "model",
        ],
    ),
    (
        "history",
        &[
            "domain",
            "text",
            "sys",
            "validate",
            "notes",
            "recaps",
            "sessions",
            "store",
            "ledger",
            // What a person did is taken in, and said, in one way.
            "consolidate",
        ],
    ),
    (
        "service",
        &[
            "history",
            "domain",
            "text",
            "sys",
            "config",
            "notes",
            "extract",
            "consolidate",
            "store",
            "ledger",
            "recaps",
            "model",
            "sessions",
        ],
    ),
];

/// The top of the house: these may name everything.
const MAY_USE_ALL: &[&str] = &["cli", "internals", "lib", "main"];

#[test]
fn modules_only_look_down() {
    let mut offences = Vec::new();
    for (layer, allowed) in MAY_USE {
        for file in rust_files(layer) {
            let text = fs::read_to_string(&file).unwrap();
            offences.extend(offences_in(layer, allowed, &file, &text));
        }
    }
    assert!(offences.is_empty(), "\n{}", offences.join("\n"));
}

#[test]
fn every_module_has_a_row() {
    for name in top_modules() {
        let listed = MAY_USE.iter().any(|(layer, _)| *layer == name);
        let is_top = MAY_USE_ALL.contains(&name.as_str());
        assert!(listed || is_top, "`src/{name}` has no row in MAY_USE");
    }
}

#[test]
fn planted_offences_are_seen() {
    for (code, seen) in [
        ("use crate::store::Store;", true),
        ("use crate::domain::id::ThreadId;", false),
        ("use crate::{store, domain};", true),
        ("fn f() { super::super::store::open(); }", true),
        ("// crate::store is not used here", false),
    ] {
        let offences = offences_in("text", &["domain"], Path::new("src/text/x.rs"), code);
        assert_eq!(!offences.is_empty(), seen, "{code}");
    }
}

fn offences_in(layer: &str, allowed: &[&str], file: &Path, text: &str) -> Vec<String> {
    let mut offences = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap();
        let at = format!("{}:{}", file.display(), index + 1);
        for used in code.split("crate::").skip(1).map(first_word) {
            if used.is_empty() {
                offences.push(format!("{at}: name one module a line, no `crate::{{`"));
            } else if used != layer && !allowed.contains(&used) {
                offences.push(format!("{at}: `{layer}` may not use `{used}`"));
            }
        }
        if code.contains("super::super") {
            offences.push(format!("{at}: write the path from `crate::`"));
        }
    }
    offences
}

fn first_word(path: &str) -> &str {
    let end = path.find(|c: char| c != '_' && !c.is_alphanumeric());
    &path[..end.unwrap_or(path.len())]
}

fn top_modules() -> Vec<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    names
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect()
}

fn rust_files(layer: &str) -> Vec<PathBuf> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![src.join(layer).with_extension("rs")];
    let mut folders = vec![src.join(layer)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    files.retain(|file| file.is_file());
    files
}
