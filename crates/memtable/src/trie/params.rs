//! The trie's parameters, with the names and defaults of ToplingDB's CSPP memtable. Parameters without a counterpart
//! here (reader tokens, per-thread memory, background commits, references to values in a log) are accepted, and a log
//! line says they have no effect.

use base::note;
use base::{Error, Result};
use serde_json::{Map, Value};

use super::memory::HEAD_BYTES_MAX;
use crate::arena::{ArenaConfig, CAPACITY_MAX_BYTES, GRANULE_BYTES, IMAGE_HEADER_BYTES, Source};
use crate::arguments::bytes_text;
use crate::registry::Arguments;
use crate::{Conversion, MemtableConfig};

const MEM_CAP_MIN_BYTES: usize = 64 << 10;
const MEM_CAP_DEFAULT_BYTES: usize = 2 << 30;

/// CSPP's own default, so it is not printed.
const CHUNK_DEFAULT_BYTES: usize = 16 << 10;
const CHUNK_MAX_BYTES: usize = 1 << 30;

/// All names, for the registry.
pub(crate) const NAMES: &[&str] = &[
    "mem_cap",
    "use_vm",
    "use_hugepage",
    "vm_explicit_commit",
    "accurate_memsize",
    "token_use_idle",
    "chunk_size",
    "convert_to_sst",
    "ref_log_format",
    "sync_sst_file",
    "read_by_writer_token",
    "vm_background_commit",
    "cspp_debug_level",
];

/// The flags at the end of [`NAMES`], accepted without effect and not stored.
const FORGOTTEN_FLAGS: [&str; 2] = ["read_by_writer_token", "vm_background_commit"];

/// The same, a number.
const DEBUG_LEVEL: &str = "cspp_debug_level";
const FORGOTTEN: usize = FORGOTTEN_FLAGS.len() + 1;

/// ToplingDB's values of `use_hugepage`. They name the system call too; here there is only one.
const HUGE_PAGE_NAMES: &[(&str, bool)] = &[("kNone", false), ("kMmap", true), ("kTransparent", true)];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Params {
    /// Upper bound of an arena, in bytes of address space, independent of the write buffer size. Memory is committed on
    /// use.
    mem_cap: usize,
    /// True: an anonymous mapping. False: the allocator's memory, all counted as held.
    use_vm: bool,
    /// True: huge pages for arenas of any size. False: only for arenas of 4 MiB and more, where they pay.
    use_hugepage: bool,
    /// True: prefaults pages ahead of writers, in steps, so a lack of memory means a full memtable, not a signal.
    /// False: pages fault in on first touch.
    vm_explicit_commit: bool,
    /// True: memory held is counted by the kernel, page by page: up to 0.3 ms per GiB of arena, each call. False: bytes
    /// allocated, exact to a page, for two loads.
    accurate_memsize: bool,
    token_use_idle: bool,
    chunk_size: usize,
    conversion: Conversion,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            mem_cap: MEM_CAP_DEFAULT_BYTES,
            use_vm: true,
            use_hugepage: false,
            vm_explicit_commit: false,
            accurate_memsize: false,
            token_use_idle: true,
            chunk_size: CHUNK_DEFAULT_BYTES,
            conversion: Conversion::default(),
        }
    }
}

impl Params {
    /// # Errors
    /// `InvalidArgument`: a value is out of bounds or of the wrong kind, or values contradict each other.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Result<Params> {
        let default = Params::default();
        let flag = |key, default| Ok::<bool, Error>(arguments.flag(key)?.unwrap_or(default));
        let params = Params {
            mem_cap: arguments.bytes("mem_cap", MEM_CAP_MIN_BYTES..=CAPACITY_MAX_BYTES)?.unwrap_or(default.mem_cap),
            use_vm: flag("use_vm", default.use_vm)?,
            use_hugepage: arguments.flag_or("use_hugepage", HUGE_PAGE_NAMES)?.unwrap_or(default.use_hugepage),
            vm_explicit_commit: flag("vm_explicit_commit", default.vm_explicit_commit)?,
            accurate_memsize: flag("accurate_memsize", default.accurate_memsize)?,
            token_use_idle: flag("token_use_idle", default.token_use_idle)?,
            chunk_size: arguments.bytes("chunk_size", 1..=CHUNK_MAX_BYTES)?.unwrap_or(default.chunk_size),
            conversion: Conversion::from_arguments(arguments)?,
        };
        params.check(arguments.name())?;
        params.tell_what_has_no_effect();
        tell_what_is_forgotten(arguments)?;
        Ok(params)
    }

    fn check(&self, name: &str) -> Result<()> {
        for (key, set) in [("use_hugepage", self.use_hugepage), ("vm_explicit_commit", self.vm_explicit_commit)] {
            if set && !self.use_vm {
                return Err(Error::invalid_argument(format!(
                    "{key} of memtable {name} is true, and use_vm false: it is about memory that is mapped"
                )));
            }
        }
        Ok(())
    }

    fn tell_what_has_no_effect(&self) {
        let default = Params::default();
        if self.token_use_idle != default.token_use_idle {
            note::info!("token_use_idle has no effect: readers of the trie hold no tokens");
        }
        if self.chunk_size != default.chunk_size {
            note::info!("chunk_size has no effect: the trie sets no memory aside for each thread");
        }
    }

    /// Says so if memtables are full before the write buffer is.
    pub(crate) fn without_effect(&self, write_buffer_bytes: usize) -> Option<String> {
        let (buffer, cap) = (bytes_text(write_buffer_bytes), bytes_text(self.mem_cap));
        (self.mem_cap < write_buffer_bytes)
            .then(|| format!("write_buffer_size ({buffer}) has no effect: memtables are full at mem_cap ({cap})"))
    }

    pub(crate) fn conversion(&self) -> Conversion {
        self.conversion
    }

    /// The option string of the representation called `name`: values other than the defaults, as JSON.
    pub(crate) fn option_string(&self, name: &str) -> String {
        let mut object = Map::new();
        for ((key, value), (_, default)) in self.named_values().into_iter().zip(Params::default().named_values()) {
            if value != default {
                object.insert(key.to_owned(), value);
            }
        }
        if object.is_empty() { name.to_owned() } else { format!("{name}:{}", Value::Object(object)) }
    }

    fn named_values(&self) -> [(&'static str, Value); NAMES.len() - FORGOTTEN] {
        let size = |bytes: usize| Value::String(bytes_text(bytes));
        let [convert_to_sst, ref_log_format, sync_sst_file] = self.conversion.named_values();
        [
            ("mem_cap", size(self.mem_cap)),
            ("use_vm", Value::Bool(self.use_vm)),
            ("use_hugepage", Value::Bool(self.use_hugepage)),
            ("vm_explicit_commit", Value::Bool(self.vm_explicit_commit)),
            ("accurate_memsize", Value::Bool(self.accurate_memsize)),
            ("token_use_idle", Value::Bool(self.token_use_idle)),
            ("chunk_size", size(self.chunk_size)),
            convert_to_sst,
            ref_log_format,
            sync_sst_file,
        ]
    }

    /// The arena of a memtable made with `config`.
    ///
    /// # Errors
    /// `InvalidArgument`: a batch needs more than `mem_cap`.
    pub(crate) fn arena<'a>(&self, config: &'a MemtableConfig) -> Result<ArenaConfig<'a>> {
        let capacity = config.capacity_bytes.min(self.mem_cap).min(CAPACITY_MAX_BYTES - IMAGE_HEADER_BYTES);
        // The arena rounds to granules, and also contains the head.
        let needed = config.room_bytes.saturating_add(HEAD_BYTES_MAX + GRANULE_BYTES);
        if config.room_bytes > 0 && capacity < needed {
            return Err(Error::invalid_argument(format!(
                "a batch that needs {} bytes of memtable is larger than mem_cap ({}); raise mem_cap, or write smaller \
                 batches",
                config.room_bytes,
                bytes_text(self.mem_cap)
            )));
        }
        Ok(ArenaConfig {
            capacity,
            source: if self.use_vm { Source::Mapping } else { Source::Heap },
            huge_pages: self.use_hugepage,
            commits_ahead: self.vm_explicit_commit,
            exact_accounting: self.accurate_memsize,
            keeps_header: self.conversion.is_wanted(),
            image: config.image.as_ref(),
        })
    }
}

/// # Errors
/// `InvalidArgument`: a value of the wrong kind.
fn tell_what_is_forgotten(arguments: &Arguments) -> Result<()> {
    for key in FORGOTTEN_FLAGS {
        if arguments.flag(key)?.is_some() {
            note::info!("{key} has no effect: the trie has no tokens, and commits pages as writers need them");
        }
    }
    if arguments.number(DEBUG_LEVEL, 0..=u32::MAX as usize)?.is_some() {
        note::info!("{DEBUG_LEVEL} has no effect: what the trie has to say goes to the log");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base::{FamilyId, InternalOrder};

    use super::*;

    fn params(option: &str) -> Result<Params> {
        let mut arguments = Arguments::parse(option)?;
        arguments.settle(None, NAMES)?;
        Params::from_arguments(&arguments)
    }

    #[test]
    fn what_is_printed_is_parsed_and_defaults_are_not_printed() {
        assert_eq!(params("cspp").expect("defaults").option_string("trie"), "trie");
        for (option, expected) in [
            (r#"cspp:{"mem_cap":"16G","use_vm":true}"#, r#"trie:{"mem_cap":"16G"}"#),
            ("{id=trie;mem_cap=2G;chunk_size=16K}", "trie"),
            (
                "{id=cspp;use_hugepage=kNone;read_by_writer_token=true;cspp_debug_level=2;vm_background_commit=0}",
                "trie",
            ),
            (r#"cspp:{"use_hugepage":"kTransparent"}"#, r#"trie:{"use_hugepage":true}"#),
            (r#"cspp:{"use_hugepage":"kMmap"}"#, r#"trie:{"use_hugepage":true}"#),
            (r#"trie:{"mem_cap":1048576,"use_vm":false}"#, r#"trie:{"mem_cap":"1M","use_vm":false}"#),
            (
                r#"cspp:{"convert_to_sst":"kFileMmap","sync_sst_file":false,"ref_log_format":"kNoLogRef"}"#,
                r#"trie:{"convert_to_sst":"kFileMmap","ref_log_format":"kNoLogRef","sync_sst_file":false}"#,
            ),
            (
                "{id=trie;use_hugepage=1;vm_explicit_commit=1;accurate_memsize=1;token_use_idle=0;chunk_size=1M}",
                r#"trie:{"use_hugepage":true,"vm_explicit_commit":true,"accurate_memsize":true,"token_use_idle":false,"chunk_size":"1M"}"#,
            ),
        ] {
            let parsed = params(option).expect(option);
            assert_eq!(parsed.option_string("trie"), expected);
            assert_eq!(params(expected).expect(expected), parsed);
        }
        assert_eq!(Params::default().named_values().map(|(name, _)| name), NAMES[..NAMES.len() - FORGOTTEN]);
    }

    #[test]
    fn contradictions_and_values_out_of_bounds_are_refused() {
        let error = |option: &str| params(option).expect_err(option).message().to_owned();
        assert_eq!(
            error("{id=cspp;mem_cap=64G}"),
            r#"mem_cap of memtable cspp is "64G", not a number from 64K to 32G"#
        );
        assert_eq!(
            error(r#"cspp:{"convert_to_sst":"kfilemmap"}"#),
            r#"convert_to_sst of memtable cspp is "kfilemmap", not kDontConvert or kDumpMem or kFileMmap"#
        );
        assert_eq!(error(r#"cspp:{"memcap":1}"#), r#"memtable cspp has no argument "memcap"; did you mean "mem_cap"?"#);
        assert_eq!(
            error("{id=cspp;use_hugepage=kHuge}"),
            r#"use_hugepage of memtable cspp is "kHuge", not true or false or kNone or kMmap or kTransparent"#
        );
        assert!(error("{id=cspp;read_by_writer_token=2}").contains("not true or false"));
        assert!(error("cspp:2G").contains("no argument \"2G\" without a name"));
        for key in ["use_hugepage", "vm_explicit_commit"] {
            assert!(error(&format!("{{id=trie;use_vm=0;{key}=true}}")).contains("use_vm false"), "{key}");
        }
    }

    #[test]
    fn mem_cap_bounds_the_arena_and_names_itself_to_a_batch_that_is_larger() {
        let params = params("{id=trie;mem_cap=1M;use_vm=0;accurate_memsize=1}").expect("valid");
        let mut config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 64 << 20);
        let arena = params.arena(&config).expect("smaller");
        assert_eq!((arena.capacity, arena.source, arena.exact_accounting), (1 << 20, Source::Heap, true));
        config.room_bytes = (1 << 20) - 1;
        let error = params.arena(&config).err().expect("too large");
        assert!(error.message().contains("1048575 bytes of memtable is larger than mem_cap (1M)"), "{error}");
        config.capacity_bytes = 64 << 10;
        config.room_bytes = 0;
        assert_eq!(params.arena(&config).expect("as asked").capacity, 64 << 10);
        config.capacity_bytes = usize::MAX;
        assert_eq!(Params::default().arena(&config).expect("capped").capacity, 2 << 30);
    }
}
