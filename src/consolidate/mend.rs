//! What a person has to mend before a worker is asked.
//!
//! A worker's result would only be refused in the end: a secret that a person
//! committed stays, because their lines are theirs, and a memory file that
//! cannot be committed is never overwritten.

use std::collections::BTreeSet;

use crate::consolidate::LeftFile;
use crate::consolidate::edits::{LeftAlone, kind_in};
use crate::consolidate::hands::is_memory_file;
use crate::consolidate::judge::{self, Fault, Outputs};
use crate::domain::path::TreePath;
use crate::domain::version::MemoryVersion;
use crate::store::Unfit;

/// Secrets in lines that came after the last baseline, so by hand. `before`
/// gives that baseline's text of a file.
///
/// # Errors
///
/// When `before` has one.
pub(crate) fn secrets<E>(
    outputs: &Outputs,
    before: impl Fn(&TreePath) -> Result<Option<String>, E>,
) -> Result<Vec<Fault>, E> {
    let mut faults = Vec::new();
    for (path, file) in outputs {
        let lines = judge::secret_lines(&file.text);
        if lines.is_empty() {
            continue;
        }
        let before = before(path)?.unwrap_or_default();
        let known: BTreeSet<&str> = before.lines().collect();
        let is_new = |line_number: &usize| {
            let line = file.text.lines().nth(line_number - 1);
            line.is_none_or(|line| !known.contains(line))
        };
        faults.extend((lines.into_iter().filter(is_new)).map(|line_number| {
            let path = path.clone();
            Fault::SecretCommitted { path, line_number }
        }));
    }
    Ok(faults)
}

/// Summary and handbook that cannot be committed as they lie there. A secret
/// is not among them: it stops only what would overwrite it.
pub(crate) fn unfit_files(
    version: MemoryVersion,
    left: &[LeftFile],
    unfit: &[Unfit],
) -> Vec<Fault> {
    let is_lasting =
        |reason: &LeftAlone| !matches!(reason, LeftAlone::Secret | LeftAlone::TooFresh { .. });
    let left = (left.iter().filter(|file| is_lasting(&file.reason)))
        .map(|file| (file.path.clone(), file.reason.to_string()));
    let unfit = unfit.iter().filter_map(|it| {
        let path = TreePath::parse(&it.path)?;
        Some((path, it.why.to_string()))
    });
    let mut faults: Vec<Fault> = Vec::new();
    for (path, why) in unfit.chain(left) {
        let is_told = faults
            .iter()
            .any(|fault| matches!(fault, Fault::InTheWay { path: told, .. } if *told == path));
        if is_memory_file(kind_in(version, &path)) && !is_told {
            faults.push(Fault::InTheWay { path, why });
        }
    }
    faults
}
