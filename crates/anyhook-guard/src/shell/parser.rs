//! Parses shell text into a tree. Accepts any text: what no shell would accept
//! gives a tree of what can be recognized, so that nothing hides behind an error.
//!
//! Linear in the length of the text, but for `((`, which is looked ahead once
//! per level. Recursion is bounded by [`MAX_NESTING`].

mod compound;
mod redirects;
mod words;

use super::syntax::{Assignment, BlockKind, Script, ScriptItem, ScriptWord, SimpleCommand, Step};
use redirects::PendingBody;
use words::resolve_bodies;

/// Deeper text is not read: the guards ask.
pub(super) const MAX_NESTING: usize = 100;

pub(super) struct Parsed {
    pub(super) script: Script,
    /// The nesting exceeds the limit, so the tree is not complete.
    pub(super) is_too_deep: bool,
    /// A shell would reject the text.
    pub(super) has_errors: bool,
}

pub(super) fn parse(text: &str, nesting: usize) -> Parsed {
    let mut parser = Parser {
        text,
        at: 0,
        nesting,
        pending: Vec::new(),
        bodies: Vec::new(),
        is_too_deep: false,
        has_errors: false,
    };
    let mut script = parser.block(&[]);
    parser.end_line();
    resolve_bodies(&mut script, &mut parser.bodies);
    Parsed {
        script,
        is_too_deep: parser.is_too_deep,
        has_errors: parser.has_errors,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    nesting: usize,
    /// Here-documents whose bodies begin at the next line.
    pending: Vec<PendingBody>,
    bodies: Vec<ScriptWord>,
    is_too_deep: bool,
    has_errors: bool,
}

/// What a shell takes for the beginning or a part of a compound command.
const ENDING_WORDS: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn peek_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn starts_with(&self, prefix: &str) -> bool {
        let bytes = self.text.as_bytes();
        bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(prefix.as_bytes()))
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn character(&mut self) -> Option<char> {
        let character = self.rest().chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Runs a parser one level deeper, or gives up on the rest of the text.
    fn nested<T: Default>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> T {
        if self.nesting >= MAX_NESTING {
            self.is_too_deep = true;
            self.at = self.text.len();
            return T::default();
        }
        self.nesting += 1;
        let value = parse(self);
        self.nesting -= 1;
        value
    }

    // Blanks, lines and comments.

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'\\') if self.peek_at(1) == Some(b'\r') && self.peek_at(2) == Some(b'\n') => {
                    self.at += 3;
                }
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        if self.peek() == Some(b'#') {
            let rest = self.rest();
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// Blanks, comments and line ends.
    fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            self.skip_comment();
            if self.peek() != Some(b'\n') {
                return;
            }
            self.at += 1;
            self.end_line();
        }
    }

    // Lists and pipelines.

    /// Steps up to one of the ending words or operators, which is not consumed;
    /// up to the end of the text if there are none.
    fn block(&mut self, ends: &[&str]) -> Script {
        let mut steps = Script::new();
        let mut is_alternative = false;
        loop {
            self.skip_lines();
            let Some(byte) = self.peek() else {
                return steps;
            };
            if ends.iter().any(|end| self.is_at_end(end)) {
                return steps;
            }
            match byte {
                b';' | b'&' => {
                    self.at += 1;
                    continue;
                }
                b'|' => {
                    is_alternative = self.starts_with("||");
                    self.at += 1 + usize::from(is_alternative);
                    continue;
                }
                b')' => {
                    self.has_errors = true;
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let before = self.at;
            if let Some(item) = self.pipeline() {
                steps.push(Step {
                    item,
                    is_alternative,
                });
            }
            self.skip_blanks();
            is_alternative = self.eat("||");
            if !is_alternative {
                self.eat("&&");
            }
            if self.at == before {
                self.has_errors = true;
                self.character();
            }
        }
    }

    fn is_at_end(&self, end: &str) -> bool {
        match end {
            ")" | ";;" | ";&" => self.starts_with(end),
            _ => self.word_here() == end,
        }
    }

    /// The unquoted letters at this place, if a blank or operator follows them.
    fn word_here(&self) -> &'a str {
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if matches!(bytes.first(), Some(b'{' | b'}' | b'!')) {
            let is_alone = bytes
                .get(1)
                .is_none_or(|next| b" \t\r\n;&|)<>".contains(next));
            return if is_alone {
                self.slice(self.at, self.at + 1)
            } else {
                ""
            };
        }
        let length = bytes
            .iter()
            .take(16)
            .take_while(|byte| byte.is_ascii_lowercase() || matches!(byte, b'[' | b']'))
            .count();
        match bytes.get(length) {
            Some(next) if !b" \t\r\n;&|()<>".contains(next) => "",
            _ => self.slice(self.at, self.at + length),
        }
    }

    fn pipeline(&mut self) -> Option<ScriptItem> {
        let mut stages = Vec::new();
        loop {
            self.skip_blanks();
            while self.word_here() == "!" {
                self.at += 1;
                self.skip_blanks();
            }
            stages.extend(self.command());
            self.skip_blanks();
            if self.starts_with("||") || !self.eat("|") {
                break;
            }
            self.eat("&");
            self.skip_lines();
        }
        if stages.len() > 1 {
            return Some(ScriptItem::Pipeline(stages));
        }
        stages.pop()
    }

    fn command(&mut self) -> Option<ScriptItem> {
        match self.peek()? {
            b'(' => {
                if self.starts_with("((")
                    && let Some(end) = self.arithmetic_end(2)
                {
                    let parts = self.nested(|parser| parser.arithmetic(2, end));
                    return Some(ScriptItem::Words(vec![ScriptWord { parts }]));
                }
                self.at += 1;
                let steps = self.nested(|parser| parser.block(&[")"]));
                self.close(")");
                return Some(self.finish_block(steps, BlockKind::Subshell));
            }
            b')' | b';' | b'&' | b'|' | b'\n' => return None,
            _ => {}
        }
        match self.word_here() {
            "{" => {
                self.at += 1;
                let steps = self.nested(|parser| parser.block(&["}"]));
                self.close("}");
                Some(self.finish_block(steps, BlockKind::Group))
            }
            "if" => self.nested(|parser| Some(parser.if_command())),
            "while" | "until" => self.nested(|parser| {
                parser.at += 5;
                let mut steps = parser.block(&["do"]);
                parser.close("do");
                steps.extend(parser.block(&["done"]));
                parser.close("done");
                Some(parser.finish_block(steps, BlockKind::Conditional))
            }),
            word @ ("for" | "select") => self.nested(|parser| {
                parser.at += word.len();
                parser.for_command()
            }),
            "case" => self.nested(Self::case_command),
            "[[" => self.nested(|parser| Some(parser.test_command())),
            "function" => self.nested(|parser| {
                parser.at += 8;
                parser.skip_blanks();
                let name = parser.word();
                parser.skip_blanks();
                if parser.eat("(") {
                    parser.skip_blanks();
                    parser.eat(")");
                }
                parser.function(name)
            }),
            "coproc" => {
                self.at += 6;
                self.skip_blanks();
                // A name, which only a compound command can have.
                let named = self.at;
                if self
                    .word()
                    .and_then(|word| word.bare().map(str::len))
                    .is_some()
                {
                    self.skip_blanks();
                }
                if !matches!(self.peek(), Some(b'{' | b'(')) {
                    self.at = named;
                }
                self.nested(Self::command)
            }
            word if ENDING_WORDS.contains(&word) => {
                self.has_errors = true;
                self.at += word.len();
                None
            }
            _ => self.simple_command(),
        }
    }

    /// Words up to the end of the command.
    fn words(&mut self) -> Vec<ScriptWord> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek() == Some(b'#') {
                self.skip_comment();
            }
            let before = self.at;
            words.extend(self.word());
            if self.at == before {
                return words;
            }
        }
    }

    // Simple commands.

    fn simple_command(&mut self) -> Option<ScriptItem> {
        let mut command = SimpleCommand::default();
        let start = self.at;
        loop {
            self.skip_blanks();
            let before = self.at;
            match self.peek() {
                Some(b'#') => self.skip_comment(),
                Some(b'(') => {
                    let is_definition = command.words.len() == 1
                        && command.assignments.is_empty()
                        && self
                            .rest()
                            .trim_start_matches(['(', ' ', '\t'])
                            .starts_with(')');
                    if is_definition {
                        self.at += 1;
                        self.skip_blanks();
                        self.eat(")");
                        let name = command.words.pop();
                        return self.nested(|parser| parser.function(name));
                    }
                    // No shell accepts this; read what is inside as commands.
                    self.has_errors = true;
                    break;
                }
                _ => {}
            }
            if let Some(redirect) = self.redirect() {
                command.redirects.push(redirect);
            } else if (command.words.is_empty() || self.declares_array(&command))
                && let Some(assignment) = self.assignment()
            {
                command.assignments.push(assignment);
            } else {
                command.words.extend(self.word());
            }
            if self.at == before {
                break;
            }
        }
        (self.at > start).then_some(ScriptItem::Simple(command))
    }

    /// `declare -a list=(…)`: an assignment although it follows a word.
    fn declares_array(&self, command: &SimpleCommand) -> bool {
        command.is_declaration() && {
            let rest = self.rest();
            let length = name_length(rest.as_bytes());
            length > 0
                && rest
                    .get(length..)
                    .is_some_and(|rest| rest.starts_with("=("))
        }
    }

    fn assignment(&mut self) -> Option<Assignment> {
        let bytes = self.text.as_bytes().get(self.at..)?;
        let length = name_length(bytes);
        if length == 0 {
            return None;
        }
        let mut offset = length;
        if bytes.get(offset) == Some(&b'[') {
            let close = bytes
                .iter()
                .skip(offset)
                .take(200)
                .position(|byte| *byte == b']')?;
            let subscript = bytes.get(offset..offset + close).unwrap_or_default();
            if subscript.contains(&b'$') || subscript.contains(&b'`') {
                // What runs inside it matters, not which element is set.
                let name = self.slice(self.at, self.at + length).to_owned();
                self.at += offset + 1;
                let values = self.word().into_iter().collect();
                return Some(Assignment {
                    name,
                    values,
                    appends: true,
                    is_array: false,
                });
            }
            offset += close + 1;
        }
        let appends = bytes.get(offset) == Some(&b'+');
        offset += usize::from(appends);
        if bytes.get(offset) != Some(&b'=') {
            return None;
        }
        let end = offset - usize::from(appends);
        let name = self.slice(self.at, self.at + end).to_owned();
        self.at += offset + 1;
        let is_array = self.peek() == Some(b'(');
        let values = if is_array {
            self.array()
        } else {
            vec![self.word().unwrap_or_default()]
        };
        Some(Assignment {
            name,
            values,
            appends,
            is_array,
        })
    }

    fn array(&mut self) -> Vec<ScriptWord> {
        self.at += 1;
        self.nested(|parser| {
            let mut values = Vec::new();
            loop {
                parser.skip_lines();
                if parser.peek().is_none() || parser.eat(")") {
                    return values;
                }
                let before = parser.at;
                values.extend(parser.word());
                if parser.at == before {
                    parser.at += 1;
                }
            }
        })
    }
}

/// Bytes of a variable's name at the start.
pub(super) fn name_length(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count(),
        _ => 0,
    }
}
