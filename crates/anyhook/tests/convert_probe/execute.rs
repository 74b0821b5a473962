//! Executes a config as its client would.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhook_agents::Adapter;
use anyhook_agents::spec::ConfigShape;
use anyhook_testkit::reference_model::{Action, react};
use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::{Value, json};

use crate::calls::NativeCall;
use crate::clients::client;
use crate::guards::Guard;

/// An entry of a config: event, matcher, handler.
struct Entry<'a> {
    event: &'a str,
    matcher: Option<&'a str>,
    handler: &'a Value,
}

fn entries<'a>(adapter: &Adapter, document: &'a Value) -> Vec<Entry<'a>> {
    let config = &adapter.spec.config;
    let root = document.pointer(&config.root).unwrap_or(document);
    let matcher = |value: &'a Value| {
        let matcher = value.get("matcher").or(value.get("match"));
        matcher.and_then(Value::as_str)
    };
    let mut found = Vec::new();
    if config.shape == ConfigShape::List {
        for entry in root.as_array().into_iter().flatten() {
            if entry.get("enabled") != Some(&json!(false)) {
                let mut names = ["trigger", "event", "type"].iter();
                let event = names.find_map(|name| entry.get(name)?.as_str());
                found.push(Entry {
                    event: event.unwrap_or_default(),
                    matcher: matcher(entry),
                    handler: entry.get("action").unwrap_or(entry),
                });
            }
        }
        return found;
    }
    for (event, list) in root.as_object().into_iter().flatten() {
        for entry in list.as_array().into_iter().flatten() {
            match entry.get("hooks").and_then(Value::as_array) {
                Some(handlers) => found.extend(handlers.iter().map(|handler| Entry {
                    event,
                    matcher: matcher(entry),
                    handler,
                })),
                None => found.push(Entry {
                    event,
                    matcher: matcher(entry),
                    handler: entry,
                }),
            }
        }
    }
    found
}

/// Runs hooks, each only once for the same input.
pub(crate) struct Executor {
    pub scratch: Scratch,
    ran: Mutex<HashMap<String, ProcessOutput>>,
    pub started: AtomicUsize,
    plugins: Option<Mutex<PluginHost>>,
}

impl Executor {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new().unwrap();
        let plugins = PluginHost::start(&scratch).map(Mutex::new);
        Self {
            scratch,
            ran: Mutex::default(),
            started: AtomicUsize::default(),
            plugins,
        }
    }

    /// Whether the programs are there that this agent's hooks need.
    pub(crate) fn can_run(&self, adapter: &Adapter) -> bool {
        adapter.spec.config.shape != ConfigShape::Plugin || self.plugins.is_some()
    }

    /// Whether the agent denies a call because of this config; and what happened.
    pub(crate) fn denies(
        &self,
        adapter: &'static Adapter,
        document: &Value,
        guard: &Guard,
        call: &NativeCall,
    ) -> Result<(), String> {
        let client = client(&adapter.spec.id);
        let mut log = String::new();
        let is_own_program = !document.to_string().contains("BLOCKED");
        let same_always = is_own_program && !guard.reads_payload();
        for (event, payload) in &call.events {
            let key = format!("{} {event} {}", client.slug, call.subject.tool);
            let key = if same_always {
                key
            } else {
                format!("{key} {payload}")
            };
            let outputs = match adapter.spec.config.shape {
                ConfigShape::Scripts => self.script(adapter, document, event, payload, &key),
                ConfigShape::Plugin => self.plugin(adapter, document, event, payload, &key),
                _ => self.commands(adapter, document, event, payload, call, &key),
            };
            for (output, fails_closed) in outputs {
                if fails_closed && !matches!(output.exit, Some(0 | 2)) {
                    return Ok(());
                }
                let reaction = react(&adapter.spec.id, event, payload, &output.answer(), true);
                let is_softer = reaction.action == Action::AskUser || reaction.session_ends;
                if reaction.action == Action::Blocked || (guard.asks_or_ends && is_softer) {
                    return Ok(());
                }
                // Writing to a string does not fail.
                let _ = writeln!(log, "  {event}: {output:?}\n  {reaction:?}");
            }
        }
        if log.is_empty() {
            log = "  no hook fired\n".into();
        }
        Err(log)
    }

    fn commands(
        &self,
        adapter: &Adapter,
        document: &Value,
        event: &str,
        payload: &Value,
        call: &NativeCall,
        key: &str,
    ) -> Vec<(ProcessOutput, bool)> {
        let client = client(&adapter.spec.id);
        let mut outputs = Vec::new();
        for entry in entries(adapter, document) {
            let named = adapter.event_by_native(entry.event);
            let is_event = named.is_some_and(|named| named.native == event);
            let is_async = entry.handler.get("async") == Some(&json!(true));
            if !is_event || is_async || !client.fires(event, entry.matcher, &call.subject) {
                continue;
            }
            let tool = &call.subject.tool;
            let payload = payload.to_string();
            let key = format!("{key} {}", entry.handler);
            let output = self.once(key, || {
                client.start(&self.scratch, entry.handler, tool, &payload)
            });
            let fails_closed = entry.handler.get("onFailure") == Some(&json!("block"))
                || entry.handler.get("on_failure") == Some(&json!("block"))
                || entry.handler.get("failClosed") == Some(&json!(true))
                || entry.handler.get("strict") == Some(&json!(true));
            outputs.push((output, fails_closed));
        }
        outputs
    }

    fn once(&self, key: String, run: impl FnOnce() -> ProcessOutput) -> ProcessOutput {
        if let Some(known) = self.ran.lock().unwrap().get(&key) {
            return known.clone();
        }
        self.started.fetch_add(1, Ordering::Relaxed);
        let output = run();
        self.ran.lock().unwrap().insert(key, output.clone());
        output
    }

    /// A client that starts the file with the event's name.
    fn script(
        &self,
        adapter: &Adapter,
        document: &Value,
        event: &str,
        payload: &Value,
        key: &str,
    ) -> Vec<(ProcessOutput, bool)> {
        let files = adapter.files(document, None);
        let Some(file) = files
            .iter()
            .find(|file| file.name.as_deref() == Some(event))
        else {
            return Vec::new();
        };
        let key = format!("{key} {}", file.text);
        let output = self.once(key, || {
            // The text as an argument needs no file.
            let command = self.scratch.command("sh");
            command
                .run(["-c", &file.text], &payload.to_string())
                .unwrap()
        });
        vec![(output, false)]
    }

    /// A client that loads a program.
    fn plugin(
        &self,
        adapter: &Adapter,
        document: &Value,
        event: &str,
        payload: &Value,
        key: &str,
    ) -> Vec<(ProcessOutput, bool)> {
        let (Some(plugins), [file]) = (&self.plugins, &*adapter.files(document, None)) else {
            return Vec::new();
        };
        let key = format!("{key} {}", file.text);
        let output = self.once(key, || {
            plugins
                .lock()
                .unwrap()
                .call(&self.scratch, &file.text, event, payload)
        });
        vec![(output, false)]
    }
}

/// A process that loads plugins and calls their hooks. A thrown error is a deny.
struct PluginHost {
    _process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    files: HashMap<String, String>,
}

const PLUGIN_HOST: &str = r"
import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const { path, event, payload } = JSON.parse(line);
  const plugin = Object.values(await import(path))[0];
  const registered = {};
  const on = (name, handler) => (registered[name] = handler);
  const hooks = await plugin({ directory: process.cwd(), on });
  let answer = {};
  try {
    if (hooks) await hooks[event]?.(payload.input ?? {}, payload.output ?? {});
    const said = await registered[event]?.(payload, { cwd: process.cwd() });
    if (said?.block || said?.action === 'handled') throw new Error(said.reason ?? 'handled');
  } catch (error) {
    answer = { deny: error.message };
  }
  console.log(JSON.stringify(answer));
}
";

impl PluginHost {
    fn start(scratch: &Scratch) -> Option<Self> {
        let host = scratch.file("host.mjs", PLUGIN_HOST).unwrap();
        let mut process = scratch.command("node").spawn([host]).ok()?;
        Some(Self {
            stdin: process.stdin.take()?,
            stdout: BufReader::new(process.stdout.take()?),
            _process: process,
            files: HashMap::new(),
        })
    }

    fn call(
        &mut self,
        scratch: &Scratch,
        text: &str,
        event: &str,
        payload: &Value,
    ) -> ProcessOutput {
        let count = self.files.len();
        let path = self.files.entry(text.to_owned()).or_insert_with(|| {
            let path = scratch.file(format!("plugins/{count}.mjs"), text).unwrap();
            path.display().to_string()
        });
        let asked = json!({"path": path, "event": event, "payload": payload}).to_string();
        writeln!(self.stdin, "{asked}").unwrap();
        let mut stdout = String::new();
        self.stdout.read_line(&mut stdout).unwrap();
        ProcessOutput {
            exit: Some(0),
            stdout,
            stderr: String::new(),
        }
    }
}
