//! The automaton that finds where a closer look is worth while.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{Finding, assignments, headers, tokens};

/// Who looks closer at a keyword.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// Row of [`tokens::TOKENS`].
    Token(usize),
    Jwt,
    PrivateKey,
    Url,
    Bearer,
    Basic,
    Cookie,
    TelegramBot,
    /// A word that a telling name contains.
    Name,
}

struct Scanner {
    automaton: AhoCorasick,
    checks: Vec<Check>,
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

impl Scanner {
    fn new() -> Self {
        let mut keywords: Vec<&str> = Vec::new();
        let mut checks = Vec::new();
        for (index, token) in tokens::TOKENS.iter().enumerate() {
            keywords.push(token.prefix);
            checks.push(Check::Token(index));
        }
        for (keyword, check) in [
            ("eyj", Check::Jwt),
            ("-----begin ", Check::PrivateKey),
            ("://", Check::Url),
            ("bearer", Check::Bearer),
            ("basic ", Check::Basic),
            ("cookie:", Check::Cookie),
            (":aa", Check::TelegramBot),
        ] {
            keywords.push(keyword);
            checks.push(check);
        }
        for keyword in assignments::NAME_WORDS {
            keywords.push(keyword);
            checks.push(Check::Name);
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&keywords)
            .expect("a hundred short keywords fit every limit of the automaton");
        Self { automaton, checks }
    }
}

/// Findings in the order of their keywords; they may overlap.
pub(super) fn scan(text: &str) -> Vec<Finding> {
    let scanner = &*SCANNER;
    let mut found = Vec::new();
    // Words like `secret_access_key` hit several keywords; long findings are
    // hit again inside. Both are looked at once.
    let mut name_checked_to = 0;
    let mut block_checked_to = 0;
    for hit in scanner.automaton.find_overlapping_iter(text) {
        let (start, end) = (hit.start(), hit.end());
        match scanner.checks[hit.pattern().as_usize()] {
            Check::Token(index) => found.extend(tokens::check(text, start, &tokens::TOKENS[index])),
            Check::Jwt => {
                if block_checked_to <= start {
                    let jwt = tokens::check_jwt(text, start);
                    block_checked_to = jwt.as_ref().map_or(end, |jwt| jwt.bytes.end);
                    found.extend(jwt);
                }
            }
            Check::PrivateKey => {
                if block_checked_to <= start {
                    let block = headers::check_private_key(text, start, end);
                    block_checked_to = block.as_ref().map_or(end, |block| block.bytes.end);
                    found.extend(block);
                }
            }
            Check::Url => found.extend(headers::check_url(text, end)),
            Check::Bearer => found.extend(headers::check_bearer(text, start, end)),
            Check::Basic => found.extend(headers::check_basic(text, end)),
            Check::Cookie => headers::check_cookie(text, end, &mut found),
            Check::TelegramBot => found.extend(tokens::check_telegram(text, start)),
            Check::Name => {
                if name_checked_to <= start {
                    let (checked_to, finding) = assignments::check(text, start, end);
                    name_checked_to = checked_to;
                    found.extend(finding);
                }
            }
        }
    }
    found
}
