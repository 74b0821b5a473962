//! Where a running app-server listens: `ws://host:port` or `unix://path`, with
//! WebSocket framing on both.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The server's own limit is far below.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// Where Codex puts its socket by default, below its home.
const DEFAULT_SOCKET: &str = "app-server-control/app-server-control.sock";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Tcp { url: String, address: String },
    Unix { path: PathBuf },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("`{0}` is not an address of an app-server; use `ws://…` or `unix://…`")]
    Scheme(String),
    #[error("`{0}`: TLS is not supported; forward the port or use `unix://`")]
    Tls(String),
    #[error("`{0}` has no host and port; use for example `ws://127.0.0.1:4222`")]
    Host(String),
    #[error("`unix://` has no path; use for example `unix:///run/codex.sock`")]
    Path,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if let Some(path) = text.strip_prefix("unix://") {
            if path.is_empty() {
                return Err(EndpointError::Path);
            }
            return Ok(Self::Unix { path: path.into() });
        }
        if text.starts_with("wss://") {
            return Err(EndpointError::Tls(text.into()));
        }
        let rest = text
            .strip_prefix("ws://")
            .ok_or_else(|| EndpointError::Scheme(text.into()))?;
        let address = rest.split(['/', '?']).next().unwrap_or_default();
        let port = address
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() || text.into_client_request().is_err() {
            return Err(EndpointError::Host(text.into()));
        }
        Ok(Self::Tcp {
            url: text.into(),
            address: address.into(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { url, .. } => f.write_str(url),
            Self::Unix { path } => write!(f, "unix://{}", path.display()),
        }
    }
}

pub(crate) trait SocketStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> SocketStream for T {}

pub(crate) type Socket = WebSocketStream<Box<dyn SocketStream>>;

impl Endpoint {
    /// The socket that Codex uses by default.
    pub fn default_in(codex_home: &Path) -> Self {
        Self::Unix {
            path: codex_home.join(DEFAULT_SOCKET),
        }
    }

    pub(crate) async fn connect(&self, bearer: Option<&str>) -> Result<Socket, Error> {
        let (mut request, stream) = match self {
            Self::Tcp { url, address } => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                (
                    url.into_client_request()?,
                    Box::new(stream) as Box<dyn SocketStream>,
                )
            }
            Self::Unix { path } => (
                "ws://localhost/".into_client_request()?,
                connect_unix(path).await?,
            ),
        };
        if let Some(token) = bearer {
            let value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| Error::Io(std::io::ErrorKind::InvalidInput.into()))?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
        Ok(socket)
    }
}

#[cfg(unix)]
async fn connect_unix(path: &Path) -> Result<Box<dyn SocketStream>, Error> {
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

#[cfg(not(unix))]
async fn connect_unix(_: &Path) -> Result<Box<dyn SocketStream>, Error> {
    Err(Error::Io(std::io::ErrorKind::Unsupported.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let good = |text: &str| text.parse::<Endpoint>().unwrap().to_string();
        assert_eq!(good("ws://127.0.0.1:4222"), "ws://127.0.0.1:4222");
        assert_eq!(good("ws://[::1]:4222/x"), "ws://[::1]:4222/x");
        assert_eq!(good("unix:///run/a b.sock"), "unix:///run/a b.sock");
        for (text, error) in [
            (
                "http://127.0.0.1:1",
                EndpointError::Scheme("http://127.0.0.1:1".into()),
            ),
            (
                "wss://127.0.0.1:1",
                EndpointError::Tls("wss://127.0.0.1:1".into()),
            ),
            (
                "ws://127.0.0.1",
                EndpointError::Host("ws://127.0.0.1".into()),
            ),
            (
                "ws://:99999999",
                EndpointError::Host("ws://:99999999".into()),
            ),
            ("unix://", EndpointError::Path),
            ("", EndpointError::Scheme(String::new())),
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(error));
        }
    }
}
