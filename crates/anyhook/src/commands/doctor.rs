//! `anyhook doctor`: prints what keeps hooks from running and how to fix it.

use std::fmt::Write as _;

use anyhook_install::Machine;
use anyhook_install::doctor::{self, DoctorFinding, DoctorOptions, DoctorReport, Severity};
use anyhow::Context as _;
use serde_json::json;

use super::{agents, install};
use crate::cli::CommandStatus;
use crate::progress::Progress;
use crate::render::{Terminal, colour, counted};

/// Diagnose hooks that don't run; `--fix` repairs what is safe
///
/// Reads the config files of every agent, including hand-written hooks, and
/// sends a test event through each installed entry as the agent would. Exits
/// with 1 if something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook doctor
  anyhook doctor --agent cursor --json
  anyhook doctor --fix")]
pub(crate) struct DoctorArgs {
    /// Only this agent; repeat for more
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Fix what can be fixed without losing anything
    #[arg(long)]
    fix: bool,
    /// Only read files: send no test events and start no agent
    #[arg(long)]
    no_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let world = install::this_machine()?;
    let options = DoctorOptions {
        run_probes: !args.no_run,
        agents: agents::find_clients(&args.agent)?,
    };
    let progress = Progress::start("Checking the agents", "");
    let mut report = doctor::examine(&world, &options);
    let mut fixed = Vec::new();
    if args.fix {
        let running = std::env::current_exe().context("could not find the path of this program")?;
        for fix in report.findings.iter().filter_map(|one| one.fix.as_ref()) {
            let description = fix.to_string();
            if !fixed.contains(&description) {
                doctor::fix(&world, &running, fix).with_context(|| description.clone())?;
                fixed.push(description);
            }
        }
        if !fixed.is_empty() {
            report = doctor::examine(&world, &options);
        }
    }
    drop(progress);
    if args.json {
        terminal.json(&json!({
            "diagnostics": report.findings, "files": report.files, "fired": report.fired,
            "answered": report.answered, "not_fired": report.not_fired, "fixed": fixed,
        }))?;
    } else {
        print_report(&report, &fixed, &world, terminal);
    }
    let is_harmless = |finding: &DoctorFinding| finding.severity <= Severity::Info;
    Ok(CommandStatus::success_if(
        report.findings.iter().all(is_harmless),
    ))
}

fn print_report(report: &DoctorReport, fixed: &[String], world: &Machine, terminal: &Terminal) {
    for fix in fixed {
        terminal.line(&format!("fixed: {fix}"));
    }
    for finding in &report.findings {
        terminal.line(&finding_block(finding, world, terminal));
    }
    let findings = || report.findings.iter();
    let count = |severity: Severity, noun| {
        let found = findings().filter(|finding| finding.severity == severity);
        counted(found.count(), noun)
    };
    let hint = match findings().filter(|finding| finding.fix.is_some()).count() {
        0 => String::new(),
        fixable => format!("; `anyhook doctor --fix` fixes {fixable}"),
    };
    terminal.line(&format!(
        "{} read, {} of {} answered: {}, {}{hint}",
        counted(report.files.len(), "file"),
        report.answered,
        counted(report.fired, "test event"),
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
    ));
}

/// What is wrong, why, and what to do.
fn finding_block(finding: &DoctorFinding, world: &Machine, terminal: &Terminal) -> String {
    let id = format!("[{}]", finding.id);
    let colour = match finding.severity {
        Severity::Error => colour::BOLD_RED,
        Severity::Warning => colour::YELLOW,
        Severity::Info => colour::CYAN,
    };
    let severity = terminal.paint(colour, finding.severity.as_str());
    let mut head = vec![severity, terminal.bold(&id)];
    head.extend(finding.agent.clone());
    head.extend(finding.file.iter().map(|path| world.display_path(path)));
    let mut block = format!("{}\n  {}\n", head.join(" "), finding.what);
    for (title, text) in [("why", &finding.why), ("fix", &finding.remedy)] {
        if !text.is_empty() {
            let _ = writeln!(block, "  {title}: {text}");
        }
    }
    block
}
