//! The only place that writes to the terminal.
//!
//! A closed pipe is no failure: `anyhook events | head -1` ends quietly.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// What is known of the two streams.
pub struct Terminal {
    out: io::Stdout,
    err: io::Stderr,
    colour_out: bool,
    colour_err: bool,
}

impl Terminal {
    /// Colour only on a terminal, and never with `NO_COLOR`.
    pub fn from_env() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self {
            out: io::stdout(),
            err: io::stderr(),
            colour_out: wanted && io::stdout().is_terminal(),
            colour_err: wanted && io::stderr().is_terminal(),
        }
    }

    /// Whether what goes to stdout may be coloured.
    pub fn colour(&self) -> bool {
        self.colour_out
    }

    /// Columns of stdout; a readable number where nobody says.
    pub fn width(&self) -> usize {
        let stated = std::env::var("COLUMNS").ok();
        stated
            .and_then(|columns| columns.parse().ok())
            .or_else(|| window(&self.out))
            .unwrap_or(100)
    }

    /// Whether what goes to stderr may be coloured.
    pub fn colour_err(&self) -> bool {
        self.colour_err
    }

    /// Text for stdout, as it is.
    pub fn text(&self, text: &str) {
        write(self.out.lock(), text.as_bytes());
    }

    pub fn bytes(&self, bytes: &[u8]) {
        write(self.out.lock(), bytes);
    }

    pub fn line(&self, text: &str) {
        self.text(&format!("{text}\n"));
    }

    /// A line for whoever follows; `false` when nobody reads any more.
    pub fn try_line(&self, text: &str) -> bool {
        let mut out = self.out.lock();
        let line = format!("{text}\n");
        out.write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .is_ok()
    }

    /// One document, indented.
    pub fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        self.line(&serde_json::to_string_pretty(value)?);
        Ok(())
    }

    /// Columns as wide as their widest cell; the last one runs free.
    pub fn table(&self, header: &[&str], rows: &[Vec<String>]) {
        let mut widths: Vec<usize> = header.iter().map(|title| title.chars().count()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let titles: Vec<String> = header.iter().map(|title| title.to_uppercase()).collect();
        let mut out = self.bold(&aligned(&titles, &widths));
        out.push('\n');
        for row in rows {
            out.push_str(&aligned(row, &widths));
            out.push('\n');
        }
        self.text(&out);
    }

    /// A line beside the output, on stderr.
    pub fn note(&self, text: &str) {
        write(self.err.lock(), format!("{text}\n").as_bytes());
    }

    /// Bold, for stderr.
    pub fn bold_err(&self, text: &str) -> String {
        if self.colour_err {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A severity in its colour, for stderr.
    pub fn severity(&self, word: &str) -> String {
        let colour = match word {
            "error" | "critical" => "1;31",
            "warning" => "33",
            _ => "36",
        };
        if self.colour_err {
            format!("\u{1b}[{colour}m{word:<8}\u{1b}[0m")
        } else {
            format!("{word:<8}")
        }
    }

    /// Why the command failed, on stderr.
    pub fn failure(&self, message: &str) {
        let title = if self.colour_err {
            "\u{1b}[1;31merror\u{1b}[0m"
        } else {
            "error"
        };
        write(self.err.lock(), format!("{title}: {message}\n").as_bytes());
    }

    /// Bold, for stdout.
    pub fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// In a colour by its number, for stdout.
    pub fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour_out && !colour.is_empty() && !text.is_empty() {
            format!("\u{1b}[{colour}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A question, on stderr; the answer is typed behind it.
    pub fn prompt(&self, text: &str) {
        write(self.err.lock(), text.as_bytes());
    }
}

#[cfg(unix)]
fn window(out: &io::Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn window(_out: &io::Stdout) -> Option<usize> {
    None
}

/// Text of others for a terminal: what would move the cursor or hide something
/// is seen as what it is.
pub fn visible(text: &str) -> String {
    let is_hidden = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .flat_map(|letter| {
            let escaped = is_hidden(letter).then(|| letter.escape_default());
            let plain = (!is_hidden(letter)).then_some(letter);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"))
        .collect();
    padded.join("  ").trim_end().to_owned()
}

fn write(mut stream: impl Write, bytes: &[u8]) {
    // Nobody is left to be told when this fails.
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
}
