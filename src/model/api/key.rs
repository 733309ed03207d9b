//! Keys: where they come from, and how they are kept out of everything else.

use reqwest::header::HeaderValue;

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

    /// `text` without the key: for the words of services that repeat it. One
    /// too short to be a secret would only garble them.
    pub(super) fn hide_in(&self, text: &str) -> String {
        match self.0.to_str() {
            Ok(key) if KEY_BYTES_MIN <= key.len() => text.replace(key, "[redacted:key]"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

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
            assert_eq!(Key::new(key).unwrap().hide_in(text), expected);
        }
    }
}
