//! Which folders and projects are switched off.

use std::path::{Path, PathBuf};

use crate::config::Sessions;

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
        let places: Vec<&str> = cwd.into_iter().chain(project).collect();
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

/// A line of `disabled_projects`: an absolute folder, or the identity that a
/// repository's URL comes down to. A name alone is neither: many folders have
/// the same one.
pub(super) fn normalise(text: &str, user_home: &Path) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.contains(char::is_control) {
        return None;
    }
    if let Some(folder) = absolute(text, user_home) {
        return Some(folder.to_string_lossy().into_owned());
    }
    if is_windows_path(text) {
        return Some(text.to_owned());
    }
    let is_relative = text.starts_with(['.', '/', '\\', '~']);
    (!is_relative).then(|| identity(text)).flatten()
}

/// `C:\work` or `C:/work`: sessions may have been held on another system.
fn is_windows_path(text: &str) -> bool {
    matches!(text.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

/// `https://user@example.org/team/project.git` and
/// `git@example.org:team/project` are both `example.org/team/project`.
fn identity(text: &str) -> Option<String> {
    let (has_scheme, rest) = match text.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => (false, text),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (host, path) = match rest[..end].split_once('/') {
        // The short form of SSH has a colon between host and path.
        Some((host, path)) if !has_scheme && host.contains(':') => {
            let (host, first) = host.split_once(':')?;
            (host, format!("{first}/{path}"))
        }
        Some((host, path)) => (host, path.to_owned()),
        None if !has_scheme => {
            let (host, path) = rest[..end].split_once(':')?;
            (host, path.to_owned())
        }
        None => return None,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| format!("{}/{path}", host.to_lowercase()))
}
