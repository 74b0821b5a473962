//! Kilo 7.7.7, a fork of OpenCode: the same calls of plugins, and in the run the
//! same effect of a throw, of changed arguments and of added words.

use crate::reference_model::Model;

pub(super) const MODEL: Model = super::opencode::MODEL;
