//! The HTTP headers between a dispatcher and the daemon.

/// The exit code that the dispatcher should end with.
pub const EXIT_CODE: &str = "x-anyhook-exit-code";

/// What the dispatcher should write to its standard error, percent-encoded UTF-8.
pub const STDERR: &str = "x-anyhook-stderr";

/// The dispatcher's working directory, percent-encoded UTF-8.
pub const CWD: &str = "x-anyhook-cwd";

/// `1`: no user can be asked.
pub const UNATTENDED: &str = "x-anyhook-unattended";

/// The agent's entry that started the dispatcher, percent-encoded UTF-8.
pub const ENTRY: &str = "x-anyhook-entry";

/// The name of the machine whose journal is sent.
pub const MACHINE: &str = "x-anyhook-machine";

/// The project folders in the dispatcher's environment, percent-encoded UTF-8, separated
/// by commas.
pub const PROJECTS: &str = "x-anyhook-projects";

/// A random text that a proof is made for.
pub const NONCE: &str = "x-anyhook-nonce";

/// A proof that the sender knows the token. See [`crate::challenge`].
pub const PROOF: &str = "x-anyhook-proof";
