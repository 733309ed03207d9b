//! The real Codex and Claude Code as back ends, against a scripted model on
//! the loopback interface.
//!
//! They are looked for in the folder that `MEMREV_TEST_AGENTS` names, else in
//! `target/agents`, as `npm install` leaves them there (`.ci/run` does that).
//! Without them the tests say loudly that they were skipped.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Sandbox, Transcript, thread_id};

/// What the scripted model does next.
#[derive(Clone)]
enum Say {
    Text(String),
    Call(&'static str, Value),
}

/// A model server for the Responses and the Messages API. Its threads end
/// with the test process.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// `script` is given the request and how many tools it tells results of.
    fn start(script: impl Fn(&str, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&requests), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    while let Some((line, body)) = read_request(&mut reader) {
                        answer(&stream, &line, &body, &seen, script.as_ref());
                    }
                });
            }
        });
        Self { port, requests }
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|bytes| 0 < *bytes)?;
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end().to_ascii_lowercase();
        match header.split_once(':') {
            None => break,
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            Some(_) => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut part = vec![0; size + 2];
            reader.read_exact(&mut part).ok()?;
            body.extend_from_slice(&part[..size]);
            if size == 0 {
                break;
            }
        }
    } else {
        body.resize(length, 0);
        reader.read_exact(&mut body).ok()?;
    }
    Some((line, body))
}

fn answer(
    mut stream: &TcpStream,
    line: &str,
    body: &[u8],
    seen: &Mutex<Vec<Value>>,
    script: &dyn Fn(&str, usize) -> Say,
) {
    let mut send = |status: &str, kind: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        // Whoever asked may have gone.
        stream.write_all((head + body).as_bytes()).ok();
    };
    let path = line.split_whitespace().nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let is_post = line.starts_with("POST");
    if line.starts_with("HEAD") {
        return send("200 OK", "application/json", "");
    }
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = request.to_string();
    let results =
        text.matches("function_call_output").count() + text.matches("\"tool_result\"").count();
    if is_post && path.ends_with("/responses") {
        seen.lock().unwrap().push(request);
        send(
            "200 OK",
            "text/event-stream",
            &responses(&script(&text, results), results),
        );
    } else if is_post && path.ends_with("/messages") {
        seen.lock().unwrap().push(request);
        send(
            "200 OK",
            "text/event-stream",
            &messages(&script(&text, results), results),
        );
    } else if path.ends_with("/models") {
        send(
            "200 OK",
            "application/json",
            r#"{"object":"list","data":[],"models":[]}"#,
        );
    } else {
        send("404 Not Found", "application/json", "{}");
    }
}

fn event(value: &Value) -> String {
    format!(
        "event: {}\ndata: {value}\n\n",
        value["type"].as_str().unwrap()
    )
}

/// `number` tells one call from the others of its conversation.
fn responses(say: &Say, number: usize) -> String {
    let item = match say {
        Say::Text(text) => {
            json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
        }
        Say::Call(name, arguments) => {
            json!({"type": "function_call", "id": format!("fc_{number}"), "status": "completed",
            "call_id": format!("call_{number}"), "name": name, "arguments": arguments.to_string()})
        }
    };
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110});
    let response = |status: &str, output: Value| json!({"id": "resp_1", "object": "response", "status": status, "model": "m", "output": output, "usage": usage});
    [
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]))}),
    ]
    .iter()
    .map(event)
    .collect()
}

fn messages(say: &Say, number: usize) -> String {
    let (block, delta, stop) = match say {
        Say::Text(text) => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        Say::Call(name, arguments) => (
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            "tool_use",
        ),
    };
    let message = json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1}});
    [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(event)
    .collect()
}

/// The program of a package, or `None` with a loud word about it.
fn installed(scope: &str, package: &str, program: &[&str]) -> Option<PathBuf> {
    let folder = std::env::var_os("MEMREV_TEST_AGENTS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/agents"),
        PathBuf::from,
    );
    let scope = folder.join("node_modules").join(scope);
    // The platform's own package: `codex-linux-x64`, `claude-code-darwin-arm64`.
    let begin = format!("{package}-");
    let found = names(&scope).into_iter().find_map(|name| {
        let mut path = scope.join(name.strip_prefix(&begin).map(|_| &name)?);
        for part in program {
            path = match *part {
                "*" => path.join(names(&path).first()?),
                part => path.join(part),
            };
        }
        path.is_file().then_some(path)
    });
    if found.is_none() {
        let words = format!(
            "\nSKIPPED: no `{package}` below {}: the test of the real program did not run\n",
            folder.display()
        );
        // Past the capture of test output.
        std::io::stderr().write_all(words.as_bytes()).unwrap();
    }
    found
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn recap() -> Value {
    json!({
        "rollout_summary": "# Reports\n\nA line of context.\n\n## Task 1: check reports\n\nOutcome: success\n\nReusable knowledge:\n- report number 1 is checked twice\n",
        "rollout_slug": "reports",
        "raw_memory": "---\ndescription: reports\ntask: check\ntask_group: reports\ntask_outcome: success\ncwd: /work/box\nkeywords: report\n---\n\n### Task 1: check reports\n"
    })
}

pub(crate) const SUMMARY: &str = "v1\n\n## User Profile\n\n- Sessions in memory: 1\n\n## User preferences\n\n## General Tips\n\n- report number 1 is checked twice\n\n## What's in Memory\n\n### box\n\n#### 2026-03-09\n\n- check reports: report\n";

/// The handbook, with the path of the recap in place of `RECAP`.
pub(crate) fn handbook(recap: &str) -> String {
    format!(
        "# Task Group: box\n\nscope: sessions in /work/box\napplies_to: cwd=/work/box; reuse_rule=this project\n\n\
         ## Task 1: check reports, success\n\n### rollout_summary_files\n\n- {recap} (cwd=/work/box, thread_id={})\n\n\
         ### keywords\n\n- report\n\n## Reusable knowledge\n\n- report number 1 is checked twice [Task 1]\n",
        thread_id(1)
    )
}

fn finished() -> Value {
    json!({"finished": true, "report": "folded one recap in", "retired": [], "skipped": [], "forgotten": [], "unmatched_notes": []})
}

/// The path of the one recap, from the diff that the prompt of the request
/// does not show: it is named by its session, so from the sandbox.
pub(crate) fn recap_path(sandbox: &Path) -> String {
    let folder = sandbox.join("extractions/v1");
    format!("rollout_summaries/{}", names(&folder)[0])
}

fn is_consolidation(request: &str) -> bool {
    request.contains("# How to end")
}

/// A box with one session that holds a secret.
fn with_session(config: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::empty();
    sandbox.configure(config);
    sandbox.run(&["init"]).success();
    let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let story =
        format!("human: Always check report number 1 twice. The token is {secret}.\nagent: ok");
    sandbox.session(&Transcript::codex(1, "2026-03-09T10:00:00Z", &story));
    (sandbox, secret)
}

/// Recap, baseline, nothing left behind, nothing to do the second time.
fn check_pass(sandbox: &Sandbox, server: &Server, secret: &str, worker: &str) {
    let before = (
        names(&sandbox.path("codex/sessions")),
        sandbox.names("staging"),
    );
    sandbox.run(&["run"]).success();
    assert!(
        sandbox
            .read("MEMORY.md")
            .contains("report number 1 is checked twice")
    );
    let message = sandbox.git(&["log", "-1", "--format=%B"]);
    for part in [
        &format!("Memrev-Worker: {worker}"),
        "Memrev-Tokens: ",
        "folded one recap in",
    ] {
        assert!(message.contains(part), "no {part} in\n{message}");
    }
    assert_eq!(
        (
            names(&sandbox.path("codex/sessions")),
            sandbox.names("staging")
        ),
        before
    );
    let projects = names(&sandbox.path("claude/projects"));
    assert_eq!(projects, [""; 0], "no transcript of a worker");
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| !request.to_string().contains(secret))
    );
    sandbox.run(&["run"]).success().says("nothing to do");
    assert_eq!(server.requests().len(), requests.len());
    let spend = sandbox.run(&["status", "--json"]).success().json();
    assert!(
        spend["spend_today"][0]["calls"].as_u64() >= Some(1),
        "{spend}"
    );
    sandbox.assert_sound();
}

#[test]
fn codex_extracts_and_consolidates() {
    let program = ["vendor", "*", "bin", "codex"];
    let Some(codex) = installed("@openai", "codex", &program) else {
        return;
    };
    let home = Arc::new(Mutex::new(PathBuf::new()));
    let outside = tempfile::tempdir().unwrap();
    let (place, file) = (Arc::clone(&home), outside.path().join("out.md"));
    let server = Server::start(move |request, results| {
        if !is_consolidation(request) {
            return Say::Text(recap().to_string());
        }
        if 0 < results {
            return Say::Text(finished().to_string());
        }
        let handbook = handbook(&recap_path(&place.lock().unwrap()));
        let script = format!(
            "cat > MEMORY.md <<'END'\n{handbook}END\ncat > memory_summary.md <<'END'\n{SUMMARY}END\necho x > '{}' || true",
            file.display()
        );
        Say::Call("exec_command", json!({"cmd": script}))
    });
    let provider = format!(
        "model_providers.mock={{name=\"mock\",base_url=\"{}/v1\",wire_api=\"responses\"}}",
        server.base()
    );
    let (sandbox, secret) = with_session(&format!(
        "[model]\nbackend = \"codex\"\ncommand = [{codex:?}, \"-c\", \"model_provider=mock\", \"-c\", '{provider}']\ncall_seconds_max = 120\n\
         [memories]\nextract_model = \"gpt-5.5\"\nconsolidation_model = \"gpt-5.5\"\n[worker]\nseconds_max = 120\n"
    ));
    sandbox.home().clone_into(&mut home.lock().unwrap());
    check_pass(&sandbox, &server, &secret, "codex/gpt-5.5");
    if cfg!(target_os = "linux") {
        assert_eq!(names(outside.path()), [""; 0], "the walls hold");
    }
}

#[test]
fn claude_extracts_and_consolidates() {
    let Some(claude) = installed("@anthropic-ai", "claude-code", &["claude"]) else {
        return;
    };
    let home = Arc::new(Mutex::new(PathBuf::new()));
    let place = Arc::clone(&home);
    let server = Server::start(move |request, results| {
        if !is_consolidation(request) {
            return Say::Call("StructuredOutput", recap());
        }
        let write = |name: &str, text: &str| {
            Say::Call("Write", json!({"file_path": name, "content": text}))
        };
        match results {
            0 => write("MEMORY.md", &handbook(&recap_path(&place.lock().unwrap()))),
            1 => write("memory_summary.md", SUMMARY),
            _ => Say::Call("StructuredOutput", finished()),
        }
    });
    let (mut sandbox, secret) = with_session(&format!(
        "[model]\nbackend = \"claude\"\ncommand = [{claude:?}]\ncommand_variables = [\"ANTHROPIC_BASE_URL\", \"ANTHROPIC_API_KEY\"]\n\
         call_seconds_max = 120\n[memories]\nextract_model = \"opus\"\nconsolidation_model = \"opus\"\n[worker]\nseconds_max = 120\n"
    ));
    sandbox.variable("ANTHROPIC_BASE_URL", &server.base());
    sandbox.variable("ANTHROPIC_API_KEY", "none");
    sandbox.home().clone_into(&mut home.lock().unwrap());
    check_pass(&sandbox, &server, &secret, "claude/opus");
}
