//! `anyhook doctor`: what keeps hooks from running, and how to mend it.

use anyhook_install::doctor::{self, Finding, Options, Report, Severity};
use anyhow::{Context as _, bail};
use serde_json::json;

use super::install;
use crate::cli::Verdict;
use crate::render::Terminal;

/// Find out why hooks do not run, and mend what can safely be mended
///
/// Reads the files of every agent, hand-written ones too, and fires an event
/// through each installed entry as the agent would. Exits with 1 when
/// something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook doctor
  anyhook doctor --agent cursor --json
  anyhook doctor --fix")]
pub struct Args {
    /// Only this agent; may be given several times
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Mend what can be mended without losing anything
    #[arg(long)]
    fix: bool,
    /// Only read files: fire nothing, start no agent's program
    #[arg(long)]
    no_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let world = install::world()?;
    let mut options = Options {
        prove: !args.no_run,
        ..Options::default()
    };
    for name in &args.agent {
        let adapter = super::agents::find(name)?;
        if adapter.spec.pseudo {
            bail!("`{name}` is a form of hooks, not an agent");
        }
        options.agents.push(adapter);
    }
    let mut report = doctor::examine(&world, &options);
    let mut mended = Vec::new();
    if args.fix {
        let running = std::env::current_exe().context("this program's own path")?;
        for finding in &report.findings {
            let Some(fix) = &finding.fix else { continue };
            let what = fix.to_string();
            if mended.contains(&what) {
                continue;
            }
            doctor::fix(&world, &running, fix).with_context(|| what.clone())?;
            mended.push(what);
        }
        if !mended.is_empty() {
            report = doctor::examine(&world, &options);
        }
    }
    if args.json {
        terminal.json(&json!({
            "findings": report.findings, "files": report.files, "fired": report.fired,
            "answered": report.answered, "fixed": mended,
        }))?;
    } else {
        tell(&report, &mended, &world, terminal);
    }
    let is_ill = report
        .findings
        .iter()
        .any(|finding| finding.severity > Severity::Info);
    Ok(if is_ill {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}

fn tell(report: &Report, mended: &[String], world: &anyhook_install::World, terminal: &Terminal) {
    for what in mended {
        terminal.line(&format!("fixed: {what}"));
    }
    for finding in &report.findings {
        terminal.line(&block(finding, world));
    }
    let count = |severity| {
        report
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let fixable = report
        .findings
        .iter()
        .filter(|one| one.fix.is_some())
        .count();
    let hint = if fixable > 0 {
        format!("; `anyhook doctor --fix` mends {fixable}")
    } else {
        String::new()
    };
    terminal.line(&format!(
        "{} files read, {} of {} entries answered: {} errors, {} warnings{hint}",
        report.files.len(),
        report.answered,
        report.fired,
        count(Severity::Error),
        count(Severity::Warning),
    ));
}

/// What, why, what to do.
fn block(finding: &Finding, world: &anyhook_install::World) -> String {
    let place: Vec<String> = finding
        .agent
        .iter()
        .cloned()
        .chain(finding.file.iter().map(|path| world.shown(path)))
        .collect();
    let place = if place.is_empty() {
        String::new()
    } else {
        format!(" {}", place.join(" "))
    };
    format!(
        "{} [{}]{place}\n  {}\n  why: {}\n  do:  {}\n",
        finding.severity.as_str(),
        finding.id,
        finding.what,
        finding.why,
        finding.remedy
    )
}
