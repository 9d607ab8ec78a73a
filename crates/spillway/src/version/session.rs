//! Sessions: a database's opens for writing. They tell its logs and backups from those of a diverged copy of its files.

use base::coding::{Reader, put_varint32, put_varint64};
use base::{FileNumber, Result, SeqNo};

use super::file_meta_codec::{decode_number, decode_seq};

/// One open for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// A random number, never 0. Every log of the session has it in its header.
    pub id: u32,
    /// Files of the session have this number or a larger one.
    pub from: FileNumber,
    /// The MANIFEST's last sequence number before the session.
    pub after: SeqNo,
}

/// Sessions in a MANIFEST. Logs of earlier ones are not checked, and no logs are kept for backups of earlier ones.
const KEPT: usize = 100;

/// Adds a session.
pub fn begin(sessions: &mut Vec<Session>, session: Session) {
    sessions.drain(..(sessions.len() + 1).saturating_sub(KEPT));
    sessions.push(session);
}

/// The id of the log `number`'s session; `None`: unknown.
pub fn of_log(sessions: &[Session], number: FileNumber) -> Option<u32> {
    sessions.iter().rfind(|session| session.from <= number).map(|session| session.id)
}

pub(super) fn encode(sessions: &[Session]) -> Vec<u8> {
    let mut out = Vec::new();
    for session in sessions {
        put_varint32(&mut out, session.id);
        put_varint64(&mut out, session.from.0);
        put_varint64(&mut out, session.after.0);
    }
    out
}

pub(super) fn decode(field: &[u8]) -> Result<Vec<Session>> {
    let (mut reader, mut sessions) = (Reader::new(field), Vec::new());
    while !reader.is_empty() {
        let id = reader.varint32("session")?;
        let from = decode_number(&mut reader, "session")?;
        sessions.push(Session { id, from, after: decode_seq(&mut reader, "session")? });
    }
    Ok(sessions)
}
