//! Problems in the output of `--json`: `code`, `severity` and `message`, as `validate`
//! and `doctor` have them.

use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct ErrorDiagnostic<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
}

/// Serializes messages as errors with one code, for `serialize_with`.
fn serialize_errors<S: Serializer>(
    code: &'static str,
    messages: &[String],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|message| ErrorDiagnostic {
        code,
        severity: "error",
        message,
    }))
}

/// Files whose hooks do not run.
pub(crate) fn unused_files<S: Serializer>(
    messages: &[String],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serialize_errors("file-not-used", messages, serializer)
}

/// Errors in the table of an agent.
#[derive(Serialize)]
pub(crate) struct TableCheck<'a> {
    pub agent: Option<&'a str>,
    #[serde(serialize_with = "table_errors")]
    pub diagnostics: &'a [String],
}

fn table_errors<S: Serializer>(messages: &&[String], serializer: S) -> Result<S::Ok, S::Error> {
    serialize_errors("table", messages, serializer)
}
