//! On-disk cache of a parsed manifest, so that YAML is parsed and checked only
//! once and an event reads only its own hooks.
//!
//! A file consists of a header, an index and segments. The header has a MAC over the
//! manifest's hash and the index, and the index has the hash of every segment: the
//! header and the segments that an event needs are verified, whatever the size of
//! the manifest. A file that fails is not used. A managed manifest has no cache,
//! because the user can compute the MAC.
//!
//! The hooks of an event are in several segments: those whose matcher names tools are
//! spread over buckets by these names, and the others have a segment of their own. So
//! a call reads the hooks of its event and tool, and few others.
//!
//! A segment has one line per hook: its position, its matcher and the hook itself
//! as JSON, separated by tabs (which JSON does not contain). A manifest is known by
//! the hash of its text and its format: one text can mean different things in two
//! formats. Its file is one of [`SLOT_COUNT`], chosen by that hash, and is overwritten by
//! the next manifest with the same slot: nothing accumulates.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhook_model::{CompiledMatcher, Format, Hook, HookEvent, MatchTarget, Matcher};
use anyhook_util::fs::open_regular;
use anyhook_util::hash::{hex, hmac_sha256, sha256, slot_of_hash};

use crate::config::cache_key::CacheKey;

/// The cache's folder in the state folder.
pub(crate) const FOLDER: &str = "plans";

/// What every header begins with.
const MAGIC: &str = "anyhook plan ";

/// The number of files. Two manifests with one slot parse each other's out of it, so
/// it is larger than the number of projects that most users have.
const SLOT_COUNT: u32 = 4096;

/// Changes with the file format and with the fields of a hook.
const VERSION: &str = concat!("6/", env!("CARGO_PKG_VERSION"));

/// What is read at once; most files are smaller.
const FIRST_READ_BYTES: u64 = 16 * 1024;

/// A larger file, which no manifest can need, is not read.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What a manifest is known by.
pub(super) fn manifest_hash(format: Format, text_hash: &str) -> String {
    sha256(format!("{format:?}\0{text_hash}").as_bytes())
}

/// The cache file of a manifest.
fn slot_path(state: &Path, manifest: &str) -> PathBuf {
    let slot = slot_of_hash(manifest, SLOT_COUNT);
    state.join(FOLDER).join(format!("{slot:03x}"))
}

/// Over how many buckets the hooks with a tool's name are spread. The index, which every
/// call reads, has only those with hooks. With one bucket for twenty hooks, a call parses
/// the matchers of all of them, for 0.03 × `/bin/true`.
const BUCKET_COUNT: usize = 256;

/// The bucket of hooks that can be for any tool.
const ANY_TOOL: &str = "*";

/// In the first line of the index, for a manifest with and without `sequential: true`.
/// After a tab come the names that mean nothing, if there are any.
const SEQUENTIAL_MARK: &str = "sequential";
const SIDE_BY_SIDE_MARK: &str = "side by side";

/// The hooks of a manifest, as far as they are needed.
#[derive(Debug)]
pub(super) enum ManifestHooks {
    All(Vec<Hook>),
    /// In a process that handles many events.
    Compiled(Vec<(Hook, CompiledMatcher)>),
    /// Verified segments of the events with these names, and of these buckets.
    Segments {
        events: Vec<String>,
        /// `None`: every tool.
        keys: Option<Vec<String>>,
        text: String,
    },
}

/// What holds for a manifest as a whole, whichever hooks of it are needed.
#[derive(Debug, Default)]
pub(super) struct ManifestFacts {
    /// It has `sequential: true`.
    pub(super) is_sequential: bool,
    /// See [`unknown_names`](crate::config::unknown_names).
    pub(super) unknown_names: Vec<String>,
}

/// What was found in the cache.
#[derive(Debug)]
pub(super) enum CacheLookup {
    Found(ManifestHooks, ManifestFacts),
    /// There is no file, or one of another manifest, version or key.
    Missing,
    /// The file is not as anyhook has written it.
    Tampered,
}

impl ManifestHooks {
    /// Loads the hooks of an event.
    pub(super) fn load(state: &Path, manifest: &str, event: &HookEvent) -> CacheLookup {
        let Ok((file, metadata)) = open_regular(&slot_path(state, manifest)) else {
            return CacheLookup::Missing;
        };
        let Some(key) = CacheKey::load(state) else {
            return CacheLookup::Missing;
        };
        let wanted = WantedSegments::for_event(event);
        match read_segments(file, metadata.len(), &key, manifest, &wanted) {
            Ok((text, facts)) => {
                let hooks = Self::Segments {
                    events: wanted.events.map(str::to_owned).to_vec(),
                    keys: wanted.keys,
                    text,
                };
                CacheLookup::Found(hooks, facts)
            }
            Err(Unusable::Foreign) => CacheLookup::Missing,
            Err(Unusable::Tampered) => CacheLookup::Tampered,
        }
    }

    pub(super) fn save(hooks: &[Hook], facts: &ManifestFacts, state: &Path, manifest: &str) {
        // If this fails, the next event parses the manifest again.
        let key = CacheKey::load_or_create(state);
        let content = key.and_then(|key| encode(hooks, facts, &key, manifest));
        if let Some(content) = content {
            let path = slot_path(state, manifest);
            let _ = anyhook_util::fs::replace(&path, content.as_bytes());
        }
    }

    /// Prepares every hook, for a process that handles many events.
    pub(super) fn compile(&mut self) {
        if let Self::All(hooks) = self {
            let hooks = std::mem::take(hooks).into_iter().map(|hook| {
                let matcher = CompiledMatcher::new(hook.matcher.as_ref());
                (hook, matcher)
            });
            *self = Self::Compiled(hooks.collect());
        }
    }

    /// The hooks for this event with their positions; `None` if they are not here.
    pub(super) fn hooks_for(&self, event: &HookEvent) -> Option<Vec<(usize, Cow<'_, Hook>)>> {
        let subject = MatchTarget::from_event(event);
        let is_named = |hook: &Hook| hook.event == event.event || hook.event == event.native_event;
        match self {
            Self::All(hooks) => {
                let named = hooks.iter().enumerate().filter(|(_, hook)| is_named(hook));
                let selected = named.filter(|(_, hook)| {
                    CompiledMatcher::new(hook.matcher.as_ref()).fits(subject.as_ref())
                });
                Some(
                    selected
                        .map(|(at, hook)| (at, Cow::Borrowed(hook)))
                        .collect(),
                )
            }
            Self::Compiled(hooks) => {
                let all = hooks.iter().enumerate();
                let selected = all.filter(|(_, (hook, matcher))| {
                    is_named(hook) && matcher.fits(subject.as_ref())
                });
                let selected = selected.map(|(at, (hook, _))| (at, Cow::Borrowed(hook)));
                Some(selected.collect())
            }
            Self::Segments { events, keys, text } => {
                let wanted = WantedSegments::for_event(event);
                let has_event = |name: &&str| events.iter().any(|event| event == name);
                let has_keys = match (keys, &wanted.keys) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some(keys), Some(wanted)) => wanted.iter().all(|key| keys.contains(key)),
                };
                if !has_keys || !wanted.events.iter().all(has_event) {
                    return None;
                }
                select_lines(text, subject.as_ref())
            }
        }
    }
}

/// The segments that an event needs.
struct WantedSegments<'a> {
    events: [&'a str; 2],
    /// Of the tool that the event is about; `None`: every tool.
    keys: Option<Vec<String>>,
}

impl<'a> WantedSegments<'a> {
    fn for_event(event: &'a HookEvent) -> Self {
        Self {
            events: [&event.event, &event.native_event],
            keys: MatchTarget::from_event(event).and_then(|target| target.keys()),
        }
    }

    /// The buckets in a file with so many of them; `None`: all.
    fn buckets(&self, count: usize) -> Option<Vec<String>> {
        let keys = self.keys.as_ref()?.iter();
        let named = keys.map(|key| bucket_name(key, count));
        Some(named.chain([ANY_TOOL.to_owned()]).collect())
    }
}

/// FNV-1a, which spreads names well enough and is the same on every machine.
fn bucket_name(key: &str, buckets: usize) -> String {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash % buckets.max(1) as u64).to_string()
}

/// The hooks of verified lines that match.
fn select_lines(
    text: &str,
    subject: Option<&MatchTarget<'_>>,
) -> Option<Vec<(usize, Cow<'static, Hook>)>> {
    let mut selected = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, '\t');
        let (position, matcher, hook) = (parts.next()?, parts.next()?, parts.next()?);
        let matcher: Option<Matcher> = match matcher {
            "" => None,
            matcher => Some(serde_json::from_str(matcher).ok()?),
        };
        if CompiledMatcher::new(matcher.as_ref()).fits(subject) {
            let hook = serde_json::from_str(hook).ok()?;
            selected.push((position.parse().ok()?, Cow::Owned(hook)));
        }
    }
    // Those of two names come in two segments, and one hook may be in both.
    selected.sort_by_key(|(position, _)| *position);
    selected.dedup_by_key(|(position, _)| *position);
    Some(selected)
}

/// The content of a cache file.
fn encode(hooks: &[Hook], facts: &ManifestFacts, key: &CacheKey, manifest: &str) -> Option<String> {
    let mut segments: BTreeMap<(&str, String), String> = BTreeMap::new();
    for (position, hook) in hooks.iter().enumerate() {
        let matcher = hook.matcher.as_ref().map(serde_json::to_string);
        let matcher = matcher.transpose().ok()?.unwrap_or_default();
        let json = serde_json::to_string(hook).ok()?;
        let line = [&position.to_string(), "\t", &matcher, "\t", &json, "\n"].concat();
        let keys = CompiledMatcher::new(hook.matcher.as_ref()).keys();
        let mut names = match keys.filter(|keys| !keys.is_empty()) {
            Some(keys) => keys
                .iter()
                .map(|key| bucket_name(key, BUCKET_COUNT))
                .collect(),
            None => vec![ANY_TOOL.to_owned()],
        };
        names.sort();
        names.dedup();
        for name in names {
            let segment = segments.entry((&hook.event, name)).or_default();
            segment.push_str(&line);
        }
    }
    let order = if facts.is_sequential {
        SEQUENTIAL_MARK
    } else {
        SIDE_BY_SIDE_MARK
    };
    let mut index = format!("{BUCKET_COUNT} {order}");
    if !facts.unknown_names.is_empty() {
        index.push('\t');
        index.push_str(&serde_json::to_string(&facts.unknown_names).ok()?);
    }
    index.push('\n');
    for ((event, bucket), segment) in &segments {
        let event = serde_json::to_string(event).ok()?;
        let (hash, length) = (sha256(segment.as_bytes()), segment.len().to_string());
        index.extend([&hash, " ", &length, " ", bucket, " ", &event, "\n"]);
    }
    let mac = index_mac(key, manifest, index.as_bytes());
    let id = &key.id;
    let length = index.len();
    let mut content = format!("{MAGIC}{VERSION} {id} {manifest} {mac} {length}\n{index}");
    content.extend(segments.into_values());
    Some(content)
}

fn index_mac(key: &CacheKey, manifest: &str, index: &[u8]) -> String {
    let parts = [VERSION.as_bytes(), b"\0", manifest.as_bytes(), b"\0", index];
    hex(&hmac_sha256(&key.secret, &parts))
}

/// Why a cache file is not used.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    /// It was written by another version, with another key, or for another manifest.
    Foreign,
    Tampered,
}

/// The verified lines of the wanted segments.
fn read_segments(
    mut file: impl Read + Seek,
    size: u64,
    key: &CacheKey,
    manifest: &str,
    wanted: &WantedSegments<'_>,
) -> Result<(String, ManifestFacts), Unusable> {
    let tampered = || Unusable::Tampered;
    if size > MAX_FILE_BYTES {
        return Err(Unusable::Tampered);
    }
    let first = FIRST_READ_BYTES.min(size);
    let mut start = Vec::with_capacity(usize::try_from(first).unwrap_or_default());
    let mut read_up_to = |start: &mut Vec<u8>, end: u64| {
        let missing = end.saturating_sub(start.len() as u64);
        let read = Read::by_ref(&mut file).take(missing).read_to_end(start);
        read.map_err(|_| Unusable::Tampered)
    };
    read_up_to(&mut start, first)?;
    let line_end = start
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or_else(tampered)?;
    let header = start.get(..line_end).ok_or_else(tampered)?;
    let header = std::str::from_utf8(header).map_err(|_| Unusable::Tampered)?;
    let mut parts = header.strip_prefix(MAGIC).ok_or_else(tampered)?.split(' ');
    let own = [VERSION, &key.id, manifest];
    if own.iter().any(|part| parts.next() != Some(part)) {
        return Err(Unusable::Foreign);
    }
    let mac = parts.next().map(str::to_owned);
    let index_length = parts.next().and_then(|length| length.parse().ok());
    let index_length: u64 = index_length.ok_or_else(tampered)?;
    let index_start = line_end as u64 + 1;
    let index_end = index_start
        .checked_add(index_length)
        .filter(|end| *end <= size);
    let index_end = index_end.ok_or_else(tampered)?;
    read_up_to(&mut start, index_end)?;
    let index = slice(&start, index_start, index_end).ok_or_else(tampered)?;
    if mac != Some(index_mac(key, manifest, index)) {
        return Err(Unusable::Tampered);
    }
    // From here on, the index is as anyhook has written it.
    let index = std::str::from_utf8(index).map_err(|_| Unusable::Tampered)?;
    let mut lines = index.lines();
    let first_line = lines.next().and_then(|line| line.split_once(' '));
    let (buckets, order) = first_line.ok_or_else(tampered)?;
    let (order, names) = order.split_once('\t').unwrap_or((order, "[]"));
    let facts = ManifestFacts {
        is_sequential: order == SEQUENTIAL_MARK,
        unknown_names: serde_json::from_str(names).map_err(|_| Unusable::Tampered)?,
    };
    let buckets = buckets.parse().map_err(|_| Unusable::Tampered)?;
    let buckets = wanted.buckets(buckets);
    let is_wanted = |event: &str, bucket: &str| {
        let mut known = buckets.iter().flatten();
        wanted.events.contains(&event) && (buckets.is_none() || known.any(|known| known == bucket))
    };
    let (mut found, mut position) = (Vec::new(), index_end);
    for line in lines {
        let mut parts = line.splitn(4, ' ');
        let (hash, length) = (parts.next(), parts.next());
        let (bucket, event) = (parts.next().unwrap_or_default(), parts.next());
        let length: u64 = length.and_then(|it| it.parse().ok()).ok_or_else(tampered)?;
        let event = event.and_then(|event| event.strip_prefix('"')?.strip_suffix('"'));
        let end = position.checked_add(length).ok_or_else(tampered)?;
        if event.is_some_and(|event| is_wanted(event, bucket)) {
            found.push((hash.unwrap_or_default(), position, end));
        }
        position = end;
    }
    if position != size {
        return Err(Unusable::Tampered);
    }
    let mut text = String::new();
    for (hash, from, to) in found {
        let segment = match slice(&start, from, to) {
            Some(segment) => Cow::Borrowed(segment),
            None => Cow::Owned(read_at(&mut file, from, to).ok_or_else(tampered)?),
        };
        if sha256(&segment) != hash {
            return Err(Unusable::Tampered);
        }
        text.push_str(std::str::from_utf8(&segment).map_err(|_| Unusable::Tampered)?);
    }
    Ok((text, facts))
}

fn slice(bytes: &[u8], from: u64, to: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

fn read_at(file: &mut (impl Read + Seek), from: u64, to: u64) -> Option<Vec<u8>> {
    let length = to.checked_sub(from)?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// For tests with arbitrary content: the hooks that a cache file with a known key
/// yields for an event, if it is usable.
#[doc(hidden)]
pub fn cached_hooks(content: &[u8], secret: [u8; 32], event: &HookEvent) -> Option<Vec<Hook>> {
    let key = CacheKey::new(secret);
    let wanted = WantedSegments::for_event(event);
    let size = content.len() as u64;
    let file = std::io::Cursor::new(content);
    let (text, _) = read_segments(file, size, &key, "manifest", &wanted).ok()?;
    let hooks = select_lines(&text, MatchTarget::from_event(event).as_ref())?;
    Some(
        hooks
            .into_iter()
            .map(|(_, hook)| hook.into_owned())
            .collect(),
    )
}

/// For the same tests: the content of a cache file.
#[doc(hidden)]
pub fn cache_content(hooks: &[Hook], secret: [u8; 32]) -> Option<String> {
    encode(
        hooks,
        &ManifestFacts::default(),
        &CacheKey::new(secret),
        "manifest",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_model::Manifest;
    use serde_json::json;

    fn hooks() -> Vec<Hook> {
        let manifest: Manifest = serde_json::from_value(json!({"spec": "hooks/1.0", "hooks": [
            {"event": "before_tool_execute", "matcher": {"pattern": "^Ba\tsh?"}, "handler": {"type": "command", "command": "a\tb\nc"}},
            {"event": "before_tool_execute", "matcher": ["shell", {"mcp": {"server": "x"}}], "blocking": true, "later": 1,
             "handler": {"type": "http", "url": "https://x", "timeout": 1.5, "async": true, "new": [1]}},
            {"event": "PreToolUse", "handler": {"type": "command", "command": "x"}},
            {"event": "session_start", "handler": {"type": "command", "command": "x"}},
            {"event": "before_tool_execute", "handler": {"type": "command", "command": "y"}},
        ]})).unwrap();
        manifest.hooks
    }

    fn event(tool: &str) -> HookEvent {
        serde_json::from_value(json!({"event": "before_tool_execute", "source": "x",
            "native_event": "PreToolUse",
            "data": {"tool_name": tool, "native_tool_name": "Bash"}}))
        .unwrap()
    }

    #[test]
    fn only_what_an_event_needs_and_nothing_changed() {
        let hooks = hooks();
        let state = tempfile::tempdir().unwrap();
        let state = state.path();
        let facts = ManifestFacts {
            is_sequential: true,
            unknown_names: vec!["hook `a\tb`\n".to_owned()],
        };
        ManifestHooks::save(&hooks, &facts, state, "sum");
        let CacheLookup::Found(stored, found) = ManifestHooks::load(state, "sum", &event("shell"))
        else {
            panic!("not found");
        };
        assert!(found.is_sequential);
        assert_eq!(found.unknown_names, facts.unknown_names);
        let mut parsed = ManifestHooks::All(hooks.clone());
        let mut compiled = ManifestHooks::All(hooks.clone());
        compiled.compile();
        let expected = |positions: &[usize]| -> Vec<(usize, Cow<'_, Hook>)> {
            positions
                .iter()
                .map(|at| (*at, Cow::Borrowed(&hooks[*at])))
                .collect()
        };
        for found in [&stored, &parsed, &compiled] {
            assert_eq!(
                found.hooks_for(&event("shell")).unwrap(),
                expected(&[1, 2, 4])
            );
        }
        assert!(stored.hooks_for(&event("find")).is_none());
        for found in [&parsed, &compiled] {
            assert_eq!(found.hooks_for(&event("find")).unwrap(), expected(&[2, 4]));
        }
        let other = HookEvent {
            event: "session_start".to_owned(),
            ..event("x")
        };
        assert!(stored.hooks_for(&other).is_none());
        parsed.compile();
        assert_eq!(parsed.hooks_for(&other).unwrap(), expected(&[2, 3]));
        assert!(matches!(
            ManifestHooks::load(state, "none", &other),
            CacheLookup::Missing
        ));
    }

    #[test]
    fn no_change_of_a_byte_goes_unnoticed() {
        let content = cache_content(&hooks(), [7; 32]).unwrap().into_bytes();
        let event = event("shell");
        let original = cached_hooks(&content, [7; 32], &event).unwrap();
        assert_eq!(original.len(), 3);
        assert!(cached_hooks(&content, [8; 32], &event).is_none());
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            let hooks = cached_hooks(&changed, [7; 32], &event);
            // A segment that the event does not need is not read.
            assert!(
                hooks.is_none() || hooks.as_ref() == Some(&original),
                "byte {at}"
            );
            assert!(
                cached_hooks(&content[..at], [7; 32], &event).is_none(),
                "cut at {at}"
            );
        }
        let longer = [&content[..], b"0\t\t{}\n"].concat();
        assert!(cached_hooks(&longer, [7; 32], &event).is_none());
    }

    /// Whatever the buckets are, a call gets the hooks that it would get without a cache.
    #[test]
    fn every_call_gets_its_hooks_from_the_buckets() {
        let matchers = [
            json!(null),
            json!("shell"),
            json!("Bash"),
            json!(["file_edit", "web_fetch"]),
            json!(["Bash", "shell"]),
            json!({"pattern": "^B"}),
            json!(["shell", {"pattern": "Edit"}]),
            json!({"mcp": {"server": "git-hub"}}),
            json!({"mcp": {"server": "*", "tool": "create"}}),
            json!(["find", {"mcp": {"server": "x", "tool": "y"}}]),
            json!([]),
        ];
        let hook = |n: usize| -> Hook {
            let (name, matcher) = (format!("hook {n}"), &matchers[n % matchers.len()]);
            let event = ["before_tool_execute", "PreToolUse", "session_start"][n % 3];
            let mut hook = json!({"name": name, "event": event, "handler": {"type": "command", "command": "x"}});
            if !matcher.is_null() {
                hook["matcher"] = matcher.clone();
            }
            serde_json::from_value(hook).unwrap()
        };
        let datas = [
            json!({"tool_name": "shell", "native_tool_name": "Bash"}),
            json!({"tool_name": "file_edit", "native_tool_name": "MultiEdit"}),
            json!({"tool_name": "mcp__git_hub__create", "native_tool_name": "mcp__git_hub__create", "mcp": {"server": "git_hub", "tool": "create"}}),
            json!({"tool_name": "y", "native_tool_name": "x_y", "mcp": {"server": "", "tool": "y"}}),
            json!({"tool_name": ""}),
            json!({"source": "startup"}),
            json!({}),
        ];
        for count in [1, 11, 700] {
            let hooks: Vec<Hook> = (0..count).map(hook).collect();
            let content = cache_content(&hooks, [1; 32]).unwrap();
            for (data, name) in datas.iter().flat_map(|data| {
                ["before_tool_execute", "session_start", "after_tool_execute"]
                    .map(|name| (data, name))
            }) {
                let event = json!({"event": name, "source": "x", "native_event": "PreToolUse", "data": data});
                let event: HookEvent = serde_json::from_value(event).unwrap();
                let found = cached_hooks(content.as_bytes(), [1; 32], &event).unwrap();
                let all = ManifestHooks::All(hooks.clone());
                let expected = all.hooks_for(&event).unwrap().into_iter();
                let expected: Vec<Hook> = expected.map(|(_, hook)| hook.into_owned()).collect();
                assert_eq!(found, expected, "{count} hooks, {name}, {data}");
            }
        }
    }

    #[test]
    fn a_large_manifest_is_read_in_parts() {
        let many: Vec<Hook> = (0..5000)
            .map(|n| Hook {
                event: format!("event_{}", n % 400),
                name: Some(format!("hook {n}")),
                ..hooks()[2].clone()
            })
            .collect();
        let content = cache_content(&many, [1; 32]).unwrap();
        assert!(content.len() as u64 > 4 * FIRST_READ_BYTES);
        for name in ["event_0", "event_399"] {
            let event = HookEvent {
                event: name.to_owned(),
                ..event("shell")
            };
            let found = cached_hooks(content.as_bytes(), [1; 32], &event).unwrap();
            assert_eq!(found.len(), 13 - usize::from(name == "event_399"));
            assert!(found.iter().all(|hook| hook.event == name));
        }
    }
}
