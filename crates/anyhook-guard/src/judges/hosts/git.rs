//! Hosts that `git` contacts.

use super::remote_shells::remote_path_host;
use super::url_host;
use crate::shell::{Invocation, UNKNOWN};

pub(super) fn git_hosts(invocation: &Invocation, hosts: &mut Vec<String>) {
    let texts: Vec<&str> = invocation.texts().collect();
    let contacts = texts.iter().any(|text| {
        matches!(
            *text,
            "clone"
                | "fetch"
                | "pull"
                | "push"
                | "ls-remote"
                | "submodule"
                | "remote"
                | "archive"
                | "checkout"
                | "co"
                | "export"
                | "update"
                | "config"
        )
    });
    let is_local = texts
        .iter()
        .find(|text| !text.starts_with('-'))
        .is_some_and(|verb| matches!(*verb, "stash" | "commit" | "log" | "grep" | "notes" | "tag"));
    if !contacts || is_local {
        return;
    }
    for text in &texts {
        // `-c url.BASE.insteadOf=…` sends to another host than the address says.
        let base = text.strip_prefix("url.").and_then(|rest| {
            let (base, _) = rest
                .split_once(".insteadOf=")
                .or_else(|| rest.split_once(".pushInsteadOf="))?;
            Some(base)
        });
        if let Some(base) = base {
            hosts.extend(url_host(base).or_else(|| remote_path_host(base)));
            continue;
        }
        let text = text.strip_prefix("--remote=").unwrap_or(text);
        let text = text
            .split_once("=http")
            .map_or(text.to_owned(), |(_, rest)| format!("http{rest}"));
        if text.starts_with('-') && !text.contains("://") {
            continue;
        }
        match url_host(&text) {
            Some(host) => hosts.push(host),
            None if text.contains('@')
                || texts.first() == Some(&"clone")
                    && text
                        .split_once(':')
                        .is_some_and(|(host, _)| host.contains('.') && !host.contains('/'))
                || text
                    .split_once(':')
                    .is_some_and(|(host, path)| host.contains('.') && path.contains('/')) =>
            {
                hosts.extend(remote_path_host(&text));
            }
            None => {}
        }
    }
    let names_remote = texts
        .iter()
        .any(|text| matches!(*text, "clone" | "ls-remote"));
    if names_remote
        && invocation
            .arguments()
            .iter()
            .any(crate::shell::ResolvedWord::is_unknown)
    {
        hosts.push(UNKNOWN.to_string());
    }
}
