//! Ratios as bars in SVG: to the right of 1 for better, to the left for worse, on a logarithmic axis.

use std::fmt::Write;

use serde_json::Value;

use super::table::{Row, Spec, Table, origin};

/// A picture of ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    title: String,
    /// The names of the ratios; each has a bar in every group.
    names: Vec<String>,
    groups: Vec<Group>,
    /// Under the bars: the conditions.
    caption: String,
}

/// One ratio for each name, if known.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    title: String,
    ratios: Vec<Option<f64>>,
}

const WIDTH: f64 = 960.0;
/// Room for the groups' titles.
const TITLES: f64 = 250.0;
const MARGIN: f64 = 16.0;
/// The picture's title and the legend.
const HEAD: f64 = 64.0;
/// Room for the axis's numbers.
const AXIS: f64 = 26.0;
const BAR_HEIGHT: f64 = 13.0;
/// Between groups.
const GAP: f64 = 7.0;
/// Room beyond the longest bar for its number.
const NUMBER: f64 = 44.0;
const LINE_HEIGHT: f64 = 17.0;
/// Letters in a line of the caption.
const CAPTION_LETTERS: usize = 130;

/// Of Okabe and Ito: distinct for colour-blind readers too.
const COLOURS: [&str; 4] = ["#0072B2", "#D55E00", "#009E73", "#E69F00"];

/// The ratios of a table.
pub fn of(spec: &Spec, records: &[Value]) -> Bars {
    let table = Table::of(spec, records);
    let group = |row: &Row<'_>| Group {
        title: row.name.clone(),
        ratios: table.beside_base().map(|(at, _)| table.ratio(spec, row, at)).collect(),
    };
    Bars {
        title: spec.title.clone(),
        names: table.beside_base().map(|(_, name)| name.clone()).collect(),
        groups: table.rows.iter().map(group).collect(),
        caption: format!("Above 1 is better, whatever the unit. {}", origin(spec, &table).replace('`', "")),
    }
}

impl Bars {
    pub fn svg(&self) -> String {
        let group_height = self.names.len() as f64 * BAR_HEIGHT + GAP;
        let body = AXIS + self.groups.len() as f64 * group_height;
        let lines = wrapped(&self.caption, CAPTION_LETTERS);
        let height = HEAD + body + (lines.len() as f64 + 1.0) * LINE_HEIGHT;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        text(&mut svg, Point { x: WIDTH / 2.0, y: 22.0 }, "middle\" font-size=\"16\" font-weight=\"bold", &self.title);
        for (at, name) in self.names.iter().enumerate() {
            let x = TITLES + NUMBER + 200.0 * at as f64;
            let _ = writeln!(svg, "<path d=\"M{x:.1} 44h34\" stroke=\"{}\" stroke-width=\"4\"/>", colour(at));
            text(&mut svg, Point { x: x + 40.0, y: 48.0 }, "start", name);
        }
        let axis = Axis::around(&self.groups);
        axis.draw(&mut svg, body);
        for (at, group) in self.groups.iter().enumerate() {
            let y = HEAD + AXIS + at as f64 * group_height;
            text(&mut svg, Point { x: TITLES, y: y + (group_height - GAP) / 2.0 + 4.0 }, "end", &group.title);
            for (nth, ratio) in group.ratios.iter().enumerate() {
                if let Some(ratio) = ratio {
                    axis.bar(&mut svg, y + nth as f64 * BAR_HEIGHT, *ratio, colour(nth));
                }
            }
        }
        for (line, at) in lines.iter().zip(1..) {
            text(&mut svg, Point { x: MARGIN, y: HEAD + body + f64::from(at) * LINE_HEIGHT }, "start", line);
        }
        svg + "</svg>\n"
    }
}

/// Powers of two around the ratios, 1 among them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn around(groups: &[Group]) -> Axis {
        let octaves = groups.iter().flat_map(|group| &group.ratios).flatten().map(|ratio| ratio.log2());
        let (low, high) = octaves.fold((0.0f64, 0.0f64), |(low, high), octave| (low.min(octave), high.max(octave)));
        Axis { low: (low.floor() as i32).min(-1), high: (high.ceil() as i32).max(1) }
    }

    fn x_of(self, ratio: f64) -> f64 {
        let width = WIDTH - TITLES - MARGIN - 2.0 * NUMBER;
        TITLES + NUMBER + width * (ratio.log2() - f64::from(self.low)) / f64::from(self.high - self.low)
    }

    fn draw(self, svg: &mut String, body: f64) {
        for octave in self.low..=self.high {
            let (x, ratio) = (self.x_of(2f64.powi(octave)), 2f64.powi(octave));
            let (colour, top) = (if octave == 0 { "#222222" } else { "#dddddd" }, HEAD + AXIS - 4.0);
            let _ = writeln!(svg, "<path d=\"M{x:.1} {top:.1}v{:.1}\" stroke=\"{colour}\"/>", body - AXIS + 4.0);
            text(svg, Point { x, y: top - 6.0 }, "middle", &format!("{ratio}"));
        }
    }

    /// From the line of 1 to its end, and its number beyond.
    fn bar(self, svg: &mut String, y: f64, ratio: f64, colour: &str) {
        let (one, end) = (self.x_of(1.0), self.x_of(ratio));
        let (left, width, height) = (one.min(end), (end - one).abs(), BAR_HEIGHT - 2.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        );
        let (x, anchor) = if ratio < 1.0 { (end - 4.0, "end") } else { (end + 4.0, "start") };
        text(svg, Point { x, y: y + BAR_HEIGHT - 3.5 }, anchor, &format!("{ratio:.2}"));
    }
}

#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

fn colour(nth: usize) -> &'static str {
    COLOURS.get(nth % COLOURS.len()).copied().unwrap_or_default()
}

/// `anchor` may have more attributes behind it.
fn text(svg: &mut String, at: Point, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{words}</text>", at.x, at.y);
}

/// Splits between words into lines of so many letters at most; a longer word has a line of its own.
fn wrapped(words: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_one_and_end_at_their_ratio() {
        let group = |title: &str, ratio| Group { title: title.to_owned(), ratios: vec![ratio] };
        let bars = Bars {
            title: "t".to_owned(),
            names: vec!["spillway".to_owned()],
            groups: vec![group("a<b", Some(4.0)), group("b", Some(0.5)), group("c", None)],
            caption: "c".to_owned(),
        };
        let axis = Axis::around(&bars.groups);
        assert_eq!(axis, Axis { low: -1, high: 2 });
        let (svg, third) = (bars.svg(), axis.x_of(2.0) - axis.x_of(1.0));
        let one = axis.x_of(1.0);
        assert!(svg.contains(&format!("<rect x=\"{one:.1}\" y=\"90.0\" width=\"{:.1}\"", 2.0 * third)), "{svg}");
        assert!(svg.contains(&format!("<rect x=\"{:.1}\" y=\"110.0\" width=\"{third:.1}\"", one - third)), "{svg}");
        assert_eq!(svg.matches("<rect x=").count(), 2, "nothing is drawn of what is not there");
        assert!(svg.contains("a&lt;b") && svg.contains(">4.00<") && svg.contains(">0.50<"), "{svg}");
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(wrapped("aa bb cc dddddddd e", 5), ["aa bb", "cc", "dddddddd", "e"]);
    }
}
