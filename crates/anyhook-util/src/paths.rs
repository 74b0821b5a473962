//! One form for every path, so that two names of a folder can be compared.
//!
//! Windows has many: `C:\a`, `c:/a`, `\\?\C:\a`, and `/c/a` in Git Bash. What is
//! compared or stored has the first one, with the drive as a capital letter.

use std::io;
use std::path::{Path, PathBuf};

/// The real path of an existing file, in normal form.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the one place that may")]
    let real = std::fs::canonicalize(path)?;
    Ok(normal_form(real))
}

/// A path as users and agents write it, in the one form of this system.
pub fn normal_form(path: PathBuf) -> PathBuf {
    if cfg!(windows)
        && let Some(text) = path.to_str()
    {
        return PathBuf::from(windows_form(text));
    }
    path
}

/// The normal form of a path on Windows. What is no path of a drive or a share
/// stays as it is, but for its separators.
pub fn windows_form(text: &str) -> String {
    let path = text.replace('/', "\\");
    if let Some(plain) = path.strip_prefix(r"\\?\") {
        let unverbatim = match plain.strip_prefix(r"UNC\") {
            Some(share) => format!(r"\\{share}"),
            None => plain.to_owned(),
        };
        let is_drive = drive(&unverbatim).is_some();
        let is_usual =
            (is_drive || plain.starts_with(r"UNC\")) && unverbatim.split('\\').all(is_usual_name);
        // Without the prefix such a name would mean another file.
        return if is_usual {
            with_capital_drive(&unverbatim)
        } else {
            path
        };
    }
    let of_bash = path.strip_prefix(r"\cygdrive").unwrap_or(&path);
    if let Some(rest) = of_bash.strip_prefix('\\')
        && let Some((letter, rest)) = split_letter(rest)
        && (rest.is_empty() || rest.starts_with('\\'))
    {
        let rest = if rest.is_empty() { "\\" } else { rest };
        return format!("{}:{rest}", letter.to_ascii_uppercase());
    }
    with_capital_drive(&path)
}

fn with_capital_drive(path: &str) -> String {
    match drive(path) {
        Some((letter, rest)) => format!("{}:{rest}", letter.to_ascii_uppercase()),
        None => path.to_owned(),
    }
}

/// The letter of `C:…` and what follows the colon.
fn drive(path: &str) -> Option<(char, &str)> {
    let (letter, rest) = split_letter(path)?;
    Some((letter, rest.strip_prefix(':')?))
}

fn split_letter(text: &str) -> Option<(char, &str)> {
    let letter = text.chars().next().filter(char::is_ascii_alphabetic)?;
    Some((letter, text.get(1..)?))
}

/// Whether a name means the same with and without the prefix `\\?\`.
fn is_usual_name(name: &str) -> bool {
    const DEVICES: [&str; 6] = ["AUX", "CON", "NUL", "PRN", "CONIN$", "CONOUT$"];
    let stem = name.split('.').next().unwrap_or(name).to_ascii_uppercase();
    let numbered = stem
        .strip_prefix("COM")
        .or_else(|| stem.strip_prefix("LPT"))
        .is_some_and(|number| number.len() == 1);
    !DEVICES.contains(&stem.as_str()) && !numbered && !name.ends_with([' ', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_folder_on_windows_has_one_form() {
        for (text, form) in [
            (r"C:\a\b", r"C:\a\b"),
            (r"c:\a\b", r"C:\a\b"),
            ("c:/a/b", r"C:\a\b"),
            ("C:/", r"C:\"),
            (r"\\?\C:\a\b", r"C:\a\b"),
            (r"\\?\c:\a", r"C:\a"),
            ("//?/C:/a", r"C:\a"),
            (r"\\?\UNC\server\share\a", r"\\server\share\a"),
            ("//server/share/a", r"\\server\share\a"),
            ("/c/a/b", r"C:\a\b"),
            ("/C/a", r"C:\a"),
            ("/c", r"C:\"),
            ("/c/", r"C:\"),
            ("/cygdrive/d/x", r"D:\x"),
            // Not the name of a drive.
            ("/tmp/a", r"\tmp\a"),
            ("/", r"\"),
            ("a/b", r"a\b"),
            ("c:a", "C:a"),
            ("", ""),
            ("é:/x", r"é:\x"),
            (r"\\?\Volume{1}\a", r"\\?\Volume{1}\a"),
            (r"\\.\pipe\x", r"\\.\pipe\x"),
            // Other files without the prefix.
            (r"\\?\C:\a\nul.txt", r"\\?\C:\a\nul.txt"),
            (r"\\?\C:\a\com1", r"\\?\C:\a\com1"),
            (r"\\?\C:\a\b.", r"\\?\C:\a\b."),
        ] {
            assert_eq!(windows_form(text), form, "{text}");
            assert_eq!(windows_form(form), form, "{text}, again");
        }
    }

    #[test]
    fn elsewhere_a_path_stays_as_it_is() {
        if cfg!(unix) {
            let path = PathBuf::from("/c/a\\b");
            assert_eq!(normal_form(path.clone()), path);
        }
    }
}
