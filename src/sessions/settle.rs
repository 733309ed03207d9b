//! One file per session, and who repeats whom.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::id::ThreadId;
use crate::domain::session::{Agent, SessionHead};
use crate::sessions::Found;

type Pair = (Found, SessionHead);

/// See [`crate::sessions::settle()`].
pub(super) fn settle(mut heads: Vec<Pair>) -> Vec<Pair> {
    heads.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| longest_first(a, b)));
    heads.dedup_by(|later, earlier| key(later) == key(earlier));
    for (found, _) in &mut heads {
        found.earlier.clear();
    }
    link_forks(&mut heads);
    link_shared_history(&mut heads);
    heads
}

fn key((_, head): &Pair) -> (Agent, &ThreadId) {
    (head.agent, &head.thread_id)
}

/// The newest state first; of equal ones the plain file, then the larger.
fn longest_first(a: &Pair, b: &Pair) -> std::cmp::Ordering {
    let rank = |(found, head): &Pair| {
        let is_plain = found.path.extension().is_none_or(|end| end != "zst");
        (head.updated_at, is_plain, found.size)
    };
    rank(b).cmp(&rank(a)).then_with(|| a.0.path.cmp(&b.0.path))
}

/// A fork that names its parent repeats it.
fn link_forks(heads: &mut [Pair]) {
    let paths: BTreeMap<(Agent, ThreadId), PathBuf> = heads
        .iter()
        .map(|(found, head)| ((head.agent, head.thread_id.clone()), found.path.clone()))
        .collect();
    for (found, head) in heads {
        let parent = head.forked_from.clone();
        let parent = parent.and_then(|parent| paths.get(&(head.agent, parent)));
        if let Some(path) = parent.filter(|path| **path != found.path) {
            found.earlier.push(path.clone());
        }
    }
}

/// Files that begin with the same record share history: the one that stopped
/// first counts whole, each later one without what the earlier ones have.
fn link_shared_history(heads: &mut [Pair]) {
    let mut groups: BTreeMap<(Agent, String), Vec<usize>> = BTreeMap::new();
    for (index, (_, head)) in heads.iter().enumerate() {
        if let Some(first) = &head.first_record {
            groups
                .entry((head.agent, first.clone()))
                .or_default()
                .push(index);
        }
    }
    for mut group in groups.into_values().filter(|group| group.len() > 1) {
        group.sort_by_key(|index| {
            let (found, head) = &heads[*index];
            let is_fork = head.forked_from.is_some();
            (is_fork, head.updated_at, found.size, head.thread_id.clone())
        });
        let paths: Vec<PathBuf> = group
            .iter()
            .map(|index| heads[*index].0.path.clone())
            .collect();
        for (position, index) in group.iter().enumerate() {
            for other in 0..position {
                // Never both ways: what two files share must count in one.
                let points_here = heads[group[other]].0.earlier.contains(&paths[position]);
                let earlier = &mut heads[*index].0.earlier;
                if !points_here && !earlier.contains(&paths[other]) {
                    earlier.push(paths[other].clone());
                }
            }
        }
    }
}
