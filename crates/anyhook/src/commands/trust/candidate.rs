//! A file to be trusted, and the listing that the user reviews.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use anyhook_install::Machine;
use anyhook_install::hook_scripts::{ManifestPlace, ScriptProblem, check_hook_scripts};
use anyhook_model::capability::InferredCapability;
use anyhook_model::hook::SPEC;
use anyhook_model::{Handler, Hook, Manifest, Matcher, Scope, infer_capabilities};
use anyhook_run::config::discover::{ConfigSource, ignored_manifests};
use anyhook_run::config::trust::{
    Distrust, HookToApprove, ProjectManifest, TrustStore, TrustedFile,
};
use anyhook_util::hash::sha256;
use anyhow::{Context, bail};
use openhook::discovery::{Discovery, FILE_NAME as OPENHOOK};
use serde::Serialize;
use serde_json::{Map, Value};

use super::invalid;
use crate::render::{Terminal, colour, counted, visible};

/// Leading characters of a hash in the listing.
const SHOWN_HASH_CHARS: usize = 16;

/// A project file that runs programs, and what trusting it would allow.
#[derive(Serialize)]
pub(super) struct TrustCandidate {
    pub(super) path: PathBuf,
    sha256: String,
    pub(super) trusted: bool,
    /// The manifest in another worktree of the repository that was trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted_by: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why_not: Option<String>,
    hooks: Vec<ReviewedHook>,
    /// Other manifests in the same folder, which are never read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<PathBuf>,
    /// The project's policy, which restricts the hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<HashedFile>,
    #[serde(skip)]
    distrust: Option<Distrust>,
    #[serde(skip)]
    root: PathBuf,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    manifest: Manifest,
}

/// What a hook would run, with everything that trust covers.
#[derive(Serialize)]
struct ReviewedHook {
    hook: String,
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<Matcher>,
    blocking: bool,
    handler: &'static str,
    runs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    /// Headers of an http hook, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<String>,
    /// Variables whose values an http hook may send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_env_vars: Vec<String>,
    files: Vec<HashedFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uncovered: Vec<String>,
    capabilities: Vec<InferredCapability>,
    /// Why it cannot run, or does not do what its author expects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ScriptProblem>,
}

#[derive(Serialize)]
struct HashedFile {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// `NAME=value`, for each member of an object.
fn assignments(members: &Map<String, Value>, sign: &str) -> Vec<String> {
    let members = members.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}{sign}{text}"),
        value => format!("{name}{sign}{value}"),
    });
    members.collect()
}

/// An `.openhook.json`, its commands as hooks.
pub(super) fn discovery_candidate(
    store: &TrustStore,
    root: PathBuf,
) -> anyhow::Result<TrustCandidate> {
    let path = root.join(OPENHOOK);
    let text =
        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let discovery = Discovery::parse(&text).discovery;
    let discovery = discovery.ok_or_else(|| invalid(&path))?;
    let hooks = discovery.hooks.iter().map(|subscriber| Hook {
        event: subscriber.events.join(", "),
        handler: Handler {
            command: Some(subscriber.command.clone()),
            is_async: subscriber.is_async,
            timeout: subscriber.timeout,
            ..Handler::default()
        },
        ..Hook::default()
    });
    let manifest = Manifest {
        spec: SPEC.to_owned(),
        hooks: hooks.collect(),
        sequential: false,
        extra: Map::default(),
    };
    let source = ConfigSource::of_project(path, root, text);
    Ok(TrustCandidate::new(store, source, manifest))
}

impl ReviewedHook {
    fn new(
        command: HookToApprove,
        hook: &Hook,
        machine: &Machine,
        place: ManifestPlace<'_>,
    ) -> Self {
        let read = |path: &PathBuf| fs::read(path).ok();
        let contents: Vec<Option<Vec<u8>>> = command.files.iter().map(read).collect();
        let script: Vec<u8> = contents.iter().flatten().flatten().copied().collect();
        let script = String::from_utf8_lossy(&script);
        let files = command.files.into_iter().zip(contents);
        Self {
            hook: command.hook,
            event: command.event,
            matcher: hook.matcher.clone(),
            blocking: command.blocking,
            handler: command.handler,
            runs: command.runs,
            cwd: hook.handler.cwd.clone(),
            env: assignments(&hook.handler.env, "="),
            headers: assignments(&hook.handler.headers, ": "),
            allowed_env_vars: hook.handler.allowed_env_vars.clone(),
            files: files
                .map(|(path, bytes)| HashedFile {
                    path,
                    sha256: bytes.map(|bytes| sha256(&bytes)),
                })
                .collect(),
            uncovered: command.uncovered,
            capabilities: infer_capabilities(hook, Some(&script)),
            problems: check_hook_scripts(machine, hook, place),
        }
    }
}

impl TrustCandidate {
    pub(super) fn new(store: &TrustStore, source: ConfigSource, manifest: Manifest) -> Self {
        let ConfigSource {
            path, root, text, ..
        } = source;
        let project = ProjectManifest {
            path: &path,
            root: &root,
            text: &text,
            manifest: &manifest,
        };
        let (consent, distrust) = match store.check(&project) {
            Ok(consent) => (Some(consent), None),
            Err(why) => (None, Some(why)),
        };
        let commands = project.listing().into_iter().zip(&manifest.hooks);
        let machine = Machine::from_env(root.clone());
        let place = ManifestPlace {
            scope: Scope::Project,
            root: &root,
            folder: path.parent().unwrap_or(&root),
        };
        let hooks = commands
            .map(|(command, hook)| ReviewedHook::new(command, hook, &machine, place))
            .collect();
        Self {
            sha256: sha256(text.as_bytes()),
            trusted: distrust.is_none(),
            trusted_by: consent.and_then(|consent| consent.given_to),
            why_not: distrust.as_ref().map(ToString::to_string),
            hooks,
            ignored: ignored_manifests(&path),
            policy: project.policy().map(|path| HashedFile {
                sha256: fs::read(&path).ok().map(|bytes| sha256(&bytes)),
                path,
            }),
            distrust,
            path,
            root,
            text,
            manifest,
        }
    }

    pub(super) fn print(&self, terminal: &Terminal) {
        terminal.line(&format!(
            "{} would run {} with your permissions:\n",
            terminal.bold(&visible(&self.path.to_string_lossy())),
            counted(self.hooks.len(), "hook")
        ));
        for hook in &self.hooks {
            self.print_hook(hook, terminal);
        }
        for other in &self.ignored {
            let other = visible(&other.to_string_lossy());
            let label = terminal.paint(colour::BOLD_RED, "PROBLEM");
            terminal.line(&format!(
                "  {label} {other} is ignored: a folder has one manifest, and the file above is used\n"
            ));
        }
        if let Some(policy) = &self.policy {
            let file = visible(&self.shown(policy));
            terminal.line(&format!("  restricted by {file}\n"));
        }
        if self.hooks.iter().any(|hook| !hook.files.is_empty()) {
            terminal.line(
                "Trust covers the files above, and not what they load in turn: sourced files, modules, \
                 other programs.\n",
            );
        }
        if let Some(other) = &self.trusted_by {
            terminal.line(&format!(
                "It is the same as {}, which is trusted for this repository.\n",
                visible(&other.to_string_lossy())
            ));
        }
        let why = visible(self.why_not.as_deref().unwrap_or_default());
        match &self.distrust {
            None => {}
            Some(Distrust::Changed(_)) => terminal.line(&format!(
                "It has {why}.\nReview the differences before you trust it again.\n"
            )),
            Some(Distrust::Never | Distrust::NoRecords | Distrust::OtherTree(_)) => terminal.line(&format!(
                "It is {why}. Hooks are programs: their author can do everything that you can.\n"
            )),
            Some(_) => terminal.line(&format!("It is not trusted: {why}.\n")),
        }
    }

    fn print_hook(&self, hook: &ReviewedHook, terminal: &Terminal) {
        let mut when = format!("at {}", hook.event);
        if let Some(matcher) = &hook.matcher {
            let matcher = serde_json::to_string(matcher).unwrap_or_default();
            when = format!("{when} on {}", matcher.trim_matches('"'));
        }
        if hook.blocking {
            when.push_str(", may block");
        }
        let name = terminal.bold(&visible(&hook.hook));
        terminal.line(&format!("  {name}  {}", visible(&when)));
        let row = |label: &str, text: &str| {
            terminal.line(&format!("      {label:<7} {}", visible(text)));
        };
        let verb = match hook.handler {
            "command" => "runs",
            other => other,
        };
        for command in &hook.runs {
            row(verb, command);
        }
        if let Some(cwd) = &hook.cwd {
            row("in", cwd);
        }
        for variable in &hook.env {
            row("with", variable);
        }
        for header in &hook.headers {
            row("header", header);
        }
        for variable in &hook.allowed_env_vars {
            row(
                "sends",
                &format!("the value of ${variable}, where a header names it"),
            );
        }
        for file in &hook.files {
            row("file", &self.shown(file));
        }
        for what in &hook.uncovered {
            let warning = format!("trust cannot cover {what}: this can change unnoticed");
            terminal.line(&format!(
                "      {} {}",
                terminal.paint(colour::YELLOW, "WARNING"),
                visible(&warning)
            ));
        }
        for problem in &hook.problems {
            terminal.line(&format!(
                "      {} {}; {}",
                terminal.paint(colour::BOLD_RED, "PROBLEM"),
                visible(&problem.message),
                visible(&problem.help)
            ));
        }
        for needed in &hook.capabilities {
            let guess = if needed.certain { "" } else { ", a guess" };
            let needs = format!("{} ({}{guess})", needed.capability, needed.why);
            row("needs", &needs);
        }
        terminal.line("");
    }

    fn shown(&self, file: &HashedFile) -> String {
        let path = file.path.strip_prefix(&self.root).unwrap_or(&file.path);
        let sum = file.sha256.as_deref().unwrap_or("cannot be read");
        let sum: String = sum.chars().take(SHOWN_HASH_CHARS).collect();
        let mark = match &self.distrust {
            Some(Distrust::Changed(changed)) if changed.contains(&file.path) => "  CHANGED",
            _ => "",
        };
        format!("{}  sha256 {sum}{mark}", path.display())
    }

    pub(super) fn project(&self) -> ProjectManifest<'_> {
        ProjectManifest {
            path: &self.path,
            root: &self.root,
            text: &self.text,
            manifest: &self.manifest,
        }
    }

    /// Trusts what was printed; fails if a file has changed since then.
    pub(super) fn trust(&mut self, store: &TrustStore) -> anyhow::Result<()> {
        let path = self.path.display();
        let consent = store
            .record(&self.project())
            .with_context(|| format!("could not record trust in {path}"))?;
        let files = self.hooks.iter().flat_map(|hook| &hook.files);
        let shown = files.chain(&self.policy);
        let shown: HashSet<(&PathBuf, Option<&String>)> = shown
            .map(|seen| (&seen.path, seen.sha256.as_ref()))
            .collect();
        let was_shown = |file: &TrustedFile| shown.contains(&(&file.path, Some(&file.sha256)));
        if !consent.files.iter().all(was_shown) {
            store.remove(&self.path)?;
            bail!("a script of {path} changed while you were reviewing it; nothing is trusted");
        }
        self.trusted = true;
        self.why_not = None;
        self.distrust = None;
        Ok(())
    }
}
