//! Checks that a managed policy with any content is one, or fails closed.

use anyhook_model::document::Format;
use anyhook_model::{Scope, Vocabulary, parse};
use anyhook_run::config::policy::Rulebook;

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for name in ["/m/policy.json", "/m/policy.jsonc", "/m/policy.yaml"] {
        let format = Format::from_path(name).expect("a known ending");
        let vocabulary = Vocabulary::default();
        let (policy, _) = parse::policy(&text, format, Scope::Managed, &vocabulary);
        let expected = policy.is_none_or(|policy| policy.fail_closed);
        let rules = Rulebook::from_managed_text(name, &text);
        assert_eq!(rules.fail_closed(), expected, "{name}");
    }
}
