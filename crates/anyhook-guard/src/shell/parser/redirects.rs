//! Redirects and the bodies of here-documents.

use super::words::resolve_word_bodies;
use super::{Parser, name_length};
use crate::shell::syntax::{RedirectKind, ScriptWord, SyntaxRedirect, WordPart};

pub(super) struct PendingBody {
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
}

impl Parser<'_> {
    /// Reads the bodies of here-documents after the line that announced them.
    pub(super) fn end_line(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let end;
            loop {
                let line_start = self.at;
                let rest = self.rest();
                if rest.is_empty() {
                    end = self.at;
                    break;
                }
                let length = rest.find('\n').map_or(rest.len(), |found| found + 1);
                self.at += length;
                let line = self
                    .slice(line_start, self.at)
                    .trim_end_matches(['\n', '\r']);
                let line = if pending.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == pending.delimiter {
                    end = line_start;
                    break;
                }
                // `$(cat <<X … X)` may be closed on the delimiter's line.
                if line
                    .strip_prefix(&pending.delimiter)
                    .is_some_and(|rest| rest.trim_start().starts_with(')') && self.nesting > 0)
                {
                    end = line_start;
                    self.at = line_start + pending.delimiter.len();
                    break;
                }
            }
            let text = self.slice(start, end);
            let body = if pending.is_quoted {
                ScriptWord::literal(text)
            } else {
                let mut inner = Parser {
                    text,
                    at: 0,
                    nesting: self.nesting,
                    pending: Vec::new(),
                    bodies: Vec::new(),
                    is_too_deep: false,
                    has_errors: false,
                };
                let parts = inner.quoted_parts(None);
                self.is_too_deep |= inner.is_too_deep;
                let mut word = ScriptWord { parts };
                resolve_word_bodies(&mut word, &mut inner.bodies);
                word
            };
            self.bodies.push(body);
        }
    }

    pub(super) fn redirect(&mut self) -> Option<SyntaxRedirect> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let mut descriptor = self.slice(start, self.at).to_owned();
        if self.at == start && self.peek() == Some(b'{') {
            let bytes = self.text.as_bytes().get(start + 1..).unwrap_or_default();
            let length = name_length(bytes);
            if length > 0
                && bytes.get(length) == Some(&b'}')
                && matches!(bytes.get(length + 1), Some(b'<' | b'>'))
            {
                self.slice(start + 1, start + 1 + length)
                    .clone_into(&mut descriptor);
                self.at += length + 2;
            }
        }
        if self.starts_with("<(") || self.starts_with(">(") {
            self.at = start;
            return None;
        }
        let found = REDIRECT_OPERATORS
            .iter()
            .find(|(operator, _)| self.starts_with(operator));
        let Some((operator, kind)) = found else {
            self.at = start;
            return None;
        };
        self.at += operator.len();
        self.skip_blanks();
        if matches!(*operator, "<<" | "<<-") {
            return Some(self.announce_body(*operator == "<<-"));
        }
        let word = self.word().unwrap_or_default();
        let is_descriptor = |word: &ScriptWord| {
            word.bare().is_some_and(|text| {
                text.bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'-')
            })
        };
        let kind = match kind {
            // `>& file` is a redirect of both outputs.
            RedirectKind::Duplicate if *operator == ">&" && !is_descriptor(&word) => {
                RedirectKind::Output
            }
            kind => *kind,
        };
        Some(SyntaxRedirect {
            kind,
            word,
            body: None,
            descriptor,
        })
    }

    fn announce_body(&mut self, strips_tabs: bool) -> SyntaxRedirect {
        let start = self.at;
        let word = self.word().unwrap_or_default();
        let raw = self.slice(start, self.at);
        let delimiter = word
            .parts
            .iter()
            .map(|part| match part {
                WordPart::Text { text, .. } => text.as_str(),
                _ => "",
            })
            .collect();
        let index = self.bodies.len() + self.pending.len();
        self.pending.push(PendingBody {
            delimiter,
            strips_tabs,
            is_quoted: raw.contains(['\'', '"', '\\']),
        });
        SyntaxRedirect {
            kind: RedirectKind::Text,
            word: ScriptWord::default(),
            body: Some(index),
            descriptor: String::new(),
        }
    }
}

/// The longest first.
const REDIRECT_OPERATORS: [(&str, RedirectKind); 12] = [
    ("&>>", RedirectKind::Append),
    ("&>", RedirectKind::Output),
    (">>", RedirectKind::Append),
    (">|", RedirectKind::Output),
    (">&", RedirectKind::Duplicate),
    (">", RedirectKind::Output),
    ("<<<", RedirectKind::Text),
    ("<<-", RedirectKind::Text),
    ("<<", RedirectKind::Text),
    ("<>", RedirectKind::ReadWrite),
    ("<&", RedirectKind::Duplicate),
    ("<", RedirectKind::Input),
];
