//! `memrev reset`: empty the memory, keep its history.

use serde::Serialize;

use crate::cli::args::ResetArgs;
use crate::cli::context::{Context, store_failure};
use crate::cli::report::{Class, Failure, counted};
use crate::domain::version::MemoryVersion;
use crate::service::reset::{self, ResetError, ResetReport};
use crate::store::error::StoreError;

#[derive(Serialize)]
struct ResetJson {
    version: &'static str,
    files: usize,
    recaps: usize,
    commit: Option<String>,
    written: bool,
}

pub(crate) fn run(context: &Context, args: &ResetArgs) -> Result<(), Failure> {
    context.config_when_on()?;
    if !args.yes && !args.dry_run {
        return Err(
            Failure::new(Class::Refused, "reset empties the memory of every version")
                .hint("`--dry-run` says what would go, `--yes` does it; nothing was written"),
        );
    }
    let mut reports = Vec::new();
    for version in MemoryVersion::ALL {
        let parts = reset::ResetParts {
            home: &context.home,
            ids: &context.ids,
            person: &context.person(),
            now: context.now(),
        };
        match reset::run(&parts, version, args.dry_run) {
            Ok(report) => reports.push(report),
            Err(ResetError::Store(StoreError::NotThere { .. })) => {}
            Err(ResetError::Store(error)) => return Err(store_failure(&error)),
            Err(error @ ResetError::Uncommitted { .. }) => {
                return Err(Failure::refused(&error)
                    .hint("`memrev consolidate` commits them, `git stash -u` puts them aside"));
            }
            Err(error) => return Err(Failure::refused(&error)),
        }
    }
    if args.json {
        let reports: Vec<ResetJson> = reports.iter().map(|r| as_json(r, !args.dry_run)).collect();
        return context.printer.json(&reports);
    }
    for report in &reports {
        let verb = if args.dry_run {
            "would remove"
        } else {
            "removed"
        };
        context.printer.line(format!(
            "{}: {verb} {} and {}",
            report.version,
            counted(report.files, "file"),
            counted(report.recaps, "extraction"),
        ));
    }
    if !args.dry_run {
        context
            .printer
            .hint("`git revert` of the newest commit brings the files back");
    }
    Ok(())
}

fn as_json(report: &ResetReport, written: bool) -> ResetJson {
    ResetJson {
        version: report.version.label(),
        files: report.files,
        recaps: report.recaps,
        commit: report.commit.map(|commit| commit.to_string()),
        written,
    }
}
