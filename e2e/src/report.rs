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
    /// Why there are no more checks.
    pub note: Option<String>,
    /// The runner itself could not go on.
    pub error: Option<String>,
}

impl Line {
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }

    /// One line, for the impatient.
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
            text.push_str(", and it could not go on");
        }
        text.push('\n');
        text
    }

    pub fn is_good(&self) -> bool {
        self.error.is_none()
            && !self
                .checks
                .iter()
                .any(|check| matches!(check.verdict, Verdict::Failed(_)))
    }
}

/// The names of the checks of all clients, in their order.
pub fn names(lines: &[Line]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for check in lines.iter().flat_map(|line| &line.checks) {
        if !names.contains(&check.name) {
            names.push(check.name);
        }
    }
    names
}

/// Checks down, clients across; below it a line for whatever did not pass.
pub fn table(lines: &[Line]) -> String {
    let head = |name: &str, cell: &dyn Fn(&Line) -> String| {
        let cells = lines.iter().map(cell);
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![
        head("client", &|line| line.client.clone()),
        head("version", &|line| line.version.clone()),
        head("seconds", &|line| format!("{:.0}", line.seconds)),
    ];
    for name in names(lines) {
        rows.push(head(name, &|line| {
            let word = line.check(name).map_or("-", |check| check.verdict.word());
            word.to_owned()
        }));
    }
    let mut text = aligned(&rows);
    for line in lines {
        for check in &line.checks {
            if let Verdict::Cannot(why) | Verdict::Failed(why) = &check.verdict {
                let word = check.verdict.word();
                // Writing to a String cannot fail.
                let _ = write!(text, "\n{}: {}: {word}: {why}", line.client, check.name);
            }
        }
        for said in [&line.note, &line.error].into_iter().flatten() {
            let _ = write!(text, "\n{}: {said}", line.client);
        }
    }
    text.push('\n');
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
