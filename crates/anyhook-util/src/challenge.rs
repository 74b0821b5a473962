//! How `anyhook run --server` and the daemon prove to each other that both know the
//! token, without sending it.
//!
//! The client sends a nonce. The daemon answers with a nonce of its own and a proof over
//! both, before it gets anything else. The call and its answer then carry a proof of their
//! content, so that whoever relays them between the two can change neither.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::hash::{hex, sha256};

/// Where a daemon listens by default.
pub const DEFAULT_PORT: u16 = 24665;

/// The path of the request that asks for a proof.
pub const PATH: &str = "/challenge";

/// The scheme of the `authorization` header of a signed call: the two nonces, the hash of
/// the body and the proof follow, separated by spaces.
pub const SCHEME: &str = "Anyhook";

/// The nonces of one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonces {
    pub client: String,
    pub server: String,
}

/// The parts of a hook call that decide which hooks run with which input.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallContent<'a> {
    /// With its query.
    pub path: &'a str,
    /// The values of the headers as they are sent; empty if they are not.
    pub cwd: &'a str,
    pub projects: &'a str,
    pub unattended: &'a str,
    pub entry: &'a str,
    pub body_sha256: &'a str,
}

/// The parts of an answer that decide what the agent does.
#[derive(Debug, Clone, Copy)]
pub struct AnswerContent<'a> {
    pub exit: &'a str,
    /// As it is sent: percent-encoded.
    pub stderr: &'a str,
    pub body: &'a [u8],
}

impl Nonces {
    /// By which a daemon shows that it knows the token.
    pub fn server_proof(&self, token: &str) -> String {
        self.proof(token, &["server"])
    }

    /// By which a client shows that it knows the token and sends this call.
    pub fn call_proof(&self, token: &str, call: &CallContent<'_>) -> String {
        let CallContent {
            path,
            cwd,
            projects,
            unattended,
            entry,
            body_sha256,
        } = *call;
        let parts = ["call", path, cwd, projects, unattended, entry, body_sha256];
        self.proof(token, &parts)
    }

    /// By which a daemon shows that this is its answer to the call.
    pub fn answer_proof(&self, token: &str, answer: &AnswerContent<'_>) -> String {
        let body = sha256(answer.body);
        self.proof(token, &["answer", answer.exit, answer.stderr, &body])
    }

    fn proof(&self, token: &str, parts: &[&str]) -> String {
        let nonces = [self.client.as_str(), &self.server];
        keyed_hash(token.as_bytes(), nonces.iter().chain(parts).copied())
    }
}

/// HMAC-SHA-256 of texts, each with its length, so that no two lists of texts are alike.
pub fn keyed_hash<'a>(key: &[u8], texts: impl Iterator<Item = &'a str>) -> String {
    // A key of any length is accepted.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return String::new();
    };
    for text in texts {
        mac.update(&(text.len() as u64).to_le_bytes());
        mac.update(text.as_bytes());
    }
    hex(&mac.finalize().into_bytes())
}

/// Takes the same time wherever the two differ.
pub fn constant_time_eq(left: &str, right: &str) -> bool {
    left.len() == right.len()
        && left
            .bytes()
            .zip(right.bytes())
            .fold(0, |differ, (left, right)| differ | (left ^ right))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_depends_on_each_part() {
        let nonces = |client: &str, server: &str| Nonces {
            client: client.to_owned(),
            server: server.to_owned(),
        };
        let first = nonces("ab", "c");
        let call = CallContent::default();
        let answer = AnswerContent {
            exit: "0",
            stderr: "",
            body: b"{}",
        };
        let mut all = vec![
            first.server_proof("t"),
            first.server_proof("u"),
            nonces("a", "bc").server_proof("t"),
            first.call_proof("t", &call),
            first.answer_proof("t", &answer),
            first.answer_proof(
                "t",
                &AnswerContent {
                    exit: "2",
                    ..answer
                },
            ),
            first.answer_proof(
                "t",
                &AnswerContent {
                    stderr: "0",
                    ..answer
                },
            ),
            first.answer_proof(
                "t",
                &AnswerContent {
                    body: b"",
                    ..answer
                },
            ),
        ];
        for changed in [
            CallContent { path: "x", ..call },
            CallContent { cwd: "x", ..call },
            CallContent {
                projects: "x",
                ..call
            },
            CallContent {
                unattended: "x",
                ..call
            },
            CallContent { entry: "x", ..call },
            CallContent {
                body_sha256: "x",
                ..call
            },
        ] {
            all.push(first.call_proof("t", &changed));
        }
        let count = all.len();
        assert!(all.iter().all(|proof| proof.len() == 64));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(constant_time_eq("a", "a") && !constant_time_eq("a", "b"));
    }

    /// The known value for an empty key and an empty message.
    #[test]
    fn a_keyed_hash_is_hmac_sha_256() {
        let none: [&str; 0] = [];
        let empty = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
        assert_eq!(keyed_hash(b"", none.into_iter()), empty);
    }
}
