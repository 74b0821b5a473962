//! Canonical responses and an agent's answers, in both directions.
//!
//! Rendering reports what the agent cannot express (`lost`) and never writes what
//! the agent would reject: only what a template of the event's profile allows.

mod decode;
mod misread;

use anyhook_model::{Decision, HookEvent, HookResponse, Loss, Strategy};
use serde_json::{Map, Value, json};

use crate::quirks::ALREADY_HAPPENED;
use crate::spec::{AnswerPart, AnswerProfile, Blocking, EventSpec, ReadsAt, RewriteMode, Template};
use crate::template::{Holes, fill, parts_of_input};
use crate::tools::{changed, object_at, removed, rewritten};
use crate::{Adapter, likeness, pointer};

pub use decode::DecodedAnswer;

/// The reason of a deny for which the hook gives none.
pub(crate) const DEFAULT_DENY_REASON: &str = "A hook denied this and gave no reason.";

/// The reason of a question for which the hook gives none.
const DEFAULT_ASK_REASON: &str = "A hook asks you to confirm this and gave no reason.";

/// The reason when a hook ends a run and gives none.
const DEFAULT_STOP_REASON: &str = "A hook ended the run.";

const PERMISSION_REQUEST: &str = "permission_request";

/// Key of `HookResponse::metadata` by which a hook grants what the agent would
/// ask its user for. A plain `allow` only means "no objection".
pub const APPROVE_KEY: &str = "approve";

/// What the caller can do with an answer.
#[derive(Debug, Clone, Copy)]
pub struct RenderOptions {
    /// Whether a user is present who can be asked.
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

/// An answer for the agent, and what it does not express.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RenderedAnswer {
    pub stdout: String,
    pub stderr: String,
    pub exit: i32,
    pub lost: Vec<Loss>,
    /// What the agent does with it, for people.
    pub effect: Vec<String>,
}

impl AnswerProfile {
    pub fn reads_at(&self, exit: i32) -> bool {
        match self.reads {
            ReadsAt::Zero => exit == 0,
            ReadsAt::ZeroAndTwo => matches!(exit, 0 | 2),
            ReadsAt::AllButTwo => exit != 2,
            ReadsAt::Any => true,
            ReadsAt::Never => false,
        }
    }

    fn templates(&self, part: AnswerPart) -> &[Template] {
        match part {
            AnswerPart::Deny => &self.deny,
            AnswerPart::Ask => &self.ask,
            AnswerPart::Approve => &self.approve,
            AnswerPart::Context => &self.context,
            AnswerPart::Message => &self.message,
            AnswerPart::Rewrite => &self.rewrite,
            AnswerPart::Stop => &self.stop,
            AnswerPart::Suppress => &self.suppress,
        }
    }
}

/// What a part of an answer does, unless the profile describes it.
fn default_effect(part: AnswerPart, blocking: Option<Blocking>) -> &'static str {
    match (part, blocking) {
        (AnswerPart::Deny, Some(Blocking::Retry)) => {
            "the agent continues; the model sees the reason"
        }
        (AnswerPart::Deny, Some(Blocking::Feedback)) => ALREADY_HAPPENED,
        (AnswerPart::Deny, _) => "blocked; the model sees the reason",
        (AnswerPart::Ask, _) => "the user is asked",
        (AnswerPart::Approve, _) => "allowed without asking the user",
        (AnswerPart::Context, _) => "the model sees the context",
        (AnswerPart::Message, _) => "the user sees the message",
        (AnswerPart::Rewrite, _) => "the changed input is used",
        (AnswerPart::Stop, _) => "the agent's run ends",
        (AnswerPart::Suppress, _) => "the hook's output is hidden",
    }
}

/// The answer while it is put together.
struct Draft<'a> {
    adapter: &'a Adapter,
    native_event: &'a str,
    spec: Option<&'a EventSpec>,
    profile: &'a AnswerProfile,
    /// Decision and reason of the response, or what replaces them where the agent
    /// cannot express the response.
    decision: Option<Decision>,
    reason: Option<String>,
    holes: Holes,
    object: Map<String, Value>,
    texts: Vec<String>,
    errors: Vec<String>,
    exit: i32,
    lost: Vec<Loss>,
    effect: Vec<String>,
}

impl Draft<'_> {
    /// Adds one part by its template; false if no template fits.
    fn add(&mut self, part: AnswerPart) -> bool {
        let profile = self.profile;
        let Some(template) = profile.templates(part).first() else {
            return false;
        };
        let exit = self.exit.max(template.exit);
        if exit != 0 && !template.stdout.is_null() && !profile.reads_at(exit) {
            return false;
        }
        match fill(template.stdout.get(), &self.holes) {
            Some(Value::Object(part)) => pointer::overlay_map(&mut self.object, &part),
            Some(Value::String(text)) => self.texts.push(text),
            _ => {}
        }
        if let Some(text) = template.stderr.as_deref()
            && let Some(Value::String(text)) = fill(&json!(text), &self.holes)
        {
            self.errors.push(text);
        }
        self.exit = exit;
        self.describe(part);
        true
    }

    fn describe(&mut self, part: AnswerPart) {
        let blocking = self.spec.map(|spec| spec.blocking);
        let text = self.profile.effect.get(&part);
        let text = text.map_or(default_effect(part, blocking), AsRef::as_ref);
        self.effect.push(text.to_owned());
    }

    fn lose(&mut self, field: &str, message: String) {
        self.lost.push(Loss::new(field, message));
    }

    /// Adds the part, with `text` in its hole, or reports that the agent
    /// `lacks` it at this event.
    fn add_or_lose(
        &mut self,
        part: AnswerPart,
        hole: Option<(&str, &str)>,
        field: &str,
        lacks: &str,
    ) {
        if let Some((name, text)) = hole {
            self.holes.insert(name.to_owned(), json!(text));
        }
        if !self.add(part) {
            let (agent, event) = (&self.adapter.spec.name, self.native_event);
            self.lose(field, format!("{agent} {lacks} {event}"));
        }
    }

    fn is_permission_request(&self) -> bool {
        let canonical = self.spec.and_then(|spec| spec.is.as_deref());
        canonical == Some(PERMISSION_REQUEST)
    }

    /// Whether a deny prevents the event. Only there it replaces what the agent
    /// cannot express; elsewhere it would only do harm.
    fn prevents(&self) -> bool {
        let blocking = self.spec.map(|spec| spec.blocking);
        !self.profile.deny.is_empty() && blocking == Some(Blocking::Prevent)
    }

    /// The native input after the response's rewrite. A rewrite that the agent
    /// cannot apply becomes a deny, or is lost.
    fn resolve_rewrite(
        &mut self,
        event: &HookEvent,
        response: &HookResponse,
        options: RenderOptions,
    ) -> Option<Map<String, Value>> {
        let rewrite = response.updated_input.as_ref();
        let rewrite = rewrite.filter(|_| self.decision != Some(Decision::Deny))?;
        // At a permission request a rewrite would grant what no hook allowed.
        let result = if self.is_permission_request() && self.decision != Some(Decision::Allow) {
            Err("changed input requires an `allow` here".to_owned())
        } else {
            self.adapter.rewrite(event, self.profile, rewrite)
        };
        let why = match result {
            Ok(input) => return Some(input),
            Err(why) => why,
        };
        let mut done = "the input is unchanged";
        if options.rewrite_fallback == Strategy::Block && self.prevents() {
            done = "denied instead";
            self.decision = Some(Decision::Deny);
            self.reason = Some(stuck_rewrite_reason(&why));
        }
        self.lose("updated_input", format!("{why}; {done}"));
        None
    }

    /// An `ask` that no user can answer becomes a deny.
    fn resolve_ask(&mut self, options: RenderOptions) {
        let profile = self.profile;
        let is_answerable = !profile.ask.is_empty() && (options.can_ask || !profile.ask_needs_user);
        if self.decision != Some(Decision::Ask) || is_answerable {
            return;
        }
        let done = if profile.deny.is_empty() {
            "nothing is blocked"
        } else {
            "denied instead"
        };
        let (agent, event) = (&self.adapter.spec.name, self.native_event);
        let message = format!("no user can be asked here ({agent}, {event}); {done}");
        self.lose("ask", message);
        self.decision = Some(Decision::Deny);
    }

    /// A hook that ends the run also blocks what is about to happen. Where the run
    /// cannot be ended, the model gets the reason in place of the tool's result.
    fn resolve_stop(&mut self) {
        let is_feedback = self.spec.map(|spec| spec.blocking) == Some(Blocking::Feedback);
        let stands_in =
            is_feedback && self.profile.stop.is_empty() && !self.profile.deny.is_empty();
        let denies = (self.prevents() || stands_in) && self.decision != Some(Decision::Deny);
        if self.profile.stop.is_empty() {
            let done = if denies { "; denied instead" } else { "" };
            let (agent, event) = (&self.adapter.spec.name, self.native_event);
            let message = format!("{agent} cannot be stopped at {event}{done}");
            self.lose("continue", message);
        }
        if denies {
            self.decision = Some(Decision::Deny);
            let reason = self.reason.take();
            self.reason = reason.or_else(|| Some(DEFAULT_STOP_REASON.to_owned()));
        }
    }

    /// Fills in the reason. Returns whether it carries the context as well.
    fn fill_reason(&mut self, context: Option<&str>) -> bool {
        let profile = self.profile;
        let mut carries_context = false;
        let mut reason = self.reason.take();
        if matches!(self.decision, Some(Decision::Deny | Decision::Ask)) {
            let given = reason.filter(|text| !text.trim().is_empty());
            let default = match self.decision {
                Some(Decision::Ask) => DEFAULT_ASK_REASON,
                _ => DEFAULT_DENY_REASON,
            };
            let mut text = given.unwrap_or_else(|| default.to_owned());
            if let Some(context) = context
                && let (Some(Decision::Deny), Some(deny)) = (self.decision, profile.deny.first())
                && (profile.context.is_empty() || (deny.exit != 0 && !profile.reads_at(2)))
            {
                text = format!("{text}\n\n{context}");
                carries_context = true;
            }
            reason = Some(text);
        }
        if let Some(reason) = reason {
            self.holes.insert("reason".into(), json!(reason));
        }
        carries_context
    }

    fn add_decision(&mut self, response: &HookResponse) {
        let agent = &self.adapter.spec.name;
        match self.decision {
            Some(Decision::Deny) => {
                let is_added = self.add(AnswerPart::Deny);
                if !is_added {
                    let event = self.spec.map_or("this event", |spec| &spec.native);
                    self.lose("deny", format!("{agent} cannot be blocked at {event}"));
                }
            }
            Some(Decision::Ask) => {
                let is_added = self.add(AnswerPart::Ask);
                if !is_added {
                    self.describe(AnswerPart::Ask);
                }
            }
            Some(Decision::Allow) => {
                let grants = response.metadata.get(APPROVE_KEY) == Some(&Value::Bool(true))
                    || self.is_permission_request();
                if grants && !self.add(AnswerPart::Approve) {
                    self.lose("approve", format!("{agent} still asks its user"));
                }
            }
            None => {}
        }
    }

    fn finish(self) -> RenderedAnswer {
        let mut object = self.object;
        let is_silent = object.is_empty() && self.texts.is_empty() && self.exit == 0;
        let empty = self.profile.empty.as_ref().filter(|_| is_silent);
        if let Some(empty) = empty {
            object.clone_from(empty);
        }
        let stdout = if object.is_empty() && empty.is_none() {
            self.texts.join("\n")
        } else {
            Value::Object(object).to_string()
        };
        // An answer that is only `{}` has nothing on stderr.
        let is_bare = empty.is_some_and(Map::is_empty);
        let errors = if is_bare { Vec::new() } else { self.errors };
        let [stdout, stderr] = [stdout, errors.join("\n")].map(|mut text| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text
        });
        RenderedAnswer {
            stdout,
            stderr,
            exit: self.exit,
            lost: self.lost,
            effect: self.effect,
        }
    }
}

/// The reason of a deny that replaces a rewrite.
pub(crate) fn stuck_rewrite_reason(why: &str) -> String {
    format!("A hook changes the input of this call, but {why}; the call is denied instead.")
}

impl Adapter {
    fn profile(&self, event: Option<&EventSpec>) -> Option<&AnswerProfile> {
        self.spec.answers.get(event?.answer.as_ref()?)
    }

    /// Whether this event's answer can rewrite a tool's input.
    pub fn can_rewrite(&self, event: &EventSpec) -> bool {
        self.profile(Some(event))
            .is_some_and(|profile| !profile.rewrite.is_empty())
    }

    /// Whether this event's answer is read as JSON.
    pub fn has_structured_answer(&self, event: &EventSpec) -> bool {
        let Some(profile) = self.profile(Some(event)) else {
            return false;
        };
        let decided = profile.deny.iter().chain(&profile.rewrite);
        let mut templates = decided.chain(&profile.context).chain(&profile.message);
        templates.any(|template| template.stdout.is_object())
    }

    /// Every answer with which a hook can deny at an event, or ask the user, or end the
    /// run; exit codes aside.
    pub fn answer_forms(
        &self,
        event: &EventSpec,
        part: AnswerPart,
        reason: &str,
    ) -> Vec<RenderedAnswer> {
        let mut holes = Holes::from_iter([("event".to_owned(), json!(event.native))]);
        holes.insert("reason".to_owned(), json!(reason));
        let profile = self.profile(Some(event));
        let templates = profile
            .into_iter()
            .flat_map(|profile| profile.templates(part));
        let filled = templates.map(|template| RenderedAnswer {
            exit: template.exit,
            stdout: fill(template.stdout.get(), &holes)
                .filter(|filled| !filled.is_null())
                .map(|filled| filled.to_string())
                .unwrap_or_default(),
            ..RenderedAnswer::default()
        });
        filled.collect()
    }

    /// The answer that makes this agent do what the response asks for, as far as
    /// the agent can.
    pub fn render(
        &self,
        event: &HookEvent,
        response: &HookResponse,
        options: RenderOptions,
    ) -> RenderedAnswer {
        let spec = self.event_spec(event);
        let silent = AnswerProfile::default();
        let known = self.event_by_native(&event.native_event);
        let answered_event = known.map_or(event.native_event.as_str(), |spec| &spec.native);
        let mut draft = Draft {
            adapter: self,
            native_event: &event.native_event,
            spec,
            profile: self.profile(spec).unwrap_or(&silent),
            decision: response.decision,
            reason: response.reason.clone(),
            holes: Holes::from_iter([("event".to_owned(), json!(answered_event))]),
            object: Map::new(),
            texts: Vec::new(),
            errors: Vec::new(),
            exit: 0,
            lost: Vec::new(),
            effect: Vec::new(),
        };
        let stops = response.should_continue == Some(false);
        let context = response.context.as_deref().filter(|text| !text.is_empty());

        let rewrite = draft.resolve_rewrite(event, response, options);
        draft.resolve_ask(options);
        if stops {
            draft.resolve_stop();
        }
        let carries_context = draft.fill_reason(context);
        draft.add_decision(response);
        // A rewrite also means "allow" to some agents, which would undo the deny
        // that an unanswerable `ask` has become.
        if let Some(input) = rewrite.filter(|_| draft.decision != Some(Decision::Deny)) {
            let input = Value::Object(input);
            draft.holes.insert("updated_input".into(), input);
            if !draft.add(AnswerPart::Rewrite) {
                draft.describe(AnswerPart::Rewrite);
            }
        }
        if stops && !draft.profile.stop.is_empty() {
            let reason = || json!(DEFAULT_STOP_REASON);
            draft.holes.entry("reason").or_insert_with(reason);
            let lacks = "cannot do both that and the rest at";
            draft.add_or_lose(AnswerPart::Stop, None, "continue", lacks);
        }
        if let Some(context) = context.filter(|_| !carries_context) {
            let hole = Some(("context", context));
            let lacks = "gives the model no context at";
            draft.add_or_lose(AnswerPart::Context, hole, "context", lacks);
        }
        let message = response.system_message.as_deref();
        if let Some(message) = message.filter(|text| !text.is_empty()) {
            let hole = Some(("message", message));
            let lacks = "shows its user no message at";
            draft.add_or_lose(AnswerPart::Message, hole, "system_message", lacks);
        }
        if response.suppress_output == Some(true) {
            let lacks = "cannot hide output at";
            draft.add_or_lose(AnswerPart::Suppress, None, "suppress_output", lacks);
        }
        if let Some(action) = response.trigger_action.as_deref() {
            let agent = &self.spec.name;
            let message = format!("{agent} has no action that a hook can trigger: `{action}`");
            draft.lose("trigger_action", message);
        }
        let mut rendered = draft.finish();
        self.quirks.rendered(event, response, &mut rendered);
        rendered
    }

    /// The native input after a rewrite, or why the agent cannot apply it.
    fn rewrite(
        &self,
        event: &HookEvent,
        profile: &AnswerProfile,
        rewrite: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let agent = &self.spec.name;
        let native_event = &event.native_event;
        let Some(template) = profile.rewrite.first() else {
            return Err(format!(
                "{agent} accepts no changed input at {native_event}"
            ));
        };
        if let Some(key) = likeness::inferred_key(event, rewrite) {
            return Err(format!("this tool's own input has no `{key}`"));
        }
        let event = &*likeness::without_inferred(event);
        let Some(old) = event.tool_input() else {
            let parts = parts_of_input(template.stdout.get());
            let is_stuck = |key: &&String| {
                let parts = parts.as_ref();
                parts.is_some_and(|parts| !parts.contains(&key.as_str()))
            };
            return match rewrite.keys().find(is_stuck) {
                Some(key) => Err(format!("{agent} does not change `{key}` at {native_event}")),
                None => Ok(rewrite.clone()),
            };
        };
        let new = rewritten(old, rewrite);
        let row = self.own_row(event);
        let patches = row.is_some_and(|row| row.patch.is_some());
        if patches && !rewrite.contains_key("patch") && !rewrite.contains_key("files") {
            return Err("a patch is changed through `patch` or `files` only".to_owned());
        }
        if let Some(allowed) = row.and_then(|row| row.rewritable.as_ref())
            && let Some(key) = changed(old, &new)
                .keys()
                .find(|key| !allowed.iter().any(|one| one == key.as_str()))
        {
            return Err(format!("{agent} does not change `{key}` of this tool"));
        }
        let native = |input| self.native_input(event.native_tool_name(), row, input);
        let (before, after) = (native(old), native(&new));
        let delta = changed(&before, &after);
        if profile.rewrite_mode != RewriteMode::Replace
            && let Some(key) = removed(&before, &after).next()
        {
            return Err(format!("{agent} cannot leave out `{key}`"));
        }
        if profile.rewrite_mode == RewriteMode::Merge {
            return Ok(delta);
        }
        let payload = self.encode(event, None).map(|encoded| encoded.payload);
        let mut whole = self
            .rows(self.event_spec(event))
            .filter(|row| row.to == "tool_input")
            .find_map(|row| object_at(payload.as_ref()?, &row.at))
            .unwrap_or(&before)
            .clone();
        for key in removed(&before, &after) {
            whole.shift_remove(key);
        }
        whole.extend(delta);
        Ok(whole)
    }
}
