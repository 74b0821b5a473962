//! Putting the bridge into an agent's file, and taking it out again.
//!
//! An entry is one handler per event, without a matcher, behind everything that
//! is there. What it says comes from the agent's table; this only decides where
//! it goes.

use std::path::{Path, PathBuf};

use anyhook_agents::Placement;
use anyhook_agents::spec::{Event, Shape};
use anyhook_edit::{Change, Draft, EditError, How, Key, Options, Placed, Site, read_text};
use anyhook_model::hook::SPEC;
use anyhook_model::{Handler, Manifest, Platform};
use serde_json::{Map, Value};

use crate::command::{self, Quoting};
use crate::error::InstallError;
use crate::folders;
use crate::needs::{Events, Needs};
use crate::scripts;
use crate::target::Target;
use crate::vendor;
use crate::walk;
use crate::world::World;

/// One file, before and after.
#[derive(Debug, Clone)]
pub struct FileChange {
    pub path: PathBuf,
    pub change: Change,
}

/// An entry that is to stand in a file.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The native event.
    pub event: String,
    pub command: String,
    /// Path of the array that it belongs to, and the element.
    place: Vec<Key>,
    element: Value,
}

/// What an installation for one agent would write.
#[derive(Debug, Clone)]
pub struct Bridge {
    pub target: Target,
    pub wanted: Vec<Wanted>,
    program: String,
    /// The longest time that any of its events needs.
    seconds: f64,
    records: PathBuf,
}

impl Bridge {
    /// Works out the entries. Nothing is read but manifests.
    pub fn new(
        world: &World,
        target: Target,
        events: &Events,
        needs: &Needs,
        program: &str,
    ) -> Result<Self, InstallError> {
        let events = needs.events(target.adapter, events)?;
        let times = events
            .iter()
            .map(|event| needs.seconds(target.adapter, event));
        let seconds = times.fold(0.0, f64::max);
        let wanted = events
            .into_iter()
            .filter_map(|event| wanted(&target, event, needs, program))
            .collect();
        Ok(Self {
            target,
            wanted,
            seconds,
            program: program.to_owned(),
            records: world.records(),
        })
    }

    /// A bridge that is only to be taken out.
    pub fn installed(world: &World, target: Target) -> Self {
        Self {
            target,
            wanted: Vec::new(),
            program: String::new(),
            seconds: 0.0,
            records: world.records(),
        }
    }

    /// The events, in the table's order.
    pub fn events(&self) -> Vec<&str> {
        self.wanted.iter().map(|one| one.event.as_str()).collect()
    }

    /// What [`Self::install`] would do. Writes nothing.
    pub fn preview(&self) -> Result<Vec<FileChange>, InstallError> {
        match self.target.shape() {
            Shape::Scripts => scripts::preview(&self.scripts()?),
            Shape::Plugin => {
                let file = self.plugin()?;
                scripts::preview(&[file])
            }
            _ => {
                let before = read_text(&self.target.path)?;
                let after = self.rewritten(before.as_deref())?;
                Ok(vec![self.change(before, after)])
            }
        }
    }

    /// Writes. What is there already and right stays as it is.
    pub fn install(&self) -> Result<Vec<FileChange>, InstallError> {
        match self.target.shape() {
            Shape::Scripts => {
                let files = self.scripts()?;
                scripts::remove_others(&self.target, &files, &self.records)?;
                scripts::install(&files, &self.records)
            }
            Shape::Plugin => scripts::install(&[self.plugin()?], &self.records),
            _ => {
                let site = self.site();
                let before = read_text(&self.target.path)?;
                if self.is_stale(before.as_deref())? {
                    self.take_out(&site)?;
                }
                let change = site.install(&mut |draft: &mut Draft| self.write(draft))?;
                Ok(vec![self.change(before, change.after)])
            }
        }
    }

    /// What [`Self::uninstall`] would do. Writes nothing.
    pub fn preview_uninstall(&self) -> Result<Vec<FileChange>, InstallError> {
        if !self.target.is_editable() {
            return scripts::preview_removal(&self.target);
        }
        let places = self.places();
        let ours = |element: &Value| self.is_ours(element);
        let change = self.site().preview_uninstall(&places, &ours)?;
        Ok(vec![FileChange {
            path: self.target.path.clone(),
            change,
        }])
    }

    /// Takes out what is ours, and nothing else.
    pub fn uninstall(&self) -> Result<Vec<FileChange>, InstallError> {
        let made = folders::made(&self.records, &self.target.path);
        let files = if self.target.is_editable() {
            let change = self.take_out(&self.site())?;
            vec![FileChange {
                path: self.target.path.clone(),
                change,
            }]
        } else {
            scripts::uninstall(&self.target, &self.records)?
        };
        folders::sweep(&self.records, made);
        Ok(files)
    }

    fn take_out(&self, site: &Site) -> Result<Change, InstallError> {
        let ours = |element: &Value| self.is_ours(element);
        Ok(site.uninstall(&self.places(), &ours)?)
    }

    fn places(&self) -> Vec<Vec<Key>> {
        self.target
            .document()
            .map(|document| walk::places(self.target.config(), self.target.slug(), &document))
            .unwrap_or_default()
    }

    fn is_ours(&self, element: &Value) -> bool {
        walk::is_bridge(self.target.config(), self.target.slug(), element)
    }

    fn site(&self) -> Site {
        Site {
            path: self.target.path.clone(),
            state: self.records.clone(),
            format: self.target.edit_format(),
            options: self.options(),
        }
    }

    fn options(&self) -> Options {
        Options {
            escape_slashes: self.target.adapter.escapes_slashes(),
            preamble: self.target.config().preamble.clone(),
        }
    }

    fn change(&self, before: Option<String>, after: Option<String>) -> FileChange {
        FileChange {
            path: self.target.path.clone(),
            change: Change {
                before,
                after,
                how: How::Absent,
            },
        }
    }

    /// Whether there are entries of ours that are not those that are wanted.
    fn is_stale(&self, text: Option<&str>) -> Result<bool, InstallError> {
        let draft = Draft::new(
            text.unwrap_or_default(),
            self.target.edit_format(),
            self.options(),
        );
        let document = draft
            .get(&[])
            .map_err(|source| self.refused(source))?
            .unwrap_or_default();
        let config = self.target.config();
        let known = |element: &Value| self.wanted.iter().any(|one| one.element == *element);
        Ok(walk::places(config, self.target.slug(), &document)
            .iter()
            .any(|place| {
                let list = at(&document, place).and_then(Value::as_array);
                list.into_iter()
                    .flatten()
                    .any(|element| self.is_ours(element) && !known(element))
            }))
    }

    /// The text with the bridge in it, as [`Self::install`] would leave it.
    fn rewritten(&self, before: Option<&str>) -> Result<Option<String>, InstallError> {
        let mut text = before.map(str::to_owned);
        if self.is_stale(before)? {
            let ours = |element: &Value| self.is_ours(element);
            text = self.site().preview_uninstall(&self.places(), &ours)?.after;
        }
        let mut draft = Draft::new(
            text.clone().unwrap_or_default(),
            self.target.edit_format(),
            self.options(),
        );
        self.write(&mut draft)
            .map_err(|source| self.refused(source))?;
        Ok(if draft.patches().is_empty() {
            text
        } else {
            Some(draft.text().to_owned())
        })
    }

    fn write(&self, draft: &mut Draft) -> Result<(), EditError> {
        for one in &self.wanted {
            draft.append_unless(&one.place, &one.element, &|there| *there == one.element)?;
        }
        for (key, value) in &self.target.config().preamble {
            let key = [Key::from(key.as_str())];
            if !self.wanted.is_empty() && draft.get(&key)?.is_none() {
                draft.set(&key, value)?;
            }
        }
        Ok(())
    }

    fn refused(&self, source: EditError) -> InstallError {
        InstallError::File(anyhook_edit::FileError::Edit {
            path: self.target.path.clone(),
            source,
        })
    }

    fn scripts(&self) -> Result<Vec<scripts::Generated>, InstallError> {
        self.wanted
            .iter()
            .map(|one| scripts::script(&self.target, &one.event, &one.command))
            .collect()
    }

    fn plugin(&self) -> Result<scripts::Generated, InstallError> {
        let argv = command::argv(&self.program, self.target.slug());
        let text = self
            .target
            .adapter
            .bridge_plugin(&argv, self.seconds)
            .ok_or_else(|| InstallError::NoPlugin {
                agent: self.target.adapter.spec.name.to_string(),
            })?;
        Ok(scripts::Generated {
            path: self.target.path.clone(),
            text,
            executable: false,
        })
    }
}

/// How command lines are quoted for an agent on this system.
pub fn quoting(slug: &str) -> Quoting {
    match (cfg!(windows), vendor::powershell(slug)) {
        (false, _) => Quoting::Posix,
        (true, true) => Quoting::PowerShell,
        (true, false) => Quoting::Cmd,
    }
}

fn wanted(target: &Target, event: &Event, needs: &Needs, program: &str) -> Option<Wanted> {
    let (adapter, config) = (target.adapter, target.config());
    // A variant that spells its events otherwise has no others.
    if !config.event_names.is_empty() && !config.event_names.contains_key(&event.native) {
        return None;
    }
    let name = does_not_say(target, event).then_some(event.native.as_ref());
    let line = command::line(program, target.slug(), name, quoting(target.slug()));
    let windows = || {
        let quoting = if vendor::powershell(target.slug()) {
            Quoting::PowerShell
        } else {
            Quoting::Cmd
        };
        command::line(program, target.slug(), name, quoting)
    };
    let needs_windows = config.handler.has("platform.windows")
        && !config
            .handler
            .fields
            .iter()
            .any(|field| field.to == "command" && field.at == "/command" && !field.read_only);
    let placement = Placement {
        native_event: event.native.to_string(),
        matcher: None,
        matchable: false,
        matcherless: false,
        name: Some(match config.shape {
            Shape::List | Shape::Single => format!("anyhook-{}", event.native),
            _ => "anyhook".to_owned(),
        }),
        handler: Handler {
            command: Some(line.clone()),
            platform: Platform {
                windows: needs_windows.then(windows),
                ..Platform::default()
            },
            timeout: Some(needs.seconds(adapter, event)),
            ..Handler::default()
        },
        data: Map::new(),
    };
    let empty = Manifest {
        spec: SPEC.to_owned(),
        hooks: Vec::new(),
        extra: Map::new(),
    };
    let document = adapter.encode_config(&empty, &[placement], target.variant);
    let mut place = walk::root_path(config);
    let (element, key) = element(target, &document)?;
    place.extend(key.map(Key::from));
    Some(Wanted {
        event: event.native.to_string(),
        command: line,
        place,
        element,
    })
}

/// Whether the payload of an event does not, or not always, name it.
fn does_not_say(target: &Target, event: &Event) -> bool {
    target.adapter.spec.payload.event_at.is_none()
        || !event.marks.is_empty()
        || target.shape() == Shape::Scripts
}

/// The one element of a document that was made for one entry, and the key of
/// the array that holds it.
fn element(target: &Target, document: &Value) -> Option<(Value, Option<String>)> {
    let config = target.config();
    match (walk::root(config, document)?, config.shape) {
        (Value::Array(items), _) => Some((items.first()?.clone(), None)),
        (Value::Object(map), Shape::Grouped | Shape::Flat | Shape::Scripts | Shape::Plugin) => {
            let (key, list) = map
                .iter()
                .find(|(key, value)| walk::is_event_key(config, key, value) && value.is_array())?;
            Some((list.as_array()?.first()?.clone(), Some(key.clone())))
        }
        _ => None,
    }
}

fn at<'v>(document: &'v Value, path: &[Key]) -> Option<&'v Value> {
    path.iter().try_fold(document, |value, key| match key {
        Key::Name(name) => value.get(name),
        Key::Index(index) => value.get(index),
    })
}

/// A place for files that are ours as a whole.
pub(crate) fn placed(path: &Path, records: &Path, executable: bool) -> Placed {
    Placed {
        path: path.to_owned(),
        state: records.to_owned(),
        executable,
    }
}
