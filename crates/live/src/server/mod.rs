//! The server: a thread with a runtime of its own, one for calls of the database, a sampler, and a few pages.

mod guard;
mod listener;
mod routes;
mod sampler;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use spillway::internal::vfs::Origin;
use spillway::{Error, Result};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::listener::Bounded;
use self::sampler::Sampler;
use crate::source::Source;

/// Address of the page, and access to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Port 0 is any free port.
    pub address: SocketAddr,
    /// Grants access. Needed with `allow_changes`, and unless `address` is loopback.
    pub token: Option<String>,
    /// The page can change options of the open database. Options that delete data stay as they are.
    pub allow_changes: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { address: (Ipv4Addr::LOCALHOST, 0).into(), token: None, allow_changes: false }
    }
}

/// A token shorter than this is guessed.
const TOKEN_BYTES_MIN: usize = 16;

impl Settings {
    fn check(&self) -> Result<()> {
        match &self.token {
            None if !self.address.ip().is_loopback() => Err(Error::invalid_argument(format!(
                "{} can be reached from other machines: give a token, or listen on 127.0.0.1",
                self.address
            ))),
            // Every user of this machine reaches a loopback address.
            None if self.allow_changes => Err(Error::invalid_argument(format!(
                "changes need a token, on {} too, which every user of this machine can reach: give one, such as of \
                 `openssl rand -hex 16`",
                self.address.ip()
            ))),
            Some(token) if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                let what = format!(
                    "a token is {TOKEN_BYTES_MIN} letters and digits or more, such as of `openssl rand -hex 16`"
                );
                Err(Error::invalid_argument(what))
            }
            _ => Ok(()),
        }
    }
}

/// A running server. Dropped, it ends.
pub struct Server {
    origin: Origin,
    address: SocketAddr,
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Descriptors of a runtime: of events, of what wakes it, and of signals.
const DESCRIPTORS: usize = 8;

/// Shared by all connections.
struct Shared {
    sampler: Arc<Sampler>,
    settings: Settings,
    /// The address in use: its port is none of `settings` if that has 0.
    address: SocketAddr,
}

impl Server {
    /// Listens, and serves until it is dropped.
    ///
    /// # Errors
    /// `InvalidArgument`: an address that needs a token, or a weak one. `Io`: the port is taken, or no threads or descriptors can be had.
    pub fn start(source: impl Source, settings: Settings) -> Result<Server> {
        settings.check()?;
        let at = settings.address.to_string();
        let io = |error| Error::io("listen", Path::new(&at), error).advise("choose another port, 0 for any");
        let listener = std::net::TcpListener::bind(settings.address).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let url = match &settings.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        };
        let io = |error| Error::io("serve the page at", Path::new(&at), error);
        // Where the program has tokio's signals, a runtime that lacks descriptors for them panics.
        let spare = (0..DESCRIPTORS).map(|_| listener.try_clone()).collect::<std::io::Result<Vec<_>>>();
        drop(spare.map_err(io)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
        let (stop, stopped) = oneshot::channel();
        let threads = |error| {
            io(error).advise("raise the limits of processes and memory (`ulimit -u`, `ulimit -v`, a container's)")
        };
        let shared = Arc::new(Shared { sampler: Sampler::new(source).map_err(threads)?, settings, address });
        let serve = move || runtime.block_on(serve(listener, shared, stopped));
        let thread = std::thread::Builder::new().name("spillway-live".into()).spawn(serve).map_err(threads)?;
        Ok(Server { origin: Origin::here(), address, url, stop: Some(stop), thread: Some(thread) })
    }

    /// The address in use.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it serves: false once it has failed, as the log says.
    pub fn is_serving(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// For a browser, token included.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return std::mem::forget((self.stop.take(), self.thread.take())); // the thread is the parent's
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => Bounded::new(listener),
        Err(error) => return tracing::error!(%error, "the live page cannot be served"),
    };
    let sampling = sampler::run(shared.clone());
    let serving = axum::serve(listener, routes::router(shared)).into_future();
    tokio::select! {
        _ = stopped => {}
        () = sampling => {}
        result = serving => {
            if let Err(error) = result {
                tracing::error!(%error, "the live page ended");
            }
        }
    }
}
