//! Reads what is new about a session in an agent's own SQLite database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::table::DatabaseTable;
use super::transcript::{KnownCalls, NewTokens, TranscriptPosition};

/// The agent writes to it.
const MAX_WAIT: Duration = Duration::from_millis(500);
const MAX_ROW_BYTES: usize = 1024 * 1024;
/// Rows of one session that are read at a time; the rest comes with the next round.
const MAX_ROUND_ROWS: usize = 10_000;

/// The first file of the table that exists. A path begins with `~/` or with a variable.
pub(crate) fn database_path(table: &DatabaseTable, home: Option<&Path>) -> Option<PathBuf> {
    let paths = table.path.iter().filter_map(|path| {
        let (start, rest) = path.split_once('/')?;
        match start.strip_prefix('$') {
            Some(variable) => {
                let folder = anyhook_util::env::by_name(variable);
                Some(Path::new(&folder.filter(|it| !it.is_empty())?).join(rest))
            }
            None => Some(home?.join(rest)),
        }
    });
    paths.into_iter().find(|path| path.is_file())
}

/// Rows of a session after the position. A database that cannot be read has nothing new.
/// `known_calls` is asked only where the ledger may have them.
pub(crate) fn read_session(
    path: &Path,
    table: &DatabaseTable,
    session: &str,
    position: &mut TranscriptPosition,
    known_calls: impl FnOnce() -> KnownCalls,
) -> Vec<NewTokens> {
    let known = position.is_repeated.then(known_calls);
    let mut found = Vec::new();
    // What was read before an error is kept.
    let _ = read_rows(path, table, session, position, known.as_ref(), &mut found);
    found
}

fn read_rows(
    path: &Path,
    table: &DatabaseTable,
    session: &str,
    position: &mut TranscriptPosition,
    known: Option<&KnownCalls>,
    found: &mut Vec<NewTokens>,
) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(MAX_WAIT)?;
    let mut statement = connection.prepare(&table.query)?;
    let since = i64::try_from(position.bytes).unwrap_or(i64::MAX);
    let mut rows = statement.query((session, since))?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let (id, changed): (String, i64) = (row.get(0)?, row.get(1)?);
        let text = row.get_ref(2)?.as_bytes().unwrap_or_default();
        let text = text
            .get(..text.len().min(MAX_ROW_BYTES))
            .unwrap_or_default();
        if let Ok(object) = serde_json::from_slice::<Value>(text) {
            let mut usage = table.fields.find(&object);
            usage.id = Some(id);
            found.extend(position.new_tokens(usage, known));
        }
        position.bytes = u64::try_from(changed).unwrap_or(position.bytes);
        count += 1;
        if count >= MAX_ROUND_ROWS {
            return Ok(());
        }
    }
    position.is_repeated = false;
    Ok(())
}
