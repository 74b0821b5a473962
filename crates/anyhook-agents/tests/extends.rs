//! `extends`: a table that states only how it differs from another.

#![allow(clippy::unwrap_used, reason = "tests")]

use anyhook_agents::agent_toml::{KnownTables, parse};
use anyhook_agents::known_tables;
use anyhook_agents::spec::{AgentSpec, Blocking, WindowsShell};

const FILE: &str = "invented/agent.toml";

const OWN: &str = r#"id = "invented"
extends = "claude-code"
name = "Invented"
homepage = "https://example.com"
summary = "An agent of the tests."
verified = { version = "1", date = "2026-11-18", how = "docs" }

[[file]]
scope = "project"
path = ".invented/settings.json"
format = "json"
write = true
"#;

fn read(more: &str) -> Result<AgentSpec, String> {
    parse(FILE, &format!("{OWN}{more}"), &known_tables())
}

fn message(more: &str) -> String {
    read(more).err().unwrap_or_else(|| "accepted".to_owned())
}

#[test]
fn a_table_has_what_it_extends_and_its_own_identity() {
    let base = anyhook_agents::get("claude-code").unwrap();
    let agent = read("").unwrap();
    assert_eq!(agent.extends.as_deref(), Some("claude-code"));
    assert_eq!(agent.events.len(), base.spec.events.len());
    assert_eq!(agent.tools.len(), base.spec.tools.len());
    assert_eq!(agent.answers.len(), base.spec.answers.len());
    // Names, files, variables and ways to recognise a client are never another's.
    assert_eq!(agent.files.len(), 1);
    assert!(agent.aliases.is_empty() && agent.env.is_empty() && agent.trust.is_none());
    assert!(agent.detect.env.is_empty() && agent.detect.binary.is_empty());
    assert!(agent.off_switches.is_empty() && agent.env_sources.is_empty());
    // Which shell starts a hook is the client's own choice.
    assert_eq!(base.spec.launch.windows, WindowsShell::GitBash);
    assert_eq!(agent.launch.windows, WindowsShell::Cmd);
}

#[test]
fn rows_are_merged_by_name_and_can_be_left_out() {
    let agent = read(
        r#"
[inherit]
events = ["Stop", "PreToolUse", "Own"]
without = ["/event/Stop/rows", "/config/handler/fail_closed", "/config/handler/type_events", "/hazard"]

[[event]]
native = "PreToolUse"
note = "differs"

[[event]]
native = "Own"
blocking = "observe"

[answer.pre_tool]
reads = "0"
"#,
    )
    .unwrap();
    let names: Vec<&str> = agent.events.iter().map(|event| &*event.native).collect();
    assert_eq!(names, ["Stop", "PreToolUse", "Own"]);
    assert!(agent.events.first().unwrap().rows.is_empty());
    let pre_tool = agent.events.get(1).unwrap();
    assert_eq!(pre_tool.note.as_deref(), Some("differs"));
    assert_eq!(pre_tool.blocking, Blocking::Prevent);
    assert!(agent.hazards.is_empty());
    assert!(agent.config.handler.fail_closed.is_none());
    // Answers that no event uses any more are gone; the rest of a profile stays.
    let answers: Vec<&str> = agent.answers.keys().map(|name| &**name).collect();
    assert_eq!(answers, ["pre_tool", "stop"]);
    let profile = agent.answers.get("pre_tool").unwrap();
    assert_eq!(profile.reads, anyhook_agents::spec::ReadsAt::Zero);
    assert_eq!(profile.deny.len(), 2);
}

#[test]
fn words_are_replaced_in_texts_for_people_only() {
    let base = anyhook_agents::get("opencode").unwrap();
    let text =
        format!("{OWN}\n[inherit.words]\nopencode = \"invented\"\nOpenCode = \"Invented\"\n");
    let text = text.replace("extends = \"claude-code\"", "extends = \"opencode\"");
    let agent = parse(FILE, &text, &known_tables()).unwrap();
    let names = |spec: &AgentSpec| -> Vec<Option<String>> {
        let events = spec.events.iter();
        events
            .map(|event| event.is.as_deref().map(str::to_owned))
            .collect()
    };
    assert_eq!(names(&agent), names(&base.spec));
    let hazards = serde_json::to_string(&agent.hazards).unwrap();
    assert!(
        hazards.contains("Invented waits without a limit"),
        "{hazards}"
    );
    assert!(!hazards.contains("opencode run"), "{hazards}");
}

/// A message names the file and line of the mistake, and the other file.
#[test]
fn a_mistake_names_both_files() {
    let line = |text: &str| OWN.matches('\n').count() + text.matches('\n').count();
    for (more, what) in [
        (
            "[inherit]\nevents = [\"PreTolUse\"]",
            "unknown word `PreTolUse`",
        ),
        (
            "[inherit]\nwithout = [\"/hazzard\"]",
            "did you mean `/hazard`?",
        ),
        ("[inherit]\nevent = []", "unknown field `event`"),
        ("[[event]]\nnative = \"New\"", "missing field `blocking`"),
        (
            "[[event]]\nanswer = \"pre_tol\"\nnative = \"Stop\"",
            "did you mean `pre_tool`?",
        ),
        (
            "[config.matcher]\nsyntax = \"glub\"",
            "unknown variant `glub`",
        ),
    ] {
        let told = message(more);
        assert!(
            told.starts_with(&format!("{FILE}:{}: ", line(more) + 1))
                || told.starts_with(&format!("{FILE}:{}: ", line(more))),
            "{told}"
        );
        assert!(told.contains(what), "{told}");
        assert!(
            told.ends_with("(extends agents/claude-code/agent.toml)"),
            "{told}"
        );
    }
    // What the table took away is missed in the other one.
    let told = message("[inherit]\nwithout = [\"/answer/stop\"]");
    assert!(told.starts_with("agents/claude-code/agent.toml:"), "{told}");
    assert!(told.contains("unknown word `stop`"), "{told}");
    assert!(
        told.ends_with("(inherited by invented/agent.toml)"),
        "{told}"
    );
}

#[test]
fn a_table_cannot_extend_itself_or_nothing() {
    let mut known = known_tables();
    let text = OWN.replace("claude-code", "invented");
    known.insert("invented", &text);
    let told = parse(FILE, &text, &known).err().unwrap();
    assert!(told.contains("extends itself"), "{told}");
    let known = KnownTables::new();
    let told = parse(FILE, OWN, &known).err().unwrap();
    assert!(told.contains("unknown word `claude-code`"), "{told}");
    let told = parse(
        FILE,
        &OWN.replace("extends = \"claude-code\"\n", "[inherit]\n"),
        &known_tables(),
    );
    assert!(
        told.err()
            .unwrap()
            .contains("`[inherit]` without `extends`")
    );
}

#[test]
fn a_table_may_have_several_rows_of_one_tool() {
    let agent = read(
        r#"
[inherit]
tools = []

[[tool]]
is = "file_read"
native = "editor"
when = { command = "view" }
keys = { path = "path" }

[[tool]]
is = "file_edit"
native = "editor"
keys = { path = "path" }
"#,
    )
    .unwrap();
    let tools: Vec<_> = agent.tools.iter().map(|tool| tool.is.as_ref()).collect();
    assert_eq!(tools, ["file_read", "file_edit"]);
}
