//! Rules of one's own: what they match, and what is said about wrong ones.

#![cfg(test)]

use anyhook_guard::{GuardContext, check_rules, conditions, parse_guard};
use anyhook_model::{HookEvent, SourceText};
use serde_json::json;

const RULES: &str = r#"
rules:
  - name: publish
    reason: "{command} is done by CI ({rule})"
    when: { command: npm publish, not: { flags: --dry-run } }
    match: [npm publish, "sudo npm publish --tag next", "sh -c 'npm publish'"]
    not_match: [npm pack, "npm publish --dry-run", "echo npm publish"]
  - name: generated
    decision: ask
    when: { path: "src/generated/**", tool: [file_write, file_edit, shell] }
    match:
      - { tool: file_write, path: src/generated/api.rs, content: x }
      - echo x > src/generated/api.rs
    not_match: [{ tool: file_read, path: src/generated/api.rs }, cat src/main.rs]
  - name: mirror
    when: { host: "*.example.org", any: [{ tool: web_fetch }, { command: curl }] }
    match: ["curl https://cdn.example.org/x", { tool: web_fetch, url: "https://example.org/" }]
    not_match: ["curl https://example.com"]
  - name: todo
    when: { content: "(?i)todo\\(nobody\\)", subagent: true, agent: cl* , permission_mode: plan }
    match: [{ agent: cli, subagent: explore, permission_mode: plan, tool: file_write, path: a, content: "TODO(nobody)" }]
    not_match: [{ agent: cli, tool: file_write, path: a, content: "TODO(nobody)" }]
"#;

fn shell(command: &str) -> HookEvent {
    serde_json::from_value(json!({
        "event": "before_tool_execute", "source": "x", "cwd": "/p",
        "data": {"tool_name": "shell", "tool_input": {"command": command}},
    }))
    .unwrap()
}

#[test]
fn every_documented_condition_can_be_used() {
    for condition in conditions() {
        let rule = format!(
            "rules: [{{ when: {{ {}: {} }} }}]",
            condition.name, condition.example
        );
        let (rules, findings) = check_rules(&rule);
        assert!(rules.is_some(), "{rule}: {findings:?}");
    }
}

#[test]
fn rules_match_what_their_examples_say() {
    let (rules, findings) = check_rules(RULES);
    let source = SourceText::new("rules.yaml", RULES);
    let shown: String = findings
        .iter()
        .map(|finding| source.render(finding, false))
        .collect();
    assert!(rules.is_some(), "{shown}");
    let words = ["rules", "--file", "rules.yaml"].map(str::to_owned);
    let guard = parse_guard(&words, &|_| Ok(RULES.to_owned())).unwrap();
    let found = guard
        .judge(&shell("npm publish"), &GuardContext::default())
        .unwrap();
    assert_eq!(found.rule, "publish");
    assert_eq!(found.reason, "npm publish is done by CI (publish)");
    assert!(
        guard
            .judge(&shell("npm test"), &GuardContext::default())
            .is_none()
    );
}

#[test]
fn wrong_rules_are_errors_at_their_place() {
    for (text, line, says) in [
        (
            "rules:\n  - when: { command: git }\n    match: [ls]\n",
            3,
            "does not match this example",
        ),
        (
            "rules:\n  - when: { command: git }\n    not_match: [git push]\n",
            3,
            "must not",
        ),
        (
            "rules:\n  - when: { comand: git }\n",
            2,
            "unknown condition `comand`",
        ),
        (
            "rules:\n  - when: { content: '(' }\n",
            2,
            "not a regular expression",
        ),
        ("rules:\n  - when: {}\n", 2, "always hold"),
        (
            "rules:\n  - decision: allow\n    when: { command: git }\n",
            2,
            "`deny` or `ask`",
        ),
        ("rules:\n  - name: x\n", 2, "has no `when`"),
        ("rules: 3\n", 1, "list `rules`"),
        (
            "rules:\n  - when: { command: git }\n    mach: [git]\n",
            3,
            "unknown key `mach`",
        ),
    ] {
        let (rules, findings) = check_rules(text);
        assert!(rules.is_none(), "{text}");
        let source = SourceText::new("r", text);
        let found = findings.first().expect("a finding");
        assert!(found.message.contains(says), "{text}: {}", found.message);
        assert_eq!(source.position(found.span.start).line, line, "{text}");
    }
}

#[test]
fn one_rule_may_be_inline() {
    let words = [
        "rules",
        "--rule",
        "{when: {command: git push}, decision: ask}",
    ]
    .map(str::to_owned);
    let guard = parse_guard(&words, &|_| Err(String::new())).unwrap();
    assert!(
        guard
            .judge(&shell("git push"), &GuardContext::default())
            .is_some()
    );
}
