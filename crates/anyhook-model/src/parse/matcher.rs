//! Checks of a matcher.

use serde_json::{Map, Value};

use super::checker::{Checker, suggestion};
use super::path::Path;
use crate::diagnostic::{Diagnostic, Span};
use crate::document::Node;
use crate::fields;
use crate::matcher::{Matcher, Mcp};
use crate::matching::Pattern;
use crate::registry::{self, TOOLS};
use crate::suggest::nearest;

impl Checker<'_> {
    pub(super) fn matcher(&mut self, node: &Node, path: &Path<'_>) -> Option<Matcher> {
        if let Some(items) = node.as_array() {
            if items.is_empty() {
                let finding =
                    Diagnostic::warning("empty", node.span, "an empty list matches nothing")
                        .help("remove the matcher to match every tool");
                self.push(finding, path);
            }
            let parts = items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| self.matcher(item, &path.index(index)))
                .collect();
            return Some(Matcher::Any(parts));
        }
        if node.as_object().is_some() {
            return self.matcher_object(node, path);
        }
        if node.as_str().is_none() {
            self.wrong_type(
                node,
                "a tool name, an object with `pattern` or `mcp`, or a list of these",
                path,
            );
            return None;
        }
        let name = self.filled_text(node, path)?;
        self.tool_name(&name, node.span, path);
        Some(Matcher::Name(name))
    }

    fn tool_name(&mut self, name: &str, span: Span, path: &Path<'_>) {
        if registry::tool(name).is_some() || self.matches_subject {
            return;
        }
        let message = format!("unknown tool `{name}`");
        let native = self.vocabulary.names.and_then(|names| names.tools(name));
        if let Some((mut tools, agent)) = native {
            let written = match tools.as_slice() {
                [tool] => format!("`{tool}`"),
                several => format!("`[{}]`", several.join(", ")),
            };
            let value = match tools.as_mut_slice() {
                [tool] => Value::from(std::mem::take(tool)),
                _ => Value::from(tools),
            };
            let finding = Diagnostic::warning("unknown-tool", span, message)
                .help(format!(
                    "that is {agent}'s name, and it matches only there; write {written}"
                ))
                .replacement(value);
            self.push(finding, path);
            return;
        }
        let plain = name.chars().all(|letter| {
            letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':' | '/' | '@')
        });
        let mut near = None;
        let help = if plain {
            near = nearest(name, TOOLS.iter().map(|tool| tool.name));
            suggestion(
                near,
                "it only matches a tool with exactly this name; `anyhook tools` lists the canonical ones",
            )
        } else if name == "*" {
            "remove the matcher to match every tool".to_owned()
        } else {
            "a name matches literally: write a list of names, or `{pattern: …}` for a regular expression".to_owned()
        };
        let mut finding = Diagnostic::warning("unknown-tool", span, message).help(help);
        finding.replacement = near.map(|near| Box::new(Value::from(near)));
        self.push(finding, path);
    }

    fn matcher_object(&mut self, node: &Node, path: &Path<'_>) -> Option<Matcher> {
        let members = self.object(node, path)?;
        let mut extra = Map::new();
        let (mut pattern, mut mcp) = (None, None);
        for member in members {
            match member.key.as_str() {
                "pattern" => pattern = Some(&member.value),
                "mcp" => mcp = Some(&member.value),
                _ => {
                    let value = self.unknown_field(member, fields::MATCHER, path);
                    extra.insert(member.key.clone(), value);
                }
            }
        }
        match (pattern, mcp) {
            (Some(pattern), None) => {
                let pattern = self.pattern(pattern, &path.key("pattern"))?;
                Some(Matcher::Pattern { pattern, extra })
            }
            (None, Some(mcp)) => {
                let mcp = self.mcp(mcp, &path.key("mcp"))?;
                Some(Matcher::Mcp { mcp, extra })
            }
            (Some(_), Some(_)) => {
                let finding = Diagnostic::error(
                    "ambiguous-matcher",
                    node.span,
                    "a matcher has either `pattern` or `mcp`, not both",
                )
                .help("write a list of two matchers to match either");
                self.push(finding, path);
                None
            }
            (None, None) => {
                let finding = Diagnostic::error(
                    "missing-field",
                    Span::at(node.span.start),
                    format!("`{path}` needs `pattern` or `mcp`"),
                )
                .help("write a tool name, `{pattern: …}` or `{mcp: {server: …}}`");
                self.push(finding, path);
                None
            }
        }
    }

    fn pattern(&mut self, node: &Node, path: &Path<'_>) -> Option<String> {
        let pattern = self.filled_text(node, path)?;
        match Pattern::new(&pattern) {
            Ok(_) => Some(pattern),
            Err(error) => {
                let finding = Diagnostic::error(
                    "bad-pattern",
                    node.span,
                    format!("invalid pattern: {error}"),
                )
                .help(error.help());
                self.push(finding, path);
                None
            }
        }
    }

    fn mcp(&mut self, node: &Node, path: &Path<'_>) -> Option<Mcp> {
        let mut server = None;
        let mut tool = None;
        let mut extra = Map::new();
        let mut has_server = false;
        for member in self.object(node, path)? {
            let at = path.key(&member.key);
            match member.key.as_str() {
                "server" => {
                    has_server = true;
                    server = self.filled_text(&member.value, &at);
                }
                "tool" => {
                    if !self.is_null(member, path) {
                        tool = self.filled_text(&member.value, &at);
                    }
                }
                _ => {
                    let value = self.unknown_field(member, fields::MCP, path);
                    extra.insert(member.key.clone(), value);
                }
            }
        }
        if !has_server {
            self.missing(
                "server",
                Span::at(node.span.start),
                "name the MCP server",
                path,
            );
        }
        Some(Mcp {
            server: server?,
            tool,
            extra,
        })
    }
}
