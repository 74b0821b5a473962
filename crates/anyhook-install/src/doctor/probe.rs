//! Fires an event through each entry of the bridge, started as the agent starts
//! it, and checks that a hook ran and that the agent would have been denied.
//!
//! None of the user's hooks run: the bridge finds a manifest in a temporary
//! folder, whose only hook denies everything, and keeps its journal there.
//!
//! An entry may be anyone's, so [`probe_safety`](super::probe_safety) decides
//! whether it is started at all.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Blocking, ConfigShape, EventSpec, Shell, WindowsShell};
use anyhook_model::event::field;
use anyhook_model::{Answer, Decision, HookEvent};
use anyhook_run::run::exec::command::CommandLine;
use anyhook_run::run::exec::{self, ProcessEnd, ProcessRequest};
use anyhook_util::env;
use serde_json::{Value, json};

use super::probe_daemon::{DAEMON_AWAY, DAEMON_OTHER_HOOKS, SandboxDaemon};
use super::probe_sandbox::ProbeSandbox;
use super::{DoctorFinding, DoctorReport, Fix, ReinstalledProgram, probe_safety};
use crate::command::{self, BridgeInvocation, BridgeProgram, PROGRAM_NAME, without_powershell};
use crate::machine::Machine;
use crate::scripts;
use crate::target::Target;
use crate::via_daemon;

const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

const BRIDGE_DEAD_ID: &str = "bridge-dead";

/// How an installed entry starts the bridge.
pub(super) struct ProbeCommand {
    /// The native event.
    pub event: String,
    pub line: String,
    command_line: CommandLine,
    /// The program and its arguments; `None` if the entry does more than start it.
    pub argv: Option<Vec<String>>,
    /// `install` wrote exactly this on this machine.
    pub is_recorded: bool,
}

pub(super) fn probe_entries(machine: &Machine, target: &Target, report: &mut DoctorReport) {
    let Ok(sandbox) = ProbeSandbox::new(target.adapter) else {
        return;
    };
    let mut daemon = SandboxDaemon::default();
    for (number, probe) in probe_commands(machine, target).into_iter().enumerate() {
        let Some(event) = target.adapter.event_by_native(&probe.event) else {
            continue;
        };
        let call = ProbeCall {
            machine,
            target,
            sandbox: &sandbox,
            event,
            number,
        };
        if via_daemon::parse_url(&probe.line).is_some() {
            report.fired += 1;
            match daemon.probe(&call, &probe.line) {
                None => report.answered += 1,
                Some(finding) => {
                    let is_about_all = [DAEMON_AWAY, DAEMON_OTHER_HOOKS].contains(&&*finding.id);
                    report.findings.push(finding.for_target(target));
                    // Such a daemon answers none of them.
                    if is_about_all {
                        break;
                    }
                }
            }
            continue;
        }
        if let Some(finding) = probe_safety::refusal(machine, target, &probe) {
            report.not_fired += 1;
            let finding = finding.for_target(target);
            if finding.id == BRIDGE_DEAD_ID {
                // What stops one entry usually stops them all.
                report.findings.push(finding);
                break;
            }
            if !report.findings.iter().any(|one| one.what == finding.what) {
                report.findings.push(finding);
            }
            continue;
        }
        report.fired += 1;
        match probe_entry(&call, &probe) {
            None => report.answered += 1,
            Some(finding) => {
                report.findings.push(finding.for_target(target));
                // What stops one entry usually stops them all.
                break;
            }
        }
    }
    probe_plugin_socket(machine, target, &sandbox, &mut daemon, report);
}

/// The other way of a program that asks a daemon first.
fn probe_plugin_socket(
    machine: &Machine,
    target: &Target,
    sandbox: &ProbeSandbox,
    daemon: &mut SandboxDaemon,
    report: &mut DoctorReport,
) {
    if target.shape() != ConfigShape::Plugin {
        return;
    }
    let text = anyhook_edit::read_text(&target.path).ok().flatten();
    let socket = text.and_then(|text| via_daemon::plugin_socket(&text));
    let mut events = target.adapter.spec.events.iter();
    let event = events.find(|event| event.blocking == Blocking::Prevent);
    if let (Some(socket), Some(event)) = (socket, event) {
        let number = target.adapter.spec.events.len();
        let call = ProbeCall {
            machine,
            target,
            sandbox,
            event,
            number,
        };
        let findings = daemon.probe_socket(&call, Path::new(&socket)).into_iter();
        let findings = findings.map(|finding| finding.for_target(target));
        report.findings.extend(findings);
    }
}

fn probe_commands(machine: &Machine, target: &Target) -> Vec<ProbeCommand> {
    let records = machine.records_dir();
    match target.shape() {
        ConfigShape::Scripts => scripts::generated_files(target)
            .into_iter()
            .filter_map(|path| {
                let text = anyhook_edit::read_text(&path).ok()??;
                let command = scripts::script_command(&text);
                Some(ProbeCommand {
                    event: path.file_stem()?.to_string_lossy().into_owned(),
                    line: path.to_string_lossy().into_owned(),
                    command_line: CommandLine::Direct(vec![path.to_string_lossy().into_owned()]),
                    argv: command.and_then(|line| started_argv(machine, line)),
                    is_recorded: probe_safety::is_recorded_file(&records, &path, &text),
                })
            })
            .collect(),
        ConfigShape::Plugin => {
            let text = anyhook_edit::read_text(&target.path).ok().flatten();
            let text = text.unwrap_or_default();
            let is_recorded = probe_safety::is_recorded_file(&records, &target.path, &text);
            plugin_command(machine, &text)
                .into_iter()
                .flat_map(|argv| {
                    let events = target.bridged_events().into_iter();
                    events.map(move |event| ProbeCommand {
                        event,
                        line: argv.join(" "),
                        command_line: CommandLine::Direct(argv.clone()),
                        argv: Some(argv.clone()),
                        is_recorded,
                    })
                })
                .collect()
        }
        _ => target
            .bridge_entries(&target.document().unwrap_or_default())
            .into_iter()
            .map(|(entry, line, _)| ProbeCommand {
                event: entry.event.to_owned(),
                line: line.to_owned(),
                command_line: agent_launch(machine, target.adapter, line),
                argv: started_argv(machine, line),
                is_recorded: probe_safety::is_recorded_line(&records, target, line),
            })
            .collect(),
    }
}

/// The program and arguments that a command line starts; `None` if it does more.
fn started_argv(machine: &Machine, line: &str) -> Option<Vec<String>> {
    let BridgeInvocation { program, arguments } = command::bridge_invocation(line)?;
    let path = match &program {
        BridgeProgram::Named(_) | BridgeProgram::Daemon(_) => None,
        BridgeProgram::Searched => machine.searched_program(),
    };
    let path = path.map(|path| path.to_string_lossy().into_owned());
    let program = path.unwrap_or_else(|| program.as_str().to_owned());
    Some(std::iter::once(program).chain(arguments).collect())
}

/// The program and arguments that a generated plugin starts.
fn plugin_command(machine: &Machine, text: &str) -> Option<Vec<String>> {
    let (_, rest) = text.split_once("\"argv\":")?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Vec<String>>();
    let mut argv = values.next()?.ok()?;
    let program = argv.first_mut()?;
    // The plugin searches a bare name like an entry does.
    if program == PROGRAM_NAME
        && let Some(path) = machine.searched_program()
    {
        *program = path.to_string_lossy().into_owned();
    }
    Some(argv)
}

/// A command line as the agent starts it.
fn agent_launch(machine: &Machine, adapter: &Adapter, line: &str) -> CommandLine {
    if cfg!(windows) {
        return windows_launch(machine, adapter.spec.launch.windows, line);
    }
    // By path, because a project's folder may be on PATH.
    let program = |name: &str, usual: &str| {
        let found = machine.own_programs(name).into_iter().next();
        let found = found.map(|path| path.to_string_lossy().into_owned());
        found.unwrap_or_else(|| usual.to_owned())
    };
    let in_shell = |shell: String, flag: &str| vec![shell, flag.to_owned(), line.to_owned()];
    let started = match adapter.spec.launch.shell {
        Shell::None => command::words(line, true),
        Shell::Sh => in_shell("/bin/sh".to_owned(), "-c"),
        Shell::Bash => in_shell(program("bash", "/bin/bash"), "-c"),
        Shell::Login => {
            let own = machine.var(env::SHELL.name).map(PathBuf::from);
            let own = own.filter(|shell| shell.is_file() && !machine.is_in_project(shell));
            let own = own.map(|shell| shell.to_string_lossy().into_owned());
            in_shell(own.unwrap_or_else(|| "/bin/sh".to_owned()), "-lc")
        }
    };
    // Variables of an agent that runs this process must not identify that agent.
    let mut argv = vec![program("env", "/usr/bin/env")];
    for variable in foreign_variables(&adapter.spec.id) {
        argv.extend(["-u".to_owned(), variable]);
    }
    argv.extend(started);
    CommandLine::Direct(argv)
}

/// As [`agent_launch`], on Windows.
fn windows_launch(machine: &Machine, shell: WindowsShell, line: &str) -> CommandLine {
    let first = |names: &[&str]| {
        let mut found = names.iter().flat_map(|name| machine.own_programs(name));
        found.next().map(|path| path.to_string_lossy().into_owned())
    };
    let direct = |program: String, options: &[&str]| {
        let options = options.iter().map(|&option| option.to_owned());
        let argv = std::iter::once(program).chain(options);
        CommandLine::Direct(argv.chain([line.to_owned()]).collect())
    };
    let powershell = || {
        let options = ["-NoProfile", "-NonInteractive", "-Command"];
        first(&["pwsh", "powershell"]).map(|program| direct(program, &options))
    };
    let found = match shell {
        WindowsShell::Cmd => None,
        WindowsShell::GitBash if exec::has_posix_shell() => Some(direct("sh".to_owned(), &["-c"])),
        WindowsShell::PowerShell | WindowsShell::GitBash => powershell(),
    };
    found.unwrap_or_else(|| CommandLine::Shell(without_powershell(line).to_owned()))
}

fn foreign_variables(slug: &str) -> Vec<String> {
    anyhook_agents::all()
        .filter(|adapter| adapter.spec.id != slug)
        .flat_map(|adapter| adapter.spec.detect.env.iter())
        .map(|mark| mark.split('=').next().unwrap_or(mark).to_owned())
        .collect()
}

/// The event that is fired through one entry.
pub(super) struct ProbeCall<'a> {
    pub machine: &'a Machine,
    pub target: &'a Target,
    pub sandbox: &'a ProbeSandbox,
    pub event: &'a EventSpec,
    pub number: usize,
}

impl ProbeCall<'_> {
    pub(super) fn session(&self) -> String {
        format!("anyhook-doctor-{}", self.number)
    }

    /// The payload, and the event that the bridge reads from it.
    pub(super) fn payload(&self) -> Option<(Value, HookEvent)> {
        let (adapter, event) = (self.target.adapter, self.event);
        let synthetic = synthetic_event(event, &self.session(), &self.sandbox.project());
        let encoded = adapter.encode(&synthetic, Some(&event.native))?;
        let decoded = adapter.decode(&encoded.payload, Some(&event.native)).ok();
        let decoded = decoded.map_or(synthetic, |decoded| decoded.event);
        Some((encoded.payload, decoded))
    }

    /// A problem if this answer does not deny where it could.
    pub(super) fn check_deny(&self, decoded: &HookEvent, answer: &Answer) -> Option<DoctorFinding> {
        let (adapter, event) = (self.target.adapter, self.event);
        let profile = event.answer.as_ref();
        let profile = profile.and_then(|name| adapter.spec.answers.get(name));
        let can_deny = event.blocking == Blocking::Prevent
            && profile.is_some_and(|profile| !profile.deny.is_empty());
        let Answer {
            stdout,
            stderr,
            exit,
        } = answer;
        let read = adapter.decode_answer(decoded, &event.native, stdout, stderr, *exit);
        if !can_deny || read.response.decision == Some(Decision::Deny) {
            return None;
        }
        let what = format!(
            "a deny at `{}` does not reach {}: it received `{}`",
            event.native,
            adapter.spec.name,
            stdout.trim().lines().next().unwrap_or_default()
        );
        Some(
            DoctorFinding::error("deny-lost", what)
                .why("a guard would let everything pass")
                .remedy(
                    "check for a shell profile that prints something, or a wrapper around the bridge",
                ),
        )
    }
}

fn probe_entry(call: &ProbeCall<'_>, probe: &ProbeCommand) -> Option<DoctorFinding> {
    let ProbeCall {
        machine,
        target,
        sandbox,
        event,
        ..
    } = *call;
    let adapter = target.adapter;
    let session = call.session();
    let (payload, decoded) = call.payload()?;
    // Without a folder in the payload the process's own folder counts, and the
    // user's hooks must not run.
    let cwd = match &decoded.cwd {
        Some(_) => machine.root.clone(),
        None => sandbox.project(),
    };
    let ended = exec::run(&ProcessRequest {
        command_line: probe.command_line.clone(),
        cwd,
        owns_process: false,
        env: sandbox.environment(machine, adapter, &decoded),
        stdin: payload.to_string().as_bytes(),
        timeout: PROBE_TIMEOUT,
        cancel: None,
    });
    let stderr = String::from_utf8_lossy(&ended.stderr.bytes);
    let unreached = |end: String| Some(unreached_bridge(target, probe, &end, &stderr));
    let ProcessEnd::Exit(exit) = ended.end else {
        return unreached(format!("{:?}", ended.end));
    };
    if !sandbox.has_record(&session, &event.native) {
        return unreached(format!("exit code {exit}"));
    }
    let answer = Answer {
        stdout: String::from_utf8_lossy(&ended.stdout.bytes).into_owned(),
        stderr: stderr.into_owned(),
        exit,
    };
    call.check_deny(&decoded, &answer)
}

pub(super) fn unreached_bridge(
    target: &Target,
    probe: &ProbeCommand,
    end: &str,
    stderr: &str,
) -> DoctorFinding {
    let last_line = stderr.trim().lines().next_back();
    let detail = last_line
        .map(|line| format!(": {line}"))
        .unwrap_or_default();
    let ProbeCommand { line, event, .. } = probe;
    let what = format!("`{line}`, for `{event}`, does not run any hook ({end}){detail}");
    let target = Box::new(target.clone());
    DoctorFinding::error(BRIDGE_DEAD_ID, what)
        .why("no hook runs, and the agent takes that for approval")
        .remedy("run `anyhook doctor --fix`, or make sure that the command line finds `anyhook`")
        .fixed_by(Fix::Reinstall(target, ReinstalledProgram::Renewed))
}

/// An event with a value in each field that it may have.
fn synthetic_event(event: &EventSpec, session: &str, project: &Path) -> HookEvent {
    let tool = event.tools.first().map_or("shell", AsRef::as_ref);
    let edits = json!([{"old": "a", "new": "b"}]);
    let (name, input) = match tool {
        "mcp" => ("probe", json!({})),
        "shell" => ("shell", json!({"command": "true"})),
        _ => {
            let path = project.join("file.txt");
            (tool, json!({"path": path, "content": "", "edits": edits}))
        }
    };
    let fields = [
        (field::TOOL_NAME, json!(name)),
        (field::TOOL_INPUT, input),
        (field::TOOL_CALL_ID, json!(format!("{session}-call"))),
        (field::TOOL_OUTPUT, json!("done")),
        (field::PROMPT, json!("a prompt")),
        (field::MESSAGE, json!("a message")),
        (field::START_SOURCE, json!("startup")),
        (field::REASON, json!("other")),
        (field::TRIGGER, json!("manual")),
    ];
    let mcp = json!({"server": "doctor", "tool": "probe"});
    let mcp = (tool == "mcp").then_some((field::MCP, mcp));
    HookEvent {
        event: event.is.as_deref().unwrap_or(&event.native).to_owned(),
        source: "anyhook".to_owned(),
        native_event: event.native.to_string(),
        session_id: Some(session.to_owned()),
        cwd: Some(project.to_string_lossy().into_owned()),
        data: fields
            .into_iter()
            .chain(mcp)
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        ..HookEvent::default()
    }
}
