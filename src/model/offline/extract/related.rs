//! Whether two command lines are about the same thing, though another program
//! runs them: `npm test -- cart` and `pnpm test cart`.

use std::collections::BTreeSet;

/// A word of at least this many letters may name what a command is about.
const NAME_LETTERS_MIN: usize = 3;

/// The words of a command line that may say what it is about.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    /// Files, targets, names: neither option nor vocabulary of tools.
    names: BTreeSet<&'a str>,
    /// Everything behind the first program, without options and runners.
    arguments: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        let words: Vec<&str> = line
            .split(|c: char| c.is_whitespace() || "\"';|&()`<>".contains(c))
            .map(|word| word.trim_matches(['=', ',', ':']))
            .filter(|word| !word.is_empty() && !word.starts_with(['-', '$', '2']))
            .collect();
        let is_setting = |word: &str| word.contains('=') && !word.starts_with('=');
        let words = words.into_iter().filter(|word| !is_setting(word));
        let words: Vec<&str> = words.collect();
        // A runner stands for the program that it runs.
        let program = usize::from(words.first().is_some_and(|word| !RUNNERS.contains(word)));
        let is_name = |word: &&str| {
            let names = NAME_LETTERS_MIN <= word.chars().count() || word.contains(['/', '.']);
            names && !RUNNERS.contains(word) && !VOCABULARY.contains(word)
        };
        Self {
            names: words.iter().copied().filter(is_name).collect(),
            arguments: words
                .iter()
                .skip(program)
                .copied()
                .filter(|word| !RUNNERS.contains(word))
                .collect(),
        }
    }

    /// They share half of the names that one of them has, or do the same by
    /// another program and name nothing.
    pub(crate) fn are_about(&self, other: &Self) -> bool {
        let shared = self.names.intersection(&other.names).count();
        let least = self.names.len().min(other.names.len());
        let same_arguments = !self.arguments.is_empty() && self.arguments == other.arguments;
        (0 < shared && least <= 2 * shared) || same_arguments
    }
}

/// Programs that run others, and shells.
const RUNNERS: &[&str] = &[
    "bash", "bun", "bunx", "command", "env", "exec", "node", "npm", "npx", "nohup", "pdm",
    "pipenv", "pnpm", "poetry", "python", "python3", "run", "sh", "sudo", "time", "timeout", "tsx",
    "uv", "uvx", "yarn", "zsh",
];

/// Words that tools have in common, which name nothing of a project.
const VOCABULARY: &[&str] = &[
    "add", "apply", "apt", "apt-get", "brew", "build", "cargo", "check", "clean", "commit",
    "compose", "create", "deploy", "dev", "docker", "down", "fmt", "get", "git", "go", "gradle",
    "install", "kubectl", "lint", "make", "mvn", "pip", "pip3", "pull", "push", "pytest", "remove",
    "restart", "serve", "start", "stop", "test", "tests", "update", "upgrade", "echo", "set",
    "cat", "src", "main", "origin", "true", "false", "./...",
];

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn commands_are_paired_by_what_they_name() {
        for (failed, worked, expected) in [
            ("npm test -- cart", "pnpm test cart", true),
            ("npm test", "pnpm test", true),
            (
                "python scripts/summary.py",
                "uv run python scripts/summary.py",
                true,
            ),
            ("zprof", "zsh -ic 'zmodload zsh/zprof; zprof'", true),
            ("pip install polars", "uv pip install polars", true),
            ("python 脚本/汇总.py", "uv run 脚本/汇总.py", true),
            (
                "pytest tests/test_login.py",
                "docker compose up -d db",
                false,
            ),
            ("npm install", "brew install wget", false),
            ("cargo test", "git commit -m test", false),
            ("make", "ninja", false),
            ("git push origin main", "git pull origin main", false),
        ] {
            let told = Words::of(failed).are_about(&Words::of(worked));
            assert_eq!(told, expected, "{failed} / {worked}");
        }
    }
}
