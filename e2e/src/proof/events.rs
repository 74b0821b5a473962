//! What the journal and the OpenHook consumer of the main session must contain.

use std::collections::{BTreeMap, BTreeSet};

use anyhook_model::Record;
use anyhook_model::record::RecordKind;
use openhook::StreamChecker;
use serde_json::Value;

use crate::expect::{CheckResult, Events, Expectations, OpenHook};
use crate::report::Verdict;
use crate::session::Outcome;

/// Exactly the expected events arrived, each under its canonical name.
pub(super) fn events(records: &[Record], expected: &Events) -> CheckResult {
    if let Some(failure) = records
        .iter()
        .find(|record| record.kind == RecordKind::Failure)
    {
        return Err(format!(
            "a failure is in the journal: {:?}",
            failure.warnings
        ));
    }
    let mut seen = BTreeMap::new();
    for record in records {
        seen.insert(
            record.event.native_event.clone(),
            record.event.event.clone(),
        );
    }
    let mut wrong = Vec::new();
    for (native, canonical) in &expected.always {
        match seen.get(native) {
            None => wrong.push(format!("`{native}` did not arrive")),
            Some(other) if other != canonical => {
                wrong.push(format!(
                    "`{native}` arrived as `{other}`, not `{canonical}`"
                ));
            }
            Some(_) => {}
        }
    }
    for (native, canonical) in &seen {
        if !expected.always.contains_key(native)
            && expected.sometimes.get(native) != Some(canonical)
        {
            wrong.push(format!(
                "`{native}` arrived (as `{canonical}`) and is not in expect.toml"
            ));
        }
    }
    verdict(wrong)
}

/// Each step is reported before and after, as the right tool, with its command or path.
pub(super) fn tools(records: &[Record], outcome: &Outcome, expect: &Expectations) -> CheckResult {
    let written = outcome.sandbox.project.join("written.txt");
    let written = written.to_string_lossy();
    let command = "echo done > allowed.txt";
    let mut wrong = Vec::new();
    for (role, what) in [
        ("shell", command),
        ("write", written.as_ref()),
        ("read", written.as_ref()),
        ("edit", written.as_ref()),
    ] {
        let Some(tool) = expect.tool(role) else {
            continue;
        };
        for event in ["before_tool_execute", "after_tool_execute"] {
            let reported = records.iter().any(|record| {
                record.event.event == event
                    && record.event.tool_name() == Some(tool)
                    && is_about(&record.event.data, what)
            });
            if !reported {
                wrong.push(format!("no `{event}` of `{tool}` with `{what}`"));
            }
        }
    }
    verdict(wrong)
}

/// The call has this command, or is about this file (absolute, or relative to the project).
fn is_about(data: &serde_json::Map<String, Value>, what: &str) -> bool {
    let Some(input) = data.get("tool_input") else {
        return false;
    };
    let name = what.rsplit('/').next().unwrap_or(what);
    let is_it = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .is_some_and(|text| text == what || text == name)
    };
    let files = input.get("files").and_then(Value::as_array);
    is_it(input.get("command"))
        || is_it(input.get("path"))
        || files.is_some_and(|files| files.iter().any(|file| is_it(file.get("path"))))
}

/// One session, whose id the client itself prints, and one working folder.
pub(super) fn session_id(
    records: &[Record],
    outcome: &Outcome,
    expect: &Expectations,
) -> CheckResult {
    let mut wrong = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let project = outcome.sandbox.project.to_string_lossy();
    for record in records {
        let event = &record.event;
        match &event.session_id {
            Some(id) => {
                ids.insert(id.as_str());
            }
            None if expect.events.sessionless.contains(&event.native_event) => {}
            None => {
                wrong.insert(format!("`{}` has no session id", event.native_event));
            }
        }
        if event.cwd.as_deref().is_some_and(|cwd| cwd != project) {
            wrong.insert(format!("`{}` has cwd {:?}", event.native_event, event.cwd));
        }
    }
    if records.is_empty() {
        wrong.insert("the journal is empty".to_owned());
    }
    if ids.len() > 1 + usize::from(expect.subagent_session) {
        wrong.insert(format!("one session has the ids {ids:?}"));
    }
    if !ids.is_empty() && !ids.iter().any(|id| outcome.stdout.contains(id)) {
        wrong.insert(format!("the client's own output has none of {ids:?}"));
    }
    verdict(wrong.into_iter().collect())
}

/// The consumer of `.openhook.json` received a stream of level 2, or one that lacks exactly what is expected.
pub(super) fn openhook(outcome: &Outcome, source: &str, expected: &OpenHook) -> Verdict {
    let Some(stream) = outcome.file("openhook.jsonl") else {
        return Verdict::failed("the consumer was not called");
    };
    let mut checker = StreamChecker::new();
    if expected.no_transcript {
        checker = checker.without_transcripts(source);
    }
    for line in stream.lines() {
        checker.push_line(line);
    }
    let report = checker.finish();
    if report.invalid.count > 0 {
        return Verdict::failed(format!("invalid: {:?}", report.invalid.examples));
    }
    let [one] = report.sources.as_slice() else {
        return Verdict::failed(format!("{} sources", report.sources.len()));
    };
    if one.source != source {
        return Verdict::failed(format!("the source is `{}`", one.source));
    }
    let lacks: Vec<&str> = one
        .requirements
        .iter()
        .filter(|requirement| requirement.level <= 2 && !requirement.met)
        .map(|requirement| requirement.code)
        .collect();
    if lacks != expected.lacks {
        Verdict::failed(format!("it lacks {lacks:?}, not {:?}", expected.lacks))
    } else if lacks.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Cannot(expected.why.clone())
    }
}

fn verdict(wrong: Vec<String>) -> CheckResult {
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}
