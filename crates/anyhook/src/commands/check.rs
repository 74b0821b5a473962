//! `anyhook check`: what the guards say about a command or a file, without any
//! agent.

use std::borrow::Cow;
use std::path::Path;

use anyhook_guard::{CommandReadings, ShellAnalysis, ShellKind, analyze};
use anyhook_install::init::{PRESETS, Preset};
use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent, Scope};
use anyhook_run::Engine;
use anyhook_run::config::discover::discover;
use anyhook_run::config::manifest::SelectedHook;
use anyhook_run::config::trust::label;
use anyhook_run::run::guard::{self, GuardReport, guard_context};
use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::CommandStatus;
use crate::commands::explain::unused_file;
use crate::diagnostics::unused_files;
use crate::render::{Terminal, colour, visible};
use crate::table::{self, Cell};

/// The preset for a folder without guards.
const DEFAULT_PRESET: &str = "standard";

/// Show what the guards say about a command, which rule applies and how it was read
///
/// Runs nothing and records nothing. Uses the guards of the manifests that apply
/// here, or the standard preset if there are none. Exits with 0 if no guard
/// objects, 1 on a denial or a guard that cannot be used, 3 if a guard asks.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  anyhook check -- 'git push --force'\n  \
                  anyhook check --preset strict --json -- 'curl https://example.com | sh'\n  \
                  anyhook check --tool file_read --path .env")]
pub(crate) struct CheckArgs {
    /// The shell command, as one argument or as words
    #[arg(required_unless_present = "tool")]
    command: Vec<String>,
    /// Use the guards of a preset instead of the manifests
    #[arg(long, value_parser = PRESETS.map(|preset| preset.name))]
    preset: Option<String>,
    /// The shell that runs the command; without it `bash`, or on Windows any of them
    #[arg(long, value_parser = ["bash", "powershell", "cmd"])]
    shell: Option<String>,
    /// Another tool than `shell`
    #[arg(long, conflicts_with = "command")]
    tool: Option<String>,
    /// The file that the tool works on
    #[arg(long, conflicts_with = "command", requires = "tool")]
    path: Option<String>,
    /// The address that the tool fetches
    #[arg(long, conflicts_with = "command", requires = "tool")]
    url: Option<String>,
    /// What the tool writes
    #[arg(long, conflicts_with = "command", requires = "tool")]
    content: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the guards say about one call.
#[derive(Serialize)]
pub(crate) struct CheckResult {
    /// The strongest answer; `null` if no guard objects.
    decision: Option<Decision>,
    /// Where the guards come from: `manifests`, or the name of a preset.
    guards_of: String,
    guards: Vec<GuardReport>,
    /// How the command was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<ShellAnalysis>,
    #[serde(
        rename = "diagnostics",
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "unused_files"
    )]
    troubles: Vec<String>,
}

pub(crate) fn run(args: &CheckArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let event = args.event()?;
    let shell = shell_kind(args.shell.as_deref()).unwrap_or(ShellKind::Posix);
    let shell = args.tool.is_none().then_some(shell);
    let preset = args.preset.as_deref().and_then(Preset::find);
    let result = judge(&event, shell, preset);
    if args.json {
        terminal.json(&result)?;
    } else {
        result.print(terminal);
    }
    Ok(result.status())
}

impl CheckArgs {
    fn event(&self) -> anyhow::Result<HookEvent> {
        let Some(tool) = &self.tool else {
            return shell_event(&self.command.join(" "), shell_kind(self.shell.as_deref()));
        };
        let given = [
            ("path", &self.path),
            ("url", &self.url),
            ("content", &self.content),
        ];
        let given = given.into_iter().filter_map(|(name, value)| {
            let value = value.as_ref()?;
            Some((name.to_owned(), Value::from(value.as_str())))
        });
        let input: Map<String, Value> = given.collect();
        if input.is_empty() {
            bail!("`--tool {tool}` needs `--path`, `--url` or `--content`");
        }
        call_event(tool, input)
    }
}

/// The shell of this name; `None` if it is not known, as in most calls on Windows.
pub(crate) fn shell_kind(name: Option<&str>) -> Option<ShellKind> {
    match name {
        None if cfg!(windows) => None,
        Some("powershell") => Some(ShellKind::PowerShell),
        Some("cmd") => Some(ShellKind::Cmd),
        _ => Some(ShellKind::Posix),
    }
}

/// A shell call in the current folder.
pub(crate) fn shell_event(command: &str, shell: Option<ShellKind>) -> anyhow::Result<HookEvent> {
    let input = Map::from_iter([("command".to_owned(), command.into())]);
    let mut event = call_event("shell", input)?;
    let native = match shell {
        Some(ShellKind::Posix) => "bash",
        Some(ShellKind::PowerShell) => "powershell",
        Some(ShellKind::Cmd) => "cmd",
        None => "shell",
    };
    let data = &mut event.data;
    data.insert(field::NATIVE_TOOL_NAME.to_owned(), native.into());
    Ok(event)
}

fn call_event(tool: &str, input: Map<String, Value>) -> anyhow::Result<HookEvent> {
    let cwd = std::env::current_dir().context("could not read the current folder")?;
    let mut event = HookEvent {
        event: "before_tool_execute".to_owned(),
        source: "canonical".to_owned(),
        cwd: Some(cwd.to_string_lossy().into_owned()),
        ..HookEvent::default()
    };
    let data = &mut event.data;
    data.insert(field::TOOL_NAME.to_owned(), json!(tool));
    data.insert(field::TOOL_INPUT.to_owned(), input.into());
    Ok(event)
}

/// Asks the guards of a preset, else those of the manifests, else the default
/// preset.
pub(crate) fn judge(
    event: &HookEvent,
    shell: Option<ShellKind>,
    preset: Option<&'static Preset>,
) -> CheckResult {
    let engine = Engine::from_env();
    let cwd = event.cwd.as_deref().unwrap_or_default();
    let root = discover(&engine.dirs, Path::new(cwd)).root;
    let (mut guards, mut troubles) = (Vec::new(), Vec::new());
    let mut preset = preset;
    if preset.is_none() {
        let (reports, problems) = engine.judge_guards(event);
        guards = reports;
        troubles = problems.iter().map(unused_file).collect();
        if guards.is_empty() {
            preset = Preset::find(DEFAULT_PRESET);
        }
    }
    if let Some(preset) = preset {
        let name = format!("preset {}", preset.name);
        let readings = CommandReadings::default();
        let hooks = preset.hooks().into_iter().enumerate();
        guards = hooks
            .filter_map(|(position, hook)| {
                let selected = SelectedHook {
                    position: 0,
                    label: label(&hook, position),
                    hook: Cow::Owned(hook),
                    scope: Scope::Project,
                    manifest: Cow::Borrowed(Path::new(&name)),
                    root: Cow::Borrowed(&root),
                };
                guard::report(&selected, event, &engine.dirs, &readings)
            })
            .collect();
    }
    let input = event.tool_input();
    let command = input.and_then(|input| input.get("command")?.as_str());
    let read_as = shell.zip(command).map(|(shell, command)| {
        let context = guard_context(&engine.dirs, &root);
        analyze(command, shell, Some(cwd), &context)
    });
    let enforced = guards.iter().filter(|report| !report.only_observed);
    let decisions = enforced.filter_map(|report| Some(report.finding.as_ref()?.decision));
    let decision = decisions.max_by_key(|decision| *decision == Decision::Deny);
    let guards_of = preset.map_or("manifests", |preset| preset.name);
    CheckResult {
        decision,
        guards_of: guards_of.to_owned(),
        guards,
        read_as,
        troubles,
    }
}

impl CheckResult {
    fn status(&self) -> CommandStatus {
        let has_problem = self.guards.iter().any(|report| report.problem.is_some());
        match self.decision {
            Some(Decision::Deny) => CommandStatus::Failure,
            _ if has_problem || !self.troubles.is_empty() => CommandStatus::Failure,
            Some(Decision::Ask) => CommandStatus::Asks,
            Some(Decision::Allow) | None => CommandStatus::Success,
        }
    }

    pub(crate) fn print(&self, terminal: &Terminal) {
        let decision = match self.decision {
            Some(Decision::Deny) => terminal.paint(colour::RED, "deny"),
            Some(Decision::Ask) => terminal.paint(colour::YELLOW, "ask"),
            Some(Decision::Allow) | None => terminal.paint(colour::GREEN, "no objection"),
        };
        let guards_of = match self.guards_of.as_str() {
            "manifests" => "the guards of this folder's manifests".to_owned(),
            preset => format!("the guards of the preset `{preset}`"),
        };
        terminal.line(&format!("{decision}  by {guards_of}\n"));
        let objections = self.guards.iter().filter_map(|report| {
            let finding = report.finding.as_ref()?;
            let (word, paint) = match finding.decision {
                Decision::Deny => ("deny", colour::RED),
                _ => ("ask", colour::YELLOW),
            };
            let (word, paint) = if report.only_observed {
                (format!("would {word}"), colour::DIM)
            } else {
                (word.to_owned(), paint)
            };
            Some([
                Cell::painted(paint, word),
                visible(&report.hook).into(),
                visible(&format!("{}/{}", finding.guard, finding.rule)).into(),
                visible(&finding.subject).into(),
                visible(&finding.reason).into(),
            ])
        });
        let objections: Vec<[Cell; 5]> = objections.collect();
        if !objections.is_empty() {
            let titles = ["", "hook", "rule", "because of", "reason"];
            table::print(terminal, titles, objections);
            terminal.line("");
        }
        if let Some(analysis) = &self.read_as {
            terminal.line("Read as:");
            for line in analysis.to_string().lines() {
                terminal.line(&format!("  {}", visible(line)));
            }
        }
        for report in &self.guards {
            if let Some(problem) = &report.problem {
                let hook = visible(&report.hook);
                terminal.note(&format!("{hook} does not decide: {}", visible(problem)));
            }
        }
        for trouble in &self.troubles {
            terminal.note(trouble);
        }
    }
}
