//! The numbers of shared names in one SQLite file.

use std::collections::HashMap;

use rusqlite::{Connection, params_from_iter};

use crate::error::Result;
use crate::names::{Facet, Origin};
use crate::row::RunRow;

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
