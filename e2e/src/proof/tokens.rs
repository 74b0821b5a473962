//! Tokens: what `anyhook stats` counts for a session, against the client's own report.

use serde_json::Value;

use super::{Kept, Proof, create_file, report_kept, say_done};
use crate::bridge;
use crate::error::{Error, Result};
use crate::expect::{CheckResult, TokenReport};
use crate::report::Check;
use crate::scenario::Scenario;

/// Input (cached tokens included), cached and output tokens.
type Sums = [u64; 3];

impl Proof<'_> {
    pub(super) fn tokens(&self, report: &TokenReport, kept: Kept<'_>) -> Result<Vec<Check>> {
        let outcome = self
            .session_with_bridge("native", "user")
            .scenario(Scenario::new([
                create_file("one.txt"),
                create_file("two.txt"),
                create_file("three.txt"),
                say_done(),
            ]))
            .run()?;
        report_kept(&outcome, "tokens", kept);
        let records = bridge::read_journal(&outcome)?;
        let stats = bridge::run_anyhook(&outcome.sandbox, &["stats", "--json"])?;
        let stats: Value = serde_json::from_str(&stats).map_err(|error| Error::Data {
            path: "anyhook stats --json".into(),
            message: error.to_string(),
        })?;
        let counted = counted_tokens(&stats);
        let reported = reported_tokens(report, &outcome.stdout);
        let finding = compare(counted, reported);
        Ok(self.judge(&outcome, &records, [("tokens", finding)]))
    }
}

fn compare(counted: Sums, reported: Sums) -> CheckResult {
    if reported.contains(&0) {
        return Err(format!(
            "the client does not report its tokens: {reported:?}"
        ));
    }
    if counted != reported {
        return Err(format!(
            "input, cached and output tokens are {counted:?}, the client reports {reported:?}"
        ));
    }
    Ok(())
}

fn counted_tokens(stats: &Value) -> Sums {
    ["input_tokens", "cache_read_tokens", "output_tokens"]
        .map(|name| {
            stats
                .pointer(&format!("/usage/{name}"))
                .and_then(Value::as_u64)
        })
        .map(Option::unwrap_or_default)
}

fn reported_tokens(report: &TokenReport, stdout: &str) -> Sums {
    let lines = stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines =
        lines.filter(|line| line.get("type").and_then(Value::as_str) == Some(&report.line_type));
    let lines: Vec<Value> = lines.collect();
    [&report.input, &report.cached, &report.output].map(|pointers| {
        let numbers = lines.iter().flat_map(|line| {
            let found = pointers.iter().filter_map(|at| line.pointer(at));
            found.filter_map(Value::as_u64)
        });
        numbers.sum()
    })
}
