//! Leaves out the middle of long JSON strings while bytes stream by.
//!
//! What comes out is valid JSON when what went in was: cuts lie between
//! characters and never inside an escape or a surrogate pair. Each string may
//! use a share of what is left of the limit, so many long strings get ever
//! shorter ends instead of the last ones being lost.

/// Longest beginning kept of a string in a shortened line, in bytes; the kept
/// end has between half and all of that.
const STRING_END_BYTES_MAX: usize = 64 * 1024;

/// A string may use one part in so many of the room left, at each end.
const ROOM_SHARE: usize = 16;

/// Room for what stands outside of strings, in bytes.
const STRUCTURE_BYTES_MIN: usize = 64 * 1024;

/// What remains of a line.
pub(super) struct Kept<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) bytes_seen: u64,
    /// More stood outside of strings than fits: `bytes` is no whole record.
    pub(super) is_lost: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    /// In a string, at a border between units.
    Inside,
    /// After a backslash.
    Escape,
    /// In `\uXXXX`, so many digits still to come.
    Digits(u8),
}

pub(super) struct Elider {
    kept_bytes_max: usize,
    kept: Vec<u8>,
    state: State,
    /// Bytes kept of the current string, and how many it may have.
    head_bytes: usize,
    head_bytes_max: usize,
    /// Blocks of the string's end, each beginning at a border. The older one
    /// is dropped when the newer is full.
    older: Vec<u8>,
    newer: Vec<u8>,
    is_past_head: bool,
    dropped: u64,
    seen: u64,
    is_lost: bool,
    /// The last escape was the first half of a surrogate pair.
    after_high: bool,
    digits: u32,
}

impl Elider {
    pub(super) fn new(kept_bytes_max: usize) -> Self {
        Self {
            kept_bytes_max,
            kept: Vec::new(),
            state: State::Outside,
            head_bytes: 0,
            head_bytes_max: 0,
            older: Vec::new(),
            newer: Vec::new(),
            is_past_head: false,
            dropped: 0,
            seen: 0,
            is_lost: false,
            after_high: false,
            digits: 0,
        }
    }

    /// Forgets the last line.
    pub(super) fn begin(&mut self) {
        self.kept.clear();
        self.state = State::Outside;
        self.seen = 0;
        self.is_lost = false;
        self.end_string();
    }

    /// Takes the next bytes of the line.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            if self.is_lost {
                return;
            }
            let taken = match self.state {
                State::Outside => self.push_outside(rest),
                State::Inside => self.push_inside(rest),
                State::Escape => {
                    self.state = if byte == b'u' {
                        self.digits = 0;
                        State::Digits(4)
                    } else {
                        self.after_high = false;
                        State::Inside
                    };
                    self.keep(&rest[..1]);
                    1
                }
                State::Digits(left) => {
                    self.push_digit(byte, left);
                    self.keep(&rest[..1]);
                    1
                }
            };
            rest = &rest[taken..];
        }
    }

    /// The line as far as it is kept.
    pub(super) fn finish(&mut self) -> Kept<'_> {
        if self.state != State::Outside {
            // Unfinished inside a string: what follows is no JSON anyway.
            self.close_string();
        }
        self.state = State::Outside;
        Kept {
            bytes: &self.kept,
            bytes_seen: self.seen,
            is_lost: self.is_lost,
        }
    }

    fn push_outside(&mut self, rest: &[u8]) -> usize {
        let quote = memchr::memchr(b'"', rest);
        let taken = quote.map_or(rest.len(), |at| at + 1);
        if self.kept.len() + taken > self.kept_bytes_max {
            self.is_lost = true;
            return rest.len();
        }
        self.kept.extend_from_slice(&rest[..taken]);
        if quote.is_some() {
            self.begin_string();
        }
        taken
    }

    fn push_inside(&mut self, rest: &[u8]) -> usize {
        match rest[0] {
            b'"' => {
                self.close_string();
                self.kept.push(b'"');
                self.state = State::Outside;
                1
            }
            b'\\' => {
                if !self.after_high {
                    self.at_border();
                }
                self.state = State::Escape;
                self.keep(&rest[..1]);
                1
            }
            _ => self.push_plain(rest),
        }
    }

    /// A run without quotes and escapes.
    fn push_plain(&mut self, rest: &[u8]) -> usize {
        self.after_high = false;
        let run = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if is_border(rest[0]) {
            self.at_border();
        }
        // As much as fits the current block; then up to the next border.
        let room = if self.is_past_head {
            self.block_bytes_max().saturating_sub(self.newer.len())
        } else {
            self.head_bytes_max.saturating_sub(self.head_bytes)
        };
        let mut taken = run.min(room.max(1));
        while taken < run && !is_border(rest[taken]) {
            taken += 1;
        }
        self.keep(&rest[..taken]);
        taken
    }

    fn push_digit(&mut self, byte: u8, left: u8) {
        let digit = char::from(byte).to_digit(16).unwrap_or(0);
        self.digits = self.digits * 16 + digit;
        if left > 1 {
            self.state = State::Digits(left - 1);
            return;
        }
        self.after_high = (0xD800..0xDC00).contains(&self.digits);
        self.state = State::Inside;
    }

    fn begin_string(&mut self) {
        self.end_string();
        self.state = State::Inside;
        let room = self.kept_bytes_max.saturating_sub(self.kept.len());
        let room = room.saturating_sub(STRUCTURE_BYTES_MIN);
        self.head_bytes_max = (room / ROOM_SHARE).min(STRING_END_BYTES_MAX);
    }

    /// A cut may lie here: moves on to the next block when this one is full.
    fn at_border(&mut self) {
        if !self.is_past_head {
            self.is_past_head = self.head_bytes >= self.head_bytes_max;
        } else if self.newer.len() >= self.block_bytes_max() {
            self.dropped += self.older.len() as u64;
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
    }

    fn block_bytes_max(&self) -> usize {
        (self.head_bytes_max / 2).max(16)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_past_head {
            self.newer.extend_from_slice(bytes);
        } else {
            self.kept.extend_from_slice(bytes);
            self.head_bytes += bytes.len();
        }
    }

    fn close_string(&mut self) {
        if self.dropped > 0 {
            let marker = format!("[... {} bytes left out ...]", self.dropped);
            self.kept.extend_from_slice(marker.as_bytes());
        }
        let (older, newer) = (
            std::mem::take(&mut self.older),
            std::mem::take(&mut self.newer),
        );
        self.kept.extend_from_slice(&older);
        self.kept.extend_from_slice(&newer);
        (self.older, self.newer) = (older, newer);
        self.end_string();
    }

    fn end_string(&mut self) {
        self.older.clear();
        self.newer.clear();
        self.head_bytes = 0;
        self.is_past_head = false;
        self.dropped = 0;
        self.after_high = false;
    }
}

/// Whether a character begins with this byte.
fn is_border(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}
