//! Prompts of small sessions made of items; budgets are set so that they bite.

use proptest::prelude::{ProptestConfig, prop, proptest};

use super::{GAP, Prepared, ROW_BYTES_MAX, Template, prepare, render, rows_within, tokens_max};
use crate::domain::id::ThreadId;
use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::limits::FRAGMENT_BYTES_MAX;
use crate::domain::session::{
    Agent, MemoryMode, ReadReport, Session, SessionHead, Source, WORKER_MARK,
};
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion::{V1, V2};
use crate::text::redact::redact_str;

#[test]
fn the_transcript_may_take_70_percent_of_the_effective_window() {
    assert_eq!(tokens_max(Some(200_000), None), 133_000);
    assert_eq!(tokens_max(Some(200_000), Some(50_000)), 50_000);
    assert_eq!(tokens_max(Some(50_000), Some(200_000)), 33_250);
    assert_eq!(tokens_max(Some(1), None), 1);
    assert_eq!(tokens_max(None, None), 150_000);
}

#[test]
fn version_1_is_a_json_array_with_line_numbers() {
    let session = session(&[
        (Provenance::Human, "fix <it> & \"go\""),
        (Provenance::Tool, "ok"),
    ]);
    let prompt = prompt(V1, &session, 150_000);
    assert_eq!(prompt.len(), 1);
    let array = &prompt[0][prompt[0].rfind("\n[").unwrap()..];
    let rows: serde_json::Value = serde_json::from_str(array).unwrap();
    assert_eq!(
        rows,
        serde_json::json!([
            {"line": 1, "from": "human user", "text": "fix <it> & \"go\""},
            {"line": 2, "from": "tool", "text": "ok", "result_ok": true},
        ])
    );
}

#[test]
fn version_1_is_cut_in_the_middle() {
    let long = "x".repeat(10_000);
    let session = session(&[
        (Provenance::Human, "first"),
        (Provenance::Tool, &long),
        (Provenance::Human, "last"),
    ]);
    let prompt = prompt(V1, &session, 100).concat();
    assert!(
        prompt.contains("\"first\"") && prompt.contains("\"last\""),
        "{prompt}"
    );
    assert!(prompt.contains("tokens truncated…"));
    assert!(prompt.len() < 6_000);
}

#[test]
fn prompts_begin_with_our_mark_and_name_path_cwd_and_branch() {
    let session = session(&[(Provenance::Human, "hello")]);
    for version in [V1, V2] {
        let prompt = prompt(version, &session, 150_000).concat();
        assert_eq!(prompt.lines().next(), Some(WORKER_MARK));
        assert!(prompt.contains("rollout_path: /sessions/a.jsonl"));
        assert!(prompt.contains("cwd: /w/ledger"));
        assert_eq!(prompt.contains("git branch: unknown"), version == V2);
    }
}

#[test]
fn version_2_rows_have_the_label_of_their_tier() {
    let told: Vec<_> = Provenance::ALL
        .into_iter()
        .map(|provenance| (provenance, "x"))
        .collect();
    let rows = rows_within(&session(&told).items, 10_000);
    let labels: Vec<_> = rows.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(
        labels,
        [
            "[human user]",
            "[assistant final]",
            "[other agent]",
            "[assistant commentary]",
            "[harness context]",
            "[tool]"
        ]
    );
}

#[test]
fn version_2_fills_tiers_in_order_and_newest_first() {
    let text = "y".repeat(60);
    let items: Vec<(Provenance, &str)> = [
        Provenance::Human,
        Provenance::Tool,
        Provenance::AssistantFinal,
        Provenance::Human,
        Provenance::Tool,
        Provenance::AssistantFinal,
    ]
    .map(|provenance| (provenance, text.as_str()))
    .into();
    let session = session(&items);
    for (tokens, lines) in [
        (42, "4"),
        (90, "1 4"),
        (130, "1 4 6"),
        (165, "1 3 4 6"),
        (190, "1 3 4 5 6"),
        (400, "1 2 3 4 5 6"),
    ] {
        let rows = rows_within(&session.items, tokens);
        let shown: Vec<_> = rows
            .match_indices("\"line\":")
            .map(|(at, _)| &rows[at + 7..=at + 7])
            .collect();
        assert_eq!(shown.join(" "), lines, "{tokens}: {rows}");
        assert!(rows.len() <= tokens * 4);
    }
}

#[test]
fn version_2_marks_each_gap_once() {
    let long = "z".repeat(4_000);
    let items: Vec<(Provenance, &str)> = vec![
        (Provenance::Tool, &long),
        (Provenance::Tool, &long),
        (Provenance::Human, "a"),
        (Provenance::Tool, &long),
    ];
    let rows = rows_within(&session(&items).items, 55);
    assert_eq!(rows.matches(GAP).count(), 2, "{rows}");
    assert!(rows.starts_with(GAP) && rows.ends_with(GAP));
}

#[test]
fn version_2_caps_tool_outputs_and_rows() {
    let long = "w".repeat(50_000);
    for (provenance, most) in [
        (Provenance::Tool, 8_000),
        (Provenance::Human, ROW_BYTES_MAX),
    ] {
        let rows = rows_within(&session(&[(provenance, &long)]).items, 100_000);
        assert!(
            most - 200 < rows.len() && rows.len() <= most + 100,
            "{}",
            rows.len()
        );
        assert!(rows.len() < 10_000);
        assert!(rows.contains("truncated…"));
    }
}

#[test]
fn version_2_is_sent_in_lossless_parts() {
    let text = "修复解析器 ".repeat(2_000);
    let session = session(&[
        (Provenance::Human, &text),
        (Provenance::AssistantFinal, &text),
        (Provenance::OtherAgent, &text),
    ]);
    let parts = prompt(V2, &session, 150_000);
    assert!(1 < parts.len());
    assert!(parts.iter().all(|part| part.len() <= FRAGMENT_BYTES_MAX));
    let whole = prompt(V2, &session, 150_000).concat();
    assert!(
        whole.ends_with("}\n") || whole.ends_with('}'),
        "{}",
        &whole[whole.len() - 40..]
    );
    assert_eq!(whole.matches("[human user]").count(), 1);
}

#[test]
fn secrets_are_gone_before_anything_is_cut() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let text = format!("{}{secret}{}", "v ".repeat(1_975), " v".repeat(8_000));
    for version in [V1, V2] {
        for tokens in [500, 2_000, 150_000] {
            let session = session(&[(Provenance::Tool, &text), (Provenance::Human, &text)]);
            let prompt = prompt(version, &session, tokens).concat();
            assert!(!prompt.contains("ghp_a1B2"), "{version} {tokens}");
        }
    }
}

#[test]
fn a_persons_own_template_is_checked_before_it_is_used() {
    let own = Template::own(V1, "{{ rollout_cwd }}: {{ rollout_contents }}".to_owned()).unwrap();
    let session = session(&[(Provenance::Human, "hello")]);
    let prompt = render(V1, &session, &own, 1_000).unwrap();
    assert!(
        prompt[0]
            .as_str()
            .ends_with("/w/ledger: [{\"line\":1,\"from\":\"human user\",\"text\":\"hello\"}]")
    );
    assert_ne!(own.identity(), Template::built_in(V1).identity());
    for bad in ["{{ nonsense }}", "{% if %}", "{{ rollout_cwd"] {
        let error = Template::own(V1, bad.to_owned()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the prompt `extract-v1` cannot be filled in")
        );
    }
}

#[test]
fn what_a_transcript_says_is_never_taken_for_a_template() {
    let session = session(&[(Provenance::Human, "{{ rollout_path }} {% raw %}")]);
    let prompt = prompt(V2, &session, 1_000).concat();
    assert!(prompt.contains("{{ rollout_path }} {% raw %}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn version_2_rows_keep_their_budget(
        texts in prop::collection::vec((0_usize..6, "\\PC{0,400}"), 0..30),
        tokens in 0_usize..2_000,
    ) {
        let told: Vec<_> = texts.iter().map(|(tier, text)| (Provenance::ALL[*tier], text.as_str())).collect();
        let rows = rows_within(&session(&told).items, tokens);
        assert!(rows.len() <= tokens * 4, "{} > {}", rows.len(), tokens * 4);
    }
}

fn prompt(
    version: crate::domain::version::MemoryVersion,
    session: &Prepared,
    tokens: usize,
) -> Vec<String> {
    let parts = render(version, session, &Template::built_in(version), tokens).unwrap();
    parts.into_iter().map(Redacted::into_string).collect()
}

/// Items one line apart; those of the tool tier are outputs.
fn session(told: &[(Provenance, &str)]) -> Prepared {
    let items = (1..)
        .zip(told)
        .map(|(line_number, (provenance, text))| Item {
            place: Place {
                part: 0,
                line_number,
            },
            at: None,
            provenance: *provenance,
            trust: Trust::Own,
            kind: match provenance {
                Provenance::Tool => ItemKind::ToolOutput {
                    call_id: "c".to_owned(),
                    succeeded: Some(true),
                },
                _ => ItemKind::Message,
            },
            text: Raw::new(*text),
            media_count: 0,
        });
    let head = SessionHead {
        agent: Agent::Codex,
        thread_id: ThreadId::parse("a").unwrap(),
        rollout_path: "/sessions/a.jsonl".into(),
        cwd: Some(Raw::new("/w/ledger")),
        project: None,
        git_branch: None,
        source: Source::Interactive,
        mode: MemoryMode::Enabled,
        started_at: None,
        updated_at: Timestamp::from_seconds(1),
        is_ours: false,
        forked_from: None,
        first_record: None,
    };
    let prepared = prepare(Session {
        head,
        items: items.collect(),
        has_external: false,
        citations: Vec::new(),
        report: ReadReport::default(),
    });
    assert_eq!(prepared.facts.cwd, Some(redact_str("/w/ledger")));
    prepared
}
