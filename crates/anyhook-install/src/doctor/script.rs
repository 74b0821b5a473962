//! What a command line names: is it there, and can it be run?

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{Finding, Fix, Program, Severity, about};
use crate::command;
use crate::error::InstallError;
use crate::scripts;
use crate::target::Target;
use crate::walk::Entry;
use crate::world::{World, is_program};

/// Programs that take a script as their first argument.
const INTERPRETERS: [&str; 14] = [
    "sh",
    "bash",
    "zsh",
    "dash",
    "python",
    "python3",
    "node",
    "bun",
    "deno",
    "ruby",
    "perl",
    "pwsh",
    "powershell",
    "env",
];

/// Words of shells that are no programs.
const BUILTINS: [&str; 18] = [
    "exit", "echo", "true", "false", "cd", "test", "[", "set", "export", "eval", "exec", "source",
    ".", "printf", "read", "command", ":", "if",
];

/// What is wrong with a command line; the file that it names, where it can be mended.
struct Trouble {
    id: &'static str,
    what: String,
    why: &'static str,
    remedy: String,
    mend: Option<PathBuf>,
}

/// The entry's command lines for this system.
pub fn check_entry(world: &World, target: &Target, entry: &Entry<'_>, findings: &mut Vec<Finding>) {
    let config = target.config();
    let base = world.root.clone();
    let fields = config.handler.fields.iter();
    let own = if cfg!(windows) {
        "platform.windows"
    } else if cfg!(target_os = "macos") {
        "platform.osx"
    } else {
        "platform.linux"
    };
    let lines = fields
        .filter(|field| field.to == "command" || field.to == own)
        .filter_map(|field| entry.handler.pointer(&field.at)?.as_str());
    let mut told: Vec<&str> = Vec::new();
    for line in lines {
        if told.contains(&line) {
            continue;
        }
        told.push(line);
        let trouble = look(world, target, &base, line);
        if let Some(trouble) = trouble {
            let place = format!("entry {} of `{}`", entry.index + 1, entry.event);
            findings.push(found(
                target,
                &place,
                trouble,
                command::ours(line).is_some(),
            ));
        }
    }
}

fn found(target: &Target, place: &str, trouble: Trouble, is_bridge: bool) -> Finding {
    let fix = match trouble.mend {
        Some(path) => Some(Fix::MakeExecutable(path)),
        None if is_bridge => Some(Fix::Reinstall(Box::new(target.clone()), Program::Absolute)),
        None => None,
    };
    Finding {
        fix,
        ..about(
            target,
            trouble.id,
            Severity::Error,
            format!("{place}: {}", trouble.what),
            trouble.why,
            trouble.remedy,
        )
    }
}

/// Scripts that are hooks by their place and name.
pub fn check_scripts(world: &World, target: &Target, findings: &mut Vec<Finding>) {
    if !target.path.is_dir() {
        return;
    }
    let entries = std::fs::read_dir(&target.path).into_iter().flatten();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let stem = name.split('.').next().unwrap_or(&name);
        let event = target.adapter.spec.events.iter();
        let is_event = event
            .clone()
            .any(|event| event.native.eq_ignore_ascii_case(stem));
        if !path.is_file() || name.starts_with('.') {
            continue;
        }
        if !is_event {
            let names = event.map(|event| event.native.as_ref());
            if let Some(near) = anyhook_model::suggest::nearest(stem, names) {
                findings.push(about(
                    target,
                    "unknown-event",
                    Severity::Warning,
                    format!("there is no event `{stem}`; did you mean `{near}`?"),
                    "the script never runs",
                    format!("rename it to `{near}`"),
                ));
            }
            continue;
        }
        let text = anyhook_edit::read_text(&path)
            .ok()
            .flatten()
            .unwrap_or_default();
        let trouble = if !name.contains('.') && !is_program(&path) {
            Some(not_executable(&path))
        } else {
            interpreter(world, &path)
        };
        if let Some(trouble) = trouble {
            findings.push(found(
                target,
                &format!("`{name}`"),
                trouble,
                scripts::is_generated(&text),
            ));
        }
    }
}

fn look(world: &World, target: &Target, base: &Path, line: &str) -> Option<Trouble> {
    let words = command::words(line, !cfg!(windows));
    let first = words.first()?;
    // Assignments and the shell's own syntax are the shell's matter.
    if first.contains('=') || line.contains(['`', '\n']) || line.contains("$(") {
        return None;
    }
    if !first.contains('/') {
        let name = first.rsplit('\\').next().unwrap_or(first);
        if BUILTINS.contains(&name) {
            return None;
        }
        if INTERPRETERS.contains(&name) {
            if world.on_path(name).is_empty() {
                return Some(not_found(name));
            }
            let script = words.iter().skip(1).find(|word| !word.starts_with('-'))?;
            let is_path = script.contains('/') || script.contains('.');
            let takes_text = words
                .iter()
                .any(|word| word == "-c" || word == "-e" || word == "-m");
            let path = resolve(world, target, base, script)?;
            return (is_path && !takes_text && !path.exists()).then(|| missing(&path));
        }
        let is_simple = first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c));
        return (is_simple && world.on_path(first).is_empty()).then(|| not_found(first));
    }
    let path = resolve(world, target, base, first)?;
    if !path.exists() {
        // Some agents start the user's hooks beside their file.
        let beside = target.path.parent().map(|folder| folder.join(first));
        return (!beside.is_some_and(|path| path.exists())).then(|| missing(&path));
    }
    if path.is_file() && !is_program(&path) {
        return Some(not_executable(&path));
    }
    interpreter(world, &path)
}

/// A word as a path; `None` when only the agent knows what it stands for.
fn resolve(world: &World, target: &Target, base: &Path, word: &str) -> Option<PathBuf> {
    let mut text = word.to_owned();
    let home = world.home.as_ref()?.to_string_lossy().into_owned();
    let root = world.root.to_string_lossy().into_owned();
    let mut known: Vec<(&str, &str)> = vec![("HOME", &home)];
    for (name, value) in &target.adapter.spec.env {
        if value == "{project}" {
            known.push((name, &root));
        }
    }
    for (name, value) in known {
        text = text
            .replace(&format!("${{{name}}}"), value)
            .replace(&format!("${name}"), value);
    }
    if let Some(rest) = text.strip_prefix("~/") {
        text = format!("{home}/{rest}");
    }
    (!text.contains(['$', '*', '%'])).then(|| base.join(text))
}

fn missing(path: &Path) -> Trouble {
    Trouble {
        id: "script-missing",
        what: format!("`{}` is not there", path.display()),
        why: "the hook cannot start; most agents go on as if it had agreed",
        remedy: "write the script, or name the right one".to_owned(),
        mend: None,
    }
}

fn not_found(name: &str) -> Trouble {
    Trouble {
        id: "interpreter-missing",
        what: format!("`{name}` is not on PATH"),
        why: "the hook cannot start; most agents go on as if it had agreed",
        remedy: format!("install `{name}`, or name it by its path"),
        mend: None,
    }
}

fn not_executable(path: &Path) -> Trouble {
    Trouble {
        id: "script-not-executable",
        what: format!("`{}` has no run bit", path.display()),
        why: "the hook cannot start; most agents go on as if it had agreed",
        remedy: format!("run `chmod +x {}`", path.display()),
        mend: Some(path.to_owned()),
    }
}

/// Whether what a script's first line names is there.
fn interpreter(world: &World, path: &Path) -> Option<Trouble> {
    let mut head = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(256).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head);
    let line = text.strip_prefix("#!")?.lines().next()?.to_owned();
    let mut words = line.split_whitespace();
    let program = words.next()?;
    let is_env = program.ends_with("/env");
    let name = if is_env {
        words.find(|word| !word.starts_with('-') && !word.contains('='))?
    } else {
        program
    };
    let is_there = if name.contains('/') {
        Path::new(name).exists()
    } else {
        !world.on_path(name).is_empty()
    };
    (!is_there).then(|| Trouble {
        id: "interpreter-missing",
        what: format!("`{}` needs `{name}`, which is not here", path.display()),
        why: "the hook cannot start; most agents go on as if it had agreed",
        remedy: if line.ends_with('\r') {
            "give the script Unix line endings".to_owned()
        } else {
            format!("install `{name}`, or change the first line")
        },
        mend: None,
    })
}

/// What a script's first line needs and this machine lacks, and the remedy.
pub fn needs(world: &World, path: &Path) -> Option<(String, String)> {
    interpreter(world, path).map(|trouble| (trouble.what, trouble.remedy))
}

pub fn make_executable(path: &Path) -> Result<(), InstallError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let io = |action| {
            let path = path.to_owned();
            move |source| anyhook_edit::FileError::Io {
                action,
                path,
                source,
            }
        };
        let mode = std::fs::metadata(path)
            .map_err(io("read"))?
            .permissions()
            .mode();
        let mode = mode | ((mode & 0o444) >> 2);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(io("make executable"))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
