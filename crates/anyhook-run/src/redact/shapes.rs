//! The keys of the large vendors, by their prefixes.

/// A prefix that only keys have, and what follows it.
pub struct Shape {
    pub kind: &'static str,
    pub prefix: &'static str,
    /// How many characters of the alphabet follow at least.
    pub least: usize,
    pub alphabet: fn(u8) -> bool,
}

const fn shape(
    kind: &'static str,
    prefix: &'static str,
    least: usize,
    alphabet: fn(u8) -> bool,
) -> Shape {
    Shape {
        kind,
        prefix,
        least,
        alphabet,
    }
}

/// Longer prefixes first where one begins another.
pub const SHAPES: [Shape; 43] = [
    shape("anthropic-key", "sk-ant-", 16, is_url_safe),
    shape("openai-key", "sk-proj-", 16, is_url_safe),
    shape("openrouter-key", "sk-or-", 16, is_url_safe),
    shape("api-key", "sk-", 20, is_url_safe),
    shape("stripe-key", "sk_live_", 10, is_alphanumeric),
    shape("stripe-key", "sk_test_", 10, is_alphanumeric),
    shape("stripe-key", "rk_live_", 10, is_alphanumeric),
    shape("stripe-key", "rk_test_", 10, is_alphanumeric),
    shape("webhook-secret", "whsec_", 16, is_base64),
    shape("aws-key", "AKIA", 16, is_upper),
    shape("aws-key", "ASIA", 16, is_upper),
    shape("google-key", "AIza", 30, is_url_safe),
    shape("google-token", "ya29.", 20, is_url_safe),
    shape("google-secret", "GOCSPX-", 20, is_url_safe),
    shape("github-token", "github_pat_", 20, is_url_safe),
    shape("github-token", "ghp_", 20, is_alphanumeric),
    shape("github-token", "gho_", 20, is_alphanumeric),
    shape("github-token", "ghu_", 20, is_alphanumeric),
    shape("github-token", "ghs_", 20, is_alphanumeric),
    shape("github-token", "ghr_", 20, is_alphanumeric),
    shape("gitlab-token", "glpat-", 16, is_url_safe),
    shape("gitlab-token", "gldt-", 16, is_url_safe),
    shape("gitlab-token", "glrt-", 16, is_url_safe),
    shape("gitlab-token", "glcbt-", 16, is_url_safe),
    shape("slack-token", "xoxb-", 10, is_url_safe),
    shape("slack-token", "xoxp-", 10, is_url_safe),
    shape("slack-token", "xoxa-", 10, is_url_safe),
    shape("slack-token", "xoxr-", 10, is_url_safe),
    shape("slack-token", "xoxs-", 10, is_url_safe),
    shape("slack-token", "xoxe.", 10, is_token),
    shape("slack-token", "xapp-", 10, is_url_safe),
    shape("slack-webhook", "hooks.slack.com/services/", 16, is_path),
    shape("xai-key", "xai-", 30, is_alphanumeric),
    shape("groq-key", "gsk_", 30, is_alphanumeric),
    shape("huggingface-token", "hf_", 25, is_alphanumeric),
    shape("npm-token", "npm_", 30, is_alphanumeric),
    shape("pypi-token", "pypi-", 40, is_url_safe),
    shape("digitalocean-token", "dop_v1_", 32, is_alphanumeric),
    shape("sendgrid-key", "SG.", 30, is_token),
    shape("linear-key", "lin_api_", 20, is_alphanumeric),
    shape("age-key", "AGE-SECRET-KEY-1", 20, is_upper),
    shape("vault-token", "hvs.", 20, is_url_safe),
    shape("databricks-token", "dapi", 32, is_hex),
];

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

pub fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub fn is_token(byte: u8) -> bool {
    is_url_safe(byte) || byte == b'.'
}

pub fn is_base64(byte: u8) -> bool {
    is_url_safe(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'/'
}
