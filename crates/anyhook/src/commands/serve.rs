//! `anyhook serve`: the daemon. Hooks of every agent over HTTP, the stream of
//! events, the store, the page.

mod host;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhook_daemon::{Config, DEFAULT_PORT, Daemon, JournalSource, source_file, token_file};
use anyhook_run::Engine;
use anyhook_run::server::TOKEN_FILE;
use anyhook_store::{Retention, seconds};
use anyhow::Context;
use serde_json::json;

use crate::cli::Verdict;
use crate::commands::log::place;
use crate::render::Terminal;
use host::Host;

/// Serve hooks over HTTP, keep the events, show them on a page
///
/// Listens on this machine only unless told otherwise. Prints a link that opens
/// the page once; everything that reads needs that link or the token.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook serve --open\n  anyhook serve --retain 30d,2GiB\n  \
                  anyhook serve --listen 0.0.0.0:8765 --allow-host hooks.example.com \\\n    \
                  --store postgres://anyhook@db/anyhook\n\nThe variable ANYHOOK_STORE names the store \
                  too, ANYHOOK_TOKEN the token."
)]
pub struct Args {
    /// Address and port, or a port of this machine
    #[arg(long, value_name = "ADDR", default_value_t = own(DEFAULT_PORT), value_parser = address)]
    listen: SocketAddr,
    /// A file, or postgres://…; a file in the folder for state when absent
    #[arg(long, value_name = "PATH|URL")]
    store: Option<String>,
    /// Ask for the token on hooks of this machine, too
    #[arg(long)]
    require_token: bool,
    /// A name under which this daemon may be called, beside addresses; again for more
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Open the page
    #[arg(long)]
    open: bool,
    /// How long, or how much, is kept: 30d, 2GiB, or both with a comma
    #[arg(long, value_name = "AGE|SIZE", value_delimiter = ',', value_parser = limit)]
    retain: Vec<Limit>,
    /// Print one line of JSON when it listens
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
enum Limit {
    Age(u64),
    Bytes(u64),
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<Verdict> {
    let engine = Engine::from_env();
    let state = engine.dirs.state.clone();
    place::private_folder(&state)?;
    let token_path = state.join(TOKEN_FILE);
    let mut config = Config::new(token(&token_path)?);
    config.listen = args.listen;
    config.hosts.clone_from(&args.allow_host);
    config.require_token = args.require_token;
    config.retention = retention(&args.retain);
    config.signals = true;
    config.journal = Some(JournalSource {
        dir: engine.journal.folder().to_owned(),
        source: source_file(&state.join(place::SOURCE_FILE))?,
    });
    let store_address = place::store_address(args.store.as_deref(), &state);
    let store = anyhook_store::open(&store_address)?;
    let daemon = Daemon::bind(config, store, Arc::new(Host::new(engine)))?;
    let link = daemon.link()?;
    let url = format!("http://{}", daemon.local_addr());
    let is_near = daemon.local_addr().ip().is_loopback();
    if args.json {
        let line = json!({"url": url, "link": link, "token_file": token_path});
        terminal.line(&line.to_string());
    } else {
        terminal.line(&format!("Listening on {}", terminal.bold(&url)));
        terminal.line(&format!("The page, opened once by this link: {link}"));
        terminal.line(&format!("The token is in {}", token_path.display()));
        if !is_near {
            terminal.note(
                "Others can reach this port, and it speaks no TLS: put a proxy in front that does.",
            );
        }
    }
    if args.open && !show(&link) {
        terminal.note("No browser could be started; open the link yourself.");
    }
    daemon.run()?;
    Ok(Verdict::Good)
}

fn token(path: &Path) -> anyhow::Result<String> {
    match std::env::var("ANYHOOK_TOKEN") {
        Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned()),
        _ => token_file(path).with_context(|| format!("`{}` cannot be used", path.display())),
    }
}

fn own(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse() {
        return Ok(own(port));
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        return port
            .parse()
            .map(own)
            .map_err(|_| format!("`{port}` is no port"));
    }
    text.parse()
        .or_else(|_| text.parse::<IpAddr>().map(|ip| (ip, DEFAULT_PORT).into()))
        .map_err(|_| "give an address and a port, like 127.0.0.1:8765".to_owned())
}

fn limit(text: &str) -> Result<Limit, String> {
    let age = seconds(text).and_then(|age| u64::try_from(age).ok());
    age.map(Limit::Age)
        .or_else(|| bytes(text).map(Limit::Bytes))
        .ok_or_else(|| "give an age like 12h, 30d, 4w, or a size like 500MB, 2GiB".to_owned())
}

fn bytes(text: &str) -> Option<u64> {
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

fn retention(limits: &[Limit]) -> Retention {
    let mut retention = Retention::default();
    for limit in limits {
        match *limit {
            Limit::Age(age) => retention.max_age_s = Some(age),
            Limit::Bytes(bytes) => retention.max_bytes = Some(bytes),
        }
    }
    retention
}

/// Whether a browser was started.
fn show(link: &str) -> bool {
    let mut command = if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else if cfg!(target_os = "macos") {
        Command::new("open")
    } else {
        Command::new("xdg-open")
    };
    command.arg(link).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
