//! What users should know after an installation.

use anyhook_agents::spec::{AgentSpec, Scope, VerifiedHow};
use anyhook_model::Format;
use serde::Serialize;

use crate::agent_trust::{self, AgentTrust};
use crate::command::BridgeProgram;
use crate::installation::Installation;
use crate::machine::{Machine, real_path};
use crate::native_hooks::ActiveHooks;
use crate::needs::ManifestNeeds;
use crate::program::ProgramPlan;
use crate::scripts;
use crate::select;
use crate::target::Target;

/// The scopes that a second installation may be in.
const SCOPES: [Scope; 3] = [Scope::Project, Scope::Local, Scope::User];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstallNote {
    /// What it is about: `trust`, `twice`, `folder`, `link`, `kept`, `path`, `format`, `name`,
    /// `legacy`, `nothing`, `copy`, `daemon`, `unproven`.
    #[serde(rename = "code")]
    pub about: &'static str,
    #[serde(rename = "message")]
    pub text: String,
}

fn note(about: &'static str, text: impl Into<String>) -> InstallNote {
    InstallNote {
        about,
        text: text.into(),
    }
}

/// Notes about one agent, after its entries are installed.
pub fn agent_notes(
    machine: &Machine,
    installation: &Installation,
    program: &BridgeProgram,
) -> Vec<InstallNote> {
    let target = &installation.target;
    let spec = &target.adapter.spec;
    let mut notes = Vec::new();
    if let Some(legacy) = &spec.legacy {
        notes.push(note("legacy", legacy.as_ref()));
    }
    notes.extend(unproven_note(spec));
    match (agent_trust::trust_state(machine, target), &spec.trust) {
        (AgentTrust::Missing(what), Some(text)) => {
            let text = format!("{what}. {text} `anyhook install --accept-trust` does it for you.");
            notes.push(note("trust", text));
        }
        (AgentTrust::Missing(what), None) => notes.push(note("trust", what)),
        (AgentTrust::Unknown(Some(text)), _) => notes.push(note("trust", text)),
        (AgentTrust::Given | AgentTrust::Unknown(None), _) => {}
    }
    for other in select::bridges_run_twice(machine, target.adapter, target.scope) {
        let text = format!(
            "{} also runs the hooks of {}, where the bridge is installed too; events that arrive twice are recognized and answered once",
            spec.name, other.spec.name
        );
        notes.push(note("twice", text));
    }
    notes.extend(daemon_note(installation));
    notes.extend(shared_file_note(target, program));
    notes.extend(other_scope_note(machine, target));
    notes.extend(start_folder_note(machine, target));
    for line in target.own_bridge_lines() {
        let text = format!(
            "`{line}` is a line of yours that also calls anyhook; hooks run for both, so keep one of them"
        );
        notes.push(note("twice", text));
    }
    notes.extend(strict_json_note(target));
    notes.extend(renamed_script_notes(target));
    notes
}

/// The source of the facts about an agent that was never run here.
pub(crate) fn unproven_source(spec: &AgentSpec) -> Option<String> {
    let source = match spec.verified.how {
        VerifiedHow::Run => return None,
        VerifiedHow::Source => "source code",
        VerifiedHow::Docs => "documentation",
    };
    Some(format!(
        "what anyhook knows about {} comes from its {source} ({})",
        spec.name, spec.verified.version
    ))
}

/// A warning that no guard has been seen to block in this agent.
fn unproven_note(spec: &AgentSpec) -> Option<InstallNote> {
    let text = format!(
        "{}; no guard has been seen to block in it; try a call that your guard denies before you rely on it",
        unproven_source(spec)?
    );
    Some(note("unproven", text))
}

/// Which calls go to the daemon, and what happens while it is stopped.
fn daemon_note(installation: &Installation) -> Option<InstallNote> {
    let name = &installation.target.adapter.spec.name;
    let text = match (installation.daemon_use()?, installation.daemon_events()) {
        (Err(why), _) => format!("{name} still starts the program at every event: {why}"),
        (Ok(()), events) if events.is_empty() => {
            format!("{name} asks the daemon if it runs, and starts the program if it does not")
        }
        (Ok(()), events) => format!(
            "{name} calls the daemon at {}, and blocks there while `anyhook serve` does not run; other events start the program. Any process of this machine that listens on the port while the daemon is stopped could answer for it",
            events.join(", ")
        ),
    };
    Some(note("daemon", text))
}

/// What a project's file means on a machine without anyhook.
fn shared_file_note(target: &Target, program: &BridgeProgram) -> Option<InstallNote> {
    let spec = &target.adapter.spec;
    if target.scope != Scope::Project {
        return None;
    }
    let consequence = spec.launch.missing_program.as_deref();
    let has_windows_line = target.config().handler.has("platform.windows");
    let text = match (program, consequence) {
        (BridgeProgram::Searched, Some(what)) if has_windows_line => format!(
            "on Windows {} {what} if `anyhook` is not on PATH; elsewhere an entry without anyhook does nothing",
            spec.name
        ),
        (BridgeProgram::Searched | BridgeProgram::Daemon(_), _) => return None,
        (BridgeProgram::Named(path), consequence) => {
            let what = consequence.unwrap_or("runs no hook, with an error message or without one,");
            let place = if path.contains(['/', '\\']) {
                "where that path does not exist"
            } else {
                "where `anyhook` is not on PATH"
            };
            format!(
                "the entries start `{path}`; {} {what} {place}: share the file only with people who have it",
                spec.name
            )
        }
    };
    Some(note("path", text))
}

/// Hooks that run in the agent and through the bridge, because they were not taken out.
pub fn kept_twice_note(
    machine: &Machine,
    installation: &Installation,
    active: &ActiveHooks,
    why: &str,
) -> Option<InstallNote> {
    let moved = installation.clone().moving(machine, active);
    let first = moved.moved().first()?;
    let text = format!(
        "`{}` stays in `{}` although the manifest runs it as well: {why}",
        first.label,
        machine.display_path(&installation.target.path)
    );
    Some(note("twice", text))
}

/// Notes that concern all agents.
pub fn general_notes(
    machine: &Machine,
    needs: &ManifestNeeds,
    program: &ProgramPlan,
) -> Vec<InstallNote> {
    let mut notes = Vec::new();
    if let Some(place) = program.why_copied {
        let text = format!(
            "this program runs from {place}, so the entries start a copy, `{}`; `anyhook install` renews it after an update",
            machine.display_path(&program.path)
        );
        notes.push(note("copy", text));
    }
    if needs.is_empty() {
        let text =
            "there is no manifest yet, so events are only recorded; `anyhook init` writes one";
        notes.push(note("nothing", text));
    }
    let engine = anyhook_run::Engine::new(machine.dirs.clone(), false);
    let found = anyhook_run::config::discover::discover(&machine.dirs, &machine.cwd);
    for source in &found.manifests {
        let is_covered = || {
            engine
                .trust
                .covers(&source.path, &source.root, &source.text)
        };
        if source.scope == anyhook_model::Scope::Project && !is_covered() {
            let text = format!(
                "`{}` is not trusted yet, so its hooks do not run; review it and run `anyhook trust`",
                machine.display_path(&source.path)
            );
            notes.push(note("trust", text));
        }
    }
    notes
}

/// Another scope in which the bridge is installed too.
fn other_scope_note(machine: &Machine, target: &Target) -> Option<InstallNote> {
    let mut others = Target::existing(machine, target.adapter, &SCOPES);
    others.retain(|other| other.scope != target.scope && other.has_bridge());
    let other = others.first()?;
    let text = format!(
        "anyhook is also installed in `{}`; a call that both entries deliver is answered once, by whichever comes first",
        machine.display_path(&other.path)
    );
    Some(note("twice", text))
}

/// An agent that looks for the file only where it is started.
fn start_folder_note(machine: &Machine, target: &Target) -> Option<InstallNote> {
    if !target.start_folder_only {
        return None;
    }
    let (name, file) = (
        &target.adapter.spec.name,
        machine.display_path(&target.path),
    );
    let text = if target.is_read_here(machine) {
        format!(
            "{name} reads `{file}` only if it is started in this folder; started in a subfolder it runs none of these hooks. `--scope user` covers every folder"
        )
    } else {
        format!(
            "{name} reads `{file}` only if it is started in `{}`: started in this folder it runs none of these hooks. `--scope user` covers every folder",
            machine.root.display()
        )
    };
    Some(note("folder", text))
}

/// What writing the file changes beside its content. To be called before it is
/// written.
pub fn file_notes(machine: &Machine, target: &Target) -> Vec<InstallNote> {
    let mut notes = Vec::new();
    let Ok(real) = anyhook_edit::real_path(&target.path) else {
        return notes;
    };
    let is_project = matches!(target.scope, Scope::Project | Scope::Local);
    if is_project && !real.starts_with(real_path(&machine.root)) {
        let text = format!(
            "`{}` is a link that leads out of this project, to `{}`: that file is the one that is changed",
            machine.display_path(&target.path),
            real.display()
        );
        notes.push(note("link", text));
    }
    if let Some(count) = anyhook_edit::hard_link_count(&real).filter(|count| *count > 1) {
        let text = format!(
            "`{}` has {count} names (hard links); only this one gets the new content, the others keep the old",
            machine.display_path(&target.path)
        );
        notes.push(note("link", text));
    }
    notes
}

/// The user's own lines that stay when the bridge is removed.
pub fn kept_notes(target: &Target) -> Vec<InstallNote> {
    let lines = target.own_bridge_lines().into_iter();
    lines
        .map(|line| {
            let text = format!(
                "`{line}` is a line of yours that also calls anyhook; it was not changed, remove it yourself"
            );
            note("kept", text)
        })
        .collect()
}

/// Comments in a file that the agent reads as strict JSON.
fn strict_json_note(target: &Target) -> Option<InstallNote> {
    if target.format != Some(Format::Json) || !target.is_editable() {
        return None;
    }
    let text = anyhook_edit::read_text(&target.path).ok()??;
    let error = anyhook_edit::get(&text, Format::Json, &[]).err()?;
    let text = format!(
        "`{}` has comments or trailing commas ({error}); {} may not read it at all",
        target.path.display(),
        target.adapter.spec.name
    );
    Some(note("format", text))
}

/// Scripts with another name because the first was taken.
fn renamed_script_notes(target: &Target) -> Vec<InstallNote> {
    if target.is_editable() {
        return Vec::new();
    }
    scripts::generated_files(target)
        .into_iter()
        .filter(|path| target.path.is_dir() && path.extension().is_some())
        .filter(|path| path.with_extension("").exists())
        .map(|path| {
            let text = format!(
                "`{}` is your script and was not changed; the bridge is `{}`, which the command line client runs and the editor extension does not",
                path.with_extension("").display(),
                path.display()
            );
            note("name", text)
        })
        .collect()
}
