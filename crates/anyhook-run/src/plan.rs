//! From manifests to the hooks of one event.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_model::hook::DEFAULT_TIMEOUT_SECS;
use anyhook_model::parse::{self, Vocabulary};
use anyhook_model::{
    Diagnostic, Format, Handler, Hook, HookEvent, Manifest, Refusal, Scope, explain, matches,
    snippet,
};
use serde::{Deserialize, Serialize};

use crate::compiled::{self, Compiled};
use crate::discover::{Source, Trouble};
use crate::engine::Engine;
use crate::policy::Rulebook;
use crate::trust::{self, Consent, Distrust, TrustStatus};

/// A hook with all that running it needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Planned<'a> {
    pub hook: Cow<'a, Hook>,
    /// Its name, or `#3` by position.
    pub label: String,
    pub scope: Scope,
    pub manifest: Cow<'a, Path>,
    /// The project's root.
    pub root: Cow<'a, Path>,
}

impl Planned<'_> {
    pub fn folder(&self) -> &Path {
        self.manifest.parent().unwrap_or(&self.root)
    }

    /// The working directory: the handler's `cwd` under the project's root.
    pub fn cwd(&self) -> PathBuf {
        match &self.hook.handler.cwd {
            Some(cwd) => self.root.join(cwd),
            None => self.root.to_path_buf(),
        }
    }
}

/// A manifest that could be read.
#[derive(Debug)]
pub struct Loaded {
    pub source: Source,
    compiled: Compiled,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    /// By place, or because the caller trusts everything.
    Whole,
    /// By content: each hook's files are compared when it is to run.
    Consent(Consent),
    None(Distrust),
}

impl Loaded {
    /// Reads a manifest; it is `None` when that is a trouble.
    pub fn new(source: Source, engine: &Engine, troubles: &mut Vec<Trouble>) -> Option<Self> {
        let sha256 = trust::hash(source.text.as_bytes());
        let trust = match source.scope {
            _ if engine.trust_all => Trust::Whole,
            Scope::Managed | Scope::User => match trust::by_place(&source.path) {
                TrustStatus::Trusted => Trust::Whole,
                TrustStatus::Untrusted(why) => Trust::None(why),
            },
            Scope::Project => match engine.trust.get(&source.path) {
                None => Trust::None(Distrust::Never),
                Some(consent) if consent.sha256 == sha256 => Trust::Consent(consent),
                Some(_) => Trust::None(Distrust::Changed(vec![source.path.clone()])),
            },
        };
        let state = &engine.dirs.state;
        let key = compiled::key(format(&source), &source.text);
        let kept = Compiled::load(state, &key);
        let compiled = kept.or_else(|| {
            let (manifest, findings) = parsed(&source);
            let compiled = manifest.as_ref().and_then(Compiled::new);
            match &compiled {
                // What a stranger wrote does not get a place among the user's files.
                Some(_) if matches!(trust, Trust::None(_)) => {}
                Some(compiled) => compiled.save(state, &key),
                None => troubles.push(broken(&source, &findings)),
            }
            compiled
        })?;
        Some(Self {
            source,
            compiled,
            trust,
        })
    }

    pub fn distrust(&self) -> Option<&Distrust> {
        match &self.trust {
            Trust::None(why) => Some(why),
            Trust::Whole | Trust::Consent(_) => None,
        }
    }

    /// The hooks that are for this event.
    pub fn due(&self, event: &HookEvent) -> Vec<Planned<'_>> {
        let Some(due) = self.compiled.due(event) else {
            let mut all = self.hooks();
            all.retain(|planned| fit(&planned.hook, event).is_none());
            return all;
        };
        let due = due.into_iter();
        due.map(|(position, hook)| self.planned(hook, position))
            .collect()
    }

    /// For a process that will ask for many events.
    pub fn read_all(&mut self) {
        self.compiled.read_all();
    }

    /// Every hook, and whether it would run.
    pub fn all(&self, event: &HookEvent, rules: &Rulebook) -> Vec<(Planned<'_>, Verdict)> {
        let hooks = self.hooks().into_iter();
        hooks
            .map(|planned| {
                let verdict = fit(&planned.hook, event);
                let verdict = verdict.unwrap_or_else(|| self.may_run(&planned, rules));
                (planned, verdict)
            })
            .collect()
    }

    fn hooks(&self) -> Vec<Planned<'_>> {
        let manifest = parsed(&self.source).0;
        let hooks = manifest.into_iter().flat_map(|manifest| manifest.hooks);
        hooks
            .enumerate()
            .map(|(position, hook)| self.planned(Cow::Owned(hook), position))
            .collect()
    }

    fn planned<'a>(&'a self, hook: Cow<'a, Hook>, position: usize) -> Planned<'a> {
        Planned {
            label: trust::label(&hook, position),
            hook,
            scope: self.source.scope,
            manifest: Cow::Borrowed(&self.source.path),
            root: Cow::Borrowed(&self.source.root),
        }
    }

    /// Asked just before it runs: an earlier hook may have changed its script.
    pub fn may_run(&self, planned: &Planned<'_>, rules: &Rulebook) -> Verdict {
        let hook = &*planned.hook;
        let files = || trust::hook_files(hook, planned.scope, &planned.root, planned.folder());
        match &self.trust {
            Trust::None(why) => return Verdict::Untrusted(why.clone()),
            Trust::Consent(consent) => {
                let changed = consent.changed(&files());
                if !changed.is_empty() {
                    return Verdict::Untrusted(Distrust::Changed(changed));
                }
            }
            Trust::Whole => {}
        }
        let script = rules.needs_script().then(|| {
            let read = |path: &PathBuf| std::fs::read(path).ok();
            let texts = files()
                .iter()
                .filter_map(read)
                .flatten()
                .collect::<Vec<u8>>();
            String::from_utf8_lossy(&texts).into_owned()
        });
        match rules.admit_at(planned.folder(), planned.scope, hook, script.as_deref()) {
            Ok(()) => Verdict::Runs,
            Err(refusal) => Verdict::Refused(refusal),
        }
    }
}

/// Why a hook is not for an event.
fn fit(hook: &Hook, event: &HookEvent) -> Option<Verdict> {
    if hook.event != event.event && hook.event != event.native_event {
        return Some(Verdict::OtherEvent);
    }
    (!matches(hook.matcher.as_ref(), event)).then_some(Verdict::OtherTool)
}

fn format(source: &Source) -> Format {
    Format::from_path(&source.path.to_string_lossy()).unwrap_or(Format::Yaml)
}

fn parsed(source: &Source) -> (Option<Manifest>, Vec<Diagnostic>) {
    parse::manifest(&source.text, format(source), &Vocabulary::default())
}

/// Whether a hook runs for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Runs,
    OtherEvent,
    OtherTool,
    Untrusted(Distrust),
    Refused(Refusal),
}

impl Verdict {
    /// In words, for the author of the hook.
    pub fn explain(&self, hook: &Hook, event: &HookEvent) -> String {
        match self {
            Self::OtherEvent => format!("it is for `{}`, this is `{}`", hook.event, event.event),
            Self::Runs | Self::OtherTool => explain(hook.matcher.as_ref(), event).why,
            Self::Untrusted(why) => why.to_string(),
            Self::Refused(refusal) => refusal.to_string(),
        }
    }
}

/// The first mistake of a file, with its place.
pub fn broken(source: &Source, findings: &[Diagnostic]) -> Trouble {
    let first = findings.iter().find(|finding| finding.is_error());
    let message = match first {
        Some(finding) => {
            let name = source.path.to_string_lossy();
            let position = snippet::Source::new(&name, &source.text).position(finding.span.start);
            format!(
                "line {}, column {}: {}",
                position.line, position.column, finding.message
            )
        }
        None => "it cannot be read".to_owned(),
    };
    Trouble {
        scope: source.scope,
        path: source.path.clone(),
        message,
    }
}

/// The command line for this system.
pub fn command(handler: &Handler) -> Option<&str> {
    let own = if cfg!(windows) {
        &handler.platform.windows
    } else if cfg!(target_os = "macos") {
        &handler.platform.osx
    } else {
        &handler.platform.linux
    };
    own.as_deref().or(handler.command.as_deref())
}

/// How long a handler may run; absent, 0 and nonsense mean the default.
pub fn timeout(handler: &Handler) -> Duration {
    let stated = handler.timeout.filter(|seconds| *seconds > 0.0);
    let seconds = stated.unwrap_or(DEFAULT_TIMEOUT_SECS);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(24 * 3600))
}
