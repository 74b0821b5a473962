//! `anyhook export otlp`: the recorded events as OpenTelemetry traces, logs and metrics.

use std::path::Path;
use std::time::Duration;

use anyhook_export::otlp::{
    Compression, ExportControl, ExportNotice, ExportSummary, HeaderValue, OtlpConfig, OtlpExporter,
    OtlpSetup, Protocol, Signal, Temporality,
};
use anyhook_export::{ContentLevel, StateFile};
use anyhook_run::Engine;
use anyhook_run::config::settings::Settings;
use anyhook_run::run::http;
use anyhook_store::parse_duration_seconds;
use anyhow::{Context, anyhow};

use super::parse_content;
use crate::cli::CommandStatus;
use crate::commands::log::filter_args::parse_time;
use crate::commands::ship::host_name;
use crate::commands::usage_log::UsageLog;
use crate::progress::Progress;
use crate::render::{Terminal, counted};

const JOURNAL_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often an export that does not follow tries an unavailable receiver.
const MAX_ATTEMPTS: u32 = 5;
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Send the recorded events as OpenTelemetry traces, logs and metrics
///
/// One trace per turn: the agent, its tool calls, and every hook that ran. Sends what
/// was not sent yet, over OTLP/HTTP. The section `otlp` of config.yaml has the same
/// settings; secrets such as API keys belong there. See docs/opentelemetry.md.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anyhook export otlp --endpoint http://localhost:6006 --signals traces\n  \
                  anyhook export otlp --follow\n  anyhook export otlp --since 1d --content tools"
)]
pub(super) struct OtlpArgs {
    /// The receiver's address, without /v1/traces [default: http://localhost:4318]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Keep sending events as they arrive, until stopped
    #[arg(long)]
    follow: bool,
    /// Only events since this time (2026-02-23T10:15:30Z) or this long ago (15m, 2h, 7d)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<i64>,
    /// What to send: traces, logs, metrics [default: all]
    #[arg(long, value_name = "SIGNAL", value_delimiter = ',', value_parser = str::parse::<Signal>)]
    signals: Vec<Signal>,
    /// How much content to send: metadata, tools (inputs and outputs) or full (prompts too)
    #[arg(long, value_name = "LEVEL", value_parser = parse_content)]
    content: Option<ContentLevel>,
    /// An HTTP header; repeat for more
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    header: Vec<(String, String)>,
    /// An attribute of the resource, such as service.name=team-a; repeat for more
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    resource: Vec<(String, String)>,
    /// Send protobuf or json [default: protobuf]
    #[arg(long, value_name = "FORMAT", value_parser = parse_protocol)]
    protocol: Option<Protocol>,
    /// Compress requests with gzip or none [default: gzip]
    #[arg(long, value_name = "METHOD", value_parser = parse_compression)]
    compression: Option<Compression>,
    /// Send metrics as cumulative or delta sums [default: cumulative]
    #[arg(long, value_name = "KIND", value_parser = parse_temporality)]
    temporality: Option<Temporality>,
    /// A turn without an event for this long has ended [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    turn_idle: Option<Duration>,
    /// End the turns that are still open, instead of waiting for their end
    #[arg(long, conflicts_with = "follow")]
    close_turns: bool,
    /// A name for the position in the journal [default: one for each endpoint]
    #[arg(long, value_name = "NAME")]
    cursor: Option<String>,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &OtlpArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let engine = Engine::from_env();
    let config = args.apply_to(load_config(&engine)?);
    let usage = UsageLog::open(&engine)?;
    let mut setup = make_setup(&engine, config, &usage, args.cursor.as_deref())?;
    setup.since_us = args.since;
    setup.turn_idle = args.turn_idle;
    setup.max_attempts = (!args.follow).then_some(MAX_ATTEMPTS);
    let mut exporter = OtlpExporter::new(setup);
    let mut wait = |delay| {
        std::thread::sleep(delay);
        true
    };
    let mut notice = |notice: ExportNotice<'_>| terminal.note(&notice_text(&notice));
    let mut control = ExportControl {
        wait: &mut wait,
        notice: &mut notice,
        now: &now_nanos,
    };
    let progress = (!args.follow).then(|| Progress::start("Exporting", ""));
    loop {
        usage.collect()?;
        exporter.export_all(&mut control)?;
        if !args.follow {
            break;
        }
        std::thread::sleep(JOURNAL_POLL_INTERVAL);
    }
    if args.close_turns {
        exporter.close_turns(&mut control)?;
    }
    drop(progress);
    print_summary(args, exporter.summary(), terminal);
    Ok(CommandStatus::Success)
}

impl OtlpArgs {
    fn apply_to(&self, mut config: OtlpConfig) -> OtlpConfig {
        if self.endpoint.is_some() {
            config.endpoint.clone_from(&self.endpoint);
        }
        if !self.signals.is_empty() {
            config.signals = Some(self.signals.clone());
        }
        config.content = self.content.unwrap_or(config.content);
        config.protocol = self.protocol.unwrap_or(config.protocol);
        config.compression = self.compression.unwrap_or(config.compression);
        config.temporality = self.temporality.unwrap_or(config.temporality);
        let headers = self.header.iter().cloned();
        let headers = headers.map(|(name, value)| (name, HeaderValue::Text(value)));
        config.headers.extend(headers);
        config.resource.extend(self.resource.iter().cloned());
        config
    }
}

/// The section `otlp` of the user's settings.
pub(crate) fn load_config(engine: &Engine) -> anyhow::Result<OtlpConfig> {
    let settings = Settings::load(&engine.dirs).map_err(|why| anyhow!(why))?;
    if settings.otlp.is_null() {
        return Ok(OtlpConfig::default());
    }
    serde_json::from_value(settings.otlp).context("the section `otlp` of the settings is wrong")
}

/// Looks up secrets, checks the address and opens the position.
pub(crate) fn make_setup(
    engine: &Engine,
    config: OtlpConfig,
    usage: &UsageLog,
    cursor: Option<&str>,
) -> anyhow::Result<OtlpSetup> {
    let settings = Settings::load(&engine.dirs).map_err(|why| anyhow!(why))?;
    let endpoint = config.endpoint().trim_end_matches('/');
    let shown = config.shown_endpoint();
    let shown = shown.trim_end_matches('/');
    http::check_address(shown, &settings.http.allow_plain).map_err(|why| anyhow!(why))?;
    let headers = config.headers.iter();
    let headers = headers.map(|(name, value)| Ok((name.clone(), header_value(name, value)?)));
    let headers = headers.collect::<anyhow::Result<_>>()?;
    let folder = engine.dirs.state.join("export");
    Ok(OtlpSetup {
        headers,
        journal: engine.journal.folder().to_owned(),
        state: StateFile::open(folder.join(state_file_name(endpoint, cursor)?))?,
        since_us: None,
        host: host_name(),
        usage: Some((usage.ledger(), usage.prices.clone())),
        max_attempts: None,
        turn_idle: None,
        config,
    })
}

/// Each receiver has its own position in the journal.
fn state_file_name(endpoint: &str, cursor: Option<&str>) -> anyhow::Result<String> {
    if let Some(name) = cursor {
        super::check_cursor_name(name)?;
        return Ok(format!("otlp-{name}.json"));
    }
    let key = anyhook_util::hash::sha256(endpoint.as_bytes());
    Ok(format!("otlp-{}.json", key.get(..16).unwrap_or(&key)))
}

fn header_value(name: &str, value: &HeaderValue) -> anyhow::Result<String> {
    match value {
        HeaderValue::Text(text) => Ok(text.clone()),
        HeaderValue::FromVariable { env } => anyhook_util::env::by_name(env)
            .with_context(|| format!("the variable `{env}` for the header `{name}` is not set")),
        HeaderValue::FromFile { file } => {
            let text = anyhook_util::fs::read_text(Path::new(file), MAX_SECRET_BYTES)
                .with_context(|| format!("could not read `{}`", file.display()))?;
            Ok(text.trim().to_owned())
        }
    }
}

pub(crate) fn now_nanos() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default()
}

pub(crate) fn notice_text(notice: &ExportNotice<'_>) -> String {
    match notice {
        ExportNotice::Unavailable { reason, retry_in } => format!(
            "the receiver is not available ({reason}); trying again in {:.1} s",
            retry_in.as_secs_f64()
        ),
        ExportNotice::Rejected {
            signal,
            count,
            message,
        } => format!(
            "warning: the receiver rejected {} of the {}: {message}",
            counted(*count, "item"),
            signal.as_str()
        ),
        ExportNotice::Unsupported { signal, message } => format!(
            "warning: the receiver does not take {} ({message}); `--signals` or the setting `otlp.signals` leaves them out",
            signal.as_str()
        ),
        ExportNotice::Gap => {
            "warning: journal files were removed before they were sent, so the receiver lacks their events"
                .to_owned()
        }
    }
}

fn print_summary(args: &OtlpArgs, summary: ExportSummary, terminal: &Terminal) {
    if args.json {
        let line = serde_json::to_string(&summary).unwrap_or_default();
        terminal.line(&line);
        return;
    }
    terminal.line(&format!(
        "Exported {}: {}, {}, {} metric updates.",
        counted(summary.events, "event"),
        counted(summary.spans, "span"),
        counted(summary.log_records, "log record"),
        summary.metrics
    ));
    if summary.rejected > 0 {
        terminal.note(&format!(
            "The receiver rejected {}.",
            counted(summary.rejected, "item")
        ));
    }
    if summary.unreadable > 0 {
        terminal.note(&format!(
            "Skipped {} of the journal without a record.",
            counted(summary.unreadable, "line")
        ));
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn parse_protocol(word: &str) -> Result<Protocol, String> {
    match word {
        "protobuf" => Ok(Protocol::Protobuf),
        "json" => Ok(Protocol::Json),
        _ => Err("expected `protobuf` or `json`".to_owned()),
    }
}

fn parse_compression(word: &str) -> Result<Compression, String> {
    match word {
        "gzip" => Ok(Compression::Gzip),
        "none" => Ok(Compression::None),
        _ => Err("expected `gzip` or `none`".to_owned()),
    }
}

fn parse_temporality(word: &str) -> Result<Temporality, String> {
    match word {
        "cumulative" => Ok(Temporality::Cumulative),
        "delta" => Ok(Temporality::Delta),
        _ => Err("expected `cumulative` or `delta`".to_owned()),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = parse_duration_seconds(text).and_then(|it| u64::try_from(it).ok());
    let seconds = seconds.ok_or("expected a duration like 90s, 30m, 2h")?;
    Ok(Duration::from_secs(seconds))
}
