//! What a pass did, for machines: the answer of `--json`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::pass_report::{is_nothing, refusal_words, trouble};
use crate::consolidate::{ConsolidateReport, Outcome};
use crate::domain::id::ThreadId;
use crate::extract::run::{self as extract_run, Report as SessionReport};
use crate::service::loss::LostHistory;
use crate::service::pass::{PassReport, VersionReport};
use crate::store::message::ChangeKind;

#[derive(Serialize)]
pub(crate) struct PassJson {
    outcome: &'static str,
    sessions: usize,
    unreadable: Vec<String>,
    refusal: Option<String>,
    versions: Vec<VersionJson>,
}

#[derive(Serialize)]
struct VersionJson {
    version: &'static str,
    lost_history: Option<String>,
    pruned: Vec<String>,
    extracted: Vec<ExtractedJson>,
    left_out: BTreeMap<&'static str, usize>,
    consolidation: Option<ConsolidationJson>,
}

#[derive(Serialize)]
struct ExtractedJson {
    thread_id: String,
    outcome: &'static str,
    detail: Option<String>,
    recap: Option<String>,
    /// Lines that gave out as the person's what they did not say.
    ungrounded: usize,
    reading: ReadingJson,
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
}

/// `read + ignored + damaged = records`.
#[derive(Serialize)]
struct ReadingJson {
    records: u64,
    read: u64,
    ignored: BTreeMap<String, u64>,
    damaged: u64,
    blank_lines: u64,
    glued_lines: u64,
    unfinished_line: bool,
}

#[derive(Serialize)]
struct ConsolidationJson {
    outcome: &'static str,
    run: String,
    baseline: Option<String>,
    edit: Option<String>,
    attempt: Option<String>,
    /// The run whose result waits for the person, or was rejected.
    waits: Option<String>,
    /// Old attempts that were let go.
    expired_attempts: Vec<String>,
    until: Option<String>,
    error: Option<&'static str>,
    recovered: bool,
    set_aside: Vec<String>,
    inputs: usize,
    outputs: Vec<OutputJson>,
    /// Lines that a reset had brought back although they are withheld.
    /// Inputs that were consumed before a reset.
    pending_again: Vec<String>,
    taken_out_again: Vec<String>,
    complaints: Vec<String>,
    left_alone: Vec<String>,
    unmatched_notes: Vec<String>,
    skipped: Vec<SkippedJson>,
}

/// A new recap that the baseline consumed without citing it.
#[derive(Serialize)]
struct SkippedJson {
    path: String,
    thread_id: String,
    reason: String,
}

#[derive(Serialize)]
struct OutputJson {
    path: String,
    lines_added: usize,
    lines_removed: usize,
}

pub(crate) fn pass_json(report: &PassReport) -> PassJson {
    PassJson {
        outcome: match () {
            () if report.refusal.is_some() => "refused_quota",
            () if is_nothing(report) => "nothing_to_do",
            () => "done",
        },
        sessions: report.sessions,
        unreadable: report.unreadable.clone(),
        refusal: report.refusal.as_ref().map(refusal_words),
        versions: report.versions.iter().map(version_json).collect(),
    }
}

fn version_json(version: &VersionReport) -> VersionJson {
    let mut left_out: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (_, reason) in &version.left_out {
        *left_out.entry(reason.code()).or_default() += 1;
    }
    VersionJson {
        version: version.version.label(),
        lost_history: version.lost_history.as_ref().map(LostHistory::words),
        pruned: version.pruned.iter().map(ThreadId::to_string).collect(),
        extracted: version.extracted.iter().map(extracted_json).collect(),
        left_out,
        consolidation: version.consolidated.as_ref().map(consolidation_json),
    }
}

fn extracted_json(report: &SessionReport) -> ExtractedJson {
    ExtractedJson {
        thread_id: report.thread_id.to_string(),
        outcome: label(report),
        detail: trouble(report),
        ungrounded: report.ungrounded,
        reading: ReadingJson {
            records: report.reading.records,
            read: report.reading.read,
            ignored: report.reading.ignored.clone(),
            damaged: report.reading.damaged,
            blank_lines: report.reading.blank_lines,
            glued_lines: report.reading.glued_lines,
            unfinished_line: report.reading.unfinished_line,
        },
        calls: report.tokens.calls,
        tokens_in: report.tokens.input,
        tokens_out: report.tokens.output,
        recap: match &report.outcome {
            extract_run::Outcome::Stored { path } => Some(path.display().to_string()),
            _ => None,
        },
    }
}

fn consolidation_json(report: &ConsolidateReport) -> ConsolidationJson {
    let again = report.again.iter().map(|it| it.path.to_string());
    let (outcome, error) = match &report.outcome {
        Outcome::Done { .. } => ("done", None),
        Outcome::NothingToDo => ("nothing_to_do", None),
        Outcome::Deferred { .. } => ("deferred", None),
        Outcome::Busy { .. } => ("busy", None),
        Outcome::UsedUp { .. } => ("used_up", None),
        Outcome::FailedBefore { error } => ("failed_before", Some(error.label())),
        Outcome::FailedAfter { error } => ("failed_after", Some(error.label())),
        Outcome::Parked { error } => ("parked", Some(error.label())),
        Outcome::Stopped => ("stopped", None),
        Outcome::Waits { .. } => ("waits_for_review", None),
        Outcome::HeldBack { .. } => ("held_back", None),
    };
    ConsolidationJson {
        outcome,
        run: report.run.to_string(),
        baseline: match &report.outcome {
            Outcome::Done { baseline } => Some(baseline.to_string()),
            _ => None,
        },
        edit: report.edit.map(|edit| edit.to_string()),
        attempt: report.attempt.map(|attempt| attempt.to_string()),
        waits: match &report.outcome {
            Outcome::Waits { run, .. } | Outcome::HeldBack { run } => Some(run.to_string()),
            _ => None,
        },
        expired_attempts: report.expired.iter().map(ToString::to_string).collect(),
        until: match &report.outcome {
            Outcome::Deferred { until } => Some(until.to_string()),
            Outcome::UsedUp { denial } => denial.until().map(|until| until.to_string()),
            _ => None,
        },
        error,
        recovered: report.recovered,
        set_aside: (report.set_aside.iter())
            .map(|file| file.display().to_string())
            .collect(),
        inputs: report.inputs.len(),
        outputs: (report.outputs.iter())
            .filter(|output| output.kind != ChangeKind::Deleted || 0 < output.lines_removed)
            .map(|output| OutputJson {
                path: output.path.to_string(),
                lines_added: output.lines_added,
                lines_removed: output.lines_removed,
            })
            .collect(),
        pending_again: again.collect(),
        taken_out_again: (report.taken_out_again.iter())
            .map(|line| line.words.to_string())
            .collect(),
        complaints: (report.complaints.iter())
            .map(|complaint| format!("[{}] {}", complaint.code, complaint.words))
            .collect(),
        left_alone: (report.left_files.iter())
            .map(|left| format!("{}: {}", left.path, left.reason))
            .collect(),
        unmatched_notes: report
            .unmatched_notes
            .iter()
            .map(ToString::to_string)
            .collect(),
        skipped: (report.skipped.iter())
            .map(|it| SkippedJson {
                path: it.path.to_string(),
                thread_id: it.thread_id.to_string(),
                reason: it.reason.to_string(),
            })
            .collect(),
    }
}

/// One word for how a session ended, for `--json`.
fn label(report: &SessionReport) -> &'static str {
    use crate::extract::run::Outcome as End;
    match &report.outcome {
        End::Stored { .. } => "stored",
        End::NothingToKeep { .. } => "nothing_to_keep",
        End::NotNewer => "not_newer",
        End::NotClaimed(_) => "not_claimed",
        End::Ours => "ours",
        End::Polluted => "polluted",
        End::NotTried(_) => "not_tried",
        End::LeaseLost => "lease_lost",
        End::Failed(_) => "failed",
    }
}
