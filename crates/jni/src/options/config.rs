//! `ConfigOptions`: how texts of options are read.

use capi::env::{Env, EnvHandle};

use crate::boundary::natives;

/// Its options that count here.
pub struct ConfigSettings {
    pub ignores_unknown: bool,
    /// Where files of options are.
    pub env: Env,
}

impl Default for ConfigSettings {
    fn default() -> Self {
        ConfigSettings { ignores_unknown: false, env: Env::of_process() }
    }
}

natives! { "ConfigOptions";
    "setIgnoreUnknownOptions" => fn(_env, config: &mut ConfigSettings, ignores: bool) -> () {
        config.ignores_unknown = ignores;
        Ok(())
    }

    "setEnv" => fn(_env, config: &mut ConfigSettings, env: &EnvHandle) -> () {
        config.env = env.env();
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
