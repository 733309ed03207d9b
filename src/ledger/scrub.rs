//! Rows that name what is purged go, and the file keeps no trace of them.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::ledger::{Ledger, LedgerError};
use crate::sys::stop;

impl Ledger {
    /// How many rows name what `is_hit` finds.
    ///
    /// # Errors
    ///
    /// When SQLite fails.
    pub(crate) fn rows_with(&self, is_hit: &dyn Fn(&[u8]) -> bool) -> Result<usize, LedgerError> {
        let found = find(&self.connection, is_hit);
        let found = found.map_err(self.while_trying_to("look through the ledger"))?;
        Ok(found.len())
    }

    /// Removes them, writes the file anew without free pages, and empties the
    /// write-ahead log. All it holds may be forgotten (see the module).
    ///
    /// # Errors
    ///
    /// When SQLite fails; what was removed before is gone.
    pub(crate) fn scrub(&mut self, is_hit: &dyn Fn(&[u8]) -> bool) -> Result<usize, LedgerError> {
        let attempt = "remove what is purged from the ledger";
        let work = |connection: &Connection| -> rusqlite::Result<usize> {
            connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
            let found = find(connection, is_hit)?;
            for row in &found {
                let wheres: Vec<String> = (row.keys.iter().enumerate())
                    .map(|(index, (name, _))| format!("\"{name}\" IS ?{}", index + 1))
                    .collect();
                let sql = format!(
                    "DELETE FROM \"{}\" WHERE {}",
                    row.table,
                    wheres.join(" AND ")
                );
                let values = row.keys.iter().map(|(_, value)| value);
                connection.execute(&sql, params_from_iter(values))?;
            }
            stop::point("ledger.scrubbed");
            connection.execute_batch("VACUUM")?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(found.len())
        };
        let scrubbed = work(&self.connection);
        stop::point("ledger.vacuumed");
        scrubbed.map_err(self.while_trying_to(attempt))
    }
}

/// A row by its primary key.
struct Found {
    table: String,
    keys: Vec<(String, Value)>,
}

fn find(connection: &Connection, is_hit: &dyn Fn(&[u8]) -> bool) -> rusqlite::Result<Vec<Found>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let tables: Vec<String> = connection
        .prepare(sql)?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut found = Vec::new();
    for table in tables {
        let columns: Vec<(String, i64)> = connection
            .prepare(&format!("PRAGMA table_info(\"{table}\")"))?
            .query_map([], |row| Ok((row.get(1)?, row.get(5)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\""))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut keys = Vec::new();
            let mut has_hit = false;
            for (index, (name, key)) in columns.iter().enumerate() {
                let value: Value = row.get(index)?;
                has_hit |= match &value {
                    Value::Text(text) => is_hit(text.as_bytes()),
                    Value::Blob(bytes) => is_hit(bytes),
                    _ => false,
                };
                if 0 < *key {
                    keys.push((name.clone(), value));
                }
            }
            // The one table without a key holds the ledger's own id.
            if has_hit && !keys.is_empty() {
                let table = table.clone();
                found.push(Found { table, keys });
            }
        }
    }
    Ok(found)
}
