//! `anyhook serve`: the daemon, which serves hooks over HTTP, the event stream and
//! the page, and keeps the store.

mod export_thread;
mod host;
mod usage_thread;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhook_daemon::{
    ArchiveConfig, DEFAULT_PORT, Daemon, DaemonConfig, DaemonError, JournalSource, page_link,
    source_file, token_file,
};
use anyhook_run::Engine;
use anyhook_run::daemon_client::{SOCKET_FILE, TOKEN_FILE};
use anyhook_store::{Retention, parse_duration_seconds};
use anyhook_util::system::OperatingSystem;
use anyhow::{Context, bail};
use serde_json::json;

use crate::cli::CommandStatus;
use crate::commands::export::otlp;
use crate::commands::export::parquet::ParquetArchiver;
use crate::commands::log::event_log;
use crate::render::{ColorChoice, Terminal};
use host::EngineHost;

/// Serve hooks over HTTP, store the events and show them on a web page
///
/// Listens on this machine only, unless --listen names another address. Prints a
/// link that opens the page once; reading events needs that link or the token.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook serve --open\n  anyhook serve --retain 30d,2GiB\n  \
                  anyhook serve --listen 0.0.0.0:24665 --allow-host hooks.example.com \\\n    \
                  --store postgres://anyhook@db/anyhook\n\nANYHOOK_STORE also sets the store, \
                  ANYHOOK_TOKEN the token."
)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on, or only a port of this machine
    #[arg(long, value_name = "ADDR", default_value_t = local_address(DEFAULT_PORT), value_parser = parse_address)]
    listen: SocketAddr,
    /// The store: a file or postgres://… [default: a file in the state folder]
    #[arg(long, value_name = "PATH|URL")]
    store: Option<String>,
    /// Require the token for hooks of this machine as well
    #[arg(long)]
    require_token: bool,
    /// A host name by which clients may call this daemon, besides its addresses; repeat for more
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Open the page in a browser; that of the running daemon if there is one
    #[arg(long)]
    open: bool,
    /// How long or how much to keep: 30d, 2GiB, or both separated by a comma
    #[arg(long, value_name = "AGE|SIZE", value_delimiter = ',', value_parser = parse_limit)]
    retain: Vec<Retention>,
    /// Export events as Parquet files to a folder or s3://…; only exported events are deleted
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    archive: Option<String>,
    /// Print one line of JSON once it is listening
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ServeArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    #[cfg(unix)]
    anyhook_run::run::exec::start_watchdog();
    let engine = Engine::from_env();
    if engine.off {
        terminal.note(
            "`ANYHOOK=0` is set: no hook runs. Entries that `anyhook install` wrote get no answer.",
        );
    }
    let state = engine.dirs.state.clone();
    event_log::create_private_folder(&state)?;
    let token_path = state.join(TOKEN_FILE);
    let mut config = daemon_config(args, &engine, token(&token_path)?)?;
    let otlp = otlp::load_config(&engine)?;
    let store_address = event_log::store_address(args.store.as_deref(), &state);
    let store = anyhook_store::open(&store_address)?;
    if let Some(place) = &args.archive {
        let archiver = ParquetArchiver::new(place, &*store)?;
        config.archive = ArchiveConfig(Some(Arc::new(archiver)));
    }
    let running = RunningDaemon {
        url: format!("http://{}", args.listen),
        token: config.token.clone(),
    };
    let daemon = match Daemon::bind(config, store, Arc::new(EngineHost::new(engine))) {
        Err(DaemonError::Listen { source, .. })
            if source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            return running.report(args, terminal);
        }
        bound => bound?,
    };
    // Nothing leaves this machine unless the settings name a receiver.
    if otlp.endpoint.is_some() {
        let terminal = Terminal::from_env(ColorChoice::Auto);
        export_thread::start(Engine::from_env(), otlp, terminal)?;
    }
    let notes = Terminal::from_env(ColorChoice::Auto);
    usage_thread::start(Engine::from_env(), notes)?;
    let link = daemon.link()?;
    let token_file = token_of_variable().is_none().then_some(token_path);
    if args.json {
        let url = format!("http://{}", daemon.local_addr());
        let socket = daemon.local_socket().ok().flatten();
        let line = json!({
            "url": url, "link": link, "token_file": token_file, "socket": socket
        });
        terminal.line(&line.to_string());
    } else {
        print_listening(&daemon, &link, token_file.as_deref(), terminal);
    }
    if args.open && !open_browser(&link) {
        terminal.note("Could not start a browser; open the link yourself.");
    }
    daemon.run()?;
    Ok(CommandStatus::Success)
}

fn daemon_config(args: &ServeArgs, engine: &Engine, token: String) -> anyhow::Result<DaemonConfig> {
    let state = &engine.dirs.state;
    let mut config = DaemonConfig::new(token);
    config.listen = args.listen;
    config.socket = cfg!(unix).then(|| state.join(SOCKET_FILE));
    config.hosts.clone_from(&args.allow_host);
    config.require_token = args.require_token;
    for limit in &args.retain {
        let kept = &mut config.retention;
        kept.max_age_s = limit.max_age_s.or(kept.max_age_s);
        kept.max_bytes = limit.max_bytes.or(kept.max_bytes);
    }
    config.signals = true;
    config.journal = Some(JournalSource {
        dir: engine.journal.folder().to_owned(),
        source: source_file(&state.join(event_log::JOURNAL_ID_FILE))?,
    });
    Ok(config)
}

fn print_listening(daemon: &Daemon, link: &str, token_file: Option<&Path>, terminal: &Terminal) {
    let url = format!("http://{}", daemon.local_addr());
    terminal.line(&format!("Listening on {}", terminal.bold(&url)));
    terminal.line(&format!(
        "Open the page with this link (works once): {link}"
    ));
    terminal.line(&match token_file {
        Some(path) => format!("The token is in {}", path.display()),
        None => "The token is the one in ANYHOOK_TOKEN".to_owned(),
    });
    match daemon.local_socket() {
        Ok(Some(socket)) => {
            terminal.line(&format!("`anyhook run --server` uses {}", socket.display()));
        }
        Ok(None) => {}
        Err(why) => terminal.note(&format!(
            "There is no socket ({why}); use `anyhook run --server {url}`."
        )),
    }
    if !daemon.local_addr().ip().is_loopback() {
        terminal.note(
            "Other machines can reach this port and it has no TLS: put a TLS proxy in front.",
        );
    }
}

/// What listens on the port already.
struct RunningDaemon {
    url: String,
    token: String,
}

impl RunningDaemon {
    /// Opens the page of a daemon of this user; says what else is there.
    fn report(&self, args: &ServeArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
        let url = &self.url;
        let Some(link) = page_link(url, &self.token) else {
            bail!(
                "another program listens on {url}; stop it, or choose another port with \
                 `--listen {}`",
                args.listen.port().saturating_add(1)
            );
        };
        if !args.open {
            bail!("anyhook already runs on {url}; `anyhook serve --open` opens its page");
        }
        if args.json {
            terminal.line(&json!({ "url": url, "link": link }).to_string());
        } else {
            terminal.line(&format!("anyhook already runs on {}", terminal.bold(url)));
            terminal.line(&format!(
                "Open the page with this link (works once): {link}"
            ));
        }
        if !open_browser(&link) {
            terminal.note("Could not start a browser; open the link yourself.");
        }
        Ok(CommandStatus::Success)
    }
}

fn token(path: &Path) -> anyhow::Result<String> {
    match token_of_variable() {
        Some(token) => Ok(token),
        None => token_file(path)
            .with_context(|| format!("could not use the token file `{}`", path.display())),
    }
}

fn token_of_variable() -> Option<String> {
    let token = anyhook_util::env::ANYHOOK_TOKEN.text()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn local_address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse() {
        return Ok(local_address(port));
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        return port
            .parse()
            .map(local_address)
            .map_err(|_| format!("`{port}` is not a port"));
    }
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(|ip| (ip, DEFAULT_PORT).into()))
        .map_err(|_| "expected an address and a port like 127.0.0.1:24665".to_owned())
}

/// One limit, by age or by size.
fn parse_limit(text: &str) -> Result<Retention, String> {
    let max_age_s = parse_duration_seconds(text).and_then(|age| u64::try_from(age).ok());
    let max_bytes = parse_bytes(text).filter(|_| max_age_s.is_none());
    if max_age_s.or(max_bytes).is_none() {
        return Err("expected an age like 12h, 30d, 4w, or a size like 500MB, 2GiB".to_owned());
    }
    Ok(Retention {
        max_age_s,
        max_bytes,
        exported_seq: None,
    })
}

fn parse_bytes(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (count, unit) = text.split_at_checked(split)?;
    let each = match unit.trim().to_ascii_lowercase().as_str() {
        "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    count.parse::<u64>().ok()?.checked_mul(each)
}

/// Opens a link; `false` if no browser could be started.
fn open_browser(link: &str) -> bool {
    let Some((program, arguments)) = OperatingSystem::CURRENT.link_opener().split_first() else {
        return false;
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(link).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
