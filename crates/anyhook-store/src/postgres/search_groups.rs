//! The search index: for each group of events that arrived one after another, which three
//! characters in a row they contain.
//!
//! A group says much less than an index of each event, takes a tenth of its size and time, and
//! few groups are left when every three characters of a text have to be there. Events wait
//! until there are enough of them for a group; a search looks at those one by one.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::body::BodyCodec;
use crate::error::Result;
use crate::postgres::parts::{self, Part};
use crate::postgres::session::Session;
use crate::postgres::tables::event_row;

pub(crate) const GROUP_EVENTS: usize = 64;
/// Events that one step puts in groups.
const STEP_EVENTS: i64 = 1024;
const GRAM_BYTES: usize = 3;
/// Of a long text: more of them find hardly less.
const MAX_QUERY_GRAMS: usize = 24;

/// What a text is searched for in.
pub(crate) struct EventText<'a> {
    pub seq: i64,
    pub time_us: i64,
    /// Whether it got its number before the newest events of the store.
    pub is_moved: bool,
    pub text: Cow<'a, str>,
}

/// A number for three bytes. Different ones may share it.
fn gram(bytes: &[u8]) -> i16 {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    let mixed = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
    i16::from_be_bytes([mixed[0], mixed[1]])
}

/// All groups of three bytes of a text that is searched for; empty if it is too short.
pub(crate) fn query_grams(text: &str) -> Vec<i16> {
    let count = text.len().saturating_sub(GRAM_BYTES - 1);
    let step = count.div_ceil(MAX_QUERY_GRAMS).max(1);
    let grams = text.as_bytes().windows(GRAM_BYTES).step_by(step).map(gram);
    grams.collect::<BTreeSet<i16>>().into_iter().collect()
}

/// Adds the events that a transaction has just stored in a partition.
pub(crate) fn add(
    session: &mut Session,
    part: &Part,
    new: Vec<EventText<'_>>,
    codec: &BodyCodec,
) -> Result<()> {
    let (moved, mut new): (Vec<_>, Vec<_>) = new.into_iter().partition(|event| event.is_moved);
    if let Some(last) = moved.last() {
        insert_groups(session, part.day, &moved)?;
        set_grouped(session, part.day, last.seq, 0)?;
    }
    let Some(first) = new.first().map(|event| event.seq) else {
        return Ok(());
    };
    let waiting = usize::try_from(part.pending).unwrap_or_default();
    let is_behind = part.pending > STEP_EVENTS;
    if is_behind || waiting + new.len() < GROUP_EVENTS {
        let sql = "UPDATE anyhook_parts SET pending = pending + $2 WHERE part = $1";
        let count = crate::row::saturating_i64(new.len());
        session.execute(sql, &[&part.day, &count])?;
        return Ok(());
    }
    if waiting > 0 {
        let mut all = waiting_texts(session, part, first, codec)?;
        all.append(&mut new);
        new = all;
    }
    let whole = new.len() / GROUP_EVENTS * GROUP_EVENTS;
    let rest = crate::row::saturating_i64(new.len() - whole);
    new.truncate(whole);
    insert_groups(session, part.day, &new)?;
    let last = new.last().map_or(part.grouped_seq, |event| event.seq);
    set_grouped(session, part.day, last, rest - part.pending)
}

/// Whether a partition has events that could be in a group and are not.
pub(crate) fn is_behind(session: &mut Session) -> Result<bool> {
    let parts = parts::all(session)?;
    Ok(parts.values().any(is_part_behind))
}

fn is_part_behind(part: &Part) -> bool {
    usize::try_from(part.pending).unwrap_or_default() >= GROUP_EVENTS
}

/// Puts some events in groups; `false` when there are not enough for one.
pub(crate) fn group_step(session: &mut Session, codec: &BodyCodec) -> Result<bool> {
    let parts = parts::all(session)?;
    let Some(part) = parts.values().rfind(|part| is_part_behind(part)) else {
        return Ok(false);
    };
    group_next(session, part, codec)?;
    Ok(true)
}

/// Puts the events of a partition in groups, also the last few.
pub(crate) fn group_all(session: &mut Session, part: &Part, codec: &BodyCodec) -> Result<()> {
    // Many of them are left to `group_step`.
    if (1..=STEP_EVENTS).contains(&part.pending) {
        group_next(session, part, codec)?;
    }
    Ok(())
}

fn group_next(session: &mut Session, part: &Part, codec: &BodyCodec) -> Result<()> {
    let texts = waiting_texts(session, part, i64::MAX, codec)?;
    insert_groups(session, part.day, &texts)?;
    let sql = format!(
        "UPDATE anyhook_parts SET grouped_seq = $2, pending = (SELECT COUNT(*) FROM {} \
         WHERE seq > $2) WHERE part = $1",
        part.name
    );
    let last = texts.last().map_or(part.max_seq, |event| event.seq);
    session.execute(&sql, &[&part.day, &last])?;
    Ok(())
}

/// The first events of a partition that are in no group, and have a lower number than `below`.
fn waiting_texts(
    session: &mut Session,
    part: &Part,
    below: i64,
    codec: &BodyCodec,
) -> Result<Vec<EventText<'static>>> {
    let sql = format!(
        "SELECT seq, time_us, body FROM {} WHERE seq > $1 AND seq < $2 ORDER BY seq LIMIT $3",
        part.name
    );
    let rows = session.query(&sql, &[&part.grouped_seq, &below, &STEP_EVENTS])?;
    let mut texts = Vec::with_capacity(rows.len());
    for row in &rows {
        let event = event_row(session, codec, row)?;
        texts.push(EventText {
            seq: event.summary.seq,
            time_us: event.summary.time_us,
            is_moved: false,
            text: Cow::Owned(event.text),
        });
    }
    Ok(texts)
}

fn insert_groups(session: &mut Session, part: i64, events: &[EventText<'_>]) -> Result<()> {
    for group in events.chunks(GROUP_EVENTS) {
        let mut grams = BTreeSet::new();
        let (mut min_seq, mut max_seq, mut max_us) = (i64::MAX, i64::MIN, i64::MIN);
        for event in group {
            grams.extend(event.text.as_bytes().windows(GRAM_BYTES).map(gram));
            (min_seq, max_seq) = (min_seq.min(event.seq), max_seq.max(event.seq));
            max_us = max_us.max(event.time_us);
        }
        let grams: Vec<i16> = grams.into_iter().collect();
        session.execute(
            "INSERT INTO anyhook_search (part, min_seq, max_seq, max_us, grams) \
             VALUES ($1, $2, $3, $4, $5)",
            &[&part, &min_seq, &max_seq, &max_us, &grams],
        )?;
    }
    Ok(())
}

fn set_grouped(session: &mut Session, part: i64, last: i64, change: i64) -> Result<()> {
    session.execute(
        "UPDATE anyhook_parts SET grouped_seq = GREATEST(grouped_seq, $2), \
         pending = pending + $3 WHERE part = $1",
        &[&part, &last, &change],
    )?;
    Ok(())
}

/// After some events of a partition were deleted, the oldest first.
pub(crate) fn remove_oldest(session: &mut Session, part: &Part) -> Result<()> {
    let sql = format!(
        "DELETE FROM anyhook_search WHERE part = $1 \
         AND max_us < COALESCE((SELECT MIN(time_us) FROM {}), $2)",
        part.name
    );
    session.execute(&sql, &[&part.day, &i64::MAX])?;
    if part.pending > 0 {
        let sql = format!(
            "UPDATE anyhook_parts SET pending = (SELECT COUNT(*) FROM {} WHERE seq > grouped_seq) \
             WHERE part = $1",
            part.name
        );
        session.execute(&sql, &[&part.day])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_text_has_its_grams() {
        let text = "cargo test --workspace ä€ src/main.rs";
        let all: BTreeSet<i16> = text.as_bytes().windows(3).map(gram).collect();
        for (from, _) in text.char_indices() {
            for (until, _) in text.char_indices().filter(|(until, _)| *until > from + 2) {
                let part = query_grams(text.get(from..until).unwrap());
                assert!(!part.is_empty() && part.iter().all(|gram| all.contains(gram)));
            }
        }
        assert!(query_grams("ab").is_empty());
        assert!(query_grams(&"abcdefgh".repeat(100)).len() <= MAX_QUERY_GRAMS);
    }
}
