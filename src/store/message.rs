//! Commit messages: subject, body and the trailers that plain `git log` can query.
//!
//! One file because what is written is read back here, and their tests are one.
//!
//! # Compatibility
//!
//! The trailers are a file format: `Memrev-Kind`, `Memrev-Run`,
//! `Memrev-Version`, `Memrev-Worker`, `Memrev-Prompt`, any number of `Memrev-Input: <A|M|D>
//! <path> <blob> <thread id or ->`, `Memrev-Tokens`, of a revert whose inputs are to be tried
//! again `Memrev-Retry: yes`, and beside main `Memrev-Attempt` and `Memrev-Record`. Unknown ones
//! are skipped.

use std::fmt::Write as _;

use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::path::TreePath;
use crate::domain::text::Redacted;
use crate::domain::version::MemoryVersion;

/// Longest subject, in characters.
const SUBJECT_CHARS_MAX: usize = 200;

/// Longest body, in bytes. Longer ones are cut and say so.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// What plain `git revert` writes, and so do we.
const REVERTS: &str = "This reverts commit ";

/// How the keys of our trailers begin.
const OURS: &str = "Memrev-";

/// The value of `Memrev-Kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CommitKind {
    Init,
    Baseline,
    Edit,
    Revert,
    Forget,
    Merge,
    /// Only on `refs/memrev/attempts` and `refs/memrev/kept`, never on main.
    Kept,
}

impl CommitKind {
    const ALL: [Self; 7] = [
        Self::Init,
        Self::Baseline,
        Self::Edit,
        Self::Revert,
        Self::Forget,
        Self::Merge,
        Self::Kept,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Baseline => "baseline",
            Self::Edit => "edit",
            Self::Revert => "revert",
            Self::Forget => "forget",
            Self::Merge => "merge",
            Self::Kept => "kept",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label() == label)
    }
}

/// The value of `Memrev-Attempt`: why a result stands beside main.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AttemptState {
    /// The judge would not have it, or the right to publish was lost.
    Refused,
    /// A person's word settles it; trying again would not.
    Parked,
    /// Judged good, and a person asked to see it first.
    Waiting,
    /// A person would not have it; nothing of it is kept but what it was about.
    Rejected,
}

impl AttemptState {
    const ALL: [Self; 4] = [Self::Refused, Self::Parked, Self::Waiting, Self::Rejected];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Parked => "parked",
            Self::Waiting => "waiting",
            Self::Rejected => "rejected",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.label() == label)
    }
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// `A`, `M` or `D`.
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
        }
    }

    pub(crate) fn parse(letter: &str) -> Option<Self> {
        [Self::Added, Self::Modified, Self::Deleted]
            .into_iter()
            .find(|kind| letter.chars().eq([kind.letter()]))
    }

    /// What became of a path that had `old` and has `new`; `None` for nothing.
    pub(crate) fn between<T: PartialEq>(old: Option<&T>, new: Option<&T>) -> Option<Self> {
        match (old, new) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::Added),
            (Some(_), None) => Some(Self::Deleted),
            (Some(old), Some(new)) => (old != new).then_some(Self::Modified),
        }
    }
}

/// One `Memrev-Input` trailer: an input version that a baseline consumed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Input {
    pub(crate) change: ChangeKind,
    pub(crate) path: TreePath,
    /// The version consumed; of a deleted input the version that went.
    pub(crate) blob: ObjectId,
    /// For recaps.
    pub(crate) thread_id: Option<ThreadId>,
}

/// The trailers of a commit, as far as they can be understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trailers {
    pub(crate) kind: Option<CommitKind>,
    pub(crate) run: Option<RunId>,
    pub(crate) version: Option<MemoryVersion>,
    pub(crate) worker: Option<String>,
    /// Name and hash of the prompt that the worker was asked by.
    pub(crate) prompt: Option<String>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) tokens: Option<u64>,
    /// A revert after which nothing is withheld.
    pub(crate) retries: bool,
    /// Of an attempt beside main.
    pub(crate) attempt: Option<AttemptState>,
    /// Of an attempt: what taking it up again needs, in the words of the stage
    /// that wrote it. One line.
    pub(crate) record: Option<String>,
}

/// A message under construction. Body text cannot forge trailers: they are
/// the last paragraph, and every message has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitMessage {
    subject: Redacted,
    body: Vec<Redacted>,
    reverts: Option<ObjectId>,
    trailers: Trailers,
}

impl CommitMessage {
    pub(crate) fn new(kind: CommitKind, subject: Redacted) -> Self {
        Self {
            subject,
            body: Vec::new(),
            reverts: None,
            trailers: Trailers {
                kind: Some(kind),
                ..Trailers::default()
            },
        }
    }

    /// Adds a paragraph or more of body text.
    pub(crate) fn body(mut self, text: Redacted) -> Self {
        self.body.push(text);
        self
    }

    /// Says `This reverts commit <id>.`, as `git revert` does.
    pub(crate) fn reverts(mut self, commit: ObjectId) -> Self {
        self.reverts = Some(commit);
        self
    }

    pub(crate) fn run(mut self, run: RunId) -> Self {
        self.trailers.run = Some(run);
        self
    }

    pub(crate) fn version(mut self, version: MemoryVersion) -> Self {
        self.trailers.version = Some(version);
        self
    }

    pub(crate) fn worker(mut self, name: &str) -> Self {
        self.trailers.worker = Some(name.to_owned());
        self
    }

    pub(crate) fn prompt(mut self, identity: Option<&Redacted>) -> Self {
        self.trailers.prompt = identity.map(|identity| identity.as_str().to_owned());
        self
    }

    pub(crate) fn inputs(mut self, inputs: impl IntoIterator<Item = Input>) -> Self {
        self.trailers.inputs.extend(inputs);
        self
    }

    pub(crate) fn tokens(mut self, tokens: u64) -> Self {
        self.trailers.tokens = Some(tokens);
        self
    }

    pub(crate) fn retries(mut self, retries: bool) -> Self {
        self.trailers.retries = retries;
        self
    }

    /// `record` is one line without control characters.
    pub(crate) fn attempt(mut self, state: AttemptState, record: &Redacted) -> Self {
        self.trailers.attempt = Some(state);
        self.trailers.record = Some(record.as_str().to_owned());
        self
    }
}

impl CommitMessage {
    /// The whole message, as Git stores it.
    pub(crate) fn render(&self) -> String {
        let mut text = subject_line(self.subject.as_str());
        if let (true, Some(kind)) = (text.is_empty(), self.trailers.kind) {
            kind.label().clone_into(&mut text);
        }
        if let Some(commit) = self.reverts {
            let _ = write!(text, "\n\n{REVERTS}{commit}.");
        }
        for part in &self.body {
            let paragraphs = body_lines(part.as_str());
            if !paragraphs.is_empty() {
                text.push_str("\n\n");
                text.push_str(&paragraphs);
            }
        }
        text.push_str("\n\n");
        text.push_str(&self.trailers.render());
        text
    }
}

impl Input {
    fn render(&self) -> String {
        let letter = self.change.letter();
        let thread_id = self.thread_id.as_ref().map_or("-", ThreadId::as_str);
        format!("{letter} {} {} {thread_id}", self.path, self.blob)
    }

    /// From the right, because a path may have spaces.
    fn parse(text: &str) -> Option<Self> {
        let (rest, thread_id) = text.rsplit_once(' ')?;
        let (rest, blob) = rest.rsplit_once(' ')?;
        let (letter, path) = rest.split_once(' ')?;
        Some(Self {
            change: ChangeKind::parse(letter)?,
            path: TreePath::parse(path)?,
            blob: ObjectId::parse(blob)?,
            thread_id: ThreadId::parse(thread_id).filter(|_| thread_id != "-"),
        })
    }
}

impl Trailers {
    fn render(&self) -> String {
        let mut lines = String::new();
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(lines, "Memrev-{key}: {}", subject_line(value));
        };
        if let Some(kind) = self.kind {
            line("Kind", kind.label());
        }
        if let Some(run) = &self.run {
            line("Run", run.as_str());
        }
        if let Some(version) = self.version {
            line("Version", version.label());
        }
        if let Some(worker) = &self.worker {
            line("Worker", worker);
        }
        if let Some(prompt) = &self.prompt {
            line("Prompt", prompt);
        }
        for input in &self.inputs {
            // Not through `subject_line`: paths may be longer than it allows,
            // and have no control characters.
            let _ = writeln!(lines, "Memrev-Input: {}", input.render());
        }
        if let Some(tokens) = self.tokens {
            let _ = writeln!(lines, "Memrev-Tokens: {tokens}");
        }
        if self.retries {
            let _ = writeln!(lines, "Memrev-Retry: yes");
        }
        if let Some(state) = self.attempt {
            let _ = writeln!(lines, "Memrev-Attempt: {}", state.label());
        }
        if let Some(record) = &self.record {
            // Longer than a line for people, so not through `subject_line`.
            let plain: String = record.chars().filter(|c| !c.is_control()).collect();
            let _ = writeln!(lines, "Memrev-Record: {}", plain.trim());
        }
        lines
    }

    fn take(&mut self, key: &str, value: &str) {
        match key {
            "Memrev-Kind" => self.kind = CommitKind::parse(value),
            "Memrev-Run" => self.run = Some(RunId::new(value.to_owned())),
            "Memrev-Version" => self.version = MemoryVersion::parse(value),
            "Memrev-Worker" => self.worker = Some(value.to_owned()),
            "Memrev-Prompt" => self.prompt = Some(value.to_owned()),
            "Memrev-Input" => self.inputs.extend(Input::parse(value)),
            "Memrev-Tokens" => self.tokens = value.parse().ok(),
            "Memrev-Retry" => self.retries = value == "yes",
            "Memrev-Attempt" => self.attempt = AttemptState::parse(value),
            "Memrev-Record" => self.record = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// A message taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedMessage<'a> {
    pub(super) subject: &'a str,
    /// Between subject and trailers.
    pub(super) body: &'a str,
    pub(super) trailers: Trailers,
    pub(super) reverts: Option<ObjectId>,
}

/// Takes any commit's message apart. The last paragraph is one of trailers
/// when each of its lines looks like one. In a message that `git rebase`
/// squashed from ours and a person's, ours are in the middle; every message of
/// ours ends with them, so nothing in its body is taken for them.
pub(super) fn parse(message: &str) -> ParsedMessage<'_> {
    let message = message.trim_matches('\n');
    let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
    let rest = rest.trim_matches('\n');
    let last = rest.rfind("\n\n").map_or(0, |at| at + 2);
    let (before, paragraph) = rest.split_at(last);
    let lines: Option<Vec<(&str, &str)>> = paragraph.lines().map(trailer).collect();
    let mut trailers = Trailers::default();
    let body = match lines {
        Some(lines) if !lines.is_empty() => {
            for (key, value) in lines {
                trailers.take(key, value);
            }
            before.trim_matches('\n')
        }
        _ => rest,
    };
    if trailers.kind.is_none() {
        let ours = rest.rsplit("\n\n").find_map(ours);
        trailers = ours.unwrap_or(trailers);
    }
    // A baseline's body holds the worker's words; they revert nothing.
    let may_revert = matches!(trailers.kind, None | Some(CommitKind::Revert));
    let reverts = may_revert
        .then(|| body.lines().find_map(reverted))
        .flatten();
    ParsedMessage {
        subject,
        body,
        trailers,
        reverts,
    }
}

/// The trailers of a paragraph that is as we write them.
fn ours(paragraph: &str) -> Option<Trailers> {
    let mut trailers = Trailers::default();
    for line in paragraph.trim_matches('\n').lines() {
        let (key, value) = trailer(line).filter(|(key, _)| key.starts_with(OURS))?;
        trailers.take(key, value);
    }
    trailers.kind.map(|_| trailers)
}

fn trailer(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(": ")?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!key.is_empty() && key.chars().all(is_key)).then_some((key, value))
}

fn reverted(line: &str) -> Option<ObjectId> {
    // `git revert` of a merge goes on with ", reversing".
    let rest = line.strip_prefix(REVERTS)?;
    let end = rest.find(['.', ','])?;
    ObjectId::parse(&rest[..end])
}

/// One line without control characters.
fn subject_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.collect();
    let words: Vec<&str> = plain.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(SUBJECT_CHARS_MAX).collect()
}

/// Lines without control characters. One that starts with `---` would end
/// the message for `git interpret-trailers`, and one that reads like a trailer
/// of ours or like the sentence of a revert could be taken for it once a person
/// has rewritten the message: these are moved in by a space.
fn body_lines(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let line: String = (line.chars())
            .filter(|c| !c.is_control() || *c == '\t')
            .collect();
        if BODY_BYTES_MAX < kept.len() + line.len() {
            kept.push_str("[cut]\n");
            break;
        }
        if line.starts_with("---") || is_forgery(&line) {
            kept.push(' ');
        }
        kept.push_str(line.trim_end());
        kept.push('\n');
    }
    kept.trim_matches('\n').to_owned()
}

/// Git takes keys in either case.
fn is_forgery(line: &str) -> bool {
    let begins = |with: &str| {
        let start = line.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    begins(OURS) || begins(REVERTS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::{ChangeKind, CommitKind, CommitMessage, Input, parse};
    use crate::domain::id::{ObjectId, RunId, ThreadId};
    use crate::domain::path::TreePath;
    use crate::domain::text::Redacted;
    use crate::domain::version::MemoryVersion;

    fn text(text: &str) -> Redacted {
        Redacted::literal(Box::leak(text.to_owned().into_boxed_str()))
    }

    fn input(path: &str) -> Input {
        Input {
            change: ChangeKind::Modified,
            path: TreePath::parse(path).unwrap(),
            blob: ObjectId::from_bytes([7; 20]),
            thread_id: ThreadId::parse("t-1"),
        }
    }

    #[test]
    fn a_message_reads_as_people_expect_and_comes_back() {
        let message = CommitMessage::new(CommitKind::Baseline, text("baseline: 1 note"))
            .body(text("Inputs:\n- a\n"))
            .run(RunId::new("r1".to_owned()))
            .version(MemoryVersion::V1)
            .worker("offline")
            .inputs([input("rollout_summaries/a b.md")])
            .tokens(12);
        let rendered = message.render();
        let expected = "baseline: 1 note\n\nInputs:\n- a\n\nMemrev-Kind: baseline\nMemrev-Run: r1\n\
            Memrev-Version: v1\nMemrev-Worker: offline\n\
            Memrev-Input: M rollout_summaries/a b.md 0707070707070707070707070707070707070707 t-1\n\
            Memrev-Tokens: 12\n";
        assert_eq!(rendered, expected);
        let parsed = parse(&rendered);
        assert_eq!(parsed.subject, "baseline: 1 note");
        assert_eq!(parsed.body, "Inputs:\n- a");
        assert_eq!(parsed.trailers, message.trailers);
        assert_eq!(parsed.reverts, None);
    }

    #[test]
    fn words_of_a_worker_forge_neither_trailers_nor_reverts() {
        let id = ObjectId::from_bytes([1; 20]);
        let forged = format!(
            "x\n\nMemrev-Kind: revert\nMemrev-Input: A a {id} -\n\nThis reverts commit {id}.\n---\n\u{1b}[31m\n\n\n"
        );
        let message = CommitMessage::new(CommitKind::Baseline, text("a\n\nMemrev-Kind: init"));
        let rendered = message.body(text(&forged)).render();
        let parsed = parse(&rendered);
        assert_eq!(parsed.subject, "a Memrev-Kind: init");
        assert_eq!(parsed.trailers.kind, Some(CommitKind::Baseline));
        assert!(parsed.trailers.inputs.is_empty());
        assert_eq!(parsed.reverts, None);
        assert!(!rendered.contains("\n---") && !rendered.contains('\u{1b}'));
    }

    #[test]
    fn reverts_are_known_by_their_sentence() {
        let id = ObjectId::from_bytes([1; 20]);
        for (message, found) in [
            (format!("Revert \"a\"\n\nThis reverts commit {id}.\n"), true),
            (
                format!("Revert\n\nThis reverts commit {id}, reversing\nchanges made to x.\n"),
                true,
            ),
            (
                format!("fix\n\nSigned-off-by: a\n\nThis reverts commit {id}."),
                true,
            ),
            ("Revert\n\nThis reverts commit abc.".to_owned(), false),
            (format!("I say: This reverts commit {id}."), false),
            (
                format!("x\n\nThis reverts commit {id}.\n\nMemrev-Kind: edit\n"),
                false,
            ),
        ] {
            assert_eq!(parse(&message).reverts, found.then_some(id), "{message}");
        }
        let ours = CommitMessage::new(CommitKind::Revert, text("revert: x")).reverts(id);
        assert_eq!(parse(&ours.render()).reverts, Some(id));
    }

    #[test]
    fn a_squashed_message_keeps_our_trailers() {
        let message = CommitMessage::new(CommitKind::Baseline, text("baseline: 1 note"))
            .body(text("Worker report:\nMemrev-Kind: init"))
            .run(RunId::new("r1".to_owned()))
            .inputs([input("a.md")]);
        for more in [
            "away with it",
            "why\n\nbecause: of this\n",
            "x\n\nCo-authored-by: a\n",
        ] {
            let squashed = format!("{}\n\n{more}", message.render());
            assert_eq!(parse(&squashed).trailers, message.trailers, "{more}");
        }
    }

    #[test]
    fn messages_of_people_are_taken_as_they_are() {
        for (message, subject, body) in [
            ("", "", ""),
            ("one\ntwo", "one", "two"),
            (
                "\n\none\n\nbody: of words here\nand more\n",
                "one",
                "body: of words here\nand more",
            ),
            ("one\n\nbody\n\nSigned-off-by: a\n", "one", "body"),
        ] {
            let parsed = parse(message);
            assert_eq!(
                (parsed.subject, parsed.body),
                (subject, body),
                "{message:?}"
            );
            assert_eq!(parsed.trailers.kind, None);
        }
    }

    proptest! {
        #[test]
        fn trailers_survive_any_body(body in any::<String>(), subject in any::<String>()) {
            let message = CommitMessage::new(CommitKind::Forget, text(&subject))
                .body(text(&body))
                .inputs([input("a -: b.md")]);
            let rendered = message.render();
            prop_assert_eq!(parse(&rendered).trailers, message.trailers);
        }

        /// Also when a person dropped our trailers, or put words behind them.
        #[test]
        fn nothing_in_a_body_reads_like_a_trailer_of_ours_or_a_revert(
            parts in proptest::collection::vec(
                select(vec![
                    "Memrev-Kind: revert", "memrev-kind : init", "MEMREV-INPUT: A a.md 0101010101010101010101010101010101010101 -",
                    "This reverts commit 0101010101010101010101010101010101010101.", "\n", "\n\n", "\r\n", "\u{1b}", "\u{0}", " ", "\t", "---\n", "x", "é",
                ]),
                0..24,
            ),
        ) {
            let message = CommitMessage::new(CommitKind::Baseline, text("baseline: x"))
                .body(text(&parts.concat()));
            let rendered = message.render();
            let (kept, trailers) = rendered.trim_end().rsplit_once("\n\n").unwrap();
            prop_assert_eq!(trailers, "Memrev-Kind: baseline");
            for rewritten in [kept.to_owned(), format!("{kept}\n\nwhy not\n")] {
                let parsed = parse(&rewritten);
                prop_assert_eq!((parsed.trailers.kind, parsed.reverts), (None, None));
            }
            let reads = |line: &str| line.to_lowercase().starts_with("memrev-");
            prop_assert!(!kept.lines().any(reads), "{kept}");
        }
    }
}
