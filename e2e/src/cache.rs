//! The cache of installed clients: packages of npm and PyPI, one folder per version, outside the checkout.
//! It runs npm, or Python with pip, and writes below the cache folder, nothing else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Client, Package, Registry};
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
        let name = package.name.trim_start_matches('@').replace('/', "+");
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
        let spec = format!("{}@{}", package.name, package.version);
        match package.registry {
            Registry::Npm => install_from_npm(&folder, &spec)?,
            Registry::PyPi => install_from_pypi(&folder, package)?,
        }
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
            folders.push(
                node.join("node_modules")
                    .join(&client.node.name)
                    .join("bin"),
            );
        }
        let package = client.package();
        let folder = self.package_folder(&package);
        folders.push(match package.registry {
            Registry::Npm => folder.join("node_modules/.bin"),
            Registry::PyPi => folder.join("bin"),
        });
        folders
    }
}

fn install_from_npm(folder: &Path, spec: &str) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--prefix",
    ])
    .arg(folder)
    .arg(spec);
    run_to_success(&mut npm).map(drop)
}

/// The oldest Python that the clients from PyPI run on.
const PYTHON_VERSION: (u32, u32) = (3, 12);

/// Prints the requirements that are not for an extra.
const PRINT_REQUIREMENTS: &str = "import sys, importlib.metadata as m
print('\\n'.join(one for one in m.requires(sys.argv[1]) or [] if 'extra ==' not in one))";

/// Installs a package into an environment of its own, with some of its pins loosened.
fn install_from_pypi(folder: &Path, package: &Package) -> Result<()> {
    let python = find_python()?;
    run_to_success(Command::new(python).args(["-m", "venv"]).arg(folder))?;
    let python = folder.join("bin/python");
    let pip = |words: &[&str]| {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"]).args(words);
        run_to_success(&mut pip).map(drop)
    };
    let spec = format!("{}=={}", package.name, package.version);
    pip(&["--no-deps", &spec])?;
    let mut requires = Command::new(&python);
    let requires = run_to_success(requires.args(["-c", PRINT_REQUIREMENTS, &package.name]))?;
    let loosened = requires.lines().map(|line| {
        let end =
            line.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_.".contains(letter));
        let name = line.get(..end.unwrap_or(line.len())).unwrap_or(line);
        let is_loose = package.loosen.iter().any(|loose| loose == name);
        let loose = format!("{name}\n");
        if is_loose { loose } else { format!("{line}\n") }
    });
    let list = folder.join("requirements.txt");
    fs::write(&list, loosened.collect::<String>()).at("write", &list)?;
    pip(&["-r", &list.display().to_string()])
}

/// A Python that is new enough: on the PATH, or one of pyenv's.
fn find_python() -> Result<PathBuf> {
    let names = ["python3.13", "python3.12", "python3"].map(PathBuf::from);
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let versions = versions.into_iter().flatten().flatten();
    let mut installed: Vec<PathBuf> = versions
        .map(|entry| entry.path().join("bin/python3"))
        .collect();
    installed.sort();
    let is_new_enough = |python: &PathBuf| {
        let (major, minor) = PYTHON_VERSION;
        let test = format!("import sys, venv; sys.exit(sys.version_info[:2] < ({major}, {minor}))");
        run_to_success(Command::new(python).args(["-c", &test])).is_ok()
    };
    let mut found = names.into_iter().chain(installed);
    found.find(is_new_enough).ok_or(Error::NoPython)
}

/// The newest version of a package in its registry.
pub fn latest_version(package: &Package) -> Result<String> {
    match package.registry {
        Registry::Npm => {
            let mut npm = Command::new("npm");
            npm.args(["view", &package.name, "version"]);
            Ok(run_to_success(&mut npm)?.trim().to_owned())
        }
        Registry::PyPi => {
            let mut pip = Command::new(find_python()?);
            pip.args(["-m", "pip", "index", "versions", &package.name]);
            let listed = run_to_success(&mut pip)?;
            // `name (version)`
            let version = listed.split(['(', ')']).nth(1);
            Ok(version.unwrap_or(&package.version).to_owned())
        }
    }
}
