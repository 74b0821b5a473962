//! The actors: the proxy under test, and the servers behind it.

use std::io::{stdin, stdout};
use std::process::{Command, exit};
use std::sync::Arc;
use std::time::Duration;

use anyhook_codex::{Proxy, ProxyOptions};

use crate::hooks::Script;

pub(crate) fn act(args: &[String]) -> ! {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["proxy", script, hold_ms, "--", program, rest @ ..] => {
            proxy(script, hold_ms, program, rest)
        }
        server => anyhook_testkit::codex::run_fake_server(server),
    }
}

fn proxy(script: &str, hold_ms: &str, program: &str, rest: &[&str]) -> ! {
    let script: Script = serde_json::from_str(script).unwrap();
    let mut command = Command::new(program);
    command.args(rest);
    let options = ProxyOptions {
        hold_at_most: hold_ms.parse().ok().map(Duration::from_millis),
        grace: Duration::from_millis(500),
        drain: Duration::from_secs(2),
    };
    let ended = Proxy::new(command, Arc::new(script), options).run(stdin(), stdout());
    exit(ended.unwrap().exit_code);
}
