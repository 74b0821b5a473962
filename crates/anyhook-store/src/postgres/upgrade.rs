//! Moves events of older versions to the tables of this one, and trains dictionaries.

use std::collections::HashSet;

use crate::body::{self, BodyCodec};
use crate::error::Result;
use crate::postgres::ingest;
use crate::postgres::names::NumberCache;
use crate::postgres::session::{Session, Sessions};
use crate::postgres::tables::load_dictionaries;
use crate::row::EventRow;
use crate::store::UpgradeProgress;

const STEP_EVENTS: i64 = 500;
/// A store of this many events gets its first dictionary, its second, ...
const DICTIONARY_EVENTS: [i64; 2] = [1_000, 50_000];
const SAMPLE_EVENTS: i64 = 2_000;

/// Whether there is something left to move. The old table goes with its last event.
pub(crate) fn has_old_events(session: &mut Session) -> Result<bool> {
    let sql = "SELECT to_regclass('anyhook_old_events') IS NOT NULL";
    let rows = session.query(sql, &[])?;
    match rows.first() {
        Some(row) => Ok(row.try_get(0)?),
        None => Ok(false),
    }
}

pub(crate) fn drop_old_if_empty(session: &mut Session) -> Result<()> {
    if !has_old_events(session)? {
        return Ok(());
    }
    let left = session.query("SELECT 1 FROM anyhook_old_events LIMIT 1", &[])?;
    if left.is_empty() {
        session
            .client
            .batch_execute("DROP TABLE anyhook_old_runs; DROP TABLE anyhook_old_events;")?;
    }
    Ok(())
}

/// Which of these events are not moved yet.
pub(crate) fn known_ids<'a>(
    session: &mut Session,
    rows: impl Iterator<Item = &'a EventRow>,
) -> Result<HashSet<String>> {
    let ids: Vec<&str> = rows
        .filter(|row| row.summary.seq == 0)
        .map(|row| row.summary.id.as_str())
        .collect();
    let sql = "SELECT id FROM anyhook_old_events WHERE id = ANY($1)";
    let rows = session.query(sql, &[&ids])?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub(crate) fn progress(session: &mut Session) -> Result<Option<UpgradeProgress>> {
    if !has_old_events(session)? {
        return Ok(None);
    }
    // Numbers grow without gaps but for what retention has deleted at the beginning.
    let sql = "SELECT COALESCE(MAX(seq) - MIN(seq) + 1, 0) FROM anyhook_old_events";
    let left = session.query_int(sql, &[])?.unwrap_or_default();
    Ok(Some(UpgradeProgress {
        done: u64::try_from(stored_events(session)?).unwrap_or_default(),
        left: u64::try_from(left).unwrap_or_default(),
    }))
}

fn stored_events(session: &mut Session) -> Result<i64> {
    let sql = "SELECT COALESCE(SUM(events), 0)::bigint FROM anyhook_parts";
    Ok(session.query_int(sql, &[])?.unwrap_or_default())
}

/// Moves some events, the newest first; `None` when nothing is left.
pub(crate) fn step(
    session: &mut Session,
    names: &mut NumberCache,
    codec: &BodyCodec,
) -> Result<Option<UpgradeProgress>> {
    if !has_old_events(session)? {
        return Ok(None);
    }
    let sql = "DELETE FROM anyhook_old_events WHERE seq IN \
               (SELECT seq FROM anyhook_old_events ORDER BY seq DESC LIMIT $1) \
               RETURNING seq, time_us, body";
    let mut rows = Vec::new();
    for row in &session.query(sql, &[&STEP_EVENTS])? {
        let body: &str = row.try_get(2)?;
        rows.extend(EventRow::from_stored(row.try_get(0)?, row.try_get(1)?, body).ok());
    }
    rows.sort_unstable_by_key(|row| row.summary.seq);
    let bodies = codec.encode(rows.iter().map(|row| row.body.as_str()))?;
    ingest::insert_events(session, names, &rows, &bodies, codec)?;
    drop_old_if_empty(session)?;
    progress(session)
}

/// Trains the dictionary that a store of this size should have; `false` if it has it.
pub(crate) fn train_dictionary(sessions: &Sessions, codec: &BodyCodec) -> Result<bool> {
    let samples = sessions.read_transaction(|session| {
        let sql = "SELECT COUNT(*) FROM anyhook_dictionaries";
        let count = session.query_int(sql, &[])?.unwrap_or_default();
        let number = usize::try_from(count).unwrap_or(usize::MAX);
        let Some(wanted) = DICTIONARY_EVENTS.get(number) else {
            return Ok(None);
        };
        if stored_events(session)? < *wanted {
            return Ok(None);
        }
        load_dictionaries(session, codec)?;
        let sql = "SELECT name FROM anyhook_parts WHERE events > 0 ORDER BY max_seq DESC";
        let parts = session.query(sql, &[])?;
        let mut samples = Vec::new();
        for part in &parts {
            let left = SAMPLE_EVENTS - crate::row::saturating_i64(samples.len());
            let name: &str = part.try_get(0)?;
            let sql = format!("SELECT body FROM {name} ORDER BY seq DESC LIMIT $1");
            for row in &session.query(&sql, &[&left])? {
                samples.push(codec.decode(row.try_get(0)?)?);
            }
            if left <= 0 {
                break;
            }
        }
        Ok(Some((count + 1, samples)))
    })?;
    let Some((number, samples)) = samples else {
        return Ok(false);
    };
    // Records that have nothing in common get an empty one, and are not looked at again.
    let dictionary = body::train_dictionary(&samples).unwrap_or_default();
    sessions.write_transaction(|session| {
        session.execute(
            "INSERT INTO anyhook_dictionaries (number, bytes) VALUES ($1, $2) \
             ON CONFLICT (number) DO NOTHING",
            &[&number, &dictionary],
        )?;
        load_dictionaries(session, codec)
    })?;
    Ok(true)
}
