//! What an agent's table cannot say.
//!
//! Every method does nothing by default. When a second agent needs the same
//! quirk, it becomes a codec, a shape or a field of the table.

use anyhook_model::{HookEvent, HookResponse};
use serde_json::{Map, Value};

use crate::respond::Rendered;

pub trait Quirks: Sync {
    /// The event's native name, where the payload tells it in an odd way.
    fn event_name(&self, _payload: &Value) -> Option<String> {
        None
    }

    /// Last touch on a decoded event.
    fn decoded(&self, _payload: &Value, _event: &mut HookEvent) {}

    /// Last touch on an encoded payload.
    fn encoded(&self, _event: &HookEvent, _payload: &mut Value) {}

    /// A native tool input that the table cannot map: canonical tool and input.
    fn decode_tool(&self, _native: &str, _input: &Value) -> Option<(String, Map<String, Value>)> {
        None
    }

    /// The way back from [`Quirks::decode_tool`].
    fn encode_tool(
        &self,
        _native: &str,
        _input: &Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        None
    }

    /// Last touch on an answer.
    fn rendered(&self, _event: &HookEvent, _response: &HookResponse, _rendered: &mut Rendered) {}

    /// The program that does what a document says, for agents that load one.
    fn plugin_text(&self, _document: &Value) -> Option<String> {
        None
    }

    /// The program through which this agent calls the bridge, which may take so
    /// many seconds.
    fn bridge_plugin(&self, _command: &[String], _seconds: f64) -> Option<String> {
        None
    }

    /// The text of a config file, before it is written.
    fn config_text(&self, text: String) -> String {
        text
    }
}

/// For agents whose table says everything.
pub struct NoQuirks;

impl Quirks for NoQuirks {}
