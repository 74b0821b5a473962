//! Hosts of remote shells and copies: `ssh`, `scp`, `rsync`.

use super::url_host;

/// `host:path` of scp and rsync, and URLs.
pub(super) fn remote_path_host(text: &str) -> Option<String> {
    if let Some(host) = url_host(text) {
        return Some(host);
    }
    let (host, _) = text.split_once(':')?;
    if host.contains('/') || host.is_empty() || host.len() == 1 {
        return None;
    }
    Some(
        host.rsplit('@')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase(),
    )
}

/// `8080:host:80`, `host:22`, `user@jump`.
pub(super) fn forward_hosts(value: &str) -> Vec<String> {
    value
        .split([':', ','])
        .map(|part| part.rsplit('@').next().unwrap_or_default())
        .filter(|part| part.contains('.') || part.chars().any(char::is_alphabetic))
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Hosts in `ProxyCommand=nc host 22` and `ProxyJump=host`.
pub(super) fn proxy_hosts(value: &str) -> Vec<String> {
    if !value.to_ascii_lowercase().contains("proxy")
        && !value.contains("HostName")
        && !value.contains("Hostname")
    {
        return Vec::new();
    }
    value
        .split([' ', '=', '"', '\'', '@', ':'])
        .filter(|part| {
            part.contains('.') && !part.contains('/') && part.chars().any(char::is_alphabetic)
        })
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Options of remote shells that take a value.
pub(super) const REMOTE_SHELL_OPTIONS: &[&str] = &[
    "-b", "-c", "-D", "-E", "-e", "-F", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-Q",
    "-R", "-S", "-W", "-w", "-B", "-P", "-u",
];
