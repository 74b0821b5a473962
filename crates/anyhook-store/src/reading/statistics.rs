//! Statistics from the sums that ingest keeps. Only the hours that the filter's times cut
//! are counted event by event, so the result is that of counting every event.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::error::Result;
use crate::names::{Facet, Origin};
use crate::query::{EventFilter, Stats};
use crate::reading::{
    EventSumRow, EventTables, Selection, SumOrigins, SumPart, SumRange, number_set, visit_newest,
};
use crate::rollup::{
    ALL_LEVEL, ALL_ORIGINS, DAY_LEVEL, DAY_US, HOUR_LEVEL, HOUR_US, HookSums, MinuteCounts,
};
use crate::row::RunRow;
use crate::sketch::DurationSketch;
use crate::stats::bucket_seconds;
use crate::stats_counter::{CountedEvents, StatsCounter};

const HOURS_PER_DAY: i64 = 24;
const HOUR_SECONDS: i64 = 3600;

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

/// Events of one hour since 1970, with the numbers of their facet and origin.
struct HourCount {
    hour: i64,
    names: (i64, i64),
    count: i64,
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
        // Without a limit on a side, the outer day is whole although nothing fills it.
        let outer_first = from.div_euclid(DAY_US) * HOURS_PER_DAY;
        let outer_end = (until.div_euclid(DAY_US) + 1) * HOURS_PER_DAY;
        let first_hour = match filter.since_us {
            Some(since) => -(-since).div_euclid(HOUR_US),
            None => outer_first,
        };
        let end_hour = match filter.until_us {
            Some(until) => until.div_euclid(HOUR_US),
            None => outer_end,
        };
        if end_hour <= first_hour {
            return self.add_events(counter, from, until);
        }
        self.add_events(counter, from, first_hour.saturating_mul(HOUR_US))?;
        self.add_events(counter, end_hour.saturating_mul(HOUR_US), until)?;
        // A filter may begin long before the first event.
        let first_hour = first_hour.max(outer_first);
        let end_hour = end_hour.min(outer_end).max(first_hour);
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
        let mut events: HashMap<i64, (i64, DurationSketch)> = HashMap::new();
        self.tables
            .for_each_event_sum(range, SumPart::Latencies, &mut |row| {
                if self.is_wanted(row.facet, row.origin) {
                    let (count, durations) = events.entry(row.facet).or_default();
                    *count += row.events;
                    durations.merge_encoded(row.sketch, row.max_ms);
                }
            })?;
        for (facet, (count, durations)) in &events {
            if let Some(counted) = self.counted(*facet, *count) {
                counter.add_events(&counted, durations);
            }
        }
        let mut hooks: HashMap<(&str, i64), HookSums> = HashMap::new();
        self.tables.for_each_hook_sum(range, &mut |row| {
            if self.is_wanted(row.facet, row.origin)
                && let Some(facet) = self.facets.get(&row.facet)
            {
                let sums = hooks.entry((&facet.agent, row.hook)).or_default();
                sums.runs += row.runs;
                sums.denials += row.denials;
                sums.troubles += row.troubles;
                sums.sketch.merge_encoded(row.sketch, row.max_ms);
            }
        })?;
        for ((agent, hook), sums) in &hooks {
            if let Some(hook) = self.hooks.get(hook) {
                counter.add_hook(agent, hook, sums);
            }
        }
        Ok(())
    }

    /// The times of whole hours.
    fn add_timeline(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        if self.width % HOUR_SECONDS != 0 {
            return self.add_minutes(counter, from, until);
        }
        if self.width % (HOUR_SECONDS * HOURS_PER_DAY) != 0
            || from % HOURS_PER_DAY != 0
            || until % HOURS_PER_DAY != 0
        {
            return self.add_hours(counter, from, until);
        }
        let range = self.range(DAY_LEVEL, from / HOURS_PER_DAY, until / HOURS_PER_DAY);
        let each = &mut |row: EventSumRow<'_>| {
            let second = row.start * HOURS_PER_DAY * HOUR_SECONDS;
            self.add_time(counter, (row.facet, row.origin), second, row.events);
        };
        self.tables.for_each_event_sum(range, SumPart::Counts, each)
    }

    /// The times of hours, from days: they say how many events each hour had.
    fn add_hours(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        let first_day = from.div_euclid(HOURS_PER_DAY);
        let end_day = -(-until).div_euclid(HOURS_PER_DAY);
        let mut hours: BTreeMap<i64, Vec<HourCount>> = BTreeMap::new();
        let mut unknown_days = BTreeSet::new();
        let range = self.range(DAY_LEVEL, first_day, end_day);
        self.tables
            .for_each_event_sum(range, SumPart::Minutes, &mut |row| {
                let counts = MinuteCounts::decode(row.minutes).0;
                // Sums of older versions do not say it of every event.
                if counts.values().sum::<i64>() != row.events {
                    unknown_days.insert(row.start);
                }
                let hours = hours.entry(row.start).or_default();
                hours.extend(counts.into_iter().map(|(hour, count)| HourCount {
                    hour: row.start * HOURS_PER_DAY + i64::from(hour),
                    names: (row.facet, row.origin),
                    count,
                }));
            })?;
        for day in unknown_days {
            hours.remove(&day);
            let first = (day * HOURS_PER_DAY).max(from);
            let range = self.range(HOUR_LEVEL, first, ((day + 1) * HOURS_PER_DAY).min(until));
            let each = &mut |row: EventSumRow<'_>| {
                let second = row.start * HOUR_SECONDS;
                self.add_time(counter, (row.facet, row.origin), second, row.events);
            };
            self.tables
                .for_each_event_sum(range, SumPart::Counts, each)?;
        }
        for counted in hours.into_values().flatten() {
            if (from..until).contains(&counted.hour) {
                let second = counted.hour * HOUR_SECONDS;
                self.add_time(counter, counted.names, second, counted.count);
            }
        }
        Ok(())
    }

    /// The times of minutes, from hours.
    fn add_minutes(&self, counter: &mut StatsCounter, from: i64, until: i64) -> Result<()> {
        let range = self.range(HOUR_LEVEL, from, until);
        self.tables
            .for_each_event_sum(range, SumPart::Minutes, &mut |row| {
                for (minute, count) in MinuteCounts::decode(row.minutes).0 {
                    let second = row.start * HOUR_SECONDS + i64::from(minute) * 60;
                    self.add_time(counter, (row.facet, row.origin), second, count);
                }
            })
    }

    /// `names`: the numbers of facet and origin.
    fn add_time(
        &self,
        counter: &mut StatsCounter,
        (facet, origin): (i64, i64),
        second: i64,
        count: i64,
    ) {
        if self.is_wanted(facet, origin)
            && let Some(counted) = self.counted(facet, count)
        {
            counter.add_time(second, &counted);
        }
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
