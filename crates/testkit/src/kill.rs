//! Kills processes with SIGKILL at random moments, repeatedly on one database: mid-batch, in a conversion, in an
//! ingest, in recovery. Then opens the database from memtable images, and a copy of it by WAL replay alone. Both must
//! hold the same: every acknowledged operation, and none that was not begun (D1-D3).
//!
//! [`story`] defines the operations, [`writer`] is the process, `progress` its reports, `judge` checks the contents.
//! Files and processes are real: the seed decides the attempts but does not replay a run.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::OpenOptions;
use base::Result;
use vfs::{IfExists, IoClass, RealVfs, Vfs};

use self::judge::{Found, Judge};
use self::progress::Told;
use self::story::{FAMILIES, Story};
use crate::profile::{self, Profile};
use crate::random::Random;

mod judge;
mod progress;
pub mod story;
pub mod writer;

/// Sizes of memtables and WALs. Small ones flush all the time; large ones advance their watermark several times per
/// flush.
const SIZES: [usize; 4] = [64 << 10, 256 << 10, 512 << 10, 1 << 20];

/// Upper bounds of a process's life, counted from its report that the database is open or from its start: powers of two
/// in microseconds, from a quarter of a millisecond to an eighth of a second.
const LIFE_BITS: Range<u64> = 8..18;

/// A process without a report for this long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Poll interval for reports.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Configuration of one database.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub profile: Profile,
    pub story: Story,
    pub threads: u64,
    pub write_buffer_bytes: usize,
    pub log_file_bytes: usize,
}

impl Setting {
    /// Draws a random setting for a profile.
    pub fn draw(profile: Profile, ingests_percent: u64, random: &mut Random) -> Setting {
        Setting {
            profile,
            story: Story { seed: random.draw() >> 16, ingests_percent },
            threads: 1 + random.below(4),
            write_buffer_bytes: *random.pick(&SIZES),
            log_file_bytes: *random.pick(&SIZES),
        }
    }

    /// Parses the [`Display`](fmt::Display) form.
    pub fn parse(text: &str) -> Option<Setting> {
        let (numbers, profile) = text.split_once(' ')?;
        let mut numbers = numbers.split(',').map(|number| number.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some(Setting {
            profile: profile::by_name(profile)?,
            story: Story { seed: next()?, ingests_percent: next()? },
            threads: next()?,
            write_buffer_bytes: next()? as usize,
            log_file_bytes: next()? as usize,
        })
    }

    pub fn open_options(&self, vfs: Arc<dyn Vfs>) -> OpenOptions {
        let [_, others @ ..] = FAMILIES;
        let mut options = self.profile.open_options(vfs, others);
        options.db.log_file_bytes = self.log_file_bytes as u64;
        for (_, family) in &mut options.families {
            family.write_buffer_size = self.write_buffer_bytes;
        }
        options
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Story { seed, ingests_percent } = self.story;
        let Setting { profile, threads, write_buffer_bytes, log_file_bytes, .. } = self;
        write!(f, "{seed},{ingests_percent},{threads},{write_buffer_bytes},{log_file_bytes} {profile}")
    }
}

/// A writing process that can be killed.
pub trait Victim {
    /// Kills the process, waits for it, and returns its exit status.
    fn kill(&mut self) -> ExitStatus;

    /// Exit status if the process ended by itself.
    fn ended(&mut self) -> Option<ExitStatus>;
}

/// Counts of attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub kills: u64,
    /// Kills before the process reported the database open.
    pub in_opening: u64,
    /// States after a kill opened both ways.
    pub looked_at: u64,
    /// Acknowledged operations, as far as checked.
    pub operations: u64,
    /// Memtables restored from images of a killed process.
    pub restored: u64,
    /// Memtables converted to tables in place.
    pub converted: u64,
}

impl Tried {
    pub fn add(&mut self, other: &Tried) {
        self.kills += other.kills;
        self.in_opening += other.in_opening;
        self.looked_at += other.looked_at;
        self.operations += other.operations;
        self.restored += other.restored;
        self.converted += other.converted;
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tried { kills, in_opening, looked_at, operations, restored, converted } = self;
        write!(
            f,
            "{kills} kills, {in_opening} of them before the database was open; {looked_at} states compared with "
        )?;
        write!(f, "{operations} operations; {restored} memtables restored, {converted} converted")
    }
}

/// A database and the processes killed on it.
pub struct Killings {
    vfs: Arc<dyn Vfs>,
    /// Directory of the database, its copy, and the progress files.
    place: PathBuf,
    setting: Setting,
    random: Random,
    judge: Judge,
    tried: Tried,
}

impl Killings {
    pub fn new(place: &Path, setting: Setting) -> Killings {
        Killings {
            vfs: RealVfs::new(),
            place: place.to_owned(),
            setting,
            random: Random::new(setting.story.seed),
            judge: Judge::new(setting),
            tried: Tried::default(),
        }
    }

    /// Starts `kills` processes by `start`, kills each, and checks most of the states they leave. `start` receives the
    /// directory and the path of the progress file.
    ///
    /// # Errors
    /// The contents are wrong, or a process ended by itself.
    pub fn run<V: Victim>(
        mut self,
        kills: u64,
        start: impl Fn(&Path, &Path) -> V,
    ) -> std::result::Result<Tried, String> {
        for kill in 1..=kills {
            let told_at = self.place.join(format!("told-{kill}"));
            let in_context = |what: String| format!("kill {kill}: {what}");
            let mut victim = start(&self.place, &told_at);
            self.let_live(&mut victim, &told_at).map_err(in_context)?;
            let told = Told::read(&*self.vfs, &told_at, self.setting.threads).map_err(|error| error.to_string())?;
            self.note(told);
            // The remaining states are killed again unchecked, many of them in recovery.
            if kill == kills || self.random.chance(70) {
                self.look().map_err(in_context)?;
            }
        }
        Ok(self.tried)
    }

    fn note(&mut self, told: Option<Told>) {
        self.tried.kills += 1;
        match told {
            None => self.tried.in_opening += 1,
            Some(told) => {
                self.tried.converted += told.converted;
                self.judge.note(&told.acknowledged);
            }
        }
    }

    /// Lets a process run for a while and kills it: some while opening the database, most a little later.
    fn let_live(&mut self, victim: &mut impl Victim, told_at: &Path) -> std::result::Result<(), String> {
        let threads = self.setting.threads;
        let opened = || matches!(Told::read(&*self.vfs, told_at, threads), Ok(Some(_)));
        let started = self.vfs.now();
        if !self.random.chance(25) {
            while !opened() {
                if let Some(status) = victim.ended() {
                    return Err(format!("the process ended by itself: {status}"));
                }
                if self.vfs.now() - started > SILENCE_MAX {
                    return Err("the process hangs in opening the database".to_owned());
                }
                self.vfs.sleep(LOOK_EVERY);
            }
        }
        // Short and long lives are equally likely.
        let most = 1 << (LIFE_BITS.start + self.random.below(LIFE_BITS.end - LIFE_BITS.start));
        self.vfs.sleep(Duration::from_micros(self.random.below(most)));
        let ended = victim.ended();
        let status = victim.kill();
        ended.map_or(Ok(()), |_| Err(format!("the process ended by itself: {status}")))
    }

    /// Opens the state both ways and compares.
    fn look(&mut self) -> std::result::Result<(), String> {
        let (db, copy) = (self.place.join("db"), self.place.join("copy"));
        let failed = |error: base::Error| format!("{error:?}");
        match copy_directory(&*self.vfs, &db, &copy) {
            Err(error) if error.is_not_found() => return Ok(()), // killed before there was anything
            copied => copied.map_err(failed)?,
        }
        let by_replay = Found::open(self.vfs.clone(), &copy, self.setting, false).map_err(failed)?.contents;
        let by_image = Found::open(self.vfs.clone(), &db, self.setting, true).map_err(failed)?;
        if by_replay != by_image.contents {
            return Err(judge::difference("by image and by replay", &by_image.contents, &by_replay));
        }
        self.tried.operations += self.judge.check(&by_image.contents)?;
        self.tried.looked_at += 1;
        self.tried.restored += by_image.restored;
        if self.random.chance(30) {
            by_image.flush().map_err(failed)?;
            let flushed = by_image.read_again().map_err(failed)?;
            if flushed != by_image.contents {
                return Err(judge::difference("flushed and before", &flushed, &by_image.contents));
            }
        }
        drop(by_image);
        if self.random.chance(10) {
            judge::check_files(self.vfs.clone(), &db, self.setting)?;
        }
        remove_directory(&*self.vfs, &copy).map_err(failed)
    }
}

/// Copies the files of a directory without writers.
fn copy_directory(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<()> {
    let names = vfs.read_dir(from)?;
    vfs.create_dir_all(to)?;
    for name in names {
        let bytes = vfs::read_all(vfs, &from.join(&name), u64::MAX, IoClass::Other)?;
        vfs.create(&to.join(&name), IfExists::Fail)?.append(&bytes, IoClass::Other)?;
    }
    Ok(())
}

fn remove_directory(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    for name in vfs.read_dir(path)? {
        vfs.remove_file(&path.join(name))?;
    }
    vfs.remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_to_another_process_as_they_are() {
        let mut random = Random::new(1);
        for profile in profile::ALL {
            let setting = Setting::draw(profile.variant(random.draw()), random.below(50), &mut random);
            let text = setting.to_string();
            assert_eq!(Setting::parse(&text).expect("a setting").to_string(), text);
        }
        assert!(Setting::parse("1,2,3 tiny").is_none() && Setting::parse("1,2,3,4,5 nothing").is_none());
    }
}
