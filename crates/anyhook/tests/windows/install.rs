//! Into the agents' files and out again, byte for byte.

use std::path::Path;

use anyhook_agents::matrix::clients;

use crate::support::{MANIFEST, run, text, trusted_project};

/// Every file below a folder, with its content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((text(&path), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn install_answers_and_uninstall_leaves_every_byte() {
    let scratch = trusted_project(MANIFEST);
    let settings = "{\r\n  // mine\r\n  \"model\": \"x\"\r\n}\r\n";
    let settings_file = scratch.home().join(".claude/settings.json");
    scratch.file(&settings_file, settings).unwrap();
    let before = (files(&scratch.project()), files(&scratch.home()));
    let agents = clients().filter(|adapter| {
        let mut files = adapter.spec.files.iter();
        files.any(|file| file.path.starts_with("~/"))
    });
    let agents: Vec<&str> = agents
        .flat_map(|adapter| ["--agent", adapter.spec.id.as_ref()])
        .collect();
    let with = |command: &'static str| [&[command, "--yes", "--scope", "user"], &*agents].concat();
    let installed = run(&scratch, &with("install"), "");
    assert_eq!(installed.exit, Some(0), "{installed:?}");
    let written = std::fs::read_to_string(&settings_file).unwrap();
    assert!(
        written.contains("anyhook.exe run --agent claude-code"),
        "{written}"
    );
    assert!(
        !written.contains("\\\\"),
        "one path for every shell: {written}"
    );
    let diagnosed = run(&scratch, &["doctor", "--json"], "");
    for code in ["bridge-dead", "deny-lost"] {
        assert!(!diagnosed.stdout.contains(code), "{}", diagnosed.stdout);
    }
    let removed = run(&scratch, &with("uninstall"), "");
    assert_eq!(removed.exit, Some(0), "{removed:?}");
    let after = (files(&scratch.project()), files(&scratch.home()));
    assert_eq!(before, after);
}
