//! Scripts kept for a past failure or for a single feature; each runs under every profile.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]

use testkit::order::KeyOrder;
use testkit::profile::{self, Profile};
use testkit::{parse, run};

/// The profile itself and a variant of it. Consecutive scripts get different key orders, and families with ingests
/// behind.
fn variants(profile: Profile, number: usize) -> [Profile; 2] {
    let [plain, reverse, shortlex] = KeyOrder::ALL;
    let mut variant = profile;
    (variant.order, variant.behind) = match number % 3 {
        0 => (plain, true),
        1 => (reverse, false),
        _ => (shortlex, true),
    };
    [profile, variant]
}

#[test]
fn every_kept_script_runs_under_every_profile() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts found");
    for (count, path) in paths.into_iter().enumerate() {
        let text = std::fs::read_to_string(&path).unwrap();
        let script = parse::script(&text).unwrap();
        // An ingest that has to reach the last level is refused where tables stay in level 0.
        let needs_levels = text.contains("bottommost");
        let profiles = profile::ALL.into_iter().enumerate();
        let profiles = profiles.filter(|(_, profile)| profile.fills_levels() || !needs_levels);
        for profile in profiles.flat_map(|(number, profile)| variants(profile, count + number)) {
            let mut script = script.clone().arranged(&profile.order.order());
            script.profile = profile.to_string();
            if let Err(failure) = run::run_script(&script) {
                panic!("{} under {profile}: {failure}", path.display());
            }
        }
    }
}
