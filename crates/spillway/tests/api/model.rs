use std::collections::BTreeMap;

use spillway::{Db, FamilyOptions, Iter, Options, Snapshot};

/// Random numbers, the same for one seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn key(&mut self) -> Vec<u8> {
        let len = 1 + self.below(3);
        (0..len).map(|_| b'a' + self.below(4) as u8).collect()
    }
}

/// Contents of two families.
type Contents = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

const NAMES: [&str; 2] = ["default", "other"];

fn entries(
    walk: impl Iterator<Item = spillway::Result<(spillway::Pinned, spillway::Pinned)>>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    walk.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// Takes entries from a random end at each step.
fn from_both_ends(mut walk: Iter, random: &mut Random) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let from_front = random.below(2) == 0;
        let Some(entry) = (if from_front { walk.next() } else { walk.next_back() }) else { break };
        let (key, value) = entry.unwrap();
        let entry = (key.to_vec(), value.to_vec());
        if from_front { front.push(entry) } else { back.push(entry) }
    }
    back.reverse();
    [front, back].concat()
}

fn options(random: &mut Random) -> Options {
    let memtables = ["skip_list", "trie", "sorted_hash", "vector"];
    let memtable = memtables.into_iter().nth(random.below(4) as usize).unwrap();
    let small = || FamilyOptions::new().memtable(memtable).write_buffer_size(64 << 10);
    Options::new().default_family(small()).family("other", small())
}

/// Writes, batches with savepoints, snapshots, iterators from before, flushes and reopens leave what a map has.
#[test]
fn random_calls_agree_with_a_map() {
    for seed in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let mut db = Db::open_with(dir.path(), &options(&mut random)).unwrap();
        let mut model = Contents::default();
        let mut kept: Option<(Snapshot, Contents)> = None;
        for step in 0..400u32 {
            let families = NAMES.map(|name| db.family(name).unwrap());
            let at = random.below(2) as usize;
            let (key, value) = (random.key(), step.to_le_bytes().repeat(1 + random.below(200) as usize));
            match random.below(20) {
                0..6 => {
                    families[at].put(&key, &value).unwrap();
                    model[at].insert(key, value);
                }
                6..8 => {
                    families[at].delete(&key).unwrap();
                    model[at].remove(&key);
                }
                8 => {
                    let mut ends = [key, random.key()];
                    ends.sort();
                    let [start, end] = ends;
                    families[at].delete_range(&start..&end).unwrap();
                    model[at].retain(|key, _| *key < start || *key >= end);
                }
                9..12 => {
                    let (mut batch, mut after, mut saved) = (db.batch(), model.clone(), Vec::new());
                    for _ in 0..random.below(10) {
                        let (at, key) = (random.below(2) as usize, random.key());
                        match random.below(6) {
                            0 => {
                                batch.savepoint();
                                saved.push(after.clone());
                            }
                            1 => {
                                assert_eq!(batch.rollback(), !saved.is_empty());
                                after = saved.pop().unwrap_or(after);
                            }
                            2 => {
                                batch.delete(&families[at], &key);
                                after[at].remove(&key);
                            }
                            _ => {
                                batch.put(&families[at], &key, &value);
                                after[at].insert(key, value.clone());
                            }
                        }
                    }
                    if random.below(4) > 0 {
                        batch.commit().unwrap();
                        model = after;
                    }
                }
                12 => kept = Some((db.snapshot(), model.clone())),
                13 => families[at].flush().unwrap(),
                14 => families[at].compact(..).unwrap(),
                15 => {
                    drop((families, kept.take()));
                    drop(db); // the last handle
                    db = Db::open_with(dir.path(), &options(&mut random)).unwrap();
                    continue;
                }
                _ => {
                    let mut ends = [key, random.key()];
                    ends.sort();
                    let [start, end] = ends;
                    let walk = families[at].range(start.clone()..end.clone());
                    let expected: Vec<_> =
                        model[at].range(start.clone()..end).map(|(k, v)| (k.clone(), v.clone())).collect();
                    // What is written now does not show.
                    families[at].put(&start, "later").unwrap();
                    model[at].insert(start.clone(), b"later".to_vec());
                    assert_eq!(from_both_ends(walk, &mut random), expected, "seed {seed}, step {step}");
                    let prefixed = entries(families[at].prefix(&start));
                    assert!(prefixed.iter().all(|(key, _)| key.starts_with(&start)));
                    assert_eq!(prefixed.len(), model[at].keys().filter(|key| key.starts_with(&start)).count());
                }
            }
            let key = random.key();
            assert_eq!(families[at].get(&key).unwrap().as_deref(), model[at].get(&key).map(Vec::as_slice));
            if let Some((snapshot, then)) = &kept {
                assert_eq!(
                    snapshot.get(&families[at], &key).unwrap().as_deref(),
                    then[at].get(&key).map(Vec::as_slice)
                );
            }
        }
        for (name, expected) in NAMES.iter().zip(&model) {
            let family = db.family(name).unwrap();
            let expected: Vec<_> = expected.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(entries(family.iter()), expected, "seed {seed}");
            let mut backward = entries(family.iter().rev());
            backward.reverse();
            assert_eq!(backward, expected, "seed {seed}");
        }
    }
}
