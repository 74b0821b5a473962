//! What a statement of an SQL text destroys.

use crate::shell::UNKNOWN;

/// What a statement of an SQL text destroys.
pub(super) fn destructive_statement(text: &str) -> Option<&'static str> {
    let mut cleaned = strip_sql(&text.replace("\\G", ";").replace("\\g", ";"));
    // `.mode csv` and `\\timing` end with their line.
    if cleaned.contains("\n.") || cleaned.starts_with('.') || cleaned.contains('\\') {
        let lines: Vec<String> = cleaned
            .lines()
            .map(|line| match line.trim_start().chars().next() {
                Some('.' | '\\') => format!("{line};"),
                _ => line.to_owned(),
            })
            .collect();
        cleaned = lines.join("\n");
    }
    // The texts that a block runs: `EXECUTE 'DROP TABLE a'`.
    let upper = text.to_ascii_uppercase();
    for inner in upper.split("EXECUTE").skip(1) {
        let inner = inner.trim_start_matches([' ', '(']).strip_prefix('\'');
        if let Some(what) = inner
            .and_then(|inner| inner.split('\'').next())
            .filter(|inner| !inner.contains("EXECUTE"))
            .and_then(destructive_statement)
        {
            return Some(what);
        }
    }
    for statement in cleaned.split(';') {
        let upper = statement.to_ascii_uppercase();
        let words: Vec<&str> = upper
            .split(|letter: char| {
                !(letter.is_alphanumeric()
                    || letter == '_'
                    || letter == '.'
                    || letter == UNKNOWN
                    || letter == '"'
                    || letter == '\\'
                    || letter == '$'
                    || letter == '@')
            })
            .filter(|word| !word.is_empty())
            .collect();
        for (index, word) in words.iter().enumerate() {
            let has = |word: &str| words.contains(&word);
            // A condition before the statement belongs to what feeds it.
            let has_condition = words
                .get(index..)
                .is_some_and(|rest| rest.contains(&"WHERE"));
            let next = words.get(index + 1).copied().unwrap_or_default();
            let is_start = index == 0
                || words.get(index - 1).is_some_and(|before| {
                    matches!(
                        *before,
                        "AS" | "BEGIN" | "THEN" | "DO" | "EXPLAIN" | "ANALYZE" | "EXECUTE" | "GO"
                    )
                })
                || index < 4 && has("EXPLAIN")
                || has("WITH")
                || words.first().is_some_and(|first| {
                    first.starts_with('\\')
                        || *first == "DO"
                        || *first == "PREPARE"
                        || *first == "SET"
                });
            match *word {
                "DROP"
                    if is_start
                        && matches!(
                            next,
                            "TABLE"
                                | "DATABASE"
                                | "SCHEMA"
                                | "INDEX"
                                | "VIEW"
                                | "USER"
                                | "ROLE"
                                | "KEYSPACE"
                                | "TABLESPACE"
                                | "MATERIALIZED"
                                | "TRIGGER"
                                | "FUNCTION"
                                | "PROCEDURE"
                                | "SEQUENCE"
                                | "TYPE"
                                | "EXTENSION"
                                | "COLUMN"
                                | "OWNED"
                                | "COLLECTION"
                                | "CONSTRAINT"
                                | "TEMPORARY"
                                | "DATASET"
                                | "WAREHOUSE"
                                | "DICTIONARY"
                                | "PARTITION"
                        ) =>
                {
                    return Some("drops a part of the database");
                }
                // ClickHouse: `ALTER TABLE t DELETE WHERE 1=1`.
                "DELETE" if words.first() == Some(&"ALTER") && is_always_true(&upper) => {
                    return Some("deletes every row of a table");
                }
                "DROP" if words.first() == Some(&"ALTER") => {
                    return Some("drops a part of a table");
                }
                "TRUNCATE" if index == 0 || is_start && !matches!(next, "") => {
                    return Some("empties a table");
                }
                "DELETE" if is_start && (next == "FROM" || next == "ONLY") && !has_condition => {
                    return Some("deletes every row of a table");
                }
                "DELETE"
                    if is_start && (next == "FROM" || next == "ONLY") && is_always_true(&upper) =>
                {
                    return Some("deletes every row of a table");
                }
                "DELETE" if index == 0 && !next.is_empty() && !has_condition => {
                    return Some("deletes every row of a table");
                }
                "UPDATE"
                    if is_start && has("SET") && (!has_condition || is_always_true(&upper)) =>
                {
                    return Some("changes every row of a table");
                }
                _ => {}
            }
        }
    }
    None
}

/// `WHERE 1=1`, `WHERE true` and nothing else.
fn is_always_true(upper: &str) -> bool {
    let Some((_, condition)) = upper.split_once("WHERE") else {
        return false;
    };
    let condition: String = condition.split_whitespace().collect();
    let condition = condition.trim_matches(['(', ')']);
    if ["1=1OR", "TRUEOR", "1OR"]
        .iter()
        .any(|start| condition.starts_with(start))
    {
        return true;
    }
    matches!(
        condition,
        "1=1" | "TRUE" | "1" | "''=''" | "0=0" | "NOTFALSE" | "1<>0" | "1>0" | "2>1" | "1ISNOTNULL"
    )
}

/// Without comments and the content of string literals.
fn strip_sql(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("--").or_else(|| rest.strip_prefix("# ")) {
            rest = after
                .find('\n')
                .and_then(|at| after.get(at..))
                .unwrap_or_default();
            out.push(' ');
        } else if let Some(after) = rest.strip_prefix("/*!") {
            // A comment that the server runs, up to its end.
            let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let end = after.find("*/");
            out.push(' ');
            out.push_str(end.and_then(|at| after.get(..at)).unwrap_or(after));
            rest = end.and_then(|at| after.get(at + 2..)).unwrap_or_default();
        } else if let Some(after) = rest.strip_prefix("/*") {
            rest = after
                .find("*/")
                .and_then(|at| after.get(at + 2..))
                .unwrap_or_default();
            out.push(' ');
        } else if first == '\'' {
            let after = rest.get(1..).unwrap_or_default();
            let end = after.find('\'').map_or(after.len(), |at| at + 1);
            out.push_str("''");
            rest = after.get(end..).unwrap_or_default();
        } else {
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    out
}
