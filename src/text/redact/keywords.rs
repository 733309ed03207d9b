//! The scan that finds where a closer look is worth while.

use std::sync::LazyLock;

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
    Authorization,
    Auth,
    Signature,
    Basic,
    Cookie,
    TelegramBot,
    /// A word that a telling name contains.
    Name,
}

/// Bytes of a keyword that the filter looks at; no keyword is shorter.
const FILTER_BYTES: usize = 3;

/// Bytes of the filter: one bit per hash of 16 bits. Small enough to stay in
/// the fastest cache, large enough that one text position in 400 passes by
/// chance.
const FILTER_SIZE: usize = (1 << 16) / 8;

/// A filter over the first three bytes of all keywords, and the keywords.
///
/// The filter costs a few instructions per byte. An automaton over the same
/// keywords was measured at a third of its speed.
struct Scanner {
    filter: Box<[u8; FILTER_SIZE]>,
    /// Sorted by the key of their first bytes.
    keywords: Vec<(u32, &'static str, Check)>,
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);

impl Scanner {
    fn new() -> Self {
        let tokens = (tokens::TOKENS.iter().enumerate())
            .map(|(index, token)| (token.prefix, Check::Token(index)));
        let words = [
            ("eyj", Check::Jwt),
            ("-----begin ", Check::PrivateKey),
            ("://", Check::Url),
            (":\\/\\/", Check::Url),
            ("authorization", Check::Authorization),
            ("auth\"", Check::Auth),
            ("auth\\\"", Check::Auth),
            ("_auth=", Check::Auth),
            ("sig=", Check::Signature),
            ("bearer", Check::Bearer),
            ("basic ", Check::Basic),
            ("cookie:", Check::Cookie),
            (":aa", Check::TelegramBot),
        ];
        let names = assignments::NAME_WORDS
            .iter()
            .map(|word| (*word, Check::Name));
        let mut keywords: Vec<_> = (tokens.chain(words).chain(names))
            .map(|(keyword, check)| (key(keyword.as_bytes()), keyword, check))
            .collect();
        keywords.sort_by_key(|(key, ..)| *key);
        let mut filter = Box::new([0; FILTER_SIZE]);
        for (key, ..) in &keywords {
            let (byte, bit) = filter_place(*key);
            filter[byte] |= bit;
        }
        Self { filter, keywords }
    }

    /// Calls `hit` with start, end and check of every keyword, in any case.
    fn each_hit(&self, text: &str, mut hit: impl FnMut(usize, usize, Check)) {
        let bytes = text.as_bytes();
        let filter: &[u8; FILTER_SIZE] = &self.filter;
        let mut window = key(&bytes[..bytes.len().min(FILTER_BYTES - 1)]);
        for (start, byte) in bytes.iter().skip(FILTER_BYTES - 1).enumerate() {
            window = (window >> 8) | (u32::from(byte | 0x20) << 16);
            let (place, bit) = filter_place(window);
            if filter[place] & bit == 0 {
                continue;
            }
            let first = self.keywords.partition_point(|(key, ..)| *key < window);
            for (key, keyword, check) in &self.keywords[first..] {
                if *key != window {
                    break;
                }
                let end = start + keyword.len();
                let is_hit = (bytes.get(start..end))
                    .is_some_and(|found| found.eq_ignore_ascii_case(keyword.as_bytes()));
                if is_hit {
                    hit(start, end, *check);
                }
            }
        }
    }
}

/// The first three bytes as a number, letters in lower case. Some signs fall
/// together; the comparison that follows tells them apart.
fn key(bytes: &[u8]) -> u32 {
    (bytes.iter().take(FILTER_BYTES)).fold(0, |window, byte| {
        (window >> 8) | (u32::from(byte | 0x20) << 16)
    })
}

fn filter_place(key: u32) -> (usize, u8) {
    let hash = key.wrapping_mul(0x9E37_79B1) >> 16;
    ((hash >> 3) as usize, 1 << (hash & 7))
}

/// Findings in the order of their keywords; they may overlap.
pub(super) fn scan(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    // Words like `secret_access_key` hit several keywords; long findings are
    // hit again inside. Both are looked at once.
    let mut name_checked_to = 0;
    let mut block_checked_to = 0;
    SCANNER.each_hit(text, |start, end, check| match check {
        Check::Token(index) => found.extend(tokens::check(text, start, &tokens::TOKENS[index])),
        Check::Jwt | Check::PrivateKey if start < block_checked_to => {}
        Check::Jwt => {
            let jwt = tokens::check_jwt(text, start);
            block_checked_to = jwt.as_ref().map_or(end, |jwt| jwt.bytes.end);
            found.extend(jwt);
        }
        Check::PrivateKey => {
            let block = headers::check_private_key(text, start, end);
            block_checked_to = block.as_ref().map_or(end, |block| block.bytes.end);
            found.extend(block);
        }
        Check::Url => found.extend(headers::check_url(text, end)),
        Check::Bearer => found.extend(headers::check_bearer(text, start, end)),
        Check::Authorization => found.extend(headers::check_authorization(text, end)),
        Check::Auth => found.extend(headers::check_auth(text, end)),
        Check::Signature => found.extend(headers::check_signature(text, start, end)),
        Check::Basic => found.extend(headers::check_basic(text, end)),
        Check::Cookie => headers::check_cookie(text, end, &mut found),
        Check::TelegramBot => found.extend(tokens::check_telegram(text, start)),
        Check::Name if start < name_checked_to => {}
        Check::Name => {
            let (checked_to, finding) = assignments::check(text, start, end);
            name_checked_to = checked_to;
            found.extend(finding);
        }
    });
    found
}
