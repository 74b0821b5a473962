//! `anyhook trust` and `untrust`: approval of what a project would run.
//!
//! The listing shows exactly what the approval covers: every command, the files
//! that it names with their hashes, and the capabilities that the hooks need. A
//! manifest is untrusted text, so its control characters are escaped.

use std::collections::HashSet;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhook_install::hook_scripts::{ManifestPlace, ScriptProblem, check_hook_scripts};
use anyhook_install::{Machine, native_hooks};
use anyhook_model::capability::InferredCapability;
use anyhook_model::hook::SPEC;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Handler, Hook, Manifest, Matcher, Scope, infer_capabilities};
use anyhook_run::config::discover::{
    ConfigSource, Dirs, MANIFEST_NAMES, PROJECT_FOLDER, canonical_path, discover, ignored_manifests,
};
use anyhook_run::config::trust::{Consent, Distrust, ProjectManifest, TrustStore, TrustedFile};
use anyhook_util::hash::sha256;
use anyhook_util::shell;
use anyhow::{Context, anyhow, bail};
use openhook::discovery::{Discovery, FILE_NAME as OPENHOOK};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::install;
use crate::cli::CommandStatus;
use crate::render::{Terminal, colour, counted, visible};

/// Leading characters of a hash in the listing.
const SHOWN_HASH_CHARS: usize = 16;

/// Review the hooks of a project and allow them to run
///
/// Trust is tied to content: if the manifest or a script that it names changes,
/// the hooks stop running until you review them again. It counts in every git
/// worktree of the repository that has the same content. Where no one can review
/// them, as in CI, ANYHOOK_TRUST=all trusts every manifest for one process.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook trust\n  anyhook trust --yes path/to/project\n  \
                        anyhook trust --json\n  anyhook trust --list"
)]
pub(crate) struct TrustArgs {
    /// The project or one of its manifests [default: the current folder]
    path: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; trusts nothing without --yes
    #[arg(long)]
    json: bool,
    /// List everything that is trusted, and what has changed since
    #[arg(long, conflicts_with_all = ["path", "yes"])]
    list: bool,
}

impl TrustArgs {
    /// Whether it may record trust without asking.
    pub(crate) fn records_trust(&self) -> bool {
        self.yes
    }
}

/// Withdraw trust: the hooks of a project no longer run
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook untrust\n  anyhook untrust path/to/project")]
pub(crate) struct UntrustArgs {
    /// The project or one of its manifests [default: the current folder]
    path: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A project file that runs programs, and what trusting it would allow.
#[derive(Serialize)]
struct TrustCandidate {
    path: PathBuf,
    sha256: String,
    trusted: bool,
    /// The manifest in another worktree of the repository that was trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted_by: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    hooks: Vec<ListedHook>,
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

#[derive(Serialize)]
struct ListedHook {
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

pub(crate) fn run(args: &TrustArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let dirs = Dirs::from_env();
    let store = TrustStore::new(&dirs.state);
    if args.list {
        return list(&store, args.json, terminal);
    }
    let target = TrustTarget::new(args.path.as_deref())?;
    let mut candidates = target.candidates(&dirs, &store)?;
    if !args.json {
        for candidate in &candidates {
            candidate.print(terminal);
        }
    }
    let is_trusted = |candidates: &[TrustCandidate]| candidates.iter().all(|one| one.trusted);
    let was_trusted = is_trusted(&candidates);
    let asks = !args.json && io::stdin().is_terminal();
    if !was_trusted && (args.yes || (asks && terminal.confirm("Trust these hooks?", false))) {
        for candidate in &mut candidates {
            candidate.trust(&store)?;
        }
    } else if was_trusted {
        for candidate in &candidates {
            let completed = store.complete(&candidate.project());
            completed.with_context(|| format!("could not update {}", store_entry(candidate)))?;
        }
    }
    let trusted = is_trusted(&candidates);
    if args.json {
        terminal.json(&json!({"trusted": trusted, "manifests": candidates}))?;
    } else if was_trusted {
        terminal.line("Trusted already and unchanged since; nothing to do.");
    } else if trusted {
        terminal.line("Trusted. `anyhook untrust` reverses this.");
        print_hooks_running_twice(terminal)?;
    } else {
        terminal.note(
            "Not trusted: none of these hooks run. After reviewing them, run `anyhook trust --yes`",
        );
    }
    Ok(CommandStatus::success_if(trusted))
}

/// From now on the bridge runs these, and so do the agents themselves.
fn print_hooks_running_twice(terminal: &Terminal) -> anyhow::Result<()> {
    let twice = native_hooks::running_twice(&install::world()?);
    if !twice.is_empty() {
        let labels: Vec<&str> = twice.iter().map(|hook| hook.label.as_str()).collect();
        terminal.note(&format!(
            "These run in the agent's own file as well: {}. `anyhook install` takes them out there.",
            labels.join(", ")
        ));
    }
    Ok(())
}

pub(crate) fn untrust(args: &UntrustArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let dirs = Dirs::from_env();
    let store = TrustStore::new(&dirs.state);
    let target = TrustTarget::new(args.path.as_deref())?;
    let found = discover(&dirs, &target.folder);
    let mut removed = Vec::new();
    // The files may be gone and the records damaged, so every place is tried.
    for path in target.possible_manifests(&found.root) {
        let was_trusted = store.remove(&path);
        if was_trusted.with_context(|| format!("could not withdraw trust in {}", path.display()))? {
            removed.push(path);
        }
    }
    store
        .initialize()
        .with_context(|| format!("could not write to {}", dirs.state.display()))?;
    let is_selected = |path: &Path| target.file.as_deref().is_none_or(|file| file == path);
    let covered = found.manifests.iter().filter_map(|source| {
        let is_candidate = source.scope == Scope::Project && is_selected(&source.path);
        store
            .covered_by(&source.path, &source.root, &source.text)
            .filter(|_| is_candidate)
    });
    let covered: Vec<PathBuf> = covered.collect();
    if args.json {
        return terminal.json(&json!({ "removed": removed, "still_trusted_by": covered }));
    }
    if removed.is_empty() && covered.is_empty() {
        terminal.line("Nothing here was trusted.");
    }
    for path in &covered {
        let quoted = shell::quote_if_needed(&path.to_string_lossy());
        terminal.line(&format!(
            "This worktree has the hooks that are trusted for its repository in {}: `anyhook untrust {quoted}` \
             withdraws that, here and there",
            path.display()
        ));
    }
    for path in &removed {
        terminal.line(&format!("{}: its hooks no longer run", path.display()));
    }
    Ok(CommandStatus::Success)
}

/// A consent, and whether it still holds.
#[derive(Serialize)]
struct ListedConsent {
    manifest: PathBuf,
    time: String,
    /// It also counts in other worktrees of the repository with this git directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

impl ListedConsent {
    fn new(store: &TrustStore, consent: Consent) -> Self {
        Self {
            why_not: current_problem(store, &consent.manifest),
            manifest: consent.manifest,
            time: consent.time,
            repository: consent.repository.map(|repository| repository.common_dir),
        }
    }
}

/// Everything that is trusted.
fn list(store: &TrustStore, json: bool, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let consents = store.all().into_iter();
    let all: Vec<ListedConsent> = consents.map(|one| ListedConsent::new(store, one)).collect();
    let damaged = store.damaged();
    let status = CommandStatus::success_if(damaged.is_empty());
    if json {
        terminal.json(&json!({ "trusted": all, "damaged": damaged }))?;
        return Ok(status);
    }
    if all.is_empty() && damaged.is_empty() {
        terminal.line("Nothing is trusted.");
    }
    for one in &all {
        let path = visible(&one.manifest.to_string_lossy());
        terminal.line(&format!("{}  since {}", terminal.bold(&path), one.time));
        if let Some(repository) = &one.repository {
            let shown = visible(&repository.to_string_lossy());
            terminal.line(&format!(
                "    in every worktree of {shown} with the same content"
            ));
        }
        if let Some(why) = &one.why_not {
            terminal.line(&format!("    its hooks do not all run: {}", visible(why)));
        }
    }
    for record in &damaged {
        terminal.note(&format!(
            "this record of trust cannot be read: {}",
            visible(record)
        ));
    }
    Ok(status)
}

/// Why a trusted manifest does not run as it was trusted.
fn current_problem(store: &TrustStore, path: &Path) -> Option<String> {
    let Ok(text) = fs::read_to_string(path) else {
        return Some("it is gone, or cannot be read".to_owned());
    };
    let root = project_folder(path);
    if path.file_name().is_some_and(|name| name == OPENHOOK) {
        let candidate = discovery_candidate(store, root);
        return candidate.map_or_else(|error| Some(error.to_string()), |one| one.why_not);
    }
    let manifest = match parse_manifest(path, &text) {
        Ok(manifest) => manifest,
        Err(error) => return Some(error.to_string()),
    };
    let project = ProjectManifest {
        path,
        root: &root,
        text: &text,
        manifest: &manifest,
    };
    store.check(&project).err().map(|why| why.to_string())
}

fn store_entry(candidate: &TrustCandidate) -> String {
    format!("the record of trust in {}", candidate.path.display())
}

/// `NAME=value`, for each member of an object.
fn assignments(members: &Map<String, Value>, sign: &str) -> Vec<String> {
    let members = members.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}{sign}{text}"),
        value => format!("{name}{sign}{value}"),
    });
    members.collect()
}

/// The folder or file given on the command line.
struct TrustTarget {
    folder: PathBuf,
    file: Option<PathBuf>,
}

impl TrustTarget {
    fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let path = path.unwrap_or(Path::new("."));
        if let Ok(folder) = anyhook_util::paths::canonicalize(path)
            && folder.is_dir()
        {
            return Ok(Self { folder, file: None });
        }
        // The file may be deleted already, with its folder.
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let neither = || format!("{} is neither a file nor a folder", path.display());
        let name = path.file_name().with_context(neither)?;
        let parent = std::path::absolute(parent.unwrap_or(Path::new("."))).with_context(neither)?;
        let file = canonical_path(&parent).0.join(name);
        Ok(Self {
            folder: project_folder(&file),
            file: Some(file),
        })
    }

    /// Where the manifests that it approves may be, or were.
    fn possible_manifests(&self, root: &Path) -> Vec<PathBuf> {
        if let Some(file) = &self.file {
            return vec![file.clone()];
        }
        let projects = self
            .folder
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        let names = |folder: &Path| {
            let inside = folder.join(PROJECT_FOLDER);
            let manifests = MANIFEST_NAMES.map(|name| inside.join(name));
            manifests.into_iter().chain([folder.join(OPENHOOK)])
        };
        projects
            .flat_map(|folder| names(folder).collect::<Vec<_>>())
            .collect()
    }

    /// The files that can be trusted here; at least one.
    fn candidates(&self, dirs: &Dirs, store: &TrustStore) -> anyhow::Result<Vec<TrustCandidate>> {
        let found = discover(dirs, &self.folder);
        let is_selected = |path: &Path| self.file.as_deref().is_none_or(|file| file == path);
        let mut candidates = Vec::new();
        for source in found.manifests {
            if source.scope == Scope::Project && is_selected(&source.path) {
                let manifest = parse_manifest(&source.path, &source.text)?;
                candidates.push(TrustCandidate::new(store, source, manifest));
            }
        }
        for trouble in found.problems {
            if trouble.scope == Scope::Project && is_selected(&trouble.path) {
                bail!("{}: {}", trouble.path.display(), trouble.message);
            }
        }
        if let Some(root) = found.openhook.filter(|root| root.join(OPENHOOK).is_file()) {
            let candidate = discovery_candidate(store, root)?;
            candidates.extend(Some(candidate).filter(|one| is_selected(&one.path)));
        }
        if candidates.is_empty() {
            match &self.file {
                Some(file) => bail!(
                    "{} is not a manifest of a project: those are `.anyhook/hooks.yaml`, \
                     `.anyhook/hooks.json` and `{OPENHOOK}`",
                    file.display()
                ),
                None => bail!(
                    "nothing to trust: found no `.anyhook/hooks.yaml` and no `{OPENHOOK}` \
                     from {} up to the root of the repository",
                    self.folder.display()
                ),
            }
        }
        Ok(candidates)
    }
}

/// The folder of the project that a manifest belongs to.
fn project_folder(manifest: &Path) -> PathBuf {
    let folder = manifest.parent().unwrap_or(manifest);
    let project = match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent(),
        _ => None,
    };
    project.unwrap_or(folder).to_owned()
}

fn parse_manifest(path: &Path, text: &str) -> anyhow::Result<Manifest> {
    let format = Format::from_path(&path.to_string_lossy()).unwrap_or(Format::Yaml);
    let (manifest, _) = parse::manifest(text, format, &Vocabulary::default());
    manifest.ok_or_else(|| invalid(path))
}

fn invalid(path: &Path) -> anyhow::Error {
    let shown = path.display();
    anyhow!("{shown} is invalid, so none of its hooks run; see `anyhook validate {shown}`")
}

/// An `.openhook.json`, its commands as hooks.
fn discovery_candidate(store: &TrustStore, root: PathBuf) -> anyhow::Result<TrustCandidate> {
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

impl TrustCandidate {
    fn new(store: &TrustStore, source: ConfigSource, manifest: Manifest) -> Self {
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
            .map(|(command, hook)| {
                let contents: Vec<Option<Vec<u8>>> = command
                    .files
                    .iter()
                    .map(|path| fs::read(path).ok())
                    .collect();
                let script: Vec<u8> = contents.iter().flatten().flatten().copied().collect();
                let script = String::from_utf8_lossy(&script);
                let files = command.files.into_iter().zip(contents);
                ListedHook {
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
                    problems: check_hook_scripts(&machine, hook, place),
                }
            })
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

    fn print(&self, terminal: &Terminal) {
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

    fn print_hook(&self, hook: &ListedHook, terminal: &Terminal) {
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

    fn project(&self) -> ProjectManifest<'_> {
        ProjectManifest {
            path: &self.path,
            root: &self.root,
            text: &self.text,
            manifest: &self.manifest,
        }
    }

    /// Trusts what was printed; fails if a file has changed since then.
    fn trust(&mut self, store: &TrustStore) -> anyhow::Result<()> {
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
