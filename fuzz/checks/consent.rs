//! Checks that any content of a consent file is a consent or an error, and that it
//! covers only the text that it names.

use anyhook_run::config::trust::Consent;

pub(crate) fn check(data: &[u8]) {
    let Ok(consent) = serde_json::from_slice::<Consent>(data) else {
        return;
    };
    let text = String::from_utf8_lossy(data);
    assert!(!consent.covers_manifest(&text), "a hash of itself");
    let json = serde_json::to_vec(&consent).expect("a consent is JSON");
    let again: Consent = serde_json::from_slice(&json).expect("it is read again");
    let events = |consent: &Consent| -> Vec<String> {
        let required = consent.required.iter();
        required.map(|hook| hook.event.clone()).collect()
    };
    assert_eq!(events(&again), events(&consent));
    // Not the matchers: the last digit of a number in an unknown field may change.
    let without_matchers = |consent: Consent| Consent {
        required: Vec::new(),
        ..consent
    };
    assert_eq!(without_matchers(again), without_matchers(consent));
}
