//! Recaps and notes into a new tree of memory files: the second stage.
//!
//! [`select`] decides which recaps take part, [`edits`] what a person did
//! since the head, [`staging`] and [`input`] build what the worker sees,
//! [`worker`] drives it, [`judge`] and [`guard`] decide about the result,
//! [`message`] words the commits, [`past`] reads what history says, and
//! [`mod@run`] does it all in ten steps. [`mod@pending`] answers for `status`,
//! [`beside`] is what other writers of a memory folder begin with.
//!
//! # Not in here
//!
//! No Git of its own (`store`), no SQL (`ledger`), no back end (`model`).
//! `select`, `edits`, `input`, `judge`, `guard` and `message` are functions
//! from values to values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::id::{ObjectId, RunId, ThreadId};
use crate::domain::limits::LEASE_RENEW_SECONDS;
use crate::domain::path::TreePath;
use crate::domain::session::MemoryMode;
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::{Budget, Denial, Holder, JobError, Ledger, LedgerError, Pace};
use crate::model::{Model, Tokens};
use crate::notes::withheld_set::WithheldSetError;
use crate::recaps::RecapsError;
use crate::store::Unfit;
use crate::store::author::Author;
use crate::store::error::StoreError;
use crate::store::message::{ChangeKind, Input};
use crate::sys::clock::Clock;
use crate::sys::fs::FsError;
use crate::sys::home::Home;
use crate::sys::ids::Ids;
use crate::sys::lock::LockError;

use self::attempts::Standing;
use self::coverage::LeftOutRecap;
use self::edits::LeftAlone;
use self::guard::GuardLimits;
use self::lost::{LostInput, PendingAgain};
use self::select::LeftOut;

pub(crate) mod absorb;
pub(crate) mod accept;
mod attempt;
pub(crate) mod attempts;
pub(crate) mod beside;
mod books;
mod coverage;
pub(crate) mod departure;
pub(crate) mod edits;
mod ended;
mod fault;
pub(crate) mod guard;
pub(crate) mod hands;
mod idle;
pub(crate) mod input;
mod judge;
pub(crate) mod lost;
mod mend;
pub(crate) mod message;
mod orders;
pub(crate) mod past;
mod pending;
mod plan;
mod publish;
pub(crate) mod record;
mod run;
pub(crate) mod select;
mod staging;
pub(crate) mod survey;
mod theirs;
pub(crate) mod words;
mod worker;

pub(crate) use self::pending::pending;
pub(crate) use self::run::run;

/// The settings that count here, as plain fields.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// `max_raw_memories_for_consolidation`.
    pub(crate) recaps_max: usize,
    /// `max_unused_days`.
    pub(crate) unused_days_max: i64,
    /// A file that changed less than this ago is left alone.
    pub(crate) edit_quiet_seconds: i64,
    /// `[inject] summary_bytes_max`.
    pub(crate) summary_bytes_max: usize,
    pub(crate) guard: GuardLimits,
    /// `[worker]` time: how long one call of the worker may take.
    pub(crate) worker_time_max: Duration,
    /// How often the lease is renewed meanwhile.
    pub(crate) renew_every: Duration,
    /// How long to wait for the folder's lock.
    pub(crate) lock_wait: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            recaps_max: 256,
            unused_days_max: 30,
            edit_quiet_seconds: 2,
            summary_bytes_max: 8_000,
            guard: GuardLimits::default(),
            worker_time_max: Duration::from_mins(30),
            renew_every: Duration::from_secs(LEASE_RENEW_SECONDS),
            lock_wait: Duration::from_secs(10),
        }
    }
}

/// Everything outside that a consolidation uses.
pub(crate) struct Parts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) model: &'a dyn Model,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) ids: &'a Ids,
    /// Sessions whose mode is not what their transcript says, or is not
    /// `enabled`. Absent ones are enabled.
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    /// The author of edit commits.
    pub(crate) person: &'a Author,
    pub(crate) policy: &'a Policy,
    /// What a back end that costs something may spend, shared with all stages
    /// of the pass.
    pub(crate) budget: &'a Budget,
    /// A person wants to stop: asked before the worker, while it works, and
    /// before anything is published.
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// One consolidation of one version.
#[derive(Debug, Clone)]
pub(crate) struct ConsolidateRequest {
    pub(crate) version: MemoryVersion,
    pub(crate) pace: Pace,
    /// Only these sessions, when a person named some.
    pub(crate) only: Option<BTreeSet<ThreadId>>,
    /// A good result waits for a person's word instead of being published.
    pub(crate) review: bool,
}

/// How a consolidation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A baseline was published.
    Done { baseline: ObjectId },
    /// No input changed and the outputs are valid; no commit of ours but,
    /// perhaps, the person's edits.
    NothingToDo,
    /// A background pass came too early: success cooldown or retry delay.
    Deferred { until: Timestamp },
    /// Somebody else is at it, or took the lease from us.
    Busy { holder: Option<Holder> },
    /// The worker had not written anything. Inputs stay pending.
    FailedBefore { error: JobError },
    /// There was an attempt, and it was refused. Inputs stay pending.
    FailedAfter { error: JobError },
    /// There was an attempt that waits for a person's word.
    Parked { error: JobError },
    /// A result waits for `accept` or `reject`; `is_new` when this pass made
    /// it. Inputs stay pending, and no worker is called for them again.
    Waits { run: RunId, is_new: bool },
    /// A person rejected a result over the same inputs; passes in the
    /// background do not try them again. Inputs stay pending.
    HeldBack { run: RunId },
    /// The budgets of pass or day are used up; the job is given back as it
    /// was. Inputs stay pending.
    UsedUp { denial: Denial },
    /// A person asked this process to stop. Inputs stay pending.
    Stopped,
}

/// An input that the next baseline consumes, or this one did.
pub(crate) type InputChange = Input;

/// A file of a person's that was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftFile {
    pub(crate) path: TreePath,
    pub(crate) reason: LeftAlone,
}

/// One line of what the judge had to say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Complaint {
    /// The validator's code, or one of the judge's own.
    pub(crate) code: &'static str,
    pub(crate) words: Redacted,
}

/// A plain `git revert` of a baseline that this pass saw for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RevertSeen {
    pub(crate) revert: ObjectId,
    pub(crate) baseline: ObjectId,
    /// Inputs of the baseline that stay out from now on, or may come in again.
    pub(crate) inputs: usize,
    /// Entries likewise.
    pub(crate) entries: usize,
    /// It took back a revert, so what that one withheld is released.
    pub(crate) stands_again: bool,
}

/// Lines of an output that came and went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputChange {
    pub(crate) path: TreePath,
    pub(crate) kind: ChangeKind,
    pub(crate) lines_added: usize,
    pub(crate) lines_removed: usize,
}

/// What a consolidation did and saw.
#[derive(Debug, Clone)]
pub(crate) struct ConsolidateReport {
    pub(crate) outcome: Outcome,
    pub(crate) run: RunId,
    /// An interrupted publication was finished or undone first.
    pub(crate) recovered: bool,
    /// Damaged files of `.git`, by the name they were kept under.
    pub(crate) set_aside: Vec<PathBuf>,
    /// The commit of what a person did since.
    pub(crate) edit: Option<ObjectId>,
    /// What a person did that was left alone, with the reason.
    pub(crate) left_files: Vec<LeftFile>,
    pub(crate) unfit: Vec<Unfit>,
    pub(crate) inputs: Vec<InputChange>,
    /// Those among them that were consumed before a reset.
    pub(crate) again: Vec<PendingAgain>,
    pub(crate) outputs: Vec<OutputChange>,
    /// Lines that a reset had brought back although they are withheld.
    pub(crate) taken_out_again: Vec<Complaint>,
    pub(crate) left_out: BTreeMap<ThreadId, LeftOut>,
    /// Input files of the tree that no worker sees, because they are withheld.
    pub(crate) held_back: Vec<TreePath>,
    pub(crate) reverts: Vec<RevertSeen>,
    /// What the judge had against the last attempt.
    pub(crate) complaints: Vec<Complaint>,
    /// Where a result that was not published is kept.
    pub(crate) attempt: Option<ObjectId>,
    /// Old attempts that were let go.
    pub(crate) expired: Vec<RunId>,
    /// Notes that asked for a change of something that is not there.
    pub(crate) unmatched_notes: Vec<TreePath>,
    /// New recaps that the baseline consumed without citing them.
    pub(crate) skipped: Vec<LeftOutRecap>,
    pub(crate) tokens: Tokens,
}

impl ConsolidateReport {
    fn new(run: RunId) -> Self {
        Self {
            outcome: Outcome::NothingToDo,
            run,
            recovered: false,
            set_aside: Vec::new(),
            edit: None,
            left_files: Vec::new(),
            unfit: Vec::new(),
            inputs: Vec::new(),
            again: Vec::new(),
            outputs: Vec::new(),
            taken_out_again: Vec::new(),
            left_out: BTreeMap::new(),
            held_back: Vec::new(),
            reverts: Vec::new(),
            complaints: Vec::new(),
            attempt: None,
            expired: Vec::new(),
            unmatched_notes: Vec::new(),
            skipped: Vec::new(),
            tokens: Tokens::default(),
        }
    }
}

/// Why a consolidation could not be carried through. The head did not move,
/// the inputs are pending as before, and the ledger was told where it could be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsolidateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("could not load the recaps")]
    Recaps(#[from] RecapsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("could not prepare staging")]
    Staging(#[source] FsError),
    #[error("could not read or write what is withheld")]
    Withheld(#[source] WithheldSetError),
    #[error("could not remove what was released from the folder")]
    ReleasedCopy(#[source] FsError),
    #[error("could not write the cache")]
    Cache(#[source] FsError),
    /// A person's own prompt template cannot be rendered.
    #[error("the prompt template `{template}` cannot be rendered: {problem}")]
    Prompt { template: PathBuf, problem: String },
}

/// What waits for the next consolidation, and why; nothing is written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    pub(crate) inputs: Vec<InputChange>,
    /// Those among them that were consumed before a reset.
    pub(crate) again: Vec<PendingAgain>,
    /// Files of a person's that the next pass commits.
    pub(crate) edits: Vec<TreePath>,
    pub(crate) left_files: Vec<LeftFile>,
    pub(crate) unfit: Vec<Unfit>,
    /// What is wrong with the outputs at the head, so that the worker runs.
    pub(crate) complaints: Vec<Complaint>,
    /// What is wrong with lines that are the person's; no worker touches them.
    pub(crate) yours: Vec<Complaint>,
    pub(crate) left_out: BTreeMap<ThreadId, LeftOut>,
    /// Input files of the tree that no worker sees, because they are withheld
    /// or will be once the next pass has seen the person's revert.
    pub(crate) held_back: Vec<TreePath>,
    /// What a person has to mend before anything is published.
    pub(crate) to_mend: Vec<Complaint>,
    /// Notes and resources that a reset took away.
    pub(crate) lost: Vec<LostInput>,
    /// A publication was interrupted; the next pass finishes or undoes it.
    pub(crate) needs_recovery: bool,
    /// What a worker would be asked now; `None` when nothing would call one.
    pub(crate) prompt: Option<Redacted>,
    /// A person's word about exactly these inputs, given or awaited.
    pub(crate) standing: Option<Standing>,
}

impl Pending {
    /// Nothing would call a worker.
    pub(crate) fn is_idle(&self) -> bool {
        self.inputs.is_empty() && self.complaints.is_empty()
    }
}

/// What `pending` needs, all for reading.
pub(crate) struct PendingParts<'a> {
    pub(crate) home: &'a Home,
    pub(crate) ledger: Option<&'a Ledger>,
    pub(crate) modes: &'a BTreeMap<ThreadId, MemoryMode>,
    pub(crate) policy: &'a Policy,
    pub(crate) now: Timestamp,
}

#[cfg(test)]
mod tests;
