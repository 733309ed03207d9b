//! Loose objects are packed by themselves; a stop in the middle loses none.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Sandbox, Transcript, beside_each_other};

/// More than are left alone.
const COUNT: usize = 7_000;

fn pipe(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) {
    let mut child = sandbox
        .git_command(&sandbox.memories(), arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    assert!(child.wait().unwrap().success(), "{arguments:?}");
}

/// A memory with a baseline, and a side branch of a person's of many files.
fn with_loose() -> Sandbox {
    let sandbox = Sandbox::new();
    let story = "human: From now on always run the tests.\nagent: ok";
    sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", story));
    sandbox.run(&["run"]).success();
    let kept: Vec<String> = sandbox.names("memories/.git/objects/pack");
    let mut stream = String::new();
    for number in 1..=COUNT {
        let text = format!("file {number}\n");
        write!(
            stream,
            "blob\nmark :{number}\ndata {}\n{text}\n",
            text.len()
        )
        .unwrap();
    }
    stream.push_str("commit refs/heads/many\ncommitter A <a@b> 1 +0000\ndata 1\nx\n");
    for number in 1..=COUNT {
        writeln!(stream, "M 100644 :{number} files/{number}.md").unwrap();
    }
    let import = ["-c", "fastimport.unpackLimit=1", "fast-import", "--quiet"];
    pipe(&sandbox, &import, stream.as_bytes());
    let packs = sandbox.memories().join(".git/objects/pack");
    for name in sandbox.names("memories/.git/objects/pack") {
        let path = packs.join(&name);
        if kept.contains(&name) || path.extension().is_none_or(|end| end != "pack") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for end in ["idx", "rev", "pack"] {
            std::fs::remove_file(path.with_extension(end)).ok();
        }
        pipe(&sandbox, &["unpack-objects", "-q"], &bytes);
    }
    assert!(COUNT < loose(&sandbox));
    sandbox
}

fn loose(sandbox: &Sandbox) -> usize {
    let text = sandbox.git(&["count-objects"]);
    text.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_pass_packs_and_a_stop_anywhere_in_it_loses_nothing() {
    let prepared = with_loose();
    let objects = prepared.git(&["rev-list", "--objects", "--all"]);
    let points = [
        "loose.locked",
        "loose.packed",
        "loose.first_removed",
        "loose.tidied",
    ];
    beside_each_other(&points, |point| {
        let sandbox = prepared.copy();
        assert!(sandbox.kill_at(point, &["run"]), "{point} was not reached");
        sandbox.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(
            sandbox.git(&["rev-list", "--objects", "--all"]),
            objects,
            "{point}"
        );
        sandbox.run(&["run"]).success();
        assert_eq!(
            sandbox.git(&["rev-list", "--objects", "--all"]),
            objects,
            "{point}"
        );
        // What was packed before the stop was loose twice; it is few files now.
        let left = loose(&sandbox);
        assert!(left < COUNT, "{point}: {left} loose objects");
        sandbox.assert_sound();
        assert!(
            !sandbox.memories().join(".git/gc.pid.lock").exists(),
            "{point}"
        );
    });
}
