//! `anyhook validate`: manifests, policies and `.openhook.json`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhook_model::document::{self, MAX_BYTES, Node, Value};
use anyhook_model::{Diagnostic, Format, Scope, Severity, Source, Span, Vocabulary, parse};
use anyhook_run::discover::{Dirs, discover};
use anyhow::{Context, bail};
use openhook::discovery::FILE_NAME as OPENHOOK;
use serde::Serialize;

use crate::cli::Verdict;
use crate::render::Terminal;

/// Check manifests, policies and .openhook.json
///
/// Without a file, the managed, the user's and the project's are checked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook validate\n  anyhook validate hooks.yaml policy.json\n  anyhook validate - < hooks.json"
)]
pub struct Args {
    /// Files to check; `-` is stdin
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 on warnings too
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Manifest,
    Policy,
    Openhook,
}

struct Input {
    path: String,
    kind: Kind,
    scope: Option<Scope>,
    /// Or why it cannot be read.
    text: Result<String, String>,
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    files: Vec<Checked>,
}

#[derive(Serialize)]
struct Checked {
    path: String,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    ok: bool,
    /// How many hooks a sound manifest has.
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<usize>,
    diagnostics: Vec<Located>,
    #[serde(skip)]
    rendered: String,
}

/// A finding with its place in lines and columns.
#[derive(Serialize)]
struct Located {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    #[serde(flatten)]
    diagnostic: Diagnostic,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let dirs = Dirs::from_env();
    let inputs = if args.files.is_empty() {
        find(&dirs)?
    } else {
        args.files.iter().map(|path| read(path, &dirs)).collect()
    };
    let agents: Vec<&str> = anyhook_agents::names().collect();
    let vocabulary = Vocabulary {
        agents: &agents,
        native_events: &[],
    };
    let files: Vec<Checked> = inputs
        .iter()
        .map(|input| check(input, &vocabulary, terminal.colour() && !args.json))
        .collect();

    let count = |severity: Severity| {
        let all = files.iter().flat_map(|file| &file.diagnostics);
        all.filter(|finding| finding.diagnostic.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let ok = errors == 0 && (warnings == 0 || !args.strict);
    if args.json {
        terminal.json(&Report { ok, files })?;
    } else {
        for file in &files {
            terminal.text(&file.rendered);
            if file.ok {
                terminal.line(&summary(file));
            }
        }
        if errors + warnings > 0 {
            terminal.line(&format!(
                "{}, {}",
                counted(errors, "error"),
                counted(warnings, "warning")
            ));
        }
    }
    Ok(if ok { Verdict::Good } else { Verdict::Findings })
}

/// The files that apply in this folder.
fn find(dirs: &Dirs) -> anyhow::Result<Vec<Input>> {
    let cwd = std::env::current_dir().context("the current folder cannot be read")?;
    let found = discover(dirs, &cwd);
    let mut inputs = Vec::new();
    for (kind, sources) in [
        (Kind::Manifest, found.manifests),
        (Kind::Policy, found.policies),
    ] {
        inputs.extend(sources.into_iter().map(|source| Input {
            path: shown(&source.path, &cwd),
            kind,
            scope: Some(source.scope),
            text: Ok(source.text),
        }));
    }
    inputs.extend(found.troubles.into_iter().map(|trouble| Input {
        path: shown(&trouble.path, &cwd),
        kind: kind_of(&trouble.path),
        scope: Some(trouble.scope),
        text: Err(trouble.message),
    }));
    if let Some(folder) = found.openhook {
        let openhook = folder.join(OPENHOOK);
        let mut input = read(&openhook, dirs);
        input.path = shown(&openhook, &cwd);
        inputs.push(input);
    }
    if inputs.is_empty() {
        bail!(
            "there is nothing to validate: no .anyhook/hooks.yaml from here up to the root of the repository, \
             no hooks.yaml in {}, none in {}",
            dirs.config.display(),
            dirs.managed.display()
        );
    }
    Ok(inputs)
}

fn shown(path: &Path, cwd: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

fn read(path: &Path, dirs: &Dirs) -> Input {
    let bytes = if path == Path::new("-") {
        limited(io::stdin().lock())
    } else {
        File::open(path).and_then(limited)
    };
    let text = bytes
        .map_err(|error| format!("cannot be read: {error}"))
        .and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                format!("is not UTF-8 text, at byte {at}")
            })
        });
    let folder = path.parent();
    let scope = if folder == Some(&*dirs.managed) {
        Some(Scope::Managed)
    } else if folder == Some(&*dirs.config) {
        Some(Scope::User)
    } else {
        None
    };
    Input {
        path: path.display().to_string(),
        kind: kind_of(path),
        scope,
        text,
    }
}

fn kind_of(path: &Path) -> Kind {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(OPENHOOK) => Kind::Openhook,
        Some(name) if name.starts_with("policy.") => Kind::Policy,
        _ => Kind::Manifest,
    }
}

/// One byte more than is accepted, so that too much is seen to be too much.
fn limited(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX) + 1;
    stream.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check(input: &Input, vocabulary: &Vocabulary<'_>, colour: bool) -> Checked {
    let (text, unreadable) = match &input.text {
        Ok(text) => (text.as_str(), None),
        Err(why) => (
            "",
            Some(Diagnostic::error(
                "unreadable",
                Span::at(0),
                format!("the file {why}"),
            )),
        ),
    };
    let format = Format::from_path(&input.path).unwrap_or_else(|| Format::detect(text));
    let (hooks, findings) = match input.kind {
        _ if unreadable.is_some() => (None, unreadable.into_iter().collect()),
        Kind::Manifest => {
            let (manifest, findings) = parse::manifest(text, format, vocabulary);
            (manifest.map(|manifest| manifest.hooks.len()), findings)
        }
        Kind::Policy => {
            // A file that lies nowhere yet may become the managed one.
            let scope = input.scope.unwrap_or(Scope::Managed);
            (None, parse::policy(text, format, scope, vocabulary).1)
        }
        Kind::Openhook => discovery_file(text),
    };
    let source = Source::new(&input.path, text);
    let rendered = findings
        .iter()
        .map(|finding| source.render(finding, colour) + "\n")
        .collect();
    let ok = !findings.iter().any(Diagnostic::is_error);
    let diagnostics = findings
        .into_iter()
        .map(|diagnostic| {
            let start = source.position(diagnostic.span.start);
            let end = source.position(diagnostic.span.end);
            Located {
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                diagnostic,
            }
        })
        .collect();
    Checked {
        path: input.path.clone(),
        kind: input.kind,
        scope: input.scope,
        ok,
        hooks,
        diagnostics,
        rendered,
    }
}

/// OpenHook's findings name a place in the structure; the tree knows where
/// that is in the text.
fn discovery_file(text: &str) -> (Option<usize>, Vec<Diagnostic>) {
    let (tree, syntax) = document::parse(text, Format::Json);
    let Some(tree) = tree.filter(|_| syntax.is_empty()) else {
        return (None, syntax);
    };
    let read = openhook::Discovery::from_value(&tree.to_json());
    let findings = read
        .findings
        .into_iter()
        .map(|finding| {
            let severity = match finding.severity {
                openhook::Severity::Error => Severity::Error,
                openhook::Severity::Warning => Severity::Warning,
            };
            Diagnostic::new(
                severity,
                finding.code,
                place(&tree, &finding.field),
                finding.message,
            )
            .path(finding.field)
        })
        .collect();
    (
        read.discovery.map(|discovery| discovery.hooks.len()),
        findings,
    )
}

/// The value at a JSON pointer, or the innermost that is there.
fn place(root: &Node, pointer: &str) -> Span {
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

fn summary(file: &Checked) -> String {
    let what = match (file.kind, file.hooks) {
        (Kind::Policy, _) => "policy".to_owned(),
        (_, Some(hooks)) => counted(hooks, "hook"),
        (_, None) => "hooks".to_owned(),
    };
    match file.scope {
        Some(scope) => format!("{}: ok ({what}, {})", file.path, scope.as_str()),
        None => format!("{}: ok ({what})", file.path),
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
