//! Shrinks a failing script: removes operations, and parts of operations, while it still fails.

use crate::ops::{Op, Script};

/// Maximum number of runs.
const RUNS_MAX: usize = 600;

/// The shortest failing script found, and its failure. `fails` runs a script and returns its failure.
pub fn shrink(script: &Script, fails: impl Fn(&Script) -> Option<String>) -> (Script, String) {
    let mut least = script.clone();
    let mut failure = fails(script).unwrap_or_else(|| "it did not fail again".to_owned());
    let mut runs = 0;
    let mut piece = least.ops.len().div_ceil(2);
    while piece > 0 && runs < RUNS_MAX {
        let mut start = 0;
        let mut removed = false;
        while start < least.ops.len() && runs < RUNS_MAX {
            let candidate = Script { profile: least.profile.clone(), ops: without(&least.ops, start, piece) };
            runs += 1;
            match fails(&candidate) {
                Some(how) => {
                    (least, failure, removed) = (candidate, how, true);
                }
                None => start += piece,
            }
        }
        if piece == 1 && !removed {
            break;
        }
        piece = if removed && piece == 1 { 1 } else { piece / 2 };
    }
    lessen(&mut least, &mut failure, runs, fails);
    (least, failure)
}

/// Removes parts of batches and ingests.
fn lessen(least: &mut Script, failure: &mut String, mut runs: usize, fails: impl Fn(&Script) -> Option<String>) {
    let mut at = 0;
    while let Some(op) = least.ops.get(at).filter(|_| runs < 2 * RUNS_MAX) {
        let candidates = op.lesser().into_iter().map(|op| {
            let mut candidate = least.clone();
            candidate.ops.splice(at..=at, [op]);
            candidate
        });
        let tried = candidates.map(|candidate| {
            runs += 1;
            fails(&candidate).map(|how| (candidate, how))
        });
        let shorter = tried.flatten().next();
        match shorter {
            Some((candidate, how)) => (*least, *failure) = (candidate, how),
            None => at += 1,
        }
    }
}

fn without(ops: &[Op], start: usize, count: usize) -> Vec<Op> {
    let kept = ops.iter().enumerate().filter(|(index, _)| !(start..start + count).contains(index));
    kept.map(|(_, op)| op.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn only_what_matters_is_left() {
        let mut text = String::new();
        for number in 0..40 {
            text.push_str(&format!("put default k{number} v\n"));
        }
        let script = parse::script(&text).unwrap();
        let fails = |script: &Script| {
            let text = script.to_string();
            (text.contains(" k7 ") && text.contains(" k31 ")).then(|| "both".to_owned())
        };
        let (least, failure) = shrink(&script, fails);
        assert_eq!(least.to_string(), "profile tiny\nput default k7 v\nput default k31 v\n");
        assert_eq!(failure, "both");
    }

    #[test]
    fn only_what_matters_is_left_of_an_ingest() {
        let script =
            parse::script("sync\ningest direct moved; excise f a b; file f; put a 1; put b 2; file f; put c 1")
                .unwrap();
        let fails = |script: &Script| script.to_string().contains("put b 2").then(|| "b".to_owned());
        assert_eq!(shrink(&script, fails).0.to_string(), "profile tiny\ningest flushable; file f; put b 2\n");
    }
}
