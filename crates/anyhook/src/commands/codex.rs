//! `anyhook codex`: hooks for Codex's app-server, between it and its client or
//! beside them.
//!
//! The protocol is `anyhook_codex`'s, the hooks are `anyhook_run`'s; here they
//! meet. In proxy mode stdout is the protocol, so all words go to stderr.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhook_codex::state::Entry;
use anyhook_codex::{
    AttachOptions, CancellationToken, Decide, Endpoint, Proxy, ProxyOptions, Ruling, Status,
    Verdict, attach_blocking, losses,
};
use anyhook_model::{Answer, HookEvent, HookRun, RunOutcome};
use anyhook_run::exec::Cancel;
use anyhook_run::{Engine, Handled, Options};
use anyhow::{Context, anyhow, bail};

use crate::render::Terminal;

/// Between a signal and the end of the hooks that still run.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Warnings that are remembered, to say each once.
const REMEMBERED: usize = 1000;

/// Hooks for Codex's app-server: what IDEs and other clients drive it by
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook codex proxy -- codex app-server\n  anyhook codex attach --url ws://127.0.0.1:4222"
)]
pub struct Args {
    #[command(subcommand)]
    way: Way,
}

#[derive(clap::Subcommand)]
enum Way {
    Proxy(ProxyArgs),
    Attach(AttachArgs),
}

/// Stand between a client and the server that it starts
///
/// Put this in place of the command by which the client starts the server. All
/// messages pass unchanged; requests for approval are put to the hooks first.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook codex proxy -- codex app-server\n  anyhook codex proxy --hold-at-most 10 -- codex app-server"
)]
struct ProxyArgs {
    /// Show a request to the client as well when hooks take longer than so many
    /// seconds; the first answer counts
    #[arg(long, value_name = "SECONDS")]
    hold_at_most: Option<u64>,
    /// The server's command line
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Join a server that runs already, as a further client
///
/// Stays until it is ended, and comes back when the server does. The server asks
/// all its clients and takes the first answer: what hooks do not decide is left
/// to the others.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook codex attach --url ws://127.0.0.1:4222\n  anyhook codex attach --url unix:///run/codex.sock --answer-all\n  CODEX_TOKEN=… anyhook codex attach --url ws://127.0.0.1:4222 --token-env CODEX_TOKEN"
)]
struct AttachArgs {
    /// ws://HOST:PORT or unix://PATH; Codex's own socket when absent
    #[arg(long)]
    url: Option<String>,
    /// Nobody else answers: decline what hooks do not decide
    #[arg(long)]
    answer_all: bool,
    /// The variable with the server's token
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
}

/// The exit code is the server's, where there is one.
pub fn run(args: Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match args.way {
        Way::Proxy(args) => proxy(args, terminal),
        Way::Attach(args) => attach(&args, terminal),
    }
}

fn proxy(args: ProxyArgs, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut words = args.command.into_iter();
    let program = words.next().ok_or_else(|| anyhow!("there is no command"))?;
    let hooks = Arc::new(Hooks::new()?);
    let name = PathBuf::from(&program);
    let name = name.file_name().unwrap_or(&program).to_string_lossy();
    // Without it nobody sees us, and that is all.
    let entry = Entry::new(&hooks.engine.dirs.state, format!("stdio:{name}")).ok();
    if let Some(entry) = &entry {
        let _ = entry.tell(Some(&name));
    }

    let mut command = std::process::Command::new(&program);
    command.args(words);
    let options = ProxyOptions {
        hold_at_most: args.hold_at_most.map(Duration::from_secs),
        ..ProxyOptions::default()
    };
    let proxy = Proxy::new(command, hooks.clone(), options);
    let stop = proxy.stop_handle();
    on_signal(&hooks, move || stop.stop())?;
    let ended = proxy.run(std::io::stdin(), std::io::stdout())?;
    say_dropped(terminal, ended.dropped_events);
    Ok(u8::try_from(ended.exit_code).unwrap_or(1))
}

fn attach(args: &AttachArgs, terminal: &Terminal) -> anyhow::Result<u8> {
    let hooks = Arc::new(Hooks::new()?);
    if hooks.engine.off {
        bail!("`ANYHOOK=0` switches hooks off, so there is nothing to attach");
    }
    let endpoint = match &args.url {
        Some(url) if url != "unix://" => url.parse()?,
        _ => own_socket()?,
    };
    let bearer = args.token_env.as_deref().map(|name| {
        std::env::var(name).with_context(|| format!("`--token-env`: no token in `{name}`"))
    });
    let options = AttachOptions {
        bearer: bearer.transpose()?,
        answer_all: args.answer_all,
        ..AttachOptions::new(endpoint)
    };
    let url = options.endpoint.to_string();
    let entry = Entry::new(&hooks.engine.dirs.state, url.clone()).ok();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    on_signal(&hooks, move || stop.cancel())?;
    let tell = |status: Status| {
        let server = match &status {
            Status::Attached { server } => Some(server.as_str()),
            Status::Connecting | Status::Lost { .. } => None,
        };
        if let Some(entry) = &entry {
            let _ = entry.tell(server);
        }
        match status {
            Status::Connecting => {}
            Status::Attached { server } => terminal.note(&format!("attached to {url} ({server})")),
            Status::Lost { why, pause } => terminal.note(&format!(
                "{url}: {why}; next try in {:.1} s",
                pause.as_secs_f64()
            )),
        }
    };
    let ended = attach_blocking(options, hooks, cancel, tell)?;
    say_dropped(terminal, ended.dropped_events);
    Ok(0)
}

/// Where Codex listens when it is told `--listen unix://`.
fn own_socket() -> anyhow::Result<Endpoint> {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = path("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(path("HOME")?).join(".codex")));
    let home = home.context("where Codex listens is not known; give `--url`")?;
    Ok(Endpoint::default_in(&home))
}

fn say_dropped(terminal: &Terminal, dropped: u64) {
    if dropped > 0 {
        terminal.note(&format!(
            "anyhook: {dropped} events came faster than hooks could take them and were dropped"
        ));
    }
}

/// The engine, as the bridge asks it.
struct Hooks {
    engine: Engine,
    cancel: Cancel,
    /// Sets `cancel`; gone once that has been done.
    switch: Mutex<Option<Switch>>,
    terminal: Terminal,
    said: Mutex<HashSet<String>>,
}

impl Hooks {
    fn new() -> anyhow::Result<Self> {
        let (cancel, switch) = switch().context("cannot make a pipe")?;
        Ok(Self {
            engine: Engine::from_env(),
            cancel,
            switch: Mutex::new(Some(switch)),
            terminal: Terminal::from_env(),
            said: Mutex::default(),
        })
    }

    /// The protocol has no place for words to the user; the client's log has.
    fn say(&self, warnings: &[String]) {
        let mut said = lock(&self.said);
        for warning in warnings {
            if said.len() < REMEMBERED && said.insert(warning.clone()) {
                self.terminal.note(&format!("anyhook: {warning}"));
            }
        }
    }
}

impl Decide for Hooks {
    fn decide(&self, event: HookEvent) -> Ruling {
        if self.engine.off || lock(&self.switch).is_none() {
            return Ruling::default();
        }
        let options = Options {
            cancel: Some(self.cancel.clone()),
            ..Options::default()
        };
        let mut handled = self.engine.handle(&event, &options);
        self.say(&handled.warnings);
        settle(&mut handled);
        let response = handled.response.clone();
        let engine = self.engine.clone();
        Ruling::new(response.clone(), move |answer| {
            let lost = losses(&event, &response);
            let answer = answer.map(|stdout| Answer {
                stdout,
                ..Answer::default()
            });
            engine.conclude(event, handled, answer, &lost);
        })
    }

    fn could_decide(&self, event: &HookEvent) -> bool {
        if self.engine.off {
            return false;
        }
        self.engine.concerns(event)
    }

    fn abandon(&self) {
        lock(&self.switch).take();
    }
}

/// An `allow` answers in the user's place. So it must be said (a hook that says
/// nothing has no opinion, and none is what the engine makes of it), and nothing
/// may have gone wrong: a guard that could not be read or asked might have denied.
fn settle(handled: &mut Handled) {
    let skipped = |run: &HookRun| run.outcome == RunOutcome::Skipped;
    let went_wrong = !handled.warnings.is_empty() || handled.runs.iter().any(skipped);
    let accepts = matches!(
        Verdict::of(&handled.response),
        Verdict::Accept | Verdict::AcceptForSession
    );
    if accepts && went_wrong {
        handled.response.decision = None;
        // The same said in Codex's own words.
        handled.response.metadata.shift_remove("codex");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels when it is dropped.
#[cfg(unix)]
type Switch = std::io::PipeWriter;

#[cfg(unix)]
fn switch() -> std::io::Result<(Cancel, Switch)> {
    // The end of the writer makes the reader ready.
    let (reader, writer) = std::io::pipe()?;
    Ok((Cancel::from_fd(reader.into()), writer))
}

#[cfg(windows)]
struct Switch(Cancel);

#[cfg(windows)]
impl Drop for Switch {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn switch() -> std::io::Result<(Cancel, Switch)> {
    let cancel = Cancel::default();
    Ok((cancel.clone(), Switch(cancel)))
}

/// Calls `stop` when we are told to end, and gives the hooks a moment.
#[cfg(unix)]
fn on_signal(hooks: &Arc<Hooks>, stop: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
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
            thread::sleep(LAST_WORDS);
            hooks.abandon();
        }
    });
    Ok(())
}

/// The console tells the whole group of processes itself.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn on_signal(_hooks: &Arc<Hooks>, _stop: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    Ok(())
}
