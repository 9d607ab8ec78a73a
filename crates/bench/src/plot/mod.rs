//! Pictures of times in SVG: panels side by side that share one logarithmic axis, a line for each series.

pub mod bars;
mod page;

use std::fmt::Write;

use crate::medians::in_order;
use page::{HEAD, LEFT, RIGHT, WIDTH, escaped, page, style, text};

/// A picture. Times are in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// What stands along the x axis of every panel.
    pub across: Across,
    pub panels: Vec<Panel>,
    /// Lines under the panels: the conditions.
    pub caption: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Across {
    Categories(Vec<String>),
    /// Time from 0 to so many seconds.
    Seconds(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub title: String,
    pub series: Vec<Series>,
    /// Seconds at which something happened, where time is across.
    pub marks: Vec<f64>,
}

/// A line: a value for each category, or for each of as many equal parts of the time. Series of one name look alike in every panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub values: Vec<f64>,
}

const PANEL_HEIGHT: f64 = 280.0;
const COLUMNS: usize = 2;
/// Numbers under a panel with time across.
const TICKS_MAX: f64 = 12.0;
/// Room above a panel for its title, and below for the categories and the axis's label.
const ABOVE: f64 = 34.0;
const BELOW: f64 = 46.0;

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
        let rows = self.panels.len().div_ceil(COLUMNS);
        let legend: Vec<(&str, usize)> = names.iter().copied().zip(0..).collect();
        page(&self.title, &legend, rows as f64 * PANEL_HEIGHT, &self.caption, |svg| {
            let columns = self.panels.len().clamp(1, COLUMNS);
            let width = WIDTH / columns as f64;
            for (at, panel) in self.panels.iter().enumerate() {
                let frame = Frame {
                    x: (at % columns) as f64 * width + LEFT,
                    y: HEAD + (at / columns) as f64 * PANEL_HEIGHT + ABOVE,
                    width: width - LEFT - RIGHT,
                    height: PANEL_HEIGHT - ABOVE - BELOW,
                };
                self.axes(svg, panel, frame, decades);
                for series in &panel.series {
                    let nth = names.iter().position(|name| *name == series.name).unwrap_or_default();
                    self.line(svg, series, frame, decades, nth);
                }
            }
        })
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
        self.across.labels(svg, frame, &panel.marks);
        text(svg, (x + width / 2.0, y + height + 34.0), "middle", &self.x_label);
        let (label_x, label_y) = (x - LEFT + 14.0, y + height / 2.0);
        let turned = format!("middle\" transform=\"rotate(-90 {label_x:.1} {label_y:.1})");
        text(svg, (label_x, label_y), &turned, &self.y_label);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {y:.1}v{height:.1}h{width:.1}\" stroke=\"#222222\" fill=\"none\"/>");
    }

    fn line(&self, svg: &mut String, series: &Series, frame: Frame, decades: Decades, nth: usize) {
        let points: Vec<(f64, f64)> = series
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let x = frame.x + frame.width * middle_of(at, series.values.len());
                (x, frame.y + frame.height * (1.0 - decades.height(*value)))
            })
            .collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (colour, dashes) = style(nth);
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" fill=\"none\"/>",
            path.join("L")
        );
        // Over time there are too many.
        if let Across::Categories(_) = self.across {
            for ((x, y), value) in points.iter().zip(&series.values) {
                let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">");
                let _ = writeln!(svg, "<title>{}: {value:.1} µs</title></circle>", escaped(&series.name));
            }
        }
    }
}

/// Where the middle of a part stands, of the whole width.
fn middle_of(at: usize, parts: usize) -> f64 {
    (at as f64 + 0.5) / parts.max(1) as f64
}

impl Across {
    /// What stands under a panel, and its marks.
    fn labels(&self, svg: &mut String, frame: Frame, marks: &[f64]) {
        let Frame { x, y, width, height } = frame;
        match self {
            Across::Categories(categories) => {
                for (at, category) in categories.iter().enumerate() {
                    text(svg, (x + width * middle_of(at, categories.len()), y + height + 16.0), "middle", category);
                }
            }
            Across::Seconds(end) => {
                let x_of = |second: f64| x + width * second / end.max(f64::MIN_POSITIVE);
                let step = (end / TICKS_MAX).ceil().max(1.0);
                for second in (0..).map(|nth| f64::from(nth) * step).take_while(|second| second <= end) {
                    text(svg, (x_of(second), y + height + 16.0), "middle", &format!("{second}"));
                }
                for mark in marks.iter().filter(|second| *second <= end).map(|second| x_of(*second)) {
                    let _ = writeln!(
                        svg,
                        "<path d=\"M{mark:.1} {y:.1}v{height:.1}\" stroke=\"#999999\" stroke-dasharray=\"2 3\" fill=\"none\"/>"
                    );
                }
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let series = |name: &str, values: [f64; 2]| Series { name: name.to_owned(), values: values.into() };
        let panel = |title: &str, series: Vec<Series>| Panel { title: title.to_owned(), series, marks: Vec::new() };
        Plot {
            title: "Writes <beside> ingests".to_owned(),
            x_label: "percentile".to_owned(),
            y_label: "latency".to_owned(),
            across: Across::Categories(["p50", "max"].map(str::to_owned).into()),
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
    fn marks_stand_at_their_time() {
        let over_time = Plot {
            across: Across::Seconds(4.0),
            panels: vec![Panel {
                title: String::new(),
                series: vec![Series { name: "p50".to_owned(), values: vec![1.0, 10.0] }],
                marks: vec![0.0, 3.0, 5.0],
            }],
            ..plot()
        };
        let svg = over_time.svg();
        let width = WIDTH - LEFT - RIGHT;
        let mark = |second: f64| format!("<path d=\"M{:.1} {:.1}v", LEFT + width * second / 4.0, HEAD + ABOVE);
        assert!(svg.contains(&mark(0.0)) && svg.contains(&mark(3.0)), "{svg}");
        assert!(svg.contains(&format!("<path d=\"M{:.1} ", LEFT + width / 4.0)), "the first half's middle: {svg}");
        assert_eq!(svg.matches("stroke-dasharray=\"2 3\"").count(), 2, "what came later has no place");
        assert!(svg.contains(">4</text>") && !svg.contains("<circle"), "{svg}");
    }

    #[test]
    fn an_axis_spans_its_values() {
        assert_eq!(Decades::around([0.0, 5.0, 20.0].into_iter()), Decades { low: 0, high: 2 });
        assert_eq!(Decades::around([100.0].into_iter()), Decades { low: 2, high: 3 });
        assert_eq!(Decades::around([f64::NAN].into_iter()), Decades { low: 0, high: 1 });
        assert_eq!(Decades { low: 0, high: 2 }.height(0.0), 0.0);
        assert_eq!([-1, 0, 4, 6].map(microseconds), ["100 ns", "1 µs", "10 ms", "1 s"]);
    }
}
