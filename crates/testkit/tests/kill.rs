//! Processes killed by SIGKILL while they write: see `testkit::kill`. Each test does its share of SPILLWAY_KILLS kills;
//! `scripts/kill-test.sh` does thousands.
#![expect(clippy::disallowed_types, reason = "the victim's words go to a file that the operating system writes")]

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use testkit::kill::writer::write_until_killed;
use testkit::kill::{Killings, Setting, Tried, Victim};
use testkit::profile;
use testkit::random::Random;

const PLACE: &str = "SPILLWAY_KILL_PLACE";
const TOLD: &str = "SPILLWAY_KILL_TOLD";
const SETTING: &str = "SPILLWAY_KILL_SETTING";
/// How many kills all tests together do.
const KILLS: &str = "SPILLWAY_KILLS";
const KILLS_USUAL: u64 = 240;
/// What the settings are drawn from; the process's number where it is not said.
const SEED: &str = "SPILLWAY_KILL_SEED";
const TESTS: u64 = 4;
/// Kills that one database lives through.
const KILLS_PER_DATABASE: u64 = 15;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

/// The process to be killed.
#[test]
#[ignore = "run by the tests below, in a process of its own"]
fn writer() {
    let variable = |name| std::env::var(name).expect("run by a test");
    let setting = Setting::parse(&variable(SETTING)).expect("a setting");
    write_until_killed(variable(PLACE).as_ref(), variable(TOLD).as_ref(), setting);
}

struct Writer(Child);

impl Writer {
    fn start(setting: &Setting, place: &Path, told: &Path) -> Writer {
        let words = std::fs::File::create(place.join("words")).expect("made");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "writer", "--ignored", "--nocapture"])
            .envs([(PLACE, place), (TOLD, told)])
            .env(SETTING, setting.to_string())
            .stdout(Stdio::null())
            .stderr(words)
            .spawn();
        Writer(child.expect("started"))
    }
}

impl Victim for Writer {
    fn kill(&mut self) -> ExitStatus {
        self.0.kill().expect("a child of ours");
        self.0.wait().expect("a child of ours")
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child of ours")
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Already gone but where the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does a test's share of kills, cycling through variants of `profiles`.
fn kill_under(profiles: &[&str], ingests_percent: u64) -> Tried {
    let share = number(KILLS).unwrap_or(KILLS_USUAL).div_ceil(TESTS);
    let mut random = Random::new(number(SEED).unwrap_or_else(|| std::process::id().into()) ^ ingests_percent << 32);
    let mut tried = Tried::default();
    for name in profiles.iter().cycle() {
        if tried.kills >= share {
            break;
        }
        let profile = profile::by_name(name).expect("a profile");
        let setting = Setting::draw(profile, ingests_percent, &mut random);
        let place = tempfile::tempdir().expect("a directory");
        let kills = KILLS_PER_DATABASE.min(share - tried.kills);
        let outcome = Killings::new(place.path(), setting).run(kills, |at, told| Writer::start(&setting, at, told));
        match outcome {
            Ok(of_one) => tried.add(&of_one),
            Err(what) => {
                let kept = place.keep();
                panic!("under {setting}: {what}; everything is kept in {}", kept.display());
            }
        }
    }
    println!("{}: {tried}", profiles.join(", "));
    assert!(tried.looked_at > 0 && tried.operations > 0, "{tried}");
    tried
}

#[test]
fn memtables_that_lie_in_files() {
    let profiles = ["converted", "converted skip-list-file", "converted reverse", "converted shortlex skip-list-file"];
    let tried = kill_under(&profiles, 0);
    assert!(tried.restored > 0 && tried.converted > 0, "{tried}");
}

#[test]
fn memtables_whose_values_lie_in_logs() {
    let tried = kill_under(&["referring", "referring skip-list-file", "referring reverse"], 0);
    assert!(tried.restored > 0 && tried.converted > 0, "{tried}");
}

#[test]
fn ingests_beside_memtables_that_lie_in_files() {
    let tried = kill_under(&["converted", "queued trie-file", "referring skip-list-file", "queued skip-list-file"], 8);
    assert!(tried.restored > 0, "{tried}");
}

#[test]
fn memtables_in_memory() {
    kill_under(&["tiny", "dumped", "vector", "partitioned", "dispatched"], 3);
}
