//! What the user should know after an installation.

use anyhook_agents::spec::FileFormat;
use anyhook_edit::Format;
use serde::Serialize;

use crate::bridge::Bridge;
use crate::command::Naming;
use crate::needs::Needs;
use crate::scripts;
use crate::select;
use crate::target::Target;
use crate::trust::{self, Trust};
use crate::world::World;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// `trust`, `twice`, `path`, `format`, `name`, `legacy`, `nothing`.
    pub about: &'static str,
    pub text: String,
}

fn note(about: &'static str, text: impl Into<String>) -> Note {
    Note {
        about,
        text: text.into(),
    }
}

/// For one agent, once its entries stand.
pub fn of(world: &World, bridge: &Bridge, naming: Naming) -> Vec<Note> {
    let target = &bridge.target;
    let spec = &target.adapter.spec;
    let mut notes = Vec::new();
    if let Some(legacy) = &spec.legacy {
        notes.push(note("legacy", legacy.as_ref()));
    }
    match (trust::state(world, target), &spec.trust) {
        (Trust::Missing(what), Some(text)) => {
            notes.push(note(
                "trust",
                format!("{what}. {text} `anyhook install --accept-trust` does it for you."),
            ));
        }
        (Trust::Missing(what), None) => notes.push(note("trust", what)),
        (Trust::Unknown(Some(text)), _) => notes.push(note("trust", text)),
        (Trust::Given | Trust::Unknown(None), _) => {}
    }
    for other in select::doubled(world, target.adapter, target.scope) {
        notes.push(note(
            "twice",
            format!(
                "{} also runs the file of {}, where the bridge stands too: what it delivers twice is recognised and answered once",
                spec.name, other.spec.name
            ),
        ));
    }
    if naming == Naming::Name && world.on_path("anyhook").is_empty() {
        notes.push(note(
            "path",
            "`anyhook` is not on PATH, so the entries find no program; put it there, or use `--command absolute`",
        ));
    }
    if naming == Naming::Name && refuses_without_us(target) {
        notes.push(note(
            "path",
            format!(
                "where `anyhook` is not on PATH, {} refuses every tool call: share the file only with people who have it",
                spec.name
            ),
        ));
    }
    notes.extend(strictness(target));
    notes.extend(names(target));
    notes
}

/// For all agents together.
pub fn general(world: &World, needs: &Needs) -> Vec<Note> {
    let mut notes = Vec::new();
    if needs.is_empty() {
        notes.push(note(
            "nothing",
            "there is no manifest yet, so events are only recorded; `anyhook init` writes one",
        ));
    }
    let engine = anyhook_run::Engine::new(world.dirs.clone(), false);
    let found = anyhook_run::discover::discover(&world.dirs, &world.cwd);
    for source in found
        .manifests
        .iter()
        .filter(|source| source.scope == anyhook_model::Scope::Project)
    {
        let is_covered = engine
            .trust
            .get(&source.path)
            .is_some_and(|consent| consent.covers_manifest(&source.text));
        if !is_covered {
            notes.push(note(
                "trust",
                format!(
                    "`{}` is not trusted yet, so its hooks do not run; look at it and say `anyhook trust`",
                    world.shown(&source.path)
                ),
            ));
        }
    }
    notes
}

/// Whether a missing program counts as a refusal before a tool call.
fn refuses_without_us(target: &Target) -> bool {
    let spec = &target.adapter.spec;
    spec.events
        .iter()
        .filter(|event| event.is.as_deref() == Some("before_tool_execute") && !event.read_only)
        .filter_map(|event| spec.answers.get(event.answer.as_ref()?))
        .any(|profile| profile.other_exit == "deny")
}

/// Comments where the agent reads strict JSON.
fn strictness(target: &Target) -> Option<Note> {
    if target.format != FileFormat::Json || !target.is_editable() {
        return None;
    }
    let text = anyhook_edit::read_text(&target.path).ok()??;
    let error = anyhook_edit::get(&text, Format::Json, &[]).err()?;
    Some(note(
        "format",
        format!(
            "`{}` has comments or trailing commas ({error}); {} may not read it at all",
            target.path.display(),
            target.adapter.spec.name
        ),
    ))
}

/// Scripts that stand under another name because the first was taken.
fn names(target: &Target) -> Vec<Note> {
    if target.is_editable() {
        return Vec::new();
    }
    scripts::found(target)
        .into_iter()
        .filter(|path| target.path.is_dir() && path.extension().is_some())
        .filter(|path| path.with_extension("").exists())
        .map(|path| {
            note(
                "name",
                format!(
                    "`{}` is yours and stays; the bridge is `{}`, which the command line client runs and the editor extension does not",
                    path.with_extension("").display(),
                    path.display()
                ),
            )
        })
        .collect()
}
