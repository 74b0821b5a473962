//! What must not switch a guard off, tried with the real binary: each test is
//! one way in which a guard once did not hold.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

mod config;
mod consent;
mod daemon;
mod disarm;
mod environment;
mod failures;
mod install;
mod locked;
mod names;
mod once;
mod own_tables;
mod redaction;
mod rewrites;
mod support;
mod tools;
mod unapproved;
mod waiting;
