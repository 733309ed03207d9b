//! Many at once. Every thread opens a connection of its own, which to SQLite
//! and to the file locks is what a process is.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread as threads;

use rusqlite::{Connection, TransactionBehavior};

use super::{Home, at, thread};
use crate::domain::session::Citation;
use crate::domain::text::{Raw, Redacted};
use crate::domain::version::MemoryVersion;
use crate::ledger::{
    Budget, CallPermit, DayLimits, Demand, ExtractionClaim, ExtractionEnd, Ledger, LedgerError,
};
use crate::sys::fs;

const AT_ONCE: usize = 8;

/// Runs `work` in several threads that begin together; what each gave back.
fn at_once<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(AT_ONCE);
    threads::scope(|scope| {
        let begin = |index| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(index)
            })
        };
        let running: Vec<_> = (0..AT_ONCE).map(begin).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[test]
fn a_missing_ledger_is_made_once() {
    let home = Home::new();
    let made = at_once(|_| Ledger::open(&home.path(), at(0)).unwrap());
    assert_eq!(made.iter().filter(|opened| opened.is_new).count(), 1);
    assert!(
        made.iter()
            .all(|opened| opened.ledger.id == made[0].ledger.id)
    );
    drop(made);
    assert_eq!(home.names(), ["ledger.lock", "ledger.sqlite"]);
}

#[test]
fn a_damaged_ledger_is_set_aside_once() {
    let home = Home::new();
    fs::replace(&home.path(), b"not a database").unwrap();
    let made = at_once(|_| Ledger::open(&home.path(), at(0)).unwrap());
    let set_aside = made.iter().filter(|opened| opened.set_aside.is_some());
    assert_eq!(set_aside.count(), 1);
    assert_eq!(made.iter().filter(|opened| opened.is_new).count(), 1);
    assert!(
        made.iter()
            .all(|opened| opened.ledger.id == made[0].ledger.id)
    );
}

#[test]
fn each_session_is_extracted_once_and_never_more_at_once_than_allowed() {
    const SESSIONS: usize = 30;
    const RUNNING_MAX: u32 = 3;
    let home = Home::new();
    drop(home.open());
    let running = AtomicU32::new(0);
    let granted: Vec<AtomicU32> = (0..SESSIONS).map(|_| AtomicU32::new(0)).collect();
    at_once(|index| {
        let mut ledger = home.open();
        let mut left: Vec<usize> = (0..SESSIONS).collect();
        left.rotate_left(index);
        while let Some(session) = left.pop() {
            let id = thread(&format!("t{session}"));
            let claim = ledger.claim_extraction(
                MemoryVersion::V1,
                &id,
                at(5),
                RUNNING_MAX,
                Demand::Due,
                at(10),
            );
            match claim.unwrap() {
                ExtractionClaim::Claimed(lease) => {
                    let now_running = running.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(now_running <= RUNNING_MAX, "{now_running} at once");
                    granted[session].fetch_add(1, Ordering::SeqCst);
                    running.fetch_sub(1, Ordering::SeqCst);
                    ledger
                        .finish_extraction(&lease, ExtractionEnd::Done, at(11))
                        .unwrap();
                }
                ExtractionClaim::UpToDate => {}
                ExtractionClaim::Running { .. } | ExtractionClaim::AtCapacity { .. } => {
                    left.insert(0, session);
                    threads::yield_now();
                }
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(
        granted
            .iter()
            .all(|count| count.load(Ordering::SeqCst) == 1)
    );
}

#[test]
fn one_answer_told_by_many_counts_once() {
    let home = Home::new();
    drop(home.open());
    let citation = Citation {
        thread_ids: vec![thread("x")],
        answer: Raw::new("an answer"),
        occurrence: 0,
        at: None,
    };
    let counted = at_once(|_| {
        let mut ledger = home.open();
        let citations = std::slice::from_ref(&citation);
        ledger
            .record_citations(MemoryVersion::V1, &thread("c"), citations, at(9))
            .unwrap()
    });
    assert_eq!(counted.iter().sum::<usize>(), 1);
    assert_eq!(
        home.open().usage(MemoryVersion::V1).unwrap()[&thread("x")].count,
        1
    );
}

#[test]
fn a_days_calls_cannot_be_overdrawn() {
    let home = Home::new();
    drop(home.open());
    let model = Redacted::seal("small".to_owned());
    let limits = DayLimits {
        calls_max: Some(10),
        tokens_max: None,
    };
    let budget = Budget::new(None, limits);
    let granted = at_once(|_| {
        let mut ledger = home.open();
        let calls = (0..5).map(|_| ledger.take_call(&model, &budget, at(0)).unwrap());
        calls
            .filter(|permit| *permit == CallPermit::Granted)
            .count()
    });
    assert_eq!(granted.iter().sum::<usize>(), 10);
}

#[test]
fn a_hook_does_not_wait_for_a_busy_ledger() {
    let home = Home::new();
    drop(home.open());
    let mut writer = Connection::open(home.path()).unwrap();
    let held = writer
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    let started = std::time::Instant::now();
    let mut ledger = Ledger::open_in_passing(&home.path()).unwrap().unwrap();
    assert!(
        ledger.usage(MemoryVersion::V1).unwrap().is_empty(),
        "reading goes on"
    );
    let error = ledger.reset(MemoryVersion::V1).unwrap_err();
    assert!(matches!(error, LedgerError::Busy { .. }), "{error}");
    assert!(
        started.elapsed().as_secs() < 3,
        "far less than the five seconds of others"
    );
    drop(held);
    ledger.reset(MemoryVersion::V1).unwrap();
}
