//! Discovery files, one case per file.

#![cfg(test)]

mod common;

use common::{files, json, name, read};
use openhook::Discovery;
use serde_json::{Value, json};

#[test]
fn every_case_reads_as_expected() {
    for path in files("discovery", ".json") {
        let case = json(&path);
        let got = match case["text"].as_str() {
            Some(text) => Discovery::parse(text),
            None => Discovery::parse(&case["file"].to_string()),
        };
        let findings: Value = got
            .findings
            .iter()
            .map(|f| {
                let mut value = json!({"code": f.code, "severity": f.severity, "field": f.field});
                if let Some(at) = f.position {
                    value["line"] = at.line.into();
                    value["column"] = at.column.into();
                }
                value
            })
            .collect();
        assert_eq!(findings, case["expect"], "{}", name(&path));
        let commands = got.discovery.map(|file| {
            file.hooks
                .into_iter()
                .map(|hook| hook.command)
                .collect::<Vec<_>>()
        });
        assert_eq!(json!(commands), case["commands"], "{}", name(&path));
    }
}

#[test]
fn the_example_of_the_text() {
    let path = &files("fixtures", "discovery.json")[0];
    let got = Discovery::parse(&read(path));
    assert_eq!(got.findings, []);
    let file = got.discovery.unwrap();
    assert!(file.subscribes("session.end"));
    assert!(!file.subscribes("session.start"));
    assert!(file.hooks[0].is_async);
    assert_eq!(serde_json::to_value(&file).unwrap(), json(path));
}

#[test]
fn only_the_star_is_a_pattern_and_order_is_kept() {
    let file = Discovery::parse(
        r#"{"openhook":"0.1","hooks":[
            {"command":"all"},
            {"command":"star","events":["session.end","*"]},
            {"command":"glob","events":["tool.*"]},
            {"command":"one","events":["tool.end"]},
            {"command":"none","events":[]}]}"#,
    )
    .discovery
    .unwrap();
    let who = |event| -> Vec<&str> {
        file.subscribers(event)
            .map(|hook| hook.command.as_str())
            .collect()
    };
    assert_eq!(who("tool.end"), ["all", "star", "one"]);
    assert_eq!(who("doc.write"), ["all", "star"]);
}
