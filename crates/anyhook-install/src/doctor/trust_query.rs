//! Queries an agent's own program for the hooks that it trusts.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhook_agents::Adapter;
use serde_json::{Value, json};

use crate::agent_trust::AgentTrust;
use crate::command::BridgeCommand;
use crate::detect::DetectedAgent;
use crate::machine::{Machine, real_path};
use crate::target::Target;

const TRUST_QUERY_TIMEOUT: Duration = Duration::from_secs(15);

/// File and trust status of a bridge entry, as the program lists it.
type ListedEntry = (PathBuf, String);

pub(super) fn listed_trust(listed: &[ListedEntry], target: &Target) -> AgentTrust {
    let own_path = real_path(&target.path);
    let states: Vec<&str> = listed
        .iter()
        .filter(|(path, _)| real_path(path) == own_path)
        .map(|(_, state)| state.as_str())
        .collect();
    let name = &target.adapter.spec.name;
    let count = |wanted: &str| states.iter().filter(|state| **state == wanted).count();
    let (untrusted, modified) = (count("untrusted"), count("modified"));
    if states.is_empty() {
        AgentTrust::Missing(format!(
            "{name} does not list the entries, so it does not read this file here"
        ))
    } else if untrusted + modified > 0 {
        AgentTrust::Missing(format!(
            "{name} reports {untrusted} entries as not reviewed and {modified} as changed since"
        ))
    } else {
        AgentTrust::Given
    }
}

/// `None` if the agent cannot list its hooks, or does not answer.
pub(super) fn list_hooks(
    machine: &Machine,
    adapter: &'static Adapter,
    bridged: &[&Target],
) -> Option<Vec<ListedEntry>> {
    let arguments = &adapter.spec.ledger.as_ref()?.list_hooks;
    if bridged.is_empty() || arguments.is_empty() {
        return None;
    }
    let program = DetectedAgent::detect(machine, adapter).program?;
    let mut child = Command::new(program)
        .args(arguments.iter().map(AsRef::<str>::as_ref))
        .current_dir(&machine.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let answer = request_hook_list(&mut child, &machine.root);
    let _gone_already = child.kill();
    let _reaped = child.wait();
    let answer = answer?;
    let folders = answer.pointer("/result/data")?.as_array()?.iter();
    let hooks = folders
        .filter_map(|folder| folder.get("hooks")?.as_array())
        .flatten()
        .filter_map(|hook| {
            let text = |key: &str| hook.get(key).and_then(Value::as_str);
            BridgeCommand::parse(text("command")?)?;
            let path = PathBuf::from(text("sourcePath")?);
            Some((path, text("trustStatus")?.to_owned()))
        });
    Some(hooks.collect())
}

fn request_hook_list(child: &mut Child, root: &Path) -> Option<Value> {
    let mut stdin = child.stdin.take()?;
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let info =
        json!({"name": "anyhook", "title": "anyhook doctor", "version": env!("CARGO_PKG_VERSION")});
    let messages = [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": info, "capabilities": null}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [root]}}),
    ];
    for message in messages {
        writeln!(stdin, "{message}").ok()?;
    }
    stdin.flush().ok()?;
    let deadline = Instant::now() + TRUST_QUERY_TIMEOUT;
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        let line = receiver.recv_timeout(left).ok()?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        // The program exits when its input is closed, so `stdin` lives until here.
        if message.get("id") == Some(&json!(2)) {
            return Some(message);
        }
    }
}
