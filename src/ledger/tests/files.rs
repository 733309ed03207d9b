//! The file itself: made, damaged, deleted, of another program or time.

use rusqlite::Connection;

use super::{Home, at, thread};
use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::domain::version::MemoryVersion;
use crate::ledger::schema::{MIGRATIONS, migrate, newest};
use crate::ledger::{
    ConsolidationClaim, Demand, ExtractionClaim, Ledger, LedgerError, OpenError, Pace,
};
use crate::sys::fs;

#[test]
fn a_new_ledger_is_private_and_alone() {
    let home = Home::new();
    let opened = Ledger::open(&home.path(), at(0)).unwrap();
    assert!(opened.is_new && opened.set_aside.is_none());
    let pragma = |name: &str| -> String {
        let value = opened
            .ledger
            .connection
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        match value.unwrap() {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => panic!("{other:?}"),
        }
    };
    for (name, value) in [
        ("journal_mode", "wal"),
        ("synchronous", "1"),
        ("busy_timeout", "5000"),
        ("trusted_schema", "0"),
        ("application_id", "1836213622"),
        ("user_version", "2"),
    ] {
        assert_eq!(pragma(name), value, "{name}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(home.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let id = opened.ledger.id;
    drop(opened);
    assert_eq!(home.names(), ["ledger.lock", "ledger.sqlite"]);
    let again = Ledger::open(&home.path(), at(1)).unwrap();
    assert!(!again.is_new);
    assert_eq!(again.ledger.id, id);
}

#[test]
fn all_tables_are_strict() {
    let home = Home::new();
    let ledger = home.open();
    let sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND NOT strict
         AND name NOT LIKE 'sqlite_%'";
    let mut statement = ledger.connection.prepare(sql).unwrap();
    let loose: Vec<String> = (statement.query_map([], |row| row.get(0)).unwrap())
        .map(Result::unwrap)
        .collect();
    assert_eq!(loose, [""; 0]);
}

type Damage = fn(&mut Vec<u8>);

/// A page of bytes that are the same every time and mean nothing.
fn noise() -> Vec<u8> {
    (0..128_u32)
        .flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes())
        .collect()
}

#[test]
fn a_damaged_file_is_set_aside_with_its_time_and_made_anew() {
    let now = Timestamp::parse_rfc3339("2026-12-01T05:33:44Z").unwrap();
    let damages: [(&str, Damage); 7] = [
        ("zero-length", Vec::clear),
        ("random bytes over page 1", |bytes| {
            bytes[..4096].copy_from_slice(&noise());
        }),
        ("random bytes behind the header", |bytes| {
            bytes[100..4096].copy_from_slice(&noise()[100..]);
        }),
        ("zeros over page 1", |bytes| bytes[..4096].fill(0)),
        ("truncated in a page", |bytes| bytes.truncate(6_000)),
        ("truncated to a few bytes", |bytes| bytes.truncate(50)),
        ("another kind of file", |bytes| {
            *bytes = b"once upon a time\n".repeat(500);
        }),
    ];
    for (name, damage) in damages {
        let home = Home::new();
        let first = home.open().id;
        let mut bytes = fs::read(&home.path(), 1 << 20).unwrap();
        damage(&mut bytes);
        fs::replace(&home.path(), &bytes).unwrap();

        assert!(
            Ledger::open_in_passing(&home.path()).unwrap().is_none(),
            "{name}"
        );
        let mut opened = Ledger::open(&home.path(), now).unwrap();
        let aside = opened.set_aside.unwrap();
        assert_eq!(
            aside.file_name().unwrap(),
            "ledger.damaged-2026-12-01T05-33-44.sqlite"
        );
        assert_eq!(
            fs::read(&aside, 1 << 20).unwrap(),
            bytes,
            "{name}: kept as it was"
        );
        assert!(opened.is_new, "{name}");
        assert_ne!(opened.ledger.id, first, "{name}");
        let claim = opened
            .ledger
            .claim_consolidation(MemoryVersion::V1, Pace::Background, now);
        assert!(
            matches!(claim.unwrap(), ConsolidationClaim::Claimed(_)),
            "{name}"
        );
    }
}

#[test]
fn the_second_damaged_file_of_a_second_does_not_replace_the_first() {
    let home = Home::new();
    for _ in 0..2 {
        fs::replace(&home.path(), b"").unwrap();
        Ledger::open(&home.path(), at(0)).unwrap();
    }
    let aside: Vec<_> = (home.names().into_iter())
        .filter(|name| name.starts_with("ledger.damaged"))
        .collect();
    let stamp = "ledger.damaged-1970-01-01T00-00-00";
    assert_eq!(
        aside,
        [format!("{stamp}-2.sqlite"), format!("{stamp}.sqlite")]
    );
}

#[test]
fn damage_that_opening_does_not_see_is_mended_by_the_next_open() {
    let home = Home::new();
    let mut ledger = home.open();
    for n in 0..400 {
        let model = Redacted::seal(format!("model-{n:0>60}"));
        ledger.add_tokens(&model, 1, 1, at(0)).unwrap();
    }
    drop(ledger);
    let mut bytes = fs::read(&home.path(), 1 << 24).unwrap();
    // Everything but the schema's page.
    bytes[4096..].fill(0xA5);
    fs::replace(&home.path(), &bytes).unwrap();

    // What every file has is gone with the rest: the id, so opening sees it.
    let opened = Ledger::open(&home.path(), at(0)).unwrap();
    assert!(opened.set_aside.is_some());
    drop(opened);

    // The same with the id's page whole.
    let mut ledger = home.open();
    for n in 0..400 {
        let model = Redacted::seal(format!("model-{n:0>60}"));
        ledger.add_tokens(&model, 1, 1, at(0)).unwrap();
    }
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'spend'";
    let page: i64 = ledger
        .connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap();
    drop(ledger);
    let mut bytes = fs::read(&home.path(), 1 << 24).unwrap();
    let end = usize::try_from(page).unwrap() * 4096;
    bytes[end - 4096..end].fill(0xA5);
    fs::replace(&home.path(), &bytes).unwrap();
    let ledger = home.open();
    let error = ledger.spend_since("1970-01-01").unwrap_err();
    assert!(matches!(error, LedgerError::Damaged { .. }), "{error}");
    drop(ledger);
    let opened = Ledger::open(&home.path(), at(0)).unwrap();
    assert!(opened.is_new && opened.set_aside.is_some());
    assert_eq!(opened.ledger.spend_since("1970-01-01").unwrap(), []);
    assert!(!home.names().iter().any(|name| name.ends_with("doubt")));
}

#[test]
fn a_doubt_that_was_not_warranted_is_dropped() {
    let home = Home::new();
    let id = home.open().id;
    fs::replace(&home.folder.path().join("ledger.sqlite-doubt"), b"").unwrap();
    assert!(
        Ledger::open_in_passing(&home.path()).unwrap().is_none(),
        "no time to look"
    );
    assert_eq!(home.open().id, id);
    assert_eq!(home.names(), ["ledger.lock", "ledger.sqlite"]);
}

#[test]
fn a_later_schema_is_refused_politely_and_left_alone() {
    let home = Home::new();
    home.open()
        .connection
        .pragma_update(None, "user_version", 7)
        .unwrap();
    let before = fs::read(&home.path(), 1 << 20).unwrap();
    let error = Ledger::open(&home.path(), at(0)).unwrap_err();
    let path = home.path();
    assert_eq!(
        error.to_string(),
        format!(
            "the ledger `{}` has schema 7, and this version of memrev knows schemas up to 2",
            path.display()
        )
    );
    assert!(matches!(
        error,
        OpenError::NewerSchema {
            found: 7,
            known: 2,
            ..
        }
    ));
    assert_eq!(fs::read(&path, 1 << 20).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let home = Home::new();
    let other = Connection::open(home.path()).unwrap();
    other
        .execute_batch("CREATE TABLE songs (title TEXT)")
        .unwrap();
    drop(other);
    let error = Ledger::open(&home.path(), at(0)).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!(home.names(), ["ledger.sqlite"]);
}

#[test]
fn what_cannot_be_a_ledger_is_an_error_the_read_path_can_live_with() {
    let home = Home::new();
    std::fs::create_dir(home.path()).unwrap();
    Ledger::open(&home.path(), at(0)).unwrap_err();
    Ledger::open_in_passing(&home.path()).unwrap_err();
    let nowhere = home.folder.path().join("none/ledger.sqlite");
    Ledger::open(&nowhere, at(0)).unwrap_err();
    assert!(Ledger::open_in_passing(&nowhere).unwrap().is_none());
}

#[test]
fn looking_makes_nothing_and_changes_nothing() {
    let home = Home::new();
    assert!(Ledger::open_to_read(&home.path()).unwrap().is_none());
    assert!(Ledger::open_in_passing(&home.path()).unwrap().is_none());
    assert_eq!(home.names(), [""; 0]);
    drop(home.open());
    let before = fs::read(&home.path(), 1 << 20).unwrap();
    let mut ledger = Ledger::open_to_read(&home.path()).unwrap().unwrap();
    assert_eq!(ledger.jobs(MemoryVersion::V1, at(0)).unwrap(), []);
    ledger.reset(MemoryVersion::V1).unwrap_err();
    drop(ledger);
    assert_eq!(home.names(), ["ledger.lock", "ledger.sqlite"]);
    assert_eq!(fs::read(&home.path(), 1 << 20).unwrap(), before);
}

#[test]
fn a_lease_from_a_deleted_ledger_counts_no_more() {
    let home = Home::new();
    let mut old = home.open();
    let claim = old.claim_consolidation(MemoryVersion::V1, Pace::Background, at(0));
    let ConsolidationClaim::Claimed(lease) = claim.unwrap() else {
        panic!("nobody else asked");
    };
    for end in ["", "-wal", "-shm"] {
        fs::remove(&home.folder.path().join(format!("ledger.sqlite{end}"))).unwrap();
    }
    let error = old.renew(&lease, at(1)).unwrap_err();
    assert!(error.is_lost(), "{error}");

    let mut new = home.open();
    let claim = new.claim_consolidation(MemoryVersion::V1, Pace::Background, at(2));
    assert!(matches!(claim.unwrap(), ConsolidationClaim::Claimed(_)));
    assert!(old.renew(&lease, at(3)).unwrap_err().is_lost());
    assert!(
        new.renew(&lease, at(3)).unwrap_err().is_lost(),
        "another ledger's lease"
    );
    let claim = old.claim_extraction(
        MemoryVersion::V1,
        &thread("a"),
        at(1),
        9,
        Demand::Due,
        at(3),
    );
    assert!(
        claim.is_err(),
        "a claim that nobody else could see is not granted"
    );
}

#[test]
fn journals_that_outlived_their_file_do_not_reach_the_new_one() {
    let home = Home::new();
    let mut ledger = home.open();
    let claim = ledger.claim_extraction(
        MemoryVersion::V1,
        &thread("a"),
        at(1),
        9,
        Demand::Due,
        at(0),
    );
    assert!(matches!(claim.unwrap(), ExtractionClaim::Claimed(_)));
    let journal = fs::read(&home.folder.path().join("ledger.sqlite-wal"), 1 << 24).unwrap();
    assert!(!journal.is_empty());
    drop(ledger);
    fs::remove(&home.path()).unwrap();
    fs::replace(&home.folder.path().join("ledger.sqlite-wal"), &journal).unwrap();
    let opened = Ledger::open(&home.path(), at(0)).unwrap();
    assert!(opened.is_new && opened.set_aside.is_none());
    assert_eq!(opened.ledger.jobs(MemoryVersion::V1, at(0)).unwrap(), []);
}

#[test]
fn half_made_files_of_a_crash_are_swept() {
    let home = Home::new();
    for end in ["", "-wal", "-shm"] {
        let name = format!(".ledger.sqlite.memrev-0123.tmp{end}");
        fs::replace(&home.folder.path().join(name), b"half").unwrap();
    }
    drop(home.open());
    assert_eq!(home.names(), ["ledger.lock", "ledger.sqlite"]);
}

#[test]
fn migrations_are_applied_once_each_in_order() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, MIGRATIONS).unwrap();
    let mut longer = MIGRATIONS.to_vec();
    longer.push("CREATE TABLE later (x INTEGER) STRICT");
    longer.push("INSERT INTO later VALUES (7)");
    migrate(&mut connection, &longer).unwrap();
    migrate(&mut connection, &longer).unwrap();
    let rows: i64 =
        (connection.query_row("SELECT count(*) FROM later", [], |row| row.get(0))).unwrap();
    assert_eq!(rows, 1);
    let version: i64 =
        (connection.pragma_query_value(None, "user_version", |row| row.get(0))).unwrap();
    assert_eq!(version, newest(&longer));
    let older = migrate(&mut connection, MIGRATIONS);
    older.unwrap();
    let kept: i64 =
        (connection.pragma_query_value(None, "user_version", |row| row.get(0))).unwrap();
    assert_eq!(kept, newest(&longer), "never back");
}
