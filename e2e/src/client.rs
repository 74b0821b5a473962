//! Data about one client: its pinned version (`clients.toml`) and how to run it offline
//! (`clients/<slug>/client.toml`). Adding a client takes a folder and a row, no code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::Table;

use crate::error::{AtPath, Error, Result};
use crate::expect::Expectations;
use crate::tools::ToolTable;

/// Where packages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    Npm,
    PyPi,
}

/// A package of a registry at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub registry: Registry,
    pub name: String,
    pub version: String,
    /// Requirements of a Python package that are installed at any version: its pins may name versions that a
    /// registry does not have.
    pub loosen: Vec<String>,
}

impl Package {
    fn npm(name: &str, version: &str) -> Self {
        Package {
            registry: Registry::Npm,
            name: name.to_owned(),
            version: version.to_owned(),
            loosen: Vec::new(),
        }
    }
}

/// The `[node]` table of `clients.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodePin {
    npm: String,
    version: String,
}

/// A row of `clients.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub slug: String,
    /// Its package, either in the npm registry or in PyPI.
    pub npm: Option<String>,
    pub pypi: Option<String>,
    pub version: String,
    /// See [`Package::loosen`].
    #[serde(default)]
    pub loosen: Vec<String>,
    /// Runs only when it is named, with the reason.
    pub only_named: Option<String>,
    /// Other ways in which it can run, such as with another kind of model: `clients/<slug>/<variant>.toml`.
    #[serde(default)]
    pub variants: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientsFile {
    node: NodePin,
    client: Vec<Pin>,
}

/// A file that is written to the sandbox HOME (`~/…`) or project (`./…`) before the client starts.
/// Two texts for one `.json` path are merged, for one `.toml` or `.yaml` path put one behind the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    pub path: String,
    pub text: Option<String>,
    /// A file of the client's folder, instead of `text`.
    pub from: Option<String>,
    #[serde(default)]
    pub executable: bool,
}

/// How to install a hook of this client without anyhook. A file whose path or text has `@event@` is
/// written once per event; `@hook@` is the recorder's command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeHooks {
    pub events: Vec<String>,
    /// The event before a tool runs.
    pub pre_tool: String,
    pub file: Vec<FileSpec>,
    /// What a hook on `pre_tool` prints to deny; `@reason@` is the reason.
    pub deny: Value,
    /// Why the model never sees the reason of a deny, for clients where it does not.
    pub deny_reason_lost: Option<String>,
}

/// A way to start the client, such as in a worktree of its own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mode {
    /// The whole command line, if it differs; else `args` are added to the usual one.
    pub argv: Option<Vec<String>>,
    pub args: Vec<String>,
    pub file: Vec<FileSpec>,
}

/// What a client does not have, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lack {
    pub why: String,
    /// How the run sees that it is so: this command does not print this word.
    pub seen: Option<Absence>,
    /// Or: no request offers the model a tool whose name contains this word.
    pub unoffered: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absence {
    pub command: Vec<String>,
    pub word: String,
}

/// `clients/<slug>/client.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSetup {
    /// More placeholders, for what a variant changes.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// The command line; the first word is a program of the package.
    pub argv: Vec<String>,
    /// Commands that prepare the client, run before it in the same sandbox.
    #[serde(default)]
    pub before: Vec<Vec<String>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables of each client where several run at once; `@instance@` is its number.
    #[serde(default)]
    pub instance_env: BTreeMap<String, String>,
    #[serde(default)]
    pub file: Vec<FileSpec>,
    /// The client needs a newer Node.js than the machine may have: put the pinned one first in its PATH.
    #[serde(default)]
    pub pinned_node: bool,
    /// The client reads hooks only from the user's config: the bridge is installed there, whatever a check says.
    #[serde(default)]
    pub user_only: bool,
    /// How long hooks that the client does not wait for may run after it has exited.
    #[serde(default = "default_linger")]
    pub linger_ms: u64,
    pub tools: ToolTable,
    #[serde(default)]
    pub modes: BTreeMap<String, Mode>,
    /// By the row of the tool table or the mode that is missing.
    #[serde(default)]
    pub lacks: BTreeMap<String, Lack>,
    pub hooks: NativeHooks,
}

fn default_linger() -> u64 {
    200
}

/// `clients/<slug>/<variant>.toml`: what differs. Tables are merged, and `false` removes a member.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct VariantFile {
    situations: Option<Vec<String>>,
    client: Table,
    expect: Table,
}

/// One of the ways in which a client can run, besides the usual one.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    /// Only these situations are tried, and nothing else.
    pub situations: Option<Vec<String>>,
}

/// A client that can be installed and run.
#[derive(Clone, Debug)]
pub struct Client {
    pub pin: Pin,
    pub setup: ClientSetup,
    pub node: Package,
    /// Its folder with the files that [`FileSpec::from`] names.
    pub folder: PathBuf,
    pub expect: Expectations,
    pub variant: Option<Variant>,
}

impl Client {
    /// The agent's slug.
    pub fn slug(&self) -> &str {
        &self.pin.slug
    }

    /// The slug, with the variant if there is one.
    pub fn name(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{}-{}", self.pin.slug, variant.name),
            None => self.pin.slug.clone(),
        }
    }

    /// The scope in which the bridge is installed where a check asks for this one.
    pub fn install_scope<'s>(&self, asked: &'s str) -> &'s str {
        if self.setup.user_only { "user" } else { asked }
    }

    /// The situations that this variant is about; `None` if it is about everything.
    pub fn only_situations(&self) -> Option<&[String]> {
        self.variant.as_ref()?.situations.as_deref()
    }

    pub fn package(&self) -> Package {
        let Pin {
            npm,
            pypi,
            version,
            loosen,
            ..
        } = &self.pin;
        let named = npm.as_deref().or(pypi.as_deref()).unwrap_or_default();
        let mut package = Package::npm(named, version);
        if npm.is_none() {
            package.registry = Registry::PyPi;
            package.loosen.clone_from(loosen);
        }
        package
    }

    /// Every client of `clients.toml`, in its order, each followed by its variants.
    pub fn all() -> Result<Vec<Client>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pins: ClientsFile = read_toml(&root.join("clients.toml"))?;
        let mut clients = Vec::new();
        let node = Package::npm(&pins.node.npm, &pins.node.version);
        for pin in pins.client {
            clients.push(Client::load(root, &pin, &node, None)?);
            for variant in &pin.variants {
                clients.push(Client::load(root, &pin, &node, Some(variant))?);
            }
        }
        Ok(clients)
    }

    fn load(root: &Path, pin: &Pin, node: &Package, variant: Option<&str>) -> Result<Client> {
        let folder = root.join("clients").join(&pin.slug);
        let changes: VariantFile = match variant {
            Some(name) => read_toml(&folder.join(format!("{name}.toml")))?,
            None => VariantFile::default(),
        };
        Ok(Client {
            setup: read_changed(&folder.join("client.toml"), changes.client)?,
            expect: read_changed(&folder.join("expect.toml"), changes.expect)?,
            pin: pin.clone(),
            node: node.clone(),
            folder,
            variant: variant.map(|name| Variant {
                name: name.to_owned(),
                situations: changes.situations,
            }),
        })
    }

    pub fn named(slug: &str) -> Result<Client> {
        Client::all()?
            .into_iter()
            .find(|client| client.slug() == slug)
            .ok_or_else(|| Error::NoClient(slug.to_owned()))
    }
}

/// Reads a file and applies what a variant changes.
fn read_changed<T: DeserializeOwned>(path: &Path, changes: Table) -> Result<T> {
    let mut table: Table = read_toml(path)?;
    merge_tables(&mut table, changes);
    table.try_into().map_err(|error| Error::Data {
        path: path.to_owned(),
        message: error.to_string(),
    })
}

fn merge_tables(table: &mut Table, changes: Table) {
    for (key, change) in changes {
        match (table.get_mut(&key), change) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(change)) => {
                merge_tables(inner, change);
            }
            (_, toml::Value::Boolean(false)) => {
                table.remove(&key);
            }
            (_, change) => {
                table.insert(key, change);
            }
        }
    }
}

pub(crate) fn read_toml<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).at("read", path)?;
    toml::from_str(&text).map_err(|error| Error::Data {
        path: path.to_owned(),
        message: error.to_string(),
    })
}
