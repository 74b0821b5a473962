//! Installs the bridge into an agent's file, and removes it.
//!
//! The bridge is one handler per event, without a matcher, after all existing
//! entries. Its content comes from the agent's table; this module only decides
//! where it goes.

mod entries;

use std::path::PathBuf;

use self::entries::timeout_argument;

use anyhook_agents::BridgeCall;
use anyhook_agents::spec::{ConfigShape, EventSpec};
use anyhook_edit::{
    ContentChange, EditError, EditOptions, EditableFile, FileError, InstallLog, Key, Reinstall,
    Removal, TextEditor, read_text,
};
use anyhook_run::daemon_client;
use serde_json::Value;

use crate::command::{self, BridgeProgram};
use crate::error::InstallError;
use crate::folders;
use crate::hook_entries;
use crate::machine::Machine;
use crate::native_hooks::{self, ActiveHooks, NativeHook, TakenElement};
use crate::needs::{EventSelection, ManifestNeeds};
use crate::scripts::{self, GeneratedContent};
use crate::target::Target;
use crate::via_daemon::{BridgeTransport, ManagedSetup};

/// One file, before and after.
#[derive(Debug, Clone)]
pub struct FileChange {
    pub path: PathBuf,
    pub change: ContentChange,
}

/// A bridge entry to install.
#[derive(Debug, Clone)]
struct PlannedEntry {
    native_event: String,
    command: String,
    /// Path of the array that it belongs to.
    array: Vec<Key>,
    element: Value,
}

/// The bridge in one file of an agent: planned, or already installed.
#[derive(Debug, Clone)]
pub struct Installation {
    pub target: Target,
    entries: Vec<PlannedEntry>,
    program: BridgeProgram,
    transport: BridgeTransport,
    managed: ManagedSetup,
    /// The socket of the user's daemon.
    socket: PathBuf,
    /// Where the user's hooks are, as a daemon that runs them says it too.
    folders: String,
    /// The longest timeout of its events.
    timeout_seconds: f64,
    records: PathBuf,
    /// The user's own hooks that the manifest runs as well.
    moved: Vec<NativeHook>,
}

impl Installation {
    /// Plans the entries. Reads only manifests.
    pub fn plan(
        machine: &Machine,
        target: Target,
        events: &EventSelection,
        needs: &ManifestNeeds,
        program: &BridgeProgram,
        transport: &BridgeTransport,
    ) -> Result<Self, InstallError> {
        let events = needs.events(target.adapter, events)?;
        let named = program.without_shell();
        let program = if target.adapter.spec.launch.fails_on_variables {
            &named
        } else {
            program
        };
        let timeouts = events
            .iter()
            .map(|event| needs.timeout_seconds(target.adapter, event));
        let planned = Self {
            timeout_seconds: timeouts.fold(0.0, f64::max),
            program: program.clone(),
            transport: transport.clone(),
            managed: ManagedSetup {
                fails_closed: anyhook_run::Engine::new(machine.dirs.clone(), false).fails_closed(),
                has_hooks: machine.dirs.has_managed_manifest(),
            },
            ..Self::existing(machine, target)
        };
        let entries = events.into_iter();
        let entries = entries.filter_map(|event| planned.plan_entry(event, needs));
        Ok(Self {
            entries: entries.collect(),
            ..planned
        })
    }

    /// An installation that is only to be removed.
    pub fn existing(machine: &Machine, target: Target) -> Self {
        Self {
            target,
            entries: Vec::new(),
            program: BridgeProgram::Searched,
            transport: BridgeTransport::Process,
            managed: ManagedSetup::default(),
            socket: machine.dirs.state.join(daemon_client::SOCKET_FILE),
            folders: machine.dirs.digest(),
            timeout_seconds: 0.0,
            records: machine.records_dir(),
            moved: Vec::new(),
        }
    }

    /// Plans to take out of the file what would run through the bridge as well.
    #[must_use]
    pub fn moving(mut self, machine: &Machine, active: &ActiveHooks) -> Self {
        let native = |event: &&EventSpec| self.events().contains(&event.native.as_ref());
        let events: Vec<&EventSpec> = self.target.adapter.spec.events.iter().collect();
        let events: Vec<&EventSpec> = events.into_iter().filter(native).collect();
        let mut moved = active.running_twice(machine, &self.target, &events);
        moved.retain(NativeHook::can_be_taken_out);
        self.moved = moved;
        self
    }

    /// The user's own hooks that are taken out of the file.
    pub fn moved(&self) -> &[NativeHook] {
        &self.moved
    }

    /// Hooks that were taken out of the file and go back when the bridge is removed.
    pub fn taken_out(&self) -> usize {
        let log = InstallLog::load(&self.records, &self.target.path);
        log.ok().flatten().map_or(0, |log| log.removals.len())
    }

    /// The native events, in the table's order.
    pub fn events(&self) -> Vec<&str> {
        let entries = self.entries.iter();
        entries.map(|entry| entry.native_event.as_str()).collect()
    }

    /// What [`Self::install`] would do. Writes nothing.
    pub fn preview(&self) -> Result<Vec<FileChange>, InstallError> {
        if !self.target.is_editable() {
            return scripts::preview(&self.generated_content()?);
        }
        let file = self.editable_file();
        if self.takes_out() {
            return self.reinstall(&|plan| file.preview_reinstall(plan));
        }
        let before = read_text(&self.target.path)?;
        let mut text = before.clone();
        if self.is_stale(&file, before.as_deref())? {
            text = file
                .preview_uninstall(&self.array_paths(), &|element| self.is_ours(element))?
                .after;
        }
        let (after, _) =
            file.edited_text(text.as_deref(), &mut |editor| self.add_entries(editor))?;
        Ok(self.change(ContentChange::written(before, after)))
    }

    /// Writes. Entries that are already right stay as they are.
    pub fn install(&self) -> Result<Vec<FileChange>, InstallError> {
        if !self.target.is_editable() {
            let files = self.generated_content()?;
            scripts::remove_others(&self.target, &files, &self.records)?;
            return scripts::install(&files, &self.records);
        }
        let file = self.editable_file();
        if self.takes_out() {
            return self.reinstall(&|plan| file.reinstall(plan));
        }
        let before = read_text(&self.target.path)?;
        if self.is_stale(&file, before.as_deref())? {
            self.remove_entries()?;
        }
        let change = file.install(&mut |editor| self.add_entries(editor))?;
        Ok(self.change(ContentChange::written(before, change.after)))
    }

    /// Whether hooks of the user are taken out, or were.
    fn takes_out(&self) -> bool {
        !self.moved.is_empty() || self.taken_out() > 0
    }

    /// Edits the file again: without the hooks that are taken out, with the bridge.
    fn reinstall(
        &self,
        apply: &dyn Fn(&mut Reinstall<'_>) -> Result<ContentChange, FileError>,
    ) -> Result<Vec<FileChange>, InstallError> {
        let elements = native_hooks::elements_to_take_out(&self.moved);
        let format = self.target.edit_format();
        let take_out = |text: &str, known: &[Removal]| {
            let mut elements = elements.clone();
            // What was taken out before stays out.
            let known = known.iter().map(|removal| TakenElement {
                array: removal.path.clone(),
                element: removal.value.clone(),
                fallback: removal.fallback.clone(),
            });
            elements.extend(known);
            elements.sort_by_key(|one| std::cmp::Reverse(one.array.len()));
            let mut rest = text.to_owned();
            let mut removals = Vec::new();
            for taken in &elements {
                let is_element = |value: &Value| *value == taken.element;
                let fallback = |_: &Value| taken.fallback.clone();
                let (text, removed) =
                    anyhook_edit::take_out(&rest, format, &taken.array, &is_element, &fallback)?;
                rest = text;
                removals.extend(removed);
            }
            Ok((rest, removals))
        };
        let change = apply(&mut Reinstall {
            array_paths: &self.array_paths(),
            ours: &|element| self.is_ours(element),
            take_out: &take_out,
            edits: &mut |editor| self.add_entries(editor),
        })?;
        Ok(self.change(change))
    }

    /// What [`Self::uninstall`] would do. Writes nothing.
    pub fn preview_uninstall(&self) -> Result<Vec<FileChange>, InstallError> {
        if !self.target.is_editable() {
            return scripts::preview_removal(&self.target);
        }
        let change = self
            .editable_file()
            .preview_uninstall(&self.array_paths(), &|element| self.is_ours(element))?;
        Ok(self.change(change))
    }

    /// Removes the bridge, and nothing else.
    pub fn uninstall(&self) -> Result<Vec<FileChange>, InstallError> {
        let created = folders::created_folders(&self.records, &self.target.path);
        let files = if self.target.is_editable() {
            self.change(self.remove_entries()?)
        } else {
            scripts::uninstall(&self.target, &self.records)?
        };
        folders::remove_empty(&self.records, created);
        Ok(files)
    }

    fn remove_entries(&self) -> Result<ContentChange, InstallError> {
        Ok(self
            .editable_file()
            .uninstall(&self.array_paths(), &|element| self.is_ours(element))?)
    }

    fn array_paths(&self) -> Vec<Vec<Key>> {
        let document = self.target.document().unwrap_or_default();
        hook_entries::array_paths(self.target.config(), self.target.slug(), &document)
    }

    fn is_ours(&self, element: &Value) -> bool {
        hook_entries::is_bridge_element(self.target.config(), self.target.slug(), element)
    }

    fn editable_file(&self) -> EditableFile {
        EditableFile {
            path: self.target.path.clone(),
            state: self.records.clone(),
            format: self.target.edit_format(),
            options: EditOptions {
                escape_slashes: self.target.adapter.escapes_slashes(),
                preamble: self.target.config().preamble.clone(),
            },
        }
    }

    fn change(&self, change: ContentChange) -> Vec<FileChange> {
        let path = self.target.path.clone();
        vec![FileChange { path, change }]
    }

    /// Whether there are bridge entries other than the planned ones.
    fn is_stale(&self, file: &EditableFile, text: Option<&str>) -> Result<bool, InstallError> {
        let mut document = Value::Null;
        file.edited_text(text, &mut |editor| {
            document = editor.get(&[])?.unwrap_or_default();
            Ok(())
        })?;
        let is_planned =
            |element: &Value| self.entries.iter().any(|entry| entry.element == *element);
        let (config, slug) = (self.target.config(), self.target.slug());
        Ok(hook_entries::array_paths(config, slug, &document)
            .iter()
            .filter_map(|path| value_at(&document, path)?.as_array())
            .flatten()
            .any(|element| self.is_ours(element) && !is_planned(element)))
    }

    fn add_entries(&self, editor: &mut TextEditor) -> Result<(), EditError> {
        self.check_groups(editor)?;
        for PlannedEntry { array, element, .. } in &self.entries {
            editor.append_unless(array, element, &|existing| existing == element)?;
        }
        for (key, value) in &self.target.config().preamble {
            let key = [Key::from(key.as_str())];
            if !self.entries.is_empty() && editor.get(&key)?.is_none() {
                editor.set(&key, value)?;
            }
        }
        Ok(())
    }

    /// Refuses a file with a group whose `hooks` is not a list: a client that reads
    /// strictly ignores the whole file, with the bridge in it.
    fn check_groups(&self, editor: &mut TextEditor) -> Result<(), EditError> {
        let root = hook_entries::root_path(self.target.config());
        if self.target.shape() != ConfigShape::Grouped {
            return Ok(());
        }
        let Some(Value::Object(events)) = editor.get(&root)? else {
            return Ok(());
        };
        for (event, groups) in &events {
            for (index, group) in groups.as_array().into_iter().flatten().enumerate() {
                let hooks = group.get("hooks");
                if hooks.is_some_and(|hooks| !hooks.is_array()) {
                    let mut first = root.clone();
                    first.extend([Key::from(event.as_str()), Key::from(index)]);
                    first.extend([Key::from("hooks"), Key::from(0)]);
                    editor.get(&first)?;
                }
            }
        }
        Ok(())
    }

    /// The content of files that are generated as a whole.
    fn generated_content(&self) -> Result<Vec<GeneratedContent>, InstallError> {
        let target = &self.target;
        if target.shape() == ConfigShape::Scripts {
            let entries = self.entries.iter();
            return entries
                .map(|entry| scripts::script(target, &entry.native_event, &entry.command))
                .collect();
        }
        let mut argv = vec![self.program.as_str(), "run", "--agent", target.slug()];
        if let Some(scope) = command::scope_argument(target.scope, &self.program) {
            argv.extend(["--scope", scope]);
        }
        let mut argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
        if let Some(seconds) = timeout_argument(target, self.timeout_seconds) {
            argv.extend(["--timeout".to_owned(), seconds.to_string()]);
        }
        let plugin = target.adapter.bridge_plugin(&BridgeCall {
            command: &argv,
            seconds: self.timeout_seconds,
            daemon: self.plugin_daemon(),
        });
        Ok(vec![GeneratedContent {
            path: target.path.clone(),
            text: plugin.ok_or_else(|| InstallError::NoPlugin {
                agent: target.adapter.spec.name.to_string(),
            })?,
            executable: false,
        }])
    }
}

fn value_at<'v>(document: &'v Value, path: &[Key]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, key| match key {
        Key::Name(name) => value.get(name),
        Key::Index(index) => value.get(index),
    })
}
