//! What a pass ends with: nothing, or everything that went wrong in it.

use crate::cli::report::{Class, Failure};
use crate::consolidate::{ConsolidateReport, Outcome};
use crate::domain::version::MemoryVersion;
use crate::extract::run::{Failure as Reason, Outcome as End, Report as SessionReport};
use crate::ledger::JobError;
use crate::service::pass::PassReport;

const MEND_HINT: &str = "mend the files that are named above, then run it again";

/// The exit of a pass that was carried through. The first thing that went
/// wrong gives the exit code; none hides the others.
pub(crate) fn verdict(report: &PassReport) -> Result<(), Failure> {
    let stopped = report.was_stopped.then(|| {
        Failure::new(Class::Stopped, "the pass was stopped")
            .cause("what it had done is done; everything else waits for the next pass")
    });
    let consolidated = report.versions.iter().filter_map(|version| {
        let consolidated = version.consolidated.as_ref()?;
        of_consolidation(version.version, consolidated)
    });
    let problems = stopped.into_iter().chain(of_extraction(report));
    match problems.chain(consolidated).reduce(Failure::and) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Sessions were tried, the model answered none of them.
fn of_extraction(report: &PassReport) -> Option<Failure> {
    let sessions = || {
        let versions = report.versions.iter();
        versions.flat_map(|version| &version.extracted)
    };
    let answered = |session: &SessionReport| {
        matches!(
            session.outcome,
            End::Stored { .. } | End::NothingToKeep { .. } | End::NotNewer
        )
    };
    let of_model = sessions().find_map(|session| match &session.outcome {
        End::Failed(reason @ (Reason::Model(_) | Reason::Reply(_))) => Some(reason),
        _ => None,
    });
    let reason = of_model.filter(|_| !sessions().any(answered) && !report.was_stopped)?;
    Some(
        Failure::of(Class::Model, reason)
            .cause("no session was extracted; they wait for another pass")
            .hint("`memrev status` says when each is tried again"),
    )
}

fn of_consolidation(name: MemoryVersion, report: &ConsolidateReport) -> Option<Failure> {
    let failed = |words: &str, error: JobError| {
        let class = if error.is_of_model() {
            Class::Model
        } else {
            Class::Refused
        };
        let message = format!("the consolidation of {name} {words}: {}", error.words());
        let reasons = report.complaints.iter();
        let failure = reasons.fold(Failure::new(class, message), |failure, reason| {
            failure.cause(format!("[{}] {}", reason.code, reason.words))
        });
        failure
            .cause("memory is as it was; the inputs stay pending")
            .hint(hint(report, error))
    };
    match &report.outcome {
        Outcome::Busy { .. } => {
            let message = format!("{name} is being consolidated by another process");
            Some(
                Failure::new(Class::Busy, message)
                    .hint("try again when it is done; `memrev status` names it"),
            )
        }
        Outcome::FailedBefore { error } => Some(failed("came to nothing", *error)),
        Outcome::FailedAfter { error } => Some(failed("was refused", *error)),
        Outcome::Parked { error } => Some(failed("waits for your word", *error)),
        Outcome::Done { .. }
        | Outcome::NothingToDo
        | Outcome::Deferred { .. }
        | Outcome::UsedUp { .. }
        | Outcome::Waits { .. }
        | Outcome::HeldBack { .. }
        | Outcome::Stopped => None,
    }
}

fn hint(report: &ConsolidateReport, error: JobError) -> String {
    if error == JobError::NeedsMending {
        return MEND_HINT.to_owned();
    }
    if report.attempt.is_some() {
        let run = &report.run;
        return format!("`memrev attempts {run}` shows the attempt");
    }
    "`memrev status` says when it is tried again".to_owned()
}
