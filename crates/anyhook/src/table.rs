//! Tables, fitted to the width of the terminal (the widest columns wrap); on a pipe one
//! line per row, which scripts split into columns.

use crate::render::{Terminal, colour, visible};

const GAP_WIDTH: usize = 2;

/// No column is made narrower than this to fit the terminal, unless nothing else helps.
const MIN_COLUMN_WIDTH: usize = 12;

/// No column is ever made narrower than this.
const SMALLEST_COLUMN_WIDTH: usize = 6;

/// One cell of a table.
pub(crate) struct Cell {
    text: String,
    colour: &'static str,
}

impl Cell {
    pub(crate) fn painted(colour: &'static str, text: impl AsRef<str>) -> Self {
        Self {
            text: visible(text.as_ref()),
            colour,
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(colour::PLAIN, text)
    }
}

/// Prints a table, indented and wrapped to the terminal.
pub(crate) fn print<const N: usize>(
    terminal: &Terminal,
    titles: [&str; N],
    rows: impl IntoIterator<Item = [Cell; N]>,
) {
    print_fitted(terminal, GAP_WIDTH, terminal.width(), titles, rows);
}

/// Prints a table that begins at the margin.
pub(crate) fn print_at_margin<const N: usize>(
    terminal: &Terminal,
    titles: [&str; N],
    rows: impl IntoIterator<Item = [Cell; N]>,
) {
    print_fitted(terminal, 0, terminal.width(), titles, rows);
}

fn print_fitted<const N: usize>(
    terminal: &Terminal,
    indent: usize,
    max_width: usize,
    titles: [&str; N],
    rows: impl IntoIterator<Item = [Cell; N]>,
) {
    let head = titles.map(|title| Cell::painted(colour::BOLD, title.to_uppercase()));
    let rows: Vec<[Cell; N]> = std::iter::once(head).chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = length(&cell.text).max(*width);
        }
    }
    fit(&mut widths, max_width.saturating_sub(indent));
    for row in &rows {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| wrapped(&cell.text, width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for n in 0..height {
            let mut line = " ".repeat(indent);
            for ((cell, lines), width) in row.iter().zip(&cells).zip(widths) {
                let text = lines.get(n).map(String::as_str).unwrap_or_default();
                line.push_str(&terminal.paint(cell.colour, text));
                line.push_str(&" ".repeat(width.saturating_sub(length(text)) + GAP_WIDTH));
            }
            terminal.line(line.trim_end());
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Narrows the widest column until all fit.
fn fit(widths: &mut [usize], room: usize) {
    let room = room.saturating_add(GAP_WIDTH);
    // The first column has the names of the rows; it stays whole if it can.
    let steps = [
        (MIN_COLUMN_WIDTH, 1),
        (SMALLEST_COLUMN_WIDTH, 1),
        (SMALLEST_COLUMN_WIDTH, 0),
    ];
    for (smallest, kept) in steps {
        loop {
            let total: usize = widths.iter().map(|width| width + GAP_WIDTH).sum();
            match widths.iter_mut().skip(kept).max() {
                Some(widest) if total > room && *widest > smallest => *widest -= 1,
                _ => break,
            }
        }
    }
}

/// Lines no longer than `width`, broken between words where that is possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if length(text) <= width {
        return vec![text.to_owned()];
    }
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word.to_owned();
        while let Some(line) = lines.last_mut() {
            let used = length(line);
            let gap = usize::from(used > 0);
            if used + gap + length(&word) <= width {
                if gap == 1 {
                    line.push(' ');
                }
                line.push_str(&word);
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let rest: String = word.chars().skip(width).collect();
            line.extend(word.chars().take(width));
            word = rest;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_and_long_ones_break() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 5), ["abcde", "fgh", "ij"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn the_widest_column_is_narrowed() {
        let mut widths = [10, 50, 20];
        fit(&mut widths, 60);
        assert_eq!(
            widths.iter().map(|width| width + GAP_WIDTH).sum::<usize>(),
            62
        );
        assert_eq!(widths[0], 10);
        let mut narrow = [10, 13];
        fit(&mut narrow, 5);
        assert_eq!(narrow, [6, 6]);
    }
}
