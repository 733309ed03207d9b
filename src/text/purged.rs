//! Texts that were purged, recognised when they come again.
//!
//! Every stretch of a text that is as long as a purged one is hashed with the
//! home's key: nothing that can be guessed from what is stored alone.

use crate::domain::recap::Recap;
use crate::domain::text::Redacted;
use crate::domain::withheld::{Purged, PurgedText};
use crate::text::needle::PURGED;
use crate::text::redact::redact_str;

/// What is kept of a text.
pub(crate) fn hash(key: &[u8; 32], text: &str) -> PurgedText {
    PurgedText {
        bytes: text.len(),
        hash: *blake3::keyed_hash(key, text.as_bytes()).as_bytes(),
    }
}

/// `text` without what was purged; `None` when nothing of it is there.
pub(crate) fn scrub(purged: &Purged, text: &str) -> Option<String> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while at < text.len() {
        let here = purged_at(purged, &text[at..]);
        match here {
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            Some(bytes) => {
                let out = out.get_or_insert_with(String::new);
                out.push_str(&text[copied..at]);
                out.push_str(PURGED);
                at += bytes;
                copied = at;
            }
        }
    }
    let mut out = out?;
    out.push_str(&text[copied..]);
    Some(out)
}

/// How many bytes at the start of `text` are a purged text; the longest one.
fn purged_at(purged: &Purged, text: &str) -> Option<usize> {
    let mut last = None;
    for one in purged.texts.iter().rev() {
        let Some(part) = text.get(..one.bytes) else {
            continue;
        };
        let hash = match last {
            Some((bytes, hash)) if bytes == one.bytes => hash,
            _ => *blake3::keyed_hash(&purged.key, part.as_bytes()).as_bytes(),
        };
        last = Some((one.bytes, hash));
        if hash == one.hash {
            return Some(one.bytes);
        }
    }
    None
}

/// Takes what was purged out of a recap, header included.
pub(crate) fn scrub_recap(purged: &Purged, recap: &mut Recap) {
    if purged.texts.is_empty() {
        return;
    }
    let clean = |text: &mut Redacted| {
        if let Some(scrubbed) = scrub(purged, text.as_str()) {
            *text = redact_str(&scrubbed);
        }
    };
    clean(&mut recap.body);
    let header = &mut recap.header;
    clean(&mut header.rollout_path);
    let optional = [
        &mut header.cwd,
        &mut header.project,
        &mut header.git_branch,
        &mut header.raw_memory,
    ];
    optional.into_iter().flatten().for_each(clean);
    if (header.slug.as_ref()).is_some_and(|slug| scrub(purged, slug).is_some()) {
        header.slug = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{hash, scrub};
    use crate::domain::withheld::Purged;

    #[test]
    fn a_purged_text_is_found_anywhere_and_nothing_else() {
        let key = [9; 32];
        let mut texts = vec![
            hash(&key, "blue moon"),
            hash(&key, "青い月"),
            hash(&key, "blue"),
        ];
        texts.sort();
        let purged = Purged { key, texts };
        for (text, expected) in [
            ("the blue moon rises", Some("the [purged] rises")),
            ("blueblue", Some("[purged][purged]")),
            ("Blue Moon", None),
            ("我们青い月で", Some("我们[purged]で")),
            ("", None),
        ] {
            assert_eq!(scrub(&purged, text).as_deref(), expected, "{text:?}");
        }
    }
}
