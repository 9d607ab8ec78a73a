// Full-text search: for each word the documents with it. Adding a document merges its number into the lists of its
// words, without reading them. Run it with
//
//     cargo run --example inverted_index

use std::collections::BTreeSet;

use spillway::{Db, Family, FamilyOptions, Options, Result};

const DOCUMENTS: [&str; 6] = [
    "The log is written first, the table later",
    "A table is sorted, and a memtable is sorted in memory",
    "A compaction merges sorted tables into larger ones",
    "Readers see a snapshot while a compaction runs",
    "The memtable is flushed to a table of level zero",
    "A snapshot keeps what readers may see",
];

struct Index {
    db: Db,
    documents: Family,
    words: Family,
}

impl Index {
    fn open(dir: &std::path::Path) -> Result<Index> {
        let words = FamilyOptions::new().merge_fn("sorted-numbers", |_word, list, more| Some(union(list, more)));
        let db = Db::open_with(dir, &Options::new().family("words", words))?;
        Ok(Index { documents: db.family("documents")?, words: db.family("words")?, db })
    }

    /// Adds a document and all its words, or nothing.
    fn add(&self, number: u32, text: &str) -> Result<()> {
        let mut batch = self.db.batch();
        batch.put(&self.documents, number.to_be_bytes(), text);
        for word in words_of(text) {
            batch.merge(&self.words, word, number.to_be_bytes());
        }
        batch.commit()
    }

    /// The documents with all the words of a query.
    fn search(&self, query: &str) -> Result<Vec<(u32, String)>> {
        let lists = self.words.multi_get(words_of(query))?;
        let mut lists = lists.iter().map(|list| numbers(list.as_deref().unwrap_or_default()).collect::<BTreeSet<_>>());
        let first = lists.next().unwrap_or_default();
        let found: Vec<u32> = lists.fold(first, |found, list| &found & &list).into_iter().collect();
        let texts = self.documents.multi_get(found.iter().map(|number| number.to_be_bytes()))?;
        let text =
            |text: &Option<spillway::Pinned>| String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into();
        Ok(found.iter().copied().zip(texts.iter().map(text)).collect())
    }

    /// Words that begin with `prefix`, each with its number of documents.
    fn complete(&self, prefix: &str) -> impl Iterator<Item = Result<(String, usize)>> {
        self.words.prefix(prefix).map(|entry| {
            let (word, list) = entry?;
            Ok((String::from_utf8_lossy(&word).into_owned(), numbers(&list).count()))
        })
    }
}

fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn numbers(list: &[u8]) -> impl Iterator<Item = u32> {
    list.chunks_exact(4).map(|number| u32::from_be_bytes(number.try_into().expect("four bytes")))
}

/// One sorted list of a list and more of them. The engine also merges operands with each other this way: the result of
/// a merge may itself be merged, which holds for a union.
fn union(list: Option<&[u8]>, more: &[&[u8]]) -> Vec<u8> {
    let all: BTreeSet<u32> = list.into_iter().chain(more.iter().copied()).flat_map(numbers).collect();
    all.into_iter().flat_map(u32::to_be_bytes).collect()
}

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join("spillway-inverted-index");
    let index = Index::open(&dir)?;
    for (number, text) in (1..).zip(DOCUMENTS) {
        index.add(number, text)?;
    }
    for query in ["sorted table", "Snapshot readers", "compaction", "table log"] {
        println!("{query}:");
        for (number, text) in index.search(query)? {
            println!("  {number}. {text}");
        }
    }
    let words: Vec<_> = index.complete("m").collect::<Result<_>>()?;
    println!("words with m: {words:?}");
    index.db.close()?;
    Db::destroy(&dir)
}
