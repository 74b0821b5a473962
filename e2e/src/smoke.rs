//! The smoke checks: the runner drives each client, and each client's own hooks hold, with no anyhook in between.
//! One session answers all four, so that the clock stays short.

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
const DENIED: &str = "denied.txt";
const REASON: &str = "REASON-4711 this command is not for today";

/// Runs the session and judges it.
pub fn smoke(lab: &Lab, client: &Client) -> Result<(Vec<Check>, Outcome)> {
    let hooks = &client.drive.hooks;
    let mut fill = Fill::default();
    fill.set("reason", REASON);
    // The deny comes last: there are clients whose whole run it ends.
    let scenario = Scenario::new([
        Step::Shell {
            command: format!("echo hello > {ALLOWED}"),
        },
        Step::Write {
            path: WRITTEN.to_owned(),
            content: "written by the fake model\n".to_owned(),
        },
        Step::Shell {
            command: format!("echo hello > {DENIED}"),
        },
        Step::Say("Done.".to_owned()),
    ]);
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
        Check::new("session", session(&outcome)),
        Check::new("pre-tool hook", hook_fired(&outcome, client)),
        Check::new("deny", denied(&outcome, client)),
        Check::new("reason to model", reason(&outcome, client)),
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
    for name in [ALLOWED, WRITTEN] {
        if outcome.file(name).is_none() {
            return Verdict::failed(format!("`{name}` was not made"));
        }
    }
    Verdict::Passed
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
