//! `anyhook run` as a separate program, for this crate's tests of real
//! processes. Users get it as a command of `anyhook`.

use anyhook_model::HookEvent;
use anyhook_run::entry;

fn main() {
    let args = std::env::args_os().skip(1).filter(|arg| arg != "run");
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, agent, event, blocks] = words.as_slice()
        && mode == "panic-in-a-guard"
    {
        panic_in_a_guard(agent, event, blocks == "block");
    }
    std::process::exit(entry::main(args));
}

/// A bug in a guard, as `anyhook run` would meet it.
#[expect(clippy::panic, reason = "what happens then is the test")]
fn panic_in_a_guard(agent: &str, native_event: &str, blocks: bool) {
    entry::answer_panics(&HookEvent {
        event: "before_tool_execute".to_owned(),
        source: agent.to_owned(),
        native_event: native_event.to_owned(),
        ..HookEvent::default()
    });
    anyhook_run::run::guard::set_blocks_if_it_panics(blocks);
    panic!("a bug");
}
