//! `validate --fix`: writes what is certainly meant, and leaves the rest of the text
//! as it is.

use anyhook_model::Diagnostic;
use serde_json::Value;

/// The text with every certain replacement, and the number of them.
pub(super) fn fixed_text(text: &str, findings: &[Diagnostic]) -> (String, usize) {
    let mut fixes: Vec<(&Diagnostic, &Value)> = findings
        .iter()
        .filter_map(|finding| Some((finding, finding.replacement.as_deref()?)))
        .collect();
    fixes.sort_by_key(|(finding, _)| finding.span.start);
    let mut fixed = String::with_capacity(text.len());
    let (mut done, mut count) = (0, 0);
    for (finding, value) in fixes {
        let span = finding.span;
        let (Some(before), Some(old)) = (text.get(done..span.start), text.get(span.range())) else {
            continue;
        };
        fixed.push_str(before);
        fixed.push_str(&written(value, old));
        done = span.end;
        count += 1;
    }
    fixed.push_str(text.get(done..).unwrap_or_default());
    (fixed, count)
}

/// A name or a list of names, quoted like the text that it replaces.
fn written(value: &Value, old: &str) -> String {
    let quote = old.chars().next().filter(|first| "\"'".contains(*first));
    let quoted = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        match quote {
            Some(quote) => format!("{quote}{text}{quote}"),
            None => text.to_owned(),
        }
    };
    match value.as_array() {
        Some(items) => {
            let items: Vec<String> = items.iter().map(quoted).collect();
            format!("[{}]", items.join(", "))
        }
        None => quoted(value),
    }
}
