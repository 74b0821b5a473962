//! Renders a diagnostic for people: position, source line, underline, help.

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Severity, Span};

/// A longer source line is cut around the finding.
const MAX_LINE_COLUMNS: usize = 100;

/// A text with its line starts, so that many findings cost one scan.
pub struct SourceText<'a> {
    name: &'a str,
    text: &'a str,
    line_starts: Vec<usize>,
}

/// Both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl<'a> SourceText<'a> {
    /// `name` is shown before the line number, usually a path.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self {
            name,
            text,
            line_starts,
        }
    }

    pub fn position(&self, offset: usize) -> Position {
        let offset = self.boundary(offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_start(line);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position {
            line,
            column: before.trim_start_matches('\u{feff}').chars().count() + 1,
        }
    }

    /// The finding with its source line; several lines, the last one ended.
    pub fn render(&self, diagnostic: &Diagnostic, colour: bool) -> String {
        let paint = |style: &str, text: &str| {
            if colour {
                format!("\u{1b}[{style}m{text}\u{1b}[0m")
            } else {
                text.to_owned()
            }
        };
        let Position { line, column } = self.position(diagnostic.span.start);
        let style = severity_style(diagnostic.severity);
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{}: {}[{}]: {}",
            paint(BOLD, &format!("{}:{line}:{column}", printable(self.name))),
            paint(style, diagnostic.severity.as_str()),
            diagnostic.code,
            paint(BOLD, &printable(&diagnostic.message)),
        );

        let (shown, indent, width) = self.excerpt(line, diagnostic.span);
        if !shown.trim().is_empty() {
            let number = line.to_string();
            let gutter = " ".repeat(number.len());
            let bar = paint(BLUE, "|");
            let _ = writeln!(out, "{gutter} {bar}");
            let _ = writeln!(out, "{} {bar} {shown}", paint(BLUE, &number));
            let marks = paint(style, &"^".repeat(width));
            let _ = writeln!(out, "{gutter} {bar} {}{marks}", " ".repeat(indent));
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(out, "  {} {}", paint(CYAN, "help:"), printable(help));
        }
        out
    }

    /// The line as shown, the column of the underline in it, and its width.
    fn excerpt(&self, line: usize, span: Span) -> (String, usize, usize) {
        let start = self.line_start(line);
        let end = self
            .line_starts
            .get(line)
            .copied()
            .unwrap_or(self.text.len());
        let whole = self
            .text
            .get(start..end)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r']);
        let from = self.boundary(span.start);
        let to = self.boundary(span.end).max(from);
        let mut cells: Vec<char> = Vec::new();
        let (mut first, mut last) = (None, 0);
        for (at, letter) in whole.char_indices() {
            let at = start + at;
            if letter == '\u{feff}' {
                continue;
            }
            if at >= from && first.is_none() {
                first = Some(cells.len());
            }
            if letter == '\t' {
                cells.extend([' '; 4]);
            } else {
                cells.push(visible(letter));
            }
            if at < to {
                last = cells.len();
            }
        }
        let first = first.unwrap_or(cells.len());
        let width = last.saturating_sub(first).max(1);
        if cells.len() <= MAX_LINE_COLUMNS {
            return (cells.into_iter().collect(), first, width);
        }
        let skip = first.saturating_sub(MAX_LINE_COLUMNS / 3);
        let mut shown: String = cells.iter().skip(skip).take(MAX_LINE_COLUMNS).collect();
        let mut indent = first - skip;
        if skip > 0 {
            shown.insert_str(0, "... ");
            indent += 4;
        }
        if skip + MAX_LINE_COLUMNS < cells.len() {
            shown.push_str(" ...");
        }
        (
            shown,
            indent,
            width
                .min(MAX_LINE_COLUMNS.saturating_sub(first - skip))
                .max(1),
        )
    }

    fn line_start(&self, line: usize) -> usize {
        line.checked_sub(1)
            .and_then(|index| self.line_starts.get(index))
            .copied()
            .unwrap_or_default()
    }

    /// The nearest character boundary at or before an offset.
    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// Text from a file may contain terminal commands; none reaches the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter == '\n' { ' ' } else { visible(letter) })
        .collect()
}

fn visible(letter: char) -> char {
    if letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    {
        '\u{fffd}'
    } else {
        letter
    }
}

/// Styles of ANSI escape sequences.
const BOLD: &str = "1";
const BLUE: &str = "1;34";
const CYAN: &str = "1;36";

fn severity_style(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => CYAN,
    }
}

#[cfg(test)]
mod tests {
    use super::SourceText;
    use crate::diagnostic::{Diagnostic, Span};

    #[test]
    fn shows_the_line_and_underlines() {
        let text = "a: 1\nbß: wrong\n";
        let source = SourceText::new("x.yaml", text);
        let start = text.find("wrong").unwrap();
        let finding = Diagnostic::error("some-code", Span::new(start, start + 5), "no good")
            .help("write it right");
        assert_eq!(
            source.render(&finding, false),
            "x.yaml:2:5: error[some-code]: no good\n  |\n2 | bß: wrong\n  |     ^^^^^\n  help: write it right\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_finding() {
        let text = format!("{}HERE{}", "x".repeat(5000), "y".repeat(5000));
        let source = SourceText::new("x.json", &text);
        let finding = Diagnostic::error("c", Span::new(5000, 5004), "m");
        let shown = source.render(&finding, false);
        assert!(shown.lines().all(|line| line.len() < 140), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[2].find("HERE"), lines[3].find("^^^^"), "{shown}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = "key: \u{1b}[2J";
        let source = SourceText::new("x\u{7}", text);
        let finding = Diagnostic::error("c", Span::new(0, 3), "bad \u{1b}]0;title\u{7}");
        assert!(!source.render(&finding, false).contains(['\u{1b}', '\u{7}']));
    }

    #[test]
    fn offsets_outside_the_text_are_tolerated() {
        for text in ["", "ß", "a\n"] {
            let source = SourceText::new("x", text);
            let finding = Diagnostic::error("c", Span::new(1, 99), "m");
            assert!(source.render(&finding, true).contains("error"));
        }
    }
}
