//! The smoke checks: each client runs, and its own hooks work, without anyhook. One session covers them all, to
//! save time.

use crate::client::Client;
use crate::error::Result;
use crate::hook::Rule;
use crate::placeholder::Placeholders;
use crate::report::{Check, Verdict};
use crate::scenario::{Scenario, Step};
use crate::script::Purpose;
use crate::session::{Harness, Outcome, Session};

const ALLOWED_FILE: &str = "allowed.txt";
const WRITTEN_FILE: &str = "written.txt";
const SUBAGENT_FILE: &str = "subagent.txt";
const SUBAGENT_PROMPT: &str = "PROMPT-4712 run the command";
const DENIED_FILE: &str = "denied.txt";
const DENY_REASON: &str = "REASON-4711 this command is not for today";

/// Runs the session and its checks.
pub fn smoke(harness: &Harness, client: &Client) -> Result<(Vec<Check>, Outcome)> {
    let hooks = &client.setup.hooks;
    let mut placeholders = Placeholders::default();
    placeholders.set("reason", DENY_REASON);
    let shell = |file: &str| Step::Shell {
        command: format!("echo hello > {file}"),
    };
    let mut steps = vec![
        shell(ALLOWED_FILE),
        Step::Write {
            path: WRITTEN_FILE.to_owned(),
            content: "good morning\n".to_owned(),
        },
        Step::Read {
            path: WRITTEN_FILE.to_owned(),
        },
        Step::Edit {
            path: WRITTEN_FILE.to_owned(),
            old: "good morning".to_owned(),
            new: "good evening".to_owned(),
        },
    ];
    if client.setup.tools.rows.contains_key("subagent") {
        steps.push(Step::Subagent {
            prompt: SUBAGENT_PROMPT.to_owned(),
        });
    }
    // The deny comes last: in some clients it ends the whole run.
    steps.extend([shell(DENIED_FILE), Step::Say("Done.".to_owned())]);
    let subagent_steps = [shell(SUBAGENT_FILE), Step::Say("Done.".to_owned())];
    let scenario = Scenario::new(steps).thread(SUBAGENT_PROMPT, subagent_steps);
    let outcome = Session::new(harness, client)
        .scenario(scenario)
        .native_hooks()
        .rule(
            Rule::on(&hooks.pre_tool)
                .contains(DENIED_FILE)
                .stdout(placeholders.fill_value(&hooks.deny)),
        )
        .run()?;
    let checks = vec![
        Check::new("own hooks: session", session(&outcome, client)),
        Check::new("own hooks: file tools", file_tools(&outcome)),
        Check::new("own hooks: sub-agent", subagent(&outcome, client)),
        Check::new("own hooks: before tool", hook_fired(&outcome, client)),
        Check::new("own hooks: deny", denied(&outcome, client)),
        Check::new("own hooks: deny reason", reason(&outcome, client)),
    ];
    Ok((checks, outcome))
}

fn session(outcome: &Outcome, client: &Client) -> Verdict {
    let unoffered = outcome
        .requests
        .iter()
        .find(|request| request.purpose == Purpose::Unoffered);
    if let Some(request) = unoffered {
        return Verdict::failed(request.reply.clone().unwrap_or_default());
    }
    if outcome.result.timed_out {
        return Verdict::failed("it did not end in time");
    }
    if outcome.result.exit != Some(0) {
        let errors = outcome.stderr.lines().rev().take(5).collect::<Vec<_>>();
        return Verdict::failed(format!(
            "exit {:?}: {}",
            outcome.result.exit,
            errors.join(" / ")
        ));
    }
    let absent = client.setup.lacks.values();
    for word in absent.filter_map(|lack| lack.unoffered.as_ref()) {
        let offered = outcome.turns().filter_map(|request| {
            let protocol = request.protocol?;
            Some(protocol.parse_request(&request.path, &request.body).tools)
        });
        if let Some(tool) = offered.flatten().find(|tool| tool.contains(word)) {
            return Verdict::failed(format!("it offers `{tool}`: see `lacks` in client.toml"));
        }
    }
    match outcome.file(ALLOWED_FILE) {
        Some(_) => Verdict::Passed,
        None => Verdict::failed("the first command did not run"),
    }
}

fn file_tools(outcome: &Outcome) -> Verdict {
    match outcome.file(WRITTEN_FILE).as_deref() {
        Some("good evening\n") => Verdict::Passed,
        other => Verdict::failed(format!("`{WRITTEN_FILE}` contains {other:?}")),
    }
}

fn subagent(outcome: &Outcome, client: &Client) -> Verdict {
    if let Some(lack) = client.setup.lacks.get("subagent") {
        return Verdict::Cannot(lack.why.clone());
    }
    match outcome.file(SUBAGENT_FILE) {
        Some(_) => Verdict::Passed,
        None => Verdict::failed("its command did not run"),
    }
}

fn hook_fired(outcome: &Outcome, client: &Client) -> Verdict {
    let event = &client.setup.hooks.pre_tool;
    match outcome
        .hook_calls(event)
        .find(|call| call.stdin.contains(ALLOWED_FILE))
    {
        None => Verdict::failed(format!("`{event}` did not arrive for the first command")),
        Some(call) if call.payload().is_none() => {
            Verdict::failed(format!("`{event}` is not JSON: {}", call.stdin))
        }
        Some(_) => Verdict::Passed,
    }
}

fn denied(outcome: &Outcome, client: &Client) -> Verdict {
    let event = &client.setup.hooks.pre_tool;
    if !outcome
        .hook_calls(event)
        .any(|call| call.stdin.contains(DENIED_FILE))
    {
        return Verdict::failed("the hook was not called");
    }
    match outcome.file(DENIED_FILE) {
        Some(_) => Verdict::failed("the command ran"),
        None => Verdict::Passed,
    }
}

fn reason(outcome: &Outcome, client: &Client) -> Verdict {
    match (
        outcome.reached_model(DENY_REASON),
        &client.setup.hooks.deny_reason_lost,
    ) {
        (Some(_), None) => Verdict::Passed,
        (None, Some(why)) => Verdict::Cannot(why.clone()),
        (None, None) => Verdict::failed("no request contained the reason"),
        (Some(_), Some(_)) => {
            Verdict::failed("it arrives now: remove `deny_reason_lost` from client.toml")
        }
    }
}
