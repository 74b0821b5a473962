//! A set of bounded size that forgets its oldest members.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Remembers at least the last `limit` members, at 16 bytes each, and at most
/// twice as many: two generations, of which the older is dropped.
#[derive(Debug, Default)]
pub(super) struct BoundedSet {
    young: HashSet<u128>,
    old: HashSet<u128>,
    limit: usize,
}

impl BoundedSet {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            ..Self::default()
        }
    }

    /// True if it was not a member.
    pub(super) fn insert(&mut self, member: u128) -> bool {
        if self.contains(member) {
            return false;
        }
        if self.young.len() >= self.limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(member)
    }

    pub(super) fn contains(&self, member: u128) -> bool {
        self.young.contains(&member) || self.old.contains(&member)
    }

    pub(super) fn remove(&mut self, member: u128) {
        self.young.remove(&member);
        self.old.remove(&member);
    }
}

/// A 128-bit hash: among a million members, a collision has a probability below
/// 10⁻²⁶.
pub(super) fn fingerprint(parts: &[&str]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        parts.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    (half(0) << 64) | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_memory_is_bounded() {
        let mut seen = BoundedSet::new(10);
        for member in 0..1000 {
            assert!(seen.insert(member));
            assert!(!seen.insert(member));
            assert!(seen.young.len() + seen.old.len() <= 20);
            for recent in member.saturating_sub(9)..=member {
                assert!(seen.contains(recent), "{recent} after {member}");
            }
        }
        assert!(!seen.contains(0));
        seen.remove(999);
        assert!(!seen.contains(999));
    }

    #[test]
    fn parts_keep_their_borders() {
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }
}
