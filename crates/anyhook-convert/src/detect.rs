//! Detects which agent a config belongs to, by its path and its shape.

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Config, ConfigShape};
use serde_json::Value;

/// The agent that a config probably belongs to, with the reason.
#[derive(Debug, Clone)]
pub struct DetectedConfig {
    /// Absent: a canonical manifest.
    pub agent: Option<&'static Adapter>,
    pub variant: Option<&'static str>,
    pub why: String,
    /// Other agents that are equally likely.
    pub rivals: Vec<&'static Adapter>,
}

/// The most likely agent; `None` if nothing points to any agent.
pub fn detect(path: Option<&str>, document: &Value) -> Option<DetectedConfig> {
    let spec = document.get("spec").and_then(Value::as_str);
    if let Some(spec) = spec.filter(|spec| spec.starts_with("hooks/")) {
        return Some(DetectedConfig {
            agent: None,
            variant: None,
            why: format!("`spec` is `{spec}`"),
            rivals: Vec::new(),
        });
    }
    let mut best: Option<(usize, DetectedConfig)> = None;
    let mut candidates: Vec<&'static Adapter> = path
        .map(|path| {
            let found = anyhook_agents::with_path(|file| path_ends_like(path, file));
            found.filter(|adapter| !adapter.spec.pseudo).collect()
        })
        .unwrap_or_default();
    // A path outweighs any shape: if it fits some agents, only these are considered.
    if candidates.is_empty() {
        candidates = anyhook_agents::all().collect();
    }
    for adapter in candidates {
        let Some((score, variant, named)) = score_agent(adapter, path, document) else {
            continue;
        };
        match &mut best {
            Some((other, detected)) if *other == score => detected.rivals.push(adapter),
            Some((other, _)) if *other > score => {}
            _ => {
                let why = if named {
                    format!("the path belongs to {}", adapter.spec.name)
                } else {
                    format!("its events and fields match {}", adapter.spec.name)
                };
                let detected = DetectedConfig {
                    agent: Some(adapter),
                    variant,
                    why,
                    rivals: Vec::new(),
                };
                best = Some((score, detected));
            }
        }
    }
    let mut detected = best.map(|(_, detected)| detected)?;
    let hinted = |agent: &&'static Adapter| path.is_some_and(|path| path_names_agent(path, agent));
    let equals = detected.agent.iter().chain(&detected.rivals).copied();
    let hinted: Vec<&'static Adapter> = equals.filter(hinted).collect();
    if let ([agent], false) = (hinted.as_slice(), detected.rivals.is_empty()) {
        detected.variant = score_agent(agent, path, document).and_then(|(_, variant, _)| variant);
        detected.why = format!("a folder is named after {}", agent.spec.name);
        detected.agent = Some(agent);
        detected.rivals.clear();
    }
    Some(detected)
}

/// The variant of an agent's config that a document probably has.
pub fn detect_variant(
    agent: &'static Adapter,
    path: Option<&str>,
    document: &Value,
) -> Option<&'static str> {
    score_agent(agent, path, document)?.1
}

/// Whether a folder of the path is named after an agent.
fn path_names_agent(path: &str, agent: &Adapter) -> bool {
    path.split(['/', '\\'])
        .any(|part| part == agent.spec.id || agent.spec.aliases.iter().any(|alias| alias == part))
}

/// How likely a config is this agent's, in which variant, and whether the path
/// shows it. A path outweighs any shape.
fn score_agent(
    adapter: &'static Adapter,
    path: Option<&str>,
    document: &Value,
) -> Option<(usize, Option<&'static str>, bool)> {
    const PATH: usize = 1 << 20;
    let by_path = adapter
        .spec
        .files
        .iter()
        .filter(|_| !adapter.spec.pseudo)
        .filter(|file| path.is_some_and(|path| path_ends_like(path, &file.path)))
        .map(|file| {
            let variant = file.variant.as_deref();
            let shape = shape_score(adapter, adapter.config(variant), document);
            // An exact path is stronger evidence than a pattern.
            let exact = usize::from(!file.path.contains('*')) * PATH;
            // Of two paths that fit the longer one says more.
            let length = file.path.trim_start_matches("~/").split('/').count() << 10;
            (PATH + exact + length + shape, variant, true)
        });
    let main = &adapter.spec.config;
    let variants = main.variant.iter();
    let variants = variants.map(|(name, config)| (Some(name.as_ref()), config));
    let forms = std::iter::once((None, main)).chain(variants);
    let by_shape = forms.filter_map(|(variant, config)| {
        let score = shape_score(adapter, config, document);
        (score > 0).then_some((score, variant, false))
    });
    // On a tie the first wins: the current variant.
    by_path.chain(by_shape).fold(None, |best, one| match best {
        Some((score, _, _)) if score >= one.0 => best,
        _ => Some(one),
    })
}

/// Whether `path` ends like the path of the agent's file. `*` matches one name; a file
/// of the project's root has a name that only this agent uses.
fn path_ends_like(path: &str, pattern: &str) -> bool {
    let path: Vec<&str> = path.split(['/', '\\']).collect();
    let pattern = pattern.trim_start_matches("~/").trim_start_matches('/');
    let pattern: Vec<&str> = pattern.split('/').collect();
    if path.len() < pattern.len() {
        return false;
    }
    path.iter()
        .rev()
        .zip(pattern.iter().rev())
        .all(|(part, wanted)| match wanted.split_once('*') {
            Some((before, after)) => part.starts_with(before) && part.ends_with(after),
            None => part == wanted,
        })
}

/// How many parts of a document the agent would understand, weighted.
fn shape_score(adapter: &Adapter, config: &Config, document: &Value) -> usize {
    let root = if config.root.is_empty() {
        Some(document)
    } else {
        document.pointer(&config.root)
    };
    let preamble = config.preamble.iter();
    let preamble = preamble.filter(|(key, value)| document.get(key) == Some(value));
    let score = match (root, config.shape) {
        (Some(Value::Object(map)), ConfigShape::Grouped | ConfigShape::Flat) => {
            let mut score = 0;
            for (key, entries) in map {
                let known = adapter.spec.events.iter().any(|event| {
                    event.native == *key || event.aliases.iter().any(|alias| alias == key)
                });
                let grouped = entries
                    .get(0)
                    .and_then(|entry| entry.get("hooks"))
                    .is_some();
                if known {
                    score += 4 + usize::from(grouped == (config.shape == ConfigShape::Grouped)) * 2;
                    score += handler_score(adapter, config, entries);
                }
            }
            score
        }
        (Some(Value::Array(items)), ConfigShape::List) => {
            let items = items.iter();
            items
                .filter(|item| names_event(adapter, config, item))
                .count()
                * 6
        }
        (Some(single), ConfigShape::Single) => {
            usize::from(names_event(adapter, config, single)) * 6
        }
        _ => 0,
    };
    if score == 0 {
        0
    } else {
        score + preamble.count() * 3
    }
}

/// Whether an entry of a list names an event of the agent.
fn names_event(adapter: &Adapter, config: &Config, entry: &Value) -> bool {
    let name = entry.pointer(config.event_at()).and_then(Value::as_str);
    name.is_some_and(|name| {
        adapter.event_by_native(name).is_some()
            || config.event_names.values().any(|spelled| spelled == name)
    })
}

fn handler_score(adapter: &Adapter, config: &Config, entries: &Value) -> usize {
    let mut score = 0;
    for entry in entries.as_array().into_iter().flatten() {
        let handler = entry.pointer("/hooks/0").unwrap_or(entry);
        let fields = config.handler.fields.iter();
        score += fields
            .filter(|field| handler.pointer(&field.at).is_some())
            .count();
        let matcher = entry.pointer(&config.matcher.at).and_then(Value::as_str);
        let names = matcher.unwrap_or_default().split('|');
        score += names
            .filter(|name| adapter.tool_by_native(name, None).is_some())
            .count()
            * 2;
    }
    score
}
