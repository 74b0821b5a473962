//! Commands and consoles of frameworks that empty a database.

use super::sql::destructive_statement;
use crate::judges::Objections;
use crate::shell::Invocation;

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
pub(super) fn judge_framework(
    invocation: &Invocation,
    words: &[String],
    found: &mut Objections<'_>,
) {
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
