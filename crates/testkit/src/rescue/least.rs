//! The least that a repair brings back undoubted, for each kind of damage.

use base::UserOrder;

use super::damage::{Damage, Kind};
use super::lives::{Life, Span};

/// What has to come back undoubted.
pub enum Least<'a> {
    /// Everything, and the report is of no loss.
    All,
    /// Every key outside these tables.
    Outside(Vec<&'a Span>),
    Nothing,
}

impl Span {
    /// Whether a key of a family lies between the table's first and last one.
    pub fn holds(&self, family: &str, key: &[u8], order: &UserOrder) -> bool {
        self.family == family && order.compare(&self.from, key).is_le() && order.compare(key, &self.through).is_le()
    }
}

/// The least for a damage.
pub fn least<'a>(life: &'a Life, damage: &Damage) -> Least<'a> {
    match damage.kind {
        Kind::Current | Kind::Copy | Kind::SideLost | Kind::SideDamaged | Kind::ImageLost => Least::All,
        Kind::TableGrown => Least::All,
        // The second copy is there; an export has none.
        Kind::ManifestLost | Kind::ManifestCut if life.is_own() => Least::All,
        // A whole MANIFEST is believed: what it does not name is left over.
        Kind::TablesLeft | Kind::EarlierLeft => Least::All,
        Kind::TableLost | Kind::TableZeroed | Kind::TableFlipped | Kind::TableExchanged => {
            Least::Outside(life.tables.iter().filter(|span| damage.paths.contains(&span.path)).collect())
        }
        Kind::ManifestLost | Kind::ManifestCut | Kind::EveryManifestLost => Least::Nothing,
        Kind::CurrentOfEarlier | Kind::LaterLost => Least::Nothing,
        // A lost record can be of any key.
        Kind::LastLog | Kind::OtherLog | Kind::LargeBatch => Least::Nothing,
    }
}
