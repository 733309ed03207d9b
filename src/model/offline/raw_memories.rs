//! `raw_memories.md`, taken apart again by session.

use std::collections::BTreeMap;

use crate::domain::id::ThreadId;

const SECTION_START: &str = "## Thread `";

/// The raw memory of each session. A heading counts only where the line that
/// code always puts below it follows, so that a raw memory cannot open another
/// session's section by accident.
///
/// # Source
///
/// Reference 3.3.
pub(crate) fn parse(text: &str) -> BTreeMap<ThreadId, String> {
    let mut memories: BTreeMap<ThreadId, String> = BTreeMap::new();
    let mut current: Option<ThreadId> = None;
    let mut in_header = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let starts = lines
            .peek()
            .is_some_and(|next| next.starts_with("updated_at: "));
        if let Some(id) = thread(line).filter(|_| starts) {
            current = Some(id);
            in_header = true;
            continue;
        }
        if in_header {
            in_header = !line.trim().is_empty();
            continue;
        }
        if let Some(id) = &current {
            let memory = memories.entry(id.clone()).or_default();
            memory.push_str(line);
            memory.push('\n');
        }
    }
    for memory in memories.values_mut() {
        memory.truncate(memory.trim_end().len());
    }
    memories
}

fn thread(line: &str) -> Option<ThreadId> {
    ThreadId::parse(line.strip_prefix(SECTION_START)?.strip_suffix('`')?)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn each_session_gets_its_own_part() {
        let text = "# Raw Memories\n\nintro\n\n## Thread `a`\nupdated_at: 2026-11-30T21:33:44+00:00\ncwd: /x\n\n---\ntask: t\n---\n\n\
                    ## Thread `c`\nno header follows\n\n## Thread `b`\nupdated_at: 2026-11-30T21:33:45+00:00\n\nwords\n";
        let memories = parse(text);
        let told: Vec<_> = memories
            .iter()
            .map(|(id, text)| (id.as_str(), text.as_str()))
            .collect();
        let first = "---\ntask: t\n---\n\n## Thread `c`\nno header follows";
        assert_eq!(told, [("a", first), ("b", "words")]);
        assert!(parse("# Raw Memories\n\nNo raw memories yet.\n").is_empty());
    }
}
