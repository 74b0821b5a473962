//! The text of a bracketed, comma-separated list: where its items, commas and
//! comments are, how to append an item and how to remove one.
//!
//! Shared by JSON arrays and objects and TOML's inline arrays and tables. Does
//! not look into the items.

use std::ops::Range;

use anyhook_model::document::Node;

use crate::text::{Insertion, from, indent_at, slice};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommentSyntax {
    /// `//` and `/* */`
    Slash,
    /// `#`
    Hash,
}

#[derive(Debug)]
pub(crate) struct BracketedList<'t> {
    text: &'t str,
    /// Between the brackets, without them.
    inner: Range<usize>,
    items: Vec<Range<usize>>,
    /// The comma after each item.
    commas: Vec<Option<usize>>,
    /// The end of each comment, and whether the comment runs to the end of its
    /// line, where it would swallow text inserted after it.
    comments: Vec<(usize, bool)>,
}

/// Writes a new item: on separate lines that start with the given white space,
/// or without it, on the line where the list already is.
pub(crate) type RenderItem<'r> = &'r dyn Fn(Option<&str>) -> String;

/// How lists are formatted in the text around this one.
#[derive(Debug, Clone)]
pub(crate) struct ListStyle {
    pub newline: &'static str,
    /// One level of indentation.
    pub indent: String,
    /// Whether an empty list is opened over several lines.
    pub block_when_empty: bool,
    /// White space after a comma, if the list itself has no example.
    pub gap: &'static str,
    /// White space inside the brackets of an empty list on one line.
    pub pad: &'static str,
}

impl<'t> BracketedList<'t> {
    pub(crate) fn scan(
        text: &'t str,
        node: &Node,
        items: Vec<Range<usize>>,
        syntax: CommentSyntax,
    ) -> Self {
        let inner = node.span.start + 1..node.span.end.saturating_sub(1);
        let mut list = Self {
            text,
            commas: Vec::with_capacity(items.len()),
            comments: Vec::new(),
            items: Vec::new(),
            inner: inner.clone(),
        };
        let first = items.first().map_or(inner.end, |item| item.start);
        list.gap(inner.start..first, syntax);
        let next = items.iter().skip(1).map(|item| item.start);
        for (item, next) in items.iter().zip(next.chain([inner.end])) {
            let comma = list.gap(item.end..next, syntax);
            list.commas.push(comma);
        }
        list.items = items;
        list
    }

    /// Records the comments between two items and returns the first comma.
    fn gap(&mut self, range: Range<usize>, syntax: CommentSyntax) -> Option<usize> {
        let mut comma = None;
        let mut at = range.start;
        while at < range.end {
            let rest = slice(self.text, at..range.end);
            let line = match syntax {
                CommentSyntax::Slash => rest.starts_with("//"),
                CommentSyntax::Hash => rest.starts_with('#'),
            };
            let len = if line {
                let len = rest.find('\n').unwrap_or(rest.len());
                slice(rest, 0..len).trim_end_matches('\r').len()
            } else if syntax == CommentSyntax::Slash && rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                let first = rest.chars().next();
                if first == Some(',') {
                    comma = comma.or(Some(at));
                }
                at += first.map_or(1, char::len_utf8);
                continue;
            };
            at += len;
            self.comments.push((at, line));
        }
        comma
    }

    /// The end of the last item, comma or comment before `limit`, and whether
    /// it is a comment that swallows the rest of its line.
    fn content_end_before(&self, limit: usize) -> (usize, bool) {
        let items = self.items.iter().map(|item| (item.end, false));
        let commas = self.commas.iter().flatten().map(|at| (at + 1, false));
        items
            .chain(commas)
            .chain(self.comments.iter().copied())
            .filter(|(end, _)| *end <= limit && *end > self.inner.start)
            .max_by_key(|(end, _)| *end)
            .unwrap_or((self.inner.start, false))
    }

    /// Whether the item at `index` is the first thing on its line.
    pub(crate) fn on_own_line(&self, index: usize) -> bool {
        let Some(item) = self.items.get(index) else {
            return false;
        };
        let start = match index.checked_sub(1).and_then(|prev| self.commas.get(prev)) {
            Some(Some(comma)) => comma + 1,
            _ => self.inner.start,
        };
        slice(self.text, start..item.start).contains('\n')
    }

    /// The insertions that append an item.
    pub(crate) fn insert(&self, style: &ListStyle, render: RenderItem<'_>) -> Vec<Insertion> {
        match (self.items.last(), self.commas.last()) {
            (Some(last), Some(comma)) => self.insert_after(last, *comma, style, render),
            _ => vec![self.insert_first(style, render)],
        }
    }

    fn insert_after(
        &self,
        last: &Range<usize>,
        comma: Option<usize>,
        style: &ListStyle,
        render: RenderItem<'_>,
    ) -> Vec<Insertion> {
        let (content_end, swallows) = self.content_end_before(self.inner.end);
        let block = self.on_own_line(self.items.len().saturating_sub(1)) || swallows;
        let indent = block.then(|| indent_at(self.text, last.start));
        let new = self.gap_before_item(style, indent) + &render(indent);
        match comma {
            // A list with a trailing comma keeps one.
            Some(_) => vec![Insertion::new(content_end, new + ",")],
            None if content_end == last.end => vec![Insertion::new(content_end, format!(",{new}"))],
            None => vec![
                Insertion::new(last.end, ","),
                Insertion::new(content_end, new),
            ],
        }
    }

    fn gap_before_item(&self, style: &ListStyle, indent: Option<&str>) -> String {
        match indent {
            Some(indent) => format!("{}{indent}", style.newline),
            None => self.comma_gap().unwrap_or(style.gap).to_owned(),
        }
    }

    /// What is between two items that are added, on separate lines if there is an indent.
    pub(crate) fn separator(&self, style: &ListStyle, indent: Option<&str>) -> String {
        format!(",{}", self.gap_before_item(style, indent))
    }

    /// The spaces after the last comma between two items, if there is one.
    fn comma_gap(&self) -> Option<&'t str> {
        let last = self.items.last()?;
        let before = self.commas.len().checked_sub(2)?;
        let comma = self.commas.get(before).copied().flatten()?;
        let gap = slice(self.text, comma + 1..last.start);
        gap.chars().all(|c| c == ' ' || c == '\t').then_some(gap)
    }

    fn insert_first(&self, style: &ListStyle, render: RenderItem<'_>) -> Insertion {
        let (content_end, swallows) = self.content_end_before(self.inner.end);
        let commented = content_end > self.inner.start;
        let rest = slice(self.text, content_end..self.inner.end);
        let base = indent_at(self.text, self.inner.start);
        if swallows || style.block_when_empty {
            let indent = format!("{base}{}", style.indent);
            let item = render(Some(&indent));
            let nl = style.newline;
            return if rest.contains('\n') {
                Insertion::new(content_end, format!("{nl}{indent}{item}"))
            } else {
                Insertion::new(self.inner.end, format!("{nl}{indent}{item}{nl}{base}"))
            };
        }
        let item = render(None);
        let new = if commented {
            format!(" {item}")
        } else if rest.is_empty() {
            format!("{0}{item}{0}", style.pad)
        } else if rest.contains('\n') {
            item
        } else {
            format!("{rest}{item}")
        };
        Insertion::new(content_end, new)
    }

    /// The ranges to remove so that only the item at `index` is gone.
    pub(crate) fn remove(&self, index: usize) -> Vec<Range<usize>> {
        let Some(item) = self.items.get(index) else {
            return Vec::new();
        };
        if self.items.len() == 1 && self.comments.is_empty() {
            return vec![self.inner.clone()];
        }
        let own = self.commas.get(index).copied().flatten();
        let previous = index
            .checked_sub(1)
            .and_then(|at| self.commas.get(at).copied().flatten());
        let mut ranges = Vec::new();
        let mut end = item.end;
        if let Some(comma) = own {
            if slice(self.text, item.end..comma).trim().is_empty() {
                end = comma + 1;
            } else {
                ranges.push(comma..comma + 1);
            }
        } else if let Some(comma) = previous {
            ranges.push(comma..comma + 1);
        }
        let (content_end, swallows) = self.content_end_before(item.start);
        let line_rest = from(self.text, end).split('\n').next().unwrap_or_default();
        let ends_line = line_rest.trim().is_empty() && from(self.text, end).contains('\n');
        let start = if swallows && !ends_line {
            item.start
        } else {
            content_end
        };
        ranges.push(start..end);
        ranges
    }
}
