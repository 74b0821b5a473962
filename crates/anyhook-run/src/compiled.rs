//! A checked manifest in a form of which an event reads only its own hooks.
//!
//! One line per hook: event, matcher and hook as JSON, with tabs between them
//! (JSON has none). Kept in the state folder under the hash of the manifest
//! that it was made from and of the format that this was read as (one text may
//! say different things in two), so that YAML and its checks are paid for once.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhook_model::{CompiledMatcher, Format, Hook, HookEvent, Manifest, Matcher, Subject};

use crate::files;
use crate::trust::hash;

/// Its folder in the state folder.
pub const FOLDER: &str = "plans";

/// Changes with the form, and with what a hook is.
const HEADER: &str = concat!("anyhook plan 1 ", env!("CARGO_PKG_VERSION"));

/// The name under which the plan of a manifest is kept.
pub fn key(format: Format, text: &str) -> String {
    hash(format!("{format:?}\0{text}").as_bytes())
}

#[derive(Debug)]
pub struct Compiled {
    text: String,
    /// For who asks often: all of them, read.
    hooks: Option<Vec<(Hook, CompiledMatcher)>>,
}

impl Compiled {
    pub fn new(manifest: &Manifest) -> Option<Self> {
        let mut text = HEADER.to_owned();
        for hook in &manifest.hooks {
            let matcher = hook.matcher.as_ref().map(serde_json::to_string);
            text.push('\n');
            text.push_str(&serde_json::to_string(&hook.event).ok()?);
            text.push('\t');
            text.push_str(&matcher.transpose().ok()?.unwrap_or_default());
            text.push('\t');
            text.push_str(&serde_json::to_string(hook).ok()?);
        }
        // The end of the last line is the sign that nothing is missing.
        text.push('\n');
        Some(Self { text, hooks: None })
    }

    fn path(state: &Path, key: &str) -> PathBuf {
        state.join(FOLDER).join(key)
    }

    pub fn load(state: &Path, key: &str) -> Option<Self> {
        let text = std::fs::read_to_string(Self::path(state, key)).ok()?;
        let is_ours = text.lines().next() == Some(HEADER) && text.ends_with('\n');
        is_ours.then_some(Self { text, hooks: None })
    }

    pub fn save(&self, state: &Path, key: &str) {
        // Without a place to keep it, the next event parses again.
        let _ = files::replace(&Self::path(state, key), self.text.as_bytes());
    }

    /// Reads every hook, for many events.
    pub fn read_all(&mut self) {
        let mut hooks = Vec::new();
        for line in self.text.lines().skip(1) {
            let read = line.splitn(3, '\t').nth(2).map(serde_json::from_str);
            let Some(Ok(hook)): Option<Result<Hook, _>> = read else {
                return;
            };
            let matcher = CompiledMatcher::new(hook.matcher.as_ref());
            hooks.push((hook, matcher));
        }
        self.hooks = Some(hooks);
    }

    /// The hooks that are for this event, with their positions; `None` when a
    /// line cannot be read.
    pub fn due(&self, event: &HookEvent) -> Option<Vec<(usize, Cow<'_, Hook>)>> {
        let subject = Subject::of(event);
        if let Some(hooks) = &self.hooks {
            let all = hooks.iter().enumerate();
            let due = all.filter(|(_, (hook, matcher))| {
                (hook.event == event.event || hook.event == event.native_event)
                    && matcher.fits(subject.as_ref())
            });
            return Some(due.map(|(n, (hook, _))| (n, Cow::Borrowed(hook))).collect());
        }
        let mut due = Vec::new();
        for (position, line) in self.text.lines().skip(1).enumerate() {
            let mut parts = line.splitn(3, '\t');
            let (name, matcher, hook) = (parts.next()?, parts.next()?, parts.next()?);
            let name = name.strip_prefix('"')?.strip_suffix('"')?;
            if name != event.event && name != event.native_event {
                continue;
            }
            let matcher: Option<Matcher> = match matcher {
                "" => None,
                matcher => Some(serde_json::from_str(matcher).ok()?),
            };
            if CompiledMatcher::new(matcher.as_ref()).fits(subject.as_ref()) {
                due.push((position, Cow::Owned(serde_json::from_str(hook).ok()?)));
            }
        }
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_an_event_needs_and_nothing_changed() {
        let manifest: Manifest = serde_json::from_value(json!({"spec": "hooks/1.0", "hooks": [
            {"event": "before_tool_execute", "matcher": {"pattern": "^Ba\tsh?"}, "handler": {"type": "command", "command": "a\tb\nc"}},
            {"event": "before_tool_execute", "matcher": ["shell", {"mcp": {"server": "x"}}], "blocking": true, "later": 1,
             "handler": {"type": "http", "url": "https://x", "timeout": 1.5, "async": true, "new": [1]}},
            {"event": "session_start", "handler": {"type": "command", "command": "x"}},
        ]})).unwrap();
        let state = tempfile::tempdir().unwrap();
        Compiled::new(&manifest).unwrap().save(state.path(), "sum");
        let mut kept = Compiled::load(state.path(), "sum").unwrap();
        let event = |tool: &str| -> HookEvent {
            serde_json::from_value(json!({"event": "before_tool_execute", "source": "x",
                "data": {"tool_name": tool, "native_tool_name": "Bash"}}))
            .unwrap()
        };
        for is_read in [false, true] {
            if is_read {
                kept.read_all();
                assert!(kept.hooks.is_some());
            }
            let due = kept.due(&event("shell")).unwrap();
            assert_eq!(due, [(1, Cow::Borrowed(&manifest.hooks[1]))]);
            assert_eq!(kept.due(&event("find")).unwrap(), []);
        }

        let cut = &kept.text.as_bytes()[..kept.text.len() - 5];
        std::fs::write(Compiled::path(state.path(), "cut"), cut).unwrap();
        assert!(Compiled::load(state.path(), "cut").is_none());
        assert!(Compiled::load(state.path(), "none").is_none());
    }
}
