//! Commands, what they are and what came of them.

use super::{Remedy, Shape, error_line, failures, gather};
use crate::model::offline::extract::fixture::items;

#[test]
fn commands_are_known_by_program_and_subcommand() {
    check_shapes(
        "cargo test --lib | cargo test | checks
         cd /w && RUST_LOG=debug cargo test 2>&1 | tail -5 | cargo test | checks
         sudo make -j4 install | make install | checks
         python3 -m pytest tests/ -q | python3 pytest | checks
         npm run build | npm run | checks
         ./gradlew assembleDebug | gradlew assembleDebug | checks
         npm install left-pad | npm install | does
         git commit -m 'x' | git commit | does
         git status --short | git | looks
         rg foo src | head | rg | looks
         sed -n 1,20p a.rs | sed | looks
         sed -i s/a/b/ a.rs | sed | does
         cargo --version | cargo | looks
         timeout 60 go vet ./... | go vet | checks
         cat <<'EOF' > x | cat | looks
         部署 生产 | 部署 生产 | does",
    );
}

#[track_caller]
fn check_shapes(table: &str) {
    for line in table.lines() {
        let (rest, kind) = line.trim().rsplit_once(" | ").unwrap();
        let (command, key) = rest.rsplit_once(" | ").unwrap();
        let shape = Shape::of(command);
        let told = match (shape.is_check, shape.only_looks) {
            (true, _) => "checks",
            (_, true) => "looks",
            _ => "does",
        };
        assert_eq!((shape.key.as_str(), told), (key, kind), "{command}");
    }
}

#[test]
fn the_line_that_says_what_went_wrong_is_found() {
    for (output, expected, is_certain) in [
        (
            "running 3 tests\nerror[E0308]: mismatched types\n --> a.rs:1\nerror: aborting",
            "error[E0308]: mismatched types",
            true,
        ),
        (
            "Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 'x'\n\nValueError: bad",
            "ValueError: bad",
            true,
        ),
        ("npm ERR! missing script: biuld\nsee log", "see log", false),
        (
            "Exit code 1\nmake: *** No rule to make target 'release'.  Stop.",
            "make: *** No rule to make target 'release'. Stop.",
            false,
        ),
        (
            "sh: foo: command not found",
            "sh: foo: command not found",
            false,
        ),
        (
            "test result: ok. 3 passed; 0 failed",
            "test result: ok. 3 passed; 0 failed",
            false,
        ),
        ("构建失败：缺少依赖", "构建失败：缺少依赖", false),
    ] {
        assert_eq!(
            error_line(output),
            (Some(expected.to_owned()), is_certain),
            "{output}"
        );
    }
    assert_eq!(error_line(" \n"), (None, false));
}

#[test]
fn a_long_output_is_looked_at_from_both_ends() {
    let output = format!("{}\nerror: at the end", "x y z\n".repeat(100_000));
    assert_eq!(error_line(&output).0.as_deref(), Some("error: at the end"));
}

#[test]
fn a_failure_is_joined_with_what_worked_later() {
    check_failures(
        "run cargo test | failed error: a\nrun cargo test --lib | ok\nrun cargo test | ok",
        "cargo test x1 -> instead cargo test --lib",
    );
    check_failures(
        "run make | failed error: a\nrun ls | ok\nrun make | ok",
        "make x1 -> again",
    );
    check_failures(
        "run make | failed error: a\nrun make | failed error: a",
        "make x2 -> nothing",
    );
    check_failures(
        "run make | ok\nrun make | failed error: a",
        "make x1 -> nothing",
    );
    check_failures(
        "run rg nothing | failed\nrun cat none | failed No such file",
        "",
    );
}

#[track_caller]
fn check_failures(story: &str, expected: &str) {
    let items = items(story);
    let work = gather(&items, None);
    let told: Vec<String> = (failures(&work.commands, &work.commands).iter())
        .map(|failure| {
            let remedy = match &failure.remedy {
                Remedy::None => "nothing".to_owned(),
                Remedy::Again(_) => "again".to_owned(),
                Remedy::Instead(command) => format!("instead {}", command.line),
            };
            format!("{} x{} -> {remedy}", failure.command.line, failure.times)
        })
        .collect();
    assert_eq!(told.join("; "), expected, "{story}");
}

#[test]
fn a_pipe_that_hides_a_failure_proves_nothing() {
    let items = items(
        "run cargo test 2>&1 | tail -3 | ok error: test failed\nrun cargo test 2>&1 | tail -3 | ok test result: ok",
    );
    let results: Vec<_> = gather(&items, None)
        .commands
        .iter()
        .map(|command| command.succeeded)
        .collect();
    assert_eq!(results, [None, Some(true)]);
}

#[test]
fn what_came_from_outside_is_no_work() {
    let work = gather(
        &items("external run this: cargo test\nedit /w/a.rs\nedit /other/b.rs"),
        Some("/w"),
    );
    assert!(work.commands.is_empty());
    let files: Vec<_> = work.files_in(&(0..9)).into_keys().collect();
    assert_eq!(files, ["/other/b.rs", "a.rs"]);
}
