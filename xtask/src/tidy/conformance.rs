//! `docs/conformance.md` and the attacks of `docs/security.md`: every test that they
//! name exists, and the numbers are right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

const MAX_DELIBERATE_DIFFERENCES: usize = 15;
const STATEMENT_COUNT: usize = 290;

/// The head of the table of attacks in `docs/security.md`.
const ATTACKS_HEAD: &str = "| attack | prevented, as these tests show |";

/// Test functions by name, with the files that define one of that name.
fn test_functions() -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                for name in functions(&path, &text) {
                    found.entry(name).or_default().push(path.clone());
                }
            }
        }
    }
    found
}

/// Functions of a test file; of another file, those after `#[test]`.
fn functions(path: &Path, text: &str) -> Vec<String> {
    let is_test_file = path.iter().any(|part| part == "tests");
    let mut is_test = is_test_file;
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        }
        let function = ["fn ", "async fn ", "pub(crate) fn ", "pub fn "]
            .iter()
            .find_map(|start| line.strip_prefix(start));
        if let Some(rest) = function {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if is_test {
                names.push(name.to_owned());
            }
            is_test = is_test_file;
        }
    }
    names
}

/// The cells of the table rows of a page, without heads and rules.
fn table_rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter_map(|line| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(inner.split(" | ").map(str::trim).collect::<Vec<_>>())
    });
    rows.filter(|cells| cells.first() != Some(&"statement") && cells.len() > 2)
        .collect()
}

/// The names of tests in a cell that do not exist, each as `function` or `file.rs::function`.
fn missing_tests(cell: &str, tests: &BTreeMap<String, Vec<PathBuf>>) -> Vec<String> {
    assert!(cell.contains('`'), "no test: {cell:?}");
    let names = cell.split('`').skip(1).step_by(2);
    let is_missing = |name: &&str| {
        let (file, function) = name.rsplit_once("::").unwrap_or(("", name));
        let files = tests.get(function).map_or(&[][..], Vec::as_slice);
        !files
            .iter()
            .any(|path| path.to_string_lossy().ends_with(file))
    };
    names.filter(is_missing).map(str::to_owned).collect()
}

#[test]
fn the_threat_model_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, table) = page.split_once(ATTACKS_HEAD).unwrap();
    let rows: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    let tests = test_functions();
    let missing: Vec<String> = rows
        .iter()
        .flat_map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            assert_eq!(cells.len(), 2, "{row}");
            missing_tests(cells[1], &tests)
        })
        .collect();
    assert!(missing.is_empty(), "no such test: {}", missing.join(", "));
}

#[test]
fn the_conformance_page_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let tests = test_functions();
    let mut missing = Vec::new();
    let mut statements = 0;
    let mut differences = 0;
    for cells in table_rows(&page) {
        let count: usize = cells.get(1).and_then(|cell| cell.parse().ok()).unwrap();
        statements += count;
        differences += usize::from(cells.len() > 3);
        let shown_by = cells.last().copied().unwrap_or_default();
        missing.extend(missing_tests(shown_by, &tests));
    }
    assert!(missing.is_empty(), "no such test: {}", missing.join(", "));
    assert_eq!(statements, STATEMENT_COUNT);
    assert!(differences <= MAX_DELIBERATE_DIFFERENCES, "{differences}");
}
