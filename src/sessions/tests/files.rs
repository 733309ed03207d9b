//! Which files are found, and which count.

use std::path::{Path, PathBuf};

use super::{META, message, put, read_codex, texts};
use crate::domain::session::Agent;
use crate::sessions::{Discovery, Found, ReadError, Roots, discover, read, read_head, settle};

fn found_below(root: &Path) -> Discovery {
    discover(&Roots {
        codex: vec![root.join("codex")],
        claude: vec![root.join("claude")],
        home: None,
    })
}

fn names(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
    paths
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

/// What may lie below the roots of both agents.
const FILES: [&str; 18] = [
    "codex/2026/05/04/rollout-a.jsonl",
    "codex/2026/05/04/rollout-b.jsonl.zst",
    "codex/2026/05/04/rollout-c.jsonl",
    "codex/2026/05/04/rollout-c.jsonl.zst",
    "codex/2026/05/04/rollout-d.jsonl.deleted.1",
    "codex/2026/05/04/rollout-e.jsonl.tmp",
    "codex/2026/05/04/rollout-f.jsonl.zst.tmp",
    "codex/2026/05/04/rollout-g.jsonl.zst.compress.1.0.tmp",
    "codex/2026/05/04/notes.jsonl",
    "codex/archived_sessions/rollout-h.jsonl",
    "codex/rollout-i.json",
    "claude/-w/s1.jsonl",
    "claude/-w/s1/subagents/agent-1.jsonl",
    "claude/-w/s1/subagents/agent-1.meta.json",
    "claude/-w/s1/tool-results/x.jsonl",
    "claude/-w/s2.jsonl.deleted.99",
    "claude/-w/gone/subagents/agent-2.jsonl",
    "claude/-w/memory/MEMORY.md",
];

#[test]
fn only_transcripts_are_found_and_leftovers_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in FILES {
        put(&root.join(name), b"{}\n");
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let odd = std::ffi::OsStr::from_bytes(b"codex/rollout-\xFF\n.jsonl");
        put(&root.join(odd), META.as_bytes());
        std::os::unix::fs::symlink(root.join("claude"), root.join("codex/loop")).unwrap();
        std::os::unix::fs::symlink(
            root.join("claude/-w/s1.jsonl"),
            root.join("claude/-w/link.jsonl"),
        )
        .unwrap();
    }
    let discovery = found_below(root);
    let mut found = names(discovery.found.iter().map(|one| one.path.clone()));
    if cfg!(unix) {
        let odd = found
            .iter()
            .position(|name| name.contains('\u{FFFD}'))
            .unwrap();
        found.remove(odd);
    }
    let expected = [
        "s1.jsonl",
        "rollout-a.jsonl",
        "rollout-b.jsonl.zst",
        "rollout-c.jsonl",
        "rollout-i.json",
    ];
    assert_eq!(found, expected);
    let session = discovery
        .found
        .iter()
        .find(|one| one.agent == Agent::Claude);
    let sub_agents = session.unwrap().sub_agents.clone();
    assert_eq!(names(sub_agents.into_iter()), ["agent-1.jsonl"]);
    let skipped: Vec<&str> = discovery
        .skipped
        .iter()
        .map(|one| one.path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(
        skipped,
        [
            "agent-2.jsonl",
            "s2.jsonl.deleted.99",
            "rollout-d.jsonl.deleted.1",
            "rollout-e.jsonl.tmp",
            "rollout-f.jsonl.zst.tmp",
            "rollout-g.jsonl.zst.compress.1.0.tmp",
        ]
    );
}

#[cfg(unix)]
#[test]
fn names_that_are_not_text_are_read_and_escaped() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"rollout-\xFF\n.jsonl");
    let path = folder.path().join(name);
    put(&path, format!("{META}\n{}\n", message(1, "one")).as_bytes());
    assert_eq!(texts(&read_codex(&path)), ["one"]);
    let escaped = crate::sessions::discover::escaped(Path::new(name));
    assert_eq!(escaped, "rollout-\\xff\\n.jsonl");
}

#[test]
fn missing_roots_are_empty() {
    assert_eq!(found_below(Path::new("/nowhere")), Discovery::default());
}

#[test]
fn a_file_that_went_away_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout-a.jsonl");
    put(&path, META.as_bytes());
    let found = Found::at(Agent::Codex, &path, None).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(read(&found), Err(ReadError::Gone { .. })));
    assert!(matches!(read_head(&found), Err(ReadError::Gone { .. })));
    assert!(Found::at(Agent::Codex, &path, None).is_none());
}

#[test]
fn the_longest_state_of_a_session_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("codex/a/rollout-1.jsonl");
    let long = folder.path().join("codex/b/rollout-1.jsonl");
    put(
        &short,
        format!("{META}\n{}\n", message(1, "one")).as_bytes(),
    );
    let whole = format!("{META}\n{}\n{}\n", message(1, "one"), message(2, "two"));
    put(&long, whole.as_bytes());
    let mut heads: Vec<_> = found_below(folder.path())
        .found
        .into_iter()
        .map(|found| (read_head(&found).unwrap(), found))
        .map(|(head, found)| (found, head))
        .collect();
    let settled = settle(heads.clone());
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0].0.path, long);
    heads.reverse();
    assert_eq!(
        settle(heads),
        settled,
        "the order of the input does not matter"
    );
}

#[test]
fn compressed_rollouts_read_like_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{META}\n{}\n{}\n", message(1, "one"), message(2, "two"));
    let path = folder.path().join("rollout-1.jsonl.zst");
    let compressed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    put(&path, &compressed);
    let session = read_codex(&path);
    assert_eq!(texts(&session), ["one", "two"]);
    let found = Found::at(Agent::Codex, &path, None).unwrap();
    assert_eq!(read_head(&found).unwrap(), session.head);
}

#[test]
fn compressed_rollouts_give_what_is_in_front_of_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout-1.jsonl.zst");
    let text = format!("{META}\n{}\n", message(1, "one"));
    let mut compressed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let first_frame = compressed.len();
    compressed.extend(zstd::encode_all(message(2, "two").as_bytes(), 3).unwrap());

    put(&path, &compressed[..first_frame + 12]);
    let session = read_codex(&path);
    assert_eq!(texts(&session), ["one"]);
    assert!(session.report.unfinished_line);

    compressed.truncate(first_frame);
    compressed.extend(b"no frame at all");
    put(&path, &compressed);
    let session = read_codex(&path);
    assert_eq!(texts(&session), ["one"]);
    assert_eq!(session.report.damage[0].line_number, 3);

    put(&path, &compressed[..first_frame / 2]);
    let found = Found::at(Agent::Codex, &path, None).unwrap();
    assert!(matches!(read(&found), Err(ReadError::Unreadable { .. })));
}

#[test]
fn a_quick_look_dates_a_session_as_a_whole_read_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout-1.jsonl");
    let mut text = format!("{META}\n");
    for second in 0..50 {
        text.push_str(&message(second, &"x".repeat(40_000)));
        text.push('\n');
    }
    for tail in ["", "{\"half", "\0\0\0"] {
        put(&path, format!("{text}{tail}").as_bytes());
        let found = Found::at(Agent::Codex, &path, None).unwrap();
        assert_eq!(read_head(&found).unwrap(), read(&found).unwrap().head);
    }
}
