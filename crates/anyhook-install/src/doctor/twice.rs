//! The same hook more than once for one event.

use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_agents::matrix::clients;

use super::{Finding, Severity, about, trap};
use crate::command;
use crate::target::Target;
use crate::walk;
use crate::world::World;

/// A command under an event, and where it stands.
struct Seen {
    event: String,
    canonical: String,
    command: String,
    path: PathBuf,
}

pub fn check(
    world: &World,
    adapter: &'static Adapter,
    targets: &[Target],
    findings: &mut Vec<Finding>,
) {
    let mut seen: Vec<Seen> = Vec::new();
    let mut told: Vec<(PathBuf, PathBuf)> = Vec::new();
    for target in targets.iter().filter(|target| target.is_editable()) {
        for (event, canonical, line) in commands(adapter, target) {
            let same = seen
                .iter()
                .find(|other| other.event == event && is_same(&other.command, &line));
            if let Some(other) = same {
                let pair = (other.path.clone(), target.path.clone());
                if !told.contains(&pair) {
                    findings.push(doubled(world, target, &event, &line, &pair.0));
                    told.push(pair);
                }
            }
            seen.push(Seen {
                event,
                canonical,
                command: line,
                path: target.path.clone(),
            });
        }
    }
    also_read(world, adapter, &seen, findings);
}

fn is_same(a: &str, b: &str) -> bool {
    match (command::ours(a), command::ours(b)) {
        (Some(a), Some(b)) => a.agent == b.agent,
        (None, None) => a == b,
        _ => false,
    }
}

/// Native event, canonical event, and command line of every entry.
fn commands(adapter: &'static Adapter, target: &Target) -> Vec<(String, String, String)> {
    let Some(document) = target.document() else {
        return Vec::new();
    };
    let config = target.config();
    walk::entries(config, &document)
        .iter()
        .filter_map(|entry| {
            let line = entry.commands(config).next()?.to_owned();
            let subject = entry
                .matcher(config)
                .map(ToString::to_string)
                .filter(|_| command::ours(&line).is_none());
            let canonical = adapter
                .event_by_native(entry.event)
                .and_then(|event| event.is.as_deref())
                .unwrap_or(entry.event);
            // The same guard for two tools is not the same guard twice.
            let about = |event: &str| match &subject {
                Some(subject) if subject.len() > 2 => format!("{event} {subject}"),
                _ => event.to_owned(),
            };
            Some((about(entry.event), about(canonical), line))
        })
        .collect()
}

fn doubled(world: &World, target: &Target, event: &str, line: &str, other: &Path) -> Finding {
    let is_bridge = command::ours(line).is_some();
    let place = if other == target.path {
        "in this file".to_owned()
    } else {
        format!("in `{}` as well", world.shown(other))
    };
    let remedy = match (is_bridge, other == target.path) {
        (true, true) => "run `anyhook uninstall`, then `anyhook install`".to_owned(),
        (true, false) => {
            "keep one: `anyhook uninstall --scope user`, or `--scope project`".to_owned()
        }
        (false, _) => "keep one of them".to_owned(),
    };
    about(
        target,
        "registered-twice",
        Severity::Warning,
        format!("`{line}` stands {place}, for `{event}`"),
        "the hook runs twice for each event, where the agent does not notice it",
        remedy,
    )
}

/// Files of other agents that this one runs as well.
fn also_read(world: &World, adapter: &'static Adapter, own: &[Seen], findings: &mut Vec<Finding>) {
    if own.is_empty() {
        return;
    }
    for path in &adapter.spec.also_reads {
        let Some(place) = world.expand(path, None).filter(|place| place.is_file()) else {
            continue;
        };
        if own.iter().any(|seen| seen.path == place) {
            continue;
        }
        let owner = clients().find_map(|other| {
            let file = other.spec.files.iter().find(|file| file.path == *path)?;
            let target = Target {
                adapter: other,
                scope: file.scope,
                path: place.clone(),
                format: file.format,
                variant: file.variant.as_deref(),
            };
            Some((other, target))
        });
        let Some((other, foreign)) = owner else {
            continue;
        };
        for (_, event, line) in commands(other, &foreign) {
            let ours = command::ours(&line).is_some();
            let same = own.iter().find(|seen| {
                seen.canonical == event
                    && (seen.command == line || (ours && command::ours(&seen.command).is_some()))
            });
            let Some(same) = same else { continue };
            let own_file = Target {
                adapter,
                path: same.path.clone(),
                ..foreign.clone()
            };
            // The dispatcher tells who calls, and answers once.
            let severity = if ours {
                Severity::Info
            } else {
                Severity::Warning
            };
            let what = format!(
                "`{}` stands here, and {} also runs `{}`, where it stands too",
                same.command,
                adapter.spec.name,
                world.shown(&place)
            );
            let known =
                trap(&own_file, "claude-files-too", severity, what.clone()).map(|finding| {
                    Finding {
                        id: "registered-twice".to_owned(),
                        ..finding
                    }
                });
            findings.push(known.unwrap_or_else(|| {
                about(
                    &own_file,
                    "registered-twice",
                    severity,
                    what,
                    "the hook runs twice for each event, where the agent does not notice it",
                    "keep one of them".to_owned(),
                )
            }));
            break;
        }
    }
}
