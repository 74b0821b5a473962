//! `network`: only listed hosts may be contacted.

use super::Objections;
use super::hosts::{contacted_hosts, host_matches, url_host};
use crate::input::GuardInput;
use crate::shell::UNKNOWN;

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    if !found.options.has("--allow-host") {
        return;
    }
    if let Some(url) = input.fetched_url() {
        let url = url.trim_start_matches('/');
        let host = url_host(url)
            .unwrap_or_else(|| url_host(&format!("https://{url}")).unwrap_or_default());
        check(&host, url, found);
    }
    for invocation in input.invocations() {
        for host in contacted_hosts(invocation) {
            check(&host, &invocation.shown(), found);
        }
        if found.is_settled() {
            return;
        }
    }
    found.ask_if_incomplete(input);
}

fn check(host: &str, subject: &str, found: &mut Objections<'_>) {
    if host.is_empty() {
        return;
    }
    if host.contains(UNKNOWN) {
        return found.ask_user(
            "unknown-host",
            subject,
            "the host is only known at run time; write it out",
        );
    }
    if !found
        .options
        .all("--allow-host")
        .any(|pattern| host_matches(pattern, host))
    {
        found.deny(
            "host",
            subject,
            format!("`{host}` is not on the list of allowed hosts"),
        );
    }
}
