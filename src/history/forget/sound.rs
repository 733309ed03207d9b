//! Keeps the result a memory that passes the checks.

use crate::domain::path::{FileKind, TreePath};
use crate::domain::version::MemoryVersion;
use crate::history::forget::{Files, Forgotten, cut};
use crate::validate::{self, Facts};

/// Sections that a summary without an entry gets its count under.
const PROFILE: &str = "## User Profile\n";

/// What a handbook says of which nothing is left beside its inputs.
const BARE_GROUP: &str = "\
# Task Group: sessions

scope: what was here is forgotten; the next pass folds in what is left
applies_to: cwd=any; reuse_rule=open the recap before relying on it
";

/// Mends what the cuts left behind in the memory files: headings of nothing,
/// and files of nothing.
pub(crate) fn settle(version: MemoryVersion, files: &Files, forgotten: &mut Forgotten) {
    for (path, new) in &mut forgotten.files {
        let (Some(old), Some(text)) = (files.get(path), new.as_mut()) else {
            continue;
        };
        match path.kind() {
            FileKind::Summary | FileKind::Handbook => {
                *text = cut::without_bare_headings(path, old, text);
            }
            FileKind::Skill if text.trim().is_empty() => *new = None,
            _ => {}
        }
    }
    let mut after = files.clone();
    for (path, new) in &forgotten.files {
        match new {
            Some(text) => after.insert(path.clone(), text.clone()),
            None => after.remove(path),
        };
    }
    for code in ["S006", "M002"] {
        let path = match broken(version, &after, code) {
            Some(path) if !has_code(version, files, code) => path,
            _ => continue,
        };
        let Some(text) = after.get(&path) else {
            continue;
        };
        let mended = if code == "M002" {
            format!("{}{BARE_GROUP}", text.trim_start())
        } else {
            let recaps = after.keys().filter(|path| path.kind() == FileKind::Recap);
            let count = format!("{PROFILE}\n- Sessions in memory: {}.\n", recaps.count());
            text.replacen(PROFILE, &count, 1)
        };
        forgotten.files.insert(path, Some(mended));
    }
}

fn broken(version: MemoryVersion, files: &Files, code: &str) -> Option<TreePath> {
    let found = validate::check(files, version, &Facts::default());
    let mut found = validate::errors_only(found).into_iter();
    found.find(|it| it.code == code).map(|it| it.path)
}

fn has_code(version: MemoryVersion, files: &Files, code: &str) -> bool {
    broken(version, files, code).is_some()
}
