//! What an installation asks the tables: how an agent starts a command, limits
//! of single events, and where it keeps what its user has trusted.

pub use anyhook_agents::spec::{Ledger, LedgerKind, Shell};

use anyhook_agents::spec::{Agent, Str};

fn spec(agent: &str) -> Option<&'static Agent> {
    anyhook_agents::get(agent).map(|adapter| &adapter.spec)
}

pub fn ledger(agent: &str) -> Option<&'static Ledger> {
    spec(agent)?.ledger.as_ref()
}

pub fn shell(agent: &str) -> Shell {
    spec(agent).map_or(Shell::Sh, |spec| spec.launch.shell)
}

/// Whether commands go to PowerShell on Windows.
pub fn powershell(agent: &str) -> bool {
    spec(agent).is_some_and(|spec| spec.launch.powershell)
}

/// The longest time that a handler of this event gets, in seconds.
pub fn limit(agent: &str, event: &str) -> Option<f64> {
    let events = &spec(agent)?.events;
    events.iter().find(|one| one.native == event)?.max_timeout
}

/// Endings under which a script of an event is found, the preferred first.
pub fn endings(agent: &str) -> &'static [Str] {
    const PLAIN: &[Str] = &[Str::Borrowed("")];
    match spec(agent).map(|spec| spec.launch.endings.as_slice()) {
        Some(endings) if !endings.is_empty() => endings,
        _ => PLAIN,
    }
}
