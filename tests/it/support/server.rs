//! A model server on the loopback interface that says what a test wants.
//!
//! It speaks the three protocols, whole and as a stream. Every request's body
//! is searched for the secrets that the test planted. Nothing here sleeps: a
//! server that hangs waits for its client to go away. Behind TLS it vouches for
//! itself with a certificate made at run time.
//!
//! One file because it is read beside the three protocols that it answers in.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// Whose protocol a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    OpenAi,
    Chat,
    Anthropic,
}

impl Service {
    pub(crate) const ALL: [Self; 3] = [Self::OpenAi, Self::Chat, Self::Anthropic];

    /// The word of the configuration.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
        }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) service: Service,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// All texts in the body.
    pub(crate) fn text(&self) -> String {
        fn gather(value: &Value, into: &mut String) {
            match value {
                Value::String(text) => {
                    into.push_str(text);
                    into.push('\n');
                }
                Value::Array(all) => all.iter().for_each(|one| gather(one, into)),
                Value::Object(all) => all.values().for_each(|one| gather(one, into)),
                _ => {}
            }
        }
        let mut text = String::new();
        gather(&self.body, &mut text);
        text
    }

    /// Whether it asks for an answer of a given form.
    pub(crate) fn wants_form(&self) -> bool {
        match self.service {
            Service::OpenAi => self.body["text"]["format"]["strict"] == true,
            Service::Chat => self.body["response_format"]["type"] == "json_schema",
            Service::Anthropic => self.body["tool_choice"]["type"] == "tool",
        }
    }
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    /// The answer's text; of the form that was asked for, if one was.
    Text(String),
    /// The same, stopped by the output limit.
    Cut(String),
    /// Calls of tools: name and arguments.
    Calls(Vec<(&'static str, Value)>),
    /// The model does not want to.
    Refuse,
    /// The same in these words.
    RefuseWith(String),
    /// An error before any answer.
    Status(u16, Value),
    /// The service's own words for a prompt over its window.
    ContextFull,
    /// An error in place of the rest of the answer.
    Overloaded,
    /// The same in these words.
    Fail(String),
    /// The connection ends before anything is said.
    Drop,
    /// It ends in the middle.
    DropMidway,
    /// Nothing comes, for as long as the client waits.
    Hang,
    /// Success, and no JSON.
    Gibberish,
}

/// What it says, and how.
#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    pub(crate) say: Say,
    /// In one piece, whatever was asked for.
    pub(crate) is_whole: bool,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl From<Say> for Scripted {
    fn from(say: Say) -> Self {
        Self {
            say,
            is_whole: false,
            headers: Vec::new(),
        }
    }
}

impl Scripted {
    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

type Script = dyn Fn(usize, &Request) -> Scripted + Send + Sync;

/// A server that runs until it is dropped.
pub(crate) struct ModelServer {
    port: u16,
    scheme: &'static str,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
    arrivals: Receiver<()>,
}

struct State {
    script: Box<Script>,
    requests: Mutex<Vec<Request>>,
    secrets: Vec<String>,
    leaks: Mutex<Vec<String>>,
    /// Requests whose client went away while the server hung.
    gone: Sender<()>,
    arrived: Sender<()>,
    is_over: Mutex<bool>,
}

impl ModelServer {
    /// Answers the n-th request, counted from 0, as `script` says.
    pub(crate) fn start(
        secrets: &[&str],
        script: impl Fn(usize, &Request) -> Scripted + Send + Sync + 'static,
    ) -> (Self, Receiver<()>) {
        Self::start_with(None, secrets, script)
    }

    fn start_with(
        tls: Option<Arc<ServerConfig>>,
        secrets: &[&str],
        script: impl Fn(usize, &Request) -> Scripted + Send + Sync + 'static,
    ) -> (Self, Receiver<()>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (gone, was_left) = channel();
        let (arrived, arrivals) = channel();
        let state = Arc::new(State {
            script: Box::new(script),
            requests: Mutex::default(),
            secrets: secrets.iter().map(|secret| (*secret).to_owned()).collect(),
            leaks: Mutex::default(),
            gone,
            arrived,
            is_over: Mutex::new(false),
        });
        let shared = Arc::clone(&state);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if *shared.is_over.lock().unwrap() {
                    break;
                }
                let state = Arc::clone(&shared);
                let stream = stream.unwrap();
                let tls = tls.clone();
                connections.push(std::thread::spawn(move || match tls {
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        serve(&state, StreamOwned::new(connection, stream));
                    }
                    None => serve(&state, &stream),
                }));
            }
            for connection in connections {
                connection.join().ok();
            }
        });
        let server = Self {
            port,
            scheme,
            state,
            listener: Some(listener),
            arrivals,
        };
        (server, was_left)
    }

    /// Says these in turn; the last one again and again.
    pub(crate) fn saying(says: Vec<Scripted>) -> Self {
        let script = move |number: usize, _: &Request| says[number.min(says.len() - 1)].clone();
        Self::start(&[], script).0
    }

    /// The same behind a certificate that was made just now, and the
    /// certificate (PEM) of the authority that vouches for it.
    pub(crate) fn sealed_saying(says: Vec<Scripted>) -> (Self, String) {
        let script = move |number: usize, _: &Request| says[number.min(says.len() - 1)].clone();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &authority).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let server = Self::start_with(Some(Arc::new(tls)), &[], script).0;
        (server, authority.pem())
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}/v1", self.scheme, self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Waits until the next request is there.
    pub(crate) fn wait_for_request(&self) {
        self.arrivals.recv().unwrap();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        *self.state.is_over.lock().unwrap() = true;
        // Wakes the listener, which then sees that it is over.
        TcpStream::connect(("127.0.0.1", self.port)).ok();
        if let Some(listener) = self.listener.take() {
            listener.join().ok();
        }
        let leaks = self.state.leaks.lock().unwrap();
        assert!(
            leaks.is_empty() || std::thread::panicking(),
            "secrets in requests: {leaks:?}"
        );
    }
}

fn serve(state: &State, stream: impl Read + Write) {
    let mut reader = BufReader::new(stream);
    // Kept alive: one request after the other, until the client has enough.
    while let Some((service, headers, bytes)) = read_request(&mut reader) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for secret in &state.secrets {
            if text.contains(secret.as_str()) {
                state.leaks.lock().unwrap().push(secret.clone());
            }
        }
        let request = Request {
            service,
            headers,
            body: serde_json::from_slice(&bytes).unwrap(),
        };
        let number = {
            let mut requests = state.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        state.arrived.send(()).ok();
        let scripted = (state.script)(number, &request);
        if !answer(state, reader.get_mut(), &request, &scripted) {
            return;
        }
    }
}

/// Names in lower case, and values.
type Headers = Vec<(String, String)>;

fn read_request(reader: &mut BufReader<impl Read>) -> Option<(Service, Headers, Vec<u8>)> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|bytes| 0 < *bytes)?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let service = match path.as_str() {
        "/v1/responses" => Service::OpenAi,
        "/v1/chat/completions" => Service::Chat,
        "/v1/messages" => Service::Anthropic,
        other => panic!("nobody asks for {other}"),
    };
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length?.1.parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((service, headers, body))
}

/// Whether the connection goes on.
fn answer(
    state: &State,
    stream: &mut (impl Read + Write),
    request: &Request,
    scripted: &Scripted,
) -> bool {
    let mut headers = String::new();
    for (name, value) in &scripted.headers {
        write!(headers, "{name}: {value}\r\n").unwrap();
    }
    let mut send = |status: u16, kind: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        // Text of several bytes a character is cut anywhere: the client has
        // to put it together again.
        let bytes = [head.as_bytes(), body.as_bytes()].concat();
        let sent = bytes
            .chunks(997)
            .try_for_each(|piece| stream.write_all(piece));
        sent.is_ok()
    };
    let status_body = match &scripted.say {
        Say::Status(status, body) => Some((*status, body.to_string())),
        Say::ContextFull => Some((400, context_full(request.service).to_string())),
        _ => None,
    };
    if let Some((status, body)) = status_body {
        return send(status, "application/json", &body);
    }
    match &scripted.say {
        Say::Drop => false,
        Say::Hang => {
            // Returns when the client closes the connection.
            stream.read_exact(&mut [0]).ok();
            state.gone.send(()).ok();
            false
        }
        Say::Gibberish => send(200, "application/json", "<html>It works!</html>"),
        Say::DropMidway => {
            let body = events(request, &Say::Text("{\"half".to_owned()));
            let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n";
            let half = &body[..body.len() / 2];
            stream.write_all(format!("{head}{half}").as_bytes()).ok();
            false
        }
        say if scripted.is_whole => send(200, "application/json", &whole(request, say).to_string()),
        say => send(
            200,
            "text/event-stream; charset=utf-8",
            &events(request, say),
        ),
    }
}

fn context_full(service: Service) -> Value {
    match service {
        Service::OpenAi => json!({"error": {"code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model.", "type": "invalid_request_error"}}),
        Service::Chat => json!({"error": {"code": 400, "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size"}}),
        Service::Anthropic => json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "prompt is too long: 250000 tokens > 200000 maximum"}}),
    }
}

/// What every answer counts.
const INPUT_TOKENS: u64 = 1_000;
const OUTPUT_TOKENS: u64 = 50;

/// The parts of an answer: text, words of a refusal, calls, and the word for
/// why it stopped.
fn parts(request: &Request, say: &Say) -> (String, String, Vec<(String, Value)>, &'static str) {
    let nothing = String::new;
    match say {
        Say::Text(text) => (text.clone(), nothing(), Vec::new(), "stop"),
        Say::Cut(text) => (text.clone(), nothing(), Vec::new(), "length"),
        Say::Calls(calls) => {
            let calls = calls.iter();
            let calls = calls.map(|(name, arguments)| ((*name).to_owned(), arguments.clone()));
            (nothing(), nothing(), calls.collect(), "tools")
        }
        Say::Refuse => {
            let words = "I cannot help with that.".to_owned();
            (nothing(), words, Vec::new(), "refusal")
        }
        Say::RefuseWith(words) => (nothing(), words.clone(), Vec::new(), "refusal"),
        other => panic!("{other:?} is no answer to {:?}", request.service),
    }
}

fn whole(request: &Request, say: &Say) -> Value {
    let (text, refusal, calls, stop) = parts(request, say);
    match request.service {
        Service::OpenAi => openai_response(&text, &refusal, &calls, stop),
        Service::Chat => {
            let mut message = json!({"role": "assistant", "content": text});
            if stop == "refusal" {
                message["refusal"] = refusal.into();
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls.iter().enumerate().map(chat_call).collect();
            }
            json!({"choices": [{"index": 0, "message": message, "finish_reason": chat_stop(stop)}],
                "usage": {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}})
        }
        Service::Anthropic => {
            let content: Vec<Value> = anthropic_blocks(request, &text, &calls)
                .into_iter()
                .map(|(mut block, pieces)| {
                    let whole = pieces.concat();
                    if block["type"] == "tool_use" {
                        block["input"] = serde_json::from_str(&whole).unwrap_or_default();
                    } else {
                        block["text"] = whole.into();
                    }
                    block
                })
                .collect();
            json!({"type": "message", "role": "assistant", "content": content,
                "stop_reason": anthropic_stop(request, stop),
                "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}})
        }
    }
}

/// The same as a stream of events.
#[expect(clippy::too_many_lines, reason = "a table: what each service sends")]
fn events(request: &Request, say: &Say) -> String {
    if let Say::Fail(words) = say {
        return match request.service {
            Service::OpenAi => event(&json!({"type": "response.failed", "response":
                {"status": "failed", "error": {"code": "server_error", "message": words}}})),
            Service::Chat => event(&json!({"error": {"code": 503, "message": words}})),
            Service::Anthropic => event(&json!({"type": "error", "error":
                {"type": "overloaded_error", "message": words}})),
        };
    }
    if matches!(say, Say::Overloaded) {
        return match request.service {
            Service::OpenAi => event(&json!({"type": "response.failed", "response":
                {"status": "failed", "error": {"code": "server_error", "message": "overloaded"}}})),
            Service::Chat => event(&json!({"error": {"code": 503, "message": "overloaded"}})),
            Service::Anthropic => event(&json!({"type": "error", "error":
                {"type": "overloaded_error", "message": "Overloaded"}})),
        };
    }
    let (text, refusal, calls, stop) = parts(request, say);
    let mut stream = String::from(": ping\n\n");
    let mut push = |value: &Value| stream.push_str(&event(value));
    match request.service {
        Service::OpenAi => {
            let response = openai_response(&text, &refusal, &calls, stop);
            push(&json!({"type": "response.created", "response": {"status": "in_progress"}}));
            for piece in pieces(&text) {
                push(&json!({"type": "response.output_text.delta", "delta": piece}));
            }
            for (index, item) in response["output"].as_array().unwrap().iter().enumerate() {
                push(
                    &json!({"type": "response.output_item.done", "output_index": index, "item": item}),
                );
            }
            let kind = if stop == "length" {
                "incomplete"
            } else {
                "completed"
            };
            push(&json!({"type": format!("response.{kind}"), "response": response}));
        }
        Service::Chat => {
            for piece in pieces(&text) {
                push(
                    &json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]}),
                );
            }
            if stop == "refusal" {
                for piece in pieces(&refusal) {
                    push(&json!({"choices": [{"delta": {"refusal": piece}}]}));
                }
            }
            for (index, call) in calls.iter().enumerate() {
                let mut first = chat_call((index, call));
                let arguments = call.1.to_string();
                first["function"]["arguments"] = "".into();
                push(&json!({"choices": [{"delta": {"tool_calls": [first]}}]}));
                for piece in pieces(&arguments) {
                    push(&json!({"choices": [{"delta": {"tool_calls":
                        [{"index": index, "function": {"arguments": piece}}]}}]}));
                }
            }
            push(&json!({"choices": [{"delta": {}, "finish_reason": chat_stop(stop)}]}));
            push(&json!({"choices": [], "usage":
                {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}}));
            stream.push_str("data: [DONE]\n\n");
        }
        Service::Anthropic => {
            push(&json!({"type": "message_start", "message":
                {"usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1}}}));
            let blocks = anthropic_blocks(request, &text, &calls);
            for (index, (block, pieces)) in blocks.into_iter().enumerate() {
                let is_call = block["type"] == "tool_use";
                push(
                    &json!({"type": "content_block_start", "index": index, "content_block": block}),
                );
                for piece in pieces {
                    let delta = if is_call {
                        json!({"type": "input_json_delta", "partial_json": piece})
                    } else {
                        json!({"type": "text_delta", "text": piece})
                    };
                    push(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
                }
                push(&json!({"type": "content_block_stop", "index": index}));
            }
            push(
                &json!({"type": "message_delta", "delta": {"stop_reason": anthropic_stop(request, stop)},
                "usage": {"output_tokens": OUTPUT_TOKENS}}),
            );
            push(&json!({"type": "message_stop"}));
        }
    }
    stream
}

fn event(value: &Value) -> String {
    format!("event: x\ndata: {value}\n\n")
}

/// A text in pieces of a few characters.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    (characters.chunks(7))
        .map(|piece| piece.iter().collect())
        .collect()
}

fn openai_response(text: &str, refusal: &str, calls: &[(String, Value)], stop: &str) -> Value {
    let mut output = Vec::new();
    if stop == "refusal" {
        output.push(json!({"type": "message", "content":
            [{"type": "refusal", "refusal": refusal}]}));
    }
    if !calls.is_empty() {
        output.push(json!({"type": "reasoning", "id": "rs_1", "summary": [],
            "encrypted_content": "sealed"}));
    }
    if !text.is_empty() {
        output.push(json!({"type": "message", "role": "assistant", "content":
            [{"type": "output_text", "text": text}]}));
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        output.push(
            json!({"type": "function_call", "call_id": format!("call_{index}"),
            "name": name, "arguments": arguments.to_string()}),
        );
    }
    let mut response = json!({"status": "completed", "output": output,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}});
    if stop == "length" {
        response["status"] = "incomplete".into();
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response
}

fn chat_call((index, (name, arguments)): (usize, &(String, Value))) -> Value {
    json!({"index": index, "id": format!("call_{index}"), "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()}})
}

fn chat_stop(stop: &str) -> &str {
    match stop {
        "tools" => "tool_calls",
        "refusal" => "stop",
        other => other,
    }
}

fn anthropic_stop(request: &Request, stop: &str) -> &'static str {
    match stop {
        "tools" => "tool_use",
        "length" => "max_tokens",
        "refusal" => "refusal",
        _ if request.wants_form() => "tool_use",
        _ => "end_turn",
    }
}

/// Blocks and the pieces of their text or arguments. An answer of a given
/// form is the call of the one tool.
fn anthropic_blocks(
    request: &Request,
    text: &str,
    calls: &[(String, Value)],
) -> Vec<(Value, Vec<String>)> {
    let mut blocks = Vec::new();
    if !text.is_empty() && request.wants_form() {
        let name = &request.body["tool_choice"]["name"];
        let block = json!({"type": "tool_use", "id": "toolu_form", "name": name, "input": {}});
        blocks.push((block, pieces(text)));
    } else if !text.is_empty() {
        blocks.push((json!({"type": "text", "text": ""}), pieces(text)));
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let id = format!("toolu_{index}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        blocks.push((block, pieces(&arguments.to_string())));
    }
    blocks
}
