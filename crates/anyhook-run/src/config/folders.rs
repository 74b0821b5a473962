//! The folders of an event, whose projects' hooks apply to it.
//!
//! An agent that has changed its folder still works for the project that it was
//! started in, and a workspace may have several roots. So in addition to the
//! event's own folder these count: the project in the agent's variables, the
//! folder in which the agent has started this process, and every root that the
//! payload lists. An http entry knows only the payload, so the folders that its
//! session is known to work for are added to it.

use std::path::{Path, PathBuf};

use anyhook_model::HookEvent;
use anyhook_model::event::NATIVE;
use anyhook_util::paths::normal_form;
use anyhook_util::percent;

/// A variable with this template in the agent's table contains the project's path.
const PROJECT_TEMPLATE: &str = "{project}";

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct EventFolders {
    /// The event's own folder first.
    pub folders: Vec<PathBuf>,
}

impl EventFolders {
    pub(crate) fn from_folder(folder: &Path) -> Self {
        Self {
            folders: vec![folder.to_owned()],
        }
    }

    /// `owns_process`: the agent started this process for this event, so that
    /// its variables and its working directory come from the agent.
    pub fn from_event(event: &HookEvent, owns_process: bool) -> Self {
        let mut all = Self::default();
        all.add(event.cwd.as_deref().and_then(parse_folder));
        if all.folders.is_empty() || owns_process {
            all.add(std::env::current_dir().ok().map(normal_form));
        }
        if owns_process {
            let caller = anyhook_agents::agent_handle(&event.source);
            let adapter = caller.and_then(|caller| caller.for_event(&event.native_event));
            let variables = adapter.into_iter().flat_map(|adapter| &adapter.spec.env);
            for (name, _) in variables.filter(|(_, template)| *template == PROJECT_TEMPLATE) {
                let value = anyhook_util::env::by_name(name.as_ref());
                all.add(value.as_deref().and_then(parse_folder));
            }
        }
        let native = event.metadata.get(NATIVE);
        let pointers = anyhook_agents::workspace_roots();
        let lists = pointers.filter_map(|pointer| native?.pointer(pointer)?.as_array());
        for root in lists.flatten() {
            let path = root.get("path").unwrap_or(root).as_str();
            all.add(path.and_then(parse_folder));
        }
        all
    }

    /// The folders of an event that a dispatcher has sent to this process: `cwd` and
    /// `projects` count as if the dispatcher itself had handled the event.
    pub fn from_remote_event(event: &HookEvent, cwd: Option<&str>, projects: &[String]) -> Self {
        let mut all = Self::from_event(event, false);
        all.add(cwd.and_then(parse_folder));
        for project in projects {
            all.add(parse_folder(project));
        }
        all
    }

    /// Those of other calls of the same session.
    #[must_use]
    pub fn with_folders(mut self, folders: Vec<PathBuf>) -> Self {
        for folder in folders {
            self.add(Some(folder));
        }
        self
    }

    fn add(&mut self, folder: Option<PathBuf>) {
        if let Some(folder) = folder.filter(|folder| !self.folders.contains(folder)) {
            self.folders.push(folder);
        }
    }
}

/// The values of the variables in which this agent names the project.
pub(crate) fn projects_in_env(agent: &str) -> Vec<String> {
    let adapter = anyhook_agents::get_for_run(agent);
    let variables = adapter.into_iter().flat_map(|adapter| &adapter.spec.env);
    let projects = variables.filter(|(_, template)| *template == PROJECT_TEMPLATE);
    let mut found: Vec<String> = projects
        .filter_map(|(name, _)| anyhook_util::env::by_name(name.as_ref()))
        .collect();
    found.dedup();
    found
}

/// A folder as agents write it: a path or a `file:` URL. A relative one is
/// `None`, and so is one that no file system can have.
pub fn parse_folder(text: &str) -> Option<PathBuf> {
    let path = match text.strip_prefix("file://") {
        Some(address) => {
            let path = address.strip_prefix("localhost").unwrap_or(address);
            let path = percent::decode_lenient(path)?;
            match path.as_bytes() {
                [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path.get(1..)?.to_owned(),
                _ => path,
            }
        }
        None => text.to_owned(),
    };
    let path = normal_form(PathBuf::from(path));
    let has_nul = path.as_os_str().as_encoded_bytes().contains(&0);
    (path.is_absolute() && !has_nul).then_some(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn folders_as_agents_write_them() {
        let is = |text: &str, path: &str| assert_eq!(parse_folder(text), Some(PathBuf::from(path)));
        is("/a/b", "/a/b");
        is("file:///a/b%20c", "/a/b c");
        is("file://localhost/a", "/a");
        is("file:///a%zz", "/a%zz");
        for none in [
            "",
            ".",
            "a/b",
            "/a\0b",
            "file:///a%00b",
            "file://host",
            "vscode-remote://x/a",
        ] {
            assert_eq!(parse_folder(none), None, "{none}");
        }
    }

    #[test]
    fn every_root_of_a_workspace_counts() {
        let event: HookEvent = serde_json::from_value(json!({
            "event": "session_start", "source": "x", "cwd": "/a", "data": {},
            "metadata": {"native": {"workspace_roots": ["/a", "/b", "file:///c", ""], "workspaceRoots": [{"path": "/d"}]}},
        }))
        .unwrap();
        let all = EventFolders::from_event(&event, false);
        assert_eq!(all.folders, ["/a", "/b", "/c", "/d"].map(PathBuf::from));
    }
}
