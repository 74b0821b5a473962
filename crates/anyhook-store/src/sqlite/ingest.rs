//! Stores events, and keeps sums, sessions and the search index in the same transaction.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use crate::error::Result;
use crate::query::IngestCounts;
use crate::rollup::{
    ALL_LEVEL, ALL_ORIGINS, DAY_LEVEL, EventSums, HOUR_LEVEL, HOUR_US, HookSums, MinuteCounts,
    NumberedRun, RollupChanges, RollupKey, RunEffect, decode_runs, encode_runs,
};
use crate::row::{EventRow, saturating_i64};
use crate::sketch::DurationSketch;
use crate::sqlite::names::{Facet, NumberCache, Origin, id_bytes};
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
    let mut sessions = SessionChanges::default();
    let mut blocks: HashMap<i64, (i64, i64)> = HashMap::new();
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
            Some(id) => Some(sessions.number(transaction, id, &event.agent)?),
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
        rollups.add(event.time_us, origin, facet, event.duration_ms, &runs);
        if let Some(session) = session {
            sessions.add(session, seq, row);
        }
        let (min_us, max_us) = blocks
            .entry(seq / BLOCK_EVENTS)
            .or_insert((event.time_us, event.time_us));
        *min_us = event.time_us.min(*min_us);
        *max_us = event.time_us.max(*max_us);
        bytes += stored_bytes(saturating_i64(body.len()));
    }
    apply_rollups(transaction, &rollups, 1)?;
    sessions.apply(transaction)?;
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

#[derive(Debug, Default)]
struct SessionChanges {
    numbers: HashMap<(String, String), i64>,
    changes: HashMap<i64, SessionChange>,
}

#[derive(Debug, Default)]
struct SessionChange {
    first_us: i64,
    last_us: i64,
    last_seq: i64,
    events: i64,
    tools: i64,
    denials: i64,
    asks: i64,
    cwd: Option<String>,
    machine: Option<String>,
}

impl SessionChanges {
    fn number(&mut self, connection: &Connection, id: &str, agent: &str) -> Result<i64> {
        let entry = match self.numbers.entry((id.to_owned(), agent.to_owned())) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(entry) => entry,
        };
        let found: Option<i64> = connection
            .prepare_cached(
                "SELECT session FROM anyhook_sessions WHERE session_id = ?1 AND agent = ?2",
            )?
            .query_row(params![id, agent], |row| row.get(0))
            .optional()?;
        if let Some(number) = found {
            return Ok(*entry.insert(number));
        }
        connection
            .prepare_cached(
                "INSERT INTO anyhook_sessions (session_id, agent, first_us, last_us, last_seq, \
                 events, tools, denials, asks) VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, 0)",
            )?
            .execute(params![id, agent, i64::MAX, i64::MIN])?;
        Ok(*entry.insert(connection.last_insert_rowid()))
    }

    fn add(&mut self, session: i64, seq: i64, row: &EventRow) {
        let event = &row.summary;
        let change = self.changes.entry(session).or_insert(SessionChange {
            first_us: i64::MAX,
            last_us: i64::MIN,
            ..SessionChange::default()
        });
        change.first_us = change.first_us.min(event.time_us);
        if (event.time_us, seq) > (change.last_us, change.last_seq) {
            (change.last_us, change.last_seq) = (event.time_us, seq);
        }
        change.events += 1;
        change.tools += i64::from(event.unified == "BEFORE_TOOL");
        change.denials += i64::from(event.decision.as_deref() == Some("deny"));
        change.asks += i64::from(event.decision.as_deref() == Some("ask"));
        change.cwd = change.cwd.take().max(event.cwd.clone());
        change.machine = change.machine.take().max(event.machine.clone());
    }

    fn apply(self, connection: &Connection) -> Result<()> {
        let mut update = connection.prepare_cached(
            "UPDATE anyhook_sessions SET first_us = MIN(first_us, ?2), \
             last_seq = CASE WHEN (?3, ?4) > (last_us, last_seq) THEN ?4 ELSE last_seq END, \
             last_us = MAX(last_us, ?3), events = events + ?5, tools = tools + ?6, \
             denials = denials + ?7, asks = asks + ?8, \
             cwd = MAX(COALESCE(cwd, ?9), COALESCE(?9, cwd)), \
             machine = MAX(COALESCE(machine, ?10), COALESCE(?10, machine)) WHERE session = ?1",
        )?;
        for (session, change) in self.changes {
            update.execute(params![
                session,
                change.first_us,
                change.last_us,
                change.last_seq,
                change.events,
                change.tools,
                change.denials,
                change.asks,
                change.cwd,
                change.machine,
            ])?;
        }
        // An id that was there already may have been the only reason for a new session.
        for session in self.numbers.values() {
            connection
                .prepare_cached("DELETE FROM anyhook_sessions WHERE session = ?1 AND events = 0")?
                .execute(params![session])?;
        }
        Ok(())
    }
}

/// Adds the changes (`sign` 1), or takes them out (-1) of events that are deleted already.
pub(crate) fn apply_rollups(
    connection: &Connection,
    changes: &RollupChanges,
    sign: i64,
) -> Result<()> {
    // Hours before days: what a day has lost is looked up in its hours.
    let mut events: Vec<_> = changes.events.iter().collect();
    events.sort_by_key(|(key, _)| **key);
    for (key, sums) in events {
        change_event_sums(connection, *key, sums, sign)?;
    }
    let mut hooks: Vec<_> = changes.hooks.iter().collect();
    hooks.sort_by_key(|((key, hook), _)| (*key, *hook));
    for ((key, hook), sums) in hooks {
        change_hook_sums(connection, *key, *hook, sums, sign)?;
    }
    Ok(())
}

fn combine(kept: &mut DurationSketch, change: &DurationSketch, sign: i64) {
    if sign > 0 {
        kept.merge(change);
    } else {
        kept.subtract(change);
    }
}

fn change_event_sums(
    connection: &Connection,
    key: RollupKey,
    change: &EventSums,
    sign: i64,
) -> Result<()> {
    let RollupKey {
        level,
        start,
        origin,
        facet,
    } = key;
    let at = params![level, start, origin, facet];
    let kept = connection
        .prepare_cached(
            "SELECT events, max_ms, minutes, sketch FROM anyhook_rollups \
             WHERE level = ?1 AND start = ?2 AND origin = ?3 AND facet = ?4",
        )?
        .query_row(at, |row| {
            Ok(EventSums {
                events: row.get(0)?,
                sketch: DurationSketch::decode(row.get_ref(3)?.as_blob()?, row.get(1)?),
                minutes: MinuteCounts::decode(row.get_ref(2)?.as_blob()?),
            })
        })
        .optional()?;
    let mut kept = kept.unwrap_or_default();
    kept.events += sign * change.events;
    kept.minutes.change(&change.minutes, sign);
    combine(&mut kept.sketch, &change.sketch, sign);
    if kept.events <= 0 {
        connection
            .prepare_cached(
                "DELETE FROM anyhook_rollups \
                 WHERE level = ?1 AND start = ?2 AND origin = ?3 AND facet = ?4",
            )?
            .execute(at)?;
        return Ok(());
    }
    if sign < 0 && change.sketch.max_ms >= kept.sketch.max_ms {
        kept.sketch.max_ms = match level {
            HOUR_LEVEL => hour_max(connection, key, None)?,
            _ => lower_max(connection, key, None)?,
        };
    }
    connection
        .prepare_cached(
            "INSERT INTO anyhook_rollups \
             (level, start, origin, facet, events, max_ms, minutes, sketch) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (level, start, origin, facet) \
             DO UPDATE SET events = ?5, max_ms = ?6, minutes = ?7, sketch = ?8",
        )?
        .execute(params![
            level,
            start,
            origin,
            facet,
            kept.events,
            kept.sketch.max_ms,
            kept.minutes.encode(),
            kept.sketch.encode()
        ])?;
    Ok(())
}

fn change_hook_sums(
    connection: &Connection,
    key: RollupKey,
    hook: i64,
    change: &HookSums,
    sign: i64,
) -> Result<()> {
    let RollupKey {
        level,
        start,
        origin,
        facet,
    } = key;
    let at = params![level, start, origin, facet, hook];
    let kept = connection
        .prepare_cached(
            "SELECT runs, denials, troubles, max_ms, sketch FROM anyhook_hook_rollups \
             WHERE level = ?1 AND start = ?2 AND origin = ?3 AND facet = ?4 AND hook = ?5",
        )?
        .query_row(at, |row| {
            Ok(HookSums {
                runs: row.get(0)?,
                denials: row.get(1)?,
                troubles: row.get(2)?,
                sketch: DurationSketch::decode(row.get_ref(4)?.as_blob()?, row.get(3)?),
            })
        })
        .optional()?;
    let mut kept = kept.unwrap_or_default();
    kept.runs += sign * change.runs;
    kept.denials += sign * change.denials;
    kept.troubles += sign * change.troubles;
    combine(&mut kept.sketch, &change.sketch, sign);
    if kept.runs <= 0 {
        connection
            .prepare_cached(
                "DELETE FROM anyhook_hook_rollups \
                 WHERE level = ?1 AND start = ?2 AND origin = ?3 AND facet = ?4 AND hook = ?5",
            )?
            .execute(at)?;
        return Ok(());
    }
    if sign < 0 && change.sketch.max_ms >= kept.sketch.max_ms {
        kept.sketch.max_ms = match level {
            HOUR_LEVEL => hour_max(connection, key, Some(hook))?,
            _ => lower_max(connection, key, Some(hook))?,
        };
    }
    connection
        .prepare_cached(
            "INSERT INTO anyhook_hook_rollups \
             (level, start, origin, facet, hook, runs, denials, troubles, max_ms, sketch) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
             ON CONFLICT (level, start, origin, facet, hook) \
             DO UPDATE SET runs = ?6, denials = ?7, troubles = ?8, max_ms = ?9, sketch = ?10",
        )?
        .execute(params![
            level,
            start,
            origin,
            facet,
            hook,
            kept.runs,
            kept.denials,
            kept.troubles,
            kept.sketch.max_ms,
            kept.sketch.encode()
        ])?;
    Ok(())
}

/// The longest duration among the events of an hour that are left.
fn hour_max(connection: &Connection, key: RollupKey, hook: Option<i64>) -> Result<f64> {
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
        let Some(hook) = hook else {
            max_ms = max_ms.max(row.get(0)?);
            continue;
        };
        let runs = decode_runs(row.get_ref(1)?.as_blob().unwrap_or_default());
        for run in runs.iter().filter(|run| run.hook == hook) {
            max_ms = max_ms.max(run.duration_ms);
        }
    }
    Ok(max_ms)
}

/// The longest duration of the hours of a day, or of all days.
fn lower_max(connection: &Connection, key: RollupKey, hook: Option<i64>) -> Result<f64> {
    let (level, from, until) = match key.level {
        ALL_LEVEL => (DAY_LEVEL, i64::MIN, i64::MAX),
        _ => (HOUR_LEVEL, key.start * 24, key.start * 24 + 23),
    };
    // Days have a row of all origins, hours do not.
    let any_origin = key.origin == ALL_ORIGINS && level == HOUR_LEVEL;
    let (table, condition) = match hook {
        Some(_) => ("anyhook_hook_rollups", " AND hook = ?7"),
        None => ("anyhook_rollups", " AND ?7 = 0"),
    };
    let sql = format!(
        "SELECT COALESCE(MAX(max_ms), 0.0) FROM {table} WHERE level = ?1 \
         AND start BETWEEN ?2 AND ?3 AND (origin = ?4 OR ?5) AND facet = ?6{condition}"
    );
    let max_ms = connection.prepare_cached(&sql)?.query_row(
        params![
            level,
            from,
            until,
            key.origin,
            any_origin,
            key.facet,
            hook.unwrap_or_default()
        ],
        |row| row.get(0),
    )?;
    Ok(max_ms)
}
