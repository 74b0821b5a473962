//! `database`: dropping, truncating and emptying.

use super::Objections;
use super::operand_texts;
use crate::input::GuardInput;
use crate::shell::{Invocation, ShellAnalysis, UNKNOWN};

/// Clients that take SQL.
const SQL_CLIENTS: &[&str] = &[
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

fn judge_sql_client(analysis: &ShellAnalysis, invocation: &Invocation, found: &mut Objections<'_>) {
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
    if !DATABASE_LIBRARIES
        .iter()
        .any(|library| code.contains(library))
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

/// What a statement of an SQL text destroys.
fn destructive_statement(text: &str) -> Option<&'static str> {
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

/// Code for a framework's console that empties a table: `User.delete_all`.
fn runs_deleting_code(invocation: &Invocation) -> bool {
    let runs_code = match invocation.name.as_str() {
        "rails" => ["runner", "r", "console", "c"]
            .iter()
            .any(|word| invocation.has_word(word)),
        "php" | "artisan" => invocation.has_word("tinker"),
        "manage" | "manage.py" | "django-admin" => invocation.has_word("shell"),
        "heroku" => invocation.has_word("run"),
        name => name.starts_with("python") && invocation.has_word("shell"),
    };
    let mut texts = invocation.texts().chain(invocation.input_text.as_deref());
    runs_code
        && texts.any(|text| {
            let code: String = text.split_whitespace().collect();
            [
                "delete_all",
                "destroy_all",
                ".all().delete()",
                "drop_table",
                "->truncate()",
                "::truncate()",
                ".truncate",
            ]
            .iter()
            .any(|mark| code.contains(mark))
                || text
                    .split(['\'', '"'])
                    .any(|part| destructive_statement(part).is_some())
        })
}

/// Commands of frameworks that empty the development database or worse.
fn judge_framework(invocation: &Invocation, words: &[String], found: &mut Objections<'_>) {
    let name = invocation.name.as_str();
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let starts = |wanted: &str| words.iter().any(|word| word.starts_with(wanted));
    let is_reset = match name {
        "rails" | "python" | "python3" | "manage" | "django-admin" | "manage.py"
            if has("dbconsole") || has("dbshell") || has("db") =>
        {
            invocation
                .input_text
                .as_deref()
                .is_some_and(|text| destructive_statement(text).is_some())
        }
        "rails" | "rake" | "bin/rails" | "spring" => [
            "db:drop",
            "db:reset",
            "db:migrate:reset",
            "db:schema:load",
            "db:purge",
            "db:truncate_all",
            "db:seed:replant",
        ]
        .iter()
        .any(|task| starts(task)),
        "prisma" => {
            has("execute")
                && invocation
                    .input_text
                    .as_deref()
                    .is_some_and(|text| destructive_statement(text).is_some())
                || has("reset")
                || has("push") && has("--force-reset")
                || has("--accept-data-loss") && has("push")
        }
        "python" | "python3" | "manage" | "django-admin" | "manage.py" => {
            let is_manage = name.starts_with("django")
                || name.starts_with("manage")
                || starts("manage.py")
                || has("django") && has("-m")
                || has("-mdjango")
                || words.iter().any(|word| word.ends_with("/manage.py"));
            is_manage && (has("flush") || has("reset_db") || has("migrate") && has("zero"))
        }
        "flask" => has("downgrade") && has("base"),
        "dotnet" | "dotnet-ef" => has("database") && (has("drop") || has("update") && has("0")),
        "node" => {
            words
                .iter()
                .any(|word| word == "ace" || word.ends_with("/ace") || word == "ace.js")
                && (starts("migration:fresh")
                    || starts("migration:reset")
                    || starts("db:wipe")
                    || starts("db:truncate"))
        }
        "phinx" => has("rollback") && (has("-t") || starts("--target")) && has("0"),
        "atlas" => has("schema") && has("clean"),
        "heroku" => starts("pg:reset"),
        "pscale" | "neonctl" => has("delete"),
        "kafka-topics" | "kafka-topics.sh" => has("--delete"),
        "artisan" | "php" | "symfony" => {
            (name == "artisan" || starts("artisan"))
                && (has("migrate:fresh")
                    || has("migrate:reset")
                    || has("db:wipe")
                    || has("migrate:refresh"))
                || starts("d:d:d")
                || starts("doctrine:database:drop")
                || starts("doctrine:schema:drop")
                || starts("doctrine:fixtures:load") && !has("--append")
        }
        "sequelize" | "sequelize-cli" => starts("db:drop") || starts("db:migrate:undo:all"),
        "knex" => has("migrate:rollback") && has("--all"),
        "hasura" if has("migrate") && has("--down") && has("all") => true,
        _ if name.starts_with("typeorm") => has("schema:drop"),
        "mix" => {
            starts("ecto.drop")
                || starts("ecto.reset")
                || starts("ecto.rollback") && (has("--all") || has("--to"))
        }
        "mikro-orm" => starts("schema:drop") || starts("schema:fresh") || starts("migration:fresh"),
        "sea-orm-cli" => has("fresh") || has("reset") || has("refresh"),
        "mvn" | "gradle" | "gradlew" => {
            starts("flyway:clean")
                || starts("flywayclean")
                || starts("liquibase:dropall")
                || starts("dropall")
        }
        "drush" => starts("sql:drop") || starts("sql-drop") || starts("site:install"),
        "adonis" | "ace" => {
            starts("migration:fresh") || starts("migration:reset") || starts("db:wipe")
        }
        "medusa" | "payload" | "strapi" => {
            starts("db:drop") || starts("migrate:fresh") || starts("migrate:reset")
        }
        "piccolo" | "tortoise" | "aerich" => has("drop"),
        "convex" => has("clear"),
        "diesel" => has("database") && (has("reset") || has("drop")),
        "sqlx" | "cargo" => {
            (name == "sqlx" || has("sqlx")) && has("database") && (has("drop") || has("reset"))
        }
        "alembic" => has("downgrade") && has("base"),
        "flyway" => has("clean"),
        "liquibase" => has("dropall") || has("drop-all"),
        "supabase" => has("db") && has("reset") || has("stop") && has("--no-backup"),
        "dbmate" => has("drop"),
        "goose" => has("reset") || has("down-to"),
        "migrate" => has("drop") || has("down") && (has("-all") || has("--all")),
        "drizzle-kit" => has("drop"),
        "hasura" => has("reset") || has("metadata") && has("clear"),
        "doctrine" | "console" => {
            starts("doctrine:database:drop")
                || starts("doctrine:schema:drop")
                || starts("d:d:d")
                || starts("doctrine:fixtures:load") && !has("--append")
        }
        "wp" => has("db") && (has("reset") || has("drop") || has("clean")),
        _ => false,
    };
    if is_reset || runs_deleting_code(invocation) {
        found.deny(
            "reset",
            invocation.shown(),
            "this drops or empties the database",
        );
    }
}
