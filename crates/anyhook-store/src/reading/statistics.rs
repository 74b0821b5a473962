//! Statistics from the sums that ingest keeps. Only the hours that the filter's times cut
//! are counted event by event, so the result is that of counting every event.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::names::{Facet, Origin};
use crate::query::{EventFilter, Stats};
use crate::reading::{
    EventTables, Selection, SumOrigins, SumPart, SumRange, number_set, visit_newest,
};
use crate::rollup::{
    ALL_LEVEL, ALL_ORIGINS, DAY_LEVEL, DAY_US, HOUR_LEVEL, HOUR_US, HookSums, MinuteCounts,
};
use crate::row::RunRow;
use crate::sketch::DurationSketch;
use crate::stats::bucket_seconds;
use crate::stats_counter::{CountedEvents, StatsCounter};

const HOURS_PER_DAY: i64 = 24;

pub(crate) fn stats<T: EventTables>(
    tables: &T,
    filter: &EventFilter,
    buckets: usize,
) -> Result<Stats> {
    let selection = Selection::new(tables, filter, None)?;
    let text = filter.search_text();
    if text.is_some() || filter.session.is_some() {
        let mut counter = StatsCounter::default();
        visit_newest(tables, selection, text.as_deref(), |row| {
            counter.add(&row);
            Ok(true)
        })?;
        return Ok(counter.into_stats(filter, buckets));
    }
    let Some((first, last)) = tables.time_range(&selection)? else {
        return Ok(StatsCounter::default().into_stats(filter, buckets));
    };
    let width = bucket_seconds(filter, first, last, buckets);
    let query = SumQuery {
        tables,
        facets: tables.facets()?,
        hooks: tables.hooks()?,
        facet_set: number_set(selection.facets.as_ref()),
        origin_set: number_set(selection.origins.as_ref()),
        width,
    };
    let mut counter = StatsCounter::default();
    query.add_range(&mut counter, first, last.saturating_add(1), filter)?;
    let sessions = count_sessions(tables, filter, &selection)?;
    Ok(counter.finish(sessions, Some(width)))
}

fn count_sessions<T: EventTables>(
    tables: &T,
    filter: &EventFilter,
    selection: &Selection,
) -> Result<i64> {
    let by_other_names = [&filter.event, &filter.decision, &filter.tool]
        .iter()
        .any(|field| field.is_some());
    if by_other_names || Origin::is_asked_for(filter) {
        return tables.count_selected_sessions(selection);
    }
    let until_us = filter.until_us.unwrap_or(i64::MAX);
    tables.count_sessions(filter.agent.as_deref(), selection.since_us, until_us)
}

struct SumQuery<'a, T> {
    tables: &'a T,
    facets: HashMap<i64, Facet>,
    hooks: HashMap<i64, RunRow>,
    facet_set: Option<HashSet<i64>>,
    origin_set: Option<HashSet<i64>>,
    /// Of a bucket of the timeline, in seconds.
    width: i64,
}

impl<T: EventTables> SumQuery<'_, T> {
    /// Events from `from` until `until`, which lie within the filter's times.
    fn add_range(
        &self,
        counter: &mut StatsCounter,
        from: i64,
        until: i64,
        filter: &EventFilter,
    ) -> Result<()> {
        let is_all = filter.since_us.is_none() && filter.until_us.is_none();
        // Sums know minutes, not seconds.
        if self.width % 60 != 0 {
            return self.add_events(counter, from, until);
        }
        if is_all && self.origin_set.is_none() {
            self.add_sums(counter, ALL_LEVEL, 0, 1)?;
            let (first, last) = (from.div_euclid(DAY_US), until.div_euclid(DAY_US) + 1);
            return self.add_timeline(counter, first * HOURS_PER_DAY, last * HOURS_PER_DAY);
        }
        // Without a limit on a side, the outer hour is whole although nothing fills it.
        let first_hour = match filter.since_us {
            Some(since) => -(-since).div_euclid(HOUR_US),
            None => from.div_euclid(HOUR_US),
        };
        let end_hour = match filter.until_us {
            Some(until) => until.div_euclid(HOUR_US),
            None => until.div_euclid(HOUR_US) + 1,
        };
        if end_hour <= first_hour {
            return self.add_events(counter, from, until);
        }
        self.add_events(counter, from, first_hour.saturating_mul(HOUR_US))?;
        self.add_events(counter, end_hour.saturating_mul(HOUR_US), until)?;
        // A filter may begin long before the first event.
        let first_hour = first_hour.max(from.div_euclid(HOUR_US));
        let end_hour = end_hour.min(until.div_euclid(HOUR_US) + 1).max(first_hour);
        let first_day = -(-first_hour).div_euclid(HOURS_PER_DAY);
        let end_day = end_hour.div_euclid(HOURS_PER_DAY);
        if end_day > first_day {
            self.add_sums(counter, HOUR_LEVEL, first_hour, first_day * HOURS_PER_DAY)?;
            self.add_sums(counter, DAY_LEVEL, first_day, end_day)?;
            self.add_sums(counter, HOUR_LEVEL, end_day * HOURS_PER_DAY, end_hour)?;
        } else {
            self.add_sums(counter, HOUR_LEVEL, first_hour, end_hour)?;
        }
        self.add_timeline(counter, first_hour, end_hour)
    }

    fn is_wanted(&self, facet: i64, origin: i64) -> bool {
        let has =
            |set: &Option<HashSet<i64>>, number| set.as_ref().is_none_or(|it| it.contains(&number));
        has(&self.facet_set, facet) && (origin == ALL_ORIGINS || has(&self.origin_set, origin))
    }

    fn range(&self, level: i64, from: i64, until: i64) -> SumRange {
        SumRange {
            level,
            from,
            until,
            origins: match (level, &self.origin_set) {
                (HOUR_LEVEL, _) => SumOrigins::AsTheyAre,
                (_, None) => SumOrigins::AllAsOne,
                (_, Some(_)) => SumOrigins::Each,
            },
        }
    }

    fn counted(&self, facet: i64, count: i64) -> Option<CountedEvents<'_>> {
        let facet = self.facets.get(&facet)?;
        Some(CountedEvents {
            agent: &facet.agent,
            event: &facet.event,
            kind: &facet.kind,
            decision: &facet.decision,
            count,
        })
    }

    /// Counts and latencies from hours or days, without their times.
    fn add_sums(
        &self,
        counter: &mut StatsCounter,
        level: i64,
        from: i64,
        until: i64,
    ) -> Result<()> {
        let range = self.range(level, from, until);
        self.tables
            .for_each_event_sum(range, SumPart::Latencies, &mut |row| {
                if self.is_wanted(row.facet, row.origin)
                    && let Some(counted) = self.counted(row.facet, row.events)
                {
                    let sketch = DurationSketch::decode(row.sketch, row.max_ms);
                    counter.add_events(&counted, &sketch);
                }
            })?;
        self.tables.for_each_hook_sum(range, &mut |row| {
            if !self.is_wanted(row.facet, row.origin) {
                return;
            }
            let names = (self.facets.get(&row.facet), self.hooks.get(&row.hook));
            if let (Some(facet), Some(hook)) = names {
                let sums = HookSums {
                    runs: row.runs,
                    denials: row.denials,
                    troubles: row.troubles,
                    sketch: DurationSketch::decode(row.sketch, row.max_ms),
                };
                counter.add_hook(&facet.agent, hook, &sums);
            }
        })
    }

    /// The times of whole hours: by day where a bucket is at least a day, else by minute.
    fn add_timeline(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        const HOUR_SECONDS: i64 = 3600;
        let day_seconds = HOUR_SECONDS * HOURS_PER_DAY;
        let is_daily = self.width % day_seconds == 0
            && from % HOURS_PER_DAY == 0
            && until % HOURS_PER_DAY == 0;
        let level = if is_daily { DAY_LEVEL } else { HOUR_LEVEL };
        let unit = if is_daily { HOURS_PER_DAY } else { 1 };
        // Minutes are read only where a bucket is shorter than an hour.
        let has_minutes = self.width % HOUR_SECONDS != 0;
        let part = if has_minutes {
            SumPart::Minutes
        } else {
            SumPart::Counts
        };
        let range = self.range(level, from / unit, until / unit);
        self.tables.for_each_event_sum(range, part, &mut |row| {
            if !self.is_wanted(row.facet, row.origin) {
                return;
            }
            let second = row.start * unit * HOUR_SECONDS;
            if !has_minutes {
                if let Some(counted) = self.counted(row.facet, row.events) {
                    counter.add_time(second, &counted);
                }
                return;
            }
            for (minute, count) in MinuteCounts::decode(row.minutes).0 {
                if let Some(counted) = self.counted(row.facet, count) {
                    counter.add_time(second + i64::from(minute) * 60, &counted);
                }
            }
        })
    }

    /// Counts every event between two times.
    fn add_events(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        if until <= from {
            return Ok(());
        }
        self.tables
            .for_each_event(from, until, &mut |event, duration_ms, runs| {
                if !self.is_wanted(event.facet, event.origin) {
                    return;
                }
                let Some(counted) = self.counted(event.facet, 1) else {
                    return;
                };
                let mut sketch = DurationSketch::default();
                sketch.add(duration_ms);
                counter.add_events(&counted, &sketch);
                counter.add_time(event.key.0.div_euclid(1_000_000), &counted);
                for run in runs {
                    if let Some(hook) = self.hooks.get(&run.hook) {
                        let mut sums = HookSums::default();
                        sums.add(*run);
                        counter.add_hook(counted.agent, hook, &sums);
                    }
                }
            })
    }
}
