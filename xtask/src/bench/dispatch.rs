//! `anyhook run` against an empty process, a bare hook, and today's ways.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
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

pub fn run(setup: &Setup) -> Result<(), String> {
    let none = setup.scratch.path().join("none");
    let one = setup.scratch.path().join("one");
    for (project, matching) in [(&none, false), (&one, true)] {
        fs::create_dir_all(project.join(".git")).map_err(|error| error.to_string())?;
        write(
            &project.join(".anyhook/hooks.yaml"),
            &manifest(matching),
            0o644,
        )?;
        write(&project.join("hook.sh"), "#!/bin/sh\nexit 0\n", 0o755)?;
        let trusted = setup
            .command()
            .current_dir(project)
            .args(["trust", "--yes"])
            .output()
            .map_err(|error| error.to_string())?;
        if !trusted.status.success() {
            return Err(format!(
                "trust: {}",
                String::from_utf8_lossy(&trusted.stderr)
            ));
        }
    }
    let payload = |project: &Path| {
        PAYLOAD
            .replace("@CWD@", &project.display().to_string())
            .into_bytes()
    };
    let bridge = |project: &'static str| {
        move || {
            let mut command = setup.command();
            command
                .current_dir(setup.scratch.path().join(project))
                .args(["run", "--agent", "claude-code"]);
            command
        }
    };
    let script = one.join("hook.sh");
    let shell = |program: &'static str, arguments: &'static [&'static str]| {
        move || {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    };
    let mut cases = vec![
        Case::new("/bin/true", || Command::new("/bin/true")),
        Case::new("run, 20 hooks, nothing matches", bridge("none")).with_stdin(&payload(&none)),
        Case::new("the sh hook alone", || Command::new(&script)),
        Case::new("run, 20 hooks, the sh hook matches", bridge("one")).with_stdin(&payload(&one)),
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
            cases.push(Case::new(name, shell(program, arguments)).with_stdin(&payload(&none)));
        }
    }
    let times = measure(&cases, 150)?;
    report(&cases, &times, &[("run, 20 hooks, nothing matches", 2.0)]);
    if let [base, _, alone, matching, ..] = times.as_slice() {
        let extra = (matching.best - alone.best) / base.best;
        let verdict = if extra <= 1.5 { "within" } else { "OVER" };
        println!("the bridge adds {extra:.2} to a matching hook  {verdict} 1.5");
    }
    memory(setup, &none, &payload(&none))
}

/// The most memory that a run ever had, as the kernel counts it.
fn memory(setup: &Setup, project: &Path, payload: &[u8]) -> Result<(), String> {
    let file = setup.scratch.path().join("payload.json");
    fs::write(&file, payload).map_err(|error| error.to_string())?;
    let mut command = Command::new("python3");
    setup.isolate(&mut command);
    command.current_dir(project).args([
        "-c",
        "import resource,subprocess,sys\nsubprocess.run([sys.argv[1],'run','--agent','claude-code'],stdin=open(sys.argv[2]),stdout=subprocess.DEVNULL)\nprint(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
    ]);
    command.arg(&setup.anyhook).arg(&file);
    let Ok(output) = command.output() else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if let Ok(kib) = text.trim().parse::<f64>() {
        let mib = kib / 1024.0;
        println!(
            "memory {mib:.1} MiB  {}",
            if mib < 6.0 { "within 6" } else { "OVER 6" }
        );
    }
    Ok(())
}
