//! A first working manifest.

use std::path::{Path, PathBuf};

use anyhook_edit::{make_executable, write_atomic};
use anyhook_model::{Format, Hook, parse};
use anyhook_run::config::discover::PROJECT_FOLDER;
use anyhook_run::config::trust::{ProjectManifest, TrustStore};

use crate::error::InstallError;
use crate::import::{self, ImportedHook};
use crate::machine::Machine;

const GUARD_SCRIPT: &str = include_str!("init/guard.sh");
const MANIFEST_TEMPLATE: &str = include_str!("init/hooks.yaml");

/// A manifest without hooks, to which imported ones are added.
pub(crate) const MANIFEST_HEAD: &str = "# Hooks for every coding agent. `anyhook install` installs them,\n\
    # `anyhook test` shows the answer that each agent would get.\nspec: hooks/1.0\nhooks:\n";

/// A manifest of built-in guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    pub manifest: &'static str,
}

pub const PRESETS: [Preset; 2] = [
    Preset {
        name: "standard",
        about: "what hardly anyone wants an agent to do; a guard that fails lets the call pass, with a warning",
        manifest: include_str!("init/standard.yaml"),
    },
    Preset {
        name: "strict",
        about: "as standard, and hosts that are not listed, changes of CI files; a guard that fails blocks",
        manifest: include_str!("init/strict.yaml"),
    },
];

impl Preset {
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    pub fn hooks(&self) -> Vec<Hook> {
        let vocabulary = parse::Vocabulary::default();
        let (manifest, _) = parse::manifest(self.manifest, Format::Yaml, &vocabulary);
        manifest.map(|manifest| manifest.hooks).unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub struct InitResult {
    pub manifest: PathBuf,
    /// The script of a manifest without built-in guards.
    pub guard: Option<PathBuf>,
    /// The manifest is trusted: it contains only what was just written.
    pub trusted: bool,
}

/// Writes the manifest: of a preset, else with a sample guard unless hooks are
/// imported. Imported hooks came with the project, so the user has to approve them.
pub fn write_manifest(
    machine: &Machine,
    preset: Option<&Preset>,
    import: &[ImportedHook],
) -> Result<InitResult, InstallError> {
    let folder = machine.root.join(PROJECT_FOLDER);
    let manifest = folder.join("hooks.yaml");
    let template = match preset {
        Some(preset) => preset.manifest,
        None if import.is_empty() => MANIFEST_TEMPLATE,
        None => MANIFEST_HEAD,
    };
    let text = template.to_owned() + &import::yaml(machine, import, 2);
    let has_sample = preset.is_none() && import.is_empty();
    let guard = has_sample.then(|| folder.join("guard.sh"));
    if let Some(guard) = guard.as_ref().filter(|guard| !guard.exists()) {
        write_atomic(guard, GUARD_SCRIPT.as_bytes())?;
        make_executable(guard)?;
    }
    write_atomic(&manifest, text.as_bytes())?;
    let is_own =
        |guard: &PathBuf| std::fs::read_to_string(guard).is_ok_and(|text| text == GUARD_SCRIPT);
    let trusted = import.is_empty()
        && guard.as_ref().is_none_or(is_own)
        && trust_manifest(machine, &manifest, &text);
    Ok(InitResult {
        manifest,
        guard,
        trusted,
    })
}

fn trust_manifest(machine: &Machine, path: &Path, text: &str) -> bool {
    let (manifest, _) = parse::manifest(text, Format::Yaml, &parse::Vocabulary::default());
    let store = TrustStore::new(&machine.dirs.state);
    manifest.is_some_and(|manifest| {
        let project = ProjectManifest {
            path,
            root: &machine.root,
            text,
            manifest: &manifest,
        };
        store.record(&project).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_run::run::guard::GuardCommand;

    #[test]
    fn the_first_manifest_is_valid() {
        let presets = PRESETS.iter().map(|preset| preset.manifest);
        for text in presets.chain([MANIFEST_TEMPLATE]) {
            let vocabulary = parse::Vocabulary::default();
            let (manifest, findings) = parse::manifest(text, Format::Yaml, &vocabulary);
            assert!(manifest.is_some() && findings.is_empty(), "{findings:?}");
        }
    }

    #[test]
    fn a_preset_is_made_of_guards_that_exist() {
        for preset in &PRESETS {
            assert!(!preset.hooks().is_empty());
            for hook in preset.hooks() {
                let guard = GuardCommand::from_handler(&hook.handler).unwrap();
                let parsed = anyhook_guard::parse_guard(&guard.words, &|_| Err(String::new()));
                assert_eq!(parsed.unwrap().name(), hook.name.unwrap(), "{guard:?}");
            }
        }
    }
}
