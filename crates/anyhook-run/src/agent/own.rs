//! Finds the tables of the user's own agents: `agents/<slug>/agent.toml` in the
//! managed folder and in the user's config folder.
//!
//! The dispatcher looks for them only if a name is none of the built-in agents':
//! reading a table costs more than starting the process. The program says how a
//! table is read, so that this crate needs no parser for it.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhook_agents::AgentHandle;
use anyhook_agents::own::{OwnTable, add};
use anyhook_agents::spec::AgentSpec;

use crate::config::discover::Dirs;

/// The folder of the tables, in the managed folder and in the user's.
pub const AGENTS_FOLDER: &str = "agents";
const FILE_NAME: &str = "agent.toml";
/// A larger table is an error.
const MAX_TABLE_BYTES: u64 = 1024 * 1024;

/// Reads one table, or says what is wrong with it.
pub type ReadTable = fn(&OwnTable) -> Result<AgentSpec, String>;

static READ_TABLE: OnceLock<ReadTable> = OnceLock::new();

/// Sets how tables are read; without it a user has no agents of their own.
pub fn read_tables_with(read: ReadTable) {
    // The program says it once.
    let _ = READ_TABLE.set(read);
}

/// The agent of this slug or alias, built in or the user's.
pub fn find_agent(name: &str) -> Option<AgentHandle> {
    anyhook_agents::agent_handle(name).or_else(|| {
        load_own_agents();
        anyhook_agents::agent_handle(name)
    })
}

/// Reads the user's own agents into this process, once. Returns what is wrong
/// with those that cannot be used.
pub fn load_own_agents() -> &'static [String] {
    static PROBLEMS: OnceLock<Vec<String>> = OnceLock::new();
    PROBLEMS.get_or_init(|| {
        let Some(read) = READ_TABLE.get() else {
            return Vec::new();
        };
        let dirs = Dirs::from_env();
        let (mut tables, mut problems) = (Vec::new(), Vec::new());
        // What the administrator defines is nothing that a user can replace.
        for folder in [&dirs.managed, &dirs.config] {
            collect(&folder.join(AGENTS_FOLDER), &mut tables, &mut problems);
        }
        problems.extend(add(&tables, read));
        problems
    })
}

/// A table as the process takes it.
pub fn read_table(path: &Path) -> Result<OwnTable, String> {
    let file = path.display().to_string();
    let slug = path.parent().and_then(Path::file_name);
    let slug = slug.map(|slug| slug.to_string_lossy().into_owned());
    let size = fs::metadata(path).map_err(|error| format!("{file}: {error}"))?;
    if !size.is_file() || size.len() > MAX_TABLE_BYTES {
        return Err(format!("{file}: is no file of at most 1 MiB"));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
    Ok(OwnTable {
        file,
        slug: slug.unwrap_or_default(),
        text,
    })
}

fn collect(folder: &Path, tables: &mut Vec<OwnTable>, problems: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join(FILE_NAME)))
        .filter(|path| path.exists())
        .collect();
    paths.sort();
    for path in paths {
        match read_table(&path) {
            Ok(table) => tables.push(table),
            Err(message) => problems.push(message),
        }
    }
}
