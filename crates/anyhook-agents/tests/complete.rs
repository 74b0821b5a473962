//! Whether a table is complete: what a new agent's table forgot.
//!
//! A tool is mapped or absent with a reason. An event that is not mapped is
//! not available; a note in `[absent.events]` is optional.

#![cfg(test)]

use anyhook_agents::spec::{Blocking, ConfigShape, MatcherSyntax};
use anyhook_model::registry;

#[test]
fn canonical_names_are_mapped_or_absent() {
    let mut gaps = Vec::new();
    for adapter in anyhook_agents::all() {
        let spec = &adapter.spec;
        let id = &spec.id;
        for event in registry::EVENTS {
            let has = spec
                .events
                .iter()
                .any(|one| one.is.as_deref() == Some(event.name));
            let absent = spec.absent.events.get(event.name);
            match (has, absent) {
                (true, Some(_)) => {
                    gaps.push(format!("{id}: event `{}` is mapped and absent", event.name));
                }
                (false, Some(why)) if why.len() < 5 => gaps.push(format!(
                    "{id}: event `{}` is absent with an empty note",
                    event.name
                )),
                _ => {}
            }
        }
        let class_events = spec.events.iter().any(|event| !event.tools.is_empty());
        for tool in registry::TOOLS {
            let has = !adapter.native_names(tool.name).is_empty()
                || (class_events
                    && spec
                        .events
                        .iter()
                        .any(|event| event.tools.iter().any(|one| one == tool.name)));
            match (has, spec.absent.tools.get(tool.name)) {
                (false, None) => gaps.push(format!(
                    "{id}: tool `{}` is neither mapped nor in [absent.tools]",
                    tool.name
                )),
                (true, Some(_)) => {
                    gaps.push(format!("{id}: tool `{}` is mapped and absent", tool.name));
                }
                _ => {}
            }
        }
        for name in spec.absent.events.keys() {
            if registry::event(name).is_none() {
                gaps.push(format!(
                    "{id}: [absent.events] names `{name}`, which is not canonical"
                ));
            }
        }
        for name in spec.absent.tools.keys() {
            if registry::tool(name).is_none() {
                gaps.push(format!(
                    "{id}: [absent.tools] names `{name}`, which is not canonical"
                ));
            }
        }
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

#[test]
fn tables_refer_only_to_what_exists() {
    let mut faults = Vec::new();
    for adapter in anyhook_agents::all() {
        let spec = &adapter.spec;
        let id = &spec.id;
        for event in &spec.events {
            if let Some(is) = &event.is
                && registry::event(is).is_none()
            {
                faults.push(format!(
                    "{id}: `{}` is `{is}`, which is not canonical",
                    event.native
                ));
            }
            if let Some(answer) = &event.answer
                && !spec.answers.contains_key(answer)
            {
                faults.push(format!(
                    "{id}: `{}` answers by `{answer}`, which is not there",
                    event.native
                ));
            }
            let profile = event
                .answer
                .as_ref()
                .and_then(|answer| spec.answers.get(answer));
            let denies = profile.is_some_and(|profile| !profile.deny.is_empty());
            if denies == (event.blocking == Blocking::Observe) && !event.noisy {
                faults.push(format!(
                    "{id}: `{}` is `{:?}` and its answer {} deny",
                    event.native,
                    event.blocking,
                    if denies { "can" } else { "cannot" }
                ));
            }
            for tool in &event.tools {
                if tool != "mcp" && registry::tool(tool).is_none() {
                    faults.push(format!(
                        "{id}: `{}` is for `{tool}`, which is no canonical tool",
                        event.native
                    ));
                }
            }
        }
        for name in spec.answers.keys() {
            if !spec
                .events
                .iter()
                .any(|event| event.answer.as_ref() == Some(name))
            {
                faults.push(format!("{id}: no event answers by `{name}`"));
            }
        }
        for tool in &spec.tools {
            if registry::tool(&tool.is).is_none() {
                faults.push(format!(
                    "{id}: `{}` is `{}`, which is no canonical tool",
                    tool.native, tool.is
                ));
            }
        }
        let matcher = &spec.config.matcher;
        if matcher.syntax != MatcherSyntax::None
            && matcher.at.is_empty()
            && spec.config.shape != ConfigShape::Plugin
        {
            faults.push(format!("{id}: matchers have a syntax and no place"));
        }
        let writes = spec.files.iter().filter(|file| file.write).count();
        if writes == 0 {
            faults.push(format!("{id}: no file is written"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_model_and_the_table_know_the_same_events() {
    let mut faults = Vec::new();
    for adapter in anyhook_agents::all().filter(|adapter| !adapter.spec.pseudo) {
        let known = anyhook_testkit::reference_model::events(&adapter.spec.id);
        for event in known {
            if adapter.event_by_native(event).is_none() {
                faults.push(format!(
                    "{}: `{event}` is not in the table",
                    adapter.spec.id
                ));
            }
        }
        for event in &adapter.spec.events {
            if !known.contains(&event.native.as_ref()) {
                faults.push(format!(
                    "{}: `{}` is not known to the reference model",
                    adapter.spec.id, event.native
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The forms that the binary carries can be read, every one of them.
#[test]
fn every_table_is_read_in_both_forms() {
    for slug in anyhook_agents::slugs() {
        let whole = anyhook_agents::get(slug);
        let run = anyhook_agents::get_for_run(slug);
        assert!(whole.is_some() && run.is_some(), "{slug} cannot be read");
        let events = |adapter: Option<&anyhook_agents::Adapter>| {
            adapter.map(|adapter| adapter.spec.events.len())
        };
        assert_eq!(events(whole), events(run), "{slug}");
    }
}

#[test]
fn every_described_file_names_its_format() {
    for adapter in anyhook_agents::all() {
        let described = adapter.describe();
        for file in described["files"].as_array().unwrap() {
            let format = file["format"].as_str();
            assert!(
                matches!(
                    format,
                    Some("json" | "jsonc" | "toml" | "yaml" | "folder" | "plugin")
                ),
                "{}: {file}",
                adapter.spec.id
            );
        }
    }
}
