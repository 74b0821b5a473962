//! `anyhook trust` and `untrust`: consent to what a project would run.
//!
//! What is shown is what consent covers: every command, the files that it
//! names with their hashes, and what the hooks need. A manifest is somebody
//! else's text, so control characters in it are made visible.

use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhook_model::capability::Inferred;
use anyhook_model::hook::SPEC;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{Format, Handler, Hook, Manifest, Matcher, Scope, infer_capabilities};
use anyhook_run::discover::{Dirs, PROJECT_FOLDER, discover};
use anyhook_run::trust::{Distrust, Project, TrustStatus, TrustStore, TrustedFile, hash};
use anyhow::{Context, anyhow, bail};
use openhook::discovery::{Discovery, FILE_NAME as OPENHOOK};
use serde::Serialize;
use serde_json::Map;

use crate::cli::Verdict;
use crate::render::{Terminal, visible};

/// Let the hooks of a project run, after you have read what they are
///
/// Consent is by content: when the manifest or a script that it names changes,
/// its hooks stop until you have looked again. Where nobody can look, as in
/// CI, the variable ANYHOOK_TRUST=all trusts every manifest for one process.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook trust\n  anyhook trust --yes path/to/project\n  anyhook trust --json"
)]
pub struct Args {
    /// The project, or one of its manifests; the current folder when absent
    path: Option<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; records only with --yes
    #[arg(long)]
    json: bool,
}

/// Take consent back: the hooks of a project do not run any more
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook untrust\n  anyhook untrust path/to/project")]
pub struct UntrustArgs {
    /// The project, or one of its manifests; the current folder when absent
    path: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file of a project that makes programs run.
struct Subject {
    path: PathBuf,
    root: PathBuf,
    text: String,
    manifest: Manifest,
}

impl Subject {
    fn project(&self) -> Project<'_> {
        Project {
            path: &self.path,
            root: &self.root,
            text: &self.text,
            manifest: &self.manifest,
        }
    }
}

#[derive(Serialize)]
struct Report {
    /// Everything here may run now.
    trusted: bool,
    manifests: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    path: PathBuf,
    sha256: String,
    trusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    hooks: Vec<Listing>,
    /// What restricts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<ListedFile>,
    #[serde(skip)]
    changed: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Listing {
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
    files: Vec<ListedFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uncovered: Vec<String>,
    capabilities: Vec<Inferred>,
}

#[derive(Serialize)]
struct ListedFile {
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let dirs = Dirs::from_env();
    let store = TrustStore::new(&dirs.state);
    let place = Place::of(args.path.as_deref())?;
    let subjects = place.subjects(&dirs)?;
    let mut listed: Vec<Listed> = subjects
        .iter()
        .map(|subject| list(&store, subject))
        .collect();
    if !args.json {
        for (subject, listed) in subjects.iter().zip(&listed) {
            show(subject, listed, terminal);
        }
    }
    let is_known = listed.iter().all(|listed| listed.trusted);
    if !is_known && (args.yes || (!args.json && asked(terminal))) {
        for (subject, listed) in subjects.iter().zip(&mut listed) {
            consent(&store, subject, listed)?;
        }
    }
    let trusted = listed.iter().all(|listed| listed.trusted);
    if args.json {
        terminal.json(&Report {
            trusted,
            manifests: listed,
        })?;
    } else if is_known {
        terminal.line("Trusted already, and unchanged since: there is nothing to do.");
    } else if trusted {
        terminal.line("Trusted. Take it back with `anyhook untrust`.");
    } else {
        terminal
            .note("Not trusted: none of this runs. Once you have read it: `anyhook trust --yes`");
    }
    Ok(if trusted {
        Verdict::Good
    } else {
        Verdict::Findings
    })
}

pub fn untrust(args: &UntrustArgs, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let dirs = Dirs::from_env();
    let store = TrustStore::new(&dirs.state);
    let place = Place::of(args.path.as_deref())?;
    let root = discover(&dirs, &place.folder).root;
    let mut removed = Vec::new();
    // The files may be gone: what counts is what was recorded.
    for consent in store.all() {
        let path = consent.manifest;
        let project = project_of(&path);
        let is_meant = match &place.file {
            Some(file) => *file == path,
            None => place.folder.starts_with(&project) && project.starts_with(&root),
        };
        if is_meant
            && store
                .remove(&path)
                .with_context(|| format!("consent to {} cannot be removed", path.display()))?
        {
            removed.push(path);
        }
    }
    if args.json {
        terminal.json(&serde_json::json!({ "removed": removed }))?;
    } else if removed.is_empty() {
        terminal.line("Nothing here was trusted.");
    }
    if !args.json {
        for path in &removed {
            terminal.line(&format!(
                "{}: its hooks do not run any more",
                path.display()
            ));
        }
    }
    Ok(Verdict::Good)
}

/// What the user has pointed at.
struct Place {
    folder: PathBuf,
    file: Option<PathBuf>,
}

impl Place {
    fn of(path: Option<&Path>) -> anyhow::Result<Self> {
        let path = path.unwrap_or(Path::new("."));
        if let Ok(folder) = fs::canonicalize(path)
            && folder.is_dir()
        {
            return Ok(Self { folder, file: None });
        }
        // The file itself may be gone; its folder is known by its real name.
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        let folder = fs::canonicalize(parent.unwrap_or(Path::new(".")))
            .with_context(|| format!("{} is neither a file nor a folder", path.display()))?;
        let name = path
            .file_name()
            .ok_or_else(|| anyhow!("{} is neither a file nor a folder", path.display()))?;
        let file = folder.join(name);
        Ok(Self {
            folder: project_of(&file),
            file: Some(file),
        })
    }

    /// The files of this place that consent is for; at least one.
    fn subjects(&self, dirs: &Dirs) -> anyhow::Result<Vec<Subject>> {
        let found = discover(dirs, &self.folder);
        let is_meant = |path: &Path| self.file.as_deref().is_none_or(|file| file == path);
        let mut subjects = Vec::new();
        for source in found.manifests {
            if source.scope == Scope::Project && is_meant(&source.path) {
                subjects.push(Subject {
                    manifest: parsed(&source.path, &source.text)?,
                    path: source.path,
                    root: source.root,
                    text: source.text,
                });
            }
        }
        for trouble in found.troubles {
            if trouble.scope == Scope::Project && is_meant(&trouble.path) {
                bail!("{}: {}", trouble.path.display(), trouble.message);
            }
        }
        if let Some(subject) = discovery_file(&self.folder, dirs.home.as_deref())?
            && is_meant(&subject.path)
        {
            subjects.push(subject);
        }
        if subjects.is_empty() {
            match &self.file {
                Some(file) => bail!(
                    "{} is not a manifest of a project: those are `.anyhook/hooks.yaml`, \
                     `.anyhook/hooks.json` and `{OPENHOOK}`",
                    file.display()
                ),
                None => bail!(
                    "there is nothing to trust: no `.anyhook/hooks.yaml` and no `{OPENHOOK}` \
                     from {} up to the root of the repository",
                    self.folder.display()
                ),
            }
        }
        Ok(subjects)
    }
}

/// The folder of the project whose manifest this is.
fn project_of(manifest: &Path) -> PathBuf {
    let folder = manifest.parent().unwrap_or(manifest);
    let project = match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent(),
        _ => None,
    };
    project.unwrap_or(folder).to_owned()
}

fn parsed(path: &Path, text: &str) -> anyhow::Result<Manifest> {
    let format = Format::from_path(&path.to_string_lossy()).unwrap_or(Format::Yaml);
    let (manifest, _) = parse::manifest(text, format, &Vocabulary::default());
    manifest.ok_or_else(|| {
        let shown = path.display();
        anyhow!("{shown} has mistakes, and none of it runs; see `anyhook validate {shown}`")
    })
}

/// The nearest `.openhook.json`, its commands as hooks.
fn discovery_file(folder: &Path, home: Option<&Path>) -> anyhow::Result<Option<Subject>> {
    for root in folder.ancestors() {
        let path = root.join(OPENHOOK);
        if path.is_file() {
            let shown = path.display();
            let text =
                fs::read_to_string(&path).with_context(|| format!("{shown} cannot be read"))?;
            let discovery = Discovery::read(&text).discovery.ok_or_else(|| {
                anyhow!("{shown} has mistakes, and none of it runs; see `anyhook validate {shown}`")
            })?;
            return Ok(Some(Subject {
                manifest: as_manifest(&discovery),
                root: root.to_owned(),
                path,
                text,
            }));
        }
        if root.join(".git").exists() || Some(root) == home {
            break;
        }
    }
    Ok(None)
}

fn as_manifest(discovery: &Discovery) -> Manifest {
    let hooks = discovery.hooks.iter().map(|subscriber| Hook {
        name: None,
        event: subscriber.events.join(", "),
        matcher: None,
        handler: Handler {
            command: Some(subscriber.command.clone()),
            is_async: subscriber.is_async,
            timeout: subscriber.timeout,
            ..Handler::default()
        },
        blocking: false,
        degradation: Map::default(),
        capabilities: Vec::new(),
        provider_data: Map::default(),
        extra: Map::default(),
    });
    Manifest {
        spec: SPEC.to_owned(),
        hooks: hooks.collect(),
        extra: Map::default(),
    }
}

fn list(store: &TrustStore, subject: &Subject) -> Listed {
    let project = subject.project();
    let (why_not, changed) = match store.status(&project) {
        TrustStatus::Trusted => (None, Vec::new()),
        TrustStatus::Untrusted(Distrust::Changed(files)) => {
            (Some(Distrust::Changed(files.clone()).to_string()), files)
        }
        TrustStatus::Untrusted(why) => (Some(why.to_string()), Vec::new()),
    };
    let would_run = project.listing().into_iter().zip(&subject.manifest.hooks);
    let hooks = would_run
        .map(|(line, hook)| {
            let contents: Vec<Option<Vec<u8>>> =
                line.files.iter().map(|path| fs::read(path).ok()).collect();
            let texts: Vec<u8> = contents.iter().flatten().flatten().copied().collect();
            let script = String::from_utf8_lossy(&texts);
            let files = line.files.into_iter().zip(contents);
            Listing {
                hook: line.hook,
                event: line.event,
                matcher: hook.matcher.clone(),
                blocking: line.blocking,
                handler: line.handler,
                runs: line.runs,
                cwd: hook.handler.cwd.clone(),
                env: hook
                    .handler
                    .env
                    .iter()
                    .map(|(name, value)| {
                        let text = value
                            .as_str()
                            .map_or_else(|| value.to_string(), str::to_owned);
                        format!("{name}={text}")
                    })
                    .collect(),
                files: files
                    .map(|(path, bytes)| ListedFile {
                        path,
                        sha256: bytes.map(|bytes| hash(&bytes)),
                    })
                    .collect(),
                uncovered: line.uncovered,
                capabilities: infer_capabilities(hook, Some(&script)),
            }
        })
        .collect();
    Listed {
        path: subject.path.clone(),
        sha256: hash(subject.text.as_bytes()),
        trusted: why_not.is_none(),
        why_not,
        hooks,
        policy: project.policy().map(|path| ListedFile {
            sha256: fs::read(&path).ok().map(|bytes| hash(&bytes)),
            path,
        }),
        changed,
    }
}

fn show(subject: &Subject, listed: &Listed, terminal: &Terminal) {
    let count = listed.hooks.len();
    let plural = if count == 1 { "" } else { "s" };
    terminal.line(&format!(
        "{} would run {count} hook{plural} with your rights:\n",
        terminal.bold(&visible(&subject.path.to_string_lossy()))
    ));
    for hook in &listed.hooks {
        show_hook(subject, hook, &listed.changed, terminal);
    }
    if let Some(policy) = &listed.policy {
        let file = shown(subject, policy, &listed.changed);
        terminal.line(&format!("  restricted by {}\n", visible(&file)));
    }
    let why = visible(listed.why_not.as_deref().unwrap_or_default());
    if !listed.changed.is_empty() {
        terminal.line(&format!(
            "It has {why}.\nLook at what is different before you trust it again.\n"
        ));
    } else if !listed.trusted {
        terminal.line(&format!(
            "It is {why}. Hooks are programs: whoever wrote them can do all that you can.\n"
        ));
    }
}

fn show_hook(subject: &Subject, hook: &Listing, changed: &[PathBuf], terminal: &Terminal) {
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
    for file in &hook.files {
        row("file", &shown(subject, file, changed));
    }
    for word in &hook.uncovered {
        row(
            "CAREFUL",
            &format!("`{word}` names files that consent cannot cover: they may change unseen"),
        );
    }
    for needed in &hook.capabilities {
        let guess = if needed.certain { "" } else { ", a guess" };
        row(
            "needs",
            &format!("{} ({}{guess})", needed.capability, needed.why),
        );
    }
    terminal.line("");
}

fn shown(subject: &Subject, file: &ListedFile, changed: &[PathBuf]) -> String {
    let path = file.path.strip_prefix(&subject.root).unwrap_or(&file.path);
    let sum = file.sha256.as_deref().unwrap_or("cannot be read");
    let sum: String = sum.chars().take(16).collect();
    let mark = if changed.contains(&file.path) {
        "  CHANGED"
    } else {
        ""
    };
    format!("{}  sha256 {sum}{mark}", path.display())
}

/// Recorded is what was shown, not what may have come in between.
fn consent(store: &TrustStore, subject: &Subject, listed: &mut Listed) -> anyhow::Result<()> {
    let path = subject.path.display();
    let consent = store
        .record(&subject.project())
        .with_context(|| format!("consent to {path} cannot be recorded"))?;
    let was_shown = |file: &TrustedFile| {
        let files = listed.hooks.iter().flat_map(|hook| &hook.files);
        let mut shown = files.chain(&listed.policy);
        shown.any(|seen| seen.path == file.path && seen.sha256.as_ref() == Some(&file.sha256))
    };
    if !consent.files.iter().all(was_shown) {
        store.remove(&subject.path)?;
        bail!("a script of {path} has changed while you were reading; nothing is trusted");
    }
    listed.trusted = true;
    listed.why_not = None;
    Ok(())
}

/// Asks, where there is somebody to ask.
fn asked(terminal: &Terminal) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    terminal.prompt("Trust it? [y/N] ");
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
