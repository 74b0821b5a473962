//! A mistyped word in an `agent.toml` stops the build with file and line.
//!
//! Every key and every text of the real tables is mistyped once. What is
//! neither refused nor listed as free text here is a closed word that the
//! build does not check.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhook_agents::{agent_toml, known_tables};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Texts that are an agent's own, or are written for people.
const FREE_TEXTS: &[&str] = &[
    "id",
    "name",
    "homepage",
    "summary",
    "aliases",
    "legacy",
    "trust",
    "also_reads",
    "verified.version",
    "verified.date",
    "detect.*",
    "launch.endings",
    "launch.missing_program",
    "launch.shell_characters",
    "ledger.file",
    "ledger.env",
    "ledger.home_env",
    "ledger.list_hooks",
    "file.path",
    "file.home_env",
    "config.root",
    "config.preamble.*",
    "config.event_at",
    "config.not_events",
    "config.event_names.*",
    "config.matcher.at",
    "config.matcher.any",
    "config.matcher.any_read",
    "config.matcher.classes.*",
    "config.matcher.list_chars",
    "config.handler.type_at",
    "config.handler.types.*",
    "config.handler.field.at",
    "config.handler.unnamed",
    "config.handler.fail_closed.*",
    "config.handler.constants.*",
    "config.handler.known_keys",
    "payload.event_at",
    "payload.defaults.*",
    "payload.rows.*.at",
    "payload.rows.*.words",
    "event.native",
    "event.aliases",
    "event.payload_name",
    "event.rows.at",
    "event.data.*",
    "event.marks",
    "event.approximate",
    "event.note",
    "event.other_keys",
    "tool.native",
    "tool.aliases",
    "tool.when.*",
    "tool.keys.*",
    "tool.edits.*",
    "other_env",
    "tool.other_keys",
    "tool.patch",
    "mcp.*",
    "answer.*.empty.*",
    "unreadable.*",
    "answer.*.*.stdout",
    "answer.*.*.stdout.*",
    "answer.*.*.stderr",
    "answer.*.effect.*",
    "env.*",
    "absent.*",
    "hazard.*",
    "inherit.words.*",
    "env_source.path",
    "env_source.at",
    "off_switch.at",
];

/// Tables whose keys are an agent's own, or name something of the table itself.
const FREE_KEYS: &[&str] = &[
    "config.preamble.*",
    "config.variant",
    "config.handler.constants",
    "config.handler.kinds",
    "payload.rows",
    "payload.defaults",
    "tool.when",
    "answer",
    "unreadable",
    "inherit.words",
    "answer.*.empty",
    "answer.*.*.stdout.*",
    "env",
];

/// A key or a text of a table.
struct Word {
    /// Keys from the root to a text, or to the table of a key.
    path: String,
    text: String,
    span: Range<usize>,
    is_key: bool,
}

fn collect_table(path: &str, table: &DeTable<'_>, words: &mut Vec<Word>) {
    for (key, value) in table {
        words.push(Word {
            path: path.to_owned(),
            text: key.get_ref().to_string(),
            span: key.span(),
            is_key: true,
        });
        let inner = match path {
            "" => key.get_ref().to_string(),
            // Alike under every name: checked once for all of them.
            "answer" | "payload.rows" => format!("{path}.*"),
            "config.variant" => "config".to_owned(),
            _ => format!("{path}.{}", key.get_ref()),
        };
        collect_value(&inner, value, words);
    }
}

fn collect_value(path: &str, value: &Spanned<DeValue<'_>>, words: &mut Vec<Word>) {
    match value.get_ref() {
        DeValue::Table(table) => collect_table(path, table, words),
        DeValue::Array(items) => {
            for item in items {
                collect_value(path, item, words);
            }
        }
        DeValue::String(text) => words.push(Word {
            path: path.to_owned(),
            text: text.to_string(),
            span: value.span(),
            is_key: false,
        }),
        _ => {}
    }
}

/// `*` stands for one key, and at the end for any number of them.
fn fits(pattern: &str, path: &str) -> bool {
    let prefix = pattern.strip_suffix(".*");
    let wanted: Vec<&str> = prefix.unwrap_or(pattern).split('.').collect();
    let found: Vec<&str> = path.split('.').collect();
    let length_fits =
        found.len() == wanted.len() || (prefix.is_some() && found.len() > wanted.len());
    let mut pairs = wanted.iter().zip(&found);
    length_fits && pairs.all(|(wanted, found)| *wanted == "*" || wanted == found)
}

#[test]
fn a_mistyped_word_stops_the_build_with_file_and_line() {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
    let known = known_tables();
    let mut faults = Vec::new();
    let mut checked = BTreeSet::new();
    for slug in anyhook_agents::slugs() {
        let file = format!("agents/{slug}/agent.toml");
        let text = fs::read_to_string(agents.join(slug).join("agent.toml")).unwrap();
        assert!(agent_toml::parse(&file, &text, &known).is_ok(), "{file}");
        let mut words = Vec::new();
        collect_table("", DeTable::parse(&text).unwrap().get_ref(), &mut words);
        let mut seen = BTreeSet::new();
        for word in words {
            let free = if word.is_key { FREE_KEYS } else { FREE_TEXTS };
            if free.iter().any(|pattern| fits(pattern, &word.path))
                || !seen.insert((word.path.clone(), word.text.clone(), word.is_key))
            {
                continue;
            }
            let quote = usize::from(text[..word.span.end].ends_with('"'));
            let mut mistyped = text.clone();
            mistyped.insert(word.span.end - quote, 'x');
            let line = text[..word.span.start].matches('\n').count() + 1;
            let place = format!("{file}:{line}: ");
            match agent_toml::parse(&file, &mistyped, &known) {
                Ok(_) => faults.push(format!(
                    "{place}`{}x` at `{}` is accepted",
                    word.text, word.path
                )),
                Err(message) if !message.starts_with(&place) => {
                    faults.push(format!("{place}`{}x` is reported as: {message}", word.text));
                }
                Err(message) if !message.contains(&format!("`{}x`", word.text)) => {
                    faults.push(format!("{place}`{}x` is not named: {message}", word.text));
                }
                Err(message) if !word.is_key && !message.contains(&format!("`{}`", word.text)) => {
                    faults.push(format!("{place}allowed words are not listed: {message}"));
                }
                Err(_) => {
                    checked.insert(word.path);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for path in [
        "answer.*.exit2",
        "event.matcher",
        "event.is",
        "verified.how",
    ] {
        assert!(
            checked.contains(path),
            "`{path}` was not checked: {checked:?}"
        );
    }
}

#[test]
fn a_mistyped_hole_stops_the_build() {
    let known = known_tables();
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
    for slug in anyhook_agents::slugs() {
        let text = fs::read_to_string(agents.join(slug).join("agent.toml")).unwrap();
        let holes = [
            "reason",
            "context",
            "message",
            "updated_input",
            "project",
            "server",
        ];
        for hole in holes.map(|name| format!("{{{name}}}")) {
            let Some(at) = text.find(&format!("\"{hole}")) else {
                continue;
            };
            let mut mistyped = text.clone();
            mistyped.insert(at + hole.len(), 'x');
            let line = text[..at].matches('\n').count() + 1;
            let message = agent_toml::parse("agent.toml", &mistyped, &known).err();
            let message = message.unwrap_or_else(|| format!("{slug}: {hole} is accepted"));
            assert!(
                message.starts_with(&format!("agent.toml:{line}: unknown word")),
                "{message}"
            );
        }
    }
}
