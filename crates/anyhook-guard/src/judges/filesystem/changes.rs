//! Deleting, moving, overwriting and changes of modes.

use super::places::{Location, Places, is_device, is_file_of_system, is_in_key_folder};
use crate::judges::Objections;
use crate::judges::access::{Access, shell_files};
use crate::paths::normalize;
use crate::shell::{Invocation, ResolvedWord, UNKNOWN};

/// `mkfs.ext4 disk.img`: a file of the project, not a device.
pub(super) fn formats_image(invocation: &Invocation, places: &Places<'_>) -> bool {
    let operands = invocation.operands().filter(|word| {
        // The number of blocks may follow.
        !word.text.chars().all(|letter| letter.is_ascii_digit())
    });
    operands.last().is_some_and(|target| {
        target.text.contains('.')
            && matches!(
                places.locate(invocation, target),
                Location::Inside | Location::Temporary
            )
    })
}

pub(super) fn deletes(
    invocation: &Invocation,
    name: &str,
    places: &Places<'_>,
    found: &mut Objections<'_>,
) {
    let shown = || invocation.shown();
    let is_recursive = matches!(
        name,
        "rimraf" | "del-cli" | "trash" | "trash-put" | "trash-cli" | "deltree"
    ) || invocation.has_option("rR", &["--recursive", "--no-preserve-root"]);
    let has_unknown_option = invocation.arguments().iter().any(|word| {
        word.is_unknown() && !word.sources.is_empty()
            || word.text.starts_with('-') && word.has_unknown()
    });
    let _ = has_unknown_option;
    for operand in invocation.operands().filter(|word| word.text != "--") {
        let is_listed = invocation
            .via
            .iter()
            .any(|via| matches!(via.as_str(), "find" | "xargs" | "fd" | "parallel"));
        let is_wide = is_recursive || operand.is_pattern || is_listed && name != "rmdir";
        let mut location = places.locate(invocation, operand);
        if location == Location::Unknown && is_listed && operand.text.starts_with(['/', '.']) {
            // Whatever a listing of the root or the home folder finds.
            location = Location::Critical;
        }
        match location {
            Location::Critical if is_wide || name == "rmdir" => {
                if name == "rmdir" && !is_recursive {
                    continue;
                }
                found.deny(
                    "delete",
                    shown(),
                    "this deletes the root, a home folder, a system folder or the project itself",
                );
            }
            Location::Git => {
                // A lock that was left behind; `-r` changes nothing about it.
                let is_lock = operand.text.ends_with(".lock") && !operand.is_pattern;
                let is_hook = operand.text.contains("/.git/hooks/");
                if !is_lock && (is_wide || !is_hook) {
                    found.deny(
                        "delete-git",
                        shown(),
                        "this deletes the history of a repository",
                    );
                }
            }
            Location::System | Location::Outside if is_wide => {
                found.deny("delete-outside", shown(), "this deletes files outside the project; delete inside it, or ask the user to do it");
            }
            Location::System
                if name == "shred" || name != "rmdir" && is_file_of_system(invocation, operand) =>
            {
                found.deny(
                    "delete-outside",
                    shown(),
                    "this deletes a file of the system",
                );
            }
            Location::Outside if name == "shred" || is_in_key_folder(invocation, operand) => {
                found.deny(
                    "delete-outside",
                    shown(),
                    "this destroys a file outside the project",
                );
            }
            Location::Unknown if is_recursive || operand.is_pattern => {
                found.ask_user(
                    "delete-unknown",
                    shown(),
                    "what this deletes is only known at run time; write the path out",
                );
            }
            Location::System | Location::Critical if is_device(&operand.text) => {
                found.deny("device", shown(), "this destroys the content of a device");
            }
            _ => {}
        }
        // Names that only a command knows, in the project: all of its files?
        if is_recursive
            && operand.has_unknown()
            && location == Location::Inside
            && !operand.sources.is_empty()
            && !invocation.via.iter().any(|via| via == "find")
        {
            let is_whole = operand.text.trim_end_matches(UNKNOWN).trim_end_matches('/');
            let whole = normalize(invocation.cwd.as_deref(), is_whole);
            if whole.is_some_and(|whole| places.is_project(&whole)) {
                found.ask_user(
                    "delete-unknown",
                    shown(),
                    "which files of the project this deletes is only known at run time",
                );
            }
        }
    }
}

/// A mode that lets everyone do everything.
pub(super) fn opens_to_all(mode: &str) -> bool {
    matches!(
        mode,
        "777" | "0777" | "a+rwx" | "ugo+rwx" | "a=rwx" | "ugo=rwx"
    )
}

/// A mode that lets everyone write, or no one read.
pub(super) fn opens_or_locks(mode: &str) -> bool {
    if opens_to_all(mode) || matches!(mode, "000" | "0000") {
        return true;
    }
    mode.split(',').any(|part| {
        let Some(at) = part.find(['+', '=']) else {
            return false;
        };
        let (who, what) = part.split_at(at);
        who.chars().all(|letter| "ugoa".contains(letter))
            && (who.contains(['o', 'a']))
            && what.contains('w')
            && what.chars().skip(1).all(|letter| "rwxXst".contains(letter))
    })
}

pub(super) fn moves(invocation: &Invocation, places: &Places<'_>, found: &mut Objections<'_>) {
    for file in shell_files(invocation) {
        let shown = invocation.shown();
        let location = places.locate(invocation, &file.word);
        match (file.access, location) {
            (Access::Delete, Location::Critical | Location::Git | Location::System) => {
                found.deny(
                    "move",
                    shown,
                    "this moves the home folder, a system folder, the project or `.git` away",
                );
            }
            (Access::Write, _)
                if file.path.as_deref() == Some("/dev/null")
                    || file.path.as_deref().is_some_and(is_device) =>
            {
                found.deny(
                    "move",
                    shown,
                    "this moves files onto a device, where they are lost",
                );
            }
            (Access::Write, Location::System | Location::Git) => {
                found.deny(
                    "move",
                    shown,
                    "this moves files over a system folder or `.git`",
                );
            }
            _ => {}
        }
    }
}

pub(super) fn overwrite(
    invocation: &Invocation,
    target: &ResolvedWord,
    places: &Places<'_>,
    found: &mut Objections<'_>,
) {
    let Some(path) = normalize(invocation.cwd.as_deref(), &target.text) else {
        return;
    };
    if path.starts_with("/dev/")
        || path.starts_with("/proc/")
        || path.starts_with("/sys/")
        || target.has_unknown()
    {
        return;
    }
    if path.contains("/.git/hooks/") || path.ends_with("/.git/info/exclude") {
        return;
    }
    let is_listed = invocation
        .via
        .iter()
        .any(|via| matches!(via.as_str(), "find" | "xargs"));
    match places.locate_path(&path, target.is_pattern) {
        Location::Critical if is_listed => found.deny(
            "overwrite",
            invocation.shown(),
            "this overwrites every file of a home or system folder",
        ),
        Location::Git => found.deny(
            "overwrite",
            invocation.shown(),
            "this overwrites a file in `.git`",
        ),
        Location::System
            if !path.starts_with("/mnt")
                && !path.starts_with("/media")
                && !path.starts_with("/Volumes") =>
        {
            found.deny(
                "overwrite",
                invocation.shown(),
                "this overwrites a file of the system",
            );
        }
        _ => {}
    }
}
