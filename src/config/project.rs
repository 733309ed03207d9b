//! Which folders and projects are switched off.

use std::path::{Path, PathBuf};

use crate::config::Sessions;
use crate::sys::project;

impl Sessions {
    /// Whether a session in `cwd` of `project` is switched off: a listed
    /// folder is `cwd` or the project's root or lies above it, or a listed
    /// identity is the project or lies above it. Whole parts count: `/p/a`
    /// is not above `/p/ab`.
    pub(crate) fn is_project_disabled(&self, cwd: Option<&str>, project: Option<&str>) -> bool {
        let is_below = |place: &str, listed: &str| {
            let mut place = parts(place);
            parts(listed).all(|part| place.next() == Some(part))
        };
        if self.disabled_projects.is_empty() {
            return false;
        }
        let cwd = cwd.map(project::folder_name);
        let places: Vec<&str> = cwd.as_deref().into_iter().chain(project).collect();
        (self.disabled_projects.iter())
            .any(|listed| places.iter().any(|place| is_below(place, listed)))
    }
}

/// The parts of a path of any system, or of a project identity. The first of
/// an absolute path is empty, so that an identity is never below a folder.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_absolute = text.starts_with(['/', '\\']);
    let root = is_absolute.then_some("");
    let parts = text.split(['/', '\\']);
    root.into_iter()
        .chain(parts.filter(|part| !part.is_empty() && *part != "."))
}

/// An absolute folder, `~/` replaced; `None` for a relative one.
pub(super) fn absolute(text: &str, user_home: &Path) -> Option<PathBuf> {
    let text = text.trim();
    if text == "~" {
        return Some(user_home.to_owned());
    }
    if let Some(below) = text.strip_prefix("~/") {
        return Some(user_home.join(below));
    }
    Path::new(text).is_absolute().then(|| PathBuf::from(text))
}

/// A line of `disabled_projects`, by all the names that sessions may know it
/// by: an absolute folder, or the identity that a repository's URL comes down
/// to. A name alone is neither: many folders have the same one.
pub(super) fn names(text: &str, user_home: &Path) -> Option<Vec<String>> {
    let text = text.trim();
    if let Some(folder) = absolute(text, user_home) {
        return Some(project::names_of(&folder));
    }
    // Sessions may have been held on another system.
    if is_windows_path(text) {
        return Some(vec![project::folder_name(text)]);
    }
    project::remote_identity(text).map(|identity| vec![identity])
}

/// `C:\work` or `C:/work`.
fn is_windows_path(text: &str) -> bool {
    matches!(text.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}
