//! Reads the properties block.

use std::borrow::Cow;

use base::coding::{Reader, decode_u32, decode_u64};
use base::options::IndexType;
use base::{Error, Result};

use super::encode::NO_NAME;
use super::{ExternalFile, Properties, names};
use crate::block::{Block, walk};

impl Properties {
    /// Reads every property. Unknown ones are kept in `other`.
    ///
    /// # Errors
    /// `Corruption`: a malformed block or value. `Unsupported`: an index of an unknown type.
    pub fn decode(block: &Block) -> Result<Properties> {
        let mut properties = Properties::default();
        let mut external = ExternalFile::default();
        let mut has_global_seqno = false;
        walk(block, &mut |name, value| {
            let value = block.bytes().get(value).unwrap_or_default();
            let name = std::str::from_utf8(name).map_or_else(|_| String::from_utf8_lossy(name), Cow::Borrowed);
            let taken = properties.take_flag(&name, value)?
                || properties.take_number(&name, value)?
                || properties.take_text(&name, value)
                || external.take(&name, value)?;
            has_global_seqno |= name == names::GLOBAL_SEQNO;
            if !taken {
                properties.other.insert(name.into_owned(), value.to_vec());
            }
            Ok(())
        })?;
        if external.version == ExternalFile::VERSION && !has_global_seqno {
            return Err(Error::corruption(format!("property {} is missing", names::GLOBAL_SEQNO)));
        }
        properties.external = (external.version > 0).then_some(external);
        Ok(properties)
    }

    fn take_flag(&mut self, name: &str, value: &[u8]) -> Result<bool> {
        match name {
            names::PREFIX_FILTERING => self.prefix_filtering = value == b"1",
            names::WHOLE_KEY_FILTERING => self.whole_key_filtering = value == b"1",
            names::INDEX_KEY_IS_USER_KEY => self.index_key_is_user_key = number(name, value)? != 0,
            names::INDEX_VALUE_IS_DELTA => self.index_value_is_delta = number(name, value)? != 0,
            names::INDEX_TYPE => {
                let stored = decode_u32(value).ok_or_else(|| malformed(name))?;
                let known = u8::try_from(stored).ok().and_then(IndexType::from_number);
                self.index_type = known.ok_or_else(|| Error::unsupported(format!("index of type {stored}")))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_number(&mut self, name: &str, value: &[u8]) -> Result<bool> {
        let field = match name {
            names::DATA_SIZE => &mut self.data_bytes,
            names::INDEX_SIZE => &mut self.index_bytes,
            names::INDEX_PARTITIONS => &mut self.index_partitions,
            names::TOP_LEVEL_INDEX_SIZE => &mut self.top_level_index_bytes,
            names::FILTER_SIZE => &mut self.filter_bytes,
            names::FILTER_ENTRIES => &mut self.filter_entries,
            names::RAW_KEY_SIZE => &mut self.raw_key_bytes,
            names::RAW_VALUE_SIZE => &mut self.raw_value_bytes,
            names::DATA_BLOCKS => &mut self.data_blocks,
            names::ENTRIES => &mut self.entries,
            names::DELETED_KEYS => &mut self.deletions,
            names::MERGE_OPERANDS => &mut self.merge_operands,
            names::RANGE_DELETIONS => &mut self.range_deletions,
            names::FORMAT_VERSION => &mut self.format_version,
            names::CREATION_TIME => &mut self.creation_time_s,
            names::OLDEST_KEY_TIME => &mut self.oldest_key_time_s,
            names::FILE_CREATION_TIME => &mut self.file_creation_time_s,
            names::ORIGINAL_FILE_NUMBER => &mut self.original_file_number,
            names::FAMILY_ID => {
                let id = number(name, value)?;
                self.family_id = u32::try_from(id).ok().filter(|&id| id != i32::MAX as u32);
                return Ok(true);
            }
            names::FIXED_KEY_LENGTH => return Ok(true),
            _ => return Ok(false),
        };
        *field = number(name, value)?;
        Ok(true)
    }

    fn take_text(&mut self, name: &str, value: &[u8]) -> bool {
        let field = match name {
            names::FAMILY_NAME => &mut self.family_name,
            names::COMPARATOR => &mut self.comparator,
            names::MERGE_OPERATOR => &mut self.merge_operator,
            names::PREFIX_EXTRACTOR => &mut self.prefix_extractor,
            names::FILTER_POLICY => &mut self.filter_policy,
            names::COMPRESSION => &mut self.compression,
            names::COMPRESSION_OPTIONS => &mut self.compression_options,
            names::DB_ID => &mut self.db_id,
            names::SESSION_ID => &mut self.session_id,
            names::HOST_ID => &mut self.host_id,
            names::PROPERTY_COLLECTORS => return true,
            _ => return false,
        };
        let text = String::from_utf8_lossy(value);
        *field = if text == NO_NAME { String::new() } else { text.into_owned() };
        true
    }
}

impl ExternalFile {
    fn take(&mut self, name: &str, value: &[u8]) -> Result<bool> {
        match name {
            names::EXTERNAL_VERSION => self.version = decode_u32(value).ok_or_else(|| malformed(name))?,
            names::GLOBAL_SEQNO => self.global_seqno = decode_u64(value).ok_or_else(|| malformed(name))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn number(name: &str, value: &[u8]) -> Result<u64> {
    Reader::new(value).varint64(name)
}

fn malformed(name: &str) -> Error {
    Error::corruption(format!("property {name} is malformed"))
}
