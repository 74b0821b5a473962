//! Verdicts, and the table that shows them.

use std::fmt::Write;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// The client is not able to, for this reason.
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

#[derive(Clone, Debug)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
}

impl Check {
    pub fn new(name: &'static str, verdict: Verdict) -> Self {
        Check { name, verdict }
    }
}

/// The checks of one client.
#[derive(Clone, Debug)]
pub struct Line {
    pub client: String,
    pub version: String,
    pub seconds: f64,
    pub checks: Vec<Check>,
    /// The runner itself could not go on.
    pub error: Option<String>,
}

impl Line {
    pub fn is_good(&self) -> bool {
        self.error.is_none()
            && !self
                .checks
                .iter()
                .any(|check| matches!(check.verdict, Verdict::Failed(_)))
    }
}

/// Clients down, checks across; below it a line for whatever did not pass.
pub fn table(lines: &[Line]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for check in lines.iter().flat_map(|line| &line.checks) {
        if !names.contains(&check.name) {
            names.push(check.name);
        }
    }
    let mut rows: Vec<Vec<String>> = vec![
        ["client", "version", "seconds"]
            .into_iter()
            .chain(names.iter().copied())
            .map(str::to_owned)
            .collect(),
    ];
    let mut notes = String::new();
    for line in lines {
        let mut row = vec![
            line.client.clone(),
            line.version.clone(),
            format!("{:.1}", line.seconds),
        ];
        for name in &names {
            let check = line.checks.iter().find(|check| check.name == *name);
            row.push(check.map_or("-", |check| check.verdict.word()).to_owned());
        }
        rows.push(row);
        for check in &line.checks {
            if let Verdict::Cannot(why) | Verdict::Failed(why) = &check.verdict {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    notes,
                    "{}: {}: {}: {why}",
                    line.client,
                    check.name,
                    check.verdict.word()
                );
            }
        }
        if let Some(error) = &line.error {
            let _ = writeln!(notes, "{}: {error}", line.client);
        }
    }
    let mut text = aligned(&rows);
    if !notes.is_empty() {
        text.push('\n');
        text.push_str(&notes);
    }
    text
}

/// Columns of equal width, two blanks apart.
pub fn aligned(rows: &[Vec<String>]) -> String {
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
