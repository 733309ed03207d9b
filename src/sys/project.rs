//! Project identity from `.git` files, without running Git.
//!
//! Clones share their origin URL, worktrees share the main work tree; a folder
//! name alone never makes two folders one project.
//!
//! # Not in here
//!
//! No includes, no `insteadOf`, no environment: what Git would make of those
//! is the person's own, and a session may be read on another machine.
//!
//! # Limits
//!
//! Files of `.git` are small; larger ones are taken for absent.

use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use crate::domain::project::Project;

/// Largest `.git/config` that is read, in bytes.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Largest `.git` link or `commondir`, in bytes.
const LINK_BYTES_MAX: u64 = 16 * 1024;

/// Clones of clones that are followed to a common origin.
const LOCAL_ORIGINS_MAX: u32 = 4;

/// Names the code base that `cwd` is part of.
///
/// `repository_url` is the origin as the transcript has it. `cwd` may be a
/// Windows path, or gone.
pub(crate) fn identify(cwd: &Path, repository_url: Option<&str>) -> Project {
    let stated = repository_url.and_then(normalised_url);
    let identity = match stated {
        Some(Origin::Remote(identity)) => identity,
        Some(Origin::Local(path)) if path.is_absolute() => identity_of(&path, 1),
        _ => identity_of(cwd, 0),
    };
    Project::new(identity)
}

/// The identity behind a remote repository's URL, or behind `host/path` as
/// identities are written. `None` for folders and bare names.
pub(crate) fn remote_identity(text: &str) -> Option<String> {
    let text = text.trim();
    let found = match normalised_url(text)? {
        Origin::Local(_) if text.starts_with(['.', '/', '\\', '~']) || text.contains("://") => None,
        Origin::Local(_) => normalised_url(&format!("https://{text}")),
        remote @ Origin::Remote(_) => Some(remote),
    };
    match found? {
        Origin::Remote(identity) => Some(identity),
        Origin::Local(_) => None,
    }
}

/// What sessions may call an absolute folder: as written, with its links
/// resolved, and if it is the root of a work tree, the project's identity.
pub(crate) fn names_of(folder: &Path) -> Vec<String> {
    let mut names = vec![folder_name(&folder.to_string_lossy())];
    names.push(real(folder));
    if folder.join(".git").exists() {
        names.push(identify(folder, None).as_str().to_owned());
    }
    names.dedup();
    names
}

/// A folder of any system without `.`, `..`, `file://` and trailing
/// separators, by name alone.
pub(crate) fn folder_name(folder: &str) -> String {
    plain_folder(Path::new(folder))
}

/// Where a repository was cloned from.
#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// `host/path`.
    Remote(String),
    /// A folder of this machine, perhaps relative to the clone.
    Local(PathBuf),
}

fn identity_of(cwd: &Path, depth: u32) -> String {
    let folder = plain_folder(cwd);
    let path = Path::new(&folder);
    if !path.is_absolute() {
        return folder;
    }
    let Some(repository) = repository_of(path) else {
        return real(path);
    };
    let origin = origin_of(&repository.config);
    match origin.as_deref().and_then(normalised_url) {
        Some(Origin::Remote(identity)) => identity,
        Some(Origin::Local(origin)) if depth < LOCAL_ORIGINS_MAX => {
            identity_of(&repository.root.join(origin), depth + 1)
        }
        _ => real(&repository.root),
    }
}

/// A repository on this machine.
struct Repository {
    /// The main work tree; of a bare repository, the repository itself.
    root: PathBuf,
    config: PathBuf,
}

/// The repository that `folder` or one above it belongs to.
fn repository_of(folder: &Path) -> Option<Repository> {
    folder.ancestors().find_map(|root| {
        let git = root.join(".git");
        let metadata = fs::metadata(&git).ok()?;
        if metadata.is_dir() {
            // An empty `.git` folder is no repository, as Git sees it.
            let is_repository = git.join("HEAD").exists();
            return is_repository.then(|| Repository {
                root: root.to_owned(),
                config: git.join("config"),
            });
        }
        linked_repository(root, &git)
    })
}

/// A `.git` file points to the folder of a worktree or submodule.
fn linked_repository(root: &Path, link: &Path) -> Option<Repository> {
    let text = read_small(link, LINK_BYTES_MAX)?;
    let target = text.strip_prefix("gitdir:")?.trim();
    let git_dir = root.join(target);
    let Some(common) = read_small(&git_dir.join("commondir"), LINK_BYTES_MAX) else {
        // A submodule, or a worktree whose main work tree is gone.
        return Some(main_of_gone(&git_dir).unwrap_or_else(|| Repository {
            root: root.to_owned(),
            config: git_dir.join("config"),
        }));
    };
    let common = clean(&git_dir.join(common.trim()));
    let is_in_work_tree = common.file_name().is_some_and(|name| name == ".git");
    let root = match common.parent() {
        Some(parent) if is_in_work_tree => parent.to_owned(),
        _ => common.clone(),
    };
    Some(Repository {
        root,
        config: common.join("config"),
    })
}

/// `/w/main/.git/worktrees/x` belongs to `/w/main` even when it was removed.
fn main_of_gone(git_dir: &Path) -> Option<Repository> {
    let git_dir = clean(git_dir);
    let worktrees = git_dir.parent()?;
    let common = worktrees.parent()?;
    let is_worktree = worktrees.file_name()? == "worktrees" && common.file_name()? == ".git";
    is_worktree.then(|| Repository {
        root: common.parent().unwrap_or(common).to_owned(),
        config: common.join("config"),
    })
}

fn read_small(path: &Path, bytes_max: u64) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    let is_small = file.metadata().ok()?.len() <= bytes_max;
    file.take(bytes_max).read_to_string(&mut text).ok()?;
    is_small.then_some(text)
}

/// The URL of the remote `origin` in a Git configuration.
fn origin_of(config: &Path) -> Option<String> {
    let text = read_small(config, CONFIG_BYTES_MAX)?;
    let mut is_origin = false;
    let mut url = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split(']').next().unwrap_or_default();
            let (name, subsection) = section.split_once([' ', '\t']).unwrap_or((section, ""));
            is_origin = name.eq_ignore_ascii_case("remote") && subsection.trim() == "\"origin\"";
        } else if is_origin
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("url")
        {
            url = Some(unquoted(value)).filter(|value| !value.is_empty());
        }
    }
    url
}

/// A configuration value without quotes, escapes and comment.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut is_quoted = false;
    let mut characters = value.trim().chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => plain.extend(characters.next()),
            '#' | ';' if !is_quoted => break,
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

/// What an origin URL comes down to, however it is written.
fn normalised_url(url: &str) -> Option<Origin> {
    let url = url.trim();
    if url.is_empty() || url.chars().any(char::is_control) {
        return None;
    }
    let (host, path) = if let Some((scheme, rest)) = url.split_once("://") {
        if scheme.eq_ignore_ascii_case("file") {
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            return Some(Origin::Local(without_git_suffix(path).into()));
        }
        rest.split_once('/')?
    } else {
        match url.split_once(':') {
            Some((host, path)) if is_scp_host(host) => (host, path),
            _ => return Some(Origin::Local(without_git_suffix(url).into())),
        }
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = without_port(host)
        .trim_end_matches('.')
        .to_ascii_lowercase();
    let host = match host.as_str() {
        // The same servers, reached through the port of HTTPS.
        "ssh.github.com" => "github.com",
        "altssh.gitlab.com" => "gitlab.com",
        other => other,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts = path.split('/').filter(|part| !part.is_empty());
    let path = parts.collect::<Vec<_>>().join("/");
    let path = without_git_suffix(&path);
    let is_whole = !host.is_empty() && !path.is_empty();
    is_whole.then(|| Origin::Remote(format!("{host}/{path}")))
}

/// `git@host:path`, but neither `C:\path` nor `./a:b`.
fn is_scp_host(host: &str) -> bool {
    host.len() > 1 && !host.contains(['/', '\\'])
}

fn without_port(host: &str) -> &str {
    if let Some(end) = host.find(']') {
        return &host[..=end];
    }
    host.split(':').next().unwrap_or(host)
}

fn without_git_suffix(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    let bare = trimmed
        .strip_suffix("/.git")
        .or_else(|| trimmed.strip_suffix(".git"));
    match bare {
        Some(bare) if !bare.trim_end_matches('/').is_empty() => bare.trim_end_matches('/'),
        _ if trimmed.is_empty() => path,
        _ => trimmed,
    }
}

/// A folder as its own identity: links resolved while it exists.
fn real(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| clean(folder));
    plain_folder(&real)
}

/// The folder without `file://`, verbatim prefix, `.` and trailing separators.
fn plain_folder(folder: &Path) -> String {
    let text = folder.to_string_lossy();
    let text = text.strip_prefix("file://").unwrap_or(&text);
    if let Some(windows) = windows_folder(text) {
        return windows;
    }
    clean(Path::new(text)).to_string_lossy().into_owned()
}

/// `\\?\c:\work\` and `c:/work` are `C:\work`; `None` for other systems' paths.
fn windows_folder(text: &str) -> Option<String> {
    if let Some(share) = text.strip_prefix(r"\\?\UNC\") {
        return Some(format!(r"\\{}", share.trim_end_matches('\\')));
    }
    let text = text.strip_prefix(r"\\?\").unwrap_or(text);
    if text.starts_with(r"\\") {
        return Some(text.trim_end_matches('\\').to_owned());
    }
    let drive = text.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = text[1..].strip_prefix(':')?;
    if !rest.is_empty() && !rest.starts_with(['\\', '/']) {
        return None;
    }
    let parts = rest
        .split(['\\', '/'])
        .filter(|part| !part.is_empty() && *part != ".");
    let path = parts.collect::<Vec<_>>().join("\\");
    Some(format!("{}:\\{path}", drive.to_ascii_uppercase()))
}

/// Resolves `.` and `..` by name alone.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            other => cleaned.push(other),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Origin, identify, normalised_url};
    use crate::sys::fs::{make_folders, replace};

    #[test]
    fn spellings_of_one_origin_are_one_project() {
        for url in [
            "https://example.org/Team/ledger",
            "https://example.org/Team/ledger.git",
            "https://example.org/Team/ledger.git/",
            "https://user:pa55@example.org/Team/ledger.git?x=1#y",
            "http://EXAMPLE.org:8080//Team/ledger",
            "ssh://git@example.org:2222/Team/ledger.git",
            "git://example.org./Team/ledger",
            "git@example.org:Team/ledger.git",
            "example.org:Team/ledger",
            "  git+ssh://git@example.org/Team/ledger.git\n",
        ] {
            let project = identify(Path::new("/nowhere"), Some(url));
            assert_eq!(project.as_str(), "example.org/Team/ledger", "{url}");
        }
        assert_eq!(
            normalised_url("ssh://git@[::1]:22/a"),
            Some(Origin::Remote("[::1]/a".to_owned()))
        );
        for url in ["", "https://example.org/", "https://example.org", "\u{7}"] {
            assert_eq!(normalised_url(url), None, "{url}");
        }
    }

    #[test]
    fn folders_without_git_are_themselves() {
        for (folder, identity) in [
            ("/nowhere/a", "/nowhere/a"),
            ("/nowhere/a/", "/nowhere/a"),
            ("/nowhere/./b/../a", "/nowhere/a"),
            ("file:///nowhere/a", "/nowhere/a"),
            ("/nowhere/a-b", "/nowhere/a-b"),
            (r"C:\work\ledger", r"C:\work\ledger"),
            (r"\\?\c:\work\ledger\", r"C:\work\ledger"),
            ("c:/work/ledger", r"C:\work\ledger"),
            (r"\\?\UNC\host\share\x", r"\\host\share\x"),
            ("/nowhere/é 漢", "/nowhere/é 漢"),
        ] {
            assert_eq!(
                identify(Path::new(folder), None).as_str(),
                identity,
                "{folder}"
            );
        }
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        make_folders(path.parent().unwrap()).unwrap();
        replace(&path, text.as_bytes()).unwrap();
    }

    #[test]
    fn worktrees_clones_and_subfolders_are_one_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = &folder.path().canonicalize().unwrap();
        put(root, "main/.git/HEAD", "ref: refs/heads/main\n");
        put(root, "main/.git/config", "[core]\n\tbare = false\n");
        put(root, "main/src/a.rs", "");
        put(root, "main-b/x", "");
        let git_dir = root.join("main/.git/worktrees/side");
        put(root, "main/.git/worktrees/side/commondir", "../..\n");
        put(
            root,
            "side/.git",
            &format!("gitdir: {}\n", git_dir.display()),
        );
        put(root, "clone/.git/HEAD", "ref: refs/heads/main\n");
        let config = format!(
            "[remote \"origin\"]\n\turl = {}/main/.git\n",
            root.display()
        );
        put(root, "clone/.git/config", &config);
        let main = root.join("main").display().to_string();
        for place in ["main", "main/src", "main/gone/deeper", "side", "clone"] {
            assert_eq!(identify(&root.join(place), None).as_str(), main, "{place}");
        }
        let other = root.join("main-b").display().to_string();
        assert_eq!(identify(&root.join("main-b"), None).as_str(), other);

        put(
            root,
            "main/.git/config",
            "[remote \"upstream\"]\nurl = https://example.org/other\n[Remote \"origin\"]\n  URL = \"git@example.org:team/ledger.git\" ; ours\n  fetch = +refs\n",
        );
        for place in ["main", "side", "clone"] {
            let project = identify(&root.join(place), None);
            assert_eq!(project.as_str(), "example.org/team/ledger", "{place}");
        }
    }

    #[test]
    fn damaged_git_files_are_survived() {
        let folder = tempfile::tempdir().unwrap();
        let root = &folder.path().canonicalize().unwrap();
        put(root, "a/.git", "gitdir: /gone/main/.git/worktrees/a\n");
        assert_eq!(identify(&root.join("a"), None).as_str(), "/gone/main");
        put(root, "b/.git", "nonsense");
        let b = root.join("b").display().to_string();
        assert_eq!(identify(&root.join("b"), None).as_str(), b);
        put(root, "sub/.git", "gitdir: ../modules/sub\n");
        put(
            root,
            "modules/sub/config",
            "[remote \"origin\"]\nurl=https://example.org/sub\n",
        );
        assert_eq!(
            identify(&root.join("sub"), None).as_str(),
            "example.org/sub"
        );
        // A clone that names itself ends somewhere.
        put(root, "self/.git/HEAD", "x");
        put(root, "self/.git/config", "[remote \"origin\"]\nurl = .\n");
        let itself = root.join("self").display().to_string();
        assert_eq!(identify(&root.join("self"), None).as_str(), itself);
    }
}
