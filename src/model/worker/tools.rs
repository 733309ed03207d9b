//! The tools: what the model may do on the staging folder.
//!
//! Arguments come from a model and may be anything; what cannot be done is an
//! answer, never an end.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::domain::limits::SNAPSHOT_FILE_BYTES_MAX;
use crate::domain::path::{FileKind, TreePath};
use crate::domain::version::MemoryVersion;
use crate::model::finish::Finish;
use crate::model::protocol::ToolSpec;
use crate::model::{ConsolidationRequest, Retired, WorkerReport};
use crate::sys::confined::Confined;
use crate::text::redact::redact_str;
use crate::text::truncate::middle_bytes;

/// Most bytes of one result.
const RESULT_BYTES_MAX: usize = 48 * 1024;
/// Lines of a file that one `read` shows.
const LINES_MAX: usize = 600;
/// Longest line that is shown whole, in bytes.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Most lines that one `search` finds.
const HITS_MAX: usize = 100;
/// Longest part of a found line, in bytes.
const HIT_BYTES_MAX: usize = 400;
/// Largest file that is written, in bytes. Real ones have some ten thousand.
const WRITE_BYTES_MAX: usize = 1024 * 1024;
/// Most entries that are retired; the loss guard allows fewer.
const RETIRED_MAX: usize = 500;

/// Schemas as the strict modes of services want them: all properties
/// required, no others.
pub(super) const ALL: &[ToolSpec] = &[
    ToolSpec {
        name: "list",
        description: "List the files below a folder with their sizes in bytes.",
        parameters: r#"{"type":"object","properties":{"folder":{"type":"string","description":"Such as `rollout_summaries`; empty for everything."}},"required":["folder"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "read",
        description: "Read lines of a file.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"from_line":{"type":"integer","description":"The first line to show, counted from 1."}},"required":["path","from_line"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "search",
        description: "Find the lines that contain a text, in any case of its letters.",
        parameters: r#"{"type":"object","properties":{"text":{"type":"string"},"folder":{"type":"string","description":"Where to look; empty for everything."}},"required":["text","folder"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "write",
        description: "Write a memory file whole.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "edit",
        description: "Replace a passage of a memory file. It must occur exactly once.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"}},"required":["path","old","new"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "delete",
        description: "Delete a file under skills/.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "retire",
        description: "Say that an entry goes on purpose although its sources are still there. Take it out of the file as well.",
        parameters: r#"{"type":"object","properties":{"entry":{"type":"string","description":"Its text as it stood in the file."},"reason":{"type":"string","description":"One sentence."}},"required":["entry","reason"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "finish",
        description: "End the work. The memory files are as they should be.",
        parameters: r#"{"type":"object","properties":{"report":{"type":"string","description":"A few plain sentences for the commit message."},"skipped":{"type":"array","items":{"type":"object","properties":{"thread_id":{"type":"string"},"reason":{"type":"string","description":"One sentence."}},"required":["thread_id","reason"],"additionalProperties":false},"description":"New recaps with nothing worth keeping, each with the reason."},"forgotten":{"type":"array","items":{"type":"string"},"description":"Entries that went because a note asks to forget them, each as it stood."},"unmatched_notes":{"type":"array","items":{"type":"string"},"description":"Paths of notes that ask to correct or forget something that is not there."}},"required":["report","skipped","forgotten","unmatched_notes"],"additionalProperties":false}"#,
    },
];

/// What a tool came to.
pub(super) enum Done {
    Told(String),
    Refused(String),
    Finished(Box<WorkerReport>),
}

/// The staging folder with what was retired so far.
pub(super) struct Desk<'a> {
    folder: Confined,
    request: &'a ConsolidationRequest<'a>,
    retired: Vec<Retired>,
}

type Told = Result<String, String>;

impl<'a> Desk<'a> {
    pub(super) fn new(request: &'a ConsolidationRequest<'a>) -> Self {
        Self {
            folder: Confined::new(request.staging),
            request,
            retired: Vec::new(),
        }
    }

    pub(super) fn use_tool(&mut self, name: &str, arguments: &str) -> Done {
        let told = match name {
            "list" => read_arguments(arguments).and_then(|it| self.list(&it)),
            "read" => read_arguments(arguments).and_then(|it| self.read(&it)),
            "search" => read_arguments(arguments).and_then(|it| self.search(&it)),
            "write" => read_arguments(arguments).and_then(|it| self.write(&it)),
            "edit" => read_arguments(arguments).and_then(|it| self.edit(&it)),
            "delete" => read_arguments(arguments).and_then(|it| self.delete(&it)),
            "retire" => read_arguments(arguments).and_then(|it| self.retire(&it)),
            "finish" => match read_arguments::<Finish>(arguments) {
                Ok(finish) => return Done::Finished(Box::new(self.finish(finish))),
                Err(why) => Err(why),
            },
            _ => {
                let names: Vec<&str> = ALL.iter().map(|tool| tool.name).collect();
                Err(format!(
                    "there is no such tool; there are: {}",
                    names.join(", ")
                ))
            }
        };
        match told {
            Ok(text) => Done::Told(middle_bytes(&text, RESULT_BYTES_MAX)),
            Err(why) => Done::Refused(middle_bytes(&why, RESULT_BYTES_MAX)),
        }
    }

    /// The report of a model that never called `finish`.
    pub(super) fn unfinished(self) -> WorkerReport {
        WorkerReport {
            retired: self.retired,
            ..WorkerReport::default()
        }
    }

    fn finish(&mut self, finish: Finish) -> WorkerReport {
        let mut report = finish.into_report(true);
        report.retired.append(&mut self.retired);
        report
    }

    fn list(&self, it: &List) -> Told {
        let files = self.files(&it.folder)?;
        let lines: Vec<String> = files
            .iter()
            .map(|(path, size)| format!("{path} {size}"))
            .collect();
        if lines.is_empty() {
            return Ok("no files".to_owned());
        }
        Ok(lines.join("\n"))
    }

    fn read(&self, it: &Read) -> Told {
        let path = parse(&it.path)?;
        let text = self.text(&path)?;
        let lines: Vec<&str> = text.lines().collect();
        let from = usize::try_from(it.from_line).unwrap_or(1).max(1);
        if lines.len() < from {
            return Ok(format!("{path} has {} lines", lines.len()));
        }
        let mut shown = String::new();
        let mut last = from - 1;
        for line in lines.iter().skip(from - 1).take(LINES_MAX) {
            if RESULT_BYTES_MAX - 1_024 < shown.len() + line.len().min(LINE_BYTES_MAX) {
                break;
            }
            shown.push_str(&middle_bytes(line, LINE_BYTES_MAX));
            shown.push('\n');
            last += 1;
        }
        let head = format!("{path}, lines {from} to {last} of {}", lines.len());
        let more = if last < lines.len() {
            format!("; go on with from_line {}", last + 1)
        } else {
            String::new()
        };
        Ok(format!("{head}{more}\n{shown}"))
    }

    fn search(&self, it: &Search) -> Told {
        let wanted = it.text.to_lowercase();
        if wanted.trim().is_empty() {
            return Err("`text` is empty".to_owned());
        }
        let mut hits = Vec::new();
        for (path, size) in self.files(&it.folder)? {
            if SNAPSHOT_FILE_BYTES_MAX < size {
                continue;
            }
            // What is no text has no lines to find.
            let Ok(text) = self.text(&path) else { continue };
            for (index, line) in text.lines().enumerate() {
                if line.to_lowercase().contains(&wanted) {
                    let line = middle_bytes(line.trim(), HIT_BYTES_MAX);
                    hits.push(format!("{path}:{}: {line}", index + 1));
                    if hits.len() == HITS_MAX {
                        hits.push(format!("only the first {HITS_MAX} are shown"));
                        return Ok(hits.join("\n"));
                    }
                }
            }
        }
        if hits.is_empty() {
            return Ok("nothing found".to_owned());
        }
        Ok(hits.join("\n"))
    }

    fn write(&self, it: &Write) -> Told {
        let path = self.output(&it.path)?;
        self.put(&path, &it.text)
    }

    fn edit(&self, it: &Edit) -> Told {
        let path = self.output(&it.path)?;
        let text = self.text(&path)?;
        if it.old.is_empty() {
            return Err("`old` is empty; use `write` for a whole file".to_owned());
        }
        match text.matches(&it.old).count() {
            1 => self.put(&path, &text.replacen(&it.old, &it.new, 1)),
            0 => Err(format!("`old` does not occur in {path}; copy it exactly")),
            count => Err(format!(
                "`old` occurs {count} times in {path}; take more of its surroundings"
            )),
        }
    }

    fn delete(&self, it: &Delete) -> Told {
        let path = self.output(&it.path)?;
        if path.kind() != FileKind::Skill {
            return Err(format!("{path} has to be there; write it anew instead"));
        }
        self.text(&path)?;
        self.folder.remove(&path).map_err(|error| words(&error))?;
        Ok(format!("{path} is deleted"))
    }

    fn retire(&mut self, it: &Retire) -> Told {
        if it.entry.trim().is_empty() || it.reason.trim().is_empty() {
            return Err("an entry and a reason are needed".to_owned());
        }
        if RETIRED_MAX <= self.retired.len() {
            return Err("too many entries are retired".to_owned());
        }
        self.retired.push(Retired {
            entry: middle_bytes(&it.entry, LINE_BYTES_MAX),
            reason: middle_bytes(&it.reason, LINE_BYTES_MAX),
        });
        Ok("noted; take it out of the file, if it is still there".to_owned())
    }

    fn put(&self, path: &TreePath, text: &str) -> Told {
        if WRITE_BYTES_MAX < text.len() {
            let bytes = text.len();
            return Err(format!(
                "{bytes} bytes are too many for {path}; {WRITE_BYTES_MAX} are allowed"
            ));
        }
        let text = redact_str(text);
        self.folder
            .write(path, text.as_str().as_bytes())
            .map_err(|error| words(&error))?;
        Ok(format!("{path} has {} bytes now", text.as_str().len()))
    }

    /// A path that a worker may write.
    fn output(&self, path: &str) -> Result<TreePath, String> {
        let path = parse(path)?;
        let is_output = match self.request.version {
            MemoryVersion::V1 => path.kind().is_output(),
            MemoryVersion::V2 => path.kind() == FileKind::Summary,
        };
        if is_output {
            return Ok(path);
        }
        let may = match self.request.version {
            MemoryVersion::V1 => "memory_summary.md, MEMORY.md and skills/<name>/...",
            MemoryVersion::V2 => "memory_summary.md",
        };
        Err(format!(
            "{path} is not yours to change; you may write {may}"
        ))
    }

    fn text(&self, path: &TreePath) -> Told {
        let bytes = self
            .folder
            .read(path, SNAPSHOT_FILE_BYTES_MAX)
            .map_err(|error| words(&error))?;
        let bytes = bytes.ok_or_else(|| format!("there is no file {path}"))?;
        String::from_utf8(bytes).map_err(|_| format!("{path} is not text"))
    }

    fn files(&self, folder: &str) -> Result<Vec<(TreePath, u64)>, String> {
        let folder = folder.trim_matches('/');
        let mut files = self.folder.files().map_err(|error| words(&error))?;
        if !folder.is_empty() && folder != "." {
            let inside = format!("{folder}/");
            files.retain(|(path, _)| path.as_str() == folder || path.as_str().starts_with(&inside));
        }
        Ok(files)
    }
}

fn parse(path: &str) -> Result<TreePath, String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    TreePath::parse(path).ok_or_else(|| {
        "paths are relative to the working folder, without `..`, `.git` and a leading `/`"
            .to_owned()
    })
}

fn read_arguments<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    // Some services send nothing for no arguments.
    let arguments = if arguments.trim().is_empty() {
        "{}"
    } else {
        arguments
    };
    serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments cannot be used: {error}"))
}

fn words(error: &crate::sys::fs::FsError) -> String {
    // Without the path, which is the model's own word for it, or none of its
    // business.
    format!("could not {} it: {}", error.attempt, error.source)
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    folder: String,
}

#[derive(Deserialize)]
struct Read {
    path: String,
    #[serde(default)]
    from_line: i64,
}

#[derive(Deserialize)]
struct Search {
    text: String,
    #[serde(default)]
    folder: String,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    text: String,
}

#[derive(Deserialize)]
struct Edit {
    path: String,
    old: String,
    new: String,
}

#[derive(Deserialize)]
struct Delete {
    path: String,
}

#[derive(Deserialize)]
struct Retire {
    entry: String,
    reason: String,
}
