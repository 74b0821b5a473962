//! JSON, strict or with comments and trailing commas.
//!
//! Not a parser crate, because the tree needs the positions of keys, a limit on
//! depth, numbers as written, and findings that do not end at the first error.

use super::{MAX_DEPTH, Member, Node, Value, parse_number, report_duplicates, too_deep};
use crate::diagnostic::{Diagnostic, Span};

/// Deepest nesting in files of other programs, which are only edited.
const MAX_EDITING_DEPTH: usize = 128;

pub(super) fn parse(text: &str, comments: bool) -> (Option<Node>, Vec<Diagnostic>) {
    let mut parser = Parser::new(text, comments, false);
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    let tree = parser.document();
    (tree, parser.findings)
}

/// See [`super::parse_json_for_editing`].
pub(super) fn parse_for_editing(text: &str, comments: bool) -> Result<Option<Node>, Diagnostic> {
    let mut parser = Parser::new(text, comments, true);
    let tree = parser.document();
    match parser.findings.into_iter().next() {
        Some(finding) => Err(finding),
        None => Ok(tree),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Always on a character boundary.
    at: usize,
    /// Whether comments and trailing commas are allowed.
    comments: bool,
    editing: bool,
    findings: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, comments: bool, editing: bool) -> Self {
        Self {
            text,
            at: 0,
            comments,
            editing,
            findings: Vec::new(),
        }
    }

    /// `None` without a finding: the text is blank.
    fn document(&mut self) -> Option<Node> {
        self.skip_blank()?;
        self.peek()?;
        let node = self.value(0)?;
        self.skip_blank()?;
        if self.peek().is_some() {
            let span = self.here();
            self.report(span, "unexpected text after the end of the document");
        }
        Some(node)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The character at the cursor, for a message.
    fn here(&self) -> Span {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        Span::new(self.at, self.at + width)
    }

    fn report(&mut self, span: Span, message: impl Into<String>) {
        self.findings
            .push(Diagnostic::error("syntax", span, message));
    }

    fn report_with_help(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.findings
            .push(Diagnostic::error("syntax", span, message).help(help));
    }

    /// White space and comments. `None` if a comment is malformed.
    fn skip_blank(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') if self.rest().starts_with("//") => {
                    let line = self.rest().split('\n').next().unwrap_or_default();
                    let body = line.strip_suffix('\r').unwrap_or(line);
                    if self.editing && body.contains('\r') {
                        let span = Span::new(self.at, self.at + line.len());
                        self.report(span, "carriage return inside a comment: some readers end the comment there, others do not");
                        return None;
                    }
                    self.comment(line.len());
                }
                Some(b'/') if self.rest().starts_with("/*") => {
                    let body = self.rest().get(2..).unwrap_or_default();
                    let Some(end) = body.find("*/") else {
                        self.report(
                            Span::new(self.at, self.at + 2),
                            "this comment is never closed",
                        );
                        return None;
                    };
                    self.comment(end + 4);
                }
                _ => return Some(()),
            }
        }
    }

    fn comment(&mut self, length: usize) {
        if !self.comments {
            let span = Span::new(self.at, self.at + length);
            self.report(span, "comments are not allowed in JSON");
        }
        self.at += length;
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        let start = self.at;
        let max_depth = if self.editing {
            MAX_EDITING_DEPTH
        } else {
            MAX_DEPTH
        };
        let value = match self.peek() {
            Some(b'{' | b'[') if depth >= max_depth => {
                self.findings.push(too_deep(self.here(), max_depth));
                return None;
            }
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'\'') => {
                let span = self.here();
                self.report_with_help(
                    span,
                    "strings must be in double quotes",
                    "replace `'` with `\"`",
                );
                return None;
            }
            Some(_) => self.word()?,
            None => {
                self.report(
                    Span::at(self.at),
                    "expected a value, found the end of the file",
                );
                return None;
            }
        };
        Some(Node::inline(value, Span::new(start, self.at)))
    }

    fn word(&mut self) -> Option<Value> {
        let length = self
            .rest()
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(self.rest().len());
        let word = self.rest().get(..length).unwrap_or_default();
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            "" => {
                let found = self.rest().chars().next().unwrap_or_default();
                let span = self.here();
                let message = format!("expected a value, found `{}`", found.escape_debug());
                self.report(span, message);
                return None;
            }
            _ => {
                let message = format!("`{word}` is not a JSON value");
                let span = Span::new(self.at, self.at + length);
                self.report_with_help(span, message, "put strings in double quotes");
                return None;
            }
        };
        self.at += length;
        Some(value)
    }

    fn number(&mut self) -> Option<Value> {
        let length = self
            .rest()
            .find(|letter: char| {
                !letter.is_ascii_alphanumeric() && !matches!(letter, '+' | '-' | '.')
            })
            .unwrap_or(self.rest().len());
        let digits = self.rest().get(..length).unwrap_or_default();
        if is_number(digits) && (self.editing || parse_number(digits).is_some()) {
            self.at += length;
            return Some(Value::Number(digits.to_owned()));
        }
        let message = format!("`{digits}` is not a valid JSON number");
        self.report(Span::new(self.at, self.at + length), message);
        None
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let open = self.at;
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Some(Value::Array(items));
                }
                None => {
                    self.report(Span::new(open, open + 1), "this `[` is never closed");
                    return None;
                }
                _ => items.push(self.value(depth + 1)?),
            }
            self.separator(b']')?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let open = self.at;
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.skip_blank()?;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    if !self.editing {
                        report_duplicates(&members, &mut self.findings);
                    }
                    return Some(Value::Object(members));
                }
                Some(b'"') => members.push(self.member(depth)?),
                None => {
                    self.report(Span::new(open, open + 1), "this `{` is never closed");
                    return None;
                }
                Some(_) => {
                    let span = self.here();
                    self.report_with_help(
                        span,
                        "expected a key",
                        "keys are strings in double quotes, followed by `:`",
                    );
                    return None;
                }
            }
            self.separator(b'}')?;
        }
    }

    fn member(&mut self, depth: usize) -> Option<Member> {
        let start = self.at;
        let key = self.string()?;
        let key_span = Span::new(start, self.at);
        self.skip_blank()?;
        if self.peek() != Some(b':') {
            self.report(
                key_span,
                format!("expected `:` and a value after the key `{key}`"),
            );
            return None;
        }
        self.at += 1;
        self.skip_blank()?;
        let value = self.value(depth + 1)?;
        Some(Member {
            key,
            key_span,
            value,
        })
    }

    /// The comma between two elements, or nothing before the closing bracket.
    fn separator(&mut self, close: u8) -> Option<()> {
        let end_of_value = self.at;
        self.skip_blank()?;
        match self.peek() {
            Some(b',') => {
                let comma = self.at;
                self.at += 1;
                self.skip_blank()?;
                if self.peek() == Some(close) && !self.comments {
                    self.report(
                        Span::new(comma, comma + 1),
                        "trailing commas are not allowed in JSON",
                    );
                }
            }
            Some(byte) if byte == close => {}
            // The wrong bracket: how to continue would be a guess.
            Some(b'}' | b']') => {
                let span = self.here();
                let wanted = char::from(close);
                self.report(span, format!("expected `{wanted}`"));
                return None;
            }
            Some(_) => {
                self.report_with_help(
                    Span::at(end_of_value),
                    "missing comma",
                    "put `,` between two elements",
                );
            }
            None => {}
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let open = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let plain = self
                .rest()
                .find(|letter: char| matches!(letter, '"' | '\\') || letter < ' ')
                .unwrap_or(self.rest().len());
            out.push_str(self.rest().get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Some(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(b'\n' | b'\r') | None => {
                    self.report(Span::new(open, self.at), "this string is never closed");
                    return None;
                }
                Some(control) => {
                    let span = self.here();
                    self.report_with_help(
                        span,
                        "control characters are not allowed in strings",
                        "write it as an escape such as `\\t`",
                    );
                    out.push(char::from(control));
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let start = self.at;
        let letter = self.rest().chars().nth(1);
        let plain = match letter {
            Some('"') => '"',
            Some('\\') => '\\',
            Some('/') => '/',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode_escape(start),
            other => {
                let width = other.map_or(0, char::len_utf8);
                self.report_with_help(
                    Span::new(start, start + 1 + width),
                    "unknown escape in a string",
                    "write a backslash as `\\\\`",
                );
                return None;
            }
        };
        self.at += 2;
        Some(plain)
    }

    /// `\u` and four digits, twice for a surrogate pair. Half a pair is legal
    /// JSON but not a character: an editor replaces it, everyone else refuses it.
    fn unicode_escape(&mut self, start: usize) -> Option<char> {
        let Some(mut code) = self.code_unit() else {
            let span = Span::new(start, start + 2);
            self.report(span, "`\\u` must be followed by four hexadecimal digits");
            return None;
        };
        let end = self.at;
        if let high @ 0xd800..=0xdbff = code {
            match self.code_unit() {
                Some(low @ 0xdc00..=0xdfff) => {
                    code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                }
                _ => self.at = end,
            }
        }
        let letter = char::from_u32(code);
        if letter.is_none() && self.editing {
            return Some(char::REPLACEMENT_CHARACTER);
        }
        if letter.is_none() {
            let span = Span::new(start, end);
            self.report(span, "this escape is only half of a surrogate pair");
        }
        letter
    }

    fn code_unit(&mut self) -> Option<u32> {
        let digits = self.rest().strip_prefix("\\u")?.get(..4)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 6;
        Some(unit)
    }
}

/// JSON's number syntax, for a number of any size.
fn is_number(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
