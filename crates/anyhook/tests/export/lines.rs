//! `anyhook export jsonl` and `anyhook export ocsf`.

use serde_json::Value;

use crate::sessions::{agents, anyhook, record_sessions, session_id};
use crate::support::journal;

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn jsonl_is_the_journal_and_a_cursor_continues_it() {
    let scratch = record_sessions();
    let exported = anyhook(&scratch, &["export", "jsonl"]);
    let records = journal(&scratch);
    let expected: Vec<Value> = records
        .iter()
        .map(|record| serde_json::to_value(record).unwrap())
        .collect();
    assert!(expected.len() >= 28, "{} events", expected.len());
    assert_eq!(json_lines(&exported.stdout), expected);

    let with_cursor = ["export", "jsonl", "--cursor", "backup"];
    assert_eq!(anyhook(&scratch, &with_cursor).stdout, exported.stdout);
    assert_eq!(anyhook(&scratch, &with_cursor).stdout, "");
    // Another name has its own position.
    let other = anyhook(&scratch, &["export", "jsonl", "--cursor", "other"]);
    assert_eq!(other.stdout, exported.stdout);

    let since = &records[20].time;
    let newer = anyhook(&scratch, &["export", "jsonl", "--since", since]);
    let count = records.iter().filter(|it| it.time >= *since).count();
    assert_eq!(newer.stdout.lines().count(), count);
}

#[test]
fn a_cursor_is_a_plain_name() {
    let scratch = record_sessions();
    for name in ["", "../../x", "a b", "a/b"] {
        let output = anyhook(&scratch, &["export", "jsonl", "--cursor", name]);
        assert_eq!(output.exit, Some(1), "{name}");
        assert!(output.stderr.contains("is not a name for a cursor"));
    }
}

/// What the class API Activity with the profile Security Control has, in version 1.6.0 of the
/// schema, of what is used here: the members, and `!` where one is required.
const OCSF_MEMBERS: &[(&str, &str)] = &[
    (
        "",
        "category_uid! category_name class_uid! class_name activity_id! activity_name type_uid! \
         type_name time! severity_id! severity status_id status status_detail action_id! action \
         disposition_id disposition metadata! actor! api! src_endpoint! unmapped",
    ),
    (
        "/metadata",
        "version! product! profiles uid original_time event_code correlation_uid",
    ),
    ("/metadata/product", "name vendor_name version"),
    ("/actor", "app_name user session"),
    ("/actor/user", "name"),
    ("/actor/session", "uid"),
    ("/api", "operation! service request"),
    ("/api/service", "name"),
    ("/api/request", "uid!"),
    ("/src_endpoint", "hostname"),
];

fn check_ocsf_members(event: &Value) {
    for (place, members) in OCSF_MEMBERS {
        let object = event.pointer(place).and_then(Value::as_object);
        let object = object.unwrap_or_else(|| panic!("{place}: {event:#}"));
        for name in object.keys() {
            let is_known = members
                .split(' ')
                .any(|it| it.trim_end_matches('!') == name);
            assert!(is_known, "{place}/{name} is not in the schema");
        }
        for required in members.split(' ').filter_map(|it| it.strip_suffix('!')) {
            assert!(
                object.contains_key(required),
                "{place}/{required}: {event:#}"
            );
        }
    }
}

#[test]
fn a_siem_sees_who_did_what_and_what_was_denied() {
    let scratch = record_sessions();
    let events = json_lines(&anyhook(&scratch, &["export", "ocsf"]).stdout);
    assert_eq!(events.len(), journal(&scratch).len());
    for event in &events {
        check_ocsf_members(event);
        assert_eq!(event["class_uid"], 6003);
        assert_eq!(event["type_uid"], 600_399);
        assert!(event["time"].as_u64().unwrap() > 1_700_000_000_000);
        assert!(event["src_endpoint"]["hostname"].is_string());
        assert!(event["metadata"]["uid"].is_string());
        assert!(event["unmapped"].get("tool_input").is_none());
    }
    for agent in agents() {
        let denied: Vec<_> = events
            .iter()
            .filter(|it| it["actor"]["app_name"] == agent && it["disposition"] == "Blocked")
            .collect();
        assert_eq!(denied.len(), 1, "{agent}");
        assert_eq!(denied[0]["api"]["operation"], "shell");
        assert_eq!(denied[0]["actor"]["session"]["uid"], session_id(agent));
        assert_eq!(denied[0]["status_detail"], "no shell here");
        assert_eq!(denied[0]["unmapped"]["hooks"][0]["hook"], "no-shell");
    }
    let with_tools = anyhook(&scratch, &["export", "ocsf", "--content", "tools"]).stdout;
    let commands = json_lines(&with_tools)
        .iter()
        .filter(|it| it["unmapped"]["tool_input"].is_string())
        .count();
    assert!(commands >= 12, "{commands}");
    assert!(!with_tools.contains("\"prompt\""));
}
