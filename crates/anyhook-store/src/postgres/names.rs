//! The numbers of shared names in one database.

use std::collections::HashMap;

use postgres::types::ToSql;

use crate::error::{Result, StoreError};
use crate::names::{Facet, Origin};
use crate::postgres::session::Session;
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
    pub(crate) fn facet(&mut self, session: &mut Session, facet: Facet) -> Result<i64> {
        if let Some(number) = self.facets.get(&facet) {
            return Ok(*number);
        }
        let number = number_of(
            session,
            "SELECT facet FROM anyhook_facets WHERE kind = $1 AND agent = $2 AND event = $3 \
             AND type = $4 AND native_event = $5 AND tool = $6 AND decision = $7",
            "INSERT INTO anyhook_facets (kind, agent, event, type, native_event, tool, decision) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING facet",
            &facet.columns(),
        )?;
        self.facets.insert(facet, number);
        Ok(number)
    }

    pub(crate) fn origin(&mut self, session: &mut Session, origin: Origin) -> Result<i64> {
        if let Some(number) = self.origins.get(&origin) {
            return Ok(*number);
        }
        let number = number_of(
            session,
            "SELECT origin FROM anyhook_origins WHERE machine = $1 AND user_id = $2 \
             AND project_id = $3 AND workflow_id = $4",
            "INSERT INTO anyhook_origins (machine, user_id, project_id, workflow_id) \
             VALUES ($1, $2, $3, $4) RETURNING origin",
            &origin.columns(),
        )?;
        self.origins.insert(origin, number);
        Ok(number)
    }

    pub(crate) fn hook(&mut self, session: &mut Session, run: &RunRow) -> Result<i64> {
        let key = [run.hook.clone(), run.content.clone()];
        if let Some((number, manifest)) = self.hooks.get(&key)
            && *manifest == run.manifest
        {
            return Ok(*number);
        }
        let number = number_of(
            session,
            "SELECT hook FROM anyhook_hooks WHERE name = $1 AND content = $2",
            "INSERT INTO anyhook_hooks (name, content, manifest) VALUES ($1, $2, '') \
             RETURNING hook",
            &[&run.hook, &run.content],
        )?;
        session.execute(
            "UPDATE anyhook_hooks SET manifest = $2 WHERE hook = $1",
            &[&number, &run.manifest],
        )?;
        self.hooks.insert(key, (number, run.manifest.clone()));
        Ok(number)
    }
}

fn number_of(session: &mut Session, select: &str, insert: &str, columns: &[&str]) -> Result<i64> {
    let arguments: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|it| it as _).collect();
    if let Some(number) = session.query_int(select, &arguments)? {
        return Ok(number);
    }
    let made = session.query_int(insert, &arguments)?;
    made.ok_or(StoreError::Shape("a number"))
}
