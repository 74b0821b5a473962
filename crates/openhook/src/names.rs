//! Identifiers of the protocol, made from the names that agents use: event ids,
//! `provider/model`, and why a session ended.

use crate::data::EndReason;
use uuid::Uuid;

/// The namespace of [`stable_id`]: the UUID v5 of `openhook.dev` as a DNS name.
const NAMESPACE: Uuid = Uuid::from_u128(0x5fdc_01ba_e3eb_51cd_b446_b05f_84aa_81f8);

/// A UUID that is the same for the same parts, so that an event that is reported
/// twice is recognized. It has the form of version 4, which the protocol
/// recommends; its bits are a hash of the parts.
///
/// `["ab", "c"]` and `["a", "bc"]` differ.
///
/// ```
/// use openhook::stable_id;
/// let id = stable_id(&["claude-code", "sess_abc123", "PreToolUse", "toolu_01"]);
/// assert_eq!(id, stable_id(&["claude-code", "sess_abc123", "PreToolUse", "toolu_01"]));
/// assert_ne!(id, stable_id(&["claude-code", "sess_abc123", "PreToolUse", "toolu_02"]));
/// ```
pub fn stable_id(parts: &[&str]) -> String {
    let mut name = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        name.extend_from_slice(&(part.len() as u64).to_be_bytes());
        name.extend_from_slice(part.as_bytes());
    }
    let hash = Uuid::new_v5(&NAMESPACE, &name).into_bytes();
    let id = uuid::Builder::from_random_bytes(hash).into_uuid();
    id.hyphenated().to_string()
}

/// Providers by the ids of models.dev, and how the names of their models begin.
const PROVIDERS: [(&str, &[&str]); 17] = [
    ("anthropic", &["claude"]),
    ("openai", &["gpt", "chatgpt", "codex", "o1", "o3", "o4"]),
    ("google", &["gemini", "gemma"]),
    ("alibaba", &["qwen", "qwq", "qvq"]),
    ("xai", &["grok"]),
    ("deepseek", &["deepseek"]),
    (
        "mistral",
        &[
            "mistral",
            "mixtral",
            "ministral",
            "magistral",
            "codestral",
            "devstral",
            "pixtral",
        ],
    ),
    ("moonshotai", &["kimi"]),
    ("zai", &["glm"]),
    ("minimax", &["minimax"]),
    ("llama", &["llama"]),
    ("cohere", &["command"]),
    ("perplexity", &["sonar"]),
    ("amazon-bedrock", &["nova"]),
    ("inception", &["mercury"]),
    ("upstage", &["solar"]),
    ("xiaomi", &["mimo"]),
];

/// `provider/model`, as models.dev writes it, for models of known providers. A
/// name that has a provider already, or an unknown one, is returned unchanged.
///
/// ```
/// use openhook::model_id;
/// assert_eq!(model_id("claude-sonnet-4-6"), "anthropic/claude-sonnet-4-6");
/// assert_eq!(model_id("openrouter/claude-sonnet-4-6"), "openrouter/claude-sonnet-4-6");
/// assert_eq!(model_id("our-own"), "our-own");
/// ```
pub fn model_id(model: &str) -> String {
    let model = model.trim();
    if model.contains('/') {
        return model.to_owned();
    }
    let lower = model.to_ascii_lowercase();
    // The next character must end the word: `o3-mini` and `qwen3`, not `o365`
    // or `commander`.
    let is_model_of = |prefix: &&str| {
        lower.strip_prefix(prefix).is_some_and(|rest| {
            let ends_in_digit = prefix.ends_with(|c: char| c.is_ascii_digit());
            match rest.chars().next() {
                None => true,
                Some(next) if ends_in_digit => !next.is_ascii_alphanumeric(),
                Some(next) => !next.is_ascii_alphabetic(),
            }
        })
    };
    let provider = PROVIDERS
        .iter()
        .find(|(_, prefixes)| prefixes.iter().any(is_model_of));
    match provider {
        Some((provider, _)) => format!("{provider}/{model}"),
        None => model.to_owned(),
    }
}

/// One of the four reasons of `session.end`, for the word that an agent uses.
/// `None` for an unknown word.
///
/// `other` is `completed`: agents use it for the ordinary end of a run without a
/// user, and have other words for failures.
///
/// ```
/// use openhook::end_reason;
/// assert_eq!(end_reason("prompt_input_exit"), Some("user_exit"));
/// assert_eq!(end_reason("windowClose"), Some("user_exit"));
/// assert_eq!(end_reason("complete"), Some("completed"));
/// assert_eq!(end_reason("banana"), None);
/// ```
pub fn end_reason(native: &str) -> Option<&'static str> {
    let reason = match squeeze(native).as_str() {
        "userexit" | "exit" | "quit" | "promptinputexit" | "logout" | "clear" | "resume"
        | "windowclose" | "userclose" | "abort" | "aborted" | "interrupt" | "interrupted"
        | "userinterrupt" | "userabort" | "cancel" | "canceled" | "cancelled" | "killed"
        | "sigint" | "sigterm" | "sighup" | "new" | "deleted" => EndReason::UserExit,
        "timeout" | "timedout" | "idletimeout" | "timelimit" | "expired" => EndReason::Timeout,
        "error" | "failed" | "failure" | "crash" | "crashed" | "exception" | "apierror"
        | "fatal" => EndReason::Error,
        "complete" | "completed" | "completion" | "done" | "finished" | "success" | "ended"
        | "endturn" | "other" => EndReason::Completed,
        _ => return None,
    };
    Some(reason.as_str())
}

/// Only lowercase letters and digits: `SessionEnd`, `session_end`, `session.end`
/// and `session-end` become the same word.
pub(crate) fn squeeze(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_what_it_says() {
        assert_eq!(
            Uuid::new_v5(&Uuid::NAMESPACE_DNS, b"openhook.dev"),
            NAMESPACE
        );
    }

    #[test]
    fn a_stable_id_is_a_v4_uuid_and_stays_the_same_for_ever() {
        let id = stable_id(&["a", "b"]);
        assert_eq!(Uuid::try_parse(&id).unwrap().get_version_num(), 4);
        assert_eq!(id, "ad96af4e-c491-40b7-8115-0c7b6942eaa5");
        assert_ne!(stable_id(&["ab", ""]), stable_id(&["a", "b"]));
        assert_ne!(stable_id(&["ab"]), stable_id(&["a", "b"]));
    }

    #[test]
    fn makers() {
        for (model, id) in [
            ("gpt-5.5", "openai/gpt-5.5"),
            ("o3", "openai/o3"),
            ("o4-mini", "openai/o4-mini"),
            ("codex-mini-latest", "openai/codex-mini-latest"),
            ("gemini-3-pro", "google/gemini-3-pro"),
            ("qwen3-coder-plus", "alibaba/qwen3-coder-plus"),
            ("Grok-4", "xai/Grok-4"),
            ("deepseek-chat", "deepseek/deepseek-chat"),
            ("mistral-large", "mistral/mistral-large"),
            ("kimi-k2", "moonshotai/kimi-k2"),
            ("glm-5.2", "zai/glm-5.2"),
            ("o365", "o365"),
            ("commander", "commander"),
            ("fake-model", "fake-model"),
            ("", ""),
        ] {
            assert_eq!(model_id(model), id);
        }
    }

    #[test]
    fn every_reason_of_the_protocol_is_its_own_reason() {
        for word in EndReason::WORDS {
            assert_eq!(end_reason(word), Some(*word));
        }
        for (native, reason) in [
            ("other", Some("completed")),
            ("exit", Some("user_exit")),
            ("logout", Some("user_exit")),
            ("clear", Some("user_exit")),
            ("abort", Some("user_exit")),
            ("aborted", Some("user_exit")),
            ("window_close", Some("user_exit")),
            ("user_close", Some("user_exit")),
            ("interrupted", Some("user_exit")),
            ("timed-out", Some("timeout")),
            ("failed", Some("error")),
            ("", None),
        ] {
            assert_eq!(end_reason(native), reason, "{native}");
        }
    }
}
