//! Which entries `doctor` starts. A repository can contain any file, so it starts
//! only this very program, and what `install` wrote on this machine.

use std::path::{Path, PathBuf};

use anyhook_edit::InstallLog;
use anyhook_run::daemon_client;
use anyhook_util::hash::sha256;

use super::probe::{self, ProbeCommand};
use super::{DoctorFinding, Severity};
use crate::hook_entries;
use crate::kept_program::KeptProgram;
use crate::machine::{Machine, real_path};
use crate::target::Target;

/// Why an entry is not started; `None` if it can be.
pub(super) fn refusal(
    machine: &Machine,
    target: &Target,
    probe: &ProbeCommand,
) -> Option<DoctorFinding> {
    let ProbeCommand { line, argv, .. } = probe;
    let not_fired = |severity: Severity, reason: &str| {
        let what = format!("`{line}` was not tested: {reason}");
        DoctorFinding::new(severity, "not-fired", what)
            .why("doctor starts only this program, and entries that `anyhook install` wrote on this machine")
            .remedy("check the entry yourself, or replace it: `anyhook uninstall`, then `anyhook install`")
    };
    let Some(argv) = argv else {
        let reason = "it does more than call anyhook";
        return Some(not_fired(Severity::Info, reason));
    };
    let named = argv.first().map(String::as_str).unwrap_or_default();
    let program = match resolve(machine, named) {
        Ok(program) => program,
        Err(reason) => return Some(not_fired(Severity::Warning, &reason)),
    };
    let Some(program) = program else {
        return Some(probe::unreached_bridge(
            target,
            probe,
            &format!("`{named}` does not exist"),
            "",
        ));
    };
    // What is kept was put there by `install`, in a folder of the user's.
    let is_kept = KeptProgram::new(machine).programs().contains(&program);
    if is_kept || is_this_program(&program) {
        let is_expected = probe.is_recorded || has_known_arguments(argv);
        let reason = "it has arguments that `anyhook install` does not write";
        return (!is_expected).then(|| not_fired(Severity::Info, reason));
    }
    let reason = if machine.is_in_project(&program) {
        format!("`{}` is a file of the project", program.display())
    } else if !probe.is_recorded {
        format!("`{}` is not the anyhook that is running", program.display())
    } else {
        return None;
    };
    Some(not_fired(Severity::Warning, &reason))
}

/// The file that a program's name stands for; `None` if there is none.
fn resolve(machine: &Machine, named: &str) -> Result<Option<PathBuf>, String> {
    let path = Path::new(named);
    if path.is_absolute() {
        return Ok(Some(path.to_owned()).filter(|path| path.is_file()));
    }
    if named.contains(['/', '\\']) {
        return Err(format!("`{named}` is a file of the project"));
    }
    Ok(machine.first_on_path(named, &machine.root))
}

fn is_this_program(path: &Path) -> bool {
    let Ok(running) = std::env::current_exe() else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |path: &Path| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.dev(), meta.ino()))
        };
        let own = identity(&running);
        if own.is_some() && own == identity(path) {
            return true;
        }
    }
    real_path(&running) == real_path(path)
}

/// Whether a call of the bridge has only arguments that send nothing anywhere.
fn has_known_arguments(argv: &[String]) -> bool {
    let mut words = argv.iter().skip(1).map(String::as_str);
    if words.next() != Some("run") {
        return false;
    }
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, words.next()),
        };
        let is_known = match name {
            "--agent" | "--event" | "--scope" | "--fallback" => value.is_some(),
            "--server" => value.is_some_and(daemon_client::is_local),
            _ => false,
        };
        if !is_known {
            return false;
        }
    }
    true
}

/// Whether `install` wrote this command line into this file on this machine.
pub(super) fn is_recorded_line(records: &Path, target: &Target, line: &str) -> bool {
    let log = InstallLog::load(records, &target.path).ok().flatten();
    let patches = log.map(|log| log.patches).unwrap_or_default();
    patches.iter().any(|patch| {
        let lines = hook_entries::element_commands(target.config(), &patch.value);
        lines.contains(&line)
    })
}

/// Whether `install` wrote exactly this file on this machine.
pub(super) fn is_recorded_file(records: &Path, path: &Path, text: &str) -> bool {
    let log = InstallLog::load(records, path).ok().flatten();
    log.is_some_and(|log| log.after == sha256(text.as_bytes()))
}
