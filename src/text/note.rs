//! Notes: reading them, naming them, and telling them from editors' leftovers.

use crate::domain::note::{Note, NoteKind};
use crate::domain::path::TreePath;
use crate::domain::text::Raw;
use crate::domain::time::Timestamp;
use crate::text::header::{self, HeaderError};

/// Longest file name of a note, in bytes (reference 8).
pub(crate) const NOTE_NAME_BYTES_MAX: usize = 128;

/// Longest slug in a note's file name, in bytes (reference 8).
pub(crate) const NOTE_SLUG_BYTES_MAX: usize = 80;

/// Bytes of `2026-12-01T05-30-00` at the start of a note's name.
const STAMP_BYTES: usize = 19;

/// What a note is called when its title has no letter that fits a file name.
const SLUG_DEFAULT: &str = "note";

/// Why a file is not a note.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoteError {
    #[error("the note is empty")]
    Blank,
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("the note's `kind` is none of `remember`, `correct`, `forget`")]
    UnknownKind,
}

/// Why a name cannot be given to a new note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoteNameError {
    #[error("the name is longer than {NOTE_NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("the name does not end in `.md`")]
    NoMarkdown,
    #[error("the name does not begin with a time such as `2026-12-01T05-30-00-`")]
    NoStamp,
    #[error("the part after the time is not 1 to {NOTE_SLUG_BYTES_MAX} of `a-z`, `0-9`, `-`")]
    BadSlug,
}

/// Reads a note. Without a header that says `kind`, cue words decide later.
///
/// Text that only begins with a ruler line (`---`) is text, not a header.
pub(crate) fn parse(path: &TreePath, text: &str) -> Result<Note, NoteError> {
    let (kind, body) = take_kind(text)?;
    if body.trim().is_empty() {
        return Err(NoteError::Blank);
    }
    Ok(Note {
        path: path.clone(),
        kind,
        written_at: stamp(path.name()),
        text: Raw::new(body),
    })
}

fn take_kind(text: &str) -> Result<(Option<NoteKind>, &str), NoteError> {
    let parts = match header::split(text) {
        Ok(parts) => parts,
        Err(HeaderError::Unclosed) => return Ok((None, text)),
        Err(error) => return Err(error.into()),
    };
    let Some(yaml) = parts.header else {
        return Ok((None, text));
    };
    let fields = match header::parse(yaml) {
        Ok(fields) => fields,
        // Two rulers with prose between them.
        Err(HeaderError::NotAMapping) => return Ok((None, text)),
        Err(error) => return Err(error.into()),
    };
    let body = parts.body.trim_start_matches(['\r', '\n']);
    match fields.text("kind") {
        None => Ok((None, body)),
        Some(kind) => match NoteKind::parse(kind.trim()) {
            Some(kind) => Ok((Some(kind), body)),
            None => Err(NoteError::UnknownKind),
        },
    }
}

/// The text of a new note file; without a kind it is the text alone.
pub(crate) fn print(kind: Option<NoteKind>, text: &str) -> String {
    let text = text.trim_end();
    match kind {
        None => format!("{text}\n"),
        Some(kind) => format!("---\nkind: {}\n---\n\n{text}\n", kind.label()),
    }
}

/// The time in a note's file name, when it is one.
pub(crate) fn stamp(file_name: &str) -> Option<Timestamp> {
    let (stamp, rest) = file_name.split_at_checked(STAMP_BYTES)?;
    (rest.starts_with(['-', '.'])).then(|| Timestamp::parse_file_stamp(stamp))?
}

/// Names for a note written at `now`, to try one after the other until one is
/// free; `title` may be any text: `…-x.md`, `…-x-2.md`,
/// `…-x-3.md`. Two notes of the same second thus never meet.
pub(crate) fn file_names(now: Timestamp, title: &str) -> impl Iterator<Item = String> {
    let (stamp, slug) = (now.file_stamp(), slug(title));
    (1_u64..).map(move |number| {
        if number == 1 {
            return format!("{stamp}-{slug}.md");
        }
        let suffix = format!("-{number}");
        let kept = slug.len().min(NOTE_SLUG_BYTES_MAX - suffix.len());
        let head = slug[..kept].trim_end_matches('-');
        format!("{stamp}-{head}{suffix}.md")
    })
}

/// Whether a caller's own name may be given to a new note (reference 8). The
/// time must look like one; whether the day exists does not matter.
pub(crate) fn check_file_name(name: &str) -> Result<(), NoteNameError> {
    if NOTE_NAME_BYTES_MAX < name.len() {
        return Err(NoteNameError::TooLong);
    }
    let stem = name.strip_suffix(".md").ok_or(NoteNameError::NoMarkdown)?;
    let (stamp, rest) = stem
        .split_at_checked(STAMP_BYTES)
        .ok_or(NoteNameError::NoStamp)?;
    let pattern = b"dddd-dd-ddTdd-dd-dd";
    let fits = stamp
        .bytes()
        .zip(pattern)
        .all(|(byte, expected)| match expected {
            b'd' => byte.is_ascii_digit(),
            expected => byte == *expected,
        });
    let slug = rest
        .strip_prefix('-')
        .filter(|_| fits)
        .ok_or(NoteNameError::NoStamp)?;
    let is_slug_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let slug_fits = (1..=NOTE_SLUG_BYTES_MAX).contains(&slug.len());
    if slug_fits && slug.bytes().all(is_slug_byte) && !slug.starts_with('-') {
        Ok(())
    } else {
        Err(NoteNameError::BadSlug)
    }
}

/// Lower-case ASCII words joined by `-`, at most 80 bytes, cut at a word.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for word in title.split(|c: char| !c.is_ascii_alphanumeric()) {
        let joined = slug.len() + usize::from(!slug.is_empty()) + word.len();
        if word.is_empty() {
            continue;
        }
        if NOTE_SLUG_BYTES_MAX < joined {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    if slug.is_empty() {
        let first_word = title
            .split(|c: char| !c.is_ascii_alphanumeric())
            .find(|w| !w.is_empty());
        slug = first_word.map_or_else(
            || SLUG_DEFAULT.to_owned(),
            |word| word[..word.len().min(NOTE_SLUG_BYTES_MAX)].to_ascii_lowercase(),
        );
    }
    slug
}

/// A file beside the notes that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// An editor's, a system's or our own passing file: ignored.
    Temporary,
    /// A synchroniser's second version: never read, but the person is told.
    ConflictedCopy,
}

/// What kind of leftover `name` is, if any. Hidden files all are.
pub(crate) fn leftover(name: &str) -> Option<Leftover> {
    const CONFLICT_MARKS: [&str; 7] = [
        "conflicted copy",
        "(case conflict",
        ".sync-conflict-",
        "_conflict-",
        "-conflict-",
        "in konflikt stehende kopie",
        "copie en conflit",
    ];
    const ENDS: [&str; 19] = [
        "~",
        ".tmp",
        ".temp",
        ".swp",
        ".swo",
        ".swn",
        ".swx",
        ".bak",
        ".orig",
        ".rej",
        ".part",
        ".crdownload",
        ".lock",
        ".old",
        ".kate-swp",
        "___jb_tmp___",
        "___jb_old___",
        ".filepart",
        ".download",
    ];
    const NAMES: [&str; 3] = ["thumbs.db", "desktop.ini", "icon\r"];
    let lower = name.to_lowercase();
    if CONFLICT_MARKS.iter().any(|mark| lower.contains(mark)) {
        return Some(Leftover::ConflictedCopy);
    }
    let is_vim_probe = 4 <= name.len() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_emacs_save = 1 < name.len() && name.starts_with('#') && name.ends_with('#');
    let is_mac_save = lower.contains(".sb-");
    let is_temporary = name.starts_with('.')
        || name.starts_with("~$")
        || is_vim_probe
        || is_emacs_save
        || is_mac_save
        || ENDS.iter().any(|end| lower.ends_with(end))
        || NAMES.contains(&lower.as_str());
    is_temporary.then_some(Leftover::Temporary)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{Leftover, NoteNameError, check_file_name, file_names, leftover, parse, print};
    use crate::domain::note::NoteKind;
    use crate::domain::path::TreePath;
    use crate::domain::time::Timestamp;

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2026-12-01T05:30:00Z").unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: Result<(Option<NoteKind>, &str), &str>) {
        let path = TreePath::parse("extensions/ad_hoc/notes/2026-12-01T05-30-00-x.md").unwrap();
        match (parse(&path, text), expected) {
            (Ok(note), Ok((kind, body))) => {
                assert_eq!((note.kind, note.text.unredacted()), (kind, body));
                assert_eq!(note.written_at, Some(now()));
            }
            (Err(error), Err(words)) => assert_eq!(error.to_string(), words),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_header_may_say_the_kind() {
        check("use uv", Ok((None, "use uv")));
        check(
            "---\nkind: forget\n---\n\nX\n",
            Ok((Some(NoteKind::Forget), "X\n")),
        );
        check("---\nauthor: ada\n---\nX", Ok((None, "X")));
        check("---\nprose\n---\nmore", Ok((None, "---\nprose\n---\nmore")));
        check("---\nonly a ruler", Ok((None, "---\nonly a ruler")));
        check(" \n\t\n", Err("the note is empty"));
        check("---\nkind: correct\n---\n \n", Err("the note is empty"));
        check(
            "---\nkind: maybe\n---\nX",
            Err("the note's `kind` is none of `remember`, `correct`, `forget`"),
        );
        check(
            "---\na: *x\n---\nX",
            Err("an alias is not allowed in YAML here"),
        );
    }

    #[test]
    fn printed_notes_read_back() {
        for kind in [None, Some(NoteKind::Correct)] {
            check(
                &print(kind, "the port is 9090\n\n"),
                Ok((kind, "the port is 9090\n")),
            );
        }
    }

    #[test]
    fn names_come_from_the_title() {
        for (title, name) in [
            (
                "Prefer uv over pip!",
                "2026-12-01T05-30-00-prefer-uv-over-pip.md",
            ),
            ("用 uv", "2026-12-01T05-30-00-uv.md"),
            ("偏好", "2026-12-01T05-30-00-note.md"),
            ("../../etc", "2026-12-01T05-30-00-etc.md"),
            ("", "2026-12-01T05-30-00-note.md"),
        ] {
            assert_eq!(file_names(now(), title).next().unwrap(), name, "{title}");
        }
    }

    #[test]
    fn names_of_one_second_differ() {
        let names: Vec<_> = file_names(now(), "Use uv").take(3).collect();
        assert_eq!(
            names,
            [
                "2026-12-01T05-30-00-use-uv.md",
                "2026-12-01T05-30-00-use-uv-2.md",
                "2026-12-01T05-30-00-use-uv-3.md",
            ]
        );
    }

    #[test]
    fn names_from_outside_are_checked() {
        let long = format!("2026-12-01T05-30-00-{}.md", "a".repeat(81));
        let too_long = format!("2026-12-01T05-30-00-{}.md", "a".repeat(120));
        for (name, expected) in [
            ("2026-12-01T05-30-00-a.md", Ok(())),
            ("2026-99-01T05-30-00-a.md", Ok(())),
            ("2026-12-01T05-30-00-.md", Err(NoteNameError::BadSlug)),
            ("2026-12-01T05-30-00--a.md", Err(NoteNameError::BadSlug)),
            ("2026-12-01T05-30-00-A.md", Err(NoteNameError::BadSlug)),
            ("2026-12-01T05-30-00-a/b.md", Err(NoteNameError::BadSlug)),
            (&long, Err(NoteNameError::BadSlug)),
            (&too_long, Err(NoteNameError::TooLong)),
            ("2026-12-01-a.md", Err(NoteNameError::NoStamp)),
            ("a.md", Err(NoteNameError::NoStamp)),
            ("2026-12-01T05-30-00-a.txt", Err(NoteNameError::NoMarkdown)),
        ] {
            assert_eq!(check_file_name(name), expected, "{name}");
        }
    }

    #[test]
    fn leftovers_are_told_from_notes() {
        for name in [
            ".note.md.swp",
            "note.md~",
            "4913",
            ".#note.md",
            "#note.md#",
            "note.md.tmp",
            ".DS_Store",
            "note.md.sb-1a2b3c4d-x",
            "~$note.md",
            "note.md___jb_tmp___",
            ".hidden.md",
        ] {
            assert_eq!(leftover(name), Some(Leftover::Temporary), "{name}");
        }
        for name in [
            "note (conflicted copy).md",
            "note (Ada's conflicted copy 2026-12-01).md",
            "note.sync-conflict-20261201-053000-ABCDEFG.md",
        ] {
            assert_eq!(leftover(name), Some(Leftover::ConflictedCopy), "{name}");
        }
        for name in [
            "note.md",
            "2026-12-01T05-30-00-a.md",
            "偏好.md",
            "merge conflicts.md",
            "a#b.md",
        ] {
            assert_eq!(leftover(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_name_we_make_passes_our_own_check(title in "\\PC{0,200}", skip in 0_usize..300) {
            let name = file_names(now(), &title).nth(skip).unwrap();
            prop_assert_eq!(check_file_name(&name), Ok(()), "{}", name);
        }
    }
}
