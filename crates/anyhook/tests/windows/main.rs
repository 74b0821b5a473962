//! The program on Windows, as its users meet it: hooks that are batch files,
//! every agent, and processes that do not end by themselves. `cargo xtask wine`
//! runs this under Wine.
#![cfg(windows)]
#![cfg(test)]

mod agents;
mod config;
mod daemon;
mod hooks;
mod install;
mod names;
mod processes;
mod support;
