//! Rules of one's own: a YAML file with predicates, decisions and examples.

mod packed;

use std::borrow::Cow;
use std::path::PathBuf;

use anyhook_model::diagnostic::has_errors;
use anyhook_model::document::{self, Format, Node};
use anyhook_model::suggest::nearest;
use anyhook_model::{Decision, Diagnostic, HookEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::context::GuardContext;
use crate::finding::GuardFinding;
use crate::input::GuardInput;
use crate::predicate::{Predicate, Truth};

use packed::PackedRules;

/// The rules of one or several files, in their order.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    files: Vec<FileRules>,
}

#[derive(Debug, Clone)]
enum FileRules {
    Checked(Vec<GuardRule>),
    Packed(PackedRules),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct GuardRule {
    name: String,
    decision: Decision,
    reason: String,
    when: Predicate,
}

/// The keys of a rule, and what they are for.
static RULE_KEYS: &[(&str, &str)] = &[
    ("name", "names the rule in reasons and in the journal"),
    (
        "when",
        "the calls that it is about: a condition, see below; required",
    ),
    ("decision", "`deny` (the default) or `ask`"),
    (
        "reason",
        "for the model; `{command}`, `{path}`, `{tool}`, `{agent}` and `{rule}` are filled in",
    ),
    (
        "match",
        "examples that the rule must match: a command, or an object with `tool` and its input",
    ),
    ("not_match", "examples that it must not match"),
];

/// The keys of a rule with their meaning, for the documentation.
pub fn rule_keys() -> &'static [(&'static str, &'static str)] {
    RULE_KEYS
}

impl RuleSet {
    pub fn len(&self) -> usize {
        let counts = self.files.iter().map(|file| match file {
            FileRules::Checked(rules) => rules.len(),
            FileRules::Packed(rules) => rules.len(),
        });
        counts.sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The checked rules as bytes, for [`RuleSet::unpack`].
    pub fn pack(&self) -> Option<Vec<u8>> {
        let checked = self.files.iter().flat_map(|file| match file {
            FileRules::Checked(rules) => rules.as_slice(),
            FileRules::Packed(_) => &[],
        });
        packed::pack(checked)
    }

    /// Rules that were packed before. Only those that a call may need are decoded.
    pub fn unpack(bytes: Vec<u8>) -> Option<Self> {
        let rules = PackedRules::from_bytes(bytes)?;
        Some(Self {
            files: vec![FileRules::Packed(rules)],
        })
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
    }

    /// The strictest rule wins; of equals, the first. A rule that may apply to a part of
    /// the command that cannot be read asks.
    pub(crate) fn judge(&self, input: &GuardInput<'_>) -> Option<GuardFinding> {
        let mut strongest = Strongest { found: None };
        for file in &self.files {
            match file {
                FileRules::Checked(rules) => {
                    for rule in rules {
                        strongest.consider(Cow::Borrowed(rule), input);
                    }
                }
                FileRules::Packed(rules) => {
                    for rule in rules.needed_for(input) {
                        strongest.consider(Cow::Owned(rule), input);
                    }
                }
            }
        }
        strongest.found.map(|found| found.finding(input))
    }
}

/// The strictest of the rules that apply.
struct Strongest<'r> {
    found: Option<AppliedRule<'r>>,
}

struct AppliedRule<'r> {
    rule: Cow<'r, GuardRule>,
    decision: Decision,
    truth: Truth,
}

impl<'r> Strongest<'r> {
    fn consider(&mut self, rule: Cow<'r, GuardRule>, input: &GuardInput<'_>) {
        let known = self.found.as_ref().map(|found| found.decision);
        let is_stronger = |decision: Decision| known.is_none_or(|known| decision > known);
        if !is_stronger(rule.decision) {
            return;
        }
        let truth = rule.when.evaluate(input);
        let decision = match truth {
            Truth::Yes => rule.decision,
            Truth::Unknown => Decision::Ask,
            Truth::No => return,
        };
        if is_stronger(decision) {
            self.found = Some(AppliedRule {
                rule,
                decision,
                truth,
            });
        }
    }
}

impl AppliedRule<'_> {
    fn finding(self, input: &GuardInput<'_>) -> GuardFinding {
        let rule = &*self.rule;
        let subject = input
            .commands()
            .into_iter()
            .next()
            .or_else(|| input.files().first().map(|file| file.path.clone()))
            .or_else(|| input.fetched_url().map(str::to_owned))
            .unwrap_or_default();
        let mut reason = fill_reason(rule, input, &subject);
        if self.truth == Truth::Unknown {
            reason = format!(
                "the rule `{}` may apply, but a part of this command is only known when it runs, or is too long or too deeply nested to be checked ({reason})",
                rule.name
            );
        }
        GuardFinding {
            only_warns: false,
            decision: self.decision,
            guard: "rules".to_owned(),
            rule: rule.name.clone(),
            reason,
            subject,
        }
    }
}

/// Replaces `{command}`, `{path}`, `{tool}`, `{agent}` and `{rule}`.
fn fill_reason(rule: &GuardRule, input: &GuardInput<'_>, subject: &str) -> String {
    let path = input.files().first().map_or("", |file| file.path.as_str());
    rule.reason
        .replace("{command}", subject)
        .replace("{path}", path)
        .replace("{tool}", input.event.tool_name().unwrap_or_default())
        .replace("{agent}", &input.event.source)
        .replace("{rule}", &rule.name)
}

/// Reads a rules file and checks its examples; rules come back only without errors.
pub fn check_rules(text: &str) -> (Option<RuleSet>, Vec<Diagnostic>) {
    let (tree, mut findings) = document::parse(text, Format::detect(text));
    let mut rules = Vec::new();
    if let Some(tree) = &tree {
        match tree.get("rules").unwrap_or(tree).as_array() {
            Some(items) => {
                for (index, node) in items.iter().enumerate() {
                    rules.extend(check_rule(node, index, &mut findings));
                }
            }
            None => findings.push(
                Diagnostic::error(
                    "wrong-type",
                    tree.span,
                    "a rules file is an object with the list `rules`",
                )
                .help("write `rules:` and a list of rules below it"),
            ),
        }
    }
    findings.sort_by_key(|finding| finding.span.start);
    let is_usable = !has_errors(&findings) && tree.is_some();
    let rules = is_usable.then(|| RuleSet {
        files: vec![FileRules::Checked(rules)],
    });
    (rules, findings)
}

fn check_rule(node: &Node, index: usize, findings: &mut Vec<Diagnostic>) -> Option<GuardRule> {
    let at = |key: &str| format!("rules[{index}].{key}");
    let Some(members) = node.as_object() else {
        let message = format!(
            "`rules[{index}]` must be an object, not {}",
            node.type_name()
        );
        findings.push(Diagnostic::error("wrong-type", node.span, message));
        return None;
    };
    for member in members {
        let keys = || RULE_KEYS.iter().map(|(key, _)| *key);
        if !keys().any(|key| key == member.key) {
            let help = match nearest(&member.key, keys()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys are {}", keys().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("unknown key `{}`", member.key);
            findings.push(
                Diagnostic::error("unknown-field", member.key_span, message)
                    .help(help)
                    .path(at(&member.key)),
            );
        }
    }
    let decision = match node.get("decision").map(|node| (node, node.as_str())) {
        None => Decision::Deny,
        Some((_, Some("deny"))) => Decision::Deny,
        Some((_, Some("ask"))) => Decision::Ask,
        Some((node, _)) => {
            let finding = Diagnostic::error(
                "unknown-decision",
                node.span,
                "a rule's decision is `deny` or `ask`",
            )
            .help("a guard never allows; leave the call alone by not matching it");
            findings.push(finding.path(at("decision")));
            return None;
        }
    };
    let name = node
        .get("name")
        .and_then(Node::as_str)
        .map_or_else(|| format!("rule-{}", index + 1), str::to_owned);
    let reason = node.get("reason").and_then(Node::as_str).map_or_else(
        || format!("the rule `{name}` does not permit this"),
        str::to_owned,
    );
    let Some(when) = node.get("when") else {
        let finding = Diagnostic::error(
            "missing-field",
            node.span,
            format!("rule `{name}` has no `when`"),
        )
        .help("describe the calls that it is about, such as `when: {command: npm publish}`");
        findings.push(finding.path(at("when")));
        return None;
    };
    let predicate = match Predicate::parse(&when.to_json()) {
        Ok(predicate) => predicate,
        Err(error) => {
            let span = locate(when, &error.path).span;
            let mut finding = Diagnostic::error("condition", span, error.message.clone())
                .path(at(&format!("when.{}", error.path.join("."))));
            if let Some(help) = error.help {
                finding = finding.help(help);
            }
            findings.push(finding);
            return None;
        }
    };
    let rule = GuardRule {
        name,
        decision,
        reason,
        when: predicate,
    };
    for (key, wanted) in [("match", true), ("not_match", false)] {
        let Some(examples) = node.get(key) else {
            continue;
        };
        let items = match examples.as_array() {
            Some(items) => items,
            None => std::slice::from_ref(examples),
        };
        for example in items {
            check_example(&rule, example, wanted, &at(key), findings);
        }
    }
    Some(rule)
}

fn check_example(
    rule: &GuardRule,
    example: &Node,
    wanted: bool,
    path: &str,
    findings: &mut Vec<Diagnostic>,
) {
    let Some(event) = example_event(&example.to_json()) else {
        let finding = Diagnostic::error(
            "wrong-type",
            example.span,
            "an example is a command or an object with `tool` and its input",
        )
        .help("write a command, or `{tool: file_write, path: x, content: y}`");
        findings.push(finding.path(path));
        return;
    };
    let context = GuardContext {
        project: Some(PathBuf::from("/home/user/project")),
        home: Some(PathBuf::from("/home/user")),
        ..GuardContext::default()
    };
    let truth = rule.when.evaluate(&GuardInput::new(&event, &context));
    if truth == Truth::from(wanted) {
        return;
    }
    let (message, help) = if wanted {
        (
            format!("rule `{}` does not match this example", rule.name),
            "change `when` so that it does, or remove the example",
        )
    } else {
        (
            format!(
                "rule `{}` matches this example, which it must not",
                rule.name
            ),
            "make `when` narrower, or remove the example",
        )
    };
    findings.push(
        Diagnostic::error("example", example.span, message)
            .help(help)
            .path(path),
    );
}

/// A command, or an object with `tool`, its input, and facts about the call.
fn example_event(example: &Value) -> Option<HookEvent> {
    let mut data = Map::new();
    let mut source = "example".to_owned();
    let mut event = "before_tool_execute".to_owned();
    let mut cwd = "/home/user/project".to_owned();
    match example {
        Value::String(command) => {
            data.insert("tool_name".into(), json!("shell"));
            data.insert("tool_input".into(), json!({ "command": command }));
        }
        Value::Object(members) => {
            let mut input = Map::new();
            for (key, value) in members {
                match (key.as_str(), value.as_str()) {
                    ("agent", Some(text)) => text.clone_into(&mut source),
                    ("event", Some(text)) => text.clone_into(&mut event),
                    ("cwd", Some(text)) => text.clone_into(&mut cwd),
                    ("tool", Some(text)) => {
                        data.insert("tool_name".into(), json!(text));
                    }
                    ("subagent", Some(text)) => {
                        data.insert("agent_type".into(), json!(text));
                    }
                    ("permission_mode" | "prompt", Some(text)) => {
                        data.insert(key.clone(), json!(text));
                    }
                    _ => {
                        input.insert(key.clone(), value.clone());
                    }
                }
            }
            if !data.contains_key("tool_name") && input.contains_key("command") {
                data.insert("tool_name".into(), json!("shell"));
            }
            data.insert("tool_input".into(), Value::Object(input));
        }
        _ => return None,
    }
    Some(HookEvent {
        event,
        source,
        cwd: Some(cwd),
        data,
        ..HookEvent::default()
    })
}

/// The node at a path of keys and indexes, or the last one on the way.
fn locate<'n>(node: &'n Node, path: &[String]) -> &'n Node {
    let mut here = node;
    for part in path {
        let next = here
            .get(part)
            .or_else(|| here.as_array()?.get(part.parse::<usize>().ok()?));
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    here
}
