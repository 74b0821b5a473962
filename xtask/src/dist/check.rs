//! Installs what `dist/` has, as users do, and checks that it works: also after the
//! folder from which it was installed is gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::output_of;
use crate::run::succeeds;

/// Two packagings of the same program must have the same bytes.
pub(super) fn is_same(first: &Path, second: &Path) -> Result<(), String> {
    let (first, second) = (files(first, first)?, files(second, second)?);
    if first.keys().ne(second.keys()) {
        return Err("two runs wrote different files".to_owned());
    }
    let differing = first
        .iter()
        .filter(|(name, bytes)| second.get(*name) != Some(bytes));
    let differing: Vec<&str> = differing.map(|(name, _)| name.as_str()).collect();
    if !differing.is_empty() {
        return Err(format!("two runs differ in {}", differing.join(", ")));
    }
    println!("dist: two runs gave the same {} files", first.len());
    Ok(())
}

fn files(base: &Path, folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)
        .map_err(|error| error.to_string())?
        .flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(base, &path)?);
        } else {
            let name = path.strip_prefix(base).unwrap_or(&path);
            let bytes = fs::read(&path).map_err(|error| error.to_string())?;
            found.insert(name.to_string_lossy().into_owned(), bytes);
        }
    }
    Ok(found)
}

/// Every channel whose tool is here; the others are named.
pub(super) fn channels(dist: &Path) -> Result<(), String> {
    let dist = &dist.canonicalize().map_err(|error| error.to_string())?;
    let channels: [(&str, &[&str], Install); 4] = [
        ("archive", &["tar"], from_archive),
        ("pip", &["python3"], from_wheel),
        ("npm", &["npm", "node"], from_npm),
        ("dpkg", &["dpkg"], from_deb),
    ];
    for (name, tools, install) in channels {
        let is_missing = |tool: &&&str| !succeeds(Command::new(tool).arg("--version"));
        if let Some(tool) = tools.iter().find(is_missing) {
            println!("dist: {name}: skipped, `{tool}` is not here");
            continue;
        }
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let root = scratch
            .path()
            .canonicalize()
            .map_err(|error| error.to_string())?;
        let place = root.join("place");
        fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let installed = install(dist, &place).and_then(|program| match program {
            Some(program) => try_program(&root, &place, &program).map(|()| true),
            None => Ok(false),
        });
        let is_tried = installed.map_err(|error| format!("{name}: {error}"))?;
        println!(
            "dist: {name}: {}",
            if is_tried {
                "--version, demo, install, and the entries after its folder was deleted"
            } else {
                "skipped, it needs root"
            }
        );
    }
    Ok(())
}

/// Installs into a folder; the program, or `None` if that is not possible here.
type Install = fn(&Path, &Path) -> Result<Option<PathBuf>, String>;

/// The files in `dist/` itself that end like this.
fn packages(dist: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dist).map_err(|error| error.to_string())?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(format!("`dist/` has no *{ending}"));
    }
    Ok(found)
}

fn from_archive(dist: &Path, place: &Path) -> Result<Option<PathBuf>, String> {
    let host = super::host_triple()?;
    let archive = packages(dist, &format!("{host}.tar.gz"))?;
    output_of(
        Command::new("tar")
            .arg("-xzf")
            .args(archive)
            .current_dir(place),
    )?;
    let name = format!("anyhook-{}-{host}/anyhook", env!("CARGO_PKG_VERSION"));
    Ok(Some(place.join(name)))
}

fn from_wheel(dist: &Path, place: &Path) -> Result<Option<PathBuf>, String> {
    let venv = place.join("venv");
    output_of(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let pip = venv.join("bin/pip");
    output_of(
        Command::new(pip)
            .args(["install", "--no-index", "--disable-pip-version-check"])
            .args(packages(dist, ".whl")?),
    )?;
    Ok(Some(venv.join("bin/anyhook")))
}

fn from_npm(dist: &Path, place: &Path) -> Result<Option<PathBuf>, String> {
    fs::write(place.join("package.json"), "{}").map_err(|error| error.to_string())?;
    output_of(
        Command::new("npm")
            .args(["install", "--no-audit", "--no-fund"])
            .args(packages(dist, ".tgz")?)
            .current_dir(place),
    )?;
    Ok(Some(place.join("node_modules/.bin/anyhook")))
}

fn from_deb(dist: &Path, place: &Path) -> Result<Option<PathBuf>, String> {
    let is_root = output_of(Command::new("id").arg("-u"))?;
    if is_root.trim_ascii() != b"0" {
        return Ok(None);
    }
    // A system of its own, so that this one stays as it is.
    let root = place.join("root");
    for folder in ["updates", "info"] {
        let folder = root.join("var/lib/dpkg").join(folder);
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    // A program that is not static uses this system's library.
    let library = "Package: libc6\nStatus: install ok installed\nVersion: 99\nArchitecture: all\n\
                   Maintainer: none\nDescription: none\n";
    fs::write(root.join("var/lib/dpkg/status"), library).map_err(|error| error.to_string())?;
    let mut option = std::ffi::OsString::from("--root=");
    option.push(&root);
    output_of(
        Command::new("dpkg")
            .arg(option)
            .arg("-i")
            .args(packages(dist, ".deb")?),
    )?;
    Ok(Some(root.join("usr/bin/anyhook")))
}

/// A user's guard that denies every call of a tool.
const MANIFEST: &str = "spec: hooks/1.0\nhooks:\n  - event: before_tool_execute\n    blocking: true\n    handler: {type: command, command: \"echo the guard says no >&2; exit 2\"}\n";

fn try_program(root: &Path, place: &Path, program: &Path) -> Result<(), String> {
    let (home, project) = (root.join("home"), root.join("project"));
    let settings = home.join(".config/anyhook");
    for folder in [&settings, &project.join(".git")] {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    fs::write(settings.join("hooks.yaml"), MANIFEST).map_err(|error| error.to_string())?;
    let path = std::env::var("PATH").unwrap_or_default();
    let command = |program: &Path| {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&project);
        command.env("HOME", &home).env("PATH", &path);
        command
    };
    let text = |arguments: &[&str]| {
        let output = output_of(command(program).args(arguments))?;
        Ok::<_, String>(String::from_utf8_lossy(&output).into_owned())
    };
    for (arguments, expected) in [
        (["--version"].as_slice(), env!("CARGO_PKG_VERSION")),
        (&["demo"], "what it does"),
        (
            &["install", "--agent", "claude-code", "--scope", "user"],
            "installed",
        ),
        (&["install", "--agent", "claude-code"], "installed"),
    ] {
        let found = text(arguments)?;
        if !found.contains(expected) {
            return Err(format!("{arguments:?} printed no `{expected}`:\n{found}"));
        }
    }
    fs::remove_dir_all(place).map_err(|error| error.to_string())?;
    for folder in [&home, &project] {
        let line = entry(&folder.join(".claude/settings.json"))?;
        let call = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
        let script = format!("{line} <<'END'\n{call}\nEND\n");
        let answer = output_of(command(Path::new("/bin/sh")).arg("-c").arg(script))?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if !answer.contains("the guard says no") {
            return Err(format!("`{line}` answered `{answer}`"));
        }
    }
    Ok(())
}

/// The command line of the entry before a tool runs.
fn entry(settings: &Path) -> Result<String, String> {
    let text = fs::read_to_string(settings).map_err(|error| error.to_string())?;
    let settings: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let line = settings.pointer("/hooks/PreToolUse/0/hooks/0/command");
    let line = line.and_then(Value::as_str).ok_or("there is no entry")?;
    Ok(line.to_owned())
}
