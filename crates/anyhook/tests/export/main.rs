//! `anyhook export`: the journal that the real binary wrote, as other systems get it.

#![cfg(test)]

#[path = "../support/mod.rs"]
mod support;

mod failures;
mod late_calls;
mod lines;
mod otlp;
mod parquet;
mod real_receivers;
mod receiver;
mod s3;
mod sessions;
mod settings;
mod usage;
mod usage_sources;
