//! Where a service is asked: a URL that may be sent text, and a key's place.

use std::fmt;
use std::path::PathBuf;

use url::{Host, Url};

/// The address that a back end's paths are added to, such as
/// `https://api.openai.com/v1`. Plain HTTP is only ever to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint(Url);

/// Why an address cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("it is no URL")]
    NoUrl,
    #[error("it must begin with `https://`, or with `http://` for this machine")]
    Scheme,
    #[error("plain `http://` is for this machine alone: text would travel unsealed")]
    PlainHttp,
    #[error("it holds a user or password, which do not belong into a file of settings")]
    Credentials,
    #[error("it has a query or fragment, which may hold a key")]
    Query,
}

impl Endpoint {
    /// Reads an address of `http` or `https`.
    ///
    /// # Errors
    ///
    /// [`EndpointError`].
    pub(crate) fn parse(text: &str) -> Result<Self, EndpointError> {
        let url = Url::parse(text.trim()).map_err(|_| EndpointError::NoUrl)?;
        let scheme = url.scheme();
        if !matches!(scheme, "http" | "https") {
            return Err(EndpointError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(EndpointError::Query);
        }
        let endpoint = Self(url);
        if scheme_is_plain(&endpoint.0) && !endpoint.is_this_machine() {
            return Err(EndpointError::PlainHttp);
        }
        Ok(endpoint)
    }

    /// Whether it names the loopback interface: 127.0.0.0/8, `::1`, `localhost`.
    pub(crate) fn is_this_machine(&self) -> bool {
        match self.0.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            None => false,
        }
    }

    /// Whether nothing seals what travels.
    pub(crate) fn is_plain(&self) -> bool {
        scheme_is_plain(&self.0)
    }

    /// The address of `path` below it.
    pub(crate) fn join(&self, path: &str) -> String {
        let base = self.0.as_str().trim_end_matches('/');
        format!("{base}/{}", path.trim_start_matches('/'))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

fn scheme_is_plain(url: &Url) -> bool {
    url.scheme() == "http"
}

/// Where a key is found. The key itself is never in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// The name of an environment variable.
    Variable(String),
    File(PathBuf),
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable `{name}`"),
            Self::File(path) => write!(f, "the file `{}`", path.display()),
        }
    }
}

/// Longest name of an environment variable that is taken for one, in bytes:
/// longer ones are rather a key in the wrong place.
const VARIABLE_BYTES_MAX: usize = 64;

/// Whether `text` can be the name of an environment variable.
pub(crate) fn is_variable_name(text: &str) -> bool {
    let begins = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    text.len() <= VARIABLE_BYTES_MAX
        && text.bytes().next().is_some_and(begins)
        && (text.bytes()).all(|byte| begins(byte) || byte.is_ascii_digit())
}

/// A header that a person wants to have sent: `Name: value`, or
/// `Name: $VARIABLE` for what is nobody else's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// In lower case.
    pub(crate) name: String,
    pub(crate) value: HeaderValue,
}

/// Where a header's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderValue {
    Text(String),
    /// The name of an environment variable.
    Variable(String),
}

/// Headers that are keys by their name.
const KEY_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
];

/// Headers that are ours to set.
const OWN_HEADERS: &[&str] = &[
    "host",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept-encoding",
];

impl Header {
    /// Reads a line of the configuration.
    ///
    /// # Errors
    ///
    /// What is wrong with it, without its value.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let (name, value) = (line.split_once(':')).ok_or("it must be `Name: value`")?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err("it must begin with a name of letters, digits and hyphens".to_owned());
        }
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(format!("`{name}` is not yours to set"));
        }
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte);
        if value.is_empty() || !value.bytes().all(is_plain) {
            return Err(format!("`{name}` needs a value of plain characters"));
        }
        let value = match value.strip_prefix('$') {
            Some(variable) if is_variable_name(variable) => {
                HeaderValue::Variable(variable.to_owned())
            }
            _ if KEY_HEADERS.contains(&name.as_str()) => {
                return Err(format!(
                    "`{name}` is a key: name a variable that holds it, `{name}: $VARIABLE`"
                ));
            }
            _ => HeaderValue::Text(value.to_owned()),
        };
        Ok(Self { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, EndpointError, Header, HeaderValue, is_variable_name};

    #[track_caller]
    fn check(text: &str, expected: Result<bool, EndpointError>) {
        let read = Endpoint::parse(text).map(|endpoint| endpoint.is_this_machine());
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for here in [
            "http://localhost:11434/v1",
            "http://LOCALHOST",
            "http://127.0.0.1:8080",
            "http://127.9.9.9",
            "http://127.1/",
            "http://0x7f000001/",
            "http://[::1]:8080/v1",
            "https://localhost",
        ] {
            check(here, Ok(true));
        }
        for elsewhere in [
            "http://api.example.com/v1",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://0.0.0.0:80",
            "http://10.0.0.1",
            "http://[::]/",
            "http://[::ffff:10.0.0.1]/",
            "http://example.com#@localhost",
        ] {
            let error = Endpoint::parse(elsewhere).unwrap_err();
            let expected = [EndpointError::PlainHttp, EndpointError::Query];
            assert!(expected.contains(&error), "{elsewhere}: {error}");
        }
        check("https://api.example.com/v1", Ok(false));
    }

    #[test]
    fn what_could_hide_a_key_or_another_host_is_no_endpoint() {
        check(
            "http://localhost@example.com",
            Err(EndpointError::Credentials),
        );
        check(
            "https://user:pass@example.com",
            Err(EndpointError::Credentials),
        );
        check("https://example.com/v1?k=1", Err(EndpointError::Query));
        check("ftp://localhost", Err(EndpointError::Scheme));
        check("file:///etc/passwd", Err(EndpointError::Scheme));
        check("localhost:11434", Err(EndpointError::Scheme));
        check("api.example.com", Err(EndpointError::NoUrl));
    }

    #[test]
    fn paths_are_added_below_the_address() {
        for base in ["https://example.com/v1", "https://example.com/v1/"] {
            let endpoint = Endpoint::parse(base).unwrap();
            assert_eq!(endpoint.join("/chat"), "https://example.com/v1/chat");
        }
    }

    #[test]
    fn a_key_is_no_name_of_a_variable() {
        assert!(is_variable_name("OPENAI_API_KEY"));
        assert!(is_variable_name("_k2"));
        let long = "K".repeat(65);
        for no in ["", "2K", "a-b", "a b", "schlüssel", long.as_str()] {
            assert!(!is_variable_name(no), "{no}");
        }
    }

    #[test]
    fn a_header_that_is_a_key_names_a_variable() {
        let read = |line: &str| Header::parse(line);
        assert_eq!(
            read("X-Team: 7 b"),
            Ok(Header {
                name: "x-team".to_owned(),
                value: HeaderValue::Text("7 b".to_owned()),
            })
        );
        assert_eq!(
            read("API-Key: $MY_KEY"),
            Ok(Header {
                name: "api-key".to_owned(),
                value: HeaderValue::Variable("MY_KEY".to_owned()),
            })
        );
        for (line, words) in [
            ("Authorization: Bearer abc", "`authorization` is a key"),
            ("api-key: abc", "$VARIABLE"),
            ("Host: example.com", "not yours"),
            ("no colon", "`Name: value`"),
            ("a b: c", "letters"),
            ("x-a:", "needs a value"),
            ("x-a: b\r\nx-c: d", "plain characters"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
            assert!(!error.contains("abc"), "{error}");
        }
    }
}
