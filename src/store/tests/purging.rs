//! A repository without a text, in the place of the old one.

use super::{Folder, paths};
use crate::domain::path::TreePath;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::purge::Scrub;

/// `mark` becomes `....`.
fn scrub(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.contains("mark")
        .then(|| text.replace("mark", "....").into_bytes())
}

fn is_hit(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"mark").is_some()
}

const SCRUB: Scrub<'_> = Scrub {
    bytes: &scrub,
    files: None,
    drops_line: &|_| false,
};

fn purge(folder: &Folder) -> Result<Store, StoreError> {
    let lock = folder.lock();
    folder.store.begin_purge(&lock, "begun\n")?;
    (folder.store).rebuild_without(&lock, &SCRUB, &is_hit, &Vec::new)?;
    let new = folder.store.swap_rewritten(&lock)?;
    new.end_purge(&lock)?;
    Ok(new)
}

#[test]
fn history_before_the_text_keeps_its_ids_and_what_speaks_of_changed_commits_is_renamed() {
    let folder = Folder::with(&[("a.md", "one\n")]);
    let before = folder.head();
    folder.write("a.md", "one mark\n");
    let with = folder.commit_all("edit: with a mark");
    folder.write("a.md", "one\n");
    folder.commit_all(&format!("revert: {with}"));
    let new = purge(&folder).unwrap();
    let log = folder.git(&["log", "--format=%H %s"]);
    let lines: Vec<&str> = log.lines().collect();
    let changed = lines[1].split(' ').next().unwrap();
    assert_ne!(changed, with.to_string());
    assert!(lines[0].ends_with(&format!("revert: {changed}")), "{log}");
    assert!(lines[1].ends_with("edit: with a ...."), "{log}");
    assert!(lines[2].starts_with(&before.to_string()), "{log}");
    let sighting = new.sightings(&is_hit).unwrap();
    assert!(sighting.is_empty(), "{sighting:?}");
    folder.assert_in_order();
}

#[test]
fn a_signature_of_a_changed_commit_goes_and_the_text_in_main_refuses() {
    let folder = Folder::with(&[("a.md", "one\n")]);
    let text = folder.git(&["cat-file", "commit", "HEAD"]);
    let (head, message) = text.split_once("\n\n").unwrap();
    let signed = format!("{head}\ngpgsig -----BEGIN\n mark\n -----END\n\n{message}");
    let object = folder.at("object");
    std::fs::write(&object, signed).unwrap();
    let id = folder.git(&["hash-object", "-t", "commit", "-w", "object"]);
    folder.git(&["update-ref", "refs/heads/signed", id.trim()]);
    std::fs::remove_file(object).unwrap();
    purge(&folder).unwrap();
    let text = folder.git(&["cat-file", "commit", "signed"]);
    assert!(!text.contains("gpgsig"), "{text}");
    // The caller takes it out of main first.
    folder.write("a.md", "mark\n");
    folder.commit_all("edit: more");
    let head = folder.head();
    assert!(matches!(purge(&folder), Err(StoreError::Damaged { .. })));
    assert_eq!(folder.head(), head);
    assert!(Store::has_unfinished_purge(&paths(folder.temporary.path())));
}

#[test]
fn a_stop_between_two_renames_gives_the_old_repository_back() {
    let folder = Folder::with(&[("a.md", "one\n")]);
    let paths = paths(folder.temporary.path());
    let side = Store::purge_folder(&paths);
    std::fs::create_dir_all(&side).unwrap();
    std::fs::rename(folder.at(".git"), side.join("old.git")).unwrap();
    let store = Store::open(paths).unwrap();
    let head = store.snapshot(store.head().unwrap()).unwrap();
    assert!(head.files.contains_key(&TreePath::parse("a.md").unwrap()));
    folder.assert_in_order();
}
