//! Codex runs a hook only if its hash is in the user's `config.toml`, and hooks
//! of a project only if that project is trusted there.

use serde_json::{Map, Value, json};

use crate::Quirks;
use crate::quirks::snake_case;
use crate::spec::Scope;
use crate::trust::{InstalledEntry, TrustLedger, TrustRecord, TrustSubject};

pub(super) struct CodexQuirks;

pub(super) static QUIRKS: CodexQuirks = CodexQuirks;

impl Quirks for CodexQuirks {
    fn trust_ledger(&self) -> Option<&'static dyn TrustLedger> {
        Some(&QUIRKS)
    }
}

impl TrustLedger for CodexQuirks {
    fn records(&self, subject: &TrustSubject) -> Vec<TrustRecord> {
        let entries = subject.entries.iter();
        let hashes = entries.map(|entry| hash_record(subject, entry));
        project_record(subject).into_iter().chain(hashes).collect()
    }

    fn missing(&self, subject: &TrustSubject, document: &Value) -> Option<String> {
        if project_record(subject).is_some_and(|record| !record.is_in(document)) {
            return Some(format!(
                "the project `{}` is not trusted in Codex CLI, so its hooks are not read",
                subject.project.display()
            ));
        }
        let entries = subject.entries.iter();
        let missing = entries.filter(|entry| !hash_record(subject, entry).is_in(document));
        let missing = missing.count();
        (missing > 0).then(|| format!("{missing} of its entries are not reviewed in Codex CLI"))
    }
}

fn project_record(subject: &TrustSubject) -> Option<TrustRecord> {
    let project = subject.project.to_string_lossy();
    (subject.scope == Scope::Project)
        .then(|| TrustRecord::new(["projects", &project, "trust_level"], "trusted"))
}

fn hash_record(subject: &TrustSubject, entry: &InstalledEntry) -> TrustRecord {
    let event = snake_case(&entry.event);
    let key = format!(
        "{}:{event}:{}:{}",
        subject.config_path.display(),
        entry.index,
        entry.position
    );
    let identity = identity(&event, entry.matcher.as_ref(), &entry.handler);
    let hash = format!("sha256:{}", (subject.sha256)(identity.as_bytes()));
    TrustRecord::new(["hooks", "state", &key, "trusted_hash"], hash)
}

/// What Codex hashes: the entry with its defaults, as compact JSON with sorted
/// keys.
fn identity(event: &str, matcher: Option<&Value>, handler: &Value) -> String {
    let field = |name: &str, default: Value| handler.get(name).cloned().unwrap_or(default);
    // Maps keep the order in which they are filled: sorted by hand.
    let mut inner = Map::new();
    inner.insert("async".into(), field("async", json!(false)));
    inner.insert("command".into(), field("command", Value::Null));
    if let Some(message) = handler.get("statusMessage") {
        inner.insert("statusMessage".into(), message.clone());
    }
    inner.insert("timeout".into(), field("timeout", json!(600)));
    inner.insert("type".into(), json!("command"));
    let mut outer = Map::new();
    outer.insert("event_name".into(), json!(event));
    outer.insert("hooks".into(), json!([inner]));
    if let Some(matcher) = matcher {
        outer.insert("matcher".into(), matcher.clone());
    }
    Value::Object(outer).to_string()
}
