//! Keys for memtables. A key is a function of its number; lists of keys lie in one flat buffer, made before the clock starts.

use clap::ValueEnum;

use crate::workload::Rng;

/// The shape of a key. The same number makes the same key in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum KeyShape {
    /// The number in eight little-endian bytes: `memtablerep_bench`'s.
    Le8,
    /// Sixteen uniformly random bytes.
    Random16,
    /// `user` and 16 decimal digits.
    User,
    /// Web addresses of 2000 hosts, with shared folders. Few hosts have most of the pages.
    Url,
}

/// Number of hosts.
const HOSTS: u64 = 2_000;

/// Folders of a host.
const FOLDERS: u64 = 50;

const SECTIONS: [&str; 8] = [
    "articles",
    "products/electronics",
    "users/profiles",
    "api/v2/resources",
    "static/images",
    "forum/threads",
    "docs",
    "archive",
];

/// A random number for a part of the key.
fn mixed(number: u64, salt: u64) -> u64 {
    Rng::new(number.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ salt).next()
}

impl KeyShape {
    /// Appends the key of `number`. Different numbers have different keys; for random bytes, with near certainty.
    fn append(self, number: u64, out: &mut Vec<u8>) {
        match self {
            KeyShape::Le8 => out.extend_from_slice(&number.to_le_bytes()),
            KeyShape::Random16 => (0..2).for_each(|word| out.extend_from_slice(&mixed(number, word).to_le_bytes())),
            KeyShape::User => out.extend_from_slice(format!("user{number:016}").as_bytes()),
            KeyShape::Url => out.extend_from_slice(url(number).as_bytes()),
        }
    }
}

fn url(number: u64) -> String {
    // The cube of a uniform number: an eighth of the hosts has half of the pages.
    let uniform = (mixed(number, 20) >> 11) as f64 / (1u64 << 53) as f64;
    let host = (uniform * uniform * uniform * HOSTS as f64) as u64;
    let top = ["com", "org", "net", "co.uk"].get((mixed(host, 21) % 4) as usize).unwrap_or(&"com");
    let section = SECTIONS.get((mixed(number, 22) % SECTIONS.len() as u64) as usize).unwrap_or(&"docs");
    let folder = mixed(host, mixed(number, 23) % FOLDERS) % 100_000;
    format!("https://www.site-{host:04}.example.{top}/{section}/{folder:05}/page-{number}.html")
}

/// Keys one behind the other.
pub struct KeyList {
    bytes: Vec<u8>,
    /// Bytes of a key if all have the same size; else 0.
    stride: usize,
    /// The end of each key, if sizes differ.
    ends: Vec<usize>,
    len: usize,
}

impl KeyList {
    /// The keys of `numbers`, in their order.
    pub fn new(shape: KeyShape, numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut list = KeyList { bytes: Vec::new(), stride: 0, ends: Vec::new(), len: 0 };
        let numbers = numbers.into_iter();
        let same_size = shape != KeyShape::Url;
        for number in numbers {
            let start = list.bytes.len();
            shape.append(number, &mut list.bytes);
            list.len += 1;
            if same_size {
                list.stride = list.bytes.len() - start;
            } else {
                list.ends.push(list.bytes.len());
            }
        }
        list
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all keys.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn start(&self, at: usize) -> usize {
        if self.stride > 0 {
            return at * self.stride;
        }
        at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default()
    }

    /// The key at `at`; empty past the end.
    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        self.bytes.get(self.start(at)..self.start(at + 1)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::flags::name_of;

    #[test]
    fn every_shape_makes_different_keys_of_its_size() {
        for shape in KeyShape::value_variants() {
            let name = name_of(*shape);
            let list = KeyList::new(*shape, 0..2_000);
            let keys: BTreeSet<&[u8]> = (0..list.len()).map(|at| list.key(at)).collect();
            assert_eq!((keys.len(), list.len()), (2_000, 2_000), "{name}");
            assert_eq!(keys.iter().map(|key| key.len()).sum::<usize>(), list.bytes());
            assert!(list.key(2_000).is_empty());
        }
    }

    #[test]
    fn keys_are_what_their_names_say() {
        let key = |shape, number| KeyList::new(shape, [7, number]).key(1).to_vec();
        assert_eq!(key(KeyShape::Le8, 0x0102), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(key(KeyShape::Random16, 1).len(), 16);
        assert_eq!(key(KeyShape::User, 12), b"user0000000000000012");
        let url = String::from_utf8(key(KeyShape::Url, 3)).unwrap();
        assert!(url.starts_with("https://www.site-") && url.ends_with("/page-3.html"), "{url}");
    }

    #[test]
    fn few_hosts_have_most_addresses() {
        let of_first_eighth = (0..8_000).filter(|&number| {
            let address = url(number);
            address[17..21].parse::<u64>().unwrap() < HOSTS / 8
        });
        let share = of_first_eighth.count() as f64 / 8_000.0;
        assert!((0.47..0.53).contains(&share), "{share}");
    }
}
