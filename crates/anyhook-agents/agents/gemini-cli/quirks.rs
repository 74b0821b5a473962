//! Gemini CLI runs hooks only in folders that its user trusts, kept as a map of
//! folders to levels.

use std::path::Path;

use serde_json::Value;

use crate::Quirks;
use crate::trust::{TrustLedger, TrustRecord, TrustSubject};

pub(super) struct GeminiQuirks;

pub(super) static QUIRKS: GeminiQuirks = GeminiQuirks;

impl Quirks for GeminiQuirks {
    fn trust_ledger(&self) -> Option<&'static dyn TrustLedger> {
        Some(&QUIRKS)
    }
}

impl TrustLedger for GeminiQuirks {
    fn records(&self, subject: &TrustSubject) -> Vec<TrustRecord> {
        let project = subject.project.to_string_lossy();
        vec![TrustRecord::new([&*project], "TRUST_FOLDER")]
    }

    fn missing(&self, subject: &TrustSubject, document: &Value) -> Option<String> {
        let mut levels = document.as_object().into_iter().flatten();
        let is_trusted = levels.any(|(path, level)| {
            let folder = match level.as_str() {
                Some("TRUST_FOLDER") => Some(Path::new(path)),
                Some("TRUST_PARENT") => Path::new(path).parent(),
                _ => None,
            };
            folder.is_some_and(|folder| subject.project.starts_with(folder))
        });
        let folder = subject.project.display();
        (!is_trusted).then(|| format!("the folder `{folder}` is not trusted in Gemini CLI"))
    }
}
