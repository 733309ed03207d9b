//! What a note asks for, when its header does not say.

use crate::domain::note::{Note, NoteKind};
use crate::text::cues::{self, Cue};

/// Most characters of a note's beginning that are looked at for cues.
const BEGINNING_CHARS_MAX: usize = 200;

/// The kind in the header, else the one its first line speaks of, else
/// *remember*, which takes nothing away.
pub(crate) fn effective_kind(note: &Note) -> NoteKind {
    note.kind
        .unwrap_or_else(|| kind_of_words(note.text.unredacted()))
}

/// "Don't forget that" holds a phrase of both kinds and asks to remember.
fn kind_of_words(text: &str) -> NoteKind {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let beginning: String = first
        .unwrap_or_default()
        .chars()
        .take(BEGINNING_CHARS_MAX)
        .collect();
    let cues = cues::find(&beginning);
    if cues.has(Cue::Forget) && !cues.has(Cue::Remember) {
        NoteKind::Forget
    } else if cues.has(Cue::Correct) {
        NoteKind::Correct
    } else {
        NoteKind::Remember
    }
}

#[cfg(test)]
mod tests {
    use super::kind_of_words;
    use crate::domain::note::NoteKind;

    #[test]
    fn words_tell_the_kind_in_many_languages() {
        for (text, kind) in [
            ("Use uv in every project.", NoteKind::Remember),
            ("Remember that the API is slow", NoteKind::Remember),
            ("don't forget that tests need Docker", NoteKind::Remember),
            ("Forget that the port is 8080", NoteKind::Forget),
            (
                "\n\nForget about the staging server\nmore",
                NoteKind::Forget,
            ),
            ("Correction: the port is 9090", NoteKind::Correct),
            ("忘掉关于预发布服务器的一切", NoteKind::Forget),
            ("更正：端口是 9090", NoteKind::Correct),
            ("记住提交前运行测试", NoteKind::Remember),
            ("", NoteKind::Remember),
        ] {
            assert_eq!(kind_of_words(text), kind, "{text}");
        }
    }
}
