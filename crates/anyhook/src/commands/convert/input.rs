//! What is converted: a file, a folder of them, or stdin; and whose it is.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::output::marked;
use anyhook_agents::spec::{FileFormat, Shape};
use anyhook_convert::{Source, detect};
use anyhook_model::document::{self, Format};
use anyhook_model::parse::Vocabulary;
use anyhook_model::{Diagnostic, Span};
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

/// What was read, still as text.
pub struct Input {
    /// Where scripts are looked for.
    folder: PathBuf,
    /// Path (absent for stdin) and text of each file.
    files: Vec<(Option<PathBuf>, String)>,
    is_folder: bool,
    /// Whether findings are shown in colour.
    pub colour: bool,
}

impl Input {
    pub fn read(name: &str, colour: bool) -> anyhow::Result<Self> {
        if name == "-" {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("stdin")?;
            return Ok(Self {
                folder: PathBuf::from("."),
                files: vec![(None, text)],
                is_folder: false,
                colour,
            });
        }
        let path = PathBuf::from(name);
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("`{}` cannot be read", path.display()))
        };
        if !path.is_dir() {
            let text = read(&path)?;
            return Ok(Self {
                folder: path.parent().unwrap_or(Path::new(".")).to_owned(),
                files: vec![(Some(path), text)],
                is_folder: false,
                colour,
            });
        }
        let mut entries: Vec<PathBuf> = fs::read_dir(&path)
            .with_context(|| format!("`{name}` cannot be read"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file())
            .collect();
        entries.sort();
        let mut files = Vec::new();
        for file in entries {
            // A program beside the configs need not be text.
            if let Ok(text) = fs::read_to_string(&file) {
                files.push((Some(file), text));
            }
        }
        Ok(Self {
            folder: path,
            files,
            is_folder: true,
            colour,
        })
    }

    /// The text of a script that a command names, to see what it does.
    pub fn script(&self, command: &str) -> Option<String> {
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

    pub fn decode(&self, from: Option<&str>) -> anyhow::Result<Source> {
        if self.is_folder {
            return self.decode_folder(from);
        }
        let Some((path, text)) = self.files.first() else {
            bail!("there is nothing to read")
        };
        self.decode_text(path.as_deref(), text, from)
    }

    fn decode_folder(&self, from: Option<&str>) -> anyhow::Result<Source> {
        if let Some(adapter) = self.scripts_of(from)? {
            let named: Vec<(String, String, &str)> = self
                .files
                .iter()
                .filter_map(|(path, text)| {
                    let path = path.as_deref()?;
                    Some((name_of(path), path.display().to_string(), text.as_str()))
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
        let mut unknown = Vec::new();
        for (path, text) in &self.files {
            let Some(path) = path.as_deref().filter(|path| is_config(path)) else {
                continue;
            };
            let document = self.parse(&path.display().to_string(), text, None)?;
            if from.is_none() && detect(Some(&path.display().to_string()), &document).is_none() {
                unknown.push(path.display().to_string());
                continue;
            }
            let source = self.decode_text(Some(path), text, from)?;
            match &mut whole {
                None => whole = Some(source),
                Some(whole) if same_agent(whole, &source) => {
                    whole.append(source, &path.display().to_string());
                }
                Some(whole) => bail!(
                    "`{}` holds configs of {} and of {}; convert them one by one",
                    self.folder.display(),
                    called(whole),
                    called(&source)
                ),
            }
        }
        let mut whole = whole.ok_or_else(|| {
            anyhow!(
                "no file of `{}` is a hook config that is known; name the agent with --from",
                self.folder.display()
            )
        })?;
        for path in unknown {
            whole.left_out(&path);
        }
        Ok(whole)
    }

    /// The agent whose folder of scripts this is.
    fn scripts_of(&self, from: Option<&str>) -> anyhow::Result<Option<&'static Adapter>> {
        let is_scripts = |adapter: &&Adapter| adapter.spec.config.shape == Shape::Scripts;
        if let Some(name) = from.filter(|name| *name != "canonical") {
            return Ok(Some(super::super::agents::find(name)?).filter(is_scripts));
        }
        let mut stems = self.files.iter().filter_map(|(path, _)| {
            let name = name_of(path.as_deref()?);
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
    ) -> anyhow::Result<Source> {
        let shown = path.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
        let named = match from {
            Some("canonical") => return self.canonical(&shown, text),
            Some(name) => Some(super::super::agents::find(name)?),
            None => None,
        };
        let document = self.parse(&shown, text, named)?;
        let guess = detect(path.map(|_| shown.as_str()), &document);
        if let Some(adapter) = named {
            let own = |agent: &&Adapter| agent.spec.id == adapter.spec.id;
            let variant = guess
                .filter(|guess| guess.agent.as_ref().is_some_and(own))
                .and_then(|guess| guess.variant);
            return Ok(Source::decode(adapter, &document, variant));
        }
        let guess = guess.ok_or_else(|| {
            anyhow!("{shown}: whose config this is cannot be told; say it with --from")
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
                "{shown}: this could be a config of {}; say which with --from",
                names.join(", ")
            );
        }
        Ok(Source::decode(adapter, &document, guess.variant))
    }

    fn canonical(&self, shown: &str, text: &str) -> anyhow::Result<Source> {
        let format = Format::from_path(shown).unwrap_or_else(|| Format::detect(text));
        let (manifest, findings) =
            anyhook_model::parse::manifest(text, format, &Vocabulary::default());
        manifest
            .map(Source::canonical)
            .ok_or_else(|| self.rejected(shown, text, "no valid manifest", &findings))
    }

    /// JSON, JSON with comments, YAML, TOML, or a generated program.
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
                self.rejected(shown, text, "not TOML", &[finding])
            });
        }
        let format = match Format::from_path(shown).unwrap_or_else(|| Format::detect(text)) {
            // Most agents allow comments in their JSON.
            Format::Json | Format::Jsonc => Format::Jsonc,
            Format::Yaml => Format::Yaml,
        };
        let (tree, findings) = document::parse(text, format);
        match tree.filter(|_| !findings.iter().any(Diagnostic::is_error)) {
            Some(tree) => Ok(tree.to_json()),
            None => Err(self.rejected(shown, text, "not readable", &findings)),
        }
    }

    /// The findings as `anyhook validate` shows them.
    fn rejected(
        &self,
        shown: &str,
        text: &str,
        what: &str,
        findings: &[Diagnostic],
    ) -> anyhow::Error {
        let source = anyhook_model::Source::new(shown, text);
        let list: Vec<String> = findings
            .iter()
            .filter(|finding| finding.is_error())
            .map(|finding| source.render(finding, self.colour))
            .collect();
        if list.is_empty() {
            anyhow!("`{shown}` is empty")
        } else {
            anyhow!("`{shown}` is {what}\n\n{}", list.join("\n").trim_end())
        }
    }
}

/// By the file's ending; for stdin by the agent, or by its first line.
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
            .any(|file| file.format == FileFormat::Toml)
    };
    let table = text.lines().map(str::trim_start).any(|line| {
        line.starts_with("[[hooks.") || line.starts_with("[hooks") && line.trim_end().ends_with(']')
    });
    table && agent.is_none_or(has_toml)
}

fn is_config(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| matches!(ending, "json" | "jsonc" | "yaml" | "yml" | "toml" | "hook"))
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn same_agent(left: &Source, right: &Source) -> bool {
    called(left) == called(right)
}

fn called(source: &Source) -> &str {
    source.agent.map_or("anyhook", |agent| &agent.spec.name)
}
