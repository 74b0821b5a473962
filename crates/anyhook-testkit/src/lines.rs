//! Files of lines that another process may be writing right now.

use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// The lines that are whole: the last one may lack its end because its writer
/// is not through with it, and is then no line yet. A file that is not there has
/// none.
///
/// # Errors
/// When a whole line is not what it should be.
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
