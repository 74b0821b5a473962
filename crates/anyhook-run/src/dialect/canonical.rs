//! Our own: `HookEvent` in, `HookResponse` out.

use anyhook_model::HookEvent;
use anyhook_model::answer::{self, Stdout};

use super::{Dialect, Payload, Read};

pub struct Canonical;

impl Dialect for Canonical {
    fn encode(&self, event: &HookEvent) -> Result<Vec<Payload>, String> {
        let stdin = serde_json::to_vec(event).map_err(|error| error.to_string())?;
        Ok(vec![Payload {
            stdin,
            ..Payload::default()
        }])
    }

    fn read(&self, _event: &HookEvent, stdout: &[u8], _stderr: &[u8], _exit: Option<i32>) -> Read {
        read_answer(&String::from_utf8_lossy(stdout))
    }
}

/// A canonical answer, from a program or from the body of a response.
pub fn read_answer(text: &str) -> Read {
    match answer::read(text) {
        Stdout::Empty => Read::default(),
        Stdout::Answer(response, warnings) => Read {
            response: *response,
            warnings,
            error: None,
        },
        Stdout::Unreadable(error) => Read {
            error: Some(error),
            ..Read::default()
        },
    }
}
