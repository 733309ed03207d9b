//! What kind of command a command line is: whether it only looks, checks
//! something or does something. Programs and targets have a vocabulary of
//! their own, which is the same in every human language.

/// What kind of command a command line is.
pub(crate) struct Shape {
    /// Program and subcommand: what makes two commands the same attempt.
    pub(crate) key: String,
    /// Builds, tests or checks something.
    pub(crate) is_check: bool,
    /// Only looks: listing, printing, searching.
    pub(crate) only_looks: bool,
}

impl Shape {
    /// Looks at each part of a chain; the first that does something counts.
    pub(crate) fn of(line: &str) -> Self {
        let mut looking = None;
        for part in line.split(['\n', ';', '|', '&']) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(words) = skip_prefixes(&words) else {
                continue;
            };
            let program = program_name(words[0]);
            let rest = &words[1..];
            let subcommand = subcommand(program, rest);
            if only_looks(program, subcommand, rest) {
                looking.get_or_insert_with(|| program.to_owned());
                continue;
            }
            let key = match subcommand {
                Some(subcommand) => format!("{program} {subcommand}"),
                None => program.to_owned(),
            };
            let named = |word: &str| is_check_word(&word.to_ascii_lowercase());
            let is_check = named(program) || rest.iter().take(4).any(|word| named(word));
            return Self {
                key,
                is_check,
                only_looks: false,
            };
        }
        Self {
            key: looking.unwrap_or_default(),
            is_check: false,
            only_looks: true,
        }
    }
}

/// Drops variables set for the command and programs that only run others.
fn skip_prefixes<'a, 'b>(words: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let mut words = words;
    while let Some(first) = words.first() {
        let sets_variable = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        let is_number = first
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b's');
        let is_redirect = first.starts_with(['>', '<', '2', '(', '{', ')', '}']) && first.len() < 3;
        if sets_variable || is_number || is_redirect || RUNNERS.contains(first) {
            words = &words[1..];
        } else {
            return Some(words);
        }
    }
    None
}

const RUNNERS: &[&str] = &[
    "sudo", "time", "timeout", "env", "nohup", "exec", "command", "xvfb-run", "nice", "then", "do",
    "if", "!",
];

fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.trim_matches(['"', '\'', '(', ')']);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The first word that is no option; of Python with `-m`, the module.
fn subcommand<'a>(program: &str, rest: &[&'a str]) -> Option<&'a str> {
    if program.starts_with("python")
        && let Some(at) = rest.iter().position(|word| *word == "-m")
    {
        return rest.get(at + 1).copied();
    }
    let word = rest.iter().find(|word| !word.starts_with(['-', '+']))?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
    (word.len() <= 24 && word.chars().all(is_plain)).then_some(*word)
}

fn only_looks(program: &str, subcommand: Option<&str>, rest: &[&str]) -> bool {
    let edits_in_place = program == "sed" && rest.iter().any(|word| word.starts_with("-i"));
    let asks_only = rest
        .iter()
        .any(|word| matches!(*word, "--version" | "--help" | "-V"));
    let git_looks =
        program == "git" && subcommand.is_some_and(|subcommand| GIT_LOOKS.contains(&subcommand));
    (LOOKS.contains(&program) && !edits_in_place) || asks_only || git_looks
}

const LOOKS: &[&str] = &[
    "[",
    "[[",
    "ag",
    "awk",
    "basename",
    "bat",
    "cat",
    "cd",
    "column",
    "cut",
    "date",
    "df",
    "diff",
    "dir",
    "dirname",
    "du",
    "echo",
    "env",
    "export",
    "fd",
    "file",
    "find",
    "fgrep",
    "egrep",
    "for",
    "grep",
    "head",
    "hostname",
    "id",
    "jq",
    "less",
    "ls",
    "man",
    "more",
    "nl",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "sed",
    "set",
    "sleep",
    "sort",
    "source",
    "stat",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "wait",
    "wc",
    "whereis",
    "which",
    "while",
    "whoami",
    "xargs",
    "xxd",
    "Get-ChildItem",
    "Get-Content",
    "Get-Location",
    "Select-String",
    "done",
    "fi",
    "else",
];

const GIT_LOOKS: &[&str] = &[
    "blame",
    "branch",
    "cat-file",
    "config",
    "describe",
    "diff",
    "fetch",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "stash",
    "status",
    "tag",
];

/// Words in the names of programs and targets that build, test or check. They
/// are vocabulary of tools, not of a human language.
fn is_check_word(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| {
            CHECK_WORDS.contains(&part) || part.ends_with("test") || part.ends_with("tests")
        })
}

const CHECK_WORDS: &[&str] = &[
    "bazel",
    "bench",
    "build",
    "check",
    "ci",
    "clippy",
    "cmake",
    "compile",
    "eslint",
    "flake8",
    "fmt",
    "gradle",
    "gradlew",
    "jest",
    "lint",
    "make",
    "msbuild",
    "mvn",
    "mvnw",
    "mypy",
    "ninja",
    "pyright",
    "rspec",
    "ruff",
    "shellcheck",
    "spec",
    "tox",
    "tsc",
    "typecheck",
    "unittest",
    "validate",
    "verify",
    "vet",
    "vitest",
];

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn commands_are_known_by_program_and_subcommand() {
        check_shapes(
            "cargo test --lib | cargo test | checks
             cd /w && RUST_LOG=debug cargo test 2>&1 | tail -5 | cargo test | checks
             sudo make -j4 install | make install | checks
             python3 -m pytest tests/ -q | python3 pytest | checks
             npm run build | npm run | checks
             ./gradlew assembleDebug | gradlew assembleDebug | checks
             npm install left-pad | npm install | does
             git commit -m 'x' | git commit | does
             git status --short | git | looks
             rg foo src | head | rg | looks
             sed -n 1,20p a.rs | sed | looks
             sed -i s/a/b/ a.rs | sed | does
             cargo --version | cargo | looks
             timeout 60 go vet ./... | go vet | checks
             cat <<'EOF' > x | cat | looks
             部署 生产 | 部署 生产 | does",
        );
    }

    #[track_caller]
    fn check_shapes(table: &str) {
        for line in table.lines() {
            let (rest, kind) = line.trim().rsplit_once(" | ").unwrap();
            let (command, key) = rest.rsplit_once(" | ").unwrap();
            let shape = Shape::of(command);
            let told = match (shape.is_check, shape.only_looks) {
                (true, _) => "checks",
                (_, true) => "looks",
                _ => "does",
            };
            assert_eq!((shape.key.as_str(), told), (key, kind), "{command}");
        }
    }
}
