//! Checks of a handler.

use serde_json::Value as Json;

use super::checker::{Checker, list, suggestion};
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::{Member, Node, Value};
use crate::fields::{self, NeutralDialect, OSX_ALIASES};
use crate::hook::{HandlerKind, Platform, SPEC, SPEC_0_1, TimeoutAction};
use crate::suggest::nearest;

/// A longer timeout was probably meant in milliseconds.
const LONG_TIMEOUT_SECONDS: f64 = 1000.0;

impl Checker<'_> {
    /// The checked fields of a handler, as JSON.
    pub(super) fn handler(&mut self, node: &Node, path: &Path<'_>) -> Option<Json> {
        let members = self.object(node, path)?;
        let mut has_kind = false;
        let handler = self.fields(
            members,
            fields::HANDLER,
            path,
            |checker, member, field, at| {
                let value = &member.value;
                match field.name {
                    "type" => {
                        has_kind = true;
                        let (words, code) = (&HandlerKind::WORDS, "unknown-handler");
                        let word = checker.word(value, words, code, "handler type", at);
                        word.map(Json::from)
                    }
                    "timeout_action" => {
                        let (words, code) = (&TimeoutAction::WORDS, "unknown-action");
                        let word = checker.word(value, words, code, "timeout action", at);
                        word.map(Json::from)
                    }
                    "platform" => serde_json::to_value(checker.platform(value, at)).ok(),
                    "timeout" => checker.timeout(value, at).map(Json::from),
                    "status_message" => checker.text(value, at).map(Json::from),
                    "url" => checker.url(value, at).map(Json::from),
                    "dialect" => checker.dialect(value, at).map(Json::from),
                    _ => checker.shaped(value, field, at),
                }
            },
        );
        let start = Span::at(node.span.start);
        if !has_kind {
            let help = format!("add `type`: {}", list(&HandlerKind::WORDS));
            self.missing("type", start, &help, path);
        }
        let kind = HandlerKind::parse(handler.get("type")?.as_str()?)?;
        self.fields_of_kind(kind, members, start, path);
        self.header_variables(handler.get("allowed_env_vars"), node, path);
        Some(Json::Object(handler))
    }

    /// The field that a type requires, and fields that it never reads.
    fn fields_of_kind(
        &mut self,
        kind: HandlerKind,
        members: &[Member],
        start: Span,
        path: &Path<'_>,
    ) {
        let (needed, help) = match kind {
            HandlerKind::Command => ("command", "add `command` with the program to run"),
            HandlerKind::Http => ("url", "add `url`, the address that the event is posted to"),
            HandlerKind::Prompt | HandlerKind::Agent => {
                ("prompt", "add `prompt`, the question to the model")
            }
            HandlerKind::McpTool => ("tool", "add `tool`, the tool to call, and its `server`"),
        };
        let there = members
            .iter()
            .any(|member| member.key == needed && member.value.value != Value::Null);
        if !there {
            self.missing(needed, start, help, path);
        }
        if kind == HandlerKind::McpTool {
            let message = "only the agent itself can call a tool of an MCP server: `anyhook run` \
                           reports this hook as failed";
            let finding = Diagnostic::warning("agent-only", start, message)
                .help("keep the hook in the agent's own config, or call the service by `http`");
            self.push(finding, path);
        }
        for member in members {
            let readers = readers(&member.key);
            if !readers.is_empty() && !readers.contains(&kind) {
                let finding = Diagnostic::warning(
                    "no-effect",
                    member.key_span,
                    format!(
                        "`{}` has no effect on a handler of type `{}`",
                        member.key,
                        kind.as_str()
                    ),
                )
                .help("remove it, or change `type`");
                self.push(finding, &path.key(&member.key));
            }
        }
    }

    fn timeout(&mut self, node: &Node, path: &Path<'_>) -> Option<f64> {
        let seconds = self.seconds(node, path)?;
        if seconds == 0.0 {
            let default = crate::hook::DEFAULT_TIMEOUT_SECS;
            let finding = Diagnostic::warning(
                "zero-timeout",
                node.span,
                format!("`{path}` is 0, which means the default of {default} seconds"),
            )
            .help(format!(
                "there is no hook without a time limit: write `timeout: {default}`, or leave it out"
            ));
            self.push(finding, path);
        }
        if seconds >= LONG_TIMEOUT_SECONDS {
            let finding = Diagnostic::warning(
                "long-timeout",
                node.span,
                format!("`{path}` is {:.0} minutes", seconds / 60.0),
            )
            .help(format!(
                "timeouts are in seconds: if milliseconds are meant, write {}",
                seconds / 1000.0
            ));
            self.push(finding, path);
        }
        Some(seconds)
    }

    fn url(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let url = self.filled_text(node, path)?;
        let lower = url.to_ascii_lowercase();
        let (plain, rest) = match (
            lower.strip_prefix("https://"),
            lower.strip_prefix("http://"),
        ) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => {
                let finding =
                    Diagnostic::error("bad-url", node.span, format!("`{url}` is not a valid URL"))
                        .help("a URL starts with `https://`");
                self.push(finding, path);
                return None;
            }
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        if host.is_empty() || host.starts_with(':') || url.contains(char::is_whitespace) {
            let finding =
                Diagnostic::error("bad-url", node.span, format!("`{url}` is not a valid URL"))
                    .help("write it as `https://host/path`");
            self.push(finding, path);
            return None;
        }
        if plain && !is_loopback(host) {
            let finding = Diagnostic::warning(
                "plain-http",
                node.span,
                "events, with commands and file contents, go over the network unencrypted",
            )
            .help("use `https://`");
            self.push(finding, path);
        }
        Some(url)
    }

    fn dialect(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let dialect = self.filled_text(node, path)?;
        let agents = self.vocabulary.agents;
        if NeutralDialect::parse(&dialect).is_some() || agents.contains(&dialect.as_str()) {
            return Some(dialect);
        }
        let all = NeutralDialect::WORDS.iter().chain(agents).copied();
        let help = suggestion(
            nearest(&dialect, all),
            "it is `canonical`, `contract`, `openhook` or an agent's slug",
        );
        if !is_slug(&dialect) {
            let finding = Diagnostic::error(
                "unknown-dialect",
                node.span,
                format!("`{dialect}` is not a valid dialect name"),
            );
            self.push(finding.help(help), path);
            return None;
        }
        if !agents.is_empty() {
            let finding = Diagnostic::warning(
                "unknown-dialect",
                node.span,
                format!("unknown dialect `{dialect}`"),
            );
            self.push(finding.help(help), path);
        }
        Some(dialect)
    }

    fn platform(&mut self, node: &Node, path: &Path<'_>) -> Platform {
        let mut platform = Platform::default();
        for member in self.object(node, path).unwrap_or_default() {
            let at = path.key(&member.key);
            let key = member.key.as_str();
            if key == "osx" && self.is_version_0_1 {
                let message = format!(
                    "`osx` is `darwin` in `{SPEC_0_1}`: other readers of that version ignore it"
                );
                let finding = Diagnostic::warning("newer-name", member.key_span, message);
                let help = format!("write `darwin`, or `spec: {SPEC}`");
                self.push(finding.help(help), &at);
            }
            let slot = match key {
                "windows" => &mut platform.windows,
                "linux" => &mut platform.linux,
                "osx" => &mut platform.osx,
                _ if OSX_ALIASES.contains(&key) => &mut platform.osx,
                _ => {
                    let known = ["windows", "linux", "osx", "macos", "darwin"];
                    let help = suggestion(nearest(key, known), "it is `windows`, `linux` or `osx`");
                    let finding = Diagnostic::warning(
                        "unknown-platform",
                        member.key_span,
                        format!("unknown platform `{key}`: its command never runs"),
                    );
                    self.push(finding.help(help), &at);
                    platform
                        .extra
                        .insert(member.key.clone(), member.value.to_json());
                    continue;
                }
            };
            if slot.is_some() {
                let finding = Diagnostic::error(
                    "duplicate-key",
                    member.key_span,
                    format!("`{key}` is a second command for macOS"),
                );
                self.push(finding.help("keep one of `osx`, `macos` and `darwin`"), &at);
                continue;
            }
            *slot = self.filled_text(&member.value, &at);
        }
        platform
    }

    /// A header may only use variables that are allowed by name.
    fn header_variables(&mut self, allowed: Option<&Json>, node: &Node, path: &Path<'_>) {
        let allowed = allowed.and_then(Json::as_array);
        let headers = node.get("headers").and_then(Node::as_object);
        for member in headers.unwrap_or_default() {
            for variable in variables(member.value.as_str().unwrap_or_default()) {
                if allowed.is_some_and(|names| names.iter().any(|name| name == variable)) {
                    continue;
                }
                let finding = Diagnostic::warning(
                    "unlisted-variable",
                    member.value.span,
                    format!("`${variable}` is not in `allowed_env_vars` and is sent empty"),
                )
                .help(format!("add `{variable}` to `allowed_env_vars`"));
                self.push(finding, &path.key("headers").key(&member.key));
            }
        }
    }
}

/// The types that read a field; empty if all do.
fn readers(field: &str) -> &'static [HandlerKind] {
    match field {
        "command" | "args" | "platform" | "cwd" | "env" => &[HandlerKind::Command],
        "url" | "headers" | "allowed_env_vars" => &[HandlerKind::Http],
        "prompt" | "model" => &[HandlerKind::Prompt, HandlerKind::Agent],
        "server" | "tool" | "input" => &[HandlerKind::McpTool],
        _ => &[],
    }
}

/// `$NAME` and `${NAME}` in a header.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

fn is_loopback(host: &str) -> bool {
    if host.starts_with("[::1]") {
        return true;
    }
    let name = host.split(':').next().unwrap_or_default();
    name == "localhost" || name.ends_with(".localhost") || name.starts_with("127.")
}

/// Lower-case words joined by single hyphens.
fn is_slug(text: &str) -> bool {
    text.split('-').all(|word| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}
