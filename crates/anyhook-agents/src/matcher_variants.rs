//! Matchers of an agent's other file formats, where these differ from its main
//! one: names of classes of tools, or one exact name or glob.
//!
//! Where such a form cannot express a hook's matcher, the matcher is left out:
//! users notice a guard that fires too often, but not one that never fires.

use anyhook_model::Matcher;
use serde_json::Value;

use crate::Adapter;
use crate::matchers::{
    ANY_SERVER, MatcherNote, TranslatedMatcher, alternatives, any_of, glob_regex, requested_names,
    tool_matcher,
};
use crate::spec::{MatcherSpec, MatcherSyntax};
use crate::tools::{extend_new, fill_mcp};

impl Adapter {
    /// [`Adapter::translate`] for a file whose matchers are of this form.
    pub fn translate_as(
        &self,
        form: &MatcherSpec,
        matcher: &Matcher,
        from: Option<&Adapter>,
    ) -> TranslatedMatcher {
        if form.classes.is_empty() && form.syntax != MatcherSyntax::Glob {
            return self.translate(matcher, from);
        }
        let mut out = TranslatedMatcher::default();
        let mut names: Vec<String> = Vec::new();
        let mut everything = None;
        let atoms = alternatives(matcher);
        let requested = requested_names(&atoms);
        for atom in atoms {
            let found = if form.classes.is_empty() {
                self.glob_names(atom, &requested, &mut out.notes)
            } else {
                class_names(form, atom, &mut out.notes)
            };
            match found {
                Some(found) => extend_new(&mut names, found),
                None => everything = Some("a pattern has no place there".to_owned()),
            }
        }
        if names.len() > 1 && !form.list {
            everything = Some("a matcher there names one tool".to_owned());
        }
        if let Some(why) = everything {
            let note = format!("{why}, so the matcher is left out and every tool is meant");
            out.notes.push(MatcherNote::Widened(note));
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
            extend_new(&mut items, found);
        }
        any_of(items)
    }

    /// `None`: no exact name expresses it. `requested` are all names of the matcher.
    fn glob_names(
        &self,
        atom: &Matcher,
        requested: &[&str],
        notes: &mut Vec<MatcherNote>,
    ) -> Option<Vec<String>> {
        match atom {
            Matcher::Name(name) => {
                let names = self.matcher_names(name);
                if names.is_empty() && anyhook_model::registry::tool(name).is_none() {
                    notes.push(MatcherNote::Literal(name.clone()));
                    return Some(vec![name.clone()]);
                }
                if names.is_empty() {
                    notes.push(MatcherNote::NoTool(name.clone()));
                }
                self.note_wider_names(requested, &names, notes);
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

    pub(crate) fn read_glob(&self, text: &str) -> Vec<Matcher> {
        if text == "@builtin" {
            let tools = self.spec.tools.iter().map(|tool| tool.is.to_string());
            return tools.map(Matcher::Name).collect();
        }
        if text.contains(['*', '?']) {
            return vec![Matcher::pattern(glob_regex(text))];
        }
        let kinds = self.kinds_named(text);
        if !kinds.is_empty() {
            let kinds = kinds.into_iter();
            return kinds.map(|kind| Matcher::Name(kind.to_owned())).collect();
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

/// `None`: no class expresses it.
fn class_names(
    form: &MatcherSpec,
    atom: &Matcher,
    notes: &mut Vec<MatcherNote>,
) -> Option<Vec<String>> {
    let kind = match atom {
        Matcher::Name(name) => name.as_str(),
        Matcher::Mcp { .. } => "mcp",
        Matcher::Pattern { .. } | Matcher::Any(_) => return None,
    };
    let Some(class) = form.classes.get(kind) else {
        notes.push(MatcherNote::NoTool(kind.to_owned()));
        return Some(Vec::new());
    };
    let others = form.classes.iter();
    let others = others.filter(|(other, name)| *name == class && *other != kind);
    let more: Vec<&str> = others.map(|(other, _)| other.as_ref()).collect();
    let exact = match atom {
        Matcher::Mcp { mcp, .. } => mcp.server == ANY_SERVER && mcp.tool.is_none(),
        _ => more.is_empty(),
    };
    if !exact {
        let what = match more.as_slice() {
            [] => "every MCP tool".to_owned(),
            more => more.join(", "),
        };
        let how = format!("`{class}` is also {what} there");
        notes.push(MatcherNote::Widened(how));
    }
    Some(vec![class.to_string()])
}

fn read_class(form: &MatcherSpec, text: &str) -> Vec<Matcher> {
    let classes = form.classes.iter().filter(|(_, class)| *class == text);
    let mut found: Vec<Matcher> = classes.map(|(kind, _)| tool_matcher(kind)).collect();
    if found.is_empty() {
        found.push(Matcher::Name(text.to_owned()));
    }
    found
}
