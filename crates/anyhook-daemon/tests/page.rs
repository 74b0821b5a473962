//! The page in a real browser: live events, filters, one event, charts, keys, hostile text.

#![cfg(test)]

#[path = "support/browser.rs"]
mod browser;
mod support;

use anyhook_daemon::OpenQuestion;
use anyhook_model::{Answer, Decision, HookResponse, Record, RecordKind, RunOutcome};
use browser::Browser;
use serde_json::json;
use support::{Running, append, record};

const HOSTILE: &str = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

/// Events among the newest 100 of [`history`] whose guard failed.
const FAILED_ON_FIRST_PAGE: usize = 8;

/// A morning of work, with everything that the page can show.
fn history() -> Vec<Record> {
    let now = jiff::Timestamp::now();
    let work = [
        (
            "claude-code",
            "before_tool_execute",
            "PreToolUse",
            "shell",
            json!({"command": "cargo test --workspace"}),
        ),
        (
            "gemini-cli",
            "before_tool_execute",
            "BeforeTool",
            "file_read",
            json!({"path": "crates/app/src/main.rs"}),
        ),
        (
            "codex",
            "after_tool_execute",
            "PostToolUse",
            "file_edit",
            json!({"path": "README.md"}),
        ),
        (
            "claude-code",
            "before_tool_execute",
            "PreToolUse",
            "shell",
            json!({"command": "git push --force origin main"}),
        ),
        (
            "cursor",
            "before_tool_execute",
            "beforeShellExecution",
            "shell",
            json!({"command": "rm -rf build"}),
        ),
        (
            "claude-code",
            "before_tool_execute",
            "PreToolUse",
            "web_fetch",
            json!({"url": "https://example.org/docs"}),
        ),
    ];
    (0..120_i64)
        .map(|n| {
            let (agent, event, native, tool, input) = &work[usize::try_from(n % 6).unwrap()];
            let mut made = record(&format!("h{n}"));
            made.time = (now - jiff::SignedDuration::from_secs((120 - n) * 97)).to_string();
            made.agent = (*agent).into();
            made.event.event = (*event).into();
            made.event.native_event = (*native).into();
            made.event.session_id = Some(format!("session-{}", n / 30));
            made.event.cwd = Some("/home/dev/project".into());
            made.event.data.insert("tool_name".into(), json!(tool));
            made.event.data.insert("tool_input".into(), input.clone());
            let slow = f64::from(u32::try_from(n % 17).unwrap());
            made.duration_ms = 3.0 + slow * 2.1;
            made.hooks[0].duration_ms = 1.5 + slow * 1.8;
            let mut second = made.hooks[0].clone();
            second.hook = "audit-log".into();
            second.duration_ms = 0.4 + slow / 9.0;
            made.hooks.push(second);
            match n % 6 {
                3 => deny(
                    &mut made,
                    "Force pushes to main are not allowed here. Open a pull request.",
                ),
                4 if n % 4 == 0 => {
                    made.decision = Some(Decision::Ask);
                    made.response.decision = Some(Decision::Ask);
                    made.response.reason = Some("Deletes files: are you sure?".into());
                }
                1 => made.decision = Some(Decision::Allow),
                5 if n % 4 == 1 => {
                    made.hooks[0].outcome = RunOutcome::Error;
                    made.hooks[0].message = Some("exit code 1: Traceback".into());
                }
                _ => {}
            }
            made
        })
        .collect()
}

fn deny(record: &mut Record, reason: &str) {
    record.decision = Some(Decision::Deny);
    record.response = HookResponse {
        context: Some("Work on a branch.".into()),
        ..HookResponse::deny(reason)
    };
    record.hooks[0].outcome = RunOutcome::Deny;
    record.hooks[0].exit = Some(2);
    record.hooks[0].message = Some(reason.into());
    record.answer = Some(Answer {
        stdout: json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}}).to_string(),
        ..Answer::default()
    });
}

#[test]
fn the_page_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    daemon.store.ingest(&history()).unwrap();

    // Without its link the page shows nothing.
    browser.open(&format!("http://{}/", daemon.address));
    browser.until("document.querySelector('.empty h2')?.textContent === 'This page is locked'");
    // Its refused questions are complaints; those still under way end with the page.
    browser.open("about:blank");
    browser.until("location.href === 'about:blank'");
    browser.complaints.clear();

    browser.open(&daemon.link);
    browser.until("document.querySelectorAll('.row').length === 100");
    browser.until("document.querySelector('#live').dataset.state === 'live'");
    assert_eq!(
        browser.eval("location.hash"),
        json!("#/timeline"),
        "the code is gone from the address"
    );
    browser.picture("timeline-light.png");

    // An event that happens now appears by itself, and its content stays text.
    let mut hostile = record("hostile");
    hostile.agent = HOSTILE.into();
    hostile.event.event = "before_tool_execute".into();
    hostile.event.session_id = Some(HOSTILE.into());
    hostile
        .event
        .data
        .insert("tool_name".into(), json!(HOSTILE));
    hostile.event.data.insert(
        "tool_input".into(),
        json!({"command": HOSTILE, "__proto__": {"x": 1}}),
    );
    deny(&mut hostile, HOSTILE);
    hostile.hooks[0].hook = HOSTILE.into();
    hostile.warnings = vec![HOSTILE.into()];
    append(&daemon.journal, &hostile);
    browser.until("document.querySelector('.row').dataset.id === 'hostile'");
    assert!(
        browser
            .eval("document.querySelector('.row b').textContent")
            .as_str()
            .unwrap()
            .starts_with("<img")
    );

    // By keyboard: select, open, close.
    browser.key("j");
    browser.key("Enter");
    browser.until("!document.querySelector('#panel').hidden");
    let text = browser.eval("document.querySelector('#panel').innerText");
    for part in [
        "Denied",
        "Why",
        "Hooks that ran".to_uppercase().as_str(),
        "permissionDecision",
        "Work on a branch.",
    ] {
        let found = text
            .as_str()
            .unwrap()
            .to_lowercase()
            .contains(&part.to_lowercase());
        assert!(found, "{part} in {text}");
    }
    assert_eq!(
        browser.eval(
            "document.querySelectorAll('#panel img, #panel script, main img, main script').length"
        ),
        json!(0)
    );
    browser.key("Escape");
    browser.until("document.querySelector('#panel').hidden");

    // Filters: only denied; a search; both by what the daemon finds.
    browser.key("d");
    browser.until("document.querySelectorAll('.row').length === 21 && !document.querySelector('.row .badge:not(.deny)')");
    browser.eval("(() => { const f = document.querySelector('[name=text]'); f.value = 'FORCE origin'; f.dispatchEvent(new Event('input', {bubbles: true})); })()");
    browser.until("document.querySelectorAll('.row').length === 20");
    browser.key("j");
    browser.key("Enter");
    browser.until("document.querySelector('#panel')?.innerText.includes('git push --force')");
    browser.until("document.querySelector('#panel').getAnimations().length === 0");
    browser.picture("event-light.png");
    browser.key("Escape");
    browser.key("Escape");
    browser.until("document.querySelectorAll('.row').length === 100");

    // Paused, events wait; then they come.
    browser.key("p");
    browser.until("document.querySelector('#live').dataset.state === 'paused'");
    append(&daemon.journal, &record("waits"));
    browser.until("document.querySelector('.waiting')?.textContent === '1 new'");
    assert_eq!(
        browser.eval("document.querySelector('.row').dataset.id"),
        json!("hostile")
    );
    browser.key("p");
    browser.until("document.querySelector('.row').dataset.id === 'waits'");

    // Older events by the page.
    browser.eval("document.querySelector('.more').click()");
    browser.until("document.querySelectorAll('.row').length === 122");

    browser.key("2");
    browser.until("document.querySelectorAll('tr.open').length >= 5");
    browser.picture("sessions-light.png");
    browser.eval("location.hash = '#/session/session-2/codex'");
    browser.until("document.querySelectorAll('.row').length === 5 && document.querySelector('.block h2')?.textContent === 'session-2'");

    browser.key("3");
    browser.until("document.querySelectorAll('main tbody tr').length >= 8");
    browser.until("[...document.querySelectorAll('main tbody tr')].every(row => /ago|now/.test(row.lastChild.textContent))");
    browser.picture("hooks-light.png");

    browser.key("4");
    browser.until("document.querySelectorAll('#denials rect.denied').length > 3");
    // Denials are a part of all events, so they are drawn on the same scale.
    assert_eq!(
        browser.eval("[...document.querySelectorAll('#denials rect.denied')].every((bar, n) => bar.height.baseVal.value <= document.querySelectorAll('#denials rect.all')[n].height.baseVal.value)"),
        json!(true)
    );
    browser.until("document.querySelectorAll('#latency circle.mid').length >= 2");
    browser.picture("insights-light.png");
    browser.key("t");
    browser.until("document.documentElement.dataset.theme === 'dark'");
    browser.picture("insights-dark.png");
    browser.key("1");
    browser.until("document.querySelectorAll('.row').length === 100");
    browser.picture("timeline-dark.png");
    browser.key("?");
    browser.until("document.querySelector('#keys').open");
    browser.key("Escape");

    assert_eq!(browser.eval("window.hacked === undefined"), json!(true));
    assert_eq!(browser.complaints, Vec::<String>::new());
    // Nothing was asked of any other machine.
    let foreign = browser.eval("performance.getEntriesByType('resource').map(r => r.name).filter(n => !n.startsWith(location.origin)).length");
    assert_eq!(foreign, json!(0));
}

/// A view is an address: whoever opens it sees the same.
#[test]
fn a_filtered_view_is_a_link() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    let mut records = history();
    for record in &mut records {
        record.event.machine_id = Some("laptop-7".into());
        record.event.project_id = Some("shop".into());
    }
    records[0].kind = RecordKind::Failure;
    daemon.store.ingest(&records).unwrap();
    browser.open(&daemon.link);
    browser.until("document.querySelectorAll('.row').length === 100");
    browser.until("!document.querySelector('[name=machine]').hidden");
    browser.eval("(() => { const f = document.querySelector('[name=agent]'); f.value = 'claude-code'; f.dispatchEvent(new Event('input', {bubbles: true})); })()");
    browser.key("d");
    browser.until("location.hash === '#/timeline?agent=claude-code&decision=deny'");
    browser.until("document.querySelectorAll('.row').length === 20");
    browser.key("j");
    browser.key("Enter");
    browser.until("!document.querySelector('#panel').hidden");
    let shared = browser.eval("location.href").as_str().unwrap().to_owned();
    browser.open("about:blank");
    browser.until("location.href === 'about:blank'");
    browser.open(&shared);
    browser.until("document.querySelectorAll('.row').length === 20");
    browser.until("document.querySelector('#panel')?.innerText.includes('git push --force')");
    assert_eq!(
        browser.eval("document.querySelector('[name=agent]').value + document.querySelector('[name=decision]:checked').value"),
        json!("claude-codedeny")
    );
    // The other views keep the filter.
    browser.key("Escape");
    browser.key("2");
    browser.until("location.hash === '#/sessions?agent=claude-code&decision=deny'");
    // Values of an address that no event has yet are offered all the same.
    browser.eval("location.hash = '#/timeline?machine=laptop-7&project_id=shop&agent=nobody'");
    browser.until("document.querySelector('.empty h2')?.textContent === 'No events match'");
    assert_eq!(
        browser.eval("document.querySelector('[name=agent]').value"),
        json!("nobody")
    );
    browser.eval("location.hash = '#/timeline?machine=laptop-7'");
    browser.until("document.querySelectorAll('.row').length === 100");
    browser.eval("document.querySelector('.more').click()");
    browser.until("document.querySelector('.row .badge.failed')?.textContent === 'Failed'");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A session reads as a story: a prompt, the tools that followed, the end.
#[test]
fn a_session_reads_as_a_story() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    let now = jiff::Timestamp::now();
    let steps = [
        ("before_prompt", None, json!({"prompt": "Fix the build"})),
        (
            "before_tool_execute",
            Some("shell"),
            json!({"command": "make"}),
        ),
        (
            "after_tool_execute",
            Some("shell"),
            json!({"command": "make"}),
        ),
        (
            "before_tool_execute",
            Some("shell"),
            json!({"command": "git push --force"}),
        ),
        ("agent_stop", None, json!({})),
        ("before_prompt", None, json!({"prompt": "And now the docs"})),
        ("agent_stop", None, json!({})),
    ];
    let records: Vec<Record> = steps
        .into_iter()
        .enumerate()
        .map(|(n, (event, tool, input))| {
            let mut made = record(&format!("s{n}"));
            let ago = jiff::SignedDuration::from_secs(60 - i64::try_from(n).unwrap());
            made.time = (now - ago).to_string();
            made.agent = "codex".into();
            made.event.event = event.into();
            made.event.session_id = Some("story".into());
            made.event.data.clear();
            match tool {
                Some(tool) => {
                    made.event.data.insert("tool_name".into(), json!(tool));
                    made.event.data.insert("tool_input".into(), input);
                }
                None => made.event.data.extend(input.as_object().unwrap().clone()),
            }
            if n == 3 {
                deny(&mut made, "No force pushes.");
            }
            made
        })
        .collect();
    daemon.store.ingest(&records).unwrap();
    browser.open(&daemon.link);
    browser.until("document.querySelectorAll('.row').length === 7");
    browser.eval("location.hash = '#/session/story/codex'");
    browser.until("document.querySelectorAll('.turn').length === 2");
    let text = browser.eval("[...document.querySelectorAll('.turn')].map(turn => [...turn.querySelectorAll('.what')].map(step => step.innerText.split('\\n').slice(0, 2).join(': ')))");
    assert_eq!(
        text,
        json!([
            [
                "Prompt: Fix the build",
                "shell: make",
                "shell: git push --force",
                "agent stop: 1 hook, 4.0 ms"
            ],
            ["Prompt: And now the docs", "agent stop: 1 hook, 4.0 ms"],
        ])
    );
    browser.picture("session-light.png");
}

/// On a phone and on a small laptop every view fits, and a row says which agent did what.
#[test]
fn every_view_fits_the_screen() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    daemon.store.ingest(&history()).unwrap();
    *daemon.host.usage.lock().unwrap() = Some(usage());
    let mut waiting = record("waits");
    waiting.agent = "codex".into();
    waiting.event.data.insert(
        "tool_input".into(),
        json!({"command": "rm -rf build && ".repeat(20)}),
    );
    daemon.host.questions.lock().unwrap().push(OpenQuestion {
        is_rewritten: false,
        record: waiting,
        seconds_left: 40,
    });
    browser.open(&daemon.link);
    browser.until("document.querySelectorAll('.row').length === 100");
    for (name, width, height) in [("phone", 390, 844), ("laptop", 1280, 800)] {
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 2, "mobile": name == "phone"}),
        );
        browser.eval("location.hash = '#/timeline'");
        browser.until("document.querySelectorAll('.row').length === 100");
        check_screen(&mut browser, name, width);
    }
}

/// Goes through the views on a screen of this width.
fn check_screen(browser: &mut Browser, screen: &str, width: u32) {
    let shows = "(name) => { const box = document.querySelector('.row ' + name).getBoundingClientRect(); return box.width > 40 && box.height > 8; }";
    for name in [".agent", ".detail"] {
        assert_eq!(
            browser.eval(&format!("({shows})('{name}')")),
            json!(true),
            "{name}"
        );
    }
    // A guard that crashed has a badge of its own: the tool ran.
    assert_eq!(
        browser.eval("[...document.querySelectorAll('.row .badge.failed')].length"),
        json!(FAILED_ON_FIRST_PAGE)
    );
    for theme in ["light", "dark"] {
        for (view, ready) in [
            ("timeline", ".row"),
            ("sessions", "tr.open"),
            ("session/session-2/codex", ".turn .row"),
            ("hooks", "main tbody tr"),
            ("cost", "#cost-by-day rect"),
            ("insights", "#latency circle"),
        ] {
            browser.eval(&format!(
                "document.documentElement.dataset.theme = '{theme}'; location.hash = '#/{view}'"
            ));
            browser.until(&format!("document.querySelectorAll('{ready}').length > 0"));
            let name = view.split('/').next().unwrap();
            browser.picture(&format!("{screen}-{name}-{theme}.png"));
            let fits = browser.eval(&format!(
                "window.scrollTo(10000, 0); window.scrollX === 0 && document.documentElement.scrollWidth <= {width}"
            ));
            assert_eq!(fits, json!(true), "{view}, {theme}, {screen}");
            let is_shown =
                "(() => { const box = (it) => document.querySelector(it).getBoundingClientRect();
                const [tab, tabs] = [box('.tabs [aria-current]'), box('.tabs')];
                return tab.left >= tabs.left - 1 && tab.right <= tabs.right + 1; })()";
            assert_eq!(
                browser.eval(is_shown),
                json!(true),
                "tab of {view}, {screen}"
            );
        }
    }
}

/// Two days of three agents, of which one model has no price.
fn usage() -> serde_json::Value {
    let sums = |calls: u64, cost: Option<f64>, unpriced: u64| {
        let mut sums = json!({"calls": calls, "input_tokens": calls * 41_000, "output_tokens": calls * 900,
            "cache_read_tokens": calls * 35_000, "cache_creation_tokens": 0});
        if let Some(cost) = cost {
            sums["cost_usd"] = json!(cost);
        }
        if unpriced > 0 {
            sums["unpriced_calls"] = json!(unpriced);
        }
        sums
    };
    let row = |names: serde_json::Value, mut sums: serde_json::Value| {
        for (name, value) in names.as_object().unwrap() {
            sums[name] = value.clone();
        }
        sums
    };
    let now = jiff::Timestamp::now().to_string();
    row(
        json!({
            "prices_date": "2025-11-20",
            "by_model": [
                row(json!({"agent": "claude-code", "model": "claude-sonnet-4-5-20250929"}), sums(120, Some(7.31), 0)),
                row(json!({"agent": "codex", "model": "gpt-5-codex"}), sums(44, Some(0.004), 0)),
                row(json!({"agent": "gemini-cli", "model": HOSTILE}), sums(9, None, 9)),
            ],
            "by_session": [
                row(json!({"agent": "codex", "session": "session-2", "last": now}), sums(44, Some(0.004), 0)),
                row(json!({"agent": "claude-code", "session": "session-1", "last": now}), sums(120, Some(7.31), 0)),
                row(json!({"agent": "gemini-cli", "session": HOSTILE, "last": now}), sums(9, None, 9)),
            ],
            "by_day": [
                row(json!({"date": "2026-11-15"}), sums(30, Some(1.2), 0)),
                row(json!({"date": "2026-11-18"}), sums(143, Some(6.114), 9)),
            ],
        }),
        sums(173, Some(7.314), 9),
    )
}

#[test]
fn cost_is_shown_by_day_agent_model_and_session() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    daemon.store.ingest(&history()).unwrap();
    browser.open(&daemon.link);
    browser.until("document.querySelectorAll('.row').length === 100");
    browser.key("5");
    browser.until("document.querySelector('main h2')?.textContent === 'No tokens yet'");
    *daemon.host.usage.lock().unwrap() = Some(usage());
    for theme in ["light", "dark"] {
        browser.eval(&format!(
            "document.documentElement.dataset.theme = '{theme}'; location.hash = '#/hooks'"
        ));
        browser.until("document.querySelectorAll('main tbody tr').length > 0");
        browser.eval("location.hash = '#/cost'");
        browser.until("document.querySelectorAll('#cost-by-day rect').length === 2");
        browser.picture(&format!("cost-{theme}.png"));
    }
    let text = browser
        .eval("document.querySelector('main').innerText")
        .to_string();
    for part in [
        "and 9 calls without a price",
        "< $0.01",
        "no price",
        "gpt-5-codex",
        "session-1",
        "4,920,000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Only filters that calls of models have.
    let shown = browser.eval(
        "[...document.querySelectorAll('#filters > *')].filter((it) => it.offsetWidth).map((it) => it.name)",
    );
    assert_eq!(shown, json!(["agent", "since"]));
    browser.eval("location.hash = '#/sessions'");
    browser.until("document.querySelector('main').innerText.includes('$7.31')");
    browser.eval("location.hash = '#/session/session-1/claude-code'");
    browser.until("document.querySelectorAll('.turn .row').length > 0");
    assert_eq!(browser.eval("window.hacked"), json!(null));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A question appears on the page, and the user's click answers it.
#[test]
fn questions_are_answered_on_the_page() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    daemon.store.ingest(&history()).unwrap();
    browser.open(&daemon.link);
    browser.until("document.querySelectorAll('.row').length === 100");
    for (id, button, decision) in [
        ("q1", "allow", Decision::Allow),
        ("q2", "deny", Decision::Deny),
    ] {
        let mut waiting = record(id);
        waiting.agent = "codex".into();
        waiting.response.reason = Some(HOSTILE.into());
        waiting
            .event
            .data
            .insert("tool_input".into(), json!({"command": HOSTILE}));
        let question = OpenQuestion {
            is_rewritten: false,
            record: waiting,
            seconds_left: 40,
        };
        daemon.host.questions.lock().unwrap().push(question);
        browser.until("!document.querySelector('#approvals').hidden");
        let text = browser.eval("document.querySelector('#approvals').innerText");
        assert!(text.as_str().unwrap().contains("codex asks"), "{text}");
        assert!(text.as_str().unwrap().contains("onerror"), "{text}");
        if id == "q1" {
            browser.picture("approval-light.png");
        }
        browser.eval(&format!(
            "document.querySelector('#approvals button.{button}').click()"
        ));
        browser.until("document.querySelector('#approvals').hidden");
        let answered = daemon.host.answered.lock().unwrap().pop();
        assert_eq!(answered, Some((id.to_owned(), decision)));
    }
    assert_eq!(browser.eval("window.hacked === undefined"), json!(true));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Another site's page cannot post hooks, nor read: the browser itself is asked to try.
#[test]
fn a_foreign_page_gets_nothing() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let daemon = Running::start();
    let other = Running::start();
    // A page of another origin on this machine, which has a policy of its own that is switched off.
    browser.call("Page.setBypassCSP", json!({"enabled": true}));
    browser.open(&format!("http://{}/", other.address));
    browser.until("document.readyState === 'complete'");
    let script = |path: &str, options: &str| {
        format!(
            "fetch('http://{}{path}', {options}).then(r => r.type + r.status, () => 'failed')",
            daemon.address
        )
    };
    for (path, options) in [
        (
            "/hooks/claude",
            "{method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'}",
        ),
        (
            "/hooks/claude",
            "{method: 'POST', mode: 'no-cors', body: '{}'}",
        ),
        (
            "/hooks/claude",
            "{method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'}, body: '{}'}",
        ),
        ("/events", "{}"),
        (
            "/session",
            "{method: 'POST', headers: {'content-type': 'application/json'}, body: '{\"code\": \"x\"}'}",
        ),
    ] {
        let outcome = browser.eval(&script(path, options));
        assert!(
            ["failed", "opaque0"].contains(&outcome.as_str().unwrap()),
            "{path} {options}: {outcome}"
        );
    }
    assert!(daemon.host.seen.lock().unwrap().is_empty(), "no hook ran");
}
