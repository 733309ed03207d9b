//! Limits of ours and of a service: what is asked, what waits, who is told.

use crate::backends::{consolidate_by_turns, good, sandbox, sandbox_with, session, status, text};
use crate::support::server::{ModelServer, Request, Say, Service};

/// What a service says of its limits stops the rest of a background pass.
#[test]
fn low_limits_stop_the_next_claims_of_a_background_pass() {
    let low = |_: usize, _: &Request| {
        text(&good())
            .with_header("x-ratelimit-limit-requests", "100")
            .with_header("x-ratelimit-remaining-requests", "10")
            .with_header("x-ratelimit-reset-requests", "1h")
    };
    let requests_of = |arguments: &[&str]| {
        let (server, _) = ModelServer::start(&[], low);
        let sandbox = sandbox(Service::OpenAi, &server.endpoint(), "");
        for number in 1..=30 {
            sandbox.session(&session(number, "any"));
        }
        let run = sandbox.run(arguments);
        (
            server.requests().len(),
            format!("{}{}", run.stdout, run.stderr),
        )
    };
    let (in_background, told) = requests_of(&["run", "--background", "--json"]);
    // Eight at once may have been under way.
    assert!((1..=16).contains(&in_background), "{in_background}");
    assert!(
        told.contains("little is left of the service's quota"),
        "{told}"
    );
    let (by_hand, _) = requests_of(&["extract"]);
    assert_eq!(by_hand, 30, "a person decides that for themselves");
}

/// Steps of a worker are calls: the limit of a pass holds in the middle of it.
#[test]
fn calls_used_up_before_the_worker_began_cost_nothing_and_amid_its_work_an_attempt() {
    let (server, _) = ModelServer::start(&[], |_, request| consolidate_by_turns(request));
    let sandbox = sandbox_with(Service::Chat, &server.endpoint(), "", "version = \"v2\"");
    sandbox.session(&session(1, "any"));
    let last_errors = || {
        let status = sandbox.run(&["status", "--json"]).success().json();
        let jobs = status["versions"][0]["jobs"].as_array().unwrap().clone();
        let errors = jobs.into_iter().map(|job| job["last_error"].clone());
        errors.filter(|error| !error.is_null()).collect::<Vec<_>>()
    };
    let run = sandbox.run(&["run", "--max-calls", "1"]).success();
    run.prints("not consolidated: the limit of calls in one pass (`model.calls_per_pass_max`)");
    assert_eq!((server.requests().len(), last_errors().len()), (1, 0));

    let run = sandbox.run(&["run", "--max-calls", "1"]).exit(4);
    run.says("`model.calls_per_pass_max`");
    assert_eq!(server.requests().len(), 2);
    assert_eq!(last_errors(), ["limit_reached"]);
    sandbox.run(&["run"]).success().prints("baseline");
}

/// A worker that never ends uses up what a pass may spend, and then waits
/// longer each time.
#[test]
fn a_worker_that_loops_is_asked_less_and_less_often() {
    let (server, _) = ModelServer::start(&[], |_, request| {
        if request.body["tools"].is_array() {
            return Say::Calls(vec![("list", serde_json::json!({"folder": ""}))]).into();
        }
        text(&good())
    });
    let mut sandbox = sandbox(Service::Chat, &server.endpoint(), "calls_per_pass_max = 5");
    sandbox.session(&session(1, "any"));
    for hour in 0..12 {
        sandbox.at(&format!("2026-03-10T{:02}:00:00Z", 12 + hour));
        sandbox.run(&["run", "--background"]);
    }
    // At noon, one, three and seven: waits of one, two, four hours, then eight.
    assert_eq!(server.requests().len(), 4 * 5);
}

/// A service that says when to come back is not asked before, whatever the
/// work; a person may.
#[test]
fn a_service_that_asks_for_patience_gets_it() {
    let server = ModelServer::saying(vec![
        status(429, "slow down").with_header("retry-after", "7200"),
    ]);
    let mut sandbox = sandbox(Service::Chat, &server.endpoint(), "");
    for number in 1..=3 {
        sandbox.session(&session(number, "any"));
    }
    sandbox.write(
        "extensions/ad_hoc/notes/2026-03-10T11-00-00-a.md",
        "always use tabs\n",
    );
    sandbox.run(&["run", "--background"]);
    let asked = server.requests().len();
    assert!((1..=3).contains(&asked), "{asked}: they go at once");
    let is_work = |request: &Request| request.body["tools"].is_array();
    assert!(!server.requests().iter().any(is_work), "no worker is asked");
    for minute in ["12:30", "13:15", "13:59"] {
        sandbox.at(&format!("2026-03-10T{minute}:00Z"));
        sandbox.session(&session(4, "any"));
        let run = sandbox.run(&["run", "--background"]);
        assert_eq!(server.requests().len(), asked, "{minute}");
        run.prints("the service asked for patience until 2026-03-10T14:00:00");
        let told =
            "asked for patience: it is not asked in the background before 2026-03-10T14:00:00";
        sandbox.run(&["status"]).success().prints(told);
        let told = "in the background it is tried again from 2026-03-10T14:00:00";
        sandbox.run(&["sessions"]).success().prints(told);
    }
    sandbox.run(&["run"]);
    let forced = server.requests().len();
    assert!(asked < forced, "by hand it is asked");
    sandbox
        .at("2026-03-10T17:00:00Z")
        .run(&["run", "--background"]);
    assert!(forced < server.requests().len());
}
