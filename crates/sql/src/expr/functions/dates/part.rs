//! One part of a point in time: which, adding it, counting it.

use super::calendar::{DateTime, TICKS_PER_DAY, TICKS_PER_SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

const NAMES: [(&str, Part); 23] = [
    ("year", Part::Year),
    ("yyyy", Part::Year),
    ("yy", Part::Year),
    ("month", Part::Month),
    ("mm", Part::Month),
    ("m", Part::Month),
    ("day", Part::Day),
    ("dd", Part::Day),
    ("d", Part::Day),
    ("hour", Part::Hour),
    ("hh", Part::Hour),
    ("minute", Part::Minute),
    ("mi", Part::Minute),
    ("n", Part::Minute),
    ("second", Part::Second),
    ("ss", Part::Second),
    ("s", Part::Second),
    ("millisecond", Part::Millisecond),
    ("ms", Part::Millisecond),
    ("microsecond", Part::Microsecond),
    ("mcs", Part::Microsecond),
    ("nanosecond", Part::Nanosecond),
    ("ns", Part::Nanosecond),
];

const NS_PER_TICK: i128 = 100;
const MONTHS_PER_YEAR: i64 = 12;

impl Part {
    /// In any case.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, part)| *part)
    }

    /// The part itself; of a second's fraction all that is finer than it.
    pub fn of(self, at: DateTime) -> i64 {
        let (date, (hour, minute, second)) = (at.date(), at.time());
        match self {
            Part::Year => date.year,
            Part::Month => date.month,
            Part::Day => date.day,
            Part::Hour => hour,
            Part::Minute => minute,
            Part::Second => second,
            Part::Millisecond => at.fraction_ticks() / 10_000,
            Part::Microsecond => at.fraction_ticks() / 10,
            Part::Nanosecond => at.fraction_ticks() * 100,
        }
    }

    pub fn add(self, at: DateTime, count: i64) -> Option<DateTime> {
        match self.step() {
            Step::Months(months) => at.add_months(count.checked_mul(months)?),
            Step::Ns(ns) => {
                let ticks = i128::from(at.ticks()) + i128::from(count) * ns / NS_PER_TICK;
                DateTime::from_ticks(i64::try_from(ticks).ok()?)
            }
        }
    }

    /// How often the part changes on the way from one point to the other.
    pub fn boundaries(self, start: DateTime, end: DateTime) -> i128 {
        match self.step() {
            Step::Months(months) => i128::from(month_count(end) / months - month_count(start) / months),
            Step::Ns(ns) => ns_since_epoch(end).div_euclid(ns) - ns_since_epoch(start).div_euclid(ns),
        }
    }

    /// The start of the bin: the last point not after `at` that is a whole number of sizes away from the origin.
    pub fn bin(self, at: DateTime, size: i64, origin: DateTime) -> Option<DateTime> {
        match self.step() {
            Step::Months(months) => bin_months(at, size.checked_mul(months)?, origin),
            Step::Ns(ns) => {
                let width = ns.checked_mul(i128::from(size))?;
                let from_origin = (ns_since_epoch(at) - ns_since_epoch(origin)).div_euclid(width) * width;
                let ticks = (ns_since_epoch(origin) + from_origin).div_euclid(NS_PER_TICK);
                DateTime::from_ticks(i64::try_from(ticks).ok()?)
            }
        }
    }

    fn step(self) -> Step {
        let ticks = match self {
            Part::Year => return Step::Months(MONTHS_PER_YEAR),
            Part::Month => return Step::Months(1),
            Part::Nanosecond => return Step::Ns(1),
            Part::Day => TICKS_PER_DAY,
            Part::Hour => 3600 * TICKS_PER_SECOND,
            Part::Minute => 60 * TICKS_PER_SECOND,
            Part::Second => TICKS_PER_SECOND,
            Part::Millisecond => TICKS_PER_SECOND / 1000,
            Part::Microsecond => TICKS_PER_SECOND / 1_000_000,
        };
        Step::Ns(i128::from(ticks) * NS_PER_TICK)
    }
}

/// Months differ in length; all else is a number of nanoseconds.
enum Step {
    Months(i64),
    Ns(i128),
}

fn ns_since_epoch(at: DateTime) -> i128 {
    i128::from(at.ticks()) * NS_PER_TICK
}

/// Months since the year 0.
fn month_count(at: DateTime) -> i64 {
    let date = at.date();
    date.year * MONTHS_PER_YEAR + date.month - 1
}

/// The calendar month may have begun before `at` while the origin's day in it has not: then one bin earlier.
fn bin_months(at: DateTime, width: i64, origin: DateTime) -> Option<DateTime> {
    let bins = (month_count(at) - month_count(origin)).div_euclid(width);
    let start = origin.add_months(bins.checked_mul(width)?);
    match start {
        Some(start) if start <= at => Some(start),
        _ => origin.add_months((bins - 1).checked_mul(width)?),
    }
}
