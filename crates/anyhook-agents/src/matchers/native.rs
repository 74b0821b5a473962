//! An agent's own matcher as a canonical one.

use anyhook_model::Matcher;
use regex_lite::Regex;

use super::patterns::{EVERYTHING, top_level_alternatives, unanchored, unanchored_form, unescaped};
use super::{ANY_SERVER, GLOB_CHARS, REGEX_PREFIX, any_of, between, glob_regex};
use crate::Adapter;
use crate::spec::{MatcherSpec, MatcherSyntax};
use crate::tools::{extend_new, push_new};

impl Adapter {
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
    pub(super) fn read_atom(&self, part: &str, exact: bool) -> Option<Matcher> {
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

/// The server in a matcher for MCP tools.
fn unescaped_server(text: &str) -> Option<String> {
    match text {
        ".*" => Some(ANY_SERVER.to_owned()),
        text => unescaped(text),
    }
}
