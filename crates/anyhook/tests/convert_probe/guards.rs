//! The guards: every kind of matcher, script and command line that people write,
//! in the form of each agent.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderOptions;
use anyhook_agents::spec::ConfigShape;
use anyhook_convert::ScriptText;
use anyhook_model::HookResponse;
use serde_json::{Map, Value, json};

use crate::calls::NativeCall;
use crate::clients::{Client, client};

/// One hook of an agent's own config.
pub(crate) struct Guard {
    /// What is special about it.
    pub label: String,
    /// Part of every command line, so that it is found again after a conversion.
    pub id: String,
    pub document: Value,
    /// The script `guards/<id>.sh`.
    pub script: String,
    /// It reads one key, and is for the calls that have every key.
    pub reads_one_key: bool,
    /// It asks the user or ends the run, which protects as well.
    pub asks_or_ends: bool,
}

impl Guard {
    /// Whether a deny of this call is what the guard is for: other tools may have
    /// a key of the same name.
    pub(crate) fn is_about(&self, call: &NativeCall) -> bool {
        if self.reads_one_key || call.every_key.is_some() {
            // What a payload has beside the input does not depend on the tool.
            let is_enough = self.script.contains("rest")
                || call.subject.is_mcp
                || call.canonical.tool_name() == Some("shell");
            return self.reads_one_key && call.every_key.is_some() && is_enough;
        }
        !self.script.contains("'\"command") || call.canonical.tool_name() == Some("shell")
    }

    /// The text of its script for a conversion; an inline command has none.
    pub(crate) fn readable_script(&self) -> ScriptText {
        if self.script.lines().count() > 1 {
            ScriptText::Known(self.script.clone())
        } else {
            ScriptText::Unclear
        }
    }

    /// Whether what it does depends on the payload.
    pub(crate) fn reads_payload(&self) -> bool {
        self.script.contains("payload")
    }
}

const DENY: &str = "echo 'denied by the guard' >&2; exit 2";

/// Reads the payload, without starting a program.
const READ: &str =
    "while IFS= read -r line || [ -n \"$line\" ]; do payload=\"$payload$line\"; done\n";

/// A script that denies a payload with these nested keys.
fn reading(keys: &[&str], deny: &str) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("'\"{key}\":'*")).collect();
    let keys = keys.concat();
    format!("{READ}case $payload in *{keys}) {deny} ;; esac\n")
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The deny that the agent itself documents.
fn native_deny(adapter: &Adapter, call: Option<&NativeCall>) -> String {
    let Some(call) = call else {
        return String::new();
    };
    let response = HookResponse::deny("denied by the guard");
    let answer = adapter.render(&call.canonical, &response, RenderOptions::default());
    format!(
        "printf '%s' {}; printf '%s' {} >&2; exit {}",
        single_quoted(&answer.stdout),
        single_quoted(&answer.stderr),
        answer.exit
    )
}

/// A config with one hook.
fn document(adapter: &Adapter, event: &str, matcher: Option<&str>, handler: Value) -> Value {
    let spec = &adapter.spec;
    let mut entry = Map::new();
    if let Some(matcher) = matcher {
        entry.insert("matcher".into(), json!(matcher));
    }
    match spec.config.shape {
        ConfigShape::Grouped => {
            let mut handler = handler;
            handler["type"] = json!("command");
            entry.insert("hooks".into(), json!([handler]));
            let map = json!({event: [entry]});
            if spec.config.root.is_empty() {
                map
            } else {
                json!({"hooks": map})
            }
        }
        ConfigShape::List if spec.id == "kimi-code" => {
            entry.insert("event".into(), json!(event));
            entry.insert("command".into(), handler["command"].clone());
            json!({"hooks": [entry]})
        }
        ConfigShape::List if spec.id == "mistral-vibe" => {
            let matcher = entry.shift_remove("matcher");
            entry.extend(matcher.map(|matcher| ("match".to_owned(), matcher)));
            entry.insert("name".into(), json!("guard"));
            entry.insert("type".into(), json!(event));
            entry.insert("command".into(), handler["command"].clone());
            json!({"hooks": [entry]})
        }
        ConfigShape::List => {
            entry.insert("name".into(), json!("guard"));
            entry.insert("trigger".into(), json!(event));
            let action = json!({"type": "command", "command": handler["command"]});
            entry.insert("action".into(), action);
            json!({"version": "v1", "hooks": [entry]})
        }
        shape => {
            entry.extend(handler.as_object().unwrap().clone());
            let map = json!({event: [entry]});
            match (shape, spec.id.as_ref()) {
                (ConfigShape::Flat, "copilot-cli" | "cursor") => {
                    json!({"version": 1, "hooks": map})
                }
                (ConfigShape::Flat, _) => json!({"hooks": map}),
                _ => map,
            }
        }
    }
}

/// The guards of one agent, being made.
struct Guards<'a> {
    adapter: &'static Adapter,
    event: &'a str,
    list: Vec<Guard>,
}

impl Guards<'_> {
    /// Adds a guard. `ID` in the command line is replaced by its own.
    fn add(&mut self, label: String, matcher: Option<&str>, script: &str, command: &Value) {
        let slug = &self.adapter.spec.id;
        let id = format!(
            "{slug}-{:02}-{}",
            self.list.len(),
            self.event.replace('.', "-")
        );
        let command = command.to_string().replace("ID", &id);
        let handler: Value = serde_json::from_str(&command).unwrap();
        self.list.push(Guard {
            label: format!("{} {label}", self.event),
            document: document(self.adapter, self.event, matcher, handler),
            script: if script.is_empty() {
                String::new()
            } else {
                format!("#!/bin/sh\n{script}\n")
            },
            id,
            reads_one_key: false,
            asks_or_ends: false,
        });
    }

    fn add_file(&mut self, label: String, matcher: Option<&str>, script: &str) {
        self.add(
            label,
            matcher,
            script,
            &json!({"command": "./guards/ID.sh"}),
        );
    }
}

/// Exact names, patterns, MCP, lists, everything, in the words of the agent.
fn matchers(client: &Client, calls: &[&NativeCall]) -> Vec<(String, String)> {
    let mut names: Vec<&str> = Vec::new();
    let mut others: Vec<&str> = Vec::new();
    for call in calls {
        let tool = call.subject.tool.as_str();
        let list = if call.subject.is_mcp {
            &mut others
        } else {
            &mut names
        };
        if !tool.is_empty() && !list.contains(&tool) {
            list.push(tool);
        }
    }
    let is_list = matches!(
        client.slug,
        "claude-code" | "codex" | "copilot-cli" | "qwen-code"
    );
    let exact = |name: &str| {
        if is_list {
            name.to_owned()
        } else {
            format!("^{name}$")
        }
    };
    let mut made: Vec<(String, String)> = Vec::new();
    for name in &names {
        made.push((format!("exact {name}"), exact(name)));
    }
    let shell = client.keys.shell.map_or("", |(_, name)| name);
    made.push(("bare name".into(), shell.to_owned()));
    let prefix: String = shell.chars().take(3).collect();
    made.push(("pattern by prefix".into(), format!("{prefix}.*")));
    let prefix: String = names.last().unwrap_or(&"").chars().take(4).collect();
    made.push(("pattern by another prefix".into(), format!("^{prefix}.*")));
    made.push(("every name".into(), ".*".into()));
    let pair: Vec<&str> = names.iter().rev().take(2).copied().collect();
    let list = pair.join("|");
    made.push((
        "list".into(),
        if is_list { list } else { format!("^({list})$") },
    ));
    for name in others {
        let mcp = if client.slug == "auggie" { "mcp:" } else { "" };
        made.push((format!("MCP tool {name}"), format!("{mcp}{}", exact(name))));
        let server = name.replace("echo_back", ".*");
        made.push((format!("MCP server {server}"), format!("{mcp}{server}")));
        made.push((format!("list with MCP {name}"), format!("{shell}|{name}")));
    }
    made
}

/// The guards of an agent.
pub(crate) fn guards(adapter: &'static Adapter, calls: &[NativeCall]) -> Vec<Guard> {
    let client = client(&adapter.spec.id);
    let mut events: Vec<&str> = Vec::new();
    for call in calls {
        for (event, _) in &call.events {
            if !events.contains(&event.as_str()) {
                events.push(event);
            }
        }
    }
    let mut all = Vec::new();
    for event in events {
        let at_event = calls
            .iter()
            .filter(|call| call.events.iter().any(|(one, _)| one == event));
        let at_event: Vec<&NativeCall> = at_event.collect();
        let mut guards = Guards {
            adapter,
            event,
            list: Vec::new(),
        };
        let (keyed, plain): (Vec<_>, Vec<_>) =
            at_event.iter().partition(|call| call.every_key.is_some());
        if !plain.is_empty() {
            add_guards(&mut guards, client, &plain);
        }
        add_key_guards(&mut guards, client, &keyed);
        all.append(&mut guards.list);
    }
    all
}

fn add_guards(guards: &mut Guards<'_>, client: &Client, calls: &[&NativeCall]) {
    let adapter = guards.adapter;
    let native = native_deny(adapter, calls.first().copied());
    let keys = &client.keys;
    // Copilot CLI sends Claude's payload to events that are spelled as Claude's.
    let keys = if client.slug == "copilot-cli" && guards.event == "PreToolUse" {
        &crate::clients::client("claude-code").keys
    } else {
        keys
    };
    // The words of a deny that this agent obeys: exit codes mean nothing to Cline.
    let deny = if client.slug == "cline" {
        native.as_str()
    } else {
        DENY
    };
    let always = deny;
    let shell = match guards.event {
        "beforeShellExecution" => Some("echo|npm|ls|git".to_owned()),
        "beforeReadFile" | "beforeMCPExecution" => None,
        _ => keys.shell.map(|(_, name)| name.to_owned()),
    };
    let shell = shell.filter(|_| !matches!(client.slug, "cline" | "vs-code-copilot" | "windsurf"));
    let shell = shell.as_deref();

    // Matchers.
    guards.add_file("no matcher".into(), None, always);
    guards.add_file("no matcher, native deny".into(), None, &native);
    guards.add_file("shell, native deny".into(), shell, &native);
    if shell.is_some() && guards.event != "beforeShellExecution" {
        for (label, matcher) in matchers(client, calls) {
            guards.add_file(label, Some(&matcher), always);
        }
    }

    // Scripts.
    let read_command = reading(keys.command, deny);
    guards.add_file("reads its own command".into(), None, &read_command);
    guards.add_file("shell, reads its own command".into(), shell, &read_command);
    guards.add_file(
        "shell, reads its own command, native deny".into(),
        shell,
        &reading(keys.command, &native),
    );
    guards.add_file("reads its own path".into(), None, &reading(keys.path, deny));
    if let Some((key, name)) = keys.shell {
        let script = format!("{READ}case $payload in *'\"{key}\":\"{name}\"'*) {deny} ;; esac\n");
        guards.add_file("checks the tool's name".into(), None, &script);
    }
    let claude = &crate::clients::client("claude-code").keys;
    for keys in [claude.command, claude.path] {
        let label = format!("reads Claude's {}", keys.join("."));
        guards.add_file(label, None, &reading(keys, deny));
    }
    for key in ["command", "path"] {
        let label = format!("reads the canonical {key}");
        guards.add_file(label, None, &reading(&["data", "tool_input", key], deny));
    }
    let no_reason = "exit 2";
    guards.add_file("shell, exit 2 without a reason".into(), shell, no_reason);
    guards.add_file("shell, exit 1".into(), shell, "echo no >&2; exit 1");

    // Command lines.
    let line = |text: &str| json!({"command": text});
    let project = "PROJECT";
    guards.add(
        "interpreter".into(),
        shell,
        always,
        &line("sh guards/ID.sh"),
    );
    guards.add(
        "absolute path".into(),
        shell,
        always,
        &line(&format!("{project}/guards/ID.sh")),
    );
    guards.add("inline".into(), shell, "", &line(&format!("{deny} # ID")));
    guards.add(
        "inline list".into(),
        shell,
        always,
        &line("test -e guards && sh ./guards/ID.sh || exit $?"),
    );
    let words = "[ \"$1\" = \"it's a\" ] && [ \"$2\" = '$HOME \"x\"' ] || exit 0\n";
    let script = format!("{words}{always}");
    guards.add(
        "quoted arguments".into(),
        shell,
        &script,
        &line("./guards/ID.sh \"it's a\" '$HOME \"x\"'"),
    );
    for variable in client.project_variables {
        for form in [
            "\"$VAR\"/guards/ID.sh",
            "\"${VAR}/guards/ID.sh\"",
            "$VAR/guards/ID.sh",
            "sh \"$VAR\"/guards/ID.sh --flag",
            "cd \"$VAR\" && ./guards/ID.sh",
            "\"${VAR:-.}\"/guards/ID.sh",
        ] {
            let form = form.replace("VAR", variable);
            guards.add(form.replace("ID", "x"), shell, always, &line(&form));
        }
        let script = format!("[ -d \"${variable}/guards\" ] || exit 0\n{always}");
        guards.add_file(format!("uses {variable} in the script"), shell, &script);
    }
    if let (Some(variable), Some((_, name))) = (client.tool_variable, keys.shell) {
        let text = format!("if [ \"${variable}\" = {name} ]; then {deny}; fi # ID");
        guards.add(format!("inline, {variable}"), None, "", &line(&text));
        let script = format!("[ \"${variable}\" = {name} ] || exit 0\n{always}");
        guards.add_file(format!("uses {variable} in the script"), None, &script);
    }
    if client.has_args {
        let variable = client.project_variables[0];
        let exec = |args: Value| json!({"command": "sh", "args": args});
        guards.add(
            "exec form".into(),
            shell,
            always,
            &exec(json!(["guards/ID.sh"])),
        );
        let args = json!([format!("${{{variable}}}/guards/ID.sh")]);
        guards.add(
            "exec form with a variable".into(),
            shell,
            always,
            &exec(args),
        );
        let args = json!(["guards/ID.sh", "it's a", "$HOME \"x\""]);
        guards.add("exec form with quotes".into(), shell, &script, &exec(args));
        let args = json!({"command": "./guards/ID.sh", "args": []});
        guards.add("exec form without arguments".into(), shell, always, &args);
        guards.add(
            "exec form that reads".into(),
            None,
            &read_command,
            &exec(json!(["guards/ID.sh"])),
        );
    }
}

/// A guard for each key that a payload may have: it denies a call that has it.
fn add_key_guards(guards: &mut Guards<'_>, client: &Client, calls: &[&NativeCall]) {
    let native = native_deny(guards.adapter, calls.first().copied());
    let deny = if client.slug == "cline" {
        native.as_str()
    } else {
        DENY
    };
    let mut scripts: Vec<(String, String)> = Vec::new();
    for call in calls {
        let keyed = call.every_key.as_ref().unwrap();
        for key in &keyed.top_level {
            let script = format!("{READ}case $payload in *'\"{key}\":'*) {deny} ;; esac\n");
            scripts.push((format!("reads the key {key}"), script));
        }
        // What follows the input is not read.
        let input = format!(
            "rest=${{payload#*'\"{}\":{{'}}\nrest=${{rest%%\\}}*}}\n",
            keyed.input
        );
        for key in &keyed.in_input {
            let script = format!("{READ}{input}case $rest in *'\"{key}\":'*) {deny} ;; esac\n");
            scripts.push((format!("reads the key {key} of {}", keyed.input), script));
        }
    }
    scripts.sort();
    scripts.dedup();
    for (label, script) in scripts {
        guards.add_file(label, None, &script);
        guards.list.last_mut().unwrap().reads_one_key = true;
    }
}

/// Guards in a canonical manifest.
pub(crate) fn manifest_guards() -> Vec<Guard> {
    let json_deny = r#"echo '{"decision":"deny","reason":"denied by the guard"}'"#;
    let reads = |key: &str| reading(&["data", "tool_input", key], DENY);
    let mcp = |tool: Option<&str>| match tool {
        Some(tool) => json!({"mcp": {"server": "e2e", "tool": tool}}),
        None => json!({"mcp": {"server": "e2e"}}),
    };
    let plain = json!({"command": "./guards/ID.sh"});
    let with = |key: &str, value: Value| {
        let mut handler = plain.clone();
        handler[key] = value;
        handler
    };
    let none = Value::Null;
    let shell = json!("shell");
    let pattern = |text: &str| json!({"pattern": text});
    let in_sub = "[ \"${PWD##*/}\" = guards ] || exit 0\necho no >&2; exit 2";
    let with_env = "[ \"$MODE\" = strict ] || exit 0\necho no >&2; exit 2";
    let rows: Vec<(&str, Value, String, Value)> = vec![
        ("no matcher", none.clone(), DENY.into(), plain.clone()),
        ("shell", shell.clone(), DENY.into(), plain.clone()),
        (
            "list",
            json!(["file_write", "file_edit"]),
            DENY.into(),
            plain.clone(),
        ),
        (
            "list with MCP",
            json!(["shell", mcp(None)]),
            DENY.into(),
            plain.clone(),
        ),
        (
            "native pattern",
            pattern("^(Bash|Edit)$"),
            DENY.into(),
            plain.clone(),
        ),
        (
            "pattern of everything",
            pattern(".*"),
            DENY.into(),
            plain.clone(),
        ),
        (
            "pattern over MCP",
            pattern("mcp__.*"),
            DENY.into(),
            plain.clone(),
        ),
        ("MCP server", mcp(None), DENY.into(), plain.clone()),
        (
            "MCP tool",
            mcp(Some("echo_back")),
            DENY.into(),
            plain.clone(),
        ),
        ("JSON deny", shell.clone(), json_deny.into(), plain.clone()),
        (
            "JSON deny, no matcher",
            none.clone(),
            json_deny.into(),
            plain.clone(),
        ),
        (
            "reads the command",
            shell.clone(),
            reads("command"),
            plain.clone(),
        ),
        ("reads the path", none.clone(), reads("path"), plain.clone()),
        (
            "checks the tool's name",
            none.clone(),
            format!("{READ}case $payload in *'\"tool_name\":\"shell\"'*) {DENY} ;; esac"),
            plain.clone(),
        ),
        (
            "Claude's dialect",
            shell.clone(),
            reading(&["tool_input", "command"], DENY),
            with("dialect", json!("claude-code")),
        ),
        (
            "env",
            shell.clone(),
            with_env.into(),
            with("env", json!({"MODE": "strict"})),
        ),
        (
            "cwd",
            shell.clone(),
            in_sub.into(),
            json!({"command": "./ID.sh", "cwd": "guards"}),
        ),
    ];
    let mut guards = Vec::new();
    for (index, (label, matcher, script, handler)) in rows.into_iter().enumerate() {
        let id = format!("canonical-{index:02}");
        let mut hook =
            json!({"event": "before_tool_execute", "blocking": true, "handler": handler});
        hook["handler"]["type"] = json!("command");
        if !matcher.is_null() {
            hook["matcher"] = matcher;
        }
        let document = json!({"spec": "hooks/1.0", "hooks": [hook]}).to_string();
        guards.push(Guard {
            label: label.into(),
            document: serde_json::from_str(&document.replace("ID", &id)).unwrap(),
            script: format!("#!/bin/sh\n{script}\n"),
            id,
            reads_one_key: false,
            asks_or_ends: false,
        });
    }
    let id = "canonical-failing";
    let hook = json!({"event": "before_tool_execute", "blocking": true, "matcher": "shell",
        "on_failure": "block", "handler": {"type": "command", "command": format!("./guards/{id}.sh")}});
    guards.push(Guard {
        label: "a failure blocks".into(),
        document: json!({"spec": "hooks/1.0", "hooks": [hook]}),
        script: "#!/bin/sh\nexit 1\n".into(),
        id: id.into(),
        reads_one_key: false,
        asks_or_ends: false,
    });
    guards
}
