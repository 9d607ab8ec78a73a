//! Scripts kept because they once failed, or because they show one thing at a time: each runs under every profile.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]

use testkit::{parse, profile, run};

#[test]
fn every_kept_script_runs_under_every_profile() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut script = parse::script(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for profile in profile::ALL {
            script.profile = profile.name.to_owned();
            if let Err(failure) = run::run_script(&script) {
                panic!("{} under {}: {failure}", path.display(), profile.name);
            }
        }
        count += 1;
    }
    assert!(count > 0, "no scripts found");
}
