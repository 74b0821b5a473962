//! Whose language a handler speaks.
//!
//! A dialect writes the payload that a program expects and reads the answer
//! that it gives. [`resolve`] is the only place that knows which there are.

pub mod canonical;
mod contract;
mod openhook;

use std::path::Path;

use ::openhook::Envelope;
use anyhook_agents::config::kept::EVENT;
use anyhook_model::{Hook, HookEvent, HookResponse, Loss};

use crate::native::Native;

/// What a program gets.
#[derive(Debug, Default)]
pub struct Payload {
    pub stdin: Vec<u8>,
    /// Variables that programs of this dialect expect.
    pub env: Vec<(String, String)>,
    /// What this dialect has no place for.
    pub lost: Vec<Loss>,
}

/// What a program has said.
#[derive(Debug, Default)]
pub struct Read {
    pub response: HookResponse,
    /// Why the answer could not be understood.
    pub error: Option<String>,
    /// What in it could not be used.
    pub warnings: Vec<String>,
}

pub trait Dialect {
    /// One payload, or one per part where a program of this dialect takes one
    /// file at a time: it is asked about each.
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String>;

    /// What the exit code means for a blocking hook is the caller's matter;
    /// here it only helps to read the answer.
    fn read(&self, event: &HookEvent, stdout: &[u8], stderr: &[u8], exit: Option<i32>) -> Read;

    /// Whether its programs have no say, whatever they exit with.
    fn observes_only(&self) -> bool {
        false
    }
}

/// The dialect of a handler that names none.
pub const DEFAULT: &str = "canonical";

/// The dialect that speaks OpenHook.
pub const OPENHOOK: &str = "openhook";

/// `hook` and `project` matter to agents' dialects only, `envelopes` to
/// [`OPENHOOK`].
pub fn resolve<'a>(
    name: &str,
    hook: &Hook,
    project: &Path,
    envelopes: &'a [Envelope],
) -> Option<Box<dyn Dialect + 'a>> {
    match name {
        "canonical" => Some(Box::new(canonical::Canonical)),
        "contract" => Some(Box::new(contract::Contract)),
        OPENHOOK => Some(Box::new(openhook::OpenHook(envelopes))),
        _ => {
            let adapter = anyhook_agents::get_for_run(name)?;
            let data = hook.provider_data.get(adapter.spec.id.as_ref());
            let native_event = data
                .and_then(|data| data.get(EVENT)?.as_str())
                .map(str::to_owned);
            Some(Box::new(Native {
                adapter,
                native_event,
                project: project.to_owned(),
            }))
        }
    }
}
