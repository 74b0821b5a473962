//! The event types of OpenHook 0.1, and what a well-formed source, type and
//! version look like.

crate::string_list::string_list! {
    /// Every event type of version 0.1: five of the lifecycle, one of artifacts.
    ALL: [6];
    /// A new coding session begins.
    SESSION_START = "session.start";
    /// A coding session ends. The one event that every conforming tool emits.
    SESSION_END = "session.end";
    /// The user submits a prompt.
    PROMPT_SUBMIT = "prompt.submit";
    /// The agent begins to execute a tool.
    TOOL_START = "tool.start";
    /// The agent has finished executing a tool.
    TOOL_END = "tool.end";
    /// The agent created, updated or deleted a file.
    FILE_WRITE = "file.write";
}

/// Whether this is one of the six types of version 0.1.
pub fn is_known(event_type: &str) -> bool {
    ALL.contains(&event_type)
}

/// Dotted lowercase: two or more segments such as `record.update`.
///
/// ```
/// use openhook::event_type::is_well_formed;
/// assert!(is_well_formed("doc.write"));
/// assert!(!is_well_formed("SessionEnd"));
/// assert!(!is_well_formed("stop"));
/// ```
pub fn is_well_formed(event_type: &str) -> bool {
    let mut segments = 0;
    let sound = event_type.split('.').all(|segment| {
        segments += 1;
        starts_with_letter(segment)
            && segment
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    });
    sound && segments > 1
}

/// Lowercase kebab-case: `claude-code`, never `Claude`, `a--b` or `a-`.
pub fn is_kebab_case(source: &str) -> bool {
    starts_with_letter(source)
        && source.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

/// `MAJOR.MINOR`, digits on both sides.
pub(crate) fn is_version(version: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    version
        .split_once('.')
        .is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// The nearest kebab-case name, for a hint: `Claude Code` gives `claude-code`.
pub(crate) fn to_kebab_case(name: &str) -> Option<String> {
    let mut kebab = String::with_capacity(name.len());
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            if c.is_ascii_uppercase() && after_lower {
                kebab.push('-');
            }
            after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
            kebab.push(c.to_ascii_lowercase());
        } else {
            after_lower = false;
            if !kebab.is_empty() && !kebab.ends_with('-') {
                kebab.push('-');
            }
        }
    }
    let kebab = kebab.trim_end_matches('-');
    is_kebab_case(kebab).then(|| kebab.to_owned())
}

fn starts_with_letter(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kebab_case_is_strict_and_the_hint_is_kebab_case() {
        for good in ["a", "claude-code", "gpt4-x"] {
            assert!(is_kebab_case(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "4a", "a b", "ä"] {
            assert!(!is_kebab_case(bad), "{bad}");
        }
        assert_eq!(to_kebab_case("Claude Code").as_deref(), Some("claude-code"));
        assert_eq!(to_kebab_case("geminiCLI").as_deref(), Some("gemini-cli"));
        assert_eq!(to_kebab_case("-").as_deref(), None);
    }

    #[test]
    fn versions_have_two_numbers() {
        for good in ["0.1", "12.30"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "1", "1.", ".1", "0.1.0", "v0.1", "0.x"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
