//! Files in, values or problems out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::keys::{ALIASES, Field, KEYS, Key, SECTIONS};
use super::{Backend, Config, Origin, Scope, describe, initial_text, load, parse};
use crate::domain::version::MemoryVersion;

fn read(text: &str) -> Config {
    parse::parse(Path::new("config.toml"), text, Path::new("/home/ada"))
        .unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[test]
fn memory_is_off_until_somebody_switches_it_on() {
    assert!(!read("").features.memories);
    assert!(read(&initial_text()).features.memories);
}

#[test]
fn defaults_are_those_of_the_reference() {
    let memories = Config::default().memories;
    assert_eq!(memories.version, MemoryVersion::V1);
    assert!(memories.generate_memories && memories.use_memories);
    assert!(!memories.dual_write);
    assert!(!memories.disable_on_external_context);
    assert_eq!(memories.max_rollouts_per_startup, 2);
    assert_eq!(memories.max_rollout_age_days, 10);
    assert_eq!(memories.min_rollout_idle_hours, 6);
    assert_eq!(memories.max_raw_memories_for_consolidation, 256);
    assert_eq!(memories.max_unused_days, 30);
    assert_eq!(memories.min_rate_limit_remaining_percent, 25);
    assert_eq!(memories.extract_model, None);
    assert_eq!(memories.consolidation_model, None);
}

#[test]
fn numbers_of_the_reference_out_of_bounds_are_moved_to_the_nearest_and_shown() {
    for (key, least, most) in [
        ("max_rollouts_per_startup", 1, 128),
        ("max_rollout_age_days", 0, 90),
        ("min_rollout_idle_hours", 1, 48),
        ("max_raw_memories_for_consolidation", 1, 4096),
        ("max_unused_days", 0, 365),
        ("min_rate_limit_remaining_percent", 0, 100),
    ] {
        for (from, to) in [(-7, least), (i64::MAX, most), (least, least), (most, most)] {
            let config = read(&format!("[memories]\n\n{key} = {from}"));
            let name = format!("memories.{key}");
            let infos = describe(&config);
            let info = infos.iter().find(|info| info.key == name).unwrap();
            let line_number = 3;
            let origin = if from == to {
                Origin::File { line_number }
            } else {
                Origin::Clamped { from, line_number }
            };
            assert_eq!(
                (&info.value, info.origin),
                (&to.to_string(), origin),
                "{key}"
            );
        }
    }
}

#[test]
fn any_other_number_out_of_bounds_is_an_error_that_names_them() {
    for key in KEYS {
        let Field::Number { least, most, .. } = &key.field else {
            continue;
        };
        for number in [least - 1, most + 1] {
            let text = format!("{} = {number}", key.name);
            let parsed = parse::parse(Path::new("c.toml"), &text, Path::new("/home/ada"));
            if key.section() == "memories" {
                parsed.unwrap();
                continue;
            }
            let problems = parsed.unwrap_err();
            let name = key.name;
            let expected = format!("c.toml:1: `{name}` must be {least} to {most}, not {number}");
            assert_eq!(problems[0].to_string(), expected);
        }
    }
    assert_eq!(
        read("model.calls_per_day_max = 0").model.calls_per_day_max,
        0
    );
    assert_eq!(
        read("guard.edit_quiet_seconds = 0x10")
            .guard
            .edit_quiet_seconds,
        16
    );
}

#[test]
fn every_field_has_a_key_and_every_key_is_described() {
    // `{:#?}` shows all fields: sections indented by four, their keys by eight.
    let mut fields = BTreeSet::new();
    let mut section = String::new();
    for line in format!("{:#?}", Config::default()).lines() {
        let indent = line.len() - line.trim_start().len();
        let name = line.trim().split(':').next().unwrap();
        match indent {
            4 => name.clone_into(&mut section),
            8 if line.contains(':') => {
                fields.insert(format!("{section}.{name}"));
            }
            _ => {}
        }
    }
    let keys: BTreeSet<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
    assert_eq!(keys, fields);
    let described: Vec<&str> = describe(&Config::default())
        .iter()
        .map(|info| info.key)
        .collect();
    let listed: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(described, listed);
    for key in KEYS {
        assert!(
            SECTIONS
                .iter()
                .any(|(section, _)| *section == key.section())
        );
        assert!(
            !key.about.ends_with('.') && !key.about.is_empty(),
            "{}",
            key.name
        );
    }
    for (_, meant) in ALIASES {
        assert!(Key::find(meant).is_some());
    }
}

#[test]
fn every_key_makes_a_difference_to_the_value() {
    let default = Config::default();
    for info in describe(&default) {
        let (section, name) = info.key.split_once('.').unwrap();
        let other = match &Key::find(info.key).unwrap().field {
            Field::Switch(_) => (info.value != "true").to_string(),
            Field::Number { least, most, .. } => {
                let other = if info.value == least.to_string() {
                    most
                } else {
                    least
                };
                other.to_string()
            }
            Field::Choice { words, hidden, .. } => {
                let mut all = words.iter().chain(hidden.iter());
                let other = all.find(|word| format!("\"{word}\"") != info.value);
                format!("\"{}\"", other.unwrap())
            }
            Field::Text(_) => "\"some-model\"".to_owned(),
            Field::Words(_) | Field::Folders(_) | Field::Projects(_) => "[\"/a/b\"]".to_owned(),
            Field::Checked { example, .. } => format!("\"{example}\""),
            Field::File(_) => "\"/a/b\"".to_owned(),
            Field::Headers(_) => "[\"x-team: 7\"]".to_owned(),
        };
        let config = read(&format!("[{section}]\n{name} = {other}"));
        let now = describe(&config)
            .into_iter()
            .find(|now| now.key == info.key);
        assert_eq!(now.unwrap().value, other, "{}", info.key);
        let mut expected = default.clone();
        expected.origins.clone_from(&config.origins);
        assert_ne!(config, expected, "{}", info.key);
    }
}

#[test]
fn the_older_name_of_a_key_is_taken() {
    let config = read("[memories]\nno_memories_if_mcp_or_web_search = true");
    assert!(config.memories.disable_on_external_context);
}

#[test]
fn values_go_where_they_belong() {
    let config = read(
        "inject.scope = 'project'
         [memories]
         version = \"v2\"
         extract_model = ' small '
         [model]
         backend = 'replay'
         [sessions]
         codex_roots = ['~/logs', '/var/log/codex']
         disabled_projects = ['~/secret', 'https://ada@Example.org/team/ledger.git?x=1',
                              'git@example.org:team/other.git', 'C:\\work\\']",
    );
    assert_eq!(config.memories.version, MemoryVersion::V2);
    assert_eq!(config.memories.extract_model.as_deref(), Some("small"));
    assert_eq!(config.model.backend, Backend::Replay);
    assert_eq!(config.inject.scope, Scope::Project);
    let roots = ["/home/ada/logs", "/var/log/codex"].map(PathBuf::from);
    assert_eq!(config.sessions.codex_roots, Some(roots.to_vec()));
    assert_eq!(
        config.sessions.disabled_projects,
        [
            "/home/ada/secret",
            "example.org/team/ledger",
            "example.org/team/other",
            "C:\\work"
        ]
    );
}

#[test]
fn a_project_is_off_with_all_below_it_and_nothing_beside_it() {
    let config =
        read("sessions.disabled_projects = ['/p/a', '/q/', 'example.org/team', 'C:\\work']");
    for (cwd, project, is_off) in [
        (Some("/p/a"), None, true),
        (Some("/p/a/"), None, true),
        (Some("/p/a/b/c"), None, true),
        (Some("/p/ab"), None, false),
        (Some("/p/a-b"), None, false),
        (Some("/p"), None, false),
        (Some("/q/x"), None, true),
        (Some("p/a"), None, false),
        (Some("/x"), Some("/p/a"), true),
        (Some("/x"), Some("example.org/team/ledger"), true),
        (Some("/x"), Some("example.org/team"), true),
        (Some("/x"), Some("example.org/teams/ledger"), false),
        (Some("/example.org/team"), None, false),
        (Some("C:\\work\\x"), None, true),
        (Some("c:/work/x"), None, true),
        (Some("C:\\workshop"), None, false),
        (Some("/x/../p/a"), None, true),
        (None, None, false),
    ] {
        let told = config.sessions.is_project_disabled(cwd, project);
        assert_eq!(told, is_off, "{cwd:?} {project:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_project_is_off_in_its_worktrees_and_clones() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let git = root.join("ledger/.git");
    crate::sys::fs::make_folders(&git).unwrap();
    crate::sys::fs::replace(&git.join("HEAD"), b"ref: refs/heads/main\n").unwrap();
    let origin = b"[remote \"origin\"]\n\turl = git@example.org:team/ledger.git\n";
    crate::sys::fs::replace(&git.join("config"), origin).unwrap();
    std::os::unix::fs::symlink(root.join("ledger"), root.join("link")).unwrap();
    let config = read(&format!(
        "sessions.disabled_projects = ['{}/link']",
        root.display()
    ));
    let is_off = |cwd: &str, project| config.sessions.is_project_disabled(Some(cwd), project);
    assert!(is_off("/elsewhere", Some("example.org/team/ledger")));
    assert!(is_off(&format!("{}/link/src", root.display()), None));
    assert!(is_off(&format!("{}/ledger/src", root.display()), None));
    assert!(!is_off(
        &format!("{}/ledgers", root.display()),
        Some("example.org/team/x")
    ));
}

/// The file, then `line: message` with `| hint` of each problem.
#[track_caller]
fn check_problems(text: &str, expected: &[&str]) {
    let problems = parse::parse(Path::new("c.toml"), text, Path::new("/home/ada")).unwrap_err();
    let told: Vec<String> = (problems.iter())
        .map(|problem| match &problem.hint {
            Some(hint) => format!("{problem} | {hint}"),
            None => problem.to_string(),
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn unknown_keys_are_an_error_with_a_suggestion() {
    check_problems(
        "[memories]\nmax_unused_day = 3\n\nversoin = 'v1'\n[feature]\nmemories = true\n",
        &[
            "c.toml:2: unknown key `memories.max_unused_day` | did you mean `memories.max_unused_days`?",
            "c.toml:4: unknown key `memories.versoin` | did you mean `memories.version`?",
            "c.toml:5: unknown section or key `feature` | did you mean `[features]`?",
        ],
    );
    check_problems(
        "include_exec = true\n[memories]\nscope = 'all'\nentirely_other = 1\n",
        &[
            "c.toml:1: unknown section or key `include_exec` | `include_exec` belongs in `[sessions]`",
            "c.toml:3: unknown key `memories.scope` | `scope` belongs in `[inject]`",
            "c.toml:4: unknown key `memories.entirely_other`",
        ],
    );
}

#[test]
fn wrong_values_are_named_with_key_and_line() {
    check_problems(
        "features = true
[memories]
dual_write = 'yes'
version = 'V2'
max_unused_days = '3'
max_rollout_age_days = 2.5
extract_model = ''
[sessions]
codex_roots = ['logs', 7]
disabled_projects = ['ledger', './x', '']
claude = { on = true }
[model]
backend = 'openia'
calls_per_day_max = 99999999999999999999
",
        &[
            "c.toml:1: `features` must be a section, `[features]`",
            "c.toml:3: `memories.dual_write` must be `true` or `false`, not the text `yes`",
            "c.toml:4: `memories.version` must be `v1` or `v2`, not `V2` | did you mean `v2`?",
            "c.toml:5: `memories.max_unused_days` must be a whole number, not the text `3`",
            "c.toml:6: `memories.max_rollout_age_days` must be a whole number, not the number 2.5",
            "c.toml:7: `memories.extract_model` must be a text that is not empty, not an empty text",
            "c.toml:9: `sessions.codex_roots`: `logs` must be an absolute path or begin with `~/`",
            "c.toml:9: `sessions.codex_roots`: the number 7 must be an absolute path or begin with `~/`",
            "c.toml:10: `sessions.disabled_projects`: `ledger` must be a folder (absolute, or in `~/`) or a project such as `example.org/team/project`",
            "c.toml:10: `sessions.disabled_projects`: `./x` must be a folder (absolute, or in `~/`) or a project such as `example.org/team/project`",
            "c.toml:10: `sessions.disabled_projects`: `` must be a folder (absolute, or in `~/`) or a project such as `example.org/team/project`",
            "c.toml:11: `sessions.claude` must be `true` or `false`, not a section",
            "c.toml:13: `model.backend` must be `offline`, `codex`, `claude`, `command`, `openai`, `chat` or `anthropic`, not `openia` | did you mean `openai`?",
            "c.toml:14: `model.calls_per_day_max` has too many digits | it may be 0 to 1000000",
        ],
    );
    check_problems(
        "[memories]\nno_memories_if_mcp_or_web_search = true\ndisable_on_external_context = false",
        &[
            "c.toml:2: `memories.disable_on_external_context` is set twice: \
           `memories.no_memories_if_mcp_or_web_search` is another name",
        ],
    );
}

#[test]
fn broken_toml_is_named_with_its_line() {
    let problems = parse::parse(
        Path::new("c.toml"),
        "[memories]\nversion = \n",
        Path::new("/"),
    );
    let problems = problems.unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].line_number, Some(2));
    assert!(!problems[0].message.contains('\n'));
}

#[test]
fn no_text_makes_it_panic() {
    for text in [
        "é = 1",
        "[é]\nü='x'",
        "a.b.c.d = 1",
        "[[memories]]",
        "\u{feff}",
        "=",
        "[",
        "\0",
    ] {
        // Good or bad, it must come to an end.
        drop(parse::parse(Path::new("c"), text, Path::new("/")));
    }
}

#[test]
fn a_home_without_the_file_has_the_defaults_and_a_strange_file_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(load(home.path(), home.path()).unwrap(), Config::default());
    let path = home.path().join("config.toml");
    crate::sys::fs::replace(&path, b"\xff\xfe").unwrap();
    let problems = load(home.path(), home.path()).unwrap_err();
    assert_eq!(problems[0].line_number, None);
    assert!(
        problems[0]
            .to_string()
            .starts_with(&path.display().to_string())
    );
}

#[test]
fn the_first_file_shows_every_key_at_its_default() {
    let text = initial_text();
    let mut config = read(&text);
    config.features.memories = false;
    config.origins.clear();
    assert_eq!(config, Config::default(), "comments change nothing");

    let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    let uncommented: Vec<&str> = (text.lines())
        .map(|line| if is_key(&line) { &line[1..] } else { line })
        .collect();
    let config = read(&uncommented.join("\n"));
    let unset: Vec<&str> = describe(&config)
        .iter()
        .filter(|info| info.origin == Origin::Default)
        .map(|info| info.key)
        .collect();
    assert_eq!(unset, [""; 0], "every key stands in it");
    assert!(!text.contains("replay"));
}

/// What the stored schema has to say, from the table of keys.
fn schema() -> Value {
    let mut sections = Map::new();
    for (section, about) in SECTIONS {
        let keys = KEYS.iter().filter(|key| key.section() == *section);
        let mut properties: Map<String, Value> = keys
            .map(|key| {
                (
                    key.name.split_once('.').unwrap().1.to_owned(),
                    key_schema(key),
                )
            })
            .collect();
        for (alias, meant) in ALIASES {
            let (of, name) = alias.split_once('.').unwrap();
            if of == *section {
                let mut alias = key_schema(Key::find(meant).unwrap());
                alias["deprecated"] = json!(true);
                properties.insert(name.to_owned(), alias);
            }
        }
        sections.insert(
            (*section).to_owned(),
            json!({
                "type": "object",
                "description": about,
                "additionalProperties": false,
                "properties": properties,
            }),
        );
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memrev config.toml",
        "description": "Numbers out of bounds are refused; those of `memories` are moved to the nearest one in bounds.",
        "type": "object",
        "additionalProperties": false,
        "properties": sections,
    })
}

fn key_schema(key: &Key) -> Value {
    let defaults: BTreeMap<&str, String> = describe(&Config::default())
        .into_iter()
        .map(|info| (info.key, info.value))
        .collect();
    let mut schema = match &key.field {
        Field::Switch(_) => json!({ "type": "boolean" }),
        Field::Number { least, most, .. } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Field::Choice { words, .. } => json!({ "enum": words }),
        Field::Text(_) | Field::Checked { .. } | Field::File(_) => {
            json!({ "type": "string", "minLength": 1 })
        }
        Field::Words(_) | Field::Headers(_) | Field::Folders(_) | Field::Projects(_) => {
            json!({ "type": "array", "items": { "type": "string", "minLength": 1 } })
        }
    };
    schema["description"] = json!(key.about);
    // What `describe` prints of these defaults is JSON as well as TOML.
    if let Ok(default) = serde_json::from_str::<Value>(&defaults[key.name]) {
        schema["default"] = default;
    }
    schema
}

#[test]
fn a_value_that_looks_like_a_key_is_refused_and_not_repeated() {
    let key = ["sk", "test", "A1b2C3d4E5f6G7h8I9j0K1l2"].join("-");
    for line in [
        format!("extract = '{key}'"),
        format!("key_env = '{key}'"),
        format!("endpoint = 'https://example.com/{key}'"),
        format!("headers = ['x-team: {key}']"),
        format!("command = ['curl', '-H', 'Authorization: Bearer {key}']"),
    ] {
        let text = format!("[model]\n{line}");
        let problems = parse::parse(Path::new("c"), &text, Path::new("/home/ada")).unwrap_err();
        assert_eq!(problems.len(), 1, "{line}");
        let problem = &problems[0];
        assert!(!format!("{problem:?}").contains(&key), "{problem:?}");
    }
}

#[test]
fn addresses_are_checked_before_anything_is_sent() {
    for (line, words) in [
        ("endpoint = 'http://example.com/v1'", "this machine alone"),
        ("endpoint = 'example.com'", "no URL"),
        ("proxy = 'http://user@proxy.example'", "HTTPS_PROXY"),
        ("proxy = 'socks5://proxy.example'", "`http://`"),
        ("key_env = 'my key'", "name of a variable"),
        ("key_file = 'keys/mine'", "absolute path"),
        ("headers = ['authorization: mine']", "is a key"),
    ] {
        let text = format!("[model]\n{line}");
        let problems = parse::parse(Path::new("c"), &text, Path::new("/home/ada")).unwrap_err();
        assert!(problems[0].message.contains(words), "{:?}", problems[0]);
    }
    let config = read(
        "[model]\nendpoint = 'http://localhost:1/v1'\nproxy = 'none'\nkey_file = '~/key'\nheaders = ['x-a: b']",
    );
    assert_eq!(config.model.key_file, Some("/home/ada/key".into()));
    assert_eq!(config.model.proxy.as_deref(), Some("none"));
}

#[test]
fn the_stored_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/config.json");
    let stored = crate::sys::fs::read_text_if_any(&path, 1 << 20).unwrap();
    let stored: Option<Value> = stored.and_then(|text| serde_json::from_str(&text).ok());
    let expected = schema();
    if stored.as_ref() != Some(&expected) {
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/config-schema.json");
        let text = serde_json::to_string_pretty(&expected).unwrap() + "\n";
        crate::sys::fs::replace(&made, text.as_bytes()).unwrap();
        panic!("schemas/config.json differs from {}", made.display());
    }
}

#[test]
fn schema_and_code_agree_on_files() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for (text, is_good) in [
        (initial_text().as_str(), true),
        ("[memories]\nversion = 'v2'\nmax_unused_days = 365", true),
        ("[memories]\nno_memories_if_mcp_or_web_search = true", true),
        ("[memories]\nversion = 'v3'", false),
        ("[memories]\nversio = 'v2'", false),
        ("[memory]", false),
        ("[sessions]\ncodex_roots = [1]", false),
        ("[features]\nmemories = 1", false),
    ] {
        let table: toml::Table = toml::from_str(text).unwrap();
        let json = serde_json::to_value(&table).unwrap();
        let read = parse::parse(Path::new("c"), text, Path::new("/home/ada"));
        assert_eq!(
            (validator.is_valid(&json), read.is_ok()),
            (is_good, is_good),
            "{text}"
        );
    }
}
