//! What all pictures share: the page with its title, legend and caption, the styles of series, and text.

use std::fmt::Write;

pub const WIDTH: f64 = 960.0;
/// Room left of a panel for the axis's numbers and its label.
pub const LEFT: f64 = 78.0;
pub const RIGHT: f64 = 16.0;
/// The picture's title and the legend.
pub const HEAD: f64 = 64.0;
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

/// The colour and the dashes of a series, by its place in the legend.
pub fn style(nth: usize) -> (&'static str, &'static str) {
    STYLES.get(nth % STYLES.len()).copied().unwrap_or_default()
}

/// A picture: the title and the legend (names with the place of their style), what `draw` puts under [`HEAD`] within `body_height`, the caption's lines.
pub fn page(
    title: &str,
    names: &[(&str, usize)],
    body_height: f64,
    caption: &[String],
    draw: impl FnOnce(&mut String),
) -> String {
    let caption: Vec<String> = caption.iter().flat_map(|line| wrapped(line, CAPTION_LETTERS)).collect();
    let body_end = HEAD + body_height;
    let height = body_end + (caption.len() as f64 + 1.0) * LINE_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, (WIDTH / 2.0, 22.0), "middle\" font-size=\"16\" font-weight=\"bold", title);
    legend(&mut svg, names);
    draw(&mut svg);
    for (at, line) in caption.iter().enumerate() {
        text(&mut svg, (LEFT, body_end + (at as f64 + 1.0) * LINE_HEIGHT), "start", line);
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, names: &[(&str, usize)]) {
    let step = (WIDTH - 2.0 * LEFT) / names.len().max(1) as f64;
    for (at, (name, nth)) in names.iter().enumerate() {
        let x = LEFT + at as f64 * step;
        let (colour, dashes) = style(*nth);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} 44h34\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\" fill=\"none\"/>"
        );
        text(svg, (x + 40.0, 48.0), "start", name);
    }
}

/// `anchor` may have more attributes behind it.
pub fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
}

pub fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
    fn words_are_wrapped() {
        assert_eq!(wrapped("aa bb cc dddddddd e", 5), ["aa bb", "cc", "dddddddd", "e"]);
    }
}
