//! The thread of the daemon that exports events as they arrive: the same as
//! `anyhook export otlp --follow`.

use std::io;
use std::time::Duration;

use anyhook_export::ExportError;
use anyhook_export::otlp::{ExportControl, ExportNotice, OtlpConfig, OtlpExporter};
use anyhook_run::Engine;

use crate::commands::export::otlp::{make_setup, notice_text, now_nanos};
use crate::commands::usage_log::UsageLog;
use crate::render::Terminal;

const JOURNAL_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After an error that a retry does not fix, such as a wrong header.
const FAILURE_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Runs until the process ends: what was not sent by then is sent after the next start.
pub(super) fn start(engine: Engine, config: OtlpConfig, terminal: Terminal) -> io::Result<()> {
    std::thread::Builder::new()
        .name("anyhook-export".to_owned())
        .spawn(move || {
            loop {
                let Err(error) = export(&engine, &config, &terminal) else {
                    return;
                };
                terminal.note(&format!("OpenTelemetry export: {error:#}"));
                std::thread::sleep(FAILURE_RETRY_DELAY);
            }
        })?;
    Ok(())
}

fn export(engine: &Engine, config: &OtlpConfig, terminal: &Terminal) -> anyhow::Result<()> {
    let usage = UsageLog::open(engine)?;
    let mut exporter = OtlpExporter::new(make_setup(engine, config.clone(), &usage, None)?);
    let mut is_available = true;
    loop {
        let mut wait = |delay| {
            std::thread::sleep(delay);
            true
        };
        let mut notice = |notice: ExportNotice<'_>| {
            // A receiver that is away for a day is worth one line.
            let is_outage = matches!(notice, ExportNotice::Unavailable { .. });
            if !is_outage || is_available {
                terminal.note(&format!("OpenTelemetry export: {}", notice_text(&notice)));
            }
            is_available = !is_outage;
        };
        let mut control = ExportControl {
            wait: &mut wait,
            notice: &mut notice,
            now: &now_nanos,
        };
        usage.collect()?;
        match exporter.export_all(&mut control) {
            Ok(()) => is_available = true,
            Err(ExportError::Stopped) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(JOURNAL_POLL_INTERVAL);
    }
}
