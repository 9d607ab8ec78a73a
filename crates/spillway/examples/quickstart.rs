use spillway::{Db, Options, Result};

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join("spillway-quickstart");
    let db = Db::open(&dir)?; // created if it is not there
    db.put("fruit/apple", "red")?;
    db.put(String::from("fruit/pear"), vec![b'g', b'r'])?;
    assert_eq!(db.get("fruit/apple")?.as_deref(), Some(b"red".as_slice()));
    assert!(db.contains_key("fruit/pear")?);

    let users = db.family("users")?; // created if it is not there
    users.put(7u64.to_be_bytes(), "Ada")?;
    let mut batch = db.batch();
    batch.put(&users, 8u64.to_be_bytes(), "Grace");
    batch.delete(db.default_family(), "fruit/pear");
    batch.commit()?; // both, or neither

    for entry in db.prefix("fruit/") {
        let (key, value) = entry?;
        println!("{} = {}", key.escape_ascii(), value.escape_ascii());
    }
    let newest: Vec<_> = users.range(5u64.to_be_bytes()..).rev().take(10).collect::<Result<_>>()?;
    assert_eq!(newest.len(), 2);

    let before = db.snapshot();
    users.delete(7u64.to_be_bytes())?;
    assert!(before.get(&users, 7u64.to_be_bytes())?.is_some());
    assert!(users.get(7u64.to_be_bytes())?.is_none());
    drop(before);
    db.close()?;

    let options = Options::new().memtable("trie").write_buffer_size(256 << 20).sync_writes(true);
    let db = Db::open_with(&dir, &options)?;
    assert_eq!(db.iter().count(), 1);
    drop(db);
    Db::destroy(&dir)
}
