//! An agent's own consent to hooks: whether it is there, and, only when the
//! user says so, giving it.
//!
//! Giving it takes the place of the vendor's review, so it is never done
//! unasked, and only for entries of ours. Each installation has a record of its
//! own, so that taking one out leaves the consent of the others.

use std::path::{Path, PathBuf};

use anyhook_agents::spec::{FileFormat, Scope, Shape};
use anyhook_edit::{Change, Draft, EditError, Format, How, Key, Lock, Options, Site, sha256};
use serde_json::{Map, Value, json};

use crate::bridge::FileChange;
use crate::error::InstallError;
use crate::target::Target;
use crate::vendor::{self, Ledger, LedgerKind};
use crate::walk;
use crate::world::World;

/// What is known of an agent's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    Given,
    /// What is missing.
    Missing(String),
    /// Cannot be seen from here; the agent's own words on it, if there are any.
    Unknown(Option<String>),
}

impl Trust {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Given => "yes",
            Self::Missing(_) => "no",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Whether consent can be given from here.
pub fn can_accept(target: &Target) -> bool {
    vendor::ledger(target.slug()).is_some()
}

pub fn state(world: &World, target: &Target) -> Trust {
    let Some(ledger) = vendor::ledger(target.slug()) else {
        return Trust::Unknown(target.adapter.spec.trust.as_deref().map(str::to_owned));
    };
    let Ledger { kind, file, env } = ledger;
    match kind {
        LedgerKind::HashedEntries => hashed(world, target),
        LedgerKind::Folders => {
            if world.var(env).is_some_and(|value| value == "true") {
                return Trust::Given;
            }
            let known = world.expand(file, None).and_then(|path| {
                let text = anyhook_edit::read_text(&path).ok()??;
                anyhook_edit::get(&text, Format::Jsonc, &[]).ok()?
            });
            if known.is_some_and(|known| is_trusted_folder(&known, &world.root)) {
                Trust::Given
            } else {
                Trust::Missing(format!(
                    "the folder `{}` is not trusted in {}",
                    world.root.display(),
                    target.adapter.spec.name
                ))
            }
        }
    }
}

fn is_trusted_folder(known: &Value, folder: &Path) -> bool {
    known
        .as_object()
        .into_iter()
        .flatten()
        .any(|(path, level)| {
            let path = Path::new(path);
            match level.as_str() {
                Some("TRUST_FOLDER") => folder.starts_with(path),
                Some("TRUST_PARENT") => path
                    .parent()
                    .is_some_and(|parent| folder.starts_with(parent)),
                _ => false,
            }
        })
}

/// Gives consent to the entries of ours that stand in the target's file.
pub fn accept(world: &World, target: &Target) -> Result<Vec<FileChange>, InstallError> {
    let Some((site, wishes)) = wishes(world, target) else {
        return Ok(Vec::new());
    };
    let _turn = Lock::acquire(
        &world.records(),
        &site.path,
        std::time::Duration::from_secs(30),
    )?;
    let before = anyhook_edit::read_text(&site.path)?;
    let stale = wishes.iter().any(|(path, value)| {
        let there = before
            .as_deref()
            .and_then(|text| anyhook_edit::get(text, site.format, path).ok()?);
        there.is_some_and(|there| there != *value)
    });
    if stale {
        site.uninstall(&[], &|_| false)?;
    }
    let change = site.install(&mut |draft: &mut Draft| {
        for (path, value) in &wishes {
            match draft.get(path)? {
                Some(there) if there == *value => {}
                // Somebody else's word stands; the agent will ask its user.
                Some(_) => {}
                None => draft.set(path, value)?,
            }
        }
        Ok::<(), EditError>(())
    })?;
    Ok(vec![FileChange {
        path: site.path,
        change: Change {
            before,
            after: change.after,
            how: How::Absent,
        },
    }])
}

/// Takes back what [`accept`] gave for this target.
pub fn withdraw(world: &World, target: &Target) -> Result<Vec<FileChange>, InstallError> {
    let Some(site) = ledger_site(world, target) else {
        return Ok(Vec::new());
    };
    if anyhook_edit::InstallLog::load(&site.state, &site.path)?.is_none() {
        return Ok(Vec::new());
    }
    let _turn = Lock::acquire(
        &world.records(),
        &site.path,
        std::time::Duration::from_secs(30),
    )?;
    let change = site.uninstall(&[], &|_| false)?;
    Ok(vec![FileChange {
        path: site.path,
        change,
    }])
}

type Wishes = Vec<(Vec<Key>, Value)>;

fn ledger_site(world: &World, target: &Target) -> Option<Site> {
    let ledger = vendor::ledger(target.slug())?;
    let path = match ledger.kind {
        LedgerKind::HashedEntries => user_config(world, target)?,
        LedgerKind::Folders => world.expand(&ledger.file, None)?,
    };
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    let mut id = sha256(target.path.as_os_str().as_encoded_bytes());
    id.truncate(16);
    Some(Site {
        state: world.records().join(format!("trust-{id}")),
        path,
        format: if is_toml { Format::Toml } else { Format::Jsonc },
        options: Options::default(),
    })
}

fn wishes(world: &World, target: &Target) -> Option<(Site, Wishes)> {
    let site = ledger_site(world, target)?;
    let mut wishes: Wishes = Vec::new();
    match vendor::ledger(target.slug())?.kind {
        LedgerKind::HashedEntries => {
            if target.scope == Scope::Project {
                wishes.push((project_level(world), json!("trusted")));
            }
            for (key, hash) in hashes(target) {
                wishes.push((hash_path(&key), json!(hash)));
            }
        }
        LedgerKind::Folders => {
            let root = world.root.to_string_lossy().into_owned();
            wishes.push((vec![Key::from(root)], json!("TRUST_FOLDER")));
        }
    }
    Some((site, wishes))
}

fn project_level(world: &World) -> Vec<Key> {
    let root = world.root.to_string_lossy().into_owned();
    vec![
        Key::from("projects"),
        Key::from(root),
        Key::from("trust_level"),
    ]
}

fn hash_path(key: &str) -> Vec<Key> {
    vec![
        Key::from("hooks"),
        Key::from("state"),
        Key::from(key),
        Key::from("trusted_hash"),
    ]
}

/// The user's `config.toml`: the only place where hashes are read from.
fn user_config(world: &World, target: &Target) -> Option<PathBuf> {
    let files = target.adapter.spec.files.iter();
    files
        .filter(|file| file.scope == Scope::User && file.format == FileFormat::Toml)
        .find_map(|file| world.place(file))
}

fn hashed(world: &World, target: &Target) -> Trust {
    let document = user_config(world, target).and_then(|path| {
        let text = anyhook_edit::read_text(&path).ok()??;
        anyhook_edit::get(&text, Format::Toml, &[]).ok()?
    });
    let document = document.unwrap_or_default();
    let at = |path: &[Key]| {
        path.iter().try_fold(&document, |value, key| match key {
            Key::Name(name) => value.get(name),
            Key::Index(index) => value.get(index),
        })
    };
    let trusted = Some(&json!("trusted"));
    if target.scope == Scope::Project && at(&project_level(world)) != trusted {
        return Trust::Missing(format!(
            "the project `{}` is not trusted in {}, so its hooks are not read",
            world.root.display(),
            target.adapter.spec.name
        ));
    }
    let missing = hashes(target)
        .into_iter()
        .filter(|(key, hash)| at(&hash_path(key)) != Some(&json!(hash)))
        .count();
    if missing == 0 {
        Trust::Given
    } else {
        Trust::Missing(format!(
            "{missing} of its entries are not reviewed in {}",
            target.adapter.spec.name
        ))
    }
}

/// Key and hash of each entry of ours, as the agent works them out: the place
/// of the entry, and the entry with its defaults, as compact sorted JSON.
fn hashes(target: &Target) -> Vec<(String, String)> {
    let (Some(document), Shape::Grouped) = (target.document(), target.shape()) else {
        return Vec::new();
    };
    let config = target.config();
    let path = std::fs::canonicalize(&target.path).unwrap_or_else(|_| target.path.clone());
    walk::entries(config, &document)
        .into_iter()
        .filter(|entry| entry.ours(config).is_some())
        .map(|entry| {
            let event = snake(entry.event);
            let key = format!(
                "{}:{event}:{}:{}",
                path.display(),
                entry.index,
                entry.position
            );
            let subject = target
                .adapter
                .event_by_native(entry.event)
                .is_some_and(|event| event.matcher != "none");
            let matcher = entry.matcher(config).filter(|_| subject);
            (key, hash(&event, matcher, entry.handler))
        })
        .collect()
}

fn hash(event: &str, matcher: Option<&Value>, handler: &Value) -> String {
    // Maps keep the order in which they are filled: sorted by hand.
    let mut inner = Map::new();
    inner.insert(
        "async".into(),
        handler.get("async").cloned().unwrap_or(json!(false)),
    );
    inner.insert(
        "command".into(),
        handler.get("command").cloned().unwrap_or_default(),
    );
    if let Some(message) = handler.get("statusMessage") {
        inner.insert("statusMessage".into(), message.clone());
    }
    inner.insert(
        "timeout".into(),
        handler.get("timeout").cloned().unwrap_or(json!(600)),
    );
    inner.insert("type".into(), json!("command"));
    let mut outer = Map::new();
    outer.insert("event_name".into(), json!(event));
    outer.insert("hooks".into(), json!([inner]));
    if let Some(matcher) = matcher {
        outer.insert("matcher".into(), matcher.clone());
    }
    let text = Value::Object(outer).to_string();
    format!("sha256:{}", sha256(text.as_bytes()))
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Codex 0.166.0 lists them for these entries.
    #[test]
    fn hashes_are_those_of_the_client() {
        let entry = |seconds: u64| json!({"type": "command", "command": "anyhook run --agent codex", "timeout": seconds});
        assert_eq!(
            hash("pre_tool_use", None, &entry(60)),
            "sha256:0c3035450b6d86d77c7f63cc638bef203635dbbd1e38d459c2bc9a8516a7b06d"
        );
        assert_eq!(
            hash("session_end", None, &entry(3)),
            "sha256:08e481bd684a116e12250d1fa70658dbdce4633ee2a8140e48231327041a964d"
        );
        assert_eq!(snake("UserPromptSubmit"), "user_prompt_submit");
    }

    #[test]
    fn trusted_folders() {
        let known = json!({"/a": "TRUST_FOLDER", "/b/c": "TRUST_PARENT", "/d": "DO_NOT_TRUST"});
        for (folder, trusted) in [
            ("/a/x", true),
            ("/a", true),
            ("/b/z", true),
            ("/ab", false),
            ("/d", false),
        ] {
            assert_eq!(
                is_trusted_folder(&known, Path::new(folder)),
                trusted,
                "{folder}"
            );
        }
    }
}
