//! One file per command.

pub mod completions;
pub mod man;
pub mod registries;
pub mod run;
pub mod schema;
pub mod validate;
