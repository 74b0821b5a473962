//! Detached hooks: a supervisor enforces their timeout and records how they
//! ended, after the agent has received its answer.
//!
//! The supervisor is this same program, started in a new session with the task
//! on its stdin.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use ::openhook::Envelope;
use anyhook_guard::CommandReadings;
use anyhook_model::{HookEvent, Record};
use serde::{Deserialize, Serialize};

use crate::config::manifest::SelectedHook;
use crate::config::trust::CheckedFiles;
use crate::engine::{Engine, end_record};
use crate::openhook::consumers;
use crate::run::exec;
use crate::run::handler::HandlerCall;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SupervisorTask<'a> {
    Hook(Box<HookTask<'a>>),
    /// Deliveries to consumers that wait in this queue.
    Queue(Cow<'a, Path>),
}

#[derive(Debug, Serialize, Deserialize)]
struct HookTask<'a> {
    planned: Cow<'a, SelectedHook<'a>>,
    event: Cow<'a, HookEvent>,
    /// Those of the event, for a hook with the OpenHook dialect.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    envelopes: Cow<'a, [Envelope]>,
    /// The record of the launch.
    launched_in: Cow<'a, str>,
}

/// Hands a hook over to a supervisor.
pub fn launch(
    engine: &Engine,
    planned: &SelectedHook<'_>,
    event: &HookEvent,
    envelopes: &[Envelope],
    record: &str,
) -> io::Result<()> {
    let task = HookTask {
        planned: Cow::Borrowed(planned),
        event: Cow::Borrowed(event),
        envelopes: Cow::Borrowed(envelopes),
        launched_in: Cow::Borrowed(record),
    };
    start(engine, &SupervisorTask::Hook(Box::new(task)))
}

/// Starts a supervisor for a queue of deliveries.
pub(crate) fn launch_queue(engine: &Engine, queue: &Path) -> io::Result<()> {
    start(engine, &SupervisorTask::Queue(Cow::Borrowed(queue)))
}

fn start(engine: &Engine, task: &SupervisorTask<'_>) -> io::Result<()> {
    let task = serde_json::to_vec(task)?;
    if let Some(argv) = &engine.supervisor {
        return exec::spawn_detached(argv, &task);
    }
    let program = std::env::current_exe()?.into_os_string();
    exec::spawn_detached(&[program, "run".into(), "--supervise".into()], &task)
}

/// Runs a task as its supervisor, and records its end.
pub(crate) fn supervise(engine: &Engine, task: &[u8]) -> Result<(), String> {
    exec::detach_self();
    let task: SupervisorTask<'_> =
        serde_json::from_slice(task).map_err(|error| error.to_string())?;
    match task {
        SupervisorTask::Hook(task) => run_hook(engine, *task),
        SupervisorTask::Queue(queue) => {
            consumers::serve_queue(engine, queue.into_owned()).map_err(|error| error.to_string())
        }
    }
}

fn run_hook(engine: &Engine, task: HookTask<'_>) -> Result<(), String> {
    let call = HandlerCall {
        selected: &task.planned,
        event: &task.event,
        dirs: &engine.dirs,
        cancel: None,
        fail_closed: false,
        files: &CheckedFiles::default(),
        owns_process: true,
        keeps_stderr: false,
        envelopes: &task.envelopes,
        readings: &CommandReadings::default(),
        deadline: None,
    };
    let ran = call.run();
    let record = Record {
        duration_ms: ran.record.duration_ms,
        hooks: vec![ran.record],
        lost: ran.lost,
        warnings: ran.outcome.warnings,
        response: ran.outcome.response,
        ..end_record(task.event.into_owned(), &task.launched_in)
    };
    let appended = engine.journal.append(&record);
    appended.map_err(|error| error.to_string())
}
