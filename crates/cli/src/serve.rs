//! `spillway serve`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use live::{Server, Settings};
use spillway::internal::shell;
use spillway::internal::vfs::{self, IoClass, RealVfs};

use crate::failure::{Failure, Outcome, warn};
use crate::interrupt::Interrupt;
use crate::watched::{self, WatchedArgs};

/// A token is 16 characters or more: longer files are none.
const TOKEN_BYTES_MAX: u64 = 1 << 10;

/// Serves a live page of a database: is it well, why was that write slow, what fills up next, what to turn. Ctrl-C ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway serve --db /tmp/people
  openssl rand -hex 16 > token
  spillway serve --db /tmp/people --address 0.0.0.0 --port 7700 --token-file token

The process that has the database open shows itself if its option observe_socket is set; else the page has the figures of the
directory's files: families, levels and logs.")]
pub struct Args {
    #[command(flatten)]
    watched: WatchedArgs,
    /// Address to listen on. One that other machines reach needs --token-file.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Port to listen on; 0 is any free one.
    #[arg(long, value_name = "PORT", default_value_t = 7700)]
    port: u16,
    /// File with the token that a viewer needs: 16 letters and digits or more.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Lets viewers change options of the open database. Options that delete data stay as they are. The process of the
    /// database must allow changes too, by its option observe_changes.
    #[arg(long, requires = "token_file")]
    allow_changes: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let mut settings = Settings::default();
    settings.address = SocketAddr::new(args.address, args.port);
    settings.token = args.token_file.as_deref().map(read_token).transpose()?;
    settings.allow_changes = args.allow_changes;
    let interrupt = Interrupt::default();
    interrupt.listen()?;
    let server = Server::start(watched::open(&args.watched)?, settings)?;
    writeln!(out, "Look at {}\nCtrl-C ends.", server.url())?;
    out.flush()?;
    let clock = RealVfs::new();
    while !interrupt.is_asked() {
        if !server.is_serving() {
            return Err(Failure::refused("the page is served no more: its thread has ended"));
        }
        clock.sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn read_token(path: &Path) -> Outcome<String> {
    if rustix::fs::stat(path).is_ok_and(|found| found.st_mode & 0o004 != 0) {
        warn(&format!("every user of this machine can read the token: chmod 600 {}", shell::word(path)));
    }
    let bytes = vfs::read_all(&*RealVfs::new(), path, TOKEN_BYTES_MAX, IoClass::Other)?;
    String::from_utf8(bytes)
        .map(|text| text.trim().to_string())
        .map_err(|_| Failure::refused(format!("{} holds no token: 16 letters and digits or more", path.display())))
}
