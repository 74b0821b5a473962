//! `anyhook codex`: hooks for Codex's app-server, as a proxy or as a second client.
//!
//! Connects the protocol in `anyhook_codex` with the hooks in `anyhook_run`. In
//! proxy mode stdout carries the protocol, so messages go to stderr.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhook_agents::likeness::complete_call;
use anyhook_codex::state::BridgeEntry;
use anyhook_codex::{
    ApprovalVerdict, AttachOptions, AttachStatus, CancellationToken, Decide, Endpoint, Proxy,
    ProxyOptions, Ruling, attach_blocking, response_losses,
};
use anyhook_model::{Answer, HookEvent, HookRun, RunOutcome, has_unreadable_tool};
use anyhook_run::run::exec::{Cancel, CancelTrigger};
use anyhook_run::{Engine, EventOptions, EventOutcome};
use anyhook_util::env;
use anyhook_util::sync::lock;
use anyhow::{Context, anyhow, bail};

use crate::render::{ColorChoice, Terminal};

/// From a signal until the hooks that still run are cancelled.
const HOOK_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Warnings that are remembered, so that each is printed once.
const MAX_REMEMBERED_WARNINGS: usize = 1000;

/// Run hooks for Codex's app-server, which IDEs and other clients use
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook codex proxy -- codex app-server\n  anyhook codex attach --url ws://127.0.0.1:4222"
)]
pub(crate) struct CodexArgs {
    #[command(subcommand)]
    command: CodexCommand,
}

#[derive(clap::Subcommand)]
enum CodexCommand {
    Proxy(ProxyArgs),
    Attach(AttachArgs),
}

/// Sit between a client and the server that it starts
///
/// Use this in place of the command with which the client starts the server. All
/// messages pass unchanged; approval requests go to the hooks first.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook codex proxy -- codex app-server\n  anyhook codex proxy --hold-at-most 10 -- codex app-server"
)]
struct ProxyArgs {
    /// If the hooks take longer than this, show the request to the client as well;
    /// the first answer counts
    #[arg(long, value_name = "SECONDS")]
    hold_at_most: Option<u64>,
    /// The server's command line
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Join a running server as an additional client
///
/// Runs until it is stopped, and reconnects when the server restarts. The server
/// asks all its clients and takes the first answer: what the hooks do not decide
/// is left to the other clients.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook codex attach --url ws://127.0.0.1:4222\n  anyhook codex attach --url unix:///run/codex.sock --answer-all\n  CODEX_TOKEN=… anyhook codex attach --url ws://127.0.0.1:4222 --token-env CODEX_TOKEN"
)]
struct AttachArgs {
    /// ws://HOST:PORT or unix://PATH [default: Codex's own socket]
    #[arg(long)]
    url: Option<String>,
    /// Decline what the hooks do not decide, because no other client answers
    #[arg(long)]
    answer_all: bool,
    /// Environment variable that contains the server's token
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
}

/// Returns the exit code: the server's in proxy mode.
pub(crate) fn run(args: CodexArgs, terminal: &Terminal) -> anyhow::Result<u8> {
    match args.command {
        CodexCommand::Proxy(args) => proxy(args, terminal),
        CodexCommand::Attach(args) => attach(&args, terminal),
    }
}

fn proxy(args: ProxyArgs, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut words = args.command.into_iter();
    let program = words
        .next()
        .ok_or_else(|| anyhow!("the server's command is missing"))?;
    let hooks = Arc::new(EngineDecider::new()?);
    let name = PathBuf::from(&program);
    let name = name.file_name().unwrap_or(&program).to_string_lossy();
    // Only `anyhook status` needs the entry, so a failure is ignored.
    let entry = BridgeEntry::new(&hooks.engine.dirs.state, format!("stdio:{name}")).ok();
    if let Some(entry) = &entry {
        let _ = entry.set_server(Some(&name));
    }

    let mut command = std::process::Command::new(&program);
    command.args(words);
    let options = ProxyOptions {
        hold_at_most: args.hold_at_most.map(Duration::from_secs),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::new(command, hooks.clone(), options);
    let stop = proxy.stopper();
    on_signal(&hooks, move || stop.stop())?;
    let ended = proxy.run(std::io::stdin(), std::io::stdout())?;
    print_dropped(terminal, ended.dropped_events);
    Ok(u8::try_from(ended.exit_code).unwrap_or(1))
}

fn attach(args: &AttachArgs, terminal: &Terminal) -> anyhow::Result<u8> {
    let hooks = Arc::new(EngineDecider::new()?);
    if hooks.engine.off {
        bail!("`ANYHOOK=0` turns hooks off, so there is nothing to attach");
    }
    let endpoint = match &args.url {
        Some(url) if url != "unix://" => url.parse()?,
        _ => default_socket()?,
    };
    let bearer = args.token_env.as_deref().map(|name| {
        env::by_name(name)
            .with_context(|| format!("`--token-env`: the variable `{name}` contains no token"))
    });
    let options = AttachOptions {
        bearer: bearer.transpose()?,
        answer_all: args.answer_all,
        ..AttachOptions::new(endpoint)
    };
    let url = options.endpoint.to_string();
    let entry = BridgeEntry::new(&hooks.engine.dirs.state, url.clone()).ok();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    on_signal(&hooks, move || stop.cancel())?;
    let report_status = |status: AttachStatus| {
        let server = match &status {
            AttachStatus::Attached { server } => Some(server.as_str()),
            AttachStatus::Connecting | AttachStatus::Lost { .. } => None,
        };
        if let Some(entry) = &entry {
            let _ = entry.set_server(server);
        }
        match status {
            AttachStatus::Connecting => {}
            AttachStatus::Attached { server } => {
                terminal.note(&format!("attached to {url} ({server})"));
            }
            AttachStatus::Lost { why, pause } => terminal.note(&format!(
                "{url}: {why}; next try in {:.1} s",
                pause.as_secs_f64()
            )),
        }
    };
    let ended = attach_blocking(options, hooks, cancel, report_status)?;
    print_dropped(terminal, ended.dropped_events);
    Ok(0)
}

/// Where Codex listens with `--listen unix://`.
fn default_socket() -> anyhow::Result<Endpoint> {
    let path = |name: &str| env::by_name_os(name).filter(|value| !value.is_empty());
    let home = path("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(path(env::HOME.name)?).join(".codex")));
    let home = home.context("could not find Codex's socket; pass `--url`")?;
    Ok(Endpoint::default_in(&home))
}

fn print_dropped(terminal: &Terminal, dropped: u64) {
    if dropped > 0 {
        terminal.note(&format!(
            "anyhook: dropped {dropped} events that came faster than the hooks could handle them"
        ));
    }
}

/// Lets the engine decide what the app-server asks.
struct EngineDecider {
    engine: Engine,
    cancel: Cancel,
    /// Sets `cancel` when dropped; `None` after that.
    cancel_guard: Mutex<Option<CancelTrigger>>,
    terminal: Terminal,
    printed_warnings: Mutex<HashSet<String>>,
}

impl EngineDecider {
    fn new() -> anyhow::Result<Self> {
        let (guard, cancel) = Cancel::with_trigger(None).context("could not create a pipe")?;
        Ok(Self {
            engine: Engine::from_env(),
            cancel,
            cancel_guard: Mutex::new(Some(guard)),
            terminal: Terminal::from_env(ColorChoice::Auto),
            printed_warnings: Mutex::default(),
        })
    }

    /// Prints warnings to stderr: the protocol has no message for the user, but the
    /// client logs stderr.
    fn print_warnings(&self, warnings: &[String]) {
        let mut printed = lock(&self.printed_warnings);
        for warning in warnings {
            if printed.len() < MAX_REMEMBERED_WARNINGS && printed.insert(warning.clone()) {
                self.terminal.note(&format!("anyhook: {warning}"));
            }
        }
    }
}

impl Decide for EngineDecider {
    fn decide(&self, mut event: HookEvent) -> Ruling {
        if self.engine.off || lock(&self.cancel_guard).is_none() {
            return Ruling::default();
        }
        complete_call(&mut event);
        let notice = has_unreadable_tool(&event).then(|| {
            let method = &event.native_event;
            format!("Codex asks with `{method}`, which is unknown; every hook for tools is asked")
        });
        let options = EventOptions {
            cancel: Some(self.cancel.clone()),
            notices: notice.into_iter().collect(),
            ..EventOptions::default()
        };
        let mut handled = self.engine.handle(&event, &options);
        self.print_warnings(&handled.warnings);
        drop_doubtful_allow(&mut handled);
        let response = handled.response.clone();
        let engine = self.engine.clone();
        Ruling::new(response.clone(), move |answer| {
            let lost = response_losses(&event, &response);
            let answer = answer.map(|stdout| Answer {
                stdout,
                ..Answer::default()
            });
            engine.conclude(event, handled, answer, &lost);
        })
    }

    fn could_decide(&self, event: &HookEvent) -> bool {
        !self.engine.off && self.engine.concerns(event)
    }

    fn abandon(&self) {
        lock(&self.cancel_guard).take();
    }
}

/// Removes an `allow` if anything went wrong. `allow` answers in the user's place,
/// and a guard that could not be loaded or run might have denied.
fn drop_doubtful_allow(handled: &mut EventOutcome) {
    let skipped = |run: &HookRun| run.outcome == RunOutcome::Skipped;
    let went_wrong = !handled.warnings.is_empty() || handled.runs.iter().any(skipped);
    let accepts = matches!(
        ApprovalVerdict::from_response(&handled.response),
        ApprovalVerdict::Accept | ApprovalVerdict::AcceptForSession
    );
    if accepts && went_wrong {
        handled.response.decision = None;
        // The same decision in Codex's own format.
        handled.response.metadata.shift_remove("codex");
    }
}

/// On a signal calls `stop`, and cancels the hooks after a grace period.
#[cfg(unix)]
fn on_signal(
    hooks: &Arc<EngineDecider>,
    stop: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::io::Read;
    let (mut reader, writer) = std::io::pipe()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    let hooks = hooks.clone();
    thread::spawn(move || {
        if reader.read_exact(&mut [0]).is_ok() {
            stop();
            thread::sleep(HOOK_GRACE_PERIOD);
            hooks.abandon();
        }
    });
    Ok(())
}

/// Hooks have no part in the console, so its signals do not reach them.
#[cfg(windows)]
fn on_signal(
    hooks: &Arc<EngineDecider>,
    stop: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    let hooks = hooks.clone();
    let mut stop = Some(stop);
    ctrlc::set_handler(move || {
        if let Some(stop) = stop.take() {
            stop();
            thread::sleep(HOOK_GRACE_PERIOD);
            hooks.abandon();
        }
    })?;
    Ok(())
}
