//! The name of a hook in messages: its event, matcher and program.

use anyhook_agents::Adapter;
use anyhook_agents::config::hook_keys;
use anyhook_model::{Hook, Matcher, interpreter};
use anyhook_util::shell::{self, Syntax};
use serde_json::Value;

use crate::fit::command_line;

/// `PreToolUse[Bash] guard.sh`, in the words of the source.
pub fn hook_label(hook: &Hook, agent: Option<&Adapter>) -> String {
    let kept = |key: &str| {
        let data = hook.provider_data.get(agent?.spec.id.as_ref())?;
        Some(data.get(key)?.as_str()?.to_owned())
    };
    let native = || {
        let event = agent?.event_for(&hook.event, None)?;
        Some(event.native.to_string())
    };
    let event = kept(hook_keys::NATIVE_EVENT).or_else(native);
    let mut label = event.unwrap_or_else(|| hook.event.clone());
    let written = || {
        let matcher = hook.matcher.as_ref()?;
        let translated = agent.and_then(|agent| agent.translate(matcher, Some(agent)).text);
        Some(translated.unwrap_or_else(|| matcher_text(matcher)))
    };
    let matcher = kept(hook_keys::NATIVE_MATCHER).or_else(written);
    if let Some(matcher) = matcher.filter(|matcher| !matcher.is_empty()) {
        label.push('[');
        label.push_str(matcher.trim_start_matches('^').trim_end_matches('$'));
        label.push(']');
    }
    if let Some(program) = program_name(hook) {
        label.push(' ');
        label.push_str(&program);
    }
    label
}

fn matcher_text(matcher: &Matcher) -> String {
    match serde_json::to_value(matcher) {
        Ok(Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// The script that the hook runs, without its folder; else its program, URL or type.
pub fn program_name(hook: &Hook) -> Option<String> {
    let handler = &hook.handler;
    let Some(line) = command_line(handler) else {
        let url = handler.url.clone();
        return url.or_else(|| Some(handler.kind.as_str().to_owned()));
    };
    let words = shell::split(&line, Syntax::SCRIPT).words;
    let is_script = |text: &str| {
        let is_path = text.contains('/') || (text.contains('.') && !text.starts_with('.'));
        is_path
            && !text.starts_with('-')
            && !text.contains('=')
            && !interpreter::is_interpreter(text)
    };
    let mut scripts = words.iter().filter(|word| !word.is_target);
    let script = scripts.find(|word| is_script(&word.text));
    let word = script.or(words.first())?;
    let name = word.text.rsplit(['/', '\\']).next();
    name.map(str::to_owned).filter(|name| !name.is_empty())
}
