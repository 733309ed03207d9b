//! Words for a person: results to stdout, talk to stderr, exit codes.

use std::fmt::{self, Write as _};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::service::causes;
use crate::sys::interrupt;
use crate::text::terminal;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// What the program ends with; the table is part of `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// The person can fix it.
    Refused,
    /// Wrong arguments.
    Usage,
    /// A lease or lock is held, or was lost: try later.
    Busy,
    /// The back end is unreachable, limited or of no use.
    Model,
    /// An invariant broke.
    Bug,
    /// A signal asked us to stop.
    Stopped,
}

impl Class {
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Refused => 1,
            Self::Usage => 2,
            Self::Busy => 3,
            Self::Model => 4,
            Self::Bug => 70,
            Self::Stopped => interrupt::EXIT_CODE,
        }
    }
}

/// The table of exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, nothing to do or deferred; 1 refused, you can fix it; 2 usage;
3 busy, try later; 4 model; 70 a bug in memrev; 130 stopped by a signal";

/// Why a command did not do what was asked, ready to be shown.
#[derive(Debug)]
pub(crate) struct Failure {
    class: Class,
    message: String,
    /// What it was doing, and what came below, outermost first.
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// The message and causes of an error and all its sources.
    pub(crate) fn of(class: Class, error: &dyn std::error::Error) -> Self {
        Self {
            causes: causes(error),
            ..Self::new(class, error.to_string())
        }
    }

    pub(crate) fn refused(error: &dyn std::error::Error) -> Self {
        Self::of(Class::Refused, error)
    }

    /// One concrete next step.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// One more line below the message: on what, in which state.
    #[must_use]
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Another failure of the same command, told below this one.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.causes.push(other.message);
        self.causes.extend(other.causes);
        self.hint = self.hint.or(other.hint);
        self
    }

    pub(crate) const fn class(&self) -> Class {
        self.class
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{ERROR}error:{ERROR:#} {}",
            terminal::safe(&self.message)
        )?;
        for cause in &self.causes {
            writeln!(f, "  {}", terminal::safe(cause))?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "{HINT}hint:{HINT:#} {}", terminal::safe(hint))?;
        }
        Ok(())
    }
}

/// Where output goes. Data is for stdout and can be piped; talk is for stderr.
///
/// A reader that went away (`memrev log | head`) is no failure: what comes
/// after is dropped.
#[derive(Debug, Default)]
pub(crate) struct Printer;

#[expect(
    clippy::unused_self,
    reason = "who may print is handed a printer; it has no state yet"
)]
impl Printer {
    /// A line of data. Control characters are taken out.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        writeln!(anstream::stdout(), "{}", terminal::safe(text.as_ref())).ok();
    }

    /// A line of a unified diff: red and green on a terminal.
    pub(crate) fn diff_line(&self, line: &str) {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', ..] => Style::new().bold(),
            [b'+', ..] => AnsiColor::Green.on_default(),
            [b'-', ..] => AnsiColor::Red.on_default(),
            [b'@', ..] => AnsiColor::Cyan.on_default(),
            _ => Style::new(),
        };
        let line = terminal::safe(line);
        writeln!(anstream::stdout(), "{style}{line}{style:#}").ok();
    }

    /// Text that may be styled by us and holds nothing foreign unescaped.
    pub(crate) fn raw(&self, text: &str) {
        write!(anstream::stdout(), "{text}").ok();
    }

    /// A JSON document and a line end.
    pub(crate) fn json<T: serde::Serialize>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| {
            Failure::new(Class::Bug, format!("could not print JSON: {error}"))
                .hint("please report this")
        })?;
        writeln!(anstream::stdout(), "{text}").ok();
        Ok(())
    }

    /// Something the person should know while the command goes on.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        let text = terminal::safe(text.as_ref());
        writeln!(anstream::stderr(), "{}{text}", line_start()).ok();
    }

    /// What is going on, on a terminal; the next words take its place.
    pub(crate) fn progress(&self, text: impl AsRef<str>) {
        if std::io::stderr().is_terminal() {
            let text = terminal::safe(text.as_ref());
            write!(anstream::stderr(), "{}{text}", line_start()).ok();
            anstream::stderr().flush().ok();
        }
    }

    /// Takes the last [`Printer::progress`] away, before data is printed.
    pub(crate) fn progress_end(&self) {
        write!(anstream::stderr(), "{}", line_start()).ok();
    }

    /// Something odd that did not stop the command.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        let text = terminal::safe(text.as_ref());
        writeln!(
            anstream::stderr(),
            "{}{WARNING}warning:{WARNING:#} {text}",
            line_start()
        )
        .ok();
    }

    /// One next step.
    pub(crate) fn hint(&self, text: impl AsRef<str>) {
        let text = terminal::safe(text.as_ref());
        writeln!(
            anstream::stderr(),
            "{}{HINT}hint:{HINT:#} {text}",
            line_start()
        )
        .ok();
    }

    /// The end of the program.
    pub(crate) fn end(&self, outcome: Result<(), Failure>) -> ExitCode {
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                write!(anstream::stderr(), "{}{failure}", line_start()).ok();
                ExitCode::from(failure.class().exit_code())
            }
        }
    }
}

/// Where a line of talk begins: on a terminal it takes the place of what told
/// of the progress.
fn line_start() -> &'static str {
    if std::io::stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    }
}

/// `1 recap`, `2 recaps`: a number and its noun.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// Columns of left-aligned cells, two blanks between, no blanks at line ends.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(index) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:width$}  ").ok();
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Class, Failure, columns, counted};

    #[test]
    fn exit_codes_are_what_the_table_says() {
        let codes = [
            Class::Refused,
            Class::Usage,
            Class::Busy,
            Class::Model,
            Class::Bug,
        ];
        assert_eq!(codes.map(Class::exit_code), [1, 2, 3, 4, 70]);
    }

    #[test]
    fn a_failure_says_what_on_what_and_what_next() {
        let failure = Failure::new(Class::Busy, "the lease is held")
            .cause("while publishing to `/m`")
            .hint("try later");
        let text = anstream::adapter::strip_str(&failure.to_string()).to_string();
        assert_eq!(
            text,
            "error: the lease is held\n  while publishing to `/m`\nhint: try later\n"
        );
    }

    #[test]
    fn columns_line_up_without_trailing_blanks() {
        let rows = [
            vec!["a".to_owned(), "bb".to_owned()],
            vec!["ccc".to_owned(), "d".to_owned()],
        ];
        assert_eq!(columns(&rows), "a    bb\nccc  d\n");
        assert_eq!(counted(1, "note"), "1 note");
        assert_eq!(counted(0, "note"), "0 notes");
    }
}
