//! Tokens that are known by how they begin, from their makers' public formats.
//!
//! To add a kind: one row in [`TOKENS`] and one in the tests.

use super::Finding;
use super::around::{begins_word, is_token_byte, run_end};

/// One way a token can begin.
pub(super) struct Token {
    pub(super) kind: &'static str,
    /// Case counts here, although the scan ignores it.
    pub(super) prefix: &'static str,
    body: Body,
    /// Fewest bytes after the prefix.
    bytes_min: usize,
}

/// What may follow the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `-`, `_`, `.`, not ending in a dot.
    Token,
    /// As `Token`, with at least one digit or two cases: the prefix alone
    /// does not tell.
    Mixed,
    /// Percent signs, slashes, plus and equals signs too.
    Wide,
    /// Exactly this many capitals and digits, and a border after.
    Aws,
    /// The old form of `sk-`, which words begin with too.
    PlainSk,
    /// Hexadecimal digits.
    Hex,
}

const fn row(kind: &'static str, prefix: &'static str, body: Body, bytes_min: usize) -> Token {
    Token {
        kind,
        prefix,
        body,
        bytes_min,
    }
}

/// By maker.
pub(super) const TOKENS: &[Token] = &[
    row("openai-key", "sk-proj-", Body::Token, 16),
    row("openai-key", "sk-svcacct-", Body::Token, 16),
    row("openai-key", "sk-service-", Body::Mixed, 16),
    row("openai-key", "sk-admin-", Body::Mixed, 16),
    row("openai-key", "sk-None-", Body::Token, 16),
    row("openai-key", "sess-", Body::Mixed, 36),
    row("anthropic-key", "sk-ant-", Body::Token, 16),
    row("openrouter-key", "sk-or-v1-", Body::Token, 16),
    row("secret-key", "sk-", Body::PlainSk, 20),
    row("github-token", "ghp_", Body::Token, 20),
    row("github-token", "gho_", Body::Token, 20),
    row("github-token", "ghu_", Body::Token, 20),
    row("github-token", "ghs_", Body::Token, 20),
    row("github-token", "ghr_", Body::Token, 20),
    row("github-token", "github_pat_", Body::Token, 20),
    row("gitlab-token", "glpat-", Body::Token, 16),
    row("gitlab-token", "gldt-", Body::Token, 16),
    row("gitlab-token", "glrt-", Body::Token, 16),
    row("gitlab-token", "glrtr-", Body::Token, 16),
    row("gitlab-token", "glptt-", Body::Token, 16),
    row("gitlab-token", "glcbt-", Body::Token, 16),
    row("gitlab-token", "glft-", Body::Token, 16),
    row("gitlab-token", "glimt-", Body::Token, 16),
    row("gitlab-token", "gloas-", Body::Token, 16),
    row("gitlab-token", "glagent-", Body::Token, 16),
    row("gitlab-token", "glsoat-", Body::Token, 16),
    row("slack-token", "xoxb-", Body::Wide, 10),
    row("slack-token", "xoxp-", Body::Wide, 10),
    row("slack-token", "xoxa-", Body::Wide, 10),
    row("slack-token", "xoxr-", Body::Wide, 10),
    row("slack-token", "xoxs-", Body::Wide, 10),
    row("slack-token", "xoxo-", Body::Wide, 10),
    row("slack-token", "xoxc-", Body::Wide, 10),
    row("slack-token", "xoxd-", Body::Wide, 10),
    row("slack-token", "xoxe-", Body::Wide, 10),
    row("slack-token", "xoxe.", Body::Wide, 10),
    row("slack-token", "xapp-", Body::Mixed, 16),
    row("slack-webhook", "hooks.slack.com/services/", Body::Wide, 16),
    row(
        "slack-webhook",
        "hooks.slack.com/workflows/",
        Body::Wide,
        16,
    ),
    row(
        "discord-webhook",
        "discord.com/api/webhooks/",
        Body::Wide,
        24,
    ),
    row(
        "discord-webhook",
        "discordapp.com/api/webhooks/",
        Body::Wide,
        24,
    ),
    row("aws-key-id", "AKIA", Body::Aws, 16),
    row("aws-key-id", "ASIA", Body::Aws, 16),
    row("aws-key-id", "ABIA", Body::Aws, 16),
    row("aws-key-id", "ACCA", Body::Aws, 16),
    row("google-key", "AIza", Body::Token, 30),
    row("google-token", "ya29.", Body::Token, 16),
    row("google-secret", "GOCSPX-", Body::Token, 16),
    row("google-token", "1//0", Body::Mixed, 30),
    row("stripe-key", "sk_live_", Body::Token, 10),
    row("stripe-key", "sk_test_", Body::Mixed, 16),
    row("stripe-key", "rk_live_", Body::Token, 10),
    row("stripe-key", "rk_test_", Body::Mixed, 16),
    row("stripe-secret", "whsec_", Body::Wide, 16),
    row("npm-token", "npm_", Body::Alnum, 30),
    row("pypi-token", "pypi-AgE", Body::Token, 16),
    row("huggingface-token", "hf_", Body::Alnum, 30),
    row("huggingface-token", "api_org_", Body::Alnum, 30),
    row("sendgrid-key", "SG.", Body::Mixed, 40),
    row("digitalocean-token", "dop_v1_", Body::Hex, 32),
    row("digitalocean-token", "doo_v1_", Body::Hex, 32),
    row("digitalocean-token", "dor_v1_", Body::Hex, 32),
    row("shopify-token", "shpat_", Body::Hex, 32),
    row("shopify-token", "shpca_", Body::Hex, 32),
    row("shopify-token", "shppa_", Body::Hex, 32),
    row("shopify-token", "shpss_", Body::Hex, 32),
    row("databricks-token", "dapi", Body::Hex, 32),
    row("docker-token", "dckr_pat_", Body::Token, 20),
    row("docker-token", "dckr_oat_", Body::Token, 20),
    row("vault-token", "hvs.", Body::Mixed, 20),
    row("vault-token", "hvb.", Body::Mixed, 20),
    row("grafana-token", "glsa_", Body::Token, 24),
    row("grafana-token", "glc_eyJ", Body::Wide, 24),
    row("groq-key", "gsk_", Body::Alnum, 32),
    row("xai-key", "xai-", Body::Mixed, 32),
    row("perplexity-key", "pplx-", Body::Mixed, 32),
    row("replicate-token", "r8_", Body::Alnum, 32),
    row("linear-key", "lin_api_", Body::Alnum, 32),
    row("notion-token", "ntn_", Body::Alnum, 32),
    row("figma-token", "figd_", Body::Mixed, 24),
    row("postman-key", "PMAK-", Body::Mixed, 32),
    row("atlassian-token", "ATATT3", Body::Wide, 32),
    row("doppler-token", "dp.pt.", Body::Alnum, 32),
    row("doppler-token", "dp.st.", Body::Mixed, 32),
    row("pulumi-token", "pul-", Body::Hex, 32),
    row("rubygems-key", "rubygems_", Body::Hex, 32),
    row("sentry-token", "sntrys_", Body::Wide, 32),
    row("sentry-token", "sntryu_", Body::Hex, 32),
    row("supabase-key", "sb_secret_", Body::Token, 20),
    row("supabase-token", "sbp_", Body::Hex, 32),
    row("planetscale-token", "pscale_tkn_", Body::Token, 24),
    row("planetscale-token", "pscale_pw_", Body::Token, 24),
    row("tailscale-key", "tskey-", Body::Mixed, 20),
    row("newrelic-key", "NRAK-", Body::Alnum, 24),
    row("langsmith-key", "lsv2_", Body::Mixed, 32),
    row("age-key", "AGE-SECRET-KEY-1", Body::Alnum, 50),
    row("mailgun-key", "key-", Body::Hex, 32),
];

/// Looks for the token whose prefix stands at `start` in any case.
pub(super) fn check(text: &str, start: usize, token: &Token) -> Option<Finding> {
    let body_start = start + token.prefix.len();
    if !text[start..].starts_with(token.prefix) || !begins_word(text, start) {
        return None;
    }
    let end = body_end(text, body_start, token.body);
    let body = &text[body_start..end];
    if body.len() < token.bytes_min || is_filler(body) || !fits(body, token, text, end) {
        return None;
    }
    Some(Finding {
        kind: token.kind,
        bytes: start..continued(text, start, end),
    })
}

/// A JSON Web Token, or an encrypted one: `eyJ….….…` with two to four dots.
pub(super) fn check_jwt(text: &str, start: usize) -> Option<Finding> {
    if !text[start..].starts_with("eyJ") || !begins_word(text, start) {
        return None;
    }
    let end = trim_dots(text, start, run_end(text, start, is_token_byte));
    let mut parts = text[start..end].split('.');
    let (head, claims) = (parts.next()?, parts.next()?);
    let is_signed = parts.next().is_some() || claims.starts_with("eyJ");
    (is_signed && 12 <= head.len() && 8 <= claims.len()).then(|| Finding {
        kind: "jwt",
        bytes: start..continued(text, start, end),
    })
}

/// A bot token of Telegram, `<8 to 10 digits>:AA<33 more>`, at its colon.
pub(super) fn check_telegram(text: &str, colon: usize) -> Option<Finding> {
    let digits = text.as_bytes()[..colon]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .take(11)
        .count();
    let end = run_end(text, colon + 1, |byte| is_token_byte(byte) && byte != b'.');
    let start = colon - digits;
    let fits = (8..=10).contains(&digits)
        && (33..=36).contains(&(end - colon - 1))
        && text[colon + 1..].starts_with("AA")
        && begins_word(text, start);
    fits.then_some(Finding {
        kind: "telegram-token",
        bytes: start..end,
    })
}

fn body_end(text: &str, start: usize, body: Body) -> usize {
    match body {
        Body::Alnum | Body::Aws => run_end(text, start, |byte| byte.is_ascii_alphanumeric()),
        Body::Hex => run_end(text, start, |byte| byte.is_ascii_hexdigit()),
        Body::Token | Body::Mixed | Body::PlainSk => {
            trim_dots(text, start, run_end(text, start, is_token_byte))
        }
        Body::Wide => {
            let is_wide = |byte| is_token_byte(byte) || b"%/+=".contains(&byte);
            trim_dots(text, start, run_end(text, start, is_wide))
        }
    }
}

/// A dot at the end ends a sentence, not a token.
fn trim_dots(text: &str, start: usize, end: usize) -> usize {
    start + text[start..end].trim_end_matches('.').len()
}

fn fits(body: &str, token: &Token, text: &str, end: usize) -> bool {
    match token.body {
        Body::Alnum | Body::Token | Body::Wide => true,
        Body::Hex => {
            let next = text.as_bytes().get(end);
            !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        }
        Body::Mixed => has_digit(body) || has_two_cases(body),
        Body::Aws => {
            body.len() == token.bytes_min
                && (body.bytes()).all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
                && (token.prefix == "AKIA" || has_digit(body))
        }
        Body::PlainSk => is_plain_sk(body),
    }
}

/// The reference masks 20 letters and digits after `sk-`. Long words do not
/// count: they have neither digit nor capital and are shorter than 28.
fn is_plain_sk(body: &str) -> bool {
    let run_fits = body.split(['-', '_', '.']).any(|run| {
        let is_mixed = has_digit(run) || run.bytes().any(|byte| byte.is_ascii_uppercase());
        (20 <= run.len() && is_mixed) || 28 <= run.len()
    });
    run_fits || (24 <= body.len() && has_digit(body) && has_two_cases(body))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn has_two_cases(text: &str) -> bool {
    let has_lower = text.bytes().any(|byte| byte.is_ascii_lowercase());
    has_lower && text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// `xxxxxxxx`, `........`, `****`: what documentation puts in place of a key.
fn is_filler(body: &str) -> bool {
    let mut letters = body.bytes().filter(u8::is_ascii_alphanumeric);
    match letters.next() {
        Some(first @ (b'x' | b'X')) => letters.all(|byte| byte == first),
        Some(_) => false,
        None => true,
    }
}

/// Where a token that a terminal wrapped over two lines ends.
///
/// The next line counts as its rest when nothing but one word stands there
/// and that word has both cases and a digit, as hashes and names have not.
fn continued(text: &str, start: usize, end: usize) -> usize {
    let rest = &text[end..];
    let Some(next) = rest
        .strip_prefix("\r\n")
        .or_else(|| rest.strip_prefix('\n'))
    else {
        return end;
    };
    let line_start = text.len() - next.len();
    let word_start = super::around::skip_blanks(text, line_start);
    let word_end = run_end(text, word_start, is_token_byte);
    let word = &text[word_start..word_end];
    let after = text.as_bytes().get(word_end);
    let stands_alone = after.is_none_or(|byte| b"\r\n\"'`,".contains(byte));
    let is_rest = 8 <= word.len()
        && word.len() < end - start + 8
        && has_digit(word)
        && has_two_cases(word)
        && stands_alone
        && !word.contains('.')
        && !TOKENS.iter().any(|token| word.starts_with(token.prefix));
    if is_rest { word_end } else { end }
}
