//! One entry: its type, its matcher, its time.

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Codec, MatcherSyntax};
use anyhook_model::suggest;
use regex_lite::Regex;
use serde_json::Value;

use super::{Finding, Severity, about, hazard, trap};
use crate::target::Target;
use crate::walk::Entry;

pub fn check(target: &Target, entry: &Entry<'_>, findings: &mut Vec<Finding>) {
    kind(target, entry, findings);
    time(target, entry, findings);
    matcher(target, entry, findings);
    command(target, entry, findings);
}

fn place(entry: &Entry<'_>) -> String {
    format!("entry {} of `{}`", entry.index + 1, entry.event)
}

/// A handler type that the agent does not run.
fn kind(target: &Target, entry: &Entry<'_>, findings: &mut Vec<Finding>) {
    let handler = &target.config().handler;
    let Some(at) = &handler.type_at else { return };
    let Some(written) = entry.handler.pointer(at).and_then(Value::as_str) else {
        return;
    };
    if handler.types.values().any(|known| known == written) {
        return;
    }
    for id in [
        "unknown-handler-type",
        "skipped-handler-types",
        "invalid-regex-drops-event",
    ] {
        let Some(hazard) = hazard(target.adapter, id) else {
            continue;
        };
        // The table says in the remedy, or for skipped ones in the trap, which types it is about.
        let quoted = format!("`{written}`");
        let applies = match id {
            "skipped-handler-types" => hazard.what.contains(&quoted),
            _ => !hazard.remedy.contains(&quoted),
        };
        if applies {
            let what = format!("{} has the handler type `{written}`", place(entry));
            findings.extend(trap(target, id, Severity::Error, what));
        }
    }
}

/// A time that looks as if it were counted in another unit.
fn time(target: &Target, entry: &Entry<'_>, findings: &mut Vec<Finding>) {
    let fields = target.config().handler.fields.iter();
    for field in fields.filter(|field| field.to == "timeout") {
        let Some(value) = entry.handler.pointer(&field.at).and_then(Value::as_f64) else {
            continue;
        };
        let shown = format!("{} has `timeout` {value}", place(entry));
        if value <= 0.0 {
            findings.extend(trap(
                target,
                "one-fault-voids-the-file",
                Severity::Error,
                shown,
            ));
            continue;
        }
        match field.codec {
            Codec::Millis if value < 1000.0 => {
                let what = format!("{shown}, which is in milliseconds here");
                let known = trap(
                    target,
                    "timeout-milliseconds",
                    Severity::Error,
                    what.clone(),
                );
                findings.push(known.unwrap_or_else(|| {
                    about(
                        target,
                        "timeout-unit",
                        Severity::Error,
                        what,
                        "the hook is ended before it speaks",
                        "multiply by 1000".to_owned(),
                    )
                }));
            }
            Codec::Seconds | Codec::WholeSeconds if value >= 1000.0 => {
                findings.push(about(
                    target,
                    "timeout-unit",
                    Severity::Warning,
                    format!("{shown}, which is in seconds here"),
                    "a hook that hangs holds the agent for that long",
                    "divide by 1000, if it was meant in milliseconds".to_owned(),
                ));
            }
            _ => {}
        }
    }
}

fn matcher(target: &Target, entry: &Entry<'_>, findings: &mut Vec<Finding>) {
    let config = target.config();
    let spec = &config.matcher;
    let Some(text) = entry.matcher(config).and_then(Value::as_str) else {
        return;
    };
    if spec.any_read.iter().any(|any| any == text) || spec.any.as_deref() == Some(text) {
        return;
    }
    let is_tool = target
        .adapter
        .event_by_native(entry.event)
        .is_some_and(|event| event.matcher == "tool");
    if !is_tool {
        return;
    }
    let shown = format!("{} has the matcher `{text}`", place(entry));
    let is_list = |extra: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_|".contains(c) || extra.contains(c))
    };
    match spec.syntax {
        MatcherSyntax::None => {}
        MatcherSyntax::List if is_list(&spec.list_chars) => {
            for name in text.split(['|', ',']).map(str::trim) {
                if is_bare_server(target.adapter, name) {
                    let id = "bare-mcp-server-matcher";
                    findings.extend(trap(target, id, Severity::Error, shown.clone()));
                }
                never(target, name, &shown, &|tool| tool == name, findings);
            }
        }
        MatcherSyntax::Glob if text.contains(['*', '?', '@', '[']) => {}
        MatcherSyntax::Glob => never(target, text, &shown, &|tool| tool == text, findings),
        _ => {
            let anchored = spec.syntax == MatcherSyntax::AnchoredRegex;
            let pattern = if anchored {
                format!("^(?:{text})$")
            } else {
                text.to_owned()
            };
            match Regex::new(&pattern) {
                Ok(regex) => {
                    for name in words(text) {
                        never(target, name, &shown, &|tool| regex.is_match(tool), findings);
                    }
                    foreign_mcp(target, text, &shown, findings);
                }
                // What other engines accept is not wrong here.
                Err(_) if text.contains("(?") || text.contains('\\') => {}
                Err(_) => bad_regex(target, &shown, findings),
            }
        }
    }
}

fn bad_regex(target: &Target, shown: &str, findings: &mut Vec<Finding>) {
    let what = format!("{shown}, which is no valid regex");
    let known = [
        "invalid-regex-drops-event",
        "one-fault-voids-the-file",
        "anchored-matcher",
    ]
    .into_iter()
    .find_map(|id| trap(target, id, Severity::Error, what.clone()));
    findings.push(known.unwrap_or_else(|| {
        about(
            target,
            "bad-matcher",
            Severity::Error,
            what,
            "the hook never fires",
            "write a regex; `.*` is for everything".to_owned(),
        )
    }));
}

/// The plain alternatives of a regex such as `^(Edit|Write)$`; none when it is
/// anything else.
fn words(text: &str) -> Vec<&str> {
    let inner = text.trim_start_matches('^').trim_end_matches('$');
    let inner = inner
        .strip_prefix("(?:")
        .or_else(|| inner.strip_prefix('('))
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(inner);
    let is_word =
        |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '|' || c == ',';
    if inner.chars().all(is_word) {
        inner.split('|').collect()
    } else {
        Vec::new()
    }
}

/// A name by which no tool of this agent is called: another spelling, or
/// another agent's tool. A name that nobody knows may be anything.
fn never(
    target: &Target,
    name: &str,
    shown: &str,
    matches: &dyn Fn(&str) -> bool,
    findings: &mut Vec<Finding>,
) {
    let own: Vec<&str> = tools(target.adapter).collect();
    if name.is_empty() || own.iter().any(|tool| matches(tool)) || own.contains(&name) {
        return;
    }
    let near = own.iter().find(|tool| tool.eq_ignore_ascii_case(name));
    let hint = if let Some(near) = near {
        format!("the tool is called `{near}`")
    } else {
        let foreign = anyhook_agents::all().find_map(|other| {
            let tool = other.spec.tools.iter().find(|tool| {
                tool.native == name || tool.aliases.iter().any(|alias| alias == name)
            })?;
            Some((other, tool.is.as_ref()))
        });
        let Some((other, canonical)) = foreign else {
            return;
        };
        let here = target.adapter.native_names(canonical);
        let Some(first) = here.first() else {
            return;
        };
        let near = suggest::nearest(name, here.iter().copied()).unwrap_or(first);
        format!("that is a tool of {}; here it is `{near}`", other.spec.name)
    };
    findings.push(about(
        target,
        "matcher-never-matches",
        Severity::Error,
        format!("{shown}: {} has no tool `{name}`", target.adapter.spec.name),
        "the hook never fires, and nothing says so",
        hint,
    ));
}

fn tools(adapter: &Adapter) -> impl Iterator<Item = &str> {
    adapter
        .spec
        .tools
        .iter()
        .flat_map(|tool| std::iter::once(&tool.native).chain(&tool.aliases))
        .map(AsRef::as_ref)
}

/// `mcp__server` where a tool's whole name is meant.
fn is_bare_server(adapter: &Adapter, name: &str) -> bool {
    adapter.spec.mcp.format == "mcp__{server}__{tool}"
        && name
            .strip_prefix("mcp__")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains("__"))
}

/// Names of MCP tools as another agent writes them.
fn foreign_mcp(target: &Target, text: &str, shown: &str, findings: &mut Vec<Finding>) {
    let is_foreign = text.contains("mcp__") && !target.adapter.spec.mcp.format.contains("mcp__");
    if is_foreign && !target.adapter.spec.mcp.format.is_empty() {
        let known = trap(
            target,
            "mcp-three-underscores",
            Severity::Error,
            shown.to_owned(),
        );
        findings.push(known.unwrap_or_else(|| {
            about(
                target,
                "matcher-never-matches",
                Severity::Error,
                format!(
                    "{shown}: {} has no such MCP names",
                    target.adapter.spec.name
                ),
                "the hook never fires, and nothing says so",
                format!("they look like `{}` here", target.adapter.spec.mcp.format),
            )
        }));
    }
}

/// A command that the agent's way of starting it breaks.
fn command(target: &Target, entry: &Entry<'_>, findings: &mut Vec<Finding>) {
    let config = target.config();
    let mut commands = entry.commands(config).peekable();
    if commands.peek().is_none() {
        let is_command = config
            .handler
            .type_at
            .as_ref()
            .and_then(|at| entry.handler.pointer(at))
            .is_none_or(|kind| kind == "command");
        if is_command {
            let what = format!("{} has no command", place(entry));
            findings.extend(trap(
                target,
                "one-fault-voids-the-file",
                Severity::Error,
                what,
            ));
        }
        return;
    }
    for line in commands {
        let is_compound = ["&&", "||", " | ", ";", " #"]
            .iter()
            .any(|part| line.contains(part));
        if is_compound {
            let what = format!("{} runs `{line}`", place(entry));
            findings.extend(trap(target, "compound-command", Severity::Warning, what));
        }
    }
}
