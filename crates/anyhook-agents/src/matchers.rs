//! Canonical matchers and an agent's own, in both directions.
//!
//! A matcher is a list of atoms: tools, MCP tools, patterns. Tool names are
//! translated, never copied: a guard for `Bash` must fire where the shell is
//! called `Execute`.

use anyhook_model::Matcher;
use regex_lite::Regex;

use crate::Adapter;
use crate::spec::{MatcherSpec, MatcherSyntax};
use crate::tools::{extend_new, fill_mcp, push_new};

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

pub use anyhook_model::matching::ANY_SERVER;

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

/// What makes a text a glob and not a name.
pub(crate) const GLOB_CHARS: [char; 3] = ['*', '?', '['];

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
        let is_about_mcp = names_mcp_tools(pattern, &regex, from);
        if is_about_mcp && self.spec.mcp.format != CANONICAL_MCP_FORMAT {
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

    /// An agent's own matcher in canonical terms; `None` means everything.
    pub fn read_matcher(&self, text: &str) -> Option<Matcher> {
        let spec = &self.spec.config.matcher;
        if spec.any_read.iter().any(|any| any == text) || text.is_empty() {
            return None;
        }
        if spec.syntax == MatcherSyntax::GlobOrRegex {
            return match text.strip_prefix(REGEX_PREFIX) {
                Some(regex) => any_of(self.read_alternatives(regex, true)?),
                None => any_of(self.read_glob(text)),
            };
        }
        let prefix = self.spec.mcp.matcher_prefix.as_deref();
        if let Some(pattern) = prefix.and_then(|prefix| text.strip_prefix(prefix)) {
            return Some(self.read_mcp_matcher(text, pattern));
        }
        let is_list = spec.syntax == MatcherSyntax::List && spec.is_name_list(text);
        let mut items: Vec<Matcher> = Vec::new();
        if is_list {
            let separators: &[char] = if spec.list_chars.contains(',') {
                &['|', ',']
            } else {
                &['|']
            };
            for part in text.split(separators).map(str::trim) {
                extend_new(&mut items, self.read_part(part, true)?);
            }
        } else {
            let is_anchored = spec.syntax == MatcherSyntax::AnchoredRegex;
            extend_new(&mut items, self.read_alternatives(text, is_anchored)?);
        }
        any_of(items)
    }

    /// A matcher that only MCP tools are tested against: the whole text, and the
    /// pattern in it.
    fn read_mcp_matcher(&self, text: &str, pattern: &str) -> Matcher {
        let is_everything = EVERYTHING.contains(&pattern) || matches!(pattern, "*" | "");
        match self.read_atom(text, false) {
            _ if is_everything => Matcher::mcp(ANY_SERVER, None),
            Some(read @ Matcher::Mcp { .. }) => read,
            _ => Matcher::pattern(pattern),
        }
    }

    /// The alternatives of a regular expression; `None` if one of them matches
    /// everything.
    fn read_alternatives(&self, text: &str, anchored: bool) -> Option<Vec<Matcher>> {
        let mut items: Vec<Matcher> = Vec::new();
        for part in top_level_alternatives(text) {
            let inner = if anchored { part } else { unanchored(part) };
            let is_exact = anchored || inner.len() < part.len();
            if is_exact && top_level_alternatives(inner).len() > 1 {
                extend_new(&mut items, self.read_alternatives(inner, true)?);
            } else {
                extend_new(&mut items, self.read_part(inner, is_exact)?);
            }
        }
        Some(items)
    }

    /// One name or pattern; `None` if it matches everything. A pattern that
    /// matches tools known here gets their canonical names, so that it means them
    /// under every agent.
    fn read_part(&self, part: &str, exact: bool) -> Option<Vec<Matcher>> {
        if part.is_empty() {
            return Some(Vec::new());
        }
        if EVERYTHING.contains(&part) {
            return None;
        }
        match self.read_atom(part, exact) {
            Some(Matcher::Any(several)) => return Some(several),
            Some(one) => return Some(vec![one]),
            None => {}
        }
        let pattern = if exact {
            unanchored_form(part)
        } else {
            part.to_owned()
        };
        let regex = Regex::new(&pattern);
        let mut items = vec![Matcher::pattern(pattern)];
        if let Ok(regex) = regex {
            let tools = self.tools_named(&regex).into_iter();
            let tools = tools.filter(|tool| !regex.is_match(tool));
            items.extend(tools.map(|tool| Matcher::Name(tool.to_owned())));
        }
        Some(items)
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

    /// A matcher of an event that is not about a tool, in canonical terms.
    pub fn read_subject(&self, form: &MatcherSpec, text: &str) -> Matcher {
        if form.exact_subject {
            return Matcher::Name(text.to_owned());
        }
        let is_anchored = form.syntax.is_anchored();
        let text = match text.strip_prefix(REGEX_PREFIX) {
            Some(regex) if form.syntax == MatcherSyntax::GlobOrRegex => regex,
            None if form.syntax == MatcherSyntax::GlobOrRegex && text.contains(GLOB_CHARS) => {
                return Matcher::pattern(glob_regex(text));
            }
            _ => text,
        };
        let mut items: Vec<Matcher> = Vec::new();
        for part in top_level_alternatives(text) {
            let inner = if is_anchored { part } else { unanchored(part) };
            let is_whole = is_anchored || inner.len() < part.len();
            for one in top_level_alternatives(inner) {
                let item = match unescaped(one) {
                    Some(name) => Matcher::Name(name),
                    None if is_whole => Matcher::pattern(unanchored_form(one)),
                    None => Matcher::pattern(one),
                };
                push_new(&mut items, item);
            }
        }
        any_of(items).unwrap_or_else(|| Matcher::pattern(text))
    }

    /// One name of a list. `exact`: the name is not a pattern.
    fn read_atom(&self, part: &str, exact: bool) -> Option<Matcher> {
        let mcp = &self.spec.mcp;
        if let Some(template) = &mcp.server_matcher {
            match template.split_once("{server}") {
                None if part == template => return Some(Matcher::mcp(ANY_SERVER, None)),
                None => {}
                Some((before, after)) => {
                    let server = between(part, before, after).filter(|server| !server.is_empty());
                    if let Some(server) = server.and_then(unescaped_server) {
                        return Some(Matcher::mcp(server, None));
                    }
                }
            }
        }
        let any_server = mcp.format.replace("{server}", ".*");
        let without_server = mcp.tool_matcher.as_deref();
        let without_server = without_server.filter(|template| !template.contains("{server}"));
        let of_any_server = (any_server != mcp.format).then_some(any_server.as_str());
        for template in of_any_server.into_iter().chain(without_server) {
            if let Some((before, after)) = template.split_once("{tool}")
                && let Some(tool) = between(part, before, after).and_then(unescaped)
            {
                return Some(Matcher::mcp(ANY_SERVER, Some(tool)));
            }
        }
        if let Some(template) = &mcp.tool_matcher
            && let Some((before, rest)) = template.split_once("{tool}")
            && let Some((separator, after)) = rest.split_once("{server}")
            && let Some((tool, server)) =
                between(part, before, after).and_then(|inner| inner.split_once(separator))
            && let Some(tool) = unescaped(tool)
            && let Some(server) = unescaped_server(server)
        {
            return Some(Matcher::mcp(server, Some(tool)));
        }
        let name = unescaped(part)?;
        let kinds = self.kinds_named(&name);
        if !kinds.is_empty() {
            let kinds = kinds.into_iter().map(|kind| Matcher::Name(kind.to_owned()));
            return any_of(kinds.collect());
        }
        if !mcp.ambiguous
            && let Some((server, tool)) = self.parse_mcp(&name)
        {
            return Some(Matcher::mcp(server, Some(tool)));
        }
        exact.then_some(Matcher::Name(name))
    }
}

/// A glob as a regular expression for the whole name.
pub(crate) fn glob_regex(glob: &str) -> String {
    let pattern = regex_lite::escape(glob);
    format!("^{}$", pattern.replace(r"\*", ".*").replace(r"\?", "."))
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

/// The server in a matcher for MCP tools.
fn unescaped_server(text: &str) -> Option<String> {
    match text {
        ".*" => Some(ANY_SERVER.to_owned()),
        text => unescaped(text),
    }
}

/// The canonical tools whose own names a pattern matches.
fn canonical_tools(regex: &Regex) -> Vec<&'static str> {
    let names = anyhook_model::registry::TOOLS.iter().map(|tool| tool.name);
    names.filter(|name| regex.is_match(name)).collect()
}

/// The format of [`anyhook_model::matching::canonical_mcp_name`].
const CANONICAL_MCP_FORMAT: &str = "mcp__{server}__{tool}";

/// Regular expressions that match every name.
const EVERYTHING: [&str; 6] = [".*", ".+", "^.*$", "^.+$", "^.*", ".*$"];

/// Whether a pattern is about the names of MCP tools, in canonical form or in
/// that of the agent it was written for.
fn names_mcp_tools(pattern: &str, regex: &Regex, from: Option<&Adapter>) -> bool {
    let format = from.map(|from| from.spec.mcp.format.as_ref());
    let formats = [Some(CANONICAL_MCP_FORMAT), format];
    let start = pattern.trim_start_matches(['^', '(']);
    formats.into_iter().flatten().any(|format| {
        let prefix = format.split('{').next().unwrap_or_default();
        let is_named = !prefix.is_empty() && start.starts_with(prefix);
        is_named || (!prefix.is_empty() && regex.is_match(&fill_mcp(format, "server", "tool")))
    })
}

/// The parts of a regular expression between the `|` that are in no group.
fn top_level_alternatives(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut in_class, mut start) = (0_usize, false, 0);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// A pattern without what changes nothing at its ends: `^a.*` is `^a`.
pub fn plain_pattern(pattern: &str) -> &str {
    if top_level_alternatives(pattern).len() > 1 {
        return pattern;
    }
    let start = pattern.strip_prefix("^.*").or(pattern.strip_prefix(".*"));
    let rest = start.unwrap_or(pattern);
    let end = rest.strip_suffix(".*$").or(rest.strip_suffix(".*"));
    end.filter(|inner| !inner.ends_with('\\')).unwrap_or(rest)
}

/// A pattern that may match anywhere, as one for the whole name.
fn anchored_form(pattern: &str) -> String {
    if top_level_alternatives(pattern).len() > 1 {
        return format!(".*(?:{pattern}).*");
    }
    let (start, rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None if pattern.starts_with(".*") => ("", pattern),
        None => (".*", pattern),
    };
    let (rest, end) = match rest.strip_suffix('$') {
        Some(inner) if !inner.ends_with('\\') => (inner, ""),
        _ if rest.ends_with(".*") => (rest, ""),
        _ => (rest, ".*"),
    };
    format!("{start}{rest}{end}")
}

/// A pattern for the whole name, as one that may match anywhere.
fn unanchored_form(pattern: &str) -> String {
    if top_level_alternatives(pattern).len() > 1 {
        return format!("^(?:{pattern})$");
    }
    let (start, rest) = match pattern.strip_prefix(".*") {
        Some(rest) => ("", rest),
        None => ("^", pattern),
    };
    let (rest, end) = match rest.strip_suffix(".*") {
        Some(inner) if !inner.ends_with('\\') => (inner, ""),
        _ => (rest, "$"),
    };
    format!("{start}{rest}{end}")
}

/// The inside of `^a$`, `^(a|b)$`, `^(?:a|b)$`; other texts unchanged.
fn unanchored(text: &str) -> &str {
    let Some(inner) = between(text, "^", "$") else {
        return text;
    };
    between(inner, "(?:", ")")
        .or_else(|| between(inner, "(", ")"))
        .unwrap_or(inner)
}

/// A regex that is only a name; `None` when it is more than that.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.push(letters.next().filter(|next| !next.is_alphanumeric())?),
            letter if ".*+?()[]{}^$|".contains(letter) => return None,
            other => out.push(other),
        }
    }
    Some(out)
}
