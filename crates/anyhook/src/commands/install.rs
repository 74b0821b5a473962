//! `anyhook install`: the bridge into each agent's own config.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::spec::Scope;
use anyhook_install::{
    Bridge, Events, FileChange, Naming, Needs, Note, Target, World, command, notes, scope_name,
    select, trust,
};
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::cli::Verdict;
use crate::render::Terminal;

/// Put the bridge into the agents' own config files
///
/// Each event of an agent then calls `anyhook run`, which runs the hooks of
/// your manifests. Everything else in the files stays as it is.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook install --dry-run
  anyhook install --agent claude-code --agent codex
  anyhook install --scope user --yes")]
pub struct Args {
    /// Only this agent; may be given several times [default: all that are found]
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Into the project's files, or into the user's
    #[arg(long, value_enum, default_value_t = ScopeName::Project)]
    scope: ScopeName,
    /// `all` but the very frequent ones, those that a `manifest` names, or a list by commas
    #[arg(long, default_value = "all", value_name = "EVENTS")]
    events: String,
    /// Name the program by its path, or as `anyhook` [default: name in a project, absolute for a user]
    #[arg(long, value_enum)]
    command: Option<CommandName>,
    /// Into this file of the agent, where it has several
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Give the agent's own consent to these entries as well, where that is possible
    #[arg(long)]
    accept_trust: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    Project,
    User,
}

impl ScopeName {
    pub fn scope(self) -> Scope {
        match self {
            Self::Project => Scope::Project,
            Self::User => Scope::User,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommandName {
    Absolute,
    Name,
}

/// What came of one agent.
struct Outcome {
    adapter: &'static Adapter,
    scope: Scope,
    events: Vec<String>,
    files: Vec<FileChange>,
    notes: Vec<Note>,
    error: Option<String>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let world = world()?;
    let scope = args.scope.scope();
    if scope == Scope::Project && Some(&world.root) == world.home.as_ref() {
        bail!("this is your home folder, not a project; for all projects use `--scope user`");
    }
    let (adapters, skipped) = chosen(&args.agent, &world, scope)?;
    if adapters.is_empty() && !args.json {
        bail!("no agent was found here; name one with `--agent` (see `anyhook agents`)");
    }
    if args.file.is_some() && adapters.len() != 1 {
        bail!("`--file` needs exactly one `--agent`");
    }
    let needs = Needs::read(&world);
    let naming = match (args.command, scope) {
        (Some(CommandName::Absolute), _) | (None, Scope::User) => Naming::Absolute,
        _ => Naming::Name,
    };
    let running = std::env::current_exe().context("this program's own path")?;
    let program = command::program(&world, naming, &running);
    let events = match args.events.as_str() {
        "all" => Events::All,
        "manifest" => Events::Manifest,
        list => Events::List(list.split(',').map(|name| name.trim().to_owned()).collect()),
    };
    let mut ready = Vec::new();
    let mut outcomes = Vec::new();
    for adapter in adapters {
        let bridge = match &args.file {
            Some(file) => Target::named(&world, adapter, file),
            None => Target::choose(&world, adapter, scope),
        }
        .and_then(|target| Bridge::new(&world, target, &events, &needs, &program))
        .and_then(|bridge| Ok((bridge.preview()?, bridge)));
        match bridge {
            Ok(found) => ready.push(found),
            Err(error) => outcomes.push(failed(adapter, scope, error.to_string())),
        }
    }
    let changes = ready
        .iter()
        .flat_map(|(files, _)| files)
        .any(|file| !file.change.is_empty());
    if !args.json && (args.dry_run || is_interactive()) {
        for (files, _) in &ready {
            show(files, &world, terminal);
        }
    }
    let go = args.dry_run
        || args.yes
        || args.json
        || !changes
        || !is_interactive()
        || confirm(terminal, "Write this?", true);
    if !go {
        terminal.note("Nothing was changed.");
        return Ok(Verdict::Good);
    }
    for (files, bridge) in ready {
        outcomes.push(one(&world, &bridge, files, naming, args));
    }
    let general = notes::general(&world, &needs);
    if args.json {
        let agents: Vec<Value> = outcomes.iter().map(|one| one.json(&world)).collect();
        let skipped: Vec<Value> = skipped
            .iter()
            .map(|one| json!({"agent": one.adapter.spec.id, "why": one.why}))
            .collect();
        terminal.json(&json!({
            "scope": scope_name(scope), "dry_run": args.dry_run, "command": program,
            "agents": agents, "skipped": skipped, "notes": general,
        }))?;
    } else {
        for outcome in &outcomes {
            outcome.tell(&world, args.dry_run, terminal);
        }
        for one in &skipped {
            terminal.note(&format!("{}: left out, {}", one.adapter.spec.name, one.why));
        }
        for note in &general {
            terminal.note(&format!("Note: {}.", note.text));
        }
    }
    Ok(verdict(&outcomes))
}

fn one(
    world: &World,
    bridge: &Bridge,
    preview: Vec<FileChange>,
    naming: Naming,
    args: &Args,
) -> Outcome {
    let adapter = bridge.target.adapter;
    let mut files = preview;
    if !args.dry_run {
        let done = bridge.install().and_then(|done| {
            files = done;
            if args.accept_trust && trust::can_accept(&bridge.target) {
                files.extend(trust::accept(world, &bridge.target)?);
            }
            Ok(())
        });
        if let Err(error) = done {
            return failed(adapter, bridge.target.scope, error.to_string());
        }
    }
    Outcome {
        adapter,
        scope: bridge.target.scope,
        events: bridge.events().into_iter().map(str::to_owned).collect(),
        files,
        notes: notes::of(world, bridge, naming),
        error: None,
    }
}

fn failed(adapter: &'static Adapter, scope: Scope, error: String) -> Outcome {
    Outcome {
        adapter,
        scope,
        events: Vec::new(),
        files: Vec::new(),
        notes: Vec::new(),
        error: Some(error),
    }
}

fn verdict(outcomes: &[Outcome]) -> Verdict {
    if outcomes.iter().any(|outcome| outcome.error.is_some()) {
        Verdict::Findings
    } else {
        Verdict::Good
    }
}

impl Outcome {
    fn is_changed(&self) -> bool {
        self.files.iter().any(|file| !file.change.is_empty())
    }

    fn json(&self, world: &World) -> Value {
        json!({
            "agent": self.adapter.spec.id,
            "scope": scope_name(self.scope),
            "events": self.events,
            "changed": self.is_changed(),
            "files": self.files.iter().map(|file| json!({
                "path": file.path,
                "changed": !file.change.is_empty(),
                "created": file.change.before.is_none() && file.change.after.is_some(),
                "removed": file.change.before.is_some() && file.change.after.is_none(),
                "diff": file.change.diff(&world.shown(&file.path)),
            })).collect::<Vec<_>>(),
            "notes": self.notes,
            "error": self.error,
        })
    }

    fn tell(&self, world: &World, dry_run: bool, terminal: &Terminal) {
        let name = &self.adapter.spec.name;
        if let Some(error) = &self.error {
            terminal.failure(&format!("{name}: {error}"));
            return;
        }
        let places: Vec<String> = self
            .files
            .iter()
            .map(|file| world.shown(&file.path))
            .collect();
        let place = match places.as_slice() {
            [one] => one.clone(),
            [first, .., last] if places.len() > 2 => {
                format!("{first} … {last} ({} files)", places.len())
            }
            _ => places.join(", "),
        };
        let events = self.events.len();
        let done = match (self.is_changed(), dry_run) {
            (false, _) => "is installed already",
            (true, true) => "would be installed",
            (true, false) => "installed",
        };
        terminal.line(&format!("{name}: {done}, {events} events, {place}"));
        for note in &self.notes {
            terminal.note(&format!("  note: {}", note.text));
        }
    }
}

/// The surroundings of this process.
pub fn world() -> anyhow::Result<World> {
    Ok(World::from_env(
        std::env::current_dir().context("the working directory")?,
    ))
}

/// The agents that were named, or those that are found.
pub fn chosen(
    names: &[String],
    world: &World,
    scope: Scope,
) -> anyhow::Result<(Vec<&'static Adapter>, Vec<select::Skipped>)> {
    if names.is_empty() {
        return Ok(select::found(world, scope));
    }
    let mut adapters: Vec<&'static Adapter> = Vec::new();
    for name in names {
        let adapter = super::agents::find(name)?;
        if adapter.spec.pseudo {
            bail!("`{name}` is a form of hooks, not an agent");
        }
        if !adapters
            .iter()
            .any(|other| other.spec.id == adapter.spec.id)
        {
            adapters.push(adapter);
        }
    }
    Ok((adapters, Vec::new()))
}

/// The diffs of those files that change.
pub fn show(files: &[FileChange], world: &World, terminal: &Terminal) {
    for file in files.iter().filter(|file| !file.change.is_empty()) {
        terminal.text(&file.change.diff(&world.shown(&file.path)));
    }
}

/// Whether somebody sits there who can be asked.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks; an empty answer is the default.
pub fn confirm(terminal: &Terminal, question: &str, default: bool) -> bool {
    let hint = if default { "Y/n" } else { "y/N" };
    terminal.note(&format!("{question} [{hint}]"));
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer).is_err() {
        return false;
    }
    match answer.trim().to_lowercase().as_str() {
        "" => default && !answer.is_empty(),
        answer => answer.starts_with('y'),
    }
}
