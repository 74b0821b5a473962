//! Reads JSON, and JSON with comments and trailing commas, into located trees.
//!
//! Written here rather than taken from a parser crate because an edit needs
//! every span, numbers as they are written, duplicate keys kept, and a limit
//! on depth.

use crate::error::EditError;
use crate::node::{Kind, Member, Node};
use crate::source::{from, slice};

/// Deeper nesting is refused; no settings file needs it, and the stack is finite.
const MAX_DEPTH: usize = 128;

/// The tree of `text`, or nothing when it holds white space and comments only.
pub(crate) fn parse(text: &str, comments: bool) -> Result<Option<Node>, EditError> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
        comments,
    };
    reader.trivia()?;
    if reader.peek().is_none() {
        return Ok(None);
    }
    let root = reader.value()?;
    reader.trivia()?;
    match reader.peek() {
        None => Ok(Some(root)),
        Some(_) => Err(reader.unexpected("the end of the file")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    comments: bool,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        from(self.text, self.at)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, message: impl Into<String>) -> EditError {
        EditError::parse(self.text, self.at, message)
    }

    fn unexpected(&self, wanted: &str) -> EditError {
        match self.peek() {
            None => self.error(format!("the file ends where {wanted} should be")),
            Some(found) if found.is_control() => self.error(format!(
                "found `{}`, expected {wanted}",
                found.escape_debug()
            )),
            Some(found) => self.error(format!("found `{found}`, expected {wanted}")),
        }
    }

    fn trivia(&mut self) -> Result<(), EditError> {
        loop {
            let rest = self.rest();
            let blank = rest
                .find(|c: char| !matches!(c, ' ' | '\t' | '\n' | '\r'))
                .unwrap_or(rest.len());
            self.at += blank;
            let rest = self.rest();
            let line = rest.starts_with("//");
            if !line && !rest.starts_with("/*") {
                return Ok(());
            }
            if !self.comments {
                return Err(self.error("a comment, which this file's reader does not accept"));
            }
            let len = if line {
                let len = rest.find('\n').unwrap_or(rest.len());
                let body = slice(rest, 0..len);
                if body.strip_suffix('\r').unwrap_or(body).contains('\r') {
                    return Err(self.error(
                        "a lone carriage return inside a comment: readers disagree about where it ends",
                    ));
                }
                len
            } else {
                match from(rest, 2).find("*/") {
                    Some(end) => end + 4,
                    None => return Err(self.error("this comment is never closed")),
                }
            };
            self.at += len;
        }
    }

    fn value(&mut self) -> Result<Node, EditError> {
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::array)?,
            Some('"') => Kind::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('t') => self.word("true", Kind::Bool(true))?,
            Some('f') => self.word("false", Kind::Bool(false))?,
            Some('n') => self.word("null", Kind::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node::inline(kind, start..self.at))
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, EditError> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Kind, EditError>,
    ) -> Result<Kind, EditError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        self.at += 1;
        let kind = read(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn object(&mut self) -> Result<Kind, EditError> {
        let mut members = Vec::new();
        while self.another('}', members.is_empty())? {
            let start = self.at;
            if self.peek() != Some('"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let key = self.string()?;
            let key_span = start..self.at;
            self.trivia()?;
            if self.peek() != Some(':') {
                return Err(self.unexpected("`:`"));
            }
            self.at += 1;
            self.trivia()?;
            let value = self.value()?;
            members.push(Member {
                key,
                key_span,
                value,
            });
        }
        Ok(Kind::Object(members))
    }

    fn array(&mut self) -> Result<Kind, EditError> {
        let mut items = Vec::new();
        while self.another(']', items.is_empty())? {
            items.push(self.value()?);
        }
        Ok(Kind::Array(items))
    }

    /// Moves to the next item of a list, or past its closing bracket.
    fn another(&mut self, close: char, first: bool) -> Result<bool, EditError> {
        self.trivia()?;
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(false);
        }
        if first {
            return Ok(true);
        }
        if self.peek() != Some(',') {
            return Err(self.unexpected(&format!("`,` or `{close}`")));
        }
        let comma = self.at;
        self.at += 1;
        self.trivia()?;
        if self.peek() == Some(close) {
            if !self.comments {
                self.at = comma;
                return Err(self.error(
                    "a comma after the last item, which this file's reader does not accept",
                ));
            }
            self.at += 1;
            return Ok(false);
        }
        Ok(true)
    }

    fn number(&mut self) -> Result<Kind, EditError> {
        let start = self.at;
        self.take('-');
        if !self.take('0') && self.digits() == 0 {
            return Err(self.unexpected("a digit"));
        }
        if self.take('.') && self.digits() == 0 {
            return Err(self.unexpected("a digit"));
        }
        if self.take('e') || self.take('E') {
            let _sign = self.take('+') || self.take('-');
            if self.digits() == 0 {
                return Err(self.unexpected("a digit"));
            }
        }
        if self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            return Err(self.unexpected("the end of the number"));
        }
        Ok(Kind::Number(slice(self.text, start..self.at).to_owned()))
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn digits(&mut self) -> usize {
        let rest = self.rest();
        let count = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        self.at += count;
        count
    }

    fn string(&mut self) -> Result<String, EditError> {
        let opening = self.at;
        self.at += 1;
        let mut decoded = String::new();
        loop {
            let rest = self.rest();
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .unwrap_or(rest.len());
            decoded.push_str(slice(rest, 0..plain));
            self.at += plain;
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some('\\') => decoded.push(self.escape()?),
                Some('\n') | None => {
                    return Err(EditError::parse(
                        self.text,
                        opening,
                        "this string is never closed",
                    ));
                }
                Some(_) => return Err(self.error("a control character inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, EditError> {
        let backslash = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += letter.map_or(0, char::len_utf8);
        Ok(match letter {
            Some(same @ ('"' | '\\' | '/')) => same,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => self.unicode()?,
            _ => {
                return Err(EditError::parse(
                    self.text,
                    backslash,
                    "an unknown escape in a string",
                ));
            }
        })
    }

    /// Half a surrogate pair is legal in JSON but not a character: it reads as U+FFFD.
    fn unicode(&mut self) -> Result<char, EditError> {
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            let mark = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = mark;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, EditError> {
        let digits = slice(self.text, self.at..self.at + 4);
        if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(self.error("`\\u` needs four hexadecimal digits"));
        }
        self.at += 4;
        u32::from_str_radix(digits, 16)
            .map_err(|_| self.error("`\\u` needs four hexadecimal digits"))
    }
}
