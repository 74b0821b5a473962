//! `anyhook export`: the journal that the real binary wrote, as other systems get it.

#![cfg(test)]

#[path = "../support/mod.rs"]
mod support;

mod lines;
mod sessions;
