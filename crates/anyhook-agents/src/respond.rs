//! Canonical responses and an agent's answers, both ways.
//!
//! Rendering says what it could not say (`lost`) and never writes what the
//! agent would reject: only what a template of the event's profile allows.

mod read;

use anyhook_model::{Decision, HookEvent, HookResponse, Loss, Strategy};
use serde_json::{Map, Value, json};

use crate::spec::{AnswerProfile, Blocking, Event, Template};
use crate::template::{Holes, fill, parts_of_input};
use crate::tools::{changed, encode_input, object_at, removed, rewritten};
use crate::{Adapter, pointer};

pub use read::Read;

/// What is said when a hook denies without a word.
pub const NO_REASON: &str = "A hook denied this and gave no reason.";

/// What is said when a hook ends a run without a word.
const ENDED: &str = "A hook ended the run.";

/// Key of `HookResponse::metadata` by which a hook grants what the agent would
/// ask its user for. A plain `allow` only means "no objection".
pub const APPROVE: &str = "approve";

/// How the caller's situation bears on an answer.
#[derive(Debug, Clone, Copy)]
pub struct RenderOptions {
    /// Somebody sits there who can be asked.
    pub can_ask: bool,
    /// What becomes of a rewrite that the agent cannot apply.
    pub rewrite_fallback: Strategy,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            can_ask: true,
            rewrite_fallback: Strategy::Block,
        }
    }
}

/// An answer for the agent, and what it does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    pub stdout: String,
    pub stderr: String,
    pub exit: i32,
    pub lost: Vec<Loss>,
    /// What the agent does with it, for people.
    pub effect: Vec<String>,
}

impl AnswerProfile {
    fn reads_at(&self, exit: i32) -> bool {
        match self.reads.as_ref() {
            "any" => true,
            "none" => false,
            "" => exit == 0,
            list => match list.strip_prefix('!') {
                Some(except) => except != exit.to_string(),
                None => list.split(',').any(|code| code.trim() == exit.to_string()),
            },
        }
    }

    fn effect(&self, kind: &str, default: &str) -> String {
        self.effect
            .get(kind)
            .map_or_else(|| default.to_owned(), ToString::to_string)
    }
}

/// The answer while it is put together.
#[derive(Default)]
struct Draft {
    object: Map<String, Value>,
    texts: Vec<String>,
    errors: Vec<String>,
    exit: i32,
    lost: Vec<Loss>,
    effect: Vec<String>,
}

impl Draft {
    /// Adds one part by its template; false when there is none that fits.
    fn add(&mut self, profile: &AnswerProfile, templates: &[Template], holes: &Holes) -> bool {
        let Some(template) = templates.first() else {
            return false;
        };
        let exit = self.exit.max(template.exit);
        if exit != 0 && !template.stdout.is_null() && !profile.reads_at(exit) {
            return false;
        }
        match fill(template.stdout.get(), holes) {
            Some(Value::Object(part)) => {
                let mut object = Value::Object(std::mem::take(&mut self.object));
                pointer::overlay(&mut object, &Value::Object(part));
                if let Value::Object(object) = object {
                    self.object = object;
                }
            }
            Some(Value::String(text)) => self.texts.push(text),
            _ => {}
        }
        if let Some(text) = template.stderr.as_deref() {
            let filled = fill(&Value::String(text.to_owned()), holes);
            self.errors
                .extend(filled.as_ref().and_then(Value::as_str).map(str::to_owned));
        }
        self.exit = exit;
        true
    }

    fn lose(&mut self, field: &str, message: String) {
        self.lost.push(Loss::new(field, message));
    }
}

impl Adapter {
    fn profile(&self, event: Option<&Event>) -> Option<&AnswerProfile> {
        self.spec.answers.get(event?.answer.as_ref()?)
    }

    /// Whether this event's answer can rewrite a tool's input.
    pub fn can_rewrite(&self, event: &Event) -> bool {
        self.profile(Some(event))
            .is_some_and(|profile| !profile.rewrite.is_empty())
    }

    /// Whether this event's answer is read as JSON.
    pub fn has_structured_answer(&self, event: &Event) -> bool {
        self.profile(Some(event)).is_some_and(|profile| {
            [
                &profile.deny,
                &profile.context,
                &profile.message,
                &profile.rewrite,
            ]
            .into_iter()
            .flatten()
            .any(|template| template.stdout.is_object())
        })
    }

    /// The answer that makes this agent do what the response says, as far as it can.
    pub fn render(
        &self,
        event: &HookEvent,
        response: &HookResponse,
        options: RenderOptions,
    ) -> Rendered {
        let spec = self.event_by_native(&event.native_event);
        let silent = AnswerProfile::default();
        let profile = self.profile(spec).unwrap_or(&silent);
        let mut draft = Draft::default();
        let mut decision = response.decision;
        let mut reason = response.reason.clone();
        // Where a deny keeps something from happening, it stands in for what
        // the agent cannot be told; elsewhere it would only do harm.
        let prevents =
            !profile.deny.is_empty() && spec.is_some_and(|spec| spec.blocking == Blocking::Prevent);

        let rewrite = response
            .updated_input
            .as_ref()
            .filter(|_| decision != Some(Decision::Deny));
        // At a request for permission a rewrite would grant what nobody granted.
        let asks_permission =
            spec.is_some_and(|spec| spec.is.as_deref() == Some("permission_request"));
        let grants = asks_permission && decision != Some(Decision::Allow);
        let attempt = rewrite.map(|rewrite| {
            if grants {
                return Err("a changed input goes with an `allow` here".to_owned());
            }
            self.rewrite(event, profile, rewrite)
        });
        let rewrite = match attempt {
            None => None,
            Some(Ok(input)) => Some(input),
            Some(Err(why)) => {
                let denies = options.rewrite_fallback == Strategy::Block && prevents;
                if denies {
                    decision = Some(Decision::Deny);
                    reason = Some(format!(
                        "A hook changes the input of this call, and {why}; it is denied instead."
                    ));
                }
                let done = if denies {
                    "denied instead"
                } else {
                    "the input stays as it was"
                };
                draft.lose("updated_input", format!("{why}; {done}"));
                None
            }
        };
        if decision == Some(Decision::Ask)
            && (profile.ask.is_empty() || (profile.ask_needs_user && !options.can_ask))
        {
            let done = if profile.deny.is_empty() {
                "nothing is blocked"
            } else {
                "denied instead"
            };
            draft.lose(
                "ask",
                format!(
                    "nobody can be asked here ({}, {}); {done}",
                    self.spec.name, event.native_event
                ),
            );
            decision = Some(Decision::Deny);
        }
        let ends = response.goes_on == Some(false);
        let unstoppable = ends && profile.stop.is_empty();
        // What is about to happen must not happen on the way to the end.
        let denies = ends && prevents && decision != Some(Decision::Deny);
        if unstoppable {
            let done = if denies { "; denied instead" } else { "" };
            draft.lose(
                "continue",
                format!(
                    "{} cannot be stopped from {}{done}",
                    self.spec.name, event.native_event
                ),
            );
        }
        if denies {
            decision = Some(Decision::Deny);
            reason = reason.or_else(|| Some(ENDED.to_owned()));
        }

        let mut holes = Holes::new();
        holes.insert("event".into(), json!(self.answered_event(event)));
        let context = response.context.as_deref().filter(|text| !text.is_empty());
        let mut context_told = context.is_none();
        if matches!(decision, Some(Decision::Deny | Decision::Ask)) {
            let mut text = reason
                .filter(|text| !text.trim().is_empty())
                .unwrap_or_else(|| NO_REASON.to_owned());
            let dies = profile
                .deny
                .first()
                .is_some_and(|template| template.exit != 0);
            if let Some(context) = context
                && decision == Some(Decision::Deny)
                && !profile.deny.is_empty()
                && (profile.context.is_empty() || (dies && !profile.reads_at(2)))
            {
                // The model reads the reason: the context travels with it.
                text = format!("{text}\n\n{context}");
                context_told = true;
            }
            holes.insert("reason".into(), json!(text));
        } else if let Some(reason) = &reason {
            holes.insert("reason".into(), json!(reason));
        }
        self.decide(spec, profile, decision, response, &holes, &mut draft);

        // Where a rewrite says "allow" beside it, it would undo a deny that an
        // unanswerable `ask` has become.
        if let Some(input) = rewrite.filter(|_| decision != Some(Decision::Deny)) {
            holes.insert("updated_input".into(), Value::Object(input));
            draft.add(profile, &profile.rewrite, &holes);
            draft
                .effect
                .push(profile.effect("rewrite", "the changed input is used"));
        }
        if response.goes_on == Some(false) && !unstoppable {
            holes.entry("reason").or_insert_with(|| json!(ENDED));
            if draft.add(profile, &profile.stop, &holes) {
                draft
                    .effect
                    .push(profile.effect("stop", "the agent's run ends"));
            } else {
                draft.lose(
                    "continue",
                    format!(
                        "{} cannot be told both that and the rest at {}",
                        self.spec.name, event.native_event
                    ),
                );
            }
        }
        if let Some(context) = context.filter(|_| !context_told) {
            holes.insert("context".into(), json!(context));
            if draft.add(profile, &profile.context, &holes) {
                draft
                    .effect
                    .push(profile.effect("context", "the model reads the context"));
            } else {
                draft.lose(
                    "context",
                    format!(
                        "{} gives the model no context from {}",
                        self.spec.name, event.native_event
                    ),
                );
            }
        }
        if let Some(message) = response
            .system_message
            .as_deref()
            .filter(|text| !text.is_empty())
        {
            holes.insert("message".into(), json!(message));
            if draft.add(profile, &profile.message, &holes) {
                draft
                    .effect
                    .push(profile.effect("message", "the user sees the message"));
            } else {
                draft.lose(
                    "system_message",
                    format!(
                        "{} shows its user no message from {}",
                        self.spec.name, event.native_event
                    ),
                );
            }
        }
        if response.suppress_output == Some(true) {
            if draft.add(profile, &profile.suppress, &holes) {
                draft
                    .effect
                    .push(profile.effect("suppress", "the hook's output is hidden"));
            } else {
                draft.lose(
                    "suppress_output",
                    format!(
                        "{} has no way to hide output at {}",
                        self.spec.name, event.native_event
                    ),
                );
            }
        }
        let mut rendered = finish(draft, profile);
        self.quirks.rendered(event, response, &mut rendered);
        rendered
    }

    fn decide(
        &self,
        spec: Option<&Event>,
        profile: &AnswerProfile,
        decision: Option<Decision>,
        response: &HookResponse,
        holes: &Holes,
        draft: &mut Draft,
    ) {
        match decision {
            Some(Decision::Deny) => {
                if draft.add(profile, &profile.deny, holes) {
                    let default = match spec.map(|spec| spec.blocking) {
                        Some(Blocking::Retry) => {
                            "the agent goes on working; the model reads the reason"
                        }
                        Some(Blocking::Feedback) => "it has happened; the model reads the reason",
                        _ => "it does not happen; the model reads the reason",
                    };
                    draft.effect.push(profile.effect("deny", default));
                } else {
                    let event = spec.map_or("this event", |spec| &spec.native);
                    draft.lose(
                        "deny",
                        format!("{} cannot be blocked at {event}", self.spec.name),
                    );
                }
            }
            Some(Decision::Ask) => {
                draft.add(profile, &profile.ask, holes);
                draft
                    .effect
                    .push(profile.effect("ask", "the user is asked"));
            }
            Some(Decision::Allow) => {
                let grants = response.metadata.get(APPROVE) == Some(&Value::Bool(true))
                    || spec.is_some_and(|spec| spec.is.as_deref() == Some("permission_request"));
                if grants && draft.add(profile, &profile.approve, holes) {
                    draft
                        .effect
                        .push(profile.effect("approve", "it is allowed without asking the user"));
                } else if grants {
                    draft.lose(
                        "approve",
                        format!("{} asks its user all the same", self.spec.name),
                    );
                }
            }
            None => {}
        }
    }

    /// The event's name as answers have to repeat it.
    fn answered_event<'a>(&'a self, event: &'a HookEvent) -> &'a str {
        self.event_by_native(&event.native_event)
            .map_or(event.native_event.as_str(), |spec| &spec.native)
    }

    /// The native input after a rewrite, or why the agent cannot apply it.
    fn rewrite(
        &self,
        event: &HookEvent,
        profile: &AnswerProfile,
        rewrite: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        if profile.rewrite.is_empty() {
            return Err(format!(
                "{} takes no changed input at {}",
                self.spec.name, event.native_event
            ));
        }
        let Some(old) = event.tool_input() else {
            let parts = profile
                .rewrite
                .first()
                .and_then(|template| parts_of_input(template.stdout.get()));
            let stuck = rewrite.keys().find(|key| {
                parts
                    .as_ref()
                    .is_some_and(|parts| !parts.contains(&key.as_str()))
            });
            return match stuck {
                Some(key) => Err(format!(
                    "{} does not change `{key}` at {}",
                    self.spec.name, event.native_event
                )),
                None => Ok(rewrite.clone()),
            };
        };
        let new = rewritten(old, rewrite);
        let name = event.native_tool_name();
        let row = self.own_row(event);
        let patches = row.is_some_and(|row| row.patch.is_some());
        if patches && !rewrite.contains_key("patch") && !rewrite.contains_key("files") {
            return Err(
                "a patch is changed as `patch` or as `files`, not by a part of it".to_owned(),
            );
        }
        if let Some(allowed) = row.and_then(|row| row.rewritable.as_ref()) {
            let stuck = changed(old, &new)
                .keys()
                .find(|key| !allowed.iter().any(|one| one == key.as_str()))
                .cloned();
            if let Some(key) = stuck {
                return Err(format!(
                    "{} does not change `{key}` of this tool",
                    self.spec.name
                ));
            }
        }
        let native = |input: &Map<String, Value>| {
            name.and_then(|name| self.quirks.encode_tool(name, input))
                .unwrap_or_else(|| {
                    row.map_or_else(|| input.clone(), |row| encode_input(row, input))
                })
        };
        let (before, after) = (native(old), native(&new));
        let delta = changed(&before, &after);
        if profile.rewrite_mode == "merge" {
            return match removed(&before, &after).next() {
                Some(key) => Err(format!(
                    "{} cannot be told to leave `{key}` out",
                    self.spec.name
                )),
                None => Ok(delta),
            };
        }
        let payload = self
            .encode(event, None)
            .map(|encoded| encoded.payload)
            .unwrap_or_default();
        let spec = self.event_by_native(&event.native_event);
        let set = spec
            .and_then(|spec| spec.common.as_deref())
            .unwrap_or("common");
        let rows = spec
            .into_iter()
            .flat_map(|spec| &spec.rows)
            .chain(self.spec.payload.rows.get(set).into_iter().flatten());
        let mut whole = rows
            .filter(|row| row.to == "tool_input")
            .find_map(|row| object_at(&payload, &row.at))
            .cloned()
            .unwrap_or_else(|| native(old));
        for key in removed(&before, &after) {
            whole.shift_remove(key);
        }
        whole.extend(delta);
        Ok(whole)
    }
}

fn finish(draft: Draft, profile: &AnswerProfile) -> Rendered {
    let mut object = draft.object;
    if object.is_empty()
        && draft.texts.is_empty()
        && draft.exit == 0
        && let Some(empty) = &profile.empty
    {
        object.clone_from(empty);
        if object.is_empty() {
            return Rendered {
                stdout: "{}\n".into(),
                lost: draft.lost,
                effect: draft.effect,
                ..Rendered::default()
            };
        }
    }
    let mut stdout = if object.is_empty() {
        draft.texts.join("\n")
    } else {
        Value::Object(object).to_string()
    };
    let mut stderr = draft.errors.join("\n");
    for text in [&mut stdout, &mut stderr] {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Rendered {
        stdout,
        stderr,
        exit: draft.exit,
        lost: draft.lost,
        effect: draft.effect,
    }
}
