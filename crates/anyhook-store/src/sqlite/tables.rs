//! How the shared queries get at the rows of a SQLite file.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Params, Row, ToSql, params};

use crate::error::Result;
use crate::names::{Facet, Origin};
use crate::query::SessionSummary;
use crate::reading::sessions;
use crate::reading::{
    EventIndex, EventKey, EventNumbers, EventSumRow, EventTables, HookSumRow, Selection,
    StoredSession, SumOrigins, SumPart, SumRange,
};
use crate::rollup::{ALL_ORIGINS, DAY_LEVEL, NumberedRun, decode_runs};
use crate::row::{EventRow, RunRow, rfc3339_micros, saturating_i64};
use crate::sqlite::connections::RecordReader;
use crate::sqlite::reading::{list_conditions, newest_keys, rows_of_keys};
use crate::sqlite::search;

pub(crate) struct SqliteTables<'a> {
    pub connection: &'a Connection,
    pub records: &'a RecordReader<'a>,
}

const SESSION_COLUMNS: &str = "session, first_us, last_us, last_seq, session_id, agent, events, \
                               tools, denials, asks, cwd, machine";

fn stored_session(row: &Row<'_>) -> rusqlite::Result<StoredSession> {
    let (first_us, last_us) = (row.get(1)?, row.get(2)?);
    Ok(StoredSession {
        number: row.get(0)?,
        first_us,
        last: (last_us, row.get(3)?),
        summary: SessionSummary {
            session_id: row.get(4)?,
            agent: row.get(5)?,
            first: rfc3339_micros(first_us),
            last: rfc3339_micros(last_us),
            events: row.get(6)?,
            tools: row.get(7)?,
            denials: row.get(8)?,
            asks: row.get(9)?,
            cwd: row.get(10)?,
            machine: row.get(11)?,
        },
    })
}

fn condition(range: SumRange) -> &'static str {
    match range.origins {
        SumOrigins::AsTheyAre => "",
        SumOrigins::AllAsOne => " AND origin = 0",
        SumOrigins::Each => " AND origin <> 0",
    }
}

impl SqliteTables<'_> {
    fn collect<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(parameters, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn sessions(&self, rest: &str, parameters: impl Params) -> Result<Vec<StoredSession>> {
        let sql = format!("SELECT {SESSION_COLUMNS} FROM anyhook_sessions {rest}");
        self.collect(&sql, parameters, stored_session)
    }

    fn for_each_row(
        &self,
        sql: &str,
        parameters: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            visit(row)?;
        }
        Ok(())
    }
}

impl SqliteTables<'_> {
    /// How many events of all origins each day has. The index has nothing else in it.
    fn for_each_day_count(
        &self,
        range: SumRange,
        visit: &mut dyn FnMut(EventSumRow<'_>),
    ) -> Result<()> {
        let sql = "SELECT start, facet, events FROM anyhook_rollups \
                   INDEXED BY anyhook_rollup_days \
                   WHERE level = 1 AND origin = 0 AND start >= ?1 AND start < ?2";
        self.for_each_row(sql, params![range.from, range.until], |row| {
            visit(EventSumRow {
                start: row.get(0)?,
                origin: ALL_ORIGINS,
                facet: row.get(1)?,
                events: row.get(2)?,
                max_ms: 0.0,
                minutes: &[],
                sketch: &[],
            });
            Ok(())
        })
    }
}

impl EventTables for SqliteTables<'_> {
    fn facets(&self) -> Result<HashMap<i64, Facet>> {
        let sql = "SELECT facet, kind, agent, event, type, native_event, tool, decision \
                   FROM anyhook_facets";
        self.collect(sql, [], |row| {
            let facet = Facet {
                kind: row.get(1)?,
                agent: row.get(2)?,
                event: row.get(3)?,
                unified: row.get(4)?,
                native_event: row.get(5)?,
                tool: row.get(6)?,
                decision: row.get(7)?,
            };
            Ok((row.get(0)?, facet))
        })
    }

    fn origins(&self) -> Result<HashMap<i64, Origin>> {
        let sql = "SELECT origin, machine, user_id, project_id, workflow_id FROM anyhook_origins";
        self.collect(sql, [], |row| {
            let origin = Origin {
                machine: row.get(1)?,
                user_id: row.get(2)?,
                project_id: row.get(3)?,
                workflow_id: row.get(4)?,
            };
            Ok((row.get(0)?, origin))
        })
    }

    fn hooks(&self) -> Result<HashMap<i64, RunRow>> {
        let sql = "SELECT hook, name, content, manifest FROM anyhook_hooks";
        self.collect(sql, [], |row| {
            let hook = RunRow {
                hook: row.get(1)?,
                content: row.get(2)?,
                manifest: row.get(3)?,
                ..RunRow::default()
            };
            Ok((row.get(0)?, hook))
        })
    }

    fn newest(
        &self,
        selection: &Selection,
        text: Option<&str>,
        limit: usize,
    ) -> Result<Vec<EventRow>> {
        if let Some(text) = text {
            return search::newest(self.connection, self.records, selection, text, limit);
        }
        let keys = newest_keys(self.connection, selection, limit)?;
        rows_of_keys(self.connection, self.records, &keys)
    }

    fn time_range(&self, selection: &Selection) -> Result<Option<(i64, i64)>> {
        let (access, values) = selection.access();
        let (column, index) = access.column();
        let (conditions, lists) = list_conditions(selection.conditions(access), 3);
        let mut range: Option<(i64, i64)> = None;
        for order in ["ASC", "DESC"] {
            let sql = format!(
                "SELECT time_us FROM anyhook_events INDEXED BY anyhook_event_{index} \
                 WHERE {column} = ?1 AND time_us >= ?2 AND time_us < ?3{conditions} \
                 ORDER BY time_us {order} LIMIT 1"
            );
            for value in &values {
                let mut parameters: Vec<&dyn ToSql> =
                    vec![value, &selection.since_us, &selection.before.0];
                parameters.extend(lists.iter().map(|list| list as &dyn ToSql));
                self.for_each_row(&sql, &*parameters, |row| {
                    let time: i64 = row.get(0)?;
                    let (first, last) = range.unwrap_or((time, time));
                    range = Some((first.min(time), last.max(time)));
                    Ok(())
                })?;
            }
        }
        Ok(range)
    }

    fn for_each_event_sum(
        &self,
        range: SumRange,
        part: SumPart,
        visit: &mut dyn FnMut(EventSumRow<'_>),
    ) -> Result<()> {
        let is_of_days = range.level == DAY_LEVEL && range.origins == SumOrigins::AllAsOne;
        if is_of_days && part == SumPart::Counts {
            return self.for_each_day_count(range, visit);
        }
        // What is not asked for may lie on pages of its own.
        let (minutes, sketch) = match part {
            SumPart::Counts => ("NULL", "NULL"),
            SumPart::Minutes => ("minutes", "NULL"),
            SumPart::Latencies => ("NULL", "sketch"),
        };
        let sql = format!(
            "SELECT start, origin, facet, events, max_ms, {minutes}, {sketch} \
             FROM anyhook_rollups WHERE level = ?1 AND start >= ?2 AND start < ?3{}",
            condition(range)
        );
        self.for_each_row(&sql, params![range.level, range.from, range.until], |row| {
            visit(EventSumRow {
                start: row.get(0)?,
                origin: row.get(1)?,
                facet: row.get(2)?,
                events: row.get(3)?,
                max_ms: row.get(4)?,
                minutes: row.get_ref(5)?.as_blob().unwrap_or_default(),
                sketch: row.get_ref(6)?.as_blob().unwrap_or_default(),
            });
            Ok(())
        })
    }

    fn for_each_hook_sum(
        &self,
        range: SumRange,
        visit: &mut dyn FnMut(HookSumRow<'_>),
    ) -> Result<()> {
        let sql = format!(
            "SELECT origin, facet, hook, runs, denials, troubles, max_ms, sketch \
             FROM anyhook_hook_rollups WHERE level = ?1 AND start >= ?2 AND start < ?3{}",
            condition(range)
        );
        self.for_each_row(&sql, params![range.level, range.from, range.until], |row| {
            visit(HookSumRow {
                origin: row.get(0)?,
                facet: row.get(1)?,
                hook: row.get(2)?,
                runs: row.get(3)?,
                denials: row.get(4)?,
                troubles: row.get(5)?,
                max_ms: row.get(6)?,
                sketch: row.get_ref(7)?.as_blob().unwrap_or_default(),
            });
            Ok(())
        })
    }

    fn for_each_event(
        &self,
        from: i64,
        until: i64,
        visit: &mut dyn FnMut(EventNumbers, f64, &[NumberedRun]),
    ) -> Result<()> {
        let sql = "SELECT time_us, seq, facet, origin, duration_ms, runs FROM anyhook_events \
                   INDEXED BY anyhook_event_time WHERE time_us >= ?1 AND time_us < ?2";
        self.for_each_row(sql, params![from, until], |row| {
            let runs = decode_runs(row.get_ref(5)?.as_blob().unwrap_or_default());
            visit(event_numbers(row)?, row.get(4)?, &runs);
            Ok(())
        })
    }

    fn session_numbers(&self, id: &str) -> Result<Vec<i64>> {
        let sql = "SELECT session FROM anyhook_sessions WHERE session_id = ?1";
        self.collect(sql, [id], |row| row.get(0))
    }

    fn session(&self, number: i64) -> Result<Option<StoredSession>> {
        Ok(self.sessions("WHERE session = ?1", [number])?.pop())
    }

    fn latest_session(&self, id: &str, agent: Option<&str>) -> Result<Option<StoredSession>> {
        let rest = "WHERE session_id = ?1 AND (?2 IS NULL OR agent = ?2) \
                    ORDER BY last_us DESC, last_seq DESC LIMIT 1";
        Ok(self.sessions(rest, params![id, agent])?.pop())
    }

    fn newest_sessions(
        &self,
        agent: Option<&str>,
        before: EventKey,
        since_us: i64,
        limit: usize,
    ) -> Result<Vec<StoredSession>> {
        let (condition, index) = match agent {
            Some(_) => ("agent = ?1", "agent"),
            None => ("?1 IS NULL", "last"),
        };
        let rest = format!(
            "INDEXED BY anyhook_session_{index} WHERE {condition} \
             AND (last_us, last_seq) < (?2, ?3) AND last_us >= ?4 \
             ORDER BY last_us DESC, last_seq DESC LIMIT ?5"
        );
        let limit = saturating_i64(limit);
        self.sessions(&rest, params![agent, before.0, before.1, since_us, limit])
    }

    fn session_of_event(&self, (_, seq): EventKey) -> Result<Option<i64>> {
        let sql = "SELECT session FROM anyhook_events WHERE seq = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found: Option<Option<i64>> = statement.query_row([seq], |row| row.get(0)).optional()?;
        Ok(found.flatten())
    }

    fn events_of_session(&self, number: i64, since_us: i64) -> Result<Vec<EventNumbers>> {
        let sql = "SELECT time_us, seq, facet, origin FROM anyhook_events \
                   INDEXED BY anyhook_event_session WHERE session = ?1 AND time_us >= ?2 \
                   ORDER BY time_us DESC, seq DESC";
        self.collect(sql, params![number, since_us], event_numbers)
    }

    fn facets_of_session(&self, number: i64) -> Result<HashMap<i64, i64>> {
        let sql = "SELECT facet, COUNT(*) FROM anyhook_events INDEXED BY anyhook_event_session \
                   WHERE session = ?1 GROUP BY facet";
        self.collect(sql, [number], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn count_sessions(&self, agent: Option<&str>, since_us: i64, until_us: i64) -> Result<i64> {
        let sql = sessions::count_sql(agent.is_some(), since_us, until_us);
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row(params![agent, since_us, until_us], |row| row.get(0))?)
    }

    fn count_selected_sessions(&self, selection: &Selection) -> Result<i64> {
        let (access, values) = selection.access();
        let (column, index) = access.column();
        let mut columns = selection.conditions(access);
        if access != EventIndex::Time {
            columns.push((column, &values));
        }
        let (conditions, lists) = list_conditions(columns, 2);
        let sql = format!(
            "SELECT COUNT(DISTINCT session) FROM anyhook_events INDEXED BY anyhook_event_{index} \
             WHERE time_us >= ?1 AND time_us < ?2{conditions}"
        );
        let mut parameters: Vec<&dyn ToSql> = vec![&selection.since_us, &selection.before.0];
        parameters.extend(lists.iter().map(|list| list as &dyn ToSql));
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.query_row(&*parameters, |row| row.get(0))?)
    }
}

/// Reads `time_us`, `seq`, `facet` and `origin`.
fn event_numbers(row: &Row<'_>) -> rusqlite::Result<EventNumbers> {
    Ok(EventNumbers {
        key: (row.get(0)?, row.get(1)?),
        facet: row.get(2)?,
        origin: row.get(3)?,
    })
}
