//! `anyhook validate`: manifests, policies, guard rules and `.openhook.json`, and the
//! scripts that they name.

mod discovery_file;
mod fix;
mod guards;
mod native_names;
mod scripts;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhook_install::Machine;
use anyhook_model::document::{self, MAX_BYTES, Node, Value};
use anyhook_model::{Diagnostic, Format, Scope, Severity, SourceText, Span, Vocabulary, parse};
use anyhook_run::config::discover::{Dirs, discover};
use anyhook_util::shell;
use anyhow::{Context, bail};
use openhook::discovery::FILE_NAME as OPENHOOK;
use serde::Serialize;
use serde_json::json;

use self::native_names::AgentNames;
use super::install;
use crate::cli::CommandStatus;
use crate::render::{Terminal, counted};

/// The name for stdin.
const STDIN: &str = "-";

/// Check manifests, policies, guard rules, .openhook.json and the scripts they name
///
/// Without a file, checks the managed, the user's and the project's files. Looks at
/// the scripts of the hooks too: missing, not executable, with Windows line endings,
/// without their interpreter. Nothing is run.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook validate\n  anyhook validate hooks.yaml policy.json\n  anyhook validate --fix\n  anyhook validate - < hooks.json"
)]
pub(crate) struct ValidateArgs {
    /// Files to check; `-` reads stdin
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the names that are certainly meant, such as `before_tool_execute` for
    /// an agent's `PreToolUse`
    #[arg(long)]
    fix: bool,
    /// Exit with 1 on warnings as well
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FileKind {
    Manifest,
    Policy,
    /// Of the guard `rules`.
    Rules,
    Openhook,
}

#[derive(Serialize)]
struct InputFile {
    path: String,
    kind: FileKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    /// Or the reason why the file could not be read.
    #[serde(skip)]
    text: Result<String, String>,
}

#[derive(Serialize)]
struct ValidatedFile {
    #[serde(flatten)]
    input: InputFile,
    ok: bool,
    /// The number of hooks in a valid manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<usize>,
    diagnostics: Vec<LocatedDiagnostic>,
    #[serde(skip)]
    rendered: String,
}

/// A diagnostic with its span in lines and columns.
#[derive(Serialize)]
struct LocatedDiagnostic {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    #[serde(flatten)]
    diagnostic: Diagnostic,
}

impl LocatedDiagnostic {
    fn new(diagnostic: Diagnostic, source: &SourceText<'_>) -> Self {
        let start = source.position(diagnostic.span.start);
        let end = source.position(diagnostic.span.end);
        Self {
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            diagnostic,
        }
    }
}

pub(crate) fn run(args: &ValidateArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let dirs = Dirs::from_env();
    let inputs = if args.files.is_empty() {
        discover_inputs(&dirs)?
    } else {
        let files = args.files.iter();
        files.map(|path| InputFile::load(path, &dirs)).collect()
    };
    let agents: Vec<&str> = anyhook_agents::names().collect();
    let names = AgentNames::new();
    let validator = Validator {
        vocabulary: Vocabulary {
            agents: &agents,
            native_events: &[],
            names: Some(&names),
        },
        machine: install::this_machine()?,
        is_coloured: terminal.is_stdout_coloured && !args.json,
    };
    let mut files = Vec::with_capacity(inputs.len());
    for mut input in inputs {
        if args.fix {
            validator.fix(&mut input, terminal)?;
        }
        files.push(validator.validate(input));
    }

    let count = |severity: Severity| {
        let all = files.iter().flat_map(|file| &file.diagnostics);
        all.filter(|finding| finding.diagnostic.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let ok = errors == 0 && (warnings == 0 || !args.strict);
    if args.json {
        terminal.json(&json!({"ok": ok, "files": files}))?;
    } else {
        for file in &files {
            terminal.text(&file.rendered);
            if file.ok {
                terminal.line(&summary(file));
            }
        }
        if errors + warnings > 0 {
            let errors = counted(errors, "error");
            terminal.line(&format!("{errors}, {}", counted(warnings, "warning")));
        }
    }
    Ok(CommandStatus::success_if(ok))
}

/// The files that apply in the current folder.
fn discover_inputs(dirs: &Dirs) -> anyhow::Result<Vec<InputFile>> {
    let cwd = std::env::current_dir().context("could not read the current folder")?;
    let shown = |path: &Path| {
        path.strip_prefix(&cwd)
            .unwrap_or(path)
            .display()
            .to_string()
    };
    let found = discover(dirs, &cwd);
    let mut inputs = Vec::new();
    for (kind, sources) in [
        (FileKind::Manifest, found.manifests),
        (FileKind::Policy, found.policies),
    ] {
        inputs.extend(sources.into_iter().map(|source| InputFile {
            path: shown(&source.path),
            kind,
            scope: Some(source.scope),
            text: Ok(source.text),
        }));
    }
    inputs.extend(found.problems.into_iter().map(|trouble| InputFile {
        path: shown(&trouble.path),
        kind: FileKind::from_path(&trouble.path),
        scope: Some(trouble.scope),
        text: Err(trouble.message),
    }));
    if let Some(folder) = found.openhook {
        let path = folder.join(OPENHOOK);
        inputs.push(InputFile {
            path: shown(&path),
            ..InputFile::load(&path, dirs)
        });
    }
    if inputs.is_empty() {
        bail!(
            "nothing to validate: found no .anyhook/hooks.yaml from here up to the root of the repository, \
             and no hooks.yaml in {} or {}",
            dirs.config.display(),
            dirs.managed.display()
        );
    }
    Ok(inputs)
}

impl InputFile {
    /// Reads a file; `-` is stdin.
    fn load(path: &Path, dirs: &Dirs) -> Self {
        let bytes = if path == Path::new(STDIN) {
            read_limited(io::stdin().lock())
        } else {
            anyhook_util::fs::open_named(path).and_then(read_limited)
        };
        let text = bytes
            .map_err(|error| format!("cannot be read: {error}"))
            .and_then(|bytes| {
                String::from_utf8(bytes).map_err(|error| {
                    let at = error.utf8_error().valid_up_to();
                    format!("is not UTF-8 text, at byte {at}")
                })
            });
        let scope = match path.parent() {
            Some(folder) if folder == dirs.managed => Some(Scope::Managed),
            Some(folder) if folder == dirs.config => Some(Scope::User),
            _ => None,
        };
        Self {
            path: path.display().to_string(),
            kind: FileKind::from_path(path),
            scope,
            text,
        }
    }
}

impl FileKind {
    fn from_path(path: &Path) -> Self {
        match path.file_name().and_then(|name| name.to_str()) {
            Some(OPENHOOK) => Self::Openhook,
            Some(name) if name.starts_with("policy.") => Self::Policy,
            Some(name) if name.contains("rules.") => Self::Rules,
            _ => Self::Manifest,
        }
    }
}

/// Reads one byte more than the parser accepts, so that it can report the excess.
fn read_limited(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX) + 1;
    stream.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the checks of a file need to know.
struct Validator<'a> {
    vocabulary: Vocabulary<'a>,
    machine: Machine,
    is_coloured: bool,
}

impl Validator<'_> {
    fn validate(&self, input: InputFile) -> ValidatedFile {
        let (hooks, findings) = self.findings(&input);
        let text = input.text.as_deref().unwrap_or_default();
        let source = SourceText::new(&input.path, text);
        let rendered = findings
            .iter()
            .map(|finding| source.render(finding, self.is_coloured) + "\n")
            .collect();
        let ok = !findings.iter().any(Diagnostic::is_error);
        let diagnostics = findings
            .into_iter()
            .map(|diagnostic| LocatedDiagnostic::new(diagnostic, &source))
            .collect();
        ValidatedFile {
            input,
            ok,
            hooks,
            diagnostics,
            rendered,
        }
    }

    /// The number of hooks, and everything that is wrong.
    fn findings(&self, input: &InputFile) -> (Option<usize>, Vec<Diagnostic>) {
        let text = match &input.text {
            Ok(text) => text.as_str(),
            Err(why) => {
                let message = format!("the file {why}");
                let unreadable = Diagnostic::error("unreadable", Span::at(0), message);
                return (None, vec![unreadable]);
            }
        };
        let format = Format::from_path(&input.path).unwrap_or_else(|| Format::detect(text));
        match input.kind {
            FileKind::Manifest => self.manifest_findings(input, text, format),
            FileKind::Policy => {
                // A file outside the known folders may become the managed policy.
                let scope = input.scope.unwrap_or(Scope::Managed);
                (None, parse::policy(text, format, scope, &self.vocabulary).1)
            }
            FileKind::Rules => (None, anyhook_guard::check_rules(text).1),
            FileKind::Openhook => discovery_file::check(&input.path, text, &self.machine),
        }
    }

    fn manifest_findings(
        &self,
        input: &InputFile,
        text: &str,
        format: Format,
    ) -> (Option<usize>, Vec<Diagnostic>) {
        let (tree, _) = document::parse(text, format);
        if let Some(finding) = tree
            .as_ref()
            .and_then(|tree| agent_config(&input.path, tree))
        {
            return (None, vec![finding]);
        }
        let (manifest, mut findings) = parse::manifest(text, format, &self.vocabulary);
        if let (Some(manifest), Some(tree)) = (&manifest, &tree) {
            findings.extend(guards::check(tree, manifest, &input.path, input.scope));
            if input.path != STDIN {
                let (path, scope) = (&input.path, input.scope);
                findings.extend(scripts::check(tree, manifest, path, scope, &self.machine));
            }
            findings.sort_by_key(|finding| (finding.span.start, finding.span.end));
        }
        (manifest.map(|manifest| manifest.hooks.len()), findings)
    }

    /// Writes the replacements that are certain.
    fn fix(&self, input: &mut InputFile, terminal: &Terminal) -> anyhow::Result<()> {
        let findings = self.findings(input).1;
        let Ok(text) = &mut input.text else {
            return Ok(());
        };
        let (fixed, count) = fix::fixed_text(text, &findings);
        if count == 0 {
            return Ok(());
        }
        if input.path == STDIN {
            bail!("stdin cannot be fixed; pass the file");
        }
        anyhook_edit::write_atomic(Path::new(&input.path), fixed.as_bytes())
            .with_context(|| format!("could not write {}", input.path))?;
        *text = fixed;
        let names = counted(count, "name");
        terminal.note(&format!(
            "{}: fixed {names}; if it was approved, `anyhook trust` approves it again",
            input.path
        ));
        Ok(())
    }
}

/// An agent's own config file that was passed for a manifest.
fn agent_config(path: &str, tree: &Node) -> Option<Diagnostic> {
    let is_manifest = tree.get("spec").is_some() || tree.get("hooks")?.as_array().is_some();
    if is_manifest {
        return None;
    }
    let detected = anyhook_convert::detect(Some(path), &tree.to_json())?;
    let agent = detected.agent?;
    let name = &agent.spec.name;
    let shown = shell::quote_if_needed(path);
    let message = format!("this is a config file of {name}, not a manifest");
    let help = format!(
        "`anyhook init --import` moves its hooks into .anyhook/hooks.yaml; `anyhook convert {shown} --to canonical` prints them as a manifest"
    );
    Some(Diagnostic::error("agent-config", Span::at(0), message).help(help))
}

/// The span of the value at a JSON pointer, or of its nearest ancestor.
fn span_at(root: &Node, pointer: &str) -> Span {
    let mut node = root;
    for step in pointer.split('/').skip(1) {
        let key = step.replace("~1", "/").replace("~0", "~");
        let next = match &node.value {
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => node.get(&key),
        };
        match next {
            Some(next) => node = next,
            None => return Span::at(node.span.start),
        }
    }
    node.span
}

fn summary(file: &ValidatedFile) -> String {
    let InputFile {
        path, kind, scope, ..
    } = &file.input;
    let what = match (kind, file.hooks) {
        (FileKind::Policy, _) => "policy".to_owned(),
        (FileKind::Rules, _) => "rules".to_owned(),
        (_, Some(hooks)) => counted(hooks, "hook"),
        (_, None) => "hooks".to_owned(),
    };
    match scope {
        Some(scope) => format!("{path}: ok ({what}, {})", scope.as_str()),
        None => format!("{path}: ok ({what})"),
    }
}
