//! Unified diffs of edits.

use similar::TextDiff;

/// A unified diff of two texts with their names in the header; empty if they are equal.
pub fn diff(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(old_name, new_name)
        .to_string()
}
