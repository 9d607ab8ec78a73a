use super::*;
use crate::ops::Op;
use crate::parse;

fn written(model: &mut Model, line: &str) -> usize {
    let (changes, durability) = match parse::op(line).unwrap() {
        Op::Single(change, durability) => (vec![change], durability),
        Op::Batch(changes, durability) => (changes, durability),
        other => panic!("no write: {other}"),
    };
    let changes = model.applicable(&changes);
    model.write(&changes, durability);
    changes.len()
}

fn shown(model: &Model, family: &str) -> String {
    let contents = model.contents(family);
    let pairs = contents
        .iter()
        .map(|(key, entry)| format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(&entry.value)));
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn writes_make_points_of_the_history() {
    let mut model = Model::default();
    written(&mut model, "put default a 1 sync");
    written(&mut model, "batch merge default a 2; put default b 1; put default c 1");
    written(&mut model, "delete-range default b c");
    assert_eq!(shown(&model, "default"), "a=1,2 c=1");
    assert_eq!((model.now(), model.durable()), (3, 1));
    model.flushed("default");
    assert_eq!(model.durable(), 3);
    model.rewind(1);
    assert_eq!(shown(&model, "default"), "a=1");
}

#[test]
fn single_deletes_are_taken_only_where_they_are_defined() {
    let mut model = Model::default();
    written(&mut model, "batch put default once 1; put default twice 1; put default twice 2");
    assert_eq!(written(&mut model, "single-delete default once"), 1);
    assert_eq!(written(&mut model, "single-delete default once"), 0);
    assert_eq!(written(&mut model, "single-delete default twice"), 0);
    assert_eq!(shown(&model, "default"), "twice=2");
    written(&mut model, "batch put default once 2; delete default once; put default once 3");
    assert_eq!(written(&mut model, "single-delete default once"), 0, "a version may be left below the deletion");
}

#[test]
fn a_family_created_again_is_another() {
    let mut model = Model::default();
    model.create("f");
    written(&mut model, "put f a 1");
    let before = model.family("f");
    model.drop("f");
    model.create("f");
    assert_ne!(model.family("f"), before);
    assert_eq!(shown(&model, "f"), "");
}

fn behind(model: &mut Model, line: &str) {
    let Op::Ingest(ingest) = parse::op(line).unwrap() else { panic!("no ingest") };
    let ingest = model.applicable_ingest(&ingest);
    model.ingest(&ingest, Durability::default());
}

#[test]
fn what_comes_from_behind_is_under_everything() {
    let mut model = Model::default();
    written(&mut model, "batch put default a 1; merge default b 2; delete default c; delete-range default d f");
    written(&mut model, "merge default d 4");
    written(&mut model, "put default s 1");
    written(&mut model, "single-delete default s");
    let before = model.state().clone();
    behind(&mut model, "ingest direct behind; file default; put a 9; put b 9; put c 9; put d 9; put e 9; put f 9");
    behind(&mut model, "ingest direct behind; file default; delete g; merge m 9; put s 9; delete-range t v");
    assert_eq!(shown(&model, "default"), "a=1 b=9,2 d=4 f=9 m=9");
    written(&mut model, "batch put default f 1; merge default m 1; delete default b");
    assert_eq!(shown(&model, "default"), "a=1 d=4 f=1 m=9,1");
    assert_eq!(written(&mut model, "single-delete default f"), 0, "there is a version under it");
    assert_eq!(before.contents(DEFAULT).len(), 3, "states are not changed behind one's back");
}

#[test]
fn ranges_go_by_the_order_of_keys() {
    let mut model = Model::default().ordered(UserOrder::ReverseBytewise);
    written(&mut model, "batch put default a 1; put default b 1; put default c 1");
    written(&mut model, "delete-range default c a");
    assert_eq!(shown(&model, "default"), "a=1");
}
