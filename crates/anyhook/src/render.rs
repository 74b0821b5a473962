//! The only place that writes to the terminal or asks the user, but for the line of
//! `progress`.
//!
//! A closed pipe is not an error: `anyhook events | head -1` ends quietly.

use std::fmt::Display;
use std::io::{self, BufRead as _, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhook_util::env;
use serde::Serialize;

use crate::cli::CommandStatus;
use crate::progress;

/// ANSI codes of the colours and styles in use.
pub(crate) mod colour {
    pub(crate) const PLAIN: &str = "";
    pub(crate) const BOLD: &str = "1";
    pub(crate) const DIM: &str = "2";
    pub(crate) const RED: &str = "31";
    pub(crate) const GREEN: &str = "32";
    pub(crate) const YELLOW: &str = "33";
    pub(crate) const CYAN: &str = "36";
    pub(crate) const BOLD_RED: &str = "1;31";
    pub(crate) const BOLD_YELLOW: &str = "1;33";
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    Auto,
    Always,
    Never,
}

/// Columns where the terminal does not report its width.
const DEFAULT_WIDTH: usize = 100;

/// Bytes that [`Terminal::buffered`] collects before it writes.
const BUFFER_BYTES: usize = 32 * 1024;

/// Stdout and stderr, and which of them may be coloured.
pub(crate) struct Terminal {
    stdout: io::Stdout,
    stderr: io::Stderr,
    pub is_stdout_coloured: bool,
    pub is_stderr_coloured: bool,
    has_printed: AtomicBool,
}

impl Terminal {
    /// With [`ColorChoice::Auto`], colours only a terminal, and nothing with `NO_COLOR`
    /// or `TERM=dumb`.
    pub(crate) fn from_env(color: ColorChoice) -> Self {
        let is_coloured = |is_terminal: bool| match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                is_terminal
                    && env::NO_COLOR.os().is_none_or(|value| value.is_empty())
                    && !env::TERM.is("dumb")
            }
        };
        Self {
            stdout: io::stdout(),
            stderr: io::stderr(),
            is_stdout_coloured: is_coloured(io::stdout().is_terminal()),
            is_stderr_coloured: is_coloured(io::stderr().is_terminal()),
            has_printed: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_stdout_terminal(&self) -> bool {
        self.stdout.is_terminal()
    }

    /// Whether something was printed to stdout.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed.load(Ordering::Relaxed)
    }

    /// Columns of stdout; without a limit on a pipe, where nothing may be cut.
    pub(crate) fn width(&self) -> usize {
        let stated = env::COLUMNS.text();
        stated
            .and_then(|columns| columns.parse().ok())
            .or_else(|| window_width(&self.stdout))
            .unwrap_or_else(|| {
                if self.stdout.is_terminal() {
                    DEFAULT_WIDTH
                } else {
                    usize::MAX
                }
            })
    }

    /// Prints text to stdout unchanged.
    pub(crate) fn text(&self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.has_printed.store(true, Ordering::Relaxed);
        write_ignoring_errors(self.stdout.lock(), bytes);
    }

    pub(crate) fn line(&self, text: &str) {
        self.try_line(text);
    }

    /// Prints a line; `false` when the reader of stdout is gone.
    pub(crate) fn try_line(&self, text: &str) -> bool {
        self.has_printed.store(true, Ordering::Relaxed);
        let mut out = self.stdout.lock();
        let line = format!("{text}\n");
        out.write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .is_ok()
    }

    /// Stdout for long output, written in large pieces.
    pub(crate) fn buffered(&self) -> impl Write + use<> {
        self.has_printed.store(true, Ordering::Relaxed);
        BufWriter::with_capacity(BUFFER_BYTES, self.stdout.lock())
    }

    /// Prints one indented document. Returns success, so that a command can end with it.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<CommandStatus> {
        self.line(&serde_json::to_string_pretty(value)?);
        Ok(CommandStatus::Success)
    }

    /// Prints a line to stderr.
    pub(crate) fn note(&self, text: &str) {
        progress::erase();
        write_ignoring_errors(self.stderr.lock(), format!("{text}\n").as_bytes());
    }

    /// Prints to stderr why the command failed.
    pub(crate) fn error(&self, message: &str) {
        let title = paint(self.is_stderr_coloured, colour::BOLD_RED, "error");
        self.note(&format!("{title}: {message}"));
    }

    /// Bold, for stderr.
    pub(crate) fn bold_err(&self, text: &str) -> String {
        paint(self.is_stderr_coloured, colour::BOLD, text)
    }

    /// A severity in its colour, for stderr.
    pub(crate) fn severity(&self, word: &str) -> String {
        let colour = match word {
            "error" | "critical" => colour::BOLD_RED,
            "warning" => colour::YELLOW,
            _ => colour::CYAN,
        };
        paint(self.is_stderr_coloured, colour, &format!("{word:<8}"))
    }

    /// Bold, for stdout.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint(colour::BOLD, text)
    }

    /// In a [`colour`], for stdout.
    pub(crate) fn paint(&self, colour: &str, text: &str) -> String {
        paint(self.is_stdout_coloured, colour, text)
    }

    /// Asks a yes-or-no question on stderr; Enter alone chooses the
    /// default, the end of input means no.
    pub(crate) fn confirm(&self, question: &str, default: bool) -> bool {
        let hint = if default { "Y/n" } else { "y/N" };
        let prompt = format!("{question} [{hint}] ");
        write_ignoring_errors(self.stderr.lock(), prompt.as_bytes());
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer).is_err() {
            return false;
        }
        match answer.trim().to_lowercase().as_str() {
            "" => default && !answer.is_empty(),
            answer => matches!(answer, "y" | "yes"),
        }
    }
}

/// Whether the user can see a question and answer it.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn paint(is_enabled: bool, colour: &str, text: &str) -> String {
    if is_enabled && !colour.is_empty() && !text.is_empty() {
        format!("\u{1b}[{colour}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

#[cfg(unix)]
fn window_width(stdout: &io::Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn window_width(_stdout: &io::Stdout) -> Option<usize> {
    None
}

/// Escapes control and invisible characters, so that untrusted text cannot move
/// the cursor or hide a part of itself.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// `1 hook`, `2 hooks`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn write_ignoring_errors(mut stream: impl Write, bytes: &[u8]) {
    // A failure cannot be reported: the stream itself is gone.
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
}
