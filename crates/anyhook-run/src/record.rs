//! What is stored: the journal, with secrets redacted, the small files that
//! recognise repeated events, the folders of sessions, the user's exceptions and open
//! questions.

pub mod allowed_once;
pub mod approvals;
pub mod duplicate;
pub mod journal;
pub(crate) mod notices;
pub mod old_files;
pub mod redact;
pub mod session_folders;
