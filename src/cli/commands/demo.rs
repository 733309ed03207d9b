//! `memrev demo`: a whole pass over sample sessions in a temporary home.
//!
//! It runs the very commands a person would run, on a home, transcripts and a
//! clock of its own, and shows what came of it.

use std::path::Path;

use crate::cli::args::{DemoArgs, InitArgs, LogArgs, RunArgs, SessionChoice, SessionsArgs};
use crate::cli::commands::{init, log, run as run_command, sessions};
use crate::cli::context::Context;
use crate::cli::report::Failure;
use crate::domain::path::SUMMARY;
use crate::domain::time::Timestamp;
use crate::sys::env::Environment;
use crate::sys::fs;

/// When the demo takes place: a day after the newest sample.
const NOW: &str = "2026-03-10T12:00:00Z";

/// Stands in the samples for a token that is put together here, so that no
/// file of ours holds something that looks like a secret.
const FAKE_KEY: &str = "@@FAKE_KEY@@";

/// Samples below the agents' homes.
const SAMPLES: &[(&str, &str)] = &[
    (
        "codex/sessions/2026/03/06/rollout-2026-03-06T09-00-20-019cc260-58a0-7000-8000-000000000001.jsonl",
        include_str!("../demo/codex-export.jsonl"),
    ),
    (
        "codex/sessions/2026/03/08/rollout-2026-03-08T14-00-20-019ccdbf-b920-7000-8000-000000000002.jsonl",
        include_str!("../demo/codex-changelog.jsonl"),
    ),
    (
        "codex/sessions/2026/03/09/rollout-2026-03-09T18-00-20-019cd3c1-cf20-7000-8000-000000000005.jsonl",
        include_str!("../demo/codex-hello.jsonl"),
    ),
    (
        "claude/projects/-home-demo-harbour/0a1b2c3d-0000-4000-8000-000000000003.jsonl",
        include_str!("../demo/claude-port.jsonl"),
    ),
    (
        "claude/projects/-home-demo-harbour/0a1b2c3d-0000-4000-8000-000000000004.jsonl",
        include_str!("../demo/claude-zh.jsonl"),
    ),
];

pub(crate) fn run(context: &Context, args: &DemoArgs) -> Result<(), Failure> {
    let root = fs::make_temporary_folder("memrev-demo", &context.ids)
        .map_err(|error| Failure::refused(&error))?;
    let outcome = show(context, &root);
    if args.keep {
        context.printer.line(format!("\nkept: {}", root.display()));
        context.printer.line(format!(
            "try: git -C {}/memrev/memories log --stat",
            root.display()
        ));
    } else {
        fs::remove_all(&root).map_err(|error| Failure::refused(&error))?;
    }
    outcome
}

fn show(context: &Context, root: &Path) -> Result<(), Failure> {
    lay_out(root).map_err(|error| Failure::refused(&error))?;
    let demo = Context::new(Environment {
        home: root.join("memrev"),
        user_home: root.to_owned(),
        current_dir: root.to_owned(),
        codex_home: root.join("codex"),
        claude_home: root.join("claude"),
        user_name: Some("demo".to_owned()),
        now: Timestamp::parse_rfc3339(NOW),
        seed: Some("demo".to_owned()),
        replay: None,
        ..context.environment.clone()
    });
    let printer = &context.printer;

    printer.line("$ memrev init");
    let init_args = InitArgs {
        rebuild: false,
        dry_run: false,
    };
    init::run(&demo, &init_args)?;

    printer.line("\n$ memrev sessions");
    let sessions_args = SessionsArgs {
        eligible: false,
        json: false,
    };
    sessions::run(&demo, &sessions_args)?;

    for _ in 0..2 {
        printer.line("\n$ memrev run");
        run_command::run(&demo, &run_args())?;
    }

    printer.line("\n$ memrev log");
    let log_args = LogArgs::default();
    log::run(&demo, &log_args)?;

    show_files(context, &demo)
}

fn run_args() -> RunArgs {
    RunArgs {
        choice: SessionChoice::default(),
        background: false,
        review: false,
        max_calls: None,
        current_session: None,
        dry_run: false,
        json: false,
    }
}

/// The summary and the first recap, as they lie in the folder.
fn show_files(context: &Context, demo: &Context) -> Result<(), Failure> {
    const SHOWN_BYTES_MAX: u64 = 64 * 1024;
    let config = demo.config()?;
    let folder = demo.home.memory_folder(config.memories.version);
    let recaps =
        fs::list(&folder.join("rollout_summaries")).map_err(|error| Failure::refused(&error))?;
    let files = recaps.into_iter().take(1).map(|entry| entry.path);
    for path in std::iter::once(folder.join(SUMMARY)).chain(files) {
        let text = fs::read_text_if_any(&path, SHOWN_BYTES_MAX)
            .map_err(|error| Failure::refused(&error))?;
        let shown = path.strip_prefix(&folder).unwrap_or(&path);
        context.printer.line(format!("\n$ cat {}", shown.display()));
        for line in text.unwrap_or_default().lines() {
            context.printer.line(line);
        }
    }
    Ok(())
}

fn lay_out(root: &Path) -> Result<(), fs::FsError> {
    let fake_key = format!("sk-{}-{}", "proj", "Fake0Fake1Fake2Fake3Fake4Fake5");
    for (path, text) in SAMPLES {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::make_folders(folder)?;
        }
        fs::replace(&path, text.replace(FAKE_KEY, &fake_key).as_bytes())?;
    }
    Ok(())
}
