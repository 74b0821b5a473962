//! JSON, strict or with comments and trailing commas.
//!
//! A parser of our own, because the tree needs positions of keys, a limit on
//! depth, and findings that do not end at the first mistake.

use super::{MAX_DEPTH, Member, Node, Value, number, report_duplicates, too_deep};
use crate::diagnostic::{Diagnostic, Span};

pub(super) fn parse(text: &str, lenient: bool) -> (Option<Node>, Vec<Diagnostic>) {
    let mut parser = Parser {
        text,
        at: if text.starts_with('\u{feff}') { 3 } else { 0 },
        lenient,
        findings: Vec::new(),
    };
    let tree = parser.document();
    (tree, parser.findings)
}

struct Parser<'a> {
    text: &'a str,
    /// Always on a character boundary.
    at: usize,
    lenient: bool,
    findings: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn document(&mut self) -> Option<Node> {
        self.skip_blank()?;
        if self.peek().is_none() {
            self.report(Span::at(self.at), "the file is empty");
            return None;
        }
        let node = self.value(0)?;
        self.skip_blank()?;
        if self.peek().is_some() {
            let span = self.here();
            self.report(span, "there is something after the end of the document");
        }
        Some(node)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
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

    /// White space and comments. `None` when a comment does not end.
    fn skip_blank(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') if self.rest().starts_with("//") => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.comment(length);
                }
                Some(b'/') if self.rest().starts_with("/*") => {
                    let body = self.rest().get(2..).unwrap_or_default();
                    let Some(end) = body.find("*/") else {
                        self.report(
                            Span::new(self.at, self.at + 2),
                            "the comment has no end `*/`",
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
        if !self.lenient {
            let span = Span::new(self.at, self.at + length);
            self.report(span, "JSON has no comments");
        }
        self.at += length;
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        let start = self.at;
        if depth >= MAX_DEPTH {
            self.findings.push(too_deep(self.here()));
            return None;
        }
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'\'') => {
                let span = self.here();
                self.report_with_help(
                    span,
                    "text is in double quotes",
                    "write `\"` in place of `'`",
                );
                return None;
            }
            Some(_) => self.word()?,
            None => {
                self.report(Span::at(self.at), "the file ends where a value should be");
                return None;
            }
        };
        Some(Node {
            value,
            span: Span::new(start, self.at),
        })
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
                self.report(span, format!("a value should be here, not `{found}`"));
                return None;
            }
            _ => {
                let message = format!("`{word}` is not a value");
                let span = Span::new(self.at, self.at + length);
                self.report_with_help(span, message, "put text in double quotes");
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
        if is_number(digits)
            && let Some(number) = number::read(digits)
        {
            self.at += length;
            return Some(Value::Number(number));
        }
        let message = format!("`{digits}` is not a number that JSON can hold");
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
                    report_duplicates(&members, &mut self.findings);
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
                        "a key should be here",
                        "keys are text in double quotes, followed by `:`",
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
                format!("`:` and a value should follow the key `{key}`"),
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
                if self.peek() == Some(close) && !self.lenient {
                    self.report(
                        Span::new(comma, comma + 1),
                        "JSON has no comma after the last element",
                    );
                }
            }
            Some(byte) if byte == close => {}
            // The other bracket is a mistake of nesting: going on would only guess.
            Some(b'}' | b']') => {
                let span = self.here();
                let wanted = char::from(close);
                self.report(span, format!("`{wanted}` should be here"));
                return None;
            }
            Some(_) => {
                self.report_with_help(
                    Span::at(end_of_value),
                    "a comma is missing here",
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
                    self.report(Span::new(open, self.at), "this text has no closing `\"`");
                    return None;
                }
                Some(control) => {
                    let span = self.here();
                    self.report_with_help(
                        span,
                        "a control character cannot stand in text as it is",
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
                    "not an escape that JSON has",
                    "a backslash itself is written `\\\\`",
                );
                return None;
            }
        };
        self.at += 2;
        Some(plain)
    }

    /// `\u` and four digits, twice for a surrogate pair.
    fn unicode_escape(&mut self, start: usize) -> Option<char> {
        let first = self.code_unit();
        let code = match first {
            Some(high @ 0xd800..=0xdbff) => match self.code_unit() {
                Some(low @ 0xdc00..=0xdfff) => {
                    Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                }
                _ => None,
            },
            other => other,
        };
        let letter = code.and_then(char::from_u32);
        if letter.is_none() {
            let end = self.at.max(start + 2);
            self.report(Span::new(start, end), "not a character: `\\u` needs four hexadecimal digits, and a surrogate its other half");
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

/// JSON's grammar of numbers: no leading zero, no `+`, digits around the point.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|part| digits(part.strip_prefix(['+', '-']).unwrap_or(part)))
}
