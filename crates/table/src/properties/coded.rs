//! The properties block: one list of names and fields, read and written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base::coding::{Reader, decode_u32, decode_u64, put_varint64};
use base::options::IndexType;
use base::{Error, Result, name};

use super::{ExternalFile, GLOBAL_SEQNO_NAME, Properties};
use crate::block::{Block, BlockBuilder, walk};

/// RocksDB's name for an absent object.
const NO_NAME: &str = "nullptr";

/// Stands for "no family" in the file.
const NO_FAMILY: u64 = i32::MAX as u64;

const EXTERNAL_VERSION: &str = "rocksdb.external_sst_file.version";

/// Where a property's value goes, and how it is stored.
enum Field<'a> {
    /// A varint.
    Number(&'a mut u64),
    /// Omitted if zero.
    SomeNumber(&'a mut u64),
    /// A varint.
    Bit(&'a mut bool),
    /// `0` or `1` as text.
    Flag(&'a mut bool),
    Text(&'a mut String),
    /// Omitted if empty.
    SomeText(&'a mut String),
    /// `nullptr` if empty.
    Name(&'a mut String),
    /// A varint.
    Family(&'a mut Option<u32>),
    /// Four bytes.
    Index(&'a mut IndexType),
    /// Always this.
    Fixed(&'static [u8]),
}

impl Properties {
    fn fields(&mut self) -> Vec<(&'static str, Field<'_>)> {
        use Field::*;
        vec![
            ("rocksdb.block.based.table.index.type", Index(&mut self.index_type)),
            ("rocksdb.block.based.table.prefix.filtering", Flag(&mut self.prefix_filtering)),
            ("rocksdb.block.based.table.whole.key.filtering", Flag(&mut self.whole_key_filtering)),
            ("rocksdb.column.family.id", Family(&mut self.family_id)),
            ("rocksdb.column.family.name", SomeText(&mut self.family_name)),
            ("rocksdb.comparator", Text(&mut self.comparator)),
            ("rocksdb.compression", Text(&mut self.compression)),
            ("rocksdb.compression_options", Text(&mut self.compression_options)),
            ("rocksdb.creating.db.identity", SomeText(&mut self.db_id)),
            ("rocksdb.creating.host.identity", SomeText(&mut self.host_id)),
            ("rocksdb.creating.session.identity", SomeText(&mut self.session_id)),
            ("rocksdb.creation.time", Number(&mut self.creation_time_s)),
            ("rocksdb.data.size", Number(&mut self.data_bytes)),
            ("rocksdb.deleted.keys", Number(&mut self.deletions)),
            ("rocksdb.file.creation.time", SomeNumber(&mut self.file_creation_time_s)),
            ("rocksdb.filter.policy", SomeText(&mut self.filter_policy)),
            ("rocksdb.filter.size", Number(&mut self.filter_bytes)),
            ("rocksdb.fixed.key.length", Fixed(&[0])),
            ("rocksdb.format.version", Number(&mut self.format_version)),
            ("rocksdb.index.key.is.user.key", Bit(&mut self.index_key_is_user_key)),
            ("rocksdb.index.partitions", SomeNumber(&mut self.index_partitions)),
            ("rocksdb.index.size", Number(&mut self.index_bytes)),
            ("rocksdb.index.value.is.delta.encoded", Bit(&mut self.index_value_is_delta)),
            ("rocksdb.merge.operands", Number(&mut self.merge_operands)),
            ("rocksdb.merge.operator", Name(&mut self.merge_operator)),
            ("rocksdb.num.data.blocks", Number(&mut self.data_blocks)),
            ("rocksdb.num.entries", Number(&mut self.entries)),
            ("rocksdb.num.filter_entries", Number(&mut self.filter_entries)),
            ("rocksdb.num.range-deletions", Number(&mut self.range_deletions)),
            ("rocksdb.oldest.key.time", Number(&mut self.oldest_key_time_s)),
            ("rocksdb.original.file.number", Number(&mut self.original_file_number)),
            ("rocksdb.prefix.extractor.name", Name(&mut self.prefix_extractor)),
            ("rocksdb.property.collectors", Fixed(b"[]")),
            ("rocksdb.raw.key.size", Number(&mut self.raw_key_bytes)),
            ("rocksdb.raw.value.size", Number(&mut self.raw_value_bytes)),
            ("rocksdb.top-level.index.size", SomeNumber(&mut self.top_level_index_bytes)),
        ]
    }

    /// The contents of the block: every property, sorted by name.
    pub fn encode(&self) -> Vec<u8> {
        let others = self.other.iter().map(|(name, value)| (name::bytes(name), value.clone()));
        let mut all: BTreeMap<Cow<'_, [u8]>, Vec<u8>> = others.collect();
        let mut copy = self.clone();
        let fields = copy.fields().into_iter();
        all.extend(fields.filter_map(|(name, field)| Some((name.as_bytes().into(), field.stored()?))));
        if let Some(external) = self.external {
            all.insert(EXTERNAL_VERSION.as_bytes().into(), external.version.to_le_bytes().to_vec());
            all.insert(GLOBAL_SEQNO_NAME.as_bytes().into(), external.global_seqno.to_le_bytes().to_vec());
        }
        let mut block = BlockBuilder::new(1);
        all.iter().for_each(|(name, value)| block.add(name, value));
        block.finish().to_vec()
    }

    /// Reads every property. Unknown ones are kept in `other`.
    ///
    /// # Errors
    /// `Corruption`: a malformed block or value. `Unsupported`: an index of an unknown type.
    pub fn decode(block: &Block) -> Result<Properties> {
        let mut properties = Properties::default();
        let (mut external, mut has_global_seqno) = (ExternalFile::default(), false);
        let mut other = BTreeMap::new();
        let mut fields = properties.fields();
        walk(block, &mut |name, value| {
            let value = block.bytes().get(value).unwrap_or_default();
            let name = name::text(name);
            let malformed = || Error::corruption(format!("property {name} is malformed"));
            match &*name {
                EXTERNAL_VERSION => external.version = decode_u32(value).ok_or_else(malformed)?,
                GLOBAL_SEQNO_NAME => {
                    has_global_seqno = true;
                    external.global_seqno = decode_u64(value).ok_or_else(malformed)?;
                }
                known => match fields.iter_mut().find(|(name, _)| *name == known) {
                    Some((_, field)) => field.take(known, value)?,
                    None => drop(other.insert(name.into_owned(), value.to_vec())),
                },
            }
            Ok(())
        })?;
        if external.version == ExternalFile::VERSION && !has_global_seqno {
            return Err(Error::corruption(format!("property {GLOBAL_SEQNO_NAME} is missing")));
        }
        properties.other = other;
        properties.external = (external.version > 0).then_some(external);
        Ok(properties)
    }
}

impl Field<'_> {
    /// `None` if the property is omitted.
    fn stored(self) -> Option<Vec<u8>> {
        use Field::*;
        let varint = |number| {
            let mut value = Vec::new();
            put_varint64(&mut value, number);
            value
        };
        Some(match self {
            SomeNumber(0) => return None,
            SomeText(text) if text.is_empty() => return None,
            Name(text) if text.is_empty() => NO_NAME.into(),
            Number(number) | SomeNumber(number) => varint(*number),
            Bit(set) => varint(u64::from(*set)),
            Flag(set) => vec![if *set { b'1' } else { b'0' }],
            Text(text) | SomeText(text) | Name(text) => name::bytes(text).into_owned(),
            Family(id) => varint(id.map_or(NO_FAMILY, u64::from)),
            Index(index) => u32::from(index.number()).to_le_bytes().to_vec(),
            Fixed(value) => value.to_vec(),
        })
    }

    fn take(&mut self, name: &str, value: &[u8]) -> Result<()> {
        use Field::*;
        let varint = || Reader::new(value).varint64(name);
        match self {
            Number(number) | SomeNumber(number) => **number = varint()?,
            Bit(set) => **set = varint()? != 0,
            Flag(set) => **set = value == b"1",
            Text(text) | SomeText(text) | Name(text) => {
                let stored = name::text(value);
                **text = if stored == NO_NAME { String::new() } else { stored.into_owned() };
            }
            Family(id) => **id = u32::try_from(varint()?).ok().filter(|id| u64::from(*id) != NO_FAMILY),
            Index(index) => {
                let malformed = || Error::corruption(format!("property {name} is malformed"));
                let stored = decode_u32(value).ok_or_else(malformed)?;
                let known = u8::try_from(stored).ok().and_then(IndexType::from_number);
                **index = known.ok_or_else(|| Error::unsupported(format!("index of type {stored}")))?;
            }
            Fixed(_) => {}
        }
        Ok(())
    }
}
