//! Table factories: every class as the options it becomes, and the dispatcher with its readers and writers.

use base::options::dispatcher::{self, DispatcherParams, check_reader};
use base::options::row::Load;
use base::options::tree::{Content, Node};
use base::options::{TableClass, TableFactory, TableKind, TableOptions, string};
use base::{Error, ErrorKind, Result};

use crate::config::groups::FamilySet;
use crate::config::objects::CacheUse;
use crate::config::sections::{Document, Kind, Object};

/// What an object of section `TableFactory` is for.
enum TableObject {
    Writer(TableFactory),
    /// A class that is only read.
    Reader(TableClass),
}

/// The options of block-based tables that objects give, of which a family has one set.
struct BlockTables<'a> {
    /// As the family has them before.
    start: TableOptions,
    start_cache: Option<CacheUse>,
    given: Option<(&'a Node, TableOptions, Option<CacheUse>)>,
}

impl<'a> Document<'a> {
    /// Looks at an object that perhaps nobody uses.
    pub(super) fn try_table_factory(&self, node: &'a Node, warnings: &mut Vec<String>) -> Result<()> {
        let mut blocks = BlockTables::of(&self.new_family());
        self.table_object(node, &mut blocks, warnings).map(drop)
    }

    /// Sets what an object says of a family: how its tables are written, and the options of the block-based ones.
    pub(super) fn table_factory(
        &self,
        node: &'a Node,
        family: &mut FamilySet,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let mut blocks = BlockTables::of(family);
        family.options.table_factory = match self.table_object(node, &mut blocks, warnings)? {
            TableObject::Writer(factory) => factory,
            TableObject::Reader(class) => class.written().map_err(|error| node.locate(error))?.into(),
        };
        if let Some((_, table, cache)) = blocks.given {
            family.options.table = table;
            family.cache = cache;
        }
        Ok(())
    }

    fn table_object(
        &self,
        node: &'a Node,
        blocks: &mut BlockTables<'a>,
        warnings: &mut Vec<String>,
    ) -> Result<TableObject> {
        let object = Object::new(node)?;
        if dispatcher::NAMES.contains(&object.class_name.as_str()) {
            return Ok(TableObject::Writer(self.dispatcher(&object, blocks, warnings)?));
        }
        Ok(match self.table_class(node, blocks, warnings)? {
            TableClass::Written(kind) => TableObject::Writer(kind.into()),
            class => TableObject::Reader(class),
        })
    }

    fn dispatcher(
        &self,
        object: &Object<'a>,
        blocks: &mut BlockTables<'a>,
        warnings: &mut Vec<String>,
    ) -> Result<TableFactory> {
        let mut load = Load::default();
        let parts = DispatcherParams::of(object.class, object.params, &mut load)?;
        warnings.append(&mut load.warnings);
        for reader in parts.readers {
            let class = self.table_named(reader, blocks, warnings)?;
            check_reader(reader, &class)?;
        }
        let mut writer = |node: &'a Node| -> Result<TableKind> {
            self.table_named(node, blocks, warnings)?.written().map_err(|error| node.locate(error))
        };
        let default = writer(parts.default)?;
        let by_level = parts.level_writers.iter().map(writer).collect::<Result<_>>()?;
        TableFactory::by_level(default, by_level).map_err(|error| object.class.locate(error))
    }

    /// The class that a value in a dispatcher stands for: an object, the name of one, or the bare name of a class.
    fn table_named(
        &self,
        value: &'a Node,
        blocks: &mut BlockTables<'a>,
        warnings: &mut Vec<String>,
    ) -> Result<TableClass> {
        let section = Kind::TableFactory.section();
        if let Content::List(_) = value.content {
            return Err(value.error("this should be the name of one table factory"));
        }
        match self.refer(section, value)? {
            Some(object) => self.table_class(object, blocks, warnings),
            None => TableClass::of(value, &value.text()?, &[], &mut Load::default()).map_err(|error| {
                if error.kind() == ErrorKind::Unsupported { error } else { self.unknown(section, value) }
            }),
        }
    }

    /// The class of an object that is no dispatcher.
    fn table_class(
        &self,
        node: &'a Node,
        blocks: &mut BlockTables<'a>,
        warnings: &mut Vec<String>,
    ) -> Result<TableClass> {
        let object = Object::new(node)?;
        if ["BlockBasedTable", "BlockBased"].contains(&object.class_name.as_str()) {
            let mut table = blocks.start.clone();
            let cache = self.table_params(object.params, &mut table, warnings)?;
            blocks.give(node, table, cache)?;
            return Ok(TableClass::Written(TableKind::BlockBased));
        }
        if dispatcher::NAMES.contains(&object.class_name.as_str()) {
            return Err(object.class.error("a dispatcher stands in no other dispatcher"));
        }
        let mut load = Load::default();
        let class = TableClass::of(object.class, &object.class_name, object.params, &mut load)?;
        warnings.append(&mut load.warnings);
        Ok(class)
    }
}

impl<'a> BlockTables<'a> {
    fn of(family: &FamilySet) -> BlockTables<'a> {
        BlockTables { start: family.options.table.clone(), start_cache: family.cache.clone(), given: None }
    }

    /// # Errors
    /// `Unsupported`, with the place: an object before has given other options.
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
