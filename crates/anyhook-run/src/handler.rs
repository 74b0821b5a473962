//! One hook, one event: from a plan to an outcome.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhook_agents::respond::APPROVE;
use anyhook_model::answer::Stdout;
use anyhook_model::decide::settle;
use anyhook_model::{
    Decision, Ending, HandlerKind, HookEvent, HookResponse, HookRun, Loss, Outcome, Rules,
    RunOutcome, Scope, Strategy, registry,
};
use openhook::Envelope;
use serde_json::Value;

use crate::dialect::{self, Dialect, Payload, Read};
use crate::discover::Dirs;
use crate::evaluator;
use crate::exec::command::{Launch, Place};
use crate::exec::{self, Cancel, Captured, End, Ended, Job, Leftover};
use crate::http;
use crate::plan::{self, Planned};
use crate::settings::Settings;

/// What running a hook needs besides the hook.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub dirs: &'a Dirs,
    pub cancel: Option<&'a Cancel>,
    pub fail_closed: bool,
    /// See [`Job::owns_process`].
    pub owns_process: bool,
    /// The event's, for a hook that speaks OpenHook.
    pub envelopes: &'a [Envelope],
}

/// What a hook came to.
#[derive(Debug)]
pub struct Ran {
    pub outcome: Outcome,
    pub exit: Option<i32>,
    pub duration: Duration,
    /// What its dialect could not carry.
    pub lost: Vec<Loss>,
}

impl Ran {
    /// For the journal.
    pub fn record(&self, planned: &Planned<'_>) -> HookRun {
        HookRun {
            hook: planned.label.clone(),
            manifest: planned.manifest.to_string_lossy().into_owned(),
            outcome: self.outcome.run,
            exit: self.exit,
            duration_ms: self.duration.as_secs_f64() * 1000.0,
            message: self.outcome.message().map(str::to_owned),
        }
    }
}

/// What a handler said, before the rules are applied.
struct Said {
    ending: Ending,
    read: Read,
    stderr: String,
    notes: Vec<String>,
    lost: Vec<Loss>,
    /// Its dialect has no way to decide.
    observes_only: bool,
}

impl Said {
    fn failed(end: End) -> Self {
        let ending = match end {
            End::Exit(code) => Ending::Exit(code),
            End::Signal(signal) => Ending::Signal(signal),
            End::Timeout => Ending::Timeout,
            End::Cancelled => Ending::CannotStart("cancelled".to_owned()),
            End::NotStarted(why) => Ending::CannotStart(why),
        };
        Self {
            ending,
            read: Read::default(),
            stderr: String::new(),
            notes: Vec::new(),
            lost: Vec::new(),
            observes_only: false,
        }
    }

    fn cannot_start(why: impl Into<String>) -> Self {
        Self::failed(End::NotStarted(why.into()))
    }

    /// Whether it says more than "go on".
    fn decides(&self) -> bool {
        !matches!(self.ending, Ending::Exit(0))
            || self.read.error.is_some()
            || matches!(
                self.read.response.decision,
                Some(Decision::Deny | Decision::Ask)
            )
    }

    /// Adds what was said about a further part.
    fn join(&mut self, part: Self) {
        let (here, there) = (&mut self.read.response, part.read.response);
        for (text, more) in [
            (&mut here.context, there.context),
            (&mut here.system_message, there.system_message),
        ] {
            match (text.as_mut(), more) {
                (Some(text), Some(more)) if *text != more => {
                    text.push('\n');
                    text.push_str(&more);
                }
                (None, more) => *text = more,
                _ => {}
            }
        }
        if here.updated_input.is_some() || there.updated_input.is_some() {
            here.updated_input = None;
            here.decision = Some(Decision::Deny);
            here.reason = Some("A hook changes one part of this call, which cannot be done here; it is denied instead.".to_owned());
            self.lost.push(Loss::new(
                "updated_input",
                "the call has several parts, of which one alone cannot be changed; denied instead",
            ));
            return;
        }
        if there.decision.is_none() {
            // A grant for one part is no grant for the whole.
            here.decision = None;
            here.metadata.shift_remove(APPROVE);
        }
        if there.goes_on == Some(false) {
            here.goes_on = Some(false);
        }
        self.notes.extend(part.notes);
        self.lost.extend(part.lost);
    }

    fn answered(read: Read) -> Self {
        Self {
            read,
            ..Self::failed(End::Exit(0))
        }
    }
}

/// Runs a hook and waits for it.
pub fn run(planned: &Planned<'_>, event: &HookEvent, context: Context<'_>) -> Ran {
    let started = Instant::now();
    let said = match planned.hook.handler.kind {
        HandlerKind::Command => command(planned, event, context),
        HandlerKind::Http => post(planned, event, context),
        HandlerKind::Prompt | HandlerKind::Agent => match judge(planned, event, context) {
            Ok(said) => said,
            Err(outcome) => {
                return Ran {
                    outcome: *outcome,
                    exit: None,
                    duration: started.elapsed(),
                    lost: Vec::new(),
                };
            }
        },
    };
    let exit = match said.ending {
        Ending::Exit(code) if planned.hook.handler.kind == HandlerKind::Command => Some(code),
        _ => None,
    };
    let mut rules = Rules::of(&planned.hook, context.fail_closed);
    rules.blocking &= !said.observes_only;
    let lost = said.lost.clone();
    let mut outcome = outcome(rules, said);
    for warning in &mut outcome.warnings {
        *warning = format!("hook `{}`: {warning}", planned.label);
    }
    Ran {
        outcome,
        exit,
        duration: started.elapsed(),
        lost,
    }
}

fn outcome(rules: Rules, said: Said) -> Outcome {
    let Said {
        ending,
        read,
        stderr,
        notes,
        ..
    } = said;
    // A dialect may know more exit codes than ours.
    let ending = match ending {
        Ending::Exit(code) if code != 2 && read.response.decision.is_some() => Ending::Exit(0),
        ending => ending,
    };
    let stdout = match read.error {
        Some(error) => Stdout::Unreadable(error),
        None => Stdout::Answer(Box::new(read.response), read.warnings),
    };
    let mut outcome = settle(rules, &ending, stdout, &stderr);
    outcome.warnings.extend(notes);
    outcome
}

fn command(planned: &Planned<'_>, event: &HookEvent, context: Context<'_>) -> Said {
    let handler = &planned.hook.handler;
    let Some(command) = plan::command(handler) else {
        return Said::cannot_start("it has no command for this system");
    };
    let name = handler.dialect.as_deref().unwrap_or(dialect::DEFAULT);
    let dialect = dialect::resolve(name, &planned.hook, &planned.root, context.envelopes);
    let Some(dialect) = dialect else {
        return Said::cannot_start(format!("there is no dialect `{name}`"));
    };
    let payloads = match dialect.encode(event) {
        Ok(payloads) => payloads,
        Err(why) => {
            return Said::cannot_start(format!("the event cannot be said in `{name}`: {why}"));
        }
    };
    let origin = (planned.scope, planned.folder());
    let mut whole: Option<Said> = None;
    for payload in &payloads {
        let ended = execute(planned, event, context, (command, origin), payload);
        let said = heard(&*dialect, name, event, &ended, payload);
        // Asked about each part, the first refusal or failure speaks for all.
        // Who only observes hears the others all the same.
        if said.decides() && !said.observes_only {
            return said;
        }
        match &mut whole {
            None => whole = Some(said),
            Some(whole) if whole.decides() => {}
            Some(whole) if said.decides() => *whole = said,
            Some(whole) => whole.join(said),
        }
    }
    whole.unwrap_or_else(|| {
        if dialect.observes_only() {
            return Said::answered(Read::default());
        }
        Said::cannot_start("there is nothing to ask it about")
    })
}

/// What one run of a command came to.
fn heard(
    dialect: &dyn Dialect,
    name: &str,
    event: &HookEvent,
    ended: &Ended,
    payload: &Payload,
) -> Said {
    let mut said = Said::failed(ended.end.clone());
    if let End::Exit(code) = ended.end {
        let (stdout, stderr) = (&ended.stdout.bytes, &ended.stderr.bytes);
        // Of other exit codes only an agent's dialect may know a meaning.
        let is_ours = matches!(name, "canonical" | "contract" | dialect::OPENHOOK);
        if !is_ours || matches!(code, 0 | 2) {
            said.read = dialect.read(event, stdout, stderr, Some(code));
        }
    }
    said.stderr = String::from_utf8_lossy(&ended.stderr.bytes).into_owned();
    said.notes.extend(cut_note("stdout", &ended.stdout));
    said.notes.extend(cut_note("stderr", &ended.stderr));
    if let Some(leftover) = ended.leftover {
        let done = match leftover {
            Leftover::Ended => "which was ended",
            Leftover::Running => "and has left its group: it may still run, and was not waited for",
        };
        said.notes.push(format!(
            "it left a process behind that held its output open, {done}; use `async: true` or redirect its output"
        ));
    }
    said.lost.clone_from(&payload.lost);
    said.observes_only = dialect.observes_only();
    said
}

fn cut_note(stream: &str, captured: &Captured) -> Option<String> {
    captured.is_cut().then(|| {
        format!(
            "{stream} was cut: {} bytes were written, 1 MiB is read",
            captured.total
        )
    })
}

/// Runs a command line; `origin` is whose it is and the folder it stands in.
fn execute(
    planned: &Planned<'_>,
    event: &HookEvent,
    context: Context<'_>,
    (command, (scope, folder)): (&str, (Scope, &Path)),
    payload: &Payload,
) -> Ended {
    let handler = &planned.hook.handler;
    let cwd = planned.cwd();
    let place = Place {
        scope,
        root: &planned.root,
        folder,
        cwd: &cwd,
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut env = vec![
        ("ANYHOOK_AGENT".to_owned(), event.source.clone()),
        ("ANYHOOK_EVENT".to_owned(), event.event.clone()),
        ("ANYHOOK_PROJECT_DIR".to_owned(), text(&planned.root)),
        ("ANYHOOK_MANIFEST_DIR".to_owned(), text(planned.folder())),
    ];
    if scope != Scope::Project {
        env.extend(python(command, place));
    }
    env.extend(payload.env.iter().cloned());
    for (name, value) in &handler.env {
        match value {
            Value::String(text) => env.push((name.clone(), text.clone())),
            Value::Null => {}
            other => env.push((name.clone(), other.to_string())),
        }
    }
    exec::run(&Job {
        launch: Launch::prepare(command, place),
        cwd,
        owns_process: context.owns_process,
        env,
        stdin: &payload.stdin,
        timeout: plan::timeout(handler),
        cancel: context.cancel,
    })
}

/// A user's Python program must not import what lies in the project that it is
/// run in. It still finds what lies beside it.
fn python(command: &str, place: Place<'_>) -> Vec<(String, String)> {
    let mut env = vec![("PYTHONSAFEPATH".to_owned(), "1".to_owned())];
    let files = place.named(command, &[]).files.into_iter();
    let mut paths: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|end| end == "py"))
        .filter_map(|file| file.parent().map(Path::to_owned))
        .filter(|folder| !folder.starts_with(place.root) || folder.starts_with(place.folder))
        .collect();
    if paths.is_empty() {
        return env;
    }
    let others = std::env::var_os("PYTHONPATH").unwrap_or_default();
    paths.extend(std::env::split_paths(&others).filter(|path| !path.as_os_str().is_empty()));
    if let Ok(joined) = std::env::join_paths(paths) {
        let joined = joined.to_string_lossy().into_owned();
        env.push(("PYTHONPATH".to_owned(), joined));
    }
    env
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn post(planned: &Planned<'_>, event: &HookEvent, context: Context<'_>) -> Said {
    let handler = &planned.hook.handler;
    let settings = match Settings::load(context.dirs) {
        Ok(settings) => settings,
        Err(why) => return Said::cannot_start(why),
    };
    let body = match serde_json::to_vec(event) {
        Ok(body) => body,
        Err(error) => return Said::cannot_start(error.to_string()),
    };
    let timeout = plan::timeout(handler);
    let request = http::request(handler, body, timeout, &settings.http.allow_plain, variable);
    let request = match request {
        Ok(request) => request,
        Err(why) => return Said::cannot_start(why),
    };
    match exec::call(timeout, context.cancel, move || http::send(&request)) {
        Ok(Ok(body)) => Said::answered(dialect::canonical::read_answer(&body)),
        Ok(Err(why)) => Said::cannot_start(why),
        Err(end) => Said::failed(end),
    }
}

/// `Err`: nobody is there to ask.
fn judge(
    planned: &Planned<'_>,
    event: &HookEvent,
    context: Context<'_>,
) -> Result<Said, Box<Outcome>> {
    let handler = &planned.hook.handler;
    let settings = match Settings::load(context.dirs) {
        Ok(settings) => settings,
        Err(why) => return Ok(Said::cannot_start(why)),
    };
    let Some(evaluator) = settings.evaluator else {
        return Err(Box::new(without_evaluator(planned)));
    };
    let question = evaluator::question(handler, event);
    let timeout = plan::timeout(handler);
    if let Some(command) = &evaluator.command {
        let payload = Payload {
            stdin: question.into_bytes(),
            env: vec![(
                "ANYHOOK_EVALUATE".to_owned(),
                handler.kind.as_str().to_owned(),
            )],
            ..Payload::default()
        };
        let origin = (Scope::User, context.dirs.config.as_path());
        let ended = execute(planned, event, context, (command, origin), &payload);
        let mut said = Said::failed(ended.end.clone());
        if matches!(ended.end, End::Exit(0 | 2)) {
            said.read = evaluator::read(&String::from_utf8_lossy(&ended.stdout.bytes));
        }
        said.stderr = String::from_utf8_lossy(&ended.stderr.bytes).into_owned();
        return Ok(said);
    }
    let Some(api) = evaluator.api else {
        return Ok(Said::cannot_start(
            "the settings' `evaluator` has neither `command` nor `api`",
        ));
    };
    let request = evaluator::request(&evaluator, api, handler, &question, timeout, variable);
    let request = match request.and_then(|request| {
        http::check_address(&request.url, &settings.http.allow_plain)?;
        Ok(request)
    }) {
        Ok(request) => request,
        Err(why) => return Ok(Said::cannot_start(why)),
    };
    let asked = exec::call(timeout, context.cancel, move || {
        evaluator::ask(&request, api)
    });
    Ok(match asked {
        Ok(Ok(text)) => Said::answered(evaluator::read(&text)),
        Ok(Err(why)) => Said::cannot_start(why),
        Err(end) => Said::failed(end),
    })
}

/// The hook's strategy for agents without a model decides here as well.
fn without_evaluator(planned: &Planned<'_>) -> Outcome {
    const CAPABILITY: &str = "llm_evaluated";
    let default = registry::capability(CAPABILITY).map(|capability| capability.default);
    let strategy = planned.hook.strategy(CAPABILITY).or(default);
    let advice = "no evaluator is configured (`evaluator` in the settings)";
    let said = format!("hook `{}` asks a model, and {advice}", planned.label);
    let (response, run) = match strategy {
        Some(Strategy::Block) => (HookResponse::deny(said.clone()), RunOutcome::Deny),
        Some(Strategy::Warn) => (HookResponse::default(), RunOutcome::Warn),
        Some(Strategy::Exclude) | None => (HookResponse::default(), RunOutcome::Skipped),
    };
    Outcome {
        response,
        run,
        warnings: vec![said],
    }
}
