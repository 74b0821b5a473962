//! Compares results with recorded files; `UPDATE=1` rewrites the files.

use std::fmt::Write;
use std::io;
use std::path::Path;

use serde::Serialize;

/// The differences of a test; [`Golden::end`] reports them together.
#[derive(Debug, Default)]
#[must_use = "`end` reports the differences"]
pub struct Golden {
    differences: String,
}

impl Golden {
    pub fn text(&mut self, path: impl AsRef<Path>, found: &str) -> io::Result<()> {
        let path = path.as_ref();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap_or(path))?;
            return std::fs::write(path, found);
        }
        let recorded = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        if recorded != found {
            let path = path.display();
            // Writing to a string does not fail.
            let _ = writeln!(
                self.differences,
                "== {path}\n-- recorded\n{recorded}-- found\n{found}"
            );
        }
        Ok(())
    }

    pub fn json(&mut self, path: impl AsRef<Path>, found: &impl Serialize) -> io::Result<()> {
        self.text(path, &(serde_json::to_string_pretty(found)? + "\n"))
    }

    /// # Panics
    /// When anything differs.
    pub fn end(self) {
        assert!(
            self.differences.is_empty(),
            "run with UPDATE=1 if this is right, and read the changes:\n{}",
            self.differences
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_recorded_passes() -> io::Result<()> {
        if std::env::var_os("UPDATE").is_some() {
            return Ok(());
        }
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("recorded");
        std::fs::write(&path, "[\n  1\n]\n")?;
        let mut golden = Golden::default();
        golden.json(&path, &[1])?;
        assert_eq!(golden.differences, "");
        golden.json(&path, &[2])?;
        golden.text(folder.path().join("missing"), "text")?;
        assert_eq!(golden.differences.matches("-- found").count(), 2);
        Ok(())
    }
}
