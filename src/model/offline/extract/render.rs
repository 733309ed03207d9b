//! The recap under its byte budget.
//!
//! The person's words come first: every message is there, long ones are
//! shortened in the middle, all to the same level. What remains goes to the
//! work, by rank, one line of each task in turn.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::domain::limits::RECAP_V2_BYTES;
use crate::model::offline::extract::lines::{Fact, List, Quote};
use crate::model::offline::shape;

/// Bytes of a recap, both versions. Version 2 cuts what is longer.
pub(crate) const RECAP_BYTES_MAX: usize = RECAP_V2_BYTES;

/// Kept for what was done, as long as messages can have [`QUOTE_BYTES_LOW`].
const FACTS_BYTES_RESERVED: usize = 1_500;
const QUOTE_BYTES_LOW: usize = 200;

/// A message is quoted up to this many bytes, however much room there is.
const REQUEST_BYTES_MAX: usize = 1_500;
const SIGNAL_BYTES_MAX: usize = 700;

/// Below this many bytes a quotation says nothing: then the messages that
/// matter least are left out and counted.
const QUOTE_BYTES_MIN: usize = 60;

/// A task as it may be told.
#[derive(Debug)]
pub(crate) struct TaskView {
    pub(crate) title: String,
    pub(crate) outcome: String,
    pub(crate) quotes: Vec<Quote>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) reference: String,
}

/// A task as it is told: its lists with their lines.
#[derive(Debug)]
pub(crate) struct TaskText {
    pub(crate) title: String,
    pub(crate) outcome: String,
    lists: Vec<(List, Vec<String>)>,
}

impl TaskText {
    /// The lists, in order, without those that are not wanted.
    pub(crate) fn lists(&self, wanted: &[List]) -> String {
        let mut text = String::new();
        for (list, lines) in self.lists.iter().filter(|(list, _)| wanted.contains(list)) {
            let _ = writeln!(text, "\n{}\n{}", list.heading(), lines.join("\n"));
        }
        text
    }
}

/// The whole recap.
pub(crate) fn recap(head: &str, tasks: &[TaskText]) -> String {
    let mut text = head.to_owned();
    for (index, task) in tasks.iter().enumerate() {
        text.push_str(&heading(index, &task.title));
        let _ = writeln!(text, "\n{}", task.outcome);
        text.push_str(&task.lists(&List::ALL));
    }
    text
}

fn heading(index: usize, title: &str) -> String {
    format!("\n{}{}: {title}\n", shape::TASK_HEADING, index + 1)
}

/// Chooses what fits. `head_bytes` is what stands above the first task.
pub(crate) fn fit(head_bytes: usize, mut tasks: Vec<TaskView>) -> Vec<TaskText> {
    let mut room = Room::new(head_bytes, &tasks);
    let left_out = drop_surplus(&mut tasks, room.left);
    let caps = quote_caps(&tasks, room.left);
    let mut lists: Vec<Vec<(List, Vec<String>)>> = Vec::with_capacity(tasks.len());
    for (task, left_out) in tasks.iter().zip(&left_out) {
        let mut lines: Vec<(List, Vec<String>)> = List::ALL.map(|list| (list, Vec::new())).into();
        for quote in &task.quotes {
            let line = quote.line(caps.of(quote.list));
            push(&mut lines, quote.list, line);
        }
        if 0 < *left_out {
            push(
                &mut lines,
                List::Requests,
                format!("- (and {left_out} more messages)"),
            );
        }
        push(&mut lines, List::References, task.reference.clone());
        lists.push(lines);
    }
    room.left = room
        .left
        .saturating_sub(lists.iter().map(|lines| bytes_of(lines)).sum());
    add_facts(&tasks, &mut lists, room.left);
    (tasks.into_iter().zip(lists))
        .map(|(task, lists)| TaskText {
            title: task.title,
            outcome: task.outcome,
            lists: lists
                .into_iter()
                .filter(|(_, lines)| !lines.is_empty())
                .collect(),
        })
        .collect()
}

struct Room {
    left: usize,
}

impl Room {
    /// What is left beside headings and outcomes, which are always there.
    fn new(head_bytes: usize, tasks: &[TaskView]) -> Self {
        let fixed: usize = (tasks.iter().enumerate())
            .map(|(index, task)| heading(index, &task.title).len() + task.outcome.len() + 2)
            .sum();
        Self {
            left: RECAP_BYTES_MAX.saturating_sub(head_bytes + fixed),
        }
    }
}

/// Bytes of a task's lists with their headings.
fn bytes_of(lines: &[(List, Vec<String>)]) -> usize {
    (lines.iter().filter(|(_, lines)| !lines.is_empty()))
        .map(|(list, lines)| {
            list.heading().len() + 2 + lines.iter().map(|line| line.len() + 1).sum::<usize>()
        })
        .sum()
}

/// Leaves out messages that matter least until each of the others can have
/// [`QUOTE_BYTES_MIN`]; says how many per task.
fn drop_surplus(tasks: &mut [TaskView], room: usize) -> Vec<usize> {
    let need = |quote: &Quote| overhead(quote) + quote.text.len().min(QUOTE_BYTES_MIN);
    let fixed: usize = tasks.iter().map(fixed_bytes).sum();
    let mut needed: usize = fixed
        + tasks
            .iter()
            .flat_map(|task| &task.quotes)
            .map(need)
            .sum::<usize>();
    let mut left_out = vec![0; tasks.len()];
    for only_plain in [true, false] {
        for (task, left_out) in tasks.iter_mut().zip(&mut left_out) {
            let mut index = 0;
            task.quotes.retain(|quote| {
                index += 1;
                // The request that opens a task stays in any case.
                let stays = needed <= room || index == 1 || (only_plain && quote.matters);
                if !stays {
                    needed -= need(quote);
                    *left_out += 1;
                }
                stays
            });
        }
    }
    left_out
}

/// What stands around a quotation, the line's end included.
fn overhead(quote: &Quote) -> usize {
    quote.around_bytes() + 1
}

/// List headings of quotations, the reference, and a line for what is left out.
fn fixed_bytes(task: &TaskView) -> usize {
    let headings: usize = [List::Requests, List::Preferences, List::References]
        .map(|list| list.heading().len() + 2)
        .iter()
        .sum();
    headings + task.reference.len() + 1 + "- (and 10000 more messages)\n".len()
}

/// How long quotations may be, by list.
struct Caps {
    request: usize,
    signal: usize,
}

impl Caps {
    const fn of(&self, list: List) -> usize {
        match list {
            List::Preferences => self.signal,
            _ => self.request,
        }
    }
}

fn quote_caps(tasks: &[TaskView], room: usize) -> Caps {
    let fixed: usize = tasks.iter().map(fixed_bytes).sum();
    let quotes = || tasks.iter().flat_map(|task| &task.quotes);
    let overheads: usize = quotes().map(overhead).sum();
    let room = room.saturating_sub(fixed + overheads);
    let lengths = |wanted: List| -> Vec<usize> {
        quotes()
            .filter(|quote| quote.list == wanted)
            .map(|quote| quote.text.len())
            .collect()
    };
    let (signals, requests) = (lengths(List::Preferences), lengths(List::Requests));
    let caps = |room: usize| {
        let for_requests: usize = requests
            .iter()
            .map(|length| length.min(&QUOTE_BYTES_LOW))
            .sum();
        let for_signals = room.saturating_sub(for_requests.min(room / 2));
        let signal = level(&signals, for_signals).min(SIGNAL_BYTES_MAX);
        let used: usize = signals.iter().map(|length| length.min(&signal)).sum();
        let request = level(&requests, room.saturating_sub(used)).min(REQUEST_BYTES_MAX);
        Caps { request, signal }
    };
    let has_facts = tasks.iter().any(|task| !task.facts.is_empty());
    let modest = caps(room.saturating_sub(FACTS_BYTES_RESERVED));
    if has_facts && QUOTE_BYTES_LOW <= modest.request.min(modest.signal) {
        modest
    } else {
        caps(room)
    }
}

/// The largest cap at which the lengths, cut to it, sum up to at most `room`.
fn level(lengths: &[usize], room: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut room = room;
    for (index, length) in sorted.iter().enumerate() {
        let share = room / (sorted.len() - index);
        if share < *length {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

/// Adds lines about the work, best rank first, then one of each task in turn.
fn add_facts(tasks: &[TaskView], lists: &mut [Vec<(List, Vec<String>)>], mut room: usize) {
    let mut order: Vec<(u8, usize, usize)> = Vec::new();
    for (task_index, task) in tasks.iter().enumerate() {
        let facts = task.facts.iter().enumerate();
        order.extend(facts.map(|(index, fact)| (fact.rank, index, task_index)));
    }
    order.sort_unstable();
    let mut chosen = BTreeSet::new();
    for (_, index, task_index) in order {
        let fact = &tasks[task_index].facts[index];
        let opens_list = !has_lines(&lists[task_index], fact.list)
            && !chosen.iter().any(|(task, other): &(usize, usize)| {
                *task == task_index && tasks[task_index].facts[*other].list == fact.list
            });
        let heading = if opens_list {
            fact.list.heading().len() + 2
        } else {
            0
        };
        let cost = fact.line.len() + 1 + heading;
        if cost <= room {
            room -= cost;
            chosen.insert((task_index, index));
        }
    }
    for (task_index, index) in chosen {
        let fact = &tasks[task_index].facts[index];
        push(&mut lists[task_index], fact.list, fact.line.clone());
    }
}

fn has_lines(lists: &[(List, Vec<String>)], wanted: List) -> bool {
    lists
        .iter()
        .any(|(list, lines)| *list == wanted && !lines.is_empty())
}

fn push(lists: &mut [(List, Vec<String>)], wanted: List, line: String) {
    if let Some((_, lines)) = lists.iter_mut().find(|(list, _)| *list == wanted) {
        lines.push(line);
    }
}
