//! `anyhook run` as agents call it: real processes, real files.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

mod detached;
mod event_folders;
mod faults;
mod http_and_prompts;
mod order;
mod policy;
mod scratch;
mod trust;
mod unusual_payloads;
