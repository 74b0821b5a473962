//! `budget`: what the models of a session and a day may cost.

use anyhook_model::spend::KnownSpend;

use super::{GuardOptions, Objections};
use crate::finding::GuardError;
use crate::input::GuardInput;

/// Tool calls after which missing tokens mean that there are none to be found. An agent
/// may make many calls at once, or report its tokens only at the end of a turn.
const MAX_CALLS_WITHOUT_TOKENS: u32 = 25;

const SESSION_USD: &str = "--session-usd";
const DAY_USD: &str = "--day-usd";

/// US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetLimits {
    pub session_usd: Option<f64>,
    pub day_usd: Option<f64>,
}

impl BudgetLimits {
    pub(crate) fn parse(options: &GuardOptions) -> Result<Self, GuardError> {
        let amount = |name| options.all(name).last().map(|text| parse_usd(name, text));
        let limits = Self {
            session_usd: amount(SESSION_USD).transpose()?,
            day_usd: amount(DAY_USD).transpose()?,
        };
        if limits == Self::default() {
            return Err(GuardError::usage_help(
                "the guard `budget` has no limit",
                "pass `--session-usd <USD>`, `--day-usd <USD>` or both",
            ));
        }
        Ok(limits)
    }

    /// Why it cannot be said that the limits are kept.
    pub fn doubt(&self, spend: &KnownSpend) -> Option<String> {
        let session = &spend.session;
        if session.tool_calls_without_tokens >= MAX_CALLS_WITHOUT_TOKENS {
            let count = session.tool_calls_without_tokens;
            return Some(format!(
                "no tokens were found for the last {count} tool calls of this session; \
                 `anyhook stats` shows what is known"
            ));
        }
        let in_session = self.session_usd.and(session.unpriced_model.as_ref());
        let in_day = self.day_usd.and(spend.day.unpriced_model.as_ref());
        let model = in_session.or(in_day)?;
        Some(format!(
            "the model `{model}` has no price; add it to `prices.toml` in the configuration folder"
        ))
    }
}

fn parse_usd(name: &str, text: &str) -> Result<f64, GuardError> {
    let amount = text
        .parse()
        .ok()
        .filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
    amount.ok_or_else(|| {
        GuardError::usage_help(
            format!("`{name} {text}` is not an amount"),
            format!("write US dollars, such as `{name} 5` or `{name} 0.50`"),
        )
    })
}

pub(crate) fn judge(limits: BudgetLimits, input: &GuardInput<'_>, found: &mut Objections<'_>) {
    let Some(spend) = &input.context.spend else {
        return;
    };
    let sums = [
        (
            "session",
            "This session has",
            spend.session.usd,
            limits.session_usd,
        ),
        (
            "day",
            "Today (UTC) agents on this machine have",
            spend.day.usd,
            limits.day_usd,
        ),
    ];
    for (rule, who, usd, limit) in sums {
        let Some(limit) = limit.filter(|limit| usd >= *limit) else {
            continue;
        };
        let mut reason = format!("{who} used models for ${usd:.2}; the budget is ${limit:.2}");
        if !found.options.has("--decision") {
            // For the model.
            reason += ". Stop here and ask the user to raise it";
        }
        found.deny(rule, "", reason);
    }
}
