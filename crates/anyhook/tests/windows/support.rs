//! Projects, calls and answers for the tests of the program on Windows.

use std::path::Path;

use anyhook_agents::Adapter;
use anyhook_model::event::field;
use anyhook_model::{Decision, HookEvent};
use anyhook_testkit::{Invocation, ProcessOutput, Scratch};
use serde_json::json;

pub(crate) const GUARD: &str = "@echo off\r\n\
    \"%SystemRoot%\\System32\\find.exe\" \"rm -rf\" >nul\r\n\
    if errorlevel 1 exit /b 0\r\n\
    echo no recursive delete 1>&2\r\n\
    exit /b 2\r\n";

/// A guard that is a batch file; its path has a backslash, as users write it.
pub(crate) const MANIFEST: &str = r#"{"spec": "hooks/1.0", "hooks": [{
    "name": "guard", "event": "before_tool_execute", "matcher": "shell", "blocking": true,
    "handler": {"type": "command", "command": ".anyhook\\guard.cmd"}
}]}"#;

/// With the programs of the system alone on PATH: the PowerShell of Wine is an
/// empty shell that ends with 0.
pub(crate) fn anyhook(scratch: &Scratch) -> Invocation {
    let root = std::env::var("SystemRoot").unwrap();
    scratch
        .command(env!("CARGO_BIN_EXE_anyhook"))
        .env("PATH", format!("{root}\\system32;{root}"))
}

pub(crate) fn run(scratch: &Scratch, arguments: &[&str], stdin: &str) -> ProcessOutput {
    anyhook(scratch).run(arguments, stdin).unwrap()
}

/// A project with a manifest and a guard that are trusted.
pub(crate) fn trusted_project(manifest: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    scratch.file(".git/HEAD", "").unwrap();
    scratch.file(".anyhook/guard.cmd", GUARD).unwrap();
    scratch.file(".anyhook/hooks.json", manifest).unwrap();
    let trusted = run(&scratch, &["trust", "--yes"], "");
    assert_eq!(trusted.exit, Some(0), "{trusted:?}");
    scratch
}

pub(crate) fn shell_call(command: &str, folder: &str) -> HookEvent {
    let mut event = HookEvent {
        event: "before_tool_execute".to_owned(),
        session_id: Some("windows".to_owned()),
        cwd: Some(folder.to_owned()),
        ..HookEvent::default()
    };
    event.data.insert(field::TOOL_NAME.into(), json!("shell"));
    let input = json!({ "command": command });
    event.data.insert(field::TOOL_INPUT.into(), input);
    event
}

/// What the agent makes of the answer to a call.
pub(crate) fn decision(
    scratch: &Scratch,
    adapter: &Adapter,
    command: &str,
    folder: &str,
) -> Option<Decision> {
    let event = shell_call(command, folder);
    let encoded = adapter.encode(&event, None).unwrap();
    let (slug, native) = (adapter.spec.id.as_ref(), encoded.native_event.as_str());
    let arguments = ["run", "--agent", slug, "--event", native];
    let output = run(scratch, &arguments, &encoded.payload.to_string());
    let event = adapter
        .decode(&encoded.payload, Some(native))
        .unwrap()
        .event;
    let exit = output.exit.unwrap();
    let read = adapter.decode_answer(&event, native, &output.stdout, &output.stderr, exit);
    read.response.decision
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
