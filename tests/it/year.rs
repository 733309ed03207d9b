//! One year of a memory: four hundred baselines and everything that happens in
//! between, in an order that a seed fixes; then every promise is held against
//! what came of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::{Run, Sandbox, Transcript};

/// Baselines of the short year that every run of the tests lives through;
/// `MEMREV_TEST_BASELINES=400` makes it a whole one.
const BASELINES: usize = 60;

/// Seconds from one event to the next: a little less than a day.
const STEP_SECONDS: u64 = 22 * 3_600;

/// Sessions leave after a week, so that a year sees many come and go.
const CONFIG: &str = "[memories]\nmax_unused_days = 7\nmax_rollout_age_days = 5\n";

/// 1 January 2026, in Unix seconds.
const NEW_YEAR: u64 = 1_767_225_600;

/// What may lie in the repository after a year.
const REPOSITORY_BYTES_MAX: u64 = 24 * 1024 * 1024;

/// Lines whose origin is asked for at the end, spread over the files.
const LINES_ASKED: usize = 20;

const THINGS: [&str; 12] = [
    "ledger", "harbour", "invoice", "parser", "socket", "column", "window", "metric", "cache",
    "schema", "deploy", "branch",
];
const DEEDS: [&str; 9] = [
    "rename",
    "archive",
    "compress",
    "reorder",
    "translate",
    "duplicate",
    "encrypt",
    "publish",
    "truncate",
];
const PLACES: [&str; 7] = [
    "Lisbon", "Nairobi", "Oslo", "Quito", "Seoul", "Tunis", "Vilnius",
];

/// A wish that no other number below 700 shares.
fn wish(number: usize) -> String {
    let of = |words: &[&'static str], number: usize| words[number % words.len()];
    let (deed, thing, place) = (of(&DEEDS, number), of(&THINGS, number), of(&PLACES, number));
    let (other, third) = (of(&THINGS, number / 5 + 3), of(&DEEDS, number / 7 + 2));
    format!("Never {deed} the {thing} of {place} while somebody wants to {third} its {other}.")
}

/// Numbers that look thrown and are always the same.
struct Dice(u64);

impl Dice {
    /// One of `0..sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A memory that lives through the year.
struct Year {
    sandbox: Sandbox,
    dice: Dice,
    step: u64,
    /// Sessions, notes and lines of the person so far: the next wish.
    wishes: usize,
    baselines: usize,
    /// Lines that the person wrote into a memory file themselves.
    own_lines: BTreeSet<String>,
    /// What must not come back.
    gone: BTreeSet<String>,
    /// What happened, for whoever reads a failure.
    diary: String,
}

impl Year {
    fn begin(seed: u64) -> Self {
        let sandbox = Sandbox::new();
        sandbox.configure(CONFIG);
        Self {
            sandbox,
            dice: Dice(seed),
            step: 0,
            wishes: 0,
            baselines: 0,
            own_lines: BTreeSet::new(),
            gone: BTreeSet::new(),
            diary: String::new(),
        }
    }

    /// Hours after the step began.
    fn time(&self, hours: u64) -> String {
        let seconds = NEW_YEAR + self.step * STEP_SECONDS + hours * 3_600;
        let seconds = i64::try_from(seconds).unwrap();
        jiff::Timestamp::from_second(seconds).unwrap().to_string()
    }

    fn next_wish(&mut self) -> String {
        self.wishes += 1;
        wish(self.wishes)
    }

    fn memory(&self) -> String {
        let files = ["memory_summary.md", "MEMORY.md"];
        files.map(|file| self.sandbox.read(file)).concat()
    }

    fn step(&mut self) {
        self.step += 1;
        let now = self.time(20);
        self.sandbox.at(&now);
        let event = self.dice.roll(100);
        match event {
            0..70 => self.session(),
            70..80 => self.note(),
            80..86 => self.writes_a_line(),
            86..90 => self.deletes_a_line(),
            90..93 => self.reverts(),
            93..96 => self.forgets(),
            _ => self.worker_misbehaves(),
        }
        self.pass();
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.diary, "{:>4} {what}", self.step).unwrap();
    }

    fn session(&mut self) {
        let wish = self.next_wish();
        self.tell(&format!("session: {wish}"));
        let number = u32::try_from(self.wishes).unwrap();
        let tool = THINGS[self.dice.roll(THINGS.len())];
        let story = format!(
            "human: Please mend the {tool} report number {number}.\nrun: make {tool} -> fail: error E{number}: no rule\nrun: make {tool}-all -> ok: done\nagent: It was a missing rule.\nhuman: {wish}\nagent: ok",
        );
        let folder = format!("/work/{}", PLACES[self.dice.roll(3)].to_lowercase());
        let transcript = Transcript::codex(number, &self.time(1), &story).in_folder(&folder);
        self.sandbox.session(&transcript);
    }

    fn note(&mut self) {
        let wish = self.next_wish();
        self.tell(&format!("note: {wish}"));
        self.sandbox.run(&["note", "--remember", &wish]).success();
    }

    /// Into the summary, and as a commit of their own every other time.
    fn writes_a_line(&mut self) {
        let wish = self.next_wish();
        let own = format!("- {wish} (mine)");
        self.tell(&format!("writes: {own}"));
        let summary = self.sandbox.read("memory_summary.md");
        let tips = "## General Tips\n";
        assert!(summary.contains(tips), "{summary}\n{}", self.diary);
        let edited = summary.replace(tips, &format!("{tips}\n{own}\n"));
        self.sandbox.write("memory_summary.md", &edited);
        if self.dice.roll(2) == 0 {
            let date = self.time(20);
            self.sandbox
                .git(&["commit", "-q", "-a", "-m", "mine", "--date", &date]);
        }
        self.own_lines.insert(own);
    }

    /// A wish out of every memory file.
    fn deletes_a_line(&mut self) {
        let Some(wish) = self.some_wish() else { return };
        self.tell(&format!("deletes: {wish}"));
        for file in ["memory_summary.md", "MEMORY.md"] {
            let text = self.sandbox.read(file);
            let kept: String = (text.split_inclusive('\n'))
                .filter(|line| !line.contains(&wish))
                .collect();
            if kept != text {
                self.sandbox.write(file, &kept);
            }
        }
        self.is_gone(wish);
    }

    fn forgets(&mut self) {
        let Some(wish) = self.some_wish() else { return };
        self.tell(&format!("forgets: {wish}"));
        self.sandbox.run(&["forget", &wish, "--yes"]).success();
        self.is_gone(wish);
    }

    fn is_gone(&mut self, wish: String) {
        self.own_lines.retain(|own| !own.contains(&wish));
        self.gone.insert(wish);
    }

    /// One of the last few baselines, which may be refused for what came after.
    fn reverts(&mut self) {
        let log = self
            .sandbox
            .git(&["log", "--format=%h %s", "-n", "12", "main"]);
        let baselines: Vec<&str> = (log.lines())
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, subject)| subject.starts_with("baseline:"))
            .map(|(id, _)| id)
            .collect();
        let Some(id) = baselines.get(self.dice.roll(3)) else {
            return;
        };
        let before = self.memory();
        let run = self.sandbox.run(&["revert", id]);
        self.tell(&format!(
            "reverts {id}: {:?} {}",
            run.code,
            run.stderr.trim()
        ));
        if run.code == Some(1) {
            assert_eq!(
                self.memory(),
                before,
                "refused, and written\n{}",
                self.diary
            );
            return;
        }
        run.success();
        let after = self.memory();
        let wishes = (1..=self.wishes).map(wish);
        let gone: Vec<String> = wishes
            .filter(|wish| before.contains(wish) && !after.contains(wish))
            .collect();
        for wish in gone {
            self.is_gone(wish);
        }
    }

    /// A session that a worker answers with what must be refused.
    fn worker_misbehaves(&mut self) {
        self.session();
        let empty = r##"{"write": "MEMORY.md", "text": "# Task Group: x"}"##;
        let apology = r#"{"write": "memory_summary.md", "text": "I am sorry, I cannot."}"#;
        let deletes = r#"{"delete": "MEMORY.md"}"#;
        let foreign = r#"{"write": "extensions/ad_hoc/notes/x.md", "text": "Remember me."}"#;
        let edits = [empty, apology, deletes, foreign];
        let edit = edits[self.dice.roll(edits.len())];
        self.tell(&format!("a worker does {edit}"));
        let folder = self.sandbox.path("replay");
        fs::remove_dir_all(&folder).ok();
        for (file, text) in [
            ("extract/any.json", r#"{"offline": true}"#.to_owned()),
            (
                "consolidate/any.json",
                format!(r#"{{"edits": [{edit}], "finish": true}}"#),
            ),
        ] {
            self.sandbox.write_at(&folder.join(file), &text);
        }
        let before = self.memory();
        let head = self.sandbox.head();
        let with_replay = format!("{CONFIG}[model]\nbackend = \"replay\"\n");
        self.sandbox.configure(&with_replay);
        let mut command = self.sandbox.command(&["run"]);
        command.env("MEMREV_REPLAY", &folder);
        let run = Run::of(command.output().unwrap());
        self.sandbox.configure(CONFIG);
        assert_ne!(run.code, Some(0), "{}\n{}", run.stdout, self.diary);
        assert_eq!(self.sandbox.head(), head, "{}", self.diary);
        assert_eq!(self.memory(), before, "{}", self.diary);
    }

    /// A wish that stands in memory.
    fn some_wish(&mut self) -> Option<String> {
        let memory = self.memory();
        let mut wishes: Vec<String> = (1..=self.wishes).map(wish).collect();
        wishes.retain(|wish| memory.contains(wish.as_str()));
        if wishes.is_empty() {
            return None;
        }
        let index = self.dice.roll(wishes.len());
        Some(wishes.swap_remove(index))
    }

    /// Old versions are kept for late saves by the file system's own clock, which
    /// does not hurry as the sandbox's does.
    fn let_time_pass(&self) {
        let displaced = self.sandbox.memories().join(".git/memrev/displaced");
        let Ok(runs) = fs::read_dir(displaced) else {
            return;
        };
        let long_ago = SystemTime::now() - Duration::from_hours(2);
        for run in runs {
            let record = fs::File::open(run.unwrap().path().join("record"));
            record.unwrap().set_modified(long_ago).unwrap();
        }
    }

    /// A pass with the offline rules; then nothing is missing and nothing back.
    fn pass(&mut self) {
        let head = self.sandbox.head();
        let now = self.time(21);
        self.let_time_pass();
        let run = self.sandbox.at(&now).run(&["run"]);
        assert_eq!(run.code, Some(0), "{}\n{}", run.stderr, self.diary);
        let range = format!("{head}..main");
        let subjects = self.sandbox.git(&["log", "--format=%s", &range]);
        let made = subjects
            .lines()
            .filter(|line| line.starts_with("baseline:"));
        self.baselines += made.count();
        let memory = self.memory();
        for gone in &self.gone {
            assert!(!memory.contains(gone), "is back: {gone}\n{}", self.diary);
        }
        for own in &self.own_lines {
            assert!(memory.contains(own), "is lost: {own}\n{}", self.diary);
        }
    }
}

/// Bytes of all files below a folder.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let bytes = entries.map(|entry| match entry.metadata().unwrap() {
        it if it.is_dir() => bytes_below(&entry.path()),
        it => it.len(),
    });
    bytes.sum()
}

#[test]
fn a_year_of_baselines_keeps_every_promise() {
    let wanted = std::env::var("MEMREV_TEST_BASELINES").ok();
    let wanted = wanted.map_or(BASELINES, |count| count.parse().unwrap());
    let mut year = Year::begin(7);
    while year.baselines < wanted {
        year.step();
        let steps_max = u64::try_from(2 * wanted).unwrap();
        assert!(year.step < steps_max, "too few baselines\n{}", year.diary);
    }
    let sandbox = &year.sandbox;
    sandbox.assert_sound();
    let bytes = bytes_below(&sandbox.memories().join(".git"));
    assert!(bytes < REPOSITORY_BYTES_MAX, "{bytes} bytes");
    assert_every_loss_is_explained(sandbox);
    assert_every_line_has_an_origin(sandbox);
}

/// Every baseline that let entries go says of each why.
fn assert_every_loss_is_explained(sandbox: &Sandbox) {
    let bodies = sandbox.git(&["log", "--format=%B", "--grep", "^Memrev-Kind: baseline"]);
    let counts = bodies.lines().filter(|line| line.starts_with("Entries: "));
    let counts: Vec<&str> = counts.collect();
    assert!(!counts.is_empty(), "{bodies}");
    for count in counts {
        assert!(count.ends_with(" 0 gone without a reason"), "{count}");
    }
}

/// Of lines spread over the memory files, `why` knows where each is from.
fn assert_every_line_has_an_origin(sandbox: &Sandbox) {
    for file in ["memory_summary.md", "MEMORY.md"] {
        let text = sandbox.read(file);
        let is_statement = |(_, line): &(usize, &str)| line.trim_start().starts_with("- ");
        let lines: Vec<usize> = (text.lines().enumerate())
            .filter(is_statement)
            .map(|(index, _)| index + 1)
            .collect();
        let every = (lines.len() * 2 / LINES_ASKED).max(1);
        for line in lines.into_iter().step_by(every) {
            let place = format!("{file}:{line}");
            let why = sandbox.run(&["why", &place, "--json"]).success().json();
            let commit = &why["answers"][0]["origin"]["commit"]["commit"];
            assert!(commit.is_string(), "{place}: {why}");
        }
    }
}
