//! Loose objects and small packs become few packs, and nothing is lost.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use super::Folder;

/// Files of a commit on a side branch, all of it loose.
fn with_loose(count: usize) -> Folder {
    let folder = Folder::with(&[("MEMORY.md", "one\n")]);
    let mut stream = String::new();
    for number in 1..=count {
        let text = format!("file {number}\n");
        let _ = write!(
            stream,
            "blob\nmark :{number}\ndata {}\n{text}\n",
            text.len()
        );
    }
    stream.push_str("commit refs/heads/many\ncommitter A <a@b> 1 +0000\ndata 1\nx\n");
    for number in 1..=count {
        let _ = writeln!(stream, "M 100644 :{number} files/{number}.md");
    }
    let pipe = |arguments: &[&str], input: &[u8]| {
        let mut child = std::process::Command::new("git")
            .args(arguments)
            .current_dir(folder.store.folder())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    };
    pipe(
        &["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"],
        stream.as_bytes(),
    );
    let packs = folder.at(".git/objects/pack");
    for entry in std::fs::read_dir(packs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pack") {
            let bytes = std::fs::read(&path).unwrap();
            for end in ["idx", "rev", "pack"] {
                std::fs::remove_file(path.with_extension(end)).ok();
            }
            pipe(&["unpack-objects", "-q"], &bytes);
        }
    }
    folder
}

fn count(folder: &Folder, key: &str) -> usize {
    let text = folder.git(&["count-objects", "-v"]);
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap().trim_start_matches(": ").parse().unwrap()
}

#[test]
fn more_loose_objects_than_the_limit_are_packed_and_none_is_lost() {
    let folder = with_loose(7_000);
    let unreached = folder.git(&["hash-object", "-w", "--stdin"]);
    assert!(7_000 < count(&folder, "count"));
    let before = folder.git(&["rev-list", "--objects", "--all"]);
    folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(
        count(&folder, "count"),
        1,
        "what nothing reaches stays loose"
    );
    folder.git(&["cat-file", "-e", unreached.trim()]);
    assert_eq!(folder.git(&["rev-list", "--objects", "--all"]), before);
    folder.git(&["fsck", "--strict"]);
    // Nothing to do: nothing is done.
    let packs = count(&folder, "packs");
    folder.store.recover(&folder.lock()).unwrap();
    assert_eq!(count(&folder, "packs"), packs);
}

#[test]
fn a_bound_on_memory_makes_several_packs() {
    let folder = with_loose(300);
    let before = count(&folder, "packs");
    folder
        .store
        .tidy_loose_over(&folder.lock(), 100, 500)
        .unwrap();
    assert_eq!(count(&folder, "count"), 0);
    assert!(
        before + 4 < count(&folder, "packs"),
        "each holds 500 bytes and an object"
    );
    folder.git(&["fsck", "--strict"]);
}

#[test]
fn beside_a_publication_or_a_running_gc_nothing_is_packed() {
    let folder = with_loose(300);
    let loose = count(&folder, "count");
    let gc = folder.at(".git/gc.pid");
    std::fs::write(&gc, format!("{} here", std::process::id())).unwrap();
    folder
        .store
        .tidy_loose_over(&folder.lock(), 100, 500)
        .unwrap();
    assert_eq!(count(&folder, "count"), loose, "that process lives");
    // The age of the file says nothing, its process does.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    std::fs::write(&gc, format!("{} here", child.id())).unwrap();
    let record = folder.at(".git/memrev/publication");
    std::fs::create_dir_all(record.parent().unwrap()).unwrap();
    std::fs::write(&record, "x").unwrap();
    folder
        .store
        .tidy_loose_over(&folder.lock(), 100, 500)
        .unwrap();
    assert_eq!(count(&folder, "count"), loose, "a publication is under way");
    std::fs::remove_file(record).unwrap();
    folder
        .store
        .tidy_loose_over(&folder.lock(), 100, 500)
        .unwrap();
    assert_eq!(count(&folder, "count"), 0);
}
