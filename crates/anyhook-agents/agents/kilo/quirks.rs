//! Kilo is OpenCode under another name: the same program is generated.

use super::opencode::OpenCodeQuirks;

pub(super) static QUIRKS: OpenCodeQuirks = OpenCodeQuirks { id: "kilo" };
