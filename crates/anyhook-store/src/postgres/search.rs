//! Events that contain a text, partition by partition.
//!
//! The newest events are looked at one by one, which finds what is common. For what is rare,
//! the search index says which groups of events may contain it; their records decide. A text
//! that is too short for the index is looked for in every event.

use std::collections::HashMap;

use postgres::Row;
use postgres::types::ToSql;

use crate::error::Result;
use crate::postgres::reading::{SelectedPart, conditions, newest_keys, rows_of_keys};
use crate::postgres::search_groups::{GROUP_EVENTS, query_grams};
use crate::postgres::tables::PostgresTables;
use crate::reading::{EventIndex, Selection, keep_newest, key_of};
use crate::row::{EventRow, saturating_i64};

/// Events that are looked at before the index is asked.
const SCANNED_EVENTS: usize = 200;
/// Events that are looked at if those before say that they are enough for a page.
const MAX_SCANNED_EVENTS: usize = 5000;
/// If more groups than this may contain a text, each partition is asked for its own.
const MAX_GROUPS: usize = 1000;
/// Groups whose events are read at a time.
const READ_GROUPS: usize = 4;

/// A search on its way through the partitions.
pub(crate) struct Scan<'a> {
    text: &'a str,
    /// Empty if the text is too short for the index.
    grams: Vec<i16>,
    /// How many events were looked at one by one, and how many of them contain the text.
    scanned: usize,
    matching: usize,
    groups: KnownGroups,
}

/// The groups of all partitions that may contain a text, newest first.
enum KnownGroups {
    NotAsked,
    All(HashMap<i64, Vec<Group>>),
    TooMany,
}

/// The numbers of the first and the last event of a group, and the time of its newest.
#[derive(Debug, Clone, Copy)]
struct Group {
    min_seq: i64,
    max_seq: i64,
    max_us: i64,
}

impl Group {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            min_seq: row.try_get(1)?,
            max_seq: row.try_get(2)?,
            max_us: row.try_get(3)?,
        })
    }
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            grams: query_grams(text),
            scanned: 0,
            matching: 0,
            groups: KnownGroups::NotAsked,
        }
    }

    /// The newest events of a partition that contain the text.
    pub(crate) fn newest_of_part(
        &mut self,
        tables: &PostgresTables<'_>,
        selection: &Selection,
        part: &SelectedPart,
        limit: usize,
    ) -> Result<Vec<EventRow>> {
        // Until the index has all of a partition, it is of no use there.
        let is_indexed = !self.grams.is_empty()
            && usize::try_from(part.part.pending).unwrap_or_default() <= 2 * GROUP_EVENTS;
        let mut rest = selection.clone();
        let mut found = Vec::new();
        while found.len() < limit && (!is_indexed || self.is_common(limit)) {
            let keys = newest_keys(tables, &rest, part, SCANNED_EVENTS)?;
            let Some(last) = keys.last() else {
                return Ok(found);
            };
            rest.before = *last;
            let rows = rows_of_keys(tables, part, &keys)?;
            self.scanned += keys.len();
            let before = found.len();
            found.extend(rows.into_iter().filter(|row| row.text.contains(self.text)));
            self.matching += found.len() - before;
        }
        if found.len() < limit && is_indexed {
            let missing = limit - found.len();
            found.extend(self.indexed(tables, &rest, part, missing)?);
        }
        keep_newest(&mut found, Vec::new(), limit);
        Ok(found)
    }

    /// Whether looking at events one by one fills a page soon, as far as is known.
    fn is_common(&self, limit: usize) -> bool {
        self.scanned < SCANNED_EVENTS || self.matching * MAX_SCANNED_EVENTS >= self.scanned * limit
    }

    fn indexed(
        &mut self,
        tables: &PostgresTables<'_>,
        selection: &Selection,
        part: &SelectedPart,
        limit: usize,
    ) -> Result<Vec<EventRow>> {
        let mut groups = self.groups_of(tables, part.part.day)?;
        if part.part.pending > 0 {
            // Those that are in no group yet are one more.
            groups.push(Group {
                min_seq: part.part.grouped_seq + 1,
                max_seq: i64::MAX,
                max_us: part.part.max_us,
            });
        }
        groups.sort_unstable_by_key(|group| std::cmp::Reverse(group.max_us));
        let mut found = Vec::new();
        for groups in groups.chunks(READ_GROUPS) {
            let worst = found.get(limit.saturating_sub(1)).map(key_of);
            let newest = groups.first().map_or(i64::MIN, |group| group.max_us);
            if newest < selection.since_us || worst.is_some_and(|(time_us, _)| time_us > newest) {
                break;
            }
            let rows = rows_of_groups(tables, selection, part, groups)?;
            let matching = rows.into_iter().filter(|row| row.text.contains(self.text));
            keep_newest(&mut found, matching.collect(), limit);
        }
        Ok(found)
    }

    /// The groups of a partition that may contain the text.
    fn groups_of(&mut self, tables: &PostgresTables<'_>, part: i64) -> Result<Vec<Group>> {
        if matches!(self.groups, KnownGroups::NotAsked) {
            let sql = "SELECT part, min_seq, max_seq, max_us FROM anyhook_search \
                       WHERE grams @> $1 LIMIT $2";
            let rows = tables.query(sql, &[&self.grams, &saturating_i64(MAX_GROUPS)])?;
            self.groups = KnownGroups::TooMany;
            if rows.len() < MAX_GROUPS {
                let mut all: HashMap<i64, Vec<Group>> = HashMap::new();
                for row in &rows {
                    let group = Group::from_row(row)?;
                    all.entry(row.try_get(0)?).or_default().push(group);
                }
                self.groups = KnownGroups::All(all);
            }
        }
        if let KnownGroups::All(all) = &self.groups {
            return Ok(all.get(&part).cloned().unwrap_or_default());
        }
        // The empty array keeps PostgreSQL from asking the index of all partitions again.
        let sql = "SELECT part, min_seq, max_seq, max_us FROM anyhook_search \
                   WHERE part = $1 AND grams || '{}'::smallint[] @> $2";
        let rows = tables.query(sql, &[&part, &self.grams])?;
        rows.iter().map(Group::from_row).collect()
    }
}

/// The selected events of some groups.
fn rows_of_groups(
    tables: &PostgresTables<'_>,
    selection: &Selection,
    part: &SelectedPart,
    groups: &[Group],
) -> Result<Vec<EventRow>> {
    // Every other column is a condition only: the index of the numbers is used.
    let plain = conditions(selection, EventIndex::Time, 5);
    let sql = format!(
        "SELECT e.seq, e.time_us, e.body FROM UNNEST($1::bigint[], $2::bigint[]) AS g (low, high) \
         CROSS JOIN LATERAL (SELECT seq, time_us, body FROM {} WHERE seq >= g.low \
         AND seq <= g.high AND (time_us + 0, seq + 0) < ($3, $4) AND time_us + 0 >= $5{}) e",
        part.part.name, plain.sql
    );
    let low: Vec<i64> = groups.iter().map(|group| group.min_seq).collect();
    let high: Vec<i64> = groups.iter().map(|group| group.max_seq).collect();
    let mut arguments: Vec<&(dyn ToSql + Sync)> = vec![
        &low,
        &high,
        &selection.before.0,
        &selection.before.1,
        &selection.since_us,
    ];
    arguments.extend(plain.arguments());
    let rows = tables.query(&sql, &arguments)?;
    rows.iter().map(|row| tables.event_row(row)).collect()
}
