//! Config files, folders, environment and process state that must not switch a
//! guard off.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhook_testkit::{ProcessOutput, Scratch, files_below};
use serde_json::json;

use crate::locked::{BIN, LockedMachine, RUN, add_guard, dangerous, run_at_once};
use crate::support::{
    GUARD, MANIFEST, anyhook, is_denied, payload, project, run_dangerous, trusted_project,
};

/// Things that are not a readable file of a sensible size.
const ODD_FILES: [&str; 8] = [
    "pipe", "socket", "folder", "dangling", "loop", "huge", "device", "binary",
];

fn put_odd_file(path: &Path, kind: &str) -> Option<UnixListener> {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match kind {
        "pipe" => {
            let status = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(status.success());
        }
        "socket" => return Some(UnixListener::bind(path).unwrap()),
        "folder" => fs::create_dir(path).unwrap(),
        "dangling" => symlink("missing-folder/x", path).unwrap(),
        "loop" => symlink(path, path).unwrap(),
        "huge" => fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
        "device" => symlink("/dev/zero", path).unwrap(),
        _ => fs::write(path, [0xff, 0, 0xfe]).unwrap(),
    }
    None
}

#[test]
fn nothing_in_place_of_a_config_file_hangs_or_disarms_another_guard() {
    for kind in ODD_FILES {
        let scratch = trusted_project();
        let nested = scratch.project().join("nested");
        fs::create_dir_all(&nested).unwrap();
        let consents = scratch.state().join("trust");
        let consent = fs::read_dir(consents).unwrap().next().unwrap().unwrap();
        let consent = fs::read(consent.path()).map(|bytes| (consent.path(), bytes));
        let (consent, consent_bytes) = consent.unwrap();
        add_guard(&scratch, &scratch.home().join("guards"));
        // The project's own guard, and a second one of the user.
        let places = [
            (scratch.managed().join("hooks.yaml"), true),
            (scratch.managed().join("policy.yaml"), true),
            (scratch.config().join("hooks.json"), true),
            (scratch.config().join("policy.json"), true),
            (nested.join(".anyhook/hooks.yaml"), true),
            (nested.join(".anyhook/policy.yaml"), false),
            (nested.join(".openhook.json"), false),
            (nested.join(".git"), false),
            (nested.join(".anyhook"), false),
        ];
        for (place, is_told) in places {
            let _listener = put_odd_file(&place, kind);
            let mut payload = payload(&scratch, "rm -rf /");
            payload["cwd"] = json!(nested);
            payload["session_id"] = json!(place);
            let output = run_at_once(anyhook(&scratch), &RUN, &payload.to_string());
            let shown = format!("{kind} at {}: {output:?}", place.display());
            assert!(is_denied(&output), "{shown}");
            // A folder is not in the way of these.
            let is_plain =
                kind == "folder" && (place.ends_with(".anyhook") || place.ends_with(".git"));
            if is_told && !is_plain {
                assert!(output.stdout.contains(&*place.to_string_lossy()), "{shown}");
            }
            if fs::remove_file(&place).is_err() {
                fs::remove_dir(&place).unwrap();
            }
        }
        // A user's guard decides, whatever is in place of a project's approval.
        add_guard(&scratch, &scratch.config());
        let _listener = put_odd_file(&consent, kind);
        let output = run_at_once(anyhook(&scratch), &RUN, &dangerous(&scratch));
        assert!(is_denied(&output), "{kind}: {output:?}");
        if fs::remove_file(&consent).is_err() {
            fs::remove_dir(&consent).unwrap();
        }
        fs::write(&consent, consent_bytes).unwrap();
        // So it does whatever is in place of the files that anyhook writes.
        for name in [
            "plans",
            "journal",
            "claims",
            "told",
            "trust",
            "journal/events.jsonl",
        ] {
            let place = scratch.state().join(name);
            let _ = fs::remove_dir_all(&place);
            let _listener = put_odd_file(&place, kind);
            let output = run_at_once(anyhook(&scratch), &RUN, &dangerous(&scratch));
            assert!(is_denied(&output), "{kind} at {name}: {output:?}");
            if fs::remove_file(&place).is_err() {
                fs::remove_dir_all(&place).unwrap();
            }
        }
    }
}

#[test]
fn commands_do_not_wait_for_a_pipe_without_a_writer() {
    let scratch = project();
    let pipe = scratch.project().join("pipe.yaml");
    put_odd_file(&pipe, "pipe");
    let pipe = pipe.to_str().unwrap();
    for args in [
        vec!["validate", pipe],
        vec!["convert", pipe, "--to", "codex"],
        vec!["trust", "--yes", pipe],
    ] {
        let output = run_at_once(anyhook(&scratch), &args, "");
        assert_ne!(output.exit, Some(0), "{args:?}: {output:?}");
    }
}

#[test]
fn a_managed_policy_that_cannot_be_read_fails_closed() {
    for kind in ODD_FILES.into_iter().chain(["syntax", "type", "unlisted"]) {
        let scratch = Scratch::new().unwrap();
        let policy = scratch.managed().join("policy.json");
        let mut listener = None;
        match kind {
            "syntax" => fs::write(&policy, "{").unwrap(),
            "type" => fs::write(&policy, r#"{"fail_closed": 1}"#).unwrap(),
            // Instead of the whole folder.
            "unlisted" => {
                fs::remove_dir(scratch.managed()).unwrap();
                fs::write(scratch.managed(), "").unwrap();
            }
            _ => listener = put_odd_file(&policy, kind),
        }
        // Which no hook can judge.
        let output = run_at_once(anyhook(&scratch), &RUN, "{");
        assert!(is_denied(&output), "{kind}: {output:?}");
        drop(listener);
    }
}

/// A repository that pretends to be somebody's home.
fn hostile_home() -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let manifest = MANIFEST.replace("./guard.sh", "touch pwned; exit 2");
    scratch
        .file(".config/anyhook/hooks.yaml", &manifest)
        .unwrap();
    scratch.file("hooks.yaml", &manifest).unwrap();
    scratch
}

#[test]
fn a_repository_is_never_the_users_home() {
    let project = hostile_home().project();
    let absolute = project.to_string_lossy().into_owned();
    let nested = format!("{absolute}/.config/anyhook");
    // Other names of the same folders, which a repository need not know the path for.
    let (by_link, by_parent) = (
        "/proc/self/cwd/.config/anyhook",
        format!("{absolute}/../project/.config/anyhook"),
    );
    drop(project);
    let cases: [&[(&str, Option<&str>)]; 13] = [
        &[("HOME", None)],
        &[("HOME", Some(""))],
        &[("HOME", Some("."))],
        &[("HOME", Some("./"))],
        &[("ANYHOOK_CONFIG_DIR", Some(".config/anyhook"))],
        &[("ANYHOOK_CONFIG_DIR", Some("."))],
        &[("XDG_CONFIG_HOME", Some(".config"))],
        &[("HOME", Some(&absolute))],
        &[("ANYHOOK_CONFIG_DIR", Some(&nested))],
        &[("ANYHOOK_CONFIG_DIR", Some(by_link))],
        &[("ANYHOOK_CONFIG_DIR", Some(&by_parent))],
        &[("XDG_CONFIG_HOME", Some("/proc/self/cwd/.config"))],
        &[("HOME", Some("/proc/self/cwd"))],
    ];
    for variables in cases {
        let scratch = hostile_home();
        let own = |value: &str| value.replace(&absolute, &scratch.project().to_string_lossy());
        let mut args = vec!["-u".to_owned(), "USERPROFILE".to_owned()];
        for name in ["XDG_CONFIG_HOME", "ANYHOOK_CONFIG_DIR", "HOME"] {
            args.extend(["-u".to_owned(), name.to_owned()]);
        }
        for (name, value) in variables {
            args.extend(value.map(|value| format!("{name}={}", own(value))));
        }
        args.extend([BIN].into_iter().chain(RUN).map(str::to_owned));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = run_at_once(scratch.command("env"), &args, &dangerous(&scratch));
        assert!(
            !scratch.project().join("pwned").exists(),
            "{variables:?}: {output:?}"
        );
        assert_eq!(output.exit, Some(0), "{variables:?}: {output:?}");
        // A setting of the user that has no effect is reported.
        let is_set = variables
            .iter()
            .any(|(_, value)| value.is_some_and(|it| !it.is_empty()));
        assert_eq!(
            output.stdout.contains("is not used"),
            is_set,
            "{variables:?}: {output:?}"
        );
    }
}

/// Starts anyhook through a shell that changes the process first.
fn run_after(scratch: &Scratch, setup: &str) -> ProcessOutput {
    let line = format!("{setup} exec \"$@\"");
    let mut args = vec!["-c", &line, "sh", BIN];
    args.extend(RUN);
    run_at_once(scratch.command("/bin/sh"), &args, &dangerous(scratch))
}

/// Starts anyhook through `env` with an option about signals; `None` where `env`
/// does not have it.
fn run_with_signals(scratch: &Scratch, option: &str) -> Option<ProcessOutput> {
    let known = Command::new("env").args([option, "true"]).output().unwrap();
    if !known.status.success() {
        eprintln!("skipped: `env` does not know {option}");
        return None;
    }
    let mut args = vec![option, BIN];
    args.extend(RUN);
    Some(run_at_once(
        scratch.command("env"),
        &args,
        &dangerous(scratch),
    ))
}

#[test]
fn an_ignored_sigchld_does_not_turn_a_deny_into_an_allow() {
    let scratch = trusted_project();
    if let Some(output) = run_with_signals(&scratch, "--ignore-signal=CHLD") {
        assert!(is_denied(&output), "{output:?}");
        assert!(output.stdout.contains("guarded"), "{output:?}");
    }
}

#[test]
fn blocked_signals_are_not_handed_to_hooks() {
    let scratch = Scratch::new().unwrap();
    // Without a shell, which would unblock them.
    let manifest = MANIFEST.replace("./guard.sh", "cp /proc/self/status status");
    scratch
        .file(scratch.config().join("hooks.yaml"), &manifest)
        .unwrap();
    if cfg!(target_os = "linux") && run_with_signals(&scratch, "--block-signal=TERM,ALRM").is_some()
    {
        let status = fs::read_to_string(scratch.project().join("status")).unwrap();
        assert!(status.contains("SigBlk:\t0000000000000000"), "{status}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_does_not_end_the_dispatcher() {
    let scratch = trusted_project();
    let output = run_after(&scratch, "ulimit -f 0;");
    assert!(is_denied(&output), "{output:?}");
    assert!(output.exit.is_some(), "ended by a signal: {output:?}");
}

#[test]
fn closed_descriptors_are_not_mistaken_for_files() {
    for closed in ["2>&-", "3>&- 2>&-"] {
        let scratch = trusted_project();
        let line = format!("exec \"$@\" {closed}");
        let mut args = vec!["-c", &line, "sh", BIN];
        args.extend(RUN);
        let output = run_at_once(scratch.command("/bin/sh"), &args, &dangerous(&scratch));
        assert!(is_denied(&output), "{closed}: {output:?}");
    }
    // Without anywhere to answer, nothing that it opens gets the answer.
    let scratch = trusted_project();
    let output = run_after(&scratch, "exec 1>&- 2>&-;");
    assert_eq!(output.stdout, "");
    for path in files_below(&scratch.state()) {
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.starts_with("{\"hookSpecificOutput"), "{path:?}");
    }
}

#[test]
fn a_users_guard_runs_where_the_folder_of_the_event_is_gone() {
    let scratch = Scratch::new().unwrap();
    let guard = scratch
        .exec(scratch.home().join("guard.sh"), GUARD)
        .unwrap();
    let manifest = MANIFEST.replace("./guard.sh", guard.to_str().unwrap());
    scratch
        .file(scratch.config().join("hooks.yaml"), &manifest)
        .unwrap();
    for cwd in ["/nonexistent/deep/folder", "/etc/hostname/x"] {
        let mut payload = payload(&scratch, "rm -rf /");
        payload["cwd"] = json!(cwd);
        let output = run_at_once(anyhook(&scratch), &RUN, &payload.to_string());
        assert!(is_denied(&output), "{cwd}: {output:?}");
    }
    // The agent's own folder was removed under it.
    let gone = scratch.project().join("gone");
    fs::create_dir(&gone).unwrap();
    let line = "cd \"$1\" && rmdir \"$1\" && shift && exec \"$@\"";
    let mut args = vec!["-c", line, "sh", gone.to_str().unwrap(), BIN];
    args.extend(RUN);
    let mut payload = payload(&scratch, "rm -rf /");
    payload["cwd"] = json!(gone);
    let output = run_at_once(scratch.command("/bin/sh"), &args, &payload.to_string());
    assert!(is_denied(&output), "{output:?}");
}

#[test]
fn the_guard_of_the_folder_the_agent_was_started_in_is_asked_too() {
    let scratch = trusted_project();
    let other = scratch.root().join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    for agent in ["claude-code", "codex", "qwen-code"] {
        let mut payload = payload(&scratch, "rm -rf /");
        payload["cwd"] = json!(other);
        let run = ["run", "--agent", agent, "--event", "PreToolUse"];
        let _ = fs::remove_file(scratch.project().join("ran"));
        run_at_once(anyhook(&scratch), &run, &payload.to_string());
        assert!(scratch.project().join("ran").exists(), "{agent}");
    }
}

fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_running(pid: &Path) -> bool {
    let pid = fs::read_to_string(pid).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.contains(" Z "))
}

fn start_hanging(scratch: &Scratch) -> Child {
    let mut child = anyhook(scratch).spawn(RUN).unwrap();
    let payload = dangerous(scratch);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(payload.as_bytes())
        .unwrap();
    child
}

#[test]
fn a_hook_does_not_outlive_a_dispatcher_that_was_killed() {
    if !cfg!(target_os = "linux") {
        return;
    }
    // A hook is watched from its sixth millisecond on, on a busy machine later.
    let script = "#!/bin/sh\ntrap '' HUP\necho $$ > own.tmp\nsleep 100 &\n\
                  echo $! > child\nsleep 1\nmv own.tmp own\nwait\n";
    for signal in ["KILL", "QUIT", "ABRT"] {
        let scratch = Scratch::new().unwrap();
        scratch
            .file(scratch.config().join("hooks.yaml"), MANIFEST)
            .unwrap();
        scratch
            .exec(scratch.config().join("guard.sh"), script)
            .unwrap();
        let mut child = start_hanging(&scratch);
        let (own, grandchild) = (
            scratch.project().join("own"),
            scratch.project().join("child"),
        );
        wait_for("the hook starts", || own.exists());
        assert!(is_running(&own) && is_running(&grandchild));
        let pid = child.id().to_string();
        Command::new("kill")
            .args(["-s", signal, &pid])
            .status()
            .unwrap();
        child.wait().unwrap();
        wait_for(signal, || !is_running(&own) && !is_running(&grandchild));
    }
}

#[test]
fn a_hook_does_not_outlive_a_dispatcher_that_is_killed_at_its_start() {
    if !cfg!(target_os = "linux") {
        return;
    }
    // Also one that has closed what it shares with the dispatcher.
    for closing in ["", "exec </dev/null >/dev/null 2>&1\n"] {
        // It is protected before it gets its input.
        let script = format!(
            "#!/bin/sh\ntrap '' HUP TERM\nsleep 100 &\necho $! > child\necho $$ > own\n\
             cat >/dev/null\n{closing}kill -9 $PPID\nwait\n"
        );
        let scratch = Scratch::new().unwrap();
        scratch
            .file(scratch.config().join("hooks.yaml"), MANIFEST)
            .unwrap();
        scratch
            .exec(scratch.config().join("guard.sh"), &script)
            .unwrap();
        start_hanging(&scratch).wait().unwrap();
        for pid in ["own", "child"] {
            let pid = scratch.project().join(pid);
            wait_for("the hook ends", || !is_running(&pid));
        }
    }
}

#[test]
fn a_detached_hook_outlives_its_dispatcher_and_nothing_else_is_left() {
    let scratch = Scratch::new().unwrap();
    let manifest = MANIFEST
        .replace("blocking: true", "blocking: false")
        .replace("command: ./guard.sh", "async: true, command: ./guard.sh");
    scratch
        .file(scratch.config().join("hooks.yaml"), &manifest)
        .unwrap();
    let script = "#!/bin/sh\nsleep 1\ntouch done\n";
    scratch
        .exec(scratch.config().join("guard.sh"), script)
        .unwrap();
    let mut child = start_hanging(&scratch);
    child.wait().unwrap();
    assert!(!scratch.project().join("done").exists());
    wait_for("the hook ends", || scratch.project().join("done").exists());
}

/// The one file in the folder of cached manifests.
fn cached_manifest(scratch: &Scratch) -> PathBuf {
    let entries = fs::read_dir(scratch.state().join("plans")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.remove(0)
}

/// What someone can do to the cache of a guard's manifest.
const TAMPERINGS: [&str; 8] = [
    "first line only",
    "cut",
    "emptied",
    "injected",
    "appended",
    "another manifest's",
    "key deleted",
    "key replaced",
];

fn tamper(scratch: &Scratch, how: &str) {
    let path = cached_manifest(scratch);
    let text = fs::read_to_string(&path).unwrap();
    let key = scratch.state().join("cache.key");
    let changed = match how {
        "first line only" => format!("{}\n", text.lines().next().unwrap()),
        "cut" => text.chars().take(text.len() / 2).collect(),
        "emptied" => String::new(),
        "injected" => text.replace("guard.sh", "pwned.sh"),
        "appended" => {
            let line = text.lines().last().unwrap();
            format!("{text}{}\n", line.replace("guard.sh", "pwned.sh"))
        }
        "another manifest's" => {
            let manifest = MANIFEST.replace("guard.sh", "pwned.sh");
            let other = Scratch::new().unwrap();
            other
                .file(other.config().join("hooks.yaml"), &manifest)
                .unwrap();
            // With the same state folder, so with the same key.
            let run = anyhook(&other).env("ANYHOOK_STATE_DIR", scratch.state());
            run.run(RUN, &dangerous(&other)).unwrap();
            let entries = fs::read_dir(scratch.state().join("plans")).unwrap();
            let mut paths = entries.map(|entry| entry.unwrap().path());
            let second = paths.find(|other| *other != path).unwrap();
            let text = fs::read_to_string(&second).unwrap();
            fs::remove_file(second).unwrap();
            text
        }
        _ => {
            fs::remove_file(&key).ok();
            if how == "key replaced" {
                fs::write(&key, [7; 32]).unwrap();
                fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
            }
            text.replace("guard.sh", "pwned.sh")
        }
    };
    fs::write(path, changed).unwrap();
}

#[test]
fn a_cached_manifest_that_was_changed_neither_disarms_a_guard_nor_runs() {
    for how in TAMPERINGS {
        for scope in ["user", "project"] {
            let scratch = if scope == "user" {
                let scratch = Scratch::new().unwrap();
                add_guard(&scratch, &scratch.config());
                scratch
            } else {
                trusted_project()
            };
            for folder in [scratch.config(), scratch.project().join(".anyhook")] {
                let script = "#!/bin/sh\n: > \"$ANYHOOK_PROJECT_DIR/pwned\"\n";
                scratch.exec(folder.join("pwned.sh"), script).unwrap();
            }
            assert!(is_denied(&run_dangerous(&scratch)));
            let before = fs::read(cached_manifest(&scratch)).unwrap();
            tamper(&scratch, how);
            let output = run_dangerous(&scratch);
            let shown = format!("{how} of {scope}: {output:?}");
            assert!(is_denied(&output), "{shown}");
            assert!(!scratch.project().join("pwned").exists(), "{shown}");
            // Told and recorded, unless it may be what anyhook itself has written: with
            // another key, or for another manifest in the same place.
            let is_told = output
                .stdout
                .contains("was changed by something other than anyhook");
            let may_be_ours = how.starts_with("key") || how.starts_with("another");
            assert_eq!(is_told, !may_be_ours, "{shown}");
            let journal = scratch.state().join("journal/events.jsonl");
            let last = fs::read_to_string(journal).unwrap();
            let last = last.lines().last().unwrap();
            assert_eq!(
                last.contains("was changed by something other"),
                is_told,
                "{shown}"
            );
            // Written again, and then used without a warning.
            if is_told {
                assert_eq!(
                    fs::read(cached_manifest(&scratch)).unwrap(),
                    before,
                    "{shown}"
                );
            }
            let output = run_dangerous(&scratch);
            assert!(
                is_denied(&output) && !output.stdout.contains("changed by"),
                "{output:?}"
            );
        }
    }
}

#[test]
fn a_prepared_state_folder_does_not_replace_a_users_guard() {
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.config());
    assert!(is_denied(&run_dangerous(&scratch)));
    // What a repository could contain: a state folder with its own valid cache.
    let mut copied = Command::new("cp");
    let evil = scratch.project().join("evil");
    copied.arg("-r").arg(scratch.state()).arg(&evil);
    assert!(copied.status().unwrap().success());
    let path = fs::read_dir(evil.join("plans"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{}\n", text.lines().next().unwrap())).unwrap();
    let run = anyhook(&scratch).env("ANYHOOK_STATE_DIR", &evil);
    let output = run.run(RUN, &dangerous(&scratch)).unwrap();
    assert!(is_denied(&output), "{output:?}");
}

#[test]
fn a_project_cannot_approve_itself() {
    let scratch = trusted_project();
    let mut copied = Command::new("cp");
    let evil = scratch.project().join("evil");
    copied.arg("-r").arg(scratch.state()).arg(&evil);
    assert!(copied.status().unwrap().success());
    fs::remove_dir_all(scratch.state()).unwrap();
    let by_link = Path::new("/proc/self/cwd/evil");
    for state in [
        evil.as_path(),
        by_link,
        &scratch.project().join("x/../evil"),
    ] {
        fs::create_dir_all(scratch.project().join("x")).unwrap();
        let run = anyhook(&scratch).env("ANYHOOK_STATE_DIR", state);
        let output = run.run(RUN, &dangerous(&scratch)).unwrap();
        let is_told = output.stdout.contains("could have written it");
        assert!(is_told, "{}: {output:?}", state.display());
        assert!(!scratch.project().join("ran").exists(), "{output:?}");
    }
}

#[test]
fn a_managed_manifest_has_no_cache_that_a_user_can_write() {
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.managed());
    assert!(is_denied(&run_dangerous(&scratch)));
    assert!(!scratch.state().join("plans").exists());
}

/// Variables that made a guard pass everything, or run something else.
fn hostile_environment(scratch: &Scratch) -> Vec<(&'static str, String)> {
    let file = |name: &str, text: &str| {
        let path = scratch
            .exec(scratch.root().join("evil").join(name), text)
            .unwrap();
        path.to_string_lossy().into_owned()
    };
    let pass = "#!/bin/sh\nexit 1\n";
    for program in ["grep", "sh", "env", "python3"] {
        file(&format!("bin/{program}"), pass);
    }
    let bin = scratch.root().join("evil/bin");
    let exit = file("exit.sh", "exit 0\n");
    let path = std::env::var("PATH").unwrap_or_default();
    vec![
        ("BASH_ENV", exit.clone()),
        ("ENV", exit),
        ("PATH", format!("{}:{path}", bin.display())),
        ("PATH", bin.to_string_lossy().into_owned()),
        ("BASH_FUNC_grep%%", "() { return 1; }".to_owned()),
        ("LD_PRELOAD", "/nonexistent/evil.so".to_owned()),
        ("LD_LIBRARY_PATH", "/nonexistent".to_owned()),
        ("SHELLOPTS", "noexec".to_owned()),
        ("IFS", "grep".to_owned()),
        ("PYTHONPATH", "/nonexistent".to_owned()),
        ("NODE_OPTIONS", "--require=/nonexistent".to_owned()),
        ("PERL5OPT", "-Mnonexistent".to_owned()),
        ("RUBYOPT", "-rnonexistent".to_owned()),
        ("GIT_DIR", "/nonexistent".to_owned()),
        ("HOME", scratch.project().to_string_lossy().into_owned()),
        ("TMPDIR", scratch.project().to_string_lossy().into_owned()),
        ("LC_ALL", "../../evil".to_owned()),
    ]
}

/// A guard that also tells what it was started with, in bash where there is one.
fn telling_guard() -> String {
    let shell = if Path::new("/bin/bash").exists() {
        "bash"
    } else {
        "sh"
    };
    let tell = ": > \"$ANYHOOK_PROJECT_DIR/ran\"\nenv > \"$ANYHOOK_PROJECT_DIR/environment\"\n";
    GUARD
        .replace("#!/bin/sh", &format!("#!/bin/{shell}"))
        .replace(": > \"$ANYHOOK_PROJECT_DIR/ran\"\n", tell)
}

#[test]
fn no_variable_disarms_a_managed_guard() {
    let scratch = Scratch::new().unwrap();
    let manifest = MANIFEST.replace("./guard.sh}", "./guard.sh, env: {OWN: value}}");
    scratch
        .file(scratch.managed().join("hooks.yaml"), &manifest)
        .unwrap();
    scratch
        .exec(scratch.managed().join("guard.sh"), &telling_guard())
        .unwrap();
    for (name, value) in hostile_environment(&scratch) {
        let invocation = anyhook(&scratch).env(name, &value).env("LANG", "C.UTF-8");
        let output = invocation.run(RUN, &dangerous(&scratch)).unwrap();
        assert!(is_denied(&output), "{name}: {output:?}");
        assert!(output.stdout.contains("guarded"), "{name}: {output:?}");
        let path = scratch.project().join("environment");
        let environment = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        assert!(!environment.contains("evil"), "{name}: {environment}");
        assert!(
            !environment.contains("nonexistent"),
            "{name}: {environment}"
        );
        let names: Vec<&str> = environment
            .lines()
            .map(|it| it.split('=').next().unwrap())
            .collect();
        let known = [
            "ANYHOOK_AGENT",
            "ANYHOOK_EVENT",
            "ANYHOOK_MANIFEST_DIR",
            "ANYHOOK_PROJECT_DIR",
            "HOME",
            "LANG",
            "LOGNAME",
            "NO_COLOR",
            "OLDPWD",
            "OWN",
            "PATH",
            "PWD",
            "PYTHONSAFEPATH",
            "SHLVL",
            "USER",
            "_",
        ];
        let unknown: Vec<_> = names.iter().filter(|name| !known.contains(name)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        for needed in ["HOME", "PATH", "USER", "LANG", "OWN"] {
            assert!(names.contains(&needed), "{name}: {needed} in {environment}");
        }
        assert!(!environment.contains(&format!("HOME={}", scratch.project().display())));
    }
}

#[test]
fn a_managed_command_is_found_on_the_path_of_the_system() {
    let scratch = Scratch::new().unwrap();
    hostile_environment(&scratch);
    let bin = scratch.root().join("evil/bin");
    for command in [
        "grep -q 'rm -rf' && exit 2",
        "env sh -c 'grep -q rm.-rf && exit 2'",
    ] {
        let manifest = MANIFEST.replace("./guard.sh", &format!("\"{command}\""));
        scratch
            .file(scratch.managed().join("hooks.yaml"), &manifest)
            .unwrap();
        let output = anyhook(&scratch)
            .env("PATH", &bin)
            .run(RUN, &dangerous(&scratch))
            .unwrap();
        assert!(is_denied(&output), "{command}: {output:?}");
    }
}

#[test]
fn variables_that_inject_code_disarm_no_guard() {
    for scope in ["user", "project"] {
        let scratch = if scope == "user" {
            Scratch::new().unwrap()
        } else {
            project()
        };
        let folder = if scope == "user" {
            scratch.config()
        } else {
            scratch.project().join(".anyhook")
        };
        add_guard(&scratch, &folder);
        scratch
            .exec(folder.join("guard.sh"), &telling_guard())
            .unwrap();
        if scope == "project" {
            anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
        }
        let injecting = [
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_grep%%",
            "LD_PRELOAD",
            "SHELLOPTS",
            "IFS",
        ];
        let variables = hostile_environment(&scratch);
        for (name, value) in variables
            .iter()
            .filter(|(name, _)| injecting.contains(name))
        {
            let invocation = anyhook(&scratch)
                .env(name, value)
                .env("VIRTUAL_ENV", "kept");
            let output = invocation.run(RUN, &dangerous(&scratch)).unwrap();
            assert!(is_denied(&output), "{name}: {output:?}");
            let environment = fs::read_to_string(scratch.project().join("environment")).unwrap();
            assert!(environment.contains("VIRTUAL_ENV=kept"), "{environment}");
        }
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
}

#[test]
fn a_script_that_others_can_write_does_not_run() {
    for scope in ["user", "managed"] {
        for fault in ["mode", "folder", "owner", "linked folder"] {
            let scratch = Scratch::new().unwrap();
            let folder = if scope == "user" {
                scratch.config()
            } else {
                scratch.managed()
            };
            let scripts = folder.join("scripts");
            let manifest = MANIFEST.replace("./guard.sh", "scripts/guard.sh");
            scratch.file(folder.join("hooks.yaml"), &manifest).unwrap();
            let script = scratch.exec(scripts.join("guard.sh"), GUARD).unwrap();
            assert!(is_denied(&run_dangerous(&scratch)), "{scope}");
            fs::remove_file(scratch.project().join("ran")).unwrap();
            let mode = |path: &Path, mode| {
                fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            };
            match fault {
                "mode" => mode(&script, 0o777),
                "folder" => mode(&scripts, 0o777),
                "owner" if !is_root() => {
                    eprintln!("skipped: only root can give a file away");
                    continue;
                }
                "owner" => chown(&script, Some(12345), None).unwrap(),
                _ => {
                    let elsewhere = scratch.root().join("elsewhere");
                    fs::create_dir(&elsewhere).unwrap();
                    fs::rename(&script, elsewhere.join("guard.sh")).unwrap();
                    symlink(elsewhere.join("guard.sh"), &script).unwrap();
                    mode(&elsewhere, 0o777);
                }
            }
            let output = run_dangerous(&scratch);
            assert!(
                !scratch.project().join("ran").exists(),
                "{scope} {fault}: {output:?}"
            );
            let is_told = ["others can write", "another user"];
            let is_told = is_told.iter().any(|part| output.stdout.contains(part));
            assert!(is_told, "{scope} {fault}: {output:?}");
        }
    }
}

#[test]
fn a_state_folder_of_another_user_is_not_believed() {
    for fault in ["mode", "owner"] {
        let scratch = trusted_project();
        assert!(is_denied(&run_dangerous(&scratch)));
        match fault {
            "mode" => {
                fs::set_permissions(scratch.state(), PermissionsExt::from_mode(0o777)).unwrap();
            }
            _ if !is_root() => {
                eprintln!("skipped: only root can give a folder away");
                continue;
            }
            _ => chown(scratch.state(), Some(12345), None).unwrap(),
        }
        fs::remove_file(scratch.project().join("ran")).unwrap();
        let output = run_dangerous(&scratch);
        assert!(
            !scratch.project().join("ran").exists(),
            "{fault}: {output:?}"
        );
        let state = scratch.state();
        assert!(
            output.stdout.contains(&*state.to_string_lossy()),
            "{fault}: {output:?}"
        );
        // The user's own guard needs no approval.
        add_guard(&scratch, &scratch.config());
        assert!(is_denied(&run_dangerous(&scratch)), "{fault}");
    }
}

#[test]
fn a_guard_decides_without_a_state_folder_that_can_be_written() {
    for fault in ["missing", "a file"] {
        let scratch = Scratch::new().unwrap();
        add_guard(&scratch, &scratch.config());
        fs::remove_dir_all(scratch.state()).unwrap();
        let mut state = scratch.state();
        if fault == "missing" {
            state = PathBuf::from("/proc/nonexistent/anyhook");
        } else {
            fs::write(&state, "").unwrap();
        }
        let run = anyhook(&scratch).env("ANYHOOK_STATE_DIR", &state);
        let output = run_at_once(run, &RUN, &dangerous(&scratch));
        assert!(is_denied(&output), "{fault}: {output:?}");
        assert!(
            output.stdout.contains("cannot be recorded"),
            "{fault}: {output:?}"
        );
    }
}

/// Many people keep `~/.config` in a repository, and a model can make it one.
#[test]
fn a_repository_around_the_users_own_config_folder_does_not_hide_it() {
    let policy = r#"{"allow_env_override": true}"#;
    let Some(machine) = LockedMachine::new(policy) else {
        return;
    };
    let scratch = &machine.scratch;
    let config = scratch.home().join(".config");
    add_guard(scratch, &config.join("anyhook"));
    fs::create_dir(config.join(".git")).unwrap();
    for folder in ["", "anyhook", "editor"] {
        let folder = config.join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut call = payload(scratch, "rm -rf /");
        call["cwd"] = folder.to_string_lossy().into();
        let home = format!("HOME={}", scratch.home().display());
        for variables in [vec![], vec![home]] {
            let output = machine.run_with(0, "", &variables, &call.to_string());
            assert!(is_denied(&output), "{folder:?} {variables:?}: {output:?}");
        }
    }
}

#[test]
fn a_locked_installation_ignores_the_environment() {
    let Some(machine) = LockedMachine::new("{}") else {
        return;
    };
    let scratch = &machine.scratch;
    add_guard(scratch, &scratch.home().join(".config/anyhook"));
    let empty = scratch.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let redirected = [
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "ANYHOOK_CONFIG_DIR",
        "ANYHOOK_STATE_DIR",
        "ANYHOOK_MANAGED_DIR",
    ];
    let mut cases: Vec<Vec<String>> = redirected
        .iter()
        .map(|name| vec![format!("{name}={}", empty.display())])
        .collect();
    cases.push(vec!["ANYHOOK=0".to_owned()]);
    cases.push(cases.concat());
    for variables in &cases {
        let output = machine.run(0, "", variables);
        assert!(is_denied(&output), "{variables:?}: {output:?}");
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "{variables:?}");
    }
    assert!(scratch.home().join(".local/state/anyhook").exists());
    // The administrator can leave the decision to the user.
    fs::write(machine.policy(), r#"{"allow_env_override": true}"#).unwrap();
    for variables in [
        "ANYHOOK=0".to_owned(),
        format!("ANYHOOK_CONFIG_DIR={}", empty.display()),
    ] {
        let output = machine.run(0, "", &[variables]);
        assert!(!is_denied(&output), "{output:?}");
    }
}

#[test]
fn a_managed_policy_that_cannot_be_read_locks_the_environment() {
    for kind in ODD_FILES.into_iter().chain(["syntax", "secret", "link"]) {
        let Some(machine) = LockedMachine::new(r#"{"allow_env_override": true}"#) else {
            return;
        };
        let scratch = &machine.scratch;
        add_guard(scratch, &scratch.root().join("etc/anyhook"));
        let off = ["ANYHOOK=0".to_owned()];
        assert!(!is_denied(&machine.run(0, "", &off)), "{kind}");
        let (mut user, mut setup, mut listener) = (0, "", None);
        match kind {
            "syntax" => fs::write(machine.policy(), "{").unwrap(),
            // Only root can read it, and the user is another one.
            "secret" => {
                if !Command::new("setpriv")
                    .arg("--version")
                    .output()
                    .is_ok_and(|it| it.status.success())
                {
                    eprintln!("skipped: there is no setpriv");
                    continue;
                }
                fs::set_permissions(machine.policy(), PermissionsExt::from_mode(0o600)).unwrap();
                fs::set_permissions(scratch.project(), PermissionsExt::from_mode(0o777)).unwrap();
                user = 12345;
            }
            // A folder that root has linked to is the administrator's as well.
            "link" => {
                setup = "mv /etc/anyhook /etc/real && ln -s real /etc/anyhook &&";
                fs::write(machine.policy(), "{}").unwrap();
            }
            _ => listener = put_odd_file(&machine.policy(), kind),
        }
        let output = machine.run(user, setup, &off);
        assert!(is_denied(&output), "{kind}: {output:?}");
        drop(listener);
    }
}

#[test]
fn a_full_or_read_only_disk_is_told_and_the_guard_decides() {
    let Some(machine) = LockedMachine::new("{}") else {
        return;
    };
    let scratch = &machine.scratch;
    let state = scratch.home().join(".local/state/anyhook");
    fs::create_dir_all(&state).unwrap();
    add_guard(scratch, &scratch.home().join(".config/anyhook"));
    let state = state.display();
    let tmpfs = format!("mount -t tmpfs -o size=64k,mode=700 tmpfs {state} &&");
    let full = format!("{tmpfs} {{ cat /dev/zero > {state}/x 2>/dev/null || true; }} &&");
    let read_only = format!("{tmpfs} mount -o remount,ro {state} &&");
    for setup in [full, read_only] {
        let output = machine.run(0, &setup, &[]);
        assert!(is_denied(&output), "{setup}: {output:?}");
        assert!(
            output.stdout.contains("cannot be recorded"),
            "{setup}: {output:?}"
        );
    }
}

#[test]
fn state_is_never_written_into_the_repository() {
    let variables = [
        "A=",
        "HOME=",
        "HOME=.",
        "XDG_STATE_HOME=.local",
        "ANYHOOK_STATE_DIR=x",
    ];
    for variable in variables {
        let Some(machine) = LockedMachine::new(r#"{"allow_env_override": true}"#) else {
            return;
        };
        let scratch = &machine.scratch;
        add_guard(scratch, &scratch.root().join("etc/anyhook"));
        let output = machine.run(0, "", &[variable.to_owned()]);
        assert!(is_denied(&output), "{variable}: {output:?}");
        let names = fs::read_dir(scratch.project()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["ran"], "{variable}");
        let journal = ".local/state/anyhook/journal/events.jsonl";
        assert!(scratch.home().join(journal).exists(), "{variable}");
    }
}

#[test]
fn without_any_home_there_are_no_hooks_of_the_user_and_that_is_told() {
    let Some(machine) = LockedMachine::new(r#"{"allow_env_override": true}"#) else {
        return;
    };
    let scratch = &machine.scratch;
    fs::write(scratch.root().join("etc/passwd"), "").unwrap();
    let manifest = MANIFEST.replace("./guard.sh", "touch pwned; exit 2");
    scratch
        .file(".config/anyhook/hooks.yaml", &manifest)
        .unwrap();
    let output = machine.run(0, "", &[]);
    assert_eq!(output.exit, Some(0));
    assert!(
        output.stdout.contains("your home folder is not known"),
        "{output:?}"
    );
    add_guard(scratch, &scratch.root().join("etc/anyhook"));
    assert!(is_denied(&machine.run(0, "", &[])));
    assert!(!scratch.project().join("pwned").exists());
    assert!(!scratch.project().join(".local").exists());
}
