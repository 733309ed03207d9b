//! A recap's Markdown, read as tasks with their lists.
//!
//! Recaps come from the offline rules, from models and from people, so the
//! reader takes headings of any level, bold labels, labels that end in a colon,
//! and the usual names of the lists in several languages. What it does not
//! know stays in the recap: nothing is guessed into memory.

use crate::domain::recap::{PARAPHRASE_MARK, Recap};
use crate::model::offline::consolidate::labels::{self, Label};
use crate::model::offline::consolidate::line;
use crate::model::offline::shape::Outcome;

/// What a recap says, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RecapBody {
    pub(super) title: String,
    /// The first words that are not under a task.
    pub(super) context: String,
    /// Never empty when the recap has a body.
    pub(super) tasks: Vec<TaskBody>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TaskBody {
    pub(super) title: String,
    pub(super) outcome: Option<Outcome>,
    pub(super) requests: Vec<String>,
    pub(super) preferences: Vec<String>,
    pub(super) steps: Vec<String>,
    pub(super) failures: Vec<String>,
    pub(super) knowledge: Vec<String>,
    pub(super) references: Vec<String>,
    pub(super) keywords: Vec<String>,
}

/// Most characters of a title; the rest is in the recap.
const TITLE_BYTES_MAX: usize = 120;

/// Most bytes of a context that is copied.
const CONTEXT_BYTES_MAX: usize = 400;

/// Reads body and raw memory of a recap; what both say is there once.
pub(super) fn read(recap: &Recap) -> RecapBody {
    let mut body = Reader::default().read(recap.body.as_str());
    if let Some(raw_memory) = &recap.header.raw_memory {
        let raw = Reader::default().read(raw_memory.as_str());
        fold_in(&mut body, raw);
    }
    let fallback = fallback_title(recap, &body);
    for task in &mut body.tasks {
        if task.title.is_empty() {
            task.title.clone_from(&fallback);
        }
    }
    if body.tasks.is_empty() && !recap.body.as_str().trim().is_empty() {
        body.tasks.push(TaskBody {
            title: fallback,
            ..TaskBody::default()
        });
    }
    // What a recap only gave out as the person's words is the model's.
    for task in &mut body.tasks {
        let is_persons = |text: &String| !text.contains(PARAPHRASE_MARK);
        task.preferences.retain(is_persons);
        task.requests.retain(is_persons);
    }
    body.title = line::of_header(&body.title, TITLE_BYTES_MAX);
    body.context = line::without_pointers(&body.context);
    for task in &mut body.tasks {
        task.title = line::of_header(&task.title, TITLE_BYTES_MAX);
        let requests = task.requests.iter_mut();
        requests.for_each(|text| *text = line::without_pointers(text));
        let keywords = task.keywords.iter_mut();
        keywords.for_each(|text| *text = line::of_header(text, TITLE_BYTES_MAX));
    }
    body
}

fn fallback_title(recap: &Recap, body: &RecapBody) -> String {
    let slug = recap.header.slug.as_deref().unwrap_or_default();
    let slug = slug.replace(['_', '-'], " ");
    let candidates = [body.title.as_str(), &body.context, slug.trim(), "session"];
    let title = candidates
        .into_iter()
        .map(line::clean)
        .find(|text| !text.is_empty());
    line::shorten(&title.unwrap_or_default(), TITLE_BYTES_MAX)
}

/// Adds what only the raw memory has.
fn fold_in(body: &mut RecapBody, raw: RecapBody) {
    for task in raw.tasks {
        let known = body.tasks.iter_mut().find(|known| {
            known.title.is_empty() || task.title.is_empty() || known.title == task.title
        });
        let Some(known) = known else {
            body.tasks.push(task);
            continue;
        };
        if known.title.is_empty() {
            known.title = task.title;
        }
        known.outcome = known.outcome.or(task.outcome);
        for (list, more) in [
            (&mut known.requests, task.requests),
            (&mut known.preferences, task.preferences),
            (&mut known.steps, task.steps),
            (&mut known.failures, task.failures),
            (&mut known.knowledge, task.knowledge),
            (&mut known.references, task.references),
            (&mut known.keywords, task.keywords),
        ] {
            for text in more {
                if !list.contains(&text) {
                    list.push(text);
                }
            }
        }
    }
}

/// Line by line, with what the last heading or label said.
#[derive(Default)]
struct Reader {
    body: RecapBody,
    /// The list that bullets go to; `None` under labels that are not known.
    list: Option<Label>,
    /// The last line was part of a bullet of the list.
    in_bullet: bool,
    /// Keywords and outcome of a raw memory's front matter.
    front: TaskBody,
}

impl Reader {
    fn read(mut self, text: &str) -> RecapBody {
        let mut lines = text.lines().peekable();
        if lines.peek().is_some_and(|first| first.trim() == "---") {
            lines.next();
            for line in lines.by_ref().take_while(|line| line.trim() != "---") {
                self.take_front_matter(line);
            }
        }
        let mut fence: Option<&str> = None;
        for line in lines {
            let trimmed = line.trim();
            match fence {
                Some(open) if trimmed.starts_with(open) => fence = None,
                Some(_) => {}
                None if trimmed.starts_with("```") => fence = Some("```"),
                None if trimmed.starts_with("~~~") => fence = Some("~~~"),
                None => self.take(line),
            }
        }
        self.finish()
    }

    fn finish(mut self) -> RecapBody {
        let front = self.front;
        if self.body.tasks.is_empty() && front != TaskBody::default() {
            self.body.tasks.push(front);
        } else if let [only] = self.body.tasks.as_mut_slice() {
            // The front matter of a single task speaks of that task.
            only.keywords.extend(front.keywords);
            only.outcome = only.outcome.or(front.outcome);
        }
        for task in &mut self.body.tasks {
            task.keywords.dedup();
        }
        self.body
    }

    fn take_front_matter(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':') else {
            return;
        };
        // A lost line break glues an `n` to the key in real folders.
        let key = key.trim();
        match key
            .strip_prefix('n')
            .filter(|rest| FRONT_KEYS.contains(rest))
            .unwrap_or(key)
        {
            "keywords" => self.front.keywords = keywords(value),
            "task_outcome" => self.front.outcome = labels::outcome(value),
            "task" => self.front.title = line::clean(value),
            _ => {}
        }
    }

    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return;
        }
        if let Some((level, heading)) = heading(trimmed) {
            self.take_heading(level, heading);
            return;
        }
        let indent = line.len() - line.trim_start().len();
        match bullet(trimmed) {
            Some(text) if indent < 2 || !self.in_bullet => self.take_bullet(text),
            Some(text) => self.go_on(text),
            None if self.in_bullet && indent >= 2 => self.go_on(trimmed),
            None => self.take_words(trimmed),
        }
    }

    fn take_heading(&mut self, level: usize, heading: &str) {
        self.in_bullet = false;
        let heading = heading.trim_matches(['*', '#', ' ']);
        if let Some(title) = labels::task_title(heading) {
            self.start_task(title);
        } else if let Some((label, rest)) = labels::find(heading) {
            self.take_label(label, rest);
        } else if level == 1 && self.body.title.is_empty() && self.body.tasks.is_empty() {
            self.body.title = line::shorten(&line::clean(heading), TITLE_BYTES_MAX);
            self.list = None;
        } else {
            self.list = None;
        }
    }

    fn start_task(&mut self, title: &str) {
        let mut title = line::clean(title);
        let mut outcome = None;
        // `## Task 2: refund sign, success`, as handbooks have it.
        if let Some((before, after)) = title.rsplit_once([',', '，'])
            && let Some(said) = labels::outcome_word(after)
        {
            outcome = Some(said);
            title = before.trim().to_owned();
        }
        self.list = None;
        self.body.tasks.push(TaskBody {
            title: line::shorten(&title, TITLE_BYTES_MAX),
            outcome,
            ..TaskBody::default()
        });
    }

    /// A label opens a list; words after it are its first item.
    fn take_label(&mut self, label: Label, rest: &str) {
        self.list = Some(label);
        self.in_bullet = false;
        if rest.is_empty() {
            return;
        }
        match label {
            Label::Outcome => {
                if let Some(outcome) = labels::outcome(rest) {
                    self.task().outcome = Some(outcome);
                }
            }
            Label::Context => self.add_context(rest),
            Label::Keywords => self.task().keywords.extend(keywords(rest)),
            _ => self.add(label, rest),
        }
    }

    fn take_bullet(&mut self, text: &str) {
        let plain = text.replace("**", "");
        if let Some((label, rest)) = labels::find(&plain)
            && (rest.is_empty() || matches!(label, Label::Outcome | Label::Keywords))
        {
            self.take_label(label, rest);
            return;
        }
        self.in_bullet = false;
        match self.list {
            Some(Label::Outcome | Label::Context) | None => {}
            Some(Label::Keywords) => self.task().keywords.extend(keywords(text)),
            Some(label) => self.add(label, text),
        }
    }

    fn take_words(&mut self, words: &str) {
        self.in_bullet = false;
        let plain = words.replace("**", "");
        if let Some((label, rest)) = labels::find(&plain) {
            self.take_label(label, rest);
        } else if self.body.tasks.is_empty() && self.list.is_none_or(|list| list == Label::Context)
        {
            self.add_context(words);
        } else if self.list == Some(Label::Outcome) {
            if let Some(outcome) = labels::outcome_word(words) {
                self.task().outcome = Some(outcome);
            }
        } else {
            self.list = None;
        }
    }

    /// A nested bullet or a further line of the last item.
    fn go_on(&mut self, text: &str) {
        let Some(label) = self.list else { return };
        let more = line::clean(text);
        if let Some(last) = self.list_of(label).and_then(|list| list.last_mut()) {
            last.push(' ');
            last.push_str(&more);
        }
    }

    fn add(&mut self, label: Label, text: &str) {
        let text = line::clean(text);
        if text.is_empty() || labels::is_nothing(&text) {
            return;
        }
        if let Some(list) = self.list_of(label) {
            list.push(text);
            self.in_bullet = true;
        }
    }

    fn add_context(&mut self, words: &str) {
        let words = line::clean(words);
        let context = &mut self.body.context;
        if context.len() + words.len() < CONTEXT_BYTES_MAX {
            if !context.is_empty() {
                context.push(' ');
            }
            context.push_str(&words);
        } else if context.is_empty() {
            *context = line::shorten(&words, CONTEXT_BYTES_MAX);
        }
    }

    fn list_of(&mut self, label: Label) -> Option<&mut Vec<String>> {
        let task = self.task();
        match label {
            Label::Requests => Some(&mut task.requests),
            Label::Preferences => Some(&mut task.preferences),
            Label::Steps => Some(&mut task.steps),
            Label::Failures => Some(&mut task.failures),
            Label::Knowledge => Some(&mut task.knowledge),
            Label::References => Some(&mut task.references),
            Label::Outcome | Label::Keywords | Label::Context => None,
        }
    }

    /// The task that is being read; lists before any task make one.
    fn task(&mut self) -> &mut TaskBody {
        if self.body.tasks.is_empty() {
            self.body.tasks.push(TaskBody::default());
        }
        let last = self.body.tasks.len() - 1;
        &mut self.body.tasks[last]
    }
}

const FRONT_KEYS: &[&str] = &["task", "task_outcome", "task_group", "cwd", "keywords"];

fn heading(trimmed: &str) -> Option<(usize, &str)> {
    let rest = trimmed.trim_start_matches('#');
    let level = trimmed.len() - rest.len();
    (1..=6).contains(&level).then_some(())?;
    rest.starts_with([' ', '\t']).then(|| (level, rest.trim()))
}

fn bullet(trimmed: &str) -> Option<&str> {
    for marker in ["- ", "* ", "+ ", "• "] {
        if let Some(rest) = trimmed.strip_prefix(marker) {
            return Some(rest.trim());
        }
    }
    let digits = trimmed.len()
        - trimmed
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let after = &trimmed[digits..];
    let rest = after.strip_prefix(". ").or(after.strip_prefix(") "))?;
    (1..4).contains(&digits).then(|| rest.trim())
}

fn keywords(text: &str) -> Vec<String> {
    text.split([',', '，', '、', ';'])
        .map(|word| line::clean(word.trim().trim_matches(['[', ']', '"'])))
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Reader, RecapBody, TaskBody};
    use crate::model::offline::shape::Outcome;

    #[track_caller]
    fn check(text: &str, expected: &RecapBody) {
        assert_eq!(&Reader::default().read(text), expected, "{text}");
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn lists_are_found_by_headings_labels_and_bold_words() {
        let expected = RecapBody {
            title: "a session".to_owned(),
            context: "In the shop.".to_owned(),
            tasks: vec![TaskBody {
                title: "mend the till".to_owned(),
                outcome: Some(Outcome::Partial),
                preferences: texts(&["short names"]),
                knowledge: texts(&["it rains"]),
                failures: texts(&["`a` failed"]),
                keywords: texts(&["till", "shop"]),
                ..TaskBody::default()
            }],
        };
        for text in [
            "# a session\n\nIn the shop.\n\n## Task 1: mend the till\n\nOutcome: partial\n\nPreference signals:\n- short names\n\n\
             Failures and how to do differently:\n- `a` failed\n\nReusable knowledge:\n- it rains\n\nKeywords: till, shop\n",
            "# a session\nRollout context: In the shop.\n### Task 1: mend the till\n#### Outcome\npartial\n#### Preference signals\n* short names\n\
             #### Failures\n1. `a` failed\n#### Reusable knowledge\n- it rains\n#### Keywords\n- till, shop\n",
            "# a session\nIn the shop.\n## **Task 1: mend the till**\n- **Outcome:** partial\n**Preference signals:**\n- short names\n\
             **Failures:**\n- `a` failed\n- None.\n**Reusable knowledge**\n- it rains\n**Other things:**\n- unknown\n**Keywords:** till, shop\n",
            "# a session\nIn the shop.\n## Task 1: mend the till, partial\nPreference signals:\n- short names\nFailures:\n- `a` failed\n\
             Reusable knowledge:\n```\n- fenced\n```\n- it rains\nKeywords: till, shop",
        ] {
            check(text, &expected);
        }
    }

    #[test]
    fn other_languages_have_their_own_labels() {
        for text in [
            "## 任务 1：修复登录\n结果：成功\n偏好：\n- x\n可复用知识：\n- y\n",
            "## タスク 1：修复登录\n結果：成功\n好み：\n- x\n再利用可能な知識：\n- y\n",
            "## Aufgabe 1: 修复登录\nErgebnis: Erfolg\nVorlieben:\n- x\nErkenntnisse:\n- y\n",
            "## Tâche 1 : 修复登录\nRésultat : succès\nPréférences :\n- x\nConnaissances :\n- y\n",
            "## Tarea 1: 修复登录\nResultado: éxito\nPreferencias:\n- x\nConocimiento:\n- y\n",
        ] {
            check(
                text,
                &RecapBody {
                    tasks: vec![TaskBody {
                        title: "修复登录".to_owned(),
                        outcome: Some(Outcome::Success),
                        preferences: texts(&["x"]),
                        knowledge: texts(&["y"]),
                        ..TaskBody::default()
                    }],
                    ..RecapBody::default()
                },
            );
        }
    }

    #[test]
    fn nested_and_continued_lines_belong_to_their_item() {
        check(
            "Reusable knowledge:\n- the port\n  is 8080\n  - since May\n\nPreference: short\n",
            &RecapBody {
                tasks: vec![TaskBody {
                    preferences: texts(&["short"]),
                    knowledge: texts(&["the port is 8080 since May"]),
                    ..TaskBody::default()
                }],
                ..RecapBody::default()
            },
        );
    }

    #[test]
    fn a_raw_memory_with_a_damaged_key_is_read() {
        check(
            "---\ndescription: d\nntask_outcome: fail\nkeywords: a, b\n---\n\n### Task 1: t\n\nPreference signals:\n- p\n",
            &RecapBody {
                tasks: vec![TaskBody {
                    title: "t".to_owned(),
                    outcome: Some(Outcome::Fail),
                    preferences: texts(&["p"]),
                    keywords: texts(&["a", "b"]),
                    ..TaskBody::default()
                }],
                ..RecapBody::default()
            },
        );
    }

    #[test]
    fn prose_without_lists_is_context_only() {
        check(
            "Just words, Task forces included.\n\n- a stray bullet\n",
            &RecapBody {
                context: "Just words, Task forces included.".to_owned(),
                ..RecapBody::default()
            },
        );
    }
}
