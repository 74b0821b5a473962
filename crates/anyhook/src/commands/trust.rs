//! `anyhook trust` and `untrust`: approval of what a project would run.
//!
//! The listing shows exactly what the approval covers: every command, the files
//! that it names with their hashes, and the capabilities that the hooks need. A
//! manifest is untrusted text, so its control characters are escaped.

mod candidate;

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhook_install::native_hooks;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Manifest, Scope};
use anyhook_run::config::discover::{
    Dirs, MANIFEST_NAMES, PROJECT_FOLDER, canonical_path, discover,
};
use anyhook_run::config::trust::{Consent, ProjectManifest, TrustStore};
use anyhook_util::shell;
use anyhow::{Context, anyhow, bail};
use openhook::discovery::FILE_NAME as OPENHOOK;
use serde::Serialize;
use serde_json::json;

use candidate::{TrustCandidate, discovery_candidate};

use super::install;
use crate::cli::CommandStatus;
use crate::render::{Terminal, visible};

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
    let twice = native_hooks::running_twice(&install::this_machine()?);
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
