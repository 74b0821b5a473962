//! Well-known forms of tokens and keys in a text.

/// A prefix, how many characters of a token must follow it, and which.
const TOKENS: &[(&str, usize)] = &[
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 40),
    ("glpat-", 18),
    ("glptt-", 18),
    ("gldt-", 18),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("sk_test_", 20),
    ("whsec_", 20),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-or-v1-", 20),
    ("sk-svcacct-", 20),
    ("xoxb-", 15),
    ("xoxp-", 15),
    ("xoxa-", 15),
    ("xoxr-", 15),
    ("xoxs-", 15),
    ("xapp-", 15),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 35),
    ("ya29.", 20),
    ("GOCSPX-", 20),
    ("npm_", 30),
    ("pypi-", 40),
    ("dop_v1_", 40),
    ("doo_v1_", 40),
    ("dor_v1_", 40),
    ("hf_", 30),
    ("SG.", 40),
    ("key-", 32),
    ("shpat_", 30),
    ("shpss_", 30),
    ("shpca_", 30),
    ("sq0atp-", 20),
    ("sq0csp-", 20),
    ("EAAA", 50),
    ("dckr_pat_", 20),
    ("tskey-", 20),
    ("glsa_", 30),
    ("sntrys_", 30),
    ("sntryu_", 30),
    ("lin_api_", 30),
    ("secret_", 40),
    ("ntn_", 40),
    ("figd_", 30),
    ("r8_", 30),
    ("pplx-", 30),
    ("gsk_", 40),
    ("xai-", 40),
    ("nvapi-", 40),
    ("hvs.", 20),
    ("hvb.", 20),
    ("s.", 0),
    ("ATATT3", 40),
    ("NRAK-", 20),
    ("rnd_", 30),
    ("fly_", 0),
    ("FlyV1 ", 30),
    ("dapi", 32),
    ("pat-na1-", 20),
    ("PMAK-", 40),
    ("sbp_", 30),
    ("sb_secret_", 20),
    ("cio_", 0),
    ("tfp_", 30),
    ("AGE-SECRET-KEY-1", 40),
    ("ops_eyJ", 40),
    ("LTAI", 16),
    ("AccountKey=", 40),
    ("dp.pt.", 30),
    ("dp.st.", 30),
    ("rubygems_", 40),
    ("oy2", 40),
    ("PRIVATE-TOKEN: ", 18),
    ("hooks.slack.com/services/T", 20),
    ("api.telegram.org/bot", 30),
    ("discord.com/api/webhooks/", 40),
    ("discordapp.com/api/webhooks/", 40),
    ("CFPAT-", 30),
    ("shippo_live_", 30),
    ("pk_live_secret", 40),
    ("amzn.mws.", 30),
    ("live_sk_", 30),
    ("eyJhbGciOi", 40),
    ("sl.", 60),
    ("vercel_", 0),
    ("nfp_", 30),
    ("doppler_", 0),
    ("pscale_tkn_", 20),
    ("pscale_pw_", 20),
    ("duffel_live_", 20),
    ("EZAK", 30),
    ("rzp_live_", 12),
];

/// The form of a secret that the text contains.
pub(super) fn known_secret(text: &str) -> Option<&'static str> {
    if has_private_key(text) {
        return Some("a private key");
    }
    for (prefix, length) in TOKENS {
        if *length == 0 || text.len() < prefix.len() + length {
            continue;
        }
        for (at, _) in text.match_indices(prefix).take(16) {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                continue;
            }
            let rest = text.get(at + prefix.len()..).unwrap_or_default();
            let token: String = rest
                .chars()
                .take_while(|letter| letter.is_ascii_alphanumeric() || "-_.=+/:".contains(*letter))
                .collect();
            if token.chars().count() >= *length && is_random(&token, prefix) {
                return Some("a token");
            }
        }
    }
    if has_classic_openai(text) {
        return Some("a token");
    }
    if has_telegram(text) {
        return Some("a token");
    }
    if has_aws_secret(text) {
        return Some("a cloud key");
    }
    url_password(text)
}

fn has_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(at, _)| {
        let rest = text.get(at..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let line = line.split("\\n").next().unwrap_or_default();
        line.contains("PRIVATE KEY")
            && rest.len() > line.len() + 30
            && !rest.get(line.len()..).is_some_and(|body| {
                body.trim_start_matches(['\\', 'n', '\n', ' '])
                    .starts_with(['.', '<', '…'])
            })
    }) || text.contains("PuTTY-User-Key-File-")
}

/// Digits and letters mixed, and no placeholder.
fn is_random(token: &str, prefix: &str) -> bool {
    let lower = token.to_ascii_lowercase();
    let is_placeholder = [
        "xxxx",
        "your",
        "example",
        "placeholder",
        "....",
        "****",
        "changeme",
        "<",
        "dummy",
        "redacted",
        "1234567890abcdef",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    let first = token.chars().next();
    let is_repeated = token.chars().take(12).all(|letter| Some(letter) == first);
    let needs_digits = !matches!(prefix, "AKIA" | "ASIA" | "AGE-SECRET-KEY-1" | "LTAI");
    let has_digit = token.chars().any(|letter| letter.is_ascii_digit());
    let has_letter = token.chars().any(|letter| letter.is_ascii_alphabetic());
    // Letters in changing case are random enough without digits.
    let changes = token
        .as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
        .count();
    let has_digit = has_digit || changes >= 6;
    if matches!(prefix, "AKIA" | "ASIA") {
        let key: String = token.chars().take(16).collect();
        return !is_placeholder
            && key
                .chars()
                .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    }
    !is_placeholder && !is_repeated && (!needs_digits || has_digit) && has_letter
}

/// `sk-` with 40 or more letters and digits.
fn has_classic_openai(text: &str) -> bool {
    text.match_indices("sk-").any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let token: String = text
            .get(at + 3..)
            .unwrap_or_default()
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        token.len() >= 32 && is_random(&token, "sk-") && !before.is_some_and(char::is_alphanumeric)
    })
}

/// `123456789:AA…` of Telegram bots.
fn has_telegram(text: &str) -> bool {
    text.match_indices(":AA").any(|(at, _)| {
        let digits = text
            .get(..at)
            .unwrap_or_default()
            .chars()
            .rev()
            .take_while(char::is_ascii_digit)
            .count();
        let token = text
            .get(at + 1..)
            .unwrap_or_default()
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
            .count();
        (8..=10).contains(&digits) && token >= 33
    })
}

/// An assignment of 40 base64 characters to something that is called a secret access key.
fn has_aws_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["secret_access_key", "secretaccesskey", "aws_secret"]
        .iter()
        .any(|mark| {
            lower.match_indices(mark).any(|(at, _)| {
                let rest = text.get(at + mark.len()..).unwrap_or_default();
                let after_name = rest
                    .find(['=', ':', ' '])
                    .filter(|at| *at <= 12)
                    .and_then(|at| rest.get(at..))
                    .unwrap_or_default();
                let value = after_name.trim_start_matches([' ', '\t', '=', ':', '"', '\'']);
                let token: String = value
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || "/+=".contains(*letter))
                    .collect();
                token.len() >= 38 && is_random(&token, "aws")
            })
        })
}

/// `scheme://user:password@host` with a password that is no placeholder.
fn url_password(text: &str) -> Option<&'static str> {
    for (at, _) in text.match_indices("://").take(32) {
        let rest = text.get(at + 3..).unwrap_or_default();
        let end = rest
            .find(|letter: char| letter.is_whitespace() || "'\"`<>/)".contains(letter))
            .unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or_default();
        let Some((user, host)) = authority.rsplit_once('@') else {
            continue;
        };
        let Some((_, password)) = user.split_once(':') else {
            continue;
        };
        let lower = password.to_ascii_lowercase();
        let is_placeholder = password.len() < 12
            || [
                "pass", "secret", "example", "your", "$", "{", "*", "xxx", "\0", "changeme",
                "token",
            ]
            .iter()
            .any(|mark| lower.contains(mark));
        let host = host.split(':').next().unwrap_or_default();
        if !is_placeholder
            && !matches!(host, "localhost" | "127.0.0.1" | "db" | "postgres")
            && password.chars().any(|letter| letter.is_ascii_digit())
        {
            return Some("a password in a URL");
        }
    }
    None
}
