// Measurements of many sensors over time: keys that sort by sensor and time, ranges backwards, retention by a range
// delete. Run it with
//
//     cargo run --example time_series

use spillway::{CompressionKind, Db, Family, Options, Result};

/// Seconds since 1970.
type Time = u64;

struct Series {
    points: Family,
}

impl Series {
    fn open(db: &Db) -> Series {
        Series { points: db.default_family().clone() }
    }

    /// Sensor, then time, both big-endian: bytes sort as the numbers do, and the points of a sensor are neighbours.
    fn key(sensor: u32, time: Time) -> Vec<u8> {
        [sensor.to_be_bytes().as_slice(), &time.to_be_bytes()].concat()
    }

    /// All sensors at one time, or none.
    fn record(&self, time: Time, values: &[(u32, f64)]) -> Result<()> {
        let mut batch = self.points.db().batch();
        for (sensor, value) in values {
            batch.put(&self.points, Series::key(*sensor, time), value.to_le_bytes());
        }
        batch.commit()
    }

    /// The points of a sensor from a time up to, not including, another; each once, in the order of time.
    fn between(&self, sensor: u32, from: Time, to: Time) -> impl DoubleEndedIterator<Item = Result<(Time, f64)>> {
        let range = Series::key(sensor, from)..Series::key(sensor, to);
        self.points.range(range).map(|entry| entry.map(|(key, value)| (time_of(&key), number_of(&value))))
    }

    /// The newest point of a sensor.
    fn latest(&self, sensor: u32) -> Result<Option<(Time, f64)>> {
        self.between(sensor, 0, Time::MAX).next_back().transpose()
    }

    /// Drops what is older than `time`: one entry for each sensor, however many points go.
    fn forget_before(&self, sensors: std::ops::Range<u32>, time: Time) -> Result<()> {
        let mut batch = self.points.db().batch();
        for sensor in sensors {
            batch.delete_range(&self.points, Series::key(sensor, 0)..Series::key(sensor, time));
        }
        batch.commit()
    }
}

fn time_of(key: &[u8]) -> Time {
    key.last_chunk().copied().map(Time::from_be_bytes).expect("keys end with 8 bytes of time")
}

fn number_of(value: &[u8]) -> f64 {
    value.first_chunk().copied().map(f64::from_le_bytes).expect("values have 8 bytes")
}

fn main() -> Result<()> {
    const START: Time = 1_800_000_000;
    const DAY: Time = 24 * 60 * 60;
    let dir = std::env::temp_dir().join("spillway-time-series");
    let db = Db::open_with(&dir, &Options::new().compression(CompressionKind::Lz4))?;
    let series = Series::open(&db);

    // Three days of four sensors, a point a minute.
    for time in (START..START + 3 * DAY).step_by(60) {
        let hours = (time - START) as f64 / 3600.0;
        let values: Vec<_> = (0..4).map(|sensor| (sensor, 20.0 + f64::from(sensor) + 5.0 * hours.sin())).collect();
        series.record(time, &values)?;
    }
    println!("{} points of 4 sensors", db.iter().count());

    for sensor in 0..4 {
        if let Some((time, value)) = series.latest(sensor)? {
            println!("sensor {sensor}: {value:.2} degrees at {:.1} hours", (time - START) as f64 / 3600.0);
        }
    }

    println!("sensor 2, by hour:");
    let end = START + 3 * DAY;
    for hour in 0..4 {
        let from = end - DAY + hour * 3600;
        let values: Vec<f64> = series.between(2, from, from + 3600).map(|point| Ok(point?.1)).collect::<Result<_>>()?;
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        println!("  hour {hour}: {:2} points, {least:.2} to {most:.2} degrees", values.len());
    }

    series.forget_before(0..4, end - DAY)?;
    println!("{} points of the last day are left", db.iter().count());
    db.compact(..)?; // gives the space back now; by itself it happens when enough is gone
    println!("{} KiB in tables", db.live_files().iter().map(|file| file.bytes).sum::<u64>() >> 10);
    db.close()?;
    Db::destroy(&dir)
}
