//! `CompressionOptions`.

use capi::boundary::settings::Row;
use capi::kept::Keeps;
use capi::kept::number::Number;
use spillway::internal::options::CompressionOptions;

use crate::boundary::settings::{Compression, JavaNumber, fields, kept, settings};

#[derive(Clone, Default)]
pub struct CompressionSettings {
    pub group: CompressionOptions,
}

/// RocksDB's number of a compression in Java's byte.
pub fn number(byte: u8) -> i32 {
    capi::kept::number::CNumber::of(Compression(byte as i8).number())
}

pub fn byte(number: i32) -> u8 {
    Compression::of(capi::kept::number::CNumber::number(number)).0 as u8
}

impl CompressionSettings {
    pub fn is_enabled(&self) -> bool {
        self.kept("enabled") == Some(Number::Integer(1))
    }
}

/// Kept among the options of compression: the open notes them.
impl Keeps for CompressionSettings {
    fn keep(&mut self, name: &'static str, number: Number, default: Number) {
        if number == default {
            self.group.kept.remove(name);
        } else {
            self.group.kept.set(name, &number.text(name == "enabled"));
        }
    }

    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool) {
        if taken {
            self.group.kept.remove(name);
        } else {
            self.group.kept.set(name, &number.text(false));
        }
    }

    fn kept(&self, name: &'static str) -> Option<Number> {
        self.group.kept.get(name).and_then(Number::parse)
    }
}

const WITHOUT_EFFECT: &[Row<CompressionSettings>] = kept! { CompressionSettings;
    "enabled": bool = false;
    "strategy": i32 = 0;
};

const ROWS: &[Row<CompressionSettings>] = fields! { CompressionSettings;
    "window_bits" => group.window_bits;
    "level" => group.level;
    "max_dict_bytes" => group.max_dict_bytes;
    "zstd_max_train_bytes" => group.zstd_max_train_bytes;
};

settings! { ["CompressionOptions"], CompressionSettings, [ROWS, WITHOUT_EFFECT];
    i32, set "setWindowBits", get "windowBits" => "window_bits";
    i32, set "setLevel", get "level" => "level";
    i32, set "setStrategy", get "strategy" => "strategy";
    i32, set "setMaxDictBytes", get "maxDictBytes" => "max_dict_bytes";
    i32, set "setZstdMaxTrainBytes", get "zstdMaxTrainBytes" => "zstd_max_train_bytes";
    bool, set "setEnabled", get "enabled" => "enabled";
}
