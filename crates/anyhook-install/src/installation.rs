//! Installs the bridge into an agent's file, and removes it.
//!
//! The bridge is one handler per event, without a matcher, after all existing
//! entries. Its content comes from the agent's table; this module only decides
//! where it goes.

use std::path::PathBuf;

use anyhook_agents::Placement;
use anyhook_agents::spec::{ConfigShape, EventSpec, Scope, WindowsShell};
use anyhook_edit::{
    ContentChange, EditError, EditOptions, EditableFile, FileError, InstallLog, Key, Reinstall,
    Removal, TextEditor, read_text,
};
use anyhook_model::hook::SPEC;
use anyhook_model::{Handler, Manifest, Platform};
use serde_json::{Map, Value};

use crate::command::{self, BridgeProgram, Quoting};
use crate::error::InstallError;
use crate::folders;
use crate::hook_entries;
use crate::machine::Machine;
use crate::native_hooks::{self, ActiveHooks, NativeHook, TakenElement};
use crate::needs::{EventSelection, ManifestNeeds};
use crate::scripts::{self, GeneratedContent};
use crate::target::Target;

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
        Ok(Self {
            timeout_seconds: timeouts.fold(0.0, f64::max),
            entries: events
                .into_iter()
                .filter_map(|event| plan_entry(&target, event, needs, program))
                .collect(),
            program: program.clone(),
            ..Self::existing(machine, target)
        })
    }

    /// An installation that is only to be removed.
    pub fn existing(machine: &Machine, target: Target) -> Self {
        Self {
            target,
            entries: Vec::new(),
            program: BridgeProgram::Searched,
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

    /// Edits the file anew: without the hooks that are taken out, with the bridge.
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
        let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
        let plugin = target.adapter.bridge_plugin(&argv, self.timeout_seconds);
        Ok(vec![GeneratedContent {
            path: target.path.clone(),
            text: plugin.ok_or_else(|| InstallError::NoPlugin {
                agent: target.adapter.spec.name.to_string(),
            })?,
            executable: false,
        }])
    }
}

/// Whether the exit code of a hook decides at an event.
fn denies_by_exit_code(target: &Target, event: &EventSpec) -> bool {
    let answers = &target.adapter.spec.answers;
    let profile = event.answer.as_ref().and_then(|name| answers.get(name));
    let templates = profile.map(|profile| [&profile.deny, &profile.ask, &profile.stop]);
    let mut templates = templates.into_iter().flatten().flatten();
    templates.any(|template| template.exit != 0)
}

fn plan_entry(
    target: &Target,
    event: &EventSpec,
    needs: &ManifestNeeds,
    program: &BridgeProgram,
) -> Option<PlannedEntry> {
    let (adapter, config) = (target.adapter, target.config());
    // A variant with its own event names has only those events.
    if !config.event_names.is_empty() && !config.event_names.contains_key(&event.native) {
        return None;
    }
    let name = needs_event_argument(target, event).then_some(event.native.as_ref());
    let line = |program: &BridgeProgram, quoting| {
        // Only a POSIX shell can search.
        let program = &match quoting {
            Quoting::Posix => program.clone(),
            Quoting::Cmd | Quoting::PowerShell => program.without_shell(),
        };
        let scope = command::scope_argument(target.scope, program);
        let mut line = command::command_line(program, target.slug(), scope, name, quoting);
        if quoting == Quoting::PowerShell && denies_by_exit_code(target, event) {
            line.push_str(command::POWERSHELL_EXIT);
        }
        line
    };
    let windows = match adapter.spec.launch.windows {
        WindowsShell::PowerShell => Quoting::PowerShell,
        WindowsShell::Cmd => Quoting::Cmd,
        WindowsShell::GitBash => Quoting::Posix,
    };
    let here = if cfg!(windows) {
        windows
    } else {
        Quoting::Posix
    };
    let command = line(program, here);
    let mut fields = config.handler.fields.iter();
    let has_command =
        fields.any(|field| field.to == "command" && field.at == "/command" && !field.read_only);
    // A shared file is read on Windows too, where the search would not start.
    let is_for_posix = *program == BridgeProgram::Searched && cfg!(unix);
    let needs_windows = config.handler.has("platform.windows") && (is_for_posix || !has_command);
    let placement = Placement {
        native_event: event.native.to_string(),
        matcher: None,
        matchable: false,
        matcherless: false,
        name: Some(match config.shape {
            // Where names must be unique, the project's entry would replace the user's.
            ConfigShape::List if config.handler.unique_names && target.scope == Scope::User => {
                format!("anyhook-user-{}", event.native)
            }
            ConfigShape::List | ConfigShape::Single => format!("anyhook-{}", event.native),
            _ => "anyhook".to_owned(),
        }),
        handler: Handler {
            command: Some(command.clone()),
            platform: Platform {
                windows: needs_windows.then(|| line(&program.without_shell(), windows)),
                ..Platform::default()
            },
            timeout: Some(needs.timeout_seconds(adapter, event)),
            ..Handler::default()
        },
        data: Map::new(),
    };
    let empty = Manifest {
        spec: SPEC.to_owned(),
        hooks: Vec::new(),
        sequential: false,
        extra: Map::new(),
    };
    let document = adapter.encode_config(&empty, &[placement], target.variant);
    let mut array = hook_entries::root_path(config);
    let (element, key) = element(target, &document)?;
    array.extend(key.map(Key::from));
    Some(PlannedEntry {
        native_event: event.native.to_string(),
        command,
        array,
        element,
    })
}

/// Whether the payload does not, or not always, name the event.
fn needs_event_argument(target: &Target, event: &EventSpec) -> bool {
    target.adapter.spec.payload.event_at.is_none()
        || !event.marks.is_empty()
        || target.shape() == ConfigShape::Scripts
}

/// The element of a document with a single entry, and the key of its array.
fn element(target: &Target, document: &Value) -> Option<(Value, Option<String>)> {
    let config = target.config();
    let has_events = !matches!(config.shape, ConfigShape::List | ConfigShape::Single);
    match hook_entries::hooks_root(config, document)? {
        Value::Array(items) => Some((items.first()?.clone(), None)),
        Value::Object(map) if has_events => {
            let (key, list) = map.iter().find(|(key, value)| {
                hook_entries::is_event_key(config, key, value) && value.is_array()
            })?;
            Some((list.as_array()?.first()?.clone(), Some(key.clone())))
        }
        _ => None,
    }
}

fn value_at<'v>(document: &'v Value, path: &[Key]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, key| match key {
        Key::Name(name) => value.get(name),
        Key::Index(index) => value.get(index),
    })
}
