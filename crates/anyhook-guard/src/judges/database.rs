//! `database`: dropping, truncating and emptying.

mod clients;
mod frameworks;
mod sql;

use super::{Objections, operand_texts};
use crate::input::GuardInput;
use crate::shell::{Invocation, ShellAnalysis, without_prose};
use clients::{SQL_CLIENTS, judge_sql_client};
use frameworks::judge_framework;
use sql::destructive_statement;

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    for analysis in input.analyses() {
        for invocation in &analysis.invocations {
            judge_invocation(analysis, invocation, found);
            if found.is_settled() {
                return;
            }
        }
    }
    found.ask_if_incomplete(input);
}

fn judge_invocation(analysis: &ShellAnalysis, invocation: &Invocation, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    let name = invocation.name.as_str();
    if invocation.shows_help() && !matches!(name, "mongosh") {
        return;
    }
    let texts: Vec<&str> = invocation.texts().collect();
    let lower = || {
        texts
            .iter()
            .map(|text| text.to_ascii_lowercase())
            .collect::<Vec<_>>()
    };
    match name {
        "dropdb" | "dropuser" => found.deny("drop", shown(), "this drops a database"),
        "mysqladmin" | "mariadb-admin" if texts.contains(&"drop") => {
            found.deny("drop", shown(), "this drops a database");
        }
        "redis-cli" | "valkey-cli" | "keydb-cli" => {
            let mut words = lower();
            words.extend(invocation.input_text.iter().flat_map(|text| {
                text.to_ascii_lowercase()
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            }));
            let command = operand_texts(
                invocation,
                &["-h", "-p", "-a", "-n", "-u", "--user", "--pass"],
            )
            .first()
            .map(|text| text.to_ascii_lowercase())
            .unwrap_or_default();
            let from_input = invocation.input_text.is_some() && command.is_empty();
            let flushes = |text: &String| text.contains("flushall") || text.contains("flushdb");
            if flushes(&command)
                || (from_input && words.iter().any(flushes))
                || (command.starts_with("eval") && words.iter().any(flushes))
                || (command.contains(' ') && flushes(&command))
            {
                found.deny("flush", shown(), "this empties the database");
            }
            if command == "unlink" || command == "del" {
                let from_keys = invocation
                    .words
                    .iter()
                    .any(crate::shell::ResolvedWord::has_unknown);
                if from_keys && !invocation.via.is_empty() {
                    found.ask_user(
                        "flush",
                        shown(),
                        "which keys this deletes is only known at run time",
                    );
                }
            }
        }
        "mongosh" | "mongo" => {
            let mut code = texts.join("\n");
            code.extend(invocation.input_text.as_deref());
            let code: String = code.split_whitespace().collect();
            let is_drop = [
                "dropDatabase(",
                ".drop(",
                "deleteMany({})",
                "remove({})",
                "deleteMany()",
                "dropUser(",
                "dropAllUsers",
                "dropCollection(",
                "dropIndexes(",
                "bulkWrite([{deleteMany:{filter:{}}",
                "updateMany({},",
                "runCommand({dropDatabase:",
                "runCommand({drop:",
            ]
            .iter()
            .any(|mark| code.contains(mark));
            if is_drop {
                found.deny(
                    "drop",
                    shown(),
                    "this drops or empties a collection or database",
                );
            }
        }
        "mongorestore" | "pg_restore" if invocation.has_option("c", &["--drop", "--clean"]) => {
            found.ask_user("drop", shown(), "this drops what it restores over");
        }
        "influx" if texts.contains(&"delete") => found.deny("drop", shown(), "this deletes data"),
        "etcdctl"
            if texts.contains(&"del")
                && texts
                    .iter()
                    .any(|text| text.starts_with("--prefix") || text.starts_with("--from-key")) =>
        {
            found.deny("drop", shown(), "this deletes many keys");
        }
        "cypher-shell" => {
            let mut code = texts.join(" ").to_ascii_uppercase();
            code.extend(
                invocation
                    .input_text
                    .as_deref()
                    .map(str::to_ascii_uppercase),
            );
            if code.contains("DELETE") && !code.contains("WHERE") || code.contains("DROP ") {
                found.deny("statement", shown(), "this deletes a part of the graph");
            }
        }
        "turso" if texts.contains(&"destroy") => {
            found.deny("drop", shown(), "this deletes a database");
        }
        "bq" if texts.contains(&"rm") => {
            found.deny("drop", shown(), "this deletes a table or dataset");
        }
        "sqlite-utils" if texts.iter().any(|text| text.starts_with("drop-")) => {
            found.deny("drop", shown(), "this drops a table or view");
        }
        // Statements that a command line of a cloud sends to a database.
        "gcloud" | "aws" | "az" | "heroku" | "fly" | "flyctl" | "prisma" | "supabase" => {
            let mut statements = texts.iter().filter(|text| text.contains(' '));
            if let Some(what) = statements.find_map(|text| {
                destructive_statement(text.split_once('=').map_or(*text, |(_, value)| value))
            }) {
                found.deny("statement", shown(), format!("this {what}"));
            }
            let piped = invocation.input_text.as_deref();
            if let Some(what) = piped
                .filter(|_| {
                    texts
                        .iter()
                        .any(|text| matches!(*text, "connect" | "pg:psql" | "proxy"))
                })
                .and_then(destructive_statement)
            {
                found.deny("statement", shown(), format!("this {what}"));
            }
            judge_framework(invocation, &lower(), found);
        }
        "curl" | "http" | "xh" => judge_search_index(invocation, &texts, found),
        _ if SQL_CLIENTS.contains(&name) => judge_sql_client(analysis, invocation, found),
        _ if invocation.code.is_some() => {
            judge_code(invocation, found);
            judge_framework(invocation, &lower(), found);
        }
        _ => judge_framework(invocation, &lower(), found),
    }
}

/// A delete request to the usual port of Elasticsearch and its relatives.
fn judge_search_index(invocation: &Invocation, texts: &[&str], found: &mut Objections<'_>) {
    let is_index = texts
        .iter()
        .any(|text| text.contains(":9200/") && !text.contains("/_doc/"));
    let deletes_all = texts.iter().any(|text| text.contains("/_delete_by_query"))
        && texts.iter().any(|text| text.contains("match_all"));
    if is_index && super::is_delete_request(invocation) || deletes_all {
        found.deny("drop", invocation.shown(), "this deletes an index");
    }
}

/// Libraries through which an interpreter's code reaches a database.
const DATABASE_LIBRARIES: &[&str] = &[
    "sqlite3",
    "psycopg",
    "pymysql",
    "MySQLdb",
    "mysql",
    "sqlalchemy",
    "asyncpg",
    "pg",
    "knex",
    "better-sqlite3",
    "DBI",
    "PDO",
    "duckdb",
    "ActiveRecord",
    "Sequel",
    "clickhouse",
    "cassandra",
    "django.db",
    "prisma",
    "PG.",
    "Mysql2",
    "SQLite3",
    "mysqli",
    "typeorm",
    "sequelize",
    "oracledb",
    "pyodbc",
    "snowflake",
    "bigquery",
    "mssql",
];

/// Statements in the texts of an interpreter's code.
fn judge_code(invocation: &Invocation, found: &mut Objections<'_>) {
    let code = invocation.code.as_deref().unwrap_or_default();
    let outer = without_prose(code);
    if !DATABASE_LIBRARIES
        .iter()
        .any(|library| outer.contains(library))
    {
        return;
    }
    for quote in ['\'', '"', '`'] {
        for text in code.split(quote) {
            if let Some(what) = destructive_statement(text) {
                return found.deny("statement", invocation.shown(), format!("this {what}"));
            }
        }
    }
}
