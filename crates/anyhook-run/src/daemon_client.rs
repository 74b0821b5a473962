//! The client of `anyhook run --server`: a daemon handles the call.
//!
//! It sends the payload, and what only this process can see: its working directory, the
//! project in its environment, and whether a person can be asked. The token never leaves
//! this process, and a daemon that does not prove that it knows it is not believed.

mod local;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhook_model::Answer;
use anyhook_util::challenge::{self, AnswerContent, CallContent, DEFAULT_PORT, Nonces};
use anyhook_util::hash::{hex, sha256};
use anyhook_util::http::client_config;
use anyhook_util::{env, headers, percent};

use crate::config::discover::{self, Dirs};
use crate::config::folders;
use crate::config::settings::Settings;
use crate::record::duplicate::EntryName;
use crate::run::http;
use local::{LocalAddress, LocalDaemon, LocalError};

const REMOTE_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For a daemon on another machine to answer the challenge.
const REMOTE_LIVENESS_TIMEOUT: Duration = Duration::from_secs(5);
/// Agents have their own, shorter limit; this is for those that have none.
const REMOTE_ANSWER_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// The daemon's token, in the state folder.
pub const TOKEN_FILE: &str = "token";
/// The daemon's socket, in the state folder.
pub const SOCKET_FILE: &str = "daemon.sock";
/// Where a daemon listens by default.
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:24665";

/// One call of an agent for the daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DaemonRequest<'a> {
    pub(crate) agent: &'a str,
    pub(crate) event: Option<&'a str>,
    pub(crate) payload: &'a [u8],
    /// No person can be asked.
    pub(crate) unattended: bool,
    /// The agent's entry that started this process.
    pub(crate) entry: &'a EntryName,
    /// How long the agent waits.
    pub(crate) answer_limit: Duration,
}

/// Why a daemon has not handled a call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerProblem {
    #[error("the server is away: {0}")]
    Away(String),
    /// Something else may pretend to be the daemon, so the user should know.
    #[error("the server is not trusted, so its answer was not used: {0}")]
    Untrusted(String),
}

/// The daemon's answer, or why there is none. An empty `url` means this user's own daemon.
pub(crate) fn send(
    url: &str,
    dirs: &Dirs,
    request: &DaemonRequest<'_>,
) -> Result<Answer, ServerProblem> {
    // Some clients put bytes before the JSON.
    let start = request.payload.iter().position(|byte| *byte == b'{');
    let body = request.payload.get(start.unwrap_or_default()..);
    let url = if url.is_empty() { DEFAULT_ADDRESS } else { url };
    let address = DaemonAddress::parse(url)
        .ok_or_else(|| ServerProblem::Away(format!("`{url}` is not an http address")))?;
    let sockets = address.local_sockets();
    // A daemon on another machine has folders of its own.
    let folders = sockets.is_some().then(|| dirs.digest());
    let call = Call {
        path: request_path(request, folders.as_deref()),
        headers: CallHeaders::new(request),
        body: body.unwrap_or_default(),
    };
    if address.is_default() {
        match send_to_socket(&dirs.state.join(SOCKET_FILE), &call) {
            Err(LocalError::NoSocket) => {}
            Err(LocalError::Problem(problem)) => return Err(problem),
            Ok(reply) => return reply.into_answer(url),
        }
    }
    let token = token_for_hooks(dirs, sockets.is_some());
    let reply = if let Some(sockets) = sockets {
        send_over_tcp(&address, sockets, token.as_deref(), &call)?
    } else {
        let settings = Settings::load(dirs).map_err(ServerProblem::Away)?;
        http::check_address(url, &settings.http.allow_plain).map_err(ServerProblem::Away)?;
        send_with_tls_client(&address, token.as_deref(), &call)?
    };
    reply.into_answer(url)
}

/// Why an agent that posts to this address of a daemon would get no answer. No hook runs.
pub fn check_http_entry(url: &str, dirs: &Dirs) -> Result<(), String> {
    let (base, path) = match url.split_once("/hooks/") {
        Some((base, rest)) => (base, format!("/hooks/{rest}")),
        None => return Err(format!("`{url}` is not the address of a hook")),
    };
    let address = DaemonAddress::parse(base).ok_or("it is not an http address")?;
    let sockets = address.local_sockets().ok_or("it is not on this machine")?;
    let token = token(dirs, true);
    let daemon = LocalDaemon {
        address: LocalAddress::Tcp {
            sockets,
            base_path: address.path,
        },
        name: address.authority,
        token: Some(required(token.as_deref(), address.authority).map_err(|it| it.to_string())?),
    };
    daemon.check_hook_route(&path).map_err(|error| match error {
        LocalError::Problem(problem) => problem.to_string(),
        LocalError::NoSocket => "there is no socket".to_owned(),
    })
}

/// Why the daemon behind an http entry does not run this user's hooks, although it
/// answers. `None` also if it does not say.
pub fn problem_with_hooks(url: &str, dirs: &Dirs) -> Option<&'static str> {
    let (base, _) = url.split_once("/hooks/")?;
    let address = DaemonAddress::parse(base)?;
    let token = token(dirs, true);
    let daemon = LocalDaemon {
        address: LocalAddress::Tcp {
            sockets: address.local_sockets()?,
            base_path: address.path,
        },
        name: address.authority,
        token: Some(token.as_deref()?),
    };
    hooks_problem(&daemon, dirs)
}

/// The same for this user's daemon on its socket.
pub fn problem_with_hooks_on_socket(path: &Path, dirs: &Dirs) -> Option<&'static str> {
    let daemon = LocalDaemon {
        address: LocalAddress::Socket(path),
        name: "localhost",
        token: None,
    };
    hooks_problem(&daemon, dirs)
}

fn hooks_problem(daemon: &LocalDaemon<'_>, dirs: &Dirs) -> Option<&'static str> {
    let health: serde_json::Value = serde_json::from_slice(&daemon.health().ok()?).ok()?;
    let hooks = health.get("hooks")?;
    if hooks.get("off")?.as_bool()? {
        return Some("it was started with `ANYHOOK=0`");
    }
    let is_own = hooks.get("folders")?.as_str()? == dirs.digest();
    (!is_own).then_some(
        "it looks for them in other folders: it was started with another `HOME`, `XDG_CONFIG_HOME` or `ANYHOOK_CONFIG_DIR`",
    )
}

/// Whether this user's daemon answers on its socket.
pub fn is_on_socket(path: &Path) -> bool {
    let daemon = LocalDaemon {
        address: LocalAddress::Socket(path),
        name: "localhost",
        token: None,
    };
    daemon.is_alive()
}

/// Without the token the daemon cannot be distinguished from any other process.
fn required<'a>(token: Option<&'a str>, name: &str) -> Result<&'a str, ServerProblem> {
    let problem = || format!("{name}: its token is not known; set ANYHOOK_TOKEN to it");
    token.ok_or_else(|| ServerProblem::Away(problem()))
}

/// A hook call, ready to be sent.
struct Call<'a> {
    path: String,
    headers: CallHeaders,
    body: &'a [u8],
}

fn send_to_socket(path: &Path, call: &Call<'_>) -> Result<DaemonReply, LocalError> {
    let daemon = LocalDaemon {
        address: LocalAddress::Socket(path),
        name: "localhost",
        token: None,
    };
    daemon.send(&call.path, &call.headers, call.body)
}

fn send_over_tcp(
    address: &DaemonAddress<'_>,
    sockets: Vec<SocketAddr>,
    token: Option<&str>,
    call: &Call<'_>,
) -> Result<DaemonReply, ServerProblem> {
    let base_path = address.path;
    let daemon = LocalDaemon {
        address: LocalAddress::Tcp { sockets, base_path },
        name: address.authority,
        token: Some(required(token, address.authority)?),
    };
    let reply = daemon.send(&call.path, &call.headers, call.body);
    reply.map_err(|error| match error {
        LocalError::Problem(problem) => problem,
        LocalError::NoSocket => ServerProblem::Away("there is no socket".to_owned()),
    })
}

/// The token for a daemon that the user names in a command: `ANYHOOK_TOKEN`, else the
/// file that a daemon on this machine has left. That file is never used for another
/// machine.
pub fn token(dirs: &Dirs, is_local: bool) -> Option<String> {
    given_token().or_else(|| left_token(dirs).filter(|_| is_local))
}

/// The token for a hook call. A project can set the variable through an agent, so for a
/// daemon on this machine the file goes first, and on a locked installation the variable
/// does not count.
fn token_for_hooks(dirs: &Dirs, is_local: bool) -> Option<String> {
    let left = is_local.then(|| left_token(dirs)).flatten();
    left.or_else(|| given_token().filter(|_| !discover::is_locked(env::by_name_os)))
}

fn given_token() -> Option<String> {
    env::ANYHOOK_TOKEN.text().and_then(|token| clean(&token))
}

fn left_token(dirs: &Dirs) -> Option<String> {
    let file = anyhook_util::fs::read_text(&dirs.state.join(TOKEN_FILE), 4096);
    file.ok().and_then(|token| clean(&token))
}

/// `None` for a token that cannot be one.
fn clean(token: &str) -> Option<String> {
    let token = token.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && !token.is_empty()).then(|| token.to_owned())
}

/// Whether this address is on this machine.
pub fn is_local(url: &str) -> bool {
    DaemonAddress::parse(url).is_some_and(|address| address.local_sockets().is_some())
}

#[derive(Debug, PartialEq, Eq)]
struct DaemonAddress<'a> {
    is_tls: bool,
    /// With its port, for the `host` header.
    authority: &'a str,
    host: &'a str,
    port: u16,
    /// Without a slash at its end.
    path: &'a str,
}

impl<'a> DaemonAddress<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let is_tls = scheme.eq_ignore_ascii_case("https");
        let is_http = is_tls || scheme.eq_ignore_ascii_case("http");
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_unsupported = authority.contains('@') || path.contains(['?', '#', '\\']);
        if !is_http || is_unsupported || !is_clean(authority) || !is_clean(path) {
            return None;
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(six) => {
                let (host, rest) = six.split_once(']')?;
                (host, rest.strip_prefix(':'))
            }
            None => authority
                .split_once(':')
                .map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let default_port = if is_tls { 443 } else { 80 };
        Some(Self {
            is_tls,
            authority,
            host: Some(host).filter(|host| !host.is_empty())?,
            port: port.map_or(Some(default_port), |port| port.parse().ok())?,
            path: path.trim_end_matches('/'),
        })
    }

    /// Where a daemon of this user listens if nothing else was configured.
    fn is_default(&self) -> bool {
        let is_local = ["127.0.0.1", "localhost"].contains(&self.host);
        !self.is_tls && is_local && self.port == DEFAULT_PORT && self.path.is_empty()
    }

    /// Where a daemon on this machine listens; no name is resolved for it.
    fn local_sockets(&self) -> Option<Vec<SocketAddr>> {
        if self.is_tls {
            return None;
        }
        let addresses: Vec<IpAddr> = if self.host.eq_ignore_ascii_case("localhost") {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        } else {
            let address: IpAddr = self.host.parse().ok()?;
            vec![Some(address).filter(IpAddr::is_loopback)?]
        };
        let sockets = addresses
            .into_iter()
            .map(|ip| SocketAddr::new(ip, self.port));
        Some(sockets.collect())
    }
}

/// `folders`: where this process looks for hooks, which the daemon must do as well.
fn request_path(request: &DaemonRequest<'_>, folders: Option<&str>) -> String {
    let (agent, timeout) = (
        percent::encode(request.agent),
        request.answer_limit.as_secs_f64(),
    );
    let mut path = format!("/hooks/{agent}?timeout={timeout}");
    if let Some(event) = request.event {
        path.push_str("&event=");
        path.push_str(&percent::encode(event));
    }
    if let Some(folders) = folders {
        path.extend(["&folders=", folders]);
    }
    path
}

/// The headers of a call; empty ones are not sent.
#[derive(Debug, Default)]
struct CallHeaders {
    cwd: String,
    projects: String,
    unattended: &'static str,
    entry: String,
}

impl CallHeaders {
    fn new(request: &DaemonRequest<'_>) -> Self {
        let cwd = std::env::current_dir().ok();
        let cwd = cwd.map(|folder| percent::encode(&folder.to_string_lossy()));
        let projects = folders::projects_in_env(request.agent);
        let projects = projects.iter().map(|folder| percent::encode(folder));
        Self {
            cwd: cwd.unwrap_or_default(),
            projects: projects.collect::<Vec<_>>().join(","),
            unattended: if request.unattended { "1" } else { "" },
            entry: percent::encode(&request.entry.to_text()),
        }
    }

    fn list<'a>(&'a self, authorization: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
        let mut list = vec![
            ("content-type", "application/json"),
            (headers::CWD, &self.cwd),
            (headers::PROJECTS, &self.projects),
            (headers::UNATTENDED, self.unattended),
            (headers::ENTRY, &self.entry),
            ("authorization", authorization.unwrap_or_default()),
        ];
        list.retain(|(_, value)| !value.is_empty());
        list
    }

    /// The value of `authorization` for a call to `path`.
    fn signature(&self, token: &str, nonces: &Nonces, path: &str, body: &[u8]) -> String {
        let body_sha256 = sha256(body);
        let content = CallContent {
            path,
            cwd: &self.cwd,
            projects: &self.projects,
            unattended: self.unattended,
            entry: &self.entry,
            body_sha256: &body_sha256,
        };
        let proof = nonces.call_proof(token, &content);
        let Nonces { client, server } = nonces;
        format!(
            "{} {client} {server} {body_sha256} {proof}",
            challenge::SCHEME
        )
    }
}

fn changed_answer(name: &str) -> ServerProblem {
    ServerProblem::Untrusted(format!("{name}: the answer is not the daemon's own"))
}

fn new_nonce() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("could not get random numbers: {error}"))?;
    Ok(hex(&bytes))
}

#[derive(Debug, Default)]
struct DaemonReply {
    status: u16,
    exit: Option<String>,
    stderr: Option<String>,
    nonce: Option<String>,
    proof: Option<String>,
    body: Vec<u8>,
}

impl DaemonReply {
    /// The nonces of the answer to a challenge, whose sender must know the token.
    fn proven_nonces(
        &self,
        client: String,
        token: Option<&str>,
        name: &str,
    ) -> Result<Nonces, ServerProblem> {
        let untrusted = |why| ServerProblem::Untrusted(format!("{name}: {why}"));
        if (500..600).contains(&self.status) {
            let why = format!("{name} answered {}", self.status);
            return Err(ServerProblem::Away(why));
        }
        let server = self.nonce.clone().filter(|_| self.status == 200);
        let server = server.ok_or_else(|| {
            untrusted("the server there is not an anyhook daemon, or has another version")
        })?;
        let nonces = Nonces { client, server };
        let Some(token) = token else {
            return Ok(nonces);
        };
        let expected = nonces.server_proof(token);
        let is_expected = |sent: &String| challenge::constant_time_eq(sent, &expected);
        if !self.proof.as_ref().is_some_and(is_expected) {
            return Err(untrusted("the server there does not know the token"));
        }
        Ok(nonces)
    }

    /// Whether it comes from the daemon that knows the token, unchanged.
    fn is_proven(&self, token: &str, nonces: &Nonces) -> bool {
        let content = AnswerContent {
            exit: self.exit.as_deref().unwrap_or_default(),
            stderr: self.stderr.as_deref().unwrap_or_default(),
            body: &self.body,
        };
        let expected = nonces.answer_proof(token, &content);
        let is_expected = |sent: &String| challenge::constant_time_eq(sent, &expected);
        self.proof.as_ref().is_some_and(is_expected)
    }

    fn into_answer(self, url: &str) -> Result<Answer, ServerProblem> {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        if self.status != 200 {
            let error: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
            let message = error.pointer("/error/message").and_then(|it| it.as_str());
            return Err(ServerProblem::Away(format!(
                "{url} answered {}: {}",
                self.status,
                message.unwrap_or("no reason given")
            )));
        }
        let exit = self.exit.and_then(|exit| exit.trim().parse().ok());
        let stderr = self.stderr.as_deref().map(percent::decode_lossy);
        let not_a_daemon = || ServerProblem::Untrusted(format!("{url} is not an anyhook daemon"));
        Ok(Answer {
            stdout: body,
            stderr: stderr.unwrap_or_default(),
            exit: exit.ok_or_else(not_a_daemon)?,
        })
    }
}

/// The certificate shows whose machine it is; the proofs, that no proxy changes a decision.
fn send_with_tls_client(
    address: &DaemonAddress<'_>,
    token: Option<&str>,
    call: &Call<'_>,
) -> Result<DaemonReply, ServerProblem> {
    let name = address.authority;
    let token = required(token, name)?;
    let scheme = if address.is_tls { "https" } else { "http" };
    let base = format!("{scheme}://{}{}", address.authority, address.path);
    let post = |path: &str, limit, headers: &[(&'static str, &str)], body: &[u8]| {
        let config = client_config(limit).timeout_connect(Some(REMOTE_CONNECT_TIMEOUT));
        let url = format!("{base}{path}");
        let headers = headers.iter().copied();
        let (response, body) = http::post(config, &url, headers, body, MAX_ANSWER_BYTES as u64)
            .map_err(|error| ServerProblem::Away(format!("{name}: {error}")))?;
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        Ok::<_, ServerProblem>(DaemonReply {
            status: response.status().as_u16(),
            exit: header(headers::EXIT_CODE),
            stderr: header(headers::STDERR),
            nonce: header(headers::NONCE),
            proof: header(headers::PROOF),
            body,
        })
    };
    let client = new_nonce().map_err(ServerProblem::Away)?;
    let nonce = (headers::NONCE, client.as_str());
    let reply = post(challenge::PATH, REMOTE_LIVENESS_TIMEOUT, &[nonce], b"")?;
    let nonces = reply.proven_nonces(client, Some(token), name)?;
    let path = format!("{}{}", address.path, call.path);
    let signature = call.headers.signature(token, &nonces, &path, call.body);
    let list = call.headers.list(Some(&signature));
    let reply = post(&call.path, REMOTE_ANSWER_TIMEOUT, &list, call.body)?;
    if reply.status == 200 && !reply.is_proven(token, &nonces) {
        return Err(changed_answer(name));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for url in [
            "http://127.0.0.1:24665",
            "http://localhost:24665/",
            "HTTP://LOCALHOST:1",
            "http://[::1]:24665/x",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in ["https://127.0.0.1:1", "http://a.test", "http://10.0.0.1:80"] {
            assert!(
                DaemonAddress::parse(url).is_some() && !is_local(url),
                "{url}"
            );
        }
        for url in [
            "ftp://localhost",
            "localhost:24665",
            "http://",
            "http://a@localhost/",
            "http://localhost:port/",
            "http://localhost/\r\nx: y",
            "http://localhost/?a",
        ] {
            assert_eq!(DaemonAddress::parse(url), None, "{url}");
        }
        let is_default = |url| DaemonAddress::parse(url).unwrap().is_default();
        assert!(is_default(DEFAULT_ADDRESS) && is_default("http://localhost:24665/"));
        assert!(!is_default("http://localhost:8766") && !is_default("https://localhost:24665"));
        let request = DaemonRequest {
            agent: "kiro",
            event: Some("a b"),
            payload: b"",
            unattended: false,
            entry: &EntryName::default(),
            answer_limit: Duration::from_secs(60),
        };
        let path = "/hooks/kiro?timeout=60&event=a%20b";
        assert_eq!(request_path(&request, None), path);
        assert_eq!(
            request_path(&request, Some("5a")),
            format!("{path}&folders=5a")
        );
    }
}
