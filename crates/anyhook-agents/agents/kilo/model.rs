//! Kilo 7.7.7, a fork of OpenCode with the same plugin interface. Seen in a run:
//! the effect of a throw, and of no answer. The rest is inferred from OpenCode.

use crate::reference_model::Model;

pub(super) const MODEL: Model = super::opencode::MODEL;
