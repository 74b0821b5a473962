//! Selects the hooks of one event from the manifests, and checks whether each may
//! run.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_model::hook::DEFAULT_TIMEOUT_SECS;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{
    Diagnostic, Format, Handler, Hook, HookEvent, HookRun, Manifest, PolicyRefusal, RunOutcome,
    Scope, explain, interpreter, matches, snippet,
};
use anyhook_util::fs::read_bytes;
use anyhook_util::hash::sha256;
use anyhook_util::shell;
use anyhook_util::system::OperatingSystem;
use serde::{Deserialize, Serialize};

use crate::config::discover::{ConfigSource, LoadProblem, MAX_UNAPPROVED_BYTES};
use crate::config::known_texts;
use crate::config::manifest_cache::{self, CacheLookup, ManifestFacts, ManifestHooks};
use crate::config::policy::Rulebook;
use crate::config::trust::{
    self, Approval, CheckedFiles, Consent, Distrust, Inspected, RequiredHook,
};
use crate::config::unknown_names;
use crate::engine::Engine;
use crate::run::exec::command_files::CommandFiles;
use crate::run::guard::{GuardCommand, MAX_RULES_BYTES};

/// Of a larger script nothing is inferred.
const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;

/// Enough to tell the hooks of one record apart.
const CONTENT_HASH_DIGITS: usize = 16;

/// A hook of one event, with what is needed to run it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SelectedHook<'a> {
    pub hook: Cow<'a, Hook>,
    /// Its name, or `#3` by position.
    pub label: String,
    /// Its position in the manifest, which tells hooks of the same name apart.
    pub position: usize,
    pub scope: Scope,
    pub manifest: Cow<'a, Path>,
    /// The project's root.
    pub root: Cow<'a, Path>,
}

impl SelectedHook<'_> {
    pub fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(&self.root)
    }

    /// The files that its commands name.
    fn files(&self) -> CommandFiles {
        trust::hook_files(&self.hook, self.scope, &self.root, self.folder())
    }

    /// The text of what runs, as far as it can be read: its commands and their scripts.
    pub(crate) fn program_text(&self) -> String {
        let handler = &self.hook.handler;
        let command = command(handler).map(|command| command.to_line(|_| None).into_owned());
        let files = self.files().files.into_iter();
        let scripts = files.filter_map(|path| read_bytes(&path, MAX_SCRIPT_BYTES).ok());
        let texts = command.map(String::into_bytes).into_iter().chain(scripts);
        String::from_utf8_lossy(&texts.collect::<Vec<_>>().join(&b'\n')).into_owned()
    }

    /// A run of this hook, for the journal.
    pub(crate) fn new_run(&self, outcome: RunOutcome, message: Option<String>) -> HookRun {
        HookRun {
            hook: self.label.clone(),
            manifest: self.manifest.to_string_lossy().into_owned(),
            content: self.content_hash(),
            outcome,
            message,
            ..HookRun::default()
        }
    }

    /// The same for every copy of this hook: statistics count it once, whoever's home its
    /// manifest is in.
    fn content_hash(&self) -> Option<String> {
        let text = serde_json::to_vec(&self.hook).ok()?;
        let mut hash = sha256(&text);
        hash.truncate(CONTENT_HASH_DIGITS);
        Some(hash)
    }
}

/// A manifest without mistakes.
#[derive(Debug)]
pub(crate) struct LoadedManifest {
    pub(crate) source: ConfigSource,
    text_hash: String,
    pub(super) hooks: ManifestHooks,
    /// Its hooks run one after another.
    pub(crate) is_sequential: bool,
    /// What its hooks are for by mistake, in words for the user.
    unknown_names: Vec<String>,
    /// `Ok(None)`: trusted as a whole, by its location or because the engine
    /// trusts everything. With a consent, the files of each hook are compared
    /// just before it runs.
    trust: Result<Option<Consent>, Distrust>,
    /// The calls that are blocked because it is not trusted any more.
    required: Vec<RequiredHook>,
}

/// Loads the manifests of an event.
pub(super) struct ManifestLoader<'a> {
    engine: &'a Engine,
    /// With an event only its hooks are loaded, if they are cached.
    event: Option<&'a HookEvent>,
    inspected: &'a Inspected,
    /// How much that is not approved is still parsed.
    unapproved_bytes: u64,
    /// Of cached copies, for the user.
    pub(super) notices: Vec<String>,
}

impl<'a> ManifestLoader<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        event: Option<&'a HookEvent>,
        inspected: &'a Inspected,
    ) -> Self {
        Self {
            engine,
            event,
            inspected,
            unapproved_bytes: MAX_UNAPPROVED_BYTES,
            notices: Vec::new(),
        }
    }

    /// `None` if a manifest has mistakes, which are added to `problems`.
    pub(super) fn load(
        &mut self,
        mut source: ConfigSource,
        problems: &mut Vec<LoadProblem>,
    ) -> Option<LoadedManifest> {
        let engine = self.engine;
        let text_hash = source.text_hash();
        let (trust, mut required) = match source.scope {
            _ if engine.trust_all => (Ok(None), Some(Vec::new())),
            Scope::Managed | Scope::User => {
                let trust = trust::by_location(&source).map(|()| None);
                (trust, Some(Vec::new()))
            }
            Scope::Project => {
                let Approval { trust, required } =
                    engine
                        .trust
                        .approval(&source.path, &source.root, &text_hash, self.inspected);
                (trust.map(Some), required)
            }
        };
        if trust.is_err()
            && let Err(problem) = source.load_text()
        {
            problems.push(problem);
            return None;
        }
        let (hooks, facts) = match (&trust, source.scope) {
            (Err(_), Scope::Project) if required.is_some() => {
                (self.unapproved_hooks(&source), ManifestFacts::default())
            }
            (Err(_), Scope::Project) => {
                // The records that name the required ones are damaged.
                let hooks = parse_usable(&source, problems)?.hooks;
                required = Some(trust::required_hooks(&hooks));
                (ManifestHooks::All(hooks), ManifestFacts::default())
            }
            _ => self.hooks(&mut source, &text_hash, trust.is_ok(), problems)?,
        };
        Some(LoadedManifest {
            source,
            text_hash,
            hooks,
            is_sequential: facts.is_sequential,
            unknown_names: facts.unknown_names,
            trust,
            required: required.unwrap_or_default(),
        })
    }

    /// The hooks of a project's manifest that does not run: they are only recorded,
    /// as far as that costs little. Its mistakes are shown when it is approved.
    fn unapproved_hooks(&mut self, source: &ConfigSource) -> ManifestHooks {
        let left = self.unapproved_bytes.checked_sub(source.text.len() as u64);
        let manifest = left.and_then(|left| {
            self.unapproved_bytes = left;
            parse_manifest(source).0
        });
        ManifestHooks::All(manifest.map(|manifest| manifest.hooks).unwrap_or_default())
    }

    fn hooks(
        &mut self,
        source: &mut ConfigSource,
        text_hash: &str,
        is_trusted: bool,
        problems: &mut Vec<LoadProblem>,
    ) -> Option<(ManifestHooks, ManifestFacts)> {
        let dirs = &self.engine.dirs;
        // What the user can write does not count for the administrator's hooks.
        let has_cache = source.scope != Scope::Managed && dirs.is_state_trusted();
        let event = self.event.filter(|_| has_cache);
        let state = &dirs.state;
        let hash = event.map(|_| manifest_cache::manifest_hash(format(source), text_hash));
        let lookup = event.zip(hash.as_deref());
        match lookup.map(|(event, hash)| ManifestHooks::load(state, hash, event)) {
            Some(CacheLookup::Found(hooks, facts)) => {
                if let (Some(stamp), None) = (&source.stamp, &source.known_hash) {
                    known_texts::remember(state, &source.path, stamp, text_hash);
                }
                return Some((hooks, facts));
            }
            Some(CacheLookup::Tampered) => {
                let path = source.path.display();
                self.notices.push(format!(
                    "the cached copy of `{path}` in `{}` was changed by something other than anyhook; it was not used and is written again",
                    state.display()
                ));
            }
            Some(CacheLookup::Missing) | None => {}
        }
        if let Err(problem) = source.load_text() {
            problems.push(problem);
            return None;
        }
        let manifest = parse_usable(source, problems)?;
        let facts = ManifestFacts {
            is_sequential: manifest.is_sequential(),
            unknown_names: unknown_names(&manifest.hooks),
        };
        let hooks = manifest.hooks;
        // Nothing of an untrusted project is stored among the user's files.
        if let Some(hash) = hash.filter(|_| is_trusted) {
            ManifestHooks::save(&hooks, &facts, state, &hash);
        }
        Some((ManifestHooks::All(hooks), facts))
    }
}

/// What the hooks of a manifest are for by mistake, each with the hook's name.
fn unknown_names(hooks: &[Hook]) -> Vec<String> {
    let hooks = hooks.iter().enumerate();
    let named = hooks.flat_map(|(position, hook)| {
        let label = trust::label(hook, position);
        let names = unknown_names::unknown_names(hook).into_iter();
        names.map(move |why| format!("hook `{label}`: {why}"))
    });
    named.collect()
}

impl LoadedManifest {
    /// The consent that it runs by.
    pub(super) fn consent(&self) -> Option<&Consent> {
        self.trust.as_ref().ok()?.as_ref()
    }

    /// The manifest in another tree of the repository by whose consent it runs.
    pub(crate) fn trusted_in(&self) -> Option<&Path> {
        self.consent()?.given_to.as_deref()
    }

    /// Whether an event is blocked because it is not trusted any more.
    pub(crate) fn is_required_for(&self, event: &HookEvent) -> bool {
        self.required.iter().any(|hook| hook.is_for(event))
    }

    /// Whether this is the same manifest, in another tree of the repository, and
    /// both are trusted.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        let consents = self.consent().zip(other.consent());
        consents.is_some_and(|(own, others)| {
            self.source.path != other.source.path
                && self.text_hash == other.text_hash
                && own.is_of_same_project(others)
        })
    }

    /// For the user: hooks that never run as they are meant to, because a name in them
    /// means nothing.
    pub(super) fn mistaken_names(&self) -> impl Iterator<Item = String> {
        let path = self.source.path.display();
        let names = self.unknown_names.iter().filter(|_| self.trust.is_ok());
        names.map(move |why| {
            format!("{why}, in `{path}`; until that is corrected, it does not do what it says")
        })
    }

    pub(crate) fn distrust(&self) -> Option<&Distrust> {
        self.trust.as_ref().err()
    }

    /// The hooks for this event.
    pub(crate) fn hooks_for(&self, event: &HookEvent) -> Vec<SelectedHook<'_>> {
        let Some(hooks) = self.hooks.hooks_for(event) else {
            let mut all = self.all_hooks();
            all.retain(|selected| mismatch(&selected.hook, event).is_none());
            return all;
        };
        let hooks = hooks.into_iter();
        hooks.map(|(at, hook)| self.select(hook, at)).collect()
    }

    /// Whether any of its hooks would run for an event.
    pub(crate) fn judge(
        &self,
        selected: &SelectedHook<'_>,
        event: &HookEvent,
        rules: &Rulebook,
    ) -> HookVerdict {
        mismatch(&selected.hook, event).unwrap_or_else(|| self.may_run(selected, rules))
    }

    /// Why it cannot be used, approved or not.
    pub(crate) fn mistakes(&self) -> Vec<LoadProblem> {
        let mut problems = Vec::new();
        parse_usable(&self.source, &mut problems);
        problems
    }

    pub(crate) fn all_hooks(&self) -> Vec<SelectedHook<'_>> {
        let mut source = Cow::Borrowed(&self.source);
        if source.known_hash.is_some() {
            // If it was changed meanwhile, nothing of it is known to be approved.
            let _ = source.to_mut().load_text();
        }
        let manifest = parse_manifest(&source).0;
        let hooks = manifest.into_iter().flat_map(|manifest| manifest.hooks);
        hooks
            .enumerate()
            .map(|(position, hook)| self.select(Cow::Owned(hook), position))
            .collect()
    }

    fn select<'a>(&'a self, hook: Cow<'a, Hook>, position: usize) -> SelectedHook<'a> {
        SelectedHook {
            label: trust::label(&hook, position),
            position,
            hook,
            scope: self.source.scope,
            manifest: Cow::Borrowed(&self.source.path),
            root: Cow::Borrowed(&self.source.root),
        }
    }

    /// Must be called just before the hook runs: an earlier hook may have
    /// changed its script.
    pub(crate) fn may_run(&self, selected: &SelectedHook<'_>, rules: &Rulebook) -> HookVerdict {
        match self.check_files(selected) {
            Ok(_) => admit(selected, rules),
            Err(why) => HookVerdict::Untrusted(why),
        }
    }

    /// As [`Self::may_run`], with the files as they were found.
    pub(crate) fn check(
        &self,
        selected: &SelectedHook<'_>,
        rules: &Rulebook,
    ) -> (HookVerdict, CheckedFiles) {
        match self.check_files(selected) {
            Ok(checked) => (admit(selected, rules), checked),
            Err(why) => (HookVerdict::Untrusted(why), CheckedFiles::default()),
        }
    }

    fn check_files(&self, selected: &SelectedHook<'_>) -> Result<CheckedFiles, Distrust> {
        match &self.trust {
            Err(why) => Err(why.clone()),
            Ok(Some(consent)) => {
                let is_guard = GuardCommand::is_run_by(&selected.hook.handler);
                consent.check(&selected.files(), is_guard.then_some(MAX_RULES_BYTES))
            }
            Ok(None) if selected.scope == Scope::Project => Ok(CheckedFiles::default()),
            Ok(None) => {
                let (hook, scope, root) = (&selected.hook, selected.scope, &selected.root);
                trust::by_script_location(hook, scope, root, selected.folder())?;
                Ok(CheckedFiles::default())
            }
        }
    }
}

/// Whether the policies let a trusted hook run.
fn admit(selected: &SelectedHook<'_>, rules: &Rulebook) -> HookVerdict {
    let hook = &*selected.hook;
    let script = rules.needs_script().then(|| selected.program_text());
    let folder = Some(selected.folder());
    match rules.admit(folder, selected.scope, hook, script.as_deref()) {
        Ok(()) => HookVerdict::Runs,
        Err(refusal) => HookVerdict::Refused(refusal),
    }
}

/// Why a hook is not for an event.
fn mismatch(hook: &Hook, event: &HookEvent) -> Option<HookVerdict> {
    if hook.event != event.event && hook.event != event.native_event {
        return Some(HookVerdict::OtherEvent);
    }
    (!matches(hook.matcher.as_ref(), event)).then_some(HookVerdict::OtherTool)
}

fn format(source: &ConfigSource) -> Format {
    Format::from_path(&source.path.to_string_lossy()).unwrap_or(Format::Yaml)
}

fn parse_manifest(source: &ConfigSource) -> (Option<Manifest>, Vec<Diagnostic>) {
    parse::manifest(&source.text, format(source), &Vocabulary::default())
}

/// `None` if it has mistakes, which are added to `problems`.
fn parse_usable(source: &ConfigSource, problems: &mut Vec<LoadProblem>) -> Option<Manifest> {
    let (manifest, findings) = parse_manifest(source);
    if manifest.is_none() {
        problems.push(parse_problem(source, &findings));
    }
    manifest
}

/// Whether a hook runs for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookVerdict {
    Runs,
    OtherEvent,
    OtherTool,
    /// Its `if` does not hold.
    OtherCall,
    Untrusted(Distrust),
    Refused(PolicyRefusal),
}

impl HookVerdict {
    /// An explanation for the author of the hook.
    pub(crate) fn explain(&self, hook: &Hook, event: &HookEvent) -> String {
        match self {
            Self::OtherEvent => format!("it is for `{}`, this is `{}`", hook.event, event.event),
            Self::OtherCall => "its `if` does not hold for this call".to_owned(),
            Self::Runs | Self::OtherTool => explain(hook.matcher.as_ref(), event).why,
            Self::Untrusted(why) => why.to_string(),
            Self::Refused(refusal) => refusal.to_string(),
        }
    }
}

/// The first mistake in a file, with its position.
pub fn parse_problem(source: &ConfigSource, findings: &[Diagnostic]) -> LoadProblem {
    let first = findings.iter().find(|finding| finding.is_error());
    let message = match first {
        Some(finding) => {
            let name = source.path.to_string_lossy();
            let position =
                snippet::SourceText::new(&name, &source.text).position(finding.span.start);
            format!(
                "line {}, column {}: {}",
                position.line, position.column, finding.message
            )
        }
        None => "it cannot be read".to_owned(),
    };
    LoadProblem {
        scope: source.scope,
        path: source.path.clone(),
        message,
    }
}

/// What a handler starts.
#[derive(Debug, Clone, Copy)]
pub enum HandlerCommand<'a> {
    /// A line for the shell.
    Line(&'a str),
    /// A program and its arguments, without a shell.
    Program(&'a str, &'a [String]),
}

impl<'a> HandlerCommand<'a> {
    /// The handler's main command.
    pub(crate) fn main(handler: &'a Handler) -> Option<Self> {
        let command = handler.command.as_deref()?;
        Some(match &handler.args {
            Some(args) => Self::Program(command, args),
            None => Self::Line(command),
        })
    }

    /// The program and its arguments, with the variables that `value` knows in
    /// place of `${NAME}`; `None` for a line, which the shell expands.
    pub(crate) fn words(self, value: impl Fn(&str) -> Option<String>) -> Option<Vec<String>> {
        let Self::Program(program, args) = self else {
            return None;
        };
        let words = std::iter::once(program).chain(args.iter().map(String::as_str));
        Some(words.map(|word| expand_braced(word, &value)).collect())
    }

    /// As one line for a shell, which means the same.
    pub(crate) fn to_line(self, value: impl Fn(&str) -> Option<String>) -> Cow<'a, str> {
        match self {
            Self::Line(line) => Cow::Borrowed(line),
            Self::Program(..) => Cow::Owned(shell::join(&self.words(value).unwrap_or_default())),
        }
    }

    /// Whether the event on its input would run as a script.
    pub(crate) fn runs_its_input(self) -> bool {
        match self {
            Self::Line(line) => interpreter::runs_its_input(line, None),
            Self::Program(program, args) => interpreter::runs_its_input(program, Some(args)),
        }
    }
}

/// Replaces `${NAME}` where the value is known.
fn expand_braced(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let known = after
            .split_once('}')
            .and_then(|(name, tail)| Some((value(name)?, tail)));
        if let Some((value, tail)) = known {
            expanded.push_str(&value);
            rest = tail;
        } else {
            expanded.push_str("${");
            rest = after;
        }
    }
    expanded.push_str(rest);
    expanded
}

/// The command for this system.
pub fn command(handler: &Handler) -> Option<HandlerCommand<'_>> {
    let own = own_command(handler, OperatingSystem::CURRENT).map(HandlerCommand::Line);
    own.or_else(|| HandlerCommand::main(handler))
}

/// Whether the command was written for this system only.
pub(crate) fn has_own_command(handler: &Handler) -> bool {
    own_command(handler, OperatingSystem::CURRENT).is_some()
}

fn own_command(handler: &Handler, system: OperatingSystem) -> Option<&str> {
    let own = match system {
        OperatingSystem::Windows => &handler.platform.windows,
        OperatingSystem::MacOs => &handler.platform.osx,
        OperatingSystem::Linux => &handler.platform.linux,
    };
    own.as_deref()
}

/// The working directory: the handler's `cwd` under the project's root.
pub(crate) fn working_dir(handler: &Handler, root: &Path) -> PathBuf {
    let cwd = handler.cwd.as_ref();
    cwd.map_or_else(|| root.to_owned(), |cwd| root.join(cwd))
}

/// How long a handler may run; absent, 0 and negative numbers mean the default.
pub fn timeout(handler: &Handler) -> Duration {
    let stated = handler.timeout.filter(|seconds| *seconds > 0.0);
    let seconds = stated.unwrap_or(DEFAULT_TIMEOUT_SECS);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(24 * 3600))
}

#[cfg(test)]
mod tests {
    use super::*;
    use OperatingSystem::{Linux, MacOs, Windows};
    use anyhook_model::hook::Platform;

    #[test]
    fn each_system_takes_its_own_command() {
        let handler = Handler {
            command: Some("any".to_owned()),
            platform: Platform {
                windows: Some("w".to_owned()),
                osx: Some("m".to_owned()),
                linux: None,
                ..Platform::default()
            },
            ..Handler::default()
        };
        let own = [Windows, MacOs, Linux].map(|system| own_command(&handler, system));
        assert_eq!(own, [Some("w"), Some("m"), None]);
    }
}
