//! A family's options as they count: contradictions resolved, what was not set derived, and remarks on what has no
//! effect beside the rest. An open and a check of a document both take it from here.

use base::Result;
use base::note;
use base::options::InfoLogLevel;
use base::options::{DbOptions, FamilyOptions, LevelBase};
use memtable::{Conversion, MemtableFactory, RefLogFormat};

use crate::core::family::memtable_sizes;

/// Brings the options of a family into the form that counts in a database with the options `db`. Returns what changed
/// but for derived defaults, and what has no effect.
///
/// # Errors
/// `InvalidArgument`: the memtable is unknown, or its parameters are wrong.
pub(crate) fn settle(db: &DbOptions, family: &mut FamilyOptions) -> Result<Vec<String>> {
    let factory = memtable::factory_from_option_string(&family.memtable_factory)?;
    let mut remarks = family.settle();
    remarks.extend(settle_for_atomic_flush(db, family));
    let base = if converts(db, family, factory.conversion()) {
        family.write_buffer_size as u64
    } else {
        LevelBase::DEFAULT_BYTES
    };
    family.max_bytes_for_level_base = family.max_bytes_for_level_base.or_derived(base);
    remarks.extend(without_effect(db, family, &*factory));
    Ok(remarks)
}

/// As in RocksDB: a memtable that is left for a merge would keep all families from being flushed.
fn settle_for_atomic_flush(db: &DbOptions, options: &mut FamilyOptions) -> Option<String> {
    let asked = options.min_write_buffer_number_to_merge;
    let is_lowered = db.atomic_flush && asked > 1;
    if is_lowered {
        options.min_write_buffer_number_to_merge = 1;
    }
    is_lowered.then(|| format!("min_write_buffer_number_to_merge lowered from {asked} to 1, for atomic_flush"))
}

/// Whether flushes make tables of memtables as they are.
fn converts(db: &DbOptions, family: &FamilyOptions, conversion: Conversion) -> bool {
    conversion.is_wanted() && hindrance(db, family).is_none()
}

/// The option for which memtables do not become tables, whatever `convert_to_sst` says.
fn hindrance(db: &DbOptions, family: &FamilyOptions) -> Option<String> {
    if db.atomic_flush {
        return Some("atomic_flush is on".to_owned());
    }
    let merged = family.min_write_buffer_number_to_merge;
    (merged > 1).then(|| format!("min_write_buffer_number_to_merge is {merged}"))
}

/// Options that do nothing beside the others, with the reason.
fn without_effect(db: &DbOptions, family: &FamilyOptions, factory: &dyn MemtableFactory) -> Vec<String> {
    let conversion = factory.conversion();
    let mut remarks = factory.without_effect(&memtable_sizes(family, 0));
    let mut tell = |option: &str, reason: String| remarks.push(format!("{option} has no effect: {reason}"));
    let hindrance = hindrance(db, family);
    let name = factory.name();
    if let Some(hindrance) = hindrance.as_ref().filter(|_| conversion.is_wanted()) {
        tell("convert_to_sst", format!("no memtable becomes a table as it is where {hindrance}"));
    }
    if !conversion.is_wanted() && !conversion.sync_sst_file {
        tell(
            "sync_sst_file",
            "it is about memtables that become tables, and convert_to_sst is kDontConvert".to_owned(),
        );
    }
    if conversion.ref_log_format != Conversion::default().ref_log_format && !db.memtable_as_log_index {
        tell("ref_log_format", "values stay in the log with memtable_as_log_index only".to_owned());
    }
    if db.memtable_as_log_index {
        let reason = match (hindrance, conversion.ref_log_format) {
            _ if !factory.can_convert() => {
                Some(format!("a {name} holds its values; skip_list and trie can leave them"))
            }
            _ if !conversion.is_wanted() => {
                Some(format!("the {name} holds its values where convert_to_sst is kDontConvert"))
            }
            (Some(hindrance), _) => Some(format!("no memtable becomes a table as it is where {hindrance}")),
            (None, RefLogFormat::NoLogRef) => Some("ref_log_format is kNoLogRef".to_owned()),
            (None, RefLogFormat::PlainLogRef | RefLogFormat::ShortLogRef) => None,
        };
        reason.into_iter().for_each(|reason| tell("memtable_as_log_index", reason));
    }
    if family.memtable_whole_key_filtering && family.memtable_prefix_bloom_size_ratio == 0.0 {
        tell("memtable_whole_key_filtering", "memtable_prefix_bloom_size_ratio is 0".to_owned());
    }
    remarks
}

/// Reports an option without effect, or with a different effect. Reading the options from text has warned already, so
/// only the event log gets a warning.
pub(crate) fn remark(text: &str) {
    tracing::info!(text, "options");
    tell(InfoLogLevel::Warn, text);
}

/// Writes to the event log only: the caller learns the message another way.
pub(crate) fn tell(level: InfoLogLevel, text: &str) {
    note::tell(level, file!(), line!(), |_, message| message.push_str(text));
}

#[cfg(test)]
mod tests {
    use base::options::{apply_both, apply_string};

    use std::path::Path;

    use vfs::MemoryVfs;

    use super::*;
    use crate::internal::{Database, OpenOptions, OtherFamilies};
    use crate::open::options_file;

    fn settled(text: &str) -> (FamilyOptions, Vec<String>) {
        let (mut db, mut family) = (DbOptions::default(), FamilyOptions::default());
        apply_both(&mut db, &mut family, text).expect(text);
        let remarks = settle(&db, &mut family).expect(text);
        (family, remarks)
    }

    const CONVERTED: &str = r#"trie:{"convert_to_sst":"kFileMmap"}"#;

    #[test]
    fn level_one_is_as_large_as_a_write_buffer_where_memtables_become_tables() {
        let base = |text: &str| *settled(&format!("write_buffer_size=2G;{text}")).0.max_bytes_for_level_base;
        let (mib, own) = (|mib: u64| mib << 20, 2 << 30);
        for text in [
            format!("memtable_factory={CONVERTED}"),
            format!("memtable_factory={CONVERTED};memtable_as_log_index=true"),
            r#"memtable_factory=skip_list:{"convert_to_sst":"kDumpMem"}"#.to_owned(),
        ] {
            assert_eq!(base(&text), own, "{text}");
            for (set, bytes) in [("256M", mib(256)), ("257M", mib(257)), ("5G", mib(5 << 10))] {
                assert_eq!(base(&format!("{text};max_bytes_for_level_base={set}")), bytes, "{text}, {set}");
            }
        }
        for text in [
            "memtable_as_log_index=true".to_owned(),
            "memtable_factory=vector;memtable_as_log_index=true".to_owned(),
            "memtable_factory=trie;memtable_as_log_index=true".to_owned(),
            r#"memtable_factory=trie:{"ref_log_format":"kNoLogRef"};memtable_as_log_index=true"#.to_owned(),
            format!("memtable_factory={CONVERTED};atomic_flush=true"),
            format!("memtable_factory={CONVERTED};max_write_buffer_number=4;min_write_buffer_number_to_merge=2"),
        ] {
            assert_eq!(base(&text), mib(256), "{text}");
        }
    }

    #[test]
    fn options_without_effect_are_told_with_the_reason() {
        let rewritten = "no memtable becomes a table as it is where";
        for (text, expected) in [
            ("memtable_factory=trie", String::new()),
            ("memtable_as_log_index=true;memtable_factory=trie:{\"convert_to_sst\":\"kDumpMem\"}", String::new()),
            (
                "memtable_as_log_index=true",
                "memtable_as_log_index has no effect: the skip_list holds its values where convert_to_sst is kDontConvert"
                    .to_owned(),
            ),
            (
                "memtable_as_log_index=true;memtable=vector",
                "memtable_as_log_index has no effect: a vector holds its values; skip_list and trie can leave them".to_owned(),
            ),
            (
                "memtable_as_log_index=true;memtable_factory=trie:{\"convert_to_sst\":\"kDumpMem\",\"ref_log_format\":\"kNoLogRef\"}",
                "memtable_as_log_index has no effect: ref_log_format is kNoLogRef".to_owned(),
            ),
            (
                "memtable_as_log_index=true;atomic_flush=true;memtable_factory=trie:{\"convert_to_sst\":\"kDumpMem\"}",
                format!(
                    "convert_to_sst has no effect: {rewritten} atomic_flush is on\n\
                     memtable_as_log_index has no effect: {rewritten} atomic_flush is on"
                ),
            ),
            (
                "min_write_buffer_number_to_merge=2;max_write_buffer_number=4;memtable_factory=trie:{\"convert_to_sst\":\"kDumpMem\"}",
                format!("convert_to_sst has no effect: {rewritten} min_write_buffer_number_to_merge is 2"),
            ),
            (
                "memtable_factory=trie:{\"ref_log_format\":\"kPlainLogRef\"}",
                "ref_log_format has no effect: values stay in the log with memtable_as_log_index only".to_owned(),
            ),
            (
                "memtable_factory=skip_list:{\"sync_sst_file\":false}",
                "sync_sst_file has no effect: it is about memtables that become tables, and convert_to_sst is kDontConvert"
                    .to_owned(),
            ),
            (
                "memtable_factory=trie:{\"mem_cap\":\"1M\"}",
                "write_buffer_size (64M) has no effect: memtables are full at mem_cap (1M)".to_owned(),
            ),
            (
                "memtable_factory=sorted_hash:400000;write_buffer_size=1M",
                "bucket_count (400000) is cut to 34816: buckets take a quarter of the memtable at most".to_owned(),
            ),
            (
                "memtable_factory=sorted_hash;memtable_whole_key_filtering=true;memtable_prefix_bloom_size_ratio=0.1",
                "memtable_prefix_bloom_size_ratio has no effect: the buckets of a sorted_hash find absent keys".to_owned(),
            ),
            (
                "compression_per_level=kNoCompression:kZlibCompression;compression_opts={window_bits=15}",
                "window_bits=15 is not what RocksDB reads of zlib: -14 is taken".to_owned(),
            ),
            ("compression=kZlibCompression;compression_opts={window_bits=-9}", String::new()),
            ("compression_opts={window_bits=15}", String::new()),
            (
                "memtable_whole_key_filtering=true",
                "memtable_whole_key_filtering has no effect: memtable_prefix_bloom_size_ratio is 0".to_owned(),
            ),
        ] {
            assert_eq!(settled(text).1.join("\n"), expected, "{text}");
        }
    }

    #[test]
    fn open_database_shows_the_size_of_level_one_that_counts() {
        let vfs = MemoryVfs::new(1);
        let family = |set: &str| {
            let mut family = FamilyOptions::default();
            let text = format!("memtable_factory={CONVERTED};write_buffer_size=1M;{set}");
            apply_string(&mut family, &text).expect("valid");
            family
        };
        let open = |given: FamilyOptions| {
            let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
            let options = OpenOptions { other_families: OtherFamilies::OpenWith(Box::new(given.clone())), ..options };
            Database::open("/db", &options.family("default", given)).expect("opens")
        };
        let db = open(family(""));
        let base = |name: &str| *db.family(name).expect("there").options().max_bytes_for_level_base;
        db.create_family("later", family("")).expect("made");
        db.create_family("set", family("max_bytes_for_level_base=256M")).expect("made");
        assert_eq!(["default", "later", "set"].map(base), [1 << 20, 1 << 20, 256 << 20]);
        let default = db.default_family();
        db.set_options(&default, &[("write_buffer_size", "2M")]).expect("changes");
        assert_eq!(base("default"), 1 << 20, "it is derived once");
        db.set_options(&default, &[("max_bytes_for_level_base", "3M")]).expect("changes");
        assert_eq!(base("default"), 3 << 20);
        let (_, text) = options_file::newest(&*vfs, Path::new("/db")).expect("read").expect("there");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text.matches("  max_bytes_for_level_base=1048576\n").count(), 1, "{text}");
        db.close().expect("closes");
        let db = open(family("write_buffer_size=4M"));
        assert_eq!(*db.default_family().options().max_bytes_for_level_base, 4 << 20, "what is given to an open counts");
    }

    #[test]
    fn unknown_memtable_is_an_error() {
        let mut family = FamilyOptions::default();
        apply_string(&mut family, "memtable_factory=skip_lits").expect("any text");
        assert!(settle(&DbOptions::default(), &mut family).is_err());
    }
}
