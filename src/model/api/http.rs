//! The one place that talks to a network.
//!
//! [`Http`] posts a body to its endpoint and hands the answer on in the pieces
//! in which it comes. It knows nothing of models.
//!
//! Inside it is asynchronous, since only that lets a wait for the network end
//! at once when nobody wants the answer any more; outside it blocks. Its
//! runtime is one thread, started by the first request. Dropping a request
//! closes its connection.
//!
//! # Limits
//!
//! Connecting, silence and the whole request have limits in seconds, see
//! [`HttpSettings`]. Redirects are not followed: they would take the key to
//! whoever the answer names. How much of an answer is kept, the reader of it
//! decides.
//!
//! # Where text may go
//!
//! To the endpoint, and through a proxy to it. An endpoint on this machine is
//! reached without a proxy, and `localhost` is never looked up.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, NoProxy, Proxy, redirect};
use tokio::runtime::Runtime;

use crate::domain::endpoint::Endpoint;
use crate::domain::text::Redacted;
use crate::model::Meter;
use crate::model::api::key::Key;
use crate::sys::fs;
use crate::text::redact::redact_str;

/// Longest wait for a connection, in seconds.
const CONNECT_SECONDS_MAX: u64 = 20;

/// How often a wait looks whether the answer is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long the end of the process waits for connections to close.
const CLOSE_WAIT: Duration = Duration::from_millis(100);

/// Largest file of certificates, in bytes.
const CA_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How a service is reached.
pub(crate) struct HttpSettings {
    pub(crate) endpoint: Endpoint,
    pub(crate) proxy: Option<ProxySettings>,
    /// Certificates (PEM) that are trusted besides the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Sent with every request.
    pub(crate) headers: Vec<(String, Key)>,
    /// Longest silence of the server, also before its first byte, in seconds.
    pub(crate) idle_seconds_max: u64,
}

/// A proxy, which may come with a password, so it is not printed.
pub(crate) struct ProxySettings {
    pub(crate) url: String,
    /// Hosts that are reached without it, as `NO_PROXY` lists them.
    pub(crate) bypass: Option<String>,
}

/// Why there is no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// What the person set does not work: a proxy, a certificate, a header.
    #[error("{reason}")]
    Setup { reason: Redacted },
    /// Nothing was sent.
    #[error("{reason}")]
    Unreachable { reason: Redacted },
    /// The connection ended before the answer did.
    #[error("the connection was lost: {reason}")]
    Dropped { reason: Redacted },
    #[error("no answer within {seconds} s")]
    TimedOut { seconds: u64 },
    #[error("cancelled")]
    Cancelled,
}

/// What is sent.
pub(super) struct Post<'a> {
    /// Below the endpoint.
    pub(super) path: &'a str,
    pub(super) headers: Vec<(&'static str, HeaderValue)>,
    /// JSON, made of redacted texts.
    pub(super) body: String,
    /// When the whole request has to be over, and how many seconds that were.
    pub(super) deadline: Instant,
    pub(super) seconds_max: u64,
}

/// What comes before the answer's body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
}

/// Whether the reader of an answer wants more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    More,
    Enough,
}

/// A client of one endpoint.
pub(crate) struct Http {
    settings: HttpSettings,
    running: OnceLock<Result<Running, Redacted>>,
}

struct Running {
    /// Taken when it ends.
    runtime: Option<Runtime>,
    client: Client,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A look-up of a name cannot be called off; it is not waited for.
            runtime.shutdown_timeout(CLOSE_WAIT);
        }
    }
}

impl Http {
    /// Nothing is opened before the first request.
    pub(crate) const fn new(settings: HttpSettings) -> Self {
        Self {
            settings,
            running: OnceLock::new(),
        }
    }

    /// The values of the person's own headers.
    pub(super) fn own_headers(&self) -> impl Iterator<Item = &Key> {
        self.settings.headers.iter().map(|(_, value)| value)
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.settings.endpoint
    }

    /// Sends `post` and hands each piece of the answer to `read`, until the
    /// answer ends or `read` has enough of it.
    ///
    /// # Errors
    ///
    /// [`HttpError`]; a status that tells of a failure is none.
    pub(super) fn post(
        &self,
        post: Post<'_>,
        meter: &dyn Meter,
        read: &mut dyn FnMut(&Head, &[u8]) -> Flow,
    ) -> Result<Head, HttpError> {
        let running = self.running.get_or_init(|| {
            start(&self.settings).map_err(|error| redact_str(&chain(error.as_ref())))
        });
        let running = running.as_ref().map_err(|reason| HttpError::Setup {
            reason: reason.clone(),
        })?;
        let runtime = (running.runtime.as_ref()).ok_or(HttpError::Cancelled)?;
        let mut request = running
            .client
            .post(self.settings.endpoint.join(post.path))
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        let request = request.body(post.body);
        let patience = Patience {
            meter,
            idle_max: Duration::from_secs(self.settings.idle_seconds_max),
            deadline: post.deadline,
            seconds_max: post.seconds_max,
        };
        runtime.block_on(exchange(request, &patience, read))
    }
}

/// Waits without a request; `false` when nobody wants to any more.
pub(super) fn wait(duration: Duration, meter: &dyn Meter) -> bool {
    let until = Instant::now() + duration;
    // Nobody sends: each wait for a message is a wait for its limit.
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    loop {
        if !meter.keep_going() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        never.recv_timeout(left.min(LOOK_EVERY)).ok();
    }
}

async fn exchange(
    request: reqwest::RequestBuilder,
    patience: &Patience<'_>,
    read: &mut dyn FnMut(&Head, &[u8]) -> Flow,
) -> Result<Head, HttpError> {
    let mut response = (patience.wait_for(request.send()).await?).map_err(send_error)?;
    let head = Head {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
    };
    loop {
        let piece = patience.wait_for(response.chunk()).await?;
        let Some(piece) = piece.map_err(|error| HttpError::Dropped {
            reason: words(error),
        })?
        else {
            return Ok(head);
        };
        if read(&head, &piece) == Flow::Enough {
            return Ok(head);
        }
    }
}

/// How long a request may take, and who may call it off.
struct Patience<'a> {
    meter: &'a dyn Meter,
    idle_max: Duration,
    deadline: Instant,
    seconds_max: u64,
}

impl Patience<'_> {
    /// Waits for the next sign of life.
    async fn wait_for<F: Future>(&self, future: F) -> Result<F::Output, HttpError> {
        let idle_until = Instant::now() + self.idle_max;
        let mut future = pin!(future);
        loop {
            if !self.meter.keep_going() {
                return Err(HttpError::Cancelled);
            }
            let now = Instant::now();
            if self.deadline <= now {
                let seconds = self.seconds_max;
                return Err(HttpError::TimedOut { seconds });
            }
            if idle_until <= now {
                let seconds = self.idle_max.as_secs();
                return Err(HttpError::TimedOut { seconds });
            }
            let until = idle_until.min(self.deadline).min(now + LOOK_EVERY);
            let until = tokio::time::Instant::from_std(until);
            if let Ok(output) = tokio::time::timeout_at(until, &mut future).await {
                return Ok(output);
            }
        }
    }
}

/// A failure before the head of the answer came.
fn send_error(error: reqwest::Error) -> HttpError {
    if error.is_builder() {
        let reason = words(error);
        return HttpError::Setup { reason };
    }
    if is_about_certificate(&error) {
        let reason = format!(
            "{}; name the certificate authority of the service in `model.ca_file`",
            words(error)
        );
        let reason = redact_str(&reason);
        return HttpError::Setup { reason };
    }
    if error.is_connect() {
        let reason = words(error);
        return HttpError::Unreachable { reason };
    }
    let reason = words(error);
    HttpError::Dropped { reason }
}

/// Whether the server's certificate was not accepted: asking again helps
/// nobody.
fn is_about_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>();
        let inner = inner.and_then(io::Error::get_ref);
        let tls = (inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()))
            .or_else(|| error.downcast_ref());
        if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// What went wrong, without the address, which the caller knows.
fn words(error: reqwest::Error) -> Redacted {
    redact_str(&chain(&error.without_url()))
}

/// The innermost cause says most; the outer ones say which step it was.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn start(settings: &HttpSettings) -> Result<Running, Box<dyn Error>> {
    // Process-wide, and the same from everywhere: which code does the sums.
    // An error says that it was set before.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .user_agent(concat!("memrev/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX))
        .default_headers(default_headers(&settings.headers)?)
        .no_proxy();
    if settings.endpoint.is_this_machine() {
        let loopback = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ];
        // Port 0 stands for the port of the URL.
        let loopback = loopback.map(|address| SocketAddr::new(address, 0));
        builder = builder.resolve_to_addrs("localhost", &loopback);
    } else if let Some(proxy) = &settings.proxy {
        let bypass = proxy.bypass.as_deref().and_then(NoProxy::from_string);
        builder = builder.proxy(Proxy::all(&proxy.url)?.no_proxy(bypass));
    }
    if let Some(path) = &settings.ca_file {
        let pem = fs::read_named(path, CA_BYTES_MAX)?;
        builder = builder.tls_certs_merge(Certificate::from_pem_bundle(&pem)?);
    } else if settings.endpoint.is_plain() {
        // No certificate is ever looked at: the system's are not read.
        builder = builder.tls_certs_only([]);
    }
    let client = builder.build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("memrev-http")
        .enable_all()
        .build()?;
    Ok(Running {
        runtime: Some(runtime),
        client,
    })
}

fn default_headers(headers: &[(String, Key)]) -> Result<HeaderMap, Box<dyn Error>> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_bytes(name.as_bytes())?, value.header());
    }
    Ok(map)
}
