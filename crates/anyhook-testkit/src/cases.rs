//! Reads folders of test cases: adding a case is adding an entry to the folder;
//! there is no other list of cases.

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// One case: a folder with files, or a single file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The entry's name.
    pub name: String,
    pub path: PathBuf,
    /// Texts by `/`-separated path inside the case; a single file by its own name.
    pub files: BTreeMap<String, String>,
}

/// The cases of a folder, by name. An empty or missing folder is an error: a
/// test over no cases passes without testing anything.
pub fn read_cases(folder: impl AsRef<Path>) -> io::Result<Vec<Case>> {
    let folder = folder.as_ref();
    let mut cases = Vec::new();
    for entry in entries(folder)? {
        let name = file_name(&entry);
        let mut files = BTreeMap::new();
        if entry.is_dir() {
            collect(&entry, "", &mut files)?;
        } else {
            files.insert(name.clone(), read_text(&entry)?);
        }
        cases.push(Case {
            name,
            path: entry,
            files,
        });
    }
    if cases.is_empty() {
        return Err(io::Error::other(format!(
            "no cases in {}",
            folder.display()
        )));
    }
    Ok(cases)
}

impl Case {
    /// The text of a required file.
    pub fn text(&self, file: &str) -> io::Result<&str> {
        self.files
            .get(file)
            .map(String::as_str)
            .ok_or_else(|| io::Error::other(format!("{} has no `{file}`", self.path.display())))
    }

    /// A required JSON file.
    pub fn json<T: DeserializeOwned>(&self, file: &str) -> io::Result<T> {
        serde_json::from_str(self.text(file)?).map_err(|error| {
            io::Error::other(format!("{}, `{file}`: {error}", self.path.display()))
        })
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in entries(folder)? {
        let name = format!("{prefix}{}", file_name(&entry));
        if entry.is_dir() {
            collect(&entry, &format!("{name}/"), files)?;
        } else {
            files.insert(name, read_text(&entry)?);
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let about = |error| io::Error::other(format!("{}: {error}", folder.display()));
    let mut paths = std::fs::read_dir(folder)
        .map_err(about)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
