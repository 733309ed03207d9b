//! What can be typed. The doc comments are the help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::report::EXIT_CODES;

/// The kinds of commits that main has.
const KINDS: [&str; 6] = ["init", "baseline", "edit", "revert", "forget", "merge"];

/// Keep what coding agents learn, in a Git repository of Markdown files
///
/// memrev reads the transcripts that Codex and Claude Code leave on disk, writes a recap of
/// each session, folds recaps and notes into a summary (and a handbook), and commits every
/// step to `~/.memrev/memories`, a plain Git repository.
#[derive(Debug, Parser)]
#[command(
    name = "memrev",
    version,
    after_help = EXIT_CODES,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    Run(RunArgs),
    Extract(ExtractArgs),
    Consolidate(ConsolidateArgs),
    Status(StatusArgs),
    Sessions(SessionsArgs),
    Note(NoteArgs),
    Forget(ForgetArgs),
    Purge(PurgeArgs),
    Log(LogArgs),
    Show(ShowArgs),
    Diff(DiffArgs),
    Why(WhyArgs),
    Revert(RevertArgs),
    Release(ReleaseArgs),
    Attempts(AttemptsArgs),
    /// Take an attempt into memory, as one commit
    ///
    /// Everything that a consolidation has to pass is checked again, on memory as it is by now and
    /// together with what you changed since. Only the limits of the loss guard give way to your
    /// word; the commit says so, with what is lost. Where you and the attempt changed the same
    /// lines, both sides are shown and nothing is written.
    ///
    /// Example: memrev accept 20260310T120000-3f9c1a
    Accept(DecideArgs),
    /// Let an attempt go
    ///
    /// Its inputs stay pending. Passes in the background do not try the same inputs again until
    /// something changes; `memrev run` by hand does.
    ///
    /// Example: memrev reject 20260310T120000-3f9c1a
    Reject(DecideArgs),
    Check(CheckArgs),
    Inject(InjectArgs),
    Config(ConfigArgs),
    Mode(ModeArgs),
    Reset(ResetArgs),
    Demo(DemoArgs),
}

/// Make the home and its Git repository, and switch memory on
///
/// Writes `config.toml` if there is none, and makes the memory folder of the selected version.
/// Existing files are left alone. With `--rebuild` a memory folder that lost its `.git` gets a
/// new one that begins with what lies there.
///
/// Example: memrev init
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Make a new repository around the files of a memory folder that has none
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Say what would be made and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Which sessions a pass takes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionChoice {
    /// Take every session a person typed in, whatever its age and idle time
    ///
    /// With a back end that costs something, a pass still takes no more than
    /// `memories.max_rollouts_per_startup` of them, and says how many wait.
    #[arg(long)]
    pub(crate) all: bool,
    /// Take sessions of this age, such as `90d` or `2w`, whatever their idle time
    #[arg(long, value_name = "AGE", conflicts_with = "all")]
    pub(crate) since: Option<String>,
    /// Take only this session, also past age and idle time (can be repeated)
    #[arg(long = "session", value_name = "ID", conflicts_with_all = ["all", "since"])]
    pub(crate) sessions: Vec<String>,
}

/// Make one pass now: prune, extract, consolidate
///
/// Writes a recap of each eligible session and folds recaps and notes into the memory files as
/// one commit. A pass with nothing to do changes nothing and says so. Waiting times that hold
/// back passes in the background do not hold back this command; a running pass does.
///
/// Example: memrev run --since 90d
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) choice: SessionChoice,
    /// Keep to the limits and waiting times of a pass in the background
    #[arg(long)]
    pub(crate) background: bool,
    /// Let the result wait for `memrev accept` or `memrev reject` instead of publishing it
    #[arg(long)]
    pub(crate) review: bool,
    /// Make at most this many model calls
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_calls: Option<u32>,
    /// The session that asks, which is never extracted
    #[arg(long, value_name = "ID")]
    pub(crate) current_session: Option<String>,
    /// Say which sessions would be taken and what is pending, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write recaps of eligible sessions, without folding them in
///
/// Recaps lie in `extractions/` of the home until the next consolidation. With `--dry-run` the
/// prompt of each session is printed and no model is asked.
///
/// Example: memrev extract --session 0194f5a6-89ab-7cde-8123-456789abcdef --dry-run
#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    pub(crate) choice: SessionChoice,
    /// Make at most this many model calls
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_calls: Option<u32>,
    /// Print the prompts and stop before asking the model
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Fold recaps and notes into the memory files
///
/// Commits what a person changed by hand, lets the worker edit a private copy, checks the
/// result and publishes it as one commit. If anything fails, the files stay as they were.
///
/// Example: memrev consolidate --dry-run
#[derive(Debug, Args)]
pub(crate) struct ConsolidateArgs {
    /// Let the result wait for `memrev accept` or `memrev reject` instead of publishing it
    #[arg(long)]
    pub(crate) review: bool,
    /// Print what is pending and stop before the worker
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what is pending, what state everything is in, and what happens next
///
/// Example: memrev status --json
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the sessions found, each with its state and why it is or is not eligible
///
/// Example: memrev sessions --eligible
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Only those the next pass would take
    #[arg(long)]
    pub(crate) eligible: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Ask memory to remember, correct or forget something
///
/// Writes a small file that the next consolidation folds in. The file stays; editing it changes
/// what was remembered, deleting it takes back what only it supported.
///
/// Example: memrev note "always use uv instead of pip"
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "three of them are one choice, which clap sees to"
)]
pub(crate) struct NoteArgs {
    /// What to remember; `-` reads standard input
    pub(crate) text: String,
    /// Remember it, whatever its words say
    #[arg(long, group = "kind")]
    pub(crate) remember: bool,
    /// It replaces what memory says of the same thing
    #[arg(long, group = "kind")]
    pub(crate) correct: bool,
    /// Take out what memory says of it, and keep it out
    #[arg(long, group = "kind")]
    pub(crate) forget: bool,
    /// Name the file yourself: `YYYY-MM-DDTHH-MM-SS-short-name.md`
    #[arg(long, value_name = "FILE")]
    pub(crate) name: Option<String>,
    /// Print the file's path and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the file's path as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take something out of memory, and keep it out
///
/// Forgets every entry that says PHRASE, or a session, or a note, in every memory folder: out of
/// the memory files and recaps by one commit, and withheld from then on, also when a session is
/// read again. The history still has it: `memrev purge` takes it out of there as well. More than
/// one entry, or no terminal to ask on, needs `--yes`.
///
/// Example: memrev forget "deploy on fridays" --dry-run
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct ForgetArgs {
    /// Words that entries say; case and line breaks do not count
    #[arg(group = "what")]
    pub(crate) phrase: Option<String>,
    /// Forget a session: its recaps and what only it supports
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) thread: Option<String>,
    /// Forget a note: the file and what only it supports
    #[arg(long, value_name = "PATH", group = "what")]
    pub(crate) note: Option<String>,
    /// Do it without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Say what would go and stop
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take something out of memory and out of its history, with proof
///
/// For secrets. Rewrites the repositories of the memory folders without TEXT (or a session, a
/// note, a file): files, names, messages, tags, stashes, attempts. Then cleans the rest of the
/// home and looks through every object and file; only when nothing is found is it done. Other
/// commits keep what they say but get new ids, and reflogs go. TEXT counts byte by byte, also in
/// the forms that Unicode and JSON have for it. What lies outside of the home stays: transcripts,
/// clones, backups, and what the file system keeps of removed files.
///
/// Example: memrev purge --pattern-from - --dry-run
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct PurgeArgs {
    /// The text; the shell may keep a command line, so see `--pattern-from`
    #[arg(group = "what")]
    pub(crate) text: Option<String>,
    /// Read the text from a file, or with `-` from standard input
    #[arg(long, value_name = "FILE", group = "what")]
    pub(crate) pattern_from: Option<String>,
    /// Purge a session: its recaps and what only it supports
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) thread: Option<String>,
    /// Purge a note: the file and what only it supports
    #[arg(long, value_name = "PATH", group = "what")]
    pub(crate) note: Option<String>,
    /// Purge a file of the memory folder, whatever it is
    #[arg(long, value_name = "PATH", group = "what")]
    pub(crate) file: Option<String>,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Say where it is found and stop
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the commits of a memory, newest first
///
/// Everything shown is also in plain `git log`: the subject says what came in and what changed,
/// the trailers name every input.
///
/// Example: memrev log --max-count 5
#[derive(Debug, Default, Args)]
pub(crate) struct LogArgs {
    /// At most this many commits
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) max_count: Option<usize>,
    /// Only commits of this kind
    #[arg(long, value_parser = KINDS)]
    pub(crate) kind: Option<String>,
    /// Only commits since a date (`2026-03-01`) or an age (`30d`, `2w`)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only commits with this session among their inputs (the beginning of its id is enough)
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
    /// Only commits that a note with this in its name came with
    #[arg(long, value_name = "NAME")]
    pub(crate) note: Option<String>,
    /// Only commits that change this file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<String>,
    /// Only baselines that this worker made, such as `offline`
    #[arg(long, value_name = "NAME")]
    pub(crate) worker: Option<String>,
    /// Below each commit, the entries that it took out of memory
    #[arg(long)]
    pub(crate) lost: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show one commit: what came in, what it said, what it changed
///
/// COMMIT is anything that `git rev-parse` takes, or the name of a run.
///
/// Example: memrev show HEAD
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Which commit
    #[arg(default_value = "HEAD")]
    pub(crate) commit: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show how memory differs between two commits
///
/// `A..B` names both; one commit alone is compared with the newest. Each is anything that
/// `git rev-parse` takes, or the name of a run.
///
/// Example: memrev diff HEAD~3..HEAD
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// `A..B`, or one commit to compare with HEAD
    pub(crate) commits: String,
    /// Only files whose path is or ends in this (can be repeated)
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say where a line of memory comes from
///
/// Follows a line, through rewording and moves, to the commit that brought it, to the recaps and
/// notes it rests on, to the session, and prints the lines of the transcript. What is missing on
/// the way is said.
///
/// Example: memrev why MEMORY.md:12
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// `FILE:LINE`, or words that memory holds
    #[arg(value_name = "FILE:LINE|WORDS")]
    pub(crate) question: String,
    /// Every entry that holds the words, not only the first ten
    #[arg(long)]
    pub(crate) all: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take a baseline back, also when later ones followed
///
/// Makes a commit that undoes just that baseline. Its inputs and the lines that it brought stay
/// out from then on; notes, hand edits and what later baselines brought stay. Where something was
/// changed since, both sides are shown and nothing is written. Reverting the revert brings the
/// baseline back.
///
/// BASELINE is anything that `git rev-parse` takes, or the name of a run.
///
/// Example: memrev revert HEAD~2
#[derive(Debug, Args)]
pub(crate) struct RevertArgs {
    /// Which baseline, or which revert
    pub(crate) baseline: String,
    /// Withhold nothing: its inputs are pending again and the next pass tries anew
    #[arg(long)]
    pub(crate) retry: bool,
    /// Say what would change and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List what is withheld, or let it in again
///
/// What was forgotten, reverted or deleted by hand stays out of memory. Without arguments this
/// lists it: its id, why, since when, and its words where the history still has them. What is
/// named may come in again with the next pass.
///
/// Example: memrev release --all-of HEAD
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// An id (or its end), a session's id, or the path of a note or recap (can be repeated)
    #[arg(value_name = "WHAT")]
    pub(crate) names: Vec<String>,
    /// Everything that this commit, such as a revert, holds back
    #[arg(long, value_name = "COMMIT")]
    pub(crate) all_of: Option<String>,
    /// Say what would be released and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List results that are not in memory: refused, parked, or waiting for your word
///
/// Newest first: why each is not in memory, what it would change, and whether it can be accepted.
/// With RUN, that one alone and how memory would change by it. Old ones are let go after 30 days,
/// or when there are more than 20; one that waits for your word never is.
///
/// Example: memrev attempts
#[derive(Debug, Args)]
pub(crate) struct AttemptsArgs {
    /// Only this one, with its diff; the beginning of its name is enough
    pub(crate) run: Option<String>,
    /// Let old ones go now; otherwise passes do
    #[arg(long, conflicts_with = "run")]
    pub(crate) expire: bool,
    /// With `--expire`: say which would go and stop
    #[arg(long, requires = "expire")]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which attempt a person's word is about.
#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    /// The attempt, as `memrev attempts` names it; its beginning is enough
    pub(crate) run: String,
    /// Say what would happen and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How diagnostics are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For people: place, message, the offending text underlined
    Text,
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
}

/// Check memory files and say what is wrong, where and why
///
/// Checks the memory folders of the home, or the folder given. Errors end with exit code 1;
/// warnings do not.
///
/// Example: memrev check
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A memory folder; the ones of the home when left out
    pub(crate) folder: Option<PathBuf>,
    /// Which version's rules to apply to the folder given
    #[arg(long, value_name = "v1|v2", requires = "folder")]
    pub(crate) version: Option<String>,
    /// How to print what was found
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: CheckFormat,
}

/// Print the memory that a new session is given
///
/// Prints nothing and ends well when memory is off, empty or unreadable; the reason is in
/// `log/inject.log` of the home.
///
/// Example: memrev inject
#[derive(Debug, Args)]
pub(crate) struct InjectArgs {
    /// Print as JSON: the text, its parts and what was left out
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print every setting, its value and where it comes from
///
/// Example: memrev config memories.version
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Only this key
    pub(crate) key: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let a session feed memory, or keep it out
///
/// A session that is kept out leaves memory with the next pass, and what only it supported goes
/// with it. Enabling it again makes it eligible again.
///
/// Example: memrev mode 0194f5a6-89ab-7cde-8123-456789abcdef disabled
#[derive(Debug, Args)]
pub(crate) struct ModeArgs {
    /// The session
    pub(crate) thread_id: String,
    /// `enabled`, `disabled` or `polluted`; prints the present one when left out
    pub(crate) mode: Option<String>,
    /// Say what would change and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Empty the memory: files, recaps and job records
///
/// The history stays in Git, so that `git revert` brings the files back. Sessions, their modes
/// and the configuration are untouched; the next pass begins anew.
///
/// Example: memrev reset --yes
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Say what would go and stop
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a whole pass over sample sessions in a temporary home and show what came of it
///
/// Reads and writes nothing of yours.
///
/// Example: memrev demo
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave the temporary home in place and print where it is
    #[arg(long)]
    pub(crate) keep: bool,
}
