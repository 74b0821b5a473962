//! Statistics from the sums that ingest keeps. Only the hours that the filter's times cut
//! are counted event by event, so the result is that of counting every event.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, ToSql, params};

use crate::error::Result;
use crate::query::{EventFilter, Stats};
use crate::rollup::{
    ALL_LEVEL, ALL_ORIGINS, DAY_LEVEL, DAY_US, HOUR_LEVEL, HOUR_US, HookSums, MinuteCounts,
    decode_runs,
};
use crate::row::RunRow;
use crate::sketch::DurationSketch;
use crate::sqlite::connections::RecordReader;
use crate::sqlite::names::{Facet, Origin, all_facets, all_hooks};
use crate::sqlite::reading::{Selection, json_list, number_set, visit_newest};
use crate::sqlite::sessions;
use crate::stats::bucket_seconds;
use crate::stats_counter::{CountedEvents, StatsCounter};

const HOURS_PER_DAY: i64 = 24;

pub(crate) fn stats(
    connection: &Connection,
    records: &RecordReader<'_>,
    filter: &EventFilter,
    buckets: usize,
) -> Result<Stats> {
    let transaction = connection.unchecked_transaction()?;
    let connection = &*transaction;
    let selection = Selection::new(connection, filter, None)?;
    let text = filter.search_text();
    if text.is_some() || filter.session.is_some() {
        let mut counter = StatsCounter::default();
        visit_newest(connection, records, selection, text.as_deref(), |row| {
            counter.add(&row);
            Ok(true)
        })?;
        return Ok(counter.into_stats(filter, buckets));
    }
    let Some((first, last)) = time_range(connection, &selection)? else {
        return Ok(StatsCounter::default().into_stats(filter, buckets));
    };
    let width = bucket_seconds(filter, first, last, buckets);
    let query = SumQuery {
        connection,
        facets: all_facets(connection)?,
        hooks: all_hooks(connection)?,
        facet_set: number_set(selection.facets.as_ref()),
        origin_set: number_set(selection.origins.as_ref()),
        width,
    };
    let mut counter = StatsCounter::default();
    query.add_range(&mut counter, first, last.saturating_add(1), filter)?;
    let sessions = count_sessions(connection, filter, &selection)?;
    Ok(counter.finish(sessions, Some(width)))
}

/// The times of the first and the last selected event.
fn time_range(connection: &Connection, selection: &Selection) -> Result<Option<(i64, i64)>> {
    let no_values = vec![0];
    let (column, index, values) = match selection {
        Selection {
            facets: Some(values),
            ..
        } => ("facet", "facet", values),
        Selection {
            origins: Some(values),
            ..
        } => ("origin", "origin", values),
        _ => ("0", "time", &no_values),
    };
    let mut origins = String::new();
    let mut condition = "";
    if let Some(numbers) = selection.origins.as_ref().filter(|_| column != "origin") {
        origins = json_list(numbers);
        condition = " AND origin IN (SELECT value FROM json_each(?4))";
    }
    let mut range: Option<(i64, i64)> = None;
    for order in ["ASC", "DESC"] {
        let sql = format!(
            "SELECT time_us FROM anyhook_events INDEXED BY anyhook_event_{index} \
             WHERE {column} = ?1 AND time_us >= ?2 AND time_us < ?3{condition} \
             ORDER BY time_us {order} LIMIT 1"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        for value in values {
            let mut parameters: Vec<&dyn ToSql> =
                vec![value, &selection.since_us, &selection.before.0];
            if !condition.is_empty() {
                parameters.push(&origins);
            }
            let mut rows = statement.query(&*parameters)?;
            if let Some(row) = rows.next()? {
                let time: i64 = row.get(0)?;
                let (first, last) = range.unwrap_or((time, time));
                range = Some((first.min(time), last.max(time)));
            }
        }
    }
    Ok(range)
}

fn count_sessions(
    connection: &Connection,
    filter: &EventFilter,
    selection: &Selection,
) -> Result<i64> {
    let by_other_names = [&filter.event, &filter.decision, &filter.tool]
        .iter()
        .any(|field| field.is_some());
    if !by_other_names && !Origin::is_asked_for(filter) {
        return sessions::count(connection, filter);
    }
    let (index, facets, origins) = match (&selection.facets, &selection.origins) {
        (Some(facets), origins) => ("facet", Some(facets), origins.as_ref()),
        (None, origins) => ("origin", None, origins.as_ref()),
    };
    let mut sql = format!(
        "SELECT COUNT(DISTINCT session) FROM anyhook_events INDEXED BY anyhook_event_{index} \
         WHERE time_us >= ?1 AND time_us < ?2"
    );
    let mut lists = Vec::new();
    for (name, numbers) in [("facet", facets), ("origin", origins)] {
        if let Some(numbers) = numbers {
            lists.push(json_list(numbers));
            let number = lists.len() + 2;
            let condition = format!(" AND {name} IN (SELECT value FROM json_each(?{number}))");
            sql.push_str(&condition);
        }
    }
    let mut parameters: Vec<&dyn ToSql> = vec![&selection.since_us, &selection.before.0];
    parameters.extend(lists.iter().map(|list| list as &dyn ToSql));
    let count = connection
        .prepare_cached(&sql)?
        .query_row(&*parameters, |row| row.get(0))?;
    Ok(count)
}

struct SumQuery<'a> {
    connection: &'a Connection,
    facets: HashMap<i64, Facet>,
    hooks: HashMap<i64, RunRow>,
    facet_set: Option<HashSet<i64>>,
    origin_set: Option<HashSet<i64>>,
    /// Of a bucket of the timeline, in seconds.
    width: i64,
}

impl SumQuery<'_> {
    /// Events from `from` until `until`, which lie within the filter's times.
    fn add_range(
        &self,
        counter: &mut StatsCounter,
        from: i64,
        until: i64,
        filter: &EventFilter,
    ) -> Result<()> {
        let is_all = filter.since_us.is_none() && filter.until_us.is_none();
        // Sums know minutes, not seconds.
        if self.width % 60 != 0 {
            return self.add_events(counter, from, until);
        }
        if is_all && self.origin_set.is_none() {
            self.add_sums(counter, ALL_LEVEL, 0, 1)?;
            let (first, last) = (from.div_euclid(DAY_US), until.div_euclid(DAY_US) + 1);
            return self.add_timeline(counter, first * HOURS_PER_DAY, last * HOURS_PER_DAY);
        }
        // Without a limit on a side, the outer hour is whole although nothing fills it.
        let first_hour = match filter.since_us {
            Some(since) => -(-since).div_euclid(HOUR_US),
            None => from.div_euclid(HOUR_US),
        };
        let end_hour = match filter.until_us {
            Some(until) => until.div_euclid(HOUR_US),
            None => until.div_euclid(HOUR_US) + 1,
        };
        if end_hour <= first_hour {
            return self.add_events(counter, from, until);
        }
        self.add_events(counter, from, first_hour.saturating_mul(HOUR_US))?;
        self.add_events(counter, end_hour.saturating_mul(HOUR_US), until)?;
        // A filter may begin long before the first event.
        let first_hour = first_hour.max(from.div_euclid(HOUR_US));
        let end_hour = end_hour.min(until.div_euclid(HOUR_US) + 1).max(first_hour);
        let first_day = -(-first_hour).div_euclid(HOURS_PER_DAY);
        let end_day = end_hour.div_euclid(HOURS_PER_DAY);
        if end_day > first_day {
            self.add_sums(counter, HOUR_LEVEL, first_hour, first_day * HOURS_PER_DAY)?;
            self.add_sums(counter, DAY_LEVEL, first_day, end_day)?;
            self.add_sums(counter, HOUR_LEVEL, end_day * HOURS_PER_DAY, end_hour)?;
        } else {
            self.add_sums(counter, HOUR_LEVEL, first_hour, end_hour)?;
        }
        self.add_timeline(counter, first_hour, end_hour)
    }

    fn is_wanted(&self, facet: i64, origin: i64) -> bool {
        let has =
            |set: &Option<HashSet<i64>>, number| set.as_ref().is_none_or(|it| it.contains(&number));
        has(&self.facet_set, facet) && (origin == ALL_ORIGINS || has(&self.origin_set, origin))
    }

    /// Days have sums of all origins and of each; hours only of each.
    fn origin_condition(&self, level: i64) -> &'static str {
        match (level, &self.origin_set) {
            (HOUR_LEVEL, _) => "",
            (_, None) => " AND origin = 0",
            (_, Some(_)) => " AND origin <> 0",
        }
    }

    fn counted(&self, facet: i64, count: i64) -> Option<CountedEvents<'_>> {
        let facet = self.facets.get(&facet)?;
        Some(CountedEvents {
            agent: &facet.agent,
            event: &facet.event,
            kind: &facet.kind,
            decision: &facet.decision,
            count,
        })
    }

    /// Counts and latencies from hours or days, without their times.
    fn add_sums(
        &self,
        counter: &mut StatsCounter,
        level: i64,
        from: i64,
        until: i64,
    ) -> Result<()> {
        let origins = self.origin_condition(level);
        let sql = format!(
            "SELECT origin, facet, events, max_ms, sketch FROM anyhook_rollups \
             WHERE level = ?1 AND start >= ?2 AND start < ?3{origins}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![level, from, until])?;
        while let Some(row) = rows.next()? {
            let facet = row.get(1)?;
            if self.is_wanted(facet, row.get(0)?)
                && let Some(counted) = self.counted(facet, row.get(2)?)
            {
                let sketch = row.get_ref(4)?.as_blob().unwrap_or_default();
                let sketch = DurationSketch::decode(sketch, row.get(3)?);
                counter.add_events(&counted, &sketch);
            }
        }
        let sql = format!(
            "SELECT origin, facet, hook, runs, denials, troubles, max_ms, sketch \
             FROM anyhook_hook_rollups WHERE level = ?1 AND start >= ?2 AND start < ?3{origins}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![level, from, until])?;
        while let Some(row) = rows.next()? {
            let facet: i64 = row.get(1)?;
            if !self.is_wanted(facet, row.get(0)?) {
                continue;
            }
            let hook: i64 = row.get(2)?;
            if let (Some(facet), Some(hook)) = (self.facets.get(&facet), self.hooks.get(&hook)) {
                let sketch = row.get_ref(7)?.as_blob().unwrap_or_default();
                let sums = HookSums {
                    runs: row.get(3)?,
                    denials: row.get(4)?,
                    troubles: row.get(5)?,
                    sketch: DurationSketch::decode(sketch, row.get(6)?),
                };
                counter.add_hook(&facet.agent, hook, &sums);
            }
        }
        Ok(())
    }

    /// The times of whole hours: by day where a bucket is at least a day, else by minute.
    fn add_timeline(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        const HOUR_SECONDS: i64 = 3600;
        let day_seconds = HOUR_SECONDS * HOURS_PER_DAY;
        let is_daily = self.width % day_seconds == 0
            && from % HOURS_PER_DAY == 0
            && until % HOURS_PER_DAY == 0;
        let level = if is_daily { DAY_LEVEL } else { HOUR_LEVEL };
        let unit = if is_daily { HOURS_PER_DAY } else { 1 };
        let origins = self.origin_condition(level);
        // Minutes are read only where a bucket is shorter than an hour.
        let has_minutes = self.width % HOUR_SECONDS != 0;
        let minutes = if has_minutes { "minutes" } else { "NULL" };
        let sql = format!(
            "SELECT start, origin, facet, events, {minutes} FROM anyhook_rollups \
             WHERE level = ?1 AND start >= ?2 AND start < ?3{origins}"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![level, from / unit, until / unit])?;
        while let Some(row) = rows.next()? {
            let facet = row.get(2)?;
            if !self.is_wanted(facet, row.get(1)?) {
                continue;
            }
            let start: i64 = row.get(0)?;
            let second = start * unit * HOUR_SECONDS;
            if !has_minutes {
                if let Some(counted) = self.counted(facet, row.get(3)?) {
                    counter.add_time(second, &counted);
                }
                continue;
            }
            let minutes = MinuteCounts::decode(row.get_ref(4)?.as_blob().unwrap_or_default());
            for (minute, count) in minutes.0 {
                if let Some(counted) = self.counted(facet, count) {
                    counter.add_time(second + i64::from(minute) * 60, &counted);
                }
            }
        }
        Ok(())
    }

    /// Counts every event between two times.
    fn add_events(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        if until <= from {
            return Ok(());
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT time_us, facet, origin, duration_ms, runs FROM anyhook_events \
             INDEXED BY anyhook_event_time WHERE time_us >= ?1 AND time_us < ?2",
        )?;
        let mut rows = statement.query(params![from, until])?;
        while let Some(row) = rows.next()? {
            let (time_us, facet): (i64, i64) = (row.get(0)?, row.get(1)?);
            if !self.is_wanted(facet, row.get(2)?) {
                continue;
            }
            let Some(counted) = self.counted(facet, 1) else {
                continue;
            };
            let mut sketch = DurationSketch::default();
            sketch.add(row.get(3)?);
            counter.add_events(&counted, &sketch);
            counter.add_time(time_us.div_euclid(1_000_000), &counted);
            for run in decode_runs(row.get_ref(4)?.as_blob().unwrap_or_default()) {
                if let Some(hook) = self.hooks.get(&run.hook) {
                    let mut sums = HookSums::default();
                    sums.add(run);
                    counter.add_hook(counted.agent, hook, &sums);
                }
            }
        }
        Ok(())
    }
}
