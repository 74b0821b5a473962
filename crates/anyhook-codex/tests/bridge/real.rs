//! Against the real thing: `codex app-server`, offline, with a model on loopback
//! that wants to run a command and then to write a file.
//!
//! `ANYHOOK_CODEX` names the binary (of `@openai/codex`); without it these tests
//! are listed as ignored.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhook_codex::{AttachOptions, AttachStatus, Endpoint, Proxy, ProxyOptions, attach};
use anyhook_model::HookResponse;
use anyhook_testkit::codex::{
    TempFolder, opening_requests, read_json_lines, set_codex_env, turn_request, write_codex_home,
};
use anyhook_testkit::{TEST_TIMEOUT, wait_for};
use futures_util::{SinkExt, StreamExt};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::hooks::Script;
use crate::trial;

struct Home {
    scratch: TempFolder,
    codex: PathBuf,
}

impl Home {
    fn new(codex: &Path) -> Self {
        let scratch = TempFolder::new();
        for dir in ["home", "work"] {
            std::fs::create_dir(scratch.path(dir)).unwrap();
        }
        write_codex_home(&scratch.path("home"));
        let codex = codex.to_owned();
        Self { scratch, codex }
    }

    fn server(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.codex);
        command.args(["app-server"]).args(more);
        set_codex_env(&mut command, &self.scratch.path("home"));
        command
            .current_dir(self.scratch.path("work"))
            .stderr(Stdio::null());
        command
    }

    fn script(&self, response: &HookResponse) -> Script {
        Script {
            response: response.clone(),
            log: Some(self.scratch.path("events")),
            ..Script::default()
        }
    }

    /// What the hooks heard and what became of it.
    fn check(&self, allowed: bool, late: bool) {
        let events = read_json_lines(&self.scratch.path("events"));
        let with = |name: &str, tool: &str| {
            let found = events
                .iter()
                .filter(|event| event["event"] == name && event["data"]["tool_name"] == tool);
            found.cloned().collect::<Vec<_>>()
        };
        let [command] = with("before_tool_execute", "shell").try_into().unwrap();
        assert_eq!(
            command["data"]["tool_input"]["command"],
            "touch approved.txt"
        );
        assert_eq!(command["data"]["reason"], "May I?");
        let [patch] = with("before_tool_execute", "file_edit").try_into().unwrap();
        assert_eq!(
            patch["data"]["tool_input"]["files"][0]["content"],
            "written\n"
        );
        let status = if allowed { "success" } else { "error" };
        for tool in ["shell", "file_edit"] {
            // Right after a join the server may leave out the end of an item.
            if late && tool == "shell" {
                continue;
            }
            let [after] = with("after_tool_execute", tool).try_into().unwrap();
            assert_eq!(after["data"]["status"], status, "{after}");
        }
        let last = events
            .iter()
            .find(|event| event["event"] == "agent_stop")
            .unwrap();
        assert_eq!(
            last["data"]["last_message"], "done",
            "the turn goes on to its end"
        );
        assert_eq!(self.scratch.path("work/approved.txt").exists(), allowed);
        assert_eq!(self.scratch.path("work/out.txt").exists(), allowed);
    }
}

fn through_the_proxy(codex: &Path, response: &HookResponse, allowed: bool) {
    let home = Home::new(codex);
    let (from_client, mut client) = std::io::pipe().unwrap();
    let (server, to_client) = std::io::pipe().unwrap();
    let proxy = Proxy::new(
        home.server(&[]),
        Arc::new(home.script(response)),
        ProxyOptions::default(),
    );
    let proxy = std::thread::spawn(move || proxy.run(from_client, to_client).unwrap());
    for request in opening_requests(&home.scratch.path("work")) {
        writeln!(client, "{request}").unwrap();
    }
    for line in BufReader::new(server).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(
            message["method"] != "item/commandExecution/requestApproval",
            "the hooks answer"
        );
        if message["id"] == 2 {
            writeln!(
                client,
                "{}",
                turn_request(&message["result"]["thread"]["id"])
            )
            .unwrap();
        }
        if message["method"] == "turn/completed" {
            break;
        }
    }
    drop(client);
    assert_eq!(proxy.join().unwrap().exit_code, 0);
    home.check(allowed, false);
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// `late`: the hooks come when the server already waits for an answer.
async fn attached(codex: &Path, response: &HookResponse, allowed: bool, late: bool) {
    use std::os::unix::process::CommandExt;
    let home = Home::new(codex);
    let socket = home.scratch.path("app.sock");
    let url = format!("unix://{}", socket.display());
    let mut command = home.server(&["--listen", &url]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    let _server = Server(command.spawn().unwrap());
    wait_for("the socket", || socket.exists().then_some(()));

    let endpoint: Endpoint = url.parse().unwrap();
    let cancel = CancellationToken::new();
    let (sender, mut statuses) = tokio::sync::mpsc::unbounded_channel();
    let start = || {
        let script = Arc::new(home.script(response));
        let sender = sender.clone();
        let run = attach(
            AttachOptions::new(endpoint.clone()),
            script,
            cancel.clone(),
            move |status| {
                if matches!(status, AttachStatus::Attached { .. }) {
                    let _ = sender.send(());
                }
            },
        );
        tokio::spawn(run)
    };
    let mut attached = None;
    if !late {
        attached = Some(start());
        timeout(TEST_TIMEOUT, statuses.recv()).await.unwrap();
    }

    let stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let (mut driver, _) = tokio_tungstenite::client_async("ws://localhost/", stream)
        .await
        .unwrap();
    for request in opening_requests(&home.scratch.path("work")) {
        driver
            .send(Message::text(request.to_string()))
            .await
            .unwrap();
    }
    loop {
        let frame = timeout(TEST_TIMEOUT, driver.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let Message::Text(text) = frame else {
            continue;
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["id"] == 2 && message["method"].is_null() {
            let turn = turn_request(&message["result"]["thread"]["id"]);
            driver.send(Message::text(turn.to_string())).await.unwrap();
        }
        // The driver is asked too, and leaves it to the hooks.
        if message["method"] == "item/commandExecution/requestApproval" && attached.is_none() {
            attached = Some(start());
        }
        if message["method"] == "turn/completed" {
            break;
        }
    }
    let log = home.scratch.path("events");
    let heard = || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .contains("agent_stop")
    };
    timeout(TEST_TIMEOUT, async {
        while !heard() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    cancel.cancel();
    assert_eq!(attached.unwrap().await.unwrap().unwrap().connections, 1);
    home.check(allowed, late);
}

pub(crate) fn trials() -> Vec<Trial> {
    let codex = std::env::var_os("ANYHOOK_CODEX").map(PathBuf::from);
    let allow: HookResponse = serde_json::from_value(json!({"decision": "allow"})).unwrap();
    let deny = HookResponse::deny("no");
    let mut trials = Vec::new();
    for (name, response, allowed) in [("allow", allow, true), ("deny", deny, false)] {
        let (binary, reply) = (codex.clone().unwrap_or_default(), response.clone());
        trials.push(trial(format!("real::proxy::{name}"), move || {
            through_the_proxy(&binary, &reply, allowed);
        }));
        for (kind, late) in [("early", false), ("late", true)] {
            let (binary, reply) = (codex.clone().unwrap_or_default(), response.clone());
            trials.push(trial(format!("real::attach::{kind}::{name}"), move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                runtime
                    .unwrap()
                    .block_on(attached(&binary, &reply, allowed, late));
            }));
        }
    }
    let missing = codex.is_none();
    trials
        .into_iter()
        .map(|trial| trial.with_ignored_flag(missing))
        .collect()
}
