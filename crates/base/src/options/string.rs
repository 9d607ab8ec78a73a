//! RocksDB's option strings: `a=1;b={c=2;d=3};e=4`.
//!
//! A value ends at the next `;` outside braces. A value with an opening brace ends at the matching brace. A backslash
//! makes the next character literal (`\n` and `\r` are line ends). Escapes are only resolved in text values, so nested
//! groups keep theirs.

use crate::error::{Error, ErrorKind, Result};
use crate::options::kept;
use crate::options::known::{Changes, IGNORE_UNSUPPORTED, Unhonoured};
use crate::options::row::{Bounds, Change, Given, Home, Load, OptionGroup, Row, Setting};
use crate::options::suggest::nearest;
use crate::options::table_kind::TableKind;

/// Deepest nesting of braces; RocksDB needs three at most.
const DEPTH_MAX: usize = 16;

fn malformed(text: &str, why: &str) -> Error {
    Error::invalid_argument(format!("{why} in `{text}`"))
}

/// The `name=value` pairs of an option string, values still escaped, without outer braces.
///
/// # Errors
/// `InvalidArgument`: a name without value, unbalanced braces, or text behind a closing brace.
pub fn pairs(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut pairs = Vec::new();
    for item in split_items(strip_braces(text.trim())?)? {
        let item = item.trim();
        if item.is_empty() {
            continue;
        }
        let (name, value) =
            item.split_once('=').ok_or_else(|| malformed(item, "Mismatched key value pair, '=' expected"))?;
        let name = name.trim();
        if name.is_empty() {
            return Err(malformed(item, "Empty key found"));
        }
        pairs.push((name, strip_braces(value.trim())?));
    }
    Ok(pairs)
}

/// Refuses pairs that set an option of `group` by its two names, with different values. For callers that set pairs one by
/// one.
///
/// # Errors
/// `InvalidArgument`, with both.
pub fn check_names(group: &mut dyn OptionGroup, pairs: &[(&str, &str)]) -> Result<()> {
    let mut given = Given::default();
    pairs.iter().try_for_each(|(name, value)| match group.find_mut(name) {
        Some((row, _)) => given.note(row, name, value),
        None => Ok(()),
    })
}

/// Cuts at every `;` outside braces.
fn split_items(text: &str) -> Result<Vec<&str>> {
    let mut items = Vec::new();
    let (mut start, mut depth, mut escaped) = (0, 0usize, false);
    for (at, byte) in text.bytes().enumerate() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1).ok_or_else(|| malformed(text, "`}` without `{`"))?,
            b';' if depth == 0 => {
                items.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(malformed(text, "braces nested too deeply"));
        }
    }
    if depth > 0 {
        return Err(malformed(text, "Mismatched curly braces for nested options"));
    }
    items.push(text.get(start..).unwrap_or_default());
    Ok(items)
}

/// Strips the braces around `text`, if any. They must enclose all of it.
pub(crate) fn strip_braces(text: &str) -> Result<&str> {
    if !text.starts_with('{') {
        return Ok(text);
    }
    let (mut depth, mut escaped) = (0usize, false);
    for (at, byte) in text.bytes().enumerate() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'{' => depth += 1,
            b'}' => depth -= 1, // the first character opened one, and the loop ends when it closes
            _ => {}
        }
        if depth == 0 {
            let inner = text.get(1..at).unwrap_or_default();
            return if at + 1 == text.len() { Ok(inner.trim()) } else { Err(malformed(text, "text behind `}`")) };
        }
    }
    Err(malformed(text, "`{` without `}`"))
}

/// The name and the members of an object, in any order: `{delimiter=,;id=StringAppendOperator}`, or a bare name.
///
/// # Errors
/// `InvalidArgument`: unbalanced braces, or two members called `id`.
pub(crate) fn object_id(text: &str) -> Result<(&str, Vec<(&str, &str)>)> {
    let text = strip_braces(text.trim())?;
    let Some(members) = members(text) else { return Ok((text, Vec::new())) };
    let mut ids = members.iter().filter(|(name, _)| *name == "id").map(|(_, id)| *id);
    match (ids.next(), ids.next()) {
        (Some(_), Some(_)) => Err(malformed(text, "`id` twice")),
        (Some(id), None) => Ok((id, members)),
        (None, _) => Ok((text, Vec::new())),
    }
}

/// The members of an object without its braces, in any order: `id=NAME;a=1`. `None` for any other text, as a bare name
/// or `NAME:{"a":1}`.
pub(crate) fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    let members = pairs(text).ok()?;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (!members.is_empty() && members.iter().all(|(name, _)| is_name(name))).then_some(members)
}

/// Escapes characters with a meaning in option strings and OPTIONS files.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (i, c) in text.char_indices() {
        let at_edge = i == 0 || i + c.len_utf8() == text.len();
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\\' | '#' | ':' | ';' | '{' | '}' => escaped.extend(['\\', c]),
            // Spaces at the ends would be trimmed.
            ' ' | '\t' if at_edge => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

pub(crate) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            }),
            _ => plain.push(c),
        }
    }
    plain
}

/// Sets one option of `group`, or one member of it: `compression_opts.level=3` is `compression_opts={level=3}`. Members that
/// `table_factory` gives a block-based table are `block_based_table_factory`'s.
///
/// # Errors
/// `InvalidArgument` or `Unsupported`, naming the option; an unknown name is answered with the nearest known one.
pub(crate) fn set(group: &mut dyn OptionGroup, name: &str, text: &str, load: &mut Load) -> Result<()> {
    const TABLES: &str = "table_factory";
    const BLOCK_BASED: &str = "block_based_table_factory";
    if let Some((whole, member)) = name.split_once('.') {
        let whole = if whole == TABLES && member != "id" { BLOCK_BASED } else { whole };
        let has_members = |(_, setting): (_, &mut dyn Setting)| setting.group().is_some();
        if whole == TABLES || group.find_mut(whole).is_some_and(has_members) {
            return set(group, whole, &format!("{member}={{{text}}}"), load);
        }
    }
    if name == TABLES {
        let (id, members) = object_id(text)?;
        if members.len() > 1 && TableKind::is_block_based(id) {
            set(group, name, id, load)?;
            let own = members.iter().filter(|(member, _)| *member != "id");
            let own: String = own.map(|(member, value)| format!("{member}={{{value}}};")).collect();
            return set(group, BLOCK_BASED, &own, load);
        }
    }
    if let Some((row, setting)) = group.find_mut(name) {
        load.given.note(row, name, text)?;
        if load.running && row.change == Change::Fixed {
            let now = setting.text();
            return set_again(group, name, text, load, &now);
        }
        return set_row(group, name, text, load).map_err(|error| error.context(format!("option `{name}`")));
    }
    set_unknown(group, name, text, load)
}

/// Sets an option that cannot change while the database is open: to `now`, its present value.
///
/// # Errors
/// `InvalidArgument`: it is another value, or none.
fn set_again(group: &mut dyn OptionGroup, name: &str, text: &str, load: &mut Load, now: &str) -> Result<()> {
    let is_set = set_row(group, name, text, load).is_ok();
    if is_set && group.find_mut(name).is_some_and(|(_, setting)| setting.text() == now) {
        return Ok(());
    }
    let what = format!("Option not changeable: {name}; it cannot change while the database is open");
    Err(Error::invalid_argument(what))
}

/// Sets the option of a row of `group`. The caller adds the option's name to errors.
pub(super) fn set_row(group: &mut dyn OptionGroup, name: &str, text: &str, load: &mut Load) -> Result<()> {
    let Some((row, setting)) = group.find_mut(name) else { return Ok(()) };
    let warned = load.warnings.len();
    let taken = setting.set(text, load).and_then(|()| stay_in_bounds(row, setting, text, load));
    let means_another = match taken {
        Err(error) if load.ignore_unsupported && error.kind() == ErrorKind::Unsupported => {
            // Refused values change nothing, and groups pass over members that are refused: the value is the one before.
            load.warnings.push(format!("{}; {} is used", error.message(), setting.text()));
            false
        }
        taken => {
            taken?;
            load.warnings.len() > warned
        }
    };
    if setting.group().is_some() {
        return Ok(()); // its members have already warned
    }
    load.warnings.iter_mut().skip(warned).for_each(|warning| *warning = format!("option `{name}`: {warning}"));
    match means_another {
        true => group.kept_mut().set(row.name, text),
        false => group.kept_mut().remove(row.name),
    }
    Ok(())
}

/// Refuses a number out of a row's bounds. With `load.adopting` it is clamped instead, with a warning.
fn stay_in_bounds(row: &Row, setting: &mut dyn Setting, text: &str, load: &mut Load) -> Result<()> {
    let Err(error) = in_bounds(row.bounds, setting) else { return Ok(()) };
    let number = setting.number().filter(|number| load.adopting && number.is_finite());
    let Some(number) = number else { return Err(error) };
    let nearest = number.clamp(row.bounds.min, row.bounds.max).to_string();
    setting.set(&nearest, &mut Load::default())?;
    load.warnings.push(format!("`{text}` is out of bounds: {}; {nearest} is used", row.bounds.describe()));
    Ok(())
}

/// Handles an option without a row. RocksDB's are kept, or refused if they change the data stored, kept or found;
/// unknown names are errors.
pub(super) fn set_unknown(group: &mut dyn OptionGroup, name: &str, text: &str, load: &mut Load) -> Result<()> {
    if name == IGNORE_UNSUPPORTED {
        return set_flag(&mut load.ignore_unsupported, text);
    }
    if let Some(unhonoured) = group.unhonoured().iter().find(|unhonoured| unhonoured.name == name) {
        return set_unhonoured(group, unhonoured, text, load);
    }
    let title = group.title();
    if load.ignore_unknown_options {
        load.warnings.push(format!("unknown option `{name}` of {title} was skipped"));
        return Ok(());
    }
    let known = group.settings().into_iter().map(|(row, _)| row.name);
    let known = known.chain(group.unhonoured().iter().map(|unhonoured| unhonoured.name));
    let hint = nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(Error::invalid_argument(format!("Extra option not recognized: {name}: {title} has no such option{hint}")))
}

fn set_unhonoured(group: &mut dyn OptionGroup, row: &Unhonoured, text: &str, load: &mut Load) -> Result<()> {
    let means_nothing = row.is_default(text);
    match row.changes {
        Changes::What(_) if means_nothing || group.has_supplied(row.name, text) => group.kept_mut().remove(row.name),
        Changes::What(_) if load.defers_refusal => group.kept_mut().set(row.name, text),
        Changes::What(says) if !load.ignore_unsupported => return Err(row.refusal(text, says)),
        Changes::What(says) => load.warnings.push(format!("option `{}={text}` has no effect: {says}", row.name)),
        // With several defaults, getters need the text.
        _ if means_nothing && row.defaults.len() == 1 => group.kept_mut().remove(row.name),
        Changes::How | Changes::Nothing => {
            group.kept_mut().set(row.name, text);
            if !means_nothing {
                let whose = if row.changes == Changes::How {
                    " of RocksDB has no effect here"
                } else {
                    " has no effect any more"
                };
                load.warnings.push(format!("option `{}={text}`{whose}", row.name));
            }
        }
    }
    Ok(())
}

/// Reads a truth value.
pub(super) fn set_flag(flag: &mut bool, text: &str) -> Result<()> {
    flag.set(text, &mut Load::default()).map_err(|error| error.context(format!("option `{IGNORE_UNSUPPORTED}`")))
}

fn in_bounds(bounds: Bounds, setting: &dyn Setting) -> Result<()> {
    match setting.number() {
        Some(number) if !bounds.contains(number) => {
            let text = setting.text();
            let range = bounds.describe();
            Err(Error::invalid_argument(format!("`{text}` is out of bounds: {range}")))
        }
        _ => Ok(()),
    }
}

/// Checks every row of a group against its bounds.
///
/// # Errors
/// `InvalidArgument` or `Unsupported`, naming the option.
pub(crate) fn check_bounds(group: &dyn OptionGroup) -> Result<()> {
    group.settings().into_iter().try_for_each(|(row, setting)| {
        in_bounds(row.bounds, setting).map_err(|error| error.context(format!("option `{}`", row.name)))
    })
}

/// Sets every option in `text`, in order. After an error the earlier options stay set.
pub(crate) fn apply(group: &mut dyn OptionGroup, text: &str, load: &mut Load) -> Result<()> {
    let pairs = pairs(text)?;
    kept::read_ignore(pairs.iter().copied(), load)?;
    pairs.into_iter().try_for_each(|(name, value)| set(group, name, value, load))
}

/// A group nested in a row, without names of ours at their defaults: RocksDB 7.8 refuses a group with an unknown name.
pub(super) fn print_nested<G: OptionGroup + Default>(group: &G) -> String {
    let defaults = G::default();
    let rows = group.settings().into_iter().zip(defaults.settings());
    let told = rows.filter(|((row, setting), (_, default))| {
        row.home == Home::RocksDb || (row.home != Home::Unwritten && setting.text() != default.text())
    });
    let texts = told.map(|((row, setting), _)| format!("{}={};", row.name, setting.text()));
    let kept = kept::written(group).into_iter().map(|(name, value)| format!("{name}={value};"));
    texts.chain(kept).collect()
}

/// Every option of a group, as an option string for `apply`.
pub fn print(group: &dyn OptionGroup) -> String {
    let mut text = String::new();
    for (row, setting) in group.settings() {
        if row.home != Home::Unwritten {
            text.push_str(&format!("{}={};", row.name, setting.text()));
        }
    }
    kept::written(group).iter().for_each(|(name, value)| text.push_str(&format!("{name}={value};")));
    text
}
