//! Writes the converted config; never overwrites a different file unless asked to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::output::NativeFile;
use anyhook_agents::spec::{ConfigFile, Scope};
use anyhook_convert::Conversion;
use anyhook_edit::{EditOptions, Key, TextEditor};
use anyhook_model::Format;
use anyhook_run::config::discover::Dirs;
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
    match adapter {
        Some(adapter) => match written_format(adapter, args) {
            Some(Format::Toml) => text(toml::to_string_pretty(document).unwrap_or_default()),
            Some(Format::Yaml) => text(anyhook_edit::yaml_text(document)),
            _ => adapter.files(document, args.variant.as_deref()),
        },
        None => text(serde_json::to_string_pretty(document).unwrap_or_default() + "\n"),
    }
}

/// The format to write: that of the file that is named, else that of the agent's own.
fn written_format(adapter: &Adapter, args: &ConvertArgs) -> Option<Format> {
    let named = args.output.as_deref().filter(|path| !path.is_dir());
    let named = named.and_then(|path| Format::from_path(&path.to_string_lossy()));
    let variant = args.variant.as_deref();
    let mut files = adapter.spec.files.iter();
    let own = files.find(|file| file.write && file.variant.as_deref() == variant);
    named.or_else(|| own?.format)
}

/// Writes all files, or none if one would be overwritten or `--check` is set. Returns
/// the paths that change.
pub(super) fn write(
    output: &Path,
    adapter: Option<&'static Adapter>,
    args: &ConvertArgs,
    conversion: &Conversion,
    files: &[NativeFile],
) -> anyhow::Result<Vec<PathBuf>> {
    let target = target_path(output, adapter, args)?;
    if let Some(adapter) = adapter {
        refuse_silencing(adapter, &target)?;
    }
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
            Some(_) if !args.force && !args.check => bail!(
                "`{}` already exists with different content; use `--merge` to add the hooks or `--force` to overwrite it",
                path.display()
            ),
            _ => file.text.clone(),
        };
        plan.push((path, text, file.executable));
    }
    for (path, text, executable) in plan.iter().filter(|_| !args.check) {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        anyhook_edit::write_atomic(path, text.as_bytes())
            .with_context(|| path.display().to_string())?;
        #[cfg(not(unix))]
        let _ = executable;
        #[cfg(unix)]
        if *executable {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
                .with_context(|| path.display().to_string())?;
        }
    }
    Ok(plan.into_iter().map(|(path, _, _)| path).collect())
}

/// Merges into the file that has the project's hooks, where the agent ignores it
/// beside the file that is usually written.
pub(super) fn use_file_with_hooks(adapter: &'static Adapter, args: &mut ConvertArgs) {
    let Some(folder) = args.output.as_deref().filter(|path| path.is_dir()) else {
        return;
    };
    if !args.merge || args.variant.is_some() {
        return;
    }
    let mut files = adapter.spec.files.iter();
    let used = files.find(|file| {
        let main = file.ignored_beside.as_deref();
        file.scope == Scope::Project
            && main.is_some_and(|main| !folder.join(main).exists())
            && has_hooks(adapter, file, &folder.join(file.path.as_ref()))
    });
    args.variant = used.and_then(|file| file.variant.as_deref().map(str::to_owned));
}

/// Fails if the agent would ignore the hooks of another file because of this one,
/// or of this one because of another.
fn refuse_silencing(adapter: &Adapter, written: &Path) -> anyhow::Result<()> {
    let name = &adapter.spec.name;
    for file in &adapter.spec.files {
        let Some(main) = &file.ignored_beside else {
            continue;
        };
        let [main, ignored] = [main, &file.path].map(|path| path.trim_start_matches("~/"));
        if let Some(folder) = folder_before(written, main) {
            let other = folder.join(ignored);
            if !written.exists() && has_hooks(adapter, file, &other) {
                bail!(
                    "`{}` has hooks, which {name} ignores once `{}` exists; use `--merge` with \
                     the project's folder to add the hooks to `{0}`",
                    other.display(),
                    written.display()
                );
            }
        }
        if let Some(folder) = folder_before(written, ignored) {
            let main = folder.join(main);
            if main.exists() {
                bail!(
                    "{name} ignores hooks in `{}` while `{}` exists; write to that file",
                    written.display(),
                    main.display()
                );
            }
        }
    }
    Ok(())
}

/// The folder that `path` is relative to, if `whole` ends with it.
fn folder_before(whole: &Path, path: &str) -> Option<PathBuf> {
    let depth = Path::new(path).components().count();
    whole
        .ends_with(path)
        .then(|| whole.ancestors().nth(depth).map(Path::to_owned))?
}

/// Whether a config has hooks; one that cannot be parsed may have some.
fn has_hooks(adapter: &Adapter, file: &ConfigFile, path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(path) else {
        return path.exists();
    };
    let root = &adapter.config(file.variant.as_deref()).root;
    let root: Vec<Key> = root.split('/').skip(1).map(Key::from).collect();
    match anyhook_edit::get(&text, Format::Jsonc, &root) {
        Ok(Some(Value::Object(events))) => !events.is_empty(),
        Ok(Some(Value::Array(hooks))) => !hooks.is_empty(),
        Ok(_) => false,
        Err(_) => true,
    }
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
        .or_else(|| project_files.clone().next());
    if let Some(file) = file {
        return Ok(output.join(file.path.as_ref()));
    }
    // A file of the user's in any other folder would never be read.
    let home = Dirs::from_env().home;
    let real = |path: &Path| anyhook_edit::real_path(path).ok();
    let is_home = home.is_some_and(|home| real(&home) == real(output));
    let mut files = adapter.spec.files.iter();
    let user = files.find(|file| file.write && file.scope == Scope::User);
    let below_home = user.and_then(|file| file.path.strip_prefix("~/"));
    match below_home {
        Some(path) if is_home => Ok(output.join(path)),
        Some(path) => bail!(
            "{} reads no hooks from a project; write to `~/{path}` (`-o ~`)",
            adapter.spec.name
        ),
        None => bail!(
            "{} has no config file; pass one with `-o`",
            adapter.spec.name
        ),
    }
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
        .filter(|format| matches!(format, Format::Toml | Format::Yaml))
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
        let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(editor.append_missing(&path, entries)?)
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
    Ok(editor.into_checked_text()?)
}
