//! Who a commit is by.

use std::path::Path;

use gix::config::Source;

/// The address where nothing better is known.
const LOCAL: &str = "localhost";

/// Longest name or address, in characters.
const PART_CHARS_MAX: usize = 100;

/// Name and address of a commit's author.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// What is known of the person at this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PersonFacts {
    /// `user.name` and `user.email` of their Git configuration.
    pub(crate) git_name: Option<String>,
    pub(crate) git_email: Option<String>,
    /// The login name.
    pub(crate) os_user: Option<String>,
}

impl Author {
    /// The author of everything but a person's edits, and the committer of all.
    pub(crate) fn memrev() -> Self {
        Self {
            name: "memrev".to_owned(),
            email: format!("memrev@{LOCAL}"),
        }
    }

    /// The person: as Git knows them, else by their login name.
    pub(crate) fn person(facts: &PersonFacts) -> Self {
        let known = |text: &Option<String>| text.as_deref().and_then(clean);
        let login = known(&facts.os_user).unwrap_or_else(|| "person".to_owned());
        let email = known(&facts.git_email).map(|email| email.replace(' ', ""));
        let mailbox: String = login.split_whitespace().collect::<Vec<_>>().join(".");
        Self {
            name: known(&facts.git_name).unwrap_or(login),
            email: email.unwrap_or_else(|| format!("{mailbox}@{LOCAL}")),
        }
    }
}

impl PersonFacts {
    /// Reads `~/.config/git/config` and `~/.gitconfig` of `user_home`, without
    /// includes. Nothing else in them is ever used; what cannot be read is not
    /// known.
    pub(crate) fn read(user_home: &Path, os_user: Option<&str>) -> Self {
        let mut facts = Self {
            os_user: os_user.map(str::to_owned),
            ..Self::default()
        };
        for file in [".config/git/config", ".gitconfig"] {
            let path = user_home.join(file);
            let Ok(config) = gix::config::File::from_path_no_includes(path, Source::User) else {
                continue;
            };
            let value = |key: &str| config.string(key).map(|value| value.to_string());
            facts.git_name = value("user.name").or(facts.git_name);
            facts.git_email = value("user.email").or(facts.git_email);
        }
        facts
    }
}

/// Text that can stand in a commit header; `None` when nothing is left. Git
/// drops the same marks at both ends.
fn clean(text: &str) -> Option<String> {
    let kept = |c: &char| !c.is_control() && !matches!(c, '<' | '>');
    let text: String = text.chars().filter(kept).take(PART_CHARS_MAX).collect();
    let is_crud =
        |c: char| c.is_whitespace() || matches!(c, '.' | ',' | ':' | ';' | '"' | '\\' | '\'');
    let text = text.trim_matches(is_crud);
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Author, PersonFacts};

    #[test]
    fn a_person_is_known_by_git_else_by_login() {
        let author = |name: Option<&str>, email: Option<&str>, login: Option<&str>| {
            let facts = PersonFacts {
                git_name: name.map(str::to_owned),
                git_email: email.map(str::to_owned),
                os_user: login.map(str::to_owned),
            };
            let Author { name, email } = Author::person(&facts);
            format!("{name} <{email}>")
        };
        assert_eq!(author(Some("Ada"), Some("a@b.c"), None), "Ada <a@b.c>");
        assert_eq!(author(None, None, Some("ada")), "ada <ada@localhost>");
        assert_eq!(
            author(Some(" "), Some(""), None),
            "person <person@localhost>"
        );
        let forged = author(Some("A <x@y> 1 +0\nparent"), Some("a@b>\n"), None);
        assert_eq!(forged, "A x@y 1 +0parent <a@b>");
        assert_eq!(
            author(Some("彩 ."), None, Some("a b")),
            "彩 <a.b@localhost>"
        );
    }

    #[test]
    fn only_name_and_address_are_read_from_the_persons_configuration() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(PersonFacts::read(home.path(), None), PersonFacts::default());
        let text =
            "[user]\n\tname = Ada L\n\temail = ada@example.org\n[commit]\n\tgpgsign = true\n";
        crate::sys::fs::create_new(&home.path().join(".gitconfig"), text.as_bytes()).unwrap();
        let facts = PersonFacts::read(home.path(), Some("ada"));
        assert_eq!(facts.git_name.as_deref(), Some("Ada L"));
        assert_eq!(facts.git_email.as_deref(), Some("ada@example.org"));
        crate::sys::fs::replace(&home.path().join(".gitconfig"), b"[user\n\0").unwrap();
        assert_eq!(PersonFacts::read(home.path(), None), PersonFacts::default());
    }
}
