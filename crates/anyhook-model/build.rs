//! Turns `registry/*.toml` into Rust tables, so that nothing is parsed at run
//! time. A mistake in a data file fails the build and names the file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, process};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The rows of a registry file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registry<T> {
    #[serde(alias = "event", alias = "tool", alias = "capability", alias = "level")]
    rows: Vec<T>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    name: String,
    tier: Tier,
    category: String,
    blocking: Blocking,
    tool: bool,
    unified: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    aliases: Vec<String>,
    subject: Option<String>,
    description: String,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Tier {
    Core,
    Extended,
    Exclusive,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Blocking {
    Prevent,
    Retry,
    Observe,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    description: String,
    input: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Capability {
    name: String,
    description: String,
    inference: String,
    default: Strategy,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    Block,
    Warn,
    Exclude,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    name: String,
    requires: Vec<String>,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=registry");
    if let Err(message) = generate() {
        println!("cargo::error={message}");
        process::exit(1);
    }
}

fn generate() -> Result<(), String> {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };

    line("pub static EVENTS: &[Event] = &[".into());
    for event in load_rows::<Event>("registry/events.toml")? {
        line(format!(
            "Event {{ name: {:?}, tier: Tier::{:?}, category: {:?}, blocking: Semantic::{:?}, tool: {}, unified: {:?}, also: &{:?}, aliases: &{:?}, subject: {:?}, description: {:?} }},",
            event.name,
            event.tier,
            event.category,
            event.blocking,
            event.tool,
            event.unified,
            event.also,
            event.aliases,
            event.subject,
            event.description,
        ));
    }
    line("];\npub static TOOLS: &[Tool] = &[".into());
    for tool in load_rows::<Tool>("registry/tools.toml")? {
        line(format!(
            "Tool {{ name: {:?}, description: {:?}, input: &{:?} }},",
            tool.name, tool.description, tool.input,
        ));
    }
    line("];\npub static CAPABILITIES: &[Capability] = &[".into());
    for capability in load_rows::<Capability>("registry/capabilities.toml")? {
        line(format!(
            "Capability {{ name: {:?}, description: {:?}, inference: {:?}, default: Strategy::{:?} }},",
            capability.name, capability.description, capability.inference, capability.default,
        ));
    }
    line("];\npub static LEVELS: &[Level] = &[".into());
    for level in load_rows::<Level>("registry/levels.toml")? {
        line(format!(
            "Level {{ name: {:?}, requires: &{:?} }},",
            level.name, level.requires,
        ));
    }
    line("];".into());

    let folder = env::var("OUT_DIR").map_err(|error| error.to_string())?;
    fs::write(Path::new(&folder).join("registry.rs"), out).map_err(|error| error.to_string())
}

fn load_rows<T: DeserializeOwned>(path: &str) -> Result<Vec<T>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let registry: Result<Registry<T>, _> = toml::from_str(&text);
    registry.map(|registry| registry.rows).map_err(|error| {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map_or(1, |before| before.matches('\n').count() + 1);
        format!("{path}:{line}: {}", error.message())
    })
}
