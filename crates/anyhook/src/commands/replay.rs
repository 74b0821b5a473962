//! `anyhook replay`: the record against today's manifests.
//!
//! By default nothing runs: what matched then is compared with what would match
//! now. With `--run` the hooks run, and decisions are compared.

use std::path::PathBuf;

use anyhook_model::{Decision, Record, RecordKind, RunOutcome};
use anyhook_run::{Engine, Options};
use anyhook_store::EventDetail;
use anyhow::Context;
use serde::Serialize;

use crate::cli::Verdict;
use crate::commands::log::asked::Asked;
use crate::commands::log::place::Place;
use crate::commands::log::show;
use crate::render::{Terminal, visible};

/// Put recorded events to today's manifests, and show what would be different
///
/// Nothing runs and nothing is recorded, unless `--run` says so. Secrets were
/// taken out of the record, so a hook that looks for them finds marks instead.
/// Exits with 1 when something would be different.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook replay --since 7d\n  anyhook replay --project . --decision deny --run"
)]
pub struct Args {
    #[command(flatten)]
    asked: Asked,
    /// As if the events had come from this project
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// Run the hooks that match, and compare what they decide
    #[arg(long)]
    run: bool,
    /// So many events, the newest
    #[arg(short = 'n', long, default_value_t = 1000, value_name = "COUNT")]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    events: usize,
    different: Vec<Difference>,
}

#[derive(Serialize)]
struct Difference {
    #[serde(flatten)]
    event: EventDetail,
    #[serde(flatten)]
    change: Change,
}

/// What would be different.
#[derive(Serialize, Default, PartialEq)]
struct Change {
    /// Hooks that match now and did not then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    /// Hooks that matched then and do not now, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fewer: Vec<Gone>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decisions>,
    /// Manifests that cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    troubles: Vec<String>,
}

#[derive(Serialize, PartialEq)]
struct Gone {
    hook: String,
    why: String,
}

#[derive(Serialize, PartialEq)]
struct Decisions {
    then: Option<Decision>,
    now: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let project = match &args.project {
        Some(folder) => Some(
            std::fs::canonicalize(folder)
                .with_context(|| format!("`{}` cannot be found", folder.display()))?,
        ),
        None => None,
    };
    let engine = Engine::from_env();
    let place = Place::find(args.asked.store.as_deref())?;
    let mut report = Report {
        events: 0,
        different: Vec::new(),
    };
    // In the order in which they happened.
    let events = place.details(&args.asked.filter(), args.limit)?;
    for event in events.into_iter().rev() {
        let mut record: Record = serde_json::from_value(event.record.clone())?;
        let is_second = record.extra.contains_key("duplicate");
        if record.kind != RecordKind::Event || is_second {
            continue;
        }
        if let Some(project) = &project {
            record.event.cwd = Some(project.to_string_lossy().into_owned());
        }
        report.events += 1;
        let change = compare(&engine, &record, project.is_some(), args.run);
        if change != Change::default() {
            report.different.push(Difference { event, change });
        }
    }
    if args.json {
        terminal.json(&report)?;
    } else {
        show_all(&report, terminal);
    }
    Ok(if report.different.is_empty() {
        Verdict::Good
    } else {
        Verdict::Findings
    })
}

fn compare(engine: &Engine, record: &Record, is_elsewhere: bool, run: bool) -> Change {
    let (explained, troubles) = engine.explain(&record.event);
    // In another project the same hook stands in another file.
    let key = |hook: &str, manifest: &str| {
        let manifest = if is_elsewhere { "" } else { manifest };
        (hook.to_owned(), manifest.to_owned())
    };
    let then: Vec<_> = record
        .hooks
        .iter()
        .filter(|run| run.outcome != RunOutcome::Refused)
        .map(|run| key(&run.hook, &run.manifest))
        .collect();
    let now: Vec<_> = explained
        .iter()
        .filter(|line| line.matches)
        .map(|line| key(&line.hook, &line.manifest))
        .collect();
    let why = |gone: &(String, String)| {
        let line = explained
            .iter()
            .find(|line| key(&line.hook, &line.manifest) == *gone);
        line.map_or_else(
            || "it is not there any more".to_owned(),
            |line| line.why.clone(),
        )
    };
    let mut change = Change {
        more: now
            .iter()
            .filter(|hook| !then.contains(hook))
            .map(|(hook, _)| hook.clone())
            .collect(),
        fewer: then
            .iter()
            .filter(|hook| !now.contains(hook))
            .map(|hook| Gone {
                hook: hook.0.clone(),
                why: why(hook),
            })
            .collect(),
        decision: None,
        troubles: troubles
            .iter()
            .map(|trouble| {
                format!(
                    "{} is not used: {}",
                    trouble.path.display(),
                    trouble.message
                )
            })
            .collect(),
    };
    if run {
        let handled = engine.handle(&record.event, &Options::default());
        let decision = handled.response.decision;
        // Saying nothing and saying `allow` come to the same.
        let weight = |decision: Option<Decision>| decision.filter(|it| *it != Decision::Allow);
        if weight(decision) != weight(record.decision) {
            change.decision = Some(Decisions {
                then: record.decision,
                now: decision,
                reason: handled.response.reason,
            });
        }
    }
    change
}

fn show_all(report: &Report, terminal: &Terminal) {
    for Difference { event, change } in &report.different {
        terminal.line(&show::line(&event.summary, terminal));
        for hook in &change.more {
            let mark = terminal.paint("32", "+");
            terminal.line(&format!("  {mark} {} would run now", visible(hook)));
        }
        for Gone { hook, why } in &change.fewer {
            let mark = terminal.paint("31", "-");
            terminal.line(&format!(
                "  {mark} {} would not run now: {}",
                visible(hook),
                visible(why)
            ));
        }
        if let Some(Decisions { then, now, reason }) = &change.decision {
            let word = |decision: &Option<Decision>| decision.map_or("none", |it| it.as_str());
            let reason = reason.as_deref().map(visible).unwrap_or_default();
            terminal.line(&format!(
                "  {} was {}, would be {} {reason}",
                terminal.paint("33", "!"),
                word(then),
                terminal.paint(show::colour(word(now)), word(now)),
            ));
        }
        for trouble in &change.troubles {
            terminal.line(&format!(
                "  {} {}",
                terminal.paint("33", "!"),
                visible(trouble)
            ));
        }
    }
    terminal.line(&format!(
        "{} of {} events would be different.",
        report.different.len(),
        report.events
    ));
}
