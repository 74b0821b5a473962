//! Checks one entry of a file: its handler type, timeout, matcher and command.

use anyhook_agents::Adapter;
use anyhook_agents::matchers::REGEX_PREFIX;
use anyhook_agents::spec::{Codec, MatcherSubject, MatcherSyntax};
use anyhook_model::suggest;
use regex_lite::Regex;
use serde_json::Value;

use super::config_file::FAULT_VOIDS_FILE;
use super::{DoctorFinding, FileCheck, Severity, hazard};
use crate::command;
use crate::hook_entries::HookEntry;

const INVALID_REGEX: &str = "invalid-regex-drops-event";
const NEVER_FIRES_REASON: &str = "the hook never fires, and nothing reports it";

pub(super) fn check(file: &mut FileCheck<'_>, entry: &HookEntry<'_>) {
    check_handler_type(file, entry);
    check_timeout(file, entry);
    check_matcher(file, entry);
    check_command(file, entry);
}

/// A handler type that the agent does not run.
fn check_handler_type(file: &mut FileCheck<'_>, entry: &HookEntry<'_>) {
    let handler = &file.target.config().handler;
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
        INVALID_REGEX,
    ] {
        let Some(hazard) = hazard(file.target.adapter, id) else {
            continue;
        };
        // The table names the types that it is about in the remedy, or for
        // skipped ones in the description.
        let quoted = format!("`{written}`");
        let applies = match id {
            "skipped-handler-types" => hazard.what.contains(&quoted),
            _ => !hazard.remedy.contains(&quoted),
        };
        if applies {
            let what = format!("{entry} has the handler type {quoted}");
            file.report_hazard(Severity::Error, id, what);
        }
    }
}

/// A timeout that looks as if it were meant in another unit.
fn check_timeout(file: &mut FileCheck<'_>, entry: &HookEntry<'_>) {
    let fields = file.target.config().handler.fields.iter();
    for field in fields.filter(|field| field.to == "timeout") {
        let Some(value) = entry.handler.pointer(&field.at).and_then(Value::as_f64) else {
            continue;
        };
        let what = format!("{entry} has `timeout` {value}");
        match field.codec {
            _ if value <= 0.0 => file.report_hazard(Severity::Error, FAULT_VOIDS_FILE, what),
            Codec::Millis if value < 1000.0 => {
                let what = format!("{what}, which is in milliseconds here");
                file.report_as(
                    &["timeout-milliseconds"],
                    DoctorFinding::error("timeout-unit", what)
                        .why("the hook is stopped before it can answer")
                        .remedy("multiply by 1000"),
                );
            }
            Codec::Seconds | Codec::WholeSeconds if value >= 1000.0 => {
                let what = format!("{what}, which is in seconds here");
                file.report(
                    DoctorFinding::warning("timeout-unit", what)
                        .why("a hook that hangs blocks the agent for that long")
                        .remedy("divide by 1000 if milliseconds were meant"),
                );
            }
            _ => {}
        }
    }
}

fn check_matcher(file: &mut FileCheck<'_>, entry: &HookEntry<'_>) {
    let (adapter, config) = (file.target.adapter, file.target.config());
    let spec = &config.matcher;
    let Some(text) = entry.matcher(config).and_then(Value::as_str) else {
        return;
    };
    let is_any = spec.any_read.iter().any(|any| any == text) || spec.any.as_deref() == Some(text);
    let event = adapter.event_by_native(entry.event);
    if is_any || event.is_none_or(|event| event.matcher != MatcherSubject::Tool) {
        return;
    }
    let shown = format!("{entry} has the matcher `{text}`");
    let is_list = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_|".contains(c) || spec.list_chars.contains(c));
    match spec.syntax {
        MatcherSyntax::None => {}
        MatcherSyntax::List if is_list => {
            for name in text.split(['|', ',']).map(str::trim) {
                if is_bare_server(adapter, name) {
                    file.report_hazard(Severity::Error, "bare-mcp-server-matcher", &shown);
                }
                check_tool_name(file, name, &shown, &|tool| tool == name);
            }
        }
        MatcherSyntax::GlobOrRegex if !text.starts_with(REGEX_PREFIX) => {
            if !text.contains(['*', '?', '[']) {
                check_tool_name(file, text, &shown, &|tool| tool.eq_ignore_ascii_case(text));
            }
        }
        MatcherSyntax::Glob if text.contains(['*', '?', '@', '[']) => {}
        MatcherSyntax::Glob => check_tool_name(file, text, &shown, &|tool| tool == text),
        _ => {
            let text = text.strip_prefix(REGEX_PREFIX).unwrap_or(text);
            let pattern = match spec.syntax {
                MatcherSyntax::AnchoredRegex => &format!("^(?:{text})$"),
                MatcherSyntax::GlobOrRegex => &format!("^(?i:{text})$"),
                _ => text,
            };
            match Regex::new(pattern) {
                Ok(regex) => {
                    for name in plain_alternatives(text) {
                        check_tool_name(file, name, &shown, &|tool| regex.is_match(tool));
                    }
                    check_mcp_names(file, text, &shown);
                }
                // Other regex engines may accept it.
                Err(_) if text.contains("(?") || text.contains('\\') => {}
                Err(_) => file.report_as(
                    &[INVALID_REGEX, FAULT_VOIDS_FILE, "anchored-matcher"],
                    DoctorFinding::error("bad-matcher", format!("{shown}, an invalid regex"))
                        .why("the hook never fires")
                        .remedy("write a valid regex; `.*` matches everything"),
                ),
            }
        }
    }
}

/// The alternatives of a regex such as `^(Edit|Write)$`; none if it is anything else.
fn plain_alternatives(text: &str) -> Vec<&str> {
    let inner = text.trim_start_matches('^').trim_end_matches('$');
    let inner = inner
        .strip_prefix("(?:")
        .or_else(|| inner.strip_prefix('('))
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(inner);
    let mut chars = inner.chars();
    let is_plain = chars.all(|c| c.is_ascii_alphanumeric() || "_-|,".contains(c));
    inner.split('|').filter(|_| is_plain).collect()
}

/// A name that no tool of this agent has: another spelling, or another agent's
/// tool. A name that is unknown everywhere may be anything.
fn check_tool_name(
    file: &mut FileCheck<'_>,
    name: &str,
    shown: &str,
    matches: &dyn Fn(&str) -> bool,
) {
    let adapter = file.target.adapter;
    let tools = adapter.spec.tools.iter();
    let own: Vec<&str> = tools
        .flat_map(|tool| std::iter::once(&tool.native).chain(&tool.aliases))
        .map(AsRef::as_ref)
        .collect();
    if name.is_empty() || own.iter().any(|tool| matches(tool)) || own.contains(&name) {
        return;
    }
    let similar = own.iter().find(|tool| tool.eq_ignore_ascii_case(name));
    let hint = match similar {
        Some(tool) => Some(format!("the tool is called `{tool}`")),
        None => foreign_tool_hint(adapter, name),
    };
    if let Some(hint) = hint {
        let what = format!("{shown}: {} has no tool `{name}`", adapter.spec.name);
        file.report(
            DoctorFinding::error("matcher-never-matches", what)
                .why(NEVER_FIRES_REASON)
                .remedy(hint),
        );
    }
}

fn foreign_tool_hint(adapter: &Adapter, name: &str) -> Option<String> {
    let (other, canonical) = anyhook_agents::all().find_map(|other| {
        let tool =
            other.spec.tools.iter().find(|tool| {
                tool.native == name || tool.aliases.iter().any(|alias| alias == name)
            })?;
        Some((other, &tool.is))
    })?;
    let names = adapter.native_names(canonical);
    let nearest = suggest::nearest(name, names.iter().copied()).or(names.first().copied())?;
    let other = &other.spec.name;
    Some(format!(
        "`{name}` is a tool of {other}; here it is called `{nearest}`"
    ))
}

/// `mcp__server` where a tool's whole name is meant.
fn is_bare_server(adapter: &Adapter, name: &str) -> bool {
    adapter.spec.mcp.format == "mcp__{server}__{tool}"
        && name
            .strip_prefix("mcp__")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains("__"))
}

/// Names of MCP tools as another agent writes them.
fn check_mcp_names(file: &mut FileCheck<'_>, text: &str, shown: &str) {
    let spec = &file.target.adapter.spec;
    let format = &spec.mcp.format;
    if text.contains("mcp__") && !format.contains("mcp__") && !format.is_empty() {
        let what = format!("{shown}: MCP tools of {} have other names", spec.name);
        file.report_as(
            &["mcp-three-underscores"],
            DoctorFinding::error("matcher-never-matches", what)
                .why(NEVER_FIRES_REASON)
                .remedy(format!("write them as `{format}`")),
        );
    }
}

/// A command that is missing, or that the agent cannot start as it is written.
fn check_command(file: &mut FileCheck<'_>, entry: &HookEntry<'_>) {
    let config = file.target.config();
    let mut commands = entry.commands(config).peekable();
    let kind = config.handler.type_at.as_ref();
    let kind = kind.and_then(|at| entry.handler.pointer(at));
    if commands.peek().is_none() && kind.is_none_or(|kind| kind == "command") {
        let what = format!("{entry} has no command");
        file.report_hazard(Severity::Error, FAULT_VOIDS_FILE, what);
    }
    for line in commands.filter(|line| !command::is_only_bridge(line)) {
        if ["&&", "||", " | ", ";", " #"]
            .iter()
            .any(|part| line.contains(part))
        {
            let what = format!("{entry} runs `{line}`");
            file.report_hazard(Severity::Warning, "compound-command", what);
        }
    }
}
