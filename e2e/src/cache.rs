//! The cache of installed clients: npm packages, each version in a folder of its own, outside the checkout.
//! It may run npm and write below the cache folder, nothing else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Client, Package};
use crate::error::{AtPath, Error, Result};

/// Written when npm has finished, so that an interrupted installation is never taken for a whole one.
const DONE: &str = ".installed";

#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$ANYHOOK_E2E_CACHE`, else `$XDG_CACHE_HOME/anyhook-e2e`, else `~/.cache/anyhook-e2e`.
    pub fn locate() -> Result<Self> {
        let folder = |name: &str| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let root = folder("ANYHOOK_E2E_CACHE")
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("anyhook-e2e")))
            .or_else(|| Some(folder("HOME")?.join(".cache/anyhook-e2e")))
            .ok_or(Error::NoCache)?;
        Ok(Cache { root })
    }

    pub fn at(root: impl Into<PathBuf>) -> Self {
        Cache { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A folder that a client's sessions share, for what it would otherwise unpack anew each time.
    pub fn shared(&self, slug: &str) -> Result<PathBuf> {
        let folder = self.root.join("shared").join(slug);
        fs::create_dir_all(&folder).at("create", &folder)?;
        Ok(folder)
    }

    /// Where a package is, or would be.
    pub fn folder(&self, package: &Package) -> PathBuf {
        let name = package.npm.trim_start_matches('@').replace('/', "+");
        self.root.join(format!("{name}@{}", package.version))
    }

    pub fn has(&self, package: &Package) -> bool {
        self.folder(package).join(DONE).is_file()
    }

    /// Installs a package unless it is there; returns its folder.
    pub fn install(&self, package: &Package) -> Result<PathBuf> {
        let folder = self.folder(package);
        if self.has(package) {
            return Ok(folder);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).at("remove", &folder)?;
        }
        fs::create_dir_all(&folder).at("create", &folder)?;
        let spec = format!("{}@{}", package.npm, package.version);
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--prefix",
        ])
        .arg(&folder)
        .arg(&spec);
        output_of(npm)?;
        let done = folder.join(DONE);
        fs::write(&done, spec).at("write", done)?;
        Ok(folder)
    }

    /// Installs what a client needs: its package, and Node.js when it asks for ours.
    pub fn install_client(&self, client: &Client) -> Result<()> {
        if client.drive.pinned_node {
            self.install(&client.node)?;
        }
        self.install(&client.package()).map(drop)
    }

    /// The folders that come first in the PATH of a client.
    pub fn programs(&self, client: &Client) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        if client.drive.pinned_node {
            let node = self.folder(&client.node);
            folders.push(node.join("node_modules").join(&client.node.npm).join("bin"));
        }
        folders.push(self.folder(&client.package()).join("node_modules/.bin"));
        folders
    }
}

/// The newest version of a package in the registry.
pub fn latest(npm_name: &str) -> Result<String> {
    let mut npm = Command::new("npm");
    npm.args(["view", npm_name, "version"]);
    Ok(output_of(npm)?.trim().to_owned())
}

/// Standard output of a command that must succeed.
pub(crate) fn output_of(mut command: Command) -> Result<String> {
    let output = command.output().map_err(|source| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command {
        command: format!("{command:?}"),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
