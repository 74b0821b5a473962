//! Tokens that are recognised by their own form, wherever they are.

use super::SecretSpan;
use super::literals::has_inner_digit;
use super::scan::{Alphabet, starts_with_ignore_case};

/// A prefix that only tokens of one kind have, and the characters that follow it.
pub(super) struct TokenRule {
    pub kind: &'static str,
    pub prefix: &'static str,
    /// The minimum number of characters of the alphabet that follow.
    pub min_length: usize,
    pub alphabet: Alphabet,
    /// The prefix is also that of ordinary words, which have no digit before a letter and no
    /// three digits in a row.
    pub needs_digits: bool,
}

const fn rule(
    kind: &'static str,
    prefix: &'static str,
    min_length: usize,
    alphabet: Alphabet,
) -> TokenRule {
    TokenRule {
        kind,
        prefix,
        min_length,
        alphabet,
        needs_digits: false,
    }
}

/// A rule for a prefix that is also that of ordinary words.
const fn digit_rule(
    kind: &'static str,
    prefix: &'static str,
    min_length: usize,
    alphabet: Alphabet,
) -> TokenRule {
    TokenRule {
        needs_digits: true,
        ..rule(kind, prefix, min_length, alphabet)
    }
}

const HEX: Alphabet = Alphabet::HEX;
const ALNUM: Alphabet = Alphabet::ALPHANUMERIC;
const LOWER: Alphabet = Alphabet::LOWER;
const UPPER: Alphabet = Alphabet::UPPER;
const WORD: Alphabet = Alphabet::WORD;
const SAFE: Alphabet = Alphabet::URL_SAFE;
const TOKEN: Alphabet = Alphabet::TOKEN;
const BASE64: Alphabet = Alphabet::BASE64;
const PATH: Alphabet = Alphabet::PATH;
const PERCENT: Alphabet = Alphabet::PERCENT;
const DOLLAR: Alphabet = Alphabet::DOLLAR;

/// Rows with the same first byte are neighbours; of these, a prefix that begins
/// another one comes after it.
#[rustfmt::skip]
pub(super) const TOKEN_RULES: &[TokenRule] = &[
    rule("google-refresh-token", "1//0", 30, SAFE),
    rule("1password-secret-key", "A3-", 30, Alphabet::UPPER_DASH),
    rule("aws-key", "ABIA", 16, UPPER),
    rule("aws-bedrock-key", "ABSK", 40, BASE64),
    rule("aws-key", "ACCA", 16, UPPER),
    rule("age-key", "AGE-SECRET-KEY-1", 20, UPPER),
    rule("artifactory-key", "AKCp", 40, ALNUM),
    rule("aws-key", "AKIA", 16, UPPER),
    rule("aws-key", "ASIA", 16, UPPER),
    rule("google-key", "AIza", 30, SAFE),
    rule("google-key", "AQ.Ab", 30, SAFE),
    rule("yandex-key", "AQVN", 30, SAFE),
    rule("atlassian-token", "ATATT3", 20, BASE64),
    rule("atlassian-token", "ATBB", 24, ALNUM),
    rule("atlassian-token", "ATCTT3", 20, BASE64),
    rule("atlassian-token", "ATSTT3", 20, BASE64),
    rule("trello-token", "ATTA", 60, ALNUM),
    rule("twitter-token", "AAAAAAAAAAAAAAAAAAAAA", 30, PERCENT),
    digit_rule("brave-key", "BSA", 24, SAFE),
    rule("circleci-token", "CCIPAT_", 20, WORD),
    rule("circleci-token", "CCIPRJ_", 20, WORD),
    rule("contentful-token", "CFPAT-", 30, SAFE),
    rule("clojars-token", "CLOJARS_", 40, LOWER),
    digit_rule("square-token", "EAAA", 50, SAFE),
    digit_rule("facebook-token", "EAA", 80, ALNUM),
    digit_rule("easypost-key", "EZAK", 40, ALNUM),
    digit_rule("easypost-key", "EZTK", 40, ALNUM),
    rule("flutterwave-key", "FLWSECK", 16, SAFE),
    rule("aws-session-token", "FwoGZXIvYXdz", 40, BASE64),
    rule("google-secret", "GOCSPX-", 20, SAFE),
    rule("gitlab-token", "GR1348941", 16, SAFE),
    rule("heroku-key", "HRKU-", 30, SAFE),
    rule("aws-session-token", "IQoJb3JpZ2lu", 40, BASE64),
    digit_rule("alibaba-key", "LTAI", 16, ALNUM),
    rule("newrelic-key", "NRAK-", 20, ALNUM),
    rule("newrelic-key", "NRII-", 20, SAFE),
    rule("newrelic-key", "NRIQ-", 20, SAFE),
    rule("postman-key", "PMAK-", 40, Alphabet::HEX_DASH),
    rule("sendgrid-key", "SG.", 30, TOKEN),
    digit_rule("twilio-key", "SK", 32, HEX),
    rule("paypal-token", "access_token$production$", 16, DOLLAR),
    rule("paypal-token", "access_token$sandbox$", 16, DOLLAR),
    rule("plaid-token", "access-production-", 30, Alphabet::HEX_DASH),
    rule("plaid-token", "access-sandbox-", 30, Alphabet::HEX_DASH),
    rule("adafruit-key", "aio_", 24, ALNUM),
    digit_rule("launchdarkly-key", "api-", 36, Alphabet::HEX_DASH),
    rule("huggingface-token", "api_org_", 25, ALNUM),
    rule("apify-token", "apify_api_", 24, ALNUM),
    rule("browserbase-key", "bb_live_", 16, SAFE),
    rule("aws-bedrock-key", "bedrock-api-key-", 30, BASE64),
    rule("buildkite-token", "bkua_", 30, HEX),
    rule("cal-key", "cal_live_", 16, ALNUM),
    digit_rule("cloudflare-token", "cfat_", 30, SAFE),
    digit_rule("cloudflare-token", "cfk_", 30, SAFE),
    digit_rule("cloudflare-token", "cfut_", 30, SAFE),
    digit_rule("crates-io-token", "cio", 32, ALNUM),
    digit_rule("woocommerce-key", "ck_", 36, HEX),
    digit_rule("woocommerce-key", "cs_", 36, HEX),
    digit_rule("cursor-key", "crsr_", 32, ALNUM),
    digit_rule("cerebras-key", "csk-", 30, ALNUM),
    rule("artifactory-token", "cmVmdGtu", 30, ALNUM),
    digit_rule("databricks-token", "dapi", 32, Alphabet::HEX_DASH),
    rule("docker-token", "dckr_oat_", 20, SAFE),
    rule("docker-token", "dckr_pat_", 20, SAFE),
    rule("deno-token", "ddo_", 30, ALNUM),
    rule("deno-token", "ddp_", 30, ALNUM),
    rule("discord-webhook", "discord.com/api/webhooks/", 30, PATH),
    rule("discord-webhook", "discordapp.com/api/webhooks/", 30, PATH),
    rule("digitalocean-token", "doo_v1_", 32, ALNUM),
    rule("digitalocean-token", "dop_v1_", 32, ALNUM),
    rule("digitalocean-token", "dor_v1_", 32, ALNUM),
    rule("doppler-token", "dp.audit.", 30, TOKEN),
    rule("doppler-token", "dp.ct.", 30, TOKEN),
    rule("doppler-token", "dp.pt.", 30, TOKEN),
    rule("doppler-token", "dp.sa.", 30, TOKEN),
    rule("doppler-token", "dp.scim.", 30, TOKEN),
    rule("doppler-token", "dp.st.", 30, TOKEN),
    rule("dynatrace-token", "dt0", 60, TOKEN),
    rule("duffel-token", "duffel_live_", 30, BASE64),
    rule("duffel-token", "duffel_test_", 30, BASE64),
    digit_rule("e2b-key", "e2b_", 32, HEX),
    rule("elastic-key", "essu_", 30, BASE64),
    rule("grafana-key", "eyJrIjoi", 30, BASE64),
    digit_rule("firecrawl-key", "fc-", 32, HEX),
    rule("figma-token", "figd_", 20, SAFE),
    rule("figma-token", "figo_", 20, SAFE),
    rule("fly-token", "fm1a_", 30, BASE64),
    rule("fly-token", "fm1r_", 30, BASE64),
    rule("fly-token", "fm2_", 30, BASE64),
    rule("fly-token", "fo1_", 30, BASE64),
    rule("frameio-token", "fio-u-", 30, SAFE),
    digit_rule("fireworks-key", "fw_", 20, ALNUM),
    rule("github-token", "github_pat_", 20, SAFE),
    rule("github-token", "gho_", 20, ALNUM),
    rule("github-token", "ghp_", 20, ALNUM),
    rule("github-token", "ghr_", 20, ALNUM),
    rule("github-token", "ghs_", 20, TOKEN),
    rule("github-token", "ghu_", 20, ALNUM),
    rule("grafana-token", "glc_", 30, BASE64),
    rule("grafana-token", "glsa_", 30, SAFE),
    rule("gitlab-token", "glagent-", 16, SAFE),
    rule("gitlab-token", "glcbt-", 16, SAFE),
    rule("gitlab-token", "gldt-", 16, SAFE),
    rule("gitlab-token", "glffct-", 16, SAFE),
    rule("gitlab-token", "glft-", 16, SAFE),
    rule("gitlab-token", "glimt-", 16, SAFE),
    rule("gitlab-token", "gloas-", 16, SAFE),
    rule("gitlab-token", "glpat-", 16, TOKEN),
    rule("gitlab-token", "glptt-", 16, SAFE),
    rule("gitlab-token", "glrt-", 16, TOKEN),
    rule("gitlab-token", "glsoat-", 16, SAFE),
    rule("gitlab-token", "glwt-", 16, SAFE),
    rule("groq-key", "gsk_", 30, ALNUM),
    rule("honeycomb-key", "hcaik_", 30, ALNUM),
    rule("honeycomb-key", "hcbik_", 30, ALNUM),
    rule("huggingface-token", "hf_", 25, ALNUM),
    rule("slack-webhook", "hooks.slack.com/services/", 16, PATH),
    rule("slack-webhook", "hooks.slack.com/triggers/", 16, PATH),
    rule("slack-webhook", "hooks.slack.com/workflows/", 16, PATH),
    rule("zapier-webhook", "hooks.zapier.com/hooks/catch/", 10, PATH),
    rule("vault-token", "hvb.", 20, SAFE),
    rule("vault-token", "hvr.", 20, SAFE),
    rule("vault-token", "hvs.", 20, SAFE),
    digit_rule("infracost-key", "ico-", 30, ALNUM),
    digit_rule("jina-key", "jina_", 30, WORD),
    digit_rule("mailgun-key", "key-", 32, HEX),
    digit_rule("cursor-key", "key_", 40, HEX),
    rule("linear-key", "lin_api_", 20, ALNUM),
    rule("linear-key", "lin_oauth_", 20, ALNUM),
    rule("langsmith-key", "lsv2_pt_", 24, WORD),
    rule("langsmith-key", "lsv2_sk_", 24, WORD),
    rule("mongodb-secret", "mdb_sa_sk_", 20, SAFE),
    digit_rule("neon-key", "napi_", 40, LOWER),
    digit_rule("netlify-token", "nfc_", 30, ALNUM),
    digit_rule("netlify-token", "nfo_", 30, ALNUM),
    digit_rule("netlify-token", "nfp_", 30, ALNUM),
    digit_rule("netlify-token", "nfu_", 30, ALNUM),
    rule("npm-token", "npm_", 30, ALNUM),
    digit_rule("notion-token", "ntn_", 30, ALNUM),
    rule("nvidia-key", "nvapi-", 30, SAFE),
    rule("1password-token", "ops_eyJ", 30, BASE64),
    digit_rule("nuget-key", "oy2", 40, LOWER),
    digit_rule("voyage-key", "pa-", 40, SAFE),
    rule("packagist-token", "packagist_", 40, WORD),
    rule("hubspot-token", "pat-eu1-", 30, Alphabet::HEX_DASH),
    rule("hubspot-token", "pat-na1-", 30, Alphabet::HEX_DASH),
    rule("pinecone-key", "pcsk_", 30, WORD),
    rule("paddle-key", "pdl_live_apikey_", 20, WORD),
    rule("paddle-key", "pdl_sdbx_apikey_", 20, WORD),
    rule("posthog-key", "phx_", 30, ALNUM),
    digit_rule("prefect-key", "pnb_", 30, ALNUM),
    digit_rule("prefect-key", "pnu_", 30, ALNUM),
    rule("polar-token", "polar_oat_", 20, SAFE),
    rule("polar-token", "polar_pat_", 20, SAFE),
    rule("perplexity-key", "pplx-", 30, ALNUM),
    rule("planetscale-token", "pscale_oauth_", 30, TOKEN),
    rule("planetscale-token", "pscale_pw_", 30, TOKEN),
    rule("planetscale-token", "pscale_tkn_", 30, TOKEN),
    digit_rule("pulumi-token", "pul-", 40, HEX),
    rule("pypi-token", "pypi-", 40, SAFE),
    digit_rule("replicate-token", "r8_", 30, ALNUM),
    rule("readme-token", "rdme_", 40, ALNUM),
    digit_rule("resend-key", "re_", 24, WORD),
    rule("stripe-key", "rk_live_", 10, ALNUM),
    rule("stripe-key", "rk_test_", 10, ALNUM),
    rule("render-key", "rnd_", 24, ALNUM),
    digit_rule("runpod-key", "rpa_", 30, ALNUM),
    rule("rubygems-key", "rubygems_", 40, HEX),
    rule("supabase-secret", "sb_secret_", 20, SAFE),
    rule("supabase-token", "sbp_", 40, HEX),
    digit_rule("launchdarkly-key", "sdk-", 36, Alphabet::HEX_DASH),
    rule("stytch-secret", "secret-live-", 30, SAFE),
    rule("stytch-secret", "secret-test-", 30, SAFE),
    rule("secret-token", "secret-token:", 10, PATH),
    digit_rule("notion-token", "secret_", 40, ALNUM),
    digit_rule("sourcegraph-token", "sgp_", 40, WORD),
    digit_rule("openshift-token", "sha256~", 40, SAFE),
    rule("shippo-token", "shippo_live_", 30, HEX),
    rule("shippo-token", "shippo_test_", 30, HEX),
    rule("shopify-token", "shpat_", 30, HEX),
    rule("shopify-token", "shpca_", 30, HEX),
    rule("shopify-token", "shppa_", 30, HEX),
    rule("shopify-token", "shpss_", 30, HEX),
    rule("anthropic-key", "sk-ant-", 16, SAFE),
    rule("openrouter-key", "sk-or-", 16, SAFE),
    rule("openai-key", "sk-proj-", 16, SAFE),
    rule("openai-key", "sk-admin-", 16, SAFE),
    rule("openai-key", "sk-svcacct-", 16, SAFE),
    digit_rule("api-key", "sk-", 20, SAFE),
    rule("mapbox-token", "sk.eyJ", 40, TOKEN),
    rule("stripe-key", "sk_live_", 10, ALNUM),
    rule("stripe-key", "sk_test_", 10, ALNUM),
    rule("stripe-key", "sk_org_", 10, ALNUM),
    digit_rule("elevenlabs-key", "sk_", 40, HEX),
    digit_rule("dropbox-token", "sl.", 60, TOKEN),
    rule("sentry-token", "sntrys_", 30, BASE64),
    rule("sentry-token", "sntryu_", 30, HEX),
    rule("snyk-token", "snyk_sat.", 20, TOKEN),
    rule("snyk-token", "snyk_uat.", 20, TOKEN),
    rule("square-token", "sq0atp-", 20, SAFE),
    rule("square-secret", "sq0csp-", 30, SAFE),
    digit_rule("sonar-token", "sqa_", 40, HEX),
    digit_rule("sonar-token", "sqp_", 40, HEX),
    digit_rule("sonar-token", "squ_", 40, HEX),
    rule("typeform-token", "tfp_", 40, SAFE),
    rule("together-key", "tgp_v1_", 30, SAFE),
    rule("scalingo-token", "tk-us-", 40, SAFE),
    rule("turbopuffer-key", "tpuf_", 24, ALNUM),
    rule("tailscale-key", "tskey-", 16, SAFE),
    rule("tavily-key", "tvly-", 24, SAFE),
    rule("cloudflare-key", "v1.0-", 80, Alphabet::HEX_DASH),
    digit_rule("vercel-token", "vca_", 20, ALNUM),
    digit_rule("vercel-token", "vci_", 20, ALNUM),
    digit_rule("vercel-token", "vck_", 20, ALNUM),
    digit_rule("vercel-token", "vcp_", 20, ALNUM),
    digit_rule("vercel-token", "vcr_", 20, ALNUM),
    rule("vercel-token", "vercel_blob_rw_", 20, WORD),
    rule("wakatime-key", "waka_", 30, Alphabet::HEX_DASH),
    rule("weights-biases-key", "wandb_v1_", 20, WORD),
    rule("teams-webhook", "webhook.office.com/webhookb2/", 30, PATH),
    rule("webhook-secret", "whsec_", 16, BASE64),
    rule("xai-key", "xai-", 30, ALNUM),
    rule("slack-token", "xapp-", 10, SAFE),
    rule("brevo-key", "xkeysib-", 40, SAFE),
    rule("slack-token", "xoxa-", 10, SAFE),
    rule("slack-token", "xoxb-", 10, SAFE),
    rule("slack-token", "xoxc-", 10, SAFE),
    rule("slack-token", "xoxd-", 10, PERCENT),
    rule("slack-token", "xoxe-", 10, SAFE),
    rule("slack-token", "xoxe.", 10, TOKEN),
    rule("slack-token", "xoxo-", 10, SAFE),
    rule("slack-token", "xoxp-", 10, SAFE),
    rule("slack-token", "xoxr-", 10, SAFE),
    rule("slack-token", "xoxs-", 10, SAFE),
    rule("brevo-key", "xsmtpsib-", 40, SAFE),
    rule("slack-token", "xwfp-", 10, SAFE),
    digit_rule("yandex-token", "y0_", 40, SAFE),
    rule("google-token", "ya29.", 20, SAFE),
    rule("zuplo-key", "zpka_", 30, WORD),
];

/// A token that is recognised by a mark inside it.
pub(super) struct InfixRule {
    pub kind: &'static str,
    pub infix: &'static str,
    /// The alphabet before the mark, and the minimum number of its characters.
    pub before: (Alphabet, usize),
    /// The alphabet after the mark, and the minimum number of its characters.
    pub after: (Alphabet, usize),
}

const fn infix(
    kind: &'static str,
    infix: &'static str,
    before: (Alphabet, usize),
    after: (Alphabet, usize),
) -> InfixRule {
    InfixRule {
        kind,
        infix,
        before,
        after,
    }
}

pub(super) const INFIX_RULES: &[InfixRule] = &[
    infix("terraform-token", ".atlasv1.", (ALNUM, 14), (SAFE, 40)),
    infix("azure-secret", "Q~", (TOKEN, 4), (Alphabet::HEADER, 30)),
    infix("azure-devops-token", "AZDO", (ALNUM, 70), (ALNUM, 4)),
    infix("azure-key", "JQQJ99", (ALNUM, 40), (ALNUM, 8)),
    infix("newrelic-key", "NRAL", (HEX, 32), (ALNUM, 0)),
    infix("mailchimp-key", "-us", (HEX, 32), (Alphabet::DIGITS, 1)),
    infix("deepl-key", ":fx", (Alphabet::HEX_DASH, 36), (ALNUM, 0)),
    infix("firebase-key", ":APA91b", (SAFE, 8), (SAFE, 40)),
    infix("telegram-token", ":", (Alphabet::DIGITS, 8), (SAFE, 34)),
];

/// The longest part of a token before its mark.
const MAX_INFIX_HEAD_BYTES: usize = 128;

pub(super) fn infix_token(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = bytes.get(at..)?;
    INFIX_RULES.iter().find_map(|rule| {
        let tail = rest.strip_prefix(rule.infix.as_bytes())?;
        let before = rule.before.0.run_before(bytes, at, MAX_INFIX_HEAD_BYTES);
        if before < rule.before.1 {
            return None;
        }
        let after = rule.after.0.run(tail, 0);
        let end = at + rule.infix.len() + after;
        (after >= rule.after.1).then_some((rule.kind, at - before..end))
    })
}

/// Two short groups of hex digits after a long one: `<32>-<8>-<8>`.
pub(super) fn mailgun_key(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let is_group = |from: usize| {
        bytes.get(from) == Some(&b'-')
            && HEX.run(bytes.get(..from + 9).unwrap_or_default(), from + 1) == 8
    };
    let is_end = !bytes.get(at + 18).is_some_and(|byte| SAFE.contains(*byte));
    (is_group(at + 9) && is_group(at) && is_end && HEX.run_before(bytes, at, 33) == 32)
        .then(|| ("mailgun-key", at - 32..at + 18))
}

/// The rows of [`TOKEN_RULES`] by the first byte of their prefix.
static ROWS: [(usize, usize); 256] = rows();

#[allow(clippy::indexing_slicing, reason = "a byte is less than 256")]
const fn rows() -> [(usize, usize); 256] {
    let mut rows = [(0, 0); 256];
    let mut rules = TOKEN_RULES;
    let mut row = 0;
    while let [rule, rest @ ..] = rules {
        if let [first, ..] = rule.prefix.as_bytes() {
            let (from, to) = rows[*first as usize];
            rows[*first as usize] = (if to == 0 { row } else { from }, row + 1);
        }
        rules = rest;
        row += 1;
    }
    rows
}

/// A token that begins at `at`.
pub(super) fn token(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = bytes.get(at..)?;
    let (from, to) = *ROWS.get(usize::from(*rest.first()?))?;
    let by_prefix = TOKEN_RULES.get(from..to)?.iter().find_map(|rule| {
        // Most rows differ in their second byte: no call to compare the rest.
        if rule.prefix.as_bytes().get(1) != rest.get(1) {
            return None;
        }
        let body = rest.strip_prefix(rule.prefix.as_bytes())?;
        let head = body.get(..rule.min_length)?;
        if !head.iter().all(|byte| rule.alphabet.contains(*byte)) {
            return None;
        }
        let window = body.get(..body.len().min(MAX_INFIX_HEAD_BYTES))?;
        let window = window.get(..rule.alphabet.run(window, 0))?;
        if rule.needs_digits && !has_digits(window) {
            return None;
        }
        let length = rule.alphabet.run(body, 0);
        Some((rule.kind, at..at + rule.prefix.len() + length))
    });
    by_prefix.or_else(|| match rest {
        [b'e', b'y', b'J', ..] => json_web_token(bytes, at),
        [b'b' | b'B', ..] => credentials(bytes, at),
        [b'M' | b'N' | b'O', ..] => discord_token(bytes, at),
        [b'p', b'a', b't', ..] => airtable_token(bytes, at),
        _ => None,
    })
}

fn has_digits(body: &[u8]) -> bool {
    let mut triples = body.windows(3);
    has_inner_digit(body) || triples.any(|triple| triple.iter().all(u8::is_ascii_digit))
}

/// The end of dotted parts from `at` on, each with its alphabet and its lengths.
fn dotted_end(bytes: &[u8], at: usize, parts: &[(Alphabet, usize, usize)]) -> Option<usize> {
    let mut end = at;
    for (index, (alphabet, min, max)) in parts.iter().enumerate() {
        if index > 0 {
            (bytes.get(end) == Some(&b'.')).then_some(())?;
            end += 1;
        }
        let length = alphabet.run(bytes, end);
        (*min..=*max).contains(&length).then_some(())?;
        end += length;
    }
    Some(end)
}

/// Three parts with dots between them, the first an encoded `{"`.
fn json_web_token(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let long = (SAFE, 8, usize::MAX);
    let end = dotted_end(bytes, at, &[long, long])?;
    Some(("jwt", at..end + TOKEN.run(bytes, end)))
}

/// A numeric id in base64, a time and a signature.
fn discord_token(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let parts = [(SAFE, 22, 30), (SAFE, 6, 7), (SAFE, 26, 50)];
    Some(("discord-token", at..dotted_end(bytes, at, &parts)?))
}

fn airtable_token(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let parts = [(ALNUM, 17, 17), (HEX, 60, 70)];
    Some(("airtable-token", at..dotted_end(bytes, at, &parts)?))
}

/// `Bearer …` and `Basic …`.
fn credentials(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let rest = bytes.get(at..)?;
    let schemes = [&b"bearer "[..], b"basic "];
    let mut schemes = schemes.into_iter();
    let scheme = schemes.find(|scheme| starts_with_ignore_case(rest, scheme))?;
    let from = at + scheme.len();
    let length = Alphabet::HEADER.run(bytes, from);
    let token = bytes.get(from..from + length)?;
    // "Basic authentication" and "bearer-token-based" are prose.
    let is_prose = token
        .iter()
        .all(|byte| byte.is_ascii_alphabetic() || *byte == b'-')
        && (length < 20 || token.iter().all(|byte| !byte.is_ascii_uppercase()));
    (length >= 8 && !is_prose).then_some(("credentials", from..from + length))
}

#[cfg(test)]
mod tests {
    use super::super::{redacted_text, scan::next_candidate};
    use super::*;

    fn sample(alphabet: Alphabet, length: usize) -> String {
        let all: Vec<char> = ('0'..='z')
            .filter(|char| alphabet.contains(u8::try_from(*char).unwrap()))
            .collect();
        (0..length).map(|at| all[at * 7 % all.len()]).collect()
    }

    #[test]
    fn every_token_rule_finds_its_own_token_and_no_shorter_one() {
        for rule in TOKEN_RULES {
            assert!(rule.prefix.len() >= 2, "{}", rule.prefix);
            let key = format!("{}{}", rule.prefix, sample(rule.alphabet, rule.min_length));
            let text = format!("é {key}");
            assert_eq!(next_candidate(text.as_bytes(), 0), Some(3), "{key}");
            let found = token(text.as_bytes(), 3).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(found, (rule.kind, 3..text.len()), "{key}");
        }
    }

    #[test]
    fn every_infix_rule_finds_its_own_token() {
        for rule in INFIX_RULES {
            let before = sample(rule.before.0, rule.before.1);
            let after = sample(rule.after.0, rule.after.1);
            let text = format!("é {before}{}{after}", rule.infix);
            let at = 3 + before.len();
            assert_eq!(
                infix_token(text.as_bytes(), at),
                Some((rule.kind, 3..text.len()))
            );
            let expected = format!("é [redacted:{}]", rule.kind);
            assert_eq!(redacted_text(&text), Some(expected), "{text}");
        }
    }

    #[test]
    fn rules_with_the_same_first_byte_are_neighbours() {
        let mut seen = Vec::new();
        for rule in TOKEN_RULES {
            let first = rule.prefix.as_bytes()[0];
            if seen.last() != Some(&first) {
                assert!(!seen.contains(&first), "{}", rule.prefix);
                seen.push(first);
            }
        }
    }
}
