//! YAML 1.2 with the core schema, restricted to what JSON can express.
//!
//! Refused with a finding: aliases (a few lines can expand to gigabytes), tags
//! other than the core ones, keys that are not text, several documents,
//! infinity and not-a-number.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::{MAX_DEPTH, Member, Node, Value, parse_number, report_duplicates, too_deep};
use crate::diagnostic::{Diagnostic, Span};

pub(super) fn parse(text: &str) -> (Option<Node>, Vec<Diagnostic>) {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = TreeBuilder {
        text,
        offsets: Offsets::new(body, text.len() - body.len()),
        stack: Vec::new(),
        root: None,
        documents: 0,
        findings: Vec::new(),
    };
    let whole = builder.run(body).is_some();
    (builder.root.filter(|_| whole), builder.findings)
}

/// Converts the scanner's character positions to byte offsets.
struct Offsets {
    starts: Vec<usize>,
    end: usize,
}

impl Offsets {
    fn new(text: &str, skipped: usize) -> Self {
        Self {
            starts: text.char_indices().map(|(at, _)| at + skipped).collect(),
            end: text.len() + skipped,
        }
    }

    fn byte(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.end)
    }
}

enum OpenContainer {
    Array {
        items: Vec<Node>,
        start: usize,
    },
    Object {
        members: Vec<Member>,
        key: Option<(String, Span)>,
        start: usize,
    },
}

const NO_TABS: &str = "indent YAML with spaces, not tabs";

struct TreeBuilder<'a> {
    text: &'a str,
    offsets: Offsets,
    stack: Vec<OpenContainer>,
    root: Option<Node>,
    documents: usize,
    findings: Vec<Diagnostic>,
}

impl TreeBuilder<'_> {
    /// `None` if the text cannot be parsed to its end.
    fn run(&mut self, body: &str) -> Option<()> {
        let mut parser = Parser::new_from_str(body);
        while let Some(event) = parser.next_event() {
            match event {
                Ok((Event::StreamEnd, _)) => break,
                Ok((event, span)) => {
                    let span = Span::new(
                        self.offsets.byte(span.start.index()),
                        self.offsets.byte(span.end.index()),
                    );
                    self.event(event, span)?;
                }
                Err(error) => {
                    let at = self.offsets.byte(error.marker().index());
                    self.syntax(at, error.info());
                    return None;
                }
            }
        }
        Some(())
    }

    fn syntax(&mut self, at: usize, info: &str) {
        let mut finding = Diagnostic::error("syntax", Span::at(at), info);
        let line_start = self
            .text
            .get(..at)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |newline| newline + 1);
        let rest = self.text.get(line_start..).unwrap_or_default();
        let tab_in = |line: &str| {
            let blank = line.split(|letter: char| !letter.is_whitespace()).next();
            blank.and_then(|blank| blank.find('\t'))
        };
        // The parser may notice a tab only at the value before it.
        let mut next_line = rest.split_inclusive('\n').nth(1);
        next_line = next_line.filter(|_| info.contains("tab"));
        let own_line = rest.lines().next().and_then(tab_in);
        if own_line.is_some() {
            finding = finding.help(NO_TABS);
        } else if let Some(tab) = next_line.and_then(tab_in) {
            let first = rest.split_inclusive('\n').next().map_or(0, str::len);
            finding.span = Span::at(line_start + first + tab);
            finding = finding.help(NO_TABS);
        }
        self.findings.push(finding);
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: &str) {
        self.findings
            .push(Diagnostic::error(code, span, message).help(help));
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.error(
                        "several-documents",
                        span,
                        "the file has more than one document",
                        "keep one document per file: remove the `---` and everything after it",
                    );
                    return None;
                }
            }
            Event::Scalar(text, style, _, tag) => {
                self.scalar(&text, style, tag.as_deref(), span);
            }
            Event::Alias(_) => {
                let span = self.trimmed(span);
                self.error(
                    "alias",
                    span,
                    "aliases are not supported",
                    "replace the alias with the value",
                );
                if self.expects_key() {
                    return None;
                }
                self.add(Node::inline(Value::Null, span));
            }
            Event::SequenceStart(_, tag) => {
                self.open(span, tag.as_deref(), "seq")?;
                self.stack.push(OpenContainer::Array {
                    items: Vec::new(),
                    start: span.start,
                });
            }
            Event::MappingStart(_, tag) => {
                self.open(span, tag.as_deref(), "map")?;
                self.stack.push(OpenContainer::Object {
                    members: Vec::new(),
                    key: None,
                    start: span.start,
                });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, start) = match self.stack.pop()? {
                    OpenContainer::Array { items, start } => (Value::Array(items), start),
                    OpenContainer::Object { members, start, .. } => {
                        report_duplicates(&members, &mut self.findings);
                        (Value::Object(members), start)
                    }
                };
                let span = self.trimmed(Span::new(start, span.end));
                self.add(Node::inline(value, span));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Some(())
    }

    fn open(&mut self, span: Span, tag: Option<&Tag>, expected: &str) -> Option<()> {
        if self.stack.len() >= MAX_DEPTH {
            self.findings.push(too_deep(span, MAX_DEPTH));
            return None;
        }
        if self.expects_key() {
            self.error(
                "key-not-text",
                span,
                "a key must be text",
                "use a plain word as the key",
            );
            return None;
        }
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == expected)
        {
            self.unknown_tag(tag, span);
        }
        Some(())
    }

    fn unknown_tag(&mut self, tag: &Tag, span: Span) {
        let message = format!("the tag `{tag}` is not allowed here");
        self.error("tag", span, message, "remove the tag");
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(OpenContainer::Object { key: None, .. })
        )
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) {
        let span = self.trimmed(span);
        let value = match self.resolve(text, style, tag, span) {
            Ok(value) => value,
            Err(finding) => {
                self.findings.push(finding);
                Value::Null
            }
        };
        let Some(OpenContainer::Object {
            key: key @ None, ..
        }) = self.stack.last_mut()
        else {
            self.add(Node::inline(value, span));
            return;
        };
        *key = Some((text.to_owned(), span));
        if !matches!(value, Value::String(_)) {
            self.error(
                "key-not-text",
                span,
                format!("the key `{text}` is not text"),
                "put the key in quotes",
            );
        }
    }

    fn resolve(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Value, Diagnostic> {
        let plain = style == ScalarStyle::Plain;
        let Some(tag) = tag else {
            return if plain {
                core(text, span)
            } else {
                Ok(Value::String(text.to_owned()))
            };
        };
        let suffix = tag.suffix.as_str();
        if (tag.is_yaml_core_schema() && suffix == "str")
            || (tag.handle.is_empty() && suffix == "!")
        {
            return Ok(Value::String(text.to_owned()));
        }
        let value = core(text, span)?;
        let fits = match &value {
            Value::Null => suffix == "null",
            Value::Bool(_) => suffix == "bool",
            Value::Number(digits) => {
                suffix == "float" || (suffix == "int" && !digits.contains(['.', 'e']))
            }
            _ => false,
        };
        if !(tag.is_yaml_core_schema() && fits) {
            self.unknown_tag(tag, span);
        }
        Ok(value)
    }

    /// Adds a finished value to the innermost open list or object.
    fn add(&mut self, node: Node) {
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(OpenContainer::Array { items, .. }) => items.push(node),
            Some(OpenContainer::Object { members, key, .. }) => {
                if let Some((key, key_span)) = key.take() {
                    members.push(Member {
                        key,
                        key_span,
                        value: node,
                    });
                }
            }
        }
    }

    /// Without the white space at the end, which the scanner includes.
    fn trimmed(&self, span: Span) -> Span {
        let kept = self
            .text
            .get(span.start..span.end)
            .map_or(0, |covered| covered.trim_end().len());
        Span::new(span.start, span.start + kept)
    }
}

/// A plain scalar by the core schema.
fn core(text: &str, span: Span) -> Result<Value, Diagnostic> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
            if matches!(unsigned, ".inf" | ".Inf" | ".INF")
                || matches!(text, ".nan" | ".NaN" | ".NAN")
            {
                return Err(not_a_number(text, span));
            }
            for (prefix, radix) in [("0o", 8), ("0x", 16)] {
                let Some(digits) = text.strip_prefix(prefix) else {
                    continue;
                };
                if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
                    return u64::from_str_radix(digits, radix)
                        .map(|value| Value::Number(value.to_string()))
                        .map_err(|_| not_a_number(text, span));
                }
            }
            if !is_decimal(unsigned) {
                return Ok(Value::String(text.to_owned()));
            }
            parse_number(text.strip_prefix('+').unwrap_or(text))
                .map(|number| Value::Number(number.to_string()))
                .ok_or_else(|| not_a_number(text, span))?
        }
    })
}

fn not_a_number(text: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        "syntax",
        span,
        format!("`{text}` is not a valid JSON number"),
    )
    .help("put it in quotes if it is text")
}

/// `[0-9]+` or a float with optional digits around the point.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, "")) => digits(whole),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    };
    mantissa_fits
        && exponent.is_none_or(|part| digits(part.strip_prefix(['+', '-']).unwrap_or(part)))
}
