//! `filesystem`: deleting, overwriting and opening up what is outside the project.

use super::Objections;
use super::access::{Access, shell_files};
use crate::input::{FileUse, GuardInput};
use crate::paths::{glob_matches, is_within, normalize, path_matches};
use crate::shell::{Invocation, InvocationPlace, RedirectKind, ResolvedWord, UNKNOWN};

/// Where a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    /// The root, a home folder, a system folder itself, the project or one above it.
    Critical,
    /// `.git` or inside it.
    Git,
    /// Inside a system folder.
    System,
    /// Somewhere else outside the project.
    Outside,
    /// The folder for temporary files, and what is in it.
    Temporary,
    /// Inside the project.
    Inside,
    /// Known only at run time.
    Unknown,
}

const SYSTEM_FOLDERS: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/mnt",
    "/media",
    "/snap",
    "/home",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/Volumes",
    "/private",
    "/nix",
    "C:/Windows",
    "C:/Program Files",
    "C:/Program Files (x86)",
    "C:/ProgramData",
    "C:/Users",
];

/// Programs that are looked for behind patterns and unknown names.
const DANGEROUS_PROGRAMS: &[&str] = &[
    "rm", "dd", "shred", "mkfs", "chmod", "chown", "mv", "truncate", "find", "unlink", "wipefs",
];

struct Places<'i> {
    project: Option<&'i str>,
    home: Option<&'i str>,
    input: &'i GuardInput<'i>,
    allowed: Vec<&'i str>,
}

impl Places<'_> {
    /// Classifies a word that a command deletes or changes.
    fn locate(&self, invocation: &Invocation, word: &ResolvedWord) -> Location {
        let text = word.text.as_str();
        if text.is_empty() {
            return Location::Temporary;
        }
        if text.starts_with(UNKNOWN) && invocation.place != InvocationPlace::Container {
            return Location::Unknown;
        }
        // Above a folder that is not known.
        if text.contains("\0/..") && invocation.place == InvocationPlace::Local {
            return Location::Unknown;
        }
        let is_away = invocation.place != InvocationPlace::Local;
        let Some(path) = normalize(invocation.cwd.as_deref(), text) else {
            // Relative to a folder that is not known.
            return match invocation.place {
                InvocationPlace::Container => Location::Temporary,
                _ if text == ".git" || text.ends_with("/.git") => Location::Git,
                _ => Location::Unknown,
            };
        };
        let found = self.locate_path(&path, word.is_pattern);
        match (found, invocation.place) {
            (Location::Inside, _) if is_away => Location::Outside,
            // What is in an image is not the user's.
            (Location::Outside | Location::System, InvocationPlace::Container) => {
                Location::Temporary
            }
            (found, _) => found,
        }
    }

    fn locate_path(&self, path: &str, is_pattern: bool) -> Location {
        if path.starts_with(&format!("/{UNKNOWN}"))
            && path.len() > 2
            && !path.contains("/\0/")
            && path == format!("/{UNKNOWN}")
        {
            return Location::Unknown;
        }
        // Everything in a folder is the folder.
        let mut path = path;
        let mut has_wildcard = false;
        while let Some((folder, last)) = path.rsplit_once('/') {
            let is_all = (is_pattern
                && matches!(
                    last,
                    "*" | "**" | ".*" | "?*" | "*.*" | "{*,.*}" | ".[!.]*" | "..?*" | ".??*"
                ))
                || last.chars().all(|letter| letter == UNKNOWN) && !last.is_empty();
            if !is_all {
                break;
            }
            has_wildcard = true;
            if last.contains(UNKNOWN) {
                return self.locate_below(folder);
            }
            path = if folder.is_empty() { "/" } else { folder };
            if path == "/" {
                break;
            }
        }
        if path.contains(UNKNOWN) {
            if path.split('/').any(|part| part == ".git") {
                return Location::Git;
            }
            let known = path.split(UNKNOWN).next().unwrap_or_default();
            let folder = known.rsplit_once('/').map_or("", |(folder, _)| folder);
            return self.locate_below(folder);
        }
        // A pattern near the root matches system folders.
        if is_pattern && !has_wildcard && path.contains(['*', '?', '[']) {
            let critical = SYSTEM_FOLDERS
                .iter()
                .copied()
                .chain(self.home)
                .chain(self.project);
            for folder in critical {
                if glob_matches(path, folder) {
                    return Location::Critical;
                }
            }
            let git = self.project.map(|project| format!("{project}/.git"));
            if git.is_some_and(|git| glob_matches(path, &git)) {
                return Location::Git;
            }
        }
        self.locate_known(path, has_wildcard)
    }

    /// Something unknown in a known folder.
    fn locate_below(&self, folder: &str) -> Location {
        let folder = folder
            .split(UNKNOWN)
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        if self.project == Some(folder) {
            return Location::Inside;
        }
        if matches!(folder, "/tmp" | "/var/tmp" | "/private/tmp" | "/dev/shm") {
            return Location::Temporary;
        }
        let is_above = |inner: &str| is_within(inner, folder);
        if folder.is_empty()
            || self.project.is_some_and(is_above)
            || self.home.is_some_and(is_above)
        {
            return Location::Unknown;
        }
        match self.locate_known(folder, false) {
            Location::Critical => Location::System,
            found => found,
        }
    }

    fn locate_known(&self, path: &str, has_wildcard: bool) -> Location {
        let path = if path.is_empty() { "/" } else { path };
        if self
            .allowed
            .iter()
            .any(|pattern| path_matches(pattern, path, self.project, self.home))
        {
            return Location::Inside;
        }
        let is_drive = path.len() <= 3 && path.as_bytes().get(1) == Some(&b':');
        if path == "/" || is_drive {
            return Location::Critical;
        }
        if path.split('/').any(|part| part == ".git") {
            return Location::Git;
        }
        let above_or_same = |folder: &str| is_within(folder, path);
        if self.project.is_some_and(above_or_same) || self.home.is_some_and(above_or_same) {
            return Location::Critical;
        }
        if self.project.is_some_and(|project| is_within(path, project)) {
            return Location::Inside;
        }
        for folder in [
            "/tmp",
            "/var/tmp",
            "/private/tmp",
            "/private/var/tmp",
            "/dev/shm",
        ] {
            if path == folder {
                return if has_wildcard {
                    Location::Temporary
                } else {
                    Location::Critical
                };
            }
            if is_within(path, folder) {
                return Location::Temporary;
            }
        }
        let temporary = self.input.context.temporary.iter();
        let is_temporary = temporary
            .filter_map(|folder| normalize(None, &folder.to_string_lossy()))
            .any(|folder| is_within(path, &folder) && path != folder)
            || is_within(path, "/var/folders") && path.matches('/').count() > 4
            || path.to_ascii_lowercase().contains("/appdata/local/temp/");
        if is_temporary {
            return Location::Temporary;
        }
        if path.starts_with("/home/") && path.matches('/').count() == 2
            || path.starts_with("/Users/") && path.matches('/').count() == 2
        {
            return Location::Critical;
        }
        if SYSTEM_FOLDERS
            .iter()
            .any(|folder| path.eq_ignore_ascii_case(folder))
            || path == "/root"
        {
            return Location::Critical;
        }
        let is_home = self.home.is_some_and(|home| is_within(path, home))
            || path.starts_with("/home/")
            || path.starts_with("/Users/")
            || path.starts_with("C:/Users/");
        if !is_home && SYSTEM_FOLDERS.iter().any(|folder| is_within(path, folder)) {
            return Location::System;
        }
        Location::Outside
    }
}

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
                            if places.project.is_some_and(|project| {
                                normalize(invocation.cwd.as_deref(), &operand.text).as_deref()
                                    == Some(project)
                            }) =>
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
        "kill" if invocation.texts().skip(1).any(|text| text == "-1") => {
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

/// `mkfs.ext4 disk.img`: a file of the project, not a device.
fn formats_image(invocation: &Invocation, places: &Places<'_>) -> bool {
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

fn deletes(invocation: &Invocation, name: &str, places: &Places<'_>, found: &mut Objections<'_>) {
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
                let is_lock =
                    operand.text.ends_with(".lock") || operand.text.contains("/.git/hooks/");
                if is_wide || !is_lock {
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
            if normalize(invocation.cwd.as_deref(), is_whole).as_deref() == places.project {
                found.ask_user(
                    "delete-unknown",
                    shown(),
                    "which files of the project this deletes is only known at run time",
                );
            }
        }
    }
}

/// Folders of the system in which users install and keep things themselves.
const USERS_OWN_FOLDERS: &[&str] = &[
    "/media",
    "/mnt",
    "/opt",
    "/run",
    "/srv",
    "/usr/local",
    "/var/run",
    "/Volumes",
];

fn is_file_of_system(invocation: &Invocation, word: &ResolvedWord) -> bool {
    normalize(invocation.cwd.as_deref(), &word.text).is_some_and(|path| {
        !USERS_OWN_FOLDERS
            .iter()
            .any(|folder| is_within(&path, folder))
    })
}

fn is_in_key_folder(invocation: &Invocation, word: &ResolvedWord) -> bool {
    normalize(invocation.cwd.as_deref(), &word.text).is_some_and(|path| {
        [".ssh", ".gnupg", ".aws", ".kube", ".password-store"]
            .iter()
            .any(|folder| path.split('/').any(|part| part == *folder))
            && !path.ends_with("/known_hosts.old")
    })
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

/// A mode that lets everyone do everything.
fn opens_to_all(mode: &str) -> bool {
    matches!(
        mode,
        "777" | "0777" | "a+rwx" | "ugo+rwx" | "a=rwx" | "ugo=rwx"
    )
}

/// A mode that lets everyone write, or nobody read.
fn opens_or_locks(mode: &str) -> bool {
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

fn moves(invocation: &Invocation, places: &Places<'_>, found: &mut Objections<'_>) {
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

fn overwrite(
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

/// What the names of devices begin with.
const DEVICE_PREFIXES: [&str; 17] = [
    "sd", "hd", "nvme", "vd", "xvd", "disk", "rdisk", "mmcblk", "loop", "md", "dm-", "mapper/",
    "mem", "kmem", "sr", "block/", "nbd",
];

/// A block device or the memory; not the harmless files of `/dev`.
fn is_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else {
        return path.starts_with("\\\\.\\physicaldrive") || path.starts_with("/proc/sysrq");
    };
    DEVICE_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
        && !name.starts_with("stdout")
}
