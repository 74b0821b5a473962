//! `filesystem`: deleting, overwriting and opening up what is outside the project.

mod changes;
mod places;

use super::Objections;
use super::access::{Access, shell_files};
use crate::input::{FileUse, GuardInput};
use crate::paths::{glob_matches, normalize};
use crate::shell::{Invocation, RedirectKind};
use changes::{deletes, formats_image, moves, opens_or_locks, opens_to_all, overwrite};
use places::{Location, Places, is_device};

/// Programs that are looked for behind patterns and unknown names.
const DANGEROUS_PROGRAMS: &[&str] = &[
    "rm", "dd", "shred", "mkfs", "chmod", "chown", "mv", "truncate", "find", "unlink", "wipefs",
];

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    let places = Places {
        project: input.project.as_deref(),
        home: input.home.as_deref(),
        allowed: found.options.all("--allow").collect(),
        input,
    };
    for file in input.files() {
        let location = places.locate_path(&file.path, false);
        match file.file_use {
            FileUse::Delete
                if matches!(
                    location,
                    Location::Critical | Location::Git | Location::System | Location::Outside
                ) =>
            {
                found.deny(
                    "delete",
                    &file.path,
                    "this deletes a file outside the project or in `.git`",
                );
            }
            FileUse::Write
                if matches!(location, Location::Git)
                    && !file.path.contains("/.git/hooks")
                    && !file.path.ends_with("/.git/info/exclude") =>
            {
                found.deny("overwrite", &file.path, "this overwrites a file in `.git`");
            }
            FileUse::Write if is_device(&file.path) => {
                found.deny("device", &file.path, "this writes to a device");
            }
            _ => {}
        }
    }
    for invocation in input.invocations() {
        judge_invocation(invocation, &places, found);
        if found.is_settled() {
            return;
        }
    }
    found.ask_if_incomplete(input);
}

fn judge_invocation(invocation: &Invocation, places: &Places<'_>, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    if invocation.is_fork_bomb || invocation.code.as_deref().is_some_and(forks_without_end) {
        return found.deny("fork-bomb", shown(), "this starts itself without end");
    }
    if invocation.shows_help() {
        return;
    }
    for redirect in &invocation.redirects {
        if !matches!(
            redirect.kind,
            RedirectKind::Output | RedirectKind::Append | RedirectKind::ReadWrite
        ) {
            continue;
        }
        let path = normalize(invocation.cwd.as_deref(), &redirect.target.text);
        if path.as_deref().is_some_and(is_device) {
            found.deny("device", shown(), "this writes to a device");
        } else if redirect.kind == RedirectKind::Output {
            overwrite(invocation, &redirect.target, places, found);
        }
    }
    let mut name = invocation.name.as_str();
    let program = invocation.words.first();
    if let Some(program) = program.filter(|word| word.is_pattern) {
        let base = program.text.rsplit('/').next().unwrap_or_default();
        // `*` alone is the start of a comment or of a branch, not of a program.
        let has_letter = base.chars().any(|letter| letter != '*');
        if let Some(known) = DANGEROUS_PROGRAMS
            .iter()
            .find(|known| has_letter && glob_matches(base, known))
        {
            name = known;
        }
    }
    match name {
        "rm" | "grm" | "srm" | "wipe" | "rimraf" | "del-cli" | "unlink" | "rmdir" | "shred"
        | "trash" | "trash-put" | "trash-cli" | "deltree" | "Remove-Item" | "remove-item" => {
            deletes(invocation, name, places, found);
        }
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => {
            let is_listed = invocation
                .via
                .iter()
                .any(|via| matches!(via.as_str(), "find" | "xargs"));
            if invocation.has_option("R", &["--recursive"]) || is_listed {
                let rule = "permissions";
                let is_open = name == "chmod" && invocation.texts().any(opens_or_locks);
                let mut operands = invocation.operands().filter(|word| word.text != "--");
                if !invocation
                    .texts()
                    .any(|text| text.starts_with("--reference"))
                {
                    operands.next();
                }
                for operand in operands {
                    match places.locate(invocation, operand) {
                        Location::Critical
                            if normalize(invocation.cwd.as_deref(), &operand.text)
                                .is_some_and(|path| places.is_project(&path)) =>
                        {
                            if is_open {
                                found.deny(rule, shown(), "this opens up or locks the whole project; name the files that need it");
                            }
                        }
                        Location::Critical
                        | Location::System
                        | Location::Outside
                        | Location::Git => {
                            found.deny(rule, shown(), "this changes permissions or owners of a whole tree outside the project");
                        }
                        Location::Unknown => found.ask_user(
                            rule,
                            shown(),
                            "which tree this changes is only known at run time",
                        ),
                        Location::Inside
                            if name == "chmod" && invocation.texts().any(opens_to_all) =>
                        {
                            found.deny(
                                rule,
                                shown(),
                                "this opens up or locks a whole tree; name the files that need it",
                            );
                        }
                        Location::Inside | Location::Temporary => {}
                    }
                }
            }
        }
        "mv" | "gmv" => moves(invocation, places, found),
        "tar" | "bsdtar" | "zip" | "7z" => {
            // An archive that is written over a device.
            let is_device_named = invocation.operands().any(|word| {
                normalize(invocation.cwd.as_deref(), &word.text)
                    .as_deref()
                    .is_some_and(is_device)
            });
            let creates = invocation.has_option("c", &["--create"])
                || invocation
                    .texts()
                    .next()
                    .is_some_and(|text| text.contains('c') && !text.contains('/'));
            if is_device_named && creates {
                found.deny("device", shown(), "this writes to a device");
            }
        }
        "cp" | "gcp" | "install" | "ln" | "tee" | "truncate" | "dd" | "sed" | "rsync" | "gtee"
        | "perl" | "patch" | "find" => {
            let is_dry = invocation.has_option("n", &["--dry-run", "--list-only"]);
            let deletes_rest = name == "rsync"
                && !is_dry
                && invocation.texts().any(|text| text.starts_with("--del"));
            let from_nothing = invocation
                .texts()
                .any(|text| text == "/dev/null" || text == "if=/dev/null");
            // Without `-f` a link never replaces anything.
            let replaces = name == "ln" && invocation.has_option("f", &["--force"]);
            let appends = name == "tee" && invocation.has_option("a", &["--append"]);
            for file in shell_files(invocation) {
                if file.access != Access::Write {
                    continue;
                }
                if file.path.as_deref().is_some_and(is_device) {
                    found.deny("device", shown(), "this writes to a device");
                } else if name == "rsync" {
                    let location = places.locate(invocation, &file.word);
                    if deletes_rest
                        && matches!(
                            location,
                            Location::Critical
                                | Location::Git
                                | Location::System
                                | Location::Outside
                        )
                    {
                        found.deny(
                            "delete",
                            shown(),
                            "this deletes what the source does not have, outside the project",
                        );
                    }
                } else if !appends
                    && (replaces || from_nothing || !matches!(name, "cp" | "install" | "ln"))
                {
                    overwrite(invocation, &file.word, places, found);
                }
            }
        }
        "mkswap" | "wipefs" | "blkdiscard" | "mke2fs" | "mkdosfs" | "mkntfs"
            if invocation.operands().next().is_some() && !formats_image(invocation, places) =>
        {
            found.deny("device", shown(), "this destroys the content of a device");
        }
        "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted" => {
            let lists = invocation.has_option("ldJVp", &["--list", "--dump", "--json", "--print"])
                || invocation.has_word("print");
            if !lists && invocation.operands().next().is_some() {
                found.deny("device", shown(), "this changes the partitions of a device");
            }
        }
        "hdparm"
            if invocation
                .texts()
                .any(|text| text.contains("security-erase") || text.contains("trim-sector")) =>
        {
            found.deny("device", shown(), "this erases a device");
        }
        "cryptsetup"
            if invocation.has_word("luksFormat")
                || invocation.has_word("erase")
                || invocation.has_word("luksErase") =>
        {
            found.deny("device", shown(), "this destroys the content of a device");
        }
        "lvm"
            if invocation
                .texts()
                .any(|text| matches!(text, "lvremove" | "vgremove" | "pvremove")) =>
        {
            found.deny("device", shown(), "this removes a volume");
        }
        "lvremove" | "vgremove" | "pvremove" if !invocation.has_option("t", &["--test"]) => {
            found.deny("device", shown(), "this removes a volume");
        }
        "zpool" | "zfs" if invocation.has_word("destroy") => {
            found.deny("device", shown(), "this destroys a volume");
        }
        "btrfs" if invocation.has_word("delete") => {
            found.deny("device", shown(), "this deletes a subvolume");
        }
        "mdadm" if invocation.has_option("", &["--zero-superblock"]) => {
            found.deny("device", shown(), "this destroys an array");
        }
        "nvme" if invocation.has_word("format") || invocation.has_word("sanitize") => {
            found.deny("device", shown(), "this erases a device");
        }
        "diskutil"
            if invocation.texts().any(|text| {
                text.to_ascii_lowercase().contains("erase")
                    || text == "zeroDisk"
                    || text == "partitionDisk"
                    || text == "secureErase"
            }) =>
        {
            found.deny("device", shown(), "this erases a disk");
        }
        "shutdown" | "reboot" | "poweroff" | "halt" if !invocation.has_option("c", &["--show"]) => {
            found.deny("machine", shown(), "this stops the machine");
        }
        "init" | "telinit" if invocation.texts().any(|text| text == "0" || text == "6") => {
            found.deny("machine", shown(), "this stops the machine");
        }
        "systemctl"
            if invocation
                .texts()
                .any(|text| matches!(text, "poweroff" | "reboot" | "halt" | "kexec"))
                || invocation.has_word("isolate") =>
        {
            found.deny("machine", shown(), "this stops the machine");
        }
        "userdel" | "deluser"
            if invocation.has_option("r", &["--remove", "--remove-home", "--remove-all-files"]) =>
        {
            found.deny("delete", shown(), "this deletes a user's home folder");
        }
        "gio" if invocation.has_word("trash") || invocation.has_word("remove") => {
            deletes(invocation, "trash", places, found);
        }
        "killall5" => found.deny("machine", shown(), "this ends every process of the machine"),
        // Whose processes, and no name of a program.
        "pkill" | "killall" | "skill" | "slay" if ends_all_of_user(invocation) => {
            found.deny("machine", shown(), "this ends every process of a user");
        }
        "kill"
            if invocation.texts().skip(1).any(|text| text == "-1")
                || invocation.texts().eq(["-1"]) =>
        {
            found.deny("machine", shown(), "this ends every process of the user");
        }
        _ if (name == "mkfs" && program.is_none_or(|program| !program.is_pattern)
            || name.starts_with("mkfs.") && invocation.operands().next().is_some())
            && !(name != "mkfs" && formats_image(invocation, places)) =>
        {
            found.deny("device", shown(), "this formats a device");
        }
        "" if program.is_some() => {
            // A program that is not known, with the words of a recursive delete.
            let is_delete = invocation.texts().any(|text| {
                text.strip_prefix('-').is_some_and(|cluster| {
                    !cluster.starts_with('-')
                        && cluster.len() <= 4
                        && cluster.contains(['r', 'R'])
                        && cluster.contains('f')
                })
            });
            let is_dangerous = invocation.operands().any(|word| {
                matches!(
                    places.locate(invocation, word),
                    Location::Critical | Location::Git
                )
            });
            if is_delete || (is_dangerous && invocation.has_option("rR", &["--recursive"])) {
                found.ask_user("delete", shown(), "which program this starts is only known at run time, and its options are those of a recursive delete");
            }
        }
        _ => {}
    }
}

/// `while True: os.fork()`, `fork while fork`.
fn forks_without_end(code: &str) -> bool {
    let code: String = code.split_whitespace().collect();
    [
        "fork()",
        "forkwhilefork",
        "whilefork",
        "fork,redo",
        "{fork}",
        "loop{fork",
    ]
    .iter()
    .any(|mark| code.contains(mark))
        && [
            "while1",
            "whileTrue",
            "while(1)",
            "while(true)",
            "for(;;)",
            "whilefork",
            "loop{",
            "loopdo",
            "{redo",
            "for;;",
        ]
        .iter()
        .any(|mark| code.contains(mark))
}

fn ends_all_of_user(invocation: &Invocation) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    let user = texts
        .iter()
        .position(|text| matches!(*text, "-u" | "-U" | "--user" | "--euid" | "--uid"));
    user.is_some_and(|at| {
        let mut rest = texts
            .iter()
            .enumerate()
            .filter(|(index, text)| *index != at + 1 && !text.starts_with('-'));
        rest.next().is_none()
    })
}
