//! `anyhook replay`: compares recorded events with today's manifests.
//!
//! By default nothing runs: the hooks that matched then are compared with those
//! that match now. With `--run` the hooks run, and decisions are compared too.

use std::path::PathBuf;

use anyhook_model::{Decision, Record, RecordKind, RunOutcome};
use anyhook_run::{Engine, EventOptions};
use anyhook_store::EventDetail;
use anyhow::Context;
use serde::Serialize;
use serde_json::json;

use crate::cli::CommandStatus;
use crate::commands::explain::unused_file;
use crate::commands::log::event_log::EventLog;
use crate::commands::log::filter_args::FilterArgs;
use crate::commands::log::format;
use crate::diagnostics::unused_files;
use crate::progress::Progress;
use crate::render::{Terminal, colour, visible};

/// Compare recorded events with today's manifests, and show what would differ
///
/// Runs nothing and records nothing without `--run`. The record contains no
/// secrets, so a hook that looks for them finds placeholders instead. Exits with
/// 1 if something would be different.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook replay --since 7d\n  anyhook replay --project . --decision deny --run"
)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Replay the events as if they came from this project
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// Run the matching hooks and compare their decisions
    #[arg(long)]
    run: bool,
    /// Maximum number of events to replay, newest first
    #[arg(short = 'n', long, default_value_t = 1000, value_name = "COUNT")]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An event that would go differently now.
#[derive(Serialize)]
struct ChangedEvent {
    #[serde(flatten)]
    event: EventDetail,
    #[serde(flatten)]
    difference: ReplayDifference,
}

#[derive(Serialize, Default, PartialEq)]
struct ReplayDifference {
    /// Hooks that match now and did not then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    /// Hooks that matched then and do not now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fewer: Vec<UnmatchedHook>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionChange>,
    /// Manifests that cannot be used.
    #[serde(
        rename = "diagnostics",
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "unused_files"
    )]
    troubles: Vec<String>,
}

#[derive(Serialize, PartialEq)]
struct UnmatchedHook {
    hook: String,
    why: String,
}

#[derive(Serialize, PartialEq)]
struct DecisionChange {
    then: Option<Decision>,
    now: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(crate) fn run(args: &ReplayArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let project = args.project.as_deref().map(|folder| {
        anyhook_util::paths::canonicalize(folder)
            .with_context(|| format!("could not find `{}`", folder.display()))
    });
    let project = project.transpose()?;
    let engine = Engine::from_env();
    let log = EventLog::open(args.filter.store.as_deref())?;
    if let Some(lacking) = log.incomplete() {
        terminal.note(&lacking);
    }
    let mut count: usize = 0;
    let mut changed = Vec::new();
    // In the order in which they happened.
    let progress = Progress::start("Replaying", "event");
    let events = log.details(&args.filter.to_filter(), args.limit)?;
    for event in events.into_iter().rev() {
        let mut record: Record = serde_json::from_value(event.record.clone())?;
        let is_duplicate = record.extra.contains_key("duplicate");
        if record.kind != RecordKind::Event || is_duplicate {
            continue;
        }
        if let Some(project) = &project {
            record.event.cwd = Some(project.to_string_lossy().into_owned());
        }
        count += 1;
        progress.advance();
        let difference = compare(&engine, &record, project.is_some(), args.run);
        if difference != ReplayDifference::default() {
            changed.push(ChangedEvent { event, difference });
        }
    }
    drop(progress);
    if args.json {
        terminal.json(&json!({"events": count, "different": changed}))?;
    } else {
        for event in &changed {
            event.print(terminal);
        }
        terminal.line(&format!(
            "{} of {count} events would be different.",
            changed.len()
        ));
    }
    Ok(CommandStatus::success_if(changed.is_empty()))
}

fn compare(engine: &Engine, record: &Record, is_elsewhere: bool, run: bool) -> ReplayDifference {
    let (explained, troubles) = engine.explain(&record.event);
    // In another project the same hook is in another file.
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
        .filter(|hook| hook.matches)
        .map(|hook| key(&hook.hook, &hook.manifest))
        .collect();
    let why = |unmatched: &(String, String)| {
        let hook = explained
            .iter()
            .find(|hook| key(&hook.hook, &hook.manifest) == *unmatched);
        hook.map_or_else(|| "it no longer exists".to_owned(), |hook| hook.why.clone())
    };
    let mut difference = ReplayDifference {
        more: now
            .iter()
            .filter(|hook| !then.contains(hook))
            .map(|(hook, _)| hook.clone())
            .collect(),
        fewer: then
            .iter()
            .filter(|hook| !now.contains(hook))
            .map(|hook| UnmatchedHook {
                hook: hook.0.clone(),
                why: why(hook),
            })
            .collect(),
        decision: None,
        troubles: troubles.iter().map(unused_file).collect(),
    };
    if run {
        let outcome = engine.handle(&record.event, &EventOptions::default());
        let now = outcome.response.decision;
        // No decision and `allow` have the same effect.
        let objection = |decision: Option<Decision>| decision.filter(|it| *it != Decision::Allow);
        if objection(now) != objection(record.decision) {
            difference.decision = Some(DecisionChange {
                then: record.decision,
                now,
                reason: outcome.response.reason,
            });
        }
    }
    difference
}

impl ChangedEvent {
    fn print(&self, terminal: &Terminal) {
        terminal.line(&format::event_line(&self.event.summary, terminal));
        let print = |colour: &str, mark: &str, text: &str| {
            terminal.line(&format!("  {} {text}", terminal.paint(colour, mark)));
        };
        let difference = &self.difference;
        for hook in &difference.more {
            let text = format!("{} would run now", visible(hook));
            print(colour::GREEN, "+", &text);
        }
        for UnmatchedHook { hook, why } in &difference.fewer {
            let (hook, why) = (visible(hook), visible(why));
            let text = format!("{hook} would not run now: {why}");
            print(colour::RED, "-", &text);
        }
        if let Some(DecisionChange { then, now, reason }) = &difference.decision {
            let word = |decision: &Option<Decision>| decision.map_or("none", |it| it.as_str());
            let (then, now) = (word(then), word(now));
            let now = terminal.paint(format::decision_colour(now), now);
            let reason = reason.as_deref().map(visible).unwrap_or_default();
            let text = format!("was {then}, would be {now} {reason}");
            print(colour::YELLOW, "!", &text);
        }
        for trouble in &difference.troubles {
            print(colour::YELLOW, "!", &visible(trouble));
        }
    }
}
