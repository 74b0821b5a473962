//! Files of lines that another process may be writing.

use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// The complete lines: a last one without a line end is still being written and
/// is left out. A file that does not exist has none.
///
/// # Errors
/// If a complete line is not valid JSON of this type.
pub fn whole_lines<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_suffix(b"\n"))
        .map(|line| {
            serde_json::from_slice(line).map_err(|error| {
                let line = String::from_utf8_lossy(line);
                io::Error::new(io::ErrorKind::InvalidData, format!("{error}: {line}"))
            })
        })
        .collect()
}
