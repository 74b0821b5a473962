//! One suite for both databases: each test runs on SQLite and on a real PostgreSQL server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

mod made;
mod reading;
#[path = "../support/mod.rs"]
mod support;
mod taking;

use std::sync::Arc;

use anyhook_store::{Store, open};

/// Opens the same database as often as it is asked.
type Opener<'a> = &'a dyn Fn() -> Arc<dyn Store>;

macro_rules! suite {
    ($($module:ident :: $name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("store.db");
                super::$module::$name(&|| super::open(path.to_str().unwrap()).unwrap());
            })*
        }
        mod postgres {
            $(#[test]
            fn $name() {
                if let Some(address) = super::support::database() {
                    super::$module::$name(&|| super::open(&address).unwrap());
                }
            })*
        }
    };
}

suite!(
    reading::a_record_comes_back_whole,
    taking::the_same_id_is_kept_once,
    reading::filters_narrow,
    reading::pages_meet_without_gap_or_overlap,
    reading::sessions_are_summed_up,
    reading::stats_count_and_rank,
    reading::journal_and_store_agree,
    taking::retention_by_age_and_size,
    taking::the_journal_is_taken_once,
    taking::rotation_and_torn_lines,
    taking::a_failed_batch_leaves_nothing,
    taking::a_watch_hears_new_events,
    taking::seq_is_visible_in_order,
    taking::hostile_text_is_kept,
    taking::openhook_envelopes,
);
