//! Asynchronous hooks.

use anyhook_model::{RecordKind, RunOutcome};
use anyhook_testkit::wait_until;

use crate::scratch::DispatchScratch;

#[test]
fn a_detached_hook_does_its_work_after_the_answer() {
    let scratch = DispatchScratch::with_hook(
        "until [ -e go ]; do sleep 0.02; done; cat >seen; exit 3",
        "handler.async: true",
    );
    let output = scratch.call();
    assert_eq!(output.response(), serde_json::json!({}));
    let launch = scratch.journal()[0].clone();
    assert_eq!(launch.hooks[0].outcome, RunOutcome::Started);
    scratch.write("project/go", "");
    wait_until("the record of its end", || scratch.journal().len() == 2);
    let end = scratch.journal()[1].clone();
    assert_eq!(end.kind, RecordKind::AsyncEnd);
    assert_eq!(end.hooks[0].exit, Some(3));
    assert_eq!(end.extra["launched_in"], launch.id);
    assert!(scratch.read("project/seen").contains("before_tool_execute"));
    scratch.assert_nothing_left();
}

#[test]
fn its_time_is_limited_too() {
    let scratch =
        DispatchScratch::with_hook("sleep 1000", "handler.async: true\nhandler.timeout: 0.2");
    scratch.call();
    wait_until("the record of its end", || scratch.journal().len() == 2);
    assert_eq!(scratch.journal()[1].hooks[0].outcome, RunOutcome::Timeout);
    scratch.assert_nothing_left();
}

#[test]
fn a_large_event_is_handed_over_whole() {
    let scratch = DispatchScratch::with_hook("wc -c >seen", "handler.async: true");
    let mut event = scratch.event("before_tool_execute");
    event["data"]["tool_input"]["command"] = "x".repeat(3 * 1024 * 1024).into();
    scratch.run(&event);
    wait_until("the record of its end", || scratch.journal().len() == 2);
    let count: usize = scratch.read("project/seen").trim().parse().unwrap();
    assert!(count > 3 * 1024 * 1024, "{count}");
}
