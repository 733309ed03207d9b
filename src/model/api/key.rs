//! Keys: where they come from, and how they are kept out of everything else.

use reqwest::header::HeaderValue;
use serde_json::Value;

use crate::domain::endpoint::KeyPlace;
use crate::domain::text::Redacted;
use crate::sys::env::Variables;
use crate::sys::fs::{self, FsError};
use crate::text::redact::redact_str;

/// Largest key file, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// Shortest key of a service elsewhere, in bytes; real ones have 20 and more.
/// Servers on this machine take any word for a key, and what is shorter than
/// this is no secret: it may stand in any text.
const KEY_BYTES_MIN: usize = 8;

/// Something that grants access. It cannot be printed, compared or cloned; it
/// becomes a header that is marked as not to be shown, and nothing else.
pub(crate) struct Key(HeaderValue);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("the variable `{name}` is not set")]
    NotSet { name: Redacted },
    #[error("{place} holds no key")]
    Empty { place: KeyPlace },
    /// A line end within it, or another control character.
    #[error("what {place} holds cannot be a key")]
    NoKey { place: KeyPlace },
    #[error("what {place} holds is shorter than {KEY_BYTES_MIN} bytes: that is no key")]
    TooShort { place: KeyPlace },
    #[error("the key cannot be read")]
    Unreadable(#[source] FsError),
}

impl Key {
    /// Fetches the key from its place. White space around it does not count.
    /// `may_be_short` is for servers on this machine.
    ///
    /// # Errors
    ///
    /// [`KeyError`], which never repeats what was found.
    pub(crate) fn fetch(
        place: &KeyPlace,
        variables: &Variables,
        may_be_short: bool,
    ) -> Result<Self, KeyError> {
        let text = match place {
            KeyPlace::Variable(name) => {
                let name_shown = || redact_str(name);
                (variables.text(name))
                    .map(str::to_owned)
                    .ok_or_else(|| KeyError::NotSet { name: name_shown() })?
            }
            KeyPlace::File(path) => {
                let bytes = fs::read_named(path, FILE_BYTES_MAX).map_err(KeyError::Unreadable)?;
                let no_key = |_| KeyError::NoKey {
                    place: place.clone(),
                };
                String::from_utf8(bytes).map_err(no_key)?
            }
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty {
                place: place.clone(),
            });
        }
        if text.len() < KEY_BYTES_MIN && !may_be_short {
            return Err(KeyError::TooShort {
                place: place.clone(),
            });
        }
        Self::new(text).ok_or_else(|| KeyError::NoKey {
            place: place.clone(),
        })
    }

    /// Wraps what came from the environment; `None` when no header can hold it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// The key alone as the value of a header.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The key as a bearer token.
    pub(super) fn bearer(&self) -> HeaderValue {
        let bytes = [b"Bearer ", self.0.as_bytes()].concat();
        let mut value = HeaderValue::from_bytes(&bytes)
            .expect("a header's value stays one behind a word and a space");
        value.set_sensitive(true);
        value
    }

    /// Wraps what the configuration holds in the open: it is no secret.
    pub(crate) fn open(text: &str) -> Option<Self> {
        HeaderValue::from_str(text).ok().map(Self)
    }
}

/// What is sent and must not come back: the key, and headers from variables.
/// It cannot be printed, and only takes things out of texts.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn of<'k>(keys: impl Iterator<Item = &'k Key>) -> Self {
        let secret = keys.filter(|key| key.0.is_sensitive());
        let mut all: Vec<String> = secret
            .filter_map(|key| key.0.to_str().ok())
            // Services also repeat what stands behind `Bearer`.
            .flat_map(|value| value.split_whitespace().chain([value]))
            .filter(|part| KEY_BYTES_MIN <= part.len())
            .map(str::to_owned)
            .collect();
        // A longer one may hold a shorter one.
        all.sort_by_key(|part| std::cmp::Reverse(part.len()));
        Self(all)
    }

    /// `text` without them, for the words of services. What is too short to
    /// be a secret would only garble these.
    pub(super) fn hide_in(&self, text: &str) -> String {
        (self.0.iter()).fold(text.to_owned(), |text, secret| {
            text.replace(secret.as_str(), "[redacted:key]")
        })
    }

    /// The same in all texts of an answer, before anybody reads it.
    pub(super) fn hide_in_json(&self, json: &mut Value) {
        match json {
            _ if self.0.is_empty() => {}
            Value::String(text) => *text = self.hide_in(text),
            Value::Array(all) => all.iter_mut().for_each(|one| self.hide_in_json(one)),
            Value::Object(all) => all.values_mut().for_each(|one| self.hide_in_json(one)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Secrets};

    #[test]
    fn a_word_that_is_no_secret_garbles_no_message() {
        for (key, text, expected) in [
            (
                "abcdefgh",
                "the key abcdefgh is unknown",
                "the key [redacted:key] is unknown",
            ),
            ("none", "none of the models", "none of the models"),
            ("e", "see the docs", "see the docs"),
        ] {
            let key = Key::new(key).unwrap();
            assert_eq!(Secrets::of([&key].into_iter()).hide_in(text), expected);
        }
    }

    #[test]
    fn headers_from_variables_are_hidden_and_open_ones_are_not() {
        let keys = [
            Key::new("abcdefgh").unwrap(),
            Key::new("Bearer abcdefghij").unwrap(),
            Key::open("production").unwrap(),
        ];
        let mut json =
            serde_json::json!({"error": ["abcdefghij of production", {"at": "abcdefgh"}]});
        Secrets::of(keys.iter()).hide_in_json(&mut json);
        let expected = serde_json::json!({"error": ["[redacted:key] of production", {"at": "[redacted:key]"}]});
        assert_eq!(json, expected);
    }
}
