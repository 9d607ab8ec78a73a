//! What a checked image has, read by the code of its check.

use base::{Result, SeqNo, UserOrder};

use crate::image::parts::{Body, Parts};
use crate::image::skiplist::ListView;
use crate::image::trie::TrieView;
use crate::image::view::View;
use crate::image::walk::Walk;
use crate::image::{Report, check, tombstones};
use crate::trie::layout::Link;

/// A checked image.
pub(crate) struct Image<'a> {
    view: View<'a>,
    body: Body<'a>,
    tombstones_head: u64,
    pub(crate) report: Report,
}

impl<'a> Image<'a> {
    pub(crate) fn open(bytes: &'a [u8], order: &UserOrder) -> Result<Image<'a>> {
        let report = check(bytes, order)?;
        let Parts { view, body, tombstones_head, .. } = Parts::new(bytes, &report.header, order)?;
        Ok(Image { view, body, tombstones_head, report })
    }

    /// All point entries in order: internal key and value.
    pub(crate) fn entries(&self) -> Vec<(&'a [u8], &'a [u8])> {
        let entries = match self.body {
            Body::Trie { trie, upwards } => trie_entries(&trie, upwards),
            Body::SkipList(list) => list_entries(&list),
        };
        entries.expect("a checked image has no errors")
    }

    /// All range deletions, the last added first: start, end, number.
    pub(crate) fn range_deletions(&self) -> Vec<(&'a [u8], &'a [u8], SeqNo)> {
        let (mut found, mut link_at) = (Vec::new(), self.tombstones_head);
        while let Some((at, entry)) = tombstones::next(&self.view, link_at).expect("checked") {
            found.push((entry.user_key(), entry.value, entry.seq()));
            link_at = at;
        }
        found
    }
}

fn trie_entries<'a>(trie: &TrieView<'a>, upwards: bool) -> Result<Vec<(&'a [u8], &'a [u8])>> {
    let (mut found, mut walk) = (Vec::new(), Walk::new());
    walk.start(trie, upwards)?;
    while let Some(newest) = walk.next_key(trie)? {
        let mut version = newest;
        while version != Link::NULL {
            let leaf = trie.leaf(version)?;
            found.push((leaf.entry.internal_key, leaf.entry.value));
            version = leaf.next;
        }
    }
    Ok(found)
}

fn list_entries<'a>(list: &ListView<'a>) -> Result<Vec<(&'a [u8], &'a [u8])>> {
    let (mut found, mut node) = (Vec::new(), list.first()?);
    while node != 0 {
        let entry = list.entry(node)?;
        found.push((entry.internal_key, entry.value));
        node = list.next(node, 0)?;
    }
    Ok(found)
}
