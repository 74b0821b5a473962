//! `anyhook openhook check` compared with `jq -c .` on the same stream.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Setup;
use super::measure::{Case, measure};

const ENVELOPE_COUNT: u32 = 100_000;
/// A session is a start, a prompt, tool calls that write, and an end.
const ENVELOPES_PER_SESSION: u32 = 50;

pub(super) fn run(setup: &Setup) -> Result<(), String> {
    let file = write_stream(setup, ENVELOPE_COUNT)?;
    let size = std::fs::metadata(&file).map_err(|error| error.to_string())?;
    let check = |file: &Path| {
        let mut command = setup.command();
        command.args(["openhook", "check", "--discovery"]).arg(file);
        command
    };
    let jq = |file: &Path| {
        let mut command = Command::new("jq");
        command.args(["-c", "."]).arg(file);
        command
    };
    let mut cases = vec![Case::new("openhook check", || check(&file))];
    if crate::run::succeeds(Command::new("jq").arg("--version")) {
        cases.push(Case::new("jq -c .", || jq(&file)));
    } else {
        println!("jq is not installed: nothing to compare with");
    }
    let times = measure(&cases, 7)?;
    println!(
        "{ENVELOPE_COUNT} envelopes, {:.1} MiB\n{:<20} {:>9} {:>14} {:>11} {:>9}",
        mebibytes(size.len()),
        "",
        "best ms",
        "envelopes/s",
        "MiB/s",
        "peak MiB"
    );
    for (case, time) in cases.iter().zip(&times) {
        let seconds = time.best_ms / 1000.0;
        println!(
            "{:<20} {:>9.0} {:>14.0} {:>11.1} {:>9.1}",
            case.name,
            time.best_ms,
            f64::from(ENVELOPE_COUNT) / seconds,
            mebibytes(size.len()) / seconds,
            peak_memory_mib((case.make)())?
        );
    }
    if let [ours, theirs] = times.as_slice() {
        println!(
            "check is {:.1} times as fast",
            theirs.best_ms / ours.best_ms
        );
    }
    for envelopes in [ENVELOPE_COUNT / 10, ENVELOPE_COUNT * 10] {
        let file = write_stream(setup, envelopes)?;
        println!(
            "{envelopes} envelopes: peak {:.1} MiB",
            peak_memory_mib(check(&file))?
        );
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Writes a conforming stream and returns its path.
fn write_stream(setup: &Setup, envelopes: u32) -> Result<PathBuf, String> {
    let path = setup.folder.join(format!("{envelopes}.jsonl"));
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(&path)?);
        for number in 0..envelopes {
            let (kind, data) = event(number);
            let session = number / ENVELOPES_PER_SESSION;
            let (minute, second) = (number / 60 % 60, number % 60);
            let (day, hour) = (1 + number / 86_400 % 28, number / 3600 % 24);
            writeln!(
                out,
                r#"{{"openhook":"0.1","id":"{number:08x}-0000-5000-8000-000000000000","source":"claude-code","type":"{kind}","time":"2026-02-{day:02}T{hour:02}:{minute:02}:{second:02}.123Z","session_id":"session-{session}","data":{data},"cwd":"/home/user/project","context":"file:///home/user/project","extensions":{{"dev.anyhook":{{"tool":"file_write"}}}}}}"#
            )?;
        }
        out.flush()
    };
    write().map_err(|error| error.to_string())?;
    Ok(path)
}

fn event(number: u32) -> (&'static str, String) {
    let position = number % ENVELOPES_PER_SESSION;
    let call = number / 3;
    let session = number / ENVELOPES_PER_SESSION;
    match position {
        0 => (
            "session.start",
            r#"{"model":"anthropic/claude-sonnet-4-6"}"#.to_owned(),
        ),
        1 => ("prompt.submit", r#"{"prompt_length":42}"#.to_owned()),
        _ if position + 1 == ENVELOPES_PER_SESSION => (
            "session.end",
            format!(
                r#"{{"reason":"completed","transcript_path":"/home/user/.claude/{session}.jsonl","duration_ms":50000,"input_tokens":12000,"output_tokens":3400}}"#
            ),
        ),
        _ => match number % 3 {
            0 => (
                "tool.start",
                format!(r#"{{"tool_name":"Write","tool_call_id":"toolu_{call}"}}"#),
            ),
            1 => (
                "tool.end",
                format!(
                    r#"{{"tool_name":"Write","tool_call_id":"toolu_{call}","status":"success","duration_ms":17}}"#
                ),
            ),
            _ => (
                "file.write",
                format!(
                    r#"{{"path":"src/module_{call}.rs","operation":"update","start_line":10,"end_line":40,"model":"anthropic/claude-sonnet-4-6","tool_call_id":"toolu_{call}"}}"#
                ),
            ),
        },
    }
}

/// The peak memory of a command in MiB, read from the kernel until the process
/// ends.
pub(super) fn peak_memory_mib(mut command: Command) -> Result<f64, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut child = command.stdout(Stdio::null()).spawn().map_err(failed)?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0.0_f64;
    while child.try_wait().map_err(failed)?.is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = mark.and_then(|mark| mark.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or_default());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(peak_kib / 1024.0)
}
