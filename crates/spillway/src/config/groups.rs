//! The sets of options in `DBOptions` and `CFOptions`: the template first, then the set's own entries, names resolved.

use base::options::dispatcher::{self, DispatcherParams, check_reader};
use base::options::document::{apply_member, apply_text, check_names, read_ignore};
use base::options::known::{self, IGNORE_UNSUPPORTED};
use base::options::row::{Load, OptionGroup};
use base::options::tree::{Content, Node};
use base::options::{
    DbOptions, FamilyOptions, MemtableChoice, TableClass, TableFactory, TableKind, TableOptions, string,
};
use base::{Error, ErrorKind, Result};

use crate::config::objects::{CacheUse, canonical_memtable, statistics, write_buffer_bytes};
use crate::config::sections::{DB_OPTIONS, Document, FAMILY_OPTIONS, Kind, Object};

/// Names the set to begin as.
const TEMPLATE: &str = "template";

/// Limit on the chain of templates.
const TEMPLATES_MAX: usize = 16;

/// Options of ToplingDB's documents missing from RocksDB's OPTIONS files, and why they have no effect.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("allow_fdatasync", "logs are synced with fdatasync"),
    ("compaction_executor_factory", "compactions run in this process"),
    ("compaction_thread_limiter", "max_background_jobs limits background work"),
    ("env", "the file system is supplied in code"),
    ("html_user_key_coder", "there is no web server"),
    ("info_log", "loggers are supplied in code"),
    ("inplace_update_support", "values are never changed in place"),
    ("listeners", "listeners are supplied in code"),
    ("max_level1_subcompactions", "max_subcompactions counts for every level"),
    ("rate_limiter", "set rate_limiter_bytes_per_sec"),
    ("row_cache", "values of hot keys are kept in the block cache"),
    ("sst_file_manager", "files are deleted at once"),
    ("table_properties_collector_factories", "tables have RocksDB's properties only"),
];

/// A family's options, and its tables' cache.
#[derive(Clone)]
pub(super) struct FamilySet {
    pub options: FamilyOptions,
    /// Unsupported options give warnings instead of errors.
    pub ignore_unsupported: bool,
    pub cache: Option<CacheUse>,
}

impl<'a> Document<'a> {
    pub(super) fn new_family(&self) -> FamilySet {
        let ignore_unsupported = self.start.db.ignore_unsupported_options;
        FamilySet { options: self.start.family.clone(), ignore_unsupported, cache: None }
    }

    /// The options of a set in `CFOptions`, or of one in its place.
    pub(super) fn family(&mut self, set: &'a Node) -> Result<FamilySet> {
        let mut family = self.new_family();
        for set in self.with_templates(FAMILY_OPTIONS, set)? {
            family.ignore_unsupported |= ignores_unsupported(set)?;
            let members = set.members("options of CFOptions")?;
            check_names(&mut family.options, members)?;
            for member in members.iter().filter(|member| member.name() != TEMPLATE) {
                self.apply_to_family(&mut family, member)?;
            }
        }
        family.options.validate().map_err(|error| set.locate(error))?;
        Ok(family)
    }

    /// The options of a set in `DBOptions`, or of one in its place.
    pub(super) fn db(&mut self, set: &'a Node) -> Result<DbOptions> {
        let mut db = self.start.db.clone();
        for set in self.with_templates(DB_OPTIONS, set)? {
            db.ignore_unsupported_options |= ignores_unsupported(set)?;
            for member in set.members("options of DBOptions")?.iter().filter(|member| member.name() != TEMPLATE) {
                self.apply_to_db(&mut db, member)?;
            }
        }
        db.validate().map_err(|error| set.locate(error))?;
        Ok(db)
    }

    /// A set after its templates, the furthest first.
    fn with_templates(&self, section: &str, set: &'a Node) -> Result<Vec<&'a Node>> {
        if !matches!(set.content, Content::Map(_)) && !set.is_null() {
            return Err(set.error(format!(
                "a set of options should be an object; {section} holds sets by name ({section}: {{NAME: {{OPTION: VALUE}}}})"
            )));
        }
        let mut sets = vec![set];
        while let Some(template) = sets.last().and_then(|set| set.member(TEMPLATE)) {
            let next = self.require(section, template)?;
            if sets.len() > TEMPLATES_MAX || sets.iter().any(|set| std::ptr::eq(*set, next)) {
                let names: Vec<&str> = sets.iter().chain([&next]).map(|set| set.name()).collect();
                return Err(template.error(format!("templates go in a circle, or too far: {}", names.join(" -> "))));
            }
            sets.push(next);
        }
        sets.reverse();
        Ok(sets)
    }

    /// Sets one option of a family.
    pub(super) fn apply_to_family(&mut self, family: &mut FamilySet, member: &'a Node) -> Result<()> {
        let kind = match member.name() {
            IGNORE_UNSUPPORTED => return Ok(()), // already looked up
            "memtable_factory" | "memtable" => Kind::MemTableRepFactory,
            "table_factory" => Kind::TableFactory,
            "merge_operator" => Kind::MergeOperator,
            "comparator" => Kind::Comparator,
            "prefix_extractor" => Kind::SliceTransform,
            "sst_partitioner_factory" => Kind::SstPartitionerFactory,
            "block_based_table_factory" => {
                let params = member.members("options of BlockBasedTable")?;
                let cache = self.table_params(params, &mut family.options.table)?;
                family.cache = cache.or(family.cache.take());
                return Ok(());
            }
            _ => return apply_plain(&mut family.options, member, family.ignore_unsupported, &mut self.warnings),
        };
        if member.is_null() && [Kind::MemTableRepFactory, Kind::TableFactory].contains(&kind) {
            return Ok(()); // says nothing
        }
        let referred = if member.is_null() { None } else { self.refer(kind.section(), member)? };
        let outcome = match (kind, referred) {
            (Kind::MemTableRepFactory, _) => {
                self.memtable_of(member, referred).map(|choice| family.options.memtable_factory = choice)
            }
            (Kind::TableFactory, Some(object)) => self.table_factory(object, family),
            (_, Some(object)) => {
                let text = self.option_text(member.name(), object)?;
                set_text(&mut family.options, member, &text, &mut self.warnings)
            }
            (_, None) => apply_plain(&mut family.options, member, family.ignore_unsupported, &mut self.warnings),
        };
        match referred {
            Some(_) => outcome,
            None => outcome.map_err(|error| self.neither(kind.section(), member, error)),
        }
    }

    /// The memtable named by `memtable_factory`: an object, an option string, or `{cspp: {mem_cap: 16G}}` without a
    /// class as in documents with options only.
    fn memtable_of(&mut self, member: &'a Node, referred: Option<&'a Node>) -> Result<MemtableChoice> {
        let option = match referred {
            Some(object) if std::ptr::eq(object, member) && member.member("class").is_none() => {
                MemtableChoice::from_object(member)?
            }
            Some(object) => return self.memtable(object),
            None => member.text()?.into(),
        };
        canonical_memtable(&option).map_err(|error| member.locate(error))
    }

    /// Sets one option of a database.
    pub(super) fn apply_to_db(&mut self, db: &mut DbOptions, member: &'a Node) -> Result<()> {
        match member.name() {
            "statistics" if matches!(member.text().as_deref(), Ok("true" | "false")) => {
                apply_plain(db, member, false, &mut self.warnings)
            }
            "statistics" if member.is_null() => {
                db.statistics = false;
                Ok(())
            }
            "statistics" => {
                let object = self.require(Kind::Statistics.section(), member)?;
                db.statistics = statistics(object, &mut self.warnings)?;
                Ok(())
            }
            "write_buffer_manager" if member.is_null() => Ok(()),
            "write_buffer_manager" => {
                let object = self.require(Kind::WriteBufferManager.section(), member)?;
                db.db_write_buffer_size = write_buffer_bytes(object, &mut self.warnings)?;
                Ok(())
            }
            _ => {
                let ignore_unsupported = db.ignore_unsupported_options;
                apply_plain(db, member, ignore_unsupported, &mut self.warnings)
            }
        }
    }
}

/// True if a database's options have the name.
pub(super) fn is_db_option(name: &str) -> bool {
    let mut db = DbOptions::default();
    db.find_mut(name).is_some()
        || db.unhonoured().iter().any(|row| row.name == name)
        || ["statistics", "write_buffer_manager"].contains(&name)
}

/// Whether a set of options turns errors for unsupported ones into warnings.
pub(super) fn ignores_unsupported(set: &Node) -> Result<bool> {
    let mut load = Load::default();
    read_ignore(set.members("options")?, &mut load)?;
    Ok(load.ignore_unsupported)
}

fn apply_plain(
    group: &mut dyn OptionGroup,
    member: &Node,
    ignore_unsupported: bool,
    warnings: &mut Vec<String>,
) -> Result<()> {
    let name = member.name();
    let is_known = group.find_mut(name).is_some() || group.unhonoured().iter().any(|row| row.name == name);
    if !is_known && let Some((_, reason)) = WITHOUT_EFFECT.iter().find(|(foreign, _)| *foreign == name) {
        let matters = known::FAMILY.iter().find(|row| row.name == name); // a family option, accepted here
        let text = member.to_value().to_string();
        if let Some(row) = matters.filter(|row| !row.is_default(&text) && !ignore_unsupported) {
            return Err(member.locate_key(row.refusal(&text, reason)));
        }
        warnings.push(member.remark(format!("this has no effect here: {reason}")));
        return Ok(());
    }
    if !is_known && let Some(home) = home_of(name) {
        return Err(member.locate_key(Error::invalid_argument(format!("this is an option of {home}"))));
    }
    let mut load = Load { ignore_unsupported, ..Load::default() };
    let outcome = apply_member(group, member, &mut load);
    warnings.append(&mut load.warnings);
    outcome
}

/// The section of an option.
fn home_of(name: &str) -> Option<&'static str> {
    if DbOptions::default().find_mut(name).is_some() {
        return Some(DB_OPTIONS);
    }
    if FamilyOptions::default().find_mut(name).is_some() {
        return Some(FAMILY_OPTIONS);
    }
    TableOptions::default().find_mut(name).map(|_| "class BlockBasedTable, in TableFactory")
}

pub(super) fn set_text(
    group: &mut dyn OptionGroup,
    member: &Node,
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut load = Load::default();
    let outcome = apply_text(group, member, text, &mut load);
    warnings.append(&mut load.warnings);
    outcome
}

/// The role of an object of section `TableFactory`.
enum TableObject {
    Writer(TableFactory),
    /// A read-only class.
    Reader(TableClass),
}

/// Options of block-based tables given by objects. A family has one set.
struct BlockTables<'a> {
    /// The family's earlier ones.
    start: TableOptions,
    start_cache: Option<CacheUse>,
    given: Option<(&'a Node, TableOptions, Option<CacheUse>)>,
}

impl<'a> Document<'a> {
    /// Checks an object, used or not.
    pub(super) fn try_table_factory(&mut self, node: &'a Node) -> Result<()> {
        let mut blocks = BlockTables::of(&self.new_family());
        self.table_object(node, &mut blocks).map(drop)
    }

    /// Applies an object to a family: the format of its tables, and the options of block-based ones.
    pub(super) fn table_factory(&mut self, node: &'a Node, family: &mut FamilySet) -> Result<()> {
        let mut blocks = BlockTables::of(family);
        family.options.table_factory = match self.table_object(node, &mut blocks)? {
            TableObject::Writer(factory) => factory,
            TableObject::Reader(class) => class.written().map_err(|error| node.locate(error))?.into(),
        };
        if let Some((_, table, cache)) = blocks.given {
            family.options.table = table;
            family.cache = cache;
        }
        Ok(())
    }

    fn table_object(&mut self, node: &'a Node, blocks: &mut BlockTables<'a>) -> Result<TableObject> {
        let object = Object::new(node)?;
        if dispatcher::NAMES.contains(&object.class_name.as_str()) {
            return Ok(TableObject::Writer(self.dispatcher(&object, blocks)?));
        }
        Ok(match self.table_class(node, blocks)? {
            TableClass::Written(kind) => TableObject::Writer(kind.into()),
            class => TableObject::Reader(class),
        })
    }

    fn dispatcher(&mut self, object: &Object<'a>, blocks: &mut BlockTables<'a>) -> Result<TableFactory> {
        let mut load = Load::default();
        let parts = DispatcherParams::of(object.class, object.params, &mut load)?;
        self.warnings.append(&mut load.warnings);
        for reader in parts.readers {
            let class = self.table_named(reader, blocks)?;
            check_reader(reader, &class)?;
        }
        let mut writer = |node: &'a Node| -> Result<TableKind> {
            self.table_named(node, blocks)?.written().map_err(|error| node.locate(error))
        };
        let default = writer(parts.default)?;
        let by_level = parts.level_writers.iter().map(writer).collect::<Result<_>>()?;
        TableFactory::by_level(default, by_level).map_err(|error| object.class.locate(error))
    }

    /// The class of a value in a dispatcher: an object, its name, or the bare name of a class.
    fn table_named(&mut self, value: &'a Node, blocks: &mut BlockTables<'a>) -> Result<TableClass> {
        let section = Kind::TableFactory.section();
        if let Content::List(_) = value.content {
            return Err(value.error("this should be the name of one table factory"));
        }
        match self.refer(section, value)? {
            Some(object) => self.table_class(object, blocks),
            None => TableClass::of(value, &value.text()?, &[], &mut Load::default()).map_err(|error| {
                if error.kind() == ErrorKind::Unsupported { error } else { self.unknown(section, value) }
            }),
        }
    }

    /// The class of an object other than a dispatcher.
    fn table_class(&mut self, node: &'a Node, blocks: &mut BlockTables<'a>) -> Result<TableClass> {
        let object = Object::new(node)?;
        if ["BlockBasedTable", "BlockBased"].contains(&object.class_name.as_str()) {
            let mut table = blocks.start.clone();
            let cache = self.table_params(object.params, &mut table)?;
            blocks.give(node, table, cache)?;
            return Ok(TableClass::Written(TableKind::BlockBased));
        }
        if dispatcher::NAMES.contains(&object.class_name.as_str()) {
            return Err(object.class.error("a dispatcher stands in no other dispatcher"));
        }
        let mut load = Load::default();
        let class = TableClass::of(object.class, &object.class_name, object.params, &mut load)?;
        self.warnings.append(&mut load.warnings);
        Ok(class)
    }
}

impl<'a> BlockTables<'a> {
    fn of(family: &FamilySet) -> BlockTables<'a> {
        BlockTables { start: family.options.table.clone(), start_cache: family.cache.clone(), given: None }
    }

    /// # Errors
    /// `Unsupported`, with the place: an earlier object gave different options.
    fn give(&mut self, node: &'a Node, table: TableOptions, cache: Option<CacheUse>) -> Result<()> {
        let cache = cache.or(self.start_cache.clone());
        match &self.given {
            None => self.given = Some((node, table, cache)),
            Some((_, same, same_cache)) if string::print(same) == string::print(&table) && *same_cache == cache => {}
            Some((other, ..)) => {
                let what = format!(
                    "a family has one set of options for block-based tables, and `{}` differs from `{}`",
                    node.name(),
                    other.name()
                );
                return Err(node.locate(Error::unsupported(what)));
            }
        }
        Ok(())
    }
}
