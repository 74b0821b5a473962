//! Which hosts a command contacts.

mod code;
mod git;
mod remote_shells;
mod web_clients;

use crate::shell::{Invocation, RedirectKind, UNKNOWN, first_operand};
use code::code_hosts;
use git::git_hosts;
use remote_shells::{REMOTE_SHELL_OPTIONS, forward_hosts, proxy_hosts, remote_path_host};
use web_clients::web_hosts;

/// The host of a URL, in lower case; `None` if the text is no URL with a host.
pub(crate) fn url_host(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme.is_empty()
        || !scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    {
        return None;
    }
    if scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    Some(authority_host(rest))
}

/// The host at the start of what follows `://`.
fn authority_host(rest: &str) -> String {
    let rest = rest.replace('\\', "/");
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = if let Some(inside) = host.strip_prefix('[') {
        inside.split(']').next().unwrap_or_default()
    } else {
        host.split(':').next().unwrap_or_default()
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// `example.org` allows that host, `*.example.org` its subdomains as well.
pub(crate) fn host_matches(pattern: &str, host: &str) -> bool {
    let pattern = pattern.trim_end_matches('.').to_ascii_lowercase();
    let pattern = url_host(&pattern).unwrap_or(pattern);
    match pattern.strip_prefix("*.") {
        Some(domain) => {
            host == domain
                || host
                    .strip_suffix(domain)
                    .is_some_and(|rest| rest.ends_with('.'))
        }
        None => pattern == "*" || host == pattern,
    }
}

/// A host that a command contacts; with [`UNKNOWN`] if it is only known at run time.
pub(crate) fn contacted_hosts(invocation: &Invocation) -> Vec<String> {
    let mut hosts = Vec::new();
    let name = invocation.name.as_str();
    if invocation.shows_help() {
        return hosts;
    }
    for redirect in &invocation.redirects {
        if redirect.kind != RedirectKind::Text {
            hosts.extend(device_host(&redirect.target.text));
        }
    }
    let texts: Vec<&str> = invocation.texts().collect();
    let url_or_host = |text: &str| url_host(text).unwrap_or_else(|| authority_host(text));
    match name {
        "curl" | "wget" | "http" | "https" | "xh" | "httpie" | "aria2c" | "axel" | "fetch"
        | "lynx" | "w3m" | "links" | "elinks" | "httping" | "ab" | "wrk" | "hey" | "siege"
        | "grpcurl" | "curlie" | "lwp-request" | "GET" | "POST" | "youtube-dl" | "yt-dlp"
        | "Invoke-WebRequest" => {
            web_hosts(invocation, &mut hosts);
        }
        "ssh" | "autossh" | "mosh" | "sftp" | "ssh-copy-id" | "ssh-keyscan" | "telnet" | "ftp"
        | "lftp" | "ncftp" | "rlogin" | "rsh" | "tftp" | "snmpwalk" | "snmpget" | "snmpset" => {
            // `lftp -c 'open HOST; ls'`.
            for text in texts.iter().filter(|text| text.contains(' ')) {
                let mut words = text.split([' ', ';']);
                if words.any(|word| matches!(word, "open" | "connect")) {
                    hosts.extend(words.next().map(url_or_host));
                }
            }
            if name == "lftp" && invocation.has_option("ce", &[]) {
                let mut addresses = texts.iter().filter(|text| !text.contains(' '));
                hosts.extend(addresses.find_map(|text| url_host(text)));
                return hosts;
            }
            let at = first_operand(&invocation.words, 1, REMOTE_SHELL_OPTIONS);
            if let Some(word) = invocation.words.get(at) {
                hosts.push(url_or_host(&word.text));
            }
            for pair in texts.windows(2) {
                match pair {
                    ["-L" | "-R" | "-W" | "-J", value] => hosts.extend(forward_hosts(value)),
                    ["-o", value] => hosts.extend(proxy_hosts(value)),
                    _ => {}
                }
            }
        }
        "scp" | "rsync" | "sshfs" | "rcp" | "unison" => {
            for operand in invocation.operands() {
                hosts.extend(remote_path_host(&operand.text));
            }
            for pair in texts.windows(2) {
                match pair {
                    ["-J", value] => hosts.extend(forward_hosts(value)),
                    ["-o", value] => hosts.extend(proxy_hosts(value)),
                    _ => {}
                }
            }
        }
        "resolvectl" | "systemd-resolve" | "getent" => {
            let asks = name != "getent" || matches!(texts.first(), Some(&"hosts" | &"ahosts"));
            let names = invocation.operands().map(|word| word.text.as_str());
            hosts.extend(
                names
                    .filter(|text| asks && text.contains(['.', UNKNOWN]))
                    .map(url_or_host),
            );
        }
        "net" | "pushd" => {
            hosts.extend(texts.iter().filter_map(|text| share_host(text)));
        }
        "nc" | "ncat" | "netcat" | "nmap" | "ping" | "ping6" | "fping" | "dig" | "nslookup"
        | "host" | "drill" | "traceroute" | "tracepath" | "mtr" | "whois" | "finger" | "nping"
        | "hping3" | "smbclient" | "arping" | "delv" | "masscan" | "zmap" | "rustscan"
        | "tcping" | "nbtscan" => {
            if invocation.has_option("l", &["--listen"]) && matches!(name, "nc" | "ncat" | "netcat")
            {
                return hosts;
            }
            let at = first_operand(
                &invocation.words,
                1,
                if matches!(name, "ping" | "nmap") {
                    PROBE_OPTIONS
                } else if matches!(name, "traceroute" | "tracepath") {
                    &["-m", "-q", "-w", "-p", "-f", "-i", "-s", "-N", "-t", "-z"]
                } else {
                    &["-p", "-w", "-x", "-X", "-e", "-s", "-i", "-q", "-c"]
                },
            );
            for text in texts.iter().skip(at.saturating_sub(1)).take(match name {
                "dig" => 4,
                // The server that is asked follows the name.
                "nslookup" | "host" => 2,
                _ => 1,
            }) {
                let text = text.trim_start_matches(['@', '/']);
                if !text.starts_with(['-', '+'])
                    && (text.contains(['.', ':', UNKNOWN])
                        || text.chars().any(char::is_alphabetic) && name != "dig")
                {
                    hosts.push(url_or_host(text));
                }
            }
        }
        "socat" => {
            for text in &texts {
                let parts: Vec<&str> = text.split([':', ',']).collect();
                if let [kind, host, ..] = parts.as_slice() {
                    let kind = kind.to_ascii_lowercase();
                    if [
                        "tcp",
                        "udp",
                        "openssl",
                        "ssl",
                        "socks",
                        "proxy",
                        "tcp4",
                        "tcp6",
                        "udp4",
                        "udp6",
                        "openssl-connect",
                        "tcp-connect",
                        "socks4",
                        "socks4a",
                    ]
                    .contains(&kind.as_str())
                    {
                        hosts.push(host.to_ascii_lowercase());
                    }
                }
            }
        }
        "openssl" => {
            for pair in texts.windows(2) {
                if let ["-connect" | "-host" | "-proxy" | "s_client", value] = pair
                    && !value.starts_with('-')
                {
                    hosts.push(authority_host(value));
                }
            }
        }
        "kubectl" | "oc" | "helm-diff" => {
            hosts.extend(texts.iter().filter_map(|text| {
                let option = text.split_once('=').filter(|_| text.starts_with('-'));
                url_host(option.map_or(*text, |(_, value)| value))
            }));
            for pair in texts.windows(2) {
                if let ["--server" | "-s", value] = pair {
                    hosts.push(url_or_host(value));
                }
            }
            for text in &texts {
                hosts.extend(text.strip_prefix("--server=").map(url_or_host));
            }
        }
        "git" | "hub" | "svn" | "hg" => git_hosts(invocation, &mut hosts),
        "mount" | "umount" | "showmount" => {
            for operand in invocation.operands() {
                hosts.extend(remote_path_host(&operand.text));
                hosts.extend(share_host(&operand.text));
            }
        }
        "Test-NetConnection" | "tnc" | "Test-Connection" | "Resolve-DnsName"
        | "Enter-PSSession" | "New-PSSession" => {
            let named = texts.windows(2).find_map(|pair| match pair {
                [option, host]
                    if matches!(
                        option.to_ascii_lowercase().as_str(),
                        "-computername" | "-targetname" | "-name"
                    ) =>
                {
                    Some(*host)
                }
                _ => None,
            });
            let first = || texts.iter().find(|text| !text.starts_with('-')).copied();
            hosts.extend(named.or_else(first).map(url_or_host));
        }
        "psql" | "mysql" | "mariadb" | "mongosh" | "mongo" | "redis-cli" | "pg_dump"
        | "mongodump" | "mongorestore" | "mongoexport" | "mongoimport" | "pg_restore"
        | "pg_dumpall" | "mysqladmin" | "createdb" | "dropdb" | "pg_isready" | "mysqldump"
        | "sqlcmd" | "clickhouse-client" | "cqlsh" | "ldapsearch" | "mosquitto_pub"
        | "mosquitto_sub" | "kcat" | "kafkacat" | "nats" | "swaks" => {
            for pair in texts.windows(2) {
                let is_host = match pair {
                    ["-h" | "--host" | "-S" | "--server", _] => true,
                    ["-b", _] => name.starts_with("kaf") || name == "kcat",
                    ["-s", _] => matches!(name, "nats" | "swaks"),
                    _ => false,
                };
                if let (true, [_, value]) = (is_host, pair) {
                    hosts.push(url_or_host(value));
                }
            }
            for text in &texts {
                hosts.extend(url_host(text));
                let attached = text.strip_prefix("-h").filter(|value| {
                    value.contains('.')
                        && (name.starts_with("my")
                            || name.starts_with("maria")
                            || name.starts_with("pg_")
                            || matches!(name, "psql" | "redis-cli" | "createdb" | "dropdb"))
                });
                if let Some(value) = text.strip_prefix("--host=").or(attached) {
                    hosts.push(authority_host(value));
                }
                // `psql "host=… user=…"`.
                let settings = text.split_whitespace();
                hosts.extend(
                    settings
                        .filter_map(|setting| setting.strip_prefix("host="))
                        .map(authority_host),
                );
            }
            // `cqlsh HOST`.
            if let Some(first) = texts.first().filter(|first| {
                name == "cqlsh"
                    && first.contains('.')
                    && !first.starts_with('-')
                    && !first.contains('/')
            }) {
                hosts.push(authority_host(first));
            }
        }
        "pip" | "pip3" | "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "go" | "gem" | "uv"
        | "pipx" | "poetry" | "brew" | "apt" | "apt-get" | "dnf" | "yum" | "rpm" | "dpkg"
        | "npx" | "bunx" | "pnpx" | "uvx" | "docker" | "podman" | "deno" | "helm" | "conda"
        | "composer" | "snap" | "flatpak" | "code" | "ansible-galaxy" | "terraform" | "gsutil"
        | "aws" | "rclone" | "open" | "xdg-open" | "chromium" | "google-chrome" | "firefox"
        | "puppeteer" | "ipfs" | "mail" | "sendmail" | "python" | "python3" | "playwright"
        | "certutil" | "bitsadmin" | "mshta" | "regsvr32" => {
            for text in &texts {
                // `-e URL=https://…` hands a value on.
                let sets = texts.iter().any(|text| matches!(*text, "config" | "env"));
                let text = text
                    .trim_start_matches("git+")
                    .rsplit_once("=http")
                    .filter(|_| text.starts_with('-') || sets)
                    .map_or_else(
                        || text.trim_start_matches("git+").to_owned(),
                        |(_, rest)| format!("http{rest}"),
                    );
                let text = text.split_once(" @ ").map_or(text.as_str(), |(_, url)| url);
                hosts.extend(url_host(text.trim_start_matches("git+")));
                // The module `host/path`.
                let is_module = name == "go"
                    && matches!(texts.first(), Some(&"get" | &"install" | &"run"))
                    && text.split('/').next().is_some_and(|host| {
                        host.contains('.')
                            && !host.starts_with(['.', '-'])
                            && !host.ends_with(".go")
                    });
                if is_module {
                    hosts.push(authority_host(text));
                }
                if matches!(name, "docker" | "podman")
                    && texts.first() == Some(&"login")
                    && text.contains('.')
                    && !text.starts_with('-')
                {
                    hosts.push(authority_host(text));
                }
                if matches!(name, "docker" | "podman")
                    && !matches!(texts.first(), Some(&"build" | &"tag" | &"buildx"))
                    && let Some((host, _)) = text.split_once('/')
                    && host.contains('.')
                    && !text.contains(':') | host.contains('.')
                    && !text.starts_with(['.', '/', '-'])
                    && !text.contains("://")
                {
                    hosts.push(authority_host(host));
                }
            }
        }
        "wscat" | "websocat" | "mc" | "lighthouse" | "wrk2" | "k6" | "newman" | "artillery"
        | "oha" | "bombardier" | "vegeta" | "nikto" | "sqlmap" | "gobuster" | "ffuf"
        | "httrack" | "wkhtmltopdf" | "pandoc" | "ansible-pull" | "skopeo" | "crane" | "oras"
        | "hurl" | "rclone-copyurl" | "ffmpeg" | "ffprobe" | "mpv" | "vlc" | "vim" | "nvim"
        | "bzr" | "bundle" => {
            hosts.extend(texts.iter().filter_map(|text| {
                url_host(
                    text.split_once('=')
                        .filter(|(option, _)| option.starts_with('-'))
                        .map_or(*text, |(_, value)| value),
                )
            }));
        }
        "gh" | "glab" if texts.contains(&"clone") => {
            // `gh repo clone HOST/OWNER/REPOSITORY`.
            for text in &texts {
                let parts: Vec<&str> = text.split('/').collect();
                if let [host, _, _] = parts.as_slice()
                    && host.contains('.')
                {
                    hosts.push(authority_host(host));
                }
                hosts.extend(url_host(text));
            }
        }
        "gh" | "glab" | "cloudflared" | "ngrok" | "vault" | "nomad" | "consul" | "argocd"
        | "influx" => {
            for pair in texts.windows(2) {
                if let [
                    "--hostname" | "--host" | "--address" | "-address" | "--server",
                    value,
                ] = pair
                {
                    hosts.push(url_or_host(value));
                }
            }
            for text in &texts {
                let value = [
                    "--hostname=",
                    "--host=",
                    "--address=",
                    "-address=",
                    "--server=",
                ]
                .iter()
                .find_map(|option| text.strip_prefix(option));
                hosts.extend(value.map(url_or_host));
            }
        }
        _ => {}
    }
    for text in &texts {
        hosts.extend(device_host(text));
    }
    for (name, value) in &invocation.variables {
        let lower = name.to_ascii_lowercase();
        if matches!(lower.as_str(), "http_proxy" | "https_proxy" | "all_proxy")
            && !value.text.is_empty()
            && is_client(&invocation.name)
        {
            hosts.push(url_or_host(&value.text));
        }
        if matches!(
            name.as_str(),
            "PGHOST" | "PGHOSTADDR" | "MYSQL_HOST" | "DOCKER_HOST" | "GH_HOST" | "VAULT_ADDR"
        ) && !value.text.is_empty()
            && !value.text.starts_with(['/', '.'])
            && !value.text.starts_with("unix:")
        {
            hosts.push(url_or_host(&value.text));
        }
        // Where a package manager gets its packages from.
        let is_registry = matches!(
            lower.as_str(),
            "pip_index_url"
                | "pip_extra_index_url"
                | "npm_config_registry"
                | "goproxy"
                | "uv_index_url"
                | "uv_default_index"
                | "uv_index"
                | "yarn_registry"
                | "cargo_registries_default_index"
                | "bundle_mirror__https://rubygems__org/"
                | "hf_endpoint"
                | "aws_endpoint_url"
        );
        if is_registry {
            hosts.extend(value.text.split([',', '|', ' ']).filter_map(url_host));
        }
        if name == "GIT_SSH_COMMAND" || name == "GIT_PROXY_COMMAND" {
            hosts.extend(proxy_hosts(&value.text));
        }
    }
    if let Some(code) = &invocation.code {
        hosts.extend(code_hosts(code));
    }
    hosts.retain(|host| !host.is_empty());
    hosts
}

fn is_client(name: &str) -> bool {
    matches!(name, "curl" | "wget" | "git" | "npm" | "pip" | "http")
}

/// `//host/share` and `\\\\host\\share`.
fn share_host(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("//")
        .or_else(|| text.strip_prefix(r"\\"))?;
    Some(authority_host(rest)).filter(|host| !host.is_empty())
}

fn device_host(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("/dev/tcp/")
        .or_else(|| text.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().map(str::to_ascii_lowercase)
}

/// Options of ping, nmap and traceroute that take a value.
const PROBE_OPTIONS: &[&str] = &[
    "-p", "-w", "-c", "-i", "-I", "-s", "-t", "-x", "-X", "-e", "-q", "-W", "-n", "-T", "-U",
];
