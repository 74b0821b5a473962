//! The command that stands for a hook whose work the target cannot take:
//! it denies in the target's own way, and says why.

use anyhook_agents::Adapter;
use anyhook_agents::respond::RenderOptions;
use anyhook_model::{HookEvent, HookResponse};

/// Single quotes for a POSIX shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Why the converted hook denies, for the model and the user.
pub(crate) fn reason(capability: &str, what: &str) -> String {
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

/// A shell command that denies. `tools`: the native names for which it does so,
/// where the target's config cannot say it.
pub(crate) fn command(
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
            quoted(rendered.stdout.trim_end())
        ));
    }
    if !rendered.stderr.is_empty() {
        parts.push(format!("echo {} >&2", quoted(rendered.stderr.trim_end())));
    }
    // Also where it is 0: some agents start a shell only for what looks like it.
    parts.push(format!("exit {}", rendered.exit));
    let deny = parts.join("; ");
    match tools {
        Some(tools) => {
            let names: Vec<String> = tools.iter().map(|name| name.replace('.', "[.]")).collect();
            let pattern = format!("\"(tool_?[nN]ame|name)\" *: *\"({})\"", names.join("|"));
            format!("if grep -Eq {}; then {deny}; fi", quoted(&pattern))
        }
        None => deny,
    }
}
