//! The files of a database as Java's objects.

use spillway::internal::name;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use capi::family::FamilyHandle;
use spillway::internal::report::LiveFile;
use spillway::internal::{Family, LogFileReport};

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::{ArrayOf, Made};
use crate::database::Db;
use crate::fault::Fault;

static LIVE_FILE: Class = Class::new(c"org/rocksdb/LiveFileMetaData");
static NEW_LIVE_FILE: Method =
    Method::constructor(&LIVE_FILE, c"([BILjava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V");
static TABLE: Class = Class::new(c"org/rocksdb/SstFileMetaData");
static NEW_TABLE: Method = Method::constructor(&TABLE, c"(Ljava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V");
static LEVEL: Class = Class::new(c"org/rocksdb/LevelMetaData");
static NEW_LEVEL: Method = Method::constructor(&LEVEL, c"(IJ[Lorg/rocksdb/SstFileMetaData;)V");
static LOG: Class = Class::new(c"org/rocksdb/LogFile");
static NEW_LOG: Method = Method::constructor(&LOG, c"(Ljava/lang/String;JBJJ)V");
static FAMILY: Class = Class::new(c"org/rocksdb/ColumnFamilyMetaData");
static NEW_FAMILY: Method = Method::constructor(&FAMILY, c"(JJ[B[Lorg/rocksdb/LevelMetaData;)V");

/// A file's name as RocksDB shows it: `/000012.sst`.
pub fn shown_name(path: &Path) -> String {
    format!("/{}", String::from_utf8_lossy(path.file_name().unwrap_or_default().as_bytes()))
}

pub fn text(path: &Path) -> String {
    String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned()
}

/// A table, with the family and the level before it if `of_family` is set.
fn table<'j>(env: Env<'j>, constructor: &Method, of_family: bool, file: &LiveFile) -> Result<Object<'j>, Fault> {
    let references = [
        env.new_bytes(&name::bytes(&file.family))?,
        env.new_text(&shown_name(&file.path))?,
        env.new_text(&text(file.path.parent().unwrap_or(Path::new(""))))?,
        env.new_bytes(&file.smallest)?,
        env.new_bytes(&file.largest)?,
        env.new_bytes(&[])?,
    ];
    let [family, name, dir, smallest, largest, checksum] = references.map(Value::Object);
    let of = [family, Value::Int(i32::try_from(file.level).unwrap_or(i32::MAX))];
    let own = [
        name,
        dir,
        Value::Long(file.bytes as i64),
        Value::Long(file.smallest_seq.0 as i64),
        Value::Long(file.largest_seq.0 as i64),
        smallest,
        largest,
        Value::Long(0), // reads are not sampled by table
        Value::Bool(false),
        Value::Long(file.entries as i64),
        Value::Long(file.deletions as i64),
        checksum,
    ];
    let values: Vec<Value<'_>> = of.into_iter().filter(|_| of_family).chain(own).collect();
    let made = constructor.make(env, &values)?;
    references.into_iter().for_each(|reference| env.delete(reference));
    Ok(made)
}

/// Java's `WalFileType` is 0 in the archive, else 1.
fn log_file<'j>(env: Env<'j>, log: &LogFileReport) -> Result<Object<'j>, Fault> {
    let name = shown_name(&log.path);
    let name = env.new_text(&if log.is_archived { format!("/archive{name}") } else { name })?;
    let made = NEW_LOG.make(
        env,
        &[
            Value::Object(name),
            Value::Long(log.number.0 as i64),
            Value::Byte(i8::from(!log.is_archived)),
            Value::Long(log.first.0 as i64),
            Value::Long(log.bytes as i64),
        ],
    )?;
    env.delete(name);
    Ok(made)
}

fn family<'j>(env: Env<'j>, database: &Db, family: &Arc<Family>) -> Result<Object<'j>, Fault> {
    let mut files = database.db.live_files();
    files.retain(|file| file.family == family.name());
    let levels = env.new_array(&LEVEL, 0..family.options().num_levels, |number| {
        let files: Vec<&LiveFile> = files.iter().filter(|file| file.level == number).collect();
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let tables = env.new_array(&TABLE, files.into_iter(), |file| table(env, &NEW_TABLE, false, file).map(Some))?;
        let number = Value::Int(i32::try_from(number).unwrap_or(i32::MAX));
        let level = NEW_LEVEL.make(env, &[number, Value::Long(bytes as i64), Value::Object(tables)])?;
        env.delete(tables);
        Ok(Some(level))
    })?;
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let name = env.new_bytes(&name::bytes(family.name()))?;
    let sizes = [Value::Long(bytes as i64), Value::Long(files.len() as i64)];
    NEW_FAMILY.make(env, &[sizes[0], sizes[1], Value::Object(name), Value::Object(levels)])
}

natives! { "RocksDB";
    "getLiveFilesMetaData" => fn(env, database: &Db) -> ArrayOf {
        let files = database.db.live_files();
        Ok(env.new_array(&LIVE_FILE, files.iter(), |file| table(env, &NEW_LIVE_FILE, true, file).map(Some))?.into())
    }

    "getColumnFamilyMetaData" => fn(env, database: &Db, handle: Option<&FamilyHandle>) -> Made {
        Ok(family(env, database, database.family(handle))?.into())
    }

    /// Names of tables, CURRENT, the MANIFEST and OPTIONS; last the MANIFEST's bytes as a number.
    "getLiveFiles" => fn(_env, database: &Db, flush: bool) -> Vec<String> {
        if flush {
            let families = database.db.families();
            database.db.flush(&families.iter().collect::<Vec<_>>())?;
        }
        let files = database.db.live_file_names()?;
        let names = files.paths.iter().map(|path| shown_name(path));
        Ok(names.chain([files.manifest_bytes.to_string()]).collect())
    }

    /// Logs with records, by number, those in the archive included.
    "getSortedWalFiles" => fn(env, database: &Db) -> ArrayOf {
        let logs = database.db.log_files()?;
        Ok(env.new_array(&LOG, logs.iter(), |log| log_file(env, log).map(Some))?.into())
    }
}
