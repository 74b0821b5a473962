//! `anyhook run` compared with an empty process, a bare hook, and common hook scripts.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Setup;
use super::measure::{Case, measure, peak_memory_mib, report};

const PAYLOAD: &str = r#"{"session_id":"bench","transcript_path":"/tmp/t.jsonl","cwd":"@CWD@","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo hi","description":"say hi"},"tool_use_id":"toolu_01"}"#;

pub(super) fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(|error| error.to_string())
}

/// Hooks in YAML; the last of them fires for a shell command if `matching`.
fn manifest(hooks: usize, matching: bool) -> String {
    let mut text = String::from("spec: hooks/1.0\nhooks:\n");
    for index in 1..hooks {
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

/// A project folder, and the payload an agent sends from there.
pub(super) struct Project {
    pub folder: PathBuf,
    pub payload: Vec<u8>,
}

impl Project {
    pub(super) fn new(folder: PathBuf) -> Self {
        let payload = PAYLOAD.replace("@CWD@", &folder.display().to_string());
        Self {
            folder,
            payload: payload.into_bytes(),
        }
    }

    pub(super) fn call<'a>(&'a self, setup: &'a Setup, name: &'a str) -> Case<'a> {
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
pub(super) fn project(
    setup: &Setup,
    name: &str,
    matching: bool,
    hook: &str,
) -> Result<Project, String> {
    let folder = setup.folder.join(name);
    fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
    write(
        &folder.join(".anyhook/hooks.yaml"),
        &manifest(20, matching),
        0o644,
    )?;
    write(&folder.join("hook.sh"), hook, 0o755)?;
    trust(setup, &folder)?;
    Ok(Project::new(folder))
}

pub(super) fn trust(setup: &Setup, folder: &Path) -> Result<(), String> {
    let trusted = setup
        .command()
        .current_dir(folder)
        .args(["trust", "--yes"])
        .output()
        .map_err(|error| error.to_string())?;
    if trusted.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&trusted.stderr);
    Err(format!("trust: {stderr}"))
}

pub(super) const SILENT_SCRIPT: &str = "#!/bin/sh\nexit 0\n";

pub(super) fn run(setup: &Setup) -> Result<(), String> {
    let none = project(setup, "none", false, SILENT_SCRIPT)?;
    let one = project(setup, "one", true, SILENT_SCRIPT)?;
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
    let common_scripts: [(&str, &str, &[&str]); 3] = [
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
    for (name, program, arguments) in common_scripts {
        if crate::run::succeeds(Command::new("which").arg(program)) {
            cases.push(Case::new(name, shell(program, arguments)).with_stdin(&none.payload));
        }
    }
    let times = measure(&cases, 150)?;
    report(&cases, &times, &[("run, 20 hooks, nothing matches", 1.5)]);
    if let [base, _, alone, matching, ..] = times.as_slice() {
        let extra = (matching.best_ms - alone.best_ms) / base.best_ms;
        let verdict = if extra <= 1.4 { "within" } else { "OVER" };
        println!("the bridge adds {extra:.2} to a matching hook  {verdict} 1.4");
    }
    report_peak_memory(setup)?;
    report_matching(setup)?;
    report_large_manifests(setup)?;
    report_growth(setup)
}

/// What each hook of [`report_matching`] takes.
const SLOW_HOOK_MS: f64 = 50.0;
const MATCHING_HOOKS: [usize; 3] = [1, 5, 20];
const MAX_TWENTY_HOOKS_MS: f64 = 150.0;

/// How long several slow hooks of one call take: they run side by side.
fn report_matching(setup: &Setup) -> Result<(), String> {
    println!("\nmatching hooks of {SLOW_HOOK_MS} ms");
    for hooks in MATCHING_HOOKS {
        let folder = setup.folder.join(format!("matching-{hooks}"));
        fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
        let hook = "  - event: before_tool_execute\n    blocking: true\n    handler: { type: command, command: ./hook.sh }\n";
        let text = format!("spec: hooks/1.0\nhooks:\n{}", hook.repeat(hooks));
        write(&folder.join(".anyhook/hooks.yaml"), &text, 0o644)?;
        let script = format!("#!/bin/sh\nsleep {}\n", SLOW_HOOK_MS / 1000.0);
        write(&folder.join("hook.sh"), &script, 0o755)?;
        trust(setup, &folder)?;
        let project = Project::new(folder);
        let times = measure(&[project.call(setup, "slow hooks")], 10)?;
        let best = times.first().map_or(f64::MAX, |times| times.best_ms);
        let verdict = match best {
            _ if hooks < 20 => "",
            best if best <= MAX_TWENTY_HOOKS_MS => "within 150",
            _ => "OVER 150",
        };
        println!("{hooks:>6} {best:>9.1} ms  {verdict}");
    }
    Ok(())
}

/// How much more a call may cost with 5,000 hooks, of which none matches, than with 20.
const MAX_LARGE_MANIFEST: f64 = 1.5;

fn report_large_manifests(setup: &Setup) -> Result<(), String> {
    println!("\nhooks in the manifest, none matches");
    let sizes = [
        (20, "20 hooks"),
        (1_000, "1,000 hooks"),
        (5_000, "5,000 hooks"),
    ];
    let mut projects = Vec::new();
    for (hooks, name) in sizes {
        let folder = setup.folder.join(format!("hooks-{hooks}"));
        fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
        let text = manifest(hooks, false);
        write(&folder.join(".anyhook/hooks.yaml"), &text, 0o644)?;
        write(&folder.join("hook.sh"), SILENT_SCRIPT, 0o755)?;
        trust(setup, &folder)?;
        projects.push((Project::new(folder), name));
    }
    let cases: Vec<Case<'_>> = projects
        .iter()
        .map(|(project, name)| project.call(setup, name))
        .collect();
    // Only of a file that has not changed for three seconds the hash is remembered.
    std::thread::sleep(std::time::Duration::from_millis(3500));
    for case in &cases {
        case.run_once()?;
    }
    let times = measure(&cases, 100)?;
    let limits = [
        ("1,000 hooks", MAX_LARGE_MANIFEST),
        ("5,000 hooks", MAX_LARGE_MANIFEST),
    ];
    report(&cases, &times, &limits);
    Ok(())
}

/// What a year leaves behind: files of old sessions, and many trusted projects.
const OLD_FILES: usize = 100_000;
const TRUSTED_PROJECTS: usize = 10_000;

/// Compares calls with a fresh state folder and with one that has grown, under
/// `fail_closed`.
fn report_growth(setup: &Setup) -> Result<(), String> {
    let fresh = setup.beside("fresh");
    let grown = setup.beside("grown");
    let mut projects = Vec::new();
    for setup in [&fresh, &grown] {
        let managed = setup.folder.join("managed/policy.json");
        write(&managed, "{\"fail_closed\": true}", 0o644)?;
        projects.push(project(setup, "project", false, SILENT_SCRIPT)?);
    }
    println!("\n{OLD_FILES} old files in the state folder, {TRUSTED_PROJECTS} trusted projects");
    age_state(&grown.folder.join("state"))?;
    let [small, large] = projects.as_slice() else {
        return Ok(());
    };
    let start = |project: &Project| {
        let text = String::from_utf8_lossy(&project.payload);
        let text = text.replace("PreToolUse", "SessionStart");
        Project {
            folder: project.folder.clone(),
            payload: text.into_bytes(),
        }
    };
    let (small_start, large_start) = (start(small), start(large));
    for (fresh_call, grown_call) in [
        (
            small.call(&fresh, "tool call, fresh"),
            large.call(&grown, "tool call, grown"),
        ),
        (
            small_start.call(&fresh, "session start, fresh"),
            large_start.call(&grown, "session start, grown"),
        ),
    ] {
        let cases = [fresh_call, grown_call];
        let times = measure(&cases, 60)?;
        let limits = [("tool call, grown", 1.15), ("session start, grown", 1.15)];
        report(&cases, &times, &limits);
    }
    Ok(())
}

/// Fills a state folder with what old sessions and other projects leave there.
fn age_state(state: &Path) -> Result<(), String> {
    let error = |error: std::io::Error| error.to_string();
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(30 * 24);
    for folder in ["claims", "told"] {
        let folder = state.join(folder);
        fs::create_dir_all(&folder).map_err(error)?;
        for n in 0..OLD_FILES / 2 {
            let file = fs::File::create(folder.join(format!("{n:032x}"))).map_err(error)?;
            file.set_modified(old).map_err(error)?;
        }
    }
    let trust = state.join("trust");
    let consents = fs::read_dir(&trust).map_err(error)?;
    let names = consents.filter_map(|entry| Some(entry.ok()?.path()));
    let files: Vec<PathBuf> = names.filter(|path| path.is_file()).collect();
    for n in 0..TRUSTED_PROJECTS {
        for file in &files {
            let text = fs::read_to_string(file).map_err(error)?;
            let text = text.replace("/project/", &format!("/project-{n}/"));
            let name = format!("{n:032x}.json");
            fs::write(trust.join(name), text).map_err(error)?;
        }
    }
    Ok(())
}

/// Prints the peak memory of a run, which its hook reads from the kernel.
fn report_peak_memory(setup: &Setup) -> Result<(), String> {
    let hook = "#!/bin/sh\ngrep VmHWM \"/proc/$PPID/status\" >memory\n";
    let project = project(setup, "memory", true, hook)?;
    project.call(setup, "memory").run_once()?;
    let text =
        fs::read_to_string(project.folder.join("memory")).map_err(|error| error.to_string())?;
    let mib = peak_memory_mib(&text)?;
    let verdict = if mib < 6.0 { "within 6" } else { "OVER 6" };
    println!("memory {mib:.1} MiB  {verdict}");
    Ok(())
}
