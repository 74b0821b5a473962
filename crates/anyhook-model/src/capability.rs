//! Infers which capabilities a hook needs.

use serde::Serialize;

use crate::hook::{HandlerKind, Hook};
use crate::registry::CAPABILITIES;

/// Capabilities of what a hook writes; a hook that mentions one of them
/// answers with structured output.
const OUTPUT_CAPABILITIES: [&str; 2] = ["structured_output", "input_rewrite"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InferredCapability {
    pub capability: &'static str,
    /// False: a guess from the text of the script.
    pub certain: bool,
    pub why: String,
}

/// In the order of the registry. `script` is the text of the program that the
/// handler runs, when the caller has it.
pub fn infer_capabilities(hook: &Hook, script: Option<&str>) -> Vec<InferredCapability> {
    CAPABILITIES
        .iter()
        .filter_map(|capability| {
            let (certain, why) = evidence(capability.name, hook, script)?;
            Some(InferredCapability {
                capability: capability.name,
                certain,
                why,
            })
        })
        .collect()
}

/// Whether a hook may rewrite the input of a tool. `script` is asked for only if the
/// hook itself does not say so.
pub fn may_rewrite_input(hook: &Hook, script: impl FnOnce() -> String) -> bool {
    let evidence = |script| evidence("input_rewrite", hook, script).is_some();
    evidence(None) || evidence(Some(&script()))
}

fn evidence(capability: &str, hook: &Hook, script: Option<&str>) -> Option<(bool, String)> {
    let handler = &hook.handler;
    let certain = |holds: bool, why: &str| holds.then(|| (true, why.to_owned()));
    match capability {
        "structured_output" => certain(hook.blocking, "`blocking: true`").or_else(|| {
            OUTPUT_CAPABILITIES
                .iter()
                .find_map(|name| mentioned(hook, name))
        }),
        "input_rewrite" => mentioned(hook, capability).or_else(|| {
            let word = ["updated_input", "updatedInput"]
                .into_iter()
                .find(|word| script.is_some_and(|text| text.contains(word)))?;
            Some((false, format!("the script mentions `{word}`")))
        }),
        "llm_evaluated" => certain(
            matches!(handler.kind, HandlerKind::Prompt | HandlerKind::Agent),
            &format!("handler type `{}`", handler.kind.as_str()),
        ),
        "http_handler" => certain(handler.kind == HandlerKind::Http, "handler type `http`"),
        "async_execution" => certain(handler.is_async, "`async: true`"),
        "platform_commands" => certain(!handler.platform.is_empty(), "`platform` is set"),
        "custom_env" => certain(!handler.env.is_empty(), "`env` is set"),
        "configurable_cwd" => certain(handler.cwd.is_some(), "`cwd` is set"),
        _ => None,
    }
}

/// Whether the author has named the capability.
fn mentioned(hook: &Hook, capability: &str) -> Option<(bool, String)> {
    if hook.degradation.contains_key(capability) {
        return Some((true, format!("`degradation` names `{capability}`")));
    }
    hook.capabilities
        .iter()
        .any(|listed| listed == capability)
        .then(|| (true, format!("`capabilities` lists `{capability}`")))
}
