//! The publication record: what a process was about to do to the work tree.
//!
//! # Compatibility
//!
//! A text file, one fact a line, whole or not there at all:
//!
//! ```text
//! memrev publication 1
//! run <run>
//! old <commit that main was at>
//! new <commit that publishes>
//! file <old version> <new version> <path>
//! ```
//!
//! A version is a blob id, with `+x` behind it for an executable file, or
//! `-` for no file. The n-th `file` line is number n, from 0, under
//! `incoming/<run>/` and `displaced/<run>/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::domain::id::{ObjectId, RunId};
use crate::domain::path::TreePath;
use crate::store::Blob;
use crate::store::error::StoreError;
use crate::sys::fs;

const FIRST_LINE: &str = "memrev publication 1";

/// Largest record that is read; one file needs at most 1.2 KB of it.
const RECORD_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A publication under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) run: RunId,
    pub(super) old: ObjectId,
    pub(super) new: ObjectId,
    pub(super) files: Vec<RecordedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedFile {
    pub(super) path: TreePath,
    pub(super) old: Option<Blob>,
    pub(super) new: Option<Blob>,
}

impl Record {
    /// Writes it to `file`, flushed with its folder.
    pub(super) fn save(&self, file: &Path) -> Result<(), StoreError> {
        Ok(fs::replace(file, self.print().as_bytes())?)
    }

    /// Reads it; `None` when there is none.
    ///
    /// # Errors
    ///
    /// When it is not one that this program could have written.
    pub(super) fn load(file: &Path) -> Result<Option<Self>, StoreError> {
        let bytes = match fs::read(file, RECORD_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let unusable = || StoreError::Unusable {
            folder: work_tree_of(file),
            why: format!("`{}` is no record of a publication", file.display()),
        };
        let text = String::from_utf8(bytes).ok();
        let record = text.and_then(|text| Self::parse(&text));
        record.map(Some).ok_or_else(unusable)
    }

    fn print(&self) -> String {
        let Self { run, old, new, .. } = self;
        let mut text = format!("{FIRST_LINE}\nrun {run}\nold {old}\nnew {new}\n");
        for file in &self.files {
            let (old, new) = (print_version(file.old), print_version(file.new));
            let _ = writeln!(text, "file {old} {new} {}", file.path);
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let mut fact = |key: &str| lines.next()?.strip_prefix(key);
        fact(FIRST_LINE)?;
        let run = RunId::new(fact("run ")?.to_owned());
        let old = ObjectId::parse(fact("old ")?)?;
        let new = ObjectId::parse(fact("new ")?)?;
        let files = lines.map(parse_file).collect::<Option<Vec<_>>>()?;
        Some(Self {
            run,
            old,
            new,
            files,
        })
    }
}

/// The name of a run's folders: a run is named by letters, digits and dashes,
/// and whatever else one has cannot lead out of the folder.
pub(super) fn folder_name(run: &RunId) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    run.as_str().chars().map(plain).collect()
}

fn print_version(version: Option<Blob>) -> String {
    version.map_or("-".to_owned(), |blob| {
        let mark = if blob.executable { "+x" } else { "" };
        format!("{}{mark}", blob.id)
    })
}

fn parse_file(line: &str) -> Option<RecordedFile> {
    let mut parts = line.strip_prefix("file ")?.splitn(3, ' ');
    Some(RecordedFile {
        old: parse_version(parts.next()?).ok()?,
        new: parse_version(parts.next()?).ok()?,
        path: TreePath::parse(parts.next()?)?,
    })
}

/// An error for what is neither a version nor the mark for none.
fn parse_version(text: &str) -> Result<Option<Blob>, ()> {
    if text == "-" {
        return Ok(None);
    }
    let (id, executable) = match text.strip_suffix("+x") {
        Some(id) => (id, true),
        None => (text, false),
    };
    let id = ObjectId::parse(id).ok_or(())?;
    Ok(Some(Blob { id, executable }))
}

/// From `<folder>/.git/memrev/…`.
fn work_tree_of(file: &Path) -> PathBuf {
    let git_dir = file.ancestors().find(|above| above.ends_with(".git"));
    git_dir.and_then(Path::parent).unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Record, RecordedFile, folder_name};
    use crate::domain::id::{ObjectId, RunId};
    use crate::domain::path::TreePath;
    use crate::store::Blob;

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let blob = |byte, executable| {
            let id = ObjectId::from_bytes([byte; 20]);
            Some(Blob { id, executable })
        };
        let file = |path, old, new| RecordedFile {
            path: TreePath::parse(path).unwrap(),
            old,
            new,
        };
        let record = Record {
            run: RunId::new("20261201T053344-1f3a9c".to_owned()),
            old: ObjectId::from_bytes([1; 20]),
            new: ObjectId::from_bytes([2; 20]),
            files: vec![
                file("MEMORY.md", blob(3, false), blob(4, true)),
                file("a b/ c.md", None, blob(5, false)),
                file("記憶.md", blob(6, false), None),
            ],
        };
        let text = record.print();
        assert_eq!(Record::parse(&text), Some(record));
        for cut in 1..text.len() {
            if text.is_char_boundary(cut) && !text[..cut].ends_with('\n') {
                assert_eq!(Record::parse(&text[..cut]), None, "{:?}", &text[..cut]);
            }
        }
    }

    #[test]
    fn a_run_names_one_folder() {
        assert_eq!(folder_name(&RunId::new("../x/é".to_owned())), "___x__");
    }
}
