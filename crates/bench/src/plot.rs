//! Pictures of times in SVG: panels side by side that share one logarithmic axis, a line for each series.

use std::fmt::Write;

use crate::medians::in_order;

/// A picture. Times are in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// What stands along the x axis of every panel.
    pub categories: Vec<String>,
    pub panels: Vec<Panel>,
    /// Lines under the panels: the conditions.
    pub caption: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub title: String,
    pub series: Vec<Series>,
}

/// A line: a value for each category. Series of one name look alike in every panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub values: Vec<f64>,
}

const WIDTH: f64 = 960.0;
const PANEL_HEIGHT: f64 = 280.0;
const COLUMNS: usize = 2;
/// Room left of a panel for the axis's numbers and its label.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 16.0;
/// Room above a panel for its title, and below for the categories and the axis's label.
const ABOVE: f64 = 34.0;
const BELOW: f64 = 46.0;
/// The picture's title and the legend.
const HEAD: f64 = 64.0;
const LINE_HEIGHT: f64 = 17.0;
/// Letters of the caption's that fit into a line.
const CAPTION_LETTERS: usize = 120;

/// Told apart by those who do not see all colours, too (Okabe and Ito), and by their dashes.
const STYLES: [(&str, &str); 6] = [
    ("#555555", "6 4"),
    ("#D55E00", ""),
    ("#E69F00", "9 3"),
    ("#0072B2", "3 3"),
    ("#009E73", ""),
    ("#CC79A7", "12 3 3 3"),
];

/// Powers of ten that an axis shows, the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decades {
    low: i32,
    high: i32,
}

impl Decades {
    /// Those around all values; what is not above zero has no place on such an axis.
    fn around(values: impl Iterator<Item = f64>) -> Decades {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return Decades { low: 0, high: 1 };
        }
        let decades = Decades { low: low.log10().floor() as i32, high: high.log10().ceil() as i32 };
        Decades { high: decades.high.max(decades.low + 1), ..decades }
    }

    /// How far up a value stands: 0 at the lowest, 1 at the highest.
    fn height(self, value: f64) -> f64 {
        let exponent = value.max(f64::MIN_POSITIVE).log10();
        ((exponent - f64::from(self.low)) / f64::from(self.high - self.low)).clamp(0.0, 1.0)
    }
}

/// A frame within the picture, in its units.
#[derive(Clone, Copy)]
struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Plot {
    pub fn svg(&self) -> String {
        let names = self.names();
        let decades =
            Decades::around(self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| s.values.iter().copied()));
        let caption: Vec<String> = self.caption.iter().flat_map(|line| wrapped(line, CAPTION_LETTERS)).collect();
        let rows = self.panels.len().div_ceil(COLUMNS);
        let panels_end = HEAD + rows as f64 * PANEL_HEIGHT;
        let height = panels_end + (caption.len() as f64 + 1.0) * LINE_HEIGHT;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        text(&mut svg, (WIDTH / 2.0, 22.0), "middle\" font-size=\"16\" font-weight=\"bold", &self.title);
        legend(&mut svg, &names);
        let columns = self.panels.len().clamp(1, COLUMNS);
        let width = WIDTH / columns as f64;
        for (at, panel) in self.panels.iter().enumerate() {
            let frame = Frame {
                x: (at % columns) as f64 * width + LEFT,
                y: HEAD + (at / columns) as f64 * PANEL_HEIGHT + ABOVE,
                width: width - LEFT - RIGHT,
                height: PANEL_HEIGHT - ABOVE - BELOW,
            };
            self.axes(&mut svg, panel, frame, decades);
            for series in &panel.series {
                let style = names.iter().position(|name| *name == series.name).unwrap_or_default();
                self.line(&mut svg, series, frame, decades, style);
            }
        }
        for (at, line) in caption.iter().enumerate() {
            text(&mut svg, (LEFT, panels_end + (at as f64 + 1.0) * LINE_HEIGHT), "start", line);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Of all series, in the order in which they come.
    fn names(&self) -> Vec<&str> {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        in_order(series, |series| series.name.as_str()).into_iter().map(|(name, _)| name).collect()
    }

    fn axes(&self, svg: &mut String, panel: &Panel, frame: Frame, decades: Decades) {
        let Frame { x, y, width, height } = frame;
        text(svg, (x + width / 2.0, y - 10.0), "middle\" font-weight=\"bold", &panel.title);
        for decade in decades.low..=decades.high {
            let line = y + height * (1.0 - decades.height(10f64.powi(decade)));
            let _ = writeln!(svg, "<path d=\"M{x:.1} {line:.1}H{:.1}\" stroke=\"#dddddd\" fill=\"none\"/>", x + width);
            text(svg, (x - 6.0, line + 4.0), "end", &microseconds(decade));
        }
        for (at, category) in self.categories.iter().enumerate() {
            text(svg, (self.x_of(at, frame), y + height + 16.0), "middle", category);
        }
        text(svg, (x + width / 2.0, y + height + 34.0), "middle", &self.x_label);
        let (label_x, label_y) = (x - LEFT + 14.0, y + height / 2.0);
        let turned = format!("middle\" transform=\"rotate(-90 {label_x:.1} {label_y:.1})");
        text(svg, (label_x, label_y), &turned, &self.y_label);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {y:.1}v{height:.1}h{width:.1}\" stroke=\"#222222\" fill=\"none\"/>");
    }

    fn line(&self, svg: &mut String, series: &Series, frame: Frame, decades: Decades, style: usize) {
        let points: Vec<(f64, f64)> = series
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| (self.x_of(at, frame), frame.y + frame.height * (1.0 - decades.height(*value))))
            .collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (colour, dashes) = STYLES.get(style % STYLES.len()).copied().unwrap_or_default();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" fill=\"none\"/>",
            path.join("L")
        );
        for ((x, y), value) in points.iter().zip(&series.values) {
            let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">");
            let _ = writeln!(svg, "<title>{}: {value:.1} µs</title></circle>", escaped(&series.name));
        }
    }

    fn x_of(&self, at: usize, frame: Frame) -> f64 {
        frame.x + frame.width * (at as f64 + 0.5) / self.categories.len().max(1) as f64
    }
}

fn legend(svg: &mut String, names: &[&str]) {
    let step = (WIDTH - 2.0 * LEFT) / names.len().max(1) as f64;
    for (at, name) in names.iter().enumerate() {
        let x = LEFT + at as f64 * step;
        let (colour, dashes) = STYLES.get(at % STYLES.len()).copied().unwrap_or_default();
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} 44h34\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" fill=\"none\"/>"
        );
        text(svg, (x + 40.0, 48.0), "start", name);
    }
}

/// `anchor` may have more attributes behind it.
fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A power of ten of microseconds, in the unit that suits it.
fn microseconds(decade: i32) -> String {
    let (unit, shift) = match decade {
        ..0 => ("ns", -3),
        0..3 => ("µs", 0),
        3..6 => ("ms", 3),
        6.. => ("s", 6),
    };
    format!("{} {unit}", 10f64.powi(decade - shift))
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

    fn plot() -> Plot {
        let series = |name: &str, values: [f64; 2]| Series { name: name.to_owned(), values: values.into() };
        let panel = |title: &str, series: Vec<Series>| Panel { title: title.to_owned(), series };
        Plot {
            title: "Writes <beside> ingests".to_owned(),
            x_label: "percentile".to_owned(),
            y_label: "latency".to_owned(),
            categories: ["p50", "max"].map(str::to_owned).into(),
            panels: vec![
                panel("small", vec![series("none", [10.0, 100.0]), series("blocking", [10.0, 10_000.0])]),
                panel("big", vec![series("blocking", [1.0, 1000.0])]),
            ],
            caption: vec!["2 writers & \"so\" on".to_owned()],
        }
    }

    /// The attribute `name` of every element that `kind` opens.
    fn attributes<'a>(svg: &'a str, kind: &str, name: &str) -> Vec<&'a str> {
        let (open, start) = (format!("<{kind} "), format!("{name}=\""));
        let opened = svg.split(&open).skip(1);
        opened.filter_map(|rest| rest.split_once(&start)?.1.split('"').next()).collect()
    }

    #[test]
    fn a_value_stands_where_its_logarithm_is() {
        let svg = plot().svg();
        let heights: Vec<f64> = attributes(&svg, "circle", "cy").iter().map(|y| y.parse().unwrap()).collect();
        let [none_p50, none_max, blocking_p50, blocking_max, low, high] = heights[..] else { panic!("{heights:?}") };
        // Four decades, from 1 to 10,000 microseconds, over the height of a panel.
        let decade = (PANEL_HEIGHT - ABOVE - BELOW) / 4.0;
        assert!((none_p50 - none_max - decade).abs() < 0.2, "{heights:?}");
        assert_eq!(none_p50, blocking_p50);
        assert!((blocking_p50 - blocking_max - 3.0 * decade).abs() < 0.2, "{heights:?}");
        assert!((blocking_max - (HEAD + ABOVE)).abs() < 0.1, "the highest is the top of the frame");
        assert!((low - (HEAD + PANEL_HEIGHT - BELOW)).abs() < 0.1 && high > blocking_max, "{heights:?}");
        let places: Vec<f64> = attributes(&svg, "circle", "cx").iter().map(|x| x.parse().unwrap()).collect();
        assert!(places[0] == places[2] && places[1] > places[0] && places[4] > WIDTH / 2.0, "{places:?}");
    }

    #[test]
    fn axes_units_names_and_conditions_are_there_and_escaped() {
        let svg = plot().svg();
        for wanted in
            [">1 µs<", ">10 ms<", ">p50<", ">percentile<", ">latency<", ">small<", ">big<", ">none<", ">blocking<"]
        {
            assert!(svg.contains(wanted), "{wanted}\n{svg}");
        }
        assert!(svg.contains("Writes &lt;beside&gt; ingests") && svg.contains("2 writers &amp; &quot;so&quot; on"));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        let colours = attributes(&svg, "circle", "fill");
        assert_eq!(colours[2], colours[4], "a series has one colour in all panels");
        assert_ne!(colours[0], colours[2]);
    }

    #[test]
    fn an_axis_spans_its_values() {
        assert_eq!(Decades::around([0.0, 5.0, 20.0].into_iter()), Decades { low: 0, high: 2 });
        assert_eq!(Decades::around([100.0].into_iter()), Decades { low: 2, high: 3 });
        assert_eq!(Decades::around([f64::NAN].into_iter()), Decades { low: 0, high: 1 });
        assert_eq!(Decades { low: 0, high: 2 }.height(0.0), 0.0);
        assert_eq!([-1, 0, 4, 6].map(microseconds), ["100 ns", "1 µs", "10 ms", "1 s"]);
        assert_eq!(wrapped("aa bb cc dddddddd e", 5), ["aa bb", "cc", "dddddddd", "e"]);
    }
}
