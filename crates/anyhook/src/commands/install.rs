//! `anyhook install`: adds the entries that call `anyhook run` to each agent's config.
//!
//! Also what `uninstall` shares with it: the flags, the question before a change
//! and the report about each agent.

mod agent_result;

use std::path::PathBuf;

pub(crate) use agent_result::AgentResult;
use anyhook_agents::Adapter;
use anyhook_agents::spec::Scope;
use anyhook_install::native_hooks::ActiveHooks;
use anyhook_install::{
    BridgeTransport, EventSelection, FileChange, Installation, Machine, ManifestNeeds,
    ProgramNaming, ProgramPlan, Target, agent_trust, notes, scope_name, select,
};
use anyhook_run::config::trust::TrustStore;
use anyhook_run::daemon_client;
use anyhook_run::record::old_files;
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::agents;
use crate::cli::CommandStatus;
use crate::render::{Terminal, colour, counted, is_interactive};
use crate::table;

/// Install anyhook into the agents' own config files
///
/// Each event of an agent then calls `anyhook run`, which runs the hooks of
/// your manifests. Everything else in the files stays as it is.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook install --dry-run
  anyhook install --agent claude-code --agent codex
  anyhook install --scope user --yes
  anyhook install --scope user --via daemon")]
pub(crate) struct InstallArgs {
    /// Only this agent; repeat for more [default: all agents found]
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Change the project's config files or the user's
    #[arg(long, value_enum, default_value_t = ScopeName::Project)]
    scope: ScopeName,
    /// `manifest` (the events your hooks use), `all` (except very frequent ones), or a
    /// comma-separated list [default: manifest; all for a user, or without a manifest]
    #[arg(long, value_name = "EVENTS")]
    events: Option<String>,
    /// Start the program by its absolute path, by the name `anyhook`, or wherever it is found, doing nothing where it is not [default: search in a project, absolute for a user]
    #[arg(long, value_enum)]
    command: Option<CommandName>,
    /// Let each call start the program, or ask your running `anyhook serve` where that is safe [default: as installed, or process]
    #[arg(long, value_name = "process|daemon|http://127.0.0.1:PORT", value_parser = parse_transport)]
    via: Option<BridgeTransport>,
    /// Write to this config file, for an agent that has several
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Also approve the entries in the agent's own trust settings, where it has any
    #[arg(long)]
    accept_trust: bool,
    /// Leave hooks in the agents' files even if your manifest runs them too
    #[arg(long)]
    keep_native: bool,
    #[command(flatten)]
    apply: ApplyArgs,
}

impl InstallArgs {
    pub(crate) fn changes_files(&self) -> bool {
        !self.apply.dry_run
    }
}

/// Flags of the commands that change agents' config files.
#[derive(clap::Args)]
pub(crate) struct ApplyArgs {
    /// Show what would change without changing anything
    #[arg(long)]
    pub dry_run: bool,
    /// Show the changes line by line
    #[arg(long)]
    pub diff: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    Project,
    User,
}

impl ScopeName {
    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::Project => Scope::Project,
            Self::User => Scope::User,
        }
    }
}

fn parse_transport(text: &str) -> Result<BridgeTransport, String> {
    match text {
        "process" => Ok(BridgeTransport::Process),
        "daemon" => Ok(BridgeTransport::daemon()),
        address if daemon_client::is_local(address) => Ok(BridgeTransport::Daemon {
            address: address.trim_end_matches('/').to_owned(),
        }),
        _ => Err("use `process`, `daemon` or the address of a daemon on this machine, such as `http://127.0.0.1:24665`".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommandName {
    Absolute,
    Name,
    Search,
}

/// The edits that one bridge needs, and the bridge that makes them.
pub(crate) type PlannedEdits = (Vec<FileChange>, Installation);

pub(crate) fn run(args: &InstallArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let world = this_machine()?;
    let scope = args.scope.scope();
    if scope == Scope::Project && Some(&world.root) == world.home.as_ref() {
        bail!("this is your home folder, not a project; use `--scope user` for all projects");
    }
    let is_via_daemon = matches!(args.via, Some(BridgeTransport::Daemon { .. }));
    if is_via_daemon && !anyhook_install::is_personal(scope) {
        bail!(
            "`--via daemon` needs `--scope user`: a project's files are shared with people who may not run a daemon"
        );
    }
    let (adapters, skipped) = if args.agent.is_empty() {
        select::detected_agents(&world, scope)
    } else {
        (agents::find_clients(&args.agent)?, Vec::new())
    };
    if adapters.is_empty() && !args.apply.json {
        bail!("no agent was found here; name one with `--agent` (see `anyhook agents`)");
    }
    if args.file.is_some() && adapters.len() != 1 {
        bail!("`--file` needs exactly one `--agent`");
    }
    let needs = ManifestNeeds::load(&world);
    let running = std::env::current_exe().context("could not find the path of this program")?;
    let program = ProgramPlan::new(&world, args.program_naming(), &running)?;
    let events = args.event_selection(&needs);
    let active = ActiveHooks::load(&world);
    let mut results = Vec::new();
    let (wanted, program_and_hooks) = ((&needs, &events), (&program, &active));
    let planned = plan_bridges(
        args,
        &world,
        adapters,
        wanted,
        program_and_hooks,
        &mut results,
    );
    if !is_approved(
        &planned,
        &args.apply,
        "Write these changes?",
        &world,
        terminal,
    ) {
        return Ok(CommandStatus::Success);
    }
    if !args.apply.dry_run && !world.dirs.state.exists() {
        // From here on, a missing place for approvals is one that was deleted. If this
        // fails, `fail_closed` blocks more than it must.
        let _ = TrustStore::new(&world.dirs.state).initialize();
    }
    if !args.apply.dry_run && !planned.is_empty() {
        program.apply(&world)?;
    }
    for (preview, bridge) in planned {
        let mut result = install(&world, &bridge, preview, &program, args);
        if let Some(why) = why_hooks_stay(&world, &bridge, args) {
            let note = notes::kept_twice_note(&world, &bridge, &active, &why);
            result.notes.extend(note);
        }
        results.push(result);
    }
    if !args.apply.dry_run {
        old_files::delete_old_files(&world.dirs.state, usize::MAX);
    }
    let general = notes::general_notes(&world, &needs, &program);
    if args.apply.json {
        let agents: Vec<Value> = results
            .iter()
            .map(|result| result.install_json(&world))
            .collect();
        let skipped: Vec<Value> = skipped
            .iter()
            .map(|one| json!({"agent": one.adapter.spec.id, "why": one.why}))
            .collect();
        terminal.json(&json!({
            "scope": scope_name(scope), "dry_run": args.apply.dry_run,
            "command": program.program.as_str(), "program": program.path,
            "agents": agents, "skipped": skipped, "notes": general,
        }))?;
    } else {
        for result in &results {
            result.print_installed(&world, args.apply.dry_run, terminal);
        }
        for one in &skipped {
            terminal.note(&format!("{}: skipped, {}", one.adapter.spec.name, one.why));
        }
        for note in &general {
            terminal.note(&format!("Note: {}.", note.text));
        }
    }
    Ok(status(&results))
}

impl InstallArgs {
    fn program_naming(&self) -> ProgramNaming {
        match (self.command, self.scope.scope()) {
            (Some(CommandName::Absolute), _) | (None, Scope::User) => ProgramNaming::Absolute,
            (Some(CommandName::Name), _) => ProgramNaming::Name,
            (Some(CommandName::Search) | None, _) => ProgramNaming::Searched,
        }
    }

    fn event_selection(&self, needs: &ManifestNeeds) -> EventSelection {
        match self.events.as_deref() {
            // The user's entries serve every project, with whatever hooks it has.
            None if self.scope.scope() == Scope::User || needs.is_empty() => EventSelection::All,
            None | Some("manifest") => EventSelection::Manifest,
            Some("all") => EventSelection::All,
            Some(list) => {
                EventSelection::List(list.split(',').map(|name| name.trim().to_owned()).collect())
            }
        }
    }
}

/// Plans the bridge of each agent; what cannot be planned becomes a failed result.
fn plan_bridges(
    args: &InstallArgs,
    world: &Machine,
    adapters: Vec<&'static Adapter>,
    (needs, events): (&ManifestNeeds, &EventSelection),
    (program, active): (&ProgramPlan, &ActiveHooks),
    results: &mut Vec<AgentResult>,
) -> Vec<PlannedEdits> {
    let mut planned = Vec::new();
    for target in find_targets(args, world, adapters, results) {
        let adapter = target.adapter;
        // What was chosen before stays.
        let transport = args.via.clone().unwrap_or_else(|| target.transport());
        let bridge = Installation::plan(world, target, events, needs, &program.program, &transport)
            .map(|bridge| match why_hooks_stay(world, &bridge, args) {
                None => bridge.moving(world, active),
                Some(_) => bridge,
            })
            .and_then(|bridge| Ok((bridge.preview()?, bridge)));
        match bridge {
            Ok(edits) => planned.push(edits),
            Err(error) => results.push(AgentResult::failed(adapter, args.scope.scope(), &error)),
        }
    }
    planned
}

/// The files to install into; an agent that has none is a failed result.
fn find_targets(
    args: &InstallArgs,
    world: &Machine,
    adapters: Vec<&'static Adapter>,
    results: &mut Vec<AgentResult>,
) -> Vec<Target> {
    let scope = args.scope.scope();
    let mut targets = Vec::new();
    for adapter in adapters {
        let found = match &args.file {
            Some(file) => Target::for_path(world, adapter, file).map(|target| vec![target]),
            None => Target::all_for_scope(world, adapter, scope),
        };
        match found {
            Ok(found) => targets.extend(found),
            Err(error) => results.push(AgentResult::failed(adapter, scope, &error)),
        }
    }
    targets
}

/// Why the user's own hooks are not taken out of the file: the bridge would not
/// run in their place, or they are wanted.
fn why_hooks_stay(world: &Machine, bridge: &Installation, args: &InstallArgs) -> Option<String> {
    if args.keep_native {
        return Some("`--keep-native`".to_owned());
    }
    if !args.accept_trust && agent_trust::reviews_entries(world, &bridge.target) {
        let name = &bridge.target.adapter.spec.name;
        return Some(format!(
            "{name} skips the new entries until they are reviewed; `anyhook install --accept-trust` approves them"
        ));
    }
    None
}

fn install(
    world: &Machine,
    bridge: &Installation,
    preview: Vec<FileChange>,
    program: &ProgramPlan,
    args: &InstallArgs,
) -> AgentResult {
    let Target { adapter, scope, .. } = bridge.target;
    let mut notes = notes::file_notes(world, &bridge.target);
    let mut files = preview;
    if !args.apply.dry_run {
        let done = bridge.install().and_then(|done| {
            files = done;
            program.register(world, &bridge.target)?;
            if args.accept_trust && agent_trust::can_accept(&bridge.target) {
                files.extend(agent_trust::accept(world, &bridge.target)?);
            }
            Ok(())
        });
        if let Err(error) = done {
            return AgentResult::failed(adapter, scope, &error);
        }
    }
    notes.extend(notes::agent_notes(world, bridge, &program.program));
    AgentResult {
        events: bridge.events().into_iter().map(str::to_owned).collect(),
        moved: bridge
            .moved()
            .iter()
            .map(|hook| hook.label.clone())
            .collect(),
        notes,
        ..AgentResult::changed(adapter, scope, files)
    }
}

/// Shows a summary of the edits to a user who is there, the edits themselves if
/// wanted, and asks before files change.
pub(crate) fn is_approved(
    planned: &[PlannedEdits],
    args: &ApplyArgs,
    question: &str,
    world: &Machine,
    terminal: &Terminal,
) -> bool {
    let files = planned.iter().flat_map(|(files, _)| files);
    let changed: Vec<_> = files.filter(|file| !file.change.is_empty()).collect();
    if !args.json && args.diff {
        for file in &changed {
            print_diff(&file.change.diff(&world.display_path(&file.path)), terminal);
        }
    }
    let needs_answer =
        !(args.dry_run || args.yes || args.json || changed.is_empty()) && is_interactive();
    if needs_answer {
        print_plan(planned, world, terminal);
        if !args.diff {
            terminal.note("`--diff` shows every line.");
        }
    }
    let is_approved = !needs_answer || terminal.confirm(question, true);
    if !is_approved {
        terminal.note("Nothing was changed.");
    }
    is_approved
}

/// One line per agent and file: how much changes.
fn print_plan(planned: &[PlannedEdits], world: &Machine, terminal: &Terminal) {
    let edits = planned.iter().flat_map(|(files, bridge)| {
        let changed = files.iter().filter(|file| !file.change.is_empty());
        changed.map(move |file| (file, bridge))
    });
    let rows = edits.map(|(file, bridge)| {
        let (added, removed) = file.change.line_counts();
        let moved = match bridge.moved().len() {
            0 => String::new(),
            count => format!("{} moved", counted(count, "hook")),
        };
        [
            (&bridge.target.adapter.spec.name).into(),
            world.display_path(&file.path).into(),
            counted(bridge.events().len(), "event").into(),
            format!("+{added} -{removed} lines").into(),
            moved.into(),
        ]
    });
    table::print(terminal, ["agent", "file", "events", "change", ""], rows);
}

/// A unified diff, coloured as git does.
pub(crate) fn print_diff(diff: &str, terminal: &Terminal) {
    for line in diff.lines() {
        let colour = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => colour::BOLD,
            [b'+', ..] => colour::GREEN,
            [b'-', ..] => colour::RED,
            [b'@', ..] => colour::CYAN,
            _ => colour::PLAIN,
        };
        terminal.line(&terminal.paint(colour, line));
    }
}

pub(crate) fn status(results: &[AgentResult]) -> CommandStatus {
    CommandStatus::success_if(results.iter().all(|result| result.error.is_none()))
}

/// The project, folders and variables around this process.
pub(crate) fn this_machine() -> anyhow::Result<Machine> {
    Ok(Machine::from_env(
        std::env::current_dir().context("could not read the current folder")?,
    ))
}
