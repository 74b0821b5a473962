//! Answers that were meant to decide, and that the agent they are written for would not
//! read: an unknown word in a field that decides, a misspelt key, another agent's form, a
//! decision after other text. Most agents then let the call pass without telling the user.

use std::collections::{BTreeMap, BTreeSet};

use anyhook_model::suggest::nearest;
use anyhook_model::{Decision, HookEvent, HookResponse, lenient_json};
use serde_json::{Map, Value};

use super::decode::find_deny;
use crate::Adapter;
use crate::spec::{AnswerProfile, PlainText, Template};

/// Words for a refusal, without case.
const REFUSALS: [&str; 8] = [
    "deny", "denied", "block", "blocked", "reject", "rejected", "refuse", "no",
];

/// Words for "no objection", which agents understand or may well ignore.
const CONSENTS: [&str; 12] = [
    "", "allow", "allowed", "approve", "approved", "accept", "accepted", "continue", "none",
    "pass", "proceed", "yes",
];

/// Lines of an output at which an answer is looked for.
const MAX_ANSWER_STARTS: usize = 8;

/// How many characters of a value a message shows.
const MAX_SHOWN_CHARS: usize = 40;

/// Why an answer is not read as it was meant.
#[derive(Debug, PartialEq)]
pub(super) struct Misreading {
    pub why: String,
    pub means_deny: bool,
}

impl Misreading {
    fn new(why: impl Into<String>, means_deny: bool) -> Self {
        Self {
            why: why.into(),
            means_deny,
        }
    }
}

impl Adapter {
    /// For an output of which nothing decides.
    pub(super) fn find_misreading(
        &self,
        event: &HookEvent,
        profile: &AnswerProfile,
        text: &str,
        exit: i32,
    ) -> Option<Misreading> {
        if profile.deny.is_empty() || text.is_empty() {
            return None;
        }
        let agent = &self.spec.name;
        if text.starts_with('{') {
            let json = lenient_json::parse_answer(text).ok()?;
            if profile.reads_at(exit) {
                return self.misreading_of_object(profile, &json);
            }
            let is_deny = exit == 0 && is_deny_of_any(&json);
            let why = || format!("{agent} reads no JSON here, only the exit code");
            return is_deny.then(|| Misreading::new(why(), true));
        }
        if exit != 0 {
            return None;
        }
        let is_list_or_text =
            text.starts_with(['[', '"']) && lenient_json::parse_answer(text).is_ok();
        if is_list_or_text && profile.plain == PlainText::Ignored {
            return Some(Misreading::new("stdout is JSON, but not an object", false));
        }
        let json = answer_after_text(text)?;
        let mut response = HookResponse::default();
        if profile.reads_at(exit) {
            self.read_json(event, profile, &json, &mut response);
        }
        let refuses = response.decision.is_some_and(|it| it != Decision::Allow)
            || response.should_continue == Some(false);
        let inner = self.misreading_of_object(profile, &json);
        let means_deny = response.is_deny() || inner.as_ref().is_some_and(|it| it.means_deny);
        let why = format!("{agent} reads no answer that comes after other text on stdout");
        (refuses || inner.is_some()).then(|| Misreading::new(why, means_deny))
    }

    fn misreading_of_object(&self, profile: &AnswerProfile, json: &Value) -> Option<Misreading> {
        let object = json.as_object()?;
        let words = DecidingWords::in_profile(profile);
        words
            .unknown_word(json)
            .or_else(|| self.misspelt_key(&words, json))
            .or_else(|| {
                let is_strange = has_unknown_key(profile, object, "");
                let is_own = self.is_deny_elsewhere(json);
                let is_deny = is_own || (is_strange && is_deny_of_any(json));
                let agent = &self.spec.name;
                let why = || format!("it denies in a form that {agent} does not read here");
                is_deny.then(|| Misreading::new(why(), true))
            })
    }

    /// A key that nearly is one of those that decide.
    fn misspelt_key(&self, words: &DecidingWords<'_>, json: &Value) -> Option<Misreading> {
        words.by_parent().into_iter().find_map(|(parent, keys)| {
            let object = json.pointer(&parent)?.as_object()?;
            let known = known_keys(self.spec.answers.values(), &parent);
            let mut unknown = object
                .iter()
                .filter(|(key, value)| !known.contains(key.as_str()) && !value.is_null());
            unknown.find_map(|(key, value)| {
                let meant = nearest(key, keys.iter().copied())?;
                let why = format!("`{key}` is not a field of an answer; did you mean `{meant}`?");
                Some(Misreading::new(why, is_refusal(value)))
            })
        })
    }

    /// Whether it denies at another event of the agent.
    fn is_deny_elsewhere(&self, json: &Value) -> bool {
        let denies = self.spec.answers.values().flat_map(|it| &it.deny);
        find_deny(denies, json).is_some()
    }
}

fn is_deny_of_any(json: &Value) -> bool {
    let object = json.as_object();
    object.is_some_and(|object| Adapter::read_deny_of_any(object).is_some())
}

/// The object that the output ends with, if a line before its end begins it.
fn answer_after_text(text: &str) -> Option<Value> {
    let mut end_of_line = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let start = end_of_line;
        end_of_line += line.len();
        (start, line)
    });
    let starts = lines.filter(|(_, line)| line.trim_start().starts_with('{'));
    let mut ends = starts.take(MAX_ANSWER_STARTS).filter_map(|(start, _)| {
        let rest = text.get(start..)?;
        lenient_json::parse_answer(rest.trim()).ok()
    });
    ends.find(Value::is_object)
}

fn all_templates(profile: &AnswerProfile) -> impl Iterator<Item = &Template> {
    [
        &profile.deny,
        &profile.ask,
        &profile.approve,
        &profile.stop,
        &profile.context,
        &profile.message,
        &profile.rewrite,
        &profile.suppress,
    ]
    .into_iter()
    .flatten()
}

/// Every key that these profiles have in the object at `parent`.
fn known_keys<'a>(
    profiles: impl IntoIterator<Item = &'a AnswerProfile>,
    parent: &str,
) -> BTreeSet<&'a str> {
    let templates = profiles.into_iter().flat_map(all_templates);
    let objects = templates.filter_map(|template| template.stdout.get().pointer(parent));
    let objects = objects.filter_map(Value::as_object);
    objects.flat_map(Map::keys).map(String::as_str).collect()
}

/// Whether the object at `parent`, or one in it that the profile knows, has a key that it
/// does not know.
fn has_unknown_key(profile: &AnswerProfile, object: &Map<String, Value>, parent: &str) -> bool {
    let known = known_keys([profile], parent);
    // What is in a hole is the hook's own, such as a new input.
    !known.is_empty()
        && object.iter().any(|(key, value)| {
            let inner = value.as_object();
            let is_strange = |inner| has_unknown_key(profile, inner, &format!("{parent}/{key}"));
            !known.contains(key.as_str()) || inner.is_some_and(is_strange)
        })
}

fn is_refusal(value: &Value) -> bool {
    let is_word = |text: &str| REFUSALS.contains(&text.trim().to_lowercase().as_str());
    value.as_str().is_some_and(is_word)
}

/// The fields by which a profile decides, and the words that it knows there.
struct DecidingWords<'a> {
    /// By JSON pointer: the words that decide.
    deciding: BTreeMap<String, Vec<&'a Value>>,
    /// Those of a deny.
    denying: BTreeMap<String, Vec<&'a Value>>,
    /// Words at the same places in parts of an answer that do not decide.
    harmless: BTreeMap<String, Vec<&'a Value>>,
}

impl<'a> DecidingWords<'a> {
    fn in_profile(profile: &'a AnswerProfile) -> Self {
        let collect = |lists: &[&'a Vec<Template>]| {
            let mut words = BTreeMap::new();
            for template in lists.iter().flat_map(|list| list.iter()) {
                collect_words(template.stdout.get(), "", &mut words);
            }
            words
        };
        Self {
            deciding: collect(&[&profile.deny, &profile.ask, &profile.stop]),
            denying: collect(&[&profile.deny]),
            harmless: collect(&[
                &profile.approve,
                &profile.context,
                &profile.message,
                &profile.rewrite,
                &profile.suppress,
            ]),
        }
    }

    /// The keys that decide, by the pointer of the object they are in.
    fn by_parent(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut parents: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for pointer in self.deciding.keys() {
            let mut rest = pointer.as_str();
            while let Some((parent, key)) = rest.rsplit_once('/') {
                parents.entry(parent.to_owned()).or_default().insert(key);
                rest = parent;
            }
        }
        parents
    }

    /// A value that the agent does not know, or one whose surroundings it does not.
    fn unknown_word(&self, json: &Value) -> Option<Misreading> {
        self.deciding.iter().find_map(|(pointer, words)| {
            let value = json.pointer(pointer).filter(|value| !value.is_null())?;
            let is_harmless = self.harmless.get(pointer);
            let is_harmless = is_harmless.is_some_and(|words| words.contains(&value));
            let is_switch = value.is_boolean() && words.iter().any(|word| word.is_boolean());
            let is_consent = |text: &str| {
                let word = text.trim().to_lowercase();
                CONSENTS.contains(&word.as_str())
            };
            if is_harmless || is_switch || value.as_str().is_some_and(is_consent) {
                return None;
            }
            let denying = self.denying.get(pointer);
            // A switch that is written as a text, such as "true".
            let is_quoted = |word: &&Value| {
                let text = value.as_str().map(|text| text.trim().to_lowercase());
                word.is_boolean() && text.as_deref() == Some(word.to_string().as_str())
            };
            let is_quoted = denying.is_some_and(|words| words.iter().any(is_quoted));
            let shown: String = value.to_string().chars().take(MAX_SHOWN_CHARS).collect();
            let key = pointer.trim_start_matches('/').replace('/', ".");
            let why = if words.contains(&value) {
                format!("`{key}` is {shown}, and the rest of the answer does not fit")
            } else {
                let known: Vec<String> = words.iter().map(ToString::to_string).collect();
                let known = known.join(", ");
                format!("`{key}` is {shown}, which means nothing; what decides is {known}")
            };
            Some(Misreading::new(why, is_refusal(value) || is_quoted))
        })
    }
}

/// The fixed values of a template, by their pointers.
fn collect_words<'a>(
    template: &'a Value,
    pointer: &str,
    words: &mut BTreeMap<String, Vec<&'a Value>>,
) {
    match template {
        Value::Object(map) => {
            for (key, inner) in map {
                collect_words(inner, &format!("{pointer}/{key}"), words);
            }
        }
        Value::String(text) if text.contains('{') => {}
        Value::Array(_) | Value::Null => {}
        _ if pointer.is_empty() => {}
        word => {
            let known = words.entry(pointer.to_owned()).or_default();
            if !known.contains(&word) {
                known.push(word);
            }
        }
    }
}
