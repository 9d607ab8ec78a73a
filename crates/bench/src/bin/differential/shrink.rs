//! Makes a failing history smaller: cuts what follows the difference, then pieces, as long as a difference remains.

use crate::draw::History;
use crate::library::whole::Answer;
use crate::life::{Difference, Ground, run};

/// Runs tried at the most.
const RUNS_MAX: usize = 400;

/// The smallest history found, as numbers of steps, with its difference.
///
/// # Errors
/// As [`run`].
pub fn shrink(ground: &Ground, history: &History, first: Difference) -> Answer<(Vec<usize>, Difference)> {
    let mut steps = history.kept.clone();
    steps.truncate(first.at + 1);
    let (mut difference, mut runs) = (first, 0);
    let mut piece = steps.len() / 2;
    while piece > 0 {
        let mut from = 0;
        while from < steps.len() && runs < RUNS_MAX {
            let without = |(at, step): (usize, &usize)| (!(from..from + piece).contains(&at)).then_some(*step);
            let fewer: Vec<usize> = steps.iter().enumerate().filter_map(without).collect();
            runs += 1;
            match run(ground, history, &fewer)? {
                Some(found) => {
                    steps = fewer;
                    steps.truncate(found.at + 1);
                    difference = found;
                }
                None => from += piece,
            }
        }
        piece /= 2;
    }
    Ok((steps, difference))
}
