//! What models were asked, by day, and the day's hard limits.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::domain::text::Redacted;
use crate::domain::time::Timestamp;
use crate::ledger::error::LedgerError;
use crate::ledger::row::RETRY_SECONDS_MAX;
use crate::ledger::{Ledger, while_trying_to};
use crate::sys::stop;

const DAY_SECONDS: i64 = 86_400;

/// Most tokens that one call is taken to have cost, whatever it claims.
const TOKENS_PER_CALL_MAX: u64 = 1_000_000_000;

/// What a model was asked on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spend {
    /// `2026-12-01`, UTC.
    pub(crate) day: String,
    pub(crate) model: String,
    pub(crate) calls: u64,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
}

/// Hard limits of one day over all models; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DayLimits {
    pub(crate) calls_max: Option<u64>,
    pub(crate) tokens_max: Option<u64>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPermit {
    /// It is counted already.
    Granted,
    Denied(Denial),
}

/// Why a call may not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// This pass has made all of its calls.
    CallsOfPass,
    /// The day's calls are used up until then.
    CallsOfDay { until: Timestamp },
    /// The day's tokens are used up until then.
    TokensOfDay { until: Timestamp },
    /// The service asked not to be asked before then.
    Patience { until: Timestamp },
}

impl Denial {
    /// When it ends by itself; `None` for what ends with the pass.
    pub(crate) const fn until(self) -> Option<Timestamp> {
        match self {
            Self::CallsOfPass => None,
            Self::CallsOfDay { until } | Self::TokensOfDay { until } | Self::Patience { until } => {
                Some(until)
            }
        }
    }

    /// The limit, with the setting it comes from.
    pub(crate) const fn limit(self) -> &'static str {
        match self {
            Self::CallsOfPass => "of calls in one pass (`model.calls_per_pass_max`)",
            Self::CallsOfDay { .. } => "of calls in one day (`model.calls_per_day_max`)",
            Self::TokensOfDay { .. } => "of tokens in one day (`model.tokens_per_day_max`)",
            Self::Patience { .. } => "of the service's own",
        }
    }
}

/// What one pass may spend, over all its stages and threads.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Calls of this pass; `None` is no limit.
    pub(crate) calls_max: Option<u64>,
    pub(crate) day: DayLimits,
    /// A service that asked for patience is not asked before its time: so in
    /// the background. A person may try all the same.
    pub(crate) is_patient: bool,
    made: AtomicU64,
}

impl Budget {
    pub(crate) const fn new(calls_max: Option<u64>, day: DayLimits) -> Self {
        Self {
            calls_max,
            day,
            is_patient: false,
            made: AtomicU64::new(0),
        }
    }
}

impl Ledger {
    /// Takes one call out of the budgets of pass and day, before the call is made, so
    /// that processes at once cannot overdraw it.
    ///
    /// # Errors
    ///
    /// When SQLite fails; then no call may be made.
    pub(crate) fn take_call(
        &mut self,
        model: &Redacted,
        budget: &Budget,
        now: Timestamp,
    ) -> Result<CallPermit, LedgerError> {
        let attempt = "count a call";
        let made = budget.made.fetch_add(1, Ordering::Relaxed);
        if budget.calls_max.is_some_and(|most| most <= made) {
            return Ok(CallPermit::Denied(Denial::CallsOfPass));
        }
        let limits = budget.day;
        let day = now.date();
        let until = Timestamp::from_seconds(
            (now.seconds().div_euclid(DAY_SECONDS) + 1).saturating_mul(DAY_SECONDS),
        );
        let permit = self.immediate_flushed(attempt, |tx| {
            let hold = held_until(tx, model, now).map_err(while_trying_to(attempt))?;
            if let Some(until) = hold.filter(|_| budget.is_patient) {
                return Ok(CallPermit::Denied(Denial::Patience { until }));
            }
            let sql = "SELECT ifnull(sum(calls), 0), ifnull(sum(tokens_in + tokens_out), 0)
                 FROM spend WHERE day = ?1";
            let (calls, tokens): (i64, i64) = tx
                .query_row(sql, [&day], |row| Ok((row.get(0)?, row.get(1)?)))
                .map_err(while_trying_to(attempt))?;
            if limits.calls_max.is_some_and(|most| most <= unsigned(calls)) {
                return Ok(CallPermit::Denied(Denial::CallsOfDay { until }));
            }
            if (limits.tokens_max).is_some_and(|most| most <= unsigned(tokens)) {
                return Ok(CallPermit::Denied(Denial::TokensOfDay { until }));
            }
            let sql = "INSERT INTO spend (day, model, calls, tokens_in, tokens_out)
                 VALUES (?1, ?2, 1, 0, 0) ON CONFLICT DO UPDATE SET calls = calls + 1";
            tx.execute(sql, [day.as_str(), model.as_str()])
                .map_err(while_trying_to(attempt))?;
            Ok(CallPermit::Granted)
        })?;
        stop::point("ledger.call_taken");
        Ok(permit)
    }

    /// Adds the tokens that a call turned out to cost.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn add_tokens(
        &mut self,
        model: &Redacted,
        tokens_in: u64,
        tokens_out: u64,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let attempt = "count tokens";
        // A count that no call can reach would overflow the day's sum.
        let signed = |tokens: u64| i64::try_from(tokens.min(TOKENS_PER_CALL_MAX)).unwrap_or(0);
        self.immediate_flushed(attempt, |tx| {
            let sql = "INSERT INTO spend (day, model, calls, tokens_in, tokens_out)
                 VALUES (?1, ?2, 0, ?3, ?4) ON CONFLICT DO UPDATE SET
                   tokens_in = tokens_in + excluded.tokens_in,
                   tokens_out = tokens_out + excluded.tokens_out";
            let values = params![
                now.date(),
                model.as_str(),
                signed(tokens_in),
                signed(tokens_out)
            ];
            tx.execute(sql, values).map_err(while_trying_to(attempt))?;
            Ok(())
        })
    }

    /// Writes down that the service behind `model` does not want to be asked
    /// before `until`; a day is the longest that is believed.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn hold(
        &mut self,
        model: &Redacted,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let attempt = "write down that a service asks for patience";
        let until = until.seconds().min(now.seconds() + RETRY_SECONDS_MAX);
        self.immediate(attempt, |tx| {
            let sql = "INSERT INTO holds (service, until) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET until = excluded.until";
            tx.execute(sql, params![service(model.as_str()), until])
                .map_err(while_trying_to(attempt))?;
            Ok(())
        })
    }

    /// Lifts what [`Ledger::hold`] wrote down: the service has answered.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn lift_hold(&mut self, model: &Redacted) -> Result<(), LedgerError> {
        let attempt = "write down that a service answers again";
        self.immediate(attempt, |tx| {
            tx.execute(
                "DELETE FROM holds WHERE service = ?1",
                [service(model.as_str())],
            )
            .map_err(while_trying_to(attempt))?;
            Ok(())
        })
    }

    /// The services that asked for patience, and until when.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn holds(&self, now: Timestamp) -> Result<Vec<(String, Timestamp)>, LedgerError> {
        let read = || -> rusqlite::Result<Vec<(String, Timestamp)>> {
            let sql = "SELECT service, until FROM holds ORDER BY service";
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let rows: Vec<(String, i64)> = rows.collect::<rusqlite::Result<_>>()?;
            let live = rows.into_iter().filter_map(|(service, until)| {
                live_hold(until, now.seconds()).map(|until| (service, until))
            });
            Ok(live.collect())
        };
        read().map_err(self.while_trying_to("read which services ask for patience"))
    }

    /// What was spent since `day` (`2026-12-01`, inclusive), by day and model.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn spend_since(&self, day: &str) -> Result<Vec<Spend>, LedgerError> {
        let read = || -> rusqlite::Result<Vec<Spend>> {
            let sql = "SELECT day, model, calls, tokens_in, tokens_out FROM spend
                 WHERE ?1 <= day ORDER BY day, model";
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([day], |row| {
                Ok(Spend {
                    day: row.get(0)?,
                    model: row.get(1)?,
                    calls: unsigned(row.get(2)?),
                    tokens_in: unsigned(row.get(3)?),
                    tokens_out: unsigned(row.get(4)?),
                })
            })?;
            rows.collect()
        };
        read().map_err(self.while_trying_to("read what was spent"))
    }
}

fn held_until(
    tx: &Transaction<'_>,
    model: &Redacted,
    now: Timestamp,
) -> rusqlite::Result<Option<Timestamp>> {
    let until: Option<i64> = tx
        .query_row(
            "SELECT until FROM holds WHERE service = ?1",
            [service(model.as_str())],
            |row| row.get(0),
        )
        .optional()?;
    Ok(until.and_then(|until| live_hold(until, now.seconds())))
}

/// The back end of `chat/small`: all of its models are asked at one address.
fn service(model: &str) -> &str {
    model.split('/').next().unwrap_or(model)
}

/// A hold that is over, or further ahead than any is given, does not count.
fn live_hold(until: i64, now: i64) -> Option<Timestamp> {
    let is_live = now < until && until - now <= RETRY_SECONDS_MAX;
    is_live.then(|| Timestamp::from_seconds(until))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
