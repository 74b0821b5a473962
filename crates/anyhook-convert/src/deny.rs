//! The command that replaces a hook which the target cannot run as it is: it
//! denies in the target's own form and gives the reason.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderOptions;
use anyhook_model::{HookEvent, HookResponse};
use anyhook_util::shell::quote;

/// Why the converted hook denies, for the model and the user.
pub(crate) fn deny_reason(capability: &str, what: &str) -> String {
    // Some agents replace variables before any shell sees its quotes.
    let what = what.replace('$', "");
    if capability == "input_rewrite" {
        return format!(
            "BLOCKED: input_rewrite capability required but not supported by this provider. The hook {what} sanitizes tool input, which cannot be applied without input_rewrite support. Allowing unmodified input would create a false sense of security."
        );
    }
    format!(
        "BLOCKED: {capability} capability required but not supported by this provider. The hook {what} cannot run without it, and its author wants a block in its place."
    )
}

/// A shell command that denies. `tools`: the native tool names to deny, where the
/// target's config has no matcher for them.
pub(crate) fn deny_command(
    adapter: &Adapter,
    native_event: &str,
    reason: &str,
    tools: Option<&[String]>,
) -> String {
    let event = HookEvent {
        source: adapter.spec.id.to_string(),
        native_event: native_event.to_owned(),
        ..HookEvent::default()
    };
    let rendered = adapter.render(
        &event,
        &HookResponse::deny(reason),
        RenderOptions::default(),
    );
    let mut parts = Vec::new();
    if !rendered.stdout.is_empty() {
        parts.push(format!(
            "printf '%s\\n' {}",
            quote(rendered.stdout.trim_end())
        ));
    }
    // Where the answer has no place for a reason, whoever reads the log finds it.
    if rendered.stderr.is_empty() && !rendered.stdout.contains("BLOCKED") {
        parts.push(format!("echo {} >&2", quote(reason)));
    }
    if !rendered.stderr.is_empty() {
        parts.push(format!("echo {} >&2", quote(rendered.stderr.trim_end())));
    }
    // Even for exit 0: some agents use a shell only for commands that look like one.
    parts.push(format!("exit {}", rendered.exit));
    let deny = parts.join("; ");
    match tools {
        Some(tools) => {
            let names: Vec<String> = tools.iter().map(|name| name.replace('.', "[.]")).collect();
            let pattern = format!("\"(tool_?[nN]ame|name)\" *: *\"({})\"", names.join("|"));
            format!("if grep -Eq {}; then {deny}; fi", quote(&pattern))
        }
        None => deny,
    }
}
