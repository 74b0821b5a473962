//! Calls a daemon on this machine, over its socket in the state folder or over TCP.
//!
//! The first request on a connection is a challenge. Its answer shows that the daemon is
//! alive, and over TCP that it knows the token; only then it gets the call. The TLS client
//! is not used here, because it takes 0.15 ms longer.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhook_util::challenge::{self, Nonces};
use anyhook_util::headers;

use super::{CallHeaders, DaemonReply, MAX_ANSWER_BYTES, ServerProblem, changed_answer, new_nonce};

/// A daemon that has not answered the challenge by then counts as away.
const LIVENESS_TIMEOUT: Duration = Duration::from_millis(250);
/// While hooks run, the daemon is challenged again after each of these.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(1);
/// A busy machine may delay one answer, but not this many in a row.
const MAX_MISSED_CHALLENGES: u32 = 3;
/// For the daemon to take the next part of a large call.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The daemon ends a call at the timeouts of its hooks; this is for a daemon that does not.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const MAX_HEAD_BYTES: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Where a daemon on this machine listens.
#[derive(Debug)]
pub(super) enum LocalAddress<'a> {
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has the socket"))]
    Socket(&'a Path),
    Tcp {
        sockets: Vec<SocketAddr>,
        /// Before each path of the daemon.
        base_path: &'a str,
    },
}

#[derive(Debug)]
pub(super) struct LocalDaemon<'a> {
    pub(super) address: LocalAddress<'a>,
    /// For the `host` header and messages.
    pub(super) name: &'a str,
    /// Not needed for the socket: there the kernel says who the other end is.
    pub(super) token: Option<&'a str>,
}

/// Why a call was not answered.
#[derive(Debug)]
pub(super) enum LocalError {
    /// There is none at this path, or its path is too long for a socket.
    NoSocket,
    Problem(ServerProblem),
}

impl From<ServerProblem> for LocalError {
    fn from(problem: ServerProblem) -> Self {
        Self::Problem(problem)
    }
}

impl LocalDaemon<'_> {
    pub(super) fn send(
        &self,
        path: &str,
        call: &CallHeaders,
        body: &[u8],
    ) -> Result<DaemonReply, LocalError> {
        let (mut stream, nonces) = self.connect()?;
        let away = |error: io::Error| ServerProblem::Away(format!("{}: {error}", self.name));
        let path = format!("{}{path}", self.base_path());
        let signature = self
            .token
            .map(|token| call.signature(token, &nonces, &path, body));
        // With HTTP/1.0 the answer ends with the connection and is never chunked.
        let mut request = format!("POST {path} HTTP/1.0\r\nhost: {}\r\n", self.name);
        for (name, value) in call.list(signature.as_deref()) {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        let _ = write!(request, "content-length: {}\r\n\r\n", body.len());
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        stream.set_timeouts(LIVENESS_INTERVAL).map_err(away)?;
        // A daemon that refuses a large body answers before it has read all of it.
        let written = write_request(&mut stream, &request);
        let mut answer = Vec::new();
        let read = self.read_answer(&mut stream, &mut answer);
        let Some(reply) = parse_reply(&answer) else {
            written.and(read).map_err(away)?;
            let why = format!("{} did not answer in HTTP", self.name);
            return Err(ServerProblem::Away(why).into());
        };
        match self.token {
            // An error is not a decision, so it needs no proof.
            Some(token) if reply.status == 200 && !reply.is_proven(token, &nonces) => {
                Err(changed_answer(self.name).into())
            }
            _ => Ok(reply),
        }
    }

    fn base_path(&self) -> &str {
        match &self.address {
            LocalAddress::Socket(_) => "",
            LocalAddress::Tcp { base_path, .. } => base_path,
        }
    }

    /// A connection to a daemon that is alive and is the one that we mean.
    fn connect(&self) -> Result<(LocalStream, Nonces), LocalError> {
        let deadline = Instant::now() + LIVENESS_TIMEOUT;
        let stream = match &self.address {
            #[cfg(unix)]
            LocalAddress::Socket(path) => unix::connect(path),
            #[cfg(not(unix))]
            LocalAddress::Socket(_) => Err(io::ErrorKind::Unsupported.into()),
            LocalAddress::Tcp { sockets, .. } => connect_tcp(sockets),
        };
        let mut stream = stream.map_err(|error| match (&self.address, error.kind()) {
            (
                LocalAddress::Socket(_),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported,
            ) => LocalError::NoSocket,
            (_, io::ErrorKind::PermissionDenied) => {
                ServerProblem::Untrusted(format!("{}: {error}", self.name)).into()
            }
            _ => ServerProblem::Away(format!("{}: {error}", self.name)).into(),
        })?;
        let client = new_nonce().map_err(ServerProblem::Away)?;
        let answer = self
            .challenge(&mut stream, &client, deadline)
            .map_err(|error| {
                let limit = LIVENESS_TIMEOUT.as_millis();
                ServerProblem::Away(if is_timeout(&error) {
                    format!("{} did not answer within {limit} ms", self.name)
                } else {
                    format!("{}: {error}", self.name)
                })
            })?;
        let reply = parse_reply(&answer).unwrap_or_default();
        let nonces = reply.proven_nonces(client, self.token, self.name)?;
        Ok((stream, nonces))
    }

    /// The answer to a challenge, which has no body.
    fn challenge(
        &self,
        stream: &mut LocalStream,
        client: &str,
        deadline: Instant,
    ) -> io::Result<Vec<u8>> {
        let request = format!(
            "POST {}{} HTTP/1.1\r\nhost: {}\r\n{}: {client}\r\ncontent-length: 0\r\n\r\n",
            self.base_path(),
            challenge::PATH,
            self.name,
            headers::NONCE,
        );
        stream.set_timeouts(remaining(deadline)?)?;
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut buffer = [0; 1024];
        while head_end(&answer).is_none() && answer.len() < MAX_HEAD_BYTES {
            stream.set_timeouts(remaining(deadline)?)?;
            let count = stream.receive(&mut buffer)?;
            if count == 0 && answer.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if count == 0 {
                break;
            }
            answer.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
        Ok(answer)
    }

    /// Whether it takes a hook call from a client that has no token. The call has no event,
    /// so no hook runs.
    pub(super) fn check_hook_route(&self, path: &str) -> Result<(), LocalError> {
        let (mut stream, _) = self.connect()?;
        let away = |error: io::Error| ServerProblem::Away(format!("{}: {error}", self.name));
        let request = format!(
            "POST {}{path} HTTP/1.0\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]",
            self.base_path(),
            self.name
        );
        stream.set_timeouts(LIVENESS_INTERVAL).map_err(away)?;
        write_request(&mut stream, request.as_bytes()).map_err(away)?;
        let mut answer = Vec::new();
        let read = self.read_answer(&mut stream, &mut answer);
        match parse_reply(&answer) {
            Some(reply) if [200, 400].contains(&reply.status) => Ok(()),
            Some(reply) if reply.status == 401 => Err(ServerProblem::Away(format!(
                "{} requires its token, which an http hook does not send; start it without `--require-token`",
                self.name
            ))
            .into()),
            Some(reply) => Ok(reply.into_answer(self.name).map(drop)?),
            None => {
                read.map_err(away)?;
                Err(ServerProblem::Away(format!("{} gave no answer", self.name)).into())
            }
        }
    }

    /// What it says about itself.
    pub(super) fn health(&self) -> Result<Vec<u8>, LocalError> {
        let (mut stream, _) = self.connect()?;
        let away = |error: io::Error| ServerProblem::Away(format!("{}: {error}", self.name));
        let (base, name) = (self.base_path(), self.name);
        let request = format!("GET {base}/healthz HTTP/1.0\r\nhost: {name}\r\n\r\n");
        stream.set_timeouts(LIVENESS_INTERVAL).map_err(away)?;
        write_request(&mut stream, request.as_bytes()).map_err(away)?;
        let mut answer = Vec::new();
        self.read_answer(&mut stream, &mut answer).map_err(away)?;
        let reply = parse_reply(&answer).filter(|reply| reply.status == 200);
        let unknown = || ServerProblem::Away(format!("{name} does not report its state"));
        Ok(reply.ok_or_else(unknown)?.body)
    }

    /// Whether it answers in time on another connection.
    pub(super) fn is_alive(&self) -> bool {
        self.connect().is_ok()
    }

    /// Reads to the end. Hooks may take long; a daemon that hangs meanwhile is noticed.
    fn read_answer(&self, stream: &mut LocalStream, answer: &mut Vec<u8>) -> io::Result<()> {
        let begun = Instant::now();
        let mut missed = 0;
        let mut buffer = [0; 8192];
        while answer.len() < MAX_ANSWER_BYTES {
            match stream.receive(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => answer.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) && begun.elapsed() < ANSWER_TIMEOUT => {
                    missed = if self.is_alive() { 0 } else { missed + 1 };
                    if missed >= MAX_MISSED_CHALLENGES {
                        return Err(io::Error::other("it stopped answering"));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn write_request(stream: &mut LocalStream, request: &[u8]) -> io::Result<()> {
    let mut rest = request;
    let mut progress = Instant::now();
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                rest = rest.get(count..).unwrap_or_default();
                progress = Instant::now();
            }
            Err(error) if is_timeout(&error) && progress.elapsed() < WRITE_TIMEOUT => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// An error once the time is over.
fn remaining(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}

fn connect_tcp(sockets: &[SocketAddr]) -> io::Result<LocalStream> {
    let mut stream = Err(io::ErrorKind::AddrNotAvailable.into());
    for socket in sockets {
        stream = TcpStream::connect_timeout(socket, LIVENESS_TIMEOUT);
        if stream.is_ok() {
            break;
        }
    }
    let stream = stream?;
    let _ = stream.set_nodelay(true);
    Ok(LocalStream::Tcp(stream))
}

#[derive(Debug)]
enum LocalStream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Socket(std::os::unix::net::UnixStream),
}

impl LocalStream {
    /// Returns the number of received bytes; 0 at the end.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Socket(stream) => stream.read(buffer),
        }
    }

    /// For each read and each write.
    fn set_timeouts(&self, limit: Duration) -> io::Result<()> {
        let limit = Some(limit);
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
            #[cfg(unix)]
            Self::Socket(stream) => {
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
        }
    }
}

impl Write for LocalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Socket(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use rustix::io::FdFlags;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

    use super::LocalStream;

    /// Connects without waiting, also if the daemon accepts no connections any more.
    pub(super) fn connect(path: &Path) -> io::Result<LocalStream> {
        let too_long = |_| {
            let length = path.as_os_str().len();
            let message = format!("the path of the socket is too long ({length} bytes)");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        };
        let address = SocketAddrUnix::new(path).map_err(too_long)?;
        let descriptor = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::io::fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
        let stream = UnixStream::from(descriptor);
        stream.set_nonblocking(true)?;
        rustix::net::connect(&stream, &address)?;
        stream.set_nonblocking(false)?;
        if !is_trusted(&stream, path) {
            let message = "another user listens on the socket";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(LocalStream::Socket(stream))
    }

    /// Whether the listener runs as this user or as root.
    #[cfg(target_os = "linux")]
    fn is_trusted(stream: &UnixStream, _path: &Path) -> bool {
        let own = rustix::process::geteuid();
        rustix::net::sockopt::socket_peercred(stream)
            .is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
    }

    /// Whether only this user and root can have put the socket there.
    #[cfg(not(target_os = "linux"))]
    fn is_trusted(_stream: &UnixStream, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let own = rustix::process::geteuid().as_raw();
        let is_safe = |path: &Path| {
            let found = std::fs::symlink_metadata(path);
            found.is_ok_and(|it| [0, own].contains(&it.uid()) && it.mode() & 0o022 == 0)
        };
        is_safe(path) && path.parent().is_some_and(is_safe)
    }
}

fn head_end(answer: &[u8]) -> Option<usize> {
    let mut parts = answer.windows(HEAD_END.len());
    parts.position(|part| part == HEAD_END)
}

/// `None` if it is incomplete.
fn parse_reply(answer: &[u8]) -> Option<DaemonReply> {
    let (head, rest) = answer.split_at_checked(head_end(answer)?)?;
    let head = std::str::from_utf8(head).ok()?;
    let body = rest.get(HEAD_END.len()..)?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?;
    let status = status.split(' ').nth(1)?.parse().ok()?;
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let header = |wanted: &str| {
        let found = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let body = match header("content-length") {
        Some(length) => body.get(..length.parse().ok()?)?,
        None => body,
    };
    Some(DaemonReply {
        status,
        exit: header(headers::EXIT_CODE),
        stderr: header(headers::STDERR),
        nonce: header(headers::NONCE),
        proof: header(headers::PROOF),
        body: body.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_replies() {
        let text = "HTTP/1.1 200 OK\r\nX-Anyhook-Exit-Code: 2\r\nContent-Length: 2\r\n\r\n{}";
        let answer = parse_reply(text.as_bytes())
            .unwrap()
            .into_answer("u")
            .unwrap();
        assert_eq!((answer.stdout.as_str(), answer.exit), ("{}", 2));
        for end in 0..text.len() {
            assert!(parse_reply(&text.as_bytes()[..end]).is_none(), "{end}");
        }
        let other = parse_reply(b"HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
        assert!(other.into_answer("u").is_err());
    }
}
