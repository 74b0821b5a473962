//! What is known of one client: its pinned version (`clients.toml`) and how it is driven offline
//! (`clients/<slug>/client.toml`). Adding a client is a folder and a row, no code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::{AtPath, Error, Result};
use crate::expect::Expect;
use crate::tools::ToolTable;

/// A package of the npm registry at one version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub npm: String,
    pub version: String,
}

/// A row of `clients.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub slug: String,
    pub npm: String,
    pub version: String,
    /// Runs only when it is named, with the reason.
    pub only_named: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    node: Package,
    client: Vec<Pin>,
}

/// A file that is put into the scratch HOME (`~/…`) or project (`./…`) before the client starts.
/// Two texts for one `.json` path are merged.
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

/// How a hook of this client is put in place without anyhook. A file whose path or text has `@event@` is
/// written once per event; `@hook@` is the recorder's command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeHooks {
    pub events: Vec<String>,
    /// The event before a tool runs.
    pub pre_tool: String,
    pub file: Vec<FileSpec>,
    /// What a hook on `pre_tool` says to deny; `@reason@` is the reason.
    pub deny: Value,
    /// Why the model is never told the reason of a deny, for clients where that is so.
    pub deny_reason_lost: Option<String>,
}

/// `clients/<slug>/client.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// The command line; the first word is a program of the package.
    pub argv: Vec<String>,
    /// Commands that set the client up, run before it in the same place.
    #[serde(default)]
    pub before: Vec<Vec<String>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub file: Vec<FileSpec>,
    /// The client wants a newer Node.js than may be here: put the pinned one first in its PATH.
    #[serde(default)]
    pub pinned_node: bool,
    /// How long hooks that the client does not wait for may still run after it ended.
    #[serde(default = "default_linger")]
    pub linger_ms: u64,
    pub tools: ToolTable,
    /// Why the tool table has no sub-agent.
    pub no_subagent: Option<String>,
    pub hooks: NativeHooks,
}

fn default_linger() -> u64 {
    200
}

/// A client, ready to be installed and driven.
#[derive(Clone, Debug)]
pub struct Client {
    pub pin: Pin,
    pub drive: Drive,
    pub node: Package,
    /// Its folder with the files that [`FileSpec::from`] names.
    pub folder: PathBuf,
    pub expect: Expect,
}

impl Client {
    pub fn slug(&self) -> &str {
        &self.pin.slug
    }

    pub fn package(&self) -> Package {
        Package {
            npm: self.pin.npm.clone(),
            version: self.pin.version.clone(),
        }
    }

    /// Every client of `clients.toml`, in its order.
    pub fn all() -> Result<Vec<Client>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let pins: Pins = read_toml(&root.join("clients.toml"))?;
        pins.client
            .into_iter()
            .map(|pin| {
                let folder = root.join("clients").join(&pin.slug);
                let drive = read_toml(&folder.join("client.toml"))?;
                let expect = Expect::read(&folder)?;
                Ok(Client {
                    pin,
                    drive,
                    node: pins.node.clone(),
                    folder,
                    expect,
                })
            })
            .collect()
    }

    pub fn named(slug: &str) -> Result<Client> {
        Client::all()?
            .into_iter()
            .find(|client| client.slug() == slug)
            .ok_or_else(|| Error::NoClient(slug.to_owned()))
    }
}

pub(crate) fn read_toml<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).at("read", path)?;
    toml::from_str(&text).map_err(|error| Error::Data {
        path: path.to_owned(),
        message: error.to_string(),
    })
}
