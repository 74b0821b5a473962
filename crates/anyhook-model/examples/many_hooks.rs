//! Prints a manifest of many hooks, for measurements:
//! `cargo run -p anyhook-model --example many_hooks -- 1000 yaml`
#![allow(clippy::print_stdout, reason = "an example prints")]

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    if arguments.next().as_deref() == Some("yaml") {
        println!("{}", yaml(count));
    } else {
        println!("{}", json(count));
    }
}

fn matcher(index: usize) -> &'static str {
    match index % 4 {
        0 => r#""shell""#,
        1 => r#"["file_write", "file_edit"]"#,
        2 => r#"{"pattern": "^(Bash|Write|Edit)$"}"#,
        _ => r#"{"mcp": {"server": "github", "tool": "create_issue"}}"#,
    }
}

fn json(count: usize) -> String {
    let hooks: Vec<String> = (0..count)
        .map(|index| {
            format!(
                r#"    {{
      "name": "hook-{index}",
      "event": "before_tool_execute",
      "matcher": {},
      "handler": {{"type": "command", "command": "./hooks/check-{index}.sh", "timeout": 10, "env": {{"N": "{index}"}}}},
      "blocking": true
    }}"#,
                matcher(index)
            )
        })
        .collect();
    format!(
        "{{\n  \"spec\": \"hooks/1.0\",\n  \"hooks\": [\n{}\n  ]\n}}",
        hooks.join(",\n")
    )
}

fn yaml(count: usize) -> String {
    let hooks: Vec<String> = (0..count)
        .map(|index| {
            format!(
                "  - name: hook-{index}
    event: before_tool_execute
    matcher: {}
    handler:
      type: command
      command: ./hooks/check-{index}.sh
      timeout: 10
      env:
        N: \"{index}\"
    blocking: true",
                matcher(index)
            )
        })
        .collect();
    format!("spec: hooks/1.0\nhooks:\n{}", hooks.join("\n"))
}
