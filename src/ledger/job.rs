//! What a job is, how it ends, and the right to do it.

use std::fmt;

use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::sys::process::ProcessIdentity;

/// The kinds of work that two processes must not do at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum JobKind {
    /// One session; the key is its thread id.
    Extract,
    /// One memory folder; the key is always [`GLOBAL_KEY`].
    Consolidate,
}

/// The key of the one consolidation job that each version has.
pub(crate) const GLOBAL_KEY: &str = "global";

impl JobKind {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Extract => "extract",
            Self::Consolidate => "consolidate",
        }
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        [Self::Extract, Self::Consolidate]
            .into_iter()
            .find(|kind| kind.label() == label)
    }
}

/// Sixteen random bytes that a database file got when it was made. A file
/// that was deleted and made anew, or put back from a copy, has another one
/// or stands at another place on the disk; both are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedgerId(pub(super) [u8; 16]);

/// The right to do one job, proven by a fencing token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) version: MemoryVersion,
    pub(crate) kind: JobKind,
    /// Thread id, or [`GLOBAL_KEY`].
    pub(crate) key: String,
    pub(super) token: String,
    /// The database file that granted it.
    pub(super) ledger_id: LedgerId,
    /// When it ends unless it is renewed.
    pub(crate) until: Timestamp,
    /// The newest input that was known when the job was claimed; 0 when no
    /// one ever told of one.
    pub(crate) input_watermark: Timestamp,
}

impl Lease {
    /// The words for messages: `consolidate v1`, `extract <thread id>`.
    pub(crate) fn job(&self) -> String {
        job_name(self.version, self.kind, &self.key)
    }
}

pub(super) fn job_name(version: MemoryVersion, kind: JobKind, key: &str) -> String {
    match kind {
        JobKind::Consolidate => format!("consolidate {version}"),
        JobKind::Extract => format!("extract {version} {key}"),
    }
}

/// How much a person wants this extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Demand {
    /// A pass found it due: waits, the retry budget and watermarks count.
    Due,
    /// A person runs a pass: waits and an empty retry budget do not count.
    ByHand,
    /// A person named this session: also up to date is no reason not to.
    Anew,
}

/// How a claim of an extraction went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExtractionClaim {
    Claimed(Lease),
    /// The last success had this input or a newer one.
    UpToDate,
    /// Somebody else is at it; `holder` is who it said it is.
    Running {
        until: Timestamp,
        holder: Holder,
    },
    /// It failed, and the wait is not over.
    RetryLater {
        at: Timestamp,
    },
    /// It failed too often; only a newer input revives it.
    RetryExhausted,
    /// As many extractions as allowed are running, over all processes.
    AtCapacity {
        running: u32,
    },
}

/// Who asks for a consolidation, and so which waits count for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pace {
    /// A hook or the watcher: success cooldown and retry delay count.
    Background,
    /// A person: neither counts.
    ByHand,
    /// The watcher saw a note or hand edit and the worker costs nothing: the
    /// cooldown does not count (DESIGN 6.1).
    WatcherNotes,
}

/// How a claim of the consolidation went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConsolidationClaim {
    Claimed(Lease),
    /// Somebody else is at it.
    Running {
        until: Timestamp,
        holder: Holder,
    },
    /// The last success is too young for a background pass.
    Cooldown {
        until: Timestamp,
    },
    /// The last try failed, and the wait is not over.
    RetryLater {
        at: Timestamp,
    },
}

/// The process that holds a lease, as it wrote itself down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder(pub(super) Option<ProcessIdentity>);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(identity) => write!(f, "process {}", identity.pid),
            None => f.write_str("another process"),
        }
    }
}

/// How an extraction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtractionEnd {
    /// Stored, dropped as not newer, or nothing worth keeping: all are done.
    Done,
    /// Costs one retry.
    Failed(JobError),
    /// The same, and the service asked for patience until then.
    FailedUntil(JobError, Timestamp),
    /// Given back untried (stopped, a limit reached): costs nothing.
    Released,
}

/// What memory holds after a consolidation that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakenIn {
    /// Newest `updated_at` of the selection.
    pub(crate) watermark: Timestamp,
    /// Recaps in the selection.
    pub(crate) selected: usize,
}

/// How a consolidation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsolidationEnd {
    /// A baseline: the cooldown begins.
    Done(TakenIn),
    /// There was nothing to do: the cooldown of the last baseline goes on, and
    /// no new one begins.
    Idle(TakenIn),
    /// Inputs stay pending; the wait grows with each failure in a row.
    Failed(JobError),
    /// The same, and the service asked for patience until then.
    FailedUntil(JobError, Timestamp),
    /// A finished attempt waits for a person's word: the longest wait.
    Parked(JobError),
    /// Given back untried (stopped, a store that is not ours to write).
    Released,
}

macro_rules! job_errors {
    ($($(#[$doc:meta])* $name:ident = $label:literal, $words:literal;)*) => {
        /// Why a job failed: a code, because the ledger holds no text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum JobError { $($(#[$doc])* $name,)* }

        impl JobError {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// In the ledger and in `--json`.
            pub(crate) const fn label(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// For people.
            pub(crate) const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

job_errors! {
    /// The transcript is gone or cannot be read.
    SessionUnreadable = "session_unreadable", "the session could not be read";
    /// Network, program or service did not answer.
    ModelUnavailable = "model_unavailable", "the model could not be reached";
    /// The model answered, but said no.
    ModelRefused = "model_refused", "the model refused";
    /// The reply is not what the schema asks for.
    ReplyUnusable = "reply_unusable", "the model's reply could not be used";
    /// A limit of time, steps, calls or tokens ended the work.
    LimitReached = "limit_reached", "a limit was reached";
    /// The recap file could not be written.
    RecapNotStored = "recap_not_stored", "the recap could not be written";
    /// Staging could not be built.
    StagingFailed = "staging_failed", "staging could not be prepared";
    /// Inputs could not be loaded or synced.
    InputsUnreadable = "inputs_unreadable", "the inputs could not be loaded";
    /// The diff for the worker could not be made.
    DiffFailed = "diff_failed", "the changes could not be listed";
    /// The worker ended without saying that it finished.
    WorkerUnfinished = "worker_unfinished", "the worker did not finish";
    /// Validation found errors.
    ResultInvalid = "result_invalid", "the result did not pass validation";
    /// The worker changed what it may not.
    ResultNotAllowed = "result_not_allowed", "the result changed files it may not change";
    /// A secret in the result.
    ResultHoldsSecret = "result_holds_secret", "the result held a secret";
    /// Something withheld came back.
    ResultHoldsWithheld = "result_holds_withheld", "the result held something that is withheld";
    /// A new recap, or an order of a note, was passed over.
    InputsPassedOver = "inputs_passed_over", "the result passed over new inputs";
    /// Too much was lost without a reason.
    LossGuard = "loss_guard", "the result lost too much";
    /// A person's entries or edits would have been changed.
    PersonOverruled = "person_overruled", "the result went against a person's edit";
    /// A memory file of the person's cannot be built upon as it is.
    NeedsMending = "needs_mending", "a memory file has to be mended first";
    /// The head moved by more than edits.
    HeadMoved = "head_moved", "the memory changed meanwhile";
    /// Git or the file system failed while publishing.
    PublishFailed = "publish_failed", "the result could not be published";
    /// A code that a later version of this program wrote.
    Unrecognised = "unrecognised", "a reason this version does not know";
}

impl JobError {
    /// The back end is to blame: exit code 4.
    pub(crate) const fn is_of_model(self) -> bool {
        matches!(
            self,
            Self::ModelUnavailable | Self::ModelRefused | Self::ReplyUnusable | Self::LimitReached
        )
    }

    pub(super) fn parse(label: &str) -> Self {
        (Self::ALL.iter().copied())
            .find(|error| error.label() == label)
            .unwrap_or(Self::Unrecognised)
    }
}

/// One row of the job table, for `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) version: MemoryVersion,
    pub(crate) kind: JobKind,
    /// Thread id, or [`GLOBAL_KEY`].
    pub(crate) key: String,
    pub(crate) state: JobState,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) retries_left: u32,
    /// Failures in a row.
    pub(crate) failures: u32,
    pub(crate) last_error: Option<JobError>,
    pub(crate) input_watermark: Option<Timestamp>,
    pub(crate) success_watermark: Option<Timestamp>,
}

/// What a job is at, judged at the time of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobState {
    /// Waits for the next pass.
    Pending,
    Running {
        until: Timestamp,
        holder: Holder,
    },
    /// Its holder is gone or its time is over: the next claim takes it.
    Abandoned {
        holder: Holder,
    },
    /// Done; `cooldown_until` is when a background pass may consolidate again.
    Done {
        cooldown_until: Option<Timestamp>,
    },
    /// Failed; tried again from then on.
    Waiting {
        retry_at: Timestamp,
    },
    /// An extraction failed too often; only a newer input revives it.
    Exhausted,
    /// A consolidation failed too often, or waits for a person's word.
    /// Background passes look again at `retry_at`.
    Parked {
        retry_at: Timestamp,
    },
}

impl JobState {
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running { .. } => "running",
            Self::Abandoned { .. } => "abandoned",
            Self::Done { .. } => "done",
            Self::Waiting { .. } => "waiting",
            Self::Exhausted => "exhausted",
            Self::Parked { .. } => "parked",
        }
    }
}
