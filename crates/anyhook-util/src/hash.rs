//! SHA-256 in lower-case hexadecimal, and HMAC-SHA-256.

use std::io::{self, Read};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of everything that `reader` yields.
pub fn sha256_of(mut reader: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    // Scripts are small, and clearing 64 KiB would take 0.8 µs.
    let mut buffer = [0_u8; 4096];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            count => digest.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// A hash of several parts, none of which is copied.
#[derive(Debug, Default)]
pub struct PartsHash(Sha256);

impl PartsHash {
    /// Adds a part with its length, so that parts cannot run into each other.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub fn finish(self) -> String {
        hex(&self.finish_bytes())
    }

    pub fn finish_bytes(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// HMAC-SHA-256 of the parts, one after the other.
pub fn hmac_sha256(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut padded = [0; 64];
    padded[..32].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&padded.into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// The slot, below `slot_count`, that a hash in hexadecimal falls into, by its first digits.
pub fn slot_of_hash(hash: &str, slot_count: u32) -> u32 {
    let start = hash.get(..8).unwrap_or_default();
    u32::from_str_radix(start, 16).unwrap_or_default() % slot_count
}

/// Two lower-case digits per byte.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
        let long = vec![7; 10_000];
        assert_eq!(sha256_of(long.as_slice()).unwrap(), sha256(&long));
        assert_eq!(hex(&[0, 0x0f, 0xa0]), "000fa0");
        let parts = |parts: &[&str]| {
            let mut hash = PartsHash::default();
            for part in parts {
                hash.add(part.as_bytes());
            }
            hash.finish()
        };
        assert_eq!(parts(&["a", "b"]), parts(&["a", "b"]));
        assert_ne!(parts(&["a", "b"]), parts(&["ab", ""]));
        // RFC 4231, test case 1: a short key is padded with zeros.
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        assert_eq!(
            hex(&hmac_sha256(&key, &[b"Hi ", b"There"])),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
    }
}
