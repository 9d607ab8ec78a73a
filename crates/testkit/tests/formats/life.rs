//! `life.txt` of a stored directory: its options, operations, and end.
//!
//! ```text
//! # Any comment.
//! db log_file_bytes=64K             an option string
//! family write_buffer_size=64K      likewise, of every family
//! ends killed                       or closed
//! holds spbatch queued              features in this directory: see `held.rs`
//! from db-unflushed                 began as a RocksDB directory; the default family adds numbers
//! put default a 1                   operations, in the language of scripts
//! ```

use std::path::Path;
use std::sync::Arc;

use testkit::engine::{Db, DbOptions, FamilyOptions, OpenOptions};
use testkit::ops::Script;
use testkit::parse;
use testkit::profile::{Profile, merge_operator};
use vfs::{MemoryVfs, Vfs};

/// Where the database lies, and its logs where `wal_dir` says so.
pub const DIR: &str = "/db";

pub struct Life {
    /// The options that it was lived under.
    pub profile: Profile,
    pub is_killed: bool,
    pub holds: String,
    /// The directory of RocksDB's that it began as.
    pub from: Option<String>,
    pub script: Script,
}

impl Life {
    pub fn of(folder: &Path) -> Life {
        let text = std::fs::read_to_string(folder.join("life.txt")).unwrap();
        let (mut db, mut family, mut ends, mut from) = (String::new(), String::new(), String::new(), None);
        let (mut holds, mut script) = (String::new(), String::new());
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("db", options)) => db = options.to_owned(),
                Some(("family", options)) => family = options.to_owned(),
                Some(("ends", how)) => ends = how.to_owned(),
                Some(("holds", what)) => holds = what.to_owned(),
                Some(("from", name)) => from = Some(name.to_owned()),
                _ => script.extend([line, "\n"]),
            }
        }
        assert!(["killed", "closed"].contains(&&*ends), "{}: how does it end?", folder.display());
        let profile = Profile::of("stored", db.leak(), family.leak());
        Life { profile, is_killed: ends == "killed", holds, from, script: parse::script(&script).unwrap() }
    }

    /// Its own options, or the defaults.
    pub fn options(&self, vfs: &Arc<MemoryVfs>, own: bool) -> OpenOptions {
        let as_vfs: Arc<dyn Vfs> = vfs.clone();
        let names = Db::list_families(DIR, &as_vfs).unwrap();
        let mut options = self.profile.open_options(as_vfs.clone(), &names);
        if !own {
            let (wal_dir, log_file_bytes) = (options.db.wal_dir, 1 << 20);
            options.db = DbOptions { wal_dir, log_file_bytes, ..DbOptions::default() };
        }
        for (name, family) in &mut options.families {
            if !own {
                *family = FamilyOptions::default();
            }
            let merges = if self.from.is_some() && name == "default" { "uint64add" } else { merge_operator(name) };
            family.merge_operator = base::merge::by_name(merges);
        }
        options
    }
}
