//! Who may look, and who may change.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Shared;

/// Browsers keep cookies by host alone: the name tells the servers of one host apart by their ports.
pub(super) fn token_cookie(shared: &Shared) -> String {
    format!("spillway_token_{}", shared.address.port())
}

/// A page of another site cannot send it without asking first.
const CHANGE_HEADER: &str = "x-spillway-change";

pub(super) async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let refused = match &shared.settings.token {
        Some(token) if !has_token(&request, &token_cookie(&shared), token) => Some((
            StatusCode::UNAUTHORIZED,
            "The token is missing or wrong: open the address that the server printed.\n",
        )),
        // Without a token whoever is on this machine may look, but no site on the web by a name of its own.
        None if !is_local(request.headers()) => {
            Some((StatusCode::FORBIDDEN, "This server answers to localhost and loopback addresses only.\n"))
        }
        _ if request.method() == Method::POST && !request.headers().contains_key(CHANGE_HEADER) => {
            Some((StatusCode::FORBIDDEN, "Changes need the header x-spillway-change.\n"))
        }
        _ => None,
    };
    let mut response = match refused {
        Some(answer) => answer.into_response(),
        None => next.run(request).await,
    };
    harden(&mut response);
    response
}

fn harden(response: &mut Response<Body>) {
    const ALL: [(&str, &str); 5] = [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    for (name, value) in ALL {
        response.headers_mut().insert(name, axum::http::HeaderValue::from_static(value));
    }
}

fn is_local(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    hosts.next().is_none() && host.is_some_and(is_loopback)
}

/// Whether an authority is `localhost` or a loopback address, with a port or without one.
fn is_loopback(authority: &str) -> bool {
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// Any right token counts, in whatever place: a cookie of an earlier token can be beside it.
fn has_token(request: &Request, cookie: &str, token: &str) -> bool {
    let values = |name| request.headers().get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let bearers = values(AUTHORIZATION).filter_map(|value| value.split_once(' '));
    let bearers = bearers.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token);
    let cookies = values(COOKIE).flat_map(|all| all.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let cookies = cookies.filter(|(name, _)| *name == cookie).map(|(_, value)| value);
    let mut given = bearers.chain(cookies).chain(token_of_query(request));
    given.any(|given| is_same(given.as_bytes(), token.as_bytes()))
}

/// The token in the address, which the first visit has.
pub(super) fn token_of_query(request: &Request) -> Option<&str> {
    let pairs = request.uri().query()?.split('&');
    pairs.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == "token").map(|(_, value)| value)
}

/// Takes as long for a wrong first byte as for a wrong last one.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
