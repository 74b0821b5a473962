//! What applies to an event: manifests, policies, approvals and settings.

pub(crate) mod account;
mod cache;
pub(crate) mod cache_key;
pub mod discover;
pub mod effective;
pub mod folders;
pub mod in_force;
mod known_texts;
mod lost_guards;
pub mod manifest;
mod manifest_cache;
mod owner;
pub mod policy;
pub(crate) mod redirects;
pub(crate) mod rules_cache;
pub mod settings;
pub mod started_programs;
pub mod time_limit;
pub mod trust;
pub mod unknown_names;
mod worktree;

pub(crate) use cache::ConfigCache;
pub(crate) use manifest_cache::FOLDER as MANIFEST_CACHE_FOLDER;
#[doc(hidden)]
pub use manifest_cache::{cache_content, cached_hooks};
