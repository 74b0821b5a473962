//! Whether the agent waits for an entry of anyhook as long as its hooks may take: an
//! agent that has stopped waiting lets the call through.

use anyhook_agents::spec::{Blocking, EventSpec};
use anyhook_run::agent::MIN_ENTRY_TIMEOUT;
use serde_json::Value;

use super::{DoctorFinding, FileCheck, Severity};
use crate::command::BridgeCommand;
use crate::needs::ManifestNeeds;

const STOPPED_EARLY_ID: &str = "entry-stopped-early";
const HOOKS_TAKE_LONGER: &str = "hooks-take-longer";

const REMEDY: &str = "run `anyhook install` again";

pub(super) fn check(file: &mut FileCheck<'_>, document: &Value) {
    let target = file.target;
    let entries = target.bridge_entries(document);
    if entries.is_empty() {
        return;
    }
    let needs = ManifestNeeds::load(file.machine);
    for (entry, _, command) in entries {
        let event = target.adapter.event_by_native(entry.event);
        let Some(event) = event.filter(|event| event.blocking == Blocking::Prevent) else {
            continue;
        };
        let counted = counted_seconds(file, event, &command);
        let written = written_seconds(file, entry.handler);
        if let Some(waits) = written.filter(|waits| *waits < counted) {
            let what = format!(
                "{entry} is stopped after {waits} s, but anyhook counts on {counted} s for it"
            );
            file.report(
                DoctorFinding::error(STOPPED_EARLY_ID, what)
                    .why(
                        "a hook that takes longer decides nothing: the agent lets the call through",
                    )
                    .remedy(REMEDY),
            );
            continue;
        }
        let needed = needs.needed_seconds(event);
        if needed > counted {
            let what = format!(
                "the hooks for {entry} may take {needed} s, but the agent waits {counted} s"
            );
            let (severity, remedy) = if needs.timeout_seconds(target.adapter, event) > counted {
                (Severity::Warning, REMEDY)
            } else {
                (Severity::Info, "")
            };
            file.report(
                DoctorFinding::new(severity, HOOKS_TAKE_LONGER, what)
                    .why("anyhook stops them before that, and they fail as their `on_failure` says")
                    .remedy(remedy),
            );
        }
    }
}

/// How long anyhook believes that the agent waits.
fn counted_seconds(file: &FileCheck<'_>, event: &EventSpec, command: &BridgeCommand) -> f64 {
    let stated = command
        .timeout
        .map_or(MIN_ENTRY_TIMEOUT, std::time::Duration::from_secs);
    let limits = [
        file.target.config().handler.longest_wait(),
        event.max_timeout,
    ];
    limits
        .into_iter()
        .flatten()
        .fold(stated.as_secs_f64(), f64::min)
}

/// How long the agent waits by its file, or without a timeout there.
fn written_seconds(file: &FileCheck<'_>, handler: &Value) -> Option<f64> {
    let spec = &file.target.config().handler;
    let mut fields = spec.fields.iter().filter(|field| field.to == "timeout");
    let written = fields.find_map(|field| field.codec.get(handler.pointer(&field.at)?)?.as_f64());
    written
        .filter(|seconds| *seconds > 0.0)
        .or(spec.default_timeout)
}
