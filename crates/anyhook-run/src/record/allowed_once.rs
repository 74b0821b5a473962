//! Calls that the user lets through once, although a hook denies them.
//!
//! `anyhook allow-once` adds an exception for a call that was denied; the next
//! call that is the same takes it, and passes. An exception is for one call, of
//! the same session and in the same folder, for [`EXCEPTION_LIFETIME`]. All exceptions are in
//! one file, which is locked while it is changed: of two equal calls at the same
//! time exactly one passes.
//!
//! The journal contains no secrets, so a call is compared by a digest, which the
//! record of the denied call has. Digests and exceptions are keyed with the key of
//! the state folder: they say nothing about the call, and a folder that someone
//! else has prepared contains no exception. Whoever can write the user's state
//! folder can also approve hooks there; managed hooks therefore know no exceptions
//! unless their policy allows them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhook_agents::payload::NATIVE_ABSENT;
use anyhook_model::event::{NATIVE, field};
use anyhook_model::{HookEvent, Record, registry};
use anyhook_util::fs::{open_in_private_dir, private_file_options, try_lock};
use anyhook_util::hash::{PartsHash, hex, hmac_sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::cache_key::CacheKey;
use crate::record::duplicate::{add_map, add_value, now_ms};

/// How long an exception waits for its call.
pub const EXCEPTION_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Key of a record with the digest of a call that was denied.
pub(crate) const CALL_KEY: &str = "call";

/// Key of a record with the id of the denied call that it let through.
pub(crate) const ALLOWS_KEY: &str = "allows";

const FILE_NAME: &str = "allowed-once.json";

/// The oldest exception gives way to a newer one.
const MAX_EXCEPTIONS: usize = 16;

/// A larger file was not written by anyhook.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// How long another process may hold the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Members of a known tool's input that say nothing about what the call does; a model
/// writes them again when it tries again. Of other tools nothing is known.
const WORDING_KEYS: [&str; 3] = ["description", "timeout", "timeout_ms"];

/// Fields of an event that differ between two attempts of the same call.
const ATTEMPT_FIELDS: [&str; 6] = [
    field::TOOL_CALL_ID,
    field::TOOL_INPUT,
    field::TRANSCRIPT_PATH,
    field::MODEL,
    field::DURATION_MS,
    field::PERMISSION_MODE,
];

/// The same among what the agent sends of its own, outside of the tool's input: whose
/// attempt it is, when, and what was said before. Without case, `-` and `_`.
const ATTEMPT_NAMES: [&str; 30] = [
    "agentmessage",
    "apirequestid",
    "contexttokens",
    "contextusagepercent",
    "conversationhistory",
    "conversationid",
    "created",
    "estimatedtokens",
    "generationid",
    "id",
    "isfirstturn",
    "iteration",
    "messagecount",
    "messageid",
    "model",
    "modelid",
    "modelparams",
    "parentagentid",
    "partid",
    "permissionmode",
    "permissionsuggestions",
    "promptid",
    "rootsessionid",
    "sessionid",
    "taskid",
    "time",
    "timestamp",
    "tooluseid",
    "transcriptpath",
    "turnid",
];

/// One call that may pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CallException {
    /// The digest of the call.
    call: String,
    /// The record of the denied call.
    record: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// Milliseconds since 1970.
    expires: u64,
    mac: String,
}

impl CallException {
    fn mac(&self, key: &CacheKey) -> String {
        let expires = self.expires.to_string();
        let optional = |text: &Option<String>| match text {
            Some(text) => format!("{}:{text}", text.len()),
            None => "-".to_owned(),
        };
        let (session, cwd) = (optional(&self.session), optional(&self.cwd));
        let mut parts: Vec<&[u8]> = vec![b"allowed once"];
        for part in [&self.call, &self.record, &session, &cwd, &expires] {
            parts.extend([&b"\0"[..], part.as_bytes()]);
        }
        hex(&hmac_sha256(&key.secret, &parts))
    }

    fn is_alive(&self, now: u64) -> bool {
        let limit = u64::try_from(EXCEPTION_LIFETIME.as_millis()).unwrap_or(u64::MAX);
        // One that lives longer than any should was not written by us.
        now < self.expires && self.expires - now <= limit
    }

    /// Whether a call comes from where the denied one came from. What only one of
    /// them states says nothing, but one of the two must be the same.
    fn fits(&self, event: &HookEvent) -> bool {
        let places = [(&self.session, &event.session_id), (&self.cwd, &event.cwd)];
        let known = places.iter().filter_map(|(own, other)| {
            let (own, other) = (own.as_ref()?, other.as_ref()?);
            Some(own == other)
        });
        let known: Vec<bool> = known.collect();
        !known.is_empty() && known.iter().all(|is_same| *is_same)
    }
}

/// The digest of a call: the same for another attempt of the same call.
pub(crate) fn call_digest(state: &Path, event: &HookEvent) -> Option<String> {
    Some(digest_with(&CacheKey::load_or_create(state)?, event))
}

fn digest_with(key: &CacheKey, event: &HookEvent) -> String {
    let mut hash = PartsHash::default();
    for part in [&event.source, &event.event, &event.native_event] {
        hash.add(part.as_bytes());
    }
    let is_same = |(name, _): &(&String, &Value)| !ATTEMPT_FIELDS.contains(&name.as_str());
    add_map(event.data.iter().filter(is_same), &mut hash);
    match event.data.get(field::TOOL_INPUT) {
        Some(Value::Object(input)) => add_map(input_of_call(event, input).iter(), &mut hash),
        Some(other) => add_value(other, &mut hash),
        None => {}
    }
    // What has no canonical place may change what runs too, such as a sandbox switch.
    let native = native_of_call(event);
    add_map(native.iter().map(|(name, value)| (*name, value)), &mut hash);
    hex(&hmac_sha256(
        &key.secret,
        &[b"call\0", hash.finish().as_bytes()],
    ))
}

/// A tool's input without the wording.
fn input_of_call(event: &HookEvent, input: &Map<String, Value>) -> Map<String, Value> {
    let is_known = event.mcp().is_none() && event.tool_name().and_then(registry::tool).is_some();
    let is_wording = |name: &str| is_known && WORDING_KEYS.contains(&name);
    let members = input.iter().filter(|(name, _)| !is_wording(name));
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What the agent sends of its own, without what differs between two attempts.
fn native_of_call(event: &HookEvent) -> Vec<(&String, Value)> {
    let input_at = || {
        let agent = anyhook_agents::agent_handle(&event.source)?;
        let adapter = agent.for_event(&event.native_event)?;
        let spec = adapter.event_by_native(&event.native_event)?;
        adapter.payload_pointer(spec, field::TOOL_INPUT)
    };
    let input_at = input_at();
    // Where the agent has written a canonical field says nothing about its value.
    let metadata = event.metadata.iter();
    let metadata = metadata.filter(|(name, _)| *name != NATIVE_ABSENT);
    let kept = metadata.map(|(name, value)| match name.as_str() {
        NATIVE => (name, value_of_call(event, value, "", input_at)),
        _ => (name, value.clone()),
    });
    kept.filter(|(_, value)| says_something(value)).collect()
}

/// Whether anything is left of what the agent sends.
fn says_something(value: &Value) -> bool {
    value.as_object().is_none_or(|members| !members.is_empty())
}

fn value_of_call(event: &HookEvent, value: &Value, at: &str, input_at: Option<&str>) -> Value {
    match value {
        Value::Object(input) if input_at == Some(at) => Value::Object(input_of_call(event, input)),
        other if input_at == Some(at) => other.clone(),
        Value::Object(members) => {
            let is_same = |(name, _): &(&String, &Value)| {
                let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_')).collect();
                !ATTEMPT_NAMES.contains(&plain.to_ascii_lowercase().as_str())
            };
            let kept = members.iter().filter(is_same).map(|(name, value)| {
                let at = format!("{at}/{name}");
                (name.clone(), value_of_call(event, value, &at, input_at))
            });
            Value::Object(kept.filter(|(_, value)| says_something(value)).collect())
        }
        Value::Array(items) => {
            let items = items.iter();
            let kept = items.map(|item| value_of_call(event, item, at, input_at));
            Value::Array(kept.collect())
        }
        plain => plain.clone(),
    }
}

/// Lets the call of a record through, the next time that it comes.
pub(crate) fn allow(state: &Path, record: &Record) -> Result<(), String> {
    let call = record.extra.get(CALL_KEY).and_then(Value::as_str);
    let call = call.ok_or("its record does not identify the call")?;
    let unavailable = || format!("nothing can be written to `{}`", state.display());
    let key = CacheKey::load_or_create(state).ok_or_else(unavailable)?;
    let now = now_ms();
    let lifetime = u64::try_from(EXCEPTION_LIFETIME.as_millis()).unwrap_or_default();
    let mut exception = CallException {
        call: call.to_owned(),
        record: record.id.clone(),
        session: record.event.session_id.clone(),
        cwd: record.event.cwd.clone(),
        expires: now.saturating_add(lifetime),
        mac: String::new(),
    };
    exception.mac = exception.mac(&key);
    let changed = change(state, true, |exceptions| {
        exceptions.retain(|other| other.is_alive(now) && other.record != exception.record);
        let excess = (exceptions.len() + 1).saturating_sub(MAX_EXCEPTIONS);
        exceptions.drain(..excess);
        exceptions.push(exception.clone());
        Some(())
    });
    changed.ok_or_else(unavailable)
}

/// Takes the exception for a call, if there is one: the record of the denied call. It is
/// used up by that.
pub(crate) fn take(state: &Path, event: &HookEvent) -> Option<String> {
    // Nearly always there is no file.
    if !state.join(FILE_NAME).exists() {
        return None;
    }
    let key = CacheKey::load(state)?;
    let (call, now) = (digest_with(&key, event), now_ms());
    change(state, false, |exceptions| {
        let at = exceptions.iter().position(|one| {
            let is_ours = one.mac == one.mac(&key);
            is_ours && one.call == call && one.is_alive(now) && one.fits(event)
        })?;
        Some(exceptions.remove(at).record)
    })
}

/// Changes the file while it is locked. `None` if `apply` returns that, and if
/// the file cannot be locked or written.
fn change<T>(
    state: &Path,
    create: bool,
    apply: impl FnOnce(&mut Vec<CallException>) -> Option<T>,
) -> Option<T> {
    let mut options = private_file_options();
    options.read(true).write(true).create(create);
    let mut file = open_in_private_dir(&options, &state.join(FILE_NAME)).ok()?;
    let started = Instant::now();
    while try_lock(&file).is_err() {
        if started.elapsed() >= LOCK_TIMEOUT {
            return None;
        }
        std::thread::sleep(LOCK_POLL_INTERVAL);
    }
    let mut exceptions = read_exceptions(&mut file).unwrap_or_default();
    let result = apply(&mut exceptions)?;
    write_exceptions(&mut file, &exceptions).ok()?;
    Some(result)
}

fn read_exceptions(file: &mut File) -> Option<Vec<CallException>> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes in place: the lock is on this very file.
fn write_exceptions(file: &mut File, exceptions: &[CallException]) -> io::Result<()> {
    let text = serde_json::to_vec(exceptions)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&text)
}
