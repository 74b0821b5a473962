//! Handler and platform.

use super::checker::{Checker, list, suggestion};
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::{Member, Node, Value};
use crate::fields::{self, HANDLER_KINDS, NEUTRAL_DIALECTS, OSX_ALIASES, TIMEOUT_ACTIONS};
use crate::hook::{Handler, HandlerKind, Platform, TimeoutAction};
use crate::suggest::nearest;

/// More seconds than anybody means; milliseconds, more likely.
const LONG_TIMEOUT: f64 = 1000.0;

impl Checker<'_> {
    pub(super) fn handler(&mut self, node: &Node, path: &Path<'_>) -> Option<Handler> {
        let members = self.object(node, path)?;
        let mut handler = Handler::default();
        let mut kind = None;
        let mut has_kind = false;
        for member in members {
            let at = path.key(&member.key);
            let known = fields::names(fields::HANDLER).any(|field| field == member.key);
            if known && self.is_null(member, path) {
                continue;
            }
            let value = &member.value;
            match member.key.as_str() {
                "type" => {
                    has_kind = true;
                    kind = self
                        .word(
                            value,
                            &HANDLER_KINDS,
                            "unknown-handler",
                            "handler type",
                            &at,
                        )
                        .and_then(HandlerKind::parse);
                }
                "command" => handler.command = self.filled_text(value, &at),
                "platform" => handler.platform = self.platform(value, &at),
                "cwd" => handler.cwd = self.filled_text(value, &at),
                "env" => handler.env = self.text_map(value, &at),
                "timeout" => handler.timeout = self.timeout(value, &at),
                "timeout_action" => {
                    let word = self.word(
                        value,
                        &TIMEOUT_ACTIONS,
                        "unknown-action",
                        "timeout action",
                        &at,
                    );
                    handler.timeout_action = word.map(|word| match word {
                        "block" => TimeoutAction::Block,
                        _ => TimeoutAction::Warn,
                    });
                }
                "async" => handler.is_async = self.flag(value, &at).unwrap_or_default(),
                "status_message" => handler.status_message = self.text(value, &at),
                "url" => handler.url = self.url(value, &at),
                "headers" => handler.headers = self.text_map(value, &at),
                "allowed_env_vars" => handler.allowed_env_vars = self.texts(value, &at),
                "prompt" => handler.prompt = self.filled_text(value, &at),
                "model" => handler.model = self.filled_text(value, &at),
                "dialect" => handler.dialect = self.dialect(value, &at),
                _ => {
                    self.unknown_field(member, fields::HANDLER, path);
                    handler.extra.insert(member.key.clone(), value.to_json());
                }
            }
        }
        let start = Span::at(node.span.start);
        if !has_kind {
            let help = format!("add `type`: {}", list(&HANDLER_KINDS));
            self.missing("type", start, &help, path);
        }
        handler.kind = kind?;
        self.fields_of_kind(handler.kind, members, start, path);
        self.header_variables(&handler, node, path);
        Some(handler)
    }

    /// The field without which a type is nothing, and fields that it never reads.
    fn fields_of_kind(
        &mut self,
        kind: HandlerKind,
        members: &[Member],
        start: Span,
        path: &Path<'_>,
    ) {
        let (needed, help) = match kind {
            HandlerKind::Command => ("command", "add `command` with the program to run"),
            HandlerKind::Http => ("url", "add `url`, where the event is posted"),
            HandlerKind::Prompt | HandlerKind::Agent => {
                ("prompt", "add `prompt`, what the model is asked")
            }
        };
        let there = members
            .iter()
            .any(|member| member.key == needed && member.value.value != Value::Null);
        if !there {
            self.missing(needed, start, help, path);
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
        let seconds = self.number(node, path)?.as_f64()?;
        if seconds < 0.0 {
            let finding = Diagnostic::error("negative", node.span, format!("`{path}` is negative"))
                .help("it is a number of seconds; 0 means the default of 30");
            self.push(finding, path);
            return None;
        }
        if seconds >= LONG_TIMEOUT {
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
                let finding = Diagnostic::error(
                    "bad-url",
                    node.span,
                    format!("`{url}` is not a web address"),
                )
                .help("it begins with `https://`");
                self.push(finding, path);
                return None;
            }
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        if host.is_empty() || host.starts_with(':') || url.contains(char::is_whitespace) {
            let finding = Diagnostic::error(
                "bad-url",
                node.span,
                format!("`{url}` is not a web address"),
            )
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
        if NEUTRAL_DIALECTS.contains(&dialect.as_str()) || agents.contains(&dialect.as_str()) {
            return Some(dialect);
        }
        let all = NEUTRAL_DIALECTS.iter().chain(agents).copied();
        let help = suggestion(
            nearest(&dialect, all),
            "it is `canonical`, `contract`, `openhook` or an agent's slug",
        );
        if !is_slug(&dialect) {
            let finding = Diagnostic::error(
                "unknown-dialect",
                node.span,
                format!("`{dialect}` cannot be a dialect"),
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
    fn header_variables(&mut self, handler: &Handler, node: &Node, path: &Path<'_>) {
        let headers = node.get("headers").and_then(Node::as_object);
        for member in headers.unwrap_or_default() {
            for variable in variables(member.value.as_str().unwrap_or_default()) {
                if handler
                    .allowed_env_vars
                    .iter()
                    .any(|allowed| allowed == variable)
                {
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

/// The types that read a field; none when all do.
fn readers(field: &str) -> &'static [HandlerKind] {
    match field {
        "command" | "platform" | "cwd" | "env" => &[HandlerKind::Command],
        "url" | "headers" | "allowed_env_vars" => &[HandlerKind::Http],
        "prompt" | "model" => &[HandlerKind::Prompt, HandlerKind::Agent],
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
