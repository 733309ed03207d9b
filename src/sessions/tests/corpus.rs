//! Every transcript of the corpus reads as the `.expect` file beside it says.
//! A new case is two files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::domain::id::ThreadId;
use crate::domain::item::{Item, ItemKind, Trust};
use crate::domain::session::{ReadReport, Session, SessionHead};
use crate::domain::text::Raw;
use crate::sessions::{Found, Roots, discover, read, read_head, settle};

/// Longest text shown of an item, in characters; longer ones show their ends.
const SHOWN: usize = 400;

#[test]
fn every_transcript_of_the_corpus_reads_as_expected() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/sessions");
    let roots = Roots {
        codex: vec![corpus.join("codex")],
        claude: vec![corpus.join("claude")],
        home: Some(PathBuf::from("/home/dev/.memrev")),
    };
    let mut told = Vec::new();
    let mut heads = Vec::new();
    for found in discover(&roots).found {
        match read_head(&found) {
            Ok(head) => heads.push((found, head)),
            Err(error) => {
                let words = error
                    .to_string()
                    .replace(&format!("{}/", corpus.display()), "");
                told.push((found.path, format!("error: {words}\n")));
            }
        }
    }
    for (found, head) in settle(heads) {
        let session = read(&found).unwrap();
        let text = told_of(&found, &head, &session);
        told.push((found.path, text));
    }
    compare(&corpus, &told);
}

/// Writes what differs below the folder for temporary files, to be looked at
/// and copied.
fn compare(corpus: &Path, told: &[(PathBuf, String)]) {
    let mut differing = Vec::new();
    let mut expected_files = files_ending_in(corpus, "expect");
    for (path, text) in told {
        let path = path.with_extension("expect");
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        expected_files.remove(&path);
        if *text != expected {
            let actual = std::env::temp_dir()
                .join("memrev-expect")
                .join(path.strip_prefix(corpus).unwrap());
            crate::sys::fs::make_folders(actual.parent().unwrap()).unwrap();
            crate::sys::fs::replace(&actual, text.as_bytes()).unwrap();
            differing.push(format!("{}\n  is now {}", path.display(), actual.display()));
        }
    }
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
    assert!(
        expected_files.is_empty(),
        "no session for {expected_files:?}"
    );
}

fn files_ending_in(folder: &Path, ending: &str) -> BTreeSet<PathBuf> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect()
}

fn told_of(found: &Found, quick: &SessionHead, session: &Session) -> String {
    let mut told = told_of_head(&session.head);
    let quick = told_of_head(quick);
    if quick != told {
        // What the quick look could not know.
        let differing = quick.lines().zip(told.lines().collect::<Vec<_>>());
        let differing: Vec<String> = differing
            .filter(|(quick, whole)| quick != whole)
            .map(|(quick, _)| format!("quick look: {quick}\n"))
            .collect();
        told.push_str(&differing.concat());
    }
    for path in &found.earlier {
        let name = path.file_name().unwrap().to_string_lossy();
        writeln!(told, "repeats: {name}").unwrap();
    }
    for citation in &session.citations {
        let ids: Vec<&str> = citation.thread_ids.iter().map(ThreadId::as_str).collect();
        writeln!(told, "cites: {} #{}", ids.join(", "), citation.occurrence).unwrap();
    }
    if session.has_external {
        told.push_str("external: yes\n");
    }
    told.push_str(&told_of_report(&session.report));
    for item in &session.items {
        told.push_str(&told_of_item(item));
    }
    told
}

fn told_of_head(head: &SessionHead) -> String {
    let shown = |text: &Option<Raw>| match text {
        Some(text) => text.unredacted().to_owned(),
        None => "-".to_owned(),
    };
    let time =
        |at: crate::domain::time::Timestamp| format!("{at} +{}", at.millis().rem_euclid(1000));
    format!(
        "thread: {}\nsource: {:?}\nmode: {}\ncwd: {}\nproject: {}\nbranch: {}\nstarted: {}\nupdated: {}\nours: {}\nforked from: {}\n",
        head.thread_id,
        head.source,
        head.mode.label(),
        shown(&head.cwd),
        head.project
            .as_ref()
            .map_or("-", |project| project.as_str()),
        shown(&head.git_branch),
        head.started_at.map_or("-".to_owned(), time),
        time(head.updated_at),
        head.is_ours,
        head.forked_from.as_ref().map_or("-", |id| id.as_str()),
    )
}

fn told_of_report(report: &ReadReport) -> String {
    let ignored: u64 = report.ignored.values().sum();
    assert_eq!(
        report.read + ignored + report.damaged,
        report.records,
        "the report adds up"
    );
    let mut told = format!("records: {} = {} read", report.records, report.read);
    write!(told, " + {ignored} ignored + {} damaged", report.damaged).unwrap();
    for (count, what) in [(report.blank_lines, "blank"), (report.glued_lines, "glued")] {
        if count > 0 {
            write!(told, "; {count} {what}").unwrap();
        }
    }
    told.push_str(if report.unfinished_line {
        "; unfinished\n"
    } else {
        "\n"
    });
    for (kind, count) in &report.ignored {
        writeln!(told, "ignored: {count} {kind}").unwrap();
    }
    for damage in &report.damage {
        writeln!(told, "damage: line {}: {}", damage.line_number, damage.what).unwrap();
    }
    for warning in &report.warnings {
        writeln!(
            told,
            "warning: line {}: {}",
            warning.line_number, warning.what
        )
        .unwrap();
    }
    told
}

fn told_of_item(item: &Item) -> String {
    let mut told = format!("\n{}", item.place.line_number);
    if item.place.part > 0 {
        write!(told, " of part {}", item.place.part).unwrap();
    }
    write!(told, " [{}]", item.provenance.label()).unwrap();
    if item.trust == Trust::External {
        told.push_str(" external");
    }
    match &item.kind {
        ItemKind::Message => {}
        ItemKind::ToolCall { tool, files, .. } => {
            write!(told, " calls {tool}").unwrap();
            for file in files {
                write!(told, " writes {}", file.unredacted()).unwrap();
            }
        }
        ItemKind::ToolOutput { succeeded, .. } => told.push_str(match succeeded {
            Some(true) => " succeeded",
            Some(false) => " failed",
            None => " returned",
        }),
    }
    if item.media_count > 0 {
        write!(told, " with {} media", item.media_count).unwrap();
    }
    if item.at.is_none() {
        told.push_str(" undated");
    }
    let characters: Vec<char> = item.text.unredacted().chars().collect();
    let shown: String = if characters.len() <= SHOWN {
        characters.iter().collect()
    } else {
        let ends = [
            &characters[..SHOWN / 2],
            &characters[characters.len() - SHOWN / 2..],
        ];
        let ends = ends.map(|end| end.iter().collect::<String>());
        format!("{}…({} characters)…{}", ends[0], characters.len(), ends[1])
    };
    for line in shown.split('\n') {
        write!(told, "\n    {line}").unwrap();
    }
    told.push('\n');
    told
}
