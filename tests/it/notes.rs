//! Notes through a whole pass: remember, correct and forget; added, edited and
//! deleted. The note file stays, and every derived line says where it is from.

use crate::support::{Sandbox, Transcript};

const NOTES: &str = "extensions/ad_hoc/notes";
const MARK: &str = "[ad-hoc note]";

/// A memory with one preference and one project in it.
fn with_memory() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.session(&Transcript::codex(
        1,
        "2026-03-09T10:00:00Z",
        "human: From now on always deploy to the staging server first.
         run: ./deploy staging -> ok: deployed
         agent: Done.
         human: The preview server listens on port 8080.
         run: curl localhost:8080 -> ok: hello
         agent: It answers.",
    ));
    sandbox.run(&["run"]).success();
    sandbox
}

/// The lines of handbook and summary that hold `words`.
fn lines_with(sandbox: &Sandbox, words: &str) -> Vec<String> {
    let texts = ["memory_summary.md", "MEMORY.md"].map(|file| sandbox.read(file));
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .filter(|line| line.contains(words))
        .map(str::to_owned)
        .collect()
}

fn note(sandbox: &Sandbox, name: &str, text: &str) -> String {
    let path = format!("{NOTES}/2026-03-10T11-00-00-{name}.md");
    sandbox.write(&path, text);
    path
}

/// The next pass, with time for the file to have settled.
fn pass(sandbox: &mut Sandbox, minutes: u32) {
    sandbox
        .at(&format!("2026-03-10T13:{minutes:02}:00Z"))
        .run(&["run"])
        .success();
    sandbox.assert_sound();
}

#[test]
fn a_remembered_line_ends_in_the_mark_and_the_note_stays() {
    let mut sandbox = with_memory();
    let path = note(
        &sandbox,
        "uv",
        "Use uv instead of pip for Python installs.\n",
    );
    pass(&mut sandbox, 1);
    let lines = lines_with(&sandbox, "Use uv instead of pip");
    assert_eq!(lines.len(), 2, "in handbook and summary: {lines:?}");
    assert!(lines.iter().all(|line| line.ends_with(MARK)), "{lines:?}");
    assert_eq!(
        sandbox.read(&path),
        "Use uv instead of pip for Python installs.\n"
    );
    let author = sandbox.git(&["log", "-1", "--format=%an", "--", &path]);
    assert_ne!(author.trim(), "memrev", "the note is the person's");
}

#[test]
fn an_edited_note_is_applied_again() {
    let mut sandbox = with_memory();
    note(
        &sandbox,
        "uv",
        "Use uv instead of pip for Python installs.\n",
    );
    pass(&mut sandbox, 1);
    note(&sandbox, "uv", "Use poetry for every Python project.\n");
    pass(&mut sandbox, 2);
    assert_eq!(
        lines_with(&sandbox, "uv instead of pip"),
        Vec::<String>::new()
    );
    assert_eq!(lines_with(&sandbox, "Use poetry for every").len(), 2);
}

#[test]
fn a_deleted_note_takes_back_what_only_it_supported() {
    let mut sandbox = with_memory();
    let path = note(
        &sandbox,
        "uv",
        "Use uv instead of pip for Python installs.\n",
    );
    pass(&mut sandbox, 1);
    std::fs::remove_file(sandbox.memories().join(path)).unwrap();
    pass(&mut sandbox, 2);
    assert_eq!(
        lines_with(&sandbox, "uv instead of pip"),
        Vec::<String>::new()
    );
    assert!(!lines_with(&sandbox, "deploy to the staging server first").is_empty());
}

#[test]
fn a_correction_replaces_the_entry_it_is_about() {
    let mut sandbox = with_memory();
    note(
        &sandbox,
        "order",
        "---\nkind: correct\n---\nFrom now on always deploy to the canary server first, not staging.\n",
    );
    pass(&mut sandbox, 1);
    for file in ["memory_summary.md", "MEMORY.md"] {
        let text = sandbox.read(file);
        let (_, preferences) = text.split_once("## User preferences").unwrap();
        let preferences = preferences.split("\n## ").next().unwrap();
        assert!(
            preferences.contains("deploy to the canary server first"),
            "{file}:\n{text}"
        );
        assert!(
            !preferences.contains("deploy to the staging server first"),
            "{file}:\n{text}"
        );
    }
}

#[test]
fn a_forgotten_entry_does_not_come_back() {
    let mut sandbox = with_memory();
    note(
        &sandbox,
        "forget",
        "---\nkind: forget\n---\nalways deploy to the staging server first\n",
    );
    pass(&mut sandbox, 1);
    let words = "always deploy to the staging server first";
    assert_eq!(lines_with(&sandbox, words), Vec::<String>::new());
    assert!(!sandbox.names("withheld").is_empty(), "it is withheld");
    let held = std::fs::read_to_string(
        sandbox
            .home()
            .join("withheld")
            .join(&sandbox.names("withheld")[0]),
    )
    .unwrap();
    assert!(!held.contains("staging"), "held as hashes only: {held}");

    let again = Transcript::codex(
        2,
        "2026-03-09T12:00:00Z",
        "human: From now on always deploy to the staging server first.\nagent: ok",
    );
    sandbox.session(&again);
    pass(&mut sandbox, 2);
    assert_eq!(lines_with(&sandbox, words), Vec::<String>::new());
}

#[test]
fn a_note_of_one_word_forgets_a_line_of_the_persons_own() {
    for (own, text, kept) in [
        ("the ledger is Grace's", "Forget: Grace", false),
        ("die Datenbank heißt Grünspan", "Vergiss Grünspan", false),
        ("数据库是 Postgres", "忘记 Postgres", false),
        ("the ledger is Grace's", "Forget: Ada", true),
        (
            "the preview port is 8081",
            "---\nkind: correct\n---\nthe preview port is 9091",
            false,
        ),
    ] {
        let mut sandbox = with_memory();
        let summary = sandbox.read("memory_summary.md");
        let tips = "## General Tips\n";
        let line = format!("- {own}");
        let edited = summary.replace(tips, &format!("{tips}\n{line}\n"));
        sandbox.write("memory_summary.md", &edited);
        pass(&mut sandbox, 1);
        assert_eq!(lines_with(&sandbox, own), [line.as_str()], "{text}");
        note(&sandbox, "order", text);
        pass(&mut sandbox, 2);
        let left = lines_with(&sandbox, own);
        assert_eq!(left == [line], kept, "{text}: {left:?}");
    }
}

#[test]
fn a_note_that_matches_nothing_is_shown() {
    let mut sandbox = with_memory();
    note(
        &sandbox,
        "nothing",
        "---\nkind: forget\n---\nthe zebra crossing in Lisbon\n",
    );
    sandbox.at("2026-03-10T13:01:00Z");
    sandbox.run(&["run"]).success().says("matches nothing");
}

#[test]
fn notes_work_in_other_languages() {
    let mut sandbox = with_memory();
    note(&sandbox, "zh", "请记住：所有的提交信息都用中文写。\n");
    note(
        &sandbox,
        "de",
        "Merke dir: Vor jedem Commit die Tests laufen lassen.\n",
    );
    pass(&mut sandbox, 1);
    assert_eq!(lines_with(&sandbox, "所有的提交信息都用中文写").len(), 2);
    assert_eq!(
        lines_with(&sandbox, "Vor jedem Commit die Tests laufen lassen").len(),
        2
    );
}

#[test]
fn the_note_command_writes_one_file_and_never_replaces_one() {
    let sandbox = Sandbox::new();
    for _ in 0..3 {
        sandbox.run(&["note", "always use tabs"]).success();
    }
    assert_eq!(sandbox.names(&format!("memories/{NOTES}")).len(), 3);
    sandbox.run(&["note", "   "]).exit(2);
    assert_eq!(sandbox.names(&format!("memories/{NOTES}")).len(), 3);
}

#[test]
fn a_secret_in_a_note_is_not_committed() {
    let mut sandbox = with_memory();
    let secret = format!("sk-{}-{}", "proj", "Abc1Abc2Abc3Abc4Abc5Abc6Abc7");
    let path = note(&sandbox, "key", &format!("Remember: the key is {secret}\n"));
    sandbox
        .at("2026-03-10T13:01:00Z")
        .run(&["run"])
        .success()
        .says(&path);
    let objects = sandbox.git(&["log", "-p", "--all"]);
    assert!(!objects.contains(&secret));
    assert!(
        sandbox.read(&path).contains(&secret),
        "the file itself is the person's"
    );
    sandbox.run(&["status"]).success().prints(&path);
}

#[test]
fn a_reset_does_not_bring_a_forgotten_line_back() {
    let mut sandbox = with_memory();
    let head = sandbox.head();
    let words = "always deploy to the staging server first";
    note(
        &sandbox,
        "forget",
        &format!("---\nkind: forget\n---\n{words}\n"),
    );
    pass(&mut sandbox, 1);
    assert_eq!(lines_with(&sandbox, words), Vec::<String>::new());
    sandbox.git(&["reset", "-q", "--hard", &head]);
    assert_ne!(lines_with(&sandbox, words), Vec::<String>::new());
    pass(&mut sandbox, 2);
    let left: Vec<String> = (lines_with(&sandbox, words).into_iter())
        .filter(|line| line.starts_with("- \"") || line.starts_with("- From"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_reverted_baseline_does_not_block_the_next_one() {
    let mut sandbox = Sandbox::new();
    for number in 1..=3 {
        let story = format!(
            "human: From now on always use widget{number} in folder{number}.
             run: cargo test -> fail: assertion failed
             run: cargo test -> ok: 12 passed
             agent: ok"
        );
        let session = Transcript::codex(number, "2026-03-09T10:00:00Z", &story);
        sandbox.session(&session.in_folder(&format!("/work/p{number}")));
        if number == 3 {
            sandbox.git(&["revert", "--no-edit", "HEAD"]);
            pass(&mut sandbox, 30);
        }
        pass(&mut sandbox, number);
    }
    assert!(
        lines_with(&sandbox, "use widget2").is_empty(),
        "taken back, and stays out"
    );
    assert!(!lines_with(&sandbox, "use widget3").is_empty());
}

#[test]
fn what_a_person_deletes_by_hand_is_never_too_much() {
    let mut sandbox = Sandbox::new();
    let wishes = [
        (
            "The nightly export writes an empty file.",
            "From now on always open files last.",
        ),
        (
            "Rename the invoice column.",
            "Never touch the vendored folder.",
        ),
        ("Why does login time out?", "Always answer me in German."),
        (
            "Draw the new harbour map.",
            "From now on use tabs in Makefiles.",
        ),
        ("Upgrade the compiler.", "Always quote shell variables."),
        (
            "Speed up the search page.",
            "Never commit generated pictures.",
        ),
        (
            "Write the release announcement.",
            "From now on keep headlines short.",
        ),
        (
            "Translate the error texts.",
            "Always ask before you delete tables.",
        ),
    ];
    for (number, (request, wish)) in (1..).zip(wishes) {
        let story = format!(
            "human: {request}
             run: make step{number} -> fail: no rule
             run: make step{number} -> ok: built
             agent: Done.
             human: {wish}
             agent: ok"
        );
        let session = Transcript::codex(number, "2026-03-09T10:00:00Z", &story);
        sandbox.session(&session.in_folder(&format!("/work/p{number}")));
    }
    sandbox.run(&["run"]).success();
    let summary = sandbox.read("memory_summary.md");
    let is_wish =
        |line: &str| line.starts_with("- \"") && wishes.iter().any(|(_, wish)| line.contains(wish));
    let kept: Vec<&str> = summary.lines().filter(|line| !is_wish(line)).collect();
    let deleted = summary.lines().count() - kept.len();
    assert!(5 < deleted, "only {deleted} in\n{summary}");
    sandbox.write("memory_summary.md", &format!("{}\n", kept.join("\n")));
    pass(&mut sandbox, 1);
    let summary = sandbox.read("memory_summary.md");
    assert!(!summary.lines().any(is_wish), "{summary}");
}
