//! Checks of a manifest and its hooks.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

use super::checker::{Checker, list, suggestion};
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::Node;
use crate::fields;
use crate::hook::{
    Handler, HandlerKind, Hook, Manifest, OnFailure, SPEC, SPEC_0_1, SPECS, Strategy, TimeoutAction,
};
use crate::interpreter;
use crate::matcher::Matcher;
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
                    node.type_name()
                ),
            );
            self.push(finding, path);
            return None;
        };
        let stated = node.get("spec").and_then(Node::as_str);
        self.is_version_0_1 = stated == Some(SPEC_0_1);
        let mut spec = None;
        let mut hooks = None;
        let mut sequential = false;
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
                "sequential" => {
                    sequential = self.flag(&member.value, &at).unwrap_or_default();
                }
                _ => {
                    let value = self.unknown_field(member, fields::MANIFEST, path);
                    extra.insert(member.key.clone(), value);
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
            sequential,
            extra,
        })
    }

    fn spec(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let spec = match node.as_str() {
            Some(spec) if SPECS.contains(&spec) => return Some(spec.to_owned()),
            Some(spec) => format!("`{spec}`"),
            None => node.type_name().to_owned(),
        };
        let message = format!("{spec} is not a supported version");
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
                    format!("another hook is already named `{text}`"),
                )
                .help("give each hook its own name, so that messages are unambiguous");
                self.push(finding, &at.key("name"));
            }
        }
        Some(hooks)
    }

    fn hook(&mut self, node: &Node, path: &Path<'_>) -> Option<Hook> {
        let members = self.object(node, path)?;
        let mut spans = Spans::default();
        let event = node.get("event").and_then(Node::as_str);
        let event = event.and_then(registry::event);
        self.matches_subject = event.is_some_and(|event| event.subject.is_some());
        let hook = self.fields(members, fields::HOOK, path, |checker, member, field, at| {
            let value = &member.value;
            match field.name {
                "event" => {
                    spans.event = Some(value.span);
                    checker.event_name(value, at).map(Json::from)
                }
                "matcher" => {
                    spans.matcher = Some(value.span);
                    let matcher = checker.matcher(value, at)?;
                    serde_json::to_value(matcher).ok()
                }
                "handler" => {
                    let span = |key| value.get(key).map(|field| field.span);
                    spans.handler = true;
                    spans.command = span("command");
                    spans.is_async = span("async");
                    spans.timeout_action = span("timeout_action");
                    checker.handler(value, at)
                }
                "blocking" => {
                    spans.blocking = Some(value.span);
                    let flag = checker.flag(value, at);
                    spans.blocking_unclear = flag.is_none();
                    flag.map(Json::from)
                }
                "on_failure" => {
                    spans.on_failure = Some(value.span);
                    let (words, code) = (&OnFailure::WORDS, "unknown-action");
                    let word = checker.word(value, words, code, "action on a failure", at);
                    word.map(Json::from)
                }
                "if" => {
                    checker.object(value, at)?;
                    Some(value.to_json())
                }
                "degradation" => Some(checker.degradation(value, at)),
                "capabilities" => {
                    checker.capability_names(value, at);
                    Some(checker.texts(value, at).into())
                }
                "provider_data" => Some(checker.provider_data(value, at).into()),
                _ => checker.shaped(value, field, at),
            }
        });
        let start = Span::at(node.span.start);
        if spans.event.is_none() {
            self.missing(
                "event",
                start,
                "add when the hook runs: `event: before_tool_execute`",
                path,
            );
        }
        if !spans.handler {
            self.missing(
                "handler",
                start,
                "add what runs: `handler: {type: command, command: ./check.sh}`",
                path,
            );
        }
        if !hook.contains_key("event") || !hook.contains_key("handler") {
            return None;
        }
        let hook: Hook = self.build(hook, node.span, path)?;
        self.combinations(&hook, &spans, path);
        Some(hook)
    }

    fn event_name(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let name = self.filled_text(node, path)?;
        if registry::event(&name).is_none()
            && !self.vocabulary.native_events.contains(&name.as_str())
        {
            let finding = Diagnostic::warning(
                "unknown-event",
                node.span,
                format!("unknown event `{name}`"),
            );
            let native = self.vocabulary.names.and_then(|names| names.event(&name));
            let near = registry::event_by_unified(&name)
                .map(|event| event.name)
                .or_else(|| nearest(&name, EVENTS.iter().map(|event| event.name)));
            let finding = match (native, near) {
                (Some((event, agent)), _) => finding
                    .help(format!(
                        "that is {agent}'s name, and the hook runs only in agents that have it; write `{event}`"
                    ))
                    .replacement(event),
                (None, Some(near)) => finding.help(suggestion(Some(near), "")).replacement(near),
                (None, None) => finding.help("it only fires in an agent that has an event with exactly this name; `anyhook events` lists the canonical ones"),
            };
            self.push(finding, path);
        }
        Some(registry::event_name(&name).to_owned())
    }

    fn degradation(&mut self, node: &Node, path: &Path<'_>) -> Json {
        self.capability_keys(node, path);
        let names = ("unknown-strategy", "degradation strategy");
        self.word_map(node, &Strategy::WORDS, names, path)
    }

    pub(super) fn capability_keys(&mut self, node: &Node, path: &Path<'_>) {
        for member in node.as_object().unwrap_or_default() {
            self.capability_name(&member.key, member.key_span, &path.key(&member.key));
        }
    }

    fn capability_names(&mut self, node: &Node, path: &Path<'_>) {
        for (index, item) in node.as_array().unwrap_or_default().iter().enumerate() {
            if let Some(name) = item.as_str() {
                self.capability_name(name, item.span, &path.index(index));
            }
        }
    }

    fn capability_name(&mut self, name: &str, span: Span, path: &Path<'_>) {
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

    fn provider_data(&mut self, node: &Node, path: &Path<'_>) -> Map<String, Json> {
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
                        member.value.type_name()
                    ),
                );
                self.push(finding, &path.key(&member.key));
            }
            map.insert(member.key.clone(), member.value.to_json());
        }
        map
    }

    /// Fields that are valid alone but not in combination.
    fn combinations(&mut self, hook: &Hook, spans: &Spans, path: &Path<'_>) {
        self.program(&hook.handler, spans.command, path);
        let known = registry::event(&hook.event);
        if let (Some(event), Some(span)) = (known, spans.matcher)
            && !event.tool
            && (event.subject.is_none() || hook.matcher.as_ref().is_some_and(is_about_tools))
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
            self.failure_without_effect(hook, spans, "that is not blocking", path);
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
        if hook.handler.dialect.as_deref() == Some("openhook") {
            let finding = Diagnostic::warning(
                "cannot-block",
                blocking,
                "a hook with `dialect: openhook` only hears what happened, so it cannot block",
            )
            .help("remove `blocking`, or use another dialect");
            self.push(finding, &path.key("blocking"));
        }
        if let (true, Some(span)) = (hook.handler.is_async, spans.is_async) {
            let finding = Diagnostic::warning(
                "async-blocking",
                span,
                "an `async` hook runs in the background, so it cannot block",
            )
            .help("remove `async` or `blocking`");
            self.push(finding, &path.key("handler").key("async"));
            self.failure_without_effect(hook, spans, "that runs in the background", path);
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

    /// Reports a program that cannot have been meant.
    fn program(&mut self, handler: &Handler, span: Option<Span>, path: &Path<'_>) {
        let (Some(command), Some(span)) = (&handler.command, span) else {
            return;
        };
        let handler_path = path.key("handler");
        let at = handler_path.key("command");
        if interpreter::runs_its_input(command, handler.args.as_deref()) {
            let finding = Diagnostic::warning(
                "no-script",
                span,
                format!("`{command}` has no script, so it would run the event on its input as one; anyhook does not start it"),
            )
            .help("add the script, as in `command: bash` with `args: [./guard.sh]`");
            self.push(finding, &at);
        } else if handler.args.is_some() && command.trim().contains(char::is_whitespace) {
            let finding = Diagnostic::warning(
                "program-name",
                span,
                format!("with `args`, `command` is one program: `{command}` as a whole"),
            )
            .help("write only the program, and the rest as `args`; or remove `args`");
            self.push(finding, &at);
        }
    }

    /// Reports `on_failure: block` on a hook that cannot block.
    fn failure_without_effect(&mut self, hook: &Hook, spans: &Spans, kind: &str, path: &Path<'_>) {
        if let (Some(OnFailure::Block), Some(span)) = (hook.on_failure, spans.on_failure) {
            let help = if hook.blocking {
                "remove `async`, or remove `on_failure`"
            } else {
                "set `blocking: true` on the hook"
            };
            let message = format!("`on_failure: block` has no effect on a hook {kind}");
            let finding = Diagnostic::warning("no-effect", span, message).help(help);
            self.push(finding, &path.key("on_failure"));
        }
    }
}

/// Positions of the fields that are checked in combination.
#[derive(Default)]
struct Spans {
    event: Option<Span>,
    matcher: Option<Span>,
    handler: bool,
    command: Option<Span>,
    is_async: Option<Span>,
    timeout_action: Option<Span>,
    blocking: Option<Span>,
    on_failure: Option<Span>,
    blocking_unclear: bool,
}

/// What makes the command more than the call of a program or script.
fn inline_command(handler: &Handler) -> Option<&'static str> {
    if handler.kind != HandlerKind::Command {
        return None;
    }
    let command = handler.command.as_deref()?.trim();
    let first_argument = match &handler.args {
        Some(args) => args.first().map(String::as_str),
        None => command.split_whitespace().nth(1),
    };
    let program = match &handler.args {
        Some(_) => command,
        None => command.split_whitespace().next()?,
    };
    if interpreter::is_interpreter(program) && first_argument.is_some_and(interpreter::is_inline) {
        return Some("code that is written into its command");
    }
    let operators = ["|", ";", "&&", "`", "$(", ">", "<", "\n"];
    let is_script =
        handler.args.is_none() && operators.iter().any(|operator| command.contains(operator));
    is_script.then_some("a whole shell script in its command")
}

/// Whether a matcher names tools of the vocabulary or MCP tools.
fn is_about_tools(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Name(name) => registry::tool(name).is_some(),
        Matcher::Mcp { .. } => true,
        Matcher::Pattern { .. } => false,
        Matcher::Any(parts) => parts.iter().any(is_about_tools),
    }
}
