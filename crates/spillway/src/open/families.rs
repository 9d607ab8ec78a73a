//! Builds the families of a database, at open and later.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use base::options::{FamilyOptions, ValueTimes};
use base::{Error, Result, UserOrder};
use vfs::Vfs;

use crate::core::family::check_name;
use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions, OtherFamilies};
use crate::open::options_file;
use crate::version::replay::RecoveredFamily;

/// Options for a family not named at open: the options for all such families, with the stored order.
pub(super) fn adapted(options: &FamilyOptions, comparator: &str) -> FamilyOptions {
    let mut options = options.clone();
    if let Some(order) = UserOrder::by_name(comparator) {
        options.order = order;
    }
    options
}

/// Options by the families' names. The first mention of a name counts.
type Named<'a> = HashMap<&'a str, &'a FamilyOptions>;

fn by_name(families: &[(String, FamilyOptions)]) -> Named<'_> {
    families.iter().rev().map(|(name, options)| (name.as_str(), options)).collect()
}

/// The options for opening stored families: those that are named at the open, and others.
pub(super) struct Given<'a> {
    options: &'a OpenOptions,
    named: Named<'a>,
    others: Named<'a>,
    /// `None`: what is not named is not opened.
    rest: Option<&'a FamilyOptions>,
}

impl<'a> Given<'a> {
    pub fn new(options: &'a OpenOptions) -> Self {
        let (others, rest) = match &options.other_families {
            OtherFamilies::Refuse => (Named::new(), None),
            OtherFamilies::OpenWith(rest) => (Named::new(), Some(&**rest)),
            OtherFamilies::OpenBy { named, rest } => (by_name(named), Some(&**rest)),
        };
        Given { options, named: by_name(&options.families), others, rest }
    }
}

/// The options for opening a stored family; `None` if the family is not opened (reading only).
///
/// # Errors
/// `InvalidArgument`: another order of keys.
pub(super) fn options_of(given: &Given<'_>, stored: &RecoveredFamily) -> Result<Option<FamilyOptions>> {
    let RecoveredFamily { name, comparator, .. } = stored;
    let other = given.others.get(&**name).copied().or(given.rest);
    let mut options = match (given.named.get(&**name), other) {
        (Some(&options), _) => options.clone(),
        (None, Some(options)) => adapted(options, comparator),
        (None, None) if name == DEFAULT_FAMILY => FamilyOptions::default(),
        (None, None) => return Ok(None),
    };
    // With raw values the caller says how they are shown.
    let told = if given.options.raw_values { ValueTimes::AUTO } else { options.value_times };
    let times = told.beside_note(stored.value_times);
    options.value_times = times.map_err(|error| error.context(format!("column family \"{name}\"")))?;
    if comparator.is_empty() || comparator == options.order.name() {
        return Ok(Some(options));
    }
    if let (UserOrder::Bytewise, Some(order)) = (&options.order, UserOrder::by_name(comparator)) {
        options.order = order; // no order was set, and the stored one is built in
        return Ok(Some(options));
    }
    // All of RocksDB's text, and no more: programs compare it.
    Err(Error::invalid_argument(format!("{}: does not match existing comparator {comparator}", options.order.name())))
}

/// # Errors
/// `InvalidArgument`: a ttl is given to a family that is there, and nothing says that its values carry times.
pub(super) fn check_times(dir: &Path, vfs: &dyn Vfs, options: &FamilyOptions, name: &str) -> Result<()> {
    // In databases of before the note of the MANIFEST, stored options tell. A document's take their place.
    let stored = || options_file::families_in(&options_file::newest(vfs, dir).ok()??.1).ok()?;
    let is_stored = || stored()?.into_iter().find(|(known, options)| known == name && *options.value_times);
    if options.value_ttl_s == 0 || *options.value_times || is_stored().is_some() {
        return Ok(());
    }
    let what = format!(
        "column family \"{name}\": a ttl (value_ttl_s) is given when a family is created: values that are there carry no time"
    );
    let remedy = "if they do (RocksDB's DBWithTTL), say value_times=true";
    Err(Error::invalid_argument(what).advise(remedy).at_path(dir))
}

/// Families named at open but not stored. The first mention of a name counts, as with stored families.
pub(super) fn missing(options: &OpenOptions, stored: &[RecoveredFamily]) -> Vec<(String, FamilyOptions)> {
    let mut known: HashSet<&str> = stored.iter().map(|family| &*family.name).collect();
    options.families.iter().filter(|(name, _)| known.insert(name)).cloned().collect()
}

/// Checks that an open names the stored families as it has to.
///
/// # Errors
/// `InvalidArgument`: one is not named, or is not stored and may not be made, or has another order of keys.
pub(super) fn check_named(dir: &Path, options: &OpenOptions, stored: &[RecoveredFamily]) -> Result<()> {
    let given = Given::new(options);
    let is_named = |name: &str| name == DEFAULT_FAMILY || given.named.contains_key(name);
    let unnamed: Vec<_> = stored.iter().map(|family| family.name.as_str()).filter(|name| !is_named(name)).collect();
    if matches!(options.other_families, OtherFamilies::Refuse) && !unnamed.is_empty() && !options.read_only {
        let what = format!("Column families not opened: {}; every family has to be named", unnamed.join(", "));
        return Err(Error::invalid_argument(what).at_path(dir));
    }
    for family in stored {
        options_of(&given, family)?;
    }
    let missing = missing(options, stored);
    match missing.first() {
        Some((name, _)) if !options.db.create_missing_column_families || options.read_only => {
            let what = format!("Column family not found: {name}; set create_missing_column_families to make it");
            Err(Error::invalid_argument(what).at_path(dir))
        }
        _ => missing.iter().try_for_each(|(name, _)| check_name(name)),
    }
}
