//! How a sealed memtable becomes a table: what users of ToplingDB's CSPP choose, by their names.

/// What a flush does with a memtable. Conversion is not there yet: whatever is chosen, flushes rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    pub to_sst: ConvertToSst,
    /// How a memtable refers to values that stay in the log, where it does.
    pub ref_log_format: RefLogFormat,
    /// Whether a mapped file that became a table is synced before the flush counts as done.
    pub sync_sst_file: bool,
}

impl Default for Conversion {
    fn default() -> Self {
        Conversion { to_sst: ConvertToSst::DontConvert, ref_log_format: RefLogFormat::ShortLogRef, sync_sst_file: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertToSst {
    /// Entries are written to a table of the usual format.
    DontConvert,
    /// The memtable's memory is written out and is the table.
    DumpMem,
    /// The memtable lies in a file, which becomes the table.
    FileMmap,
}

impl ConvertToSst {
    pub(crate) const NAMES: &[(&str, ConvertToSst)] = &[
        ("kDontConvert", ConvertToSst::DontConvert),
        ("kDumpMem", ConvertToSst::DumpMem),
        ("kFileMmap", ConvertToSst::FileMmap),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefLogFormat {
    /// Values are in the memtable.
    NoLogRef,
    /// Log and offset; short values are kept beside them instead.
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
