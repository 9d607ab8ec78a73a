//! The file of the event log. It is renamed at the open, when full and when old; the number kept is limited.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use base::options::{DbOptions, InfoLogLevel};
use vfs::{AppendFile, IfExists, IoClass, Vfs};

use crate::info_log::line::Line;
use crate::info_log::names::Names;

/// Pause after a failure: the disk may be full.
const RETRY_AFTER_US: u64 = 10_000_000;

/// Limit on the header of each file: the options of a few dozen families.
const HEADER_BYTES_MAX: usize = 256 << 10;

pub(super) struct LogFile {
    vfs: Arc<dyn Vfs>,
    names: Names,
    /// 0 for no limit.
    bytes_max: u64,
    age_max_us: u64,
    kept_max: usize,
    /// `None` before the first line, and after a failure.
    file: Option<Box<dyn AppendFile>>,
    begun_us: u64,
    /// True once a file was begun since the open; before, the existing file is an earlier process's.
    has_begun: bool,
    /// Header of every file of this process: the options noted first.
    header: String,
    /// The file's length when begun. Not counted against `bytes_max`: a file has room for a line.
    begun_bytes: u64,
    failed_us: Option<u64>,
}

impl LogFile {
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path, options: &DbOptions) -> LogFile {
        LogFile {
            names: Names::new(&*vfs, dir, &options.db_log_dir),
            vfs,
            bytes_max: options.max_log_file_size,
            age_max_us: options.log_file_time_to_roll.saturating_mul(1_000_000),
            kept_max: options.keep_log_file_num,
            file: None,
            begun_us: 0,
            has_begun: false,
            header: String::new(),
            begun_bytes: 0,
            failed_us: None,
        }
    }

    /// Appends lines. Lines are lost on a failure.
    pub fn write(&mut self, lines: &[Line], now_us: u64) {
        let mut text = String::new();
        lines.iter().for_each(|line| line.print(&mut text));
        if self.failed_us.is_some_and(|at| now_us.saturating_sub(at) < RETRY_AFTER_US) {
            return;
        }
        match self.try_write(&text, now_us) {
            Ok(()) => self.failed_us = None,
            Err(error) => {
                tracing::warn!(%error, "the event log cannot be written");
                (self.file, self.failed_us) = (None, Some(now_us));
            }
        }
        for line in lines.iter().filter(|line| line.level == InfoLogLevel::Header) {
            if self.header.len() < HEADER_BYTES_MAX {
                line.print(&mut self.header);
            }
        }
    }

    fn try_write(&mut self, text: &str, now_us: u64) -> Result<()> {
        let is_due = self.file.as_ref().is_some_and(|file| self.is_full(&**file) || self.is_old(now_us));
        let file = match &mut self.file {
            Some(file) if !is_due => file,
            file => {
                *file = None;
                let made = self.begin(now_us)?;
                self.file.insert(made)
            }
        };
        file.append(text.as_bytes(), IoClass::Other)
    }

    fn is_full(&self, file: &dyn AppendFile) -> bool {
        self.bytes_max > 0 && file.len().saturating_sub(self.begun_bytes) >= self.bytes_max
    }

    fn is_old(&self, now_us: u64) -> bool {
        self.age_max_us > 0 && now_us.saturating_sub(self.begun_us) >= self.age_max_us
    }

    /// A new file, after the current one is renamed. After a failure the current file goes on.
    fn begin(&mut self, now_us: u64) -> Result<Box<dyn AppendFile>> {
        let current = self.names.current();
        if self.failed_us.is_some() && self.has_begun && self.vfs.exists(&current)? {
            return self.vfs.open_append(&current);
        }
        self.vfs.create_dir_all(&self.names.dir)?;
        if self.vfs.exists(&current)? {
            self.put_aside(now_us)?;
        }
        let mut file = self.vfs.create(&current, IfExists::Truncate)?;
        (self.begun_us, self.has_begun) = (now_us, true);
        if !self.header.is_empty() {
            file.append(self.header.as_bytes(), IoClass::Other)?;
        }
        self.begun_bytes = file.len();
        Ok(file)
    }

    /// Renames the log to an old one's name, and deletes the oldest beyond `kept_max`.
    fn put_aside(&self, now_us: u64) -> Result<()> {
        let names = self.vfs.read_dir(&self.names.dir)?;
        let mut old: Vec<u64> = names.iter().filter_map(|name| self.names.put_aside_at(name)).collect();
        old.sort_unstable();
        let time_us = old.last().map_or(now_us, |last| now_us.max(last.saturating_add(1)));
        self.vfs.rename(&self.names.current(), &self.names.old(time_us))?;
        old.push(time_us);
        let superfluous = (old.len() + 1).saturating_sub(self.kept_max); // the new one counts
        old.iter().take(superfluous).try_for_each(|time_us| self.vfs.remove_file(&self.names.old(*time_us)))
    }
}
