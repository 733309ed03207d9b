//! Statements: joined where they agree, the newer one where they do not.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::item::Trust;
use crate::model::offline::consolidate::RetireReason;
use crate::model::offline::consolidate::body::TaskBody;
use crate::model::offline::consolidate::facts::{Group, Kind, ReadRecap, Statement};
use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::tokens::{self, Features, NearIndex, SAME_STATEMENT};
use crate::model::offline::shape::{ALWAYS, CORRECTION};
use crate::text::cues;

/// Most bytes of a statement that are copied; the rest is in its recap.
const STATEMENT_BYTES_MAX: usize = 1_000;

/// Least share of common tokens at which two subjects are compared further.
const SUBJECT_SHARE_MIN: f64 = 0.6;

pub(super) fn statements_of(
    task: &TaskBody,
    index: usize,
    recap: &ReadRecap<'_>,
) -> Vec<Statement> {
    let lists = [
        (Kind::Said, &task.preferences),
        (Kind::Knowledge, &task.knowledge),
        (Kind::Failure, &task.failures),
    ];
    let mut statements = Vec::new();
    for (kind, texts) in lists {
        statements.extend(
            texts
                .iter()
                .filter_map(|text| statement(kind, text, index, recap)),
        );
    }
    statements
}

fn statement(kind: Kind, text: &str, task: usize, recap: &ReadRecap<'_>) -> Option<Statement> {
    let bare = line::without_evidence(text);
    let (bare, says_external) = without_external_mark(&bare);
    let (bare, says_default) = match bare.strip_prefix(ALWAYS) {
        Some(rest) => (rest, true),
        None => (bare.strip_prefix(CORRECTION).unwrap_or(bare), false),
    };
    let text = line::shorten(&line::clean(bare), STATEMENT_BYTES_MAX);
    let text = line::without_pointers(&text);
    let features = Features::of(&text);
    if features.tokens.is_empty() {
        return None;
    }
    // A person's words stay theirs in a session that also saw the web.
    let is_quotation = kind == Kind::Said && text.starts_with(['"', '“', '„', '«', '「', '『']);
    let is_external =
        says_external || (recap.recap.header.trust == Some(Trust::External) && !is_quotation);
    Some(Statement {
        is_default: kind == Kind::Said
            && !is_external
            && (says_default || cues::find(&text).states_default()),
        text,
        features,
        kind,
        tasks: BTreeSet::from([task]),
        threads: BTreeSet::from([recap.source.thread_id.clone()]),
        newest_at: recap.source.updated_at,
        oldest_at: recap.source.updated_at,
        is_external,
        note: None,
    })
}

fn without_external_mark(text: &str) -> (&str, bool) {
    for mark in ["[external]", "(external)"] {
        if let Some(rest) = text.strip_suffix(mark).or(text.strip_prefix(mark)) {
            return (rest.trim(), true);
        }
    }
    (text, false)
}

/// Joins statements of one kind that say the same, oldest first.
pub(super) fn join(
    said: Vec<Statement>,
    gone: &mut BTreeMap<String, RetireReason>,
) -> Vec<Statement> {
    let mut index = NearIndex::new(SAME_STATEMENT, said.iter().map(|one| &one.features));
    let mut joined: Vec<Statement> = Vec::new();
    let mut essences: BTreeMap<String, usize> = BTreeMap::new();
    for one in said {
        let near = index.near(&one.features);
        let same = near.into_iter().find(|place| {
            let known = &joined[*place];
            known.kind == one.kind && known.features.is_same_as(&one.features)
        });
        // What a person wants, asked for in other ways.
        let essence = tokens::essence(&one.text).filter(|_| one.kind == Kind::Said);
        let asked_again = || essence.as_ref().and_then(|words| essences.get(words));
        let same = same.or_else(|| asked_again().copied());
        if let Some(essence) = essence.clone() {
            essences
                .entry(essence)
                .or_insert_with(|| same.unwrap_or(joined.len()));
        }
        if let Some(place) = same {
            join_two(&mut joined[place], one, gone);
        } else {
            index.insert(&one.features);
            joined.push(one);
        }
    }
    for one in &mut joined {
        // Two tasks in one session are one occasion.
        let is_supported = one.tasks.len() > 1 && one.threads.len() > 1;
        if one.kind == Kind::Said && !one.is_external && (one.is_default || is_supported) {
            one.kind = Kind::Preference;
        }
    }
    once_in_all_kinds(&joined)
}

/// The same words in two lists are one statement: the first kind has it.
fn once_in_all_kinds(joined: &[Statement]) -> Vec<Statement> {
    let mut best: BTreeMap<String, Kind> = BTreeMap::new();
    for one in joined {
        let kind = best.entry(one.features.folded.clone()).or_insert(one.kind);
        *kind = one.kind.min(*kind);
    }
    let mut supports: BTreeMap<String, Vec<&Statement>> = BTreeMap::new();
    for one in joined {
        supports
            .entry(one.features.folded.clone())
            .or_default()
            .push(one);
    }
    let kept = joined
        .iter()
        .filter(|one| best.get(&one.features.folded) == Some(&one.kind));
    kept.map(|one| {
        let mut one = one.clone();
        for other in supports.get(&one.features.folded).into_iter().flatten() {
            if other.is_external == one.is_external {
                one.tasks.extend(&other.tasks);
                one.threads.extend(other.threads.iter().cloned());
                one.newest_at = one.newest_at.max(other.newest_at);
                one.oldest_at = one.oldest_at.min(other.oldest_at);
            }
        }
        one
    })
    .collect()
}

/// The newer wording stays: where the two differ, it is the later word. What
/// only a fetched text says never rewords what the person said.
fn join_two(known: &mut Statement, newer: Statement, gone: &mut BTreeMap<String, RetireReason>) {
    // Of two ways to ask for one thing the one with less around it.
    let is_wordier = known.is_external == newer.is_external
        && known.text.len() < newer.text.len()
        && !known.features.is_same_as(&newer.features);
    if is_wordier {
        gone.insert(newer.features.folded.clone(), RetireReason::Joined);
        known.newest_at = newer.newest_at;
    } else if known.is_external || !newer.is_external {
        if known.features.folded != newer.features.folded {
            gone.insert(known.features.folded.clone(), RetireReason::Joined);
            gone.remove(&newer.features.folded);
        }
        known.text = newer.text;
        known.features = newer.features;
        known.newest_at = newer.newest_at;
    }
    if known.is_external == newer.is_external {
        known.tasks.extend(newer.tasks);
        known.threads.extend(newer.threads);
    } else if known.is_external {
        known.tasks = newer.tasks;
        known.threads = newer.threads;
    }
    known.is_external &= newer.is_external;
    known.is_default |= newer.is_default;
}

/// Whether both hold: said in one session, or said in turn by several each.
/// A value that changed is not said any more once there is a new one.
fn stand_beside(older: &Statement, newer: &Statement) -> bool {
    let is_in_turn =
        newer.oldest_at <= older.newest_at && 1 < older.threads.len() && 1 < newer.threads.len();
    is_in_turn || !older.threads.is_disjoint(&newer.threads)
}

/// Leaves out what a newer statement of another session says otherwise.
pub(super) fn drop_contradicted(
    statements: Vec<Statement>,
    gone: &mut BTreeMap<String, RetireReason>,
) -> Vec<Statement> {
    let subjects: Vec<Features> = statements
        .iter()
        .map(|one| one.features.subject())
        .collect();
    let mut by_age: Vec<usize> = (0..statements.len())
        .filter(|place| statements[*place].kind != Kind::Failure)
        .collect();
    by_age.sort_by_key(|place| {
        let one = &statements[*place];
        (one.newest_at, one.threads.last().cloned())
    });
    let mut index = NearIndex::new(SUBJECT_SHARE_MIN, subjects.iter());
    let mut indexed: Vec<usize> = Vec::new();
    let mut dropped = BTreeSet::new();
    for place in by_age {
        let newer = &statements[place];
        for found in index.near(&subjects[place]) {
            let older_place = indexed[found];
            let older = &statements[older_place];
            let may_overrule = older.is_external || !newer.is_external;
            if may_overrule
                && !stand_beside(older, newer)
                && newer.features.contradicts(&older.features)
            {
                dropped.insert(older_place);
            }
        }
        index.insert(&subjects[place]);
        indexed.push(place);
    }
    let mut kept = Vec::new();
    for (place, one) in statements.into_iter().enumerate() {
        if dropped.contains(&place) {
            gone.insert(one.features.folded, RetireReason::Contradicted);
        } else {
            kept.push(one);
        }
    }
    kept
}

/// What was said once in each of two projects is meant beyond both.
pub(super) fn promote_across_groups(groups: &mut [Group]) {
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (group_index, group) in groups.iter().enumerate() {
        for (index, one) in group.statements.iter().enumerate() {
            if matches!(one.kind, Kind::Said | Kind::Preference) && !one.is_external {
                places.push((group_index, index));
            }
        }
    }
    let of = |groups: &[Group], (group, index): (usize, usize)| -> Features {
        groups[group].statements[index].features.clone()
    };
    let features: Vec<Features> = places.iter().map(|place| of(groups, *place)).collect();
    let mut index = NearIndex::new(SAME_STATEMENT, features.iter());
    let mut promoted = BTreeSet::new();
    for (here, one) in features.iter().enumerate() {
        for there in index.near(one) {
            let is_other_group = places[there].0 != places[here].0;
            if is_other_group && features[there].is_same_as(one) {
                promoted.extend([places[here], places[there]]);
            }
        }
        index.insert(one);
    }
    for (group, index) in promoted {
        groups[group].statements[index].kind = Kind::Preference;
    }
}
