//! What the user approves: the hooks of a project, the files that they run, and
//! what approval cannot cover.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhook_model::{ExitRules, Failure, Hook, Manifest, Scope};
use anyhook_util::env;
use serde::Serialize;

use super::RequiredHook;
use crate::agent::own::find_agent;
use crate::config::discover::{PROJECT_FOLDER, policy_in, policy_paths};
use crate::config::manifest::{HandlerCommand, working_dir};
use crate::run::exec::command::CommandContext;
use crate::run::exec::command_files::CommandFiles;
use crate::run::guard::GuardCommand;

/// Files in these folders belong to the system, not to a project.
pub(super) const SYSTEM_FOLDERS: [&str; 8] = [
    "/bin",
    "/lib",
    "/lib64",
    "/nix/store",
    "/opt",
    "/sbin",
    "/usr",
    "/System",
];

/// A project's manifest to be approved.
#[derive(Debug, Clone, Copy)]
pub struct ProjectManifest<'a> {
    pub path: &'a Path,
    pub root: &'a Path,
    pub text: &'a str,
    pub manifest: &'a Manifest,
}

/// A hook that consent would allow to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookToApprove {
    /// Its name, or `#3` by position.
    pub hook: String,
    pub event: String,
    pub blocking: bool,
    /// `command`, `http`, `prompt` or `agent`.
    pub handler: &'static str,
    /// Every command line (for this and other systems), the URL, or the prompt.
    pub runs: Vec<String>,
    /// The files that consent would cover.
    pub files: Vec<PathBuf>,
    /// What consent cannot cover, in words that complete "trust cannot cover …".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
}

impl ProjectManifest<'_> {
    /// The hooks that would run.
    pub fn listing(&self) -> Vec<HookToApprove> {
        let hooks = self.manifest.hooks.iter().enumerate();
        hooks
            .map(|(n, hook)| {
                let handler = &hook.handler;
                let named = hook_files(hook, Scope::Project, self.root, self.folder());
                let lines = commands(hook).map(|command| command.to_line(|_| None));
                let others = [&handler.url, &handler.prompt].into_iter().flatten();
                let runs = lines.chain(others.map(|text| Cow::Borrowed(text.as_str())));
                HookToApprove {
                    hook: label(hook, n),
                    event: hook.event.clone(),
                    blocking: hook.blocking,
                    handler: handler.kind.as_str(),
                    runs: runs.map(Cow::into_owned).collect(),
                    files: named.files,
                    uncovered: named.uncovered,
                }
            })
            .collect()
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(self.root)
    }

    /// The policy that applies to this manifest.
    pub fn policy(&self) -> Option<PathBuf> {
        let folder = self.folder();
        let has_policy = folder.file_name()? == PROJECT_FOLDER;
        has_policy.then(|| policy_in(folder))?
    }

    /// The policy and the files of all hooks.
    pub(super) fn files(&self) -> CommandFiles {
        let mut all = CommandFiles::default();
        match self.policy() {
            Some(policy) => all.files.push(policy),
            None => all.absent.extend(policy_paths(self.folder())),
        }
        // Sets beside the lists: a manifest may name thousands of scripts.
        let mut known: HashSet<PathBuf> = all.files.iter().chain(&all.absent).cloned().collect();
        for hook in &self.manifest.hooks {
            let named = hook_files(hook, Scope::Project, self.root, self.folder());
            let mut is_new = |path: &PathBuf| known.insert(path.clone());
            all.files
                .extend(named.files.into_iter().filter(&mut is_new));
            all.absent
                .extend(named.absent.into_iter().filter(&mut is_new));
        }
        all
    }
}

/// The hooks whose failure blocks.
pub(in crate::config) fn required_hooks(hooks: &[Hook]) -> Vec<RequiredHook> {
    let required = hooks.iter().filter(|hook| blocks_on_failure(hook));
    required
        .map(|hook| RequiredHook {
            event: hook.event.clone(),
            matcher: hook.matcher.clone(),
        })
        .collect()
}

/// Whether the call is blocked when this hook cannot run.
fn blocks_on_failure(hook: &Hook) -> bool {
    let changed = Failure::Changed(String::new());
    ExitRules::for_hook(hook, false).blocks_on(&changed)
}

/// A hook's name, or its position from 1.
pub fn label(hook: &Hook, position: usize) -> String {
    let name = hook.name.clone();
    name.unwrap_or_else(|| format!("#{}", position + 1))
}

/// The commands for every system: a consent may be used on another one.
fn commands(hook: &Hook) -> impl Iterator<Item = HandlerCommand<'_>> {
    let platform = &hook.handler.platform;
    let own = HandlerCommand::main(&hook.handler).into_iter();
    let others = [&platform.linux, &platform.osx, &platform.windows];
    let others = others.into_iter().flatten();
    own.chain(others.map(|line| HandlerCommand::Line(line)))
}

/// The files of a hook that consent covers.
pub(in crate::config) fn hook_files(
    hook: &Hook,
    scope: Scope,
    root: &Path,
    folder: &Path,
) -> CommandFiles {
    let context = CommandContext {
        scope,
        root,
        folder,
        cwd: &working_dir(&hook.handler, root),
    };
    let variables = variables(hook, root, folder);
    // A built-in guard reads its own files only: its other words are no paths.
    let started = commands(hook).filter(|command| !GuardCommand::is_by_name(*command));
    let lines = started.map(|command| command.to_line(|name| first_value(&variables, name)));
    let mut named = coverable(lines, context, &variables);
    for guard in commands(hook).filter_map(GuardCommand::from_command) {
        let (files, absent) = guard
            .files(context)
            .into_iter()
            .partition(|path| path.is_file());
        push_new(&mut named.files, files);
        push_new(&mut named.absent, absent);
    }
    named
}

/// The first value of a variable.
pub(super) fn first_value(variables: &[(String, String)], name: &str) -> Option<String> {
    let (_, value) = variables.iter().find(|(known, _)| known == name)?;
    Some(value.clone())
}

/// The variables of a hook that do not depend on the event; those of its handler
/// come first.
pub(in crate::config) fn variables(
    hook: &Hook,
    root: &Path,
    folder: &Path,
) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = hook.handler.env.iter().filter_map(|(name, value)| {
        let value = value.as_str()?;
        Some((name.clone(), value.to_owned()))
    });
    let dialect = hook.handler.dialect.as_deref();
    let agent = dialect.and_then(find_agent);
    let adapter = agent.and_then(|agent| anyhook_agents::get_for_run(agent.slug()));
    let given = adapter.into_iter().flat_map(|adapter| &adapter.spec.env);
    let given = given.filter_map(|(name, template)| {
        let value = template.replace("{project}", &text(root));
        (!value.contains('{')).then(|| (name.to_string(), value))
    });
    own.chain(given)
        .chain([
            env::ANYHOOK_PROJECT_DIR.with(text(root)),
            env::ANYHOOK_MANIFEST_DIR.with(text(folder)),
        ])
        .collect()
}

/// The files that consent covers of a command line that runs in the project's root.
pub(crate) fn command_files(command: &str, root: &Path) -> CommandFiles {
    let variables = [env::ANYHOOK_PROJECT_DIR.with(root.to_string_lossy())];
    let commands = std::iter::once(Cow::Borrowed(command));
    coverable(commands, CommandContext::in_root(root), &variables)
}

/// The named files without those of the system.
fn coverable<'a>(
    commands: impl Iterator<Item = Cow<'a, str>>,
    place: CommandContext<'_>,
    variables: &[(String, String)],
) -> CommandFiles {
    let is_of_system = |file: &Path| {
        let mut folders = SYSTEM_FOLDERS.iter();
        folders.any(|system| file.starts_with(system)) && !file.starts_with(place.root)
    };
    let mut all = CommandFiles::default();
    for command in commands {
        let mut named = place.files_of(&command, variables);
        named.files.retain(|file| !is_of_system(file));
        push_new(&mut all.files, named.files);
        push_new(&mut all.absent, named.absent);
        push_new(&mut all.uncovered, named.uncovered);
    }
    all
}

fn push_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
}
