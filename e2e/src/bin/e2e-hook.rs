//! `e2e-hook FOLDER EVENT [ARGS…]`: records its call in FOLDER and answers by the rules in that folder.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use std::{env, process};

use anyhook_e2e::hook::{CALLS_FILE, HookCall, RULES_FILE, Rule};
use serde_json::Value;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let folder = args.next().ok_or("usage: e2e-hook FOLDER EVENT")?;
    let folder = Path::new(&folder);
    let event = args.next().ok_or("usage: e2e-hook FOLDER EVENT")?;
    let mut stdin = Vec::new();
    io::stdin().read_to_end(&mut stdin)?;
    let call = HookCall {
        event,
        args: args.collect(),
        cwd: env::current_dir()?.to_string_lossy().into_owned(),
        stdin: String::from_utf8_lossy(&stdin).into_owned(),
        env: env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect(),
    };
    // One write to an appending file: calls that run at the same time do not mix their lines.
    let mut line = serde_json::to_vec(&call)?;
    line.push(b'\n');
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(CALLS_FILE))?
        .write_all(&line)?;

    let rules: Vec<Rule> = match fs::read(folder.join(RULES_FILE)) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(_) => Vec::new(),
    };
    let matching_rule = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.matches(&call.event, &call.stdin))
        .find(|(index, rule)| !rule.once || claim_rule(folder, *index));
    match matching_rule {
        Some((_, rule)) => answer(rule),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Whether this call is the first to use this rule: only one process can create the file.
fn claim_rule(folder: &Path, index: usize) -> bool {
    File::create_new(folder.join(format!("taken-{index}"))).is_ok()
}

fn answer(rule: &Rule) -> Result<ExitCode, Box<dyn Error>> {
    thread::sleep(Duration::from_millis(rule.sleep_ms));
    match &rule.stdout {
        Some(Value::String(text)) => io::stdout().write_all(text.as_bytes())?,
        Some(value) => io::stdout().write_all(value.to_string().as_bytes())?,
        None => {}
    }
    io::stdout().flush()?;
    if let Some(text) = &rule.stderr {
        io::stderr().write_all(text.as_bytes())?;
    }
    if rule.abort {
        process::abort();
    }
    Ok(ExitCode::from(u8::try_from(rule.exit)?))
}
