//! What many events share is stored once, and events refer to it by number.

use std::collections::HashMap;

use rusqlite::{Connection, params_from_iter};

use crate::error::Result;
use crate::query::{EventFilter, EventSummary};
use crate::row::RunRow;

/// What an event is. An absent name is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Facet {
    pub kind: String,
    pub agent: String,
    pub event: String,
    pub unified: String,
    pub native_event: String,
    pub tool: String,
    pub decision: String,
}

/// Where an event comes from. An absent name is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub machine: String,
    pub user_id: String,
    pub project_id: String,
    pub workflow_id: String,
}

fn or_empty(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

/// Whether a name is the one that is asked for; every name is, if none is asked for.
fn is(wanted: Option<&String>, actual: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == actual && !actual.is_empty())
}

impl Facet {
    pub(crate) fn from_summary(event: &EventSummary) -> Self {
        Self {
            kind: event.kind.clone(),
            agent: event.agent.clone(),
            event: event.event.clone(),
            unified: event.unified.clone(),
            native_event: or_empty(event.native_event.as_ref()),
            tool: or_empty(event.tool.as_ref()),
            decision: or_empty(event.decision.as_ref()),
        }
    }

    /// The part of [`EventFilter::matches_summary`] that a facet decides.
    pub(crate) fn matches(&self, filter: &EventFilter) -> bool {
        let decision = match filter.decision.as_deref() {
            Some("none") => self.decision.is_empty(),
            _ => is(filter.decision.as_ref(), &self.decision),
        };
        let names = [&self.event, &self.unified, &self.native_event];
        decision
            && filter
                .agent
                .as_ref()
                .is_none_or(|agent| *agent == self.agent)
            && is(filter.tool.as_ref(), &self.tool)
            && names.iter().any(|name| is(filter.event.as_ref(), name))
    }

    pub(crate) fn is_asked_for(filter: &EventFilter) -> bool {
        [&filter.agent, &filter.event, &filter.decision, &filter.tool]
            .iter()
            .any(|field| field.is_some())
    }

    fn columns(&self) -> [&str; 7] {
        [
            &self.kind,
            &self.agent,
            &self.event,
            &self.unified,
            &self.native_event,
            &self.tool,
            &self.decision,
        ]
    }
}

impl Origin {
    pub(crate) fn from_summary(event: &EventSummary) -> Self {
        Self {
            machine: or_empty(event.machine.as_ref()),
            user_id: or_empty(event.user_id.as_ref()),
            project_id: or_empty(event.project_id.as_ref()),
            workflow_id: or_empty(event.workflow_id.as_ref()),
        }
    }

    pub(crate) fn matches(&self, filter: &EventFilter) -> bool {
        is(filter.machine.as_ref(), &self.machine)
            && is(filter.user_id.as_ref(), &self.user_id)
            && is(filter.project_id.as_ref(), &self.project_id)
            && is(filter.workflow_id.as_ref(), &self.workflow_id)
    }

    pub(crate) fn is_asked_for(filter: &EventFilter) -> bool {
        [
            &filter.machine,
            &filter.user_id,
            &filter.project_id,
            &filter.workflow_id,
        ]
        .iter()
        .any(|field| field.is_some())
    }

    fn columns(&self) -> [&str; 4] {
        [
            &self.machine,
            &self.user_id,
            &self.project_id,
            &self.workflow_id,
        ]
    }
}

/// Numbers that a writer has seen. They stay valid: these rows are never deleted. A number
/// that a transaction added is valid only when that is committed.
#[derive(Debug, Default, Clone)]
pub(crate) struct NumberCache {
    facets: HashMap<Facet, i64>,
    origins: HashMap<Origin, i64>,
    /// By name and content; with the manifest that was seen last.
    hooks: HashMap<[String; 2], (i64, String)>,
}

impl NumberCache {
    pub(crate) fn facet(&mut self, connection: &Connection, facet: Facet) -> Result<i64> {
        if let Some(number) = self.facets.get(&facet) {
            return Ok(*number);
        }
        let number = number_of(
            connection,
            "SELECT facet FROM anyhook_facets WHERE kind = ?1 AND agent = ?2 AND event = ?3 \
             AND type = ?4 AND native_event = ?5 AND tool = ?6 AND decision = ?7",
            "INSERT INTO anyhook_facets (kind, agent, event, type, native_event, tool, decision) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            &facet.columns(),
        )?;
        self.facets.insert(facet, number);
        Ok(number)
    }

    pub(crate) fn origin(&mut self, connection: &Connection, origin: Origin) -> Result<i64> {
        if let Some(number) = self.origins.get(&origin) {
            return Ok(*number);
        }
        let number = number_of(
            connection,
            "SELECT origin FROM anyhook_origins WHERE machine = ?1 AND user_id = ?2 \
             AND project_id = ?3 AND workflow_id = ?4",
            "INSERT INTO anyhook_origins (machine, user_id, project_id, workflow_id) \
             VALUES (?1, ?2, ?3, ?4)",
            &origin.columns(),
        )?;
        self.origins.insert(origin, number);
        Ok(number)
    }

    pub(crate) fn hook(&mut self, connection: &Connection, run: &RunRow) -> Result<i64> {
        let key = [run.hook.clone(), run.content.clone()];
        if let Some((number, manifest)) = self.hooks.get(&key)
            && *manifest == run.manifest
        {
            return Ok(*number);
        }
        let number = number_of(
            connection,
            "SELECT hook FROM anyhook_hooks WHERE name = ?1 AND content = ?2",
            "INSERT INTO anyhook_hooks (name, content, manifest) VALUES (?1, ?2, '')",
            &[&run.hook, &run.content],
        )?;
        connection
            .prepare_cached("UPDATE anyhook_hooks SET manifest = ?2 WHERE hook = ?1")?
            .execute(rusqlite::params![number, run.manifest])?;
        self.hooks.insert(key, (number, run.manifest.clone()));
        Ok(number)
    }
}

fn number_of(connection: &Connection, select: &str, insert: &str, columns: &[&str]) -> Result<i64> {
    let mut select = connection.prepare_cached(select)?;
    let mut found = select.query(params_from_iter(columns))?;
    if let Some(row) = found.next()? {
        return Ok(row.get(0)?);
    }
    connection
        .prepare_cached(insert)?
        .execute(params_from_iter(columns))?;
    Ok(connection.last_insert_rowid())
}

/// Every facet, origin and hook of a store, for a query.
pub(crate) fn all_facets(connection: &Connection) -> Result<HashMap<i64, Facet>> {
    let sql = "SELECT facet, kind, agent, event, type, native_event, tool, decision \
               FROM anyhook_facets";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok((
            row.get(0)?,
            Facet {
                kind: row.get(1)?,
                agent: row.get(2)?,
                event: row.get(3)?,
                unified: row.get(4)?,
                native_event: row.get(5)?,
                tool: row.get(6)?,
                decision: row.get(7)?,
            },
        ))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn all_origins(connection: &Connection) -> Result<HashMap<i64, Origin>> {
    let sql = "SELECT origin, machine, user_id, project_id, workflow_id FROM anyhook_origins";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok((
            row.get(0)?,
            Origin {
                machine: row.get(1)?,
                user_id: row.get(2)?,
                project_id: row.get(3)?,
                workflow_id: row.get(4)?,
            },
        ))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn all_hooks(connection: &Connection) -> Result<HashMap<i64, RunRow>> {
    let sql = "SELECT hook, name, content, manifest FROM anyhook_hooks";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok((
            row.get(0)?,
            RunRow {
                hook: row.get(1)?,
                content: row.get(2)?,
                manifest: row.get(3)?,
                ..RunRow::default()
            },
        ))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// An id as it is stored: the bytes of a UUID, else the text after a byte that no UUID of
/// that length can be confused with.
pub(crate) fn id_bytes(id: &str) -> Vec<u8> {
    if let Some(uuid) = uuid_bytes(id) {
        return uuid;
    }
    let mut bytes = vec![0xff];
    bytes.extend(id.as_bytes());
    if bytes.len() == 16 {
        bytes.push(0xff);
    }
    bytes
}

/// Only the usual form, so that each stored id has one text.
fn uuid_bytes(id: &str) -> Option<Vec<u8>> {
    let bytes = id.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut found = Vec::with_capacity(16);
    let mut half = None;
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            (*byte == b'-').then_some(())?;
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        half = match half {
            None => Some(digit),
            Some(high) => {
                found.push(high << 4 | digit);
                None
            }
        };
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_are_stored_differently() {
        let ids = [
            "0190a1b2-0000-7000-8000-0123456789ab",
            "0190A1B2-0000-7000-8000-0123456789ab",
            "0190a1b2-0000-7000-8000-0123456789a",
            "0190a1b200007000-8000-0123456789ab--",
            "15 characters.....",
            "abcdefghijklmno",
            "x",
        ];
        let stored: std::collections::HashSet<_> = ids.map(id_bytes).into_iter().collect();
        assert_eq!(stored.len(), ids.len());
        assert_eq!(id_bytes(ids[0]).len(), 16);
        assert_eq!(id_bytes("abcdefghijklmno").len(), 17);
    }
}
