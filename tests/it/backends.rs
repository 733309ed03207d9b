//! The three services as back ends: one table of what can happen, the same
//! for all of them, whole and as a stream.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::server::{ModelServer, Request, Say, Scripted, Service};
use crate::support::{Run, Sandbox, Transcript};

/// A key that is none, put together so that nobody takes it for one.
pub(crate) fn planted_key() -> String {
    ["sk", "test", "A1b2C3d4E5f6G7h8I9j0K1l2"].join("-")
}

/// A box whose back end is the server.
pub(crate) fn sandbox(service: Service, endpoint: &str, more: &str) -> Sandbox {
    sandbox_with(service, endpoint, more, "")
}

/// The same with lines for the two sections of the configuration.
pub(crate) fn sandbox_with(
    service: Service,
    endpoint: &str,
    model: &str,
    memories: &str,
) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    sandbox.configure(&format!(
        "[model]\nbackend = \"{}\"\nendpoint = \"{endpoint}\"\nkey_env = \"TEST_KEY\"\n{model}\n\
         [memories]\nextract_model = \"small\"\nmax_rollouts_per_startup = 128\n{memories}\n",
        service.label()
    ));
    sandbox.variable("TEST_KEY", &planted_key());
    sandbox.run(&["init"]).success();
    sandbox
}

pub(crate) fn session(number: u32, name: &str) -> Transcript {
    let story = format!("human: Always look at case <{name}> twice, über alles.\nagent: ok");
    Transcript::codex(number, "2026-03-09T10:00:00Z", &story)
}

/// A good answer, with characters of several bytes.
pub(crate) fn good() -> String {
    json!({
        "rollout_summary": "# Prüfung\n\n## Task 1: 検査\n\nOutcome: success\n",
        "rollout_slug": "pruefung",
        "raw_memory": "---\ndescription: d\n---\n### Task 1\n",
    })
    .to_string()
}

pub(crate) fn text(text: &str) -> Scripted {
    Say::Text(text.to_owned()).into()
}

pub(crate) fn status(status: u16, message: &str) -> Scripted {
    let error = json!({"error": {"message": message, "type": "error", "code": "x"}});
    Say::Status(status, error).into()
}

/// What became of the only session.
pub(crate) fn outcome(run: &Run) -> (String, u64) {
    let report = run.json();
    let extracted = &report["versions"][0]["extracted"][0];
    let told = match extracted["detail"].as_str() {
        Some(detail) => format!("{}: {detail}", extracted["outcome"].as_str().unwrap()),
        None => extracted["outcome"].as_str().unwrap().to_owned(),
    };
    (told, extracted["calls"].as_u64().unwrap())
}

struct Case {
    name: &'static str,
    /// In turn; the last one again and again.
    says: Vec<Scripted>,
    /// Stands in what the report says of the session.
    expected: &'static str,
    calls: u64,
}

/// Failures that say nothing about the next session.
#[expect(clippy::too_many_lines, reason = "a table: one case after the other")]
fn calm_cases() -> Vec<Case> {
    let case = |name, says, expected, calls| Case {
        name,
        says,
        expected,
        calls,
    };
    let half = &good()[..40];
    vec![
        case("good", vec![text(&good())], "stored", 1),
        case("prose", vec![text("Sure! Here it is.")], "failed: ", 1),
        case(
            "wrong schema",
            vec![text(r#"{"summary": "x"}"#)],
            "does not meet the schema",
            1,
        ),
        case(
            "cut, then whole",
            vec![Say::Cut(half.to_owned()).into(), text(&good())],
            "stored",
            2,
        ),
        case(
            "always cut",
            vec![Say::Cut(half.to_owned()).into()],
            "failed: the reply",
            2,
        ),
        case(
            "refusal",
            vec![Say::Refuse.into()],
            "the model refused: ",
            1,
        ),
        case(
            "a key that is not accepted",
            vec![status(401, &format!("no such key: {}", planted_key()))],
            "does not accept the key in the variable `TEST_KEY`",
            1,
        ),
        case(
            "an unknown model",
            vec![status(404, "no model")],
            "does not know the model `small`",
            1,
        ),
        case(
            "a bad request",
            vec![status(400, "bad stuff")],
            "the service answers 400: bad stuff",
            1,
        ),
        case(
            "no money",
            vec![status(429, "You exceeded your quota: insufficient_quota")],
            "the account's quota is used up",
            1,
        ),
        case(
            "too long, then not",
            vec![Say::ContextFull.into(), text(&good())],
            "stored",
            2,
        ),
        case(
            "always too long",
            vec![Say::ContextFull.into()],
            "the request is too long for the model",
            2,
        ),
        case(
            "patience, then an answer",
            vec![
                status(429, "slow down").with_header("retry-after", "0"),
                text(&good()),
            ],
            "stored",
            2,
        ),
        case(
            "down, then up",
            vec![status(500, "oops"), text(&good())],
            "stored",
            2,
        ),
        case(
            "dropped, then not",
            vec![Say::Drop.into(), text(&good())],
            "stored",
            2,
        ),
        case(
            "dropped midway, then not",
            vec![Say::DropMidway.into(), text(&good())],
            "stored",
            2,
        ),
        case(
            "overloaded midway, then not",
            vec![Say::Overloaded.into(), text(&good())],
            "stored",
            2,
        ),
        case(
            "no JSON at all",
            vec![Say::Gibberish.into()],
            "the service's answer is not JSON",
            1,
        ),
    ]
}

#[test]
fn every_service_passes_the_same_table() {
    for service in Service::ALL {
        for is_whole in [false, true] {
            check_table(service, is_whole);
        }
    }
}

/// All cases in one pass, each a session of its own.
fn check_table(service: Service, is_whole: bool) {
    let scripts = calm_cases();
    let turns: Mutex<Vec<usize>> = Mutex::new(vec![0; scripts.len()]);
    let (server, _) = ModelServer::start(&[], move |_, request| {
        let text = request.text();
        let named = |case: &Case| text.contains(&format!("<{}>", case.name));
        let index = scripts.iter().position(named).expect("a case is asked");
        let mut turns = turns.lock().unwrap();
        let says = &scripts[index].says;
        let says = &says[turns[index].min(says.len() - 1)];
        turns[index] += 1;
        Scripted {
            // These two are what happens to streams.
            is_whole: is_whole && !matches!(says.say, Say::Overloaded | Say::DropMidway),
            ..says.clone()
        }
    });
    let sandbox = sandbox(service, &server.endpoint(), "");
    let cases = calm_cases();
    for (number, case) in (1..).zip(&cases) {
        sandbox.session(&session(number, case.name));
    }
    let run = sandbox.run(&["extract", "--json"]);
    let report = run.json();
    let extracted = report["versions"][0]["extracted"].as_array().unwrap();
    assert_eq!(extracted.len(), cases.len(), "{}", run.stdout);
    let ids: Vec<&str> = extracted
        .iter()
        .map(|it| it["thread_id"].as_str().unwrap())
        .collect();
    for (number, case) in (1..).zip(&cases) {
        let id = crate::support::thread_id(number);
        let position = ids.iter().position(|it| *it == id).unwrap();
        let it = &extracted[position];
        let told = format!(
            "{}: {}",
            it["outcome"].as_str().unwrap(),
            it["detail"].as_str().unwrap_or_default()
        );
        let name = (service.label(), is_whole, case.name);
        assert!(told.contains(case.expected), "{name:?}: {told}");
        assert_eq!(it["calls"], case.calls, "{name:?}: {told}");
    }
    let asked = server.requests();
    let spent = sandbox.run(&["status", "--json"]).success().json();
    let spent = &spent["spend_today"][0];
    assert_eq!(spent["calls"], asked.len(), "every call is counted");
    assert_eq!(spent["model"], format!("{}/small", service.label()));
    for request in &asked {
        assert!(request.wants_form(), "{}", request.body);
        check_key(request);
    }
    assert_no_key(&sandbox, &run);
}

pub(crate) fn check_key(request: &Request) {
    let key = planted_key();
    if request.service == Service::Anthropic {
        assert_eq!(request.header("x-api-key"), Some(key.as_str()));
        assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    } else {
        let bearer = format!("Bearer {key}");
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    }
    assert!(!request.body.to_string().contains(&key));
}

/// The key is in no file, and nothing says it.
fn assert_no_key(sandbox: &Sandbox, run: &Run) {
    let key = planted_key();
    assert!(!run.stdout.contains(&key) && !run.stderr.contains(&key));
    for (path, bytes) in sandbox.fingerprint() {
        let holds = bytes
            .windows(key.len())
            .any(|window| window == key.as_bytes());
        assert!(!holds, "{} holds the key", path.display());
    }
}

/// Failures after which the other sessions of the pass would only fail too.
#[test]
fn a_service_that_is_away_is_left_in_peace() {
    let date = "Tue, 10 Mar 2026 12:00:00 GMT";
    for service in Service::ALL {
        for (says, more, expected, calls) in [
            (
                status(429, "slow down").with_header("retry-after", "3600"),
                "",
                "the model asks for patience for 3600 s",
                1,
            ),
            (
                status(429, "slow down")
                    .with_header("date", date)
                    .with_header("retry-after", "Tue, 10 Mar 2026 12:05:00 GMT"),
                "",
                "the model asks for patience for 300 s",
                1,
            ),
            (
                status(503, "maintenance").with_header("retry-after", "7200"),
                "",
                "the model asks for patience for 7200 s",
                1,
            ),
            (
                status(503, "down").with_header("retry-after-ms", "1"),
                "",
                "the service answers 503: down",
                4,
            ),
            (
                Say::Hang.into(),
                "idle_seconds_max = 1",
                "the model did not answer within 1 s",
                1,
            ),
        ] {
            let server = ModelServer::saying(vec![says]);
            let sandbox = sandbox(service, &server.endpoint(), more);
            sandbox.session(&session(1, "any"));
            let (told, made) = outcome(&sandbox.run(&["extract", "--json"]));
            assert!(told.contains(expected), "{}: {told}", service.label());
            assert_eq!(made, calls, "{}: {told}", service.label());
        }
    }
}

#[test]
fn nothing_unredacted_is_in_a_request() {
    let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    for service in Service::ALL {
        let reply = good();
        let (server, _) = ModelServer::start(&[&secret], move |_, _| text(&reply));
        let sandbox = sandbox(service, &server.endpoint(), "");
        let story = format!(
            "human: Always push with the token {secret}, please.
             run: curl -H 'Authorization: Bearer {secret}' example.invalid -> fail: {secret} refused
             agent: I used {secret}."
        );
        sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", &story));
        sandbox.run(&["extract"]).success();
        let requests = server.requests();
        assert_eq!(requests.len(), 1);
        assert!(requests[0].text().contains("[redacted:"));
    }
}

/// Servers differ in how they are told the form of an answer.
#[test]
fn a_server_without_schemas_is_asked_in_a_looser_way_and_only_once() {
    let (server, _) = ModelServer::start(&[], |_, request| {
        let form = &request.body["response_format"]["type"];
        match form.as_str() {
            Some("json_schema") => status(400, "response_format json_schema is not supported"),
            Some("json_object") => status(400, "'response_format' must be text"),
            _ => text(&format!("<think>hm {{}}</think>\n```json\n{}\n```", good())),
        }
    });
    let sandbox = sandbox(Service::Chat, &server.endpoint(), "");
    sandbox.session(&session(1, "any"));
    let (told, calls) = outcome(&sandbox.run(&["extract", "--json"]));
    assert_eq!((told.as_str(), calls), ("stored", 3));
    let last = server.requests()[2].text();
    assert!(last.contains("\"rollout_summary\""), "the schema is told");
}

#[test]
fn a_server_that_wants_the_newer_name_of_the_limit_gets_it() {
    let (server, _) = ModelServer::start(&[], |_, request| {
        if request.body["max_tokens"].is_null() {
            text(&good())
        } else {
            status(400, "Use 'max_completion_tokens' instead of 'max_tokens'")
        }
    });
    let sandbox = sandbox(Service::Chat, &server.endpoint(), "output_tokens_max = 512");
    sandbox.session(&session(1, "any"));
    let (told, calls) = outcome(&sandbox.run(&["extract", "--json"]));
    assert_eq!((told.as_str(), calls), ("stored", 2));
    assert_eq!(server.requests()[1].body["max_completion_tokens"], 512);
}

#[test]
fn a_cut_answer_is_asked_for_again_with_twice_the_room() {
    let half = good()[..40].to_owned();
    let server = ModelServer::saying(vec![Say::Cut(half).into(), text(&good())]);
    let sandbox = sandbox(
        Service::Anthropic,
        &server.endpoint(),
        "output_tokens_max = 512",
    );
    sandbox.session(&session(1, "any"));
    sandbox.run(&["extract"]).success();
    let limits: Vec<Value> = (server.requests().iter())
        .map(|request| request.body["max_tokens"].clone())
        .collect();
    assert_eq!(limits, [512, 1024]);
}

#[test]
fn a_prompt_that_is_too_long_is_shortened() {
    let server = ModelServer::saying(vec![Say::ContextFull.into(), text(&good())]);
    let sandbox = sandbox(Service::Chat, &server.endpoint(), "input_tokens_max = 4000");
    let long = "word ".repeat(20_000);
    let story = format!("human: Always read this: {long}\nagent: ok");
    sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", &story));
    sandbox.run(&["extract"]).success();
    let lengths: Vec<usize> = (server.requests().iter())
        .map(|request| request.text().len())
        .collect();
    let [first, second] = lengths[..] else {
        panic!("{lengths:?}");
    };
    assert!(
        first < 30_000,
        "4,000 tokens are about 16,000 bytes: {first}"
    );
    assert!(second + 6_000 < first, "{second} after {first}");
}

/// Whoever runs the tests may have them ignore it (`nohup`), and what they start
/// as well.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) & 1 == 1
}

#[test]
fn a_person_who_stops_a_pass_waits_for_nobody() {
    for (service, signal) in Service::ALL
        .into_iter()
        .zip([Signal::INT, Signal::HUP, Signal::TERM])
    {
        if signal == Signal::HUP && ignores_hangup() {
            continue;
        }
        let (server, was_left) = ModelServer::start(&[], |number, _| match number {
            0 => Say::Hang.into(),
            _ => text(&good()),
        });
        let sandbox = sandbox(service, &server.endpoint(), "");
        sandbox.session(&session(1, "any"));
        let mut command = sandbox.command(&["extract"]);
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        server.wait_for_request();
        let began = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        was_left.recv_timeout(Duration::from_secs(20)).unwrap();
        let run = Run::of(child.wait_with_output().unwrap());
        let took = began.elapsed();
        // 200 ms on a machine that has nothing else to do.
        assert!(took < Duration::from_secs(3), "{took:?}");
        run.exit(130).says("the pass was stopped");
        // The lease is free and nothing waits: the next run takes it at once.
        let (told, _) = outcome(&sandbox.run(&["extract", "--json"]));
        assert_eq!(told, "stored", "{}", service.label());
    }
}

#[test]
fn ten_passes_with_a_failing_model_make_few_calls() {
    let server = ModelServer::saying(vec![status(500, "down").with_header("retry-after-ms", "1")]);
    let mut sandbox = sandbox(Service::OpenAi, &server.endpoint(), "");
    for number in 1..=3 {
        sandbox.session(&session(number, "any"));
    }
    for hour in 0..10 {
        sandbox.at(&format!("2026-03-10T{:02}:00:00Z", 12 + hour));
        sandbox.run(&["run", "--background"]);
    }
    // Three sessions, three tries each with up to four calls; and whatever a
    // worker tries is bounded by the waits of its job.
    let made = server.requests().len();
    assert!(made <= 3 * 3 * 4 + 10 * 4, "{made} calls");
}

/// Answers of a worker that lists the recaps, writes the summary and
/// finishes; an extraction before it gets a good recap.
pub(crate) fn consolidate_by_turns(request: &Request) -> Scripted {
    if request.wants_form() {
        let recap = json!({"rollout_summary": "# Prüfung\n\n## Task 1: 検査\n\nOutcome: success\n",
            "rollout_slug": "pruefung"});
        return text(&recap.to_string());
    }
    let said = request.text();
    let name = said
        .split(|c: char| c.is_whitespace() || "`\"'/".contains(c))
        .find(|word| word.ends_with("-pruefung.md"));
    let was_listed =
        request.body.to_string().contains("call_0") || request.body.to_string().contains("toolu_0");
    let calls = match name {
        Some(_) if said.contains("zebra") => {
            vec![(
                "finish",
                json!({"report": "One recap came in.", "forgotten": [], "unmatched_notes": []}),
            )]
        }
        Some(name) if was_listed => {
            let summary = format!(
                "v1\n\n## User Profile\n\nWorks on a ledger.\n\n## User preferences\n\n\
                 - Always look at the case twice, über alles.\n\n## General Tips\n\n- No zebra yet.\n\n\
                 ## What's in Memory\n\n### ledger\n\n#### 2026-03-09\n\n\
                 - rollout_summaries/{name} — the case; thread_id={}\n",
                crate::support::thread_id(1)
            );
            vec![(
                "write",
                json!({"path": "memory_summary.md", "text": summary}),
            )]
        }
        _ => vec![("list", json!({"folder": "rollout_summaries"}))],
    };
    Say::Calls(calls).into()
}

/// The worker of our own, over each wire: it reads, writes and finishes.
#[test]
fn every_service_can_consolidate() {
    for service in Service::ALL {
        let (server, _) = ModelServer::start(&[], |_, request| consolidate_by_turns(request));
        let sandbox = sandbox_with(service, &server.endpoint(), "", "version = \"v2\"");
        sandbox.session(&session(1, "any"));
        sandbox.run(&["run"]).success().prints("baseline");
        let folder = sandbox.home().join("memories_v2");
        let summary = std::fs::read_to_string(folder.join("memory_summary.md")).unwrap();
        assert!(summary.contains("twice, über alles"), "{summary}");
        let format = "--format=%(trailers:key=Memrev-Worker,valueonly)";
        let worker = sandbox.git_in(&folder, &["log", "-1", format]);
        assert_eq!(worker.trim(), format!("{}/small", service.label()));
        let asked = server.requests().len();
        let spent = sandbox.run(&["status", "--json"]).success().json();
        let spent = &spent["spend_today"][0];
        assert_eq!(spent["calls"], asked, "{}", service.label());
        sandbox.run(&["run"]).success().says("nothing to do");
        assert_eq!(
            server.requests().len(),
            asked,
            "unchanged inputs cost nothing"
        );
    }
}
