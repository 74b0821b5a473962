//! Verdicts of the checks, and the table that shows them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::{AtPath, Error, Result};

/// The verdict of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    Passed,
    /// The client does not support it, for this reason.
    Cannot(String),
    Failed(String),
}

impl Verdict {
    pub fn failed(why: impl Into<String>) -> Self {
        Verdict::Failed(why.into())
    }

    fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Cannot(_) => "cannot",
            Verdict::Failed(_) => "FAILED",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
}

impl Check {
    pub fn new(name: impl Into<String>, verdict: Verdict) -> Self {
        Check {
            name: name.into(),
            verdict,
        }
    }
}

/// The checks of one client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientReport {
    pub client: String,
    pub version: String,
    pub seconds: f64,
    pub checks: Vec<Check>,
    /// Why some checks were not run.
    pub note: Option<String>,
    /// Why the runner itself could not continue.
    pub error: Option<String>,
}

impl ClientReport {
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// Stores it in a folder, for a page about clients that did not run together.
    pub fn store(&self, folder: &Path) -> Result<()> {
        let path = folder.join(format!("{}.json", self.client));
        fs::create_dir_all(folder).at("create", folder)?;
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Data {
            path: path.clone(),
            message: error.to_string(),
        })?;
        fs::write(&path, text).at("write", path)
    }

    /// The reports that [`ClientReport::store`] has left for these clients, in this order.
    pub fn load_stored(folder: &Path, clients: &[Client]) -> Result<Vec<ClientReport>> {
        let paths = clients.iter();
        let paths = paths.map(|client| folder.join(format!("{}.json", client.name())));
        let existing = paths.filter(|path| path.exists());
        existing
            .map(|path| {
                let text = fs::read_to_string(&path).at("read", &path)?;
                serde_json::from_str(&text).map_err(|error| Error::Data {
                    path,
                    message: error.to_string(),
                })
            })
            .collect()
    }

    /// A one-line summary.
    pub fn summary(&self) -> String {
        let count = |word| {
            let checks = self.checks.iter();
            checks.filter(|check| check.verdict.word() == word).count()
        };
        let mut text = format!(
            "  {:.0} s: {} passed, {} cannot, {} failed",
            self.seconds,
            count("passed"),
            count("cannot"),
            count("FAILED")
        );
        if self.error.is_some() {
            text.push_str(", and it could not be completed");
        }
        text.push('\n');
        text
    }

    pub fn has_passed(&self) -> bool {
        self.error.is_none()
            && !self
                .checks
                .iter()
                .any(|check| matches!(check.verdict, Verdict::Failed(_)))
    }
}

/// The names of the checks of all clients, in their order.
pub fn check_names(reports: &[ClientReport]) -> Vec<&str> {
    let mut names = Vec::new();
    for check in reports.iter().flat_map(|report| &report.checks) {
        if !names.contains(&check.name.as_str()) {
            names.push(check.name.as_str());
        }
    }
    names
}

/// One row per check, one column per client; below it a line for whatever did not pass.
pub fn render_table(reports: &[ClientReport]) -> String {
    let head = |name: &str, cell: &dyn Fn(&ClientReport) -> String| {
        let cells = reports.iter().map(cell);
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![
        head("client", &|report| report.client.clone()),
        head("version", &|report| report.version.clone()),
        head("seconds", &|report| format!("{:.0}", report.seconds)),
    ];
    for name in check_names(reports) {
        rows.push(head(name, &|report| {
            let word = report.check(name).map_or("-", |check| check.verdict.word());
            word.to_owned()
        }));
    }
    let mut text = align_columns(&rows);
    for report in reports {
        for check in &report.checks {
            if let Verdict::Cannot(why) | Verdict::Failed(why) = &check.verdict {
                let word = check.verdict.word();
                // Writing to a String cannot fail.
                let _ = write!(text, "\n{}: {}: {word}: {why}", report.client, check.name);
            }
        }
        for remark in [&report.note, &report.error].into_iter().flatten() {
            let _ = write!(text, "\n{}: {remark}", report.client);
        }
    }
    text.push('\n');
    text
}

/// Pads the cells of each column to equal width, two spaces apart.
pub fn align_columns(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
