//! One call of an agent, delivered by two entries, is answered once.
//!
//! An agent with an entry in its user config and another one in the project's
//! starts anyhook once for each, in parallel or one after the other. The first
//! to arrive claims the call and runs the hooks. The other one waits for it and
//! repeats what the call must not lose, a decision and a rewrite, but nothing
//! that adds up, such as context and messages.
//!
//! The rule is made so that a mistake runs hooks twice and never skips them:
//!
//! * **Only another entry can be a double.** An entry is known by its command
//!   line (program, `--agent`, `--scope`). An agent starts each of its entries
//!   once per call, so the same entry again is a new call, even with the same
//!   id: a retry, a resumed session, a sub-agent. With one entry nothing is ever
//!   taken for a double.
//! * The first has asked all hooks that apply to the second. Which projects' hooks
//!   apply depends on more than the payload: the folder of the process, the agent's
//!   variables. The claim holds the folders of the first; the engine compares.
//! * Agent, session, event, call id, folder, config folders, `PATH` and everything
//!   that hooks decide about (tool, input, prompt, ...) must be the same. Without a
//!   call id all other fields must be the same too, except for the time; unless
//!   the two entries name different agents, because an agent that also runs
//!   another one's entries may use that agent's payloads for them.
//! * The input may also be the one that the first has rewritten it to: some
//!   agents run their entries in sequence and pass the rewritten input on.
//! * The first is still at work, or ended at most [`SAME_CALL_WINDOW`] ago
//!   ([`SAME_EVENT_WINDOW`] without a call id).
//! * If the first ends without an answer (killed, cancelled), the second runs
//!   the hooks. If it takes longer than its hooks may, the second does not wait
//!   any longer and runs them too.
//!
//! Claims are files in the user's state folder. They can be forged by whoever
//! can write there, who can edit the user's hooks and approvals as well; the
//! engine therefore runs the blocking hooks of the managed scope for every entry.
//!
//! A claim's file is one of [`SLOT_COUNT`], chosen by the hash of the call, and is
//! overwritten by the next call with that hash: nothing accumulates and nothing
//! has to be cleaned up. The file is locked while its owner runs the hooks, so
//! that the system ends the claim of a process that dies.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhook_model::event::field;
use anyhook_model::{HookEvent, HookResponse};
use anyhook_util::env;
use anyhook_util::fs::{open_in_private_dir, private_file_options, try_lock};
use anyhook_util::hash::{PartsHash, slot_of_hash};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::folders::EventFolders;
use crate::engine::Engine;

/// The folder of the claims in the state folder.
const FOLDER: &str = "calls";
/// Two calls at the same time share a slot once in 1,024 times; then neither of them
/// recognizes its double.
const SLOT_COUNT: u32 = 1024;
/// How long after its end a call with an id is recognized. Other hooks of the
/// agent may run between its two entries.
const SAME_CALL_WINDOW: Duration = Duration::from_secs(60);
/// The same without an id.
const SAME_EVENT_WINDOW: Duration = Duration::from_secs(5);
/// A claim with a longer answer is not kept: the second entry runs the hooks.
const MAX_CLAIM_BYTES: usize = 64 * 1024;
/// Claims are filled up to this size, which nearly all have. A file that keeps its
/// size is written at half the cost.
const USUAL_CLAIM_BYTES: usize = 1024;
/// How long the owner of a slot may take to write its claim.
const CLAIM_WRITE_TIME: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Fields that agents write differently in the payload of another agent.
const FORMAT_FIELDS: [&str; 6] = [
    field::NATIVE_TOOL_NAME,
    field::TOOL_KINDS,
    field::TRANSCRIPT_PATH,
    field::MODEL,
    field::PERMISSION_MODE,
    field::DURATION_MS,
];

/// What identifies one call of an agent, and the entry that delivers it.
#[derive(Debug, Clone)]
pub struct CallIdentity {
    /// What two deliveries of one call have in common.
    key: String,
    /// All fields; `None` if the call has an id.
    fields: Option<String>,
    /// The command line of the entry, and the agent that it names.
    entry: String,
    agent: String,
    /// Whose projects' hooks apply.
    folders: EventFolders,
}

/// The entry by which an agent delivers a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryName {
    /// The program as the agent calls it, and the scope if the entry names one.
    pub command: String,
    /// The agent that the entry names.
    pub agent: String,
}

impl EntryName {
    /// As one line of text, for a request to the daemon.
    pub fn to_text(&self) -> String {
        format!("{}\t{}", self.agent, self.command)
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let (agent, command) = text.split_once('\t')?;
        Some(Self {
            command: command.to_owned(),
            agent: agent.to_owned(),
        })
    }
}

impl CallIdentity {
    /// `None` if the event has no session: nothing is certain then.
    pub(crate) fn new(
        engine: &Engine,
        event: &HookEvent,
        folders: EventFolders,
        entry: &EntryName,
    ) -> Option<Self> {
        let session = event.session_id.as_deref()?;
        let dirs = &engine.dirs;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut key = PartsHash::default();
        for part in [
            &event.source,
            session,
            &event.event,
            event.cwd.as_deref().unwrap_or_default(),
            &path(&dirs.config),
            &path(&dirs.managed),
            &dirs.home.as_deref().map(path).unwrap_or_default(),
            &engine.trust_all.to_string(),
        ] {
            key.add(part.as_bytes());
        }
        // A project's entry could find other programs for the user's hooks.
        let program_path = env::PATH.os().unwrap_or_default();
        key.add(program_path.as_encoded_bytes());
        let data = event.data.iter();
        add_map(
            data.filter(|(name, _)| !FORMAT_FIELDS.contains(&name.as_str())),
            &mut key,
        );
        let has_id = event.text(field::TOOL_CALL_ID).is_some();
        let fields = (!has_id).then(|| {
            let mut fields = PartsHash::default();
            fields.add(event.native_event.as_bytes());
            add_map(event.data.iter(), &mut fields);
            add_map(event.metadata.iter(), &mut fields);
            shorten(fields.finish())
        });
        let mut name = PartsHash::default();
        name.add(entry.agent.as_bytes());
        name.add(entry.command.as_bytes());
        Some(Self {
            key: shorten(key.finish()),
            fields,
            entry: shorten(name.finish()),
            agent: entry.agent.clone(),
            folders,
        })
    }

    fn path(&self, state: &Path) -> PathBuf {
        let slot = slot_of_hash(&self.key, SLOT_COUNT);
        state.join(FOLDER).join(format!("{slot:03x}"))
    }

    /// What the slot holds for this call, if the claim is not of the same entry.
    fn relation(&self, record: &ClaimRecord) -> Relation {
        let is_original = record.keys.first() == Some(&self.key);
        let has_same_fields =
            record.agent != self.agent || record.fields == self.fields || !is_original;
        // An agent may add fields to a rewritten call.
        let is_same_call = record.keys.contains(&self.key) && has_same_fields;
        match is_same_call {
            true if record.entries.contains(&self.entry) => Relation::SameEntry,
            true => Relation::Double,
            false => Relation::OtherCall,
        }
    }

    fn window(&self) -> Duration {
        match self.fields {
            None => SAME_CALL_WINDOW,
            Some(_) => SAME_EVENT_WINDOW,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Double,
    /// The same call from an entry that has delivered it: a new call.
    SameEntry,
    OtherCall,
}

fn shorten(mut hash: String) -> String {
    hash.truncate(32);
    hash
}

/// Sorts keys: agents that pass a rewritten input on may reorder it.
pub(super) fn add_map<'v>(
    map: impl Iterator<Item = (&'v String, &'v Value)>,
    hash: &mut PartsHash,
) {
    let mut fields: Vec<_> = map.collect();
    fields.sort_by_key(|(name, _)| *name);
    hash.add(b"{");
    for (name, value) in fields {
        hash.add(name.as_bytes());
        add_value(value, hash);
    }
    hash.add(b"}");
}

pub(super) fn add_value(value: &Value, hash: &mut PartsHash) {
    match value {
        Value::Object(map) => add_map(map.iter(), hash),
        Value::Array(items) => {
            hash.add(b"[");
            for item in items {
                add_value(item, hash);
            }
            hash.add(b"]");
        }
        Value::String(text) => {
            hash.add(b"\"");
            hash.add(text.as_bytes());
        }
        plain => hash.add(plain.to_string().as_bytes()),
    }
}

/// The content of a slot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ClaimRecord {
    /// The call's key, and after a rewrite also those of the rewritten call.
    keys: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<String>,
    /// The agent that the first entry names.
    agent: String,
    /// The entries that have delivered the call.
    entries: Vec<String>,
    /// Whose projects' hooks the first entry asks.
    #[serde(default)]
    folders: Vec<PathBuf>,
    /// When it was answered, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<HookResponse>,
}

impl ClaimRecord {
    fn new(call: &CallIdentity) -> Self {
        Self {
            keys: vec![call.key.clone()],
            fields: call.fields.clone(),
            agent: call.agent.clone(),
            entries: vec![call.entry.clone()],
            folders: call.folders.folders.clone(),
            ..Self::default()
        }
    }

    fn is_answered_within(&self, window: Duration) -> bool {
        let age = self.answered.and_then(|then| now_ms().checked_sub(then));
        age.is_some_and(|age| u128::from(age) <= window.as_millis())
    }
}

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Whether this entry answers the call.
#[derive(Debug)]
pub enum Delivery {
    /// It does, and other entries can wait for the answer.
    First(Claim),
    /// It does, unknown to other entries: nothing can be written, or the slot is in use.
    Alone,
    /// Another entry has answered.
    Double(FirstAnswer),
    /// Another entry is answering.
    Pending(PendingCall),
}

/// The answer of the entry that came first.
#[derive(Debug)]
pub struct FirstAnswer {
    /// Its decision, without what must not be repeated.
    pub response: HookResponse,
    /// Whose projects' hooks it has asked.
    pub folders: EventFolders,
}

/// A claim that this process holds. Dropped without [`Claim::answer`] it tells
/// the next entry to run the hooks.
#[derive(Debug)]
pub struct Claim {
    file: File,
    path: PathBuf,
    record: ClaimRecord,
    state: PathBuf,
    /// The call as the agent may deliver it after the rewrite.
    rewritten: Vec<CallIdentity>,
}

/// A call that another entry is answering.
#[derive(Debug)]
pub struct PendingCall {
    file: File,
    state: PathBuf,
    call: CallIdentity,
    /// Whose projects' hooks the other entry asks.
    pub folders: EventFolders,
}

/// Claims a call.
pub fn claim(state: &Path, call: CallIdentity) -> Delivery {
    let Some(file) = open(&call.path(state)) else {
        return Delivery::Alone;
    };
    if try_lock(&file).is_ok() {
        return take(file, state, &call);
    }
    let started = Instant::now();
    loop {
        let mut record = read_claim(&file);
        match record.as_ref().map(|record| call.relation(record)) {
            Some(Relation::Double) => {
                let folders = record.take().map(|record| record.folders);
                return Delivery::Pending(PendingCall {
                    file,
                    state: state.to_owned(),
                    call,
                    folders: EventFolders {
                        folders: folders.unwrap_or_default(),
                    },
                });
            }
            Some(Relation::SameEntry) => return Delivery::Alone,
            Some(Relation::OtherCall) | None => {}
        }
        // A record that is answered is the last call's: the owner of the lock has
        // not written its own yet.
        let is_other_call = record.is_some_and(|record| record.answered.is_none());
        if is_other_call || started.elapsed() >= CLAIM_WRITE_TIME {
            return Delivery::Alone;
        }
        std::thread::sleep(POLL_INTERVAL);
        if try_lock(&file).is_ok() {
            return take(file, state, &call);
        }
    }
}

/// Decides with the lock held.
fn take(file: File, state: &Path, call: &CallIdentity) -> Delivery {
    let known = read_claim(&file).filter(|record| {
        call.relation(record) == Relation::Double && record.is_answered_within(call.window())
    });
    if let Some(mut record) = known
        && let Some(mut response) = record.response.clone()
    {
        if record.keys.first() != Some(&call.key) {
            // The call has the rewritten input already.
            response.updated_input = None;
        }
        record.entries.push(call.entry.clone());
        // If this fails, the same entry may be taken for a double once more.
        return if write_claim(&file, &record) {
            let folders = EventFolders {
                folders: record.folders,
            };
            Delivery::Double(FirstAnswer { response, folders })
        } else {
            Delivery::Alone
        };
    }
    let record = ClaimRecord::new(call);
    if !write_claim(&file, &record) {
        return Delivery::Alone;
    }
    Delivery::First(Claim {
        file,
        path: call.path(state),
        record,
        state: state.to_owned(),
        rewritten: Vec::new(),
    })
}

impl PendingCall {
    /// Waits until the other entry has answered or ended, but at most `limit`.
    pub fn wait(self, limit: Duration) -> Delivery {
        let started = Instant::now();
        while try_lock(&self.file).is_err() {
            if started.elapsed() >= limit {
                return Delivery::Alone;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        take(self.file, &self.state, &self.call)
    }
}

impl Claim {
    pub(crate) fn set_rewritten(&mut self, calls: Vec<CallIdentity>) {
        self.rewritten = calls;
    }

    /// Records the answer for the other entries and lets them go on.
    pub fn answer(mut self, response: &HookResponse, is_preventable: bool) {
        self.record.answered = Some(now_ms());
        self.record.response = Some(repeatable(response, is_preventable));
        let keys = self.rewritten.iter().map(|call| call.key.clone());
        self.record.keys.extend(keys);
        // Before the lock is released: the next entry may start at once.
        for path in self.rewritten.iter().map(|call| call.path(&self.state)) {
            if path != self.path
                && let Some(file) = open(&path)
                && try_lock(&file).is_ok()
            {
                write_claim(&file, &self.record);
            }
        }
        write_claim(&self.file, &self.record);
    }
}

/// What the answer of a second entry contains. A decision and a rewrite have the
/// same effect twice; context and messages would be there twice.
fn repeatable(response: &HookResponse, is_preventable: bool) -> HookResponse {
    if !is_preventable {
        return HookResponse::default();
    }
    HookResponse {
        decision: response.decision,
        reason: response.reason.clone(),
        should_continue: response.should_continue,
        updated_input: response.updated_input.clone(),
        ..HookResponse::default()
    }
}

/// Never blocks, whatever is in the file's place.
fn open(path: &Path) -> Option<File> {
    let mut options = private_file_options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        options.custom_flags(flags.bits().cast_signed());
    }
    open_in_private_dir(&options, path).ok()
}

fn read_claim(file: &File) -> Option<ClaimRecord> {
    let mut usual = [0; USUAL_CLAIM_BYTES + 1];
    let length = read_start(file, &mut usual).ok()?;
    if length <= USUAL_CLAIM_BYTES {
        return serde_json::from_slice(usual.get(..length)?).ok();
    }
    let mut text = vec![0; MAX_CLAIM_BYTES + 1];
    let length = read_start(file, &mut text).ok()?;
    serde_json::from_slice(text.get(..length)?).ok()
}

/// Whether the file contains the record and nothing else.
fn write_claim(file: &File, record: &ClaimRecord) -> bool {
    let Ok(mut line) = serde_json::to_vec(record) else {
        return false;
    };
    if line.len() > MAX_CLAIM_BYTES {
        line.clear();
    } else if line.len() < USUAL_CLAIM_BYTES {
        line.resize(USUAL_CLAIM_BYTES, b' ');
    }
    let length = line.len() as u64;
    let is_written = write_start(file, &line).is_ok_and(|count| count as u64 == length);
    let has_right_length = || file.metadata().is_ok_and(|data| data.len() == length);
    if is_written && has_right_length() {
        return true;
    }
    // Also if the disk is full: what is left must not be taken for a claim.
    let is_cut = file.set_len(if is_written { length } else { 0 }).is_ok();
    is_written && is_cut
}

#[cfg(unix)]
fn read_start(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, 0)
}

#[cfg(unix)]
fn write_start(file: &File, bytes: &[u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, 0)
}

#[cfg(windows)]
fn read_start(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, 0)
}

#[cfg(windows)]
fn write_start(file: &File, bytes: &[u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, bytes, 0)
}
