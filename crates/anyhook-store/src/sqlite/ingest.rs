//! Stores events, and keeps sums, sessions and the search index in the same transaction.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params, params_from_iter};

use crate::error::Result;
use crate::names::{Facet, Origin, id_bytes};
use crate::query::IngestCounts;
use crate::rollup::{
    HOUR_LEVEL, HOUR_US, LowerSums, NumberedRun, RollupChanges, RunEffect, StoredSums, SumKey,
    decode_runs, encode_runs,
};
use crate::row::{EventRow, saturating_i64};
use crate::session_changes::SessionChange;
use crate::sql::ResultRow;
use crate::sqlite::connections::sql_value;
use crate::sqlite::identifiers::{self, IdentifierRows};
use crate::sqlite::names::NumberCache;
use crate::sqlite::upgrade;

/// Events of one row of `anyhook_blocks`.
pub(crate) const BLOCK_EVENTS: i64 = 1024;
/// What an event takes besides its record: columns, indexes and its part of the search index.
pub(crate) const ROW_OVERHEAD_BYTES: i64 = 400;

/// Stores the rows whose id is new. A row with a number of its own keeps it.
pub(crate) fn insert_events(
    transaction: &Transaction<'_>,
    names: &mut NumberCache,
    rows: &[EventRow],
    bodies: &[Vec<u8>],
) -> Result<IngestCounts> {
    let has_old = upgrade::has_old_events(transaction)?;
    let mut insert_event = transaction.prepare_cached(
        "INSERT INTO anyhook_events \
         (seq, id, time_us, facet, origin, session, duration_ms, runs, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING",
    )?;
    let mut insert_text =
        transaction.prepare_cached("INSERT INTO anyhook_search (rowid, text) VALUES (?1, ?2)")?;
    let mut done = IngestCounts::default();
    let mut rollups = RollupChanges::default();
    let mut session_numbers: HashMap<(String, String), i64> = HashMap::new();
    let mut sessions: HashMap<i64, SessionChange> = HashMap::new();
    let mut blocks: HashMap<i64, (i64, i64)> = HashMap::new();
    let mut identifiers = IdentifierRows::default();
    let identifiers_from = identifiers::known_from(transaction)?;
    let mut bytes = 0;
    for (row, body) in rows.iter().zip(bodies) {
        let event = &row.summary;
        let own_seq = Some(event.seq).filter(|seq| *seq > 0);
        if has_old && own_seq.is_none() && upgrade::has_old_event(transaction, &event.id)? {
            done.duplicate += 1;
            continue;
        }
        let facet = names.facet(transaction, Facet::from_summary(event))?;
        let origin = names.origin(transaction, Origin::from_summary(event))?;
        let session = match &event.session_id {
            Some(id) => Some(
                match session_numbers.entry((id.clone(), event.agent.clone())) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        *new.insert(session_number(transaction, id, &event.agent)?)
                    }
                },
            ),
            None => None,
        };
        let mut runs = Vec::new();
        for run in row.runs.iter().filter(|run| run.has_run()) {
            runs.push(NumberedRun {
                hook: names.hook(transaction, run)?,
                effect: RunEffect::from_run(run),
                duration_ms: run.duration_ms,
            });
        }
        let inserted = insert_event.execute(params![
            own_seq,
            id_bytes(&event.id),
            event.time_us,
            facet,
            origin,
            session,
            event.duration_ms,
            encode_runs(&runs),
            body,
        ])?;
        if inserted == 0 {
            done.duplicate += 1;
            continue;
        }
        done.new += 1;
        let seq = transaction.last_insert_rowid();
        insert_text.execute(params![seq, row.text])?;
        // One with a lower number is added with its neighbours.
        if seq >= identifiers_from {
            identifiers.add(seq, &row.text);
        }
        rollups.add(event.time_us, origin, facet, event.duration_ms, &runs);
        if let Some(session) = session {
            sessions.entry(session).or_default().add(seq, event);
        }
        let (min_us, max_us) = blocks
            .entry(seq / BLOCK_EVENTS)
            .or_insert((event.time_us, event.time_us));
        *min_us = event.time_us.min(*min_us);
        *max_us = event.time_us.max(*max_us);
        bytes += stored_bytes(saturating_i64(body.len()));
    }
    identifiers.insert(transaction)?;
    apply_rollups(transaction, &rollups, 1)?;
    apply_sessions(transaction, &session_numbers, sessions)?;
    apply_blocks(transaction, &blocks)?;
    change_totals(
        transaction,
        i64::try_from(done.new).unwrap_or_default(),
        bytes,
    )?;
    Ok(done)
}

pub(crate) fn stored_bytes(body_bytes: i64) -> i64 {
    body_bytes.saturating_add(ROW_OVERHEAD_BYTES)
}

pub(crate) fn change_totals(connection: &Connection, events: i64, bytes: i64) -> Result<()> {
    let mut change = connection
        .prepare_cached("UPDATE anyhook_totals SET value = value + ?2 WHERE name = ?1")?;
    for (name, value) in [("events", events), ("bytes", bytes)] {
        if value != 0 {
            change.execute(params![name, value])?;
        }
    }
    Ok(())
}

fn apply_blocks(connection: &Connection, blocks: &HashMap<i64, (i64, i64)>) -> Result<()> {
    let mut widen = connection.prepare_cached(
        "INSERT INTO anyhook_blocks (block, min_us, max_us) VALUES (?1, ?2, ?3) \
         ON CONFLICT (block) DO UPDATE SET min_us = MIN(min_us, excluded.min_us), \
         max_us = MAX(max_us, excluded.max_us)",
    )?;
    for (block, (min_us, max_us)) in blocks {
        widen.execute(params![block, min_us, max_us])?;
    }
    Ok(())
}

/// The number of a session, which is new if nothing is known of it.
fn session_number(connection: &Connection, id: &str, agent: &str) -> Result<i64> {
    let found: Option<i64> = connection
        .prepare_cached(
            "SELECT session FROM anyhook_sessions WHERE session_id = ?1 AND agent = ?2",
        )?
        .query_row(params![id, agent], |row| row.get(0))
        .optional()?;
    if let Some(number) = found {
        return Ok(number);
    }
    connection
        .prepare_cached(
            "INSERT INTO anyhook_sessions (session_id, agent, first_us, last_us, last_seq, \
             events, tools, denials, asks) VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, 0)",
        )?
        .execute(params![id, agent, i64::MAX, i64::MIN])?;
    Ok(connection.last_insert_rowid())
}

fn apply_sessions(
    connection: &Connection,
    numbers: &HashMap<(String, String), i64>,
    changes: HashMap<i64, SessionChange>,
) -> Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE anyhook_sessions SET first_us = MIN(first_us, ?2), \
         last_seq = CASE WHEN (?3, ?4) > (last_us, last_seq) THEN ?4 ELSE last_seq END, \
         last_us = MAX(last_us, ?3), events = events + ?5, tools = tools + ?6, \
         denials = denials + ?7, asks = asks + ?8, \
         cwd = MAX(COALESCE(cwd, ?9), COALESCE(?9, cwd)), \
         machine = MAX(COALESCE(machine, ?10), COALESCE(?10, machine)) WHERE session = ?1",
    )?;
    for (session, change) in changes {
        update.execute(params![
            session,
            change.first_us,
            change.last.0,
            change.last.1,
            change.counts.events,
            change.counts.tools,
            change.counts.denials,
            change.counts.asks,
            change.cwd,
            change.machine,
        ])?;
    }
    // An id that was there already may have been the only reason for a new session.
    for session in numbers.values() {
        connection
            .prepare_cached("DELETE FROM anyhook_sessions WHERE session = ?1 AND events = 0")?
            .execute(params![session])?;
    }
    Ok(())
}

/// Adds the changes (`sign` 1), or takes them out (-1) of events that are deleted already.
pub(crate) fn apply_rollups(
    connection: &Connection,
    changes: &RollupChanges,
    sign: i64,
) -> Result<()> {
    apply_sums(connection, &changes.events, sign)?;
    apply_sums(connection, &changes.hooks, sign)
}

fn apply_sums<S: StoredSums>(
    connection: &Connection,
    changes: &HashMap<SumKey, S>,
    sign: i64,
) -> Result<()> {
    let sql = SumStatements::new::<S>();
    // Hours before days: what a day has lost is looked up in its hours.
    let mut changes: Vec<_> = changes.iter().collect();
    changes.sort_by_key(|(key, _)| **key);
    for (key, change) in changes {
        change_sums(connection, &sql, *key, change, sign)?;
    }
    Ok(())
}

struct SumStatements {
    select: String,
    delete: String,
    write: String,
}

impl SumStatements {
    fn new<S: StoredSums>() -> Self {
        let table = S::TABLE;
        let keys = S::KEY_COLUMNS.join(", ");
        let values = S::value_columns();
        let is_key: Vec<String> = (1..)
            .zip(S::KEY_COLUMNS)
            .map(|(number, name)| format!("{name} = ?{number}"))
            .collect();
        let is_key = is_key.join(" AND ");
        let set: Vec<String> = S::VALUE_COLUMNS
            .iter()
            .map(|(name, _)| format!("{name} = excluded.{name}"))
            .collect();
        let places = S::KEY_COLUMNS.len() + S::VALUE_COLUMNS.len();
        let places: Vec<String> = (1..=places).map(|number| format!("?{number}")).collect();
        Self {
            select: format!("SELECT {values} FROM {table} WHERE {is_key}"),
            delete: format!("DELETE FROM {table} WHERE {is_key}"),
            write: format!(
                "INSERT INTO {table} ({keys}, {values}) VALUES ({}) \
                 ON CONFLICT ({keys}) DO UPDATE SET {}",
                places.join(", "),
                set.join(", ")
            ),
        }
    }
}

fn change_sums<S: StoredSums>(
    connection: &Connection,
    sql: &SumStatements,
    key: SumKey,
    change: &S,
    sign: i64,
) -> Result<()> {
    let at = S::key_values(key);
    let mut kept = S::default();
    {
        let mut select = connection.prepare_cached(&sql.select)?;
        let mut rows = select.query(params_from_iter(&at))?;
        if let Some(row) = rows.next()? {
            let values = (0..S::VALUE_COLUMNS.len()).map(|at| row.get_ref(at).map(sql_value));
            let values = values.collect::<rusqlite::Result<_>>()?;
            kept = S::from_values(&mut ResultRow::new(values))?;
        }
    }
    kept.change(change, sign);
    if kept.count() <= 0 {
        let mut delete = connection.prepare_cached(&sql.delete)?;
        delete.execute(params_from_iter(&at))?;
        return Ok(());
    }
    if sign < 0 && change.sketch().max_ms >= kept.sketch().max_ms {
        kept.sketch_mut().max_ms = match key.0.level {
            HOUR_LEVEL => hour_max(connection, key)?,
            _ => lower_max::<S>(connection, key)?,
        };
    }
    let keys = at.into_iter().map(SqlValue::Integer);
    let mut write = connection.prepare_cached(&sql.write)?;
    write.execute(params_from_iter(keys.chain(kept.values())))?;
    Ok(())
}

/// The longest duration among the events of an hour that are left.
fn hour_max(connection: &Connection, (key, hook): SumKey) -> Result<f64> {
    let mut select = connection.prepare_cached(
        "SELECT duration_ms, runs FROM anyhook_events \
         WHERE facet = ?1 AND time_us >= ?2 AND time_us < ?3 AND origin = ?4",
    )?;
    let from = key.start.saturating_mul(HOUR_US);
    let mut rows = select.query(params![
        key.facet,
        from,
        from.saturating_add(HOUR_US),
        key.origin
    ])?;
    let mut max_ms = 0_f64;
    while let Some(row) = rows.next()? {
        if hook == 0 {
            max_ms = max_ms.max(row.get(0)?);
            continue;
        }
        let runs = decode_runs(row.get_ref(1)?.as_blob().unwrap_or_default());
        for run in runs.iter().filter(|run| run.hook == hook) {
            max_ms = max_ms.max(run.duration_ms);
        }
    }
    Ok(max_ms)
}

/// The longest duration of the hours of a day, or of all days.
fn lower_max<S: StoredSums>(connection: &Connection, (key, hook): SumKey) -> Result<f64> {
    let LowerSums {
        level,
        from,
        until,
        any_origin,
    } = key.lower();
    let condition = if S::KEY_COLUMNS.contains(&"hook") {
        " AND hook = ?7"
    } else {
        " AND ?7 = 0"
    };
    let sql = format!(
        "SELECT COALESCE(MAX(max_ms), 0.0) FROM {} WHERE level = ?1 \
         AND start BETWEEN ?2 AND ?3 AND (origin = ?4 OR ?5) AND facet = ?6{condition}",
        S::TABLE
    );
    let max_ms = connection.prepare_cached(&sql)?.query_row(
        params![level, from, until, key.origin, any_origin, key.facet, hook],
        |row| row.get(0),
    )?;
    Ok(max_ms)
}
