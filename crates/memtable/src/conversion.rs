//! How a sealed memtable becomes a table: the options of ToplingDB's CSPP, by their names.

use base::Result;
use base::value_source::ReferenceForm;
use serde_json::{Map, Value};

use crate::arguments::Arguments;

/// How a flush treats a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// How a memtable becomes a table.
    pub to_sst: ConvertToSst,
    /// How a memtable refers to values kept in the WAL, if the database option `memtable_as_log_index` is set.
    pub ref_log_format: RefLogFormat,
    /// Whether a memtable file converted to a table is synced before the flush counts as done.
    pub sync_sst_file: bool,
}

impl Default for Conversion {
    fn default() -> Self {
        Conversion { to_sst: ConvertToSst::DontConvert, ref_log_format: RefLogFormat::ShortLogRef, sync_sst_file: true }
    }
}

impl Conversion {
    /// # Errors
    /// `InvalidArgument`: an unknown name.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Result<Conversion> {
        let default = Conversion::default();
        Ok(Conversion {
            to_sst: arguments.choice("convert_to_sst", ConvertToSst::NAMES)?.unwrap_or(default.to_sst),
            ref_log_format: arguments.choice("ref_log_format", RefLogFormat::NAMES)?.unwrap_or(default.ref_log_format),
            sync_sst_file: arguments.flag("sync_sst_file")?.unwrap_or(default.sync_sst_file),
        })
    }

    /// Whether memtables become tables, so that their memory must be a whole image.
    pub fn is_wanted(&self) -> bool {
        self.to_sst != ConvertToSst::DontConvert
    }

    /// How converted memtables refer to values in the WAL; `None` if they hold all values themselves. Rewritten
    /// memtables use no references: the flush would have to gather the values from the WAL.
    pub fn reference_form(&self) -> Option<ReferenceForm> {
        match self.ref_log_format {
            _ if !self.is_wanted() => None,
            RefLogFormat::NoLogRef => None,
            RefLogFormat::PlainLogRef => Some(ReferenceForm::Plain),
            RefLogFormat::ShortLogRef => Some(ReferenceForm::Short),
        }
    }

    pub(crate) fn named_values(&self) -> [(&'static str, Value); 3] {
        [
            ("convert_to_sst", name_of(ConvertToSst::NAMES, self.to_sst)),
            ("ref_log_format", name_of(RefLogFormat::NAMES, self.ref_log_format)),
            ("sync_sst_file", Value::Bool(self.sync_sst_file)),
        ]
    }

    /// The values that are not the defaults, by name.
    pub(crate) fn changed_values(&self) -> Map<String, Value> {
        let both = self.named_values().into_iter().zip(Conversion::default().named_values());
        both.filter(|(own, default)| own != default).map(|((name, value), _)| (name.to_owned(), value)).collect()
    }
}

fn name_of<T: PartialEq>(names: &[(&str, T)], value: T) -> Value {
    let found = names.iter().find(|(_, choice)| *choice == value);
    Value::from(found.expect("every choice has a name").0)
}

/// How a memtable becomes a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertToSst {
    /// Entries are written to a table of the usual format.
    DontConvert,
    /// The memtable's memory is written out and is the table.
    DumpMem,
    /// The memtable's own file becomes the table.
    FileMmap,
}

impl ConvertToSst {
    pub(crate) const NAMES: &[(&str, ConvertToSst)] = &[
        ("kDontConvert", ConvertToSst::DontConvert),
        ("kDumpMem", ConvertToSst::DumpMem),
        ("kFileMmap", ConvertToSst::FileMmap),
    ];
}

/// How a memtable refers to values in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefLogFormat {
    /// Values are in the memtable.
    NoLogRef,
    /// WAL and offset; short values are kept inline instead.
    PlainLogRef,
    /// The same in fewer bytes.
    ShortLogRef,
}

impl RefLogFormat {
    pub(crate) const NAMES: &[(&str, RefLogFormat)] = &[
        ("kNoLogRef", RefLogFormat::NoLogRef),
        ("kPlainLogRef", RefLogFormat::PlainLogRef),
        ("kShortLogRef", RefLogFormat::ShortLogRef),
    ];
}
