//! The folders that a session works for, for calls that do not name them all.
//!
//! An http entry sends the payload and nothing else: its `cwd` is where the agent is
//! now, not the project that it was started in. The entries that start the program
//! see the project in the agent's variables, and the first of them in a session
//! leaves it here.
//!
//! A session's file is one of [`SLOT_COUNT`], chosen by the session's hash, and holds the
//! latest [`SESSIONS_PER_SLOT`] sessions with that hash, so nothing accumulates. What
//! is lost, also between two writers, is known again from the next prompt; until
//! then the caller tells the user.

use std::path::{Path, PathBuf};

use anyhook_model::HookEvent;
use anyhook_util::hash::{PartsHash, slot_of_hash};
use serde::{Deserialize, Serialize};

use crate::config::discover::Dirs;
use crate::config::folders::EventFolders;

/// The folder in the state folder.
const FOLDER: &str = "sessions";
const SLOT_COUNT: u32 = 256;
const SESSIONS_PER_SLOT: usize = 16;
/// Beyond this number not all folders of a session are known.
const MAX_FOLDERS: usize = 16;
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What is known about one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFolders {
    /// The hash of agent and session.
    key: String,
    pub folders: Vec<PathBuf>,
    /// The project that the session was started in is among the folders.
    pub has_project: bool,
}

/// The folders of the session of an event.
pub fn load(dirs: &Dirs, event: &HookEvent) -> SessionFolders {
    let Some(key) = key(event).filter(|_| dirs.is_state_trusted()) else {
        return SessionFolders::default();
    };
    let known = read_sessions(&path(&dirs.state, &key)).into_iter();
    let mut known = known.filter(|session| session.key == key);
    known.next().unwrap_or_default()
}

/// Adds folders to the session of an event. `has_project`: the project that the agent
/// was started in is among them.
pub fn add(dirs: &Dirs, event: &HookEvent, folders: &EventFolders, has_project: bool) {
    let Some(key) = key(event).filter(|_| dirs.is_state_trusted()) else {
        return;
    };
    let path = path(&dirs.state, &key);
    let mut sessions = read_sessions(&path);
    let position = sessions.iter().position(|session| session.key == key);
    let known = position.map(|position| sessions.remove(position));
    let is_known = known.as_ref().is_some_and(|known| known.has_project);
    // A session may be continued in another project.
    if is_known && event.event != "session_start" {
        return;
    }
    let mut session = known.clone().unwrap_or_else(|| SessionFolders {
        key,
        ..SessionFolders::default()
    });
    session.has_project |= has_project;
    for folder in &folders.folders {
        if session.folders.contains(folder) {
            continue;
        }
        // What JSON cannot hold is as unknown as what is too much.
        if session.folders.len() < MAX_FOLDERS && folder.to_str().is_some() {
            session.folders.push(folder.clone());
        } else {
            session.has_project = false;
        }
    }
    if known.as_ref() == Some(&session) {
        return;
    }
    sessions.push(session);
    let surplus = sessions.len().saturating_sub(SESSIONS_PER_SLOT);
    sessions.drain(..surplus);
    if let Ok(text) = serde_json::to_vec(&sessions) {
        // If this fails, the session stays unknown, and the user gets a notice.
        let _ = anyhook_util::fs::replace(&path, &text);
    }
}

fn key(event: &HookEvent) -> Option<String> {
    let mut key = PartsHash::default();
    key.add(event.source.as_bytes());
    key.add(event.session_id.as_deref()?.as_bytes());
    let mut key = key.finish();
    key.truncate(32);
    Some(key)
}

fn path(state: &Path, key: &str) -> PathBuf {
    let slot = slot_of_hash(key, SLOT_COUNT);
    state.join(FOLDER).join(format!("{slot:02x}"))
}

fn read_sessions(path: &Path) -> Vec<SessionFolders> {
    let text = anyhook_util::fs::read_text(path, MAX_FILE_BYTES).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn event(name: &str, session: &str) -> HookEvent {
        HookEvent {
            event: name.to_owned(),
            source: "a".to_owned(),
            session_id: Some(session.to_owned()),
            ..HookEvent::default()
        }
    }

    fn folders(names: &[&str]) -> EventFolders {
        EventFolders {
            folders: names.iter().map(PathBuf::from).collect(),
        }
    }

    #[test]
    fn a_session_keeps_the_project_it_was_started_in() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let dirs = Dirs::from_lookup(|name| match name {
            name if name == anyhook_util::env::ANYHOOK_STATE_DIR.name => Some(state.clone().into()),
            "HOME" => Some(folder.path().into()),
            _ => None,
        });
        let loaded = |session: &str| {
            let known = load(&dirs, &event("x", session));
            (known.folders, known.has_project)
        };
        let call = event("before_tool_execute", "s");
        add(&dirs, &call, &folders(&["/a"]), false);
        assert_eq!(loaded("s"), (vec!["/a".into()], false));
        add(&dirs, &event("before_prompt", "s"), &folders(&["/p"]), true);
        let both = vec![PathBuf::from("/a"), "/p".into()];
        assert_eq!(loaded("s"), (both.clone(), true));
        // Where it goes later is in the payload.
        add(&dirs, &event("before_prompt", "s"), &folders(&["/b"]), true);
        assert_eq!(loaded("s"), (both, true));
        add(&dirs, &event("session_start", "s"), &folders(&["/q"]), true);
        assert_eq!(loaded("s").0.len(), 3);
        assert_eq!(loaded("t"), (Vec::new(), false));
        // Too many are as good as none.
        for n in 0..MAX_FOLDERS {
            let name = format!("/{n}");
            add(
                &dirs,
                &event("session_start", "s"),
                &folders(&[&name]),
                true,
            );
        }
        assert_eq!((loaded("s").0.len(), loaded("s").1), (MAX_FOLDERS, false));
        for n in 0..SLOT_COUNT {
            let other = event("session_start", &format!("s{n}"));
            add(&dirs, &other, &folders(&["/p"]), true);
        }
        let files = std::fs::read_dir(state.join(FOLDER)).unwrap().count();
        assert!(files <= usize::try_from(SLOT_COUNT).unwrap(), "{files}");
        std::fs::write(path(&state, &key(&call).unwrap()), "[{").unwrap();
        assert_eq!(loaded("s"), (Vec::new(), false));
    }
}
