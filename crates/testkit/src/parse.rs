//! Parser of the language of [`crate::ops`].

use std::str::SplitWhitespace;

use crate::ingest::{Demands, File, Ingest, Source, Way};
use crate::ops::{Action, Change, Durability, Key, Op, Range, Script, Step, Value};

/// Description of the error, with the line.
pub type ParseError = String;

/// Parses a script. Empty lines and lines beginning with `#` are skipped.
///
/// # Errors
/// The malformed line and the reason.
pub fn script(text: &str) -> Result<Script, ParseError> {
    let mut parsed = Script { profile: "tiny".to_owned(), ops: Vec::new() };
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(profile) = line.strip_prefix("profile ") {
            parsed.profile = profile.trim().to_owned();
            continue;
        }
        parsed.ops.push(op(line).map_err(|e| format!("line {}: {e}: {line}", number + 1))?);
    }
    Ok(parsed)
}

/// Parses one operation.
///
/// # Errors
/// The reason it is malformed.
pub fn op(line: &str) -> Result<Op, ParseError> {
    if let Some(batch) = line.strip_prefix("batch ") {
        return self::batch(batch).map(|(changes, durability)| Op::Batch(changes, durability));
    }
    if let Some((name, text)) = line.strip_prefix("begin ").and_then(|text| text.split_once(' ')) {
        return self::batch(text).map(|(changes, _)| Op::Begin(name.to_owned(), changes));
    }
    if let Some(text) = line.strip_prefix("ingest ") {
        return ingest(text).map(Op::Ingest);
    }
    if let Some((name, text)) = line.strip_prefix("prepare ").and_then(|text| text.split_once(' ')) {
        return ingest(text).map(|ingest| Op::Prepare(name.to_owned(), ingest));
    }
    let mut words = Words(line.split_whitespace());
    let parsed = match words.name("operation")?.as_str() {
        "commit" => Op::Commit(words.name("what was prepared")?),
        "abandon" => Op::Abandon(words.name("what was prepared")?),
        "sync" => Op::Sync,
        "snapshot" => Op::Snapshot(words.name("snapshot")?),
        "release" => Op::Release(words.name("snapshot")?),
        "flush" => Op::Flush(words.rest()),
        "compact" => {
            let family = words.name("family")?;
            let (Range { from, to, .. }, force) = words.range("force")?;
            Op::Compact { family, from, to, force }
        }
        "checkpoint" => Op::Checkpoint,
        "create" => Op::Create(words.name("family")?),
        "drop" => Op::Drop(words.name("family")?),
        "import" => Op::Import { family: words.name("family")?, name: words.name("new family")? },
        "end" => Op::End(words.name("transaction")?),
        "undo" => Op::Undo(words.name("transaction")?),
        "reopen" => Op::Reopen,
        "read-only" => match words.0.next() {
            None => Op::ReadOnly { closed: false },
            Some("closed") => Op::ReadOnly { closed: true },
            Some(word) => return Err(format!("`{word}` says nothing of a read-only opening")),
        },
        "get" => Op::Get(words.name("family")?, words.key()?),
        "multi-get" => {
            let family = words.name("family")?;
            Op::MultiGet(family, words.rest().iter().map(|word| unescape(word)).collect::<Result<_, _>>()?)
        }
        "scan" => {
            let family = words.name("family")?;
            let (range, reverse) = words.range("reverse")?;
            Op::Scan { family, range, reverse }
        }
        "iterate" => {
            let (name, family) = (words.name("iterator")?, words.name("family")?);
            Op::Iterate { name, family, range: words.range("")?.0 }
        }
        "move" => Op::Move(words.name("iterator")?, words.step()?),
        "close" => Op::Close(words.name("iterator")?),
        "check" => Op::Check,
        verb => {
            let change = words.change(verb)?;
            let mut durability = Durability::default();
            for word in words.rest() {
                set_durability(&mut durability, &word)?;
            }
            Op::Single(change, durability)
        }
    };
    match words.0.next() {
        None => Ok(parsed),
        Some(word) => Err(format!("`{word}` is too much")),
    }
}

fn batch(text: &str) -> Result<(Vec<Change>, Durability), ParseError> {
    let (mut changes, mut durability) = (Vec::new(), Durability::default());
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        if !part.contains(' ') {
            set_durability(&mut durability, part)?;
            continue;
        }
        let mut words = Words(part.split_whitespace());
        let verb = words.name("change")?;
        changes.push(words.change(&verb)?);
    }
    Ok((changes, durability))
}

fn ingest(text: &str) -> Result<Ingest, ParseError> {
    let mut ingest = Ingest::default();
    let mut parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    for word in parts.next().unwrap_or_default().split_whitespace() {
        let way = Way::ALL.into_iter().find(|way| way.word() == word);
        let source = Source::ALL.into_iter().find(|source| source.word() == word);
        let demand = Demands::ALL.into_iter().find(|(name, _)| *name == word);
        match (way, source, demand, word) {
            (Some(way), ..) => ingest.way = way,
            (_, Some(source), ..) => ingest.source = source,
            (_, _, Some((_, field)), _) => *field(&mut ingest.demands) = true,
            (.., "verified") => ingest.verified = true,
            (.., word) => return Err(format!("`{word}` says nothing of an ingest")),
        }
    }
    let mut in_batch = false;
    for part in parts {
        let mut words = Words(part.split_whitespace());
        match words.name("part of the ingest")?.as_str() {
            "excise" => ingest.excises.push((words.name("family")?, words.key()?, words.key()?)),
            "file" => ingest.files.push(File { family: words.name("family")?, entries: Vec::new() }),
            "batch" => in_batch = true,
            verb if in_batch => ingest.batch.push(words.change(verb)?),
            verb => {
                let file = ingest.files.last_mut().ok_or_else(|| format!("`{verb}` stands before any file"))?;
                file.entries.push(words.action(verb)?);
            }
        }
    }
    Ok(ingest)
}

fn set_durability(durability: &mut Durability, word: &str) -> Result<(), ParseError> {
    match word {
        "sync" => durability.sync = true,
        "unlogged" => durability.disable_wal = true,
        "flushed" => durability.flush = true,
        "hasty" => durability.hasty = true,
        _ => return Err(format!("`{word}` is none of `sync`, `unlogged`, `flushed` and `hasty`")),
    }
    Ok(())
}

/// Iterates over the words of a line.
struct Words<'a>(SplitWhitespace<'a>);

impl Words<'_> {
    fn name(&mut self, what: &str) -> Result<String, ParseError> {
        self.0.next().map(str::to_owned).ok_or_else(|| format!("a name is missing: {what}"))
    }

    fn rest(&mut self) -> Vec<String> {
        self.0.by_ref().map(str::to_owned).collect()
    }

    fn key(&mut self) -> Result<Key, ParseError> {
        unescape(&self.name("key")?)
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        let word = self.name("value")?;
        if let Some(number) = word.strip_prefix("u64:") {
            return number.parse().map(Value::Number).map_err(|e| format!("{word}: {e}"));
        }
        if let Some(numbers) = word.strip_prefix("noise:") {
            let (seed, len) = numbers.split_once(':').ok_or_else(|| format!("{word}: noise:SEED:BYTES"))?;
            let number = |text: &str| text.parse::<u32>().map_err(|e| format!("{word}: {e}"));
            return Ok(Value::Noise { seed: number(seed)?.into(), len: number(len)? });
        }
        let (text, times) = match word.split_once('*') {
            Some((text, times)) => (text, times.parse().map_err(|e| format!("{word}: {e}"))?),
            None => (word.as_str(), 1),
        };
        Ok(Value::Repeated { text: unescape(text)?, times })
    }

    fn change(&mut self, verb: &str) -> Result<Change, ParseError> {
        let family = self.name("family")?;
        Ok(Change { family, action: self.action(verb)? })
    }

    fn action(&mut self, verb: &str) -> Result<Action, ParseError> {
        Ok(match verb {
            "put" => Action::Put(self.key()?, self.value()?),
            "delete" => Action::Delete(self.key()?),
            "single-delete" => Action::SingleDelete(self.key()?),
            "merge" => Action::Merge(self.key()?, self.value()?),
            "delete-range" => Action::DeleteRange(self.key()?, self.key()?),
            _ => return Err(format!("there is no operation `{verb}`")),
        })
    }

    /// Parses the rest as a range, and returns whether the word `flag` is in it.
    fn range(&mut self, flag: &str) -> Result<(Range, bool), ParseError> {
        let (mut range, mut flagged) = (Range::default(), false);
        for word in self.rest() {
            if let Some(snapshot) = word.strip_prefix('@') {
                range.snapshot = Some(snapshot.to_owned());
            } else if let Some(key) = word.strip_prefix("from=") {
                range.from = Some(unescape(key)?);
            } else if let Some(key) = word.strip_prefix("to=") {
                range.to = Some(unescape(key)?);
            } else if word == "prefix" {
                range.prefix = true;
            } else if word == flag {
                flagged = true;
            } else {
                return Err(format!("`{word}` is no part of a range"));
            }
        }
        Ok((range, flagged))
    }

    fn step(&mut self) -> Result<Step, ParseError> {
        Ok(match self.name("step")?.as_str() {
            "first" => Step::First,
            "last" => Step::Last,
            "seek" => Step::Seek(self.key()?),
            "seek-for-prev" => Step::SeekForPrev(self.key()?),
            "next" => Step::Next,
            "prev" => Step::Prev,
            word => return Err(format!("`{word}` is no step of an iterator")),
        })
    }
}

fn unescape(word: &str) -> Result<Vec<u8>, ParseError> {
    if word == "\"\"" {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut pieces = word.split("\\x");
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let (digits, text) = piece.split_at_checked(2).ok_or_else(|| format!("`{word}`: two digits follow \\x"))?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|e| format!("`{word}`: {e}"))?);
        bytes.extend_from_slice(text.as_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_OP: &str = r#"profile tiny
create users
put users ann 1
put users \x00\xff "" sync
put users bob x*500 unlogged
put users bob x*500 unlogged flushed
put users bob noise:7:5000 hasty
delete users ""
single-delete users once
merge sums n u64:7 sync
delete-range users a b
batch put users a 1; merge sums n u64:3; delete-range users b c; sync
ingest flushable; file users; put a 1; delete b; single-delete c; merge d 1; delete-range e f; file sums; merge n u64:1
ingest direct linked verified; excise users a c; excise sums "" z
ingest blocking moved; excise users a c; file users; put a x*500; batch; put users q 1; merge sums n u64:1
ingest flushable behind bottommost numberless unblocking hasty; file users; put a 1
prepare p flush-first numbered; file users; put a 1
commit p
abandon p
sync
snapshot s
release s
flush users sums
compact users from=a to=b force
checkpoint
drop users
import users users-2
begin t put users a 1; merge sums n u64:3
end t
undo t
reopen
get users a
multi-get users a b ""
scan users @s from=a to=b reverse
iterate i users @s from=a
iterate i users from=a prefix
read-only
read-only closed
move i first
move i last
move i seek b
move i seek-for-prev b\x3b
move i next
move i prev
close i
check
"#;

    #[test]
    fn what_is_printed_is_read_back() {
        let parsed = script(EVERY_OP).unwrap();
        assert_eq!(parsed.to_string(), EVERY_OP);
        assert_eq!(parsed.ops.len(), EVERY_OP.lines().count() - 1);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, complaint) in [
            ("put users", "a name is missing: key"),
            ("putt users a b", "there is no operation `putt`"),
            ("put users a b twice", "`twice` is none of"),
            ("reopen now", "`now` is too much"),
            ("put users \\xg a", "two digits follow"),
            ("ingest sideways", "`sideways` says nothing of an ingest"),
            ("ingest direct; put a 1", "`put` stands before any file"),
            ("move i sideways", "`sideways` is no step"),
        ] {
            let error = script(line).unwrap_err();
            assert!(error.starts_with("line 1: ") && error.contains(complaint), "{error}");
        }
    }
}
