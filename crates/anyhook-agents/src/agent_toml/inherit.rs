//! `extends = "<agent>"`: a table that states only how it differs from another.
//!
//! What describes the client itself (its names, files, variables, the shells
//! that it starts hooks with, keys of its payloads without a canonical form) is
//! never inherited. Of the rest, tables are merged key by key down to the level at
//! which a value means something as a whole, and rows of `event`, `tool` and
//! `hazard` by their name. Every value keeps the place it was written at, so
//! that a message names the right file and line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhook_model::suggest::nearest;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::check_word;

/// Keys of a table that it takes from the one that it extends.
pub(super) const INHERITED: &[&str] = &[
    "config",
    "payload",
    "event",
    "tool",
    "mcp",
    "unreadable",
    "answer",
    "absent",
    "hazard",
];

/// Lists whose rows have a name, and the key of that name.
const NAMED_ROWS: &[(&str, &str)] = &[("event", "native"), ("tool", "native"), ("hazard", "id")];

/// Key of `event` and `tool` rows that says what the client itself sends.
const NOT_INHERITED: &str = "other_keys";

/// Texts for people, in which `[inherit.words]` replaces words.
const PROSE_KEYS: &[&str] = &[
    "note",
    "approximate",
    "what",
    "why",
    "remedy",
    "effect",
    "absent",
];

/// A message and its place in the concatenated texts.
pub(super) type Fault = (Range<usize>, String);

/// `[inherit]`: what of the extended table is taken.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Inherit<'a> {
    /// The agent's events, in this order. Absent: all, and its own after them.
    #[serde(borrow)]
    events: Option<Names<'a>>,
    tools: Option<Names<'a>>,
    hazards: Option<Names<'a>>,
    /// Pointers to what is not taken: `/config/handler/fail_closed`,
    /// `/event/SessionEnd/note`, `/hazard`.
    without: Names<'a>,
    /// Words to replace in notes, hazards and effects.
    words: BTreeMap<String, String>,
}

type Names<'a> = Vec<Spanned<std::borrow::Cow<'a, str>>>;

/// One file of a chain of tables.
pub(super) struct Source<'a> {
    pub(super) file: String,
    pub(super) text: &'a str,
    /// The offset of its text in the concatenated texts.
    pub(super) start: usize,
}

/// The table; spans of its values refer to the concatenated texts.
pub(super) fn located_table<'a>(
    source: &Source<'a>,
) -> Result<Spanned<DeTable<'a>>, toml::de::Error> {
    let table = DeTable::parse(source.text)?;
    let end = source.start + source.text.len();
    let moved = moved_table(table.into_inner(), source.start);
    Ok(Spanned::new(source.start..end, moved))
}

fn moved_table(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    let moved = |span: Range<usize>| span.start + by..span.end + by;
    let entries = table.into_iter().map(|(key, value)| {
        let key = Spanned::new(moved(key.span()), key.into_inner());
        (key, moved_value(value, by))
    });
    entries.collect()
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span();
    let span = span.start + by..span.end + by;
    let inner = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(moved_table(table, by)),
        DeValue::Array(items) => DeValue::Array(
            items
                .into_iter()
                .map(|item| moved_value(item, by))
                .collect(),
        ),
        other => other,
    };
    Spanned::new(span, inner)
}

/// `own` over `base`.
pub(super) fn merged<'a>(
    own: Spanned<DeTable<'a>>,
    base: DeTable<'a>,
) -> Result<Spanned<DeTable<'a>>, Fault> {
    let span = own.span();
    let mut own = own.into_inner();
    let inherit = match own.remove("inherit") {
        Some(value) => Inherit::deserialize(toml::de::ValueDeserializer::from(value))
            .map_err(|error| (error.span().unwrap_or_default(), error.message().to_owned()))?,
        None => Inherit::default(),
    };
    let mut base: DeTable<'a> = base
        .into_iter()
        .filter(|(key, _)| INHERITED.contains(&key.get_ref().as_ref()))
        .collect();
    for pointer in &inherit.without {
        remove(&mut base, pointer)?;
    }
    for list in ["event", "tool"] {
        if let Some(DeValue::Array(rows)) = base.get_mut(list).map(Spanned::get_mut) {
            for row in rows.iter_mut() {
                if let DeValue::Table(row) = row.get_mut() {
                    row.remove(NOT_INHERITED);
                }
            }
        }
    }
    let lists = [
        ("event", &inherit.events),
        ("tool", &inherit.tools),
        ("hazard", &inherit.hazards),
    ];
    for (list, kept) in lists {
        if let Some(kept) = kept {
            keep(list, kept, &mut base, &own)?;
        }
    }
    replace_words(&mut base, &inherit.words);
    let mut table = merge_tables(&[], base, own);
    for (list, kept) in lists {
        if let (Some(kept), Some(rows)) = (kept, table.get_mut(list)) {
            sort_rows(list, kept, rows);
        }
    }
    Ok(Spanned::new(span, table))
}

/// Whether the values of this table are merged one by one; else the whole
/// table replaces the other.
fn is_merged(path: &[&str]) -> bool {
    matches!(
        path,
        [] | ["config" | "payload" | "mcp" | "answer" | "absent"]
            | ["config", "matcher" | "handler" | "variant"]
            | ["payload", "rows"]
            | ["answer" | "absent", _]
    )
}

fn merge_tables<'a>(path: &[&str], base: DeTable<'a>, own: DeTable<'a>) -> DeTable<'a> {
    let mut out = base;
    for (key, value) in own {
        let inner = [path, &[key.get_ref().as_ref()]].concat();
        let value = match out.remove(key.get_ref().as_ref()) {
            Some(old) => merge_values(&inner, old, value),
            None => value,
        };
        out.insert(key, value);
    }
    out
}

fn merge_values<'a>(
    path: &[&str],
    base: Spanned<DeValue<'a>>,
    own: Spanned<DeValue<'a>>,
) -> Spanned<DeValue<'a>> {
    let span = own.span();
    let merged = match (base.into_inner(), own.into_inner()) {
        (DeValue::Table(base), DeValue::Table(own)) if is_merged(path) => {
            DeValue::Table(merge_tables(path, base, own))
        }
        (DeValue::Array(base), DeValue::Array(own)) => match row_name(path) {
            Some(name) => DeValue::Array(merge_rows(name, base, own)),
            None => DeValue::Array(own),
        },
        (_, own) => own,
    };
    Spanned::new(span, merged)
}

fn row_name(path: &[&str]) -> Option<&'static str> {
    let [list] = path else { return None };
    let (_, name) = NAMED_ROWS.iter().find(|(key, _)| key == list)?;
    Some(name)
}

fn merge_rows<'a>(name: &str, base: DeArray<'a>, own: DeArray<'a>) -> DeArray<'a> {
    let mut rows: Vec<Spanned<DeValue<'a>>> = base.into_iter().collect();
    // A table may have several rows of one name itself (a tool with `when`).
    let inherited = rows.len();
    for row in own {
        let wanted = text_at(&row, name).map(str::to_owned);
        let same = rows
            .iter_mut()
            .take(inherited)
            .find(|old| wanted.is_some() && text_at(old, name) == wanted.as_deref());
        match same {
            Some(old) => {
                let span = row.span();
                if let (DeValue::Table(old), DeValue::Table(new)) =
                    (old.get_mut(), row.into_inner())
                {
                    for (key, value) in new {
                        old.remove(key.get_ref().as_ref());
                        old.insert(key, value);
                    }
                }
                let inner = std::mem::replace(old.get_mut(), DeValue::Boolean(false));
                *old = Spanned::new(span, inner);
            }
            None => rows.push(row),
        }
    }
    rows.into_iter().collect()
}

fn text_at<'b>(row: &'b Spanned<DeValue<'_>>, key: &str) -> Option<&'b str> {
    match row.get_ref().get(key)?.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

fn names_in<'b>(table: &'b DeTable<'_>, list: &str) -> Vec<&'b str> {
    let Some(DeValue::Array(rows)) = table.get(list).map(Spanned::get_ref) else {
        return Vec::new();
    };
    let name = row_name(&[list]).unwrap_or_default();
    rows.iter().filter_map(|row| text_at(row, name)).collect()
}

/// Keeps the rows of the base that are named.
fn keep(
    list: &str,
    kept: &Names<'_>,
    base: &mut DeTable<'_>,
    own: &DeTable<'_>,
) -> Result<(), Fault> {
    let known: Vec<&str> = [names_in(base, list), names_in(own, list)].concat();
    // A mistyped key in place of a row's name is reported at its own line.
    let own_rows = match own.get(list).map(Spanned::get_ref) {
        Some(DeValue::Array(rows)) => rows.len(),
        _ => 0,
    };
    if names_in(own, list).len() == own_rows {
        for name in kept {
            check_word(name.get_ref(), name.span(), &known)?;
        }
    }
    if let Some(DeValue::Array(rows)) = base.get_mut(list).map(Spanned::get_mut) {
        let name = row_name(&[list]).unwrap_or_default();
        let is_kept = |row: &Spanned<DeValue<'_>>| {
            text_at(row, name).is_some_and(|name| kept.iter().any(|one| one.get_ref() == name))
        };
        *rows = std::mem::replace(rows, DeArray::new())
            .into_iter()
            .filter(is_kept)
            .collect();
    }
    Ok(())
}

/// In the order of the names; rows that are not named come last.
fn sort_rows(list: &str, kept: &Names<'_>, rows: &mut Spanned<DeValue<'_>>) {
    let name = row_name(&[list]).unwrap_or_default();
    if let DeValue::Array(rows) = rows.get_mut() {
        let mut sorted: Vec<_> = std::mem::replace(rows, DeArray::new())
            .into_iter()
            .collect();
        sorted.sort_by_key(|row| {
            let place = kept
                .iter()
                .position(|one| Some(one.get_ref().as_ref()) == text_at(row, name));
            place.unwrap_or(kept.len())
        });
        *rows = sorted.into_iter().collect();
    }
}

/// Takes what a pointer of `without` names out of the base.
fn remove(
    base: &mut DeTable<'_>,
    pointer: &Spanned<std::borrow::Cow<'_, str>>,
) -> Result<(), Fault> {
    let mut paths = BTreeSet::new();
    collect_paths("", base, &mut paths);
    let wanted = pointer.get_ref().as_ref();
    if !paths.contains(wanted) {
        let meant = nearest(wanted, paths.iter().map(String::as_str))
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        let message = format!("the extended table has nothing at `{wanted}`{meant}");
        return Err((pointer.span(), message));
    }
    let keys: Vec<&str> = wanted.split('/').skip(1).collect();
    remove_at(base, &keys);
    Ok(())
}

fn remove_at(table: &mut DeTable<'_>, keys: &[&str]) {
    match keys {
        [] => {}
        [key] => {
            table.remove(*key);
        }
        [key, rest @ ..] => match table.get_mut(*key).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => remove_at(inner, rest),
            Some(DeValue::Array(rows)) => {
                let (Some(name), Some((wanted, rest))) = (row_name(&[key]), rest.split_first())
                else {
                    return;
                };
                let is_meant = |row: &Spanned<DeValue<'_>>| text_at(row, name) == Some(wanted);
                if rest.is_empty() {
                    let all = std::mem::replace(rows, DeArray::new()).into_iter();
                    *rows = all.filter(|row| !is_meant(row)).collect();
                    return;
                }
                for row in rows.iter_mut().filter(|row| is_meant(row)) {
                    if let DeValue::Table(row) = row.get_mut() {
                        remove_at(row, rest);
                    }
                }
            }
            _ => {}
        },
    }
}

fn collect_paths(prefix: &str, table: &DeTable<'_>, paths: &mut BTreeSet<String>) {
    for (key, value) in table {
        let path = format!("{prefix}/{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => collect_paths(&path, inner, paths),
            DeValue::Array(rows) if prefix.is_empty() => {
                let name = row_name(&[key.get_ref()]);
                for row in rows {
                    let row_path = name.and_then(|name| text_at(row, name));
                    if let (Some(row_name), DeValue::Table(row)) = (row_path, row.get_ref()) {
                        let path = format!("{path}/{row_name}");
                        collect_paths(&path, row, paths);
                        paths.insert(path);
                    }
                }
            }
            _ => {}
        }
        paths.insert(path);
    }
}

fn replace_words(table: &mut DeTable<'_>, words: &BTreeMap<String, String>) {
    if words.is_empty() {
        return;
    }
    for (key, value) in table.iter_mut() {
        if PROSE_KEYS.contains(&key.get_ref().as_ref()) {
            replace_texts(value.get_mut(), words);
        } else {
            descend(value.get_mut(), words);
        }
    }
}

fn descend(value: &mut DeValue<'_>, words: &BTreeMap<String, String>) {
    match value {
        DeValue::Table(table) => replace_words(table, words),
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                descend(item.get_mut(), words);
            }
        }
        _ => {}
    }
}

fn replace_texts(value: &mut DeValue<'_>, words: &BTreeMap<String, String>) {
    match value {
        DeValue::String(text) => {
            for (word, with) in words {
                if text.contains(word.as_str()) {
                    *text = text.replace(word.as_str(), with).into();
                }
            }
        }
        DeValue::Table(table) => {
            for (_, value) in table.iter_mut() {
                replace_texts(value.get_mut(), words);
            }
        }
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                replace_texts(item.get_mut(), words);
            }
        }
        _ => {}
    }
}
