//! Checks that any text can be parsed as settings, into a value or an error.

use anyhook_model::document::Format;
use anyhook_run::config::settings::Settings;

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for format in [Format::Json, Format::Jsonc, Format::Yaml] {
        if let Err(error) = Settings::parse(&text, format) {
            assert!(!error.is_empty());
        }
    }
}
