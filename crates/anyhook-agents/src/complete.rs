//! Whether a table is complete: what its author forgot, and what cannot work.
//!
//! A tool is mapped or absent with a reason. An event that is not mapped is
//! not available; a note in `[absent.events]` is optional.

use anyhook_model::registry;

use crate::spec::{AgentSpec, Blocking, ConfigShape, MatcherSyntax};

pub(crate) fn gaps(spec: &AgentSpec) -> Vec<String> {
    let mut gaps = Vec::new();
    for event in registry::EVENTS {
        let has = spec
            .events
            .iter()
            .any(|one| one.is.as_deref() == Some(event.name));
        match (has, spec.absent.events.get(event.name)) {
            (true, Some(_)) => gaps.push(format!("event `{}` is mapped and absent", event.name)),
            (false, Some(why)) if why.len() < 5 => {
                gaps.push(format!(
                    "event `{}` is absent with an empty note",
                    event.name
                ));
            }
            _ => {}
        }
    }
    for tool in registry::TOOLS {
        let by_event = spec
            .events
            .iter()
            .any(|event| event.tools.iter().any(|one| one == tool.name));
        let by_name = spec
            .tools
            .iter()
            .any(|one| one.is == tool.name || one.also.iter().any(|also| also == tool.name));
        match (by_name || by_event, spec.absent.tools.get(tool.name)) {
            (false, None) => gaps.push(format!(
                "tool `{}` is neither mapped nor in [absent.tools]",
                tool.name
            )),
            (true, Some(_)) => gaps.push(format!("tool `{}` is mapped and absent", tool.name)),
            _ => {}
        }
    }
    for event in &spec.events {
        let profile = event
            .answer
            .as_ref()
            .and_then(|answer| spec.answers.get(answer));
        let denies = profile.is_some_and(|profile| !profile.deny.is_empty());
        if denies == (event.blocking == Blocking::Observe) && !event.noisy {
            gaps.push(format!(
                "`{}` is `{}` and its answer {} deny",
                event.native,
                event.blocking,
                if denies { "can" } else { "cannot" }
            ));
        }
    }
    for name in spec.answers.keys() {
        let mut events = spec.events.iter();
        if !events.any(|event| event.answer.as_ref() == Some(name)) {
            gaps.push(format!("no event answers by `{name}`"));
        }
    }
    let matcher = &spec.config.matcher;
    if matcher.syntax != MatcherSyntax::None
        && matcher.at.is_empty()
        && spec.config.shape != ConfigShape::Plugin
    {
        gaps.push("`[config.matcher]` has a `syntax` and no `at`".to_owned());
    }
    if !spec.files.iter().any(|file| file.write) {
        gaps.push("no `[[file]]` has `write = true`: `install` has nowhere to write".to_owned());
    }
    gaps
}
