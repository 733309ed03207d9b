//! The line of an output that says what went wrong.

use crate::model::offline::extract::words::{begin_of, code_line, end_of};

/// An error line is shown up to this many bytes.
const ERROR_BYTES_MAX: usize = 240;

/// Output is searched for an error line in this many bytes at either end.
const OUTPUT_BYTES_AT_ENDS: usize = 16_000;

/// The line of an output that says what went wrong, and whether it says so
/// beyond doubt.
pub(crate) fn error_line(output: &str) -> (Option<String>, bool) {
    let (begin, end) = (
        begin_of(output, OUTPUT_BYTES_AT_ENDS),
        end_of(output, OUTPUT_BYTES_AT_ENDS),
    );
    let both = [begin, end];
    let parts = if output.len() <= OUTPUT_BYTES_AT_ENDS {
        &both[..1]
    } else {
        &both[..]
    };
    let mut best: Option<(u8, &str)> = None;
    let mut last = None;
    let mut in_traceback = false;
    for line in parts.iter().flat_map(|part| part.lines()) {
        let line = line.trim();
        if line.is_empty() || is_wrapping(line) {
            continue;
        }
        last = Some(line);
        in_traceback |= line.starts_with("Traceback (most recent call last)");
        let score = error_score(line);
        // Python names the error at the end of a traceback, others at once.
        let replaces = best.is_none_or(|(top, _)| top < score || (in_traceback && top == score));
        if 0 < score && replaces {
            best = Some((score, line));
        }
    }
    let chosen = best.map(|(_, line)| line).or(last);
    let is_certain = best.is_some_and(|(score, _)| 2 < score);
    (
        chosen.map(|line| code_line(line, ERROR_BYTES_MAX)),
        is_certain,
    )
}

/// Lines that a harness puts around an output.
fn is_wrapping(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "Exit code",
        "Process exited",
        "Wall time",
        "Chunk ID",
        "Total output lines",
        "Output:",
        "Original token count",
        "Script completed",
        "Script failed",
        "Command: ",
    ];
    BEGINNINGS
        .iter()
        .any(|beginning| line.starts_with(beginning))
}

fn error_score(line: &str) -> u8 {
    let lower = begin_of(line, 400).to_ascii_lowercase();
    let text = lower.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let first = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .next()
        .unwrap_or("");
    let names_error = first.ends_with("error") || first.ends_with("exception");
    // "0 errors", "no error", "0 failed" say the opposite.
    let denies = [
        "0 error",
        "no error",
        "0 fail",
        "without error",
        "error: 0",
        "errors: 0",
    ];
    if denies.iter().any(|denial| lower.contains(denial)) {
        return 0;
    }
    if names_error
        || ["fatal", "panicked", "panic", "failed", "failure", "fail"].contains(&first)
        || lower.contains("panicked at")
    {
        return 3;
    }
    let hints = [
        "error:",
        "error[",
        " error ",
        "exception",
        "failed",
        "not found",
        "denied",
        "no such file",
        "cannot ",
        "undefined",
        "unresolved",
        "timed out",
        "assert",
    ];
    if hints.iter().any(|hint| lower.contains(hint)) {
        2
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::error_line;

    #[test]
    fn the_line_that_says_what_went_wrong_is_found() {
        for (output, expected, is_certain) in [
            (
                "running 3 tests\nerror[E0308]: mismatched types\n --> a.rs:1\nerror: aborting",
                "error[E0308]: mismatched types",
                true,
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 'x'\n\nValueError: bad",
                "ValueError: bad",
                true,
            ),
            ("npm ERR! missing script: biuld\nsee log", "see log", false),
            (
                "Exit code 1\nmake: *** No rule to make target 'release'.  Stop.",
                "make: *** No rule to make target 'release'. Stop.",
                false,
            ),
            (
                "sh: foo: command not found",
                "sh: foo: command not found",
                false,
            ),
            (
                "test result: ok. 3 passed; 0 failed",
                "test result: ok. 3 passed; 0 failed",
                false,
            ),
            ("构建失败：缺少依赖", "构建失败：缺少依赖", false),
        ] {
            assert_eq!(
                error_line(output),
                (Some(expected.to_owned()), is_certain),
                "{output}"
            );
        }
        assert_eq!(error_line(" \n"), (None, false));
    }

    #[test]
    fn a_long_output_is_looked_at_from_both_ends() {
        let output = format!("{}\nerror: at the end", "x y z\n".repeat(100_000));
        assert_eq!(error_line(&output).0.as_deref(), Some("error: at the end"));
    }
}
