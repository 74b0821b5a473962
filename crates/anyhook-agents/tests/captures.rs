//! Every payload that a real client sent, and every example of the facts,
//! decodes without loss and encodes back to itself.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhook_agents::Adapter;
use anyhook_testkit::files_below;
use serde_json::Value;

/// `agents/<slug>/captures/**/<Event>[-variant].json`.
fn captures() -> Vec<(&'static Adapter, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
    let mut found = Vec::new();
    for adapter in anyhook_agents::all() {
        let files = files_below(&root.join(adapter.spec.id.as_ref()).join("captures"));
        found.extend(files.into_iter().map(|file| (adapter, file)));
    }
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found
}

fn hint(path: &Path) -> String {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem.split('-').next().unwrap().to_owned()
}

#[test]
fn every_capture_comes_back_as_it_was() {
    let mut failures = Vec::new();
    let captures = captures();
    assert!(captures.len() > 20, "no captures found");
    for (adapter, path) in &captures {
        let payload: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let decoded = match adapter.decode(&payload, Some(&hint(path))) {
            Ok(decoded) => decoded,
            Err(error) => {
                failures.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        let event = &decoded.event;
        if !decoded.known {
            failures.push(format!(
                "{}: event `{}` is not in the table",
                path.display(),
                event.native_event
            ));
        }
        let encoded = adapter.encode(event, None).map(|encoded| encoded.payload);
        if encoded.as_ref() != Some(&payload) {
            failures.push(format!(
                "{}\n  was  {payload}\n  came {}\n  via  {}",
                path.display(),
                encoded.unwrap_or_default(),
                serde_json::to_string(event).unwrap()
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} captures:\n{}",
        failures.len(),
        captures.len(),
        failures.join("\n")
    );
}

/// What a hook may count on, whoever calls: the canonical fields are there.
#[test]
fn tool_calls_name_their_tool_and_input() {
    for (adapter, path) in captures() {
        let payload: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let event = adapter.decode(&payload, Some(&hint(&path))).unwrap().event;
        if !matches!(
            event.event.as_str(),
            "before_tool_execute" | "after_tool_execute"
        ) {
            continue;
        }
        assert!(
            event.tool_name().is_some(),
            "{}: no tool_name",
            path.display()
        );
        assert!(
            event.data.contains_key("tool_input"),
            "{}: no tool_input",
            path.display()
        );
        let input = event.tool_input();
        let has = |key: &str| {
            input.is_some_and(|input| input.get(key).is_some_and(|value| !value.is_null()))
        };
        match event.tool_name().unwrap() {
            "shell" => assert!(has("command"), "{}: no command", path.display()),
            "file_read" | "file_write" => assert!(has("path"), "{}: no path", path.display()),
            "file_edit" => assert!(has("path") || has("files"), "{}: no path", path.display()),
            _ => {}
        }
        if path.to_string_lossy().contains("echo_back") {
            let (server, tool) = event
                .mcp()
                .unwrap_or_else(|| panic!("{}: no mcp", path.display()));
            assert_eq!((server, tool), ("e2e", "echo_back"), "{}", path.display());
        }
    }
}

/// A conversion counts on what an agent sends: what only some calls have is marked.
#[test]
fn what_only_some_calls_have_is_marked() {
    // Agent, event and field: whether a call has it, and whether one lacks it.
    let mut seen: BTreeMap<(&str, String, &str), (bool, bool)> = BTreeMap::new();
    for (adapter, path) in captures() {
        let payload: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let event = adapter.decode(&payload, Some(&hint(&path))).unwrap().event;
        let Some(spec) = adapter.event_by_native(&event.native_event) else {
            continue;
        };
        let is_examined = event.event == "before_tool_execute";
        // The call itself, and where it happens.
        let is_given =
            |to: &str| to.contains('.') || matches!(to, "tool_name" | "tool_input" | "cwd");
        let rows = adapter.payload_rows(spec).filter(|_| is_examined);
        for row in rows.filter(|row| !row.sometimes && !is_given(&row.to)) {
            let mut places = adapter.payload_rows(spec).filter(|it| it.to == row.to);
            let has = places.any(|it| payload.pointer(&it.at).is_some());
            let key = (
                adapter.spec.id.as_ref(),
                event.native_event.clone(),
                &*row.to,
            );
            let found = seen.entry(key).or_default();
            *found = (found.0 || has, found.1 || !has);
        }
    }
    let unmarked: Vec<_> = seen.iter().filter(|(_, it)| **it == (true, true)).collect();
    assert!(unmarked.is_empty(), "`sometimes` is missing: {unmarked:#?}");
}

/// The dispatcher reads only the part of a table that one event needs; that
/// part must say the same as the whole.
#[test]
fn a_part_of_the_table_says_what_the_whole_says() {
    for (adapter, path) in captures() {
        let payload: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let hint = hint(&path);
        let whole = adapter.decode(&payload, Some(&hint)).unwrap().event;
        let caller = anyhook_agents::agent_handle(&adapter.spec.id).unwrap();
        let part = caller.for_payload(&payload, Some(&hint)).unwrap();
        let event = part.decode(&payload, Some(&hint)).unwrap().event;
        assert_eq!(event, whole, "{}", path.display());
        let response = anyhook_model::HookResponse::deny("no");
        let render = |adapter: &Adapter| {
            let rendered = adapter.render(
                &event,
                &response,
                anyhook_agents::respond::RenderOptions::default(),
            );
            (
                rendered.stdout,
                rendered.stderr,
                rendered.exit,
                rendered.lost,
            )
        };
        let again = caller.for_event(&event.native_event).unwrap();
        assert_eq!(render(again), render(adapter), "{}", path.display());
    }
}

/// Versions of an agent differ in whether a tool's input is an object or the
/// text of one; a guard sees the same, and the payload comes back as it was.
#[test]
fn an_input_in_text_is_seen() {
    for (agent, event, field) in [
        ("copilot-cli", "preToolUse", "toolArgs"),
        ("cursor", "beforeMCPExecution", "tool_input"),
        ("claude-code", "PreToolUse", "tool_input"),
    ] {
        let adapter = anyhook_agents::get(agent).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("agents")
            .join(agent)
            .join("captures");
        let (_, path) = captures()
            .into_iter()
            .find(|(_, path)| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                path.starts_with(&folder) && name.starts_with(event)
            })
            .expect(agent);
        let mut payload: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        for input in [
            serde_json::json!({"command": "rm -rf /"}),
            serde_json::json!(r#" {"command": "rm -rf /"}"#),
        ] {
            payload[field] = input;
            let event = adapter.decode(&payload, Some(event)).unwrap().event;
            let seen = event.tool_input().and_then(|input| input.get("command"));
            assert_eq!(seen, Some(&"rm -rf /".into()), "{agent}: {payload}");
            let back = adapter.encode(&event, None).unwrap();
            assert_eq!(back.payload, payload, "{agent}");
        }
    }
}
