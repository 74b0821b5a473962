//! Every way of an agent to run a command or change a file is seen.

use std::collections::BTreeMap;
use std::io::Write;

use anyhook_agents::Adapter;
use anyhook_agents::spec::EventSpec;
use anyhook_model::HookEvent;
use anyhook_testkit::{ProcessOutput, Scratch, wait_for};
use serde_json::{Value, json};

use crate::support::{anyhook, is_denied};

const SHAPES: &str = include_str!("tool_shapes.txt");
const HARMLESS: &str = include_str!("harmless_tools.txt");
const AGENT_TOOLS: &str = include_str!("agent_tools.txt");

/// Guards that leave a file named after what they are for.
const GUARDS: &str = r#"{
  "spec": "hooks/1.0",
  "hooks": [
    {"name": "shell", "event": "before_tool_execute", "matcher": "shell", "blocking": true,
     "handler": {"type": "command", "command": "cat >seen-shell"}},
    {"name": "write", "event": "before_tool_execute", "matcher": "file_write", "blocking": true,
     "handler": {"type": "command", "command": "cat >seen-write"}},
    {"name": "edit", "event": "before_tool_execute", "matcher": "file_edit", "blocking": true,
     "handler": {"type": "command", "command": "cat >seen-edit"}},
    {"name": "mcp", "event": "before_tool_execute", "matcher": {"mcp": {"server": "nobody"}}, "blocking": true,
     "handler": {"type": "command", "command": "cat >seen-mcp"}},
    {"name": "pattern", "event": "before_tool_execute", "matcher": {"pattern": "^NoSuchTool$"}, "blocking": true,
     "handler": {"type": "command", "command": "cat >seen-pattern"}}
  ]
}"#;

const ALL_GUARDS: [&str; 5] = ["edit", "mcp", "pattern", "shell", "write"];

fn project_with(manifest: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/hooks.json", manifest).unwrap();
    let output = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(output.exit, Some(0), "{output:?}");
    scratch
}

/// The guards that ran, with what each of them got.
fn seen(scratch: &Scratch) -> BTreeMap<String, Value> {
    let guards = ALL_GUARDS.into_iter().filter_map(|name| {
        let path = scratch.project().join(format!("seen-{name}"));
        let text = std::fs::read_to_string(&path).ok()?;
        std::fs::remove_file(path).unwrap();
        Some((name.to_owned(), serde_json::from_str(&text).unwrap()))
    });
    guards.collect()
}

fn run(scratch: &Scratch, agent: &str, event: Option<&str>, payload: &Value) -> ProcessOutput {
    let mut args = vec!["run", "--agent", agent];
    args.extend(event.into_iter().flat_map(|event| ["--event", event]));
    let output = anyhook(scratch).run(args, &payload.to_string()).unwrap();
    assert!(!output.stderr.contains("panicked"), "{output:?}");
    output
}

fn before_tool_events(adapter: &Adapter) -> impl Iterator<Item = &EventSpec> {
    let events = adapter.spec.events.iter();
    events.filter(|event| event.is.as_deref() == Some("before_tool_execute"))
}

/// What an agent sends before a shell command, or before the tool of the event.
fn sample(scratch: &Scratch, adapter: &Adapter, event: &EventSpec) -> Value {
    let (tool, input) = match event.tools.first().map(AsRef::as_ref) {
        Some("file_write" | "file_edit") => ("file_write", json!({"path": "a", "content": "b"})),
        Some("file_read") => ("file_read", json!({"path": "a"})),
        _ => ("shell", json!({"command": "rm -rf /"})),
    };
    let mut data = json!({"tool_name": tool, "tool_input": input, "tool_call_id": "c"});
    if event.tools.iter().any(|tool| tool == "mcp") {
        data["mcp"] = json!({"server": "s", "tool": "t"});
    }
    let call: HookEvent = serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "session_id": "s",
        "cwd": scratch.project(), "data": data,
    }))
    .unwrap();
    adapter.encode(&call, Some(&event.native)).unwrap().payload
}

/// Where a payload has a value of the canonical name `to`.
fn places(adapter: &Adapter, event: &EventSpec, payload: &Value, to: &str) -> Vec<String> {
    let set = event.common.as_deref().unwrap_or("common");
    let common = adapter.spec.payload.rows.get(set).into_iter().flatten();
    let rows = event.rows.iter().chain(common);
    let places = rows
        .filter(|row| row.to == to)
        .map(|row| row.at.to_string());
    places.filter(|at| payload.pointer(at).is_some()).collect()
}

fn remove(payload: &mut Value, at: &str) {
    let (parent, key) = at.rsplit_once('/').unwrap();
    let parent = payload.pointer_mut(parent).unwrap();
    parent.as_object_mut().unwrap().shift_remove(key);
}

/// The call of a tool by an agent's general before-tool event.
fn call(scratch: &Scratch, slug: &str, tool: &str, input: &Value) -> (String, Value) {
    let adapter = anyhook_agents::get(slug).unwrap();
    let event = before_tool_events(adapter)
        .find(|event| event.tools.is_empty())
        .unwrap();
    let mut payload = sample(scratch, adapter, event);
    for (to, value) in [("tool_name", json!(tool)), ("tool_input", input.clone())] {
        for at in places(adapter, event, &payload, to) {
            *payload.pointer_mut(&at).unwrap() = value.clone();
        }
    }
    (event.native.to_string(), payload)
}

fn lines(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect())
}

fn guards_for(kind: &str) -> &'static [&'static str] {
    match kind {
        "shell" => &["shell"],
        "file" => &["edit", "write"],
        "both" => &["edit", "shell", "write"],
        other => panic!("{other}"),
    }
}

#[test]
fn an_unknown_tool_that_acts_is_seen_by_its_likeness() {
    let scratch = project_with(GUARDS);
    let (mut all, mut missed) = (0, Vec::new());
    for line in lines(SHAPES) {
        let [kind, tool, input] = line[..] else {
            panic!("{line:?}")
        };
        let value: Value = serde_json::from_str(input).expect(input);
        let (event, payload) = call(&scratch, "claude-code", tool, &value);
        run(&scratch, "claude-code", Some(&event), &payload);
        let seen = seen(&scratch);
        all += 1;
        let is_seen = guards_for(kind)
            .iter()
            .all(|guard| seen.contains_key(*guard));
        // Guards read canonical keys.
        let is_readable = |guard: &str, key: &str| {
            let input = &seen[guard]["data"]["tool_input"];
            input.get(key).is_some_and(|value| !value.is_null())
        };
        let is_readable = is_seen
            && match kind {
                "shell" => is_readable("shell", "command"),
                _ => is_readable("write", "path") || is_readable("write", "files"),
            };
        if !is_readable {
            missed.push(format!("{tool} {input}: seen by {:?}", seen.keys()));
        }
    }
    assert!(all >= 60, "{all}");
    assert!(
        missed.len() * 20 <= all,
        "{} of {all}: {missed:#?}",
        missed.len()
    );
}

#[test]
fn tools_that_only_look_are_left_alone() {
    let scratch = project_with(GUARDS);
    for line in lines(HARMLESS) {
        let [tool, input] = line[..] else {
            panic!("{line:?}")
        };
        let value: Value = serde_json::from_str(input).expect(input);
        let (event, payload) = call(&scratch, "claude-code", tool, &value);
        run(&scratch, "claude-code", Some(&event), &payload);
        let seen = seen(&scratch);
        assert!(seen.is_empty(), "{tool} {input}: {:?}", seen.keys());
    }
}

#[test]
fn every_tool_of_an_agent_that_acts_is_seen() {
    let scratch = project_with(GUARDS);
    let mut missed = Vec::new();
    for line in lines(AGENT_TOOLS) {
        let [slug, kind, tool, input] = line[..] else {
            panic!("{line:?}")
        };
        let value: Value = serde_json::from_str(input).expect(input);
        let (event, payload) = call(&scratch, slug, tool, &value);
        run(&scratch, slug, Some(&event), &payload);
        let seen = seen(&scratch);
        // A known tool may be one of the two; an edit is a write to nobody else.
        if !guards_for(kind)
            .iter()
            .any(|guard| seen.contains_key(*guard))
        {
            missed.push(format!("{slug} {tool} {input}: seen by {:?}", seen.keys()));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// A patch, in every way to give it to a shell.
fn patch_commands() -> Vec<Value> {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: keys/.env\n@@\n-a\n+b\n*** Delete File: c.txt\n*** End Patch";
    vec![
        json!(format!("apply_patch <<'EOF'\n{patch}\nEOF")),
        json!(format!("apply_patch \"$(cat <<'EOF'\n{patch}\nEOF\n)\"")),
        json!(format!("cd . && apply_patch <<EOF\n{patch}\nEOF")),
        json!(format!("bash -lc \"apply_patch <<'EOF'\n{patch}\nEOF\"")),
        json!(format!(
            "printf '{}' | apply_patch",
            patch.replace('\n', "\\n")
        )),
        json!(["apply_patch", patch]),
        json!(["bash", "-lc", format!("apply_patch <<'EOF'\n{patch}\nEOF")]),
    ]
}

/// The file guard is written for Claude Code, knows nothing of patches and has to
/// deny one file of three.
#[test]
fn a_patch_in_a_shell_command_is_the_edit_that_it_is() {
    let manifest = r#"{
      "spec": "hooks/1.0",
      "sequential": true,
      "hooks": [
        {"name": "claude", "event": "before_tool_execute", "matcher": ["file_edit", "file_write"], "blocking": true,
         "handler": {"type": "command", "command": "./claude.sh", "dialect": "claude-code"}},
        {"name": "bash", "event": "before_tool_execute", "matcher": "shell", "blocking": true,
         "handler": {"type": "command", "command": "./bash.sh", "dialect": "claude-code"}}
      ]
    }"#;
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/hooks.json", manifest).unwrap();
    let claude = "#!/bin/sh\ncat >>\"$CLAUDE_PROJECT_DIR/calls\"\n\
        tail -n 1 \"$CLAUDE_PROJECT_DIR/calls\" | grep -q '\"tool_name\":\"\\(Edit\\|Write\\)\".*\"file_path\":\"[^\"]*\\.env\"' && { echo no >&2; exit 2; }\nexit 0\n";
    scratch.exec(".anyhook/claude.sh", claude).unwrap();
    let bash = "#!/bin/sh\ncat >>\"$CLAUDE_PROJECT_DIR/bash\"\n";
    scratch.exec(".anyhook/bash.sh", bash).unwrap();
    let output = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(output.exit, Some(0), "{output:?}");

    for slug in anyhook_agents::slugs() {
        let adapter = anyhook_agents::get(slug).unwrap();
        let Some(shell) = adapter.tool_by_canonical("shell") else {
            continue;
        };
        if !before_tool_events(adapter).any(|event| event.tools.is_empty()) {
            continue;
        }
        for command in patch_commands() {
            let key = shell.keys["command"].at.to_string();
            let is_list = slug == "cline" && command.is_string();
            let native = if is_list {
                json!([command])
            } else {
                command.clone()
            };
            let (event, payload) = call(&scratch, slug, &shell.native, &json!({key: native}));
            let output = run(&scratch, slug, Some(&event), &payload);
            let read = |name: &str| {
                let path = scratch.project().join(name);
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let _ = std::fs::remove_file(path);
                text
            };
            let calls = read("calls");
            // One call for each file, up to the one that is denied.
            assert_eq!(calls.lines().count(), 2, "{slug} {command}: {calls}");
            let told = format!("{}{}", output.stdout, output.stderr);
            assert!(told.contains("no"), "{slug} {command}: {output:?}");
            // The shell guard comes after the deny.
            assert_eq!(read("bash"), "", "{slug}");
        }
        // An ordinary command is no edit, and the shell guard gets it once.
        let key = shell.keys["command"].at.to_string();
        let native = if slug == "cline" {
            json!(["ls"])
        } else {
            json!("ls")
        };
        let (event, payload) = call(&scratch, slug, &shell.native, &json!({key: native}));
        run(&scratch, slug, Some(&event), &payload);
        assert!(!scratch.project().join("calls").exists(), "{slug}");
        let bash = std::fs::read_to_string(scratch.project().join("bash")).unwrap();
        std::fs::remove_file(scratch.project().join("bash")).unwrap();
        assert_eq!(bash.lines().count(), 1, "{slug}: {bash}");
    }
}

/// A rewrite of what anyhook read out of the input cannot be put back: denied.
#[test]
fn a_rewrite_of_an_inferred_key_is_not_lost() {
    let manifest = r#"{"spec": "hooks/1.0", "hooks": [
        {"name": "rewrite", "event": "before_tool_execute", "matcher": "shell", "blocking": true,
         "handler": {"type": "command", "command": "echo '{\"updated_input\": {\"command\": \"ls\"}}'"}}]}"#;
    let scratch = project_with(manifest);
    let decision = |input: Value| {
        let (event, payload) = call(&scratch, "claude-code", "runner", &input);
        let answer = run(&scratch, "claude-code", Some(&event), &payload)
            .json()
            .unwrap();
        answer["hookSpecificOutput"].clone()
    };
    let inferred = decision(json!({"cmd": "rm -rf /"}));
    assert_eq!(inferred["permissionDecision"], "deny", "{inferred}");
    let own = decision(json!({"command": "rm -rf /"}));
    assert_eq!(own["updatedInput"]["command"], "ls", "{own}");
}

/// The names that a tool may have in the next version of a client.
fn unreadable_names() -> Vec<(&'static str, Option<Value>)> {
    vec![
        ("number", Some(json!(7))),
        ("null", Some(Value::Null)),
        ("list", Some(json!(["Bash"]))),
        ("object", Some(json!({"name": "Bash"}))),
        ("empty", Some(json!(""))),
        ("blank", Some(json!(" "))),
        ("true", Some(json!(true))),
        ("missing", None),
    ]
}

#[test]
fn a_call_whose_tool_or_event_cannot_be_read_is_for_every_guard() {
    let scratch = project_with(GUARDS);
    let mut cells = 0;
    let mut missed = Vec::new();
    for slug in anyhook_agents::slugs() {
        let adapter = anyhook_agents::get(slug).unwrap();
        for event in before_tool_events(adapter) {
            let payload = sample(&scratch, adapter, event);
            let mut check = |what: &str, payload: &Value, all: bool| {
                let output = run(&scratch, slug, Some(&event.native), payload);
                let seen = seen(&scratch);
                cells += 1;
                let expected = if all { ALL_GUARDS.len() } else { 1 };
                if seen.len() < expected {
                    let keys = seen.keys();
                    missed.push(format!(
                        "{slug} {} {what}: {keys:?} {output:?}",
                        event.native
                    ));
                }
            };
            let names = places(adapter, event, &payload, "tool_name");
            for (what, name) in unreadable_names().into_iter().filter(|_| !names.is_empty()) {
                let mut odd = payload.clone();
                for at in &names {
                    match &name {
                        Some(name) => *odd.pointer_mut(at).unwrap() = name.clone(),
                        None => remove(&mut odd, at),
                    }
                }
                // An MCP tool may have its name in a second place.
                check(what, &odd, !event.tools.iter().any(|tool| tool == "mcp"));
            }
            let is_guarded = !matches!(
                event.tools.first().map(AsRef::as_ref),
                Some("mcp" | "file_read")
            );
            if let Some(at) = adapter
                .spec
                .payload
                .event_at
                .as_deref()
                .filter(|_| is_guarded)
            {
                for name in [json!("SomethingNew"), json!(7), json!(["x"]), Value::Null] {
                    let mut odd = payload.clone();
                    if odd.pointer(at).is_some() {
                        *odd.pointer_mut(at).unwrap() = name.clone();
                        check(&format!("event {name}"), &odd, false);
                    }
                }
                let mut odd = payload.clone();
                if odd.pointer(at).is_some() {
                    remove(&mut odd, at);
                    check("no event", &odd, false);
                }
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {cells}: {missed:#?}",
        missed.len()
    );
    assert!(cells > 100, "{cells}");
}

#[test]
fn what_cannot_be_read_is_told_once_and_recorded() {
    let scratch = project_with(GUARDS);
    let payload = json!({
        "session_id": "s", "cwd": scratch.project(), "hook_event_name": "BeforeToolUse",
        "toolName": "Bash", "tool_input": {"command": "rm -rf /"},
    });
    let told = || {
        let output = run(&scratch, "claude-code", Some("PreToolUse"), &payload);
        output.stdout
    };
    let first = told();
    assert!(first.contains("does not name the tool"), "{first}");
    assert!(
        first.contains("`BeforeToolUse`, which is unknown"),
        "{first}"
    );
    let second = told();
    assert!(!second.contains("does not name"), "{second}");
    let journal = scratch.state().join("journal/events.jsonl");
    let journal = std::fs::read_to_string(journal).unwrap();
    let records: Vec<Value> = journal
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 2);
    for record in &records {
        let warnings = record["warnings"].to_string();
        assert!(warnings.contains("does not name the tool"), "{record}");
    }
}

/// A new version of a client that calls its event otherwise, where no `--event` says
/// what it is: every guard that would have seen the call sees it, and a deny is one.
#[test]
fn a_call_at_an_event_of_an_unknown_name_is_seen_by_the_guards() {
    const HOOK_FOR_UNKNOWN: &str = r#"{"spec": "hooks/1.0", "hooks": [
        {"name": "own", "event": "SomethingNew", "handler": {"type": "command", "command": ": > own"}},
        {"name": "guard", "event": "before_tool_execute", "blocking": true,
         "handler": {"type": "command", "command": "echo guarded >&2; exit 2"}}]}"#;
    let mut cells = 0;
    let mut missed = Vec::new();
    for slug in anyhook_agents::slugs() {
        let adapter = anyhook_agents::get(slug).unwrap();
        let Some(at) = adapter.spec.payload.event_at.as_deref() else {
            continue;
        };
        let scratch = project_with(HOOK_FOR_UNKNOWN);
        for event in before_tool_events(adapter).filter(|event| !event.read_only) {
            let mut payload = sample(&scratch, adapter, event);
            let known = run(&scratch, slug, None, &payload);
            if payload.pointer(at).is_none() {
                continue;
            }
            *payload.pointer_mut(at).unwrap() = json!("SomethingNew");
            cells += 1;
            let output = run(&scratch, slug, None, &payload);
            let is_deny = |output: &ProcessOutput| {
                let text = format!("{}{}", output.stdout, output.stderr);
                (text.contains("guarded"), output.exit)
            };
            if is_deny(&output) != is_deny(&known) || !is_deny(&output).0 {
                missed.push(format!("{slug} {}: {output:?}", event.native));
            }
            // A hook for the event by that very name runs too.
            let own = scratch.project().join("own");
            if std::fs::remove_file(own).is_err() {
                missed.push(format!("{slug} {}: its own hook", event.native));
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {cells}: {missed:#?}",
        missed.len()
    );
    assert!(cells > 14, "{cells}");
}

#[test]
fn what_is_not_a_call_stays_what_it_is_at_an_event_of_an_unknown_name() {
    let scratch = project_with(GUARDS);
    for extra in [
        json!({"hook_event_name": "SomethingNew", "message": "x"}),
        json!({"hook_event_name": "PostSomething", "tool_name": "Bash",
               "tool_input": {"command": "rm -rf /"}}),
    ] {
        let mut payload = json!({"session_id": "s", "cwd": scratch.project()});
        let fields = extra.as_object().unwrap().clone();
        payload.as_object_mut().unwrap().extend(fields);
        run(&scratch, "claude-code", None, &payload);
        assert_eq!(seen(&scratch).len(), 0, "{payload}");
    }
}

/// The real proxy between a client and a server that asks in odd ways.
#[test]
fn an_odd_approval_of_codex_is_declined_by_the_guard() {
    let scratch = project_with(
        r#"{"spec": "hooks/1.0", "hooks": [
        {"name": "guard", "event": "before_tool_execute", "matcher": "file_write", "blocking": true,
         "handler": {"type": "command", "command": "echo no >&2; exit 2"}}]}"#,
    );
    let cwd = scratch.project();
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let requests = [
        format!(
            r#"{{"id":1,"method":"item/new/requestApproval","params":{{"cwd":{cwd:?},"x":{deep}}}}}"#
        ),
        format!(
            r#"{{"id":1.5,"method":"item/fileChange/requestApproval","params":{{"cwd":{cwd:?},"changes":[{{"path":"a","kind":{{"type":"add"}},"diff":"x"}}]}}}}"#
        ),
        format!(
            r#"{{"id":"1","method":"item/commandExecution/requestApproval","params":{{"cwd":{cwd:?},"command":"apply_patch <<EOF\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"}}}}"#
        ),
    ];
    scratch
        .file("requests", &format!("{}\n", requests.join("\n")))
        .unwrap();
    let server = "cat requests; while read -r line; do echo \"$line\" >>answers; done";
    let args = ["codex", "proxy", "--", "sh", "-c", server];
    let mut child = anyhook(&scratch).spawn(args).unwrap();
    let answers = wait_for("the answers", || {
        let text = std::fs::read_to_string(cwd.join("answers")).unwrap_or_default();
        (text.lines().count() == requests.len()).then_some(text)
    });
    for id in ["1", "1.5", "\"1\""] {
        let answer = format!(r#"{{"id":{id},"result":{{"decision":"decline"}}}}"#);
        assert!(answers.contains(&answer), "{answers}");
    }
    child.stdin.take().unwrap().flush().unwrap();
    child.wait().unwrap();
}

/// The arguments of a program, code in a named language, a list for an input, a number that
/// JSON does not have: the built-in guards read the command all the same.
#[test]
fn a_command_in_pieces_is_put_together_for_the_guards() {
    let scratch = project_with(
        r#"{"spec": "hooks/1.0", "hooks": [{"event": "before_tool_execute", "blocking": true,
            "handler": {"type": "command", "command": "anyhook guard filesystem"}}]}"#,
    );
    let dangerous = [
        (
            "mcp__sh__run",
            r#"{"command": "bash", "args": ["-c", "rm -rf /"]}"#,
        ),
        (
            "mcp__sh__run",
            r#"{"cmd": "bash", "args": ["-c", "rm -rf /"]}"#,
        ),
        (
            "mcp__sh__run",
            r#"{"command": "rm", "arguments": ["-rf", "/"]}"#,
        ),
        (
            "mcp__sh__run",
            r#"{"command": "sudo rm", "args": ["-rf", "/"]}"#,
        ),
        (
            "mcp__sh__run",
            r#"{"code": "rm -rf /", "language": "bash"}"#,
        ),
        (
            "mcp__sh__run",
            r#"{"language": "Python", "code": "import os; os.system('rm -rf /')"}"#,
        ),
        (
            "mcp__x__execute_python",
            r#"{"code": "import os; os.system('rm -rf /')"}"#,
        ),
        (
            "execute_python",
            r#"{"code": "import os; os.system('rm -rf /')"}"#,
        ),
        ("mcp__tmux__send_keys", r#"{"keys": "rm -rf /"}"#),
        ("mcp__x__terminal", r#"{"input": "rm -rf /"}"#),
        ("mcp__sh__run", r#"{"command": "rm -rf /", "x": NaN}"#),
        (
            "Bash",
            r#"{"command": "rm -rf /", "x": -Infinity, "y": [Infinity]}"#,
        ),
        ("Bash", "{\"command\": \"rm -rf / \t\"}"),
        ("Bash", r#"["rm -rf /"]"#),
        ("Bash", r#"["ls -l", "rm -rf /"]"#),
        ("Bash", r#"["rm", "-rf", "/"]"#),
        ("Bash", r#"{"command": "rm", "args": ["-rf", "/"]}"#),
    ];
    let harmless = [
        ("mcp__sh__run", r#"{"command": "ls", "args": ["-l"]}"#),
        (
            "mcp__sh__run",
            r#"{"code": "print(1)", "language": "python"}"#,
        ),
        ("mcp__x__execute_python", r#"{"code": "print('rm -rf /')"}"#),
        (
            "mcp__docs__search_python",
            r#"{"code": "import os; os.system('rm -rf /')"}"#,
        ),
        (
            "mcp__canvas__update_node",
            r#"{"input": "require('fs').rmSync('/')"}"#,
        ),
        ("Bash", r#"{"command": "ls", "x": NaN}"#),
        ("Bash", r#"["ls -l"]"#),
    ];
    let cases = dangerous.iter().map(|case| (case, true));
    for ((tool, input), expected) in cases.chain(harmless.iter().map(|case| (case, false))) {
        let payload = format!(
            r#"{{"session_id": "s", "cwd": {}, "hook_event_name": "PreToolUse", "tool_name": "{tool}", "tool_input": {input}}}"#,
            json!(scratch.project())
        );
        let arguments = ["run", "--agent", "claude-code"];
        let output = anyhook(&scratch).run(arguments, &payload).unwrap();
        let is_denied = output.stdout.contains("\"deny\"");
        assert_eq!(is_denied, expected, "{tool} {input}: {output:?}");
    }
}

/// An agent that renames the field of its event, or leaves it out: guards are asked, and the
/// user hears of it.
#[test]
fn a_call_whose_event_is_named_elsewhere_is_guarded() {
    for (slug, adapter) in anyhook_agents::all().map(|adapter| (&adapter.spec.id, adapter)) {
        let Some(at) = adapter.spec.payload.event_at.as_deref() else {
            continue;
        };
        let Some(event) = before_tool_events(adapter).find(|event| event.tools.is_empty()) else {
            continue;
        };
        let scratch = project_with(
            r#"{"spec": "hooks/1.0", "hooks": [{"event": "before_tool_execute", "blocking": true,
                "handler": {"type": "command", "command": "touch asked; exit 2"}}]}"#,
        );
        let sample = sample(&scratch, adapter, event);
        if sample.pointer(at).is_none() {
            continue;
        }
        for renamed in [Some("NewEventField"), None] {
            let mut payload = sample.clone();
            let name = payload.pointer(at).unwrap().clone();
            remove(&mut payload, at);
            if let Some(key) = renamed {
                payload[key] = name;
            }
            let output = run(&scratch, slug, None, &payload);
            let asked = scratch.project().join("asked");
            assert!(asked.exists(), "{slug} {renamed:?}: {output:?} {payload}");
            std::fs::remove_file(asked).unwrap();
        }
    }
}

/// Tools of MCP servers that name files in their own ways, judged by built-in guards.
#[test]
fn a_file_tool_of_an_mcp_server_is_judged_by_its_paths() {
    let calls = [
        (
            "self",
            "move_file",
            json!({"source": ".claude/settings.json", "destination": "x"}),
        ),
        (
            "self",
            "move_file",
            json!({"source": "x", "destination": ".claude/settings.json"}),
        ),
        (
            "self",
            "delete_file",
            json!({"path": ".anyhook/hooks.yaml"}),
        ),
        (
            "self",
            "write",
            json!({"destination": ".git/hooks/pre-commit", "content": "x"}),
        ),
        (
            "self",
            "git_checkout",
            json!({"paths": [".anyhook/hooks.yaml"]}),
        ),
        (
            "self",
            "apply",
            json!({"patch": "--- a/.anyhook/hooks.yaml\n+++ b/.anyhook/hooks.yaml\n@@ -1 +1 @@\n-a\n+b\n"}),
        ),
        (
            "secrets",
            "read_multiple_files",
            json!({"paths": ["a.txt", ".env"]}),
        ),
        (
            "secrets",
            "copy",
            json!({"source": ".env", "destination": "x.txt"}),
        ),
        ("secrets", "get", json!({"uri": "file:///srv/app/.env"})),
    ];
    for (guard, tool, input) in calls {
        for (input, is_dangerous) in [(input, true), (json!({"path": "src/main.rs"}), false)] {
            let scratch = super::support::project();
            let manifest = super::support::MANIFEST
                .replace("    matcher: shell\n", "")
                .replace("./guard.sh", &format!("anyhook guard {guard}"));
            scratch.file(".anyhook/hooks.yaml", &manifest).unwrap();
            anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
            let mut payload = super::support::payload(&scratch, "");
            payload["tool_name"] = format!("mcp__fs__{tool}").into();
            payload["tool_input"] = input.clone();
            let run = ["run", "--agent", "claude-code"];
            let output = anyhook(&scratch).run(run, &payload.to_string()).unwrap();
            assert_eq!(
                is_denied(&output),
                is_dangerous,
                "{tool} {input}: {output:?}"
            );
        }
    }
}
