//! Figures of several rounds in one.

/// The median; `None` without figures.
pub fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let (low, high) = (figures.get(figures.len().checked_sub(1)? / 2)?, figures.get(figures.len() / 2)?);
    Some((low + high) / 2.0)
}

/// The lowest and the highest.
pub fn spread(figures: &[f64]) -> (f64, f64) {
    figures.iter().fold((f64::INFINITY, 0.0), |(low, high), &figure| (figure.min(low), figure.max(high)))
}

/// Groups records by a key. Keys and records keep the order of their first appearance.
pub fn in_order<'a, R, K: PartialEq>(
    records: impl IntoIterator<Item = &'a R>,
    key: impl Fn(&'a R) -> K,
) -> Vec<(K, Vec<&'a R>)> {
    let mut groups: Vec<(K, Vec<&'a R>)> = Vec::new();
    for record in records {
        let key = key(record);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    groups
}
