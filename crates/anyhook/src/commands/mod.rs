//! One file per command.

pub mod agents;
pub mod codex;
pub mod completions;
pub mod convert;
pub mod demo;
pub mod doctor;
pub mod emit;
pub mod explain;
pub mod init;
pub mod install;
pub mod log;
pub mod man;
pub mod openhook;
pub mod registries;
pub mod replay;
pub mod run;
pub mod schema;
pub mod serve;
pub mod ship;
pub mod stats;
pub mod status;
pub mod tail;
pub mod test;
pub mod trust;
pub mod uninstall;
pub mod validate;
