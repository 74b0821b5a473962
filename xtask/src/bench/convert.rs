//! `validate` and `convert` compared with an empty process.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Instant;

use super::Setup;
use super::measure::{Case, measure, report};

/// A manifest with this many different hooks.
pub(super) fn manifest(hooks: usize) -> String {
    let mut text = String::from("spec: hooks/1.0\nhooks:\n");
    let events = [
        "before_tool_execute",
        "after_tool_execute",
        "session_start",
        "before_prompt",
        "agent_stop",
    ];
    let matchers = [
        "shell",
        "file_write",
        "[shell, file_edit]",
        "{ mcp: { server: github } }",
        "{ pattern: \"^Bash$\" }",
    ];
    for index in 0..hooks {
        let event = events.get(index % events.len()).unwrap_or(&"session_start");
        let _ = writeln!(text, "  - name: hook-{index}\n    event: {event}");
        if event.contains("tool") {
            let _ = writeln!(
                text,
                "    matcher: {}",
                matchers.get(index / 7 % matchers.len()).unwrap_or(&"shell")
            );
        }
        let _ = writeln!(
            text,
            "    handler:\n      type: command\n      command: ./hooks/check-{index}.sh\n      timeout: {}",
            index % 50 + 1
        );
    }
    text
}

pub(super) fn validate(setup: &Setup) -> Result<(), String> {
    let path = setup.folder.join("thousand.yaml");
    fs::write(&path, manifest(1000)).map_err(|error| error.to_string())?;
    let cases = [
        Case::new("/bin/true", || Command::new("/bin/true")),
        Case::new("validate, 1000 hooks", || {
            let mut command = setup.command();
            command.arg("validate").arg(&path);
            command
        }),
    ];
    let times = measure(&cases, 60)?;
    report(&cases, &times, &[("validate, 1000 hooks", 30.0)]);
    Ok(())
}

pub(super) fn convert(setup: &Setup) -> Result<(), String> {
    // The path is how `convert` recognises the agent.
    let real = setup.folder.join(".claude/settings.json");
    let example = crate::root().join("examples/claude/settings.json");
    fs::create_dir_all(setup.folder.join(".claude"))
        .and_then(|()| fs::copy(example, &real))
        .map_err(|error| error.to_string())?;
    let cases = [
        Case::new("/bin/true", || Command::new("/bin/true")),
        Case::new("convert a real config", || {
            let mut command = setup.command();
            command.arg("convert").arg(&real).args(["--to", "cursor"]);
            command
        }),
    ];
    let times = measure(&cases, 200)?;
    report(&cases, &times, &[("convert a real config", 3.0)]);
    println!("\n{:<46} {:>9} {:>12}", "hooks", "ms", "ms per 1000");
    for hooks in [1_000_u32, 2_000, 5_000, 10_000, 20_000] {
        let path = setup.folder.join("many.yaml");
        fs::write(&path, manifest(usize::try_from(hooks).unwrap_or_default()))
            .map_err(|error| error.to_string())?;
        let start = Instant::now();
        let status = setup
            .command()
            .arg("convert")
            .arg(&path)
            .args(["--to", "gemini-cli"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        status.map_err(|error| error.to_string())?;
        let millis = start.elapsed().as_secs_f64() * 1000.0;
        println!(
            "{hooks:<46} {millis:>9.1} {:>12.2}",
            millis / f64::from(hooks) * 1000.0
        );
    }
    super::growth::report_growth(setup)
}
