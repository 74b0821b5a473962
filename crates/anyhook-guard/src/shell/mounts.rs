//! Folders that a command makes visible under another name: links that it creates
//! and folders of the host in a container. What is done below them is done to the
//! original.

use super::evaluate::{Evaluator, Scope};
use super::invocation::{Invocation, InvocationPlace, ResolvedWord, program_name};
use crate::paths::{is_within, normalize};

/// Links and mounts of one command that are followed.
const MAX_MOUNTS: usize = 16;

/// A folder, and where its content really is. Both absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) at: String,
    pub(super) original: String,
}

impl Evaluator<'_> {
    /// Remembers `ln -s original link`.
    pub(super) fn note_link(&mut self, invocation: &Invocation) {
        if invocation.name != "ln" || !invocation.has_option("s", &["--symbolic"]) {
            return;
        }
        let operands: Vec<&ResolvedWord> = invocation
            .operands()
            .filter(|word| word.text != "--")
            .collect();
        let (original, link) = match operands.as_slice() {
            [original, link] => (*original, link.text.clone()),
            [original] => {
                let name = original.text.rsplit('/').find(|part| !part.is_empty());
                (*original, name.unwrap_or_default().to_owned())
            }
            _ => return,
        };
        let (Some(at), Some(original)) = (
            normalize(invocation.cwd.as_deref(), &link),
            normalize(invocation.cwd.as_deref(), &original.text),
        ) else {
            return;
        };
        if self.links.len() < MAX_MOUNTS && at != original {
            self.links.push(Mount { at, original });
        }
    }

    /// Remembers a program that gets another name: `cp /bin/rm x`.
    pub(super) fn note_copy(&mut self, invocation: &Invocation) {
        if !matches!(invocation.name.as_str(), "cp" | "ln" | "mv" | "install") {
            return;
        }
        let operands: Vec<&ResolvedWord> = invocation.operands().collect();
        let [original, copy] = operands.as_slice() else {
            return;
        };
        if (original.text.contains("bin/") || !original.sources.is_empty())
            && self.copies.len() < MAX_MOUNTS
            && let Some(path) = normalize(invocation.cwd.as_deref(), &copy.text)
        {
            self.copies.push((path, program_name(&original.text)));
        }
    }

    /// The command with the names of the originals in its words and redirects.
    pub(super) fn follow_mounts(&self, invocation: &mut Invocation) {
        let in_container = invocation.place == InvocationPlace::Container;
        let mounts: &[Mount] = if in_container {
            &self.mounts
        } else {
            &self.links
        };
        if mounts.is_empty() || invocation.name == "ln" {
            return;
        }
        let cwd = invocation.cwd.clone();
        // Deleting and moving a link leaves its target alone.
        let keeps_links = matches!(invocation.name.as_str(), "rm" | "unlink" | "mv");
        let mut is_found = false;
        let mut follow = |word: &mut ResolvedWord, is_program: bool| {
            let text = word.text.as_str();
            if is_program || text.is_empty() || text.starts_with('-') {
                return;
            }
            let Some(path) = normalize(cwd.as_deref(), text) else {
                return;
            };
            for mount in mounts {
                let is_link = path == mount.at && !text.ends_with('/');
                if !is_within(&path, &mount.at) || !in_container && keeps_links && is_link {
                    continue;
                }
                is_found = true;
                if in_container && !text.starts_with('/') {
                    // A name in the folder of the container; the folder is mapped below.
                    return;
                }
                let rest = path.get(mount.at.len()..).unwrap_or_default();
                let rest = if mount.at == "/" { path.as_str() } else { rest };
                word.text = format!("{}{rest}", mount.original.trim_end_matches('/'));
                if word.text.is_empty() {
                    word.text.push('/');
                }
                return;
            }
        };
        for (index, word) in invocation.words.iter_mut().enumerate() {
            follow(word, index == 0);
        }
        for redirect in &mut invocation.redirects {
            follow(&mut redirect.target, false);
        }
        // What is done to a folder of the host is done on this machine.
        if is_found && in_container {
            invocation.place = InvocationPlace::Local;
            let folder = invocation.cwd.clone().unwrap_or_default();
            let mount = mounts.iter().find(|mount| is_within(&folder, &mount.at));
            if let Some(mount) = mount {
                let rest = folder.get(mount.at.len()..).unwrap_or_default();
                let original = mount.original.trim_end_matches('/');
                invocation.cwd = Some(format!("{original}{rest}"));
            }
        }
    }

    /// The folders of the host that `docker run` mounts.
    pub(super) fn container_mounts(words: &[ResolvedWord], scope: &Scope) -> Vec<Mount> {
        let mut found = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let next = || words.get(index + 1).map_or("", |word| word.text.as_str());
            let (option, value) = match text.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, value),
                _ => (text, next()),
            };
            let (original, at) = match option {
                "-v" | "--volume" => {
                    let mut parts = value.split(':');
                    let original = parts.next().unwrap_or_default();
                    (original, parts.next().unwrap_or_default())
                }
                "--mount" => {
                    let field = |names: &[&str]| {
                        value.split(',').find_map(|field| {
                            let (name, value) = field.split_once('=')?;
                            names.contains(&name).then_some(value)
                        })
                    };
                    (
                        field(&["source", "src"]).unwrap_or_default(),
                        field(&["target", "destination", "dst"]).unwrap_or_default(),
                    )
                }
                _ => continue,
            };
            // A name without a slash is a volume, not a folder of the host.
            if !original.contains('/') && original != "." && original != ".." {
                continue;
            }
            if let (Some(original), Some(at)) = (
                normalize(scope.cwd.as_deref(), original),
                normalize(None, at),
            ) && found.len() < MAX_MOUNTS
            {
                found.push(Mount { at, original });
            }
        }
        found
    }
}
