//! A reply and what becomes of it, in short words; `check` knows the API.

use serde_json::{Value, json};

use super::{Answer, ReplyError, schema};
use crate::domain::text::Raw;
use crate::domain::version::MemoryVersion::{self, V1, V2};
use crate::extract::grounding::Grounding;

const GOOD_V1: &str = r#"{"rollout_summary":"did it","rollout_slug":"fix","raw_memory":"know it"}"#;
const GOOD_V2: &str = r#"{"rollout_summary":"did it","rollout_slug":"fix"}"#;

#[test]
fn version_1_needs_recap_and_raw_memory_and_lets_the_slug_be_null_or_missing() {
    check(V1, GOOD_V1, "did it / fix / know it");
    check(
        V1,
        r#"{"rollout_summary":"a","rollout_slug":null,"raw_memory":"b"}"#,
        "a / - / b",
    );
    check(
        V1,
        r#"{"rollout_summary":"a","raw_memory":"b"}"#,
        "a / - / b",
    );
    for missing in ["rollout_summary", "raw_memory"] {
        let mut reply: Value = serde_json::from_str(GOOD_V1).unwrap();
        reply.as_object_mut().unwrap().remove(missing);
        check(
            V1,
            &reply.to_string(),
            &format!("schema: missing field `{missing}`"),
        );
    }
}

#[test]
fn version_2_needs_recap_and_slug() {
    check(V2, GOOD_V2, "did it / fix / -");
    check(
        V2,
        r#"{"rollout_summary":"a"}"#,
        "schema: missing field `rollout_slug`",
    );
    check(
        V2,
        r#"{"rollout_summary":"a","rollout_slug":null}"#,
        "schema: invalid type: null, expected a string",
    );
}

#[test]
fn unknown_keys_fail_the_job() {
    check(
        V2,
        r#"{"rollout_summary":"a","rollout_slug":"b","raw_memory":"c"}"#,
        "schema: unknown field `raw_memory`",
    );
    check(
        V1,
        r#"{"message":"no route"}"#,
        "schema: unknown field `message`",
    );
}

#[test]
fn version_1_says_nothing_when_recap_or_raw_memory_is_exactly_empty() {
    check(
        V1,
        r#"{"rollout_summary":"","rollout_slug":"","raw_memory":""}"#,
        "nothing",
    );
    check(
        V1,
        r#"{"rollout_summary":"a","rollout_slug":null,"raw_memory":""}"#,
        "nothing",
    );
    check(
        V1,
        r#"{"rollout_summary":"","rollout_slug":null,"raw_memory":"b"}"#,
        "nothing",
    );
    check(
        V1,
        r#"{"rollout_summary":" ","rollout_slug":null,"raw_memory":" "}"#,
        "  / - /  ",
    );
}

#[test]
fn version_2_says_nothing_when_the_recap_is_exactly_empty() {
    check(
        V2,
        r#"{"rollout_summary":"","rollout_slug":"x"}"#,
        "nothing",
    );
    check(
        V2,
        r#"{"rollout_summary":" ","rollout_slug":"x"}"#,
        "  / x / -",
    );
}

#[test]
fn prose_is_a_failure_and_never_nothing_to_keep() {
    check(V2, "Sure! Next I would look at the tests.", "not JSON");
    check(V2, "", "empty");
    check(V2, " \n", "empty");
    check(V2, "null", "not JSON");
    check(V2, "[]", "not JSON");
    check(
        V2,
        &format!("{GOOD_V2}\nLet me know if you need more."),
        "text after",
    );
    check(V2, &format!("{GOOD_V2}{GOOD_V2}"), "text after");
}

#[test]
fn fences_and_thoughts_before_the_json_are_passed_over() {
    check(V2, &format!("```json\n{GOOD_V2}\n```"), "did it / fix / -");
    check(V2, &format!("```\n{GOOD_V2}```\n"), "did it / fix / -");
    check(
        V2,
        &format!("<think>{{\"a\":1}} hm</think>\n{GOOD_V2}"),
        "did it / fix / -",
    );
    check(
        V2,
        &format!("\u{feff}<thinking>a</thinking>\n```json\n{GOOD_V2}\n```"),
        "did it / fix / -",
    );
}

#[test]
fn a_reply_cut_at_the_output_limit_is_its_own_failure() {
    for end in 1..GOOD_V1.len() {
        check(V1, &GOOD_V1[..end], "cut off");
    }
    check(V2, &format!("```json\n{}", &GOOD_V2[..20]), "cut off");
    check(V2, "<think>and then", "cut off");
    check(V2, "```", "cut off");
}

#[test]
fn every_field_is_redacted() {
    let secret = format!("sk-{}", "a1B2c3D4e5F6g7H8i9J0k1L2");
    let reply = json!({
        "rollout_summary": format!("the key is {secret}"),
        "rollout_slug": format!("use {secret}"),
        "raw_memory": format!("key: {secret}"),
    });
    let Answer::Kept(finding) = parse(V1, &Raw::new(reply.to_string())).unwrap() else {
        panic!("something to keep");
    };
    let everything = format!("{finding:?}").to_lowercase();
    assert!(!everything.contains(&secret.to_lowercase()), "{everything}");
    assert!(!everything.contains("a1b2c3d4e5f6"), "{everything}");
}

#[test]
fn a_version_2_recap_is_cut_to_9000_bytes_with_the_marker_on_top() {
    for (length, expected) in [(9_000, 9_000), (9_001, 9_027), (20_000, 9_031)] {
        let reply = json!({"rollout_summary": "a".repeat(length), "rollout_slug": ""});
        let Answer::Kept(finding) = parse(V2, &Raw::new(reply.to_string())).unwrap() else {
            panic!("something to keep");
        };
        let recap = finding.recap.as_str();
        assert!(recap.len() <= expected, "{} > {expected}", recap.len());
        assert!(length.min(9_000) <= recap.len());
        assert_eq!(recap.contains("chars truncated"), 9_000 < length);
    }
}

#[test]
fn what_the_schemas_take_and_refuse_the_parser_takes_and_refuses() {
    let values = [json!("a"), json!(""), json!(null), json!(1), json!(["a"])];
    for version in MemoryVersion::ALL {
        let schema: Value = serde_json::from_str(schema(version)).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for summary in &values {
            for slug in &values {
                for raw in &values {
                    let mut reply = json!({"rollout_summary": summary, "rollout_slug": slug});
                    if version == V1 {
                        reply["raw_memory"] = raw.clone();
                    }
                    let parsed = parse(version, &Raw::new(reply.to_string()));
                    assert_eq!(validator.is_valid(&reply), parsed.is_ok(), "{reply}");
                    reply["more"] = json!(1);
                    assert!(!validator.is_valid(&reply), "{reply}");
                }
            }
        }
    }
}

fn parse(version: MemoryVersion, reply: &Raw) -> Result<Answer, ReplyError> {
    super::parse(version, reply, &Grounding::none())
}

#[track_caller]
fn check(version: MemoryVersion, reply: &str, expected: &str) {
    let told = match parse(version, &Raw::new(reply)) {
        Ok(Answer::Nothing) => "nothing".to_owned(),
        Ok(Answer::Kept(finding)) => format!(
            "{} / {} / {}",
            finding.recap,
            finding.slug.as_deref().unwrap_or("-"),
            finding.raw_memory.as_ref().map_or("-", |raw| raw.as_str()),
        ),
        Err(ReplyError::Schema { problem }) => {
            let problem = problem.as_str();
            let end = problem
                .find(", expected `")
                .or(problem.find(", expected one"));
            let end = end.or(problem.find(" at line")).unwrap_or(problem.len());
            format!("schema: {}", &problem[..end])
        }
        Err(ReplyError::Empty) => "empty".to_owned(),
        Err(ReplyError::CutOff) => "cut off".to_owned(),
        Err(ReplyError::NotJson) => "not JSON".to_owned(),
        Err(ReplyError::TextAfter) => "text after".to_owned(),
        Err(ReplyError::TooLong { .. }) => "too long".to_owned(),
    };
    assert_eq!(told, expected, "{reply}");
}
