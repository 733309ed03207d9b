//! Sessions that a person names by the beginning of their ids.

use std::collections::BTreeSet;

use crate::cli::context::Context;
use crate::cli::report::{Class, Failure};
use crate::config::Config;
use crate::domain::id::ThreadId;
use crate::domain::version::MemoryVersion;
use crate::recaps::Extractions;
use crate::service::survey;

/// Ids that are listed when a beginning fits several.
const LISTED_MAX: usize = 10;

/// The sessions among the transcripts that `names` mean, each by its whole id
/// or a beginning that fits no other.
pub(crate) fn sessions(
    context: &Context,
    config: &Config,
    names: &[String],
) -> Result<BTreeSet<ThreadId>, Failure> {
    let known = found(context, config)?;
    names.iter().map(|name| pick(&known, name)).collect()
}

/// As [`sessions`], also for a session of which only a recap is left.
pub(crate) fn session_or_recap(
    context: &Context,
    config: &Config,
    name: &str,
) -> Result<ThreadId, Failure> {
    let mut known = found(context, config)?;
    for version in MemoryVersion::ALL {
        // Recaps that cannot be read name no session.
        let loaded = Extractions::open(context.home.root(), version).load_all();
        known.extend(
            loaded
                .into_iter()
                .flat_map(|loaded| loaded.recaps.into_keys()),
        );
    }
    pick(&known, name)
}

/// An id as such, of a session that need not be there.
pub(crate) fn thread_id(name: &str) -> Result<ThreadId, Failure> {
    ThreadId::parse(name).ok_or_else(|| {
        let message = format!("`{name}` cannot be the id of a session");
        Failure::new(Class::Usage, message).hint("`memrev sessions` lists them")
    })
}

fn found(context: &Context, config: &Config) -> Result<BTreeSet<ThreadId>, Failure> {
    let survey =
        survey::look(&context.survey_parts(config)).map_err(|error| Failure::refused(&error))?;
    Ok((survey.sessions())
        .map(|(head, _)| head.thread_id.clone())
        .collect())
}

fn pick(known: &BTreeSet<ThreadId>, name: &str) -> Result<ThreadId, Failure> {
    let whole = thread_id(name)?;
    if known.contains(&whole) {
        return Ok(whole);
    }
    let fits = |id: &&ThreadId| id.as_str().starts_with(name);
    let fitting: Vec<&ThreadId> = known.iter().filter(fits).collect();
    match fitting[..] {
        [one] => Ok(one.clone()),
        [] => Err(
            Failure::new(Class::Refused, format!("there is no session `{name}`"))
                .hint("`memrev sessions` lists them; nothing was written"),
        ),
        _ => {
            let message = format!("{} sessions begin with `{name}`", fitting.len());
            let listed = fitting.iter().take(LISTED_MAX);
            let failure = listed.fold(Failure::new(Class::Refused, message), |failure, id| {
                failure.cause(id.to_string())
            });
            Err(failure.hint("give more of the id; nothing was written"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::pick;
    use crate::domain::id::ThreadId;

    #[test]
    fn a_session_is_meant_by_its_id_or_by_a_beginning_that_fits_no_other() {
        let known: BTreeSet<ThreadId> = ["ab", "abc1", "abd2", "x"]
            .map(|id| ThreadId::parse(id).unwrap())
            .into();
        for (name, expected) in [
            ("abc1", "abc1"),
            ("abc", "abc1"),
            ("ab", "ab"),
            (
                "a",
                "error: 3 sessions begin with `a`\n  ab\n  abc1\n  abd2\n",
            ),
            ("nope", "error: there is no session `nope`\n"),
            ("../x", "error: `../x` cannot be the id of a session\n"),
            ("", "error: `` cannot be the id of a session\n"),
        ] {
            let said = match pick(&known, name) {
                Ok(id) => id.to_string(),
                Err(failure) => anstream::adapter::strip_str(&failure.to_string()).to_string(),
            };
            assert!(said.starts_with(expected), "{name}: {said}");
        }
    }
}
