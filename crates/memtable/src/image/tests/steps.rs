//! A skiplist's image between any two stores of an insertion. (The trie's is watched store by store, beside its code.)

use super::*;
use crate::arena::GRANULE_BYTES;
use crate::image::Header;
use crate::skiplist::list::HEIGHT_MAX;

fn word(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*image[at..].first_chunk().expect("a word"))
}

/// Offsets of the links to the node at `node`, the lowest level first.
fn links_to(image: &[u8], head: usize, node: usize) -> Vec<usize> {
    let leads_to = |at: usize| (word(image, at) as u32) as usize * GRANULE_BYTES;
    let mut links = Vec::new();
    for level in 0..HEIGHT_MAX {
        let mut link_at = head - level * GRANULE_BYTES;
        while leads_to(link_at) != 0 && leads_to(link_at) != node {
            link_at = leads_to(link_at) - level * GRANULE_BYTES;
        }
        if leads_to(link_at) == 0 {
            break;
        }
        links.push(link_at);
    }
    links
}

/// An insertion writes a record, then for each level from the lowest its own link and the link to it. So the states
/// between are combined from the images before and after. The entry is visible from the lowest link on.
fn check_states(subject: &Subject, before: &[u8], after: &[u8], node: usize, had: &Pairs) {
    let head = Header::read(after).expect("a header").head as usize;
    let links = links_to(after, head, node);
    assert!(!links.is_empty());
    let own_at = |level: usize| node - level * GRANULE_BYTES;
    let mut state = before.to_vec();
    let tower_end = node + GRANULE_BYTES;
    let next_block = after.len();
    state[tower_end..next_block].copy_from_slice(&after[tower_end..next_block]);
    let check = |state: &[u8], expected: &Pairs| {
        let image = Image::open(state, subject.user_order()).expect("valid between stores");
        assert_eq!(&pairs(&image), expected);
        super::lazy::assert_shows(state, &subject.order, expected, &[u64::MAX >> 8, 20]);
    };
    check(&state, had);
    let has = subject.points();
    for (level, &link_at) in links.iter().enumerate() {
        for at in [own_at(level), link_at] {
            state[at..at + GRANULE_BYTES].copy_from_slice(&after[at..at + GRANULE_BYTES]);
            check(&state, if level == 0 && at != link_at { had } else { &has });
        }
    }
    assert_eq!(state, after, "nothing else was written");
}

#[test]
fn a_skiplist_is_valid_between_any_two_stores() {
    for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
        let mut subject = Subject::new("skip_list", order, 64 << 10);
        let mut random = Random(3);
        for op in random_ops(&mut random, 90) {
            let (before, had) = (subject.image(), subject.points());
            subject.insert(op);
            let after = subject.image();
            let (key, seq, kind, _) = subject.ops.last().expect("one");
            let image = Image::open(&after, subject.user_order()).expect("whole");
            let internal = key::encode(key, SeqNo(*seq), *kind);
            let key_at =
                image.entries().into_iter().find(|(key, _)| *key == internal).expect("inserted").0.as_ptr() as usize;
            let node = key_at - after.as_ptr() as usize - 2 * GRANULE_BYTES;
            check_states(&subject, &before, &after, node, &had);
        }
    }
}
