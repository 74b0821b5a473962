//! The daemon's lifecycle: bind, serve, drain, stop.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhook_store::{Store, StoreError, WatchGuard};
use axum::body::{Body, HttpBody as _};
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::app::{App, AppState, worker_threads};
use crate::archiving;
use crate::config::{DaemonConfig, DaemonLimits};
use crate::connections::{Connections, RequestBody};
use crate::guard::Peer;
use crate::host::HookHost;
use crate::journal_ingest::JournalIngester;
use crate::metrics::GaugeGuard;
use crate::routes::ConnectionInfo;
#[cfg(unix)]
use crate::socket::{self, OwnSocket};
use crate::{live_feed, page, routes};

/// Pause after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Pipes to a hook's process, and files that are read for it.
#[cfg(unix)]
const FILES_PER_HOOK: usize = 6;
/// The store, the journal, the runtime.
#[cfg(unix)]
const OTHER_FILES: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error("the daemon cannot start: {0}")]
    Start(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "a daemon that other machines can reach needs a token; set one, or listen on a loopback address"
    )]
    NoToken,
}

/// A daemon with a bound port.
pub struct Daemon {
    listener: TcpListener,
    #[cfg(unix)]
    socket: Option<OwnSocket>,
    /// Why the configured socket could not be used.
    socket_problem: Option<String>,
    app: App,
    /// Dropped before `app`, so that the store stops calling it.
    _watch: WatchGuard,
}

/// Stops a daemon from another thread.
#[derive(Clone)]
pub struct Stopper(App);

impl Stopper {
    /// Accepts no more requests and finishes the running ones; then `run` returns.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }
}

impl Daemon {
    pub fn bind(
        mut config: DaemonConfig,
        store: Arc<dyn Store>,
        host: Arc<dyn HookHost>,
    ) -> Result<Self, DaemonError> {
        if config.token.is_empty() && !config.is_loopback() {
            return Err(DaemonError::NoToken);
        }
        let listen = |source| DaemonError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).map_err(listen)?;
        listener.set_nonblocking(true)?;
        config.listen = listener.local_addr()?;
        #[cfg(not(unix))]
        let socket_problem = None;
        #[cfg(unix)]
        let mut socket_problem = None;
        #[cfg(unix)]
        let socket = config.socket.as_deref().and_then(|path| {
            let bound = OwnSocket::bind(path);
            bound
                .map_err(|error| socket_problem = Some(error.to_string()))
                .ok()
        });
        let app = Arc::new(AppState::new(config, store, host)?);
        let weak = Arc::downgrade(&app);
        let watch = app.store.watch(Arc::new(move || {
            if let Some(app) = weak.upgrade() {
                app.commits.send_modify(|count| *count += 1);
            }
        }))?;
        Ok(Self {
            listener,
            #[cfg(unix)]
            socket,
            socket_problem,
            app,
            _watch: watch,
        })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.app.config.listen
    }

    /// The socket that it listens on, too; an error if the configured one could not be used.
    pub fn local_socket(&self) -> Result<Option<&Path>, &str> {
        if let Some(problem) = &self.socket_problem {
            return Err(problem);
        }
        #[cfg(unix)]
        return Ok(self.socket.as_ref().map(OwnSocket::path));
        #[cfg(not(unix))]
        Ok(None)
    }

    /// A new link that opens the page once.
    pub fn link(&self) -> Result<String, DaemonError> {
        Ok(page::new_link(&self.app)?)
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.app.clone())
    }

    /// Serves until it is stopped. Blocks, on a runtime of its own.
    pub fn run(self) -> Result<(), DaemonError> {
        let limits = self.app.config.limits;
        raise_descriptor_limit(&limits);
        let ingester = JournalIngester::start(self.app.clone())?;
        archiving::start(&self.app)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .worker_threads(worker_threads())
            // Store queries must find a thread while every hook slot is taken, and hooks while
            // every query hangs.
            .max_blocking_threads(limits.hooks + limits.store_reads + 64)
            .thread_name("anyhook")
            .build()?;
        let served = runtime.block_on(self.serve());
        // Hooks that outlive the drain keep running; the next start ingests their journal lines.
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(ingester);
        served
    }

    async fn serve(&self) -> Result<(), DaemonError> {
        if self.app.config.signals {
            tokio::spawn(stop_on_signal(self.app.clone()));
        }
        tokio::spawn(live_feed::run(self.app.clone()));
        // Every connection holds a sender; when all are dropped, no connection is open.
        let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
        let server = |peer| ConnectionServer {
            app: self.app.clone(),
            router: routes::router(self.app.clone()),
            connections: self.connections(),
            peer,
            open: open.clone(),
        };
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let network = server(Peer::Network);
        let accept_network = network.accept_until_stopped(async || {
            let (stream, _) = listener.accept().await?;
            // Responses are small, and the caller is blocked until they arrive.
            let _ = stream.set_nodelay(true);
            Ok(Some(stream))
        });
        #[cfg(unix)]
        if let Some(socket) = &self.socket {
            let listener = socket.listener.try_clone()?;
            let listener = tokio::net::UnixListener::from_std(listener)?;
            let own = server(Peer::SameUser);
            let accept_own = own.accept_until_stopped(async || {
                let (stream, _) = listener.accept().await?;
                Ok(socket::is_same_user(&stream).then_some(stream))
            });
            tokio::join!(accept_network, accept_own);
            socket.remove();
        } else {
            accept_network.await;
        }
        #[cfg(not(unix))]
        accept_network.await;
        drop(listener);
        drop(network);
        drop(open);
        let _ = tokio::time::timeout(self.app.config.limits.drain, all_closed.recv()).await;
        Ok(())
    }

    fn connections(&self) -> Arc<Connections> {
        let limits = &self.app.config.limits;
        Connections::new(limits.connections + limits.streams)
    }
}

/// Serves the connections of one listener.
struct ConnectionServer {
    app: App,
    router: axum::Router,
    connections: Arc<Connections>,
    peer: Peer,
    open: mpsc::Sender<Infallible>,
}

impl ConnectionServer {
    /// `accept` returns `None` for a connection that gets no answer.
    async fn accept_until_stopped<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        mut accept: impl AsyncFnMut() -> std::io::Result<Option<S>>,
    ) {
        let mut stop = self.app.stop.subscribe();
        while !*stop.borrow() {
            tokio::select! {
                biased;
                _ = stop.changed() => break,
                accepted = accept() => match accepted {
                    Ok(Some(stream)) => self.serve(stream),
                    Ok(None) => {}
                    // Probably out of file descriptors: some are closed while this waits.
                    Err(_) => {
                        self.connections.close_oldest();
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                },
            }
        }
    }

    fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S) {
        let app = self.app.clone();
        let Some(connection_slot) = self.connections.open() else {
            app.metrics.record_refused_connection();
            tokio::spawn(reject_connection(stream));
            return;
        };
        let counted = GaugeGuard::new(app.clone(), |metrics| &metrics.connections);
        let router = self.router.clone();
        let info = ConnectionInfo {
            peer: self.peer,
            tracker: connection_slot.tracker(),
        };
        let service = service_fn(move |request: Request<Incoming>| {
            let tracker = info.tracker.clone();
            let request = request.map(|body| Body::new(RequestBody::new(body, tracker.clone())));
            let response = routes::respond(app.clone(), router.clone(), request, info.clone());
            async move {
                let response = response.await;
                // A stream has no size; it is busy until it ends.
                if response.body().size_hint().exact().is_some() {
                    tracker.end();
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.app.config.limits.head_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut stop = self.app.stop.subscribe();
        let open = self.open.clone();
        tokio::spawn(async move {
            let _open = (counted, open);
            let mut connection = std::pin::pin!(connection);
            // Errors are ignored: the caller has hung up.
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
                _ = connection.as_mut() => return,
                () = connection_slot.closed() => return,
            }
            let _ = connection.await;
        });
    }
}

async fn reject_connection(mut stream: impl AsyncWrite + Unpin) {
    let response = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(response)).await;
}

/// The usual limit of 1024 open files is less than the connections and hooks that this
/// daemon allows. If it cannot be raised, waiting connections are closed earlier.
fn raise_descriptor_limit(limits: &DaemonLimits) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let connections = 2 * (limits.connections + limits.streams);
        let wanted = connections + FILES_PER_HOOK * limits.hooks + OTHER_FILES;
        let mut limit = getrlimit(Resource::Nofile);
        let wanted = wanted as u64;
        let wanted = limit.maximum.map_or(wanted, |maximum| wanted.min(maximum));
        if limit.current.is_some_and(|current| current < wanted) {
            limit.current = Some(wanted);
            let _ = setrlimit(Resource::Nofile, limit);
        }
    }
    #[cfg(not(unix))]
    let _ = limits;
}

async fn stop_on_signal(app: App) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut terminate)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
    app.stop.send_replace(true);
}
