//! A conversion never weakens a guard silently.
//!
//! For every pair of agents, every captured call and every guard: if the source
//! denies the call with the guard, then the target denies it with the converted
//! guard, or the conversion has said *critical*. The same through the canonical
//! manifest, and back.
//!
//! Configs are executed as the clients execute them: real processes, with the
//! client's matchers, shell and variables (`clients.rs`), and its reference model
//! for the answer.
#![cfg(unix)] // its hooks are shell scripts
#![cfg(test)]

mod adversarial;
mod calls;
mod clients;
mod execute;
mod guards;
mod table;

use table::Table;

#[test]
fn a_converted_guard_denies_what_it_denied_or_the_loss_is_critical() {
    Table::new().check();
}

#[test]
fn a_guard_that_is_hard_to_carry_is_carried_or_the_command_refuses() {
    adversarial::check();
}
