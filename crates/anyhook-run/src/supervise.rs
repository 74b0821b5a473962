//! Detached hooks: somebody has to watch over their time, and to write down
//! how they ended, after the agent has long had its answer.
//!
//! That is this same program, started again in a session of its own with the
//! task on its stdin.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use ::openhook::Envelope;
use anyhook_model::{HookEvent, RecordKind};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, new_record};
use crate::exec;
use crate::handler::{self, Context};
use crate::openhook;
use crate::plan::Planned;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Task<'a> {
    Hook(Box<HookTask<'a>>),
    /// Consumers that wait in this queue.
    Queue(Cow<'a, Path>),
}

#[derive(Debug, Serialize, Deserialize)]
struct HookTask<'a> {
    planned: Cow<'a, Planned<'a>>,
    event: Cow<'a, HookEvent>,
    /// The event's, for a hook that speaks OpenHook.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    envelopes: Cow<'a, [Envelope]>,
    /// The record in which the launch stands.
    launched_in: Cow<'a, str>,
}

/// Hands a hook over to a supervisor.
pub fn launch(
    engine: &Engine,
    planned: &Planned<'_>,
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
    start(engine, &Task::Hook(Box::new(task)))
}

/// Has a supervisor serve a queue of deliveries.
pub fn launch_queue(engine: &Engine, queue: &Path) -> io::Result<()> {
    start(engine, &Task::Queue(Cow::Borrowed(queue)))
}

fn start(engine: &Engine, task: &Task<'_>) -> io::Result<()> {
    let task = serde_json::to_vec(task)?;
    if let Some(argv) = &engine.supervisor {
        return exec::launch_detached(argv, &task);
    }
    let own = std::env::current_exe()?.into_os_string();
    exec::launch_detached(&[own, "run".into(), "--supervise".into()], &task)
}

/// The supervisor's own work: runs the task, and records its end.
pub fn supervise(engine: &Engine, task: &[u8]) -> Result<(), String> {
    exec::detach_self();
    let task: Task<'_> = serde_json::from_slice(task).map_err(|error| error.to_string())?;
    match task {
        Task::Hook(task) => run_hook(engine, *task),
        Task::Queue(queue) => {
            openhook::serve(engine, queue.into_owned()).map_err(|error| error.to_string())
        }
    }
}

fn run_hook(engine: &Engine, task: HookTask<'_>) -> Result<(), String> {
    let context = Context {
        dirs: &engine.dirs,
        cancel: None,
        fail_closed: false,
        owns_process: true,
        envelopes: &task.envelopes,
    };
    let ran = handler::run(&task.planned, &task.event, context);
    let mut record = new_record(RecordKind::AsyncEnd, task.event.into_owned());
    record.hooks = vec![ran.record(&task.planned)];
    record.duration_ms = ran.duration.as_secs_f64() * 1000.0;
    record.lost = ran.lost;
    record.warnings = ran.outcome.warnings;
    record.response = ran.outcome.response;
    let launched_in = task.launched_in.into_owned();
    record
        .extra
        .insert("launched_in".to_owned(), launched_in.into());
    engine
        .journal
        .append(&record)
        .map_err(|error| error.to_string())
}
