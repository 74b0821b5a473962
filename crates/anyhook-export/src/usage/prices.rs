//! What tokens cost: `prices.toml`, and the user's own file over it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhook_util::hash::PartsHash;
use serde::Deserialize;

use super::ledger::TokenCounts;

const BUILT_IN: &str = include_str!("../../prices.toml");
const MAX_PRICES_BYTES: u64 = 1024 * 1024;
const TOKENS_PER_PRICE: f64 = 1_000_000.0;

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    pub input: f64,
    pub output: f64,
    /// Absent: like other input.
    pub cache_read: Option<f64>,
    /// Absent: like other input.
    pub cache_creation: Option<f64>,
    /// What is written to the cache for an hour. Absent: like `cache_creation`.
    pub cache_creation_hour: Option<f64>,
}

impl ModelPrice {
    /// TOML has `nan` and `inf`, with which no sum would ever reach a budget.
    fn is_sound(&self) -> bool {
        const MAX_PRICE: f64 = 1e9;
        let prices = [
            Some(self.input),
            Some(self.output),
            self.cache_read,
            self.cache_creation,
            self.cache_creation_hour,
        ];
        prices
            .iter()
            .flatten()
            .all(|price| (0.0..=MAX_PRICE).contains(price))
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    /// When the prices were looked up.
    date: String,
    #[serde(default)]
    models: BTreeMap<String, ModelPrice>,
    /// Who serves models whose names begin like this, by OpenTelemetry's names.
    #[serde(default)]
    providers: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct PriceTable {
    file: PriceFile,
    /// Differs where the prices do.
    digest: String,
}

impl PriceTable {
    /// The built-in prices, with those of a file over them. A file that is not there
    /// changes nothing.
    pub fn load(own: &Path) -> Result<Self, String> {
        let mut file: PriceFile =
            toml::from_str(BUILT_IN).map_err(|error| format!("prices.toml: {error}"))?;
        let mut digest = PartsHash::default();
        digest.add(BUILT_IN.as_bytes());
        if own.exists() {
            let text = anyhook_util::fs::read_text(own, MAX_PRICES_BYTES)
                .map_err(|error| format!("could not read `{}`: {error}", own.display()))?;
            let over: PriceFile =
                toml::from_str(&text).map_err(|error| format!("{}: {error}", own.display()))?;
            if let Some((model, _)) = over.models.iter().find(|(_, price)| !price.is_sound()) {
                return Err(format!(
                    "{}: `{model}` has a price that is negative or no number; write US dollars \
                     for a million tokens",
                    own.display()
                ));
            }
            file.models.extend(over.models);
            file.providers.extend(over.providers);
            file.date = over.date;
            digest.add(text.as_bytes());
        }
        Ok(Self {
            file,
            digest: digest.finish(),
        })
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    pub fn date(&self) -> &str {
        &self.file.date
    }

    /// The price of a model: by its name, or by its name without a date at the end.
    pub fn price(&self, model: &str) -> Option<ModelPrice> {
        let models = &self.file.models;
        let bare = model.rsplit('/').next().unwrap_or(model);
        let bare = bare.split('[').next().unwrap_or(bare);
        [model, bare, without_date(bare)]
            .into_iter()
            .find_map(|name| models.get(name).copied())
    }

    /// US dollars; `None` if the model has no price.
    pub fn cost(&self, model: &str, tokens: TokenCounts) -> Option<f64> {
        let price = self.price(model)?;
        let cached = tokens.cache_read.saturating_add(tokens.cache_creation);
        let plain = tokens.input.saturating_sub(cached);
        let creation = price.cache_creation.unwrap_or(price.input);
        let for_an_hour = tokens.cache_creation_hour.min(tokens.cache_creation);
        #[expect(clippy::cast_precision_loss, reason = "a price has a few digits")]
        let part = |count: u64, price: f64| count as f64 * price / TOKENS_PER_PRICE;
        Some(
            part(plain, price.input)
                + part(tokens.output, price.output)
                + part(tokens.cache_read, price.cache_read.unwrap_or(price.input))
                + part(tokens.cache_creation - for_an_hour, creation)
                + part(for_an_hour, price.cache_creation_hour.unwrap_or(creation)),
        )
    }

    /// Who serves a model, by the longest beginning of its name.
    pub fn provider(&self, model: &str) -> Option<&str> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        let mut found = self.file.providers.iter().rev();
        let found = found.find(|(prefix, _)| bare.starts_with(prefix.as_str()));
        found.map(|(_, provider)| provider.as_str())
    }
}

/// A model's name without a date at its end: `-20250929` or `-2025-04-14`.
fn without_date(name: &str) -> &str {
    for (length, dashes) in [("-20250929".len(), 1), ("-2025-04-14".len(), 3)] {
        let Some(start) = name.len().checked_sub(length) else {
            continue;
        };
        let is_part = |letter: char| letter.is_ascii_digit() || letter == '-';
        let is_date = name.get(start..).is_some_and(|date| {
            date.starts_with("-20")
                && date.chars().all(is_part)
                && date.matches('-').count() == dashes
        });
        if is_date {
            return name.get(..start).unwrap_or(name);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_with_and_without_a_date_and_never_by_its_beginning() {
        let prices = PriceTable::load(Path::new("/nowhere/prices.toml")).unwrap();
        let known = prices.price("claude-sonnet-4-5").unwrap();
        for name in [
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4-5",
            "claude-sonnet-4-5[1m]",
        ] {
            assert_eq!(prices.price(name), Some(known), "{name}");
        }
        assert!(prices.price("gpt-5-2025-08-07").is_some());
        for name in [
            "",
            "claude",
            "claude-sonnet-9",
            "gpt-5.9",
            "gpt-5-20",
            "o3-9",
        ] {
            assert_eq!(prices.price(name), None, "{name}");
        }
        assert_eq!(prices.provider("claude-sonnet-4-6"), Some("anthropic"));
        assert_eq!(prices.provider("gpt-5.9"), Some("openai"));
        assert_eq!(prices.provider("unheard-of"), None);
    }
}
