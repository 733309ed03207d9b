//! Branches of a conversation that the person left behind.
//!
//! Going back and asking differently leaves both questions in the file, as
//! children of one record. The later one counts; what hung on the earlier one
//! was taken back. Other forks of the tree (parallel tool calls, split
//! messages) are no such thing.

use std::collections::{HashMap, HashSet};

/// Most records whose place in the tree is remembered; 24 bytes each.
const NODES_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Tree {
    /// In file order: record, parent. 0 is none.
    nodes: Vec<(u64, u64)>,
    /// The last question under each record, and those it replaced.
    questions: HashMap<u64, u64>,
    replaced: HashSet<u64>,
}

impl Tree {
    pub(super) fn push(&mut self, node: u64, parent: u64, is_question: bool) {
        if node == 0 || self.nodes.len() >= NODES_MAX {
            return;
        }
        self.nodes.push((node, parent));
        if is_question && parent != 0 {
            self.replaced.extend(self.questions.insert(parent, node));
        }
    }

    /// Records on a branch that was left.
    pub(super) fn left_behind(&self) -> HashSet<u64> {
        let mut left = self.replaced.clone();
        if left.is_empty() {
            return left;
        }
        // Parents stand before their children.
        for (node, parent) in &self.nodes {
            if left.contains(parent) {
                left.insert(*node);
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn the_earlier_of_two_questions_takes_its_answers_along() {
        let mut tree = Tree::default();
        for (node, parent, is_question) in [
            (1, 0, true),
            (2, 1, false),
            (3, 2, true),
            (4, 3, false),
            (5, 2, true),
            (6, 5, false),
            (7, 5, false),
        ] {
            tree.push(node, parent, is_question);
        }
        let mut left: Vec<u64> = tree.left_behind().into_iter().collect();
        left.sort_unstable();
        assert_eq!(left, [3, 4]);
    }
}
