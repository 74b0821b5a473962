//! One suite for both databases: each test runs on SQLite and on a real PostgreSQL server.

#![cfg(test)]

mod fixtures;
mod ingesting;
mod reading;
mod sums;

use std::sync::Arc;

use anyhook_store::{Store, open};

/// Opens the same database at every call.
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
                if let Some(address) = anyhook_testkit::postgres::create_database() {
                    super::$module::$name(&|| super::open(&address).unwrap());
                }
            })*
        }
    };
}

suite!(
    reading::a_record_is_returned_whole,
    ingesting::the_same_id_is_stored_once,
    reading::filters_narrow_the_events,
    reading::identifiers_are_found_whole_and_in_part,
    reading::pages_have_no_gap_and_no_overlap,
    reading::sessions_are_summarized,
    reading::stats_count_and_rank,
    reading::journal_and_store_agree,
    ingesting::retention_by_age_and_size,
    ingesting::the_journal_is_imported_once,
    ingesting::rotation_and_torn_lines,
    ingesting::a_failed_batch_stores_nothing,
    ingesting::unread_files_survive_the_journals_own_limit,
    ingesting::a_cancelled_query_ends,
    ingesting::a_watch_is_called_for_new_events,
    ingesting::seq_is_visible_in_order,
    ingesting::hostile_text_is_stored,
    ingesting::openhook_envelopes,
    sums::sums_equal_a_recount,
    sums::hooks_are_counted_by_name_and_content,
);
