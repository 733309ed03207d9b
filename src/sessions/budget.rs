//! How much text of a session is kept.
//!
//! Tool texts go first, oldest first; a person's words go last of all.
//!
//! # Limits
//!
//! See the constants. Readers of evidence open the transcript again at the
//! item's line, so what is cut here is not lost.

use crate::domain::item::{Item, ItemKind, Provenance};
use crate::domain::text::Raw;

/// Most text kept of one item, in bytes: six times what any extraction input
/// takes of a row (reference 5.7).
pub(super) const ITEM_TEXT_BYTES_MAX: usize = 64 * 1024;

/// Most text kept of a session before tool texts are shortened, in bytes.
pub(super) const SESSION_TEXT_BYTES_MAX: usize = 24 * 1024 * 1024;

/// Most items kept of a session before old tool items are dropped.
pub(super) const SESSION_ITEMS_MAX: usize = 60_000;

/// What a tool item keeps once the session is over its limit, in bytes: what
/// version 2 input takes of a tool output (reference 5.7).
const TOOL_TEXT_BYTES_TIGHT: usize = 2_000;

/// `text` with its middle left out, at most `bytes_max` and a marker long.
pub(super) fn cut_middle(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let mut head = bytes_max / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - bytes_max / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    let (begin, end) = (&text[..head], &text[tail..]);
    format!("{begin}[... {} bytes left out ...]{end}", tail - head)
}

/// Keeps watch over the items of one session.
#[derive(Debug, Default)]
pub(super) struct Budget {
    text_bytes: usize,
    items: usize,
    is_tight: bool,
    /// Items given up.
    pub(super) dropped: u64,
}

impl Budget {
    /// Cuts the text of a new item.
    pub(super) fn admit(&mut self, item: &mut Item) {
        let is_tool = item.provenance == Provenance::Tool;
        let bytes_max = if self.is_tight && is_tool {
            TOOL_TEXT_BYTES_TIGHT
        } else {
            ITEM_TEXT_BYTES_MAX
        };
        shorten(item, bytes_max);
        self.text_bytes += weight(item);
        self.items += 1;
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.text_bytes > SESSION_TEXT_BYTES_MAX || self.items > SESSION_ITEMS_MAX
    }

    /// Shortens, then drops: `items` are in order; `false` means it goes.
    /// Afterwards the session is well below its limits.
    pub(super) fn relieve(&mut self, items: &mut [&mut Item]) -> Vec<bool> {
        self.is_tight = true;
        for item in items.iter_mut() {
            if item.provenance == Provenance::Tool {
                shorten(item, TOOL_TEXT_BYTES_TIGHT);
            }
        }
        self.text_bytes = items.iter().map(|item| weight(item)).sum();
        self.items = items.len();
        let mut keeps = vec![true; items.len()];
        let giving_up = [
            Provenance::Tool,
            Provenance::HarnessContext,
            Provenance::AssistantCommentary,
            Provenance::OtherAgent,
            Provenance::AssistantFinal,
            Provenance::Human,
        ];
        for provenance in giving_up {
            for (keep, item) in keeps.iter_mut().zip(items.iter()) {
                let is_light = self.text_bytes <= SESSION_TEXT_BYTES_MAX / 2
                    && self.items <= SESSION_ITEMS_MAX / 2;
                if is_light {
                    return keeps;
                }
                if item.provenance == provenance {
                    *keep = false;
                    self.text_bytes -= weight(item);
                    self.items -= 1;
                    self.dropped += 1;
                }
            }
        }
        keeps
    }
}

fn weight(item: &Item) -> usize {
    let beside = match &item.kind {
        ItemKind::Message => 0,
        ItemKind::ToolCall {
            call_id,
            tool,
            files,
        } => call_id.len() + tool.len() + files.iter().map(Raw::len).sum::<usize>(),
        ItemKind::ToolOutput { call_id, .. } => call_id.len(),
    };
    item.text.len() + beside
}

fn shorten(item: &mut Item, bytes_max: usize) {
    if item.text.len() > bytes_max {
        let text = item.text.unredacted().to_owned();
        item.text = Raw::new(cut_middle(text, bytes_max));
    }
}

#[cfg(test)]
mod tests {
    use super::cut_middle;

    #[test]
    fn cuts_lie_between_characters() {
        let text = "aé漢😀".repeat(50);
        for bytes_max in 0..60 {
            let cut = cut_middle(text.clone(), bytes_max);
            assert!(cut.len() <= bytes_max + 40, "{bytes_max}");
            assert!(!cut.contains('\u{FFFD}'));
        }
        assert_eq!(cut_middle("short".to_owned(), 5), "short");
    }
}
