//! `anyhook run` against an empty process, a bare hook, and today's ways.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Setup;
use super::measure::{Case, measure, report};

const PAYLOAD: &str = r#"{"session_id":"bench","transcript_path":"/tmp/t.jsonl","cwd":"@CWD@","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo hi","description":"say hi"},"tool_use_id":"toolu_01"}"#;

fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(|error| error.to_string())
}

/// Twenty hooks in YAML, of which `matching` fire for a shell command.
fn manifest(matching: bool) -> String {
    let mut text = String::from("spec: hooks/1.0\nhooks:\n");
    for index in 0..19 {
        let _ = writeln!(
            text,
            "  - name: other-{index}\n    event: before_tool_execute\n    matcher: [web_search, {{ mcp: {{ server: server-{index} }} }}]\n    handler: {{ type: command, command: ./hook.sh, timeout: 10 }}"
        );
    }
    let matcher = if matching { "shell" } else { "web_fetch" };
    let _ = writeln!(
        text,
        "  - name: guard\n    event: before_tool_execute\n    matcher: {matcher}\n    blocking: true\n    handler: {{ type: command, command: ./hook.sh, timeout: 10 }}"
    );
    text
}

/// Where an agent works, and what it says there.
pub struct Project {
    pub folder: PathBuf,
    pub payload: Vec<u8>,
}

impl Project {
    fn call<'a>(&'a self, setup: &'a Setup, name: &'a str) -> Case<'a> {
        let command = || {
            let mut command = setup.command();
            command
                .current_dir(&self.folder)
                .args(["run", "--agent", "claude-code"]);
            command
        };
        Case::new(name, command).with_stdin(&self.payload)
    }
}

/// A trusted project with twenty hooks.
pub fn project(setup: &Setup, name: &str, matching: bool, hook: &str) -> Result<Project, String> {
    let folder = setup.scratch.path().join(name);
    fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
    write(
        &folder.join(".anyhook/hooks.yaml"),
        &manifest(matching),
        0o644,
    )?;
    write(&folder.join("hook.sh"), hook, 0o755)?;
    let trusted = setup
        .command()
        .current_dir(&folder)
        .args(["trust", "--yes"])
        .output()
        .map_err(|error| error.to_string())?;
    if !trusted.status.success() {
        return Err(format!(
            "trust: {}",
            String::from_utf8_lossy(&trusted.stderr)
        ));
    }
    let payload = PAYLOAD.replace("@CWD@", &folder.display().to_string());
    Ok(Project {
        folder,
        payload: payload.into_bytes(),
    })
}

pub const SILENT: &str = "#!/bin/sh\nexit 0\n";

pub fn run(setup: &Setup) -> Result<(), String> {
    let none = project(setup, "none", false, SILENT)?;
    let one = project(setup, "one", true, SILENT)?;
    let script = one.folder.join("hook.sh");
    let shell = |program: &'static str, arguments: &'static [&'static str]| {
        move || {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    };
    let mut cases = vec![
        Case::new("/bin/true", || Command::new("/bin/true")),
        none.call(setup, "run, 20 hooks, nothing matches"),
        Case::new("the sh hook alone", || Command::new(&script)).with_stdin(&one.payload),
        one.call(setup, "run, 20 hooks, the sh hook matches"),
    ];
    let today: [(&str, &str, &[&str]); 3] = [
        (
            "bash + jq",
            "bash",
            &[
                "-c",
                "jq -r .tool_input.command | grep -q 'rm -rf' && exit 2; exit 0",
            ],
        ),
        (
            "python3",
            "python3",
            &["-c", "import json,sys; json.load(sys.stdin)"],
        ),
        (
            "node",
            "node",
            &["-e", "JSON.parse(require('fs').readFileSync(0))"],
        ),
    ];
    for (name, program, arguments) in today {
        if crate::run::works(Command::new("which").arg(program)) {
            cases.push(Case::new(name, shell(program, arguments)).with_stdin(&none.payload));
        }
    }
    let times = measure(&cases, 150)?;
    report(&cases, &times, &[("run, 20 hooks, nothing matches", 2.0)]);
    if let [base, _, alone, matching, ..] = times.as_slice() {
        let extra = (matching.best - alone.best) / base.best;
        let verdict = if extra <= 1.5 { "within" } else { "OVER" };
        println!("the bridge adds {extra:.2} to a matching hook  {verdict} 1.5");
    }
    memory(setup)
}

/// The most memory that a run ever had, by the kernel's count: its hook looks.
fn memory(setup: &Setup) -> Result<(), String> {
    let hook = "#!/bin/sh\ngrep VmHWM \"/proc/$PPID/status\" >memory\n";
    let looks = project(setup, "looks", true, hook)?;
    looks.call(setup, "memory").once()?;
    let text =
        fs::read_to_string(looks.folder.join("memory")).map_err(|error| error.to_string())?;
    let kib = text
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<f64>().ok());
    let mib = kib.ok_or_else(|| format!("no memory in `{text}`"))? / 1024.0;
    let verdict = if mib < 6.0 { "within 6" } else { "OVER 6" };
    println!("memory {mib:.1} MiB  {verdict}");
    Ok(())
}
