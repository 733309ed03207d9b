//! Text from files and models, made safe to print.

/// What stands where something was taken out of the middle of a word.
const REPLACEMENT: char = '\u{fffd}';

/// Takes escape sequences, control, direction and invisible tag characters
/// out. Line ends and tabs stay.
pub(crate) fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_parameters(&mut chars),
            '\u{90}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            c if c.is_control() => out.push(REPLACEMENT),
            c if is_invisible(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// As [`safe`], on one line: line ends and tabs become blanks.
pub(crate) fn safe_line(text: &str) -> String {
    safe(text)
        .chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .collect()
}

/// Direction overrides, tag characters and other signs that change how the
/// text around them looks. Joiners stay: Persian and emoji need them.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_parameters(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        Some(' '..='/') => {
            chars.next();
        }
        _ => {}
    }
}

/// Up to the final letter of a control sequence.
fn skip_parameters(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Up to the terminator of an operating system command; at most to the end of
/// the line, so that a stray start cannot swallow the rest.
fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{safe, safe_line};

    #[test]
    fn nothing_moves_the_cursor_or_turns_the_text() {
        for (text, shown) in [
            ("plain ä 日本 👩‍💻\ttab\n", "plain ä 日本 👩‍💻\ttab\n"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            (
                "\u{1b}]8;;http://e.org\u{1b}\\link\u{1b}]8;;\u{1b}\\",
                "link",
            ),
            ("\u{9b}2Jx", "x"),
            ("a\u{8}b\u{0}c", "a\u{fffd}b\u{fffd}c"),
            ("a\r\nb\rc", "a\nb\u{fffd}c"),
            ("abc\u{202e}txt.exe", "abctxt.exe"),
            ("x\u{e0041}\u{200b}y", "xy"),
            ("\u{1b}", ""),
            ("\u{1b}]open\nnext", "\nnext"),
        ] {
            assert_eq!(safe(text), shown, "{text:?}");
        }
        assert_eq!(safe_line("a\nb\tc"), "a b c");
    }

    proptest! {
        #[test]
        fn safe_text_is_stable_and_has_no_controls(text in "[\\PC\u{1b}\u{9b}\u{7}\n\r\\[\\];m0-9]{0,60}") {
            let once = safe(&text);
            prop_assert_eq!(safe(&once), once.clone());
            prop_assert!(once.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        }
    }
}
