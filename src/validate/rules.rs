//! All rules with their levels, one row each.

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// Refuses a worker's result.
    Error,
    Warning,
}

impl Level {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) code: &'static str,
    pub(crate) level: Level,
    /// What it finds, in a few words.
    pub(crate) about: &'static str,
}

const fn error(code: &'static str, about: &'static str) -> Rule {
    Rule {
        code,
        level: Level::Error,
        about,
    }
}

const fn warning(code: &'static str, about: &'static str) -> Rule {
    Rule {
        code,
        level: Level::Warning,
        about,
    }
}

/// By family and number.
pub(crate) const RULES: &[Rule] = &[
    error("F001", "a symbolic link"),
    error(
        "F002",
        "two paths that differ in case or accents' encoding only",
    ),
    error("F003", "conflict markers in a memory file or note"),
    error("F004", "a file that is not UTF-8"),
    error(
        "F005",
        "control or direction characters in a memory file or note",
    ),
    error("F006", "a file over the size limit"),
    error("F007", "a file about what is withheld that cannot be read"),
    warning("F008", "control or direction characters in another file"),
    warning("K001", "a skill without readable front matter"),
    warning("K002", "a skill whose name is missing or unfit"),
    warning("K003", "a skill without a description"),
    warning("K004", "a skill that is too long to be read whole"),
    error(
        "M001",
        "no handbook although there is something to remember",
    ),
    error(
        "M002",
        "a handbook without a task group although there is something to remember",
    ),
    error("M003", "a reply to a person in the handbook"),
    warning("M004", "a task group without `scope:` or `applies_to:`"),
    warning("M005", "a task without recap or keywords"),
    error("N001", "a note whose header cannot be read"),
    error("N002", "an empty note"),
    warning("N003", "a note without a time in its name"),
    warning("N004", "a synchroniser's second version of a note"),
    error("P001", "a pointer to a recap that is not there"),
    error("P002", "a thread id that no recap has"),
    warning("P003", "a link to a memory file that is not there"),
    warning(
        "P004",
        "a recap and a thread id that do not belong together",
    ),
    error("P005", "a transcript that is not the recap's"),
    error("R001", "a recap whose header cannot be read"),
    error("R002", "a recap without a required field"),
    error("R003", "a recap with a field that cannot be read"),
    warning("R004", "a recap with an unknown field"),
    warning("R005", "two recaps of one session"),
    error("R006", "a recap without text"),
    error("S001", "no summary although there is something to remember"),
    error("S002", "a summary whose first line is not `v1`"),
    error("S003", "a summary over its byte budget"),
    error("S004", "a version 2 summary of 10,000 bytes or more"),
    error("S005", "a summary without one of its four headings"),
    error(
        "S006",
        "a summary that says nothing although there is something to remember",
    ),
    error("S007", "a reply to a person in the summary"),
    error("X001", "a secret"),
];

/// The level of a rule of the table.
pub(super) fn level(code: &str) -> Level {
    let rule = RULES.iter().find(|rule| rule.code == code);
    rule.map_or(Level::Error, |rule| rule.level)
}
