//! The daemon's life: bind, serve, drain, end.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhook_store::{Store, StoreError, Watch};
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::app::{App, Shared, workers};
use crate::config::Config;
use crate::host::HookHost;
use crate::metrics::Held;
use crate::tail::Keeper;
use crate::{page, routes};

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
        "a daemon that others can reach needs a token: give it one, or listen on a loopback address"
    )]
    NoToken,
}

/// A daemon that is bound, and may be running.
pub struct Daemon {
    config: Config,
    listener: TcpListener,
    address: SocketAddr,
    app: App,
    /// Before `app` ends, the store stops calling it.
    _watch: Watch,
}

/// Ends a daemon from elsewhere.
#[derive(Clone)]
pub struct Stopper(App);

impl Stopper {
    /// Takes no more requests, finishes those under way, then `run` returns.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }
}

impl Daemon {
    pub fn bind(
        mut config: Config,
        store: Arc<dyn Store>,
        host: Arc<dyn HookHost>,
    ) -> Result<Self, DaemonError> {
        if config.token.is_empty() && !config.listen.ip().is_loopback() {
            return Err(DaemonError::NoToken);
        }
        let listen = |source| DaemonError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).map_err(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        config.listen = address;
        let app = Arc::new(Shared::new(&config, base(address), store, host));
        let weak = Arc::downgrade(&app);
        let watch = app.store.watch(Arc::new(move || {
            if let Some(app) = weak.upgrade() {
                app.commits.send_modify(|count| *count += 1);
            }
        }))?;
        Ok(Self {
            config,
            listener,
            address,
            app,
            _watch: watch,
        })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A new link that opens the page, once.
    pub fn link(&self) -> Result<String, DaemonError> {
        Ok(page::new_link(&self.app)?)
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.app.clone())
    }

    /// Serves until it is stopped. Blocks; brings its own runtime.
    pub fn run(self) -> Result<(), DaemonError> {
        let keeper = Keeper::start(
            self.app.clone(),
            self.config.journal.clone(),
            self.config.retention,
        )?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_io()
            .enable_time()
            .worker_threads(workers())
            // Questions to the store must find a thread while every hook slot is taken.
            .max_blocking_threads(self.config.limits.hooks + 64)
            .thread_name("anyhook")
            .build()?;
        let served = runtime.block_on(self.serve());
        // Hooks that outlive the drain go on without us; their journal lines are kept for the next start.
        runtime.shutdown_timeout(Duration::from_secs(1));
        keeper.finish();
        served
    }

    async fn serve(&self) -> Result<(), DaemonError> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        if self.config.signals {
            tokio::spawn(stop_on_signal(self.app.clone()));
        }
        let router = routes::router(self.app.clone());
        // Every connection holds a sender; when all are gone, nobody is being served.
        let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
        let mut stop = self.app.stop.subscribe();
        while !*stop.borrow() {
            let accepted = {
                let mut accept = std::pin::pin!(listener.accept());
                let mut stopped = std::pin::pin!(stop.changed());
                std::future::poll_fn(|context| {
                    if stopped.as_mut().poll(context).is_ready() {
                        return std::task::Poll::Ready(None);
                    }
                    accept.as_mut().poll(context).map(Some)
                })
                .await
            };
            match accepted {
                Some(Ok((stream, _))) => self.connect(stream, &router, open.clone()),
                // Out of descriptors: waiting lets some come back.
                Some(Err(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                None => break,
            }
        }
        drop(listener);
        drop(open);
        let _ = tokio::time::timeout(self.config.limits.drain, all_closed.recv()).await;
        Ok(())
    }

    fn connect(&self, stream: TcpStream, router: &axum::Router, open: mpsc::Sender<Infallible>) {
        let app = self.app.clone();
        let limit = i64::try_from(self.config.limits.connections).unwrap_or(i64::MAX);
        if app.metrics.connections.load(Ordering::Relaxed) >= limit {
            app.metrics.connection_refused();
            tokio::spawn(turn_away(stream));
            return;
        }
        let held = Held::new(Gauge(app.clone()));
        // Answers are small and waited for.
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = routes::answer(app.clone(), router.clone(), request.map(Body::new));
            async { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.config.limits.head_timeout)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut stop = self.app.stop.subscribe();
        tokio::spawn(async move {
            let _held = (held, open);
            let mut connection = std::pin::pin!(connection);
            let mut stopped = std::pin::pin!(stop.wait_for(|stop| *stop));
            let mut told = false;
            // A caller that hangs up is no failure of ours.
            std::future::poll_fn(|context| {
                if !told && stopped.as_mut().poll(context).is_ready() {
                    told = true;
                    connection.as_mut().graceful_shutdown();
                }
                connection.as_mut().poll(context).map(drop)
            })
            .await;
        });
    }
}

struct Gauge(App);

impl AsRef<AtomicI64> for Gauge {
    fn as_ref(&self) -> &AtomicI64 {
        &self.0.metrics.connections
    }
}

async fn turn_away(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(answer)).await;
}

async fn stop_on_signal(app: App) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut end)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) {
            std::future::poll_fn(|context| {
                let came =
                    interrupt.poll_recv(context).is_ready() || end.poll_recv(context).is_ready();
                if came {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
    app.stop.send_replace(true);
}

/// What a browser on this machine can open.
fn base(address: SocketAddr) -> String {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    format!("http://{reachable}")
}
