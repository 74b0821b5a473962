//! The files that a command executes: programs named by path, and the scripts of
//! interpreters. What it merely reads is not among them.

use std::path::{Path, PathBuf};

use anyhook_util::env;
use anyhook_util::shell::{self, Syntax};

use super::command::normalize_path;
use super::words::{WordRole, WordRoles};

/// Nested lines (`sh -c '…'`) are followed to this depth.
const MAX_NESTING_DEPTH: usize = 2;

/// Relative names start at `folder`; `variables` are those that anyhook sets.
pub(crate) fn executed_files(
    command: &str,
    folder: &Path,
    variables: &[(String, String)],
) -> Vec<PathBuf> {
    let mut files = Vec::new();
    add_line(command, folder, variables, MAX_NESTING_DEPTH, &mut files);
    files
}

fn add_line(
    command: &str,
    folder: &Path,
    variables: &[(String, String)],
    nesting: usize,
    files: &mut Vec<PathBuf>,
) {
    let mut roles = WordRoles::default();
    for word in shell::split(command, Syntax::SCRIPT).words {
        let role = roles.next_role(&word);
        let text = if word.expands || word.text.starts_with('~') {
            expand(&word.text, variables)
        } else {
            word.text.clone()
        };
        let is_executed = match role {
            WordRole::Program => text.contains('/'),
            WordRole::Script => true,
            WordRole::Folder | WordRole::Output | WordRole::Argument => false,
        };
        let path = normalize_path(&folder.join(&text));
        if is_executed && !files.contains(&path) && path.is_file() {
            files.push(path);
        } else if nesting > 0 && text.contains(char::is_whitespace) {
            add_line(&text, folder, variables, nesting - 1, files);
        }
    }
}

/// Replaces the home folder and the variables that are known.
fn expand(text: &str, variables: &[(String, String)]) -> String {
    let home = env::HOME.text().unwrap_or_default();
    let mut expanded = match text.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None => text.to_owned(),
    };
    let home = env::HOME.with(home);
    for (name, value) in variables.iter().chain([&home]) {
        if expanded.contains('$') {
            expanded = expanded.replace(&format!("${{{name}}}"), value);
            expanded = expanded.replace(&format!("${name}/"), &format!("{value}/"));
        }
    }
    expanded
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_and_scripts_but_not_data() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        for name in ["guard.sh", "rules.json", "x.py"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let variables = [("DIR".to_owned(), folder.to_string_lossy().into_owned())];
        let absolute = folder.join("guard.sh").to_string_lossy().into_owned();
        let guard = vec![folder.join("guard.sh")];
        for command in [
            "./guard.sh rules.json",
            "sh guard.sh",
            "A=1 sh -eu guard.sh | cat rules.json",
            "\"$DIR/guard.sh\" x",
            "exec ${DIR}/guard.sh",
            "sh -c './guard.sh rules.json'",
            absolute.as_str(),
        ] {
            assert_eq!(
                executed_files(command, folder, &variables),
                guard,
                "{command}"
            );
        }
        let both = executed_files("python3 x.py && ./guard.sh", folder, &[]);
        assert_eq!(both, [folder.join("x.py"), folder.join("guard.sh")]);
        for command in ["cat rules.json", "grep -q x", "./none.sh", "tee rules.json"] {
            assert!(executed_files(command, folder, &[]).is_empty(), "{command}");
        }
    }
}
