//! Stories and where their tasks begin: the line numbers of the messages, a
//! bar before each one that opens a task.

use super::{TASKS_MAX, split};
use crate::model::offline::extract::fixture::items;

#[test]
fn a_new_request_behind_an_answer_opens_a_task() {
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman Write the announcement of our next release",
        "| 1 | 3",
    );
    check(
        "human 修复解析器里的缩进问题\nfinal 好\nhuman 请给首页写一个新的标题文案",
        "| 1 | 3",
    );
}

#[test]
fn short_additions_belong_to_the_task() {
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman continue\nfinal ok\nhuman 继续",
        "| 1 3 5",
    );
}

#[test]
fn answers_and_pasted_logs_belong_to_the_task() {
    check(
        "human Deploy the current main to staging\nrun fly deploy | failed\nhuman use this token: [redacted:github-token] and the other password is here\nfinal ok\nhuman ok do that, but only in staging",
        "| 1 4 6",
    );
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman and here's CI:\nwarning: a 1\nwarning: a 2\nwarning: a 3\nwarning: a 4\nignore it, just a flake",
        "| 1 3",
    );
    check(
        "human 修复解析器里的缩进问题\nfinal 好\nhuman 嗯，那就只在测试环境里这样做吧",
        "| 1 3",
    );
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman Good. From now on, always run the linter before you finish",
        "| 1 3",
    );
}

#[test]
fn a_greeting_is_no_task() {
    check(
        "human hi there\nfinal hello\nhuman Fix the parser for tab characters",
        "| 1 3",
    );
}

#[test]
fn titles_come_from_a_request() {
    for (story, expected) in [
        (
            "human hi\nfinal hello\nhuman Fix the parser for tabs.",
            "Fix the parser for tabs",
        ),
        (
            "human That worked. Thanks!\nhuman Now write the notes.",
            "Now write the notes",
        ),
        (
            "human here is the log:\nwarning: a 1\nwarning: a 2\nwarning: a 3\nwarning: a 4\nwhat is wrong with the pool?",
            "what is wrong with the pool?",
        ),
        (
            "human use this token: [redacted:github-token]\nhuman Deploy main to staging",
            "Deploy main to staging",
        ),
        (
            "human 好的。\nhuman 请修复登录页面的错误。",
            "请修复登录页面的错误",
        ),
        ("human fix it", "fix it"),
        (
            "human nice that it works, now why does the ledger round the third column? Fix the docs as well.",
            "nice that it works, now why does the ledger round the third column?",
        ),
    ] {
        assert_eq!(split(&items(story))[0].title(100), expected, "{story}");
    }
}

#[test]
fn corrections_and_complaints_belong_to_the_task() {
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman No, that is not what I meant with this thing",
        "| 1 3",
    );
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman The window still doesn't work on my machine here",
        "| 1 3",
    );
    check(
        "human 修复解析器里的缩进问题\nfinal 好\nhuman 不对，我说的是另一个完全不同的地方",
        "| 1 3",
    );
}

#[test]
fn a_default_said_on_its_own_belongs_to_the_task() {
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman From now on write commit subjects in lower case",
        "| 1 3",
    );
}

#[test]
fn requests_about_the_same_things_belong_to_the_task() {
    check(
        "human Fix the parser for tab characters\nfinal done\nhuman Make the parser faster with tab characters",
        "| 1 3",
    );
    check(
        "human 修复解析器里的缩进问题\nfinal 好\nhuman 解析器里的缩进再检查一遍所有情况",
        "| 1 3",
    );
}

#[test]
fn before_an_answer_everything_is_one_request() {
    check(
        "human Fix the parser for tab characters\nhuman Write the announcement of our next release",
        "| 1 2",
    );
}

#[test]
fn after_hours_it_is_a_new_task() {
    check(
        "human Fix the parser for tab characters\nfinal done\npause 5\nhuman Make the parser faster with tab characters",
        "| 1 | 3",
    );
}

#[test]
fn what_others_say_opens_nothing() {
    check(
        "context Fix everything else in this project please\nfinal hello",
        "",
    );
    check("human ...\nfinal hello", "");
    check(
        "agent Do this other thing here\nhuman Fix the parser for tab characters",
        "| 2",
    );
}

#[test]
fn many_tasks_are_joined_with_their_neighbours() {
    let words = [
        "alpha", "bravo", "charlie", "delta", "echoes", "foxtrot", "golfing", "hotel", "india",
        "juliet",
    ];
    let story: Vec<String> = (0..100)
        .map(|index| {
            let (one, two) = (words[index % 10], words[index / 10]);
            format!("human Please {one}{one} and {two}{two} number{index}\nfinal done\npause 5")
        })
        .collect();
    let items = items(&story.join("\n"));
    let tasks = split(&items);
    assert_eq!(tasks.len(), TASKS_MAX);
    assert_eq!(
        tasks.iter().map(|task| task.messages.len()).sum::<usize>(),
        100
    );
    assert_eq!(tasks.last().unwrap().items.end, items.len());
    assert!(
        tasks
            .windows(2)
            .all(|pair| pair[0].items.end == pair[1].items.start)
    );
}

#[track_caller]
fn check(story: &str, expected: &str) {
    let tasks = split(&items(story));
    let told: Vec<String> = (tasks.iter())
        .map(|task| {
            let lines: Vec<_> = task
                .messages
                .iter()
                .map(|message| message.place.line_number.to_string())
                .collect();
            format!("| {}", lines.join(" "))
        })
        .collect();
    assert_eq!(told.join(" "), expected, "{story}");
}
