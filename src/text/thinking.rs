//! What models think aloud before they say something.

/// How they mark it.
const BLOCKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
];

/// What comes after the blocks at the beginning of `text`, white space around
/// it taken off; `None` when a block has no end.
pub(crate) fn after(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim();
    while let Some((open, close)) = BLOCKS.iter().find(|(open, _)| rest.starts_with(open)) {
        rest = rest[open.len()..].split_once(close)?.1.trim();
    }
    Some(rest)
}

/// The same for what goes back into a conversation: also where a server kept
/// the beginning of the first block to itself, and nothing of one without end.
pub(crate) fn said(text: &str) -> &str {
    let is_open = |at: usize, open: &str| text[..at].contains(open);
    let headless = BLOCKS.iter().find_map(|(open, close)| {
        let at = text.find(close)?;
        (!is_open(at, open)).then(|| &text[at + close.len()..])
    });
    after(headless.unwrap_or(text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{after, said};

    #[test]
    fn only_thoughts_before_the_words_are_passed_over() {
        for (text, expected, goes_back) in [
            ("words", Some("words"), "words"),
            ("<think>a</think>\nwords", Some("words"), "words"),
            (
                "\u{feff}<think>é</think><reasoning>b</reasoning> w",
                Some("w"),
                "w",
            ),
            ("<think>a</think>", Some(""), ""),
            ("<think>a", None, ""),
            ("a</think>\n\nwords", Some("a</think>\n\nwords"), "words"),
            (
                "say <think>a</think>",
                Some("say <think>a</think>"),
                "say <think>a</think>",
            ),
        ] {
            assert_eq!((after(text), said(text)), (expected, goes_back), "{text}");
        }
    }
}
