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
    assert_eq!(again, consent);
}
