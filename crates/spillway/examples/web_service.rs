// A key-value service over HTTP on tokio, which ends gracefully: it finishes the requests that it has, then closes the
// database. Run it with
//
//     cargo run --example web_service
//     curl -X PUT -d red localhost:3000/fruit/apple
//     curl localhost:3000/fruit/apple
//     curl localhost:3000/fruit
//
// and end it with Ctrl-C. `PORT` sets another port.

use std::fmt::Write;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use spillway::{AsyncDb, Db, ErrorKind, Options};
use tokio::net::TcpListener;

/// Entries that a list of keys fetches at a time, and shows at most.
const LISTED_MAX: usize = 1000;

/// An error of the database as a response.
struct Failure(spillway::Error);

impl From<spillway::Error> for Failure {
    fn from(error: spillway::Error) -> Self {
        Failure(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.0.kind() {
            ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
            ErrorKind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
            ErrorKind::Closed | ErrorKind::ReadOnly | ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, format!("{}\n", self.0)).into_response()
    }
}

type Key = Path<(String, String)>;

async fn show(State(db): State<AsyncDb>, Path((kind, name)): Key) -> Result<Response, Failure> {
    Ok(match db.get(format!("{kind}/{name}")).await? {
        Some(value) => value.to_vec().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

async fn store(State(db): State<AsyncDb>, Path((kind, name)): Key, value: Bytes) -> Result<StatusCode, Failure> {
    db.put(format!("{kind}/{name}"), value).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(State(db): State<AsyncDb>, Path((kind, name)): Key) -> Result<StatusCode, Failure> {
    db.delete(format!("{kind}/{name}")).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn list(State(db): State<AsyncDb>, Path(kind): Path<String>) -> Result<String, Failure> {
    let mut text = String::new();
    for (key, value) in db.prefix(format!("{kind}/")).next_chunk(LISTED_MAX).await? {
        let _ = writeln!(text, "{}\t{} bytes", String::from_utf8_lossy(&key), value.len());
    }
    Ok(text)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join("spillway-web-service");
    // A synced write runs on a blocking thread: what the service has confirmed survives a loss of power.
    let db = AsyncDb::open_with(&dir, &Options::new().sync_writes(true)).await?;

    let key = get(show).put(store).delete(remove);
    let service = Router::new().route("/{kind}", get(list)).route("/{kind}/{name}", key).with_state(db.clone());
    let port = std::env::var("PORT").unwrap_or_else(|_| "3000".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}, Ctrl-C ends it", listener.local_addr()?);
    axum::serve(listener, service)
        .with_graceful_shutdown(async {
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;

    // The requests are done. Closing tells of errors; nothing confirmed would be lost without it.
    db.close().await?;
    println!("closed; the next start has what was stored");
    Db::destroy(&dir)?; // a service leaves this out
    Ok(())
}
