//! Options in JSON and YAML: RocksDB's names as keys, an object for a nested group. Every error has the line of its key
//! or value.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::options::ini::{NewFamily, OptionsFile};
use crate::options::kept;
use crate::options::known::IGNORE_UNSUPPORTED;
use crate::options::row::{Given, Home, Load, OptionGroup};
use crate::options::string;
use crate::options::tree::{Content, Node};

pub use crate::options::tree::Syntax;

/// Sets the options of an object in `group`.
pub(super) fn apply(group: &mut dyn OptionGroup, text: &str, syntax: Syntax, load: &mut Load) -> Result<()> {
    apply_node(group, &Node::read(text, syntax)?, load)
}

/// As [`apply`], for parsed JSON.
pub(super) fn apply_value(group: &mut dyn OptionGroup, value: &Value, load: &mut Load) -> Result<()> {
    apply_node(group, &Node::from_value(value)?, load)
}

/// Fills `file` from a document with `DBOptions` and, by family name, `CFOptions`. A family not yet in the file starts
/// from `new_family`.
pub(super) fn apply_file(
    file: &mut OptionsFile,
    text: &str,
    syntax: Syntax,
    load: &mut Load,
    new_family: NewFamily<'_>,
) -> Result<()> {
    let root = Node::read(text, syntax)?;
    let sections = root.members("DBOptions and CFOptions")?;
    if let Some(Node { content: Content::Map(members), .. }) = root.member("DBOptions") {
        read_ignore(members, load)?; // its position does not matter
    }
    for section in sections {
        match section.name() {
            "DBOptions" => apply_node(&mut file.db, section, load)?,
            "CFOptions" => {
                for family in section.members("one object per column family")? {
                    apply_node(file.family_or(family.name(), new_family), family, load)?;
                }
            }
            _ => return Err(section.unknown("there is no section", ["DBOptions", "CFOptions"].into_iter())),
        }
    }
    Ok(())
}

/// Every option of a group, nested groups as objects.
pub fn to_value(group: &dyn OptionGroup) -> Value {
    let rows = group.settings().into_iter().filter(|(row, _)| row.home != Home::Unwritten);
    let rows = rows.map(|(row, setting)| (row.name.to_string(), setting.value()));
    let kept = kept::written(group).into_iter().map(|(name, text)| (name.to_owned(), Value::String(text)));
    Value::Object(rows.chain(kept).collect::<Map<_, _>>())
}

/// Sets every option of an object.
///
/// # Errors
/// `InvalidArgument` or `Unsupported`, with line, column and key. Options before the failing one stay set.
pub fn apply_node(group: &mut dyn OptionGroup, node: &Node, load: &mut Load) -> Result<()> {
    let members = node.members(&format!("options of {}", group.title()))?;
    read_ignore(members, load)?;
    check_names(group, members)?;
    members.iter().try_for_each(|member| apply_member(group, member, load))
}

/// Refuses two names of one option with different values.
///
/// # Errors
/// `InvalidArgument`, at the later name.
pub fn check_names(group: &mut dyn OptionGroup, members: &[Node]) -> Result<()> {
    let mut given = Given::default();
    for member in members {
        if let Some((row, _)) = group.find_mut(member.name()) {
            let text = member.text().unwrap_or_else(|_| member.to_value().to_string());
            given.note(row, member.name(), &text).map_err(|error| member.locate_key(error))?;
        }
    }
    Ok(())
}

/// Reads `ignore_unsupported_options` ahead of the other members: its position does not matter.
pub fn read_ignore(members: &[Node], load: &mut Load) -> Result<()> {
    for member in members.iter().filter(|member| member.name() == IGNORE_UNSUPPORTED) {
        string::set_flag(&mut load.ignore_unsupported, &member.text()?).map_err(|error| member.locate(error))?;
    }
    Ok(())
}

/// Sets one option from a value of any shape. An object is a nested group or an object of a class; list members are
/// joined with `:`, as in option strings.
///
/// # Errors
/// As [`apply_node`].
pub fn apply_member(group: &mut dyn OptionGroup, member: &Node, load: &mut Load) -> Result<()> {
    let mut free_text = false;
    if let Some((_, setting)) = group.find_mut(member.name()) {
        if let Content::Map(_) = &member.content {
            if let Some(nested) = setting.group_mut() {
                return apply_node(nested, member, load);
            }
            if let Some(outcome) = setting.set_object(member, load) {
                return outcome;
            }
        }
        free_text = setting.is_free_text();
    }
    let text = match &member.content {
        Content::List(items) => items.iter().map(Node::text).collect::<Result<Vec<_>>>()?.join(":"),
        Content::Map(_) if group.find_mut(member.name()).is_none() => member.to_value().to_string(), // refused below
        _ => member.text()?,
    };
    let text = if free_text { string::escape(&text) } else { text };
    apply_text(group, member, &text, load)
}

/// Sets the option named by `member` to `text`.
///
/// # Errors
/// As [`apply_node`].
pub fn apply_text(group: &mut dyn OptionGroup, member: &Node, text: &str, load: &mut Load) -> Result<()> {
    let warned = load.warnings.len();
    let outcome = match group.find_mut(member.name()) {
        Some(_) => string::set_row(group, member.name(), text, load).map_err(|error| member.locate(error)),
        None => string::set_unknown(group, member.name(), text, load).map_err(|error| member.locate_key(error)),
    };
    for warning in load.warnings.iter_mut().skip(warned) {
        *warning = member.remark(std::mem::take(warning));
    }
    outcome
}
