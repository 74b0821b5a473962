//! Checks of a manifest that look at other files: the scripts that its hooks start,
//! and a second manifest beside it.

use std::path::{Path, PathBuf};

use anyhook_install::Machine;
use anyhook_install::hook_scripts::{ManifestPlace, check_hook_scripts, project_root};
use anyhook_model::document::Node;
use anyhook_model::{Diagnostic, Manifest, Scope, Severity, Span};
use anyhook_run::config::discover::{PROJECT_FOLDER, ignored_manifests};

use super::span_at;

/// `path` is the manifest's. Where the file is not in a place from which hooks run,
/// its scripts may be elsewhere: then problems are warnings.
pub(super) fn check(
    tree: &Node,
    manifest: &Manifest,
    path: &str,
    scope: Option<Scope>,
    machine: &Machine,
) -> Vec<Diagnostic> {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let folder = path.parent().unwrap_or(&path);
    let is_in_place = scope.is_some()
        || folder
            .file_name()
            .is_some_and(|name| name == PROJECT_FOLDER);
    let place = ManifestPlace {
        scope: scope.unwrap_or(Scope::Project),
        root: project_root(folder),
        folder,
    };
    let mut findings = Vec::new();
    if is_in_place {
        findings.extend(
            ignored_manifests(&path)
                .iter()
                .map(|other| ignored(&path, other)),
        );
    }
    for (position, hook) in manifest.hooks.iter().enumerate() {
        for problem in check_hook_scripts(machine, hook, place) {
            if !is_in_place && problem.is_about_machine() {
                continue;
            }
            let at = match problem.code {
                "exit-2-ignored" => format!("/hooks/{position}/blocking"),
                _ => format!("/hooks/{position}/handler/command"),
            };
            let severity = if is_in_place {
                problem.severity
            } else {
                problem.severity.min(Severity::Warning)
            };
            let finding =
                Diagnostic::new(severity, problem.code, span_at(tree, &at), problem.message)
                    .help(problem.help)
                    .path(format!("hooks[{position}].handler.command"));
            findings.push(finding);
        }
    }
    findings
}

/// A second manifest in a folder, of which only one counts.
fn ignored(path: &Path, other: &Path) -> Diagnostic {
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let (path, other) = (name(path), name(other));
    let (used, unused) = if path == other {
        ("the other manifest in this folder", "this file".to_owned())
    } else {
        ("this file", format!("`{other}` in the same folder"))
    };
    let message = format!("{unused} is ignored: a folder has one manifest, and {used} is used");
    Diagnostic::error("manifest-ignored", Span::at(0), message)
        .help("move the hooks into one file and delete the other")
}
