//! Finds the tables of the user's own agents: `agents/<slug>/agent.toml` in the
//! managed folder and in the user's config folder.
//!
//! The dispatcher looks for them only if a name is none of the built-in agents':
//! reading a table costs more than starting the process. The program says how a
//! table is read, so that this crate needs no parser for it.
//!
//! A table says what each event means, so a wrong one switches guards off. It counts
//! only if no one but its owner can have written it, never from inside the project,
//! and on a locked installation only from the managed folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhook_agents::AgentHandle;
use anyhook_agents::own::{OwnTable, add};
use anyhook_agents::spec::AgentSpec;
use anyhook_model::Scope;
use anyhook_util::env;

use crate::config::discover::{self, Dirs};
use crate::config::trust;

/// The folder of the tables, in the managed folder and in the user's.
pub(crate) const AGENTS_FOLDER: &str = "agents";
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
pub(crate) fn find_agent(name: &str) -> Option<AgentHandle> {
    find_caller(name, b"")
}

/// The same for the agent that sent this payload.
pub(super) fn find_caller(name: &str, payload: &[u8]) -> Option<AgentHandle> {
    anyhook_agents::agent_handle(name).or_else(|| {
        load(payload);
        anyhook_agents::agent_handle(name)
    })
}

/// Reads the user's own agents into this process, once. Returns what is wrong
/// with those that cannot be used.
pub fn load_own_agents() -> &'static [String] {
    load(b"")
}

fn load(payload: &[u8]) -> &'static [String] {
    static PROBLEMS: OnceLock<Vec<String>> = OnceLock::new();
    PROBLEMS.get_or_init(|| {
        let Some(read) = READ_TABLE.get() else {
            return Vec::new();
        };
        let dirs = Dirs::from_env();
        let (mut tables, mut problems) = (Vec::new(), Vec::new());
        // What the administrator defines is nothing that a user can replace.
        for (scope, folder) in [(Scope::Managed, &dirs.managed), (Scope::User, &dirs.config)] {
            for path in table_paths(&folder.join(AGENTS_FOLDER)) {
                let refusal = (scope == Scope::User)
                    .then(|| refusal_of_user_table(&dirs, &path, payload))
                    .flatten();
                let trusted = match refusal {
                    Some(why) => Err(format!("{}: {why}", path.display())),
                    None => trust::by_file_location(scope, folder, &path)
                        .map_err(|why| format!("{}: {why}", path.display())),
                };
                match trusted.and_then(|()| read_table(&path)) {
                    Ok(table) => tables.push(table),
                    Err(message) => problems.push(message),
                }
            }
        }
        problems.extend(add(&tables, read));
        problems
    })
}

/// Why a table in the user's folder does not count.
fn refusal_of_user_table(dirs: &Dirs, path: &Path, payload: &[u8]) -> Option<&'static str> {
    if discover::is_locked(env::by_name_os) {
        return Some(
            "is not used: on this machine only the administrator's tables count; ask for a copy in the managed folder",
        );
    }
    // A link out of a project's folder is the project's, and so is the end of one into it.
    let places = [dirs.config.join(AGENTS_FOLDER), path.to_owned()];
    let projects = places.iter().filter_map(|it| discover::project_around(it));
    let is_of_caller = |project: PathBuf| {
        let is_here = std::env::current_dir().is_ok_and(|folder| folder.starts_with(&project));
        let name = project.to_string_lossy();
        is_here || String::from_utf8_lossy(payload).contains(&*name)
    };
    let mut projects = projects.map(is_of_caller);
    projects
        .any(|is_of_caller| is_of_caller)
        .then_some("is not used: it is a file of the project")
}

/// A table as the process takes it.
pub fn read_table(path: &Path) -> Result<OwnTable, String> {
    let file = path.display().to_string();
    let slug = path.parent().and_then(Path::file_name);
    let slug = slug.map(|slug| slug.to_string_lossy().into_owned());
    let size = fs::metadata(path).map_err(|error| format!("{file}: {error}"))?;
    if !size.is_file() || size.len() > MAX_TABLE_BYTES {
        return Err(format!("{file}: is not a file, or is larger than 1 MiB"));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
    Ok(OwnTable {
        file,
        slug: slug.unwrap_or_default(),
        text,
    })
}

fn table_paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join(FILE_NAME)))
        .filter(|path| path.exists())
        .collect();
    paths.sort();
    paths
}
