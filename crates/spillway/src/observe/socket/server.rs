//! The serving side: a thread that accepts, and one for each client while it is attached.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::Result;
use vfs::{LocalListener, LocalStream, Vfs};

use super::{Answer, CLIENTS_MAX, IDLE_MAX, OptionChange, REQUEST_BYTES_MAX, Request, SOCKET_NAME, WRITE_TIME_MAX};
use crate::observe::events::ObservedEvents;
use crate::observe::observation::Observation;

/// What a server shows. It keeps no database open: each call fails once it is closed.
pub(crate) trait Served: Send + Sync {
    /// # Errors
    /// `Closed`.
    fn observation(&self) -> Result<Observation>;

    /// # Errors
    /// `Closed`.
    fn events(&self, since: u64) -> Result<ObservedEvents>;

    /// # Errors
    /// `Closed`, `ReadOnly`: changes are not allowed; or those of the change.
    fn set(&self, change: &OptionChange) -> Result<()>;
}

struct Shared {
    vfs: Arc<dyn Vfs>,
    listener: LocalListener,
    served: Box<dyn Served>,
    is_over: AtomicBool,
    clients: AtomicUsize,
}

/// A serving thread. Its clients end with the next request after [`stop`](Self::stop).
pub(crate) struct Server(Arc<Shared>);

/// Counts a client while it is attached.
struct Attendance(Arc<Shared>);

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    /// Serves at the socket in `dir`, in place of one that a dead process left. The caller holds the directory's lock.
    ///
    /// # Errors
    /// `Unsupported`, `Io`: there is no server then.
    pub fn start(vfs: &Arc<dyn Vfs>, dir: &Path, served: Box<dyn Served>) -> Result<Server> {
        let listener = vfs.listen(&dir.join(SOCKET_NAME))?;
        let (is_over, clients) = (AtomicBool::new(false), AtomicUsize::new(0));
        let shared = Arc::new(Shared { vfs: vfs.clone(), listener, served, is_over, clients });
        let server = Server(shared.clone());
        // Not joined: a close waits for nobody.
        let started = vfs.spawn("spillway-observe", Box::new(move || accept_all(&shared)));
        match started {
            Ok(_) => Ok(server),
            Err(error) => {
                server.stop();
                Err(error)
            }
        }
    }

    /// Removes the socket and ends the thread, without waiting for it.
    pub fn stop(&self) {
        if !self.0.is_over.swap(true, Ordering::AcqRel) {
            self.0.listener.stop();
        }
    }
}

fn accept_all(shared: &Arc<Shared>) {
    while !shared.is_over.load(Ordering::Acquire) {
        match shared.listener.accept() {
            Ok(Some(client)) => admit(shared, client),
            Ok(None) => {}
            // Out of descriptors, perhaps: not to be tried without a rest.
            Err(_) if !shared.is_over.load(Ordering::Acquire) => shared.vfs.sleep(super::WRITE_TIME_MAX / 50),
            Err(_) => {}
        }
    }
}

fn admit(shared: &Arc<Shared>, mut client: LocalStream) {
    let attendance = Attendance(shared.clone());
    if shared.clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS_MAX {
        let busy = Answer::Error(format!("{CLIENTS_MAX} clients are attached already: try again later"));
        let _ = client.write_line(&line_of(&busy), WRITE_TIME_MAX / 50); // it need not be told
        return;
    }
    // Without a thread the client finds the stream ended.
    let _ = shared.vfs.spawn("spillway-observe-client", Box::new(move || attend(&attendance.0, client)));
}

/// Answers until the client goes, is late, or the server is over.
fn attend(shared: &Shared, mut client: LocalStream) {
    while let Ok(Some(line)) = client.read_line(REQUEST_BYTES_MAX, IDLE_MAX) {
        let answer = Request::parse(&line).and_then(|request| answer(&*shared.served, &request));
        let answer = answer.unwrap_or_else(|error| Answer::Error(error.to_string()));
        let is_over = shared.is_over.load(Ordering::Acquire);
        if client.write_line(&line_of(&answer), WRITE_TIME_MAX).is_err() || is_over {
            return;
        }
    }
}

fn answer(served: &dyn Served, request: &Request) -> Result<Answer> {
    match request {
        Request::Observation => Ok(Answer::Observation(Box::new(served.observation()?))),
        Request::Metrics => Ok(Answer::Metrics(served.observation()?.to_metrics())),
        Request::Events(since) => Ok(Answer::Events(served.events(*since)?)),
        Request::Set(change) => served.set(change).map(|()| Answer::Done),
    }
}

fn line_of(answer: &Answer) -> String {
    serde_json::to_string(answer).unwrap_or_else(|_| r#"{"error":"no answer"}"#.to_owned())
}
