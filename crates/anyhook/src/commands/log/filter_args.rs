//! The options that select events, shared by `log`, `tail`, `stats` and `replay`.

use anyhook_store::{EventFilter, parse_time_or_age};

#[derive(clap::Args)]
pub(crate) struct FilterArgs {
    /// Only events of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only events of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only this event: canonical, unified (BEFORE_TOOL) or the agent's own name
    #[arg(long)]
    event: Option<String>,
    /// Only events with this decision
    #[arg(long, value_parser = ["allow", "ask", "deny", "none"])]
    decision: Option<String>,
    /// Only calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only events of this machine
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Only events of this user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,
    /// Only events of this project
    #[arg(long, value_name = "ID")]
    project_id: Option<String>,
    /// Only events of this workflow
    #[arg(long, value_name = "ID")]
    workflow_id: Option<String>,
    /// Only events since this time (2026-02-23T10:15:30Z) or this long ago (15m, 2h, 7d)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<i64>,
    /// Only events before this time, in the same format
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<i64>,
    /// Only events that contain this text anywhere
    #[arg(long)]
    text: Option<String>,
    /// The store: a file or postgres://… [default: this machine's]
    #[arg(long, value_name = "PATH|URL")]
    pub store: Option<String>,
}

impl FilterArgs {
    pub(crate) fn to_filter(&self) -> EventFilter {
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
            user_id: self.user_id.clone(),
            project_id: self.project_id.clone(),
            workflow_id: self.workflow_id.clone(),
            since_us: self.since,
            until_us: self.until,
            text: self.text.clone(),
        }
    }
}

pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    parse_time_or_age(text).ok_or_else(|| {
        "expected a time like 2026-02-23T10:15:30Z or an age like 15m, 2h, 7d".to_owned()
    })
}
