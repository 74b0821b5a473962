//! Which events: the options that `log`, `tail`, `stats` and `replay` share.

use anyhook_store::{EventFilter, moment};

#[derive(clap::Args)]
pub struct Asked {
    /// Events of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Events of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Events of this name: canonical, unified (BEFORE_TOOL) or the agent's own
    #[arg(long)]
    event: Option<String>,
    /// Events with this decision
    #[arg(long, value_parser = ["allow", "ask", "deny", "none"])]
    decision: Option<String>,
    /// Calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Events of this machine
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Since 2026-02-23T10:15:30Z, or for so long: 15m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,
    /// Before a time, written in the same way
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,
    /// Events with this text anywhere
    #[arg(long)]
    text: Option<String>,
    /// The store: a file or postgres://…; this machine's own when absent
    #[arg(long, value_name = "PATH|URL")]
    pub store: Option<String>,
}

impl Asked {
    pub fn filter(&self) -> EventFilter {
        let slug = |name: &String| {
            let known = anyhook_agents::get(name);
            known.map_or_else(|| name.clone(), |adapter| adapter.spec.id.to_string())
        };
        EventFilter {
            agent: self.agent.as_ref().map(slug),
            session: self.session.clone(),
            event: self.event.clone(),
            decision: self.decision.clone(),
            tool: self.tool.clone(),
            machine: self.machine.clone(),
            since_us: self.since,
            until_us: self.until,
            text: self.text.clone(),
        }
    }
}

fn time(text: &str) -> Result<i64, String> {
    moment(text)
        .ok_or_else(|| "write 2026-02-23T10:15:30Z, or 15m, 2h, 7d for so long ago".to_owned())
}
