//! Server-sent events: the stream in which services send an answer.
//!
//! # Source
//!
//! The HTML standard, "Interpreting an event stream". The end of a line is
//! CR, LF or both; an event ends with an empty line; a last one without it
//! does not count.

/// Largest single event, in bytes. The last one of a stream may repeat the
/// whole answer.
pub(super) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Cuts a stream of bytes, in whatever pieces it comes, into the data of its
/// events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The line that has begun.
    line: Vec<u8>,
    /// Lines of data of the event that has begun.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a CR: a LF right after it belongs to it.
    after_cr: bool,
    is_past_start: bool,
}

/// An event has more than [`EVENT_BYTES_MAX`] bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Events {
    /// Takes the next piece; gives the data of each event that it completes.
    /// The names of events are not looked at: every service repeats them in
    /// the data.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLarge> {
        let mut complete = Vec::new();
        for byte in piece {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    complete.extend(self.end_line());
                }
                byte => {
                    self.after_cr = false;
                    self.line.push(*byte);
                    if EVENT_BYTES_MAX < self.line.len().saturating_add(self.data.len()) {
                        return Err(TooLarge);
                    }
                }
            }
        }
        Ok(complete)
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.is_past_start {
            self.is_past_start = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let has_data = std::mem::take(&mut self.has_data);
            return has_data.then(|| String::from_utf8_lossy(&data).into_owned());
        }
        if let Some(value) = line.strip_prefix(b"data") {
            let value = match value {
                [] => value,
                [b':', b' ', value @ ..] | [b':', value @ ..] => value,
                // Another field whose name begins so.
                _ => return None,
            };
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop};
    use proptest::{prop_assert_eq, proptest};

    use super::{EVENT_BYTES_MAX, Events, TooLarge};

    #[track_caller]
    fn check(stream: &str, expected: &[&str]) {
        let whole = Events::default().feed(stream.as_bytes()).unwrap();
        assert_eq!(whole, expected, "{stream:?}");
        let mut events = Events::default();
        let bytewise = stream.as_bytes().chunks(1);
        let bytewise: Vec<String> = bytewise.flat_map(|b| events.feed(b).unwrap()).collect();
        assert_eq!(bytewise, expected, "{stream:?} byte by byte");
    }

    #[test]
    fn events_end_with_an_empty_line_of_any_kind() {
        check("data: a\n\ndata: b\r\n\r\ndata: c\r\r", &["a", "b", "c"]);
        check("data: a\n\ndata: not whole\n", &["a"]);
        check("data: a\n\n\n\n", &["a"]);
    }

    #[test]
    fn several_lines_of_data_are_one() {
        check(
            "data: {\ndata:  \"a\": 1\ndata\ndata:}\n\n",
            &["{\n \"a\": 1\n\n}"],
        );
    }

    #[test]
    fn comments_names_and_other_fields_are_passed_over() {
        check(
            "\u{feff}: ping\n\nevent: x\nid: 1\nretry: 5\ndata: [DONE]\n\ndatabase: 1\n\n",
            &["[DONE]"],
        );
    }

    #[test]
    fn an_endless_event_is_given_up() {
        let mut events = Events::default();
        events.feed(b"data: ").unwrap();
        let piece = vec![b'x'; EVENT_BYTES_MAX];
        assert_eq!(events.feed(&piece), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn cuts_of_the_stream_do_not_matter(
            bytes in prop::collection::vec(prop::sample::select(b"dat: \r\n\xc3\xa9{}".to_vec()), 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = Events::default().feed(&bytes).unwrap();
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            let mut events = Events::default();
            let mut pieces = events.feed(first).unwrap();
            pieces.extend(events.feed(second).unwrap());
            prop_assert_eq!(pieces, whole);
        }
    }
}
