//! Where the converted config goes: never over something else unasked.

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::output::NativeFile;
use anyhook_agents::spec::{FileFormat, Scope};
use anyhook_convert::Conversion;
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use super::Args;

pub fn files(adapter: Option<&'static Adapter>, document: &Value, args: &Args) -> Vec<NativeFile> {
    let text = |text: String| {
        vec![NativeFile {
            name: None,
            text,
            executable: false,
        }]
    };
    let is_toml = args
        .output
        .as_deref()
        .and_then(Path::extension)
        .is_some_and(|ending| ending == "toml");
    match adapter {
        Some(_) if is_toml => text(toml::to_string_pretty(document).unwrap_or_default()),
        Some(adapter) => adapter.files(document, args.variant.as_deref()),
        None => text(serde_json::to_string_pretty(document).unwrap_or_default() + "\n"),
    }
}

/// Writes all of the files or, when one is in the way, none; the paths that
/// were written.
pub fn write(
    output: &Path,
    adapter: Option<&'static Adapter>,
    args: &Args,
    conversion: &Conversion,
    files: &[NativeFile],
) -> anyhow::Result<Vec<PathBuf>> {
    let place = place(output, adapter, args)?;
    let mut plan: Vec<(PathBuf, String, bool)> = Vec::new();
    for file in files {
        let path = match &file.name {
            Some(name) => beside(&place, name),
            None => PathBuf::from(place.display().to_string().replace('*', "anyhook")),
        };
        let there = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("`{}`", path.display()));
            }
        };
        let text = match there {
            Some(there) if there == file.text => continue,
            Some(there) if args.merge => {
                let adapter = adapter.ok_or_else(|| anyhow!("--merge is for agents' own files"))?;
                let text = merged(
                    &path,
                    &there,
                    adapter,
                    args.variant.as_deref(),
                    &conversion.document,
                )
                .with_context(|| format!("`{}`", path.display()))?;
                if text == there {
                    continue;
                }
                text
            }
            Some(_) if !args.force => bail!(
                "`{}` is there and says something else; --merge adds the hooks to it, --force replaces it",
                path.display()
            ),
            _ => file.text.clone(),
        };
        plan.push((path, text, file.executable));
    }
    for (path, text, executable) in &plan {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        anyhook_edit::write_atomic(path, text.as_bytes())
            .with_context(|| path.display().to_string())?;
        #[cfg(unix)]
        if *executable {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
                .with_context(|| path.display().to_string())?;
        }
    }
    Ok(plan.into_iter().map(|(path, _, _)| path).collect())
}

/// The path that was given; in a folder, the place where the agent looks.
fn place(output: &Path, adapter: Option<&'static Adapter>, args: &Args) -> anyhow::Result<PathBuf> {
    if !output.is_dir() {
        return Ok(output.to_owned());
    }
    let Some(adapter) = adapter else {
        return Ok(output.join(".anyhook/hooks.json"));
    };
    let variant = args.variant.as_deref();
    let of_project = adapter
        .spec
        .files
        .iter()
        .filter(|file| file.scope == Scope::Project && file.variant.as_deref() == variant);
    let file = of_project
        .clone()
        .find(|file| file.write)
        .or_else(|| of_project.clone().next())
        .ok_or_else(|| {
            anyhow!(
                "{} has no project file; name one with -o",
                adapter.spec.name
            )
        })?;
    Ok(output.join(file.path.as_ref()))
}

/// One of several files: in the folder itself, or in that of a pattern.
fn beside(place: &Path, name: &str) -> PathBuf {
    let is_pattern = place
        .file_name()
        .is_some_and(|last| last.to_string_lossy().contains('*'));
    match place.parent() {
        Some(folder) if is_pattern => folder.join(name),
        _ => place.join(name),
    }
}

/// The file that is there, with our entries behind its own. Only ever appends:
/// some agents know an entry by its position.
fn merged(
    path: &Path,
    text: &str,
    adapter: &Adapter,
    variant: Option<&str>,
    document: &Value,
) -> anyhow::Result<String> {
    use anyhook_edit::{Draft, Key};
    let config = adapter.config(variant);
    let ends_in_toml = path.extension().is_some_and(|ending| ending == "toml");
    let is_toml = adapter
        .spec
        .files
        .iter()
        .find(|file| path.ends_with(file.path.trim_start_matches("~/")))
        .map_or(ends_in_toml, |file| file.format == FileFormat::Toml);
    let format = if is_toml {
        anyhook_edit::Format::Toml
    } else {
        anyhook_edit::Format::Jsonc
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
        Some(Value::Object(events)) if events.values().all(Value::is_array) => {
            for (event, entries) in events {
                let mut path = root.clone();
                path.push(Key::from(event.as_str()));
                add(path, entries)?;
            }
        }
        Some(list @ Value::Array(_)) if !config.root.is_empty() => add(root, list)?,
        _ => bail!(
            "{} keeps its hooks in files of their own; --merge has nothing to merge into",
            adapter.spec.name
        ),
    }
    Ok(draft.text().to_owned())
}
