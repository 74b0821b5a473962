//! Matchers of an agent's other file formats, where these differ from its main
//! one: names of classes of tools, or one exact name or glob and nothing more.
//!
//! Where such a form cannot say what a hook asks for, the matcher is left out:
//! a guard that fires too often is seen, one that never fires is not.

use anyhook_model::Matcher;
use serde_json::Value;

use crate::Adapter;
use crate::matchers::{ANY_SERVER, Note, Translated};
use crate::spec::{MatcherSpec, MatcherSyntax};
use crate::tools::fill_mcp;

impl Adapter {
    /// [`Adapter::translate`] for a file whose matchers are of this form.
    pub fn translate_as(
        &self,
        form: &MatcherSpec,
        matcher: &Matcher,
        from: Option<&Adapter>,
    ) -> Translated {
        if form.classes.is_empty() && form.syntax != MatcherSyntax::Glob {
            return self.translate(matcher, from);
        }
        let mut out = Translated::default();
        let mut names: Vec<String> = Vec::new();
        let mut everything = None;
        for atom in atoms(matcher) {
            let found = if form.classes.is_empty() {
                self.glob_names(atom, &mut out.notes)
            } else {
                class_names(form, atom, &mut out.notes)
            };
            match found {
                Some(found) => {
                    for name in found {
                        if !names.contains(&name) {
                            names.push(name);
                        }
                    }
                }
                None => everything = Some("a pattern has no place there".to_owned()),
            }
        }
        if names.len() > 1 && !form.list {
            everything = Some("a matcher there names one tool".to_owned());
        }
        if let Some(why) = everything {
            let note = format!("{why}, so the matcher is left out and every tool is meant");
            out.notes.push(Note::Widened(note));
        } else if names.is_empty() {
            out.never = true;
        } else {
            out.text = Some(names.join("|"));
        }
        out
    }

    /// [`Adapter::read_matcher`] for a file whose matchers are of this form.
    pub fn read_matcher_as(&self, form: &MatcherSpec, written: &Value) -> Option<Matcher> {
        let texts: Vec<&str> = match written {
            Value::String(text) => vec![text],
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let any = |text: &&str| text.is_empty() || form.any_read.iter().any(|any| any == text);
        if texts.iter().any(any) {
            return None;
        }
        if form.classes.is_empty() && form.syntax != MatcherSyntax::Glob {
            return self.read_matcher(texts.first()?);
        }
        let mut items: Vec<Matcher> = Vec::new();
        for text in texts {
            let found = if form.classes.is_empty() {
                self.read_glob(text)
            } else {
                read_class(form, text)
            };
            for one in found {
                if !items.contains(&one) {
                    items.push(one);
                }
            }
        }
        match items.len() {
            0 => None,
            1 => items.pop(),
            _ => Some(Matcher::Any(items)),
        }
    }

    /// `None`: no exact name says it.
    fn glob_names(&self, atom: &Matcher, notes: &mut Vec<Note>) -> Option<Vec<String>> {
        match atom {
            Matcher::Name(name) => {
                let names = self.matcher_names(name);
                if names.is_empty() && anyhook_model::registry::tool(name).is_none() {
                    notes.push(Note::Literal(name.clone()));
                    return Some(vec![name.clone()]);
                }
                if names.is_empty() {
                    notes.push(Note::NoTool(name.clone()));
                }
                Some(names)
            }
            Matcher::Mcp { mcp, .. } if mcp.server != ANY_SERVER => {
                let server = self.mcp_server(&mcp.server);
                Some(vec![match &mcp.tool {
                    Some(tool) => fill_mcp(&self.spec.mcp.format, &server, tool),
                    None => format!("@{server}"),
                }])
            }
            _ => None,
        }
    }

    fn read_glob(&self, text: &str) -> Vec<Matcher> {
        if text == "@builtin" {
            return self
                .spec
                .tools
                .iter()
                .map(|tool| Matcher::Name(tool.is.to_string()))
                .collect();
        }
        if text.contains(['*', '?']) {
            let pattern = regex_lite::escape(text)
                .replace(r"\*", ".*")
                .replace(r"\?", ".");
            return vec![Matcher::pattern(format!("^{pattern}$"))];
        }
        if let Some(tool) = self.tool_by_native(text, None) {
            return std::iter::once(&tool.is)
                .chain(&tool.also)
                .map(|kind| Matcher::Name(kind.to_string()))
                .collect();
        }
        if let Some((server, tool)) = self.parse_mcp(text) {
            return vec![Matcher::mcp(server, Some(tool))];
        }
        match text.strip_prefix('@') {
            Some(server) => vec![Matcher::mcp(server, None)],
            None => vec![Matcher::Name(text.to_owned())],
        }
    }
}

fn atoms(matcher: &Matcher) -> Vec<&Matcher> {
    match matcher {
        Matcher::Any(items) => items.iter().flat_map(atoms).collect(),
        one => vec![one],
    }
}

/// `None`: no class says it.
fn class_names(form: &MatcherSpec, atom: &Matcher, notes: &mut Vec<Note>) -> Option<Vec<String>> {
    let kind = match atom {
        Matcher::Name(name) => name.as_str(),
        Matcher::Mcp { .. } => "mcp",
        Matcher::Pattern { .. } | Matcher::Any(_) => return None,
    };
    let Some(class) = form.classes.get(kind) else {
        notes.push(Note::NoTool(kind.to_owned()));
        return Some(Vec::new());
    };
    let more: Vec<&str> = form
        .classes
        .iter()
        .filter(|(other, name)| *name == class && *other != kind)
        .map(|(other, _)| other.as_ref())
        .collect();
    let exact = match atom {
        Matcher::Mcp { mcp, .. } => mcp.server == ANY_SERVER && mcp.tool.is_none(),
        _ => more.is_empty(),
    };
    if !exact {
        let what = if more.is_empty() {
            "every MCP tool".to_owned()
        } else {
            more.join(", ")
        };
        notes.push(Note::Widened(format!("`{class}` is also {what} there")));
    }
    Some(vec![class.to_string()])
}

fn read_class(form: &MatcherSpec, text: &str) -> Vec<Matcher> {
    let found: Vec<Matcher> = form
        .classes
        .iter()
        .filter(|(_, class)| *class == text)
        .map(|(kind, _)| match kind.as_ref() {
            "mcp" => Matcher::mcp(ANY_SERVER, None),
            kind => Matcher::Name(kind.to_owned()),
        })
        .collect();
    if found.is_empty() {
        vec![Matcher::Name(text.to_owned())]
    } else {
        found
    }
}
