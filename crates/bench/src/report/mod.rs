//! Draws the tables and the picture of `docs/benchmarks.md` from the kept results, so that the page always agrees with them.
//!
//! A marker in the page is a comment with a [`Spec`] in JSON. The text between it and the next `<!-- end -->` is drawn.

mod bars;
mod table;

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use serde_json::Value;
use vfs::{IfExists, IoClass, Vfs};

pub use table::{Better, Figure, Spec, drawn};

const RESULTS_BYTES_MAX: u64 = 64 << 20;
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

const BEGIN: &str = "<!-- drawn by `spillway bench report`: ";
const BEGIN_END: &str = " -->\n";
const END: &str = "<!-- end -->";

/// Draws the text of all markers of `document` from files in `results`. With `check`, compares only.
///
/// # Errors
/// `InvalidArgument`: a marker or a line of the results cannot be read, or `check` and the page differs.
pub fn run(vfs: &Arc<dyn Vfs>, results: &Path, document: &Path, check: bool) -> Result<()> {
    let vfs = vfs.as_ref();
    let old = read_text(vfs, document, DOCUMENT_BYTES_MAX)?;
    let mut pictures = Vec::new();
    let new = redrawn(&old, |spec| {
        let path = results.join(&spec.file);
        let records = parse(&read_text(vfs, &path, RESULTS_BYTES_MAX)?).map_err(|e| e.at_path(&path))?;
        let mut text = drawn(spec, &records)?;
        if let Some(name) = &spec.picture {
            pictures.push((name.clone(), bars::of(spec, &records).svg()));
            text.push_str(&format!("\n![{}]({name})\n", spec.title));
        }
        Ok(text)
    })
    .map_err(|e| e.at_path(document))?;
    keep(vfs, document, &new, check)?;
    let folder = document.parent().unwrap_or(Path::new("."));
    pictures.iter().try_for_each(|(name, picture)| keep(vfs, &folder.join(name), picture, check))
}

/// Writes a file if its content changes. With `check`, compares only.
fn keep(vfs: &dyn Vfs, path: &Path, new: &str, check: bool) -> Result<()> {
    if vfs.exists(path)? && read_text(vfs, path, DOCUMENT_BYTES_MAX)? == new {
        return Ok(());
    }
    if check {
        let message = "differs from the results; run `spillway bench report`";
        return Err(Error::invalid_argument(message).at_path(path));
    }
    vfs.create(path, IfExists::Truncate)?.append(new.as_bytes(), IoClass::Other)
}

fn read_text(vfs: &dyn Vfs, path: &Path, max: u64) -> Result<String> {
    let bytes = vfs::read_all(vfs, path, max, IoClass::Other)?;
    String::from_utf8(bytes).map_err(|_| Error::invalid_argument("not text").at_path(path))
}

fn parse(text: &str) -> Result<Vec<Value>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| Error::invalid_argument(format!("line {}: {e}", at + 1)))
    };
    lines.map(read).collect()
}

/// The document with everything drawn anew behind its markers.
fn redrawn(document: &str, mut draw: impl FnMut(&Spec) -> Result<String>) -> Result<String> {
    let mut new = String::new();
    let mut rest = document;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let parts = after.split_once(BEGIN_END).and_then(|(spec, body)| Some((spec, body.split_once(END)?.1)));
        let Some((spec, behind)) = parts else {
            return Err(Error::invalid_argument(format!(
                "a marker has no end: {}",
                after.lines().next().unwrap_or("")
            )));
        };
        let read: Spec =
            serde_json::from_str(spec).map_err(|e| Error::invalid_argument(format!("marker {spec}: {e}")))?;
        let drawn = draw(&read)?;
        new.push_str(&format!("{before}{BEGIN}{spec}{BEGIN_END}\n{drawn}\n{END}"));
        rest = behind;
    }
    Ok(new + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"{"file":"x.jsonl","rows":["w"],"figures":[{"field":"ms","name":"ms"}]}"#;

    fn marked(inside: &str) -> String {
        format!("before\n{BEGIN}{SPEC}{BEGIN_END}\n{inside}\n{END}\nafter\n")
    }

    #[test]
    fn only_what_is_marked_is_replaced() {
        let new = redrawn(&(marked("old") + &marked("old")), |spec| Ok(spec.file.clone())).unwrap();
        assert_eq!(new, marked("x.jsonl") + &marked("x.jsonl"));
        assert_eq!(redrawn("no markers", |_| unreachable!("nothing to draw")).unwrap(), "no markers");
    }

    #[test]
    fn markers_that_cannot_be_read_are_errors() {
        let error = |text: &str| redrawn(text, |_| Ok(String::new())).unwrap_err().to_string();
        assert!(error(&format!("{BEGIN}{SPEC}{BEGIN_END}")).contains("no end"));
        let misspelt = marked("").replace("rows", "row");
        assert!(error(&misspelt).contains("row"), "{}", error(&misspelt));
        assert!(parse("{}\n\n{").unwrap_err().to_string().contains("line 3"));
    }

    #[test]
    fn a_page_that_says_something_else_fails_the_check() {
        let dir = tempfile::tempdir().unwrap();
        let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
        let (results, page) = (dir.path(), dir.path().join("page.md"));
        keep(vfs.as_ref(), &results.join("x.jsonl"), "{\"w\":\"a\",\"ms\":2}\n", false).unwrap();
        keep(vfs.as_ref(), &page, &marked("| a | 3.0 |"), false).unwrap();
        assert!(run(&vfs, results, &page, true).unwrap_err().to_string().contains("differ"));
        run(&vfs, results, &page, false).unwrap();
        run(&vfs, results, &page, true).unwrap();
        assert!(read_text(vfs.as_ref(), &page, 1 << 20).unwrap().contains("| a | 2.0 |"));
    }

    #[test]
    fn the_benchmarks_page_shows_the_kept_figures() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
        run(&vfs, &root.join("bench/results"), &root.join("docs/benchmarks.md"), true).unwrap();
    }
}
