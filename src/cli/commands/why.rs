//! `memrev why`: where a line of memory comes from.

use serde::Serialize;

use crate::cli::args::WhyArgs;
use crate::cli::commands::log::{CommitJson, as_json as commit_json};
use crate::cli::context::{Context, store_failure};
use crate::cli::report::{Class, Failure, Printer};
use crate::domain::text::Raw;
use crate::history::blame::{Spot, Step};
use crate::history::why::{
    self, Answer, Evidence, EvidenceItem, Library, Origin, Question, Source, WhyError,
};
use crate::service::survey;
use crate::text::redact;
use crate::text::terminal;
use crate::text::truncate;

/// Entries shown of a phrase without `--all`.
const ANSWERS_MAX: usize = 10;
/// Longest item of a transcript that is shown, in bytes.
const ITEM_BYTES_MAX: usize = 400;

#[derive(Serialize)]
struct WhyJson {
    /// How many entries hold the words.
    count: usize,
    answers: Vec<AnswerJson>,
}

#[derive(Serialize)]
struct AnswerJson {
    line: SpotJson,
    /// `null`: no commit holds it yet.
    origin: Option<OriginJson>,
}

#[derive(Serialize)]
struct SpotJson {
    path: String,
    line_number: usize,
    text: String,
}

#[derive(Serialize)]
struct OriginJson {
    commit: CommitJson,
    line: SpotJson,
    by_person: bool,
    history_is_cut: bool,
    steps: Vec<StepJson>,
    sources: Vec<SourceJson>,
}

#[derive(Serialize)]
struct StepJson {
    commit: String,
    reworded: bool,
    from: SpotJson,
}

#[derive(Serialize)]
struct SourceJson {
    path: String,
    cited: bool,
    line_number: Option<usize>,
    text: Option<String>,
    thread_id: Option<String>,
    agent: Option<&'static str>,
    rollout_path: Option<String>,
    evidence: Vec<EvidenceJson>,
    missing: Option<String>,
}

#[derive(Serialize)]
struct EvidenceJson {
    line_number: u32,
    items: Vec<ItemJson>,
}

#[derive(Serialize)]
struct ItemJson {
    line_number: u32,
    provenance: &'static str,
    at: Option<String>,
    text: String,
}

pub(crate) fn run(context: &Context, args: &WhyArgs) -> Result<(), Failure> {
    let config = context.config()?;
    let store = context.store(config.memories.version)?;
    let head = store.head().map_err(|error| store_failure(&error))?;
    let survey =
        survey::look(&context.survey_parts(&config)).map_err(|error| Failure::refused(&error))?;
    let library = Library {
        store: &store,
        head,
        found: survey.found().collect(),
    };
    let question = why::question(&store, head, &args.question).map_err(|error| failure(&error))?;
    let count_max = if args.all { usize::MAX } else { ANSWERS_MAX };
    let (answers, count) =
        why::answer(&library, &question, count_max).map_err(|error| failure(&error))?;
    if args.json {
        return context.printer.json(&WhyJson {
            count,
            answers: answers.iter().map(answer_json).collect(),
        });
    }
    for (index, answer) in answers.iter().enumerate() {
        if 0 < index {
            context.printer.line("");
        }
        print(&context.printer, answer);
    }
    if answers.len() < count && matches!(question, Question::Phrase(_)) {
        let left = count - answers.len();
        context
            .printer
            .hint(format!("{left} more hold these words; `--all` shows them"));
    }
    Ok(())
}

fn failure(error: &WhyError) -> Failure {
    match error {
        WhyError::Store(error) => store_failure(error),
        WhyError::NoLine { .. } => Failure::of(Class::Refused, error).hint("lines count from 1"),
        WhyError::NoFile { .. } => Failure::of(Class::Refused, error)
            .hint("name a file of the memory folder, such as `MEMORY.md:12`"),
        WhyError::NoEntry => Failure::of(Class::Refused, error)
            .hint("`memrev log --lost` shows entries that are gone"),
    }
}

fn shown(text: &Raw) -> String {
    let text = redact::redact(text);
    terminal::safe_line(text.as_str().trim_end())
}

fn print(printer: &Printer, answer: &Answer) {
    printer.line(place(&answer.spot));
    let Some(origin) = &answer.origin else {
        printer.line("  is yours and not committed yet: the next pass commits it");
        return;
    };
    print_origin(printer, origin);
    for step in &origin.blame.steps {
        print_step(printer, step);
    }
    if origin.is_by_person {
        return;
    }
    for source in &origin.sources {
        print_source(printer, source);
    }
    if origin.sources.is_empty() {
        printer.line("  it cites nothing, and nothing that its commit took in says the same");
    }
}

fn place(spot: &Spot) -> String {
    format!("{}:{}: {}", spot.path, spot.line + 1, shown(&spot.text))
}

fn print_origin(printer: &Printer, origin: &Origin) {
    let commit = &origin.commit;
    let at = commit.at.to_string()[..16].replace('T', " ");
    let verb = match (origin.blame.is_cut, origin.is_by_person) {
        (true, _) => "is at least as old as the oldest commit that is here,",
        (_, true) => "was written by a person in",
        (_, false) => "came with",
    };
    let subject = shown(&commit.subject);
    printer.line(format!("  {verb} {} {at} {subject}", commit.id.short()));
    if origin.is_by_person {
        let author = terminal::safe_line(redact::redact_str(&commit.author.name).as_str());
        printer.line(format!("    by {author}"));
    }
}

fn print_step(printer: &Printer, step: &Step) {
    let verb = if step.is_reworded {
        "reworded"
    } else {
        "moved"
    };
    printer.line(format!(
        "  {verb} by {} from {}",
        step.commit.short(),
        place(&step.from)
    ));
}

fn print_source(printer: &Printer, source: &Source) {
    let verb = if source.is_cited {
        "rests on"
    } else {
        "seems to rest on"
    };
    let words = match &source.line {
        Some((line_number, text)) => format!(":{line_number}: {}", shown(text)),
        None => String::new(),
    };
    printer.line(format!("  {verb} {}{words}", source.path));
    if let Some(session) = &source.session {
        let agent = session.agent.map_or("", |agent| agent.label());
        let path = terminal::safe_line(redact::redact_str(&session.rollout_path).as_str());
        printer.line(format!("    session {} {agent} {path}", session.thread_id));
        for evidence in &session.evidence {
            print_evidence(printer, evidence);
        }
    }
    if let Some(gap) = &source.gap {
        let gap = terminal::safe_line(redact::redact_str(gap).as_str());
        printer.line(format!("    here the trail ends: {gap}"));
    }
}

fn print_evidence(printer: &Printer, evidence: &Evidence) {
    for item in &evidence.items {
        let mark = if item.line_number == evidence.line_number {
            '>'
        } else {
            ' '
        };
        let text = item_text(item);
        let text = terminal::safe_line(&text);
        printer.line(format!(
            "    {mark} {:>5} {}: {text}",
            item.line_number,
            item.provenance.label()
        ));
    }
}

fn item_text(item: &EvidenceItem) -> String {
    let text = redact::redact(&item.text);
    truncate::middle_bytes(text.as_str().trim(), ITEM_BYTES_MAX)
}

fn spot_json(spot: &Spot) -> SpotJson {
    SpotJson {
        path: spot.path.to_string(),
        line_number: spot.line + 1,
        text: redact::redact(&spot.text).into_string(),
    }
}

fn answer_json(answer: &Answer) -> AnswerJson {
    AnswerJson {
        line: spot_json(&answer.spot),
        origin: answer.origin.as_ref().map(|origin| OriginJson {
            commit: commit_json(&origin.commit, None),
            line: spot_json(&origin.blame.spot),
            by_person: origin.is_by_person,
            history_is_cut: origin.blame.is_cut,
            steps: (origin.blame.steps.iter())
                .map(|step| StepJson {
                    commit: step.commit.to_string(),
                    reworded: step.is_reworded,
                    from: spot_json(&step.from),
                })
                .collect(),
            sources: origin.sources.iter().map(source_json).collect(),
        }),
    }
}

fn source_json(source: &Source) -> SourceJson {
    let session = source.session.as_ref();
    let line = source.line.as_ref();
    let evidence = session.map_or(&[][..], |session| &session.evidence);
    SourceJson {
        path: source.path.to_string(),
        cited: source.is_cited,
        line_number: line.map(|(line_number, _)| *line_number),
        text: line.map(|(_, text)| redact::redact(text).into_string()),
        thread_id: session.map(|session| session.thread_id.to_string()),
        agent: session.and_then(|session| Some(session.agent?.label())),
        rollout_path: session
            .map(|session| redact::redact_str(&session.rollout_path).into_string()),
        evidence: evidence.iter().map(evidence_json).collect(),
        missing: (source.gap.as_ref()).map(|gap| redact::redact_str(gap).into_string()),
    }
}

fn evidence_json(evidence: &Evidence) -> EvidenceJson {
    let item = |item: &EvidenceItem| ItemJson {
        line_number: item.line_number,
        provenance: item.provenance.label(),
        at: item.at.map(|at| at.to_string()),
        text: item_text(item),
    };
    EvidenceJson {
        line_number: evidence.line_number,
        items: evidence.items.iter().map(item).collect(),
    }
}
