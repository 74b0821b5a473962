//! Hosts that web clients contact: `curl`, `wget` and others.

use super::{authority_host, url_host};
use crate::shell::{Invocation, UNKNOWN, first_operand};

pub(super) fn web_hosts(invocation: &Invocation, hosts: &mut Vec<String>) {
    const VALUES: &[&str] = &[
        "-o",
        "-O",
        "-H",
        "-d",
        "-X",
        "-u",
        "-A",
        "-e",
        "-b",
        "-c",
        "-F",
        "-T",
        "-w",
        "-m",
        "-x",
        "-K",
        "-E",
        "-D",
        "-C",
        "-r",
        "-y",
        "-Y",
        "-z",
        "--output",
        "--header",
        "--data",
        "--data-raw",
        "--data-binary",
        "--data-urlencode",
        "--data-ascii",
        "--json",
        "--request",
        "--user",
        "--user-agent",
        "--referer",
        "--cookie",
        "--cookie-jar",
        "--form",
        "--upload-file",
        "--write-out",
        "--max-time",
        "--connect-timeout",
        "--retry",
        "--retry-delay",
        "--cacert",
        "--cert",
        "--key",
        "--config",
        "--interface",
        "--limit-rate",
        "--output-document",
        "--post-data",
        "--post-file",
        "--method",
        "--body-data",
        "--tries",
        "--timeout",
        "--directory-prefix",
        "-P",
        "-t",
        "--accept",
        "--reject",
        "-i",
        "--input-file",
        "--proxy",
        "--preproxy",
        "--socks5",
        "--socks5-hostname",
        "--socks4",
        "--resolve",
        "--connect-to",
        "--url",
        "--range",
        "--max-redirs",
        "--oauth2-bearer",
        "--form-string",
        "--dump-header",
        "--output-dir",
        "--create-dirs-mode",
        "--capath",
        "--ciphers",
        "--noproxy",
        "--proto",
        "--proto-default",
        "--proto-redir",
        "--tls-max",
        "--unix-socket",
        "--dns-servers",
        "--speed-limit",
        "--speed-time",
        "--keepalive-time",
        "--max-filesize",
        "--pass",
        "--cert-type",
        "--key-type",
        "--pinnedpubkey",
        "--proxy-header",
        "--proxy-user",
        "--request-target",
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--variable",
        "--wait",
        "--waitretry",
        "--http-user",
        "--http-password",
        "--load-cookies",
        "--save-cookies",
        "--ca-certificate",
        "--exclude-directories",
        "--include-directories",
        "--domains",
        "--output-file",
        "--append-output",
        "--quota",
        "--read-timeout",
        "--dns-timeout",
        "--netrc-file",
        "--aws-sigv4",
        "-U",
        "-l",
        "--level",
        "-R",
        "-Q",
        "-n",
        "-N_",
    ];
    let words = &invocation.words;
    let is_wget = matches!(invocation.name.as_str(), "wget" | "wget2");
    let values: Vec<&str> = VALUES
        .iter()
        .copied()
        .filter(|value| {
            !(invocation.name == "curl"
                && matches!(*value, "-O" | "-i" | "-n" | "-R" | "-l" | "-N_")
                || is_wget
                    && matches!(
                        *value,
                        "-c" | "-x" | "-d" | "-F" | "-N_" | "-r" | "-m" | "-H" | "-K" | "-E" | "-b"
                    ))
        })
        .collect();
    let is_http_tool = !matches!(
        invocation.name.as_str(),
        "curl" | "wget" | "wget2" | "aria2c"
    );
    // A configuration on the standard input, and proxies among wget's settings.
    let reads_config = invocation
        .texts()
        .any(|text| matches!(text, "-K-" | "--config=-"))
        || words.windows(2).any(|pair| {
            matches!(pair, [option, file] if matches!(option.text.as_str(), "-K" | "--config") && file.text == "-")
        });
    if reads_config && let Some(text) = &invocation.input_text {
        hosts.extend(text.split([' ', '\n', '"', '=']).filter_map(url_host));
    }
    for pair in words.windows(2).filter(|_| is_wget) {
        if let [option, setting] = pair
            && matches!(option.text.as_str(), "-e" | "--execute")
            && let Some((name, proxy)) = setting.text.split_once('=')
            && name.ends_with("_proxy")
            && name != "use_proxy"
        {
            hosts.push(url_host(proxy).unwrap_or_else(|| authority_host(proxy)));
        }
    }
    let mut index = 1;
    let mut place = 0;
    while index < words.len() {
        index = first_operand(words, index, &values);
        if let Some(word) = words.get(index) {
            let text = word.text.as_str();
            let is_method = is_http_tool && text.chars().all(|letter| letter.is_ascii_uppercase());
            if !is_method && (!is_http_tool || place == 0) {
                place += 1;
                if text.starts_with("file:") || text == "--next" {
                } else if text.starts_with(UNKNOWN) {
                    hosts.push(UNKNOWN.to_string());
                } else {
                    for host in expand_url_globs(text) {
                        hosts.push(url_host(&host).unwrap_or_else(|| {
                            if host.starts_with(':') || host.starts_with('/') && is_http_tool {
                                "localhost".to_owned()
                            } else {
                                authority_host(&host)
                            }
                        }));
                    }
                }
            }
        }
        index += 1;
    }
    let texts: Vec<&str> = invocation.texts().collect();
    for pair in texts.windows(2) {
        let (option, value) = match pair {
            [option, value] => (*option, *value),
            _ => continue,
        };
        push_option_host(option, value, is_wget, hosts);
    }
    for text in &texts {
        if let Some((option, value)) = text
            .split_once('=')
            .filter(|(option, _)| option.starts_with("--"))
        {
            push_option_host(option, value, is_wget, hosts);
        }
        if let Some(value) = text
            .strip_prefix("-x")
            .filter(|value| value.contains("://") && !is_wget)
        {
            hosts.extend(url_host(value));
        }
    }
}

fn push_option_host(option: &str, value: &str, is_wget: bool, hosts: &mut Vec<String>) {
    match option {
        "--url" | "--proxy" | "--preproxy" | "--socks5" | "--socks5-hostname" | "--socks4"
        | "--socks4a" | "--doh-url" => {
            hosts.push(url_host(value).unwrap_or_else(|| authority_host(value)));
        }
        "-x" if !is_wget => hosts.push(url_host(value).unwrap_or_else(|| authority_host(value))),
        "--connect-to" => hosts.extend(value.split(':').nth(2).map(str::to_ascii_lowercase)),
        "--resolve" => hosts.extend(
            value
                .splitn(3, ':')
                .nth(2)
                .map(|address| address.trim_matches(['[', ']']).to_ascii_lowercase()),
        ),
        // URLs from a file are not known.
        "-K" | "--config" if !is_wget => hosts.push(UNKNOWN.to_string()),
        "-i" | "--input-file" if is_wget => hosts.push(UNKNOWN.to_string()),
        "-e" if is_wget && value.contains("proxy") => {
            hosts.extend(value.split_once('=').and_then(|(_, url)| url_host(url)));
        }
        _ => {}
    }
}

/// curl expands `{a,b}` in URLs by itself.
fn expand_url_globs(text: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (text.find('{'), text.find('}')) else {
        return vec![text.to_owned()];
    };
    let (Some(before), Some(inside), Some(after)) = (
        text.get(..open),
        text.get(open + 1..close),
        text.get(close + 1..),
    ) else {
        return vec![text.to_owned()];
    };
    inside
        .split(',')
        .take(16)
        .map(|part| format!("{before}{part}{after}"))
        .collect()
}
