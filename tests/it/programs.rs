//! Programs as back ends: shell scripts that answer, misbehave, and leave
//! things behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::{Sandbox, Transcript};

/// Answers an extraction as version 1 wants it.
const RECAP: &str = r##"cat > "$TMPDIR/prompt"
printf '%s' '{"rollout_summary": "# Reports\n\nA line of context.\n\n## Task 1: check reports\n\nOutcome: success\n\nReusable knowledge:\n- report number 1 is checked twice\n", "rollout_slug": "reports", "raw_memory": "---\ndescription: reports\ntask: check\ntask_group: reports\ntask_outcome: success\ncwd: /work/box\nkeywords: report\n---\n\n### Task 1: check reports\n"}'
"##;

fn session(number: u32) -> Transcript {
    let story = format!("human: Always check report number {number} twice.\nagent: ok");
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

/// A box whose back end is a script.
fn with_script(script: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    let file = write_script(&sandbox, script);
    sandbox.configure(&format!(
        "[model]\nbackend = \"command\"\ncommand = [{:?}, \"one\", \"two words\"]\n{more}",
        file.to_str().unwrap()
    ));
    sandbox.run(&["init"]).success();
    sandbox
}

fn write_script(sandbox: &Sandbox, script: &str) -> PathBuf {
    let file = sandbox.path("model.sh");
    fs::write(&file, format!("#!/bin/sh\nset -eu\n{script}")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    file
}

#[test]
fn a_program_gets_the_prompt_and_answers_with_json() {
    let script = format!(
        "{RECAP}
cp \"$TMPDIR/prompt\" \"$OUT/prompt\"
cp \"$MEMREV_SCHEMA\" \"$OUT/schema\"
{{ echo \"$#|$1|$2\"; pwd; env | sort; }} > \"$OUT/seen\""
    );
    let mut sandbox = with_script(
        &script,
        "command_variables = [\"OUT\"]\n[worker]\nkind = \"offline\"\n",
    );
    let out = sandbox.path("out");
    fs::create_dir(&out).unwrap();
    sandbox.configure(&format!(
        "[model]\nbackend = \"command\"\ncommand = [{:?}, \"one\", \"two words\"]\ncommand_variables = [\"OUT\"]\n[worker]\nkind = \"offline\"\nwritable = [{out:?}]\n",
        sandbox.path("model.sh").to_str().unwrap(),
    ));
    sandbox.variable("OUT", out.to_str().unwrap());
    sandbox.variable("MY_SECRET", "not for programs");
    sandbox.session(&session(1));
    sandbox.run(&["run"]).success();

    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    assert!(read("prompt").contains("Always check report number 1 twice."));
    assert!(read("schema").contains("rollout_summary"));
    let seen = read("seen");
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("2|one|two words"));
    let folder = lines.next().unwrap();
    assert!(folder.contains("/staging/call-"), "{folder}");
    assert!(seen.contains("MEMREV_WORKER=1"), "{seen}");
    assert!(
        !seen.contains("MY_SECRET") && !seen.contains("MEMREV_HOME"),
        "{seen}"
    );
    assert_eq!(
        sandbox.names("staging"),
        [""; 0],
        "the folders of the call are gone"
    );

    let name = &sandbox.names("memories/rollout_summaries")[0];
    let recap = sandbox.read(&format!("rollout_summaries/{name}"));
    assert!(recap.contains("model: command/model"), "{recap}");
    assert!(sandbox.read("MEMORY.md").contains("checked twice"));
}
