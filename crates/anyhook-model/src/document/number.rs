//! Numbers, read the same from every format.

use serde_json::Number;

/// A decimal integer or float in the notation of JSON. `None` when it is too
/// large to hold.
pub(super) fn read(text: &str) -> Option<Number> {
    if !text.contains(['.', 'e', 'E']) {
        // A negative zero is a float everywhere, or it would lose its sign.
        if text == "-0" {
            return Number::from_f64(-0.0);
        }
        if let Ok(value) = text.parse::<i64>() {
            return Some(value.into());
        }
        if let Ok(value) = text.parse::<u64>() {
            return Some(value.into());
        }
    }
    Number::from_f64(text.parse().ok()?)
}
