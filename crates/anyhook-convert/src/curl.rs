//! Turns an http handler into a `curl` command, for agents without http handlers.

use anyhook_model::Handler;
use anyhook_model::hook::DEFAULT_TIMEOUT_SECS;
use serde_json::Value;

use anyhook_util::shell::quote;

/// A `curl` command that sends the same POST. The shell expands header variables,
/// and only those that the handler allows.
pub(crate) fn curl_command(handler: &Handler) -> String {
    let timeout = handler
        .timeout
        .filter(|timeout| *timeout > 0.0)
        .unwrap_or(DEFAULT_TIMEOUT_SECS);
    let mut parts = vec![
        "curl -sS --fail".to_owned(),
        format!("--max-time {timeout}"),
        "-H 'Content-Type: application/json'".to_owned(),
    ];
    for (name, value) in &handler.headers {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        parts.push(format!(
            "-H {}",
            header_argument(name, &value, &handler.allowed_env_vars)
        ));
    }
    parts.push("--data-binary @-".to_owned());
    parts.push(quote(handler.url.as_deref().unwrap_or_default()));
    parts.join(" ")
}

fn header_argument(name: &str, value: &str, allowed: &[String]) -> String {
    let mut out = String::from("\"");
    let mut rest = format!("{name}: {value}");
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        escape_into(&mut out, before);
        let after = after.strip_prefix('$').unwrap_or_default();
        let braced = after.strip_prefix('{');
        let body = braced.unwrap_or(after);
        let end = body
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(body.len());
        let (variable, tail) = body.split_at(end);
        let tail = if braced.is_some() {
            tail.strip_prefix('}').unwrap_or(tail)
        } else {
            tail
        };
        if allowed.iter().any(|one| one == variable) {
            out.push_str("${");
            out.push_str(variable);
            out.push('}');
        } else if variable.is_empty() {
            out.push_str("\\$");
        }
        rest = tail.to_owned();
    }
    escape_into(&mut out, &rest);
    out.push('"');
    out
}

fn escape_into(out: &mut String, text: &str) {
    for letter in text.chars() {
        if matches!(letter, '"' | '\\' | '`' | '$') {
            out.push('\\');
        }
        out.push(letter);
    }
}

/// Whether a header uses variables although the handler allows none.
pub(crate) fn has_unlisted_variables(handler: &Handler) -> bool {
    handler
        .headers
        .values()
        .filter_map(Value::as_str)
        .any(|value| value.contains('$'))
        && handler.allowed_env_vars.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_variables_are_expanded() {
        let allowed = vec!["TOKEN".to_owned()];
        assert_eq!(
            header_argument("Authorization", "Bearer $TOKEN", &allowed),
            "\"Authorization: Bearer ${TOKEN}\""
        );
        assert_eq!(
            header_argument("X", "${OTHER}`id`\"", &allowed),
            "\"X: \\`id\\`\\\"\""
        );
        assert_eq!(header_argument("X", "a$", &allowed), "\"X: a\\$\"");
    }
}
