//! Events of a PostgreSQL database, partition by partition.
//!
//! Sums by day say how many events of a selection each partition has: one without any is
//! not asked, and of the others the index is used that has the least to skip.

use std::collections::HashMap;

use postgres::types::ToSql;

use crate::error::Result;
use crate::names::id_bytes;
use crate::postgres::ingest::day_of_id;
use crate::postgres::parts::{self, OTHER_DAYS, Part};
use crate::postgres::search;
use crate::postgres::tables::PostgresTables;
use crate::query::EventDetail;
use crate::reading::{EventIndex, EventKey, Selection, keep_newest, key_of};
use crate::rollup::DAY_US;
use crate::row::{EventRow, saturating_i64};

/// For a selection with at least one event in this many, the newest are found by time.
const DENSE_SHARE: i64 = 50;

/// A partition, and what it has of a selection.
#[derive(Debug, Clone)]
pub(crate) struct SelectedPart {
    pub part: Part,
    /// Events of the selected facets and origins, whatever their time.
    matching: i64,
    /// Events of the selected facets, of the selected origins.
    by_facet: i64,
    by_origin: i64,
}

/// Conditions on columns that have one of some numbers.
pub(crate) struct ListConditions<'a> {
    pub sql: String,
    lists: Vec<&'a Vec<i64>>,
}

impl ListConditions<'_> {
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &(dyn ToSql + Sync)> {
        self.lists.iter().map(|list| *list as &(dyn ToSql + Sync))
    }
}

/// ` AND …` for the columns that an index does not decide, with the parameters after the
/// first `fixed` ones. The sum with 0 keeps PostgreSQL from choosing another index.
pub(crate) fn conditions(
    selection: &Selection,
    access: EventIndex,
    fixed: usize,
) -> ListConditions<'_> {
    let mut sql = String::new();
    let mut lists = Vec::new();
    for (name, numbers) in selection.conditions(access) {
        lists.push(numbers);
        let number = fixed + lists.len();
        let condition = format!(" AND {name} + 0 = ANY(${number}::bigint[])");
        sql.push_str(&condition);
    }
    ListConditions { sql, lists }
}

/// The partitions with events, the newest first.
pub(crate) fn parts(tables: &PostgresTables<'_>) -> Result<Vec<Part>> {
    if let Some(parts) = tables.parts.get() {
        return Ok(parts.clone());
    }
    let all = parts::all(&mut tables.session.borrow_mut())?;
    let mut parts: Vec<Part> = all.into_values().filter(|part| part.events > 0).collect();
    parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.max_us));
    Ok(tables.parts.get_or_init(|| parts).clone())
}

/// The partitions that may have events of these sessions.
pub(crate) fn parts_of_sessions(
    tables: &PostgresTables<'_>,
    sessions: &[i64],
    since_us: i64,
) -> Result<Vec<Part>> {
    let rows = tables.query(
        "SELECT MIN(first_us), MAX(last_us) FROM anyhook_sessions WHERE session = ANY($1)",
        &[&sessions],
    )?;
    let Some(row) = rows.first() else {
        return Ok(Vec::new());
    };
    let (first, last): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(Vec::new());
    };
    let from = first.max(since_us);
    let mut parts = parts(tables)?;
    parts.retain(|part| part.max_us >= from && part.min_us <= last);
    Ok(parts)
}

/// The partitions that have events of a selection, the newest first.
pub(crate) fn parts_of(
    tables: &PostgresTables<'_>,
    selection: &Selection,
) -> Result<Vec<SelectedPart>> {
    let mut found = match &selection.sessions {
        Some(sessions) => parts_of_sessions(tables, sessions, selection.since_us)?,
        None => parts(tables)?,
    };
    found.retain(|part| part.max_us >= selection.since_us && part.min_us <= selection.before.0);
    let by_facet = match &selection.facets {
        Some(facets) => Some(day_counts(tables, &found, None, Some(facets))?),
        None => None,
    };
    let by_origin = match &selection.origins {
        Some(origins) => Some(day_counts(tables, &found, Some(origins), None)?),
        None => None,
    };
    let both = match (&selection.facets, &selection.origins) {
        (Some(facets), Some(origins)) => {
            Some(day_counts(tables, &found, Some(origins), Some(facets))?)
        }
        _ => None,
    };
    let count = |counts: &Option<HashMap<i64, i64>>, part: &Part| match counts {
        Some(counts) => counts.get(&part.day).copied().unwrap_or_default(),
        None => part.events,
    };
    let selected = found.into_iter().map(|part| {
        let (by_facet, by_origin) = (count(&by_facet, &part), count(&by_origin, &part));
        SelectedPart {
            matching: count(&both, &part).min(by_facet).min(by_origin),
            by_facet,
            by_origin,
            part,
        }
    });
    Ok(selected.filter(|part| part.matching > 0).collect())
}

/// How many events of these origins and facets each partition has, by the sums of days.
fn day_counts(
    tables: &PostgresTables<'_>,
    parts: &[Part],
    origins: Option<&Vec<i64>>,
    facets: Option<&Vec<i64>>,
) -> Result<HashMap<i64, i64>> {
    let all_origins = vec![crate::rollup::ALL_ORIGINS];
    let origins = origins.unwrap_or(&all_origins);
    let rows = match facets {
        Some(facets) => tables.query(
            "SELECT start, SUM(events)::bigint FROM anyhook_rollups WHERE level = 1 \
             AND origin = ANY($1) AND facet = ANY($2) GROUP BY start",
            &[origins, facets],
        )?,
        None => tables.query(
            "SELECT start, SUM(events)::bigint FROM anyhook_rollups WHERE level = 1 \
             AND origin = ANY($1) GROUP BY start",
            &[origins],
        )?,
    };
    let mut counts = HashMap::new();
    for row in &rows {
        let day: i64 = row.try_get(0)?;
        let has_part = parts.iter().any(|part| part.day == day);
        let part = if has_part { day } else { OTHER_DAYS };
        *counts.entry(part).or_default() += row.try_get::<_, i64>(1)?;
    }
    Ok(counts)
}

/// The index by which events of a selection are found in a partition, and its values.
pub(crate) fn access(selection: &Selection, part: &SelectedPart) -> (EventIndex, Vec<i64>) {
    let is_dense = part.matching.saturating_mul(DENSE_SHARE) >= part.part.events;
    match selection {
        Selection {
            sessions: Some(sessions),
            ..
        } => (EventIndex::Session, sessions.clone()),
        _ if is_dense => (EventIndex::Time, vec![0]),
        Selection {
            origins: Some(origins),
            ..
        } if part.by_origin < part.by_facet => (EventIndex::Origin, origins.clone()),
        Selection {
            facets: Some(facets),
            ..
        } => (EventIndex::Facet, facets.clone()),
        Selection {
            origins: Some(origins),
            ..
        } => (EventIndex::Origin, origins.clone()),
        _ => (EventIndex::Time, vec![0]),
    }
}

/// The newest events of a selection, newest first.
pub(crate) fn newest(
    tables: &PostgresTables<'_>,
    selection: &Selection,
    text: Option<&str>,
    limit: usize,
) -> Result<Vec<EventRow>> {
    let parts = parts_of(tables, selection)?;
    let mut found: Vec<EventRow> = Vec::new();
    let mut scan = text.map(search::Scan::new);
    for part in &parts {
        let worst = found.get(limit.saturating_sub(1)).map(key_of);
        // Partitions are in the order of their newest event.
        if worst.is_some_and(|(time_us, _)| time_us > part.part.max_us) {
            break;
        }
        let more = if let Some(scan) = &mut scan {
            scan.newest_of_part(tables, selection, part, limit)?
        } else {
            let keys = newest_keys(tables, selection, part, limit)?;
            rows_of_keys(tables, part, &keys)?
        };
        keep_newest(&mut found, more, limit);
    }
    Ok(found)
}

pub(crate) fn newest_keys(
    tables: &PostgresTables<'_>,
    selection: &Selection,
    part: &SelectedPart,
    limit: usize,
) -> Result<Vec<EventKey>> {
    let (access, values) = access(selection, part);
    let (column, _) = access.column();
    let plain = conditions(selection, access, 5);
    let table = &part.part.name;
    let events = |column: &str, value: &str| {
        format!(
            "SELECT time_us, seq FROM {table} WHERE {column} = {value} \
             AND (time_us, seq) < ($2, $3) AND time_us >= $4{} \
             ORDER BY time_us DESC, seq DESC LIMIT $5",
            plain.sql
        )
    };
    let sql = match access {
        EventIndex::Time => events("0", "ANY($1::bigint[])"),
        _ => format!(
            "SELECT e.time_us, e.seq FROM UNNEST($1::bigint[]) AS v (value) \
             CROSS JOIN LATERAL ({}) e ORDER BY e.time_us DESC, e.seq DESC LIMIT $5",
            events(column, "v.value")
        ),
    };
    let limit = saturating_i64(limit);
    let mut arguments: Vec<&(dyn ToSql + Sync)> = vec![
        &values,
        &selection.before.0,
        &selection.before.1,
        &selection.since_us,
        &limit,
    ];
    arguments.extend(plain.arguments());
    let rows = tables.query(&sql, &arguments)?;
    let keys = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    keys.collect()
}

/// Events by number, newest first.
pub(crate) fn rows_of_keys(
    tables: &PostgresTables<'_>,
    part: &SelectedPart,
    keys: &[EventKey],
) -> Result<Vec<EventRow>> {
    let numbers: Vec<i64> = keys.iter().map(|(_, seq)| *seq).collect();
    rows_of_numbers(tables, &part.part.name, &numbers)
}

fn rows_of_numbers(
    tables: &PostgresTables<'_>,
    table: &str,
    numbers: &[i64],
) -> Result<Vec<EventRow>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT seq, time_us, body FROM {table} WHERE seq = ANY($1)");
    let rows = tables.query(&sql, &[&numbers])?;
    rows.iter().map(|row| tables.event_row(row)).collect()
}

/// The times of the first and the last selected event.
pub(crate) fn time_range(
    tables: &PostgresTables<'_>,
    selection: &Selection,
) -> Result<Option<(i64, i64)>> {
    let mut parts = parts_of(tables, selection)?;
    let mut last: Option<i64> = None;
    for part in &parts {
        if last.is_some_and(|last| last > part.part.max_us) {
            break;
        }
        last = last.max(outer_time(tables, selection, part, "DESC")?);
    }
    let Some(last) = last else {
        return Ok(None);
    };
    parts.sort_unstable_by_key(|part| part.part.min_us);
    let mut first = last;
    for part in &parts {
        if first < part.part.min_us {
            break;
        }
        let time = outer_time(tables, selection, part, "ASC")?;
        first = first.min(time.unwrap_or(first));
    }
    Ok(Some((first, last)))
}

/// The first (`ASC`) or last (`DESC`) time of the selection in a partition.
fn outer_time(
    tables: &PostgresTables<'_>,
    selection: &Selection,
    part: &SelectedPart,
    order: &str,
) -> Result<Option<i64>> {
    let (access, values) = access(selection, part);
    let (column, _) = access.column();
    let plain = conditions(selection, access, 3);
    let sql = format!(
        "SELECT e.time_us FROM UNNEST($1::bigint[]) AS v (value) CROSS JOIN LATERAL \
         (SELECT time_us FROM {} WHERE {column} = v.value AND time_us >= $2 AND time_us < $3{} \
         ORDER BY time_us {order} LIMIT 1) e ORDER BY e.time_us {order} LIMIT 1",
        part.part.name, plain.sql
    );
    let mut arguments: Vec<&(dyn ToSql + Sync)> =
        vec![&values, &selection.since_us, &selection.before.0];
    arguments.extend(plain.arguments());
    tables.session.borrow_mut().query_int(&sql, &arguments)
}

/// Events that arrived after `seq`, oldest first.
pub(crate) fn after(tables: &PostgresTables<'_>, seq: i64, limit: usize) -> Result<Vec<EventRow>> {
    let mut parts = parts(tables)?;
    parts.retain(|part| part.max_seq > seq);
    parts.sort_unstable_by_key(|part| part.min_seq);
    // The lowest numbers, and the partition of each.
    let mut lowest: Vec<(i64, usize)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let highest = lowest.get(limit.saturating_sub(1)).map(|(seq, _)| *seq);
        if highest.is_some_and(|highest| highest < part.min_seq) {
            break;
        }
        let sql = format!(
            "SELECT seq FROM {} WHERE seq > $1 ORDER BY seq LIMIT $2",
            part.name
        );
        for row in &tables.query(&sql, &[&seq, &saturating_i64(limit)])? {
            lowest.push((row.try_get(0)?, at));
        }
        lowest.sort_unstable();
        lowest.truncate(limit);
    }
    let mut found = Vec::with_capacity(lowest.len());
    for (at, part) in parts.iter().enumerate() {
        let numbers = lowest.iter().filter(|(_, part)| *part == at);
        let numbers: Vec<i64> = numbers.map(|(seq, _)| *seq).collect();
        found.extend(rows_of_numbers(tables, &part.name, &numbers)?);
    }
    found.sort_unstable_by_key(|row| row.summary.seq);
    Ok(found)
}

pub(crate) fn event(tables: &PostgresTables<'_>, id: &str) -> Result<Option<EventDetail>> {
    let stored_id = id_bytes(id);
    let sql = "SELECT time_us FROM anyhook_ids WHERE id = $1";
    let time = tables.session.borrow_mut().query_int(sql, &[&stored_id])?;
    let days = match (time, day_of_id(id)) {
        (Some(time), _) => {
            let day = time.div_euclid(DAY_US);
            day..=day
        }
        (None, Some(day)) => day - 1..=day + 1,
        (None, None) => return Ok(None),
    };
    let all = parts::all(&mut tables.session.borrow_mut())?;
    let parts: std::collections::BTreeSet<i64> = days.map(|day| parts::of_day(&all, day)).collect();
    for part in parts.iter().filter_map(|part| all.get(part)) {
        let sql = format!("SELECT seq, time_us, body FROM {} WHERE id = $1", part.name);
        if let Some(row) = tables.query(&sql, &[&stored_id])?.first() {
            return tables.event_row(row)?.into_detail().map(Some);
        }
    }
    Ok(None)
}
