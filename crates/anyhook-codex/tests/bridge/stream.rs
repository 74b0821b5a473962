//! Arbitrary streams through real pipes: what goes in comes out.

use std::io::Write;

use anyhook_testkit::codex::{Line, Transcript, is_answer, is_request};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::hooks::{Script, start_proxy};
use crate::trial;

/// One line, or what passes for one.
fn any_line(wanted: fn(&Value) -> bool) -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<Vec<u8>> = Transcript::all()
        .iter()
        .flat_map(|transcript| &transcript.lines)
        .map(|line| match line {
            Line::Client(message) | Line::Server(message) => message,
        })
        .filter(|message| wanted(message))
        .map(|message| message.to_string().into_bytes())
        .collect();
    prop_oneof![
        4 => prop::sample::select(known),
        2 => prop::collection::vec(any::<u8>(), 0..300),
        1 => "[{}\\[\\]\",:a-z0-9 \\\\]{0,200}".prop_map(String::into_bytes),
        1 => (1_usize..300_000).prop_map(|size| vec![b'x'; size]),
        1 => Just(br#"{"id":null,"method":"item/commandExecution/requestApproval"}"#.to_vec()),
        1 => Just(br#"{"id":1.5,"method":"item/fileChange/requestApproval","params":[]}"#.to_vec()),
        1 => Just(b"\r".to_vec()),
    ]
}

fn any_stream(wanted: fn(&Value) -> bool) -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let lines = prop::collection::vec(any_line(wanted), 0..40).prop_map(|lines| lines.join(&b'\n'));
    let end = prop_oneof![Just(&b"\n"[..]), Just(&b""[..])];
    let cuts = prop::collection::vec(1_usize..5000, 0..20);
    (
        (lines, end).prop_map(|(lines, end)| [&lines, end].concat()),
        cuts,
    )
}

/// Sends the bytes cut in pieces to an echo behind the proxy.
fn through_an_echo(script: &Script, bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut proxy = start_proxy(script, None, &["echo"]);
    let mut input = proxy.input.take().unwrap();
    let (mut rest, cuts) = (bytes.to_vec(), cuts.to_vec());
    let writer = std::thread::spawn(move || {
        for cut in cuts {
            let later = rest.split_off(cut.min(rest.len()));
            input.write_all(&rest).unwrap();
            input.flush().unwrap();
            rest = later;
        }
        input.write_all(&rest).unwrap();
    });
    let out = proxy.remaining_output();
    writer.join().unwrap();
    assert_eq!(proxy.finish().0, 0);
    out
}

fn settles(message: &Value) -> bool {
    is_answer(message) || message["method"] == "serverRequest/resolved"
}

fn cases(most: u32) -> TestRunner {
    TestRunner::new(Config {
        cases: most,
        failure_persistence: None,
        ..Config::default()
    })
}

/// Without hooks the proxy is a pipe, both ways.
fn idle_is_a_pipe() {
    let idle = Script {
        idle: true,
        ..Script::default()
    };
    let check = |(bytes, cuts): (Vec<u8>, Vec<usize>)| {
        prop_assert!(through_an_echo(&idle, &bytes, &cuts) == bytes);
        Ok(())
    };
    cases(60).run(&any_stream(|_| true), check).unwrap();
}

/// With hooks that say nothing, nothing is lost or changed, and only the
/// requests that they were asked about may come later than they were sent.
fn silent_hooks_lose_nothing() {
    let lines = |bytes: &[u8]| {
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    let asked = |line: &Vec<u8>| {
        let message = serde_json::from_slice(line).unwrap_or_default();
        is_request(&message) && line.windows(8).any(|part| part == b"pproval\"")
            || line.windows(11).any(|part| part == b"elicitation")
    };
    let check = |(bytes, cuts): (Vec<u8>, Vec<usize>)| {
        let (mut sent, mut got) = (
            lines(&bytes),
            lines(&through_an_echo(&Script::default(), &bytes, &cuts)),
        );
        let in_order = |lines: &[Vec<u8>]| {
            lines
                .iter()
                .filter(|line| !asked(line))
                .cloned()
                .collect::<Vec<_>>()
        };
        prop_assert!(in_order(&sent).concat() == in_order(&got).concat());
        sent.sort();
        got.sort();
        prop_assert!(sent.concat().len() == got.concat().len());
        Ok(())
    };
    // An answer, or word that there is one, settles a request that waits.
    cases(30)
        .run(&any_stream(|message| !settles(message)), check)
        .unwrap();
}

fn a_huge_line_passes() {
    let text = "y".repeat(40 << 20);
    let huge = format!(
        "{}\n",
        json!({"method": "item/agentMessage/delta", "params": {"delta": text}})
    );
    let stream = format!("{huge}{{\"id\":1,\"method\":\"thread/list\"}}\n");
    for script in [
        Script::default(),
        Script {
            idle: true,
            ..Script::default()
        },
    ] {
        assert!(through_an_echo(&script, stream.as_bytes(), &[1000, 1 << 20]) == stream.as_bytes());
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("stream::idle_is_a_pipe", idle_is_a_pipe),
        trial(
            "stream::silent_hooks_lose_nothing",
            silent_hooks_lose_nothing,
        ),
        trial("stream::a_huge_line_passes", a_huge_line_passes),
    ]
}
