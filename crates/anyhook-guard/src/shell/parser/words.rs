//! Words: quotes, escapes and expansions.

use super::{Parser, name_length, parse};
use crate::shell::syntax::{
    Script, ScriptItem, ScriptWord, SyntaxRedirect, VariableOperator, WordPart,
};

impl Parser<'_> {
    /// One word, or `None` at a blank or an operator.
    pub(super) fn word(&mut self) -> Option<ScriptWord> {
        let start = self.at;
        let parts = self.bare_parts(false);
        (self.at > start).then_some(ScriptWord { parts })
    }

    /// Parts outside quotes, up to a blank or operator, or to the closing brace of
    /// `${…}`.
    fn bare_parts(&mut self, in_braces: bool) -> Vec<WordPart> {
        let mut parts = Vec::new();
        let mut text = String::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'}' if in_braces => break,
                b'\\' => {
                    self.at += 1;
                    if !(self.eat("\n") || self.eat("\r\n")) {
                        flush(&mut parts, &mut text, false);
                        let character = self.character();
                        push_quoted(
                            &mut parts,
                            character.map_or_else(|| "\\".into(), Into::into),
                        );
                    }
                }
                b'\'' => {
                    flush(&mut parts, &mut text, false);
                    self.at += 1;
                    let rest = self.rest();
                    let end = rest.find('\'').unwrap_or_else(|| {
                        self.has_errors = true;
                        rest.len()
                    });
                    push_quoted(&mut parts, self.slice(self.at, self.at + end).to_owned());
                    self.at = (self.at + end + 1).min(self.text.len());
                }
                b'"' => {
                    flush(&mut parts, &mut text, false);
                    self.at += 1;
                    self.double_quoted(&mut parts);
                }
                b'$' | b'`' => {
                    flush(&mut parts, &mut text, false);
                    self.expansion(&mut parts, &mut text, false);
                }
                b'<' | b'>' if !in_braces && self.peek_at(1) == Some(b'(') => {
                    flush(&mut parts, &mut text, false);
                    self.at += 2;
                    let steps = self.nested(|parser| parser.block(&[")"]));
                    self.close(")");
                    let is_reader = byte == b'>';
                    parts.push(WordPart::Process { steps, is_reader });
                }
                // An extended pattern, such as `!(a|b)`.
                b'(' if !in_braces && text.ends_with(['?', '*', '+', '@', '!']) => {
                    let rest = self.rest();
                    let end = rest.find([')', '\n']).map_or(rest.len(), |end| end + 1);
                    text.push_str(self.slice(self.at, self.at + end));
                    self.at += end;
                }
                // An array in the arguments of `declare` and its relatives.
                b'(' if !in_braces && parts.is_empty() && text.ends_with('=') => {
                    flush(&mut parts, &mut text, false);
                    for (index, value) in self.array().into_iter().enumerate() {
                        if index > 0 {
                            push_quoted(&mut parts, " ".to_owned());
                        }
                        parts.extend(value.parts);
                    }
                    break;
                }
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
                    if !in_braces =>
                {
                    break;
                }
                _ => text.extend(self.character()),
            }
        }
        flush(&mut parts, &mut text, false);
        parts
    }

    fn double_quoted(&mut self, parts: &mut Vec<WordPart>) {
        let inner = self.quoted_parts(Some(b'"'));
        if self.peek() == Some(b'"') {
            self.at += 1;
        } else {
            self.has_errors = true;
        }
        if inner.is_empty() {
            parts.push(WordPart::Text {
                text: String::new(),
                is_quoted: true,
            });
        }
        parts.extend(inner);
    }

    /// Parts in double quotes or of a here-document, up to `end` or all.
    pub(super) fn quoted_parts(&mut self, end: Option<u8>) -> Vec<WordPart> {
        let mut parts = Vec::new();
        let mut text = String::new();
        while let Some(byte) = self.peek() {
            match byte {
                _ if Some(byte) == end => break,
                b'\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'\n') => self.at += 1,
                        Some(b'$' | b'`' | b'\\') => text.extend(self.character()),
                        Some(b'"') if end.is_some() => text.extend(self.character()),
                        _ => text.push('\\'),
                    }
                }
                b'$' | b'`' => {
                    flush(&mut parts, &mut text, true);
                    self.expansion(&mut parts, &mut text, true);
                }
                _ => text.extend(self.character()),
            }
        }
        flush(&mut parts, &mut text, true);
        parts
    }

    /// What begins with `$` or a backquote.
    fn expansion(&mut self, parts: &mut Vec<WordPart>, text: &mut String, is_quoted: bool) {
        if self.peek() == Some(b'`') {
            return self.backquoted(parts, is_quoted);
        }
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !is_quoted => {
                self.at += 1;
                let decoded = self.ansi_c();
                push_quoted(parts, decoded);
            }
            Some(b'"') if !is_quoted => {
                self.at += 1;
                self.double_quoted(parts);
            }
            Some(b'(') => {
                if self.peek_at(1) == Some(b'(')
                    && let Some(end) = self.arithmetic_end(2)
                {
                    let inner = self.nested(|parser| parser.arithmetic(2, end));
                    parts.push(WordPart::Arithmetic(inner));
                    return;
                }
                self.at += 1;
                let steps = self.nested(|parser| parser.block(&[")"]));
                self.close(")");
                parts.push(WordPart::Command { steps, is_quoted });
            }
            Some(b'[') => {
                let rest = self.rest();
                let end = rest.find(']').map_or(rest.len(), |end| end + 1);
                self.at += end;
                parts.push(WordPart::Arithmetic(Vec::new()));
            }
            Some(b'{') => {
                self.at += 1;
                let part = self.nested(|parser| Some(parser.braced(is_quoted)));
                parts.extend(part);
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
                let length = name_length(bytes);
                let name = self.slice(self.at, self.at + length).to_owned();
                self.at += length;
                parts.push(plain_variable(name, is_quoted));
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?$!-".contains(&byte) => {
                let name = char::from(byte).to_string();
                self.at += 1;
                parts.push(plain_variable(name, is_quoted));
            }
            _ => text.push('$'),
        }
    }

    fn backquoted(&mut self, parts: &mut Vec<WordPart>, is_quoted: bool) {
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.character() {
                None => {
                    self.has_errors = true;
                    break;
                }
                Some('`') => break,
                Some('\\') => match self.peek() {
                    Some(b'`' | b'\\' | b'$') => inner.extend(self.character()),
                    Some(b'"') if is_quoted => inner.extend(self.character()),
                    _ => inner.push('\\'),
                },
                Some(character) => inner.push(character),
            }
        }
        let steps = self.nested(|parser| {
            let parsed = parse(&inner, parser.nesting);
            parser.is_too_deep |= parsed.is_too_deep;
            parser.has_errors |= parsed.has_errors;
            parsed.script
        });
        parts.push(WordPart::Command { steps, is_quoted });
    }

    /// After `${`.
    fn braced(&mut self, is_quoted: bool) -> WordPart {
        let is_length = self.peek() == Some(b'#') && self.peek_at(1) != Some(b'}');
        let is_indirect = self.peek() == Some(b'!') && self.peek_at(1) != Some(b'}');
        if is_length || is_indirect {
            self.at += 1;
        }
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let length = match name_length(bytes) {
            0 if digits > 0 => digits,
            0 => usize::from(bytes.first().is_some_and(|byte| b"@*#?$!-".contains(byte))),
            length => length,
        };
        let mut name = self.slice(self.at, self.at + length).to_owned();
        self.at += length;
        let is_plain = !is_length && !is_indirect;
        if self.peek() == Some(b'[') {
            let rest = self.rest();
            let end = rest.find([']', '}']).map_or(rest.len(), |end| end + 1);
            let index = self.slice(self.at, self.at + end).trim_matches(['[', ']']);
            // An element has a name of its own; `@` is the whole list.
            let index = if index == "*" { "@" } else { index };
            name = format!("{name}[{index}]");
            self.at += end;
        }
        let operator_start = self.at;
        while self.peek().is_some_and(|byte| b":-=+?".contains(&byte))
            && self.at < operator_start + 2
        {
            self.at += 1;
        }
        let operator = self.slice(operator_start, self.at);
        let word = ScriptWord {
            parts: self.bare_parts(true),
        };
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            self.has_errors = true;
        }
        let operator = match operator {
            "" if is_indirect && word.parts.is_empty() => VariableOperator::Indirect,
            "" if is_length && word.parts.is_empty() => VariableOperator::Length,
            "" if is_plain && word.parts.is_empty() => VariableOperator::Plain,
            ":-" | "-" | ":=" | "=" if is_plain => {
                let assigns = operator.ends_with('=');
                VariableOperator::Default { word, assigns }
            }
            ":+" | "+" if is_plain => VariableOperator::Alternative(word),
            ":?" | "?" if is_plain => VariableOperator::Required(word),
            _ => VariableOperator::Other {
                operator: operator.to_owned(),
                word,
            },
        };
        WordPart::Variable {
            name,
            operator,
            is_quoted,
        }
    }

    /// Where the `))` of a `((` is, relative to this place; `None` if this is
    /// no arithmetic.
    pub(super) fn arithmetic_end(&self, opened: usize) -> Option<usize> {
        let bytes = self.text.as_bytes().get(self.at..)?;
        let mut open = 0usize;
        let mut index = opened;
        while let Some(byte) = bytes.get(index) {
            match byte {
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => return (bytes.get(index + 1) == Some(&b')')).then_some(index),
                b'\'' | b'"' | b'`' | b';' | b'\n' | b'#'
                    if opened == 2 && *byte != b'#'
                    // Quotes, lists and lines do not occur in arithmetic, except in `for ((;;))`.
                    && *byte != b';' =>
                {
                    return None;
                }
                b'\\' => index += 1,
                _ => {}
            }
            index += 1;
        }
        None
    }

    /// What runs inside arithmetic; `end` is relative to this place.
    pub(super) fn arithmetic(&mut self, opened: usize, end: usize) -> Vec<WordPart> {
        let stop = self.at + end;
        self.at += opened;
        let mut parts = Vec::new();
        let mut text = String::new();
        while self.at < stop {
            match self.peek() {
                Some(b'$' | b'`') => self.expansion(&mut parts, &mut text, true),
                _ => {
                    self.character();
                }
            }
        }
        self.at = self.at.max((stop + 2).min(self.text.len()));
        parts.retain(|part| !matches!(part, WordPart::Text { .. }));
        parts
    }

    /// After `$'`.
    fn ansi_c(&mut self) -> String {
        let mut bytes = Vec::new();
        loop {
            let Some(character) = self.character() else {
                self.has_errors = true;
                break;
            };
            if character == '\'' {
                break;
            }
            if character != '\\' {
                bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            let Some(escape) = self.character() else {
                break;
            };
            let code = match escape {
                'n' => 10,
                't' => 9,
                'r' => 13,
                'a' => 7,
                'b' => 8,
                'e' | 'E' => 27,
                'f' => 12,
                'v' => 11,
                'x' => self.digits(16, 2).unwrap_or(0),
                'u' => self.digits(16, 4).unwrap_or(0),
                'U' => self.digits(16, 8).unwrap_or(0),
                '0'..='7' => {
                    self.at -= 1;
                    self.digits(8, 3).unwrap_or(0)
                }
                'c' => u32::from(self.character().map_or(0, |key| key as u8 & 0x1f)),
                other => other as u32,
            };
            match u8::try_from(code) {
                // `\x` and octal digits are bytes, which may form one character.
                Ok(byte) if matches!(escape, 'x' | '0'..='7') => bytes.push(byte),
                _ => {
                    let character = char::from_u32(code).unwrap_or('\u{fffd}');
                    bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let start = self.at;
        while self.at < start + most
            && self
                .peek()
                .is_some_and(|byte| char::from(byte).is_digit(radix))
        {
            self.at += 1;
        }
        u32::from_str_radix(self.slice(start, self.at), radix).ok()
    }
}

fn plain_variable(name: String, is_quoted: bool) -> WordPart {
    WordPart::Variable {
        name,
        operator: VariableOperator::Plain,
        is_quoted,
    }
}

fn flush(parts: &mut Vec<WordPart>, text: &mut String, is_quoted: bool) {
    if !text.is_empty() {
        parts.push(WordPart::Text {
            text: std::mem::take(text),
            is_quoted,
        });
    }
}

fn push_quoted(parts: &mut Vec<WordPart>, text: String) {
    parts.push(WordPart::Text {
        text,
        is_quoted: true,
    });
}

/// Puts the bodies of here-documents where they were announced.
pub(super) fn resolve_bodies(script: &mut Script, bodies: &mut [ScriptWord]) {
    if bodies.is_empty() {
        return;
    }
    for step in script {
        resolve_item(&mut step.item, bodies);
    }
}

fn resolve_item(item: &mut ScriptItem, bodies: &mut [ScriptWord]) {
    match item {
        ScriptItem::Simple(command) => {
            for assignment in &mut command.assignments {
                resolve_words(&mut assignment.values, bodies);
            }
            resolve_words(&mut command.words, bodies);
            resolve_redirects(&mut command.redirects, bodies);
        }
        ScriptItem::Pipeline(stages) => {
            for stage in stages {
                resolve_item(stage, bodies);
            }
        }
        ScriptItem::Block {
            steps, redirects, ..
        } => {
            resolve_bodies(steps, bodies);
            resolve_redirects(redirects, bodies);
        }
        ScriptItem::For {
            words,
            steps,
            redirects,
            ..
        } => {
            resolve_words(words.as_mut().map_or(&mut [], Vec::as_mut_slice), bodies);
            resolve_bodies(steps, bodies);
            resolve_redirects(redirects, bodies);
        }
        ScriptItem::Function { body, .. } => resolve_item(body, bodies),
        ScriptItem::Words(words) => resolve_words(words, bodies),
    }
}

fn resolve_words(words: &mut [ScriptWord], bodies: &mut [ScriptWord]) {
    for word in words {
        resolve_word_bodies(word, bodies);
    }
}

pub(super) fn resolve_word_bodies(word: &mut ScriptWord, bodies: &mut [ScriptWord]) {
    for part in &mut word.parts {
        match part {
            WordPart::Command { steps, .. } | WordPart::Process { steps, .. } => {
                resolve_bodies(steps, bodies);
            }
            WordPart::Variable { operator, .. } => match operator {
                VariableOperator::Plain | VariableOperator::Length | VariableOperator::Indirect => {
                }
                VariableOperator::Default { word, .. }
                | VariableOperator::Alternative(word)
                | VariableOperator::Required(word)
                | VariableOperator::Other { word, .. } => resolve_word_bodies(word, bodies),
            },
            WordPart::Text { .. } | WordPart::Arithmetic(_) => {}
        }
    }
}

fn resolve_redirects(redirects: &mut [SyntaxRedirect], bodies: &mut [ScriptWord]) {
    for redirect in redirects {
        match redirect.body.take().and_then(|index| bodies.get_mut(index)) {
            Some(body) => redirect.word = std::mem::take(body),
            None => resolve_word_bodies(&mut redirect.word, bodies),
        }
    }
}
