use spillway::observe::{ObservedFamily, ObservedWrites};

use super::*;

fn advice(rule: &str, family: &str, severity: AdviceSeverity) -> Advice {
    let mut advice = Advice::default();
    (advice.rule, advice.severity, advice.seen) = (rule.into(), severity, "seen".into());
    advice.family = Some(family.into());
    advice
}

/// A reading so many seconds after 1970.
fn writing(second: u64, gate: WriteGate) -> Observation {
    let mut now = Observation::default();
    now.writes = Some(ObservedWrites::default());
    now.health.gate = gate;
    now.health.gate_cause = (gate != WriteGate::Free).then(|| "l0-file-count".into());
    now.process.unix_time_us = second * 1_000_000;
    now
}

fn first(now: &Observation, history: &History, advice: &[Advice]) -> Verdict {
    Judge::default().judge(now, history, advice)
}

/// A history of one second, in which writers waited.
fn waits(stops: f64) -> History {
    let mut point = Point::default();
    (point.unix_ms, point.seconds, point.stops) = (50_000, 1.0, stops);
    point.stall_ms = [("memtable-limit".to_string(), 400.0), ("log-switch".to_string(), 5.0)].into();
    let mut history = History::default();
    history.push(point);
    history
}

#[test]
fn the_worst_comes_first() {
    let calm = History::default();
    let well = first(&writing(60, WriteGate::Free), &calm, &[advice("tombstones", "f", AdviceSeverity::Note)]);
    assert!(well.level == Level::Good && well.sentences.len() == 1, "{well:?}");
    let all = [
        advice("tombstones", "f", AdviceSeverity::Warning),
        advice("read-only", "f", AdviceSeverity::Urgent),
        advice("level0-behind", "g", AdviceSeverity::Urgent),
    ];
    let bad = first(&writing(60, WriteGate::Free), &waits(0.0), &all);
    let levels: Vec<_> = bad.sentences.iter().map(|sentence| sentence.level).collect();
    assert_eq!((bad.level, levels), (Level::Bad, vec![Level::Bad, Level::Bad, Level::Attention, Level::Attention]));
    let texts: Vec<_> = bad.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    assert_eq!(texts[..2], ["Family f: seen.", "Family g: seen."]);
    assert!(texts[2].starts_with("Writers were slowed down") && texts[3] == "Family f: seen.", "{texts:?}");
}

#[test]
fn one_trouble_is_one_sentence() {
    let mut now = writing(60, WriteGate::Stopped);
    for name in ["f", "g", "h"] {
        let mut family = ObservedFamily::default();
        (family.name, family.gate_cause) = (name.into(), Some("l0-file-count".into()));
        now.families.push(family);
    }
    let mut level0 = advice("level0-behind", "f", AdviceSeverity::Warning);
    (level0.option, level0.from, level0.to) =
        (Some("write_buffer_size".into()), Some("67108864".into()), Some("134217728".into()));
    level0.advice = "Turn.".into();
    let told = first(&now, &History::default(), &[level0]);
    assert_eq!(told.sentences.len(), 1, "{told:?}");
    let only = &told.sentences[0];
    assert_eq!((only.level, only.text.as_str()), (Level::Bad, "Family f: seen. So in 2 more families."));
    assert_eq!(only.remedy, "Turn. write_buffer_size: 64 MiB → 128 MiB (at the next open).");
    let plain = first(&writing(60, WriteGate::Stopped), &History::default(), &[]);
    assert!(plain.sentences[0].text.starts_with("Writers are stopped: level 0"), "{plain:?}");
    let slow = first(&writing(60, WriteGate::Delayed), &History::default(), &[]);
    assert!(slow.sentences[0].text.starts_with("Writers are slowed down: level 0"), "{slow:?}");
}

#[test]
fn waits_of_the_last_minute_are_told_by_their_cause() {
    let told = first(&writing(60, WriteGate::Free), &waits(12.0), &[]);
    let text = &told.sentences[0].text;
    assert_eq!(told.level, Level::Attention);
    assert!(
        text.starts_with("Writers were stopped 12 times and waited 0.4 s") && text.contains("all memtables"),
        "{text}"
    );
    assert_eq!(first(&writing(120, WriteGate::Free), &waits(12.0), &[]).level, Level::Good, "a minute ago");
}

#[test]
fn words_do_not_change_with_each_reading() {
    use WriteGate::{Delayed, Free, Stopped};
    let history = History::default();
    let mut judge = Judge::default();
    let mut told = |second, gate| judge.judge(&writing(second, gate), &history, &[]);
    assert_eq!(told(100, Free).level, Level::Good);
    assert_eq!((told(101, Delayed).level, told(102, Delayed).level), (Level::Good, Level::Good), "not long enough");
    assert_eq!(told(103, Delayed).level, Level::Attention, "the third reading");
    assert_eq!(told(104, Free).level, Level::Attention);
    let past = told(107, Free);
    assert!(past.sentences[0].text.starts_with("A moment ago: Writers are slowed down"), "{past:?}");
    assert_eq!((told(112, Free).level, told(113, Free).level), (Level::Attention, Level::Good), "calm for ten seconds");
    let levels: Vec<_> =
        (114..125).map(|second| told(second, if second % 2 == 0 { Stopped } else { Delayed }).level).collect();
    assert_eq!((levels[1], &levels[2..]), (Level::Good, &[Level::Bad; 9][..]), "stopped, and slowed down in between");
    assert_eq!(told(125, Delayed).sentences.len(), 1);
    assert_eq!(
        (told(133, Delayed).level, told(134, Delayed).level),
        (Level::Bad, Level::Attention),
        "not stopped any more"
    );
    assert_eq!(told(150, Free).level, Level::Good);
    let mut blip =
        |second| judge.judge(&writing(second, if second == 160 { Delayed } else { Free }), &history, &[]).level;
    assert!((151..175).all(|second| blip(second) == Level::Good), "one reading is no trouble");
}

#[test]
fn the_first_reading_and_what_does_not_pass_are_told_at_once() {
    let history = History::default();
    let mut judge = Judge::default();
    assert_eq!(judge.judge(&writing(9, WriteGate::Delayed), &history, &[]).level, Level::Attention);
    let broken = [advice("disk-full", "f", AdviceSeverity::Urgent), advice("slow-syncs", "f", AdviceSeverity::Warning)];
    let told = judge.judge(&writing(10, WriteGate::Delayed), &history, &broken);
    assert_eq!((told.level, told.sentences.len()), (Level::Bad, 2), "{told:?}");
    // A database in doubt is not well, from the next reading on.
    let doubts = [advice("recovery-doubts", "f", AdviceSeverity::Warning)];
    let mut judge = Judge::default();
    judge.judge(&writing(9, WriteGate::Free), &history, &[]);
    let told = judge.judge(&writing(10, WriteGate::Free), &history, &doubts);
    assert!(told.level == Level::Attention && told.sentences[0].text == "Family f: seen.", "{told:?}");
}

#[test]
fn a_long_wait_is_told_before_it_ends() {
    let waiting = |us| {
        let mut now = writing(100, WriteGate::Free);
        let mut stall = spillway::observe::ObservedStall::default();
        (stall.cause, stall.waiting, stall.waiting_us) = ("memtable-limit".into(), 2, us);
        now.writes.as_mut().unwrap().stalls = vec![stall];
        first(&now, &History::default(), &[])
    };
    assert_eq!(waiting(999_999).level, Level::Good);
    let told = waiting(3_000_000);
    assert_eq!(told.level, Level::Bad);
    assert!(
        told.sentences[0].text.starts_with("2 writers wait, the first for 3 s: all memtables are full"),
        "{told:?}"
    );
}

#[test]
fn remedies_say_when_their_options_take_effect() {
    for cause in spillway::StallCause::ALL {
        let (_, remedy) = meaning(cause.name());
        for named in options::Named::in_text(None, remedy) {
            let behind = remedy.split_once(&named.name).unwrap().1;
            let shown = options::shown(&[], &[], std::slice::from_ref(&named), "default");
            let when = behind.split_once(" (").and_then(|(_, behind)| behind.split_once(')')).unwrap().0;
            assert_eq!(when, options::when(shown[0].is_mutable), "{}: {remedy}", named.name);
        }
    }
}

#[test]
fn a_sentence_has_its_place_on_the_page() {
    let page = [include_str!("../page/index.html"), include_str!("../page/app.js"), include_str!("../page/lanes.js")];
    let is_there = |place: &str| {
        let id = match place.strip_prefix("chart-") {
            Some(chart) => format!("id: \"{chart}\""),
            None => format!("id=\"{place}\""),
        };
        page.iter().any(|text| text.contains(&id))
    };
    let causes = spillway::StallCause::ALL.iter().map(|cause| cause.name());
    let rules = ["read-only", "disk-full", "level0-behind", "compactions-behind", "buffers-too-small", "slow-syncs"];
    let more = ["memory-limit", "filters", "tombstones", "cache-too-small", "old-snapshot", "old-iterator"];
    for about in causes.chain(rules).chain(more) {
        assert!(is_there(place(about)), "{about}: {}", place(about));
    }
    let told =
        first(&writing(60, WriteGate::Stopped), &waits(12.0), &[advice("old-iterator", "f", AdviceSeverity::Warning)]);
    let places: Vec<_> = told.sentences.iter().map(|sentence| (sentence.place, sentence.family.as_deref())).collect();
    assert_eq!(places, [("chart-level0", None), ("chart-waits", None), ("chart-kept", Some("f"))]);
}
