//! `anyhook validate`: manifests, policies, guard rules and `.openhook.json`.

mod guards;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhook_model::document::{self, MAX_BYTES, Node, Value};
use anyhook_model::{Diagnostic, Format, Scope, Severity, SourceText, Span, Vocabulary, parse};
use anyhook_run::config::discover::{Dirs, discover};
use anyhow::{Context, bail};
use openhook::discovery::FILE_NAME as OPENHOOK;
use serde::Serialize;
use serde_json::json;

use crate::cli::CommandStatus;
use crate::render::{Terminal, counted};

/// Check manifests, policies, guard rules and .openhook.json
///
/// Without a file, checks the managed, the user's and the project's files.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook validate\n  anyhook validate hooks.yaml policy.json\n  anyhook validate - < hooks.json"
)]
pub(crate) struct ValidateArgs {
    /// Files to check; `-` reads stdin
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
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

pub(crate) fn run(args: &ValidateArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let dirs = Dirs::from_env();
    let inputs = if args.files.is_empty() {
        discover_inputs(&dirs)?
    } else {
        let files = args.files.iter();
        files.map(|path| InputFile::load(path, &dirs)).collect()
    };
    let agents: Vec<&str> = anyhook_agents::names().collect();
    let vocabulary = Vocabulary {
        agents: &agents,
        native_events: &[],
    };
    let is_coloured = terminal.is_stdout_coloured && !args.json;
    let files: Vec<ValidatedFile> = inputs
        .into_iter()
        .map(|input| validate(input, &vocabulary, is_coloured))
        .collect();

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
        let bytes = if path == Path::new("-") {
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

fn validate(input: InputFile, vocabulary: &Vocabulary<'_>, is_coloured: bool) -> ValidatedFile {
    let text = input.text.as_deref().unwrap_or_default();
    let format = Format::from_path(&input.path).unwrap_or_else(|| Format::detect(text));
    let (hooks, findings) = match (&input.text, input.kind) {
        (Err(why), _) => {
            let message = format!("the file {why}");
            let unreadable = Diagnostic::error("unreadable", Span::at(0), message);
            (None, vec![unreadable])
        }
        (_, FileKind::Manifest) => {
            let (manifest, mut findings) = parse::manifest(text, format, vocabulary);
            if let (Some(manifest), (Some(tree), _)) = (&manifest, document::parse(text, format)) {
                findings.extend(guards::check(&tree, manifest, &input.path, input.scope));
            }
            (manifest.map(|manifest| manifest.hooks.len()), findings)
        }
        (_, FileKind::Policy) => {
            // A file outside the known folders may become the managed policy.
            let scope = input.scope.unwrap_or(Scope::Managed);
            (None, parse::policy(text, format, scope, vocabulary).1)
        }
        (_, FileKind::Rules) => (None, anyhook_guard::check_rules(text).1),
        (_, FileKind::Openhook) => validate_openhook(text),
    };
    let source = SourceText::new(&input.path, text);
    let rendered = findings
        .iter()
        .map(|finding| source.render(finding, is_coloured) + "\n")
        .collect();
    let ok = !findings.iter().any(Diagnostic::is_error);
    let diagnostics = findings
        .into_iter()
        .map(|diagnostic| {
            let start = source.position(diagnostic.span.start);
            let end = source.position(diagnostic.span.end);
            LocatedDiagnostic {
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                diagnostic,
            }
        })
        .collect();
    ValidatedFile {
        input,
        ok,
        hooks,
        diagnostics,
        rendered,
    }
}

/// OpenHook's findings have a JSON pointer; the parsed tree has its position in the text.
fn validate_openhook(text: &str) -> (Option<usize>, Vec<Diagnostic>) {
    let (tree, syntax) = document::parse(text, Format::Json);
    let Some(tree) = tree.filter(|_| syntax.is_empty()) else {
        return (None, syntax);
    };
    let parsed = openhook::Discovery::from_value(&tree.to_json());
    let findings = parsed.findings.into_iter().map(|finding| {
        let severity = match finding.severity {
            openhook::FindingSeverity::Error => Severity::Error,
            openhook::FindingSeverity::Warning => Severity::Warning,
        };
        let span = span_at(&tree, &finding.field);
        Diagnostic::new(severity, finding.code, span, finding.message).path(finding.field)
    });
    let hooks = parsed.discovery.map(|discovery| discovery.hooks.len());
    (hooks, findings.collect())
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
