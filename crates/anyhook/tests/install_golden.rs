//! What `install` writes into each agent's project: into an empty one, behind
//! hooks that are there, and between comments. Each case is a folder in
//! `agents/<slug>/install/` with `before/` and `after/`, the project's files.
//!
//! `UPDATE=1` rewrites `after/`; read the difference before you commit it.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::spec::Scope;
use anyhook_testkit::{ProcessOutput, Scratch};

type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    fn walk(base: &Path, folder: &Path, found: &mut Files) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            // In the home: where the program itself is kept.
            if path.ends_with(".local") {
                continue;
            }
            if path.is_dir() {
                walk(base, &path, found);
            } else {
                let name = path.strip_prefix(base).unwrap().to_string_lossy();
                found.insert(name.replace('\\', "/"), fs::read(&path).unwrap());
            }
        }
    }
    let mut found = Files::new();
    walk(folder, folder, &mut found);
    found
}

fn put(folder: &Path, files: &Files) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn texts(files: &Files) -> BTreeMap<&str, String> {
    files
        .iter()
        .map(|(name, bytes)| (name.as_str(), String::from_utf8_lossy(bytes).into_owned()))
        .collect()
}

fn anyhook(scratch: &Scratch, arguments: &[&str]) -> ProcessOutput {
    scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .run(arguments, "")
        .unwrap()
}

fn folder(agent: &str) -> PathBuf {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../anyhook-agents/agents");
    agents.join(agent).join("install")
}

#[test]
fn every_agent_has_its_cases() {
    for adapter in anyhook_agents::matrix::clients() {
        for case in ["empty", "existing", "comments"] {
            let path = folder(&adapter.spec.id).join(case);
            assert!(path.is_dir(), "{} is missing", path.display());
        }
    }
}

#[test]
fn golden() {
    let update = std::env::var_os("UPDATE").is_some();
    for agent in anyhook_agents::matrix::clients().map(|adapter| adapter.spec.id.as_ref()) {
        for entry in fs::read_dir(folder(agent)).unwrap().flatten() {
            let case = entry.path();
            let name = format!("{agent}/{}", entry.file_name().to_string_lossy());
            let before = files(&case.join("before"));
            let scratch = Scratch::new().unwrap();
            // An agent without a file in projects gets the bridge in the user's.
            let spec = &anyhook_agents::get(agent).unwrap().spec;
            let has_project = spec.is_written_at(Scope::Project);
            let (project, scope) = if has_project {
                (scratch.project(), "project")
            } else {
                (scratch.home(), "user")
            };
            put(&project, &before);
            // Few entries are enough to see where they go; the empty project has them all.
            let events = if before.is_empty() {
                "all"
            } else {
                "before_tool_execute"
            };
            let install = [
                "install",
                "--agent",
                agent,
                "--events",
                events,
                "--scope",
                scope,
                "--command",
                "search",
            ];

            let dry = anyhook(&scratch, &[&install[..], &["--dry-run", "--diff"]].concat());
            assert_eq!(
                texts(&files(&project)),
                texts(&before),
                "{name}: --dry-run wrote"
            );
            let ran = anyhook(&scratch, &install);
            assert_eq!(ran.exit, Some(0), "{name}: {}{}", ran.stdout, ran.stderr);
            let after = files(&project);
            assert_ne!(
                texts(&after),
                texts(&before),
                "{name}: nothing was installed"
            );
            assert!(
                dry.stdout.contains("+++ "),
                "{name}: no diff: {}",
                dry.stdout
            );

            anyhook(&scratch, &install);
            assert_eq!(
                texts(&files(&project)),
                texts(&after),
                "{name}: twice is not once"
            );

            if update {
                let _ = fs::remove_dir_all(case.join("after"));
                put(&case.join("after"), &after);
            }
            // Windows has other command lines; the way back is the same.
            if !cfg!(windows) {
                let expected = files(&case.join("after"));
                assert_eq!(
                    texts(&after),
                    texts(&expected),
                    "{name}; UPDATE=1 takes it over"
                );
            }

            let ran = anyhook(&scratch, &["uninstall", "--agent", agent, "--scope", scope]);
            assert_eq!(ran.exit, Some(0), "{name}: {}", ran.stderr);
            assert_eq!(files(&project), before, "{name}: something stayed");
            let made = fs::read_dir(&project).unwrap().flatten();
            let made: Vec<_> = made.filter(|entry| entry.file_name() != ".local").collect();
            assert!(
                !before.is_empty() || made.is_empty(),
                "{name}: a folder stayed: {made:?}"
            );
        }
    }
}
