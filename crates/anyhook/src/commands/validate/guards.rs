//! Checks of a manifest that only the guards can make: their options, their rules
//! files, and the conditions of `if`.

use std::path::{Path, PathBuf};

use anyhook_guard::{GuardError, Predicate};
use anyhook_model::document::Node;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{Diagnostic, Hook, Manifest, Scope, SourceText};
use anyhook_run::config::discover::PROJECT_FOLDER;
use anyhook_run::config::manifest::HandlerCommand;
use anyhook_run::run::exec::command::CommandContext;
use anyhook_run::run::guard::GuardCommand;

use super::span_at;

/// `path` is the manifest's; its folders are those to which rules files refer.
pub(super) fn check(
    tree: &Node,
    manifest: &Manifest,
    path: &str,
    scope: Option<Scope>,
) -> Vec<Diagnostic> {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let folder = path.parent().unwrap_or(&path);
    let root = match folder.file_name() {
        Some(name) if name == PROJECT_FOLDER => folder.parent().unwrap_or(folder),
        _ => folder,
    };
    let mut findings = Vec::new();
    for (position, hook) in manifest.hooks.iter().enumerate() {
        let mut check = HookCheck {
            tree,
            hook,
            pointer: format!("/hooks/{position}"),
            findings: &mut findings,
        };
        check.condition();
        check.commands(scope.unwrap_or(Scope::Project), root, folder);
    }
    findings
}

struct HookCheck<'a> {
    tree: &'a Node,
    hook: &'a Hook,
    pointer: String,
    findings: &'a mut Vec<Diagnostic>,
}

impl HookCheck<'_> {
    fn error(&mut self, code: &'static str, at: &str, message: String, help: Option<String>) {
        let pointer = format!("{}{at}", self.pointer);
        let span = span_at(self.tree, &pointer);
        let path = pointer.trim_start_matches('/').replace('/', ".");
        let finding = Diagnostic::error(code, span, message).path(path);
        self.findings.push(match help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }

    fn condition(&mut self) {
        let Some(condition) = &self.hook.condition else {
            return;
        };
        if let Err(error) = Predicate::parse(condition) {
            let steps = error.path.iter().map(|step| format!("/{step}"));
            let at = format!("/if{}", steps.collect::<String>());
            self.error("bad-condition", &at, error.message, error.help);
        }
    }

    fn commands(&mut self, scope: Scope, root: &Path, folder: &Path) {
        let handler = &self.hook.handler;
        let cwd = handler.cwd.as_ref().map(|cwd| root.join(cwd));
        let place = CommandContext {
            scope,
            root,
            folder,
            cwd: cwd.as_deref().unwrap_or(root),
        };
        let platform = &handler.platform;
        for (at, command) in [
            ("/handler/command", &handler.command),
            ("/handler/platform/linux", &platform.linux),
            ("/handler/platform/osx", &platform.osx),
            ("/handler/platform/windows", &platform.windows),
        ] {
            let Some(command) = command else { continue };
            let args = handler.args.as_deref().filter(|_| at == "/handler/command");
            let named = match args {
                Some(args) => HandlerCommand::Program(command, args),
                None => HandlerCommand::Line(command),
            };
            match GuardCommand::from_command(named) {
                Some(guard) => self.guard(&guard, at, place),
                None => self.guard_in_shell(command, at),
            }
        }
    }

    fn guard(&mut self, guard: &GuardCommand, at: &str, place: CommandContext<'_>) {
        match guard.parse(place) {
            Ok(_) => {}
            Err(GuardError::Usage { message, help }) => {
                self.error("bad-guard", at, message, help);
            }
            Err(GuardError::Rules {
                file,
                text,
                findings,
            }) => {
                let source = SourceText::new(&file, &text);
                for finding in findings.iter().filter(|finding| finding.is_error()) {
                    let start = source.position(finding.span.start);
                    let message = format!(
                        "`{file}`, line {}, column {}: {}",
                        start.line, start.column, finding.message
                    );
                    self.error("bad-rules", at, message, finding.help.clone());
                }
            }
        }
        let dialect = self.hook.handler.dialect.as_deref();
        if dialect.is_some_and(|name| name != NeutralDialect::Canonical.as_str()) {
            let message = "a built-in guard reads canonical events".to_owned();
            let help = Some("remove `dialect`".to_owned());
            self.error("bad-guard", "/handler/dialect", message, help);
        }
    }

    /// A call of a guard that a shell has to complete works, but as a process of
    /// its own.
    fn guard_in_shell(&mut self, command: &str, at: &str) {
        let mut words = command.split_whitespace();
        if words.next() != Some("anyhook") || words.next() != Some("guard") {
            return;
        }
        let pointer = format!("{}{at}", self.pointer);
        let message = "this guard runs as a program of its own, because of shell syntax";
        let span = span_at(self.tree, &pointer);
        let path = pointer.trim_start_matches('/').replace('/', ".");
        let finding = Diagnostic::warning("guard-in-shell", span, message)
            .help("put words with special characters in single quotes")
            .path(path);
        self.findings.push(finding);
    }
}
