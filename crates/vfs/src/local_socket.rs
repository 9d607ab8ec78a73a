//! Unix sockets for programs of the same user on this machine: lines of text, with a limit on their length and their time.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is where sockets are called")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind as IoKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::{Error, ErrorKind, Result};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// Longest path of a socket. A longer one is reached by its directory's descriptor.
const PATH_BYTES_MAX: usize = 107;

/// A thread waiting for a client looks this often whether it is to stop, if nothing else wakes it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A listening socket.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
}

/// A connection.
#[derive(Debug)]
pub struct LocalStream {
    stream: UnixStream,
    path: PathBuf,
    /// Read, but not yet returned.
    rest: Vec<u8>,
}

/// A path that the system takes, and the open directory that it goes through.
struct Short {
    path: PathBuf,
    _dir: Option<File>,
}

impl Short {
    fn of(path: &Path) -> std::io::Result<Short> {
        let name = path.file_name().unwrap_or(OsStr::new("."));
        if path.as_os_str().len() <= PATH_BYTES_MAX || !cfg!(target_os = "linux") {
            return Ok(Short { path: path.to_owned(), _dir: None });
        }
        let dir = File::open(path.parent().unwrap_or(Path::new(".")))?;
        let short = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
        Ok(Short { path: short, _dir: Some(dir) })
    }
}

impl LocalListener {
    /// Listens at `path`, for this user only, in place of any socket or file there. It appears there complete: its mode is
    /// set before.
    ///
    /// # Errors
    /// `Io`.
    pub fn bind(path: &Path) -> Result<LocalListener> {
        let io = |error| Error::io("listen at", path, error);
        let made = path.with_extension("new");
        let (made, place) = (Short::of(&made).map_err(io)?, Short::of(path).map_err(io)?);
        let _ = std::fs::remove_file(&made.path); // left by a process that died in between
        let listener = UnixListener::bind(&made.path).map_err(io)?;
        let user_only = std::fs::Permissions::from_mode(0o600);
        let shown =
            std::fs::set_permissions(&made.path, user_only).and_then(|()| std::fs::rename(&made.path, &place.path));
        let shown = shown.and_then(|()| Ok(set_socket_timeout(&listener, Timeout::Recv, Some(LOOK_EVERY))?));
        if let Err(error) = shown {
            let _ = std::fs::remove_file(&made.path);
            return Err(io(error));
        }
        Ok(LocalListener { listener, path: path.to_owned() })
    }

    /// Waits for a client, a second at most; `None` if none came.
    ///
    /// # Errors
    /// `Io`. After [`stop`](Self::stop) at once.
    pub fn accept(&self) -> Result<Option<LocalStream>> {
        match self.listener.accept() {
            Ok((stream, _)) => Ok(Some(LocalStream { stream, path: self.path.clone(), rest: Vec::new() })),
            Err(error) if is_late(error.kind()) => Ok(None),
            Err(error) => Err(Error::io("accept a client of", &self.path, error)),
        }
    }

    /// Takes the socket's name away, and wakes a thread in [`accept`](Self::accept).
    pub fn stop(&self) {
        if let Ok(place) = Short::of(&self.path) {
            let _ = std::fs::remove_file(&place.path); // gone already, perhaps
        }
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both); // else the next look ends it
    }
}

fn is_late(kind: IoKind) -> bool {
    matches!(kind, IoKind::WouldBlock | IoKind::TimedOut | IoKind::Interrupted)
}

impl LocalStream {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// `NotFound`-like `Io` if there is no socket; `Busy` if nobody listens: its process has died.
    pub fn connect(path: &Path) -> Result<LocalStream> {
        let connected = Short::of(path).and_then(|short| UnixStream::connect(&short.path));
        match connected {
            Ok(stream) => Ok(LocalStream { stream, path: path.to_owned(), rest: Vec::new() }),
            Err(error) if error.kind() == IoKind::ConnectionRefused => {
                Err(Error::new(ErrorKind::Busy, "nobody listens: the process that made it has died").at_path(path))
            }
            Err(error) => Err(Error::io("connect to", path, error)),
        }
    }

    /// Reads a line of at most `bytes_max` bytes, without its end, within `time`. `None` at the end of the stream.
    ///
    /// # Errors
    /// `Io`: too late. `InvalidArgument`: too long, or no text.
    pub fn read_line(&mut self, bytes_max: usize, time: Duration) -> Result<Option<String>> {
        let (start, mut looked) = (Instant::now(), 0);
        loop {
            if let Some(end) = self.rest.iter().skip(looked).position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.rest.drain(..=looked + end).collect();
                line.pop();
                let text = String::from_utf8(line);
                return text.map(Some).map_err(|_| Error::invalid_argument("a line that is not UTF-8"));
            }
            looked = self.rest.len();
            if looked > bytes_max {
                return Err(Error::invalid_argument(format!("a line of more than {bytes_max} bytes")));
            }
            let left = time.saturating_sub(start.elapsed()).max(Duration::from_micros(1));
            let late = || Error::io("read from", &self.path, IoKind::TimedOut.into());
            if start.elapsed() > time {
                return Err(late());
            }
            let io = |error| Error::io("read from", &self.path, error);
            self.stream.set_read_timeout(Some(left)).map_err(io)?;
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => self.rest.extend(piece.iter().take(read)),
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) if is_late(error.kind()) => return Err(late()),
                Err(error) => return Err(io(error)),
            }
        }
    }

    /// Writes a line and its end within `time`.
    ///
    /// # Errors
    /// `Io`: the reader is gone, or too slow.
    pub fn write_line(&mut self, line: &str, time: Duration) -> Result<()> {
        let io = |error| Error::io("write to", &self.path, error);
        let (start, mut left) = (Instant::now(), line.as_bytes());
        let mut end: &[u8] = b"\n";
        loop {
            if left.is_empty() {
                left = std::mem::take(&mut end);
            }
            if left.is_empty() {
                return Ok(());
            }
            let spare = time.checked_sub(start.elapsed()).filter(|spare| !spare.is_zero());
            let spare = spare.ok_or_else(|| io(IoKind::TimedOut.into()))?;
            self.stream.set_write_timeout(Some(spare)).map_err(io)?;
            match self.stream.write(left) {
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(io(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn lines_go_both_ways_and_limits_hold() {
        let dir = tempfile::tempdir().unwrap();
        // Longer than a socket's path may be.
        let deep = dir.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        for path in [dir.path().join("s.sock"), deep.join("s.sock")] {
            std::fs::write(&path, b"stale").unwrap();
            let listener = LocalListener::bind(&path).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let mut client = LocalStream::connect(&path).unwrap();
            let mut server = listener.accept().unwrap().expect("a client waits");
            client.write_line("one", SECOND).unwrap();
            client.write_line(&"x".repeat(100), SECOND).unwrap();
            assert_eq!(server.read_line(10, SECOND).unwrap().as_deref(), Some("one"));
            assert_eq!(server.read_line(200, SECOND).unwrap().map(|line| line.len()), Some(100));
            assert!(server.read_line(10, Duration::from_millis(5)).is_err(), "nothing comes");
            // The client reads nothing.
            assert!(server.write_line(&"y".repeat(4 << 20), Duration::from_millis(20)).is_err());
            client.write_line(&"z".repeat(50 << 10), SECOND).unwrap();
            assert_eq!(server.read_line(100, SECOND).unwrap_err().kind(), ErrorKind::InvalidArgument);
            drop(client);
            listener.stop();
            assert!(!path.exists() && listener.accept().is_err(), "stopped");
            assert!(LocalStream::connect(&path).is_err());
        }
    }

    #[test]
    fn a_dead_process_is_told_from_a_missing_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        assert!(LocalStream::connect(&path).unwrap_err().is_not_found());
        drop(UnixListener::bind(&path).unwrap());
        assert_eq!(LocalStream::connect(&path).unwrap_err().kind(), ErrorKind::Busy);
    }
}
