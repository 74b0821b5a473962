//! What consent covers: content, worktrees, and what it cannot cover.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhook_testkit::{ProcessOutput, Scratch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::support::{GUARD, MANIFEST, anyhook, is_denied, payload};

/// One change of a project after it was trusted.
#[derive(Debug, Deserialize)]
struct Tampering {
    command: String,
    args: Option<Vec<String>>,
    /// Of the handler.
    #[serde(default)]
    env: Map<String, Value>,
    cwd: Option<String>,
    /// Files of the project when it is trusted.
    files: Vec<String>,
    /// `main` of `package.json`.
    package_main: Option<String>,
    /// The file that is written afterwards.
    change: String,
    /// What the listing says about it; if absent, the hook does not run.
    named: Option<String>,
}

impl Tampering {
    fn try_out(&self) -> Result<(), String> {
        let scratch = Scratch::new().unwrap();
        scratch.file(".git/HEAD", "").unwrap();
        for file in &self.files {
            scratch.exec(file, "#!/bin/sh\n").unwrap();
        }
        if let Some(main) = &self.package_main {
            let package = json!({ "main": main }).to_string();
            scratch.file("package.json", &package).unwrap();
        }
        let mut handler = json!({"type": "command", "command": self.command, "env": self.env});
        if let Some(cwd) = &self.cwd {
            handler["cwd"] = cwd.as_str().into();
        }
        if let Some(args) = &self.args {
            handler["args"] = json!(args);
        }
        let manifest = json!({"spec": "hooks/1.0", "hooks": [
            {"event": "before_tool_execute", "blocking": true, "handler": handler}]});
        let manifest = manifest.to_string();
        scratch.file(".anyhook/hooks.json", &manifest).unwrap();
        let trust = |arguments: &[&str]| {
            let output = anyhook(&scratch).run(arguments, "").unwrap();
            output.json().map_err(|_| format!("{output:?}"))
        };
        let listing = trust(&["trust", "--yes", "--json"])?;
        if listing["trusted"] != true {
            return Err(format!("not trusted: {listing}"));
        }
        let evil = "#!/bin/sh\n: > \"$ANYHOOK_PROJECT_DIR/evil\"\n";
        scratch.exec(&self.change, evil).unwrap();
        let is_noticed = trust(&["trust", "--json"])?["trusted"] == false;
        let uncovered = listing["manifests"][0]["hooks"][0]["uncovered"].clone();
        match &self.named {
            None if !is_noticed => Err(format!("runs; named: {uncovered}")),
            None => {
                let payload = payload(&scratch, "ls").to_string();
                let run = ["run", "--agent", "claude-code"];
                let output = anyhook(&scratch).run(run, &payload).unwrap();
                if scratch.project().join("evil").exists() {
                    return Err(format!("has run: {output:?}"));
                }
                let is_told = output.stdout.contains("changed since it was trusted");
                is_told.then_some(()).ok_or(format!("silent: {output:?}"))
            }
            Some(_) if is_noticed => Err("does not run; no words are needed".to_owned()),
            Some(words) => {
                let is_named = uncovered.to_string().contains(&words.replace('"', "\\\""));
                is_named.then_some(()).ok_or(format!("named: {uncovered}"))
            }
        }
    }
}

#[test]
fn every_tampering_is_stopped_or_named_in_the_listing() {
    let rows = include_str!("tamperings.jsonl").lines();
    let rows: Vec<Tampering> = rows.map(|row| serde_json::from_str(row).unwrap()).collect();
    assert!(rows.len() >= 100, "{}", rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let why = row.try_out().err()?;
            Some(format!("`{}` + {}: {why}", row.command, row.change))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A repository with the guard, committed and trusted, and `git` in it.
struct Repository(Scratch);

impl Repository {
    fn new() -> Self {
        Self::with_manifest(MANIFEST)
    }

    fn with_manifest(manifest: &str) -> Self {
        let scratch = Scratch::new().unwrap();
        scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
        scratch.exec(".anyhook/guard.sh", GUARD).unwrap();
        let repository = Self(scratch);
        repository.git(&["init", "-q"]);
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "guard"]);
        repository.anyhook(&["trust", "--yes"]);
        repository
    }

    fn git(&self, arguments: &[&str]) {
        self.git_in(&self.0.project(), arguments);
    }

    fn git_in(&self, folder: &Path, arguments: &[&str]) {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let output = std::process::Command::new("git")
            .current_dir(folder)
            .env("HOME", self.0.home())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(identity)
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }

    /// A new worktree at a path below the scratch folder.
    fn worktree(&self, path: &str) -> PathBuf {
        let path = self.0.root().join(path);
        self.git(&["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
        path
    }

    fn anyhook(&self, arguments: &[&str]) -> ProcessOutput {
        let output = anyhook(&self.0).run(arguments, "").unwrap();
        assert_eq!(output.exit, Some(0), "{output:?}");
        output
    }

    fn fail_closed(&self, is_on: bool) {
        let policy = self.0.managed().join("policy.json");
        std::fs::write(policy, json!({ "fail_closed": is_on }).to_string()).unwrap();
    }

    /// `anyhook run` in a folder for a command that the guard denies.
    fn call_in(&self, folder: &Path) -> ProcessOutput {
        call_in(&self.0, folder)
    }

    /// In this folder the guard holds.
    fn holds_in(&self, folder: &Path) {
        let output = self.call_in(folder);
        assert!(
            reason(&output).contains("guarded"),
            "{folder:?}: {output:?}"
        );
    }

    /// In this folder the guard is lost: the user gets a notice, and under
    /// `fail_closed` the call is denied, with a reason that does not say how to switch
    /// that off.
    fn is_reported_in(&self, folder: &Path, words: &str) {
        self.fail_closed(false);
        let output = self.call_in(folder);
        assert!(!is_denied(&output), "{folder:?}: {output:?}");
        assert!(message(&output).contains(words), "{folder:?}: {output:?}");
        self.fail_closed(true);
        let output = self.call_in(folder);
        assert!(is_denied(&output), "{folder:?}: {output:?}");
        says_nothing_to_the_model(&output);
        self.fail_closed(false);
    }
}

fn call_in(scratch: &Scratch, folder: &Path) -> ProcessOutput {
    call_in_with(scratch, folder, "rm -rf /")
}

fn call_in_with(scratch: &Scratch, folder: &Path, command: &str) -> ProcessOutput {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let mut payload = payload(scratch, command);
    payload["cwd"] = folder.to_string_lossy().into();
    // A notice is shown once in a session.
    payload["session_id"] = format!("s{}", CALLS.fetch_add(1, Ordering::Relaxed)).into();
    let run = ["run", "--agent", "claude-code"];
    let anyhook = anyhook(scratch).dir(scratch.home());
    anyhook.run(run, &payload.to_string()).unwrap()
}

fn reason(output: &ProcessOutput) -> String {
    let answer = output.json().unwrap_or_default();
    let reason = answer.pointer("/hookSpecificOutput/permissionDecisionReason");
    reason
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn message(output: &ProcessOutput) -> String {
    let answer = output.json().unwrap_or_default();
    answer["systemMessage"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn says_nothing_to_the_model(output: &ProcessOutput) {
    let reason = reason(output);
    assert!(reason.contains("ask the user"), "{output:?}");
    for word in ["anyhook trust", "untrust", "uninstall", "ANYHOOK"] {
        assert!(!reason.contains(word), "{word}: {output:?}");
    }
}

#[test]
fn a_new_worktree_of_a_trusted_project_has_its_guard() {
    let repository = Repository::new();
    let project = repository.0.project();
    std::fs::create_dir_all(project.join("src")).unwrap();
    for path in ["tree", "home/a b/tree", "project/.agent/worktrees/x"] {
        let tree = repository.worktree(path);
        std::fs::create_dir_all(tree.join("src/deep")).unwrap();
        repository.holds_in(&tree);
        repository.holds_in(&tree.join("src/deep"));
        repository.fail_closed(true);
        repository.holds_in(&tree);
        repository.fail_closed(false);
    }
    // The guard of a tree inside the project ran once, for the tree.
    let _ = std::fs::remove_file(project.join("ran"));
    repository.holds_in(&project.join(".agent/worktrees/x"));
    assert!(!project.join("ran").exists());
    // A path through a symbolic link is the same tree.
    let link = repository.0.root().join("link");
    std::os::unix::fs::symlink(repository.0.root().join("tree"), &link).unwrap();
    repository.holds_in(&link);
    // After a move that git knows of.
    repository.git(&["worktree", "move", "../tree", "../moved"]);
    repository.holds_in(&repository.0.root().join("moved"));
    repository.holds_in(&project);
}

#[test]
fn a_worktree_that_differs_from_what_was_trusted_is_reported() {
    let repository = Repository::new();
    let tree = repository.worktree("tree");
    let (manifest, guard) = (
        tree.join(".anyhook/hooks.yaml"),
        tree.join(".anyhook/guard.sh"),
    );
    std::fs::write(&guard, "#!/bin/sh\nexit 0\n").unwrap();
    repository.is_reported_in(&tree, "changed since it was trusted");
    std::fs::remove_file(&guard).unwrap();
    repository.is_reported_in(&tree, "changed since it was trusted");
    repository.git_in(&tree, &["checkout", "-q", "."]);
    repository.holds_in(&tree);
    std::fs::write(&manifest, HARMLESS).unwrap();
    repository.is_reported_in(&tree, "not what was trusted for this repository");
    std::fs::write(&manifest, "hooks: 7\n").unwrap();
    repository.is_reported_in(&tree, "not what was trusted for this repository");
    std::fs::remove_dir_all(tree.join(".anyhook")).unwrap();
    repository.is_reported_in(&tree, "does not have it");
    repository.is_reported_in(&tree.join("gone/too"), "does not have it");
    // A copy that git does not know.
    repository.git_in(&tree, &["checkout", "-q", "."]);
    let moved = repository.0.root().join("moved");
    std::fs::rename(&tree, &moved).unwrap();
    repository.is_reported_in(&moved, "does not know this worktree");
    repository.git_in(&moved, &["worktree", "repair"]);
    repository.holds_in(&moved);
    repository.git(&["worktree", "remove", "--force", "../moved"]);
    // One that was pruned, and whose folder is still there.
    let tree = repository.worktree("pruned");
    std::fs::remove_dir_all(repository.0.project().join(".git/worktrees")).unwrap();
    repository.is_reported_in(&tree, "does not know this worktree");
}

#[test]
fn damage_to_the_record_of_a_repository_is_noticed_in_its_worktrees() {
    let repository = Repository::new();
    let tree = repository.worktree("tree");
    let file = consent_file(&repository.0);
    let consent = std::fs::read(&file).unwrap();
    std::fs::write(&file, "{").unwrap();
    repository.is_reported_in(&tree, "cannot be read");
    std::fs::remove_file(&file).unwrap();
    repository.is_reported_in(&tree, "is gone");
    std::fs::write(&file, consent).unwrap();
    repository.holds_in(&tree);
    for entry in std::fs::read_dir(repository.0.state().join("trust/index")).unwrap() {
        std::fs::write(entry.unwrap().path(), "[").unwrap();
    }
    repository.is_reported_in(&tree, "cannot be read");
    std::fs::remove_dir_all(tree.join(".anyhook")).unwrap();
    repository.is_reported_in(&tree, "is not known");
    // Consent by the path itself does not need the index.
    repository.holds_in(&repository.0.project());
    let doctor = anyhook(&repository.0)
        .run(["doctor", "--json"], "")
        .unwrap();
    assert!(doctor.stdout.contains("trust-damaged"), "{doctor:?}");
}

#[test]
fn a_folder_cannot_borrow_the_consent_of_a_repository() {
    let repository = Repository::new();
    let tree = repository.worktree("tree");
    let common = repository.0.project().join(".git");
    let hostile = repository.0.root().join("hostile");
    std::fs::create_dir_all(hostile.join(".anyhook")).unwrap();
    for file in ["hooks.yaml", "guard.sh"] {
        let copy = hostile.join(".anyhook").join(file);
        std::fs::copy(tree.join(".anyhook").join(file), copy).unwrap();
    }
    let data = hostile.join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("commondir"), common.to_str().unwrap()).unwrap();
    let own = hostile.join(".git").to_string_lossy().into_owned();
    std::fs::write(data.join("gitdir"), own).unwrap();
    let claims = [
        std::fs::read_to_string(tree.join(".git")).unwrap(),
        format!("gitdir: {}\n", common.display()),
        "gitdir: data\n".to_owned(),
    ];
    for claim in claims {
        std::fs::write(hostile.join(".git"), &claim).unwrap();
        repository.is_reported_in(&hostile, "does not know this worktree");
        assert!(!hostile.join("ran").exists(), "{claim}");
    }
    std::fs::remove_file(hostile.join(".git")).unwrap();
    std::os::unix::fs::symlink(&common, hostile.join(".git")).unwrap();
    repository.is_reported_in(&hostile, "does not know this worktree");
    assert!(!hostile.join("ran").exists());
}

#[test]
fn a_worktree_inside_its_project_keeps_the_projects_guard() {
    let repository = Repository::new();
    let tree = repository.worktree("project/trees/x");
    repository.fail_closed(true);
    // How often the guard runs for a call that it allows.
    let runs = || {
        let folders = [&repository.0.project(), &tree];
        let output = call_in_with(&repository.0, &tree, "ls");
        assert!(!is_denied(&output), "{output:?}");
        let marks = folders.map(|root| root.join("ran"));
        let count = marks.iter().filter(|path| path.exists()).count();
        for mark in marks {
            let _ = std::fs::remove_file(mark);
        }
        count
    };
    repository.holds_in(&tree);
    runs();
    assert_eq!(runs(), 1);
    // Its own copy is disarmed, so the project's runs.
    std::fs::write(tree.join(".anyhook/guard.sh"), "#!/bin/sh\nexit 0\n").unwrap();
    repository.holds_in(&tree);
    assert_eq!(runs(), 1);
    std::fs::write(tree.join(".anyhook/hooks.yaml"), HARMLESS).unwrap();
    repository.holds_in(&tree);
    std::fs::remove_dir_all(tree.join(".anyhook")).unwrap();
    repository.holds_in(&tree);
    // Trusted on its own as well, it still runs once.
    repository.git_in(&tree, &["checkout", "-q", "."]);
    repository.anyhook(&["trust", "--yes", tree.to_str().unwrap()]);
    repository.holds_in(&tree);
    runs();
    assert_eq!(runs(), 1);
}

#[test]
fn trees_of_bare_repositories_and_separate_data_are_known() {
    let repository = Repository::new();
    let root = repository.0.root().to_owned();
    // A bare repository: consent in one tree counts in the others.
    repository.git_in(&root, &["clone", "-q", "--bare", "project", "bare.git"]);
    let bare = root.join("bare.git");
    for name in ["one", "two"] {
        let path = root.join(name);
        repository.git_in(
            &bare,
            &["worktree", "add", "-q", "--detach", path.to_str().unwrap()],
        );
    }
    let (one, two) = (root.join("one"), root.join("two"));
    let output = repository.call_in(&two);
    assert!(message(&output).contains("not trusted yet"), "{output:?}");
    repository.anyhook(&["trust", "--yes", one.to_str().unwrap()]);
    repository.holds_in(&one);
    repository.holds_in(&two);
    // The data of a repository elsewhere.
    repository.git_in(
        &root,
        &["clone", "-q", "--separate-git-dir=data", "project", "main"],
    );
    let main = root.join("main");
    repository.anyhook(&["trust", "--yes", main.to_str().unwrap()]);
    repository.git_in(&main, &["worktree", "add", "-q", "--detach", "../three"]);
    repository.holds_in(&main);
    repository.holds_in(&root.join("three"));
    // A submodule in a worktree: the guard of the parent holds in it.
    repository.git_in(&root, &["clone", "-q", "project", "library"]);
    let add = ["submodule", "--quiet", "add", "../library", "lib"];
    repository.git(&add);
    repository.git(&["commit", "-qm", "library"]);
    let tree = repository.worktree("four");
    repository.git_in(&tree, &["submodule", "--quiet", "update", "--init"]);
    repository.holds_in(&tree.join("lib"));
    std::fs::remove_dir_all(tree.join(".anyhook")).unwrap();
    std::fs::remove_dir_all(tree.join("lib/.anyhook")).unwrap();
    repository.is_reported_in(&tree.join("lib"), "does not have it");
}

#[test]
fn trust_in_a_worktree_is_shown_and_withdrawn_with_the_repositorys() {
    let repository = Repository::new();
    let tree = repository.worktree("tree");
    let shown = repository.anyhook(&["trust", tree.to_str().unwrap()]);
    assert!(
        shown
            .stdout
            .contains("which is trusted for this repository"),
        "{shown:?}"
    );
    let list = repository
        .anyhook(&["trust", "--list", "--json"])
        .json()
        .unwrap();
    assert_eq!(list["trusted"].as_array().unwrap().len(), 1);
    let common = repository.0.project().join(".git");
    assert_eq!(list["trusted"][0]["repository"], json!(common));
    let untrust = repository.anyhook(&["untrust", tree.to_str().unwrap()]);
    let manifest = repository.0.project().join(".anyhook/hooks.yaml");
    let advice = format!("`anyhook untrust {}`", manifest.display());
    assert!(untrust.stdout.contains(&advice), "{untrust:?}");
    repository.holds_in(&tree);
    repository.anyhook(&["untrust", manifest.to_str().unwrap()]);
    let output = repository.call_in(&tree);
    assert!(message(&output).contains("not trusted yet"), "{output:?}");
}

/// A manifest that guards nothing.
const HARMLESS: &str = "spec: hooks/1.0\n\
    hooks: [{event: session_end, handler: {type: command, command: 'true'}}]\n";

const BLOCKING_MANIFEST: &str = "spec: hooks/1.0\n\
    hooks:\n\
    \x20 - name: guard\n\
    \x20   event: before_tool_execute\n\
    \x20   matcher: shell\n\
    \x20   blocking: true\n\
    \x20   on_failure: block\n\
    \x20   handler: {type: command, command: ./guard.sh}\n";

/// Ways in which a trusted guard gets lost, with the notice to the user.
type Loss = (&'static str, fn(&Scratch), &'static str);

const LOSSES: [Loss; 14] = [
    (
        "the manifest is deleted",
        |scratch| remove(scratch, ".anyhook/hooks.yaml"),
        "is gone",
    ),
    (
        "its folder is deleted",
        |scratch| {
            std::fs::remove_dir_all(scratch.project().join(".anyhook")).unwrap();
        },
        "is gone",
    ),
    (
        "it is renamed",
        |scratch| {
            let folder = scratch.project().join(".anyhook");
            std::fs::rename(folder.join("hooks.yaml"), folder.join("hooks.txt")).unwrap();
        },
        "is gone",
    ),
    (
        "it is a dangling link",
        |scratch| {
            remove(scratch, ".anyhook/hooks.yaml");
            let path = scratch.project().join(".anyhook/hooks.yaml");
            std::os::unix::fs::symlink("nowhere", path).unwrap();
        },
        "it is a link to a file that does not exist",
    ),
    (
        "it has changed",
        |scratch| {
            scratch.file(".anyhook/hooks.yaml", HARMLESS).unwrap();
        },
        "changed since it was trusted",
    ),
    (
        "it is broken",
        |scratch| {
            scratch.file(".anyhook/hooks.yaml", "hooks: 7\n").unwrap();
        },
        "changed since it was trusted",
    ),
    (
        "it has become a folder",
        |scratch| {
            remove(scratch, ".anyhook/hooks.yaml");
            std::fs::create_dir(scratch.project().join(".anyhook/hooks.yaml")).unwrap();
        },
        "is not used",
    ),
    (
        "its script is deleted",
        |scratch| remove(scratch, ".anyhook/guard.sh"),
        "changed since",
    ),
    (
        "its script has changed",
        |scratch| {
            scratch
                .exec(".anyhook/guard.sh", "#!/bin/sh\nexit 0\n")
                .unwrap();
        },
        "changed since it was trusted",
    ),
    (
        "its consent is damaged",
        |scratch| {
            std::fs::write(consent_file(scratch), "{\"manifest\": \"").unwrap();
        },
        "cannot be read",
    ),
    (
        "its consent is a folder",
        |scratch| {
            let file = consent_file(scratch);
            std::fs::remove_file(&file).unwrap();
            std::fs::create_dir(&file).unwrap();
        },
        "cannot be read",
    ),
    (
        "its consent is a pipe",
        |scratch| {
            let file = consent_file(scratch);
            std::fs::remove_file(&file).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&file).status();
            assert!(made.unwrap().success());
        },
        "cannot be read",
    ),
    (
        "its consent is deleted",
        |scratch| {
            std::fs::remove_file(consent_file(scratch)).unwrap();
        },
        "the record of its approval is gone",
    ),
    (
        "its consent and the index are damaged",
        |scratch| {
            std::fs::write(consent_file(scratch), "{").unwrap();
            let index = std::fs::read_dir(scratch.state().join("trust/index")).unwrap();
            for entry in index.flatten() {
                std::fs::write(entry.path(), "{").unwrap();
            }
        },
        "cannot be read",
    ),
];

fn remove(scratch: &Scratch, path: &str) {
    std::fs::remove_file(scratch.project().join(path)).unwrap();
}

fn consent_file(scratch: &Scratch) -> PathBuf {
    let mut files = std::fs::read_dir(scratch.state().join("trust"))
        .unwrap()
        .flatten();
    let file = files.find(|file| file.path().extension().is_some_and(|end| end == "json"));
    file.unwrap().path()
}

#[test]
fn a_trusted_guard_that_is_lost_is_always_reported() {
    for (name, lose, words) in LOSSES {
        let repository = Repository::new();
        let project = repository.0.project();
        std::fs::create_dir_all(project.join("src")).unwrap();
        lose(&repository.0);
        for folder in [&project, &project.join("src")] {
            repository.fail_closed(false);
            let output = repository.call_in(folder);
            assert!(!is_denied(&output), "{name}: {output:?}");
            assert!(message(&output).contains(words), "{name}: {output:?}");
        }
        repository.is_reported_in(&project, words);
    }
}

#[test]
fn a_lost_guard_with_on_failure_block_blocks_its_calls_and_no_others() {
    for (name, lose, words) in LOSSES {
        let repository = Repository::with_manifest(BLOCKING_MANIFEST);
        let project = repository.0.project();
        let tree = repository.worktree("tree");
        lose(&repository.0);
        let output = repository.call_in(&project);
        assert!(is_denied(&output), "{name}: {output:?}");
        assert!(message(&output).contains(words), "{name}: {output:?}");
        says_nothing_to_the_model(&output);
        let mut other = payload(&repository.0, "");
        other["tool_name"] = "Read".into();
        other["tool_input"] = json!({"file_path": "/x"});
        let run = ["run", "--agent", "claude-code"];
        let output = anyhook(&repository.0).run(run, &other.to_string()).unwrap();
        assert!(!is_denied(&output), "{name}: {output:?}");
        // The worktree still has what was trusted.
        if !name.starts_with("its consent") {
            repository.holds_in(&tree);
        }
        std::fs::remove_dir_all(tree.join(".anyhook")).unwrap();
        if !name.ends_with("the index are damaged") {
            assert!(is_denied(&repository.call_in(&tree)), "{name}");
        }
    }
}

/// A place for approvals that is missing is not an empty one: what was approved
/// may have been deleted.
#[test]
fn deleting_all_records_of_approval_does_not_weaken_fail_closed() {
    for (name, manifest) in [("whole", MANIFEST), ("broken", "hooks: 7\n")] {
        for folder in ["trust", ""] {
            let repository = Repository::new();
            let scratch = &repository.0;
            scratch.file(".anyhook/hooks.yaml", manifest).unwrap();
            std::fs::remove_dir_all(scratch.state().join(folder)).unwrap();
            repository.is_reported_in(&scratch.project(), "not trusted yet");
            repository.fail_closed(true);
            let output = repository.call_in(&scratch.project());
            assert!(is_denied(&output), "{name} {folder}: {output:?}");
            // Who says that nothing is trusted here is believed.
            repository.anyhook(&["untrust"]);
            let output = repository.call_in(&scratch.project());
            assert!(!is_denied(&output), "{name} {folder}: {output:?}");
            assert!(message(&output).contains("not trusted yet"), "{output:?}");
        }
    }
}

/// Where anyhook was installed and nothing approved, a repository with hooks of its
/// own is no guard that was lost.
#[test]
fn after_installation_a_project_that_was_never_trusted_blocks_nothing() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".anyhook/hooks.yaml", MANIFEST).unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    std::fs::remove_dir_all(scratch.state()).unwrap();
    let install = ["install", "--agent", "claude-code", "--yes"];
    assert_eq!(anyhook(&scratch).run(install, "").unwrap().exit, Some(0));
    let policy = scratch.managed().join("policy.json");
    std::fs::write(policy, json!({ "fail_closed": true }).to_string()).unwrap();
    let output = call_in(&scratch, &scratch.project());
    assert!(!is_denied(&output), "{output:?}");
    assert!(message(&output).contains("not trusted yet"), "{output:?}");
}

#[test]
fn the_advice_to_untrust_what_is_gone_works() {
    let scratch = Scratch::new().unwrap();
    let project = scratch.root().join("it's a project");
    std::fs::create_dir_all(project.join(".anyhook")).unwrap();
    std::fs::write(project.join(".anyhook/hooks.yaml"), MANIFEST).unwrap();
    let trust = ["trust", "--yes", project.to_str().unwrap()];
    assert_eq!(anyhook(&scratch).run(trust, "").unwrap().exit, Some(0));
    std::fs::remove_dir_all(project.join(".anyhook")).unwrap();
    let notice = message(&call_in(&scratch, &project));
    let advice = notice
        .split('`')
        .find(|part| part.starts_with("anyhook untrust"));
    let arguments = advice.unwrap().strip_prefix("anyhook ").unwrap();
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_anyhook"));
    let output = scratch.command("sh").run(["-c", &line], "").unwrap();
    assert!(output.stdout.contains("no longer run"), "{output:?}");
    assert_eq!(message(&call_in(&scratch, &project)), "");
    assert_eq!(
        anyhook(&scratch)
            .run(["trust", "--list"], "")
            .unwrap()
            .stdout,
        "Nothing is trusted.\n"
    );
}

#[test]
fn a_guard_above_the_repository_or_outside_of_any_is_missed_too() {
    let scratch = Scratch::new().unwrap();
    let outer = scratch.project();
    scratch.file(".anyhook/hooks.yaml", MANIFEST).unwrap();
    scratch.exec(".anyhook/guard.sh", GUARD).unwrap();
    scratch.file("inner/.git/HEAD", "").unwrap();
    let trust = ["trust", "--yes"];
    assert_eq!(anyhook(&scratch).run(trust, "").unwrap().exit, Some(0));
    assert!(is_denied(&call_in(&scratch, &outer.join("inner"))));
    std::fs::remove_dir_all(outer.join(".anyhook")).unwrap();
    for folder in [
        outer.clone(),
        outer.join("inner"),
        outer.join("inner/not/there"),
    ] {
        let output = call_in(&scratch, &folder);
        assert!(
            message(&output).contains("is gone"),
            "{folder:?}: {output:?}"
        );
    }
}

#[test]
fn consent_of_an_older_version_still_counts_and_is_completed() {
    let repository = Repository::new();
    let file = consent_file(&repository.0);
    let mut consent: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    consent.as_object_mut().unwrap().remove("repository");
    std::fs::write(&file, consent.to_string()).unwrap();
    std::fs::remove_dir_all(repository.0.state().join("trust/index")).unwrap();
    let tree = repository.worktree("tree");
    repository.holds_in(&repository.0.project());
    let output = repository.call_in(&tree);
    assert!(message(&output).contains("not trusted yet"), "{output:?}");
    repository.anyhook(&["trust"]);
    repository.holds_in(&tree);
}

#[test]
fn a_file_that_changes_while_its_hook_runs_makes_the_run_a_failure() {
    let script = "#!/bin/sh\n\
        cat >/dev/null\n\
        cp .anyhook/guard.sh .anyhook/other\n\
        mv .anyhook/other .anyhook/guard.sh\n\
        exit 0\n";
    for (manifest, fail_closed, denies) in [
        (MANIFEST, false, false),
        (MANIFEST, true, true),
        (BLOCKING_MANIFEST, false, true),
    ] {
        let repository = Repository::with_manifest(manifest);
        repository.0.exec(".anyhook/guard.sh", script).unwrap();
        repository.anyhook(&["trust", "--yes"]);
        repository.fail_closed(fail_closed);
        let output = repository.call_in(&repository.0.project());
        assert!(
            message(&output).contains("was changed while it ran"),
            "{output:?}"
        );
        assert_eq!(is_denied(&output), denies, "{output:?}");
    }
    // A deny of whatever ran still counts.
    let repository = Repository::new();
    let script = script.replace("exit 0", "exit 2");
    repository.0.exec(".anyhook/guard.sh", &script).unwrap();
    repository.anyhook(&["trust", "--yes"]);
    assert!(is_denied(&repository.call_in(&repository.0.project())));
}

/// An attacker who exchanges the script all the time.
#[test]
fn a_script_that_is_exchanged_all_the_time_never_decides() {
    let repository = Repository::new();
    repository.fail_closed(true);
    let folder = repository.0.project().join(".anyhook");
    let (good, evil) = (folder.join("good"), folder.join("evil"));
    std::fs::copy(folder.join("guard.sh"), &good).unwrap();
    std::fs::copy(folder.join("guard.sh"), &evil).unwrap();
    std::fs::write(&evil, "#!/bin/sh\nexit 0\n").unwrap();
    let is_over = AtomicBool::new(false);
    let allowed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = folder.join("guard.sh");
            while !is_over.load(Ordering::Relaxed) {
                // The script is one of the two inodes, in turns.
                for other in [&evil, &good] {
                    let aside = folder.join("aside");
                    let _ = std::fs::rename(&guard, &aside);
                    let _ = std::fs::rename(other, &guard);
                    let _ = std::fs::rename(&aside, other);
                }
            }
        });
        let calls = (0..60).filter(|_| !is_denied(&repository.call_in(&repository.0.project())));
        let allowed = calls.count();
        is_over.store(true, Ordering::Relaxed);
        allowed
    });
    assert_eq!(allowed, 0);
}

#[test]
fn the_listing_shows_what_an_http_hook_sends() {
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{"event": "session_start", "handler": {
        "type": "http", "url": "https://example.com/hook", "allowed_env_vars": ["SECRET_KEY"],
        "headers": {"Authorization": "Bearer $SECRET_KEY", "X-Team": "blue"}}}]});
    scratch
        .file(".anyhook/hooks.json", &manifest.to_string())
        .unwrap();
    let invocation = anyhook(&scratch).env("SECRET_KEY", "very-secret");
    let output = invocation.run(["trust"], "").unwrap();
    for part in [
        "header  Authorization: Bearer $SECRET_KEY",
        "header  X-Team: blue",
        "$SECRET_KEY",
    ] {
        assert!(output.stdout.contains(part), "{part}: {output:?}");
    }
    assert!(
        output.stdout.contains("sends   the value of $SECRET_KEY"),
        "{output:?}"
    );
    assert!(!output.stdout.contains("very-secret"), "{output:?}");
    let json = anyhook(&scratch)
        .run(["trust", "--json"], "")
        .unwrap()
        .json()
        .unwrap();
    let hook = &json["manifests"][0]["hooks"][0];
    assert_eq!(hook["allowed_env_vars"], json!(["SECRET_KEY"]));
    assert_eq!(hook["headers"][0], "Authorization: Bearer $SECRET_KEY");
}

/// What `run` opens does not depend on how many projects are trusted.
#[test]
fn many_trusted_projects_do_not_make_a_call_slower() {
    let repository = Repository::new();
    repository.fail_closed(true);
    let trust = repository.0.state().join("trust");
    let measure = || {
        let times = (0..7).map(|_| {
            let begun = Instant::now();
            repository.holds_in(&repository.0.project());
            begun.elapsed()
        });
        times.min().unwrap()
    };
    let few = measure();
    let consent = std::fs::read_to_string(consent_file(&repository.0)).unwrap();
    std::fs::create_dir_all(trust.join("index")).unwrap();
    for n in 0..10_000 {
        let other = consent.replace("/project/", &format!("/project{n}/"));
        std::fs::write(trust.join(format!("{n:032x}.json")), &other).unwrap();
        let entry = json!({"manifests": [format!("/project{n}/.anyhook/hooks.yaml")]});
        std::fs::write(
            trust.join(format!("index/{n:032x}.json")),
            entry.to_string(),
        )
        .unwrap();
    }
    let many = measure();
    assert!(
        many < few * 3 + Duration::from_millis(20),
        "{few:?} and {many:?}"
    );
}
