//! Changes the sums by hour, day and of all time: one statement reads those of a batch, one
//! writes them.

use std::collections::HashMap;

use postgres::types::ToSql;
use rusqlite::types::Value as SqlValue;

use crate::error::Result;
use crate::postgres::result_row;
use crate::postgres::session::Session;
use crate::rollup::{
    HOUR_LEVEL, HOUR_US, LowerSums, RollupChanges, StoredSums, SumColumn, SumKey, decode_runs,
};

/// Adds the changes (`sign` 1), or takes them out (-1) of events that are deleted already.
pub(crate) fn apply(session: &mut Session, changes: &RollupChanges, sign: i64) -> Result<()> {
    apply_sums(session, &changes.events, sign)?;
    apply_sums(session, &changes.hooks, sign)
}

fn apply_sums<S: StoredSums>(
    session: &mut Session,
    changes: &HashMap<SumKey, S>,
    sign: i64,
) -> Result<()> {
    // Hours before days: what a day has lost is looked up in its hours.
    let mut changes: Vec<_> = changes.iter().map(|(key, sums)| (*key, sums)).collect();
    changes.sort_by_key(|(key, _)| *key);
    for part in changes.chunk_by(|(one, _), (other, _)| one.0.level == other.0.level) {
        apply_level(session, part, sign)?;
    }
    Ok(())
}

fn apply_level<S: StoredSums>(
    session: &mut Session,
    changes: &[(SumKey, &S)],
    sign: i64,
) -> Result<()> {
    let mut kept = select(session, changes)?;
    let mut empty = Vec::new();
    let mut changed = Vec::new();
    for (key, change) in changes {
        let mut sums = kept.remove(key).unwrap_or_default();
        sums.change(change, sign);
        if sums.count() <= 0 {
            empty.push(*key);
            continue;
        }
        if sign < 0 && change.sketch().max_ms >= sums.sketch().max_ms {
            sums.sketch_mut().max_ms = match key.0.level {
                HOUR_LEVEL => hour_max(session, *key)?,
                _ => lower_max::<S>(session, *key)?,
            };
        }
        changed.push((*key, sums));
    }
    delete::<S>(session, &empty)?;
    write(session, &changed)
}

/// One array for each column of the key.
fn key_arrays<S: StoredSums>(keys: impl Iterator<Item = SumKey>) -> Vec<Vec<i64>> {
    let mut arrays = vec![Vec::new(); S::KEY_COLUMNS.len()];
    for key in keys {
        for (array, value) in arrays.iter_mut().zip(S::key_values(key)) {
            array.push(value);
        }
    }
    arrays
}

/// The keys that the first parameters have, as a table with a number.
fn keys_table<S: StoredSums>() -> String {
    let places = (1..=S::KEY_COLUMNS.len()).map(|number| format!("${number}::bigint[]"));
    let places: Vec<String> = places.collect();
    let columns = S::KEY_COLUMNS.join(", ");
    let places = places.join(", ");
    format!("UNNEST({places}) WITH ORDINALITY AS k ({columns}, number)")
}

fn is_key<S: StoredSums>() -> String {
    let conditions = S::KEY_COLUMNS.iter().map(|it| format!("s.{it} = k.{it}"));
    conditions.collect::<Vec<_>>().join(" AND ")
}

fn select<S: StoredSums>(
    session: &mut Session,
    changes: &[(SumKey, &S)],
) -> Result<HashMap<SumKey, S>> {
    let arrays = key_arrays::<S>(changes.iter().map(|(key, _)| *key));
    let arguments: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(|it| it as _).collect();
    let sql = format!(
        "SELECT k.number, {} FROM {} JOIN {} s ON {}",
        S::value_columns(),
        keys_table::<S>(),
        S::TABLE,
        is_key::<S>()
    );
    let mut found = HashMap::new();
    for row in &session.query(&sql, &arguments)? {
        let mut row = result_row(row)?;
        let number = usize::try_from(row.int()? - 1).unwrap_or(usize::MAX);
        if let Some((key, _)) = changes.get(number) {
            found.insert(*key, S::from_values(&mut row)?);
        }
    }
    Ok(found)
}

fn delete<S: StoredSums>(session: &mut Session, keys: &[SumKey]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let arrays = key_arrays::<S>(keys.iter().copied());
    let arguments: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(|it| it as _).collect();
    let sql = format!(
        "DELETE FROM {} s USING {} WHERE {}",
        S::TABLE,
        keys_table::<S>(),
        is_key::<S>()
    );
    session.execute(&sql, &arguments)?;
    Ok(())
}

fn write<S: StoredSums>(session: &mut Session, changed: &[(SumKey, S)]) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let keys = key_arrays::<S>(changed.iter().map(|(key, _)| *key));
    let values: Vec<Vec<SqlValue>> = changed.iter().map(|(_, sums)| sums.values()).collect();
    let mut arguments: Vec<Box<dyn ToSql + Sync>> = Vec::new();
    let mut places = Vec::new();
    for array in keys {
        arguments.push(Box::new(array));
        places.push(format!("${}::bigint[]", arguments.len()));
    }
    for (at, (_, column)) in S::VALUE_COLUMNS.iter().enumerate() {
        let cells = || values.iter().filter_map(move |row| row.get(at));
        let (array, sql_type): (Box<dyn ToSql + Sync>, _) = match column {
            SumColumn::Count => (Box::new(cells().map(integer).collect::<Vec<_>>()), "bigint"),
            SumColumn::Duration => (Box::new(cells().map(real).collect::<Vec<_>>()), "float8"),
            SumColumn::Bytes => (Box::new(cells().map(bytes).collect::<Vec<_>>()), "bytea"),
        };
        arguments.push(array);
        places.push(format!("${}::{sql_type}[]", arguments.len()));
    }
    let set = S::VALUE_COLUMNS
        .iter()
        .map(|(name, _)| format!("{name} = excluded.{name}"));
    let keys = S::KEY_COLUMNS.join(", ");
    let sql = format!(
        "INSERT INTO {} ({keys}, {}) SELECT * FROM UNNEST({}) ON CONFLICT ({keys}) \
         DO UPDATE SET {}",
        S::TABLE,
        S::value_columns(),
        places.join(", "),
        set.collect::<Vec<_>>().join(", ")
    );
    let arguments: Vec<&(dyn ToSql + Sync)> = arguments.iter().map(|it| &**it as _).collect();
    session.execute(&sql, &arguments)?;
    Ok(())
}

fn integer(value: &SqlValue) -> i64 {
    match value {
        SqlValue::Integer(number) => *number,
        _ => 0,
    }
}

fn real(value: &SqlValue) -> f64 {
    match value {
        SqlValue::Real(number) => *number,
        _ => 0.0,
    }
}

fn bytes(value: &SqlValue) -> Vec<u8> {
    match value {
        SqlValue::Blob(bytes) => bytes.clone(),
        _ => Vec::new(),
    }
}

/// The longest duration among the events of an hour that are left.
fn hour_max(session: &mut Session, (key, hook): SumKey) -> Result<f64> {
    let from = key.start.saturating_mul(HOUR_US);
    let until = from.saturating_add(HOUR_US);
    let rows = session.query(
        "SELECT duration_ms, runs FROM anyhook_events \
         WHERE facet = $1 AND time_us >= $2 AND time_us < $3 AND origin = $4",
        &[&key.facet, &from, &until, &key.origin],
    )?;
    let mut max_ms = 0_f64;
    for row in &rows {
        if hook == 0 {
            max_ms = max_ms.max(row.try_get(0)?);
            continue;
        }
        for run in decode_runs(row.try_get(1)?) {
            if run.hook == hook {
                max_ms = max_ms.max(run.duration_ms);
            }
        }
    }
    Ok(max_ms)
}

/// The longest duration of the hours of a day, or of all days.
fn lower_max<S: StoredSums>(session: &mut Session, (key, hook): SumKey) -> Result<f64> {
    let LowerSums {
        level,
        from,
        until,
        any_origin,
    } = key.lower();
    let condition = if S::KEY_COLUMNS.contains(&"hook") {
        " AND hook = $7"
    } else {
        " AND $7::bigint = 0"
    };
    let sql = format!(
        "SELECT COALESCE(MAX(max_ms), 0) FROM {} WHERE level = $1 AND start BETWEEN $2 AND $3 \
         AND (origin = $4 OR $5) AND facet = $6{condition}",
        S::TABLE
    );
    let rows = session.query(
        &sql,
        &[
            &level,
            &from,
            &until,
            &key.origin,
            &any_origin,
            &key.facet,
            &hook,
        ],
    )?;
    match rows.first() {
        Some(row) => Ok(row.try_get(0)?),
        None => Ok(0.0),
    }
}
