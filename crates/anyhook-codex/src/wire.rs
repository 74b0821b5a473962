//! The app-server protocol on the wire: one JSON object per line or per
//! WebSocket text frame, without a `jsonrpc` member.
//!
//! [`IncomingMessage`] parses only the envelope, so unknown methods and fields do
//! no harm. It is forgiving: a request for approval that is odd in any way must
//! still reach the hooks. Tests check every outgoing message against the
//! published schema.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How deep [`readable_value`] reads what is nested too deep for a `Value`; the
/// rest is kept as text.
const MAX_READ_DEPTH: usize = 64;

/// Number and text are different ids: `0` is not `"0"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    Number(i64),
    Text(String),
    /// Any other value, as it is written. Codex sends none, but whoever does
    /// gets it back.
    Other(String),
}

impl RequestId {
    /// As it came.
    pub fn to_json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => Value::from(text.as_str()).to_string(),
            Self::Other(json) => json.clone(),
        }
    }

    fn from_raw(raw: &RawValue) -> Self {
        if let Some(number) = parse_raw(raw) {
            return Self::Number(number);
        }
        match parse_raw(raw) {
            Some(text) => Self::Text(text),
            // Between the parts of a value; a message is one line.
            None => Self::Other(raw.get().replace(['\n', '\r'], "")),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <Box<RawValue>>::deserialize(deserializer)?;
        Ok(Self::from_raw(&raw))
    }
}

/// The envelope of a message of either side.
#[derive(Debug, Default)]
pub struct IncomingMessage<'a> {
    pub id: Option<RequestId>,
    pub method: Option<Cow<'a, str>>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
    pub(crate) emitted_at: Option<&'a RawValue>,
}

impl<'a> IncomingMessage<'a> {
    /// `None` if the bytes are not a message; they still pass between the two ends.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        serde_json::from_slice(bytes).ok()
    }

    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The id of the request that this message answers.
    pub(crate) fn answered_id(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.method.is_none())
    }

    pub fn params(&self) -> Value {
        self.params
            .map(|raw| readable_value(raw, 0))
            .unwrap_or_default()
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What `inspect` finds in a line's message; bytes that are not UTF-8 are replaced.
pub(crate) fn inspect_message<T>(
    line: &[u8],
    inspect: impl FnOnce(&IncomingMessage<'_>) -> Option<T>,
) -> Option<T> {
    if let Some(message) = IncomingMessage::parse(line) {
        return inspect(&message);
    }
    let readable = readable_bytes(line)?;
    inspect(&IncomingMessage::parse(&readable)?)
}

/// Bytes that are not UTF-8 with what is not replaced.
fn readable_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text.into_bytes()),
    }
}

/// Whether a request of this name asks for an approval, also one that is new.
pub(crate) fn is_approval_method(method: &str) -> bool {
    let ending = method.len().checked_sub("approval".len());
    let ending = ending.and_then(|start| method.get(start..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("approval"))
}

/// Of a member that occurs twice the last one counts, except that no other method
/// hides one that asks for an approval.
impl<'de: 'a, 'a> Deserialize<'de> for IncomingMessage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Envelope;

        impl<'de> Visitor<'de> for Envelope {
            type Value = IncomingMessage<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a message")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut message = IncomingMessage::default();
                while let Some((key, raw)) = map.next_entry::<String, &'de RawValue>()? {
                    let some = Some(raw).filter(|raw| raw.get() != "null");
                    match key.as_str() {
                        "id" => message.id = Some(RequestId::from_raw(raw)),
                        "method" => {
                            let method = parse_raw::<String>(raw).map(Cow::Owned);
                            let is_approval =
                                message.method.as_deref().is_some_and(is_approval_method);
                            if !is_approval {
                                message.method = method.or(message.method);
                            }
                        }
                        "params" => message.params = some,
                        "result" => message.result = some,
                        "error" => message.error = some,
                        "emittedAtMs" => message.emitted_at = some,
                        _ => {}
                    }
                }
                Ok(message)
            }
        }

        deserializer.deserialize_map(Envelope)
    }
}

/// Parses one part of a message; `None` if it has another shape.
pub(crate) fn parse_raw<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// A value of which parts may be nested too deep or have half a surrogate pair:
/// what cannot be read otherwise is kept as text.
fn readable_value(raw: &RawValue, depth: usize) -> Value {
    if let Some(value) = parse_raw(raw) {
        return value;
    }
    let text = raw.get();
    let is_deep = depth >= MAX_READ_DEPTH;
    match text.as_bytes().first() {
        Some(b'{') if !is_deep => {
            let members: RawMembers<'_> = parse_raw(raw).unwrap_or_default();
            let members = members.0.into_iter();
            let readable = members.map(|(key, raw)| (key, readable_value(raw, depth + 1)));
            Value::Object(readable.collect::<Map<_, _>>())
        }
        Some(b'[') if !is_deep => {
            let items: Vec<&RawValue> = parse_raw(raw).unwrap_or_default();
            let readable = items.into_iter().map(|raw| readable_value(raw, depth + 1));
            readable.collect()
        }
        Some(b'"') => {
            let whole = without_surrogates(text);
            serde_json::from_str(&whole).unwrap_or_else(|_| Value::from(text))
        }
        _ => Value::from(text),
    }
}

/// The members of an object, unread.
#[derive(Default)]
struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = RawMembers<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<&'de RawValue>()? {
                    let name = without_surrogates(key.get());
                    let name = serde_json::from_str(&name).unwrap_or(name);
                    members.push((name, map.next_value()?));
                }
                Ok(RawMembers(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// JSON text with each escaped surrogate replaced.
fn without_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let hex = after.strip_prefix('u').and_then(|after| after.get(..4));
        let code = hex.and_then(|hex| u16::from_str_radix(hex, 16).ok());
        if code.is_some_and(|code| (0xd800..0xe000).contains(&code)) {
            out.push('\u{fffd}');
            rest = after.get(5..).unwrap_or_default();
        } else {
            out.push('\\');
            let mut letters = after.chars();
            out.extend(letters.next());
            rest = letters.as_str();
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn odd_messages_are_read() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let cases = [
            (r#"{"id":1,"method":"m"}"#.to_owned(), RequestId::Number(1)),
            (
                r#"{"id":"1","method":"m"}"#.to_owned(),
                RequestId::Text("1".into()),
            ),
            (
                r#"{"id":1.0,"method":"m"}"#.to_owned(),
                RequestId::Other("1.0".into()),
            ),
            (
                r#"{"id":null,"method":"m"}"#.to_owned(),
                RequestId::Other("null".into()),
            ),
            (
                r#"{"id":{"a":1},"method":"m"}"#.to_owned(),
                RequestId::Other(r#"{"a":1}"#.into()),
            ),
            (
                r#"{"id":9,"id":1,"method":"m"}"#.to_owned(),
                RequestId::Number(1),
            ),
            (
                "\u{feff}{\"id\":1,\"method\":\"m\"}".to_owned(),
                RequestId::Number(1),
            ),
            (
                format!(r#"{{"id":1,"method":"m","params":{{"x":{deep}}}}}"#),
                RequestId::Number(1),
            ),
        ];
        for (line, id) in cases {
            let message = IncomingMessage::parse(line.as_bytes()).unwrap();
            assert_eq!(message.id, Some(id), "{line:.60}");
            assert_eq!(message.method(), Some("m"));
        }
        let reply = |line: &str| {
            IncomingMessage::parse(line.as_bytes())
                .unwrap()
                .id
                .unwrap()
                .to_json()
        };
        for id in ["1", "\"1\"", "1.0", "null", "1e3", "\"\\\"\""] {
            assert_eq!(reply(&format!(r#"{{"id":{id}}}"#)), id);
        }
    }

    #[test]
    fn an_approval_is_not_hidden_by_a_second_method() {
        let approval = "item/x/requestApproval";
        for methods in [[approval, "item/started"], ["item/started", approval]] {
            let [first, second] = methods;
            let line = format!(r#"{{"id":1,"method":"{first}","method":"{second}"}}"#);
            let message = IncomingMessage::parse(line.as_bytes()).unwrap();
            assert_eq!(message.method(), Some(approval));
        }
    }

    #[test]
    fn what_is_too_deep_or_half_a_pair_hides_nothing_else() {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let line = format!(
            r#"{{"params":{{"command":"echo \ud83d; rm -rf /","\ud800":1,"meta":{{"deep":{deep},"kind":"k"}}}}}}"#
        );
        let params = IncomingMessage::parse(line.as_bytes()).unwrap().params();
        assert_eq!(params["command"], json!("echo \u{fffd}; rm -rf /"));
        assert_eq!(params["meta"]["kind"], json!("k"));
    }
}
