//! Whether the tables are complete, and whether the models know the same events.

#![cfg(test)]

#[test]
fn canonical_names_are_mapped_or_absent() {
    let mut gaps = Vec::new();
    for adapter in anyhook_agents::all() {
        let found = anyhook_agents::own::gaps(&adapter.spec).into_iter();
        gaps.extend(found.map(|gap| format!("{}: {gap}", adapter.spec.id)));
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
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
