//! What a tool call costs in a client: without hooks, with hooks that match nothing by the entries that start the
//! program, and by those that ask the daemon. Figures depend on the machine; their ratios matter.

use std::collections::BTreeMap;

use super::{Proof, say_done, session_error};
use crate::bridge;
use crate::error::{Error, Result};
use crate::scenario::{Scenario, Step};
use crate::script::Purpose;
use crate::session::Outcome;

/// Tool calls of one session. A client may stop a model that repeats itself, so each command is another one.
const CALLS: usize = 20;
/// Sessions of each setup, taken in turn so that what else the machine does hits all of them.
const ROUNDS: usize = 3;
/// The first calls of a session load what later ones find loaded.
const WARM_UP_CALLS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Setup {
    NoHooks,
    Process,
    Daemon,
}

/// Medians of the time from one request of the client to the next, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallCost {
    pub without: f64,
    pub by_process: f64,
    pub by_daemon: f64,
}

impl ToolCallCost {
    /// What the daemon adds, as a share of what starting the program adds.
    pub fn daemon_share(&self) -> f64 {
        (self.by_daemon - self.without) / (self.by_process - self.without)
    }
}

impl Proof<'_> {
    /// Measures a tool call in each setup.
    pub fn tool_call_cost(&self) -> Result<ToolCallCost> {
        let mut gaps: BTreeMap<Setup, Vec<f64>> = BTreeMap::new();
        for _ in 0..ROUNDS {
            for setup in [Setup::NoHooks, Setup::Process, Setup::Daemon] {
                gaps.entry(setup).or_default().extend(self.measure(setup)?);
            }
        }
        let mut median = |setup| {
            let times = gaps.get_mut(&setup).filter(|times| !times.is_empty());
            let times = times.ok_or_else(|| Error::NoResult(format!("{setup:?}")))?;
            times.sort_by(f64::total_cmp);
            let middle = times.get(times.len() / 2).copied();
            middle.ok_or_else(|| Error::NoResult(format!("{setup:?}")))
        };
        Ok(ToolCallCost {
            without: median(Setup::NoHooks)?,
            by_process: median(Setup::Process)?,
            by_daemon: median(Setup::Daemon)?,
        })
    }

    fn measure(&self, setup: Setup) -> Result<Vec<f64>> {
        let calls = (0..CALLS).map(|number| Step::Shell {
            command: format!("echo call {number}"),
        });
        let expect = &self.client.expect;
        let mut session = self
            .session("unmatched")
            .without(&expect.install.instead_of)
            .scenario(Scenario::new(calls.chain([say_done()]).collect::<Vec<_>>()));
        if setup != Setup::NoHooks {
            session = session.prepare(move |sandbox| {
                bridge::run_anyhook(sandbox, &["trust", "--yes"])?;
                let mut args = expect.install.args.clone();
                if setup == Setup::Daemon {
                    args.extend(bridge::via_daemon(sandbox));
                }
                bridge::install_only(sandbox, self.client.slug(), "user", &args).map(drop)
            });
        }
        if setup == Setup::Daemon {
            session = session
                .daemon(self.program.folder().join("anyhook"))
                .env(bridge::SERVER_VARIABLE, bridge::SERVER);
        }
        let outcome = session.run()?;
        if let Some(error) = session_error(&outcome) {
            return Err(Error::NoResult(error));
        }
        Ok(gaps(&outcome))
    }
}

/// The times between the requests that play one step after another.
fn gaps(outcome: &Outcome) -> Vec<f64> {
    let turns = outcome
        .requests
        .iter()
        .filter(|request| request.purpose == Purpose::Turn)
        .filter_map(|request| Some((request.step?, request.received_us)));
    let first: BTreeMap<usize, u64> = turns.fold(BTreeMap::new(), |mut first, (step, time)| {
        first.entry(step).or_insert(time);
        first
    });
    let times: Vec<u64> = first.into_values().collect();
    let pairs = times.windows(2).skip(WARM_UP_CALLS);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a session lasts minutes at most"
    )]
    pairs
        .filter_map(|pair| match pair {
            [before, after] => Some(after.saturating_sub(*before) as f64 / 1000.0),
            _ => None,
        })
        .collect()
}
