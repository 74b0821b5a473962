//! Writes the converted config; never overwrites a different file unless asked to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::output::NativeFile;
use anyhook_agents::spec::Scope;
use anyhook_convert::Conversion;
use anyhook_model::Format;
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use super::ConvertArgs;

pub(super) fn files(
    adapter: Option<&'static Adapter>,
    document: &Value,
    args: &ConvertArgs,
) -> Vec<NativeFile> {
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

/// Writes all files, or none if one would be overwritten. Returns the changed paths.
pub(super) fn write(
    output: &Path,
    adapter: Option<&'static Adapter>,
    args: &ConvertArgs,
    conversion: &Conversion,
    files: &[NativeFile],
) -> anyhow::Result<Vec<PathBuf>> {
    let target = target_path(output, adapter, args)?;
    let mut plan: Vec<(PathBuf, String, bool)> = Vec::new();
    for file in files {
        let path = match &file.name {
            Some(name) => path_in(&target, name),
            None => PathBuf::from(target.display().to_string().replace('*', "anyhook")),
        };
        let existing = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("`{}`", path.display()));
            }
        };
        let text = match existing {
            Some(existing) if existing == file.text => continue,
            Some(existing) if args.merge => {
                let adapter =
                    adapter.ok_or_else(|| anyhow!("--merge works only with agents' own files"))?;
                let text = merged(
                    &path,
                    &existing,
                    adapter,
                    args.variant.as_deref(),
                    &conversion.document,
                )
                .with_context(|| format!("`{}`", path.display()))?;
                if text == existing {
                    continue;
                }
                text
            }
            Some(_) if !args.force => bail!(
                "`{}` already exists with different content; use `--merge` to add the hooks or `--force` to overwrite it",
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

/// The given path; for a folder, the agent's project config file in it.
fn target_path(
    output: &Path,
    adapter: Option<&'static Adapter>,
    args: &ConvertArgs,
) -> anyhow::Result<PathBuf> {
    if !output.is_dir() {
        return Ok(output.to_owned());
    }
    let Some(adapter) = adapter else {
        return Ok(output.join(".anyhook/hooks.json"));
    };
    let variant = args.variant.as_deref();
    let project_files = adapter
        .spec
        .files
        .iter()
        .filter(|file| file.scope == Scope::Project && file.variant.as_deref() == variant);
    let file = project_files
        .clone()
        .find(|file| file.write)
        .or_else(|| project_files.clone().next())
        .ok_or_else(|| {
            anyhow!(
                "{} has no project config file; pass one with `-o`",
                adapter.spec.name
            )
        })?;
    Ok(output.join(file.path.as_ref()))
}

/// The path of one of several files; `target` is their folder, or a pattern in it.
fn path_in(target: &Path, name: &str) -> PathBuf {
    let is_pattern = target
        .file_name()
        .is_some_and(|last| last.to_string_lossy().contains('*'));
    match target.parent() {
        Some(folder) if is_pattern => folder.join(name),
        _ => target.join(name),
    }
}

/// The existing file with the converted entries after its own. Only appends,
/// because some agents identify an entry by its position.
fn merged(
    path: &Path,
    text: &str,
    adapter: &Adapter,
    variant: Option<&str>,
    document: &Value,
) -> anyhow::Result<String> {
    use anyhook_edit::{EditOptions, Key, TextEditor};
    let config = adapter.config(variant);
    let known = adapter
        .spec
        .files
        .iter()
        .find(|file| path.ends_with(file.path.trim_start_matches("~/")));
    let format = match known {
        Some(file) => file.format,
        None => Format::from_path(&path.to_string_lossy()),
    };
    // Most agents allow comments in their JSON.
    let format = format
        .filter(|format| *format == Format::Toml)
        .unwrap_or(Format::Jsonc);
    let root: Vec<Key> = config.root.split('/').skip(1).map(Key::from).collect();
    let hooks = if config.root.is_empty() {
        Some(document)
    } else {
        document.pointer(&config.root)
    };
    let options = EditOptions {
        escape_slashes: adapter.escapes_slashes(),
        ..Default::default()
    };
    let mut editor = TextEditor::new(text, format, options);
    for (key, value) in &config.preamble {
        if editor.get(&[Key::from(key.as_str())])?.is_none() {
            editor.set(&[Key::from(key.as_str())], value)?;
        }
    }
    let mut add = |path: Vec<Key>, entries: &Value| -> anyhow::Result<()> {
        for entry in entries.as_array().into_iter().flatten() {
            editor.append_unless(&path, entry, &|existing| existing == entry)?;
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
            "{} keeps its hooks in separate files, so `--merge` does not apply",
            adapter.spec.name
        ),
    }
    Ok(editor.text().to_owned())
}
