//! Telling a secret from a placeholder, from code and from prose.

use super::around::is_token_byte;

/// Shortest value that can count as random.
const RANDOM_BYTES_MIN: usize = 16;

/// Parts of what documentation writes where a secret belongs.
const PLACEHOLDER_PARTS: [&str; 19] = [
    "changeme",
    "change-me",
    "change_me",
    "example",
    "placeholder",
    "redacted",
    "replace-me",
    "replace_me",
    "replaceme",
    "dummy",
    "masked",
    "omitted",
    "your_",
    "your-",
    "your ",
    "insert_",
    "xxxx",
    "****",
    "....",
];

/// Whole words that stand for a missing or a demanded value.
const PLACEHOLDER_WORDS: [&str; 14] = [
    "undefined",
    "required",
    "optional",
    "password",
    "passphrase",
    "disabled",
    "username",
    "credentials",
    "mandatory",
    "nullable",
    "sensitive",
    "encrypted",
    "plaintext",
    "forbidden",
];

/// Words that make a quoted value a sentence about secrets, not a secret.
const SENTENCE_WORDS: [&str; 28] = [
    "the",
    "a",
    "an",
    "is",
    "are",
    "was",
    "be",
    "must",
    "should",
    "cannot",
    "not",
    "no",
    "please",
    "enter",
    "invalid",
    "missing",
    "required",
    "your",
    "for",
    "of",
    "with",
    "from",
    "this",
    "password",
    "token",
    "secret",
    "key",
    "passphrase",
];

/// Templates, variables and the fillings of documentation.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    let first = value.chars().next();
    let lower = value.to_ascii_lowercase();
    first.is_none_or(|first| value.chars().all(|c| c == first))
        || is_template(value)
        || lower.starts_with("your")
        || value.contains('…')
        || PLACEHOLDER_PARTS.iter().any(|part| lower.contains(part))
        || PLACEHOLDER_WORDS.contains(&lower.as_str())
        || is_filler(&lower)
}

fn is_filler(lower: &str) -> bool {
    lower.bytes().all(|byte| b"x*.-_".contains(&byte))
}

fn is_template(value: &str) -> bool {
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
    };
    let variable = |start: char| value.strip_prefix(start).is_some_and(is_name);
    let is_dollar_name = variable('$') && !value[1..].starts_with(|c: char| c.is_ascii_digit());
    let is_percent_name = value
        .strip_prefix('%')
        .is_some_and(|rest| rest.strip_suffix('%').is_some_and(is_name));
    is_dollar_name
        || is_percent_name
        || (value.starts_with('<') && value.contains('>'))
        || ["${", "{{", "$(", "#{", "%(", "%s", "@{", "<%"]
            .iter()
            .any(|open| value.contains(open))
        || value.starts_with(['{', '[', '('])
        || [
            "op://", "vault:", "ref+", "!ref", "!env", "arn:aws:", "env:", "secrets.",
        ]
        .iter()
        .any(|start| {
            value.len() >= start.len()
                && value.is_char_boundary(start.len())
                && value[..start.len()].eq_ignore_ascii_case(start)
        })
}

/// `self.password`, `process.env.API_KEY`, `Token::Ident`: names joined by
/// dots or colons.
pub(super) fn is_code_path(value: &str) -> bool {
    let mut parts = 0;
    let all_names = value
        .split(['.', ':', '?', '!'])
        .filter(|part| !part.is_empty())
        .all(|part| {
            parts += 1;
            let begins_as_name = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let digits = part.bytes().filter(u8::is_ascii_digit).count();
            begins_as_name
                && digits * 3 <= part.len().max(15)
                && part.len() <= 40
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
                && !changes_often(part)
        });
    all_names && 2 <= parts
}

/// `/etc/app/token.pem`, `./key`, `C:\keys`, `https://…`.
pub(super) fn is_location(value: &str) -> bool {
    let is_path_byte = |byte: u8| is_token_byte(byte) || byte == b'/' || byte == b'~';
    let begins = ["/", "~/", "./", "../"]
        .iter()
        .any(|start| value.starts_with(start));
    let is_path = begins && value.bytes().all(is_path_byte) && value[1..].contains(['/', '.']);
    let bytes = value.as_bytes();
    let is_windows = 2 < bytes.len() && bytes[0].is_ascii_alphabetic() && &bytes[1..3] == b":\\";
    is_path || is_windows || value.contains("://")
}

/// `1.2.3-beta.1`, `^0.8`, `2026-12-01T05:33:44Z`, `100_000`.
pub(super) fn is_version_or_number(value: &str) -> bool {
    let bare = value.trim_start_matches(['^', '~', '=', '<', '>', ' ', 'v']);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &bare[digits..];
    let is_version = 0 < digits
        && rest
            .strip_prefix('.')
            .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
        && bare.len() <= 24;
    let is_number = bare
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"-_:.,TZ+ ".contains(&byte));
    is_version || is_number
}

/// Words joined by `_`, `-` or nothing, each with at most three digits behind:
/// a name that somebody thought of.
pub(super) fn is_name_like(value: &str) -> bool {
    value.split(['_', '-']).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        digits <= 3 && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
    }) && !changes_often(value)
}

/// Letters with digits or cases mixed as no name has them.
pub(super) fn is_random(value: &str) -> bool {
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    RANDOM_BYTES_MIN <= value.len()
        && has_letter
        && (changes_often(value) || (has_digit && !is_name_like(value)))
}

/// Whether the kind of character changes at every second one or more often.
/// Words in camel case change at every third or fourth.
fn changes_often(value: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let bytes = value.as_bytes();
    let changes = (bytes
        .windows(2)
        .filter(|pair| kind(pair[0]) != kind(pair[1])))
    .count();
    8 <= bytes.len() && bytes.len() <= changes * 2
}

/// A sentence or label about secrets, such as `Enter your password`.
pub(super) fn is_sentence(value: &str) -> bool {
    let begins_large = value.starts_with(char::is_uppercase);
    let ends_as_sentence = value.ends_with(['.', '!', '?', ':', '。', '！', '？']);
    let is_about = value.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let lower = word.to_lowercase();
        SENTENCE_WORDS.contains(&lower.as_str())
    });
    begins_large || ends_as_sentence || is_about
}

/// One word of letters, the first large or none: `Kennwort`, `密码不正确`.
pub(super) fn is_label(value: &str) -> bool {
    let mut chars = value.chars();
    let first = chars.next();
    let is_word = value.chars().all(char::is_alphabetic);
    let is_foreign = !value.is_ascii();
    is_word
        && (is_foreign || (first.is_some_and(char::is_uppercase) && chars.all(char::is_lowercase)))
}
