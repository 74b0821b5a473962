//! When two hooks are the same one: the same program for the same calls, however
//! each agent's file spells it.

use std::path::Path;

use anyhook_model::Hook;
use anyhook_util::hash::sha256;
use anyhook_util::shell::{self, Syntax};
use serde_json::{Value, json};

/// A variable with this template in an agent's table contains the project's path.
const PROJECT_TEMPLATE: &str = "{project}";

/// The largest script whose content is compared.
const MAX_SCRIPT_BYTES: u64 = 1024 * 1024;

/// What a hook runs, and for which calls. Hooks of several agents with the same
/// identity are one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookIdentity(String);

impl HookIdentity {
    pub fn new(hook: &Hook, root: &Path) -> Self {
        let handler = &hook.handler;
        let variables = project_variables(handler.dialect.as_deref());
        let line = |text: &str| program_identity(text, &variables, root);
        let args = handler.args.iter().flatten();
        let args: Vec<Value> = args
            .map(|word| word_identity(word, &variables, root))
            .collect();
        let platform = &handler.platform;
        let platform = [&platform.linux, &platform.osx, &platform.windows];
        let platform = platform.map(|text| text.as_deref().map(line));
        // A matcher that has no canonical form.
        let kept_matcher = hook
            .provider_data
            .values()
            .find_map(|data| data.get("$matcher"));
        let kept_matcher = kept_matcher.filter(|_| hook.matcher.is_none());
        let identity = json!([
            hook.event,
            hook.matcher,
            kept_matcher,
            handler.kind,
            handler.command.as_deref().map(line),
            args,
            platform,
            handler.cwd,
            handler.env,
            handler.url,
            handler.prompt,
            handler.is_async,
        ]);
        Self(identity.to_string())
    }
}

/// The variables by which an agent's hooks find the project.
fn project_variables(dialect: Option<&str>) -> Vec<&'static str> {
    let agent = dialect.and_then(anyhook_agents::get);
    let variables = agent.into_iter().flat_map(|agent| agent.spec.env.iter());
    variables
        .filter(|(_, template)| *template == PROJECT_TEMPLATE)
        .map(|(name, _)| name.as_ref())
        .collect()
}

/// A command line: by its words if it is a simple command, else as it is written.
fn program_identity(text: &str, variables: &[&str], root: &Path) -> Value {
    let line = shell::split(text, Syntax::SCRIPT);
    if line.has_operators || line.is_cut {
        return Value::from(without_project(text, variables));
    }
    let words = line.words.iter();
    words
        .map(|word| word_identity(&word.text, variables, root))
        .collect()
}

/// A word: a file of the project by its content, anything else as it is.
fn word_identity(word: &str, variables: &[&str], root: &Path) -> Value {
    let path = without_project(word, variables);
    let path = path.trim_start_matches("./");
    let file = root.join(path);
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file);
    let is_small = size.is_some_and(|meta| meta.len() <= MAX_SCRIPT_BYTES);
    match is_small.then(|| std::fs::read(&file).ok()).flatten() {
        Some(content) => json!({ "file": sha256(&content) }),
        None => Value::from(path),
    }
}

/// The text with paths below the project relative to it.
fn without_project(text: &str, variables: &[&str]) -> String {
    let mut text = text.to_owned();
    for name in variables {
        for spelling in [format!("${{{name}}}"), format!("${name}")] {
            for quoted in [format!("\"{spelling}\"/"), format!("{spelling}/")] {
                text = text.replace(&quoted, "./");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(root: &Path, dialect: &str, command: &str) -> HookIdentity {
        let hook = json!({"event": "stop", "handler": {"type": "command", "command": command, "dialect": dialect}});
        HookIdentity::new(&serde_json::from_value(hook).unwrap(), root)
    }

    #[test]
    fn spellings_of_one_program_are_the_same() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for folder in ["a", "b"] {
            std::fs::create_dir(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("x.sh"), "exit 0").unwrap();
        }
        std::fs::write(root.join("b/y.sh"), "exit 2").unwrap();
        let first = identity(root, "claude-code", "\"$CLAUDE_PROJECT_DIR\"/a/x.sh now");
        for same in [
            "a/x.sh now",
            "./a/x.sh  'now'",
            "${CLAUDE_PROJECT_DIR}/b/x.sh now",
            "\"$CLAUDE_PROJECT_DIR/b/x.sh\" now",
        ] {
            assert_eq!(identity(root, "claude-code", same), first, "{same}");
        }
        for other in ["a/x.sh", "b/y.sh now", "a/x.sh now; true", "c/x.sh now"] {
            assert_ne!(identity(root, "claude-code", other), first, "{other}");
        }
    }
}
