//! Which program the entries start: it is still there when the place from which
//! `install` ran is gone, and a shared file does nothing where it is not.

#![cfg(unix)] // entries for POSIX shells
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::spec::Scope;
use anyhook_model::Format;
use anyhook_testkit::reference_model::{Action, react};
use anyhook_testkit::{Invocation, ProcessOutput, Scratch};
use serde_json::{Value, json};

const SYSTEM_PATH: &str = "/usr/bin:/bin";

/// A call of a program, which has to find a lasting place for itself.
fn invocation(scratch: &Scratch, program: &Path) -> Invocation {
    scratch
        .command(program)
        .env("ANYHOOK_PROGRAM", "")
        .env("PATH", SYSTEM_PATH)
}

fn run(scratch: &Scratch, program: &Path, line: &str) -> ProcessOutput {
    let words: Vec<&str> = line.split(' ').collect();
    invocation(scratch, program).run(words, "").unwrap()
}

fn succeed(scratch: &Scratch, program: &Path, line: &str) -> ProcessOutput {
    let output = run(scratch, program, line);
    assert_eq!(output.exit, Some(0), "{line}: {output:?}");
    output
}

/// The program that is tested, at another path.
fn put_program(path: &Path) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let built = env!("CARGO_BIN_EXE_anyhook");
    if fs::hard_link(built, path).is_err() {
        fs::copy(built, path).unwrap();
    }
    path.to_owned()
}

fn kept(scratch: &Scratch) -> PathBuf {
    scratch.home().join(".local/share/anyhook/bin/anyhook")
}

/// The command lines for this system in a config file.
fn command_lines(path: &Path) -> Vec<String> {
    fn collect(value: &Value, lines: &mut Vec<String>) {
        match value {
            Value::String(line) if line.contains("anyhook run --agent") => lines.push(line.clone()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, lines)),
            Value::Object(map) => map
                .iter()
                .filter(|(key, _)| !key.to_lowercase().contains("windows") && *key != "powershell")
                .for_each(|(_, item)| collect(item, lines)),
            _ => {}
        }
    }
    let mut lines = Vec::new();
    if path.is_dir() {
        let scripts = fs::read_dir(path).unwrap().flatten();
        lines.extend(scripts.map(|entry| entry.path().to_string_lossy().into_owned()));
    } else if let Some(format) = Format::from_path(&path.to_string_lossy()) {
        let text = fs::read_to_string(path).unwrap();
        let document = anyhook_edit::get(&text, format, &[]).unwrap();
        collect(&document.unwrap(), &mut lines);
    }
    lines
}

fn settings(scratch: &Scratch, is_user: bool) -> Vec<String> {
    let base = if is_user {
        scratch.home()
    } else {
        scratch.project()
    };
    command_lines(&base.join(".claude/settings.json"))
}

/// Runs a command line as an agent does.
fn fire(scratch: &Scratch, line: &str, payload: &Value) -> ProcessOutput {
    let shell = scratch.command("/bin/sh").env("PATH", SYSTEM_PATH);
    let shell = shell.env("ANYHOOK_PROGRAM", "");
    shell.run(["-c", line], &payload.to_string()).unwrap()
}

fn claude_call(scratch: &Scratch, id: &str) -> Value {
    json!({"session_id": "s", "transcript_path": "/t", "cwd": scratch.project(),
        "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "rm -rf /"}, "tool_use_id": id})
}

/// A user's guard that counts how often it was asked.
fn write_guard(scratch: &Scratch) {
    let manifest = "spec: hooks/1.0\nhooks:\n  - name: guard\n    event: before_tool_execute\n    blocking: true\n    handler: {type: command, command: \"echo asked >> $HOME/asked; echo no >&2; exit 2\"}\n";
    fs::write(scratch.config().join("hooks.yaml"), manifest).unwrap();
}

fn times_asked(scratch: &Scratch) -> usize {
    let asked = fs::read_to_string(scratch.home().join("asked"));
    asked.unwrap_or_default().lines().count()
}

#[test]
fn a_program_in_a_place_that_goes_away_is_copied_and_answers_afterwards() {
    let places = [
        ("outside/node_modules/@anyhook/linux-x64/bin/anyhook", None),
        ("outside/venv/bin/anyhook", Some("outside/venv/pyvenv.cfg")),
        ("home/.cache/uv/x/bin/anyhook", None),
        (
            "home/build/release/anyhook",
            Some("home/build/CACHEDIR.TAG"),
        ),
        (
            "home/src/target/release/anyhook",
            Some("home/src/target/release/.cargo-lock"),
        ),
        ("outside/anyhook", None),
        ("project/tools/anyhook", None),
    ];
    for (place, mark) in places {
        let scratch = Scratch::new().unwrap();
        write_guard(&scratch);
        fs::create_dir_all(scratch.project().join(".git")).unwrap();
        let program = put_program(&scratch.root().join(place));
        if let Some(mark) = mark {
            fs::write(scratch.root().join(mark), "").unwrap();
        }
        for (options, is_user) in [("--scope user", true), ("--scope project", false)] {
            let line = format!("install --agent claude-code {options}");
            let output = succeed(&scratch, &program, &line);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(said.contains("start a copy"), "{place}: {said}");
            for line in settings(&scratch, is_user) {
                assert!(!line.contains(place), "{place}: {line}");
            }
        }
        fs::remove_file(&program).unwrap();
        for is_user in [true, false] {
            let lines = settings(&scratch, is_user);
            let output = fire(
                &scratch,
                lines.first().unwrap(),
                &claude_call(&scratch, "t1"),
            );
            assert!(
                output.stdout.contains("deny"),
                "{place}: {lines:?} {output:?}"
            );
        }
        // Both entries delivered the same call.
        assert_eq!(times_asked(&scratch), 1, "{place}");
    }
}

#[test]
fn a_program_that_lasts_is_named_by_its_path_and_not_copied() {
    let scratch = Scratch::new().unwrap();
    let program = put_program(&scratch.home().join("bin/anyhook"));
    succeed(
        &scratch,
        &program,
        "install --agent claude-code --scope user",
    );
    let line = settings(&scratch, true).swap_remove(0);
    assert!(line.starts_with(&*program.to_string_lossy()), "{line}");
    assert!(!kept(&scratch).exists());
    // A shared file finds it through a link.
    succeed(&scratch, &program, "install --agent claude-code");
    assert_eq!(fs::read_link(kept(&scratch)).unwrap(), program);
    let line = settings(&scratch, false).swap_remove(0);
    assert!(!line.contains(&*scratch.home().to_string_lossy()), "{line}");
    write_guard(&scratch);
    let output = fire(&scratch, &line, &claude_call(&scratch, "t1"));
    assert!(output.stdout.contains("deny"), "{output:?}");
}

#[test]
fn the_last_uninstall_removes_what_was_kept() {
    let scratch = Scratch::new().unwrap();
    let program = put_program(&scratch.root().join("outside/anyhook"));
    for scope in ["user", "project"] {
        for agent in ["claude-code", "cursor", "cline"] {
            succeed(
                &scratch,
                &program,
                &format!("install --agent {agent} --scope {scope}"),
            );
        }
    }
    let copy = kept(&scratch);
    for line in [
        "uninstall --scope user",
        "uninstall --agent claude-code",
        "uninstall --agent cline",
    ] {
        succeed(&scratch, &program, line);
        assert!(copy.is_file(), "{line}");
    }
    // The copy removes itself, too.
    let output = succeed(&scratch, &copy, "uninstall");
    assert!(output.stdout.contains("Deleted"), "{output:?}");
    assert!(!scratch.home().join(".local/share/anyhook").exists());
}

#[test]
fn a_shared_file_that_was_already_there_keeps_the_program() {
    let scratch = Scratch::new().unwrap();
    let program = put_program(&scratch.root().join("outside/anyhook"));
    succeed(&scratch, &program, "install --agent claude-code");
    let shared = fs::read(scratch.project().join(".claude/settings.json")).unwrap();
    succeed(&scratch, &program, "uninstall");
    assert!(!kept(&scratch).exists());
    // As it comes with a clone: nothing to write, but the program is kept for it.
    fs::create_dir_all(scratch.project().join(".claude")).unwrap();
    fs::write(scratch.project().join(".claude/settings.json"), shared).unwrap();
    let output = succeed(&scratch, &program, "install --agent claude-code");
    assert!(output.stdout.contains("already installed"), "{output:?}");
    assert!(kept(&scratch).is_file());
    succeed(&scratch, &program, "install --agent cursor --scope user");
    succeed(&scratch, &program, "uninstall --scope user");
    assert!(kept(&scratch).is_file(), "the shared entry still needs it");
}

#[test]
fn the_next_install_renews_the_copy() {
    let scratch = Scratch::new().unwrap();
    let program = put_program(&scratch.root().join("outside/anyhook"));
    let copy = kept(&scratch);
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::write(&copy, "an old one").unwrap();
    succeed(
        &scratch,
        &program,
        "install --agent claude-code --scope user",
    );
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert_eq!(size(&copy), size(&program));
    // Also when the program has a place of its own now.
    let lasting = put_program(&scratch.home().join("bin/anyhook"));
    succeed(&scratch, &lasting, "install --agent cursor --scope user");
    assert_eq!(fs::read_link(&copy).unwrap(), lasting);
    let report = run(&scratch, &lasting, "doctor --json").json().unwrap();
    assert_eq!(report["fired"], report["answered"], "{report}");
    fs::remove_file(&lasting).unwrap();
    let report = run(&scratch, &program, "doctor --json").json().unwrap();
    assert!(report.to_string().contains("kept-program-gone"), "{report}");
}

#[test]
fn a_data_folder_elsewhere_is_found_without_its_variable() {
    let scratch = Scratch::new().unwrap();
    write_guard(&scratch);
    let program = put_program(&scratch.root().join("outside/anyhook"));
    let data = scratch.home().join("data");
    let install = |line: &str| {
        let invocation = invocation(&scratch, &program).env("XDG_DATA_HOME", &data);
        let output = invocation.run(line.split(' '), "").unwrap();
        assert_eq!(output.exit, Some(0), "{line}: {output:?}");
    };
    install("install --agent claude-code");
    assert!(data.join("anyhook/bin/anyhook").is_file());
    let line = settings(&scratch, false).swap_remove(0);
    let output = fire(&scratch, &line, &claude_call(&scratch, "t1"));
    assert!(output.stdout.contains("deny"), "{output:?}");
    install("uninstall");
    assert!(!data.exists());
    assert!(kept(&scratch).symlink_metadata().is_err());
}

#[test]
fn nothing_is_installed_if_the_program_cannot_be_kept() {
    let scratch = Scratch::new().unwrap();
    let program = put_program(&scratch.root().join("outside/anyhook"));
    let blocked = scratch.file("not-a-folder", "").unwrap();
    for scope in ["user", "project"] {
        let output = invocation(&scratch, &program)
            .env("XDG_DATA_HOME", &blocked)
            .run(["install", "--agent", "claude-code", "--scope", scope], "")
            .unwrap();
        assert_ne!(output.exit, Some(0), "{output:?}");
        assert!(output.stderr.contains("could not keep"), "{output:?}");
    }
    assert!(!scratch.home().join(".claude").exists());
    assert!(!scratch.project().join(".claude").exists());
}

#[test]
fn a_bare_name_is_written_only_if_it_means_this_program() {
    let scratch = Scratch::new().unwrap();
    let program = put_program(&scratch.home().join("bin/anyhook"));
    let install = |path: &str| {
        let arguments = ["install", "--agent", "claude-code", "--command", "name"];
        let invocation = invocation(&scratch, &program).env("PATH", path);
        invocation.run(arguments, "").unwrap()
    };
    let output = install(SYSTEM_PATH);
    assert!(output.stderr.contains("not on PATH"), "{output:?}");
    let other = scratch.exec("other/anyhook", "#!/bin/sh\n").unwrap();
    let folder = other.parent().unwrap().display();
    let output = install(&format!("{folder}:{SYSTEM_PATH}"));
    assert!(output.stderr.contains("not this program"), "{output:?}");
    assert!(!scratch.project().join(".claude").exists());
    let folder = program.parent().unwrap().display();
    assert_eq!(install(&format!("{folder}:{SYSTEM_PATH}")).exit, Some(0));
    assert_eq!(
        settings(&scratch, false)[0],
        "anyhook run --agent claude-code"
    );
}

/// For every agent: an entry of a shared file that finds no program is the same to
/// the client as no entry.
#[test]
fn a_shared_file_does_nothing_where_there_is_no_anyhook() {
    let mut fired = 0;
    // An agent that cannot take the search gets the name: it reports a failed hook and goes on.
    let shared = |adapter: &&anyhook_agents::Adapter| {
        let spec = &adapter.spec;
        spec.is_written_at(Scope::Project) && !spec.launch.fails_on_variables
    };
    for adapter in anyhook_agents::matrix::clients().filter(shared) {
        let agent = adapter.spec.id.as_ref();
        let scratch = Scratch::new().unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_anyhook"));
        let output = scratch
            .command(&program)
            .run(["install", "--agent", agent, "--json"], "")
            .unwrap();
        assert_eq!(output.exit, Some(0), "{agent}: {output:?}");
        fs::remove_dir_all(scratch.home().join(".local/share")).unwrap();
        let report = output.json().unwrap();
        let files = report.pointer("/agents/0/files").and_then(Value::as_array);
        let files = files
            .unwrap()
            .iter()
            .filter_map(|file| file["path"].as_str());
        let events = report.pointer("/agents/0/events").and_then(Value::as_array);
        for file in files {
            let path = Path::new(file);
            let lines = match path.parent() {
                Some(folder) if folder.ends_with("hooks") && path.extension().is_none() => {
                    vec![file.to_owned()]
                }
                _ => command_lines(path),
            };
            for line in lines {
                fired += 1;
                // Larger than the buffer of a pipe: the agent's write must succeed.
                let payload = json!({"large": "x".repeat(300_000)});
                let output = fire(&scratch, &line, &payload);
                let silent = (output.exit, &*output.stdout, &*output.stderr);
                assert_eq!(silent, (Some(0), "", ""), "{agent}: {line}");
                for event in events.unwrap().iter().filter_map(Value::as_str) {
                    let reaction = react(agent, event, &json!({}), &output.answer(), false);
                    assert_ne!(reaction.action, Action::Blocked, "{agent} {event}");
                    assert!(!reaction.session_ends, "{agent} {event}");
                }
            }
        }
    }
    assert!(fired > 100, "{fired}");
}
