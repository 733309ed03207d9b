//! Who a commit is by.

use std::path::Path;

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
            email: "memrev@localhost".to_owned(),
        }
    }

    /// The person: as Git knows them, else by their login name.
    pub(crate) fn person(_facts: &PersonFacts) -> Self {
        todo!()
    }
}

impl PersonFacts {
    /// Reads `~/.gitconfig` and `~/.config/git/config` of `user_home`, without
    /// includes. Nothing else of them is ever used.
    pub(crate) fn read(_user_home: &Path, _os_user: Option<&str>) -> Self {
        todo!()
    }
}
