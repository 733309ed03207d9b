//! The settings of services and the difference that each makes.

use serde_json::json;

use crate::backends::{check_key, good, outcome, planted_key, sandbox, session, text};
use crate::support::server::{ModelServer, Say, Scripted, Service};
use crate::support::{Sandbox, Transcript};

#[test]
fn a_plain_address_elsewhere_is_refused_before_anything_is_sent() {
    let sandbox = Sandbox::new();
    sandbox.session(&session(1, "any"));
    sandbox.configure(
        "[model]\nbackend = \"chat\"\nendpoint = \"http://models.example.invalid/v1\"\n",
    );
    sandbox
        .run(&["run"])
        .exit(1)
        .says("plain `http://` is for this machine alone")
        .says("config.toml:5");
}

#[test]
fn a_key_in_the_configuration_is_refused_and_not_repeated() {
    let key = planted_key();
    for line in [
        format!("key_env = \"{key}\""),
        format!("headers = [\"x-key: {key}\"]"),
        format!("endpoint = \"https://user:{key}@example.invalid\""),
    ] {
        let sandbox = Sandbox::new();
        sandbox.configure(&format!("[model]\nbackend = \"chat\"\n{line}\n"));
        let run = sandbox.run(&["run"]).exit(1);
        let run = run.says("config.toml:5");
        assert!(!run.stderr.contains(&key), "{}", run.stderr);
    }
}

#[test]
fn a_key_file_is_read_and_one_that_others_may_read_is_told_of() {
    use std::os::unix::fs::PermissionsExt as _;

    let server = ModelServer::saying(vec![text(&good())]);
    let sandbox = Sandbox::new();
    let file = sandbox.write_at_mode("key file", &format!("{}\n", planted_key()), 0o600);
    sandbox.configure(&format!(
        "[model]\nbackend = \"anthropic\"\nendpoint = \"{}\"\nkey_file = \"{}\"\n\
         [memories]\nextract_model = \"small\"\n",
        server.endpoint(),
        file.display()
    ));
    sandbox.session(&session(1, "any"));
    let run = sandbox.run(&["extract"]).success();
    assert!(!run.stderr.contains("chmod"), "{}", run.stderr);
    check_key(&server.requests()[0]);

    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, open).unwrap();
    sandbox.session(&session(2, "any"));
    sandbox.run(&["extract"]).success().says("chmod 600");
    sandbox.session(&session(3, "any"));
    let run = sandbox.run(&["run"]);
    assert_eq!(run.stderr.matches("chmod 600").count(), 1, "{}", run.stderr);
}

#[test]
fn a_word_that_is_no_key_is_not_sent_to_a_service_elsewhere() {
    let mut sandbox = Sandbox::new();
    sandbox.session(&session(1, "any"));
    sandbox.variable("SHORT", "e");
    sandbox.configure(
        "[model]\nbackend = \"chat\"\nendpoint = \"https://models.example.invalid/v1\"\nkey_env = \"SHORT\"\n\
         [memories]\nextract_model = \"small\"\n",
    );
    let run = sandbox.run(&["run"]).exit(1);
    run.says("is shorter than 8 bytes").says("SHORT");
}

#[test]
fn a_missing_key_is_named_by_its_variable() {
    for (service, variable) in [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.configure(&format!(
            "[model]\nbackend = \"{service}\"\n[memories]\nextract_model = \"small\"\n"
        ));
        let run = sandbox.run(&["run"]).exit(1);
        run.says(variable).says("key_env");
    }
    let sandbox = Sandbox::new();
    sandbox.configure("[model]\nbackend = \"openai\"\n");
    sandbox.run(&["run"]).exit(1).says("extract_model");
    sandbox.configure("[model]\nbackend = \"chat\"\n[memories]\nextract_model = \"a\"\n");
    sandbox.run(&["run"]).exit(1).says("has no address");
}

/// The key of the usual service is not sent to whoever takes its place.
#[test]
fn the_usual_key_goes_to_the_usual_service_alone() {
    let server = ModelServer::saying(vec![text(&good())]);
    let mut sandbox = Sandbox::new();
    sandbox.variable("OPENAI_API_KEY", &planted_key());
    sandbox.configure(&format!(
        "[model]\nbackend = \"openai\"\nendpoint = \"{}\"\n[memories]\nextract_model = \"small\"\n",
        server.endpoint()
    ));
    sandbox.session(&session(1, "any"));
    sandbox.run(&["extract"]).success();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn headers_of_ones_own_are_sent() {
    let server = ModelServer::saying(vec![text(&good())]);
    let more = "headers = [\"X-Team: seven\", \"api-key: $OTHER_KEY\"]";
    let mut sandbox = sandbox(Service::Chat, &server.endpoint(), more);
    sandbox.session(&session(1, "any"));
    sandbox
        .run(&["extract"])
        .exit(1)
        .says("`OTHER_KEY` is not set");
    sandbox.variable("OTHER_KEY", "other");
    sandbox.run(&["extract"]).success();
    let requests = server.requests();
    assert_eq!(requests[0].header("x-team"), Some("seven"));
    assert_eq!(requests[0].header("api-key"), Some("other"));
}

/// Services repeat what they were sent when they do not like it.
#[test]
fn what_was_sent_in_a_header_comes_back_nowhere() {
    let secret = format!("team pass {}", "q7Zk".repeat(4));
    let word = "q7Zk".repeat(4);
    for service in Service::ALL {
        let said = format!("x-pass: {secret} ({word}) is not {}", planted_key());
        let failed = |status| {
            let body = json!({"error": {"message": &said, "code": &word, "type": &secret}});
            Scripted::from(Say::Status(status, body))
        };
        let mut says = vec![failed(401), failed(400), failed(500), failed(404)];
        says.push(Scripted::from(Say::Fail(said.clone())));
        says.push(Scripted::from(Say::RefuseWith(said.clone())));
        let mut whole = Scripted::from(Say::RefuseWith(said.clone()));
        whole.is_whole = true;
        says.push(whole);
        for say in says {
            let told = format!("{service:?} {say:?}");
            let server = ModelServer::saying(vec![say]);
            let more = "headers = [\"x-pass: $TEAM_PASS\"]\ncall_seconds_max = 2";
            let mut sandbox = sandbox(service, &server.endpoint(), more);
            sandbox.variable("TEAM_PASS", &secret);
            sandbox.session(&session(1, "any"));
            let run = sandbox.run(&["-vv", "run"]);
            assert_ne!(run.code, Some(0), "{told}: {}", run.stderr);
            let mut seen = vec![run.stdout.into_bytes(), run.stderr.into_bytes()];
            seen.extend(sandbox.fingerprint().into_iter().map(|(_, bytes)| bytes));
            for text in seen {
                let text = String::from_utf8_lossy(&text);
                assert!(!text.contains(&word), "{told}: {text}");
                assert!(!text.contains(&planted_key()), "{told}: {text}");
            }
        }
    }
}

/// The proxy of the configuration counts over that of the environment, and a
/// server on this machine is reached without any.
#[test]
fn a_proxy_stands_between_us_and_a_service_elsewhere() {
    use std::io::{BufRead as _, BufReader, Write as _};

    let proxy = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        reader.read_line(&mut line).unwrap();
        stream
            .write_all(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        line
    });
    let mut away = sandbox(
        Service::Chat,
        "https://models.example.invalid/v1",
        &format!("proxy = \"{address}\"\ncall_seconds_max = 5"),
    );
    away.variable("HTTPS_PROXY", "http://127.0.0.1:1");
    away.session(&session(1, "any"));
    let (told, _) = outcome(&away.run(&["extract", "--json"]));
    assert!(told.starts_with("failed: "), "{told}");
    let line = asked.join().unwrap();
    assert!(
        line.starts_with("CONNECT models.example.invalid:443"),
        "{line}"
    );

    let server = ModelServer::saying(vec![text(&good())]);
    let mut here = sandbox(Service::Chat, &server.endpoint(), "");
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        here.variable(name, "http://127.0.0.1:1");
    }
    here.session(&session(1, "any"));
    here.run(&["extract"]).success();
}

#[test]
fn a_service_with_a_certificate_of_ones_own_is_trusted_by_its_file_alone() {
    for service in Service::ALL {
        let (server, authority) = ModelServer::sealed_saying(vec![text(&good())]);
        let without = sandbox(service, &server.endpoint(), "");
        without.session(&session(1, "any"));
        let run = without.run(&["run"]).exit(4);
        let run = run.says("certificate").says("UnknownIssuer");
        run.says("`model.ca_file`");
        assert!(server.requests().is_empty(), "nothing was sent");

        // Another authority does not vouch for it.
        let (_, other) = ModelServer::sealed_saying(vec![text(&good())]);
        for (pem, is_trusted) in [(other, false), (authority, true)] {
            let sandbox = Sandbox::empty();
            let file = sandbox.write_at_mode("ca.pem", &pem, 0o600);
            let more = format!("ca_file = \"{}\"", file.display());
            let sandbox = crate::backends::sandbox(service, &server.endpoint(), &more);
            sandbox.session(&session(1, "any"));
            let run = sandbox.run(&["extract"]);
            assert_eq!(run.code == Some(0), is_trusted, "{}", run.stderr);
            assert_eq!(server.requests().len(), usize::from(is_trusted));
        }
        check_key(&server.requests()[0]);
    }
}

#[test]
fn certificates_that_cannot_be_read_are_told_of_before_anything_is_sent() {
    let server = ModelServer::saying(vec![text(&good())]);
    let plain = sandbox(Service::Chat, &server.endpoint(), "");
    let file = plain.write_at_mode("ca.pem", "no certificate", 0o600);
    let more = format!("ca_file = \"{}\"", file.display());
    let strict = sandbox(Service::Chat, &server.endpoint(), &more);
    for sandbox in [&plain, &strict] {
        sandbox.session(&session(1, "any"));
    }
    std::fs::write(
        &file,
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let (told, _) = outcome(&strict.run(&["extract", "--json"]));
    assert!(told.starts_with("failed: "), "{told}");
    assert_eq!(server.requests().len(), 0);
    plain.run(&["extract"]).success();
}

#[test]
fn the_models_window_bounds_what_is_sent() {
    let long = "word ".repeat(20_000);
    let story = format!("human: Always read this: {long}\nagent: ok");
    let sent = |more: &str| {
        let server = ModelServer::saying(vec![text(&good())]);
        let sandbox = sandbox(Service::Chat, &server.endpoint(), more);
        sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", &story));
        sandbox.run(&["extract"]).success();
        server.requests()[0].text().len()
    };
    let unknown = sent("");
    let small = sent("context_tokens = 8000");
    let smaller = sent("context_tokens = 8000\ninput_tokens_max = 2000");
    assert!(60_000 < unknown, "{unknown}");
    // 8,000 * 0.95 * 0.70 tokens of four bytes, and the prompt.
    assert!((20_000..30_000).contains(&small), "{small}");
    assert!(smaller + 10_000 < small, "{smaller}");
}
