//! Names of things, each its own type.

use std::fmt;

/// Longest thread id taken from a transcript, in bytes. Real ones have 36.
pub(crate) const THREAD_ID_BYTES_MAX: usize = 128;

/// The identity of a session, as its agent gave it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ThreadId(String);

impl ThreadId {
    /// Takes an id that can stand in file names, headers and citations:
    /// 1 to 128 bytes of ASCII letters, digits, `-`, `_`, `.` and `:`, not
    /// starting with a dot.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let fits = !text.is_empty() && text.len() <= THREAD_ID_BYTES_MAX;
        (fits && !text.starts_with('.') && text.bytes().all(allowed)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One consolidation attempt; names its staging folder and its trailer.
/// Sorts by time: `20261201T053344-1f3a9c`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(String);

impl RunId {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name Git gives an object: a SHA-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId([u8; 20]);

impl ObjectId {
    pub(crate) const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Reads 40 hexadecimal digits.
    pub(crate) fn parse(hex: &str) -> Option<Self> {
        if hex.len() != 40 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 20];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[index * 2..index * 2 + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The first ten digits, as people see them.
    pub(crate) fn short(&self) -> String {
        self.to_string()[..10].to_owned()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{ObjectId, ThreadId};

    #[test]
    fn thread_ids_cannot_name_paths_or_break_lines() {
        for (text, taken) in [
            ("0194f5a6-89ab-7cde-8123-456789abcdef", true),
            ("agent_1.2:3", true),
            ("", false),
            ("../x", false),
            ("..", false),
            ("a/b", false),
            ("a\nb", false),
            ("é", false),
        ] {
            assert_eq!(ThreadId::parse(text).is_some(), taken, "{text:?}");
        }
    }

    #[test]
    fn object_ids_round_trip() {
        let hex = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        assert_eq!(ObjectId::parse(hex).unwrap().to_string(), hex);
        assert_eq!(ObjectId::parse("xyz"), None);
        assert_eq!(ObjectId::parse(&"+f".repeat(20)), None);
    }
}
