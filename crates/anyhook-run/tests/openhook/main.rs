//! OpenHook envelopes from canonical events, and their delivery.

mod cases;
mod discovery;
mod fake_machine;
mod levels;
mod make;
mod properties;
mod queue;
mod state;
