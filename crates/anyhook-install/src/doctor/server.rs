//! Asks an agent's own program which of its hooks it trusts.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhook_agents::Adapter;
use serde_json::{Value, json};

use crate::command;
use crate::found::Found;
use crate::target::Target;
use crate::trust::Trust;
use crate::vendor::{self, LedgerKind};
use crate::world::World;

/// How long the program may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// File and state of each entry of ours, as the program lists them.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    entries: Vec<(PathBuf, String)>,
}

impl Asked {
    pub fn of(&self, target: &Target) -> Trust {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let own = real(&target.path);
        let mine = self.entries.iter().filter(|(path, _)| real(path) == own);
        let states: Vec<&str> = mine.map(|(_, state)| state.as_str()).collect();
        let name = &target.adapter.spec.name;
        let count = |wanted: &str| states.iter().filter(|state| **state == wanted).count();
        let (untrusted, modified) = (count("untrusted"), count("modified"));
        if states.is_empty() {
            Trust::Missing(format!(
                "{name} itself does not list the entries: it does not read this file here"
            ))
        } else if untrusted + modified > 0 {
            Trust::Missing(format!(
                "{name} itself says: {untrusted} entries are not reviewed, {modified} changed since"
            ))
        } else {
            Trust::Given
        }
    }
}

/// `None` when there is nothing to ask, or no answer.
pub fn ask(world: &World, adapter: &'static Adapter, bridged: &[&Target]) -> Option<Asked> {
    let kind = vendor::ledger(&adapter.spec.id).map(|ledger| ledger.kind);
    if bridged.is_empty() || kind != Some(LedgerKind::HashedEntries) {
        return None;
    }
    let program = Found::look(world, adapter).program?;
    let mut child = Command::new(program)
        .arg("app-server")
        .current_dir(&world.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let answer = talk(&mut child, &world.root);
    let _gone_already = child.kill();
    let _reaped = child.wait();
    let answer = answer?;
    let hooks = answer.pointer("/result/data")?.as_array()?.iter();
    let entries = hooks
        .filter_map(|folder| folder.get("hooks")?.as_array())
        .flatten()
        .filter_map(|hook| {
            let text = |key: &str| hook.get(key).and_then(Value::as_str);
            command::ours(text("command")?)?;
            Some((
                PathBuf::from(text("sourcePath")?),
                text("trustStatus")?.to_owned(),
            ))
        })
        .collect();
    Some(Asked { entries })
}

fn talk(child: &mut Child, root: &Path) -> Option<Value> {
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
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.checked_duration_since(Instant::now())?;
        let line = receiver.recv_timeout(left).ok()?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        // It ends when its input does, so that is kept open until here.
        if message.get("id") == Some(&json!(2)) {
            return Some(message);
        }
    }
}
