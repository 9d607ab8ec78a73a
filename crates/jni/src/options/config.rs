//! `ConfigOptions`: how texts of options are read.

use capi::env::EnvHandle;

use crate::boundary::natives;

/// Of its options one counts here: whether unknown names are passed over.
#[derive(Default)]
pub struct ConfigSettings {
    pub ignores_unknown: bool,
}

natives! { "ConfigOptions";
    "setIgnoreUnknownOptions" => fn(_env, config: &mut ConfigSettings, ignores: bool) -> () {
        config.ignores_unknown = ignores;
        Ok(())
    }

    /// Files are read by the env of the call.
    "setEnv" => fn(_env, _config: &mut ConfigSettings, _of: Option<&EnvHandle>) -> () {
        Ok(())
    }

    /// Of texts written by RocksDB; none are written here.
    "setDelimiter" => fn(_env, _config: &mut ConfigSettings, _delimiter: String) -> () {
        Ok(())
    }

    /// Both forms are read.
    "setInputStringsEscaped" => fn(_env, _config: &mut ConfigSettings, _escaped: bool) -> () {
        Ok(())
    }

    /// Options are not compared with a file's.
    "setSanityLevel" => fn(_env, _config: &mut ConfigSettings, _level: i8) -> () {
        Ok(())
    }
}
