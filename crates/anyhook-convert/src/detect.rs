//! Whose config a document is, by its path and its shape.

use anyhook_agents::Adapter;
use anyhook_agents::spec::{Config, Shape, Tool};
use serde_json::Value;

/// An answer, with what speaks for it.
#[derive(Debug, Clone)]
pub struct Guess {
    /// Absent: a canonical manifest.
    pub agent: Option<&'static Adapter>,
    pub variant: Option<&'static str>,
    pub why: String,
    /// Other agents for which just as much speaks.
    pub rivals: Vec<&'static Adapter>,
}

/// The best guess; `None` when nothing speaks for any agent.
pub fn detect(path: Option<&str>, document: &Value) -> Option<Guess> {
    let spec = document.get("spec").and_then(Value::as_str);
    if let Some(spec) = spec.filter(|spec| spec.starts_with("hooks/")) {
        return Some(Guess {
            agent: None,
            variant: None,
            why: format!("`spec` is `{spec}`"),
            rivals: Vec::new(),
        });
    }
    let mut best: Option<(usize, Guess)> = None;
    let named: Vec<&'static Adapter> = path
        .map(|path| anyhook_agents::with_path(|file| path_fits(path, file)).collect())
        .unwrap_or_default();
    // A path weighs more than any shape: who has none of that name is out.
    let candidates: Vec<&'static Adapter> = if named.is_empty() {
        anyhook_agents::all().collect()
    } else {
        named
    };
    for adapter in candidates {
        let Some((score, variant, named)) = score(adapter, path, document) else {
            continue;
        };
        match &mut best {
            Some((other, guess)) if *other == score => guess.rivals.push(adapter),
            Some((other, _)) if *other > score => {}
            _ => {
                let why = if named {
                    format!("the path is that of {}", adapter.spec.name)
                } else {
                    format!("its events and fields are those of {}", adapter.spec.name)
                };
                let guess = Guess {
                    agent: Some(adapter),
                    variant,
                    why,
                    rivals: Vec::new(),
                };
                best = Some((score, guess));
            }
        }
    }
    let mut guess = best.map(|(_, guess)| guess)?;
    let hinted = |agent: &&'static Adapter| path.is_some_and(|path| names(path, agent));
    let equals = guess.agent.into_iter().chain(guess.rivals.iter().copied());
    let hinted: Vec<&'static Adapter> = equals.filter(hinted).collect();
    if let ([agent], false) = (hinted.as_slice(), guess.rivals.is_empty()) {
        guess.variant = score(agent, path, document).and_then(|(_, variant, _)| variant);
        guess.why = format!("a folder is named after {}", agent.spec.name);
        guess.agent = Some(agent);
        guess.rivals.clear();
    }
    Some(guess)
}

/// Whether a folder of the path is named after an agent.
fn names(path: &str, agent: &Adapter) -> bool {
    path.split(['/', '\\'])
        .any(|part| part == agent.spec.id || agent.spec.aliases.iter().any(|alias| alias == part))
}

/// How much speaks for an agent, for which form of its file, and whether it is
/// the path that does. A path weighs more than any shape.
fn score(
    adapter: &'static Adapter,
    path: Option<&str>,
    document: &Value,
) -> Option<(usize, Option<&'static str>, bool)> {
    const PATH: usize = 1 << 20;
    let by_path = adapter
        .spec
        .files
        .iter()
        .filter(|file| path.is_some_and(|path| path_fits(path, &file.path)))
        .map(|file| {
            let variant = file.variant.as_deref();
            let shape = shape_score(adapter, adapter.config(variant), document);
            // A file of just this name says more than one of a pattern.
            let exact = usize::from(!file.path.contains('*')) * PATH;
            (PATH + exact + shape, variant, true)
        });
    let main = &adapter.spec.config;
    let forms = std::iter::once((None, main)).chain(
        main.variant
            .iter()
            .map(|(name, config)| (Some(name.as_ref()), config)),
    );
    let by_shape = forms.filter_map(|(variant, config)| {
        let score = shape_score(adapter, config, document);
        (score > 0).then_some((score, variant, false))
    });
    // The first of equals: the form that is written today.
    by_path.chain(by_shape).fold(None, |best, one| match best {
        Some((score, _, _)) if score >= one.0 => best,
        _ => Some(one),
    })
}

/// Whether `path` ends as the agent's file does. `*` stands for one name.
fn path_fits(path: &str, pattern: &str) -> bool {
    let path: Vec<&str> = path.split(['/', '\\']).collect();
    let pattern: Vec<&str> = pattern
        .trim_start_matches("~/")
        .trim_start_matches('/')
        .split('/')
        .collect();
    if pattern.len() < 2 || path.len() < pattern.len() {
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

/// How much of a document an agent would understand.
fn shape_score(adapter: &Adapter, config: &Config, document: &Value) -> usize {
    let root = if config.root.is_empty() {
        Some(document)
    } else {
        document.pointer(&config.root)
    };
    let preamble = config
        .preamble
        .iter()
        .filter(|(key, value)| document.get(key) == Some(value))
        .count();
    let score = match (root, config.shape) {
        (Some(Value::Object(map)), Shape::Grouped | Shape::Flat) => {
            let mut score = 0;
            for (key, entries) in map {
                let known = adapter.spec.events.iter().any(|event| {
                    event.native == *key || event.aliases.iter().any(|alias| alias == key)
                });
                let grouped = entries
                    .as_array()
                    .and_then(|entries| entries.first())
                    .is_some_and(|entry| entry.get("hooks").is_some());
                if known {
                    score += 4 + usize::from(grouped == (config.shape == Shape::Grouped)) * 2;
                    score += handler_score(adapter, config, entries);
                }
            }
            score
        }
        (Some(Value::Array(items)), Shape::List) => {
            let at = config.event_at.as_deref().unwrap_or("/event");
            items
                .iter()
                .filter(|item| {
                    item.pointer(at)
                        .and_then(Value::as_str)
                        .is_some_and(|name| knows(adapter, config, name))
                })
                .count()
                * 6
        }
        (Some(single), Shape::Single) => {
            let at = config.event_at.as_deref().unwrap_or("/event");
            usize::from(
                single
                    .pointer(at)
                    .and_then(Value::as_str)
                    .is_some_and(|name| knows(adapter, config, name)),
            ) * 6
        }
        _ => 0,
    };
    if score == 0 { 0 } else { score + preamble * 3 }
}

fn knows(adapter: &Adapter, config: &Config, name: &str) -> bool {
    adapter.event_by_native(name).is_some()
        || config.event_names.values().any(|spelled| spelled == name)
}

fn handler_score(adapter: &Adapter, config: &Config, entries: &Value) -> usize {
    let mut score = 0;
    for entry in entries.as_array().into_iter().flatten() {
        let handler = entry.pointer("/hooks/0").unwrap_or(entry);
        score += config
            .handler
            .fields
            .iter()
            .filter(|field| handler.pointer(&field.at).is_some())
            .count();
        let matcher = entry
            .pointer(&config.matcher.at)
            .and_then(Value::as_str)
            .unwrap_or_default();
        for name in matcher.split('|') {
            let tools = &adapter.spec.tools;
            let knows =
                |tool: &Tool| tool.native == name || tool.aliases.iter().any(|alias| alias == name);
            score += usize::from(tools.iter().any(knows)) * 2;
        }
    }
    score
}
