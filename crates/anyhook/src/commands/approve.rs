//! `anyhook approve`: answers a call that waits for the user.

use anyhook_model::Decision;
use anyhook_run::Engine;
use anyhook_run::record::approvals::{AnswerEffect, Question};
use anyhook_store::{EventRow, call_text};
use anyhow::bail;
use serde_json::json;

use crate::cli::CommandStatus;
use crate::render::{Terminal, visible};

/// Answer a call that waits for you, or list those that do
///
/// Where an agent cannot ask its user, a hook's `ask` is a deny. With `approvals.hold`
/// in config.yaml the call waits that many seconds for your answer, here or on the page
/// of `anyhook serve`. After that the agent gets a deny, and an answer counts for the
/// next time that it tries the same call, within ten minutes. Answering works in a
/// terminal only.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook approve\n  anyhook approve 4f1c09aa\n  anyhook approve 4f1c09aa --deny"
)]
pub(crate) struct ApproveArgs {
    /// The question, by id or id suffix; without it, lists the open questions
    pub(crate) id: Option<String>,
    /// Deny the call instead of allowing it
    #[arg(long, requires = "id")]
    deny: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ApproveArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let engine = Engine::from_env();
    let questions = engine.open_questions();
    let Some(wanted) = &args.id else {
        return list(args, &engine, &questions, terminal);
    };
    let mut found = questions
        .iter()
        .filter(|it| !wanted.is_empty() && it.id().ends_with(wanted.as_str()));
    let (Some(question), None) = (found.next(), found.next()) else {
        bail!("there is no single open question `{wanted}`; `anyhook approve` lists them");
    };
    let decision = if args.deny {
        Decision::Deny
    } else {
        Decision::Allow
    };
    let answered = engine.answer_question(question.id(), decision);
    let effect = answered.map_err(anyhow::Error::msg)?;
    if args.json {
        let line = json!({"id": question.id(), "decision": decision, "effect": effect.as_str()});
        return terminal.json(&line);
    }
    let agent = &question.record.agent;
    terminal.line(&match (effect, decision) {
        (AnswerEffect::Delivered, Decision::Allow) => format!("Allowed; {agent} continues."),
        (AnswerEffect::Delivered, _) => format!("Denied; {agent} got the answer."),
        (AnswerEffect::PassesNextTime, _) => {
            format!("{agent} no longer waits. Ask it to try again: the same call then passes once.")
        }
        (AnswerEffect::StaysDenied, _) => format!("{agent} no longer waits; it got a deny."),
    });
    Ok(CommandStatus::Success)
}

fn list(
    args: &ApproveArgs,
    engine: &Engine,
    questions: &[Question],
    terminal: &Terminal,
) -> anyhow::Result<CommandStatus> {
    let rows = questions.iter().filter_map(|question| {
        let summary = EventRow::from_record(&question.record)?.summary;
        Some((question, summary))
    });
    if args.json {
        let lines: Vec<_> = rows
            .map(|(question, summary)| {
                let seconds_left = question.time_left().as_secs();
                json!({"id": summary.id, "agent": summary.agent, "event": summary.event,
                    "tool": summary.tool, "detail": call_text(&question.record),
                    "is_rewritten": question.is_rewritten, "reason": summary.reason,
                    "cwd": summary.cwd, "seconds_left": seconds_left})
            })
            .collect();
        return terminal.json(&lines);
    }
    if questions.is_empty() {
        terminal.line("No call waits for an answer.");
        if engine.approval_hold().is_zero() {
            terminal.note("Calls are held only with `approvals: {hold: 45}` in config.yaml.");
        }
        return Ok(CommandStatus::Success);
    }
    for (question, summary) in rows {
        let left = match question.time_left().as_secs() {
            0 => "denied already; an answer counts for the next try".to_owned(),
            seconds => format!("waits {seconds} s more"),
        };
        let tool = summary.tool.as_deref().unwrap_or(&summary.event);
        terminal.line(&format!("{}  {} {left}", summary.id, summary.agent));
        // In full: what is cut off would be approved unseen.
        let detail = call_text(&question.record);
        let mut lines = detail.lines();
        let first = lines.next().unwrap_or_default();
        terminal.line(&format!("  {} {}", visible(tool), visible(first)));
        for line in lines {
            terminal.line(&format!("    {}", visible(line)));
        }
        if question.is_rewritten {
            terminal.line("  A hook has changed this call; this is what will run.");
        }
        if let Some(reason) = &summary.reason {
            terminal.line(&format!("  {}", visible(reason)));
        }
    }
    Ok(CommandStatus::Success)
}
