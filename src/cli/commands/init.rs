//! `memrev init`: the home, its repository, memory switched on.

use crate::cli::args::InitArgs;
use crate::cli::context::{Context, store_failure, versions};
use crate::cli::report::{Class, Failure};
use crate::config;
use crate::domain::version::MemoryVersion;
use crate::service::folder::{self, FolderError};
use crate::store::Store;
use crate::store::error::StoreError;
use crate::sys::fs;

pub(crate) fn run(context: &Context, args: &InitArgs) -> Result<(), Failure> {
    let printer = &context.printer;
    let file = context.home.config_file();
    let is_new = !file.exists();
    if args.dry_run {
        if is_new {
            printer.line(format!("would write {}", file.display()));
        }
    } else {
        context
            .home
            .make()
            .map_err(|error| Failure::refused(&error))?;
        if fs::create_new(&file, config::initial_text().as_bytes())
            .map_err(|error| Failure::refused(&error))?
        {
            printer.line(format!("wrote {}", file.display()));
        }
    }
    let config = context.config()?;
    for version in versions(&config) {
        let folder = context.home.memory_folder(version);
        match Store::open(context.store_paths(version)) {
            Ok(_) => {
                printer.line(format!("{} is there", folder.display()));
                if !args.dry_run {
                    prepare(context, version)?;
                }
            }
            Err(StoreError::NotThere { .. }) if args.dry_run => {
                printer.line(format!("would make {}", folder.display()));
            }
            Err(StoreError::NoRepository { .. }) if args.rebuild && args.dry_run => {
                printer.line(format!("would make {}/.git anew", folder.display()));
            }
            Err(StoreError::NotThere { .. }) => {
                make(context, version)?;
                printer.line(format!("made {}", folder.display()));
            }
            Err(StoreError::NoRepository { .. }) if args.rebuild => {
                make(context, version)?;
                printer.line(format!("made {}/.git anew", folder.display()));
            }
            Err(error) => return Err(store_failure(&error)),
        }
    }
    if args.dry_run && is_new {
        return Ok(());
    }
    if !config.features.memories {
        let message = format!("memory is switched off in `{}`", file.display());
        return Err(Failure::new(Class::Refused, message)
            .hint("set `memories = true` under `[features]`; your file was left alone"));
    }
    if !args.dry_run {
        printer
            .hint("`memrev run` makes the first pass; `memrev sessions` shows what it would read");
    }
    Ok(())
}

/// Begins the history, and commits what has to be there from the start.
fn make(context: &Context, version: MemoryVersion) -> Result<(), Failure> {
    Store::init(context.store_paths(version), context.now())
        .map_err(|error| store_failure(&error))?;
    prepare(context, version)
}

fn prepare(context: &Context, version: MemoryVersion) -> Result<(), Failure> {
    match folder::prepare(&context.home, version, context.now()) {
        Ok(_) => Ok(()),
        Err(FolderError::Store(error)) => Err(store_failure(&error)),
        Err(error) => Err(Failure::refused(&error)),
    }
}
