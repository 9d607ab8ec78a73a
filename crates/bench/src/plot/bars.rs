//! Ratios as bars: to the right of 1 where something is ahead, to the left where it is behind, on a logarithmic axis.

use std::fmt::Write;

use super::page::{HEAD, RIGHT, WIDTH, escaped, page, style, text};

/// A picture of ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    pub title: String,
    /// What the ratios are of, a bar in each group.
    pub names: Vec<String>,
    pub groups: Vec<Group>,
    /// Lines under the bars: the conditions.
    pub caption: Vec<String>,
}

/// A ratio for each name, where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub title: String,
    pub ratios: Vec<Option<f64>>,
}

/// Room for the groups' titles.
const TITLES: f64 = 250.0;
const BAR_HEIGHT: f64 = 13.0;
/// Between groups.
const GAP: f64 = 7.0;
/// Room for the axis's numbers.
const AXIS: f64 = 26.0;
/// The style before it is for what the others are set in relation to.
const FIRST_STYLE: usize = 1;
/// Room beyond the longest bar for its number.
const NUMBER: f64 = 44.0;

/// Powers of two around the ratios, 1 among them.
fn octaves(groups: &[Group]) -> (i32, i32) {
    let ratios =
        groups.iter().flat_map(|group| &group.ratios).flatten().filter(|ratio| **ratio > 0.0 && ratio.is_finite());
    let (low, high) =
        ratios.fold((0.0f64, 0.0f64), |(low, high), ratio| (low.min(ratio.log2()), high.max(ratio.log2())));
    ((low.floor() as i32).min(-1), (high.ceil() as i32).max(1))
}

impl Bars {
    pub fn svg(&self) -> String {
        let names: Vec<(&str, usize)> =
            self.names.iter().zip(FIRST_STYLE..).map(|(name, nth)| (name.as_str(), nth)).collect();
        let group_height = self.names.len() as f64 * BAR_HEIGHT + GAP;
        let height = self.groups.len() as f64 * group_height;
        let (low, high) = octaves(&self.groups);
        let width = WIDTH - TITLES - RIGHT - 2.0 * NUMBER;
        let x_of = |ratio: f64| {
            let octave = ratio.max(f64::MIN_POSITIVE).log2().clamp(f64::from(low), f64::from(high));
            TITLES + NUMBER + width * (octave - f64::from(low)) / f64::from(high - low)
        };
        page(&self.title, &names, AXIS + height, &self.caption, |svg| {
            for octave in low..=high {
                let (x, ratio) = (x_of(2f64.powi(octave)), 2f64.powi(octave));
                let colour = if octave == 0 { "#222222" } else { "#dddddd" };
                let top = HEAD + AXIS - 4.0;
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x:.1} {top:.1}v{:.1}\" stroke=\"{colour}\" fill=\"none\"/>",
                    height + 4.0
                );
                text(svg, (x, top - 6.0), "middle", &format!("{ratio}"));
            }
            for (at, group) in self.groups.iter().enumerate() {
                let y = HEAD + AXIS + at as f64 * group_height;
                text(svg, (TITLES, y + (group_height - GAP) / 2.0 + 4.0), "end", &group.title);
                for (nth, ratio) in group.ratios.iter().enumerate() {
                    let Some(ratio) = ratio else { continue };
                    bar(
                        svg,
                        (x_of(1.0), x_of(*ratio)),
                        y + nth as f64 * BAR_HEIGHT,
                        *ratio,
                        style(nth + FIRST_STYLE).0,
                    );
                }
            }
        })
    }
}

/// A bar from the line of 1 to its end, and its number beyond that.
fn bar(svg: &mut String, (one, end): (f64, f64), y: f64, ratio: f64, colour: &str) {
    let (left, width) = (one.min(end), (end - one).abs());
    let _ = write!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\">",
        BAR_HEIGHT - 2.0
    );
    let _ = writeln!(svg, "<title>{}</title></rect>", escaped(&format!("{ratio:.3}")));
    let (x, anchor) = if ratio < 1.0 { (end - 4.0, "end") } else { (end + 4.0, "start") };
    text(svg, (x, y + BAR_HEIGHT - 3.5), anchor, &format!("{ratio:.2}"));
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
            caption: Vec::new(),
        };
        assert_eq!(octaves(&bars.groups), (-1, 2));
        let svg = bars.svg();
        let third = (WIDTH - TITLES - RIGHT - 2.0 * NUMBER) / 3.0;
        let one = TITLES + NUMBER + third;
        assert!(svg.contains(&format!("<rect x=\"{one:.1}\" y=\"90.0\" width=\"{:.1}\"", 2.0 * third)), "{svg}");
        assert!(svg.contains(&format!("<rect x=\"{:.1}\" y=\"110.0\" width=\"{third:.1}\"", one - third)), "{svg}");
        assert_eq!(svg.matches("<rect x=").count(), 2, "nothing is drawn of what is not there");
        assert_eq!(svg.matches(style(FIRST_STYLE).0).count(), 3, "the legend has the bars' colour");
        assert!(svg.contains("a&lt;b") && svg.contains(">4.00<") && svg.contains(">0.5<"), "{svg}");
    }
}
