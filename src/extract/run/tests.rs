//! Whole passes in a temporary home, with recorded answers or the offline
//! rules. The sessions are rollouts written here; the time stands still.

use serde_json::json;

use super::home::{Home, NOW, answer, human, run};
use super::{Outcome, Report, preview};
use crate::domain::item::Trust;
use crate::domain::session::WORKER_MARK;
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion::{self, V1, V2};
use crate::extract::input::Template;
use crate::ledger::{ExtractionClaim, JobError, JobState};
use crate::model::offline::Offline;
use crate::sys::fs::remove;

const ASK: &str = "Fix the parser so that tabs count as one column";

#[test]
fn a_session_becomes_a_recap_with_its_header() {
    for version in MemoryVersion::ALL {
        let home = Home::new();
        let session = home.session(
            "a",
            &[human(ASK), run("cargo test", 0, "ok"), answer("Done.")],
        );
        let reports = home.pass(version).run_offline(&[&session]);
        assert_eq!(words(&reports), ["stored"]);
        let recap = home.recap(version, "a").unwrap();
        let header = &recap.header;
        assert_eq!(header.updated_at.to_string(), "2026-12-01T05:00:05+00:00");
        assert_eq!(header.extracted_at, Some(NOW));
        assert_eq!(
            header.rollout_path.as_str(),
            session.0.path.to_str().unwrap()
        );
        assert_eq!(header.cwd.as_ref().unwrap().as_str(), "/w/ledger");
        assert_eq!(header.git_branch.as_ref().unwrap().as_str(), "main");
        assert_eq!(header.model.as_ref().unwrap().as_str(), "offline");
        assert_eq!(header.prompt, None);
        assert_eq!(header.trust, Some(Trust::Own));
        assert_eq!(header.items_read, Some(4));
        assert_eq!(header.raw_memory.is_some(), version == V1);
        assert!(recap.body.as_str().contains(&format!("\"{ASK}\" (line 2)")));
        let job = home.job(version, "a").unwrap();
        assert_eq!(
            job.state,
            JobState::Done {
                cooldown_until: None
            }
        );
        assert_eq!(job.success_watermark, Some(header.updated_at));
        assert!(home.is_consolidation_asked_for(version));
    }
}

#[test]
fn nothing_to_keep_is_done_and_the_answer_survives_in_a_file() {
    let home = Home::new();
    let session = home.session("a", &[human("hello"), answer("Hello!")]);
    let reports = home.pass(V1).run_offline(&[&session]);
    assert_eq!(words(&reports), ["nothing to keep"]);
    assert!(home.recap(V1, "a").unwrap().is_no_op());
    let job = home.job(V1, "a").unwrap();
    assert_eq!(
        job.state,
        JobState::Done {
            cooldown_until: None
        }
    );
    assert!(
        !home.is_consolidation_asked_for(V1),
        "nothing was there before"
    );
}

#[test]
fn nothing_to_keep_takes_an_older_recap_away_and_asks_for_consolidation() {
    let home = Home::new();
    home.answers(
        "a",
        r#"[{"reply": {"rollout_summary": "x", "rollout_slug": ""}},
                          {"reply": {"rollout_summary": "", "rollout_slug": ""}}]"#,
    );
    let session = home.session("a", &[human(ASK)]);
    assert_eq!(words(&home.pass(V2).run_replay(&[&session])), ["stored"]);
    let session = home.session("a", &[human(ASK), human("never mind")]);
    let reports = home.pass(V2).run_replay(&[&session]);
    assert_eq!(words(&reports), ["nothing to keep, a recap went"]);
    assert!(home.recap(V2, "a").unwrap().is_no_op());
    assert!(home.is_consolidation_asked_for(V2));
}

#[test]
fn where_nobody_said_anything_no_model_is_asked() {
    let home = Home::new();
    let session = home.session("a", &[run("cargo test", 0, "ok"), answer("Done.")]);
    let reports = home.pass(V2).run_replay(&[&session]);
    assert_eq!(words(&reports), ["nothing to keep"]);
    assert!(home.requests().is_empty());
}

#[test]
fn an_unchanged_session_is_asked_about_once() {
    let home = Home::new();
    home.answers(
        "any",
        r#"{"reply": {"rollout_summary": "x", "rollout_slug": ""}}"#,
    );
    let session = home.session("a", &[human(ASK)]);
    assert_eq!(words(&home.pass(V2).run_replay(&[&session])), ["stored"]);
    assert_eq!(
        words(&home.pass(V2).run_replay(&[&session])),
        ["not claimed: up to date"]
    );
    assert_eq!(home.requests().len(), 1);
}

#[test]
fn prose_and_error_texts_fail_the_job_and_lose_nothing() {
    // An outage is no fault of the session: it costs a wait, but no try.
    for (answer, retries_left) in [
        (r#"{"text": "Sure! Next I would look at the tests."}"#, 2),
        (r#"{"text": "{\"message\": \"no route\"}"}"#, 2),
        (r#"{"text": ""}"#, 2),
        (r#"{"fail": "unusable"}"#, 2),
        (r#"{"fail": "timed_out"}"#, 3),
        (r#"{"fail": "unreachable"}"#, 3),
        (r#"{"fail": "refused"}"#, 3),
    ] {
        let home = Home::new();
        home.answers("any", answer);
        let session = home.session("a", &[human(ASK)]);
        let reports = home.pass(V2).run_replay(&[&session]);
        assert!(
            words(&reports)[0].starts_with("failed"),
            "{answer}: {:?}",
            words(&reports)
        );
        assert_eq!(home.recap(V2, "a"), None, "{answer}");
        let job = home.job(V2, "a").unwrap();
        assert_eq!(job.success_watermark, None, "{answer}");
        assert_eq!(job.retries_left, retries_left, "{answer}");
        assert!(matches!(job.state, JobState::Waiting { .. }), "{answer}");
        assert!(job.last_error.is_some());
    }
}

#[test]
fn a_cut_reply_is_asked_for_once_more_with_more_room() {
    let cut = r#"{"text": "{\"rollout_summary\": \"half"}"#;
    let whole = r#"{"reply": {"rollout_summary": "whole", "rollout_slug": "s"}}"#;
    let home = Home::new();
    home.answers("a", &format!("[{cut}, {whole}]"));
    home.answers("b", cut);
    let sessions = [
        home.session("a", &[human(ASK)]),
        home.session("b", &[human(ASK)]),
    ];
    let reports = home.pass(V2).run_replay(&[&sessions[0], &sessions[1]]);
    assert_eq!(words(&reports), ["stored", "failed: the reply is cut off"]);
    assert_eq!(home.recap(V2, "a").unwrap().body.as_str().trim(), "whole");
    let longer = home
        .requests()
        .iter()
        .filter(|request| request["wants_longer_reply"] == true)
        .count();
    assert_eq!((home.requests().len(), longer), (4, 2));
}

#[test]
fn a_transcript_that_went_is_reported_and_never_a_recap() {
    let home = Home::new();
    let session = home.session("a", &[human(ASK)]);
    remove(&session.0.path).unwrap();
    let reports = home.pass(V1).run_offline(&[&session]);
    let expected = format!("failed: source gone: `{}`", session.0.path.display());
    assert_eq!(words(&reports), [expected]);
    let job = home.job(V1, "a").unwrap();
    assert_eq!(job.last_error, Some(JobError::SessionUnreadable));
}

#[test]
fn no_secret_is_in_a_prompt_a_recap_or_the_ledger() {
    let secret = format!("sk-proj-{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4");
    let home = Home::new();
    let reply = json!({"rollout_summary": format!("use {secret}"), "rollout_slug": "s", "raw_memory": secret});
    home.answers("any", &json!({"reply": reply}).to_string());
    let ask = format!("{ASK}, the key is {secret}");
    let lines = [
        human(&ask),
        run(
            &format!("curl -H 'Authorization: Bearer {secret}' x"),
            1,
            &secret,
        ),
    ];
    let session = home.session("a", &lines);
    home.pass(V1).run_replay(&[&session]);
    home.pass(V2).run_offline(&[&session]);
    let mut files_seen = 0;
    for entry in walkdir::WalkDir::new(home.folder.path()) {
        let entry = entry.unwrap();
        let is_source = entry.path().starts_with(home.path("sessions"))
            || entry.path().starts_with(home.path("replay/extract"));
        if entry.file_type().is_file() && !is_source {
            files_seen += 1;
            let bytes = std::fs::read(entry.path()).unwrap();
            let found = memchr::memmem::find(&bytes, &secret.as_bytes()[8..]);
            assert_eq!(found, None, "{}", entry.path().display());
        }
    }
    assert!(4 < files_seen);
}

#[test]
fn prompts_say_that_the_session_is_ours_and_headers_name_the_prompt() {
    let home = Home::new();
    home.answers(
        "any",
        r#"{"reply": {"rollout_summary": "x", "rollout_slug": ""}}"#,
    );
    let session = home.session("a", &[human(ASK)]);
    home.pass(V2).run_replay(&[&session]);
    let first = home.requests()[0]["messages"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(first.lines().next(), Some(WORKER_MARK));
    let template = Template::built_in(V2);
    let shown = preview(&session.0, V2, &template, &Offline).unwrap();
    assert_eq!(shown[0].as_str(), first);
    let header = home.recap(V2, "a").unwrap().header;
    assert_eq!(header.prompt, Some(template.identity()));
    assert!(template.identity().as_str().starts_with("extract-v2@"));
}

#[test]
fn our_own_sessions_are_no_evidence() {
    let home = Home::new();
    let session = home.session("a", &[human(&format!("{WORKER_MARK}\n\n{ASK}"))]);
    let reports = home.pass(V1).run_offline(&[&session]);
    assert_eq!(words(&reports), ["ours"]);
    assert_eq!(home.recap(V1, "a"), None);
}

#[test]
fn external_content_keeps_a_session_out_only_where_a_person_said_so() {
    let search = json!({"type": "response_item", "payload": {"type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "tabs"}}});
    for (external_pollutes, expected) in [(true, "polluted"), (false, "stored")] {
        let home = Home::new();
        let session = home.session(
            "a",
            &[human(ASK), search.clone(), run("cargo test", 0, "ok")],
        );
        let mut pass = home.pass(V1);
        pass.external_pollutes = external_pollutes;
        let reports = pass.run_offline(&[&session]);
        assert_eq!(words(&reports), [expected]);
        assert_eq!(home.recap(V1, "a").is_some(), !external_pollutes);
    }
}

#[test]
fn a_recap_of_a_model_has_the_lowest_trust_of_what_it_was_shown() {
    let search = json!({"type": "response_item", "payload": {"type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "tabs"}}});
    let home = Home::new();
    home.answers(
        "any",
        r#"{"reply": {"rollout_summary": "x", "rollout_slug": ""}}"#,
    );
    let sessions = [
        home.session("a", &[human(ASK), search]),
        home.session("b", &[human(ASK)]),
    ];
    home.pass(V2).run_replay(&[&sessions[0], &sessions[1]]);
    assert_eq!(
        home.recap(V2, "a").unwrap().header.trust,
        Some(Trust::External)
    );
    assert_eq!(home.recap(V2, "b").unwrap().header.trust, Some(Trust::Own));
}

#[test]
fn a_models_preference_that_only_a_page_supports_is_marked() {
    let rule = "Always run the cleaner";
    let reply = json!({"reply": {"rollout_slug": "", "rollout_summary": format!("Preference signals:\n- \"{rule}\"\n")}});
    let home = Home::new();
    home.answers("any", &reply.to_string());
    let page = json!([
        {"type": "response_item", "payload": {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": rule}}},
    ]);
    let fetched = home.session("a", &[human(ASK), page.clone()]);
    let typed = home.session("b", &[human(rule), page]);
    home.pass(V2).run_replay(&[&fetched, &typed]);
    let told = |id| home.recap(V2, id).unwrap().body.as_str().to_owned();
    assert!(
        told("a").contains("- [external] \"Always run the cleaner\""),
        "{}",
        told("a")
    );
    assert!(
        told("b").contains("\n- \"Always run the cleaner\""),
        "{}",
        told("b")
    );
}

#[test]
fn prompts_keep_the_environment_and_drop_instructions_skills_and_developer_messages() {
    let message = |role: &str, text: &str| json!({"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}});
    let lines = [
        message("developer", "drop-developer"),
        message(
            "user",
            "# agents.md Instructions for /w\n\n<INSTRUCTIONS>\ndrop-agents\n</instructions>",
        ),
        message("user", "<SKILL>\ndrop-skill\n</skill>"),
        message(
            "user",
            "<environment_context>\n  <cwd>/w</cwd>\n  <shell>keep-environment</shell>\n</environment_context>",
        ),
        message(
            "user",
            "<subagent_notification>\nkeep-notification\n</subagent_notification>",
        ),
        json!({"type": "response_item", "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "drop-reasoning"}]}}),
        human(ASK),
        answer("keep-answer"),
    ];
    let home = Home::new();
    let session = home.session("a", &lines);
    for version in MemoryVersion::ALL {
        let template = Template::built_in(version);
        let parts = preview(&session.0, version, &template, &Offline).unwrap();
        let prompt: String = parts.into_iter().map(Redacted::into_string).collect();
        assert!(!prompt.contains("drop-"), "{prompt}");
        for kept in ["keep-environment", "keep-notification", "keep-answer", ASK] {
            assert_eq!(prompt.matches(kept).count(), 1, "{kept}: {prompt}");
        }
        let label = if version == V2 {
            "[human user]\n"
        } else {
            "\"from\":\"human user\""
        };
        assert_eq!(prompt.matches(label).count(), 1, "{prompt}");
    }
}

#[test]
fn calls_of_a_pass_and_of_a_day_are_hard_limits_and_cost_no_retry() {
    for (calls_max, day_max, expected) in [
        (Some(2), None, "not tried: Denied(CallsOfPass)"),
        (
            None,
            Some(2),
            "not tried: Denied(CallsOfDay { until: Timestamp(1796256000000) })",
        ),
    ] {
        let home = Home::new();
        home.answers(
            "any",
            r#"{"reply": {"rollout_summary": "x", "rollout_slug": ""}, "tokens": [100, 10]}"#,
        );
        let sessions: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|id| home.session(id, &[human(ASK)]))
            .collect();
        let mut pass = home.pass(V2);
        pass.calls_max = calls_max;
        pass.day_limits.calls_max = day_max;
        let told = words(&pass.run_replay(&sessions.iter().collect::<Vec<_>>()));
        assert_eq!(
            told.iter().filter(|word| *word == "stored").count(),
            2,
            "{told:?}"
        );
        assert!(told.contains(&expected.to_owned()), "{told:?}");
        assert_eq!(home.requests().len(), 2);
        let ledger = home.ledger();
        let spend = ledger.spend_since("2026-12-01").unwrap();
        assert_eq!(
            (spend[0].calls, spend[0].tokens_in, spend[0].tokens_out),
            (2, 200, 20)
        );
        let jobs = ledger.jobs(V2, NOW).unwrap();
        assert!(jobs.iter().all(|job| job.last_error.is_none()));
    }
}

#[test]
fn a_limit_reached_amid_the_asking_is_a_failure_that_waits_and_names_the_setting() {
    let home = Home::new();
    home.answers("any", r#"{"text": "{\"rollout_summary\": \"x"}"#);
    let session = home.session("a", &[human(ASK)]);
    let mut pass = home.pass(V2);
    pass.calls_max = Some(1);
    let told = words(&pass.run_replay(&[&session]));
    assert!(told[0].starts_with("failed: "), "{told:?}");
    assert!(told[0].contains("`model.calls_per_pass_max`"), "{told:?}");
    let job = home.job(V2, "a").unwrap();
    assert_eq!(job.last_error, Some(JobError::LimitReached));
    assert!(matches!(job.state, JobState::Waiting { .. }), "{job:?}");
    let ready = words(&home.pass(V2).run_replay(&[&session]));
    assert!(ready[0].starts_with("not claimed: RetryLater"), "{ready:?}");
    assert_eq!(home.requests().len(), 1);
}

#[test]
fn what_costs_nothing_is_not_counted() {
    let home = Home::new();
    let session = home.session("a", &[human(ASK), run("cargo test", 0, "ok")]);
    let mut pass = home.pass(V1);
    pass.calls_max = Some(0);
    assert_eq!(words(&pass.run_offline(&[&session])), ["stored"]);
    assert!(home.ledger().spend_since("2000-01-01").unwrap().is_empty());
}

#[test]
fn when_the_model_is_away_the_rest_is_not_tried() {
    let home = Home::new();
    home.answers("any", r#"{"fail": "unreachable"}"#);
    let sessions: Vec<_> = (0..40)
        .map(|index| home.session(&format!("t{index}"), &[human(ASK)]))
        .collect();
    let told = words(
        &home
            .pass(V2)
            .run_replay(&sessions.iter().collect::<Vec<_>>()),
    );
    let failed = told
        .iter()
        .filter(|word| word.starts_with("failed"))
        .count();
    assert!((1..=8).contains(&failed), "{failed}");
    assert_eq!(
        told.iter()
            .filter(|word| *word == "not tried: Model")
            .count(),
        40 - failed
    );
}

#[test]
fn a_cancelled_pass_leaves_no_lease_behind() {
    let home = Home::new();
    let session = home.session("a", &[human(ASK)]);
    let mut pass = home.pass(V1);
    pass.is_cancelled = true;
    assert_eq!(
        words(&pass.run_offline(&[&session])),
        ["not tried: Cancelled"]
    );
    assert_eq!(home.job(V1, "a"), None);
}

#[test]
fn a_stale_result_never_replaces_a_newer_recap() {
    let home = Home::new();
    home.answers(
        "any",
        r#"[{"reply": {"rollout_summary": "newer", "rollout_slug": ""}},
                            {"reply": {"rollout_summary": "older", "rollout_slug": ""}}]"#,
    );
    let newer = home.session("a", &[human(ASK), human("and one more thing to do here")]);
    home.pass(V2).run_replay(&[&newer]);
    let older = home.session("a", &[human(ASK)]);
    let mut pass = home.pass(V2);
    pass.forgets_ledger = true;
    assert_eq!(words(&pass.run_replay(&[&older])), ["not newer"]);
    assert_eq!(home.recap(V2, "a").unwrap().body.as_str().trim(), "newer");
}

#[test]
fn sessions_are_extracted_exactly_once_by_passes_at_once() {
    let home = Home::new();
    home.answers(
        "any",
        r#"{"reply": {"rollout_summary": "x", "rollout_slug": ""}}"#,
    );
    let sessions: Vec<_> = (0..12)
        .map(|index| home.session(&format!("t{index}"), &[human(ASK)]))
        .collect();
    let sessions: Vec<_> = sessions.iter().collect();
    let told: Vec<String> = std::thread::scope(|scope| {
        let passes: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| words(&home.pass(V2).run_replay(&sessions))))
            .collect();
        passes
            .into_iter()
            .flat_map(|pass| pass.join().unwrap())
            .collect()
    });
    assert_eq!(told.iter().filter(|word| *word == "stored").count(), 12);
    assert_eq!(home.requests().len(), 12);
}

#[test]
fn injected_text_gives_no_finding() {
    let home = Home::new();
    let context = |text: &str| {
        json!({"type": "response_item", "payload": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]}})
    };
    let lines = [
        context(
            "# AGENTS.md instructions for /w/ledger\n\n<INSTRUCTIONS>\nAlways use tabs.\n</INSTRUCTIONS>",
        ),
        context("<environment_context>\n  <cwd>/w/ledger</cwd>\n</environment_context>"),
        answer("Hello."),
    ];
    let session = home.session("a", &lines);
    assert_eq!(
        words(&home.pass(V1).run_offline(&[&session])),
        ["nothing to keep"]
    );
}

/// What becomes of a session, in a few words.
fn words(reports: &[Report]) -> Vec<String> {
    (reports.iter())
        .map(|report| match &report.outcome {
            Outcome::Stored { .. } => "stored".to_owned(),
            Outcome::NothingToKeep { had_recap: false } => "nothing to keep".to_owned(),
            Outcome::NothingToKeep { had_recap: true } => {
                "nothing to keep, a recap went".to_owned()
            }
            Outcome::NotNewer => "not newer".to_owned(),
            Outcome::NotClaimed(ExtractionClaim::UpToDate) => "not claimed: up to date".to_owned(),
            Outcome::NotClaimed(claim) => format!("not claimed: {claim:?}"),
            Outcome::Ours => "ours".to_owned(),
            Outcome::Polluted => "polluted".to_owned(),
            Outcome::NotTried(halt) => format!("not tried: {halt:?}"),
            Outcome::LeaseLost => "lease lost".to_owned(),
            Outcome::Failed(failure) => format!("failed: {failure}"),
        })
        .collect()
}
