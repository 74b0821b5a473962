//! The many names of one file on Windows: none of them is a way around a guard, and none
//! makes something trusted or the user's own.

use anyhook_agents::matrix::clients;
use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent};
use anyhook_testkit::Scratch;
use serde_json::json;

use crate::support::{MANIFEST, anyhook, decision, run, text, trusted_project};

/// What a guard of the program says about a file that the agent reads or writes.
fn decision_about(scratch: &Scratch, tool: &str, path: &str) -> Option<Decision> {
    let adapter = clients().next().unwrap();
    let mut event = HookEvent {
        event: "before_tool_execute".to_owned(),
        session_id: Some("names".to_owned()),
        cwd: Some(text(&scratch.project())),
        ..HookEvent::default()
    };
    let input = json!({"path": path, "content": "x"});
    event.data.insert(field::TOOL_NAME.into(), json!(tool));
    event.data.insert(field::TOOL_INPUT.into(), input);
    let encoded = adapter.encode(&event, None).unwrap();
    let (slug, native) = (adapter.spec.id.as_ref(), encoded.native_event.as_str());
    let arguments = ["run", "--agent", slug, "--event", native];
    let output = run(scratch, &arguments, &encoded.payload.to_string());
    let decoded = adapter.decode(&encoded.payload, Some(native)).unwrap();
    let exit = output.exit.unwrap();
    let (stdout, stderr) = (&output.stdout, &output.stderr);
    let read = adapter.decode_answer(&decoded.event, native, stdout, stderr, exit);
    read.response.decision
}

fn guarded_project(guard: &str) -> Scratch {
    let manifest = MANIFEST
        .replace(r#""matcher": "shell", "#, "")
        .replace(r".anyhook\\guard.cmd", guard);
    trusted_project(&manifest)
}

#[test]
fn every_name_of_a_file_is_guarded() {
    let scratch = guarded_project("anyhook guard paths --forbid .env --read-only Secrets");
    let project = text(&scratch.project());
    let (drive, rest) = project.split_once(':').unwrap();
    let slashes = rest.replace('\\', "/");
    for path in [
        ".env".to_owned(),
        ".ENV".to_owned(),
        ".env.".to_owned(),
        ".env . ".to_owned(),
        ".env::$DATA".to_owned(),
        ".env:x".to_owned(),
        "ENV~1".to_owned(),
        r"sub/..\.env".to_owned(),
        format!(r"{project}\.env"),
        format!(r"\\?\{project}\.env"),
        format!(r"\\.\{project}\.Env"),
        format!(r"\\localhost\{drive}${rest}\.env"),
        format!("/{}{slashes}/.env", drive.to_lowercase()),
        format!("{}:{slashes}/.env", drive.to_lowercase()),
    ] {
        let decided = decision_about(&scratch, "file_write", &path);
        assert_eq!(decided, Some(Decision::Deny), "{path}");
    }
    for path in [
        r"secrets\a".to_owned(),
        r"SECRETS.\a".to_owned(),
        format!(r"{}\secrets\a", project.to_uppercase()),
    ] {
        let decided = decision_about(&scratch, "file_write", &path);
        assert_eq!(decided, Some(Decision::Deny), "{path}");
    }
    for path in ["env", "x.env.txt", "NUL", r"secret\a"] {
        let decided = decision_about(&scratch, "file_write", path);
        assert_ne!(decided, Some(Decision::Deny), "{path}");
    }
}

#[test]
fn no_name_leads_to_the_hooks() {
    let scratch = guarded_project("anyhook guard self");
    for path in [
        r".anyhook\hooks.json",
        ".ANYHOOK/Hooks.json",
        r".anyhook.\hooks.json",
        r".anyhook\hooks.json::$DATA",
        r"ANYHOO~1\HOOKS~1.JSO",
        r".anyhook::$INDEX_ALLOCATION\hooks.json",
    ] {
        let decided = decision_about(&scratch, "file_write", path);
        assert_eq!(decided, Some(Decision::Deny), "{path}");
    }
}

#[test]
fn a_command_for_any_shell_is_guarded() {
    let scratch = guarded_project("anyhook guard filesystem");
    let project = text(&scratch.project());
    for adapter in clients() {
        for command in [
            r"rd /s /q C:\Windows",
            r"Remove-Item -Recurse -Force C:\Windows",
        ] {
            let slug = &adapter.spec.id;
            let event = crate::support::shell_call(command, &project);
            let encoded = adapter.encode(&event, None).unwrap();
            let payload = encoded.payload.to_string().to_lowercase();
            let decided = decision(&scratch, adapter, command, &project);
            // A tool that names its shell is read as that shell alone.
            let names_shell = payload.contains("bash") || payload.contains("powershell");
            if !names_shell {
                assert_eq!(decided, Some(Decision::Deny), "{slug}: {command}");
            }
        }
    }
}

/// Runs a call with a hook of these words, after a change of the project.
fn decision_after(command: &str, change: impl Fn(&Scratch)) -> Option<Decision> {
    let scratch = trusted_project(&MANIFEST.replace(r".anyhook\\guard.cmd", command));
    let adapter = clients().next().unwrap();
    let project = text(&scratch.project());
    let decided = decision(&scratch, adapter, "rm -rf x", &project);
    assert_eq!(
        decided,
        Some(Decision::Deny),
        "{command}, as it was trusted"
    );
    change(&scratch);
    decision(&scratch, adapter, "dir", &project)
}

#[test]
fn what_a_line_names_by_a_variable_or_without_an_ending_is_covered() {
    let deny = "@exit /b 2\r\n";
    for command in [
        r".ANYHOOK\\GUARD.CMD",
        r"call .anyhook\\guard && rem",
        r#"\"%ANYHOOK_PROJECT_DIR%\\.anyhook\\guard.cmd\" && rem"#,
    ] {
        let changed = |scratch: &Scratch| {
            scratch.file(".anyhook/guard.cmd", deny).unwrap();
        };
        assert_eq!(decision_after(command, changed), None, "{command}");
    }
    // What the system takes before the file that was trusted.
    let added = |scratch: &Scratch| {
        scratch.file(".anyhook/guard.bat", deny).unwrap();
    };
    let command = r"call .anyhook\\guard && rem";
    assert_eq!(decision_after(command, added), None);
}

#[test]
fn a_folder_of_the_project_is_not_the_users_by_any_name() {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    let manifest = MANIFEST.replace(r".anyhook\\guard.cmd", "echo ran> pwned");
    scratch.file("own/anyhook/hooks.json", &manifest).unwrap();
    let project = text(&scratch.project());
    let (drive, rest) = project.split_once(':').unwrap();
    for folder in [
        project.clone(),
        project.to_uppercase(),
        project.to_lowercase(),
        format!(r"\\?\{project}"),
        format!("{project}."),
        format!(r"{project}\own\.."),
        format!("/{}{}", drive.to_lowercase(), rest.replace('\\', "/")),
    ] {
        for (name, value) in [
            ("ANYHOOK_CONFIG_DIR", format!(r"{folder}\own\anyhook")),
            ("APPDATA", format!(r"{folder}\own")),
        ] {
            let adapter = clients().next().unwrap();
            let event = crate::support::shell_call("dir", &project);
            let encoded = adapter.encode(&event, None).unwrap();
            let (slug, native) = (adapter.spec.id.as_ref(), encoded.native_event.as_str());
            let arguments = ["run", "--agent", slug, "--event", native];
            let mut call = anyhook(&scratch);
            if name == "APPDATA" {
                call = call.env("ANYHOOK_CONFIG_DIR", "");
            }
            let call = call.env(name, &value);
            let output = call.run(arguments, &encoded.payload.to_string()).unwrap();
            let has_run = scratch.project().join("pwned").exists();
            assert!(!has_run, "{name}={value}: {output:?}");
        }
    }
}
