//! `memrev purge`: out of memory, out of the history, out of the home.

use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use crate::cli::args::PurgeArgs;
use crate::cli::commands::forget;
use crate::cli::context::{Context, store_failure};
use crate::cli::named;
use crate::cli::report::{Class, Failure, counted};
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::history::purge::{self, FolderReport, Parts, PurgeError, Report, Wish, shown};
use crate::ledger::Ledger;
use crate::service::survey;
use crate::store::Store;
use crate::store::purge::Attached;
use crate::sys::fs;
use crate::sys::lock::LockError;
use crate::text::needle::Needles;

/// Longest text that is taken, in bytes.
const TEXT_BYTES_MAX: u64 = 64 * 1024;

#[derive(Serialize)]
struct PurgeJson {
    written: bool,
    found: bool,
    folders: Vec<FolderJson>,
    /// Other files of the home.
    files: Vec<String>,
    ledger_rows: usize,
}

#[derive(Serialize)]
struct FolderJson {
    version: &'static str,
    /// Files of the work tree.
    live: Vec<String>,
    history: HistoryJson,
    /// What keeps the repository from being rewritten.
    attached: Vec<String>,
    receipt: Option<String>,
    commits_rewritten: usize,
    files_rewritten: usize,
    /// Commits that only a reflog had, which are gone.
    only_in_reflog: usize,
}

#[derive(Serialize)]
struct HistoryJson {
    files: usize,
    trees: usize,
    messages: usize,
    others: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &PurgeArgs) -> Result<(), Failure> {
    let config = context.config_when_on()?;
    let wish = wish(args)?;
    let modes = forget::session_modes(context);
    let policy = survey::consolidate_policy(&config, true);
    let person = context.person();
    let parts = Parts {
        home: &context.home,
        ids: &context.ids,
        clock: context.clock.as_ref(),
        person: &person,
        modes: &modes,
        policy: &policy,
    };
    let found = purge::look(&parts, &wish).map_err(|error| failure(context, &error))?;
    if args.dry_run {
        return told(context, args, &found, false);
    }
    if let Some(attached) = refused(context, &found) {
        return Err(attached);
    }
    let is_begun = MemoryVersion::ALL
        .into_iter()
        .any(|version| Store::has_unfinished_purge(&context.store_paths(version)));
    if found.is_empty() && !is_begun {
        return Err(Failure::new(Class::Refused, "it is nowhere in the home")
            .hint("letters, case and blanks count; nothing was written"));
    }
    if !args.yes {
        if !args.json {
            tell(context, &found, false);
        }
        return Err(
            Failure::new(Class::Refused, "purge rewrites the history of memory").hint(
                "`--yes` does it, `--dry-run` only looks; make no backup of what it is to remove. \
                 Nothing was written",
            ),
        );
    }
    let ledger = Ledger::open(&context.home.ledger_file(), context.now());
    let mut ledger = ledger.map_err(|error| Failure::refused(&error))?.ledger;
    let report = purge::run(&parts, &mut ledger, &wish);
    drop(ledger);
    let report = report.map_err(|error| failure(context, &error))?;
    told(context, args, &report, true)
}

fn wish(args: &PurgeArgs) -> Result<Wish, Failure> {
    if let Some(id) = &args.thread {
        let thread_id = named::thread_id(id)?;
        return Ok(Wish::Thread(thread_id));
    }
    if let Some(note) = &args.note {
        return Ok(Wish::Note(note.clone()));
    }
    if let Some(file) = &args.file {
        let path = TreePath::parse(file.trim_start_matches("./"));
        return path.map(Wish::File).ok_or_else(|| {
            let message = format!("`{file}` cannot be a file of a memory folder");
            Failure::new(Class::Usage, message).hint("name it by its path below the folder")
        });
    }
    let text = match (&args.text, &args.pattern_from) {
        (Some(text), _) => text.clone(),
        (None, from) => read(from.as_deref().unwrap_or("-"))?,
    };
    let texts = vec![text.trim_matches(['\n', '\r']).to_owned()];
    let needles = Needles::new(&texts)
        .map_err(|error| Failure::of(Class::Usage, &error).hint("nothing was written"))?;
    Ok(Wish::Texts { texts, needles })
}

fn read(from: &str) -> Result<String, Failure> {
    let bytes = if from == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .take(TEXT_BYTES_MAX + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| Failure::of(Class::Refused, &error).cause("while reading the text"))?;
        bytes
    } else {
        let path = Path::new(from);
        fs::read_named(path, TEXT_BYTES_MAX).map_err(|error| Failure::refused(&error))?
    };
    if TEXT_BYTES_MAX < bytes.len() as u64 {
        let message = format!("the text has more than {TEXT_BYTES_MAX} bytes");
        return Err(Failure::new(Class::Refused, message));
    }
    String::from_utf8(bytes).map_err(|_| Failure::new(Class::Usage, "the text is not UTF-8"))
}

fn told(
    context: &Context,
    args: &PurgeArgs,
    report: &Report,
    written: bool,
) -> Result<(), Failure> {
    if args.json {
        return context.printer.json(&as_json(context, report, written));
    }
    tell(context, report, written);
    let printer = &context.printer;
    if written {
        printer.say("purged: nothing of it is found in the home any more");
        printer.hint(
            "transcripts, clones and backups may still have it, and so may the disk; \
             a secret that was seen should be replaced",
        );
    } else {
        if let Some(attached) = refused(context, report) {
            printer.warn(attached.to_string().trim_end());
        }
        printer.say("dry run: nothing was written");
    }
    Ok(())
}

fn tell(context: &Context, report: &Report, written: bool) {
    let printer = &context.printer;
    for folder in &report.folders {
        let FolderReport {
            version,
            live,
            history,
            rewritten,
            ..
        } = folder;
        for path in live {
            printer.line(format!("{version} file {path}"));
        }
        if written {
            printer.line(format!(
                "{version} history: {} and {} rewritten",
                counted(rewritten.commits, "commit"),
                counted(rewritten.files, "file version"),
            ));
            if 0 < rewritten.only_in_reflog {
                printer.say(format!(
                    "{version}: {} that only the reflog had are gone with it",
                    counted(rewritten.only_in_reflog, "commit")
                ));
            }
        } else {
            printer.line(format!(
                "{version} history: {}, {}, {}, {} of `.git`",
                counted(history.files, "file version"),
                counted(history.trees, "folder"),
                counted(history.messages, "message"),
                counted(history.others.len(), "other file"),
            ));
        }
        if let Some(receipt) = folder.receipt {
            printer.line(format!("{version} receipt {}", receipt.short()));
        }
    }
    for file in &report.files {
        printer.line(format!("home file {}", shown(file, context.home.root())));
    }
    printer.line(format!("ledger: {}", counted(report.ledger_rows, "row")));
    if report.is_empty() && !written {
        printer.say("it is nowhere in the home");
    }
}

/// What has to be removed first, with the next step.
fn refused(context: &Context, report: &Report) -> Option<Failure> {
    let attached: Vec<&Attached> = report.attached().collect();
    let first = attached.first()?;
    let mut failure = Failure::new(
        Class::Refused,
        "other folders share the objects of this memory",
    );
    for one in &attached {
        failure = failure.cause(words(one));
    }
    let folder = context.home.root().display();
    Some(
        failure.hint(match first {
            Attached::Worktree(path) => format!(
                "remove it first: `git -C {folder}/memories worktree remove {0}`, or `git worktree \
             prune` when the folder is gone; nothing was written",
                path.display()
            ),
            Attached::Alternates(_) => "make it whole first: `git repack -a -d` and remove \
             `objects/info/alternates`; nothing was written"
                .to_owned(),
            Attached::Submodules(_) => {
                "a memory folder has no submodules: remove them; nothing was written".to_owned()
            }
        }),
    )
}

fn words(attached: &Attached) -> String {
    match attached {
        Attached::Worktree(path) => format!("a work tree at `{}`", path.display()),
        Attached::Alternates(path) => format!("objects borrowed from `{}`", path.display()),
        Attached::Submodules(path) => format!("a submodule in `{}`", path.display()),
    }
}

fn as_json(context: &Context, report: &Report, written: bool) -> PurgeJson {
    let root = context.home.root();
    let folders = report.folders.iter().map(|folder| FolderJson {
        version: folder.version.label(),
        live: folder.live.iter().map(ToString::to_string).collect(),
        history: HistoryJson {
            files: folder.history.files,
            trees: folder.history.trees,
            messages: folder.history.messages,
            others: (folder.history.others.iter())
                .map(|path| shown(path, root))
                .collect(),
        },
        attached: folder.attached.iter().map(words).collect(),
        receipt: folder.receipt.map(|commit| commit.to_string()),
        commits_rewritten: folder.rewritten.commits,
        files_rewritten: folder.rewritten.files,
        only_in_reflog: folder.rewritten.only_in_reflog,
    });
    PurgeJson {
        written,
        found: !report.is_empty(),
        folders: folders.collect(),
        files: report.files.iter().map(|file| shown(file, root)).collect(),
        ledger_rows: report.ledger_rows,
    }
}

fn failure(context: &Context, error: &PurgeError) -> Failure {
    const AGAIN: &str = "say it again to finish: until then something of it may be left";
    match error {
        PurgeError::Store(error) => {
            let failure = store_failure(error);
            if failure.class() == Class::Busy {
                failure
            } else {
                failure.hint(AGAIN)
            }
        }
        PurgeError::Forget(error) => forget::failure(error),
        PurgeError::Busy { .. }
        | PurgeError::Extracting { .. }
        | PurgeError::Lock(LockError::Busy { .. }) => {
            Failure::of(Class::Busy, error).hint("try again when it is done; nothing was written")
        }
        PurgeError::Attached { attached, .. } => {
            let mut failure = Failure::refused(error);
            for one in attached {
                failure = failure.cause(words(one));
            }
            failure.hint("remove them first; nothing was written")
        }
        PurgeError::Left { places } => {
            let mut failure = Failure::refused(error);
            for place in places {
                failure = failure.cause(shown(place, context.home.root()));
            }
            failure.hint("remove it there by hand, then say it again")
        }
        _ => Failure::refused(error).hint(AGAIN),
    }
}
