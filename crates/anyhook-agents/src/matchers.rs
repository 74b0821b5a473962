//! Canonical matchers and an agent's own, in both directions.
//!
//! A matcher is a list of atoms: tools, MCP tools, patterns. Tool names are
//! translated, never copied: a guard for `Bash` must fire where the shell is
//! called `Execute`.

mod native;
mod patterns;

use anyhook_model::Matcher;
use regex_lite::Regex;

use crate::Adapter;
use crate::spec::{MatcherSpec, MatcherSyntax};
use crate::tools::{extend_new, fill_mcp, push_new};
use patterns::{CANONICAL_MCP_FORMAT, anchored_form, mcp_formats_named};

pub use anyhook_model::matching::ANY_SERVER;
pub use patterns::plain_pattern;
pub(crate) use patterns::{GLOB_CHARS, glob_regex};

/// What a translation changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatcherNote {
    /// The target has no such tool: that part of the matcher is gone.
    NoTool(String),
    /// The name is not a canonical tool: it is copied.
    Literal(String),
    /// The target's matcher fires for more tools than the original.
    Widened(String),
    /// The combined name could also be a tool of another server.
    Ambiguous(String),
    /// The target spells the server differently.
    Renamed { server: String, written: String },
    /// Known tools of the target that a regular expression means.
    Enumerated { pattern: String, tools: Vec<String> },
    /// A regular expression is copied beside the known tools that it matches.
    Added(String),
    /// A regular expression over another agent's tool names is copied, and no
    /// known tool of the target has such a name.
    Copied(String),
    /// A regular expression that is no agent's in particular is copied, and no
    /// known tool of the target has such a name.
    Unknown(String),
}

/// A matcher in the target's own syntax.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranslatedMatcher {
    /// `None`: everything.
    pub text: Option<String>,
    pub notes: Vec<MatcherNote>,
    /// Nothing of the matcher is left, so it could never match.
    pub never: bool,
}

enum Atom {
    Exact(String),
    /// A regular expression that is for the whole name.
    Regex(String),
    /// The author's own, which is not anchored.
    Pattern(String),
}

/// A translation while it is put together.
#[derive(Default)]
struct MatcherDraft {
    atoms: Vec<Atom>,
    notes: Vec<MatcherNote>,
}

/// Precedes a regular expression where a matcher is otherwise a glob.
pub const REGEX_PREFIX: &str = "re:";

impl MatcherSyntax {
    /// Whether a regular expression must match the whole name.
    fn is_anchored(self) -> bool {
        matches!(self, Self::AnchoredRegex | Self::GlobOrRegex)
    }
}

impl MatcherSpec {
    /// Whether a name with this letter may be in an exact list.
    fn is_listable(&self, letter: char) -> bool {
        letter.is_ascii_alphanumeric() || letter == '_' || self.list_chars.contains(letter)
    }

    /// Whether a text is read as a list of names.
    fn is_name_list(&self, text: &str) -> bool {
        text.chars()
            .all(|letter| letter == '|' || self.is_listable(letter))
    }
}

impl Adapter {
    /// Names that this agent's matchers know for a canonical tool.
    pub(crate) fn matcher_names(&self, canonical: &str) -> Vec<String> {
        let written = self.spec.tools.iter();
        let written = written.filter(|tool| !tool.read_only || tool.guarded);
        let named = written.filter(|tool| tool.kinds().any(|kind| kind == canonical));
        let mut names = Vec::new();
        extend_new(&mut names, named.map(|tool| tool.native.to_string()));
        names
    }

    /// The canonical matcher in this agent's syntax. `from` is the agent whose
    /// names patterns were written against.
    pub fn translate(&self, matcher: &Matcher, from: Option<&Adapter>) -> TranslatedMatcher {
        let mut draft = MatcherDraft::default();
        let alternatives = alternatives(matcher);
        let names = requested_names(&alternatives);
        for one in &alternatives {
            match one {
                Matcher::Name(name) => self.add_name(name, &names, &mut draft),
                Matcher::Mcp { mcp, .. } => {
                    self.add_mcp(&mcp.server, mcp.tool.as_deref(), &mut draft);
                }
                Matcher::Pattern { pattern, .. } => self.add_pattern(pattern, from, &mut draft),
                Matcher::Any(_) => {}
            }
        }
        let MatcherDraft { atoms, mut notes } = draft;
        let is_mixed = self.spec.mcp.matcher_prefix.is_some()
            && atoms.len() > 1
            && (alternatives
                .iter()
                .any(|one| matches!(one, Matcher::Mcp { .. }))
                || atoms.iter().any(|atom| matches!(atom, Atom::Regex(_))));
        if is_mixed {
            let how = "a matcher there cannot name an MCP tool and another one, so it is left out";
            notes.push(MatcherNote::Widened(how.to_owned()));
        }
        let never = atoms.is_empty();
        TranslatedMatcher {
            text: (!never && !is_mixed).then(|| self.join(&atoms)),
            notes,
            never,
        }
    }

    /// `requested` are all names of the matcher.
    fn add_name(&self, name: &str, requested: &[&str], draft: &mut MatcherDraft) {
        let MatcherDraft { atoms, notes } = draft;
        let names = self.matcher_names(name);
        if !names.is_empty() {
            self.note_wider_names(requested, &names, notes);
            atoms.extend(names.into_iter().map(Atom::Exact));
        } else if anyhook_model::registry::tool(name).is_some() {
            notes.push(MatcherNote::NoTool(name.to_owned()));
        } else {
            notes.push(MatcherNote::Literal(name.to_owned()));
            atoms.push(Atom::Exact(name.to_owned()));
        }
    }

    /// Reports native tools that are also a canonical tool which was not requested.
    pub(crate) fn note_wider_names(
        &self,
        requested: &[&str],
        names: &[String],
        notes: &mut Vec<MatcherNote>,
    ) {
        for name in names {
            let mut kinds = self.kinds_named(name).into_iter();
            if let Some(kind) = kinds.find(|kind| !requested.contains(kind)) {
                let how = format!("`{name}` is also `{kind}` there");
                push_new(notes, MatcherNote::Widened(how));
            }
        }
    }

    fn add_mcp(&self, server: &str, tool: Option<&str>, draft: &mut MatcherDraft) {
        let MatcherDraft { atoms, notes } = draft;
        let names = &self.spec.mcp;
        let written = self.mcp_server(server);
        let plain = |text: &str| match self.spec.config.matcher.syntax {
            MatcherSyntax::Glob => text.to_owned(),
            _ => regex_lite::escape(text),
        };
        if server == ANY_SERVER {
            let template = match tool {
                Some(_) => names.tool_matcher.as_ref().or(Some(&names.format)),
                None => names.server_matcher.as_ref(),
            };
            if let Some(template) = template.filter(|template| !template.is_empty()) {
                let tool = plain(tool.unwrap_or_default());
                atoms.push(Atom::Regex(fill_mcp(template, ".*", &tool)));
            } else {
                notes.push(MatcherNote::NoTool("every MCP tool".to_owned()));
            }
            return;
        }
        if let (Some(template), Some(tool)) = (&names.tool_matcher, tool) {
            let text = fill_mcp(template, &plain(&written), &plain(tool));
            atoms.push(Atom::Regex(text));
        } else if let Some(tool) = tool.filter(|_| !names.format.is_empty()) {
            let name = fill_mcp(&names.format, &written, tool);
            let meant = Matcher::mcp(written.clone(), Some(tool.to_owned()));
            if self.read_atom(&name, true) != Some(meant) {
                notes.push(MatcherNote::Ambiguous(name.clone()));
            }
            atoms.push(Atom::Exact(name));
        } else if let Some(template) = &names.server_matcher {
            atoms.push(Atom::Regex(fill_mcp(template, &plain(&written), "")));
        } else {
            notes.push(MatcherNote::NoTool(format!("mcp server {server}")));
            return;
        }
        let template = match tool {
            Some(_) => names.tool_matcher.as_ref().unwrap_or(&names.format),
            None => names.server_matcher.as_ref().unwrap_or(&names.format),
        };
        if !template.contains("{server}") {
            let any_tool = || "any MCP tool".to_owned();
            let kept = tool.map_or_else(any_tool, |tool| format!("`{tool}` of any server"));
            notes.push(MatcherNote::Widened(format!(
                "the matcher there cannot name the server `{server}`: it fires for {kept}"
            )));
        } else if written != server {
            notes.push(MatcherNote::Renamed {
                server: server.to_owned(),
                written,
            });
        }
    }

    /// The canonical tools whose main name here a pattern matches.
    pub(crate) fn tools_named(&self, regex: &Regex) -> Vec<&str> {
        let mut tools: Vec<&str> = Vec::new();
        for tool in self.spec.tools.iter().filter(|tool| !tool.read_only) {
            if regex.is_match(&tool.native) {
                extend_new(&mut tools, tool.kinds());
            }
        }
        tools
    }

    /// Whether a pattern is about the names that this agent alone has for MCP tools:
    /// those of other agents have another form.
    pub fn names_own_mcp_tools(&self, pattern: &str) -> bool {
        let Ok(regex) = Regex::new(pattern) else {
            return false;
        };
        let formats = mcp_formats_named(pattern, &regex, Some(self));
        let mut others = formats.iter().filter(|it| **it != CANONICAL_MCP_FORMAT);
        others.next().is_some() && !regex.is_match(&any_mcp_tool(CANONICAL_MCP_FORMAT))
    }

    /// A pattern means every tool whose native or canonical name it matches. The
    /// native names match as they are; those of canonical tools are added.
    fn add_pattern(&self, pattern: &str, from: Option<&Adapter>, draft: &mut MatcherDraft) {
        let regex = Regex::new(pattern);
        let is_own = from.is_some_and(|from| from.spec.id == self.spec.id);
        let Some(regex) = regex.ok().filter(|_| !is_own) else {
            draft.notes.push(MatcherNote::Added(pattern.to_owned()));
            draft.atoms.push(Atom::Pattern(pattern.to_owned()));
            return;
        };
        let canonical = canonical_tools(&regex);
        let mut names: Vec<String> = Vec::new();
        for tool in &canonical {
            let found = self.matcher_names(tool);
            if found.is_empty() {
                draft.notes.push(MatcherNote::NoTool((*tool).to_owned()));
            }
            extend_new(&mut names, found);
        }
        let formats = mcp_formats_named(pattern, &regex, from);
        let is_about_mcp = !formats.is_empty();
        let own_format = &self.spec.mcp.format;
        // Names of another form match nothing here, unless every MCP tool is meant.
        let is_of_other = formats.iter().any(|format| *format != own_format.as_ref());
        if is_of_other && !regex.is_match(&any_mcp_tool(own_format)) {
            self.add_mcp(ANY_SERVER, None, draft);
            let how = format!("the pattern `{pattern}` becomes every MCP tool");
            draft.notes.push(MatcherNote::Widened(how));
        }
        let own_names = self.spec.tools.iter().filter(|tool| !tool.read_only);
        let own_names = own_names.map(|tool| tool.native.to_string());
        let mut tools = names.clone();
        extend_new(&mut tools, own_names.filter(|name| regex.is_match(name)));
        let is_known_there = from.is_some_and(|from| !from.tools_named(&regex).is_empty());
        if !canonical.is_empty() && !tools.is_empty() {
            let pattern = pattern.to_owned();
            draft.notes.push(MatcherNote::Enumerated { pattern, tools });
        } else if !is_about_mcp {
            // Names of other agents' tools may mean more than the names that match here.
            let note = match from {
                Some(_) if is_known_there => MatcherNote::Added,
                None if tools.is_empty() => MatcherNote::Unknown,
                _ => MatcherNote::Copied,
            };
            draft.notes.push(note(pattern.to_owned()));
        }
        names.retain(|name| !regex.is_match(name));
        let names = names.into_iter().map(Atom::Exact);
        draft.atoms.extend(names);
        draft.atoms.push(Atom::Pattern(pattern.to_owned()));
    }

    fn join(&self, atoms: &[Atom]) -> String {
        let spec = &self.spec.config.matcher;
        let mut exact: Vec<&str> = Vec::new();
        let mut parts: Vec<String> = Vec::new();
        let mut patterns: Vec<String> = Vec::new();
        for atom in atoms {
            match atom {
                Atom::Exact(name) => {
                    push_new(&mut exact, name);
                    push_new(&mut parts, regex_lite::escape(name));
                }
                Atom::Regex(text) => push_new(&mut parts, text.clone()),
                Atom::Pattern(text) if spec.syntax.is_anchored() => {
                    push_new(&mut parts, anchored_form(text));
                }
                // A list of names tests whole names.
                Atom::Pattern(text)
                    if spec.syntax == MatcherSyntax::List && spec.is_name_list(text) =>
                {
                    push_new(&mut patterns, anchored_form(text));
                }
                Atom::Pattern(text) => push_new(&mut patterns, text.clone()),
            }
        }
        let is_list = exact.len() == parts.len() && patterns.is_empty();
        let mut letters = exact.iter().flat_map(|name| name.chars());
        match spec.syntax {
            MatcherSyntax::List if is_list && letters.all(|letter| spec.is_listable(letter)) => {
                return exact.join("|");
            }
            MatcherSyntax::Glob if is_list => return exact.join("|"),
            MatcherSyntax::AnchoredRegex => return parts.join("|"),
            MatcherSyntax::GlobOrRegex => {
                return match exact.as_slice() {
                    [one] if is_list && !one.contains(GLOB_CHARS) => (*one).to_owned(),
                    _ => format!("{REGEX_PREFIX}{}", parts.join("|")),
                };
            }
            _ => {}
        }
        match (parts.as_slice(), atoms) {
            ([], _) => {}
            // A lone template is written as it is.
            ([one], [Atom::Regex(_)]) => return one.clone(),
            ([one], _) => patterns.insert(0, format!("^{one}$")),
            _ => patterns.insert(0, format!("^({})$", parts.join("|"))),
        }
        patterns.join("|")
    }

    /// A matcher of an event that is not about a tool, in this agent's syntax;
    /// `None` if the agent cannot express it.
    pub fn translate_subject(&self, form: &MatcherSpec, matcher: &Matcher) -> Option<String> {
        let alternatives = alternatives(matcher);
        if form.exact_subject {
            return match alternatives.as_slice() {
                [Matcher::Name(name)] => Some(name.clone()),
                _ => None,
            };
        }
        if matches!(form.syntax, MatcherSyntax::None | MatcherSyntax::Glob) {
            return None;
        }
        let atoms = alternatives.into_iter().map(|one| match one {
            Matcher::Name(name) => Some(Atom::Exact(name.clone())),
            Matcher::Pattern { pattern, .. } => Some(Atom::Pattern(pattern.clone())),
            Matcher::Mcp { .. } | Matcher::Any(_) => None,
        });
        Some(self.join(&atoms.collect::<Option<Vec<Atom>>>()?))
    }
}

/// The matchers without nested lists.
pub fn alternatives(matcher: &Matcher) -> Vec<&Matcher> {
    match matcher {
        Matcher::Any(items) => items.iter().flat_map(alternatives).collect(),
        one => vec![one],
    }
}

/// The tools that a matcher names one by one.
pub(crate) fn requested_names<'a>(alternatives: &[&'a Matcher]) -> Vec<&'a str> {
    let names = alternatives.iter().map(|one| match one {
        Matcher::Name(name) => Some(name.as_str()),
        _ => None,
    });
    names.flatten().collect()
}

/// One matcher for several; `None` for an empty list.
pub(crate) fn any_of(mut items: Vec<Matcher>) -> Option<Matcher> {
    match items.len() {
        0 | 1 => items.pop(),
        _ => Some(Matcher::Any(items)),
    }
}

/// The matcher for a canonical tool, or for any MCP tool if it is `mcp`.
pub fn tool_matcher(tool: &str) -> Matcher {
    match tool {
        "mcp" => Matcher::mcp(ANY_SERVER, None),
        tool => Matcher::Name(tool.to_owned()),
    }
}

/// The text between a prefix and a suffix.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// The name of an MCP tool that only a pattern for all of them matches.
fn any_mcp_tool(format: &str) -> String {
    fill_mcp(format, "q7x", "k9z")
}

/// The canonical tools whose own names a pattern matches.
fn canonical_tools(regex: &Regex) -> Vec<&'static str> {
    let names = anyhook_model::registry::TOOLS.iter().map(|tool| tool.name);
    names.filter(|name| regex.is_match(name)).collect()
}
