//! Stores events by `COPY`, and keeps sums, sessions and partitions in the same transaction.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::{ToSql, Type};

use crate::body::BodyCodec;
use crate::error::Result;
use crate::names::{Facet, Origin, id_bytes, uuid_v7_millis};
use crate::postgres::names::NumberCache;
use crate::postgres::parts::{self, Part, event_bytes};
use crate::postgres::search_groups::{self, EventText};
use crate::postgres::session::Session;
use crate::postgres::{sums, upgrade};
use crate::query::IngestCounts;
use crate::rollup::{DAY_US, NumberedRun, RollupChanges, RunEffect, encode_runs};
use crate::row::EventRow;
use crate::session_changes::SessionChange;

/// Days on both sides of the time in an id that its event may have.
const ID_DAYS: i64 = 1;

/// An event that is not in the store yet.
struct NewEvent<'a> {
    row: &'a EventRow,
    body: &'a [u8],
    id: Vec<u8>,
    /// Whether its id does not say on which day it is.
    has_odd_id: bool,
}

/// The day that an id says, if it says one.
pub(crate) fn day_of_id(id: &str) -> Option<i64> {
    let millis = uuid_v7_millis(id)?;
    Some(millis.saturating_mul(1000).div_euclid(DAY_US))
}

fn day_of(row: &EventRow) -> i64 {
    row.summary.time_us.div_euclid(DAY_US)
}

/// Stores the rows whose id is new. A row with a number of its own keeps it.
pub(crate) fn insert_events(
    session: &mut Session,
    names: &mut NumberCache,
    rows: &[EventRow],
    bodies: &[Vec<u8>],
    codec: &BodyCodec,
) -> Result<IngestCounts> {
    let days: BTreeSet<i64> = rows.iter().map(day_of).collect();
    let (mut parts, has_new_part) = parts::ensure(session, &days)?;
    if has_new_part {
        // Events of a day that is over wait for no others.
        for part in parts.values() {
            search_groups::group_all(session, part, codec)?;
        }
        parts = parts::all(session)?;
    }
    let events = new_events(session, &parts, rows, bodies)?;
    let done = IngestCounts {
        new: events.len() as u64,
        duplicate: (rows.len() - events.len()) as u64,
        refused: 0,
    };
    if events.is_empty() {
        return Ok(done);
    }
    let numbers = event_numbers(session, &events)?;
    let sessions = session_numbers(session, &events)?;
    let mut rollups = RollupChanges::default();
    let mut session_changes: HashMap<i64, SessionChange> = HashMap::new();
    let mut by_part: BTreeMap<i64, Vec<StoredEvent<'_>>> = BTreeMap::new();
    for (event, seq) in events.iter().zip(numbers) {
        let summary = &event.row.summary;
        let facet = names.facet(session, Facet::from_summary(summary))?;
        let origin = names.origin(session, Origin::from_summary(summary))?;
        let mut runs = Vec::new();
        for run in event.row.runs.iter().filter(|run| run.has_run()) {
            runs.push(NumberedRun {
                hook: names.hook(session, run)?,
                effect: RunEffect::from_run(run),
                duration_ms: run.duration_ms,
            });
        }
        rollups.add(summary.time_us, origin, facet, summary.duration_ms, &runs);
        let number = summary.session_id.as_deref().and_then(|id| {
            let key = (id, summary.agent.as_str());
            sessions.get(&key).copied()
        });
        if let Some(number) = number {
            session_changes.entry(number).or_default().add(seq, summary);
        }
        let part = parts::of_day(&parts, day_of(event.row));
        by_part.entry(part).or_default().push(StoredEvent {
            event,
            seq,
            session: number,
            facet,
            origin,
            runs: encode_runs(&runs),
        });
    }
    for (number, events) in &by_part {
        if let Some(part) = parts.get(number) {
            copy_events(session, part, events)?;
            let texts = events.iter().map(StoredEvent::text).collect();
            search_groups::add(session, part, texts, codec)?;
        }
    }
    insert_odd_ids(session, &events)?;
    sums::apply(session, &rollups, 1)?;
    apply_sessions(session, session_changes)?;
    Ok(done)
}

struct StoredEvent<'a> {
    event: &'a NewEvent<'a>,
    seq: i64,
    session: Option<i64>,
    facet: i64,
    origin: i64,
    runs: Vec<u8>,
}

impl<'a> StoredEvent<'a> {
    fn text(&self) -> EventText<'a> {
        let row = self.event.row;
        EventText {
            seq: self.seq,
            time_us: row.summary.time_us,
            // One with a number of its own was there before those that have none yet.
            is_moved: row.summary.seq > 0,
            text: Cow::Borrowed(&row.text),
        }
    }
}

/// The rows that are not stored yet, each id once.
fn new_events<'a>(
    session: &mut Session,
    parts: &BTreeMap<i64, Part>,
    rows: &'a [EventRow],
    bodies: &'a [Vec<u8>],
) -> Result<Vec<NewEvent<'a>>> {
    let mut seen = HashSet::new();
    let mut events = Vec::with_capacity(rows.len());
    // Where each id may be, by part.
    let mut places: BTreeMap<i64, Vec<Vec<u8>>> = BTreeMap::new();
    for (row, body) in rows.iter().zip(bodies) {
        let id = id_bytes(&row.summary.id);
        if !seen.insert(id.clone()) {
            continue;
        }
        let home = day_of_id(&row.summary.id);
        let is_near = home.is_some_and(|home| (home - day_of(row)).abs() <= ID_DAYS);
        if let Some(home) = home {
            let near = (home - ID_DAYS..=home + ID_DAYS).map(|day| parts::of_day(parts, day));
            for part in near.collect::<BTreeSet<i64>>() {
                places.entry(part).or_default().push(id.clone());
            }
        }
        events.push(NewEvent {
            row,
            body,
            id,
            has_odd_id: !is_near,
        });
    }
    let ids: Vec<&[u8]> = events.iter().map(|event| event.id.as_slice()).collect();
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    let mut ask = |session: &mut Session, table: &str, ids: &dyn AnyIds| -> Result<()> {
        let sql = format!("SELECT id FROM {table} WHERE id = ANY($1)");
        for row in session.query(&sql, &[ids.as_argument()])? {
            known.insert(row.try_get(0)?);
        }
        Ok(())
    };
    ask(session, "anyhook_ids", &ids)?;
    for (part, ids) in &places {
        if let Some(part) = parts.get(part).filter(|part| part.events > 0) {
            ask(session, &part.name, ids)?;
        }
    }
    events.retain(|event| !known.contains(&event.id));
    if upgrade::has_old_events(session)? {
        let old = upgrade::known_ids(session, events.iter().map(|event| event.row))?;
        events.retain(|event| !old.contains(&event.row.summary.id));
    }
    Ok(events)
}

/// Ids as an argument, whoever owns them.
trait AnyIds {
    fn as_argument(&self) -> &(dyn ToSql + Sync);
}

impl AnyIds for Vec<&[u8]> {
    fn as_argument(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

impl AnyIds for Vec<Vec<u8>> {
    fn as_argument(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

/// Their own number, or the next ones.
fn event_numbers(session: &mut Session, events: &[NewEvent<'_>]) -> Result<Vec<i64>> {
    let own = |event: &NewEvent<'_>| Some(event.row.summary.seq).filter(|seq| *seq > 0);
    let missing = events.iter().filter(|event| own(event).is_none()).count();
    let missing = crate::row::saturating_i64(missing);
    let sql = "SELECT nextval('anyhook_seq') FROM generate_series(1, $1::bigint)";
    let rows = session.query(sql, &[&missing])?;
    let mut next = rows.iter();
    let numbers = events.iter().map(|event| match own(event) {
        Some(seq) => Ok(seq),
        None => match next.next() {
            Some(row) => Ok(row.try_get(0)?),
            None => Err(crate::StoreError::Shape("a number for each event")),
        },
    });
    numbers.collect()
}

fn copy_events(session: &mut Session, part: &Part, events: &[StoredEvent<'_>]) -> Result<()> {
    const TYPES: [Type; 10] = [
        Type::INT8,
        Type::INT8,
        Type::FLOAT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::BYTEA,
        Type::BYTEA,
        Type::BYTEA,
        Type::TEXT,
    ];
    let sql = format!(
        "COPY {} (seq, time_us, duration_ms, session, facet, origin, id, runs, body, text) \
         FROM STDIN BINARY",
        part.name
    );
    let mut writer = BinaryCopyInWriter::new(session.client.copy_in(&sql)?, &TYPES);
    let (mut bytes, mut count) = (0_i64, 0_i64);
    let (mut min_us, mut max_us) = (i64::MAX, i64::MIN);
    let (mut min_seq, mut max_seq) = (i64::MAX, i64::MIN);
    for stored in events {
        let (row, body) = (stored.event.row, stored.event.body);
        let summary = &row.summary;
        writer.write(&[
            &stored.seq,
            &summary.time_us,
            &summary.duration_ms,
            &stored.session,
            &stored.facet,
            &stored.origin,
            &stored.event.id,
            &stored.runs,
            &body,
            // Only partitions of older versions have it.
            &"",
        ])?;
        count += 1;
        bytes += event_bytes(body);
        (min_us, max_us) = (min_us.min(summary.time_us), max_us.max(summary.time_us));
        (min_seq, max_seq) = (min_seq.min(stored.seq), max_seq.max(stored.seq));
    }
    writer.finish()?;
    session.execute(
        "UPDATE anyhook_parts SET events = events + $2, bytes = bytes + $3, \
         min_us = LEAST(min_us, $4), max_us = GREATEST(max_us, $5), \
         min_seq = LEAST(min_seq, $6), max_seq = GREATEST(max_seq, $7) \
         WHERE part = $1",
        &[
            &part.day, &count, &bytes, &min_us, &max_us, &min_seq, &max_seq,
        ],
    )?;
    Ok(())
}

fn insert_odd_ids(session: &mut Session, events: &[NewEvent<'_>]) -> Result<()> {
    let odd: Vec<_> = events.iter().filter(|event| event.has_odd_id).collect();
    if odd.is_empty() {
        return Ok(());
    }
    let ids: Vec<&[u8]> = odd.iter().map(|event| event.id.as_slice()).collect();
    let times: Vec<i64> = odd.iter().map(|event| event.row.summary.time_us).collect();
    session.execute(
        "INSERT INTO anyhook_ids (id, time_us) SELECT * FROM UNNEST($1::bytea[], $2::bigint[])",
        &[&ids, &times],
    )?;
    Ok(())
}

type SessionName<'a> = (&'a str, &'a str);

/// The numbers of the sessions of these events, by id and agent.
fn session_numbers<'a>(
    session: &mut Session,
    events: &[NewEvent<'a>],
) -> Result<HashMap<SessionName<'a>, i64>> {
    let names = events.iter().filter_map(|event| {
        let summary = &event.row.summary;
        Some((summary.session_id.as_deref()?, summary.agent.as_str()))
    });
    let names: HashSet<SessionName<'a>> = names.collect();
    let names: Vec<SessionName<'a>> = names.into_iter().collect();
    let (ids, agents): (Vec<&str>, Vec<&str>) = names.iter().copied().unzip();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    session.execute(
        "INSERT INTO anyhook_sessions (session_id, agent, first_us, last_us, last_seq, events, \
         tools, denials, asks) SELECT n.id, n.agent, $3, $4, 0, 0, 0, 0, 0 \
         FROM UNNEST($1::text[], $2::text[]) AS n (id, agent) \
         WHERE NOT EXISTS (SELECT 1 FROM anyhook_sessions s \
         WHERE s.session_id = n.id AND s.agent = n.agent)",
        &[&ids, &agents, &i64::MAX, &i64::MIN],
    )?;
    let rows = session.query(
        "SELECT n.number, s.session FROM UNNEST($1::text[], $2::text[]) \
         WITH ORDINALITY AS n (id, agent, number) JOIN anyhook_sessions s ON s.session_id = n.id AND s.agent = n.agent",
        &[&ids, &agents],
    )?;
    let mut numbers = HashMap::new();
    for row in &rows {
        let number = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
        if let Some(name) = names.get(number) {
            numbers.insert(*name, row.try_get(1)?);
        }
    }
    Ok(numbers)
}

fn apply_sessions(session: &mut Session, changes: HashMap<i64, SessionChange>) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let changes: Vec<(i64, SessionChange)> = changes.into_iter().collect();
    let column =
        |read: fn(&(i64, SessionChange)) -> i64| -> Vec<i64> { changes.iter().map(read).collect() };
    let cwds: Vec<Option<&str>> = changes.iter().map(|it| it.1.cwd.as_deref()).collect();
    let machines: Vec<Option<&str>> = changes.iter().map(|it| it.1.machine.as_deref()).collect();
    session.execute(
        "UPDATE anyhook_sessions s SET first_us = LEAST(s.first_us, c.first_us), \
         last_seq = CASE WHEN (c.last_us, c.last_seq) > (s.last_us, s.last_seq) \
         THEN c.last_seq ELSE s.last_seq END, last_us = GREATEST(s.last_us, c.last_us), \
         events = s.events + c.events, tools = s.tools + c.tools, \
         denials = s.denials + c.denials, asks = s.asks + c.asks, \
         cwd = GREATEST(s.cwd, c.cwd), machine = GREATEST(s.machine, c.machine) \
         FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], \
         $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[]) \
         AS c (session, first_us, last_us, last_seq, events, tools, denials, asks, cwd, machine) \
         WHERE s.session = c.session",
        &[
            &column(|it| it.0),
            &column(|it| it.1.first_us),
            &column(|it| it.1.last.0),
            &column(|it| it.1.last.1),
            &column(|it| it.1.counts.events),
            &column(|it| it.1.counts.tools),
            &column(|it| it.1.counts.denials),
            &column(|it| it.1.counts.asks),
            &cwds,
            &machines,
        ],
    )?;
    Ok(())
}
