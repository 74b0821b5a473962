//! `anyhook new hook`: a working hook in a language of choice, with a test, and its
//! entry in the project's manifest.

use std::path::PathBuf;

use anyhook_edit::{make_executable, write_atomic};
use anyhook_model::{Handler, Hook, Matcher};
use anyhook_run::config::discover::{PROJECT_FOLDER, manifest_in};

use crate::error::InstallError;
use crate::import::{self, ImportedHook};
use crate::init::MANIFEST_HEAD;
use crate::machine::Machine;

/// The folder of new hooks, in that of the manifest.
const HOOKS_FOLDER: &str = "hooks";

/// In every template, for the hook's name.
const NAME: &str = "NAME";

/// Seconds for a hook that an interpreter starts at once.
const TIMEOUT_SECS: f64 = 10.0;

/// Seconds for a hook that may have to be compiled first.
const COMPILED_TIMEOUT_SECS: f64 = 120.0;

/// A language that hooks are written in.
#[derive(Debug, Clone, Copy)]
pub struct HookLanguage {
    pub name: &'static str,
    /// The program that must be installed.
    pub needs: &'static str,
    /// Path below the folder of hooks, and text.
    files: &'static [(&'static str, &'static str)],
    /// From the project's root.
    command: &'static str,
    /// What runs the test, from the project's root.
    test: &'static str,
    is_compiled: bool,
}

pub const HOOK_LANGUAGES: &[HookLanguage] = &[
    HookLanguage {
        name: "sh",
        needs: "sh",
        files: &[
            ("NAME.sh", include_str!("new_hook/hook.sh")),
            ("NAME_test.sh", include_str!("new_hook/hook_test.sh")),
        ],
        command: "./.anyhook/hooks/NAME.sh",
        test: ".anyhook/hooks/NAME_test.sh",
        is_compiled: false,
    },
    HookLanguage {
        name: "python",
        needs: "python3",
        files: &[
            ("NAME.py", include_str!("new_hook/hook.py")),
            ("NAME_test.py", include_str!("new_hook/hook_test.py")),
        ],
        command: "python3 -I ./.anyhook/hooks/NAME.py",
        test: "python3 .anyhook/hooks/NAME_test.py",
        is_compiled: false,
    },
    HookLanguage {
        name: "ts",
        needs: "node",
        files: &[
            ("NAME.ts", include_str!("new_hook/hook.ts")),
            ("NAME.test.ts", include_str!("new_hook/hook.test.ts")),
            (
                "package.json",
                "{\n  \"private\": true,\n  \"type\": \"module\"\n}\n",
            ),
        ],
        command: "node --no-warnings ./.anyhook/hooks/NAME.ts",
        test: "node --no-warnings --test .anyhook/hooks/NAME.test.ts",
        is_compiled: false,
    },
    HookLanguage {
        name: "go",
        needs: "go",
        files: &[
            ("NAME.go", include_str!("new_hook/hook.go")),
            ("NAME_test.go", include_str!("new_hook/hook_test.go")),
        ],
        command: "go run ./.anyhook/hooks/NAME.go",
        test: "go test .anyhook/hooks/NAME.go .anyhook/hooks/NAME_test.go",
        is_compiled: true,
    },
    HookLanguage {
        name: "rust",
        needs: "cargo",
        files: &[
            ("NAME/src/main.rs", include_str!("new_hook/hook.rs")),
            ("NAME/Cargo.toml", include_str!("new_hook/Cargo.toml.txt")),
            ("NAME/.gitignore", "target/\n"),
        ],
        command: "cargo run --quiet --release --manifest-path ./.anyhook/hooks/NAME/Cargo.toml",
        test: "cargo test --quiet --manifest-path .anyhook/hooks/NAME/Cargo.toml",
        is_compiled: true,
    },
];

#[derive(Debug, Clone)]
pub struct NewHook {
    pub manifest: PathBuf,
    /// The hook first, then its test.
    pub files: Vec<PathBuf>,
    /// What runs the test, from the project's root.
    pub test_command: String,
    /// The program that it needs is on PATH.
    pub is_runnable: bool,
}

/// Writes the hook, its test and its entry in the manifest. Nothing that exists is
/// replaced.
pub fn write_hook(
    machine: &Machine,
    name: &str,
    language: &HookLanguage,
) -> Result<NewHook, InstallError> {
    let folder = machine.root.join(PROJECT_FOLDER);
    let named = |text: &str| text.replace(NAME, name);
    let paths: Vec<(PathBuf, &str)> = language
        .files
        .iter()
        .map(|(path, text)| (folder.join(HOOKS_FOLDER).join(named(path)), *text))
        .collect();
    let own = |path: &PathBuf| path.file_name().is_some_and(|name| name != "package.json");
    if let Some((taken, _)) = paths.iter().find(|(path, _)| own(path) && path.exists()) {
        return Err(InstallError::HookExists(taken.clone()));
    }
    let entry = ImportedHook {
        hook: manifest_entry(name, language),
        sources: Vec::new(),
    };
    // The manifest first: if it cannot be extended, nothing is written.
    let manifest = if let Some(manifest) = manifest_in(&folder) {
        import::extend_manifest(machine, &manifest, &[entry])?;
        manifest
    } else {
        let hooks = import::yaml(machine, &[entry], 2);
        let text = MANIFEST_HEAD.to_owned() + hooks.trim_start_matches('\n');
        let manifest = folder.join("hooks.yaml");
        write_atomic(&manifest, text.as_bytes())?;
        manifest
    };
    let mut files = Vec::with_capacity(paths.len());
    for (path, text) in paths {
        if path.exists() {
            continue;
        }
        write_atomic(&path, named(text).as_bytes())?;
        if text.starts_with("#!") {
            make_executable(&path)?;
        }
        files.push(path);
    }
    Ok(NewHook {
        manifest,
        files,
        test_command: named(language.test),
        is_runnable: !machine.programs_on_path(language.needs).is_empty(),
    })
}

fn manifest_entry(name: &str, language: &HookLanguage) -> Hook {
    let timeout = if language.is_compiled {
        COMPILED_TIMEOUT_SECS
    } else {
        TIMEOUT_SECS
    };
    Hook {
        name: Some(name.to_owned()),
        event: "before_tool_execute".to_owned(),
        matcher: Some(Matcher::Name("shell".to_owned())),
        blocking: true,
        handler: Handler {
            command: Some(language.command.replace(NAME, name)),
            timeout: Some(timeout),
            ..Handler::default()
        },
        ..Hook::default()
    }
}
