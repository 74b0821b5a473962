//! Values that the shell completes: agents, events, tools, targets of a conversion and
//! ids of recorded events.
//!
//! They are attached to arguments by name, in one place, so that a new command has
//! them without a line of its own.

use std::ffi::OsStr;

use anyhook_agents::matrix::clients;
use anyhook_model::registry;
use anyhook_run::config::discover::Dirs;
use anyhook_run::record::journal::{CURRENT_FILE_NAME, Journal};
use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde_json::Value;

/// Newest events whose ids are offered.
const MAX_RECORDED_IDS: usize = 20;

/// The end of the journal that is read for them.
const MAX_JOURNAL_BYTES: usize = 512 * 1024;

/// A command with completers for its arguments and those of its subcommands.
pub(crate) fn with_values(command: Command) -> Command {
    command.mut_args(with_value).mut_subcommands(with_values)
}

fn with_value(argument: Arg) -> Arg {
    let completer = match argument.get_id().as_str() {
        "agent" | "agents" | "from" => ArgValueCompleter::new(agents),
        "to" => ArgValueCompleter::new(targets),
        "event" => ArgValueCompleter::new(events),
        "tool" => ArgValueCompleter::new(tools),
        "id" => ArgValueCompleter::new(recorded_ids),
        _ => return argument,
    };
    argument.add(completer)
}

fn fitting(
    current: &OsStr,
    values: impl IntoIterator<Item = (String, String)>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    values
        .into_iter()
        .filter(|(value, _)| value.starts_with(&*current))
        .map(|(value, about)| CompletionCandidate::new(value).help(Some(about.into())))
        .collect()
}

fn agents(current: &OsStr) -> Vec<CompletionCandidate> {
    let agents = clients().map(|one| (one.spec.id.to_string(), one.spec.name.to_string()));
    fitting(current, agents)
}

fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let others = [
        ("all", "every agent, as a table"),
        ("canonical", "a manifest"),
    ];
    let others = others.map(|(value, about)| (value.to_owned(), about.to_owned()));
    let mut found = agents(current);
    found.extend(fitting(current, others));
    found
}

fn events(current: &OsStr) -> Vec<CompletionCandidate> {
    let events = registry::EVENTS.iter();
    fitting(
        current,
        events.map(|one| (one.name.to_owned(), one.description.to_owned())),
    )
}

fn tools(current: &OsStr) -> Vec<CompletionCandidate> {
    let tools = registry::TOOLS.iter();
    fitting(
        current,
        tools.map(|one| (one.name.to_owned(), one.description.to_owned())),
    )
}

/// The newest events of the journal.
fn recorded_ids(current: &OsStr) -> Vec<CompletionCandidate> {
    let folder = Journal::new(&Dirs::from_env().state).folder().to_owned();
    let Ok(bytes) = std::fs::read(folder.join(CURRENT_FILE_NAME)) else {
        return Vec::new();
    };
    let start = bytes.len().saturating_sub(MAX_JOURNAL_BYTES);
    let lines = bytes
        .get(start..)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n');
    let records = lines
        .rev()
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let text = |record: &Value, at: &str| {
        let found = record.pointer(at).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let ids = records.take(MAX_RECORDED_IDS).map(|record| {
        let about = [
            text(&record, "/time"),
            text(&record, "/agent"),
            text(&record, "/decision"),
            text(&record, "/event/data/tool_name"),
        ];
        (text(&record, "/id"), about.join(" "))
    });
    fitting(current, ids.collect::<Vec<_>>())
}
