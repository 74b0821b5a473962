//! A table that fits the terminal: where there is too little room, the widest
//! columns wrap.

use crate::render::{Terminal, visible};

const GAP: usize = 2;

/// No column is made narrower to give room to others.
const LEAST: usize = 12;

/// A cell, in a colour or plain.
pub struct Cell {
    text: String,
    colour: &'static str,
}

impl Cell {
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::painted("", text)
    }

    pub fn painted(colour: &'static str, text: impl AsRef<str>) -> Self {
        Self {
            text: visible(text.as_ref()),
            colour,
        }
    }
}

/// Prints a table, indented by two.
pub fn print(terminal: &Terminal, titles: &[&str], rows: &[Vec<Cell>]) {
    let mut widths: Vec<usize> = titles.iter().map(|title| length(title)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(&cell.text));
        }
    }
    fit(&mut widths, terminal.width().saturating_sub(GAP));
    let head: Vec<Cell> = titles
        .iter()
        .map(|title| Cell::painted("1", title.to_uppercase()))
        .collect();
    for row in std::iter::once(&head).chain(rows) {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| wrapped(&cell.text, *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for n in 0..height {
            let mut line = String::new();
            for ((cell, lines), width) in row.iter().zip(&cells).zip(&widths) {
                let text = lines.get(n).map(String::as_str).unwrap_or_default();
                line.push_str(&" ".repeat(GAP));
                line.push_str(&terminal.paint(cell.colour, text));
                line.push_str(&" ".repeat(width.saturating_sub(length(text))));
            }
            terminal.line(line.trim_end());
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Takes from the widest until all fit.
fn fit(widths: &mut [usize], room: usize) {
    loop {
        let total: usize = widths.iter().map(|width| width + GAP).sum();
        let widest = widths.iter_mut().max();
        match widest {
            Some(widest) if total > room + GAP && *widest > LEAST => *widest -= 1,
            _ => return,
        }
    }
}

/// Lines no longer than `width`, broken between words where that is possible.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
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
    fn the_widest_gives_way() {
        let mut widths = [10, 50, 20];
        fit(&mut widths, 60);
        assert_eq!(widths.iter().map(|width| width + GAP).sum::<usize>(), 62);
        assert_eq!(widths[0], 10);
        let mut narrow = [10, 13];
        fit(&mut narrow, 5);
        assert_eq!(narrow, [10, 12]);
    }
}
