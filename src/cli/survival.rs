//! How memory fared over the last baselines, as `status` says it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::history::survival::Survival;

/// For `status --json`.
#[derive(Serialize)]
pub(crate) struct SurvivalJson {
    since: String,
    at: String,
    baselines: usize,
    entries: usize,
    word_for_word: usize,
    reworded: usize,
    gone: BTreeMap<&'static str, usize>,
}

/// One line.
pub(crate) fn words(survival: &Survival) -> String {
    let since = match survival.baselines {
        1 => "before the last baseline".to_owned(),
        count => format!("{count} baselines ago"),
    };
    let mut words = format!(
        "of {} {since} ({}): {} stand word for word, {} reworded",
        entries(survival.entries),
        survival.since.short(),
        survival.word_for_word,
        survival.reworded,
    );
    let ways = survival.gone.iter();
    let ways: Vec<String> = ways
        .map(|(way, count)| format!("{count} {}", way.words()))
        .collect();
    if ways.is_empty() {
        words.push_str(", none gone");
    } else {
        let gone = survival.gone_in_all();
        let _ = write!(
            words,
            ", {gone} gone: {} (`memrev log --lost` shows them)",
            ways.join(", ")
        );
    }
    words
}

pub(crate) fn as_json(survival: &Survival) -> SurvivalJson {
    let gone = survival.gone.iter();
    SurvivalJson {
        since: survival.since.to_string(),
        at: survival.at.to_string(),
        baselines: survival.baselines,
        entries: survival.entries,
        word_for_word: survival.word_for_word,
        reworded: survival.reworded,
        gone: gone.map(|(way, count)| (way.label(), *count)).collect(),
    }
}

fn entries(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}
