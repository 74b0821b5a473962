//! On-disk cache of parsed rules files of the guard `rules`: the YAML of 200 rules, and
//! the examples in it, take longer to check than a whole call.
//!
//! A file is a MAC over the hash of the rules' text and over the parsed rules, and then
//! these. One that does not fit is not used and is written again. The administrator's
//! rules have no cache, because the user can compute the MAC.

use std::path::{Path, PathBuf};

use anyhook_guard::RuleSet;
use anyhook_util::fs::{read_bytes, replace};
use anyhook_util::hash::{hmac_sha256, sha256, slot_of_hash};

use crate::config::cache_key::CacheKey;
use crate::config::manifest_cache::FOLDER;

/// Changes with the form of parsed rules.
const VERSION: &str = concat!("rules 2/", env!("CARGO_PKG_VERSION"));

/// The number of files; more rules files than this overwrite each other's.
const SLOT_COUNT: u32 = 256;

const MAC_BYTES: usize = 32;

/// No rules file can need more.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The cached rules of a text.
pub(crate) struct RulesCache<'a> {
    state: &'a Path,
    text_hash: String,
}

impl<'a> RulesCache<'a> {
    pub(crate) fn new(state: &'a Path, text: &str) -> Self {
        Self {
            state,
            text_hash: sha256(text.as_bytes()),
        }
    }

    pub(crate) fn load(&self) -> Option<RuleSet> {
        let mut content = read_bytes(&self.path(), MAX_FILE_BYTES).ok()?;
        let (mac, rules) = content.split_at_checked(MAC_BYTES)?;
        let key = CacheKey::load(self.state)?;
        if mac != self.mac(&key, rules) {
            return None;
        }
        content.drain(..MAC_BYTES);
        RuleSet::unpack(content)
    }

    /// If this fails, the next call parses the rules again.
    pub(crate) fn save(&self, rules: &RuleSet) {
        let Some(rules) = rules.pack() else {
            return;
        };
        if let Some(key) = CacheKey::load_or_create(self.state) {
            let content = [&self.mac(&key, &rules)[..], &rules].concat();
            let _ = replace(&self.path(), &content);
        }
    }

    fn path(&self) -> PathBuf {
        let slot = slot_of_hash(&self.text_hash, SLOT_COUNT);
        self.state.join(FOLDER).join(format!("rules-{slot:02x}"))
    }

    fn mac(&self, key: &CacheKey, rules: &[u8]) -> [u8; MAC_BYTES] {
        let hash = self.text_hash.as_bytes();
        let parts = [VERSION.as_bytes(), b"\0", hash, b"\0", rules];
        hmac_sha256(&key.secret, &parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhook_guard::check_rules;

    const TEXT: &str = "rules:\n  - when: { command: npm publish, not: { flags: --dry-run } }\n    match: npm publish\n  - name: b\n    decision: ask\n    when: { content: 'a+b', subagent: [x], any: [{ tool: shell }] }\n";

    #[test]
    fn rules_come_back_as_they_were() {
        let state = tempfile::tempdir().unwrap();
        let cache = RulesCache::new(state.path(), TEXT);
        assert!(cache.load().is_none());
        let rules = check_rules(TEXT).0.unwrap();
        cache.save(&rules);
        assert_eq!(cache.load().unwrap().len(), rules.len());
        let other = RulesCache::new(state.path(), "rules: []");
        assert!(other.load().is_none());
    }

    #[test]
    fn no_change_of_a_byte_goes_unnoticed() {
        let state = tempfile::tempdir().unwrap();
        let cache = RulesCache::new(state.path(), TEXT);
        cache.save(&check_rules(TEXT).0.unwrap());
        let content = std::fs::read(cache.path()).unwrap();
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            std::fs::write(cache.path(), &changed).unwrap();
            assert!(cache.load().is_none(), "byte {at}");
            std::fs::write(cache.path(), &content[..at]).unwrap();
            assert!(cache.load().is_none(), "cut at {at}");
        }
        std::fs::write(cache.path(), &content).unwrap();
        assert!(cache.load().is_some());
        // Of another text that has the same slot.
        let other = RulesCache {
            text_hash: format!("{}{}", cache.text_hash.get(..8).unwrap(), "0".repeat(56)),
            ..cache
        };
        assert!(other.load().is_none());
    }
}
