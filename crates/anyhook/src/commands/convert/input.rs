//! What is converted (a file, a folder of files or stdin), and which agent it belongs to.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::output::marked;
use anyhook_agents::spec::ConfigShape;
use anyhook_convert::{ConversionSource, ScriptText, detect, detect_variant};
use anyhook_model::document::{self, Format};
use anyhook_model::parse::Vocabulary;
use anyhook_model::{Diagnostic, Span};
use anyhook_util::fs::read_text;
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use super::scripts::ScriptFinder;

/// A larger file next to a config is neither a config nor a script.
pub(super) const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;

/// The files to convert, as text.
pub(super) struct ConvertInput {
    /// Where the search for scripts begins.
    folder: PathBuf,
    /// Path (`None` for stdin) and text of each file.
    files: Vec<(Option<PathBuf>, String)>,
    is_folder: bool,
    is_coloured: bool,
}

impl ConvertInput {
    pub(super) fn load(name: &str, is_coloured: bool) -> anyhow::Result<Self> {
        let path = PathBuf::from(name);
        let mut input = Self {
            folder: PathBuf::from("."),
            files: Vec::new(),
            is_folder: false,
            is_coloured,
        };
        if name == "-" {
            let text = std::io::read_to_string(std::io::stdin()).context("stdin")?;
            input.files.push((None, text));
        } else if path.is_dir() {
            let mut entries: Vec<PathBuf> = fs::read_dir(&path)
                .with_context(|| format!("could not read `{name}`"))?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.is_file())
                .collect();
            entries.sort();
            for file in entries {
                // Programs next to the configs may be binary.
                if let Ok(text) = read_text(&file, MAX_SCRIPT_BYTES) {
                    input.files.push((Some(file), text));
                }
            }
            input.folder = path;
            input.is_folder = true;
        } else {
            let text = anyhook_util::fs::open_named(&path)
                .and_then(std::io::read_to_string)
                .with_context(|| format!("could not read `{}`", path.display()))?;
            path.parent()
                .unwrap_or(Path::new("."))
                .clone_into(&mut input.folder);
            input.files.push((Some(path), text));
        }
        Ok(input)
    }

    /// What is known of the scripts that a command runs.
    pub(super) fn script(&self, command: &str) -> ScriptText {
        let folder = &self.folder;
        ScriptFinder { folder }.script(command)
    }

    /// The project's folder below the root of its git repository, if it is not the
    /// root itself. Known only of a config in a folder with a dot, which agents have in
    /// the project's folder; a config elsewhere is taken for one of the root.
    pub(super) fn folder_in_repository(&self) -> Option<String> {
        let folder = anyhook_util::paths::canonicalize(&self.folder).ok()?;
        let is_hidden = |folder: &&Path| file_name(folder).starts_with('.');
        let hidden = folder.ancestors().take(2).find(is_hidden);
        let project = hidden.and_then(Path::parent)?;
        let root = project
            .ancestors()
            .find(|folder| folder.join(".git").exists())?;
        let below = project.strip_prefix(root).ok()?.to_str()?;
        (!below.is_empty()).then(|| below.replace('\\', "/"))
    }

    pub(super) fn decode(&self, from: Option<&str>) -> anyhow::Result<ConversionSource> {
        if self.is_folder {
            return self.decode_folder(from);
        }
        let Some((path, text)) = self.files.first() else {
            bail!("there is no file to convert")
        };
        self.decode_text(path.as_deref(), text, from)
    }

    fn decode_folder(&self, from: Option<&str>) -> anyhow::Result<ConversionSource> {
        if let Some(adapter) = self.script_agent(from)? {
            let mut scripts = Vec::new();
            for (path, text) in &self.files {
                let path = path.as_deref().unwrap_or(Path::new(""));
                scripts.push((file_name(path), path_in_config(path), text.as_str()));
            }
            let scripts = scripts.iter();
            let document = adapter
                .document_of_scripts(scripts.map(|(name, path, text)| (&**name, &**path, *text)));
            let mut source = ConversionSource::decode(adapter, &document, None);
            for (path, text) in &self.files {
                let path = path.as_deref().unwrap_or(Path::new(""));
                let is_script = text.starts_with("#!") || has_script_ending(&file_name(path));
                if is_script && !adapter.is_event_script(&file_name(path)) {
                    source.note_unconverted_file(&path_in_config(path));
                }
            }
            return Ok(source);
        }
        let mut whole: Option<ConversionSource> = None;
        let mut unknown = Vec::new();
        for (path, text) in &self.files {
            let Some(path) = path.as_deref().filter(|path| is_config(path)) else {
                continue;
            };
            let shown = path_in_config(path);
            let document = self.parse(&shown, text, None)?;
            if from.is_none() && detect(Some(&shown), &document).is_none() {
                unknown.push(shown);
                continue;
            }
            let source = self.decode_text(Some(path), text, from)?;
            match &mut whole {
                None => whole = Some(source),
                Some(whole) if agent_name(whole) == agent_name(&source) => {
                    whole.append(source, &shown);
                }
                Some(whole) => bail!(
                    "`{}` contains configs of {} and {}; convert them one by one",
                    self.folder.display(),
                    agent_name(whole),
                    agent_name(&source)
                ),
            }
        }
        let mut whole = whole.ok_or_else(|| {
            anyhow!(
                "found no known hook config in `{}`; pass `--from <AGENT>`",
                self.folder.display()
            )
        })?;
        for path in unknown {
            whole.note_unconverted_file(&path);
        }
        Ok(whole)
    }

    /// The agent that keeps its hooks as scripts in this folder.
    fn script_agent(&self, from: Option<&str>) -> anyhow::Result<Option<&'static Adapter>> {
        let is_scripts = |adapter: &&Adapter| adapter.spec.config.shape == ConfigShape::Scripts;
        if let Some(name) = from.filter(|name| *name != "canonical") {
            return Ok(Some(super::super::agents::find(name)?).filter(is_scripts));
        }
        let mut stems = self.files.iter().filter_map(|(path, _)| {
            let name = file_name(path.as_deref()?);
            Some(name.split('.').next().unwrap_or_default().to_owned())
        });
        let mut agents = anyhook_agents::all().filter(is_scripts);
        Ok(agents.find(|adapter| stems.any(|stem| adapter.event_by_native(&stem).is_some())))
    }

    fn decode_text(
        &self,
        path: Option<&Path>,
        text: &str,
        from: Option<&str>,
    ) -> anyhow::Result<ConversionSource> {
        let shown = path.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
        let named = match from {
            Some("canonical") => return self.canonical(&shown, text),
            Some(name) => Some(super::super::agents::find(name)?),
            None => None,
        };
        let document = self.parse(&shown, text, named)?;
        let known_path = path.map(|_| shown.as_str());
        if let Some(adapter) = named {
            let variant = detect_variant(adapter, known_path, &document);
            return Ok(ConversionSource::decode(adapter, &document, variant));
        }
        let guess = detect(known_path, &document);
        let guess = guess.ok_or_else(|| {
            anyhow!(
                "{shown}: could not tell which agent this config belongs to; pass `--from <AGENT>`"
            )
        })?;
        let Some(adapter) = guess.agent else {
            return self.canonical(&shown, text);
        };
        if !guess.rivals.is_empty() {
            let names: Vec<String> = std::iter::once(&adapter)
                .chain(&guess.rivals)
                .map(|agent| format!("`{}`", agent.spec.id))
                .collect();
            bail!(
                "{shown}: this could be a config of {}; pass `--from <AGENT>` to choose",
                names.join(", ")
            );
        }
        Ok(ConversionSource::decode(adapter, &document, guess.variant))
    }

    fn canonical(&self, shown: &str, text: &str) -> anyhow::Result<ConversionSource> {
        let format = Format::from_path(shown).unwrap_or_else(|| Format::detect(text));
        let (manifest, findings) =
            anyhook_model::parse::manifest(text, format, &Vocabulary::default());
        manifest
            .map(ConversionSource::canonical)
            .ok_or_else(|| self.rejection(shown, text, "not a valid manifest", &findings))
    }

    /// Parses JSON, JSON with comments, YAML, TOML, or a plugin that anyhook generated.
    fn parse(
        &self,
        shown: &str,
        text: &str,
        agent: Option<&'static Adapter>,
    ) -> anyhow::Result<Value> {
        if let Some(document) = marked(text) {
            return Ok(document);
        }
        if is_toml(shown, text, agent) {
            return toml::from_str(text).map_err(|error| {
                let span = error.span().unwrap_or_default();
                let finding = Diagnostic::error(
                    "syntax",
                    Span::new(span.start, span.end),
                    error.message().to_owned(),
                );
                self.rejection(shown, text, "not TOML", &[finding])
            });
        }
        let format = match Format::from_path(shown).unwrap_or_else(|| Format::detect(text)) {
            // Most agents allow comments in their JSON.
            Format::Json | Format::Jsonc => Format::Jsonc,
            other => other,
        };
        let (tree, findings) = document::parse(text, format);
        match tree.filter(|_| !findings.iter().any(Diagnostic::is_error)) {
            Some(tree) => Ok(tree.to_json()),
            None => Err(self.rejection(shown, text, "not readable", &findings)),
        }
    }

    /// The findings as `anyhook validate` shows them.
    fn rejection(
        &self,
        shown: &str,
        text: &str,
        what: &str,
        findings: &[Diagnostic],
    ) -> anyhow::Error {
        let source = anyhook_model::SourceText::new(shown, text);
        let list: Vec<String> = findings
            .iter()
            .filter(|finding| finding.is_error())
            .map(|finding| source.render(finding, self.is_coloured))
            .collect();
        if list.is_empty() {
            anyhow!("`{shown}` is empty")
        } else {
            anyhow!("`{shown}` is {what}\n\n{}", list.join("\n").trim_end())
        }
    }
}

/// Decides by the file extension; for stdin by the agent or by a TOML table header.
fn is_toml(shown: &str, text: &str, agent: Option<&'static Adapter>) -> bool {
    let ending = Path::new(shown).extension();
    if ending.is_some() {
        return ending.is_some_and(|ending| ending == "toml");
    }
    let has_toml = |agent: &'static Adapter| {
        agent
            .spec
            .files
            .iter()
            .any(|file| file.format == Some(Format::Toml))
    };
    let table = text.lines().map(str::trim_start).any(|line| {
        line.starts_with("[[hooks.") || line.starts_with("[hooks") && line.trim_end().ends_with(']')
    });
    table && agent.is_none_or(has_toml)
}

fn is_config(path: &Path) -> bool {
    let extensions = ["json", "jsonc", "yaml", "yml", "toml", "hook"];
    path.extension()
        .is_some_and(|ending| extensions.iter().any(|known| ending == *known))
}

pub(super) fn has_script_ending(name: &str) -> bool {
    let endings = [
        "sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "ps1",
    ];
    name.rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && endings.contains(&ending))
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// A path as configs name it: with `/`, which a shell on any system takes.
fn path_in_config(path: &Path) -> String {
    let path = path.to_string_lossy();
    if cfg!(windows) {
        path.replace('\\', "/")
    } else {
        path.into_owned()
    }
}

fn agent_name(source: &ConversionSource) -> &str {
    source.agent.map_or("anyhook", |agent| &agent.spec.name)
}
