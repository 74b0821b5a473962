//! NAME: denies a forced push. Change `check` to your rule, then run `cargo test`.
//!
//! The event comes as JSON on stdin, the answer goes to stdout as JSON; no answer means
//! no objection. Print debug text to stderr. Another exit code is a failure of the
//! hook: `on_failure: block` in the manifest denies the call then.

use serde_json::{Value, json};

/// The reason to deny.
fn check(event: &Value) -> Option<&'static str> {
    let command = event.pointer("/data/tool_input/command")?.as_str()?;
    let has = |wanted: &str| command.split_whitespace().any(|word| word == wanted);
    (has("push") && (has("--force") || has("-f")))
        .then_some("NAME: a forced push can remove the work of others")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let event: Value = serde_json::from_reader(std::io::stdin())?;
    if let Some(reason) = check(&event) {
        println!("{}", json!({"decision": "deny", "reason": reason}));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions() {
        for (command, denied) in [
            ("git push --force", true),
            ("git push -f origin main", true),
            ("git push", false),
            ("ls", false),
        ] {
            let event = json!({"data": {"tool_input": {"command": command}}});
            assert_eq!(check(&event).is_some(), denied, "{command}");
        }
    }
}
