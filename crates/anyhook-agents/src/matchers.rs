//! Canonical matchers and an agent's own, both ways.
//!
//! A matcher is a list of atoms: tools, MCP tools, patterns. Tool names are
//! translated, never copied: a guard for `Bash` must fire where the shell is
//! called `Execute`.

use anyhook_model::Matcher;
use regex_lite::Regex;

use crate::Adapter;
use crate::spec::MatcherSyntax;
use crate::tools::fill_mcp;

/// What a translation could not keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The target has no such tool: that part of the matcher is gone.
    NoTool(String),
    /// The name is not of the vocabulary: it was copied.
    Literal(String),
    /// The target's matcher fires for more than was asked.
    Widened(String),
    /// The combined name could be that of another server's tool.
    Ambiguous(String),
    /// A server is spelled otherwise there.
    Renamed { server: String, written: String },
    /// A regular expression was read as the list of tools that it matches.
    Enumerated { pattern: String, tools: Vec<String> },
    /// A regular expression over other names was copied.
    Copied(String),
}

/// A matcher in the target's own syntax.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Translated {
    /// `None`: everything.
    pub text: Option<String>,
    pub notes: Vec<Note>,
    /// Nothing of the matcher is left: it could never match.
    pub never: bool,
}

pub use anyhook_model::matching::ANY_SERVER;

enum Atom {
    Exact(String),
    Regex(String),
}

impl Adapter {
    /// Names that this agent's matchers know for a canonical tool.
    pub(crate) fn matcher_names(&self, canonical: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for tool in &self.spec.tools {
            let does = tool.is == canonical || tool.also.iter().any(|also| also == canonical);
            if does && !tool.read_only && !names.iter().any(|name| *name == tool.native) {
                names.push(tool.native.to_string());
            }
        }
        names
    }

    /// The canonical matcher in this agent's syntax. `from` is the agent whose
    /// names patterns were written against.
    pub fn translate(&self, matcher: &Matcher, from: Option<&Adapter>) -> Translated {
        let mut out = Translated::default();
        let mut atoms = Vec::new();
        self.atoms(matcher, from, &mut atoms, &mut out.notes);
        if atoms.is_empty() {
            out.never = true;
            return out;
        }
        if self.spec.mcp.apart && atoms.len() > 1 && names_mcp(matcher) {
            out.notes.push(Note::Widened(
                "a matcher there cannot name an MCP tool and another one, so it is left out"
                    .to_owned(),
            ));
            return out;
        }
        out.text = Some(self.join(&atoms));
        out
    }

    fn atoms(
        &self,
        matcher: &Matcher,
        from: Option<&Adapter>,
        atoms: &mut Vec<Atom>,
        notes: &mut Vec<Note>,
    ) {
        match matcher {
            Matcher::Any(items) => {
                for item in items {
                    self.atoms(item, from, atoms, notes);
                }
            }
            Matcher::Name(name) => self.name_atoms(name, atoms, notes),
            Matcher::Mcp { mcp, .. } => {
                self.mcp_atom(&mcp.server, mcp.tool.as_deref(), atoms, notes);
            }
            Matcher::Pattern { pattern, .. } => self.pattern_atoms(pattern, from, atoms, notes),
        }
    }

    fn name_atoms(&self, name: &str, atoms: &mut Vec<Atom>, notes: &mut Vec<Note>) {
        let names = self.matcher_names(name);
        if !names.is_empty() {
            for also in self
                .spec
                .tools
                .iter()
                .filter(|tool| names.contains(&tool.native.to_string()))
            {
                let wider = std::iter::once(&also.is)
                    .chain(&also.also)
                    .find(|kind| **kind != *name);
                if let Some(kind) = wider {
                    let note = Note::Widened(format!("`{}` is also `{kind}` there", also.native));
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
            }
            atoms.extend(names.into_iter().map(Atom::Exact));
        } else if anyhook_model::registry::tool(name).is_some() {
            notes.push(Note::NoTool(name.to_owned()));
        } else {
            notes.push(Note::Literal(name.to_owned()));
            atoms.push(Atom::Exact(name.to_owned()));
        }
    }

    fn mcp_atom(
        &self,
        server: &str,
        tool: Option<&str>,
        atoms: &mut Vec<Atom>,
        notes: &mut Vec<Note>,
    ) {
        let names = &self.spec.mcp;
        let written = self.mcp_server(server);
        let regex = self.spec.config.matcher.syntax != MatcherSyntax::Glob;
        let plain = |text: &str| {
            if regex {
                regex_lite::escape(text)
            } else {
                text.to_owned()
            }
        };
        if server == ANY_SERVER {
            let template = match tool {
                Some(_) => names.tool_matcher.as_ref().or(Some(&names.format)),
                None => names.server_matcher.as_ref(),
            };
            match template.filter(|template| !template.is_empty()) {
                Some(template) => atoms.push(Atom::Regex(fill_mcp(
                    template,
                    ".*",
                    &plain(tool.unwrap_or_default()),
                ))),
                None => notes.push(Note::NoTool("every MCP tool".to_owned())),
            }
            return;
        }
        if let (Some(template), Some(tool)) = (&names.tool_matcher, tool) {
            atoms.push(Atom::Regex(fill_mcp(
                template,
                &plain(&written),
                &plain(tool),
            )));
        } else if let Some(tool) = tool.filter(|_| !names.format.is_empty()) {
            let name = fill_mcp(&names.format, &written, tool);
            if self.read_atom(&name, true)
                != Some(Matcher::mcp(written.clone(), Some(tool.to_owned())))
            {
                notes.push(Note::Ambiguous(name.clone()));
            }
            atoms.push(Atom::Exact(name));
        } else if let Some(template) = &names.server_matcher {
            atoms.push(Atom::Regex(fill_mcp(template, &plain(&written), "")));
        } else {
            notes.push(Note::NoTool(format!("mcp server {server}")));
            return;
        }
        let template = match tool {
            Some(_) => names.tool_matcher.as_ref().unwrap_or(&names.format),
            None => names.server_matcher.as_ref().unwrap_or(&names.format),
        };
        if written != server && template.contains("{server}") {
            notes.push(Note::Renamed {
                server: server.to_owned(),
                written: written.clone(),
            });
        }
        if !template.contains("{server}") {
            let kept = tool.map_or_else(
                || "any MCP tool".to_owned(),
                |tool| format!("`{tool}` of any server"),
            );
            notes.push(Note::Widened(format!(
                "the matcher there cannot name the server `{server}`: it fires for {kept}"
            )));
        }
    }

    /// The canonical tools that are called here by a name that a pattern matches.
    fn tools_named(&self, regex: &Regex) -> Vec<&str> {
        let mut tools: Vec<&str> = Vec::new();
        for tool in &self.spec.tools {
            let mut names = std::iter::once(&tool.native).chain(&tool.aliases);
            if !names.any(|name| regex.is_match(name)) {
                continue;
            }
            for kind in std::iter::once(&tool.is).chain(&tool.also) {
                if !tools.contains(&kind.as_ref()) {
                    tools.push(kind);
                }
            }
        }
        tools
    }

    fn pattern_atoms(
        &self,
        pattern: &str,
        from: Option<&Adapter>,
        atoms: &mut Vec<Atom>,
        notes: &mut Vec<Note>,
    ) {
        let same_agent = from.is_some_and(|from| from.spec.id == self.spec.id);
        let Ok(regex) = Regex::new(pattern) else {
            notes.push(Note::Copied(pattern.to_owned()));
            atoms.push(Atom::Regex(pattern.to_owned()));
            return;
        };
        if same_agent {
            atoms.push(Atom::Regex(pattern.to_owned()));
            return;
        }
        let own = self.spec.tools.iter();
        if from.is_none()
            && (pattern.contains("mcp") || own.into_iter().any(|tool| regex.is_match(&tool.native)))
        {
            notes.push(Note::Copied(pattern.to_owned()));
            atoms.push(Atom::Regex(pattern.to_owned()));
            return;
        }
        let tools = from.map_or_else(|| canonical_tools(&regex), |from| from.tools_named(&regex));
        if tools.is_empty() {
            if pattern.contains("mcp") {
                notes.push(Note::Copied(pattern.to_owned()));
                atoms.push(Atom::Regex(pattern.to_owned()));
            } else {
                notes.push(Note::NoTool(format!("/{pattern}/")));
            }
            return;
        }
        let names: Vec<String> = tools
            .iter()
            .flat_map(|tool| self.matcher_names(tool))
            .collect();
        for tool in &tools {
            if self.matcher_names(tool).is_empty() {
                notes.push(Note::NoTool((*tool).to_owned()));
            }
        }
        notes.push(Note::Enumerated {
            pattern: pattern.to_owned(),
            tools: names.clone(),
        });
        atoms.extend(names.into_iter().map(Atom::Exact));
    }

    fn join(&self, atoms: &[Atom]) -> String {
        let spec = &self.spec.config.matcher;
        let listable = |name: &str| {
            name.chars().all(|letter| {
                letter.is_ascii_alphanumeric() || letter == '_' || spec.list_chars.contains(letter)
            })
        };
        let mut exact: Vec<&str> = Vec::new();
        let mut parts: Vec<String> = Vec::new();
        let mut all_exact = true;
        for atom in atoms {
            let part = match atom {
                Atom::Exact(name) => {
                    all_exact &= listable(name);
                    if !exact.contains(&name.as_str()) {
                        exact.push(name);
                    }
                    regex_lite::escape(name)
                }
                Atom::Regex(text) => {
                    all_exact = false;
                    text.clone()
                }
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        match spec.syntax {
            MatcherSyntax::List if all_exact => exact.join("|"),
            MatcherSyntax::Glob if exact.len() == atoms.len() => exact.join("|"),
            MatcherSyntax::AnchoredRegex => parts.join("|"),
            _ => match (parts.as_slice(), atoms) {
                // A lone pattern stands as its author wrote it.
                ([one], [Atom::Regex(_)]) => one.clone(),
                ([one], _) => format!("^{one}$"),
                _ => format!("^({})$", parts.join("|")),
            },
        }
    }

    /// An agent's own matcher in canonical terms; `None` means everything.
    pub fn read_matcher(&self, text: &str) -> Option<Matcher> {
        let spec = &self.spec.config.matcher;
        if spec.any_read.iter().any(|any| any == text) || text.is_empty() {
            return None;
        }
        let exact_list = spec.syntax == MatcherSyntax::List
            && text.chars().all(|letter| {
                letter.is_ascii_alphanumeric()
                    || letter == '_'
                    || letter == '|'
                    || spec.list_chars.contains(letter)
            });
        let inner = if exact_list { text } else { unanchored(text) };
        let separators: &[char] = if exact_list && spec.list_chars.contains(',') {
            &['|', ',']
        } else {
            &['|']
        };
        let mut items: Vec<Matcher> = Vec::new();
        for part in inner
            .split(separators)
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let item = self.read_atom(
                part,
                exact_list
                    || inner.len() < text.len()
                    || spec.syntax == MatcherSyntax::AnchoredRegex,
            );
            match item {
                Some(Matcher::Any(several)) => {
                    for one in several {
                        if !items.contains(&one) {
                            items.push(one);
                        }
                    }
                }
                Some(item) if !items.contains(&item) => items.push(item),
                Some(_) => {}
                None => return Some(Matcher::pattern(text)),
            }
        }
        match items.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some(Matcher::Any(items)),
        }
    }

    /// One name of a list. `exact`: the name stands for itself alone.
    fn read_atom(&self, part: &str, exact: bool) -> Option<Matcher> {
        let name = unescaped(part);
        if let Some(template) = &self.spec.mcp.server_matcher
            && !template.contains("{server}")
            && part == template
        {
            return Some(Matcher::mcp(ANY_SERVER, None));
        }
        if let Some(template) = &self.spec.mcp.server_matcher
            && let Some((before, after)) = template.split_once("{server}")
            && let Some(server) = part
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
            && !server.is_empty()
            && let Some(server) = (server == ".*")
                .then(|| ANY_SERVER.to_owned())
                .or_else(|| unescaped(server))
        {
            return Some(Matcher::mcp(server, None));
        }
        let any_server = self.spec.mcp.format.replace("{server}", ".*");
        if any_server != self.spec.mcp.format
            && let Some((before, after)) = any_server.split_once("{tool}")
            && let Some(tool) = part
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
            && let Some(tool) = unescaped(tool)
        {
            return Some(Matcher::mcp(ANY_SERVER, Some(tool)));
        }
        if let Some(template) = &self.spec.mcp.tool_matcher
            && let Some((before, after)) = template.split_once("{tool}")
            && let Some(tool) = part
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
            && !template.contains("{server}")
            && let Some(tool) = unescaped(tool)
        {
            return Some(Matcher::mcp(ANY_SERVER, Some(tool)));
        }
        if let Some(template) = &self.spec.mcp.tool_matcher
            && let Some((before, rest)) = template.split_once("{tool}")
            && let Some((between, after)) = rest.split_once("{server}")
            && let Some(inner) = part
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
            && let Some((tool, server)) = inner.split_once(between)
            && let Some(tool) = unescaped(tool)
            && let Some(server) = (server == ".*")
                .then(|| ANY_SERVER.to_owned())
                .or_else(|| unescaped(server))
        {
            return Some(Matcher::mcp(server, Some(tool)));
        }
        let name = name?;
        if let Some(tool) = self.tool_by_native(&name, None) {
            // A guard of a tool that does several things holds for all of them.
            let mut kinds: Vec<Matcher> = std::iter::once(&tool.is)
                .chain(&tool.also)
                .map(|kind| Matcher::Name(kind.to_string()))
                .collect();
            return Some(if kinds.len() == 1 {
                kinds.remove(0)
            } else {
                Matcher::Any(kinds)
            });
        }
        if !self.spec.mcp.ambiguous
            && let Some((server, tool)) = self.parse_mcp(&name)
        {
            return Some(Matcher::mcp(server, Some(tool)));
        }
        exact.then_some(Matcher::Name(name))
    }
}

fn names_mcp(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Any(items) => items.iter().any(names_mcp),
        Matcher::Mcp { .. } => true,
        Matcher::Name(_) | Matcher::Pattern { .. } => false,
    }
}

/// The canonical tools whose own names a pattern matches.
fn canonical_tools(regex: &Regex) -> Vec<&'static str> {
    let names = anyhook_model::registry::TOOLS.iter().map(|tool| tool.name);
    names.filter(|name| regex.is_match(name)).collect()
}

/// The inside of `^a$`, `^(a|b)$`, `^(?:a|b)$`; other texts as they are.
fn unanchored(text: &str) -> &str {
    let Some(inner) = text
        .strip_prefix('^')
        .and_then(|rest| rest.strip_suffix('$'))
    else {
        return text;
    };
    let grouped = inner
        .strip_prefix("(?:")
        .or_else(|| inner.strip_prefix('('));
    grouped
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(inner)
}

/// A regex that is only a name; `None` when it is more than that.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push(letters.next().filter(|next| !next.is_alphanumeric())?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' | '|' => {
                return None;
            }
            other => out.push(other),
        }
    }
    Some(out)
}
