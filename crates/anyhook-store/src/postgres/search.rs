//! Events that contain a text, partition by partition.
//!
//! The newest events are looked at one by one, which finds what is common. What is rare is
//! found by the index of `pg_trgm`, of words of three letters. Without that extension, and
//! for a text that has no such word, every event is looked at.

use postgres::types::ToSql;

use crate::error::Result;
use crate::postgres::reading::{SelectedPart, conditions, newest_keys};
use crate::postgres::tables::PostgresTables;
use crate::reading::{EventIndex, EventKey, Selection};
use crate::row::{EventRow, saturating_i64};

/// Events that are looked at before the index is asked.
const SCANNED_EVENTS: usize = 200;
/// Events that are looked at if those before say that they are enough for a page.
const MAX_SCANNED_EVENTS: usize = 5000;

/// A search on its way through the partitions.
pub(crate) struct Scan<'a> {
    text: &'a str,
    /// The text as a pattern of `LIKE`; `None` if the index does not help.
    pattern: Option<String>,
    /// How many events were looked at one by one, and how many of them contain the text.
    scanned: usize,
    matching: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut pattern = String::from("%");
        for character in text.chars() {
            if matches!(character, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.push('%');
        Self {
            text,
            pattern: has_trigram(text).then_some(pattern),
            scanned: 0,
            matching: 0,
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
        let pattern = self.pattern.clone().filter(|_| tables.has_trigrams);
        let mut rest = selection.clone();
        let mut found = Vec::new();
        while found.len() < limit && (pattern.is_none() || self.is_common(limit)) {
            let keys = newest_keys(tables, &rest, part, SCANNED_EVENTS)?;
            let Some(last) = keys.last() else {
                return Ok(found);
            };
            rest.before = *last;
            let more = self.select_matching(tables, part, &keys)?;
            self.scanned += keys.len();
            self.matching += more.len();
            found.extend(more);
        }
        if found.len() < limit
            && let Some(pattern) = pattern
        {
            found.extend(indexed(tables, &rest, part, &pattern, limit)?);
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl Scan<'_> {
    /// Whether looking at events one by one fills a page soon, as far as is known.
    fn is_common(&self, limit: usize) -> bool {
        self.scanned < SCANNED_EVENTS || self.matching * MAX_SCANNED_EVENTS >= self.scanned * limit
    }

    /// Those of some events that contain the text, newest first.
    fn select_matching(
        &self,
        tables: &PostgresTables<'_>,
        part: &SelectedPart,
        keys: &[EventKey],
    ) -> Result<Vec<EventRow>> {
        let numbers: Vec<i64> = keys.iter().map(|(_, seq)| *seq).collect();
        let sql = format!(
            "SELECT seq, time_us, body FROM {} WHERE seq = ANY($1) AND strpos(text, $2) > 0 \
             ORDER BY time_us DESC, seq DESC",
            part.part.name
        );
        let rows = tables.query(&sql, &[&numbers, &self.text])?;
        rows.iter().map(|row| tables.event_row(row)).collect()
    }
}

fn indexed(
    tables: &PostgresTables<'_>,
    selection: &Selection,
    part: &SelectedPart,
    pattern: &str,
    limit: usize,
) -> Result<Vec<EventRow>> {
    // Every other column is a condition only: the index of the text is used.
    let plain = conditions(selection, EventIndex::Time, 5);
    let sql = format!(
        "SELECT seq, time_us, body FROM {} WHERE text LIKE $1 \
         AND (time_us + 0, seq + 0) < ($2, $3) AND time_us + 0 >= $4{} \
         ORDER BY time_us + 0 DESC, seq + 0 DESC LIMIT $5",
        part.part.name, plain.sql
    );
    let limit = saturating_i64(limit);
    let mut arguments: Vec<&(dyn ToSql + Sync)> = vec![
        &pattern,
        &selection.before.0,
        &selection.before.1,
        &selection.since_us,
        &limit,
    ];
    arguments.extend(plain.arguments());
    let rows = tables.query(&sql, &arguments)?;
    rows.iter().map(|row| tables.event_row(row)).collect()
}

/// Whether `pg_trgm` finds something to look up: three letters or digits in a row, or a
/// shorter word whose ends are in the text.
fn has_trigram(text: &str) -> bool {
    const TRIGRAM_CHARS: usize = 3;
    let is_word = |character: char| character.is_ascii_alphanumeric();
    let words: Vec<&str> = text.split(|it| !is_word(it)).collect();
    let last = words.len().saturating_sub(1);
    words.iter().enumerate().any(|(at, word)| {
        let ends = usize::from(at > 0) + usize::from(at < last);
        // The beginning of a word counts for two characters, its end for one.
        !word.is_empty() && word.len() + ends >= TRIGRAM_CHARS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_with_a_whole_trigram_asks_the_index() {
        for (text, expected) in [
            ("abc", true),
            ("ab", false),
            ("a/bc", true),
            ("/p/f1", true),
            ("--", false),
            ("-> ", false),
            ("x-", false),
            ("", false),
        ] {
            assert_eq!(has_trigram(text), expected, "{text}");
        }
    }

    #[test]
    fn a_pattern_means_its_characters() {
        assert_eq!(
            Scan::new(r"100%_a\bc").pattern.as_deref(),
            Some(r"%100\%\_a\\bc%")
        );
    }
}
