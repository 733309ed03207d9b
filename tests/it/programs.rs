//! Programs as back ends: shell scripts that answer, misbehave, and leave
//! things behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

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
    let mut sandbox = with_script(&script, "");
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

/// Facts that have nothing in common with each other.
const FACTS: [&str; 24] = [
    "builds of the parser want make and never ninja",
    "the staging database listens behind a jump host",
    "fonts are licensed per seat",
    "invoices are numbered by quarter",
    "photographs go through the colour profile of the printer",
    "holidays come from a calendar feed",
    "the lexer keeps byte offsets",
    "customers in Norway pay without tax",
    "backups run before sunrise",
    "translators work in spreadsheets",
    "maps are drawn with metric units",
    "the crawler waits between pages",
    "sensors report through a queue",
    "passports expire unnoticed in the test data",
    "recipes scale by servings",
    "the orchestra rehearses on Tuesdays",
    "garden beds drain towards the fence",
    "elevators are inspected each May",
    "subtitles stay below two lines",
    "ferries leave from the northern pier",
    "the compressor needs oil",
    "tickets close when nobody answers",
    "chess engines share one opening book",
    "museum labels quote the catalogue",
];

/// A worker that folds in what `facts` says, then does what `then` says.
const WORKER: &str = r#"
{
  printf '# Task Group: box\n\nscope: s\napplies_to: cwd=/work/box; reuse_rule=r\n\n'
  n=0; marks=""
  for f in rollout_summaries/*.md; do
    n=$((n+1)); t=$(sed -n 's/^thread_id: //p' "$f")
    printf '## Task %s: work number %s, success\n\n### rollout_summary_files\n\n- %s (cwd=/work/box, thread_id=%s)\n\n### keywords\n\n- word%s\n\n' $n $n "$f" "$t" $n
  done
  printf '## Reusable knowledge\n\n'
  sed 's/$/ [Task 1]/; s/^/- /' "$BOX/facts"
} > MEMORY.md
{
  printf 'v1\n\n## User Profile\n\n- Sessions in memory: some\n\n## User preferences\n\n## General Tips\n\n## What'"'"'s in Memory\n\n### box\n\n#### 2026-03-09\n\n'
  i=0; while [ $i -lt $n ]; do i=$((i+1)); printf -- '- work number %s: word%s\n' $i $i; done
} > memory_summary.md
finish() { printf '{"finished": true, "report": "done", "retired": [], "forgotten": [], "unmatched_notes": []}'; }
. "$BOX/then"
"#;

/// A box whose worker is [`WORKER`]; sessions are extracted by the rules.
struct Worked {
    sandbox: Sandbox,
    sessions: u32,
}

impl Worked {
    fn new(more: &str) -> Self {
        let mut sandbox = Sandbox::empty();
        let file = write_script(&sandbox, WORKER);
        let out = sandbox.path("out");
        fs::create_dir(&out).unwrap();
        sandbox.configure(&format!(
            "[model]\ncommand = [{:?}]\ncommand_variables = [\"BOX\"]\n[worker]\nkind = \"command\"\nwritable = [{:?}]\n{more}",
            file.to_str().unwrap(),
            out.to_str().unwrap(),
        ));
        let root = sandbox.path("");
        sandbox.variable("BOX", root.to_str().unwrap());
        sandbox.run(&["init"]).success();
        let worked = Self {
            sandbox,
            sessions: 0,
        };
        worked.facts(&FACTS);
        worked.then("finish");
        worked
    }

    fn facts(&self, facts: &[&str]) {
        fs::write(self.sandbox.path("facts"), facts.join("\n") + "\n").unwrap();
    }

    fn then(&self, script: &str) {
        fs::write(self.sandbox.path("then"), script).unwrap();
    }

    fn outputs(&self) -> [String; 2] {
        ["MEMORY.md", "memory_summary.md"].map(|name| self.sandbox.read(name))
    }

    /// A new session, so that there is something to do, and a pass.
    fn run(&mut self) -> crate::support::Run {
        self.sessions += 1;
        self.sandbox.session(&session(self.sessions));
        self.sandbox.run(&["run"])
    }
}

/// What a hostile worker does after honest work, and what is said of it.
const HOSTILE: &[(&str, &str, &str)] = &[
    (
        "empty files",
        ": > MEMORY.md; : > memory_summary.md; finish",
        "refused",
    ),
    (
        "a header only",
        "printf 'v1\\n' > memory_summary.md; finish",
        "refused",
    ),
    (
        "an apology",
        "echo 'I am sorry, but I cannot edit files.' > memory_summary.md; finish",
        "refused",
    ),
    (
        "an apology for a handbook",
        "echo 'Sorry, I need permission.' > MEMORY.md; finish",
        "refused",
    ),
    (
        "a fence",
        "{ echo '```markdown'; cat memory_summary.md; echo '```'; } > t; mv t memory_summary.md; finish",
        "refused",
    ),
    (
        "a preamble",
        "{ echo 'Here is the updated file:'; cat memory_summary.md; } > t; mv t memory_summary.md; finish",
        "refused",
    ),
    (
        "a preamble in the handbook",
        "{ echo 'Here is the updated file:'; echo; cat MEMORY.md; } > t; mv t MEMORY.md; finish",
        "refused",
    ),
    (
        "edits to recaps",
        "for f in rollout_summaries/*.md; do echo more >> $f; done; finish",
        "only the memory files may change",
    ),
    (
        "a recap removed",
        "rm $(ls rollout_summaries/*.md | tail -1); finish",
        "only the memory files may change",
    ),
    (
        "a note of its own",
        "mkdir -p extensions/ad_hoc/notes; echo x > extensions/ad_hoc/notes/2026-03-01T00-00-00-x.md; finish",
        "only the memory files may change",
    ),
    (
        "a huge file",
        "mkdir -p skills/big; truncate -s 104857600 skills/big/SKILL.md; finish",
        "104857600 bytes",
    ),
    (
        "no finish",
        "echo 'I have updated the memory files.'",
        "did not end with an explicit finish",
    ),
    (
        "a finish that is none",
        "printf '{\"finished\": false}'",
        "did not end with an explicit finish",
    ),
    ("an early end", "exit 7", "exit code 7"),
    (
        "a process left behind",
        "(trap '' HUP; echo $$ > $BOX/out/pid; exec sleep 60) >/dev/null 2>&1 & finish",
        "left 1 of its processes running",
    ),
    (
        "a process that hides",
        "setsid sh -c 'sleep 60 & echo $! > $BOX/out/pid; wait' >/dev/null 2>&1 & finish",
        "of its processes running",
    ),
];

#[test]
fn hostile_workers_are_refused_with_their_reason() {
    let mut worked = Worked::new("");
    worked.run().success();
    let head = worked.sandbox.head();
    let kept = worked.outputs();
    worked.sandbox.session(&session(2));
    let mut attempts_before = 0;
    for (index, (name, script, said)) in HOSTILE.iter().enumerate() {
        worked.then(script);
        // The name of an attempt has its time in it.
        worked.sandbox.at(&format!("2026-03-10T13:{index:02}:00Z"));
        let sandbox = &worked.sandbox;
        let run = sandbox.run(&["run"]);
        let words = format!("{}{}", run.stdout, run.stderr);
        assert!(
            matches!(run.code, Some(1 | 4)),
            "{name}: {:?} {words}",
            run.code
        );
        assert!(words.contains(said), "{name}: no `{said}` in\n{words}");
        assert_eq!(
            (sandbox.head(), worked.outputs()),
            (head.clone(), kept.clone()),
            "{name}"
        );
        let status = sandbox.run(&["status", "--json"]).success().json();
        let pending = &status["versions"][0]["pending_inputs"];
        assert_eq!(pending.as_array().unwrap().len(), 1, "{name}");
        let attempts = sandbox.git(&["for-each-ref", "refs/memrev/attempts"]);
        let was_judged = usize::from(run.code == Some(1));
        attempts_before += was_judged;
        assert_eq!(attempts.lines().count(), attempts_before, "{name}");
        assert_eq!(sandbox.names("staging"), [""; 0], "{name}");
        if let Ok(pid) = fs::read_to_string(sandbox.path("out/pid")) {
            assert!(!is_running(&pid), "{name}: process {pid} goes on");
            fs::remove_file(sandbox.path("out/pid")).unwrap();
        }
    }
    let sandbox = &worked.sandbox;
    sandbox.run(&["run", "--background"]).success();
    assert_eq!(sandbox.head(), head, "a pass in the background waits");
    worked.then("finish");
    sandbox.run(&["run"]).success();
    assert_ne!(sandbox.head(), head);
    sandbox.assert_sound();
}

#[test]
fn a_worker_that_fills_the_disk_is_ended() {
    for junk in [
        "while :; do head -c 20000000 /dev/zero >> junk; done; finish",
        "while :; do head -c 20000000 /dev/zero >> $TMPDIR/junk; done; finish",
        "head -c 300000000 /dev/zero > junk; finish",
    ] {
        let mut worked = Worked::new("");
        worked.then(junk);
        worked
            .run()
            .exit(4)
            .says("it wrote more than 268435456 bytes");
        assert_eq!(worked.sandbox.names("staging"), [""; 0]);
        assert!(!worked.sandbox.memories().join("MEMORY.md").exists());
    }
}

#[test]
fn a_worker_that_sleeps_past_its_limit_is_ended() {
    let mut worked = Worked::new("seconds_max = 1\n");
    worked.then("echo $$ > $BOX/out/pid; sleep 600; finish");
    worked
        .run()
        .exit(4)
        .says("the limit of time (`worker.seconds_max`) is reached");
    let pid = fs::read_to_string(worked.sandbox.path("out/pid")).unwrap();
    assert!(!is_running(&pid));
    let subjects = worked.sandbox.subjects();
    assert!(
        !subjects.iter().any(|it| it.starts_with("baseline")),
        "{subjects:?}"
    );
}

#[test]
fn a_first_pass_is_judged_as_strictly() {
    for (name, script, _) in &HOSTILE[..6] {
        let mut worked = Worked::new("");
        worked.then(script);
        worked.run().exit(1);
        let memories = worked.sandbox.memories();
        assert!(!memories.join("MEMORY.md").exists(), "{name}");
        let subjects = worked.sandbox.subjects();
        assert!(
            !subjects.iter().any(|it| it.starts_with("baseline")),
            "{name}: {subjects:?}"
        );
    }
}

#[test]
fn losing_much_is_refused_at_once_and_losing_little_in_the_end() {
    let mut worked = Worked::new("");
    worked.run().success();
    worked.facts(&FACTS[..8]);
    worked.run().exit(1).says("would go without a reason");

    // Other sessions, one fact less with each: the pass that crosses the
    // limit over time is refused, and waits for a person's word.
    let mut passes = 0;
    loop {
        passes += 1;
        assert!(passes < 10, "nobody noticed");
        worked.facts(&FACTS[..FACTS.len() - passes]);
        let head = worked.sandbox.head();
        let run = worked.run();
        if run.code == Some(0) {
            continue;
        }
        run.exit(1).says("would have gone without a reason over");
        assert_eq!(worked.sandbox.head(), head);
        break;
    }
    assert!(1 < passes, "one fact is not too much");
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_written_outside_of_staging() {
    let mut worked = Worked::new("");
    let target = worked.sandbox.path("work/outside.md");
    worked.then(&format!(
        "{{ echo x > ../outside.md; echo x > '{0}'; echo x > \"$HOME/outside.md\"; ln -s '{0}' skills.md; ln '{0}' hard.md
           echo x >> \"$BOX/home/config.toml\"; echo x > \"$BOX/home/memories/MEMORY.md\"; kill -9 $PPID; }} 2> /dev/null || true
         echo inside > $BOX/out/allowed; finish",
        target.display()
    ));
    worked.run().success();
    let sandbox = &worked.sandbox;
    for path in [
        "work/outside.md",
        "user/outside.md",
        "home/staging/outside.md",
    ] {
        assert!(!sandbox.path(path).exists(), "{path}");
    }
    assert!(
        sandbox.path("out/allowed").exists(),
        "what the configuration allows"
    );
    sandbox.assert_sound();
    sandbox.run(&["config"]).success();

    // A container around memrev is trusted to hold instead, and links are
    // seen by the judge then.
    worked.sandbox.configure(&format!(
        "[model]\ncommand = [{:?}]\ncommand_variables = [\"BOX\"]\n[worker]\nkind = \"command\"\nsandbox = \"external\"\n",
        worked.sandbox.path("model.sh").to_str().unwrap()
    ));
    worked.then(&format!("echo x > '{}'; finish", target.display()));
    worked.run().success();
    assert!(target.exists());
    worked.then("rm MEMORY.md; ln -s /etc/hostname MEMORY.md; finish");
    worked.run().exit(1).says("is a symbolic link");
}

#[test]
fn a_worker_may_mend_its_work_once() {
    let mut worked = Worked::new("");
    worked.then("cat > $BOX/out/prompt; cp $BOX/out/prompt $BOX/out/prompt.$(ls $BOX/out | wc -l); if grep -q 'was checked and refused' $BOX/out/prompt; then finish; else printf 'v1\\n' > memory_summary.md; finish; fi");
    worked.run().success();
    let prompts = fs::read_dir(worked.sandbox.path("out")).unwrap().count();
    assert_eq!(prompts, 3, "two prompts and the last one again");
    let last = fs::read_to_string(worked.sandbox.path("out/prompt")).unwrap();
    assert!(last.contains("memory_summary.md"), "{last}");
}

#[cfg(target_os = "linux")]
#[test]
fn whatever_a_worker_started_ends_with_memrev() {
    for signal in [Signal::KILL, Signal::INT] {
        let worked = Worked::new("");
        worked.then(
            "setsid sh -c 'sleep 600 & echo $! > $BOX/out/pid; wait' >/dev/null 2>&1 & sleep 600",
        );
        worked.sandbox.session(&session(1));
        let mut child = worked.sandbox.command(&["run"]).spawn().unwrap();
        let file = worked.sandbox.path("out/pid");
        let pid = wait_for(|| {
            let pid = fs::read_to_string(&file).ok()?;
            pid.ends_with('\n').then_some(pid)
        });
        assert!(is_running(&pid));
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        wait_for(|| (!is_running(&pid)).then_some(()));
        wait_for(|| {
            let left = worked.sandbox.names("staging");
            let is_gone = left.iter().all(|name| !name.starts_with("call-"));
            is_gone.then_some(())
        });
        // Nobody has to wait for the lease of the one that was ended.
        worked.then("finish");
        worked.sandbox.run(&["run"]).success();
        worked.sandbox.assert_sound();
    }
}

/// One that has ended may stay in the table until its parent has looked.
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    let state = |stat: String| stat[stat.rfind(')')? + 1..].trim_start().chars().next();
    !matches!(stat.ok().and_then(state), None | Some('Z' | 'X'))
}

/// Asks until there is an answer, for ten seconds at most.
fn wait_for<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let give_up_at = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < give_up_at, "waited in vain");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let sandbox = Sandbox::empty();
    for (config, said) in [
        ("[model]\nbackend = \"command\"\n", "has no program"),
        (
            "[model]\nbackend = \"command\"\ncommand = [\"/no/such/program\"]\n",
            "there is no program `/no/such/program`",
        ),
        (
            "[model]\nbackend = \"command\"\ncommand = [\"./model.sh\"]\n",
            "there is no program",
        ),
    ] {
        sandbox.configure(config);
        sandbox.run(&["init"]);
        sandbox.run(&["run"]).exit(1).says(said);
    }
}

#[test]
fn walls_that_nobody_keeps_are_said_or_required() {
    let mut worked = Worked::new("");
    worked.sandbox.variable("MEMREV_WALLS", "none");
    let run = worked.run().success();
    let words = "cannot keep the model's program from writing elsewhere";
    assert_eq!(run.stderr.matches(words).count(), 1, "{}", run.stderr);
    worked.sandbox.run(&["status"]).success().prints(words);

    let mut strict = Worked::new("sandbox = \"required\"\n");
    strict.sandbox.variable("MEMREV_WALLS", "none");
    let refused = strict.run();
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("`worker.sandbox` is `required`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_call_for_an_extraction_has_a_time_limit_of_its_own() {
    let sandbox = with_script(
        "sleep 60",
        "call_seconds_max = 1\n[worker]\nkind = \"offline\"\n",
    );
    sandbox.session(&session(1));
    sandbox.run(&["extract"]).says("did not answer within 1 s");
    assert!(sandbox.names("extractions/v1").is_empty());
}
