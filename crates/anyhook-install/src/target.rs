//! The file in which an agent's bridge is installed, or will be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Config, ConfigFile, ConfigShape, Scope};
use anyhook_edit::read_text;
use anyhook_model::Format;
use serde_json::Value;

use crate::command::{self, BridgeCommand, BridgeProgram};
use crate::error::InstallError;
use crate::hook_entries::{self, HookEntry};
use crate::machine::{Machine, matches_file_name};
use crate::needs::is_default_event;
use crate::scripts;
use crate::via_daemon::{self, BridgeTransport};

/// A file of an agent at one scope.
#[derive(Debug, Clone)]
pub struct Target {
    pub adapter: &'static Adapter,
    pub scope: Scope,
    /// The file; for scripts the folder that contains them.
    pub path: PathBuf,
    /// As in [`ConfigFile`]: `None` for scripts and plugins.
    pub format: Option<Format>,
    pub variant: Option<&'static str>,
    /// As in [`ConfigFile`].
    pub start_folder_only: bool,
}

impl Target {
    pub(crate) fn new(adapter: &'static Adapter, file: &'static ConfigFile, path: PathBuf) -> Self {
        Self {
            adapter,
            scope: file.scope,
            path,
            format: file.format,
            variant: file.variant.as_deref(),
            start_folder_only: file.start_folder_only,
        }
    }

    /// Where the bridge of an agent belongs.
    ///
    /// If the agent's usual file does not exist and another file in the same
    /// folder has hooks, that one: some agents read only one of the two.
    pub fn for_scope(
        machine: &Machine,
        adapter: &'static Adapter,
        scope: Scope,
    ) -> Result<Self, InstallError> {
        let files = |written: bool| {
            let files = adapter.spec.files.iter();
            files
                .filter(move |file| file.scope == scope && file.write == written)
                .filter(move |file| written || !file.path.contains('*'))
                .filter_map(|file| Some(Self::new(adapter, file, machine.config_path(file)?)))
        };
        let usual = files(true).next().ok_or_else(|| InstallError::NoFile {
            agent: adapter.spec.name.to_string(),
            scope: scope_name(scope),
            hint: if scope == Scope::Project {
                "; use `--scope user`, which covers every project"
            } else {
                ""
            },
        })?;
        let name = usual.path.file_name().unwrap_or_default();
        let is_own = name.to_string_lossy().contains("anyhook");
        if !is_own && usual.is_editable() && !usual.path.exists() {
            let sibling = files(false)
                .filter(|other| other.path.parent() == usual.path.parent())
                .find(Self::has_hooks);
            return Ok(sibling.unwrap_or(usual));
        }
        Ok(usual)
    }

    /// Every file that the bridge of an agent belongs in: some agents are several
    /// programs that read different files.
    pub fn all_for_scope(
        machine: &Machine,
        adapter: &'static Adapter,
        scope: Scope,
    ) -> Result<Vec<Self>, InstallError> {
        let mut targets = vec![Self::for_scope(machine, adapter, scope)?];
        let files = adapter.spec.files.iter();
        let written = files
            .filter(|file| file.scope == scope && file.write)
            .skip(1);
        let others = written.filter_map(|file| Some((file, machine.config_path(file)?)));
        targets.extend(others.map(|(file, path)| Self::new(adapter, file, path)));
        Ok(targets)
    }

    /// A file that the user names.
    pub fn for_path(
        machine: &Machine,
        adapter: &'static Adapter,
        path: &Path,
    ) -> Result<Self, InstallError> {
        let path = machine.cwd.join(path);
        let files = &adapter.spec.files;
        let file = files.iter().find(|file| {
            let pattern = machine.config_path(file);
            pattern.is_some_and(|pattern| matches_file_name(&pattern, &path))
        });
        if let Some(file) = file {
            return Ok(Self::new(adapter, file, path));
        }
        let known = files.iter().map(|file| format!("`{}`", file.path));
        Err(InstallError::NotItsFile {
            path,
            agent: adapter.spec.name.to_string(),
            known: known.collect::<Vec<_>>().join(", "),
        })
    }

    /// Every file of an agent that exists at the given scopes.
    pub fn existing(machine: &Machine, adapter: &'static Adapter, scopes: &[Scope]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let files = adapter.spec.files.iter();
        for file in files.filter(|file| scopes.contains(&file.scope)) {
            let is_folder = adapter.config(file.variant.as_deref()).shape == ConfigShape::Scripts;
            let paths = if is_folder {
                let folder = machine.config_path(file).filter(|path| path.is_dir());
                folder.into_iter().collect()
            } else {
                machine.existing_paths(file)
            };
            for path in paths {
                if !found.iter().any(|other| other.path == path) {
                    found.push(Self::new(adapter, file, path));
                }
            }
        }
        found
    }

    pub fn config(&self) -> &'static Config {
        self.adapter.config(self.variant)
    }

    pub fn slug(&self) -> &'static str {
        &self.adapter.spec.id
    }

    pub fn shape(&self) -> ConfigShape {
        self.config().shape
    }

    /// Whether the file is edited in place; scripts and plugins are generated as a whole.
    pub fn is_editable(&self) -> bool {
        !matches!(self.shape(), ConfigShape::Scripts | ConfigShape::Plugin)
    }

    /// The format to edit in. Comments are accepted even if the agent rejects
    /// them: they are not a reason to lose anything, and `doctor` reports them.
    pub(crate) fn edit_format(&self) -> Format {
        match self.format {
            Some(format @ (Format::Toml | Format::Yaml)) => format,
            _ => Format::Jsonc,
        }
    }

    /// Whether the agent reads this file if it is started in the current folder.
    pub(crate) fn is_read_here(&self, machine: &Machine) -> bool {
        !self.start_folder_only || machine.cwd == machine.root
    }

    /// Why the file cannot be parsed, if it can be read at all.
    pub fn syntax_error(&self) -> Option<String> {
        let text = read_text(&self.path).ok()??;
        let parsed = anyhook_edit::get(&text, self.edit_format(), &[]);
        parsed
            .err()
            .filter(|_| self.is_editable())
            .map(|error| error.to_string())
    }

    /// Whether a file that cannot be parsed seems to contain the bridge.
    pub fn mentions_bridge(&self) -> bool {
        let text = read_text(&self.path).ok().flatten().unwrap_or_default();
        text.contains("anyhook") && text.contains("--agent")
    }

    /// The user's own command lines that also call the bridge.
    pub(crate) fn own_bridge_lines(&self) -> Vec<String> {
        if !self.is_editable() {
            return Vec::new();
        }
        let document = self.document().unwrap_or_default();
        let entries = self.bridge_entries(&document).into_iter();
        let mut lines: Vec<String> = entries
            .filter(|(_, line, _)| !command::is_only_bridge(line))
            .map(|(_, line, _)| line.to_owned())
            .collect();
        lines.sort();
        lines.dedup();
        lines
    }

    /// The file as a document; `None` if it is missing, empty or unreadable.
    pub fn document(&self) -> Option<Value> {
        let text = read_text(&self.path).ok()??;
        anyhook_edit::get(&text, self.edit_format(), &[]).ok()?
    }

    /// The entries that call the bridge for this agent, with their command lines.
    pub(crate) fn bridge_entries<'v>(
        &self,
        document: &'v Value,
    ) -> Vec<(HookEntry<'v>, &'v str, BridgeCommand)> {
        let (config, slug) = (self.config(), self.slug());
        hook_entries::entries(config, document)
            .into_iter()
            .filter_map(|entry| {
                let (line, command) = hook_entries::bridge_command(config, slug, entry.handler)?;
                Some((entry, line, command))
            })
            .collect()
    }

    /// The events for which the bridge is installed here, as they are written.
    pub fn bridged_events(&self) -> Vec<String> {
        let mut events: Vec<String> = match self.shape() {
            ConfigShape::Plugin if scripts::generated_files(self).is_empty() => Vec::new(),
            ConfigShape::Plugin => {
                let events = self.adapter.spec.events.iter();
                events
                    .filter(|event| is_default_event(event))
                    .map(|event| event.native.to_string())
                    .collect()
            }
            ConfigShape::Scripts => scripts::generated_files(self)
                .iter()
                .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
                .collect(),
            _ => self
                .bridge_entries(&self.document().unwrap_or_default())
                .into_iter()
                .map(|(entry, ..)| entry.event.to_owned())
                .collect(),
        };
        let mut seen = BTreeSet::new();
        events.retain(|event| seen.insert(event.clone()));
        events
    }

    /// The program that the first bridge entry here starts.
    pub(crate) fn bridge_program(&self) -> Option<BridgeProgram> {
        let mut programs = self.bridge_programs().into_iter();
        programs.find(|program| !matches!(program, BridgeProgram::Daemon(_)))
    }

    fn bridge_programs(&self) -> Vec<BridgeProgram> {
        let document = self.document().unwrap_or_default();
        let entries = self.bridge_entries(&document).into_iter();
        entries.map(|(.., command)| command.program).collect()
    }

    /// How the bridge that is installed here reaches anyhook.
    pub fn transport(&self) -> BridgeTransport {
        let address = if self.shape() == ConfigShape::Plugin {
            let text = read_text(&self.path).ok().flatten().unwrap_or_default();
            via_daemon::plugin_socket(&text).map(|_| via_daemon::default_address())
        } else {
            self.bridge_programs()
                .into_iter()
                .find_map(|program| match program {
                    BridgeProgram::Daemon(address) => Some(address),
                    BridgeProgram::Named(_) | BridgeProgram::Searched => None,
                })
        };
        address.map_or(BridgeTransport::Process, |address| {
            BridgeTransport::Daemon { address }
        })
    }

    pub fn has_bridge(&self) -> bool {
        !self.bridged_events().is_empty()
    }

    /// Whether the bridge is in a file of the user's.
    pub(crate) fn is_installed(machine: &Machine, adapter: &'static Adapter) -> bool {
        let targets = Self::existing(machine, adapter, &[Scope::User]);
        targets.iter().any(Self::has_bridge)
    }

    fn has_hooks(&self) -> bool {
        self.document()
            .is_some_and(|document| !hook_entries::entries(self.config(), &document).is_empty())
    }
}

pub fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Project => "project",
        Scope::Local => "local",
        Scope::User => "user",
        Scope::Managed => "managed",
        Scope::Plugin => "plugin",
    }
}
