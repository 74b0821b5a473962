//! Clients that take SQL, and the statements they are given.

use super::sql::destructive_statement;
use crate::judges::Objections;
use crate::shell::{Invocation, ShellAnalysis};

/// Clients that take SQL.
pub(super) const SQL_CLIENTS: &[&str] = &[
    "psql",
    "Invoke-Sqlcmd",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "sqlcmd",
    "duckdb",
    "clickhouse-client",
    "clickhouse",
    "cqlsh",
    "sqlplus",
    "mysqlsh",
    "influx",
    "mycli",
    "pgcli",
    "litecli",
    "usql",
    "cockroach",
    "isql",
    "bq",
    "snowsql",
    "trino",
    "presto",
    "turso",
    "litestream",
    "osql",
    "vsql",
    "snow",
    "wrangler",
    "spark-sql",
    "beeline",
    "hive",
    "impala-shell",
    "dolt",
    "ysqlsh",
    "db2",
    "mclient",
    "sqlite-utils",
    "libsql",
    "rqlite",
    "surreal",
    "databricks",
    "edgedb",
    "gel",
    "crash",
];

pub(super) fn judge_sql_client(
    analysis: &ShellAnalysis,
    invocation: &Invocation,
    found: &mut Objections<'_>,
) {
    let mut statements: Vec<&str> = invocation.texts().collect();
    if let Some(text) = &invocation.input_text {
        statements.push(text);
    }
    for text in &statements {
        // `-cDROP …`, `--command=DROP …`.
        let text = text
            .split_once('=')
            .filter(|(option, _)| option.starts_with("--"))
            .map_or(*text, |(_, value)| value);
        let text = without_cluster(text);
        if let Some(what) = destructive_statement(text) {
            return found.deny("statement", invocation.shown(), format!("this {what}"));
        }
    }
    // Statements that another client has put together.
    if invocation.input_text.is_none() && !invocation.input_from.is_empty() {
        let mut sources = analysis
            .invocations
            .get(invocation.input_from.clone())
            .unwrap_or_default()
            .iter();
        if sources.any(|source| {
            SQL_CLIENTS.contains(&source.name.as_str())
                || source.has_word("sqlflush")
                || puts_statements_together(source)
        }) {
            found.ask_user(
                "dynamic",
                invocation.shown(),
                "the statements are only known at run time; write them out",
            );
        }
    }
    // A statement that only a command knows; a file's content stays unread.
    let is_hidden = invocation.words.iter().skip(1).any(|word| {
        word.has_unknown() && !word.sources.is_empty() && !word.text.contains("/dev/fd")
    });
    let follows_option = invocation.words.windows(2).any(|pair| {
        matches!(pair, [option, value] if value.is_unknown()
            && (matches!(option.text.as_str(), "-e" | "--command" | "--execute" | "-q" | "--query" | "-Q") || (option.text.starts_with('-') && !option.text.starts_with("--") && option.text.ends_with('c'))))
    });
    if is_hidden || follows_option {
        found.ask_user(
            "dynamic",
            invocation.shown(),
            "the statement is only known at run time; write it out",
        );
    }
}

/// The statement that is attached to short options: `-cDROP …`, `-tAcDROP …`.
fn without_cluster(text: &str) -> &str {
    let is_cluster = text.starts_with('-') && !text.starts_with("--") && text.contains(' ');
    if !is_cluster {
        return text;
    }
    let letters = text.char_indices().skip(1).take(6);
    let mut rests = letters.map_while(|(at, letter)| {
        let rest = text.get(at + letter.len_utf8()..)?;
        letter.is_ascii_alphabetic().then_some(rest)
    });
    rests
        .find(|rest| destructive_statement(rest).is_some())
        .unwrap_or(text)
}

/// Programs that hand on a file or a backup, unlike those that write statements.
fn puts_statements_together(source: &Invocation) -> bool {
    let name = source.name.as_str();
    let is_script = source
        .words
        .first()
        .is_some_and(|program| program.text.contains('/') && !program.text.starts_with("/usr"));
    is_script
        || source.code.is_some()
        || matches!(
            name,
            "curl"
                | "wget"
                | "python"
                | "python3"
                | "node"
                | "ruby"
                | "perl"
                | "php"
                | "sh"
                | "bash"
        )
}
