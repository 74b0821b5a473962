//! What a few commands print, so that `echo … | sh` is no hiding place.

use std::ops::Range;

mod filters;

use super::code::literals;

use super::invocation::{Invocation, UNKNOWN};

/// Text that is longer is not followed.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The output of the invocations, if all of it is known.
pub(super) fn known_output(invocations: &[Invocation], range: Range<usize>) -> Option<String> {
    let mut text = String::new();
    let start = range.start;
    let ran = invocations.get(range)?;
    if ran.is_empty() || ran.len() > 16 {
        return None;
    }
    // In a pipeline only the last command prints.
    let fed_end = ran
        .iter()
        .map(|invocation| invocation.input_from.end)
        .max()?;
    for (index, invocation) in ran.iter().enumerate() {
        if start + index < fed_end {
            continue;
        }
        text.push_str(&output(invocation)?);
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
    }
    Some(text)
}

/// What is known of the output of the invocations.
pub(super) fn partial_output(invocations: &[Invocation], range: Range<usize>) -> Option<String> {
    let ran = invocations.get(range)?;
    let texts: Vec<String> = ran.iter().take(16).filter_map(output).collect();
    if texts.is_empty() {
        // A filter that is not known: it may hand on what it reads.
        let last = ran.last()?;
        // What an interpreter prints is among the texts of its code.
        let printed = last.code.as_deref().map(|code| literals(code).join("\n"));
        let parts: Vec<String> = last.input_text.clone().into_iter().chain(printed).collect();
        return (!parts.is_empty()).then(|| parts.join("\n"));
    }
    Some(texts.concat())
}

/// What a command prints, wherever that goes.
pub(super) fn printed(invocation: &Invocation) -> Option<String> {
    let plain = Invocation {
        redirects: Vec::new(),
        ..invocation.clone()
    };
    if plain.name == "tee" {
        return plain.input_text;
    }
    output(&plain)
}

fn output(invocation: &Invocation) -> Option<String> {
    if !invocation.redirects.iter().all(|redirect| {
        use super::syntax::RedirectKind::{Input, Text};
        matches!(redirect.kind, Text | Input) || redirect.target.text == "/dev/null"
    }) {
        return None;
    }
    let input = || invocation.input_text.clone();
    match invocation.name.as_str() {
        "echo" => {
            let mut words: Vec<&str> = invocation.texts().collect();
            let mut interprets = false;
            while let Some(first) = words.first() {
                let is_option = first.len() > 1
                    && first.starts_with('-')
                    && first.chars().skip(1).all(|letter| "neE".contains(letter));
                if !is_option {
                    break;
                }
                interprets |= first.contains('e');
                words.remove(0);
            }
            let text = words.join(" ");
            Some(if interprets { unescape(&text) } else { text } + "\n")
        }
        "printf" => {
            let mut words = invocation.texts().filter(|text| *text != "--");
            let format = words.next()?;
            let mut text = String::new();
            let mut rest: Vec<&str> = words.collect();
            rest.reverse();
            loop {
                let before = rest.len();
                let mut pieces = format.split('%');
                text.push_str(&unescape(pieces.next().unwrap_or_default()));
                let mut is_text = false;
                for piece in pieces {
                    if is_text {
                        text.push_str(&unescape(piece));
                        is_text = false;
                        continue;
                    }
                    let Some(kind) = piece.chars().next() else {
                        text.push('%');
                        is_text = true;
                        continue;
                    };
                    match kind {
                        's' | 'd' | 'q' => text.push_str(rest.pop().unwrap_or_default()),
                        'b' => text.push_str(&unescape(rest.pop().unwrap_or_default())),
                        _ => return None,
                    }
                    text.push_str(&unescape(piece.get(1..).unwrap_or_default()));
                }
                if rest.is_empty() || rest.len() == before || text.len() > MAX_TEXT_BYTES {
                    break;
                }
            }
            Some(text)
        }
        "tee" => input(),
        // Some of the lines, or all of them in another order.
        "head" | "tail" | "sort" | "uniq" | "tac" | "shuf"
            if invocation.operands().all(|word| {
                word.text
                    .chars()
                    .all(|letter| letter.is_ascii_digit() || letter == '+')
            }) =>
        {
            input()
        }
        "yes" => {
            let words: Vec<&str> = invocation.texts().collect();
            (!words.is_empty()).then(|| words.join(" ") + "\n")
        }
        // A file counts as its input if the command itself has written it.
        "cat" => input(),
        "base64" | "gbase64"
            if invocation.has_option("dD", &["--decode"])
                && invocation.operands().next().is_none() =>
        {
            decode_base64(&input()?)
        }
        "xxd" if invocation.has_option("r", &[]) => decode_hex(&input()?),
        "openssl"
            if invocation.has_option("d", &[])
                && (invocation.has_word("base64")
                    || invocation.has_word("-base64")
                    || invocation.has_word("-a")) =>
        {
            decode_base64(&input()?)
        }
        "tr" => filters::translate(invocation, &input()?),
        "sed" | "gsed" => filters::substitute(invocation, &input()?),
        // What one of them packs, another one unpacks.
        "gzip" | "gunzip" | "zcat" | "bzip2" | "bunzip2" | "bzcat" | "xz" | "unxz" | "xzcat"
        | "zstd" | "unzstd" | "zstdcat" | "lz4" | "unlz4" | "grep" | "fmt" | "fold" | "pv"
        | "stdbuf" | "dos2unix" | "expand"
            if invocation.operands().count() <= usize::from(invocation.name == "grep") =>
        {
            input()
        }
        "rev" => Some(
            input()?
                .lines()
                .map(|line| line.chars().rev().collect::<String>() + "\n")
                .collect(),
        ),
        _ => None,
    }
}

/// The escapes of `echo -e` and `printf`.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let (radix, most) = match characters.peek() {
            Some('0'..='7') => (8, 4),
            Some('x') => {
                characters.next();
                (16, 2)
            }
            Some('u' | 'U') => {
                let most = if characters.next() == Some('u') { 4 } else { 8 };
                let mut value = 0;
                for _ in 0..most {
                    let Some(digit) = characters.peek().and_then(|next| next.to_digit(16)) else {
                        break;
                    };
                    value = value * 16 + digit;
                    characters.next();
                }
                let character = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
                bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            Some('n') => (0, 10),
            Some('t') => (0, 9),
            Some('\\') => (0, 92),
            _ => {
                bytes.push(b'\\');
                continue;
            }
        };
        if radix == 0 {
            characters.next();
            bytes.push(most);
            continue;
        }
        let mut value = 0;
        for _ in 0..most {
            let Some(digit) = characters.peek().and_then(|next| next.to_digit(radix)) else {
                break;
            };
            value = value * radix + digit;
            characters.next();
        }
        bytes.push(u8::try_from(value & 0xff).unwrap_or_default());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn decode_base64(text: &str) -> Option<String> {
    if text.contains(UNKNOWN) {
        return None;
    }
    String::from_utf8(base64_bytes(text)).ok()
}

pub(super) fn base64_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).unwrap_or_default());
        }
    }
    bytes
}

pub(super) fn decode_hex(text: &str) -> Option<String> {
    if text.contains(UNKNOWN) {
        return None;
    }
    let digits: Vec<u32> = text
        .chars()
        .filter_map(|letter| letter.to_digit(16))
        .collect();
    let bytes = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |value, digit| value * 16 + digit))
        .map(|value| u8::try_from(value).unwrap_or_default())
        .collect();
    String::from_utf8(bytes).ok()
}
