//! Programs as back ends: `codex exec`, `claude -p`, or one of the person's.
//!
//! For an extraction the prompt goes to standard input and JSON of the schema
//! comes from standard output. For a consolidation the program is started with
//! the staging folder as its working folder, edits the memory files there, and
//! ends with a JSON object that says so (`schemas/worker-report.json`).
//!
//! A program runs with a clean environment, `MEMREV_WORKER=1` so that our own
//! hooks leave it alone, a time limit, an output limit, and where the kernel
//! can keep them, walls around what it may write. Its working folder is below
//! `staging/`, by which readers know the sessions it may leave for ours.
//!
//! # Not in here
//!
//! Flags and answers of the programs we know: see [`presets`].

mod presets;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::domain::session::Agent;
use crate::domain::text::{Raw, Redacted};
use crate::model::finish::{self, Finish};
use crate::model::{
    ConsolidationRequest, ExtractionRequest, Meter, Model, ModelError, Reply, Tokens, WorkerReport,
};
use crate::sys::fs::{self, EntryType};
use crate::sys::ids::Ids;
use crate::sys::process;
use crate::sys::program::{self, End, Program, ProgramError};
use crate::sys::walls::{Support, Walls};
use crate::text::redact::redact_str;

pub(crate) use self::presets::Preset;

/// Most bytes of standard output: a reply has a few thousand, the events of a
/// long consolidation some megabytes.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most bytes on disk by which a call's folders may grow: memory files have
/// some megabytes, an agent's temporary files some tens.
const DISK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Most bytes of a program's complaint that are passed on.
const COMPLAINT_BYTES_MAX: usize = 600;

/// Names of the folders of calls, below `staging/`: `call-<pid>-<token>`.
const CALL_FOLDER: &str = "call-";

/// What a program is started with.
#[derive(Debug, Clone)]
pub(crate) struct CommandSettings {
    pub(crate) preset: Preset,
    /// Absolute.
    pub(crate) file: PathBuf,
    /// The person's, before those of the preset.
    pub(crate) arguments: Vec<String>,
    /// Its whole environment, but what is set for each call.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// One of its models, by name.
    pub(crate) model: Option<String>,
    pub(crate) fence: Fence,
    /// What this kernel keeps of walls.
    pub(crate) support: Support,
    /// `<home>/staging`.
    pub(crate) staging: PathBuf,
    pub(crate) call_seconds_max: u64,
    pub(crate) worker_seconds_max: u64,
}

/// Who keeps the program from writing elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fence {
    /// The kernel, as far as it can; the program writes here too. `required`:
    /// nothing is started where the kernel cannot.
    Walls {
        writable: Vec<PathBuf>,
        required: bool,
    },
    /// Somebody outside; the program's own sandbox is not asked for either.
    External,
}

/// The back ends `codex`, `claude` and `command`.
#[derive(Debug)]
pub(crate) struct Command {
    settings: CommandSettings,
    name: String,
    ids: Ids,
}

/// One call of a program.
struct Call<'a> {
    arguments: Vec<String>,
    /// `None`: an empty folder of its own.
    folder: Option<&'a Path>,
    schema: &'a str,
    input: &'a str,
    seconds_max: u64,
    meter: &'a dyn Meter,
}

/// What a program said, and what it used up.
struct Said {
    text: Raw,
    tokens: Tokens,
    left_behind: u32,
}

impl Command {
    pub(crate) fn new(settings: CommandSettings) -> Self {
        let program = match settings.preset {
            Preset::Plain => {
                let stem = settings.file.file_stem().unwrap_or_default();
                format!("command/{}", stem.to_string_lossy())
            }
            preset => preset.label().to_owned(),
        };
        let name = match &settings.model {
            Some(model) => format!("{program}/{model}"),
            None => program,
        };
        Self {
            settings,
            name,
            ids: Ids::new(None),
        }
    }

    fn call(&self, call: &Call<'_>) -> Result<Said, ModelError> {
        let settings = &self.settings;
        let walls = self.walls(call.folder)?;
        call.meter.take_call()?;
        sweep(&settings.staging).map_err(ModelError::Files)?;
        let name = format!("{CALL_FOLDER}{}-{}", std::process::id(), self.ids.token());
        let scratch = settings.staging.join(name);
        let made = self.prepare(&scratch, call, walls);
        let program = made.inspect_err(|_| drop(fs::remove_all(&scratch)))?;
        let keep_going = || call.meter.keep_going();
        let ended = program::run(&program, call.input.as_bytes(), &keep_going);
        // The supervisor has removed it, if it lived so long.
        fs::remove_all(&scratch).ok();
        let ended = ended.map_err(|error| unreachable(&program_words(&error)))?;
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let (text, tokens) = settings.preset.answer(&stdout);
        call.meter.add_tokens(tokens);
        match ended.end {
            End::Exited { code: Some(0) } => {}
            End::Exited { code } => return Err(self.failed(code, text, &ended.stderr)),
            End::NotStarted { reason } => return Err(unreachable(&reason)),
            End::TimeUp => {
                return Err(ModelError::TimedOut {
                    seconds: call.seconds_max,
                });
            }
            End::TooMuchOutput => {
                return Err(unusable(&format!(
                    "more than {OUTPUT_BYTES_MAX} bytes of output"
                )));
            }
            End::TooMuchOnDisk => {
                return Err(unusable(&format!(
                    "it wrote more than {DISK_BYTES_MAX} bytes, or far too many files, in its working folder"
                )));
            }
            End::Stopped => return Err(ModelError::Cancelled),
        }
        Ok(Said {
            text: text.map_err(|complaint| presets::error(&complaint))?,
            tokens: Tokens { calls: 1, ..tokens },
            left_behind: ended.left_behind,
        })
    }

    /// The walls of a call, those of its own folder still missing.
    fn walls(&self, folder: Option<&Path>) -> Result<Option<Walls>, ModelError> {
        let Fence::Walls { writable, required } = &self.settings.fence else {
            return Ok(None);
        };
        let support = self.settings.support;
        if *required && support != Support::Full {
            return Err(refused(
                "`worker.sandbox` is `required`, and this system cannot keep a program from writing elsewhere",
            ));
        }
        if support == Support::None {
            return Ok(None);
        }
        Ok(Some(Walls {
            plain: folder.map(Path::to_owned).into_iter().collect(),
            free: writable.clone(),
        }))
    }

    fn prepare(
        &self,
        scratch: &Path,
        call: &Call<'_>,
        mut walls: Option<Walls>,
    ) -> Result<Program, ModelError> {
        let settings = &self.settings;
        let (work, temporary) = (scratch.join("work"), scratch.join("tmp"));
        for folder in [&work, &temporary] {
            fs::make_folders(folder).map_err(ModelError::Files)?;
        }
        let schema = scratch.join("schema.json");
        let text = presets::plain_schema(call.schema);
        fs::write_unflushed(&schema, text.as_bytes(), false).map_err(ModelError::Files)?;
        if let Some(walls) = &mut walls {
            walls.free.extend([work.clone(), temporary.clone()]);
        }
        let mut variables = settings.variables.clone();
        let mut set = |name: &str, value: OsString| variables.push((name.into(), value));
        set("MEMREV_WORKER", "1".into());
        set("MEMREV_SCHEMA", schema.clone().into());
        set("TMPDIR", temporary.into());
        for (name, value) in settings.preset.variables() {
            set(name, (*value).into());
        }
        let folder = call.folder.map_or(work, Path::to_owned);
        let fill = |argument: &String| {
            let argument = argument.replace(presets::SCHEMA_FILE, &schema.to_string_lossy());
            let argument = argument.replace(presets::FOLDER, &folder.to_string_lossy());
            OsString::from(argument)
        };
        Ok(Program {
            file: settings.file.clone().into(),
            arguments: call.arguments.iter().map(fill).collect(),
            variables,
            seconds_max: call.seconds_max,
            output_bytes_max: OUTPUT_BYTES_MAX,
            disk_bytes_max: DISK_BYTES_MAX,
            walls,
            scratch: Some(scratch.to_owned()),
            folder,
        })
    }

    /// A program that ended badly: what it says of it, in its answer or on
    /// standard error.
    fn failed(&self, code: Option<i32>, text: Result<Raw, String>, stderr: &[u8]) -> ModelError {
        let said = text
            .err()
            .unwrap_or_else(|| String::from_utf8_lossy(stderr).into_owned());
        let ended = match code {
            Some(code) => format!("`{}` ended with exit code {code}", self.name),
            None => format!("`{}` was ended by a signal", self.name),
        };
        match said.trim() {
            "" => unreachable(&ended),
            said => presets::error(&format!("{ended}: {said}")),
        }
    }

    fn mode(&self) -> presets::Freedom {
        let is_walled = match &self.settings.fence {
            Fence::External => true,
            Fence::Walls { .. } => self.settings.support != Support::None,
        };
        if is_walled {
            presets::Freedom::Walled
        } else {
            presets::Freedom::OwnSandbox
        }
    }
}

impl Model for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_free(&self) -> bool {
        false
    }

    fn draws_on(&self) -> Option<Agent> {
        match self.settings.preset {
            Preset::Codex => Some(Agent::Codex),
            Preset::Claude => Some(Agent::Claude),
            Preset::Plain => None,
        }
    }

    fn extract(&self, request: &ExtractionRequest<'_>) -> Result<Reply, ModelError> {
        let messages = request.messages();
        let input: String = messages.iter().map(Redacted::as_str).collect();
        let settings = &self.settings;
        let said = self.call(&Call {
            arguments: settings.preset.extraction(settings, request.schema),
            folder: None,
            schema: request.schema,
            input: &input,
            seconds_max: settings.call_seconds_max,
            meter: request.meter,
        })?;
        Ok(Reply {
            text: said.text,
            rests_on: None,
            is_cut: false,
            tokens: said.tokens,
        })
    }

    fn consolidate(&self, request: &ConsolidationRequest<'_>) -> Result<WorkerReport, ModelError> {
        let input = finish::command_prompt(&request.prompt, request.diagnostics);
        let settings = &self.settings;
        let said = self.call(&Call {
            arguments: settings
                .preset
                .consolidation(settings, self.mode(), finish::SCHEMA),
            folder: Some(request.staging),
            schema: finish::SCHEMA,
            input: input.as_str(),
            seconds_max: settings.worker_seconds_max,
            meter: request.meter,
        })?;
        if 0 < said.left_behind {
            // Whatever it was doing, it was not finished; it is ended now.
            return Err(unusable(&format!(
                "it left {} of its processes running",
                said.left_behind
            )));
        }
        let mut report = match Finish::parse(&said.text) {
            Some(last_words) => {
                let is_finished = last_words.finished == Some(true);
                last_words.into_report(is_finished)
            }
            None => WorkerReport::default(),
        };
        report.tokens = said.tokens;
        Ok(report)
    }
}

/// Removes folders of calls whose process is gone.
fn sweep(staging: &Path) -> Result<(), fs::FsError> {
    for entry in fs::list(staging)? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        let pid = name.and_then(|name| name.strip_prefix(CALL_FOLDER)?.split('-').next());
        let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
        let is_left = pid.is_some_and(|pid| !process::may_exist(pid));
        if entry.kind == EntryType::Folder && is_left {
            fs::remove_all(&entry.path)?;
        }
    }
    Ok(())
}

fn program_words(error: &ProgramError) -> String {
    use std::error::Error as _;
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Said by a program, so: redacted, one line, short.
fn complaint(said: &str) -> Redacted {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let redacted = redact_str(&line);
    redact_str(&crate::text::truncate::middle_bytes(
        redacted.as_str(),
        COMPLAINT_BYTES_MAX,
    ))
}

fn unreachable(said: &str) -> ModelError {
    ModelError::Unreachable {
        reason: complaint(said),
    }
}

fn unusable(said: &str) -> ModelError {
    ModelError::Unusable {
        reason: complaint(said),
    }
}

fn refused(said: &str) -> ModelError {
    ModelError::Refused {
        reason: complaint(said),
    }
}
