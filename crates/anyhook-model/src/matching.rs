//! Whether a hook is for an event, and why.
//!
//! Bare names go through the vocabulary, patterns against the agent's own tool
//! name and the canonical one, MCP matchers by server and tool. At an event that is
//! not about a tool, a matcher is compared with what the registry names as the
//! event's subject, such as the way a session started; tools in it are ignored.

use regex_lite::{Regex, RegexBuilder};

use crate::event::HookEvent;
use crate::matcher::{Matcher, Mcp};
use crate::registry::{self, Semantic};

/// Memory limit of a compiled pattern.
const MAX_COMPILED_PATTERN_BYTES: usize = 256 << 10;

const MAX_PATTERN_BYTES: usize = 4096;

/// The part of a tool's name that is matched: this and
/// `MAX_COMPILED_PATTERN_BYTES` bound the time of a match.
const MAX_TOOL_NAME_BYTES: usize = 1024;

/// A regular expression that runs in linear time.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

impl PatternError {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        if self.0.contains("look-around") {
            "RE2 has no look-ahead or look-behind: match more, and decide in the hook"
        } else if self.0.contains("backreferences") {
            "RE2 has no backreferences: write the alternatives out"
        } else if self.0.contains("repetition") {
            "put the inner repetition into a group, as in `(?:a+)+`"
        } else if self.0.contains("flag") {
            "RE2 has the flags `i`, `m`, `s` and `U`"
        } else if self.0.contains("Unicode") {
            "classes such as `\\p{L}` are not supported: list the characters, as in `[a-z]`"
        } else if self.0.contains("long") || self.0.contains("limit") || self.0.contains("nesting")
        {
            "make it smaller: use a list of several patterns"
        } else {
            "patterns are regular expressions in RE2 syntax"
        }
    }
}

impl Pattern {
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(PatternError(format!(
                "it is longer than {MAX_PATTERN_BYTES} bytes"
            )));
        }
        if let Some(problem) = not_in_re2(pattern) {
            return Err(PatternError(problem.to_owned()));
        }
        RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED_PATTERN_BYTES)
            .build()
            .map(Self)
            .map_err(|error| PatternError(error.to_string()))
    }

    /// Unanchored.
    pub fn is_match(&self, text: &str) -> bool {
        let mut end = text.len().min(MAX_TOOL_NAME_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.0.is_match(text.get(..end).unwrap_or_default())
    }
}

/// What the engine accepts and RE2 does not, so that a pattern means the same everywhere:
/// repetitions of repetitions (`a++`), and flags other than `i`, `m`, `s` and `U`.
fn not_in_re2(pattern: &str) -> Option<&'static str> {
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    // An operator, which may be followed by one `?` but by no other operator.
    let mut is_repeated = false;
    while let Some(letter) = chars.next() {
        let was_repeated = std::mem::take(&mut is_repeated);
        match letter {
            '\\' => {
                chars.next();
            }
            ']' if in_class => in_class = false,
            _ if in_class => {}
            '[' => {
                in_class = true;
                // A `]` at the beginning is a member of the class.
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
            }
            '(' if chars.next_if_eq(&'?').is_some() => {
                let is_name = matches!(chars.peek(), Some('P' | '<' | '=' | '!'));
                while let Some(flag) = chars.next_if(|it| it.is_ascii_alphabetic() || *it == '-') {
                    if !is_name && !matches!(flag, 'i' | 'm' | 's' | 'U' | '-') {
                        return Some("this flag is not in RE2");
                    }
                }
            }
            '*' | '+' | '?' | '{' if was_repeated => {
                return Some("a repetition of a repetition is not in RE2");
            }
            '*' | '+' | '?' => {
                chars.next_if_eq(&'?');
                is_repeated = true;
            }
            '{' if chars.peek().is_some_and(char::is_ascii_digit) => {
                for inner in chars.by_ref() {
                    if inner == '}' {
                        break;
                    }
                }
                chars.next_if_eq(&'?');
                is_repeated = true;
            }
            _ => {}
        }
    }
    None
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
    /// Never matches: its pattern is invalid.
    Broken(String, PatternError),
    Mcp(Mcp),
    Any(Vec<Part>),
}

/// Whether a hook is for an event, and why, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchExplanation {
    pub matches: bool,
    pub why: String,
}

impl CompiledMatcher {
    /// An invalid pattern matches nothing, and `explain` reports it; `parse`
    /// rejects a manifest with one.
    pub fn new(matcher: Option<&Matcher>) -> Self {
        Self(matcher.map_or(Part::Everything, Part::new))
    }

    pub fn matches(&self, event: &HookEvent) -> bool {
        self.fits(MatchTarget::from_event(event).as_ref())
    }

    /// [`CompiledMatcher::matches`] for many matchers and one event.
    pub fn fits(&self, target: Option<&MatchTarget<'_>>) -> bool {
        target.is_none_or(|target| self.0.matches(target))
    }

    /// The keys of which a target must have one to fit; `None` if only a comparison
    /// can tell.
    pub fn keys(&self) -> Option<Vec<String>> {
        let mut keys = Vec::new();
        self.0.collect_keys(&mut keys).then_some(keys)
    }

    pub fn explain(&self, event: &HookEvent) -> MatchExplanation {
        let (matches, why) = match MatchTarget::from_event(event) {
            Some(target) => (self.0.matches(&target), self.0.why(&target)),
            None if matches!(self.0, Part::Everything) => (true, NO_MATCHER.to_owned()),
            None => {
                let name = &event.event;
                let why = format!("`{name}` is not about a tool, so the matcher is ignored");
                (true, why)
            }
        };
        MatchExplanation { matches, why }
    }
}

const NO_MATCHER: &str = "no matcher: every call";

/// Whether an event is about to run a tool that it does not name. Which hooks are
/// for it is unknown, so every one is asked.
pub fn has_unreadable_tool(event: &HookEvent) -> bool {
    let known = registry::event(&event.event);
    let is_preventable =
        known.is_some_and(|known| known.tool && known.blocking == Semantic::Prevent);
    let name = event.tool_name().unwrap_or_default();
    is_preventable && name.trim().is_empty()
}

/// Whether a hook with this matcher is for this event. The event's name is
/// not compared: the caller does that.
pub fn matches(matcher: Option<&Matcher>, event: &HookEvent) -> bool {
    CompiledMatcher::new(matcher).matches(event)
}

/// As [`matches`], with the reason.
pub fn explain(matcher: Option<&Matcher>, event: &HookEvent) -> MatchExplanation {
    CompiledMatcher::new(matcher).explain(event)
}

/// The server of an MCP matcher that means every server.
pub const ANY_SERVER: &str = "*";

/// Some agents replace characters of a server's name by `_`, some do not mark
/// where it ends, some leave it out. Names are compared without these
/// differences: a guard must not miss a call.
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

/// Letters and digits, with one `_` for everything between them.
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

/// What a matcher is compared with.
#[derive(Debug)]
pub struct MatchTarget<'a>(TargetKind<'a>);

#[derive(Debug)]
enum TargetKind<'a> {
    Call(MatchedCall<'a>),
    /// The subject of an event that is not about a tool: its name and value.
    Subject(&'static str, &'a str),
}

/// The parts of a tool call that a matcher uses.
#[derive(Debug)]
struct MatchedCall<'a> {
    tool: &'a str,
    /// Further canonical tools that the called one covers: a patch both edits and
    /// writes, and a guard for either must match.
    kinds: Vec<&'a str>,
    native: &'a str,
    mcp: Option<(&'a str, &'a str)>,
    canonical_mcp: Option<String>,
    is_unreadable: bool,
}

impl<'a> MatchTarget<'a> {
    /// `None` if the event has nothing that a matcher could be compared with.
    pub fn from_event(event: &'a HookEvent) -> Option<Self> {
        let tool = event.tool_name();
        let known = registry::event(&event.event);
        let is_tool_event = known.map_or(tool.is_some(), |known| known.tool);
        if !is_tool_event {
            let subject = known?.subject?;
            let value = event.text(subject).filter(|value| !value.is_empty())?;
            return Some(Self(TargetKind::Subject(subject, value)));
        }
        let mcp = event.mcp();
        Some(Self(TargetKind::Call(MatchedCall {
            tool: tool.unwrap_or_default(),
            kinds: event.tool_kinds().collect(),
            native: event.native_tool_name().unwrap_or_default(),
            mcp,
            canonical_mcp: mcp.map(|(server, tool)| canonical_mcp_name(server, tool)),
            is_unreadable: has_unreadable_tool(event),
        })))
    }
}

impl MatchTarget<'_> {
    /// The keys of the matchers that may fit; `None` if those of every key may.
    pub fn keys(&self) -> Option<Vec<String>> {
        let TargetKind::Call(call) = &self.0 else {
            return None;
        };
        if call.is_unreadable {
            return None;
        }
        let names = [call.tool, call.native].into_iter();
        let names = names.chain(call.kinds.iter().copied()).map(name_key);
        let mcp = call.mcp.map(|_| MCP_KEY.to_owned());
        Some(names.chain(mcp).collect())
    }
}

/// The key of every tool of an MCP server: their names are compared loosely.
const MCP_KEY: &str = "mcp";

fn name_key(name: &str) -> String {
    format!("name {name}")
}

/// The name by which patterns know an MCP tool under every agent, whatever the
/// agent calls it.
pub fn canonical_mcp_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

impl MatchedCall<'_> {
    /// The native name, then the canonical ones.
    fn names(&self) -> impl Iterator<Item = &str> {
        let kinds = self.kinds.iter().copied();
        let names = [self.native, self.tool].into_iter().chain(kinds);
        names.chain(self.canonical_mcp.as_deref())
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

    /// False if there are none. See [`CompiledMatcher::keys`].
    fn collect_keys(&self, keys: &mut Vec<String>) -> bool {
        match self {
            Self::Everything | Self::Pattern(..) => return false,
            Self::Broken(..) => {}
            Self::Tool(name) | Self::Name(name) => keys.push(name_key(name)),
            Self::Mcp(_) => keys.push(MCP_KEY.to_owned()),
            Self::Any(parts) => return parts.iter().all(|part| part.collect_keys(keys)),
        }
        true
    }

    fn matches(&self, target: &MatchTarget<'_>) -> bool {
        match &target.0 {
            TargetKind::Call(call) => self.matches_call(call),
            TargetKind::Subject(_, value) => self.matches_subject(value),
        }
    }

    fn why(&self, target: &MatchTarget<'_>) -> String {
        match &target.0 {
            TargetKind::Call(call) => self.why_call(call),
            TargetKind::Subject(..) if matches!(self, Self::Everything) => NO_MATCHER.into(),
            TargetKind::Subject(subject, value) => {
                let does = if self.matches_subject(value) {
                    "matches"
                } else {
                    "does not match"
                };
                format!("`{subject}` is `{value}`, which the matcher {does}")
            }
        }
    }

    /// A tool means nothing at such an event, so it matches.
    fn matches_subject(&self, value: &str) -> bool {
        match self {
            Self::Everything | Self::Tool(_) | Self::Mcp(_) => true,
            Self::Broken(..) => false,
            Self::Any(parts) => parts.iter().any(|part| part.matches_subject(value)),
            Self::Name(name) => name == value || name == "*",
            Self::Pattern(_, pattern) => pattern.is_match(value),
        }
    }

    fn matches_call(&self, target: &MatchedCall<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Broken(..) => false,
            Self::Any(parts) => parts.iter().any(|part| part.matches_call(target)),
            _ if target.is_unreadable => true,
            Self::Tool(name) => target.tool == name || target.kinds.contains(&name.as_str()),
            Self::Name(name) => target.tool == name || target.native == name,
            Self::Pattern(_, pattern) => target.names().any(|name| pattern.is_match(name)),
            Self::Mcp(wanted) => target.mcp.is_some_and(|call| is_mcp_call(wanted, call)),
        }
    }

    fn why_call(&self, target: &MatchedCall<'_>) -> String {
        let (tool, native) = (target.tool, target.native);
        let is = if self.matches_call(target) {
            "is"
        } else {
            "is not"
        };
        match self {
            Self::Everything => NO_MATCHER.into(),
            _ if target.is_unreadable && self.matches_call(target) => {
                "the tool's name cannot be read, so every hook is asked".into()
            }
            Self::Tool(name) => {
                format!("tool `{tool}` (`{native}`) {is} `{name}`")
            }
            Self::Name(name) => format!("tool `{native}` {is} literally `{name}`"),
            Self::Pattern(pattern, _) => {
                let does = if self.matches_call(target) {
                    "matches"
                } else {
                    "does not match"
                };
                let named = if tool.is_empty() || tool == native {
                    format!("`{native}`")
                } else {
                    format!("`{tool}` (`{native}`)")
                };
                format!("tool {named} {does} the pattern `{pattern}`")
            }
            Self::Broken(pattern, error) => {
                format!("the pattern `{pattern}` is invalid: {error}")
            }
            Self::Mcp(wanted) => {
                let name = wanted.tool.as_deref().unwrap_or("*");
                match target.mcp {
                    Some((server, tool)) => {
                        format!("MCP tool `{server}/{tool}` {is} `{}/{name}`", wanted.server)
                    }
                    None => format!("tool `{native}` is not an MCP tool"),
                }
            }
            Self::Any(parts) => match parts.iter().find(|part| part.matches_call(target)) {
                Some(part) => part.why_call(target),
                None if parts.is_empty() => "an empty list matches nothing".into(),
                None => {
                    let all: Vec<String> = parts.iter().map(|part| part.why_call(target)).collect();
                    all.join("; ")
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_call_without_a_readable_name_is_for_every_hook() {
        let event = |name: &str, data: Value| -> HookEvent {
            let event = json!({"event": name, "source": "x", "data": data});
            serde_json::from_value(event).unwrap()
        };
        let matchers = [
            json!("shell"),
            json!("NoSuchTool"),
            json!({"pattern": "^Bash$"}),
            json!({"mcp": {"server": "github", "tool": "create_issue"}}),
            json!(["file_write", {"pattern": "x"}]),
        ];
        let nameless = [
            json!({}),
            json!({"tool_name": ""}),
            json!({"tool_name": " "}),
            json!({"tool_name": 7}),
            json!({"tool_name": null}),
        ];
        for matcher in matchers {
            let matcher: Matcher = serde_json::from_value(matcher).unwrap();
            for data in &nameless {
                for name in ["before_tool_execute", "permission_request"] {
                    assert!(
                        matches(Some(&matcher), &event(name, data.clone())),
                        "{data}"
                    );
                }
                // What has happened can be asked about no more.
                let after = event("after_tool_execute", data.clone());
                assert!(!matches(Some(&matcher), &after), "{data}");
            }
            let named = event("before_tool_execute", json!({"tool_name": "Other"}));
            assert!(!matches(Some(&matcher), &named));
        }
        let none = Matcher::Any(Vec::new());
        assert!(!matches(
            Some(&none),
            &event("before_tool_execute", json!({}))
        ));
    }
}
