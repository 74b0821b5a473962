//! The path of a finding in the document, formatted only when needed.

use std::fmt;

#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl Path<'static> {
    pub(super) const ROOT: Self = Self {
        parent: None,
        step: Step::Root,
    };
}

impl<'a> Path<'a> {
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(out)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Index(index) => write!(out, "[{index}]"),
            Step::Key(key) => {
                let top = self
                    .parent
                    .is_none_or(|parent| matches!(parent.step, Step::Root));
                out.write_str(if top { "" } else { "." })?;
                out.write_str(key)
            }
        }
    }
}
