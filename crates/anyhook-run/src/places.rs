//! Where an event happens: the folders whose projects have a say.
//!
//! An agent that has gone to another folder still works for the project that it
//! was started in, and a workspace may have several roots. So besides the
//! event's own folder count the project that the agent's variables name and
//! every root that the payload lists.

use std::path::{Path, PathBuf};

use anyhook_model::HookEvent;
use anyhook_model::event::NATIVE;
use serde_json::Value;

/// Names under which payloads list the roots of a workspace.
const ROOTS: [&str; 2] = ["workspace_roots", "workspaceRoots"];

/// Variables of the table with this template name the project.
const PROJECT: &str = "{project}";

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Places {
    /// The event's own folder first.
    pub folders: Vec<PathBuf>,
    /// Counts when the event's own folder is in no project.
    pub spare: Option<PathBuf>,
}

impl Places {
    pub fn at(folder: &Path) -> Self {
        Self {
            folders: vec![folder.to_owned()],
            spare: None,
        }
    }

    /// `is_own`: this process was started by the agent for this event, so that
    /// its variables and its working directory are the agent's word.
    pub fn of(event: &HookEvent, is_own: bool) -> Self {
        let mut places = Self::default();
        places.add(event.cwd.as_deref().and_then(folder));
        let here = || std::env::current_dir().ok();
        if places.folders.is_empty() {
            places.add(here());
        } else if is_own {
            places.spare = here();
        }
        if is_own {
            let caller = anyhook_agents::caller(&event.source);
            let adapter = caller.and_then(|caller| caller.for_event(&event.native_event));
            let variables = adapter.into_iter().flat_map(|adapter| &adapter.spec.env);
            for (name, _) in variables.filter(|(_, template)| *template == PROJECT) {
                let value = std::env::var(name.as_ref()).ok();
                places.add(value.as_deref().and_then(folder));
            }
        }
        let native = event.metadata.get(NATIVE);
        let listed = ROOTS
            .iter()
            .filter_map(|name| native?.get(name)?.as_array())
            .flatten();
        for root in listed {
            let path = root
                .as_str()
                .or_else(|| root.get("path").and_then(Value::as_str));
            places.add(path.and_then(folder));
        }
        places
    }

    fn add(&mut self, folder: Option<PathBuf>) {
        if let Some(folder) = folder.filter(|folder| !self.folders.contains(folder)) {
            self.folders.push(folder);
        }
    }
}

/// A folder as agents write it: a path, or the address of one. What does not
/// say where it is, is none.
pub fn folder(text: &str) -> Option<PathBuf> {
    let path = match text.strip_prefix("file://") {
        Some(address) => {
            let path = address.strip_prefix("localhost").unwrap_or(address);
            let path = percent_decoded(path)?;
            match path.as_bytes() {
                [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path.get(1..)?.to_owned(),
                _ => path,
            }
        }
        None => text.to_owned(),
    };
    let path = PathBuf::from(path);
    path.is_absolute().then_some(path)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = match code {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn folders_as_agents_write_them() {
        let is = |text: &str, path: &str| assert_eq!(folder(text), Some(PathBuf::from(path)));
        is("/a/b", "/a/b");
        is("file:///a/b%20c", "/a/b c");
        is("file://localhost/a", "/a");
        is("file:///a%zz", "/a%zz");
        for none in ["", ".", "a/b", "file://host", "vscode-remote://x/a"] {
            assert_eq!(folder(none), None, "{none}");
        }
    }

    #[test]
    fn every_root_of_a_workspace_counts() {
        let event: HookEvent = serde_json::from_value(json!({
            "event": "session_start", "source": "x", "cwd": "/a", "data": {},
            "metadata": {"native": {"workspace_roots": ["/a", "/b", "file:///c", ""], "workspaceRoots": [{"path": "/d"}]}},
        }))
        .unwrap();
        let places = Places::of(&event, false);
        assert_eq!(places.folders, ["/a", "/b", "/c", "/d"].map(PathBuf::from));
    }
}
