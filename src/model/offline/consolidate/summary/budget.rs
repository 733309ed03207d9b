//! Which lines fit: by rank, down to the byte.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::offline::consolidate::line;
use crate::model::offline::consolidate::outline::Section;
use crate::model::offline::consolidate::ranking::{ALSO, Candidates, Line, Topic};
use crate::model::offline::consolidate::summary::{OLDER, render};

/// Shares of the budget, in percent, that a part may take before the next
/// one had its turn; what is left over goes round again.
const PREFERENCES_PERCENT: usize = 35;

const TIPS_PERCENT: usize = 15;

const RECENT_PERCENT: usize = 60;

/// Kept back for the names of projects that have no topic line.
const ALSO_BYTES: usize = 400;

/// What is printed of the candidates.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) has_profile: bool,
    pub(super) preferences: usize,
    pub(super) tips: usize,
    /// By index: the level.
    pub(super) topics: BTreeMap<usize, usize>,
    /// Names of projects without a topic, as many as fit.
    pub(super) also: usize,
}

/// Picks by rank until the budget is used up.
pub(super) fn choose(wanted: &Candidates, kept: &Section, budget: usize) -> Chosen {
    let base = render(&Candidates::default(), &Chosen::default(), kept).len();
    let mut purse = Purse {
        left: budget.saturating_sub(base),
        wanted,
        chosen: Chosen::default(),
        headings: BTreeSet::new(),
    };
    purse.profile();
    let all = purse.left;
    purse.lines(all * PREFERENCES_PERCENT / 100, all * TIPS_PERCENT / 100);
    purse.topics();
    purse.also();
    purse.lines(purse.left, 0);
    purse.lines(0, purse.left);
    let mut chosen = purse.chosen;
    // The purse counts each heading and line end; should it ever be wrong,
    // the last things go until the text fits.
    while render(wanted, &chosen, kept).len() > budget && chosen.give_up_one() {}
    chosen
}

struct Purse<'c> {
    left: usize,
    wanted: &'c Candidates,
    chosen: Chosen,
    /// Headings that are paid for: scope and day, or scope among the older.
    headings: BTreeSet<(usize, String)>,
}

/// How many lines from the start fit, and their bytes.
fn fit(lines: &[Line], bytes_max: usize) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for line in lines {
        // One more for the blank line below a heading.
        let more = line.text.len() + 1 + usize::from(count == 0);
        if bytes + more > bytes_max {
            break;
        }
        bytes += more;
        count += 1;
    }
    (count, bytes)
}

pub(super) fn uncovered(wanted: &Candidates, chosen: &Chosen) -> Vec<String> {
    let covered: BTreeSet<usize> = chosen
        .topics
        .keys()
        .map(|index| wanted.topics[*index].scope)
        .collect();
    let with_topics: BTreeSet<usize> = wanted.topics.iter().map(|topic| topic.scope).collect();
    let left = with_topics.difference(&covered);
    left.map(|scope| line::shorten(&wanted.scopes[*scope], 60))
        .collect()
}

pub(super) fn also_line(names: &[String], count: usize) -> String {
    let listed = names[..count].join(", ");
    match names.len() - count {
        0 => format!("{ALSO}{listed}."),
        more => format!("{ALSO}{listed}, and {more} more."),
    }
}

impl Chosen {
    fn give_up_one(&mut self) -> bool {
        if let Some((index, level)) = self.topics.pop_last() {
            if let Some(lower) = level.checked_sub(1) {
                self.topics.insert(index, lower);
            }
            return true;
        }
        for count in [&mut self.also, &mut self.tips, &mut self.preferences] {
            if *count > 0 {
                *count -= 1;
                return true;
            }
        }
        std::mem::take(&mut self.has_profile)
    }
}

impl Purse<'_> {
    fn pay(&mut self, bytes: usize) -> bool {
        let can = bytes <= self.left;
        if can {
            self.left -= bytes;
        }
        can
    }

    fn profile(&mut self) {
        let bytes: usize = self.wanted.profile.iter().map(|line| line.len() + 1).sum();
        // The blank line below the heading.
        self.chosen.has_profile = bytes > 0 && self.pay(bytes + 1);
    }

    /// Further preferences and tips for at most these bytes.
    fn lines(&mut self, preferences: usize, tips: usize) {
        let more = fit(
            &self.wanted.preferences[self.chosen.preferences..],
            preferences.min(self.left),
        );
        self.left -= more.1;
        self.chosen.preferences += more.0;
        let more = fit(&self.wanted.tips[self.chosen.tips..], tips.min(self.left));
        self.left -= more.1;
        self.chosen.tips += more.0;
    }

    /// Recent topics compact, then one for each project, then detail for the
    /// recent, then the older ones; the newest first each time.
    fn topics(&mut self) {
        let topics = &self.wanted.topics;
        let kept_back = if self.wanted.scopes.len() > 1 {
            ALSO_BYTES.min(self.left / 4)
        } else {
            0
        };
        self.left -= kept_back;
        let recent: Vec<usize> = (0..topics.len())
            .filter(|index| topics[*index].is_recent)
            .collect();
        let floor = self.left - self.left * RECENT_PERCENT / 100;
        for index in &recent {
            if self.left <= floor {
                break;
            }
            self.raise(*index, 0);
        }
        let mut covered: BTreeSet<usize> = self.covered();
        for (index, topic) in topics.iter().enumerate() {
            if covered.insert(topic.scope) && !self.raise(index, 0) {
                covered.remove(&topic.scope);
            }
        }
        for level in 0..=2 {
            for index in &recent {
                self.raise(*index, level);
            }
        }
        for index in 0..topics.len() {
            self.raise(index, 0);
        }
        self.left += kept_back;
    }

    fn covered(&self) -> BTreeSet<usize> {
        let chosen = self.chosen.topics.keys();
        chosen
            .map(|index| self.wanted.topics[*index].scope)
            .collect()
    }

    /// Takes a topic in, or up to `level`, if that can be paid.
    fn raise(&mut self, index: usize, level: usize) -> bool {
        let topic = &self.wanted.topics[index];
        let Some(text) = topic.levels.get(level) else {
            return false;
        };
        let (paid, headings) = match self.chosen.topics.get(&index) {
            Some(now) if *now >= level => return true,
            Some(now) => (topic.levels[*now].len(), Vec::new()),
            // A level that builds on one that was not affordable.
            None if level > 0 => return false,
            None => (0, self.headings_of(topic)),
        };
        let heading_bytes: usize = headings.iter().map(|(_, bytes)| bytes).sum();
        let line_end = usize::from(paid == 0);
        let more = (text.len() + line_end + heading_bytes).saturating_sub(paid);
        if !self.pay(more) {
            return false;
        }
        self.headings
            .extend(headings.into_iter().map(|(heading, _)| heading));
        self.chosen.topics.insert(index, level);
        true
    }

    /// The headings a topic needs that are not there yet, with their bytes:
    /// the line, its end, and the blank lines around it.
    fn headings_of(&self, topic: &Topic) -> Vec<((usize, String), usize)> {
        let scope = &self.wanted.scopes[topic.scope];
        let around = "#### \n\n\n".len();
        let needed = if topic.is_recent {
            vec![
                ((topic.scope, String::new()), scope.len() + around),
                ((topic.scope, topic.day.clone()), topic.day.len() + around),
            ]
        } else {
            vec![
                ((usize::MAX, String::new()), OLDER.len() + around),
                ((topic.scope, OLDER.to_owned()), scope.len() + around),
            ]
        };
        needed
            .into_iter()
            .filter(|(heading, _)| !self.headings.contains(heading))
            .collect()
    }

    /// Names of projects that got no topic.
    fn also(&mut self) {
        let names = uncovered(self.wanted, &self.chosen);
        let mut bytes = ALSO.len() + OLDER.len() + "### \n\n\n\n, and 9999 more.".len();
        let mut count = 0;
        for name in &names {
            bytes += name.len() + ", ".len();
            if bytes > self.left {
                break;
            }
            count += 1;
        }
        if count > 0 {
            let line = also_line(&names, count);
            self.left = self
                .left
                .saturating_sub(line.len() + OLDER.len() + "### \n\n\n\n".len());
            self.chosen.also = count;
        }
    }
}
