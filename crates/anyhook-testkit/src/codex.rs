//! Support for tests of the Codex bridge, shared by its library and the binary:
//! recorded transcripts, servers that play them, a client, and an offline model.

mod expected_answers;
mod fake_servers;
mod offline_model;
mod proxy_process;
mod transcript;

use std::path::Path;

use serde_json::Value;

pub use expected_answers::expected_answer;
pub use fake_servers::run_fake_server;
pub use offline_model::{opening_requests, set_codex_env, turn_request, write_codex_home};
pub use proxy_process::{ProxyProcess, TempFolder, is_running, path_str};
pub use transcript::{Line, Transcript, fixtures, is_answer, is_request};

/// The lines of a log that another process writes.
pub fn read_json_lines(path: &Path) -> Vec<Value> {
    crate::whole_lines(path).unwrap()
}
