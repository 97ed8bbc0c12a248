//! Date parts: parsing their names, extracting, adding, counting boundaries, binning.

use super::calendar::{DateTime, TICKS_PER_DAY, TICKS_PER_SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
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

const NAMES: [(&str, DatePart); 23] = [
    ("year", DatePart::Year),
    ("yyyy", DatePart::Year),
    ("yy", DatePart::Year),
    ("month", DatePart::Month),
    ("mm", DatePart::Month),
    ("m", DatePart::Month),
    ("day", DatePart::Day),
    ("dd", DatePart::Day),
    ("d", DatePart::Day),
    ("hour", DatePart::Hour),
    ("hh", DatePart::Hour),
    ("minute", DatePart::Minute),
    ("mi", DatePart::Minute),
    ("n", DatePart::Minute),
    ("second", DatePart::Second),
    ("ss", DatePart::Second),
    ("s", DatePart::Second),
    ("millisecond", DatePart::Millisecond),
    ("ms", DatePart::Millisecond),
    ("microsecond", DatePart::Microsecond),
    ("mcs", DatePart::Microsecond),
    ("nanosecond", DatePart::Nanosecond),
    ("ns", DatePart::Nanosecond),
];

const NS_PER_TICK: i128 = 100;
const MONTHS_PER_YEAR: i64 = 12;

impl DatePart {
    /// Parses the name of a part, ignoring case.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, part)| *part)
    }

    /// The value of the part. Milliseconds, microseconds and nanoseconds are the whole fraction of the second in that
    /// unit.
    pub fn of(self, at: DateTime) -> i64 {
        let (date, (hour, minute, second)) = (at.date(), at.time());
        match self {
            DatePart::Year => date.year,
            DatePart::Month => date.month,
            DatePart::Day => date.day,
            DatePart::Hour => hour,
            DatePart::Minute => minute,
            DatePart::Second => second,
            DatePart::Millisecond => at.fraction_ticks() / 10_000,
            DatePart::Microsecond => at.fraction_ticks() / 10,
            DatePart::Nanosecond => at.fraction_ticks() * 100,
        }
    }

    pub fn add(self, at: DateTime, count: i64) -> Option<DateTime> {
        match self.delta() {
            DateDelta::Months(months) => at.add_months(count.checked_mul(months)?),
            DateDelta::Ns(ns) => {
                let ticks = i128::from(at.ticks()) + i128::from(count) * ns / NS_PER_TICK;
                DateTime::from_ticks(i64::try_from(ticks).ok()?)
            }
        }
    }

    /// The number of boundaries of this part between two times: how often its value changes.
    pub fn boundaries(self, start: DateTime, end: DateTime) -> i128 {
        match self.delta() {
            DateDelta::Months(months) => i128::from(month_count(end) / months - month_count(start) / months),
            DateDelta::Ns(ns) => ns_since_epoch(end).div_euclid(ns) - ns_since_epoch(start).div_euclid(ns),
        }
    }

    /// The start of the bin: the last time not after `at` that is a whole number of bins away from the origin.
    pub fn bin(self, at: DateTime, size: i64, origin: DateTime) -> Option<DateTime> {
        match self.delta() {
            DateDelta::Months(months) => bin_months(at, size.checked_mul(months)?, origin),
            DateDelta::Ns(ns) => {
                let width = ns.checked_mul(i128::from(size))?;
                let from_origin = (ns_since_epoch(at) - ns_since_epoch(origin)).div_euclid(width) * width;
                let ticks = (ns_since_epoch(origin) + from_origin).div_euclid(NS_PER_TICK);
                DateTime::from_ticks(i64::try_from(ticks).ok()?)
            }
        }
    }

    fn delta(self) -> DateDelta {
        let ticks = match self {
            DatePart::Year => return DateDelta::Months(MONTHS_PER_YEAR),
            DatePart::Month => return DateDelta::Months(1),
            DatePart::Nanosecond => return DateDelta::Ns(1),
            DatePart::Day => TICKS_PER_DAY,
            DatePart::Hour => 3600 * TICKS_PER_SECOND,
            DatePart::Minute => 60 * TICKS_PER_SECOND,
            DatePart::Second => TICKS_PER_SECOND,
            DatePart::Millisecond => TICKS_PER_SECOND / 1000,
            DatePart::Microsecond => TICKS_PER_SECOND / 1_000_000,
        };
        DateDelta::Ns(i128::from(ticks) * NS_PER_TICK)
    }
}

/// Months differ in length; all shorter parts are a fixed number of nanoseconds.
enum DateDelta {
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

/// If the origin's day of the month is after `at`, the bin starts one width earlier than the months alone suggest.
fn bin_months(at: DateTime, width: i64, origin: DateTime) -> Option<DateTime> {
    let bins = (month_count(at) - month_count(origin)).div_euclid(width);
    let start = origin.add_months(bins.checked_mul(width)?);
    match start {
        Some(start) if start <= at => Some(start),
        _ => origin.add_months((bins - 1).checked_mul(width)?),
    }
}
