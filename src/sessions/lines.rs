//! Lines of a transcript, without ever holding a whole file or a huge line.
//!
//! A line of ordinary length is handed out as it is. A longer one is shortened
//! while it streams by: the middle of its long JSON strings is left out, at
//! borders of characters and escapes, so that what remains is valid JSON. An
//! inline image of 40 MB costs as much as its first and last few kilobytes.
//!
//! # Limits
//!
//! [`LINE_WHOLE_BYTES_MAX`] and [`LINE_KEPT_BYTES_MAX`]; one reader holds both
//! and a chunk.

use std::io::{self, Read};

use crate::sessions::elide::Elider;

/// Longest line that is handed out unshortened, in bytes. Of 111,710 real
/// lines the longest without an image had 961 KB.
pub(super) const LINE_WHOLE_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes kept of a longer line.
pub(super) const LINE_KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes asked from the file at once; the first time little, since a head is
/// often all that is wanted.
const CHUNK_BYTES: usize = 256 * 1024;
const FIRST_CHUNK_BYTES: usize = 32 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// 1-based.
    pub(super) number: u64,
    pub(super) bytes: &'a [u8],
    /// Length in the file, when it was shortened.
    pub(super) shortened_from: Option<u64>,
    /// It could not be shortened to the limit; `bytes` is only its beginning.
    pub(super) is_lost: bool,
    /// It ended in a line feed, so nobody is still writing it.
    pub(super) is_ended: bool,
}

/// Hands out the lines of `source` one by one.
pub(super) struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    number: u64,
    at_end: bool,
    /// Bytes from `start` that are known to hold no line feed.
    searched: usize,
    elider: Elider,
}

impl<R: Read> LineReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            buffer: vec![0; FIRST_CHUNK_BYTES],
            start: 0,
            end: 0,
            number: 0,
            at_end: false,
            searched: 0,
            elider: Elider::new(LINE_KEPT_BYTES_MAX),
        }
    }

    /// Lines handed out so far.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line, or `None` after the last.
    ///
    /// # Errors
    ///
    /// When the source cannot be read further. Lines before that stand.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let unsearched = &self.buffer[self.start + self.searched..self.end];
            if let Some(offset) = memchr::memchr(b'\n', unsearched) {
                let from = self.start;
                let to = from + self.searched + offset;
                self.start = to + 1;
                return Ok(Some(self.whole(from, to, true)));
            }
            self.searched = self.end - self.start;
            if self.searched > LINE_WHOLE_BYTES_MAX {
                return self.next_shortened().map(Some);
            }
            if !self.fill()? {
                let (from, to) = (self.start, self.end);
                self.start = to;
                return Ok((from < to).then(|| self.whole(from, to, false)));
            }
        }
    }

    fn whole(&mut self, from: usize, to: usize, is_ended: bool) -> Line<'_> {
        self.number += 1;
        self.searched = 0;
        Line {
            number: self.number,
            bytes: &self.buffer[from..to],
            shortened_from: None,
            is_lost: false,
            is_ended,
        }
    }

    /// Streams the rest of the line through the elider.
    fn next_shortened(&mut self) -> io::Result<Line<'_>> {
        self.elider.begin();
        let is_ended = loop {
            let held = &self.buffer[self.start..self.end];
            let line_end = memchr::memchr(b'\n', held);
            let taken = line_end.unwrap_or(held.len());
            self.elider.push(&held[..taken]);
            if line_end.is_some() {
                self.start += taken + 1;
                break true;
            }
            self.start = 0;
            self.end = 0;
            self.searched = 0;
            if !self.fill()? {
                break false;
            }
        };
        self.number += 1;
        self.searched = 0;
        let kept = self.elider.finish();
        Ok(Line {
            number: self.number,
            bytes: kept.bytes,
            shortened_from: Some(kept.bytes_seen),
            is_lost: kept.is_lost,
            is_ended,
        })
    }

    /// Reads one more chunk behind `end`; `false` at the end of the source.
    fn fill(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let is_first = self.number == 0 && self.end == 0;
        let wanted = if is_first {
            FIRST_CHUNK_BYTES
        } else {
            CHUNK_BYTES
        };
        if self.buffer.len() - self.end < wanted {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() - self.end < wanted {
                let grown = (self.buffer.len() * 2).max(self.end + wanted);
                self.buffer.resize(grown, 0);
            }
        }
        let room = &mut self.buffer[self.end..self.end + wanted];
        let count = loop {
            match self.source.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += count;
        self.at_end = count == 0;
        Ok(count > 0)
    }
}
