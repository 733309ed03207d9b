//! `status` tells how memory fared over the last baselines.

use crate::support::{Sandbox, Transcript};

fn session(sandbox: &Sandbox, number: u32, rule: &str) {
    let story = format!("human: {rule}\nagent: ok");
    sandbox.session(&Transcript::codex(number, "2026-03-09T10:00:00Z", &story));
}

/// The first memory folder's figures.
fn survival(sandbox: &Sandbox) -> serde_json::Value {
    sandbox.run(&["status", "--json"]).success().json()["versions"][0]["survival"].clone()
}

#[test]
fn status_tells_what_became_of_the_entries_and_why_the_others_left() {
    let mut sandbox = Sandbox::new();
    session(&sandbox, 1, "Always use tabs in the ledger.");
    session(&sandbox, 2, "Never rename a column by yourself.");
    sandbox.run(&["run"]).success();
    let first = sandbox.head();
    assert!(survival(&sandbox).is_null());
    let status = sandbox.run(&["status"]).success();
    assert!(
        !status.stdout.contains("word for word"),
        "{}",
        status.stdout
    );

    sandbox.at("2026-03-10T12:30:00Z");
    session(&sandbox, 3, "Always run the smoke test before a release.");
    sandbox.run(&["run"]).success();
    let told = survival(&sandbox);
    assert_eq!(told["since"].as_str(), Some(first.as_str()));
    assert_eq!(
        (told["baselines"].as_u64(), told["gone"].clone()),
        (Some(1), serde_json::json!({}))
    );
    let entries = told["entries"].as_u64().unwrap();
    assert!(2 < entries, "{told}");
    assert_eq!(
        told["word_for_word"].as_u64().unwrap() + told["reworded"].as_u64().unwrap(),
        entries
    );
    sandbox.run(&["status"]).success().prints(", none gone");

    // One entry goes by a note, one by the person's own hand.
    sandbox
        .run(&["note", "--forget", "Always use tabs in the ledger."])
        .success();
    let handbook = sandbox.read("MEMORY.md");
    let kept: Vec<&str> = handbook
        .lines()
        .filter(|line| !line.starts_with("- \"Never rename"))
        .collect();
    assert!(kept.len() < handbook.lines().count(), "{handbook}");
    sandbox.write("MEMORY.md", &format!("{}\n", kept.join("\n")));
    sandbox.at("2026-03-10T13:00:00Z");
    sandbox.run(&["run"]).success();
    let told = survival(&sandbox);
    assert_eq!(told["baselines"].as_u64(), Some(2));
    let gone = told["gone"].as_object().unwrap();
    assert!(gone.contains_key("taken_away"), "{told}");
    assert!(
        !gone.contains_key("untold") && !gone.contains_key("unexplained"),
        "{told}"
    );
    let all: u64 = gone.values().map(|count| count.as_u64().unwrap()).sum();
    let stand = told["word_for_word"].as_u64().unwrap() + told["reworded"].as_u64().unwrap();
    assert_eq!(stand + all, told["entries"].as_u64().unwrap());
    sandbox
        .run(&["status"])
        .success()
        .prints("2 baselines ago")
        .prints("taken away by you")
        .prints("`memrev log --lost` shows them");
}
