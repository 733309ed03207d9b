//! What YAML may not hold, decided before a parser sees it.
//!
//! Aliases let a small file unfold into gigabytes, tags and merge keys make
//! two readers see two documents. A parsed value no longer shows them, so the
//! raw text is looked through.
//!
//! # Not in here
//!
//! No parsing. The check errs on the safe side: a line that only looks like
//! an anchor in the middle of a folded plain value is refused too, and quoting
//! the value mends it.

/// Bounds for one document. Lines inside block scalars (`key: |`) count only
/// towards `total_bytes_max`: they cost a parser no more than copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "bounds end in `max` here")]
pub(crate) struct YamlLimits {
    pub(crate) bytes_max: usize,
    pub(crate) lines_max: usize,
    pub(crate) total_bytes_max: usize,
}

impl YamlLimits {
    /// For headers and small files: 16 KiB, 200 lines, and 1 MiB with block
    /// scalars (raw memories are tens of kilobytes).
    pub(crate) const HEADER: Self = Self {
        bytes_max: 16 * 1024,
        lines_max: 200,
        total_bytes_max: 1024 * 1024,
    };
}

/// Why a YAML text is not given to the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum YamlRefusal {
    #[error("{bytes} bytes of YAML, {bytes_max} are allowed")]
    TooLong { bytes: usize, bytes_max: usize },
    #[error("{lines} lines of YAML, {lines_max} are allowed")]
    TooManyLines { lines: usize, lines_max: usize },
    /// `line_number` and `column_number` are 1-based, columns in characters.
    #[error("{what} is not allowed in YAML here")]
    Construct {
        what: &'static str,
        line_number: usize,
        column_number: usize,
    },
}

/// Looks `yaml` (without `---` fences) through.
pub(crate) fn check(yaml: &str, limits: YamlLimits) -> Result<(), YamlRefusal> {
    if limits.total_bytes_max < yaml.len() {
        return Err(YamlRefusal::TooLong {
            bytes: yaml.len(),
            bytes_max: limits.total_bytes_max,
        });
    }
    let mut guard = Guard::default();
    for (index, line) in yaml.lines().enumerate() {
        guard
            .line(line)
            .map_err(|(what, at)| YamlRefusal::Construct {
                what,
                line_number: index + 1,
                column_number: line[..at].chars().count() + 1,
            })?;
    }
    if limits.bytes_max < guard.bytes {
        return Err(YamlRefusal::TooLong {
            bytes: guard.bytes,
            bytes_max: limits.bytes_max,
        });
    }
    if limits.lines_max < guard.lines {
        return Err(YamlRefusal::TooManyLines {
            lines: guard.lines,
            lines_max: limits.lines_max,
        });
    }
    Ok(())
}

/// What the lexer remembers from line to line.
#[derive(Default)]
struct Guard {
    /// Bytes and lines outside of block scalars.
    bytes: usize,
    lines: usize,
    /// The quote of a value that goes on.
    quote: Option<u8>,
    /// How many `[` and `{` are open.
    flow_depth: usize,
    /// Indentation of the line that opened a block scalar.
    block_indent: Option<usize>,
}

type Offence = (&'static str, usize);

impl Guard {
    fn line(&mut self, line: &str) -> Result<(), Offence> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if let Some(parent) = self.block_indent {
            if line.trim().is_empty() || parent < indent {
                return Ok(());
            }
            self.block_indent = None;
        }
        self.bytes += line.len() + 1;
        self.lines += 1;
        self.tokens(line, indent)
    }

    fn tokens(&mut self, line: &str, indent: usize) -> Result<(), Offence> {
        let bytes = line.as_bytes();
        let mut at = indent;
        let mut begins_value = true;
        if self.quote.is_none() {
            check_line_start(line, indent)?;
        }
        while at < bytes.len() {
            let byte = bytes[at];
            if let Some(quote) = self.quote {
                at += self.inside_quotes(bytes, at, quote);
                begins_value = false;
                continue;
            }
            let next_is_blank = bytes.get(at + 1).is_none_or(|next| b" \t\r".contains(next));
            match byte {
                b' ' | b'\t' | b'\r' => {}
                b'#' if at == 0 || b" \t".contains(&bytes[at - 1]) => return Ok(()),
                b'&' if begins_value => return Err(("an anchor", at)),
                b'*' if begins_value => return Err(("an alias", at)),
                b'!' if begins_value => return Err(("a tag", at)),
                b'<' if begins_value && bytes[at..].starts_with(b"<<") => {
                    return Err(("a merge key", at));
                }
                b'"' | b'\'' if begins_value => self.quote = Some(byte),
                b'|' | b'>' if begins_value && self.flow_depth == 0 => {
                    return self.block(&line[at..], indent, at);
                }
                b'[' | b'{' if begins_value || 0 < self.flow_depth => {
                    self.flow_depth += 1;
                    begins_value = true;
                }
                b']' | b'}' if 0 < self.flow_depth => {
                    self.flow_depth -= 1;
                    begins_value = false;
                }
                b',' if 0 < self.flow_depth => begins_value = true,
                b'-' | b'?' if begins_value && next_is_blank => {}
                b':' if next_is_blank || 0 < self.flow_depth => begins_value = true,
                _ => begins_value = false,
            }
            at += 1;
        }
        Ok(())
    }

    /// How many bytes to go on inside a quoted value.
    fn inside_quotes(&mut self, bytes: &[u8], at: usize, quote: u8) -> usize {
        let next = bytes.get(at + 1);
        match bytes[at] {
            b'\\' if quote == b'"' => 2,
            b'\'' if quote == b'\'' && next == Some(&b'\'') => 2,
            byte if byte == quote => {
                self.quote = None;
                1
            }
            _ => 1,
        }
    }

    fn block(&mut self, rest: &str, indent: usize, at: usize) -> Result<(), Offence> {
        let head = rest[1..].split(" #").next().unwrap_or_default().trim();
        let is_head = head.len() <= 2 && head.bytes().all(|b| b"+-123456789".contains(&b));
        if !is_head {
            return Err(("a damaged block scalar", at));
        }
        self.block_indent = Some(indent);
        Ok(())
    }
}

fn check_line_start(line: &str, indent: usize) -> Result<(), Offence> {
    let starts = |mark: &str| indent == 0 && line.starts_with(mark);
    let is_separator = ["---", "..."].iter().any(|mark| {
        starts(mark) && line[3..].trim_start().len() != line[3..].len() || line == *mark
    });
    if is_separator {
        return Err(("a document separator", 0));
    }
    if starts("%") {
        return Err(("a directive", 0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{YamlLimits, YamlRefusal, check};

    #[test]
    fn dangerous_constructs_are_refused_and_lookalikes_are_not() {
        for (yaml, offence) in [
            ("a: &x b", Some(("an anchor", 1, 4))),
            ("a: *x", Some(("an alias", 1, 4))),
            ("k: v\nä: !foo x", Some(("a tag", 2, 4))),
            ("a: !!str x", Some(("a tag", 1, 4))),
            ("<<: x", Some(("a merge key", 1, 1))),
            ("a: {b: *x}", Some(("an alias", 1, 8))),
            ("a: [b, &x c]", Some(("an anchor", 1, 8))),
            ("- *x", Some(("an alias", 1, 3))),
            ("? *x", Some(("an alias", 1, 3))),
            ("a:\n  *x", Some(("an alias", 2, 3))),
            ("%YAML 1.1", Some(("a directive", 1, 1))),
            ("a: b\n---", Some(("a document separator", 2, 1))),
            ("a: |x", Some(("a damaged block scalar", 1, 4))),
            ("a: |\n  *x\n  &y\nb: *x", Some(("an alias", 4, 4))),
            ("a: 'it''s' # &x", None),
            ("a: this & that *here*! <<", None),
            ("a: \"*x \\\" *y\"", None),
            ("a: \"two\n  *lines\"", None),
            ("a: |2-\n  *x\n\n   !y\nb: c", None),
            ("a: >+\n  &x", None),
            ("url: https://e.org/*?a=b&c=!d", None),
            ("a: '---'", None),
        ] {
            let expected =
                offence.map(
                    |(what, line_number, column_number)| YamlRefusal::Construct {
                        what,
                        line_number,
                        column_number,
                    },
                );
            assert_eq!(check(yaml, YamlLimits::HEADER).err(), expected, "{yaml}");
        }
    }

    #[test]
    fn long_headers_are_refused_but_block_scalars_may_be_long() {
        let long = format!("a: {}", "x".repeat(17_000));
        assert!(check(&long, YamlLimits::HEADER).is_err());
        let many = "a: b\n".repeat(201);
        assert!(check(&many, YamlLimits::HEADER).is_err());
        let block = format!("a: |\n{}", "  text of a raw memory\n".repeat(3_000));
        assert_eq!(check(&block, YamlLimits::HEADER), Ok(()));
        let huge = format!("a: |\n  {}", "x".repeat(1024 * 1024));
        assert!(check(&huge, YamlLimits::HEADER).is_err());
    }
}
