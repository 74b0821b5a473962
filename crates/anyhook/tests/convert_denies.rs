//! `degradation: block` really denies: what was converted is run as the agent
//! runs it, and a model of the agent that shares nothing with the tables says
//! what comes of it.

#![cfg(unix)] // its clients are shells
#![cfg(test)]

use std::collections::BTreeSet;
use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Blocking, ConfigShape, Scope};
use anyhook_model::HookEvent;
use anyhook_testkit::reference_model::{Action, react};
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

const HANDLER: &str = "./check it's.sh \"$CLAUDE_PROJECT_DIR\" // %s \\n";

/// A hook that needs the capability, and whose author wants a block without it.
fn hook(capability: &str, event: &str) -> Value {
    let mut handler = json!({"type": "command", "command": HANDLER});
    match capability {
        "llm_evaluated" => handler = json!({"type": "agent", "prompt": "Is it \"safe\"?"}),
        "http_handler" => handler = json!({"type": "http", "url": "https://example.com//hook"}),
        "async_execution" => handler["async"] = json!(true),
        "platform_commands" => handler["platform"] = json!({"windows": "check.cmd"}),
        "custom_env" => handler["env"] = json!({"A": "1"}),
        "configurable_cwd" => handler["cwd"] = json!("sub"),
        _ => {}
    }
    let mut hook = json!({
        "event": event,
        "blocking": true,
        "handler": handler,
        "capabilities": [capability],
        "degradation": {capability: "block"},
    });
    if event == "before_tool_execute" {
        hook["matcher"] = json!("shell");
    }
    hook
}

fn call(adapter: &Adapter, event: &str, native: &str, tool: &str) -> Value {
    let mut canonical = HookEvent {
        event: event.to_owned(),
        source: "canonical".to_owned(),
        session_id: Some("s".into()),
        cwd: Some("/w".into()),
        ..HookEvent::default()
    };
    if event == "before_tool_execute" {
        let input = match tool {
            "shell" => json!({"command": "rm -rf /"}),
            _ => json!({"path": "/w/a.txt", "content": "x"}),
        };
        canonical.data = json!({"tool_name": tool, "tool_input": input})
            .as_object()
            .cloned()
            .unwrap();
    } else {
        canonical.data = json!({"prompt": "go"}).as_object().cloned().unwrap();
    }
    adapter.encode(&canonical, Some(native)).unwrap().payload
}

/// Commands of a config: every text that holds the reason.
fn commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains("BLOCKED") => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| commands(item, found)),
        Value::Object(map) => map.values().for_each(|item| commands(item, found)),
        _ => {}
    }
}

/// The converted hook's answer to one call. `None`: the means to run it are missing.
fn answer(
    scratch: &Scratch,
    adapter: &Adapter,
    native: &str,
    payload: &Value,
) -> Option<ProcessOutput> {
    let file = adapter
        .spec
        .files
        .iter()
        .find(|file| file.write && file.variant.is_none())
        .unwrap();
    let path = match file.path.strip_prefix("~/") {
        Some(path) => scratch.home().join(path),
        None => scratch.project().join(file.path.as_ref()),
    };
    let stdin = payload.to_string();
    match adapter.spec.config.shape {
        ConfigShape::Scripts => {
            let script = path.join(native);
            Some(scratch.command(script).run([""; 0], &stdin).unwrap())
        }
        ConfigShape::Plugin => plugin(scratch, &path, native, payload),
        _ => {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut found = Vec::new();
            let document = anyhook_edit::get(&text, file.format.unwrap(), &[]).unwrap();
            commands(&document.unwrap(), &mut found);
            assert_eq!(found.len(), 1, "{}: {text}", adapter.spec.id);
            let ran = scratch.command("sh").run(["-c", &found[0]], &stdin);
            Some(ran.unwrap())
        }
    }
}

/// A plugin is a program that the agent loads: a thrown error is its refusal, or what
/// a function that it registers returns.
fn plugin(scratch: &Scratch, path: &Path, native: &str, payload: &Value) -> Option<ProcessOutput> {
    let driver = r"
        const [path, native, payload] = process.argv.slice(2);
        const plugin = Object.values(await import(path))[0];
        const registered = {};
        const on = (name, handler) => (registered[name] = handler);
        const hooks = await plugin({ directory: process.cwd(), on });
        const { input, output } = JSON.parse(payload);
        try {
          if (hooks) await hooks[native]?.(input ?? {}, output ?? {});
          let told = '';
          const ui = { notify: (words) => (told = words) };
          const around = { cwd: process.cwd(), hasUI: true, ui };
          const answer = await registered[native]?.(JSON.parse(payload), around);
          if (answer?.block || answer?.action === 'handled') throw new Error(answer.reason ?? told);
        } catch (error) {
          console.log(JSON.stringify({ deny: error.message }));
        }
        process.exit(0);
    ";
    let driver = scratch.file("driver.mjs", driver).unwrap();
    let module = path.with_extension("mjs");
    std::fs::copy(path, &module).unwrap();
    let arguments = [
        driver.display().to_string(),
        module.display().to_string(),
        native.to_owned(),
        payload.to_string(),
    ];
    scratch.command("node").run(arguments, "").ok()
}

#[test]
fn a_block_in_place_of_a_hook_denies_in_every_agent() {
    let mut denied = BTreeSet::new();
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        for event in ["before_tool_execute", "before_prompt"] {
            let natives: Vec<_> = adapter
                .spec
                .events
                .iter()
                .filter(|native| native.is.as_deref() == Some(event) && !native.read_only)
                .filter(|native| {
                    native.tools.is_empty() || native.tools.iter().any(|tool| tool == "shell")
                })
                .collect();
            for capability in anyhook_model::registry::CAPABILITIES {
                denied.extend(
                    denies(adapter, event, &natives, capability.name)
                        .then(|| (adapter.spec.id.to_string(), event)),
                );
            }
            // An agent that can deny here must have been seen to do it.
            let can = natives
                .iter()
                .any(|native| native.blocking == Blocking::Prevent);
            assert!(
                !can || denied.contains(&(adapter.spec.id.to_string(), event)),
                "{} was not seen to deny {event}",
                adapter.spec.id
            );
        }
    }
    assert!(denied.len() > 15, "{denied:?}");
}

fn denies(
    adapter: &Adapter,
    event: &str,
    natives: &[&anyhook_agents::spec::EventSpec],
    capability: &str,
) -> bool {
    let id = adapter.spec.id.as_ref();
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [hook(capability, event)]});
    let has_project = adapter.spec.is_written_at(Scope::Project);
    let home = scratch.home();
    let output = if has_project {
        "."
    } else {
        home.to_str().unwrap()
    };
    let ran = scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .run(
            [
                "convert",
                "-",
                "--from",
                "canonical",
                "--to",
                id,
                "--json",
                "-o",
                output,
            ],
            &manifest.to_string(),
        )
        .unwrap();
    let report = ran.json().unwrap_or_else(|_| panic!("{id}: {ran:?}"));
    let blocks = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|warning| {
            warning["strategy"] == "block"
                && warning["capability"] == capability
                && warning["field"] == "handler"
        });
    if !blocks {
        return false;
    }
    let [native] = natives else {
        panic!("{id}: one event for this, not {natives:?}")
    };
    let payload = call(adapter, event, &native.native, "shell");
    let Some(ran) = answer(&scratch, adapter, &native.native, &payload) else {
        return false;
    };
    for headless in [true, false] {
        let reaction = react(id, &native.native, &payload, &ran.answer(), headless);
        assert_eq!(
            reaction.action,
            Action::Blocked,
            "{id} {event} {capability}: {ran:?}\n{reaction:?}"
        );
        let told = reaction.model_sees.iter().chain(&reaction.user_sees);
        // Some agents show it to no one; then at least they must have received it.
        let kept = reaction.note.is_some() && format!("{ran:?}").contains(capability);
        assert!(
            kept || told.clone().any(|text| text.contains(capability)),
            "{id} {event} {capability}: nobody hears why: {ran:?}\n{reaction:?}"
        );
    }
    // Where the config has no matchers, the command itself must tell the tools apart.
    if event == "before_tool_execute"
        && adapter.spec.config.matcher.at.is_empty()
        && native.tools.is_empty()
    {
        let other = call(adapter, event, &native.native, "file_write");
        let ran = answer(&scratch, adapter, &native.native, &other).unwrap();
        let reaction = react(id, &native.native, &other, &ran.answer(), true);
        assert_eq!(reaction.action, Action::Proceeds, "{id}: {ran:?}");
    }
    true
}
