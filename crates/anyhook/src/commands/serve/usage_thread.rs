//! The thread of the daemon that reads new tokens, for the page and for budgets.
//!
//! The export has a thread of its own, because it waits while a receiver is away.

use std::io;
use std::time::Duration;

use anyhook_run::Engine;

use crate::commands::usage_log::UsageLog;
use crate::render::Terminal;

/// Shorter than the age at which a budget no longer believes the sums.
const COLLECT_INTERVAL: Duration = Duration::from_secs(4);

/// Runs until the process ends.
pub(super) fn start(engine: Engine, terminal: Terminal) -> io::Result<()> {
    let collect = move || {
        let mut last_problem = String::new();
        loop {
            // Prices may have changed.
            let collected = UsageLog::open(&engine).and_then(|usage| Ok(usage.collect()?));
            let problem = collected.map_or_else(|error| format!("{error:#}"), |()| String::new());
            if !problem.is_empty() && problem != last_problem {
                terminal.note(&format!("tokens and cost: {problem}"));
            }
            last_problem = problem;
            std::thread::sleep(COLLECT_INTERVAL);
        }
    };
    let builder = std::thread::Builder::new().name("anyhook-usage".to_owned());
    builder.spawn(collect).map(|_| ())
}
