//! What says the same, what contradicts, and what the index finds.

use proptest::prelude::*;

use super::{Features, NearIndex, SAME_STATEMENT, share};

#[test]
fn near_equal_statements_are_one_and_values_keep_them_apart() {
    for (left, right, same) in [
        ("Use uv, not pip.", "use UV not pip", true),
        ("Ｕｓｅ uv", "use uv", true),
        (
            "run the tests with make check before each commit please",
            "run the tests with make check before each commit",
            true,
        ),
        (
            "run the tests before each commit with `a.sh`",
            "run the tests before each commit with `b.sh`",
            false,
        ),
        ("uses tabs", "uses spaces", false),
        (
            "提交前总是先运行测试脚本",
            "提交前总是先运行测试脚本。",
            true,
        ),
        (
            "コミットの前に必ずテストを実行してください",
            "コミットの前に必ずテストを実行して",
            true,
        ),
        ("提交前总是先运行测试脚本", "部署前总是先备份数据库", false),
    ] {
        let (a, b) = (Features::of(left), Features::of(right));
        assert_eq!(a.is_same_as(&b), same, "{left} / {right}");
        assert_eq!(b.is_same_as(&a), same, "{right} / {left}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table: one pair after the other")]
fn another_value_for_the_same_subject_contradicts() {
    for (left, right, contradicts) in [
        (
            "the dev server runs on port 8080",
            "The dev server runs on port 9090",
            true,
        ),
        ("port: 8080", "port: 9090", true),
        ("端口是8080", "端口是9090", true),
        (
            "開発サーバーのポートは8080です",
            "開発サーバーのポートは9090です",
            true,
        ),
        ("Der Port ist 8080", "Der Port ist 9090", true),
        (
            "chapter 1 is in intro.md",
            "chapter 2 is in intro.md",
            false,
        ),
        (
            "the dev server runs on port 8080",
            "the dev server runs on port 8080",
            false,
        ),
        ("the parser is in a.rs", "the parser is in b.rs", false),
        (
            "the API listens on 8080",
            "the database listens on 5432",
            false,
        ),
        (
            "always check report number 1 twice",
            "always check report number 2 twice",
            false,
        ),
        (
            "for details see report 1",
            "for details see report 2",
            false,
        ),
        (
            "the parser is described in issue #12",
            "the parser is described in issue #13",
            false,
        ),
        (
            "indent everything with 2 spaces",
            "indent everything with 4 spaces",
            true,
        ),
        (
            "Einzelheiten stehen im Bericht 1",
            "Einzelheiten stehen im Bericht 2",
            false,
        ),
        (
            "La suite est au chapitre n° 3",
            "La suite est au chapitre n° 4",
            false,
        ),
        (
            "подробности смотри в отчёте 1",
            "подробности смотри в отчёте 2",
            false,
        ),
        ("сервер слушает порт 8080", "сервер слушает порт 9090", true),
        ("详细内容请看报告1", "详细内容请看报告2", false),
        (
            "詳しくは第1章を見てください",
            "詳しくは第2章を見てください",
            false,
        ),
        (
            "자세한 내용은 보고서 1 참고",
            "자세한 내용은 보고서 2 참고",
            false,
        ),
        ("서버 포트는 8080 입니다", "서버 포트는 9090 입니다", true),
    ] {
        let (a, b) = (Features::of(left), Features::of(right));
        assert_eq!(a.contradicts(&b), contradicts, "{left} / {right}");
        assert_eq!(b.contradicts(&a), contradicts, "{right} / {left}");
    }
}

proptest! {
    #[test]
    fn the_index_finds_what_comparing_each_pair_finds(
        texts in prop::collection::vec("[a-f]( [a-f]){3,8}", 1..40)
    ) {
        let all: Vec<Features> = texts.iter().map(|text| Features::of(text)).collect();
        let mut index = NearIndex::new(SAME_STATEMENT, all.iter());
        for (count, features) in all.iter().enumerate() {
            let mut found = index.near(features);
            found.sort_unstable();
            let expected: Vec<usize> = (0..count)
                .filter(|other| share(&features.tokens, &all[*other].tokens) >= SAME_STATEMENT)
                .collect();
            prop_assert_eq!(found, expected);
            index.insert(features);
        }
    }
}
