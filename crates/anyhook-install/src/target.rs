//! The file in which an agent's bridge stands, or is to stand.

use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Config, ConfigFile, FileFormat, Scope, Shape};
use anyhook_edit::{Format, read_text};
use serde_json::Value;

use crate::error::InstallError;
use crate::walk;
use crate::world::World;

/// A file of an agent at one scope.
#[derive(Debug, Clone)]
pub struct Target {
    pub adapter: &'static Adapter,
    pub scope: Scope,
    /// The file; for scripts the folder that holds them.
    pub path: PathBuf,
    pub format: FileFormat,
    pub variant: Option<&'static str>,
}

impl Target {
    /// Where the bridge of an agent belongs.
    ///
    /// Where the agent's usual file is not there and another file in the same
    /// folder has hooks, that one: some agents read only one of the two.
    pub fn choose(
        world: &World,
        adapter: &'static Adapter,
        scope: Scope,
    ) -> Result<Self, InstallError> {
        let files = || adapter.spec.files.iter().filter(|file| file.scope == scope);
        let usual = files()
            .find(|file| file.write)
            .and_then(|file| Self::of(world, adapter, file))
            .ok_or_else(|| InstallError::NoFile {
                agent: adapter.spec.name.to_string(),
                scope: scope_name(scope),
            })?;
        let is_shared = !usual.path.to_string_lossy().contains("anyhook");
        if is_shared && usual.is_editable() && !usual.path.exists() {
            let beside = files()
                .filter(|file| !file.write && !file.path.contains('*'))
                .filter_map(|file| Self::of(world, adapter, file))
                .filter(|other| other.path.parent() == usual.path.parent())
                .find(Self::has_hooks);
            if let Some(other) = beside {
                return Ok(other);
            }
        }
        Ok(usual)
    }

    /// A file that the user names.
    pub fn named(
        world: &World,
        adapter: &'static Adapter,
        path: &Path,
    ) -> Result<Self, InstallError> {
        let path = world.cwd.join(path);
        let fits = |pattern: &Path| {
            let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else {
                return false;
            };
            let name = name.to_string_lossy();
            let own = path.file_name().unwrap_or_default().to_string_lossy();
            path.parent() == Some(folder)
                && match name.split_once('*') {
                    Some((before, after)) => own.starts_with(before) && own.ends_with(after),
                    None => own == name,
                }
        };
        let file = adapter
            .spec
            .files
            .iter()
            .find(|file| world.place(file).is_some_and(|pattern| fits(&pattern)));
        match file {
            Some(file) => Ok(Self {
                adapter,
                scope: file.scope,
                path,
                format: file.format,
                variant: file.variant.as_deref(),
            }),
            None => Err(InstallError::NotItsFile {
                path,
                agent: adapter.spec.name.to_string(),
                known: adapter
                    .spec
                    .files
                    .iter()
                    .map(|file| format!("`{}`", file.path))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    fn of(world: &World, adapter: &'static Adapter, file: &'static ConfigFile) -> Option<Self> {
        Some(Self {
            adapter,
            scope: file.scope,
            path: world.place(file)?,
            format: file.format,
            variant: file.variant.as_deref(),
        })
    }

    /// Every file of an agent that is there, at the scopes given.
    pub fn present(world: &World, adapter: &'static Adapter, scopes: &[Scope]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for file in &adapter.spec.files {
            if !scopes.contains(&file.scope) {
                continue;
            }
            let is_folder = matches!(file.format, FileFormat::Folder);
            let paths = if is_folder {
                world
                    .place(file)
                    .filter(|path| path.is_dir())
                    .into_iter()
                    .collect()
            } else {
                world.present(file)
            };
            for path in paths {
                if !found.iter().any(|other| other.path == path) {
                    found.push(Self {
                        adapter,
                        scope: file.scope,
                        path,
                        format: file.format,
                        variant: file.variant.as_deref(),
                    });
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

    pub fn shape(&self) -> Shape {
        self.config().shape
    }

    /// Whether the file is edited in place; scripts and plugins are ours as a whole.
    pub fn is_editable(&self) -> bool {
        !matches!(self.shape(), Shape::Scripts | Shape::Plugin)
    }

    /// Comments are read even where the agent does not accept them: they are no
    /// reason to lose anything, and `doctor` tells.
    pub fn edit_format(&self) -> Format {
        match self.format {
            FileFormat::Toml => Format::Toml,
            _ => Format::Jsonc,
        }
    }

    /// The file as a document; `None` when it is missing, empty or unreadable.
    pub fn document(&self) -> Option<Value> {
        let text = read_text(&self.path).ok()??;
        anyhook_edit::get(&text, self.edit_format(), &[]).ok()?
    }

    /// The events at which the bridge stands here, as they are written.
    pub fn bridged(&self) -> Vec<String> {
        if !self.is_editable() {
            let files = crate::scripts::found(self);
            if self.shape() == Shape::Plugin {
                let events = self.adapter.spec.events.iter();
                return events
                    .filter(|event| !files.is_empty() && !event.noisy && !event.read_only)
                    .map(|event| event.native.to_string())
                    .collect();
            }
            return files
                .iter()
                .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
                .collect();
        }
        let Some(document) = self.document() else {
            return Vec::new();
        };
        let config = self.config();
        let mut events: Vec<String> = Vec::new();
        for entry in walk::entries(config, &document) {
            let ours = entry.ours(config);
            let is_own = ours.is_some_and(|ours| walk::is_agent(&ours.agent, self.slug()));
            if is_own && !events.iter().any(|event| event == entry.event) {
                events.push(entry.event.to_owned());
            }
        }
        events
    }

    /// The program that the first entry of the bridge here starts.
    pub fn bridge_program(&self) -> Option<String> {
        let config = self.config();
        walk::entries(config, &self.document()?)
            .iter()
            .filter_map(|entry| entry.ours(config))
            .find(|ours| walk::is_agent(&ours.agent, self.slug()))
            .map(|ours| ours.program)
    }

    pub fn has_bridge(&self) -> bool {
        !self.bridged().is_empty()
    }

    fn has_hooks(&self) -> bool {
        self.document()
            .is_some_and(|document| !walk::entries(self.config(), &document).is_empty())
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
