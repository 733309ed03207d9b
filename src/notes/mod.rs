//! Notes and withheld entries: loaded, written, matched.
//!
//! # Not in here
//!
//! What a note asks for is decided in `text`, what follows from it by the
//! worker. Entries to be withheld are named by the stages and only kept here.

pub(crate) mod withheld_set;

use std::path::Path;

use crate::domain::note::{Note, NoteKind};
use crate::domain::path::{FileKind, NOTE_INSTRUCTIONS, NOTES, TreePath};
use crate::domain::text::{Raw, Redacted};
use crate::domain::time::Timestamp;
use crate::sys::fs::{self, FsError};
use crate::text::note::{self, NoteError};
use crate::text::note_kind::effective_kind;

/// Says in the memory folder what notes are, for people and workers alike.
pub(crate) const INSTRUCTIONS: &str = include_str!("../../prompts/ad-hoc-notes.md");

/// Says to a worker what `extensions/withheld/` holds.
pub(crate) const WITHHELD_INSTRUCTIONS: &str = include_str!("../../prompts/withheld.md");

/// Where [`WITHHELD_INSTRUCTIONS`] lie in a memory folder.
pub(crate) const WITHHELD_INSTRUCTIONS_PATH: &str = "extensions/withheld/instructions.md";

/// A note and what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) note: Note,
    /// From its header, else from cue words.
    pub(crate) kind: NoteKind,
}

/// The notes among the files of a memory folder.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By path.
    pub(crate) all: Vec<Request>,
    /// Files in the notes' folder that cannot be read as a note.
    pub(crate) unreadable: Vec<(TreePath, NoteError)>,
}

/// Reads the notes among `files`, which may hold a whole snapshot.
pub(crate) fn read<'f>(files: impl IntoIterator<Item = (&'f TreePath, &'f Raw)>) -> Requests {
    let mut requests = Requests::default();
    for (path, text) in files {
        if path.kind() != FileKind::Note || note::is_editor_leftover(path.name()) {
            continue;
        }
        match note::parse(path, text.unredacted()) {
            Ok(note) => requests.all.push(Request {
                kind: effective_kind(&note),
                note,
            }),
            Err(error) => requests.unreadable.push((path.clone(), error)),
        }
    }
    requests
        .all
        .sort_by(|left, right| left.note.path.cmp(&right.note.path));
    requests
        .unreadable
        .sort_by(|left, right| left.0.cmp(&right.0));
    requests
}

/// Writes a note into a memory folder and says where. It takes no lock: the
/// file is created whole under a name that nobody has.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write(
    memory_folder: &Path,
    kind: Option<NoteKind>,
    title: &str,
    text: &Redacted,
    now: Timestamp,
) -> Result<TreePath, FsError> {
    let folder = memory_folder.join(NOTES);
    fs::make_folders(&folder)?;
    let printed = note::print(kind, text.as_str());
    let mut names = note::file_names(now, title);
    loop {
        let name = names.next().expect("the names have a number that goes on");
        let path =
            TreePath::parse(&format!("{NOTES}/{name}")).expect("a stamp and a slug fit a path");
        if fs::create_new(&folder.join(&name), printed.as_bytes())? {
            return Ok(path);
        }
    }
}

/// Puts the instructions for notes into a memory folder unless something is
/// there. True when they are new.
///
/// # Errors
///
/// When they cannot be written.
pub(crate) fn seed_instructions(memory_folder: &Path) -> Result<bool, FsError> {
    let file = memory_folder.join(NOTE_INSTRUCTIONS);
    if fs::is_taken(&file) {
        return Ok(false);
    }
    if let Some(folder) = file.parent() {
        fs::make_folders(&folder.join("notes"))?;
    }
    fs::create_new(&file, INSTRUCTIONS.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{
        INSTRUCTIONS, WITHHELD_INSTRUCTIONS, WITHHELD_INSTRUCTIONS_PATH, read, seed_instructions,
        write,
    };
    use crate::domain::note::NoteKind;
    use crate::domain::path::{FileKind, NOTE_INSTRUCTIONS, TreePath};
    use crate::domain::text::Raw;
    use crate::domain::time::Timestamp;
    use crate::sys::fs;
    use crate::text::redact;

    #[test]
    fn two_notes_of_one_second_are_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_seconds(1_770_000_000);
        let mut files = Vec::new();
        for (kind, text) in [(None, "use uv"), (Some(NoteKind::Forget), "the port")] {
            let path = write(
                folder.path(),
                kind,
                "My title",
                &redact::redact_str(text),
                now,
            )
            .unwrap();
            let text = fs::read_text_if_any(&folder.path().join(path.as_str()), 999).unwrap();
            files.push((path, Raw::new(text.unwrap())));
        }
        assert_ne!(files[0].0, files[1].0);
        let requests = read(files.iter().map(|(path, text)| (path, text)));
        let kinds: Vec<_> = requests.all.iter().map(|request| request.kind).collect();
        assert_eq!(kinds.len(), 2);
        assert!(kinds.contains(&NoteKind::Remember) && kinds.contains(&NoteKind::Forget));
    }

    #[test]
    fn what_is_no_note_is_named_or_passed_over() {
        let text = |name: &str, text: &str| {
            let path = TreePath::parse(&format!("extensions/ad_hoc/notes/{name}")).unwrap();
            (path, Raw::new(text))
        };
        let files = [
            text("b.md", "更正：端口是 9090"),
            text("a.md", "---\nkind: dance\n---\nx"),
            text(".b.md.swp", "x"),
            (TreePath::parse("MEMORY.md").unwrap(), Raw::new("x")),
        ];
        let requests = read(files.iter().map(|(path, text)| (path, text)));
        assert_eq!(requests.all.len(), 1);
        assert_eq!(requests.all[0].kind, NoteKind::Correct);
        assert_eq!(requests.unreadable[0].0, files[1].0);
    }

    #[test]
    fn workers_are_told_about_withheld_entries() {
        let path = TreePath::parse(WITHHELD_INSTRUCTIONS_PATH).unwrap();
        assert_eq!(path.kind(), FileKind::Instructions);
        assert!(WITHHELD_INSTRUCTIONS.contains("entries/"));
    }

    #[test]
    fn seeding_never_overwrites_the_persons_instructions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(NOTE_INSTRUCTIONS);
        assert!(seed_instructions(folder.path()).unwrap());
        assert_eq!(fs::read(&file, 9_999).unwrap(), INSTRUCTIONS.as_bytes());
        fs::replace(&file, b"mine").unwrap();
        assert!(!seed_instructions(folder.path()).unwrap());
        assert_eq!(fs::read(&file, 9_999).unwrap(), b"mine");
    }
}
