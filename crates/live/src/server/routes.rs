//! The pages.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use spillway::observe::Observation;

use super::sampler::{Sampler, Viewer};
use super::{Shared, guard};
use crate::options;

/// Bytes of a change.
const BODY_BYTES_MAX: usize = 16 << 10;

const FILES: &[(&str, &str, &str)] = &[
    ("app.js", "text/javascript; charset=utf-8", include_str!("../page/app.js")),
    ("charts.js", "text/javascript; charset=utf-8", include_str!("../page/charts.js")),
    ("panels.js", "text/javascript; charset=utf-8", include_str!("../page/panels.js")),
    ("levels.js", "text/javascript; charset=utf-8", include_str!("../page/levels.js")),
    ("lanes.js", "text/javascript; charset=utf-8", include_str!("../page/lanes.js")),
    ("text.js", "text/javascript; charset=utf-8", include_str!("../page/text.js")),
    ("style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
];

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/page/{file}", get(file))
        .route("/stream", get(stream_of_frames))
        .route("/observation", get(observation))
        .route("/metrics", get(metrics))
        .route("/options", post(set_option))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(shared.clone(), guard::check))
        .with_state(shared)
}

/// The page. The address with the token leaves a cookie and leads to the one without. Cookie and address name no path:
/// browsers take it from the address they asked for, so the page works below a path of a proxy.
async fn index(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match &shared.settings.token {
        Some(token) if guard::token_of_query(&request).is_some() => {
            // Lax: the address can be followed from another site, such as a chat. A change needs a header that no link sends.
            let cookie = format!("{}={token}; HttpOnly; SameSite=Lax", guard::token_cookie(&shared));
            (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, "./".to_string())]).into_response()
        }
        _ => ([(CONTENT_TYPE, "text/html; charset=utf-8")], include_str!("../page/index.html")).into_response(),
    }
}

async fn file(Path(wanted): Path<String>) -> Response {
    match FILES.iter().find(|(name, ..)| *name == wanted) {
        Some((_, kind, text)) => ([(CONTENT_TYPE, *kind)], *text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Server-sent events: `history` once, then a `frame` for each reading.
async fn stream_of_frames(State(shared): State<Arc<Shared>>) -> Response {
    let Some(viewer) = shared.sampler.viewer() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "Too many viewers: close a page.\n").into_response();
    };
    let head = json!({ "points": shared.sampler.history(), "allow_changes": shared.settings.allow_changes });
    let first = event("history", &head.to_string());
    let frames = stream::unfold((viewer, Some(first)), next_event);
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

type Next = Option<(Result<Bytes, Infallible>, (Viewer, Option<Bytes>))>;

async fn next_event((mut viewer, first): (Viewer, Option<Bytes>)) -> Next {
    match first {
        Some(first) => Some((Ok(first), (viewer, None))),
        None => {
            let frame = viewer.next().await?;
            Some((Ok(event("frame", &frame)), (viewer, None)))
        }
    }
}

/// JSON of one line: no line of it can be taken for another event.
fn event(name: &str, json: &str) -> Bytes {
    format!("event: {name}\ndata: {json}\n\n").into()
}

/// A whole reading as JSON.
async fn observation(State(shared): State<Arc<Shared>>) -> Response {
    reading(shared, "application/json", Observation::to_json).await
}

/// A reading for Prometheus.
async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    reading(shared, "application/openmetrics-text; version=1.0.0; charset=utf-8", Observation::to_metrics).await
}

async fn reading(shared: Arc<Shared>, kind: &'static str, text: fn(&Observation) -> String) -> Response {
    match shared.sampler.call(move |sampler| sampler.source().observe().map(|now| text(&now))).await {
        Some(Ok(text)) => ([(CONTENT_TYPE, kind)], text).into_response(),
        Some(Err(error)) => (StatusCode::GONE, format!("{error}\n")).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    family: Option<String>,
    name: String,
    value: String,
}

async fn set_option(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    if !shared.settings.allow_changes {
        return (StatusCode::FORBIDDEN, "The page is read-only: start it with --allow-changes.\n").into_response();
    }
    let change: Change = match serde_json::from_slice(&body) {
        Ok(change) => change,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("not a change: {error}\n")).into_response(),
    };
    if options::deletes_data(&change.name) {
        let name = change.name;
        let what = format!(
            "{name} deletes data or loses it, and is not changed from here: set it in the program (Db::set_options)\n"
        );
        return (StatusCode::FORBIDDEN, what).into_response();
    }
    let set =
        move |sampler: &Sampler| sampler.source().set_option(change.family.as_deref(), &change.name, &change.value);
    match shared.sampler.call(set).await {
        Some(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Some(Err(error)) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
