//! Finds hooks that are registered more than once for one event.

use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;

use super::{DoctorFinding, Fix, ReinstalledProgram, Severity, hazard};
use crate::agent_trust;
use crate::command::BridgeCommand;
use crate::hook_entries;
use crate::machine::Machine;
use crate::native_hooks::{ActiveHooks, BridgedEvents};
use crate::target::Target;

const REGISTERED_TWICE: &str = "registered-twice";
const ANSWERED_ONCE_ID: &str = "answered-once";
const RUNS_TWICE_REASON: &str =
    "the hook runs twice for each event, unless the agent recognizes the duplicate";

const ANSWERED_ONCE: &str =
    "each call arrives twice; anyhook recognizes that and runs the hooks once";
const SAME_COMMAND_LINE_REASON: &str = "both entries have the same command line, so anyhook takes them for two calls and runs the hooks twice";

/// A command that a file registers for an event. Events include the matcher,
/// because the same guard for two tools is not a duplicate.
struct RegisteredCommand {
    event: String,
    canonical: String,
    command: String,
    path: PathBuf,
}

pub(super) fn check(
    machine: &Machine,
    adapter: &'static Adapter,
    targets: &[Target],
    findings: &mut Vec<DoctorFinding>,
) {
    let mut registered: Vec<RegisteredCommand> = Vec::new();
    let mut reported: Vec<(PathBuf, PathBuf)> = Vec::new();
    for target in targets.iter().filter(|target| target.is_editable()) {
        for command in registered_commands(target) {
            let same = registered.iter().find(|other| {
                other.event == command.event && is_same(&other.command, &command.command)
            });
            if let Some(other) = same {
                let pair = (other.path.clone(), target.path.clone());
                if !reported.contains(&pair) {
                    findings.push(duplicate(machine, target, &command, other));
                    reported.push(pair);
                }
            }
            registered.push(command);
        }
    }
    if !registered.is_empty() {
        check_foreign_files(machine, adapter, &registered, findings);
    }
}

fn is_same(a: &str, b: &str) -> bool {
    match (BridgeCommand::parse(a), BridgeCommand::parse(b)) {
        (Some(a), Some(b)) => a.agent == b.agent,
        (None, None) => a == b,
        _ => false,
    }
}

fn registered_commands(target: &Target) -> Vec<RegisteredCommand> {
    let (config, document) = (target.config(), target.document().unwrap_or_default());
    hook_entries::entries(config, &document)
        .iter()
        .filter_map(|entry| {
            let command = entry.commands(config).next()?.to_owned();
            let matcher = entry.matcher(config).map(ToString::to_string);
            let matcher = matcher
                .filter(|matcher| matcher.len() > 2 && BridgeCommand::parse(&command).is_none());
            let canonical = target
                .adapter
                .event_by_native(entry.event)
                .and_then(|event| event.is.as_deref())
                .unwrap_or(entry.event);
            let with_matcher = |event: &str| match &matcher {
                Some(matcher) => format!("{event} {matcher}"),
                None => event.to_owned(),
            };
            Some(RegisteredCommand {
                event: with_matcher(entry.event),
                canonical: with_matcher(canonical),
                command,
                path: target.path.clone(),
            })
        })
        .collect()
}

fn duplicate(
    machine: &Machine,
    target: &Target,
    command: &RegisteredCommand,
    other: &RegisteredCommand,
) -> DoctorFinding {
    let is_same_file = other.path == target.path;
    let place = if is_same_file {
        "twice in this file".to_owned()
    } else {
        format!("here and in `{}`", machine.display_path(&other.path))
    };
    let parse = |command: &RegisteredCommand| BridgeCommand::parse(&command.command);
    let bridges = parse(command).zip(parse(other));
    let (severity, why) = match &bridges {
        Some((here, there)) if here.differs_from(there) => (Severity::Info, ANSWERED_ONCE),
        Some(_) => (Severity::Warning, SAME_COMMAND_LINE_REASON),
        None => (Severity::Warning, RUNS_TWICE_REASON),
    };
    let remedy = match (bridges.is_some(), is_same_file) {
        (true, true) => "run `anyhook uninstall`, then `anyhook install`",
        (true, false) => "keep one: `anyhook uninstall --scope user`, or `--scope project`",
        (false, _) => "keep one of them",
    };
    let RegisteredCommand { command, event, .. } = command;
    let what = format!("`{command}` is registered {place}, for `{event}`");
    DoctorFinding::new(severity, REGISTERED_TWICE, what)
        .for_target(target)
        .why(why)
        .remedy(remedy)
}

/// Hooks that an agent runs by itself and through the bridge.
pub(super) fn check_moved(
    machine: &Machine,
    targets: &[Target],
    active: &ActiveHooks,
    findings: &mut Vec<DoctorFinding>,
) {
    let bridged = BridgedEvents::new(targets);
    for target in targets.iter().filter(|target| target.is_editable()) {
        let events = bridged.of_target(target);
        for native in active.running_twice(machine, target, &events) {
            let what = format!("`{}` runs here and through anyhook", native.label);
            let finding = DoctorFinding::warning("runs-natively-too", what)
                .for_target(target)
                .why("the manifest has the same hook, so it runs twice for each event");
            findings.push(if !target.has_bridge() || !native.can_be_taken_out() {
                finding.remedy("remove it from this file")
            } else if agent_trust::reviews_entries(machine, target) {
                finding.remedy("run `anyhook install --accept-trust`, which takes it out until `anyhook uninstall`")
            } else {
                let fix = Fix::Reinstall(Box::new(target.clone()), ReinstalledProgram::Unchanged);
                finding
                    .remedy("run `anyhook install`, which takes it out until `anyhook uninstall`")
                    .fixed_by(fix)
            });
        }
    }
}

/// Files of other agents whose hooks this agent runs as well.
fn check_foreign_files(
    machine: &Machine,
    adapter: &'static Adapter,
    own: &[RegisteredCommand],
    findings: &mut Vec<DoctorFinding>,
) {
    for path in &adapter.spec.also_reads {
        let existing = machine
            .expand_path(path, None)
            .filter(|path| path.is_file());
        let Some(place) = existing.filter(|place| own.iter().all(|one| one.path != *place)) else {
            continue;
        };
        let foreign = clients().find_map(|other| {
            let file = other.spec.files.iter().find(|file| file.path == *path)?;
            Some(Target::new(other, file, place.clone()))
        });
        for theirs in foreign.iter().flat_map(registered_commands) {
            let is_bridge = |line: &str| BridgeCommand::parse(line).is_some();
            let ours = own.iter().find(|ours| {
                ours.canonical == theirs.canonical
                    && (ours.command == theirs.command
                        || (is_bridge(&ours.command) && is_bridge(&theirs.command)))
            });
            let Some(ours) = ours else { continue };
            findings.push(read_by_another(machine, adapter, ours, &theirs));
            break;
        }
    }
}

/// A command that the agent runs from its own file and from another agent's.
fn read_by_another(
    machine: &Machine,
    adapter: &'static Adapter,
    ours: &RegisteredCommand,
    theirs: &RegisteredCommand,
) -> DoctorFinding {
    let name = &adapter.spec.name;
    let place = machine.display_path(&theirs.path);
    let mut finding = if BridgeCommand::parse(&theirs.command).is_some() {
        let what = format!("{name} also reads `{place}`, where anyhook is installed too");
        DoctorFinding::new(Severity::Info, ANSWERED_ONCE_ID, what).why(ANSWERED_ONCE)
    } else {
        let command = &ours.command;
        let what =
            format!("`{command}` is registered here and in `{place}`, which {name} runs as well");
        let finding = DoctorFinding::warning(REGISTERED_TWICE, what)
            .why(RUNS_TWICE_REASON)
            .remedy("keep one of them");
        let id = adapter.spec.also_reads_hazard.as_deref();
        match id.and_then(|id| hazard(adapter, id)) {
            Some(hazard) => finding.described_by(hazard),
            None => finding,
        }
    };
    finding.agent = Some(adapter.spec.id.to_string());
    finding.in_file(&ours.path)
}
