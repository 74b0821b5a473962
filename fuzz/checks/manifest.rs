//! Checks that any text can be parsed as a manifest or a policy, into a value or an error.

use anyhook_model::document::Format;
use anyhook_model::{Scope, SourceText, Vocabulary, parse};

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let vocabulary = Vocabulary {
        agents: &["some-agent"],
        native_events: &["SomeEvent"],
        names: None,
    };
    for format in [Format::Json, Format::Jsonc, Format::Yaml] {
        let (manifest, findings) = parse::manifest(&text, format, &vocabulary);
        let has_error = findings.iter().any(anyhook_model::Diagnostic::is_error);
        assert_eq!(
            manifest.is_none(),
            has_error,
            "a value, or an error that says why not"
        );
        let source = SourceText::new("file", &text);
        for finding in &findings {
            assert!(finding.span.start <= finding.span.end, "{finding:?}");
            assert!(finding.span.end <= text.len(), "{finding:?}");
            assert!(source.render(finding, true).contains(finding.code));
        }
        if let Some(manifest) = manifest {
            let json = serde_json::to_string(&manifest).expect("a manifest is JSON");
            let (again, _) = parse::manifest(&json, Format::Json, &vocabulary);
            assert_eq!(again.as_ref(), Some(&manifest), "{json}");
        }
        parse::policy(&text, format, Scope::Managed, &vocabulary);
    }
}
