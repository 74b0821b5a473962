//! Whether a hook is for an event, and why.
//!
//! Bare names go through the vocabulary, patterns against the agent's own tool
//! name, MCP matchers by server and tool. An event that is not about a tool
//! ignores the matcher.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

use crate::event::HookEvent;
use crate::matcher::{Matcher, Mcp};
use crate::registry;

/// Bytes that a compiled pattern may take.
const PATTERN_SIZE: usize = 256 << 10;

/// Bytes that a pattern may be long.
const PATTERN_LENGTH: usize = 4096;

/// Bytes of a tool's name that are looked at: the time of a match is bounded
/// by this and `PATTERN_SIZE`.
const TOOL_NAME_LENGTH: usize = 1024;

/// A regular expression that runs in linear time.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError(String);

impl PatternError {
    /// What would be right.
    pub fn help(&self) -> &'static str {
        if self.0.contains("look-around") {
            "RE2 has no look-ahead or look-behind: match more, and decide in the hook"
        } else if self.0.contains("backreferences") {
            "RE2 has no backreferences: write the alternatives out"
        } else if self.0.contains("Unicode") {
            "classes such as `\\p{L}` are not read: list the characters, as in `[a-z]`"
        } else if self.0.contains("long") || self.0.contains("limit") || self.0.contains("nesting")
        {
            "make it smaller: use a list of several patterns"
        } else {
            "patterns are regular expressions in RE2 syntax"
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > PATTERN_LENGTH {
            return Err(PatternError(format!(
                "it is longer than {PATTERN_LENGTH} bytes"
            )));
        }
        RegexBuilder::new(pattern)
            .size_limit(PATTERN_SIZE)
            .build()
            .map(Self)
            .map_err(|error| PatternError(error.to_string()))
    }

    /// Unanchored.
    pub fn is_match(&self, text: &str) -> bool {
        let mut end = text.len().min(TOOL_NAME_LENGTH);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.0.is_match(text.get(..end).unwrap_or_default())
    }
}

/// A matcher made ready for many events.
#[derive(Debug, Clone)]
pub struct CompiledMatcher(Part);

#[derive(Debug, Clone)]
enum Part {
    Everything,
    /// A tool of the vocabulary.
    Tool(String),
    /// Any other, as the agent calls it.
    Name(String),
    Pattern(String, Pattern),
    /// Never matches: its pattern cannot be read.
    Broken(String, PatternError),
    Mcp(Mcp),
    Any(Vec<Part>),
}

/// Whether, and why, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub matches: bool,
    pub why: String,
}

impl CompiledMatcher {
    /// A pattern that cannot be read matches nothing, and `explain` says so;
    /// a manifest with one never passes `parse`.
    pub fn new(matcher: Option<&Matcher>) -> Self {
        Self(matcher.map_or(Part::Everything, Part::new))
    }

    pub fn matches(&self, event: &HookEvent) -> bool {
        self.fits(Subject::of(event).as_ref())
    }

    /// As [`CompiledMatcher::matches`], for who asks many matchers about one event.
    pub fn fits(&self, subject: Option<&Subject<'_>>) -> bool {
        subject.is_none_or(|subject| self.0.matches(subject))
    }

    pub fn explain(&self, event: &HookEvent) -> Verdict {
        if matches!(self.0, Part::Everything) {
            return Verdict {
                matches: true,
                why: "no matcher: every call".into(),
            };
        }
        let Some(subject) = Subject::of(event) else {
            return Verdict {
                matches: true,
                why: format!(
                    "`{}` is not about a tool, so the matcher is ignored",
                    event.event
                ),
            };
        };
        Verdict {
            matches: self.0.matches(&subject),
            why: self.0.why(&subject),
        }
    }
}

/// Whether a hook with this matcher is for this event. The event's name is
/// not compared: that is the caller's matter.
pub fn matches(matcher: Option<&Matcher>, event: &HookEvent) -> bool {
    CompiledMatcher::new(matcher).matches(event)
}

/// As [`matches`], with the reason.
pub fn explain(matcher: Option<&Matcher>, event: &HookEvent) -> Verdict {
    CompiledMatcher::new(matcher).explain(event)
}

/// The server of an MCP matcher that means every server.
pub const ANY_SERVER: &str = "*";

/// Some agents write `_` for what a server's name may not have there, some do
/// not tell where it ends, some do not tell it at all. Names are compared
/// without these differences: a guard must not miss a call.
fn is_mcp_call(wanted: &Mcp, (server, tool): (&str, &str)) -> bool {
    let any_server = wanted.server == ANY_SERVER || server.is_empty();
    let exact = wanted.tool.as_deref().is_none_or(|name| name == tool);
    if exact && (any_server || server == wanted.server) {
        return true;
    }
    let called = plain_name(&format!("{server}_{tool}"));
    match &wanted.tool {
        Some(name) if any_server => {
            let name = plain_name(name);
            called == name || called.ends_with(&format!("_{name}"))
        }
        Some(name) => called == plain_name(&format!("{}_{name}", wanted.server)),
        None => any_server || called.starts_with(&plain_name(&format!("{}_", wanted.server))),
    }
}

/// Letters and digits, with one `_` for all that stands between them.
fn plain_name(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_alphanumeric() {
            plain.push(letter);
        } else if !plain.ends_with('_') {
            plain.push('_');
        }
    }
    plain
}

/// What of an event a matcher looks at.
#[derive(Debug)]
pub struct Subject<'a> {
    tool: &'a str,
    /// Further canonical tools that the called one does as well: a patch both
    /// edits and writes, and a guard for either must see it.
    kinds: Vec<&'a str>,
    native: &'a str,
    mcp: Option<(&'a str, &'a str)>,
}

impl<'a> Subject<'a> {
    /// `None` when the event is not about a tool.
    pub fn of(event: &'a HookEvent) -> Option<Self> {
        let tool = event.tool_name();
        let is_tool_event = match registry::event(&event.event) {
            Some(known) => known.tool,
            None => tool.is_some(),
        };
        is_tool_event.then(|| Self {
            tool: tool.unwrap_or_default(),
            kinds: event.tool_kinds().collect(),
            native: event.native_tool_name().unwrap_or_default(),
            mcp: event.mcp(),
        })
    }
}

impl Part {
    fn new(matcher: &Matcher) -> Self {
        match matcher {
            Matcher::Name(name) if registry::tool(name).is_some() => Self::Tool(name.clone()),
            Matcher::Name(name) => Self::Name(name.clone()),
            Matcher::Pattern { pattern, .. } => match Pattern::new(pattern) {
                Ok(compiled) => Self::Pattern(pattern.clone(), compiled),
                Err(error) => Self::Broken(pattern.clone(), error),
            },
            Matcher::Mcp { mcp, .. } => Self::Mcp(mcp.clone()),
            Matcher::Any(parts) => Self::Any(parts.iter().map(Self::new).collect()),
        }
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Broken(..) => false,
            Self::Tool(name) => subject.tool == name || subject.kinds.contains(&name.as_str()),
            Self::Name(name) => subject.tool == name || subject.native == name,
            Self::Pattern(_, pattern) => pattern.is_match(subject.native),
            Self::Mcp(wanted) => subject.mcp.is_some_and(|call| is_mcp_call(wanted, call)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(subject)),
        }
    }

    fn why(&self, subject: &Subject<'_>) -> String {
        let (tool, native) = (subject.tool, subject.native);
        let is = if self.matches(subject) {
            "is"
        } else {
            "is not"
        };
        match self {
            Self::Everything => "no matcher: every call".into(),
            Self::Tool(name) => {
                format!("tool `{tool}` (`{native}`) {is} `{name}`")
            }
            Self::Name(name) => format!("tool `{native}` {is} literally `{name}`"),
            Self::Pattern(pattern, _) => {
                let does = if self.matches(subject) {
                    "matches"
                } else {
                    "does not match"
                };
                format!("tool `{native}` {does} the pattern `{pattern}`")
            }
            Self::Broken(pattern, error) => {
                format!("the pattern `{pattern}` cannot be read: {error}")
            }
            Self::Mcp(wanted) => {
                let name = wanted.tool.as_deref().unwrap_or("*");
                match subject.mcp {
                    Some((server, tool)) => {
                        format!("MCP tool `{server}/{tool}` {is} `{}/{name}`", wanted.server)
                    }
                    None => format!("tool `{native}` is not an MCP tool"),
                }
            }
            Self::Any(parts) => match parts.iter().find(|part| part.matches(subject)) {
                Some(part) => part.why(subject),
                None if parts.is_empty() => "an empty list matches nothing".into(),
                None => {
                    let all: Vec<String> = parts.iter().map(|part| part.why(subject)).collect();
                    all.join("; ")
                }
            },
        }
    }
}
