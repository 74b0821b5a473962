//! What is stored: the journal, with secrets redacted, and the small files that
//! recognise repeated events.

pub mod allowed_once;
pub mod duplicate;
pub mod journal;
pub(crate) mod notices;
pub mod old_files;
pub mod redact;
