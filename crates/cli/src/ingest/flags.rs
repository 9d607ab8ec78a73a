//! Maps the engine's option names in errors to flags of the command.

use spillway::internal::ErrorKind;

use crate::failure::Failure;

/// A word in the engine's errors, and a hint about the command's flag.
const FLAGS: [(&str, &str); 7] = [
    ("allow_blocking_flush", "--no-blocking-flush turns allow_blocking_flush off"),
    ("allow_db_generated_files", "--any-table turns allow_db_generated_files on"),
    ("allow_ingest_behind", "--options allow_ingest_behind=true opens the database with it"),
    ("excise", "--replace asks for an excise"),
    ("fail_if_not_bottommost_level", "--bottommost-only turns fail_if_not_bottommost_level on"),
    ("failed_move_fall_back_to_copy", "--no-copy turns failed_move_fall_back_to_copy off"),
    ("ingest_behind", "--behind turns ingest_behind on"),
];

/// Not of every damaged table: what it can do for one is not known before it has tried.
const SKIP_DAMAGED: &str = "--skip-damaged ingests the blocks that can be read, and lists the rest; it can read nothing of a table \
                            whose footer or index is damaged";

/// Adds a hint for each option named by the failure.
pub fn name_flags(failure: Failure) -> Failure {
    let Failure::Engine(error) = &failure else { return failure };
    let of_names = |c: char| c.is_ascii_lowercase() || c == '_';
    let speaks_of = |name: &str| error.message().split(|c| !of_names(c)).any(|word| word == name);
    let damaged = (error.kind() == ErrorKind::Corruption).then_some(SKIP_DAMAGED);
    let of_options = FLAGS.iter().filter(|(name, _)| speaks_of(name)).map(|(_, flag)| *flag);
    let hints: String = of_options.chain(damaged).map(|flag| format!("\nhint: {flag}")).collect();
    if hints.is_empty() {
        return failure;
    }
    Failure::Refused(failure.message().unwrap_or_default() + &hints)
}

#[cfg(test)]
mod tests {
    use spillway::internal::Error;

    use super::*;

    #[test]
    fn whole_names_only_are_options() {
        let hints = |text: &str| name_flags(Failure::Engine(Error::invalid_argument(text))).message();
        let behind = hints("open the database with allow_ingest_behind").unwrap_or_default();
        assert!(
            behind.contains("--options allow_ingest_behind=true") && !behind.contains("--behind turns"),
            "{behind}"
        );
        let both = hints("with an excise it is not known (fail_if_not_bottommost_level)").unwrap_or_default();
        assert!(both.ends_with(
            "\nhint: --replace asks for an excise\nhint: --bottommost-only turns fail_if_not_bottommost_level on"
        ));
        assert!(hints("something else").is_some_and(|text| !text.contains("hint")));
    }
}
