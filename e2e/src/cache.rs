//! The cache of installed clients: npm packages, one folder per version, outside the checkout.
//! It runs npm and writes below the cache folder, nothing else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Client, Package};
use crate::command::run_to_success;
use crate::error::{AtPath, Error, Result};

/// Written when npm has finished, so that an interrupted installation is not mistaken for a complete one.
const INSTALLED_MARKER: &str = ".installed";

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

    /// A folder that a client's sessions share, for what it would otherwise unpack every time.
    pub fn shared_folder(&self, slug: &str) -> Result<PathBuf> {
        let folder = self.root.join("shared").join(slug);
        fs::create_dir_all(&folder).at("create", &folder)?;
        Ok(folder)
    }

    /// The folder of a package, whether or not it is installed.
    pub fn package_folder(&self, package: &Package) -> PathBuf {
        let name = package.npm.trim_start_matches('@').replace('/', "+");
        self.root.join(format!("{name}@{}", package.version))
    }

    pub fn is_installed(&self, package: &Package) -> bool {
        self.package_folder(package)
            .join(INSTALLED_MARKER)
            .is_file()
    }

    /// Installs a package unless it is installed; returns its folder.
    pub fn install(&self, package: &Package) -> Result<PathBuf> {
        let folder = self.package_folder(package);
        if self.is_installed(package) {
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
        run_to_success(&mut npm)?;
        let done = folder.join(INSTALLED_MARKER);
        fs::write(&done, spec).at("write", done)?;
        Ok(folder)
    }

    /// Installs what a client needs: its package, and the pinned Node.js if it uses that.
    pub fn install_client(&self, client: &Client) -> Result<()> {
        if client.setup.pinned_node {
            self.install(&client.node)?;
        }
        self.install(&client.package()).map(drop)
    }

    /// The folders that come first in a client's PATH.
    pub fn path_folders(&self, client: &Client) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        if client.setup.pinned_node {
            let node = self.package_folder(&client.node);
            folders.push(node.join("node_modules").join(&client.node.npm).join("bin"));
        }
        folders.push(
            self.package_folder(&client.package())
                .join("node_modules/.bin"),
        );
        folders
    }
}

/// The newest version of a package in the registry.
pub fn latest_version(npm_name: &str) -> Result<String> {
    let mut npm = Command::new("npm");
    npm.args(["view", npm_name, "version"]);
    Ok(run_to_success(&mut npm)?.trim().to_owned())
}
