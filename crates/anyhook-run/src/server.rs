//! `anyhook run --server URL`: a daemon answers in our place.
//!
//! It gets what the agent wrote, and what only we can see: the folder that we
//! were started in, and whether there is somebody to ask. A daemon on this
//! machine is called over a bare socket, because a client with TLS costs more
//! than the rest of a run; any other by that client.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhook_model::Answer;
use ureq::tls::{RootCerts, TlsConfig};

use crate::discover::Dirs;
use crate::http;
use crate::settings::Settings;

/// What the daemon says beside the body. It has the same names.
const EXIT: &str = "x-anyhook-exit-code";
const STDERR: &str = "x-anyhook-stderr";

/// A daemon that is there takes a connection at once.
const CONNECT: Duration = Duration::from_secs(2);
/// The agent has its own limit and ends us; this is for those that have none.
const ANSWER: Duration = Duration::from_secs(15 * 60);

/// A longer answer is not an answer.
const LIMIT: u64 = 16 * 1024 * 1024;

/// The daemon's token, in the folder for state.
pub const TOKEN_FILE: &str = "token";

/// What happens when the daemon is away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fallback {
    /// The hooks run here.
    #[default]
    Local,
    /// No hook runs, and the user is told.
    Open,
}

/// What is put to the daemon.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub agent: &'a str,
    pub event: Option<&'a str>,
    pub payload: &'a [u8],
    /// Nobody can be asked.
    pub unattended: bool,
}

/// The daemon's answer, or why there is none.
pub fn ask(url: &str, dirs: &Dirs, question: &Question<'_>) -> Result<Answer, String> {
    let address = Address::parse(url).ok_or_else(|| format!("`{url}` is no http address"))?;
    let near = address.near();
    if near.is_none() {
        let settings = Settings::load(dirs)?;
        http::check_address(url, &settings.http.allow_plain)?;
    }
    let path = path(&address, question);
    let headers = headers(question, token(dirs, near.is_some()));
    // Some clients put bytes before the JSON.
    let start = question.payload.iter().position(|byte| *byte == b'{');
    let body = question.payload.get(start.unwrap_or_default()..);
    let body = body.unwrap_or_default();
    let reply = match near {
        Some(near) => by_socket(&near, &address, &path, &headers, body)?,
        None => by_client(&address, &path, &headers, body)?,
    };
    reply.answer(url)
}

/// The token for a daemon: by `ANYHOOK_TOKEN`; a daemon on this machine has
/// left its own in a file, which is nobody else's business.
pub fn token(dirs: &Dirs, is_near: bool) -> Option<String> {
    let given = std::env::var("ANYHOOK_TOKEN").ok();
    let given = given.filter(|token| !token.is_empty());
    let file = || std::fs::read_to_string(dirs.state.join(TOKEN_FILE)).ok();
    let found = given.or_else(|| file().filter(|_| is_near))?;
    let token = found.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && !token.is_empty()).then(|| token.to_owned())
}

/// Whether this address is on this machine.
pub fn is_near(url: &str) -> bool {
    Address::parse(url).is_some_and(|address| address.near().is_some())
}

#[derive(Debug, PartialEq, Eq)]
struct Address<'a> {
    is_tls: bool,
    /// With its port, as it is sent.
    authority: &'a str,
    host: &'a str,
    port: u16,
    /// Without a slash at its end.
    path: &'a str,
}

impl<'a> Address<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_odd = authority.contains('@') || path.contains(['?', '#', '\\']);
        if is_odd || !is_clean(authority) || !is_clean(path) {
            return None;
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(six) => {
                let (host, rest) = six.split_once(']')?;
                (host, rest.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let usual = if is_tls { 443 } else { 80 };
        Some(Self {
            is_tls,
            authority,
            host: Some(host).filter(|host| !host.is_empty())?,
            port: port.map_or(Some(usual), |port| port.parse().ok())?,
            path: path.trim_end_matches('/'),
        })
    }

    /// Where a daemon of this machine listens; nothing is looked up for it.
    fn near(&self) -> Option<Vec<SocketAddr>> {
        if self.is_tls {
            return None;
        }
        let near: Vec<IpAddr> = if self.host.eq_ignore_ascii_case("localhost") {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        } else {
            let address: IpAddr = self.host.parse().ok()?;
            vec![address]
                .into_iter()
                .filter(IpAddr::is_loopback)
                .collect()
        };
        let all = near.into_iter().map(|ip| SocketAddr::new(ip, self.port));
        Some(all.collect::<Vec<_>>()).filter(|all| !all.is_empty())
    }
}

fn path(address: &Address<'_>, question: &Question<'_>) -> String {
    let mut path = format!("{}/hooks/{}", address.path, encoded(question.agent));
    if let Some(event) = question.event {
        // Writing to a string does not fail.
        let _ = write!(path, "?event={}", encoded(event));
    }
    path
}

fn headers(question: &Question<'_>, token: Option<String>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some(token) = token {
        headers.push(("authorization", format!("Bearer {token}")));
    }
    if let Ok(folder) = std::env::current_dir() {
        headers.push(("x-anyhook-cwd", encoded(&folder.to_string_lossy())));
    }
    if question.unattended {
        headers.push(("x-anyhook-unattended", "1".to_owned()));
    }
    headers
}

struct Reply {
    status: u16,
    exit: Option<String>,
    stderr: Option<String>,
    body: Vec<u8>,
}

impl Reply {
    fn answer(self, url: &str) -> Result<Answer, String> {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        if self.status != 200 {
            let said: Option<serde_json::Value> = serde_json::from_str(&body).ok();
            let said = said.as_ref().and_then(|said| {
                let message = said.pointer("/error/message")?;
                message.as_str()
            });
            return Err(format!(
                "{url} answered {}: {}",
                self.status,
                said.unwrap_or("no reason given")
            ));
        }
        let exit = self.exit.and_then(|exit| exit.trim().parse().ok());
        Ok(Answer {
            stdout: body,
            stderr: self.stderr.as_deref().map(decoded).unwrap_or_default(),
            exit: exit.ok_or_else(|| format!("{url} is no anyhook daemon"))?,
        })
    }
}

/// HTTP/1.0: the answer ends with the connection, and comes in one piece.
fn by_socket(
    near: &[SocketAddr],
    address: &Address<'_>,
    path: &str,
    headers: &[(&'static str, String)],
    body: &[u8],
) -> Result<Reply, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", address.authority);
    let mut stream = Err(std::io::ErrorKind::AddrNotAvailable.into());
    for socket in near {
        stream = TcpStream::connect_timeout(socket, CONNECT);
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream.map_err(failed)?;
    let _ = stream.set_nodelay(true);
    stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
    stream.set_write_timeout(Some(ANSWER)).map_err(failed)?;
    let mut request = format!("POST {path} HTTP/1.0\r\nhost: {}\r\n", address.authority);
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    let _ = write!(request, "content-length: {}\r\n\r\n", body.len());
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    // A daemon that refuses a large body answers before it has read all of it.
    let written = stream.write_all(&request);
    let mut answer = Vec::new();
    let read = stream.take(LIMIT).read_to_end(&mut answer);
    if let Some(reply) = read_reply(&answer) {
        return Ok(reply);
    }
    written.and(read.map(drop)).map_err(failed)?;
    Err(format!("{} did not answer in HTTP", address.authority))
}

/// `None` when it is not whole.
fn read_reply(answer: &[u8]) -> Option<Reply> {
    const END: &[u8] = b"\r\n\r\n";
    let at = answer.windows(END.len()).position(|part| part == END)?;
    let (head, rest) = answer.split_at_checked(at)?;
    let head = std::str::from_utf8(head).ok()?;
    let body = rest.get(END.len()..)?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?;
    let status = status.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let header = |wanted: &str| {
        let found = headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let body = match header("content-length") {
        Some(length) => body.get(..length.parse().ok()?)?,
        None => body,
    };
    Some(Reply {
        status,
        exit: header(EXIT),
        stderr: header(STDERR),
        body: body.to_vec(),
    })
}

fn by_client(
    address: &Address<'_>,
    path: &str,
    headers: &[(&'static str, String)],
    body: &[u8],
) -> Result<Reply, String> {
    let scheme = if address.is_tls { "https" } else { "http" };
    let url = format!("{scheme}://{}{path}", address.authority);
    let failed = |error: ureq::Error| format!("{}: {error}", address.authority);
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT * 5))
        .timeout_global(Some(ANSWER))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("anyhook/", env!("CARGO_PKG_VERSION")))
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::PlatformVerifier)
                .build(),
        );
    let client: ureq::Agent = config.build().into();
    let mut post = client.post(&url);
    for (name, value) in headers {
        post = post.header(*name, value);
    }
    let mut response = post.send(body).map_err(failed)?;
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let (exit, stderr) = (header(EXIT), header(STDERR));
    let body = response
        .body_mut()
        .with_config()
        .limit(LIMIT)
        .read_to_vec()
        .map_err(failed)?;
    Ok(Reply {
        status: response.status().as_u16(),
        exit,
        stderr,
        body,
    })
}

/// Percent-encoded: everything but letters, digits and `-._~`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = byte.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let near = |url: &str| Address::parse(url).is_some_and(|it| it.near().is_some());
        for url in [
            "http://127.0.0.1:8765",
            "http://localhost:8765/",
            "HTTP://LOCALHOST:1",
            "http://[::1]:8765/x",
        ] {
            assert!(near(url), "{url}");
        }
        for url in ["https://127.0.0.1:1", "http://a.test", "http://10.0.0.1:80"] {
            assert!(Address::parse(url).is_some() && !near(url), "{url}");
        }
        for url in [
            "ftp://localhost",
            "localhost:8765",
            "http://",
            "http://a@localhost/",
            "http://localhost:port/",
            "http://localhost/\r\nx: y",
            "http://localhost/?a",
        ] {
            assert_eq!(Address::parse(url), None, "{url}");
        }
        let address = Address::parse("http://localhost:9/anyhook/").unwrap();
        let question = Question {
            agent: "kiro",
            event: Some("a b"),
            payload: b"",
            unattended: false,
        };
        assert_eq!(path(&address, &question), "/anyhook/hooks/kiro?event=a%20b");
    }

    #[test]
    fn what_is_encoded_comes_back() {
        for text in ["", "plain", "a b\nc%41", "grüß 🙂"] {
            assert_eq!(decoded(&encoded(text)), text);
        }
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }

    #[test]
    fn only_whole_replies() {
        let text = "HTTP/1.1 200 OK\r\nX-Anyhook-Exit-Code: 2\r\nContent-Length: 2\r\n\r\n{}";
        let answer = read_reply(text.as_bytes()).unwrap().answer("u").unwrap();
        assert_eq!((answer.stdout.as_str(), answer.exit), ("{}", 2));
        for end in 0..text.len() {
            assert!(read_reply(&text.as_bytes()[..end]).is_none(), "{end}");
        }
        let other = read_reply(b"HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
        assert!(other.answer("u").is_err());
    }
}
