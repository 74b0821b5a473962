//! The smoke checks: the runner drives each client, and each client's own hooks hold, with no anyhook in between.
//! One session answers them all, so that the clock stays short.

use crate::client::Client;
use crate::error::Result;
use crate::hook::Rule;
use crate::placeholder::Fill;
use crate::report::{Check, Verdict};
use crate::scenario::{Scenario, Step};
use crate::script::Purpose;
use crate::session::{Lab, Outcome, Session};

const ALLOWED: &str = "allowed.txt";
const WRITTEN: &str = "written.txt";
const BY_SUBAGENT: &str = "subagent.txt";
const SUBAGENT_PROMPT: &str = "PROMPT-4712 run the command";
const DENIED: &str = "denied.txt";
const REASON: &str = "REASON-4711 this command is not for today";

/// Runs the session and judges it.
pub fn smoke(lab: &Lab, client: &Client) -> Result<(Vec<Check>, Outcome)> {
    let hooks = &client.drive.hooks;
    let mut fill = Fill::default();
    fill.set("reason", REASON);
    let shell = |file: &str| Step::Shell {
        command: format!("echo hello > {file}"),
    };
    let mut steps = vec![
        shell(ALLOWED),
        Step::Write {
            path: WRITTEN.to_owned(),
            content: "good morning\n".to_owned(),
        },
        Step::Read {
            path: WRITTEN.to_owned(),
        },
        Step::Edit {
            path: WRITTEN.to_owned(),
            old: "good morning".to_owned(),
            new: "good evening".to_owned(),
        },
    ];
    if client.drive.no_subagent.is_none() {
        steps.push(Step::Subagent {
            prompt: SUBAGENT_PROMPT.to_owned(),
        });
    }
    // The deny comes last: there are clients whose whole run it ends.
    steps.extend([shell(DENIED), Step::Say("Done.".to_owned())]);
    let subagent_steps = [shell(BY_SUBAGENT), Step::Say("Done.".to_owned())];
    let scenario = Scenario::new(steps).thread(SUBAGENT_PROMPT, subagent_steps);
    let outcome = Session::new(lab, client)
        .scenario(scenario)
        .native_hooks()
        .rule(
            Rule::on(&hooks.pre_tool)
                .contains(DENIED)
                .stdout(fill.value(&hooks.deny)),
        )
        .run()?;
    let checks = vec![
        Check::new("own hooks: session", session(&outcome)),
        Check::new("own hooks: file tools", file_tools(&outcome)),
        Check::new("own hooks: sub-agent", subagent(&outcome, client)),
        Check::new("own hooks: before tool", hook_fired(&outcome, client)),
        Check::new("own hooks: deny", denied(&outcome, client)),
        Check::new("own hooks: deny reason", reason(&outcome, client)),
    ];
    Ok((checks, outcome))
}

fn session(outcome: &Outcome) -> Verdict {
    let unoffered = outcome
        .requests
        .iter()
        .find(|request| request.purpose == Purpose::Unoffered);
    if let Some(request) = unoffered {
        return Verdict::failed(request.reply.clone().unwrap_or_default());
    }
    if outcome.ending.timed_out {
        return Verdict::failed("it did not end in time");
    }
    if outcome.ending.exit != Some(0) {
        let told = outcome.stderr.lines().rev().take(5).collect::<Vec<_>>();
        return Verdict::failed(format!(
            "exit {:?}: {}",
            outcome.ending.exit,
            told.join(" / ")
        ));
    }
    match outcome.file(ALLOWED) {
        Some(_) => Verdict::Passed,
        None => Verdict::failed("the first command did not run"),
    }
}

fn file_tools(outcome: &Outcome) -> Verdict {
    match outcome.file(WRITTEN).as_deref() {
        Some("good evening\n") => Verdict::Passed,
        other => Verdict::failed(format!("`{WRITTEN}` holds {other:?}")),
    }
}

fn subagent(outcome: &Outcome, client: &Client) -> Verdict {
    if let Some(why) = &client.drive.no_subagent {
        return Verdict::Cannot(why.clone());
    }
    match outcome.file(BY_SUBAGENT) {
        Some(_) => Verdict::Passed,
        None => Verdict::failed("its command did not run"),
    }
}

fn hook_fired(outcome: &Outcome, client: &Client) -> Verdict {
    let event = &client.drive.hooks.pre_tool;
    match outcome
        .hook_calls(event)
        .find(|call| call.stdin.contains(ALLOWED))
    {
        None => Verdict::failed(format!("`{event}` did not arrive for the first command")),
        Some(call) if call.payload().is_none() => {
            Verdict::failed(format!("`{event}` is not JSON: {}", call.stdin))
        }
        Some(_) => Verdict::Passed,
    }
}

fn denied(outcome: &Outcome, client: &Client) -> Verdict {
    let event = &client.drive.hooks.pre_tool;
    if !outcome
        .hook_calls(event)
        .any(|call| call.stdin.contains(DENIED))
    {
        return Verdict::failed("the hook was not asked");
    }
    match outcome.file(DENIED) {
        Some(_) => Verdict::failed("the command ran"),
        None => Verdict::Passed,
    }
}

fn reason(outcome: &Outcome, client: &Client) -> Verdict {
    match (
        outcome.reached_model(REASON),
        &client.drive.hooks.deny_reason_lost,
    ) {
        (Some(_), None) => Verdict::Passed,
        (None, Some(why)) => Verdict::Cannot(why.clone()),
        (None, None) => Verdict::failed("no request held the reason"),
        (Some(_), Some(_)) => {
            Verdict::failed("it arrived now: take `deny_reason_lost` out of client.toml")
        }
    }
}
