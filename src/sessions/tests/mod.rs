//! The readers against a corpus, against damage made on the spot, and against
//! sizes that cannot be committed.

mod corpus;
mod damage;
mod files;
mod sizes;

use std::path::Path;

use crate::domain::session::{Agent, Session};
use crate::sessions::{Found, read};

/// A rollout's first line.
const META: &str = r#"{"timestamp":"2026-05-04T23:50:00.000Z","type":"session_meta","payload":{"id":"019c0000-0000-7000-8000-000000000900","cwd":"/work/atlas"}}"#;

/// A person's message as a rollout line; `text` must need no escapes.
fn message(second: u32, text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-05-04T23:50:{second:02}.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    )
}

fn read_codex(path: &Path) -> Session {
    let found = Found::at(Agent::Codex, path, None).unwrap();
    read(&found).unwrap()
}

/// The texts of all items, in order.
fn texts(session: &Session) -> Vec<&str> {
    let items = session.items.iter();
    items.map(|item| item.text.unredacted()).collect()
}

fn put(path: &Path, bytes: &[u8]) {
    crate::sys::fs::make_folders(path.parent().unwrap()).unwrap();
    // Nothing here outlives the test, so nothing is flushed.
    let mut file = std::fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
}
