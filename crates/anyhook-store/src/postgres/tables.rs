//! How the shared queries get at the rows of a PostgreSQL database.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use postgres::Row;
use postgres::types::ToSql;

use crate::body::{BodyCodec, dictionary_number};
use crate::error::{Result, StoreError};
use crate::names::{Facet, Origin};
use crate::postgres::parts::Part;
use crate::postgres::reading;
use crate::postgres::session::{Arguments, Session};
use crate::query::SessionSummary;
use crate::reading::sessions;
use crate::reading::{
    EventKey, EventNumbers, EventSumRow, EventTables, HookSumRow, Selection, StoredSession,
    SumOrigins, SumPart, SumRange,
};
use crate::rollup::{NumberedRun, decode_runs};
use crate::row::{EventRow, RunRow, rfc3339_micros, saturating_i64};

/// The tables as one transaction sees them.
pub(crate) struct PostgresTables<'a> {
    pub session: RefCell<&'a mut Session>,
    pub codec: &'a BodyCodec,
    /// Those with events, the newest first, once they are read.
    pub parts: OnceCell<Vec<Part>>,
}

const SESSION_COLUMNS: &str = "session, first_us, last_us, last_seq, session_id, agent, events, \
                               tools, denials, asks, cwd, machine";

fn stored_session(row: &Row) -> Result<StoredSession> {
    let (first_us, last_us) = (row.try_get(1)?, row.try_get(2)?);
    Ok(StoredSession {
        number: row.try_get(0)?,
        first_us,
        last: (last_us, row.try_get(3)?),
        summary: SessionSummary {
            session_id: row.try_get(4)?,
            agent: row.try_get(5)?,
            first: rfc3339_micros(first_us),
            last: rfc3339_micros(last_us),
            events: row.try_get(6)?,
            tools: row.try_get(7)?,
            denials: row.try_get(8)?,
            asks: row.try_get(9)?,
            cwd: row.try_get(10)?,
            machine: row.try_get(11)?,
        },
    })
}

/// Loads the dictionaries that another process may have trained.
pub(crate) fn load_dictionaries(session: &mut Session, codec: &BodyCodec) -> Result<()> {
    let sql = "SELECT number, bytes FROM anyhook_dictionaries ORDER BY number";
    for row in &session.query(sql, &[])? {
        let (number, bytes): (i64, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
        let number = u8::try_from(number).map_err(|_| StoreError::Shape("a dictionary"))?;
        if !codec.has(number) && !bytes.is_empty() {
            codec.add(number, bytes);
        }
    }
    Ok(())
}

fn condition(range: SumRange) -> &'static str {
    match range.origins {
        SumOrigins::AsTheyAre => "",
        SumOrigins::AllAsOne => " AND origin = 0",
        SumOrigins::Each => " AND origin <> 0",
    }
}

impl PostgresTables<'_> {
    pub(crate) fn query(&self, sql: &str, arguments: Arguments<'_>) -> Result<Vec<Row>> {
        self.session.borrow_mut().query(sql, arguments)
    }

    fn count(&self, sql: &str, arguments: Arguments<'_>) -> Result<i64> {
        let count = self.session.borrow_mut().query_int(sql, arguments)?;
        Ok(count.unwrap_or_default())
    }

    fn sessions(&self, rest: &str, arguments: Arguments<'_>) -> Result<Vec<StoredSession>> {
        let sql = format!("SELECT {SESSION_COLUMNS} FROM anyhook_sessions {rest}");
        let rows = self.query(&sql, arguments)?;
        rows.iter().map(stored_session).collect()
    }

    /// An event from `seq`, `time_us` and `body`.
    pub(crate) fn event_row(&self, row: &Row) -> Result<EventRow> {
        event_row(&mut self.session.borrow_mut(), self.codec, row)
    }
}

/// An event from `seq`, `time_us` and `body`.
pub(crate) fn event_row(session: &mut Session, codec: &BodyCodec, row: &Row) -> Result<EventRow> {
    let stored: &[u8] = row.try_get(2)?;
    if !codec.has(dictionary_number(stored)) {
        load_dictionaries(session, codec)?;
    }
    let body = codec.decode(stored)?;
    EventRow::from_stored(row.try_get(0)?, row.try_get(1)?, &body)
}

/// Reads `time_us`, `seq`, `facet` and `origin`.
fn event_numbers(row: &Row) -> Result<EventNumbers> {
    Ok(EventNumbers {
        key: (row.try_get(0)?, row.try_get(1)?),
        facet: row.try_get(2)?,
        origin: row.try_get(3)?,
    })
}

impl EventTables for PostgresTables<'_> {
    fn facets(&self) -> Result<HashMap<i64, Facet>> {
        let sql = "SELECT facet, kind, agent, event, type, native_event, tool, decision \
                   FROM anyhook_facets";
        let rows = self.query(sql, &[])?;
        let facets = rows.iter().map(|row| {
            let facet = Facet {
                kind: row.try_get(1)?,
                agent: row.try_get(2)?,
                event: row.try_get(3)?,
                unified: row.try_get(4)?,
                native_event: row.try_get(5)?,
                tool: row.try_get(6)?,
                decision: row.try_get(7)?,
            };
            Ok((row.try_get(0)?, facet))
        });
        facets.collect()
    }

    fn origins(&self) -> Result<HashMap<i64, Origin>> {
        let sql = "SELECT origin, machine, user_id, project_id, workflow_id FROM anyhook_origins";
        let rows = self.query(sql, &[])?;
        let origins = rows.iter().map(|row| {
            let origin = Origin {
                machine: row.try_get(1)?,
                user_id: row.try_get(2)?,
                project_id: row.try_get(3)?,
                workflow_id: row.try_get(4)?,
            };
            Ok((row.try_get(0)?, origin))
        });
        origins.collect()
    }

    fn hooks(&self) -> Result<HashMap<i64, RunRow>> {
        let rows = self.query(
            "SELECT hook, name, content, manifest FROM anyhook_hooks",
            &[],
        )?;
        let hooks = rows.iter().map(|row| {
            let hook = RunRow {
                hook: row.try_get(1)?,
                content: row.try_get(2)?,
                manifest: row.try_get(3)?,
                ..RunRow::default()
            };
            Ok((row.try_get(0)?, hook))
        });
        hooks.collect()
    }

    fn newest(
        &self,
        selection: &Selection,
        text: Option<&str>,
        limit: usize,
    ) -> Result<Vec<EventRow>> {
        reading::newest(self, selection, text, limit)
    }

    fn time_range(&self, selection: &Selection) -> Result<Option<(i64, i64)>> {
        reading::time_range(self, selection)
    }

    fn for_each_event_sum(
        &self,
        range: SumRange,
        part: SumPart,
        visit: &mut dyn FnMut(EventSumRow<'_>),
    ) -> Result<()> {
        let (minutes, sketch) = match part {
            SumPart::Counts => ("NULL::bytea", "NULL::bytea"),
            SumPart::Minutes => ("minutes", "NULL::bytea"),
            SumPart::Latencies => ("NULL::bytea", "sketch"),
        };
        let sql = format!(
            "SELECT start, origin, facet, events, max_ms, {minutes}, {sketch} \
             FROM anyhook_rollups WHERE level = $1 AND start >= $2 AND start < $3{}",
            condition(range)
        );
        for row in &self.query(&sql, &[&range.level, &range.from, &range.until])? {
            visit(EventSumRow {
                start: row.try_get(0)?,
                origin: row.try_get(1)?,
                facet: row.try_get(2)?,
                events: row.try_get(3)?,
                max_ms: row.try_get(4)?,
                minutes: row.try_get::<_, Option<&[u8]>>(5)?.unwrap_or_default(),
                sketch: row.try_get::<_, Option<&[u8]>>(6)?.unwrap_or_default(),
            });
        }
        Ok(())
    }

    fn for_each_hook_sum(
        &self,
        range: SumRange,
        visit: &mut dyn FnMut(HookSumRow<'_>),
    ) -> Result<()> {
        let sql = format!(
            "SELECT origin, facet, hook, runs, denials, troubles, max_ms, sketch \
             FROM anyhook_hook_rollups WHERE level = $1 AND start >= $2 AND start < $3{}",
            condition(range)
        );
        for row in &self.query(&sql, &[&range.level, &range.from, &range.until])? {
            visit(HookSumRow {
                origin: row.try_get(0)?,
                facet: row.try_get(1)?,
                hook: row.try_get(2)?,
                runs: row.try_get(3)?,
                denials: row.try_get(4)?,
                troubles: row.try_get(5)?,
                max_ms: row.try_get(6)?,
                sketch: row.try_get(7)?,
            });
        }
        Ok(())
    }

    fn for_each_event(
        &self,
        from: i64,
        until: i64,
        visit: &mut dyn FnMut(EventNumbers, f64, &[NumberedRun]),
    ) -> Result<()> {
        let parts = reading::parts(self)?;
        let touched = parts
            .iter()
            .filter(|part| part.max_us >= from && part.min_us < until);
        for part in touched {
            let sql = format!(
                "SELECT time_us, seq, facet, origin, duration_ms, runs FROM {} \
                 WHERE time_us >= $1 AND time_us < $2",
                part.name
            );
            for row in &self.query(&sql, &[&from, &until])? {
                let runs = decode_runs(row.try_get(5)?);
                visit(event_numbers(row)?, row.try_get(4)?, &runs);
            }
        }
        Ok(())
    }

    fn session_numbers(&self, id: &str) -> Result<Vec<i64>> {
        let sql = "SELECT session FROM anyhook_sessions WHERE session_id = $1";
        let rows = self.query(sql, &[&id])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn session(&self, number: i64) -> Result<Option<StoredSession>> {
        Ok(self.sessions("WHERE session = $1", &[&number])?.pop())
    }

    fn latest_session(&self, id: &str, agent: Option<&str>) -> Result<Option<StoredSession>> {
        let rest = "WHERE session_id = $1 AND ($2::text IS NULL OR agent = $2) \
                    ORDER BY last_us DESC, last_seq DESC LIMIT 1";
        Ok(self.sessions(rest, &[&id, &agent])?.pop())
    }

    fn newest_sessions(
        &self,
        agent: Option<&str>,
        before: EventKey,
        since_us: i64,
        limit: usize,
    ) -> Result<Vec<StoredSession>> {
        let condition = match agent {
            Some(_) => "agent = $1",
            None => "$1::text IS NULL",
        };
        let rest = format!(
            "WHERE {condition} AND (last_us, last_seq) < ($2, $3) AND last_us >= $4 \
             ORDER BY last_us DESC, last_seq DESC LIMIT $5"
        );
        let limit = saturating_i64(limit);
        let agent = agent.map(|agent| agent.replace('\0', "\u{fffd}"));
        self.sessions(&rest, &[&agent, &before.0, &before.1, &since_us, &limit])
    }

    fn session_of_event(&self, key: EventKey) -> Result<Option<i64>> {
        let parts = reading::parts(self)?;
        let touched = parts
            .iter()
            .filter(|part| part.min_us <= key.0 && part.max_us >= key.0);
        for part in touched {
            let sql = format!("SELECT session FROM {} WHERE seq = $1", part.name);
            let rows = self.query(&sql, &[&key.1])?;
            if let Some(row) = rows.first() {
                return Ok(row.try_get(0)?);
            }
        }
        Ok(None)
    }

    fn events_of_session(&self, number: i64, since_us: i64) -> Result<Vec<EventNumbers>> {
        let mut events = Vec::new();
        for part in reading::parts_of_sessions(self, &[number], since_us)? {
            let sql = format!(
                "SELECT time_us, seq, facet, origin FROM {} WHERE session = $1 AND time_us >= $2",
                part.name
            );
            for row in &self.query(&sql, &[&number, &since_us])? {
                events.push(event_numbers(row)?);
            }
        }
        events.sort_unstable_by_key(|event| std::cmp::Reverse(event.key));
        Ok(events)
    }

    fn facets_of_session(&self, number: i64) -> Result<HashMap<i64, i64>> {
        let mut facets = HashMap::new();
        for part in reading::parts_of_sessions(self, &[number], i64::MIN)? {
            let sql = format!(
                "SELECT facet, COUNT(*) FROM {} WHERE session = $1 GROUP BY facet",
                part.name
            );
            for row in &self.query(&sql, &[&number])? {
                *facets.entry(row.try_get(0)?).or_default() += row.try_get::<_, i64>(1)?;
            }
        }
        Ok(facets)
    }

    fn count_sessions(&self, agent: Option<&str>, since_us: i64, until_us: i64) -> Result<i64> {
        let sql = sessions::count_sql(agent.is_some(), since_us, until_us);
        self.count(&sql, &[&agent, &since_us, &until_us])
    }

    fn count_selected_sessions(&self, selection: &Selection) -> Result<i64> {
        let mut found = std::collections::HashSet::new();
        for part in reading::parts_of(self, selection)? {
            let (access, values) = reading::access(selection, &part);
            let (column, _) = access.column();
            let plain = reading::conditions(selection, access, 3);
            let sql = format!(
                "SELECT DISTINCT e.session FROM UNNEST($1::bigint[]) AS v (value) \
                 CROSS JOIN LATERAL (SELECT session FROM {} WHERE {column} = v.value \
                 AND time_us >= $2 AND time_us < $3{} AND session IS NOT NULL) e",
                part.part.name, plain.sql
            );
            let mut arguments: Vec<&(dyn ToSql + Sync)> =
                vec![&values, &selection.since_us, &selection.before.0];
            arguments.extend(plain.arguments());
            for row in &self.query(&sql, &arguments)? {
                found.insert(row.try_get::<_, i64>(0)?);
            }
        }
        Ok(saturating_i64(found.len()))
    }
}
