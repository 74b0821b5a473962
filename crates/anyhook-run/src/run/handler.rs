//! Runs one hook for one event and returns its outcome.

mod output;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhook_guard::CommandReadings;
use anyhook_model::fields::NeutralDialect;
use anyhook_model::{
    Decision, Ending, ExitRules, Failure, HandlerKind, HookEvent, HookOutcome, HookResponse,
    HookRun, Loss, RunOutcome, Scope, Strategy, registry,
};
use anyhook_util::{env, time};
use openhook::Envelope;
use output::HandlerOutput;
use serde_json::Value;

use crate::config::discover::Dirs;
use crate::config::manifest::{self, HandlerCommand, SelectedHook};
use crate::config::settings::Settings;
use crate::config::trust::CheckedFiles;
use crate::run::dialect::canonical::parse_canonical_answer;
use crate::run::dialect::{self, Dialect, ParsedAnswer, Payload, ProgramOutput};
use crate::run::evaluator;
use crate::run::exec::command::{CommandContext, CommandLine};
use crate::run::exec::{
    self, BaseEnvironment, Cancel, Leftover, ProcessEnd, ProcessRequest, ProcessResult,
    SpawnOptions,
};
use crate::run::guard::{self, GuardCommand};
use crate::run::http::{self, ResponseText};

/// Why a hook was stopped before its own timeout.
const CUT_SHORT: &str = "it was stopped because the agent does not wait longer for all hooks of a call; `anyhook install` writes the time that they need where the agent permits it";

/// One hook to run for one event.
#[derive(Debug, Clone, Copy)]
pub struct HandlerCall<'a> {
    pub selected: &'a SelectedHook<'a>,
    pub event: &'a HookEvent,
    pub dirs: &'a Dirs,
    pub cancel: Option<&'a Cancel>,
    pub fail_closed: bool,
    /// See [`ProcessRequest::owns_process`].
    pub owns_process: bool,
    /// The record gets what the hook writes to stderr.
    pub keeps_stderr: bool,
    /// Those of the event, for a hook with the OpenHook dialect.
    pub envelopes: &'a [Envelope],
    /// Commands that were read for other hooks of the event.
    pub readings: &'a CommandReadings,
    /// Those of the hook that were compared with its approval.
    pub(crate) files: &'a CheckedFiles,
    /// When it is stopped although its own timeout is not over.
    pub deadline: Option<Instant>,
}

/// The result of running a hook.
#[derive(Debug)]
pub struct HandlerRun {
    pub outcome: HookOutcome,
    /// For the journal.
    pub record: HookRun,
    /// The parts of the event that its dialect could not carry.
    pub lost: Vec<Loss>,
    /// It was ended before it could answer.
    pub is_cancelled: bool,
}

impl HandlerCall<'_> {
    /// Runs the hook and waits for it.
    pub fn run(&self) -> HandlerRun {
        let started = Instant::now();
        let hook = &self.selected.hook;
        let kind = hook.handler.kind;
        let end = self.end(started);
        let output = match kind {
            HandlerKind::Command => self.run_command(end).map(Some),
            HandlerKind::Http => self.post_event(end).map(Some),
            HandlerKind::Prompt | HandlerKind::Agent => self.ask_evaluator(end),
            HandlerKind::McpTool => Err("only the agent itself can call a tool of an MCP server; \
                 keep this hook in the agent's own config"
                .to_owned()),
        };
        let cannot_start = |why| HandlerOutput::without_answer(ProcessEnd::NotStarted(why));
        let mut stderr = None;
        let mut is_cancelled = false;
        let (outcome, exit, lost) = match output.unwrap_or_else(|why| Some(cannot_start(why))) {
            None => (self.without_evaluator(), None, Vec::new()),
            Some(mut output) => {
                if output.ending == Ending::Timeout && self.is_cut_short(started) {
                    output.notes.push(CUT_SHORT.to_owned());
                }
                let exit = match output.ending {
                    Ending::Exit(code) if kind == HandlerKind::Command => Some(code),
                    _ => None,
                };
                let kept =
                    Some(&output.stderr).filter(|text| self.keeps_stderr && !text.is_empty());
                stderr = kept.cloned();
                let mut rules = self.rules();
                rules.blocking &= !output.observes_only;
                let lost = output.lost.clone();
                is_cancelled = output.is_cancelled;
                let mut outcome = self.checked(rules, output.into_outcome(rules));
                for warning in &mut outcome.warnings {
                    *warning = format!("hook `{}`: {warning}", self.selected.label);
                }
                (outcome, exit, lost)
            }
        };
        let message = outcome.message().map(str::to_owned);
        HandlerRun {
            record: HookRun {
                exit,
                stderr,
                duration_ms: time::millis(started.elapsed()),
                ..self.selected.new_run(outcome.run, message)
            },
            outcome,
            lost,
            is_cancelled,
        }
    }

    /// If a file of the hook changed while it ran, something else may have run:
    /// only a deny still counts.
    fn checked(&self, rules: ExitRules, outcome: HookOutcome) -> HookOutcome {
        let changed = self.files.changed_since();
        let Some(path) = changed.first().filter(|_| !outcome.response.is_deny()) else {
            return outcome;
        };
        let why = format!("`{}` was changed while it ran", path.display());
        HookOutcome::failed(rules, &Failure::Changed(why), "")
    }

    /// When a run that was started then must end: one time for all parts of the call.
    fn end(&self, started: Instant) -> Option<Instant> {
        let own = started.checked_add(manifest::timeout(&self.selected.hook.handler));
        [own, self.deadline].into_iter().flatten().min()
    }

    /// Whether its own timeout would have given it more time.
    fn is_cut_short(&self, started: Instant) -> bool {
        let timeout = manifest::timeout(&self.selected.hook.handler);
        self.deadline.is_some() && started.elapsed() < timeout
    }

    /// An error is why the handler could not be started.
    fn run_command(&self, end: Option<Instant>) -> Result<HandlerOutput, String> {
        let handler = &self.selected.hook.handler;
        let command = manifest::command(handler).ok_or("it has no command for this system")?;
        if let Some(guard) = GuardCommand::from_command(command) {
            return self.run_guard(&guard);
        }
        if command.runs_its_input() {
            let line = command.to_line(|_| None);
            return Err(format!(
                "`{line}` has no script, so it would run the event on its input as one"
            ));
        }
        let name = handler.dialect.as_deref();
        let name = name.unwrap_or(NeutralDialect::Canonical.as_str());
        let dialect = dialect::resolve(name, self.selected, self.envelopes)
            .ok_or_else(|| format!("unknown dialect `{name}`"))?;
        let payloads = dialect
            .encode(self.event)
            .map_err(|why| format!("the event cannot be expressed in `{name}`: {why}"))?;
        let origin = (self.selected.scope, self.selected.folder());
        let mut combined: Option<HandlerOutput> = None;
        let mut failed: Option<HandlerOutput> = None;
        for payload in &payloads {
            let output = if time_left(end).is_zero() {
                HandlerOutput::without_answer(ProcessEnd::Timeout)
            } else {
                let result = self.execute(command, origin, payload, end);
                self.parse_output(&*dialect, &result, payload)
            };
            let is_over = output.observes_only && output.ending != Ending::Exit(0);
            if output.failed() || is_over {
                // A part for which it fails must not hide that it denies another.
                // To wait for each part that hangs would take too long.
                let is_final = matches!(output.ending, Ending::Timeout | Ending::CannotStart(_));
                failed.get_or_insert(output);
                if is_final && !dialect.observes_only() {
                    break;
                }
                continue;
            }
            let decision = output.answer.response.decision;
            if decision == Some(Decision::Deny) || output.ending == Ending::Exit(2) {
                return Ok(output);
            }
            match &mut combined {
                None => combined = Some(output),
                Some(combined) if combined.asks() => {}
                Some(combined) if output.asks() => *combined = output,
                Some(combined) => combined.join(output),
            }
        }
        let asks = combined.as_ref().is_some_and(HandlerOutput::asks);
        let blocks = self.rules().blocks_on(&Failure::Exit(1));
        if let Some(failed) = failed.filter(|_| blocks || !asks) {
            return Ok(failed);
        }
        match combined {
            Some(combined) => Ok(combined),
            None if dialect.observes_only() => {
                Ok(HandlerOutput::with_answer(ParsedAnswer::default()))
            }
            None => Err("the event has no part to run it for".to_owned()),
        }
    }

    /// Runs a built-in guard inside this process.
    fn run_guard(&self, command: &GuardCommand) -> Result<HandlerOutput, String> {
        let fails = Failure::CannotStart(String::new());
        guard::set_blocks_if_it_panics(self.rules().blocks_on(&fails));
        let judged = guard::judge(
            command,
            self.selected,
            self.event,
            self.dirs,
            self.readings,
            self.files,
        );
        guard::set_blocks_if_it_panics(false);
        let response = judged?.map(|finding| finding.to_response());
        Ok(HandlerOutput::with_answer(ParsedAnswer {
            response: response.unwrap_or_default(),
            ..ParsedAnswer::default()
        }))
    }

    /// Runs a command of a scope and folder.
    fn execute(
        &self,
        command: HandlerCommand<'_>,
        (scope, folder): (Scope, &Path),
        payload: &Payload,
        end: Option<Instant>,
    ) -> ProcessResult {
        let handler = &self.selected.hook.handler;
        let mut cwd = manifest::working_dir(handler, &self.selected.root);
        // The event names no folder, and this process's own is gone.
        if cwd.as_os_str().is_empty() {
            cwd = PathBuf::from(std::path::MAIN_SEPARATOR_STR);
        }
        let command_context = CommandContext {
            scope,
            root: &self.selected.root,
            folder,
            cwd: &cwd,
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut variables = vec![
            env::ANYHOOK_AGENT.with(&self.event.source),
            env::ANYHOOK_EVENT.with(&self.event.event),
            env::ANYHOOK_PROJECT_DIR.with(text(&self.selected.root)),
            env::ANYHOOK_MANIFEST_DIR.with(text(self.selected.folder())),
        ];
        variables.extend(payload.env.iter().cloned());
        for (name, value) in &handler.env {
            match value {
                Value::String(text) => variables.push((name.clone(), text.clone())),
                Value::Null => {}
                other => variables.push((name.clone(), other.to_string())),
            }
        }
        // Of several values of a variable the last one counts.
        let value = |name: &str| {
            let mut known = variables.iter().rev();
            known
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        let command_line = match (command, command.words(value)) {
            (HandlerCommand::Line(line), _) if manifest::has_own_command(handler) => {
                CommandLine::prepare_native(line, command_context)
            }
            (HandlerCommand::Line(line), _) => CommandLine::prepare(line, command_context),
            (_, words) => CommandLine::prepare_program(&words.unwrap_or_default(), command_context),
        };
        if scope != Scope::Project {
            let own = python_variables(&command.to_line(value), command_context);
            variables.splice(0..0, own);
        }
        let request = ProcessRequest {
            command_line,
            cwd,
            owns_process: self.owns_process,
            env: variables,
            stdin: &payload.stdin,
            timeout: time_left(end),
            cancel: self.cancel,
        };
        let options = SpawnOptions {
            base_env: match scope {
                Scope::Managed => BaseEnvironment::Clean,
                Scope::User | Scope::Project => BaseEnvironment::WithoutInjection,
            },
            // The folder of the event may be gone; the guard must run all the same.
            may_run_above_cwd: handler.cwd.is_none(),
        };
        exec::run_with(&request, options, &|| self.files.watch_folders())
    }

    fn post_event(&self, end: Option<Instant>) -> Result<HandlerOutput, String> {
        let handler = &self.selected.hook.handler;
        let scope = self.selected.scope;
        // The administrator's hooks depend on nothing that the user can write: neither
        // must a host be allowed by the user's settings, nor an error in them count.
        let allow_plain = match scope {
            Scope::Managed => Vec::new(),
            Scope::User | Scope::Project => Settings::load(self.dirs)?.http.allow_plain,
        };
        let body = serde_json::to_vec(self.event).map_err(|error| error.to_string())?;
        let request = http::build_request(handler, scope, body, &allow_plain)?;
        Ok(self.wait_for_answer(end, move || http::send(&request), parse_canonical_answer))
    }

    /// `None` if no evaluator is configured.
    fn ask_evaluator(&self, end: Option<Instant>) -> Result<Option<HandlerOutput>, String> {
        let handler = &self.selected.hook.handler;
        let managed = match self.selected.scope {
            Scope::Managed => Settings::load_managed(self.dirs)?,
            Scope::User | Scope::Project => Settings::default(),
        };
        // Where the administrator names an evaluator, the user's settings have no effect.
        let (scope, folder, settings) = if managed.evaluator.is_some() {
            (Scope::Managed, &self.dirs.managed, managed)
        } else {
            (Scope::User, &self.dirs.config, Settings::load(self.dirs)?)
        };
        let Some(evaluator) = settings.evaluator else {
            return Ok(None);
        };
        let question = evaluator::build_question(handler, self.event);
        if let Some(command) = &evaluator.command {
            let payload = Payload {
                stdin: question.into_bytes(),
                env: vec![env::ANYHOOK_EVALUATE.with(handler.kind.as_str())],
                ..Payload::default()
            };
            let origin = (scope, folder.as_path());
            let command = HandlerCommand::Line(command);
            let result = self.execute(command, origin, &payload, end);
            let mut output = HandlerOutput::without_answer(result.end.clone());
            let has_answer = matches!(result.end, ProcessEnd::Exit(0 | 2));
            if has_answer || result.may_refuse() {
                let stdout = String::from_utf8_lossy(&result.stdout.bytes);
                let is_cut = result.stdout.is_cut();
                let answer = ParsedAnswer::from_text(&stdout, is_cut, evaluator::parse_judgement);
                if has_answer || answer.response.is_deny() {
                    output.answer = answer;
                }
            }
            output.stderr = String::from_utf8_lossy(&result.stderr.bytes).into_owned();
            return Ok(Some(output));
        }
        let api = evaluator
            .api
            .ok_or("the settings' `evaluator` has neither `command` nor `api`")?;
        let mut request = evaluator::build_request(&evaluator, api, handler, &question)?;
        request.ignores_env = scope == Scope::Managed;
        http::check_address(&request.url, &settings.http.allow_plain)?;
        let send = move || evaluator::ask_endpoint(&request, api);
        let output = self.wait_for_answer(end, send, evaluator::parse_judgement);
        Ok(Some(output))
    }

    fn wait_for_answer(
        &self,
        end: Option<Instant>,
        send: impl FnOnce() -> Result<ResponseText, String> + Send + 'static,
        parse: fn(&str) -> ParsedAnswer,
    ) -> HandlerOutput {
        self.files.watch_folders();
        match exec::call_with_timeout(time_left(end), self.cancel, send) {
            Ok(Ok(answer)) => {
                let answer = ParsedAnswer::from_text(&answer.text, answer.is_cut, parse);
                HandlerOutput::with_answer(answer)
            }
            Ok(Err(why)) => HandlerOutput::with_answer(ParsedAnswer::from_error(why)),
            Err(end) => HandlerOutput::without_answer(end),
        }
    }

    fn rules(&self) -> ExitRules {
        ExitRules {
            // Of a hook that is only observed, what it would have done is recorded.
            blocking: self.selected.hook.blocking,
            ..ExitRules::for_hook(&self.selected.hook, self.fail_closed)
        }
    }

    /// The output of one run of a command.
    fn parse_output(
        &self,
        dialect: &dyn Dialect,
        result: &ProcessResult,
        payload: &Payload,
    ) -> HandlerOutput {
        let mut output = HandlerOutput::without_answer(result.end.clone());
        output.stderr = String::from_utf8_lossy(&result.stderr.bytes).into_owned();
        output.observes_only = dialect.observes_only();
        output.lost.clone_from(&payload.lost);
        let (exit, has_answer) = match result.end {
            ProcessEnd::Exit(exit) => (exit, dialect.has_answer_at(exit)),
            _ => (0, false),
        };
        if has_answer || result.may_refuse() {
            let stdout = String::from_utf8_lossy(&result.stdout.bytes);
            let is_cut = result.stdout.is_cut() && !output.observes_only;
            let parse = |stdout: &str| {
                let stderr = &output.stderr;
                dialect.parse_answer(
                    payload.call.as_ref().unwrap_or(self.event),
                    ProgramOutput {
                        stdout,
                        stderr,
                        exit,
                    },
                )
            };
            let answer = ParsedAnswer::from_text(&stdout, is_cut, parse);
            // Of a program that failed, a deny that it has written still counts.
            if has_answer || answer.response.is_deny() {
                output.answer = answer;
            }
        }
        self.note_output(result, &mut output);
        output
    }

    /// Adds what is unusual about the output, apart from its content.
    fn note_output(&self, result: &ProcessResult, output: &mut HandlerOutput) {
        for (stream, captured) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
            if captured.is_cut() {
                let total = captured.total;
                output.notes.push(format!(
                    "{stream} was cut: {total} bytes were written, 1 MiB is read"
                ));
            }
        }
        let Some(leftover) = result.leftover else {
            return;
        };
        let done = match leftover {
            Leftover::Ended => "which was ended",
            Leftover::Running => "and has left its group: it may still run, and was not waited for",
        };
        let note = format!(
            "it left a process behind that held its output open, {done}; use `async: true` or redirect its output"
        );
        // Silence usually means "no objection"; here the answer may have been on
        // its way.
        let is_missing = result.stdout.is_unfinished && result.stdout.bytes.is_empty();
        let decides = self.selected.hook.blocking && !output.observes_only;
        if is_missing && decides && output.ending == Ending::Exit(0) {
            output
                .answer
                .error
                .get_or_insert(format!("no answer: {note}"));
        } else {
            output.notes.push(note);
        }
    }

    /// Without an evaluator the hook's strategy for agents without a model decides,
    /// unless a failure blocks.
    fn without_evaluator(&self) -> HookOutcome {
        const CAPABILITY: &str = "llm_evaluated";
        let hook = &self.selected.hook;
        let label = &self.selected.label;
        let default = registry::capability(CAPABILITY).map(|capability| capability.default);
        let strategy = hook.strategy(CAPABILITY).or(default);
        let advice = "no evaluator is configured (`evaluator` in the settings)";
        let message = format!("hook `{label}` asks a model, and {advice}");
        let failure = Failure::CannotStart(advice.to_owned());
        let (response, run) = match strategy {
            Some(Strategy::Block) => (HookResponse::deny(message.clone()), RunOutcome::Deny),
            _ if self.rules().blocks_on(&failure) => {
                (HookResponse::deny(failure.deny_reason()), RunOutcome::Error)
            }
            Some(Strategy::Warn) => (HookResponse::default(), RunOutcome::Warn),
            Some(Strategy::Exclude) | None => (HookResponse::default(), RunOutcome::Skipped),
        };
        HookOutcome {
            response,
            run,
            warnings: vec![message],
        }
    }
}

/// The time until then; a handler that ends too late for it does not start.
fn time_left(end: Option<Instant>) -> Duration {
    end.map_or(Duration::MAX, |end| {
        end.saturating_duration_since(Instant::now())
    })
}

/// A user's Python program must not import modules of the project that it runs
/// in. It still finds those in its own folder.
fn python_variables(command: &str, context: CommandContext<'_>) -> Vec<(String, String)> {
    let mut variables = vec![env::PYTHONSAFEPATH.with("1")];
    let files = context.files_of(command, &[]).files.into_iter();
    let paths: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|end| end == "py"))
        .filter_map(|file| file.parent().map(Path::to_owned))
        .filter(|folder| !folder.starts_with(context.root) || folder.starts_with(context.folder))
        .collect();
    if paths.is_empty() {
        return variables;
    }
    if let Ok(joined) = std::env::join_paths(paths) {
        variables.push(env::PYTHONPATH.with(joined.to_string_lossy()));
    }
    variables
}
