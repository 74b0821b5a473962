//! Manifest and hook.

use std::collections::HashSet;

use serde_json::Map;

use super::checker::{Checker, list, suggestion};
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::Node;
use crate::fields::{self, STRATEGIES};
use crate::hook::{Handler, HandlerKind, Hook, Manifest, SPEC, SPECS, TimeoutAction};
use crate::registry::{self, CAPABILITIES, EVENTS, Semantic};
use crate::suggest::nearest;

impl Checker<'_> {
    pub(super) fn manifest(&mut self, node: &Node, path: &Path<'_>) -> Option<Manifest> {
        let Some(members) = node.as_object() else {
            let finding = Diagnostic::error(
                "wrong-type",
                node.span,
                format!(
                    "a manifest is an object with `spec` and `hooks`, not {}",
                    node.kind()
                ),
            );
            self.push(finding, path);
            return None;
        };
        let mut spec = None;
        let mut hooks = None;
        let mut extra = Map::new();
        let (mut has_spec, mut has_hooks) = (false, false);
        for member in members {
            let at = path.key(&member.key);
            match member.key.as_str() {
                "spec" => {
                    has_spec = true;
                    spec = self.spec(&member.value, &at);
                }
                "hooks" => {
                    has_hooks = true;
                    hooks = self.hooks(&member.value, &at);
                }
                _ => {
                    self.unknown_field(member, fields::MANIFEST, path);
                    extra.insert(member.key.clone(), member.value.to_json());
                }
            }
        }
        let start = Span::at(node.span.start);
        if !has_spec {
            self.missing(
                "spec",
                start,
                &format!("add `spec: {SPEC}` at the top"),
                path,
            );
        }
        if !has_hooks {
            self.missing(
                "hooks",
                start,
                "add a list `hooks` with at least one hook",
                path,
            );
        }
        Some(Manifest {
            spec: spec?,
            hooks: hooks?,
            extra,
        })
    }

    fn spec(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let spec = match node.as_str() {
            Some(spec) if SPECS.contains(&spec) => return Some(spec.to_owned()),
            Some(spec) => format!("`{spec}`"),
            None => node.kind().to_owned(),
        };
        let message = format!("{spec} is not a version that is supported");
        let help = format!("write {}", list(&SPECS));
        self.push(
            Diagnostic::error("unknown-spec", node.span, message).help(help),
            path,
        );
        None
    }

    fn hooks(&mut self, node: &Node, path: &Path<'_>) -> Option<Vec<Hook>> {
        let items = self.array(node, path)?;
        if items.is_empty() {
            let finding = Diagnostic::error("empty", node.span, "`hooks` is empty")
                .help("a manifest has at least one hook");
            self.push(finding, path);
        }
        let mut names = HashSet::new();
        let mut hooks = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = path.index(index);
            hooks.extend(self.hook(item, &at));
            if let Some(name) = item.get("name")
                && let Some(text) = name.as_str()
                && !names.insert(text)
            {
                let finding = Diagnostic::warning(
                    "duplicate-name",
                    name.span,
                    format!("another hook is called `{text}` too"),
                )
                .help("give each hook its own name, so that messages say which one is meant");
                self.push(finding, &at.key("name"));
            }
        }
        Some(hooks)
    }

    fn hook(&mut self, node: &Node, path: &Path<'_>) -> Option<Hook> {
        let members = self.object(node, path)?;
        let mut name = None;
        let mut event = None;
        let mut matcher = None;
        let mut handler = None;
        let mut blocking = false;
        let mut degradation = Map::new();
        let mut capabilities = Vec::new();
        let mut provider_data = Map::new();
        let mut extra = Map::new();
        let mut spans = Spans::default();
        for member in members {
            let at = path.key(&member.key);
            let known = fields::names(fields::HOOK).any(|field| field == member.key);
            if known && self.is_null(member, path) {
                continue;
            }
            let value = &member.value;
            match member.key.as_str() {
                "name" => name = self.filled_text(value, &at),
                "event" => {
                    spans.event = Some(value.span);
                    event = self.event_name(value, &at);
                }
                "matcher" => {
                    spans.matcher = Some(value.span);
                    matcher = self.matcher(value, &at);
                }
                "handler" => {
                    spans.handler = true;
                    spans.command = value.get("command").map(|command| command.span);
                    spans.is_async = value.get("async").map(|flag| flag.span);
                    spans.timeout_action = value.get("timeout_action").map(|action| action.span);
                    handler = self.handler(value, &at);
                }
                "blocking" => {
                    spans.blocking = Some(value.span);
                    let flag = self.flag(value, &at);
                    spans.blocking_unclear = flag.is_none();
                    blocking = flag.unwrap_or_default();
                }
                "degradation" => degradation = self.degradation(value, &at),
                "capabilities" => {
                    capabilities = self.texts(value, &at);
                    self.capability_names(value, &at);
                }
                "provider_data" => provider_data = self.provider_data(value, &at),
                _ => {
                    self.unknown_field(member, fields::HOOK, path);
                    extra.insert(member.key.clone(), value.to_json());
                }
            }
        }
        let start = Span::at(node.span.start);
        if spans.event.is_none() {
            self.missing(
                "event",
                start,
                "say when the hook runs: `event: before_tool_execute`",
                path,
            );
        }
        if !spans.handler {
            self.missing(
                "handler",
                start,
                "say what runs: `handler: {type: command, command: ./check.sh}`",
                path,
            );
        }
        let hook = Hook {
            name,
            event: event?,
            matcher,
            handler: handler?,
            blocking,
            degradation,
            capabilities,
            provider_data,
            extra,
        };
        self.combinations(&hook, &spans, path);
        Some(hook)
    }

    fn event_name(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let name = self.filled_text(node, path)?;
        if registry::event(&name).is_none()
            && !self.vocabulary.native_events.contains(&name.as_str())
        {
            let near = registry::event_by_unified(&name)
                .map(|event| event.name)
                .or_else(|| nearest(&name, EVENTS.iter().map(|event| event.name)));
            let finding = Diagnostic::warning("unknown-event", node.span, format!("unknown event `{name}`"))
                .help(suggestion(
                    near,
                    "it fires only under an agent with an event of that very name; `anyhook events` lists the canonical ones",
                ));
            self.push(finding, path);
        }
        Some(name)
    }

    fn degradation(&mut self, node: &Node, path: &Path<'_>) -> Map<String, serde_json::Value> {
        let mut map = Map::new();
        for member in self.object(node, path).unwrap_or_default() {
            let at = path.key(&member.key);
            self.capability_name(&member.key, member.key_span, &at);
            let strategy = self.word(
                &member.value,
                &STRATEGIES,
                "unknown-strategy",
                "degradation strategy",
                &at,
            );
            if let Some(strategy) = strategy {
                map.insert(member.key.clone(), strategy.into());
            }
        }
        map
    }

    fn capability_names(&mut self, node: &Node, path: &Path<'_>) {
        for (index, item) in node.as_array().unwrap_or_default().iter().enumerate() {
            if let Some(name) = item.as_str() {
                self.capability_name(name, item.span, &path.index(index));
            }
        }
    }

    pub(super) fn capability_name(&mut self, name: &str, span: Span, path: &Path<'_>) {
        if registry::capability(name).is_some() {
            return;
        }
        let names = CAPABILITIES.iter().map(|capability| capability.name);
        let finding = Diagnostic::warning(
            "unknown-capability",
            span,
            format!("unknown capability `{name}`"),
        )
        .help(suggestion(
            nearest(name, names),
            "`anyhook capabilities` lists them",
        ));
        self.push(finding, path);
    }

    fn provider_data(&mut self, node: &Node, path: &Path<'_>) -> Map<String, serde_json::Value> {
        let mut map = Map::new();
        for member in self.object(node, path).unwrap_or_default() {
            let agents = self.vocabulary.agents;
            let near = nearest(&member.key, agents.iter().copied())
                .filter(|_| !agents.contains(&member.key.as_str()));
            if let Some(near) = near {
                let finding = Diagnostic::warning(
                    "unknown-agent",
                    member.key_span,
                    format!("no agent has the slug `{}`", member.key),
                )
                .help(format!("did you mean `{near}`?"));
                self.push(finding, &path.key(&member.key));
            }
            if member.value.as_object().is_none() {
                let finding = Diagnostic::warning(
                    "wrong-type",
                    member.value.span,
                    format!(
                        "data for `{}` should be an object, not {}",
                        member.key,
                        member.value.kind()
                    ),
                );
                self.push(finding, &path.key(&member.key));
            }
            map.insert(member.key.clone(), member.value.to_json());
        }
        map
    }

    /// What is right by itself and wrong together.
    fn combinations(&mut self, hook: &Hook, spans: &Spans, path: &Path<'_>) {
        let known = registry::event(&hook.event);
        if let (Some(event), Some(span)) = (known, spans.matcher)
            && !event.tool
        {
            let finding = Diagnostic::warning(
                "matcher-ignored",
                span,
                format!(
                    "`{}` is not about a tool, so the matcher is ignored",
                    event.name
                ),
            )
            .help("remove the matcher");
            self.push(finding, &path.key("matcher"));
        }
        if spans.blocking_unclear {
            return;
        }
        if !hook.blocking {
            if let (Some(TimeoutAction::Block), Some(span)) =
                (hook.handler.timeout_action, spans.timeout_action)
            {
                let finding = Diagnostic::warning(
                    "no-effect",
                    span,
                    "`timeout_action: block` has no effect on a hook that is not blocking",
                )
                .help("set `blocking: true` on the hook");
                self.push(finding, &path.key("handler").key("timeout_action"));
            }
            return;
        }
        let blocking = spans.blocking.unwrap_or_default();
        if let Some(event) = known
            && event.blocking == Semantic::Observe
        {
            let finding = Diagnostic::warning(
                "cannot-block",
                blocking,
                format!("nothing can be blocked at `{}`", event.name),
            )
            .help("remove `blocking`, or choose an event that comes before the action");
            self.push(finding, &path.key("blocking"));
        }
        if let (true, Some(span)) = (hook.handler.is_async, spans.is_async) {
            let finding = Diagnostic::warning(
                "async-blocking",
                span,
                "nobody waits for an `async` hook, so it cannot block",
            )
            .help("remove `async` or `blocking`");
            self.push(finding, &path.key("handler").key("async"));
        }
        if let (Some(command), Some(span)) = (inline_command(&hook.handler), spans.command) {
            let finding = Diagnostic::warning(
                "inline-command",
                span,
                format!("a blocking hook runs {command}"),
            )
            .help("put it in a script of its own, which can be read, tested and reviewed");
            self.push(finding, &path.key("handler").key("command"));
        }
    }
}

/// Where the parts are that are judged together.
#[derive(Default)]
struct Spans {
    event: Option<Span>,
    matcher: Option<Span>,
    handler: bool,
    command: Option<Span>,
    is_async: Option<Span>,
    timeout_action: Option<Span>,
    blocking: Option<Span>,
    blocking_unclear: bool,
}

/// What makes the command more than the call of a program or script.
fn inline_command(handler: &Handler) -> Option<&'static str> {
    if handler.kind != HandlerKind::Command {
        return None;
    }
    let command = handler.command.as_deref()?.trim();
    let mut words = command.split_whitespace();
    let program = words.next()?.rsplit(['/', '\\']).next()?;
    let interpreter = matches!(
        program.trim_end_matches(".exe"),
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "fish"
            | "python"
            | "python3"
            | "node"
            | "bun"
            | "deno"
            | "ruby"
            | "perl"
            | "pwsh"
            | "powershell"
            | "cmd"
    );
    let inline_flag = words.next().is_some_and(|flag| {
        matches!(
            flag.to_ascii_lowercase().as_str(),
            "-c" | "-e" | "-ec" | "-lc" | "--eval" | "-command" | "/c" | "eval"
        )
    });
    if interpreter && inline_flag {
        return Some("code that stands in its command");
    }
    let operators = ["|", ";", "&&", "`", "$(", ">", "<", "\n"];
    operators
        .iter()
        .any(|operator| command.contains(operator))
        .then_some("a whole shell script in its command")
}
