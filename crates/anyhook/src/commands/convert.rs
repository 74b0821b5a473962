//! `anyhook convert`: one agent's hook config as another's.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::output::{NativeFile, marked};
use anyhook_agents::spec::{FileFormat, Scope, Shape};
use anyhook_convert::{
    Conversion, ConvertError, Options, Severity, Source, Target, Warning, convert, detect,
};
use anyhook_model::document::{self, Format};
use anyhook_model::parse::Vocabulary;
use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};

use crate::cli::Verdict;
use crate::render::Terminal;

/// Convert a hook config of one agent to that of another
///
/// The converted config goes to stdout, what it could not carry to stderr.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  anyhook convert .claude/settings.json --to cursor
  anyhook convert .claude/settings.json --to all
  anyhook convert .anyhook/hooks.yaml --to codex -o . --merge")]
pub struct Args {
    /// A config file, a folder of them, or `-` for stdin
    #[arg(default_value = "-")]
    input: String,
    /// Whose config it is: an agent's slug, `canonical` or `contract` [default: by path and shape]
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// The agent to convert to, `canonical`, `contract`, or `all` for a table of losses
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// An older file format of the target, where it has several
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Write a file; for a folder: to the place in it where the agent looks
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Add the hooks to the file that is there, keeping all that it says
    #[arg(long, requires = "output")]
    merge: bool,
    /// Replace the file that is there
    #[arg(long, requires = "output", conflicts_with = "merge")]
    force: bool,
    /// Note in a canonical manifest whose language each program speaks
    #[arg(long)]
    keep_dialect: bool,
    /// Exit with 1 on any warning
    #[arg(long)]
    strict: bool,
    /// Print output and warnings as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let input = Input::read(&args.input)?;
    let source = input.decode(args.from.as_deref())?;
    if args.to == "all" {
        return all(args, &source, &input, terminal);
    }
    let (adapter, target) = target(&args.to, args.variant.as_deref())?;
    let script = |command: &str| input.script(command);
    let options = Options {
        script: Some(&script),
        keep_dialect: args.keep_dialect,
    };
    let conversion = match convert(&source, target, &options) {
        Ok(conversion) => conversion,
        Err(error) => return refuse(args, terminal, &error),
    };
    let files = files(adapter, &conversion.document, args);
    if let Some(output) = &args.output {
        write(output, adapter, args, &conversion, &files)?;
    }
    if args.json {
        let output: Value = match (
            adapter.map(|adapter| adapter.config(args.variant.as_deref()).shape),
            files.as_slice(),
        ) {
            (Some(Shape::Plugin), [file]) => json!(file.text),
            _ => conversion.document.clone(),
        };
        terminal
            .json(&json!({"output": output, "warnings": conversion.warnings, "verified": true}))?;
    } else {
        if args.output.is_none() {
            for file in &files {
                if let (Some(name), true) = (&file.name, files.len() > 1) {
                    terminal.line(&format!("# {name}"));
                }
                terminal.text(&file.text);
            }
        }
        tell(terminal, &conversion.warnings);
    }
    let failed = conversion
        .warnings
        .iter()
        .any(|warning| warning.severity == Severity::Error);
    let any = conversion
        .warnings
        .iter()
        .any(|warning| warning.severity > Severity::Info);
    Ok(if failed || (args.strict && any) {
        Verdict::Findings
    } else {
        Verdict::Good
    })
}

/// What stands in the way, in full; there is no output.
fn refuse(args: &Args, terminal: &Terminal, error: &ConvertError) -> anyhow::Result<Verdict> {
    let (warnings, message) = match error {
        ConvertError::NothingLeft { warnings } => (
            warnings,
            format!(
                "nothing of `{}` can be carried to `{}`",
                args.input, args.to
            ),
        ),
        ConvertError::Unfaithful {
            differences,
            warnings,
        } => {
            let list: Vec<String> = differences
                .iter()
                .map(|one| {
                    format!(
                        "  hook {}, {}: `{}` became `{}`",
                        one.hook, one.field, one.expected, one.found
                    )
                })
                .collect();
            (
                warnings,
                format!(
                    "the output would not say what the source says, so there is none; this is a defect of anyhook:\n{}",
                    list.join("\n")
                ),
            )
        }
    };
    if args.json {
        terminal.json(
            &json!({"output": null, "warnings": warnings, "verified": false, "error": message}),
        )?;
    } else {
        tell(terminal, warnings);
        terminal.failure(&message);
    }
    Ok(Verdict::Findings)
}

fn target(name: &str, variant: Option<&str>) -> anyhow::Result<(Option<&'static Adapter>, Target)> {
    if name == "canonical" {
        return Ok((None, Target::Canonical));
    }
    let adapter = super::agents::find(name)?;
    let variant = match variant {
        None => None,
        Some(wanted) => {
            let known: Vec<&'static str> = adapter
                .spec
                .config
                .variant
                .keys()
                .map(AsRef::as_ref)
                .collect();
            let found = known.iter().find(|name| **name == wanted).copied();
            Some(found.ok_or_else(|| {
                anyhow!(
                    "{} has no format `{wanted}`; it has: {}",
                    adapter.spec.name,
                    known.join(", ")
                )
            })?)
        }
    };
    Ok((Some(adapter), Target::Agent { adapter, variant }))
}

/// What was read, still as text.
struct Input {
    /// Where scripts are looked for.
    folder: PathBuf,
    /// Path (absent for stdin), name and text of each file.
    files: Vec<(Option<PathBuf>, String)>,
    is_folder: bool,
}

impl Input {
    fn read(name: &str) -> anyhow::Result<Self> {
        if name == "-" {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("stdin")?;
            return Ok(Self {
                folder: PathBuf::from("."),
                files: vec![(None, text)],
                is_folder: false,
            });
        }
        let path = PathBuf::from(name);
        if path.is_dir() {
            let mut files = Vec::new();
            let mut entries: Vec<PathBuf> = fs::read_dir(&path)
                .with_context(|| name.to_owned())?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.is_file())
                .collect();
            entries.sort();
            for file in entries {
                if let Ok(text) = fs::read_to_string(&file) {
                    files.push((Some(file), text));
                }
            }
            return Ok(Self {
                folder: path,
                files,
                is_folder: true,
            });
        }
        let text = fs::read_to_string(&path).with_context(|| format!("`{name}` cannot be read"))?;
        let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self {
            folder,
            files: vec![(Some(path), text)],
            is_folder: false,
        })
    }

    /// The text of a script that a command names, to see what it does.
    fn script(&self, command: &str) -> Option<String> {
        let word = command
            .split_whitespace()
            .find(|word| word.contains('/') || word.contains('.'))?;
        let word = word.trim_matches(['"', '\'']);
        self.folder
            .ancestors()
            .take(3)
            .map(|folder| folder.join(word))
            .find_map(|path| fs::read_to_string(path).ok())
    }

    fn decode(&self, from: Option<&str>) -> anyhow::Result<Source> {
        if self.is_folder {
            return self.decode_folder(from);
        }
        let Some((path, text)) = self.files.first() else {
            bail!("there is nothing to read")
        };
        decode_text(path.as_deref(), text, from)
    }

    fn decode_folder(&self, from: Option<&str>) -> anyhow::Result<Source> {
        let scripts = match from {
            Some(name) => Some(super::agents::find(name)?)
                .filter(|adapter| adapter.spec.config.shape == Shape::Scripts),
            None => anyhook_agents::all().find(|adapter| {
                adapter.spec.config.shape == Shape::Scripts
                    && self
                        .files
                        .iter()
                        .any(|(path, _)| adapter.event_by_native(&stem(path.as_deref())).is_some())
            }),
        };
        if let Some(adapter) = scripts {
            let named: Vec<(String, String, &str)> = self
                .files
                .iter()
                .map(|(path, text)| {
                    (
                        name_of(path.as_deref()),
                        path.as_ref()
                            .map(|path| path.display().to_string())
                            .unwrap_or_default(),
                        text.as_str(),
                    )
                })
                .collect();
            let document = adapter.document_of_scripts(
                named
                    .iter()
                    .map(|(name, path, text)| (name.as_str(), path.as_str(), *text)),
            );
            return Ok(Source::decode(adapter, &document, None));
        }
        let mut whole: Option<Source> = None;
        for (path, text) in &self.files {
            let Ok(mut source) = decode_text(path.as_deref(), text, from) else {
                continue;
            };
            match &mut whole {
                None => whole = Some(source),
                Some(whole) => {
                    whole.manifest.hooks.append(&mut source.manifest.hooks);
                    whole.warnings.append(&mut source.warnings);
                }
            }
        }
        whole.ok_or_else(|| {
            anyhow!(
                "no file of `{}` is a hook config that is known; name the agent with --from",
                self.folder.display()
            )
        })
    }
}

fn name_of(path: Option<&Path>) -> String {
    path.and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn stem(path: Option<&Path>) -> String {
    name_of(path)
        .split('.')
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn decode_text(path: Option<&Path>, text: &str, from: Option<&str>) -> anyhow::Result<Source> {
    let shown = path.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    let document = parse(&shown, text)?;
    let (adapter, variant) = match from {
        Some("canonical") => (None, None),
        Some(name) => {
            let adapter = super::agents::find(name)?;
            let guessed = detect(Some(&shown), &document).filter(|guess| {
                guess
                    .agent
                    .is_some_and(|agent| agent.spec.id == adapter.spec.id)
            });
            (Some(adapter), guessed.and_then(|guess| guess.variant))
        }
        None => {
            let guess = detect(path.map(|_| shown.as_str()), &document).ok_or_else(|| {
                anyhow!("{shown}: whose config this is cannot be told; say it with --from")
            })?;
            (guess.agent, guess.variant)
        }
    };
    match adapter {
        Some(adapter) => Ok(Source::decode(adapter, &document, variant)),
        None => canonical(&shown, text),
    }
}

fn canonical(shown: &str, text: &str) -> anyhow::Result<Source> {
    let format = Format::from_path(shown).unwrap_or_else(|| Format::detect(text));
    let (manifest, findings) = anyhook_model::parse::manifest(text, format, &Vocabulary::default());
    manifest.map(Source::canonical).ok_or_else(|| {
        let list: Vec<String> = findings
            .iter()
            .filter(|finding| finding.severity == anyhook_model::diagnostic::Severity::Error)
            .map(|finding| finding.message.clone())
            .collect();
        anyhow!(
            "{shown} is no valid manifest (see `anyhook validate`): {}",
            list.join("; ")
        )
    })
}

/// JSON, JSON with comments, YAML, TOML, or a generated program.
fn parse(shown: &str, text: &str) -> anyhow::Result<Value> {
    if let Some(document) = marked(text) {
        return Ok(document);
    }
    if Path::new(shown)
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return toml::from_str(text).with_context(|| format!("{shown} is not TOML"));
    }
    let format = Format::from_path(shown).unwrap_or_else(|| Format::detect(text));
    let (tree, findings) = document::parse(text, format);
    match (tree, findings.first()) {
        (Some(tree), _) => Ok(tree.to_json()),
        (None, Some(finding)) => bail!("{shown}: {}", finding.message),
        (None, None) => bail!("{shown} is empty"),
    }
}

fn files(adapter: Option<&'static Adapter>, document: &Value, args: &Args) -> Vec<NativeFile> {
    let text = |text: String| {
        vec![NativeFile {
            name: None,
            text,
            executable: false,
        }]
    };
    let extension = args
        .output
        .as_deref()
        .and_then(Path::extension)
        .map(|extension| extension.to_string_lossy().into_owned());
    match (adapter, extension.as_deref()) {
        (Some(_), Some("toml")) => text(toml::to_string_pretty(document).unwrap_or_default()),
        (Some(adapter), _) => adapter.files(document, args.variant.as_deref()),
        (None, _) => text(serde_json::to_string_pretty(document).unwrap_or_default() + "\n"),
    }
}

/// Writes where the agent looks, and never over something else unasked.
fn write(
    output: &Path,
    adapter: Option<&'static Adapter>,
    args: &Args,
    conversion: &Conversion,
    files: &[NativeFile],
) -> anyhow::Result<()> {
    let place = if output.is_dir() {
        let path = match adapter {
            Some(adapter) => adapter
                .spec
                .files
                .iter()
                .find(|file| {
                    file.write
                        && file.scope == Scope::Project
                        && file.variant.as_deref() == args.variant.as_deref()
                })
                .map(|file| file.path.to_string())
                .ok_or_else(|| {
                    anyhow!(
                        "{} has no project file; name one with -o",
                        adapter.spec.name
                    )
                })?,
            None => ".anyhook/hooks.json".to_owned(),
        };
        output.join(path)
    } else {
        output.to_owned()
    };
    for file in files {
        let path = match &file.name {
            Some(name) => place.join(name),
            None => place.clone(),
        };
        let there = fs::read_to_string(&path).ok();
        let text = match there {
            Some(there) if there == file.text => continue,
            Some(there) if args.merge => {
                let adapter = adapter.ok_or_else(|| anyhow!("--merge is for agents' own files"))?;
                merged(
                    &path,
                    &there,
                    adapter,
                    args.variant.as_deref(),
                    &conversion.document,
                )?
            }
            Some(_) if !args.force => bail!(
                "`{}` is there and says something else; --merge adds the hooks to it, --force replaces it",
                path.display()
            ),
            _ => file.text.clone(),
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        anyhook_edit::write_atomic(&path, text.as_bytes())
            .with_context(|| path.display().to_string())?;
        #[cfg(unix)]
        if file.executable {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// The file that is there, with our entries behind its own.
fn merged(
    path: &Path,
    text: &str,
    adapter: &Adapter,
    variant: Option<&str>,
    document: &Value,
) -> anyhow::Result<String> {
    use anyhook_edit::{Draft, Key};
    let config = adapter.config(variant);
    let format = adapter
        .spec
        .files
        .iter()
        .find(|file| path.ends_with(file.path.trim_start_matches("~/")))
        .map(|file| file.format);
    let format = match format {
        Some(FileFormat::Toml) => anyhook_edit::Format::Toml,
        Some(FileFormat::Jsonc) => anyhook_edit::Format::Jsonc,
        _ if path
            .extension()
            .is_some_and(|extension| extension == "toml") =>
        {
            anyhook_edit::Format::Toml
        }
        _ => anyhook_edit::Format::Jsonc,
    };
    let root: Vec<Key> = config.root.split('/').skip(1).map(Key::from).collect();
    let hooks = if config.root.is_empty() {
        Some(document)
    } else {
        document.pointer(&config.root)
    };
    let options = anyhook_edit::Options {
        escape_slashes: adapter.escapes_slashes(),
        ..Default::default()
    };
    let mut draft = Draft::new(text, format, options);
    for (key, value) in &config.preamble {
        if draft.get(&[Key::from(key.as_str())])?.is_none() {
            draft.set(&[Key::from(key.as_str())], value)?;
        }
    }
    let mut add = |path: Vec<Key>, entries: &Value| -> anyhow::Result<()> {
        for entry in entries.as_array().into_iter().flatten() {
            draft.append_unless(&path, entry, &|there| there == entry)?;
        }
        Ok(())
    };
    match hooks {
        Some(Value::Object(events)) => {
            for (event, entries) in events {
                let mut path = root.clone();
                path.push(Key::from(event.as_str()));
                add(path, entries)?;
            }
        }
        Some(list @ Value::Array(_)) => add(root, list)?,
        _ => bail!(
            "{} keeps its hooks in files of their own; --merge has nothing to merge into",
            adapter.spec.name
        ),
    }
    Ok(draft.text().to_owned())
}

/// One block per hook, on stderr.
fn tell(terminal: &Terminal, warnings: &[Warning]) {
    let mut hooks: Vec<Option<usize>> = warnings.iter().map(|warning| warning.hook).collect();
    hooks.sort_unstable();
    hooks.dedup();
    for hook in hooks {
        let block: Vec<&Warning> = warnings
            .iter()
            .filter(|warning| warning.hook == hook)
            .collect();
        let name = block.first().and_then(|warning| warning.name.as_deref());
        let title = match (hook, name) {
            (None, _) => "the file".to_owned(),
            (Some(hook), Some(name)) => format!("hook {hook} `{name}`"),
            (Some(hook), None) => format!("hook {hook}"),
        };
        terminal.note(&terminal.bold_err(&title));
        for warning in block {
            let strategy = match (warning.capability, warning.strategy) {
                (Some(capability), Some(strategy)) => format!(
                    " [{capability}: {}; another with `degradation: {{ {capability}: … }}`]",
                    strategy.as_str()
                ),
                _ => String::new(),
            };
            let severity = terminal.severity(warning.severity.as_str());
            terminal.note(&format!(
                "  {severity} {}: {}{strategy}",
                warning.field, warning.message
            ));
        }
    }
}

/// What each agent would lose, in one table.
fn all(
    args: &Args,
    source: &Source,
    input: &Input,
    terminal: &Terminal,
) -> anyhow::Result<Verdict> {
    let script = |command: &str| input.script(command);
    let options = Options {
        script: Some(&script),
        keep_dialect: false,
    };
    let total = source.manifest.hooks.len();
    let mut rows = Vec::new();
    let mut json = Vec::new();
    for adapter in anyhook_agents::all() {
        let result = convert(
            source,
            Target::Agent {
                adapter,
                variant: None,
            },
            &options,
        );
        let (carried, warnings) = match result {
            Ok(conversion) => (conversion.carried, conversion.warnings),
            Err(
                ConvertError::NothingLeft { warnings } | ConvertError::Unfaithful { warnings, .. },
            ) => (0, warnings),
        };
        let count = |severity: Severity| {
            warnings
                .iter()
                .filter(|warning| warning.severity == severity)
                .count()
        };
        let worst: Vec<String> = warnings
            .iter()
            .filter(|warning| warning.severity >= Severity::Critical)
            .filter_map(|warning| Some(format!("{}:{}", warning.hook?, warning.field)))
            .collect();
        rows.push(vec![
            adapter.spec.id.to_string(),
            format!("{carried}/{total}"),
            (count(Severity::Critical) + count(Severity::Error)).to_string(),
            count(Severity::Warning).to_string(),
            count(Severity::Info).to_string(),
            worst.join(" "),
        ]);
        json.push(json!({"agent": adapter.spec.id, "hooks": total, "carried": carried, "warnings": warnings}));
    }
    if args.json {
        terminal.json(&json)?;
    } else {
        terminal.table(
            &[
                "agent",
                "hooks",
                "critical",
                "warnings",
                "notes",
                "weakened or lost (hook:field)",
            ],
            &rows,
        );
    }
    Ok(Verdict::Good)
}
