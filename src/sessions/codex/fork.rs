//! Which records of a fork or sub-agent are copies of its parent's.
//!
//! A fork begins with its own `session_meta`, then repeats the parent's whole
//! history, then goes on. The copy ends where a record belongs to a turn that
//! began after the fork did; where turns have no ids, where a record is not
//! the parent's; and where the parent is not at hand, where writing paused.

use std::collections::HashMap;
use std::io::{self, Read};

use crate::domain::session::ReadReport;
use crate::domain::time::Timestamp;
use crate::sessions::codex::wire::{Line, Payload};
use crate::sessions::records::{self, Sink, Taken};

/// Copies are written in one go: a longer pause ends them, in milliseconds.
const COPY_PAUSE_MILLIS_MAX: i64 = 1_000;

/// Most records of a parent that are remembered; 16 bytes each.
const PARENT_RECORDS_MAX: usize = 1_000_000;

/// Where each record of the parent stands, by identity.
#[derive(Debug, Default)]
pub(in crate::sessions) struct ParentKeys {
    places: HashMap<u64, Vec<u32>>,
    count: u32,
}

impl ParentKeys {
    fn push(&mut self, identity: u64) {
        self.places.entry(identity).or_default().push(self.count);
        self.count = self.count.saturating_add(1);
    }

    fn next_place(&self, identity: u64, from: u32) -> Option<u32> {
        let places = self.places.get(&identity)?;
        places.iter().copied().find(|place| *place >= from)
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Reads which items a parent's rollout has.
///
/// # Errors
///
/// When it cannot be read.
pub(in crate::sessions) fn read_parent(source: impl Read) -> io::Result<ParentKeys> {
    struct Keys(ParentKeys);
    impl Sink for Keys {
        fn take(&mut self, _: u64, json: &str) -> Result<Taken, serde_json::Error> {
            let line: Line<'_> = serde_json::from_str(json)?;
            if line.kind.is("response_item")
                && let Some(payload) = line.payload.get()
            {
                self.0.push(payload.identity());
            }
            Ok(Taken::Read)
        }
        fn is_satisfied(&self) -> bool {
            self.0.count as usize >= PARENT_RECORDS_MAX
        }
    }
    let mut keys = Keys(ParentKeys::default());
    records::walk(source, &mut keys, &mut ReadReport::default())?;
    Ok(keys.0)
}

/// Follows a copy until it ends.
#[derive(Debug)]
pub(super) struct Copying {
    /// When this session's own id was made, from its v7 id.
    born_millis: Option<i64>,
    /// A record of the parent's own has been seen: this file holds a copy.
    pub(super) is_certain: bool,
    place: u32,
    last_at: Option<Timestamp>,
}

impl Copying {
    pub(super) fn new(own_id: &str, at: Option<Timestamp>, is_certain: bool) -> Self {
        Self {
            born_millis: millis_of_id(own_id),
            is_certain,
            place: 0,
            last_at: at,
        }
    }

    /// Whether this record is still part of the copy.
    pub(super) fn covers(
        &mut self,
        is_item: bool,
        payload: &Payload<'_>,
        at: Option<Timestamp>,
        parent: &ParentKeys,
    ) -> bool {
        if let (Some(born), Some(turn)) = (self.born_millis, payload.turn().and_then(millis_of_id))
        {
            self.last_at = at;
            return turn < born;
        }
        if !is_item {
            return true;
        }
        if !parent.is_empty() {
            let place = parent.next_place(payload.identity(), self.place);
            self.place = place.map_or(self.place, |place| place + 1);
            return place.is_some();
        }
        if !self.is_certain {
            return false;
        }
        let pause = at
            .zip(self.last_at)
            .map(|(at, last)| at.millis() - last.millis());
        self.last_at = at.or(self.last_at);
        pause.is_none_or(|pause| pause <= COPY_PAUSE_MILLIS_MAX)
    }
}

/// The time in a v7 UUID, in milliseconds since the epoch.
fn millis_of_id(id: &str) -> Option<i64> {
    let bytes = id.as_bytes();
    let is_v7 = bytes.len() == 36 && bytes[14] == b'7' && bytes[8] == b'-' && id.is_ascii();
    if !is_v7 {
        return None;
    }
    let high = i64::from_str_radix(&id[..8], 16).ok()?;
    let low = i64::from_str_radix(&id[9..13], 16).ok()?;
    Some((high << 16) | low)
}
