//! `memrev check`: what is wrong with memory files, where and why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::args::{CheckArgs, CheckFormat};
use crate::cli::context::{Context, versions};
use crate::cli::report::{Class, Failure, counted};
use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{EXTENSIONS, FileKind, HANDBOOK, RECAPS, SUMMARY, TreePath};
use crate::domain::version::MemoryVersion;
use crate::sys::fs::{self, EntryType, FsError};
use crate::validate::{self, Diagnostic, Facts, Level, render, wire};

/// What lies in a folder, as far as it can be checked.
#[derive(Default)]
struct Folder {
    files: BTreeMap<TreePath, String>,
    symlinks: Vec<TreePath>,
    not_utf8: Vec<TreePath>,
    /// Names that cannot be part of memory.
    unfit: Vec<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &CheckArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let folders: Vec<(PathBuf, MemoryVersion)> = match &args.folder {
        Some(folder) => {
            let folder = context.environment.current_dir.join(folder);
            let version = given_version(args, &folder)?;
            assert_memory_folder(&folder)?;
            vec![(folder, version)]
        }
        None => (versions(&config).into_iter())
            .map(|version| (context.home.memory_folder(version), version))
            .collect(),
    };
    let mut errors = 0;
    let mut warnings = 0;
    for (folder, version) in folders {
        if !folder.is_dir() {
            let message = format!("there is no memory folder at `{}`", folder.display());
            return Err(Failure::new(Class::Refused, message).hint("run `memrev init`"));
        }
        let read = read_folder(&folder).map_err(|error| Failure::refused(&error))?;
        let facts = Facts {
            symlinks: read.symlinks.clone(),
            not_utf8: read.not_utf8.clone(),
            summary_bytes_max: Some(config.inject.summary_bytes_max),
            ..Facts::default()
        };
        let found = validate::check(&read.files, version, &facts);
        errors += found.iter().filter(|one| one.level == Level::Error).count();
        warnings += found.iter().filter(|one| one.level != Level::Error).count();
        print(context, args.format, &found, &read);
    }
    if args.format == CheckFormat::Text {
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        context.printer.say(format!("{errors}, {warnings}"));
    }
    if errors == 0 {
        return Ok(());
    }
    Err(Failure::new(Class::Refused, "the memory files have errors")
        .hint("mend the lines above; a pass works all the same and keeps what you wrote"))
}

fn print(context: &Context, format: CheckFormat, found: &[Diagnostic], folder: &Folder) {
    let printer = &context.printer;
    let newline = |text: String| {
        if text.ends_with('\n') {
            text
        } else {
            format!("{text}\n")
        }
    };
    match format {
        CheckFormat::Text => {
            printer.raw(&render::text(found, &folder.files));
            for path in &folder.unfit {
                printer.warn(format!("cannot be part of memory: {}", path.display()));
            }
        }
        CheckFormat::Json => printer.raw(&newline(wire::json(found))),
        CheckFormat::Sarif => printer.raw(&newline(wire::sarif(found))),
        CheckFormat::Github => printer.raw(&render::github(found)),
    }
}

/// The version said, else the one that the folder's own files tell.
fn given_version(args: &CheckArgs, folder: &Path) -> Result<MemoryVersion, Failure> {
    let Some(label) = &args.version else {
        let has_handbook = folder.join(HANDBOOK).is_file();
        let is_named_v2 = folder.ends_with(MemoryVersion::V2.folder());
        return Ok(if has_handbook || !is_named_v2 {
            MemoryVersion::V1
        } else {
            MemoryVersion::V2
        });
    };
    MemoryVersion::parse(label).ok_or_else(|| {
        Failure::new(Class::Usage, format!("there is no version `{label}`"))
            .hint("the versions are `v1` and `v2`")
    })
}

/// Walking through some other folder would drown it in diagnostics.
fn assert_memory_folder(folder: &Path) -> Result<(), Failure> {
    let is_one = [SUMMARY, HANDBOOK, RECAPS, EXTENSIONS]
        .iter()
        .any(|name| folder.join(name).exists());
    if is_one {
        return Ok(());
    }
    let message = format!("`{}` is no memory folder", folder.display());
    Err(Failure::new(Class::Refused, message)
        .hint("a memory folder has a `memory_summary.md`, a `MEMORY.md`, recaps or extensions"))
}

fn read_folder(root: &Path) -> Result<Folder, FsError> {
    let mut read = Folder::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::list(&folder)? {
            if entry.path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            match entry.kind {
                EntryType::Folder => folders.push(entry.path),
                kind => read_entry(root, &entry.path, kind, &mut read)?,
            }
        }
    }
    Ok(read)
}

fn read_entry(root: &Path, path: &Path, kind: EntryType, read: &mut Folder) -> Result<(), FsError> {
    let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
    let Some(tree_path) = relative.and_then(TreePath::parse) else {
        read.unfit.push(path.to_owned());
        return Ok(());
    };
    if kind == EntryType::Symlink {
        read.symlinks.push(tree_path);
    } else if kind == EntryType::File {
        let bytes = match fs::read(path, SNAPSHOT_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(_) if tree_path.kind() == FileKind::Foreign => return Ok(()),
            Err(error) => return Err(error),
        };
        match String::from_utf8(bytes) {
            Ok(text) => {
                read.files.insert(tree_path, text);
            }
            Err(_) => read.not_utf8.push(tree_path),
        }
    }
    Ok(())
}
