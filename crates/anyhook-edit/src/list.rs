//! A bracketed, comma-separated list as text: where its items, commas and
//! comments stand, and how one item goes in at the end or comes out.
//!
//! Shared by JSON arrays and objects and TOML's inline arrays and tables. It
//! knows nothing of what the items say.

use std::ops::Range;

use crate::source::{Insertion, from, indent_at, slice};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comments {
    /// `//` and `/* */`
    Slash,
    /// `#`
    Hash,
}

#[derive(Debug)]
pub(crate) struct List<'t> {
    text: &'t str,
    /// Between the brackets, without them.
    inner: Range<usize>,
    items: Vec<Range<usize>>,
    /// The comma after each item.
    commas: Vec<Option<usize>>,
    comments: Vec<Comment>,
}

#[derive(Debug)]
struct Comment {
    range: Range<usize>,
    /// Runs to the end of its line, and would swallow what is put behind it.
    line: bool,
}

/// How a new item is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// On the line where the list already is.
    Inline,
    /// On lines of its own, the first of which starts with this white space.
    Block { indent: String },
}

/// The habits of the text around the list.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub newline: &'static str,
    /// One level of indentation.
    pub unit: String,
    /// Whether an empty list is opened over several lines.
    pub block_when_empty: bool,
    /// White space after a comma when the list itself does not show it.
    pub gap: &'static str,
    /// White space inside the brackets of an empty list on one line.
    pub pad: &'static str,
}

impl<'t> List<'t> {
    pub(crate) fn scan(
        text: &'t str,
        inner: Range<usize>,
        items: Vec<Range<usize>>,
        syntax: Comments,
    ) -> Self {
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
    fn gap(&mut self, range: Range<usize>, syntax: Comments) -> Option<usize> {
        let mut comma = None;
        let mut at = range.start;
        while at < range.end {
            let rest = slice(self.text, at..range.end);
            let line = match syntax {
                Comments::Slash => rest.starts_with("//"),
                Comments::Hash => rest.starts_with('#'),
            };
            let len = if line {
                let len = rest.find('\n').unwrap_or(rest.len());
                slice(rest, 0..len).trim_end_matches('\r').len()
            } else if syntax == Comments::Slash && rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                let first = rest.chars().next();
                if first == Some(',') {
                    comma = comma.or(Some(at));
                }
                at += first.map_or(1, char::len_utf8);
                continue;
            };
            self.comments.push(Comment {
                range: at..at + len,
                line,
            });
            at += len;
        }
        comma
    }

    /// The end of the last item, comma or comment before `limit`, and whether
    /// it is a comment that swallows the rest of its line.
    fn solid_before(&self, limit: usize) -> (usize, bool) {
        let items = self.items.iter().map(|item| (item.end, false));
        let commas = self.commas.iter().flatten().map(|at| (at + 1, false));
        let comments = self
            .comments
            .iter()
            .map(|comment| (comment.range.end, comment.line));
        items
            .chain(commas)
            .chain(comments)
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

    /// What to put in so that one more item stands at the end of the list.
    pub(crate) fn insert(&self, look: &Look, render: &dyn Fn(&Layout) -> String) -> Vec<Insertion> {
        match (self.items.last(), self.commas.last()) {
            (Some(last), Some(comma)) => self.insert_after(last, *comma, look, render),
            _ => self.insert_first(look, render),
        }
    }

    fn insert_after(
        &self,
        last: &Range<usize>,
        comma: Option<usize>,
        look: &Look,
        render: &dyn Fn(&Layout) -> String,
    ) -> Vec<Insertion> {
        let (solid, swallows) = self.solid_before(self.inner.end);
        let block = self.on_own_line(self.items.len().saturating_sub(1)) || swallows;
        let layout = if block {
            Layout::Block {
                indent: indent_at(self.text, last.start).to_owned(),
            }
        } else {
            Layout::Inline
        };
        let mut new = match &layout {
            Layout::Block { indent } => format!("{}{indent}", look.newline),
            Layout::Inline => self.comma_gap().unwrap_or(look.gap).to_owned(),
        };
        new.push_str(&render(&layout));
        match comma {
            // A list that ends in a comma keeps ending in one.
            Some(_) => {
                new.push(',');
                vec![Insertion::new(solid, new)]
            }
            None if solid == last.end => vec![Insertion::new(solid, format!(",{new}"))],
            None => vec![Insertion::new(last.end, ","), Insertion::new(solid, new)],
        }
    }

    /// The spaces after the last comma between two items, when the list shows them.
    fn comma_gap(&self) -> Option<&'t str> {
        let last = self.items.last()?;
        let before = self.commas.len().checked_sub(2)?;
        let comma = self.commas.get(before).copied().flatten()?;
        let gap = slice(self.text, comma + 1..last.start);
        gap.chars().all(|c| c == ' ' || c == '\t').then_some(gap)
    }

    fn insert_first(&self, look: &Look, render: &dyn Fn(&Layout) -> String) -> Vec<Insertion> {
        let (solid, swallows) = self.solid_before(self.inner.end);
        let commented = solid > self.inner.start;
        let rest = slice(self.text, solid..self.inner.end);
        let base = indent_at(self.text, self.inner.start);
        if swallows || look.block_when_empty {
            let indent = format!("{base}{}", look.unit);
            let layout = Layout::Block {
                indent: indent.clone(),
            };
            let item = render(&layout);
            let nl = look.newline;
            return if rest.contains('\n') {
                vec![Insertion::new(solid, format!("{nl}{indent}{item}"))]
            } else {
                vec![Insertion::new(
                    self.inner.end,
                    format!("{nl}{indent}{item}{nl}{base}"),
                )]
            };
        }
        let item = render(&Layout::Inline);
        if commented {
            vec![Insertion::new(solid, format!(" {item}"))]
        } else if rest.is_empty() {
            vec![Insertion::new(solid, format!("{0}{item}{0}", look.pad))]
        } else if rest.contains('\n') {
            vec![Insertion::new(solid, item)]
        } else {
            vec![Insertion::new(solid, format!("{rest}{item}"))]
        }
    }

    /// What to take out so that the item at `index` is gone and nothing else is.
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
        let (solid, swallows) = self.solid_before(item.start);
        let line_rest = from(self.text, end).split('\n').next().unwrap_or_default();
        let ends_line = line_rest.trim().is_empty() && from(self.text, end).contains('\n');
        let start = if swallows && !ends_line {
            item.start
        } else {
            solid
        };
        ranges.push(start..end);
        ranges
    }
}
