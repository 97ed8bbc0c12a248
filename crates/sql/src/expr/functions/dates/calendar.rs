//! Date and time values: calendar arithmetic, parsing and printing.
//!
//! Invariant: a `DateTime` is a whole number of 100 ns ticks since 1970-01-01 UTC, between the years 1 and 9999 of the
//! proleptic Gregorian calendar.

use std::fmt;

pub const TICKS_PER_SECOND: i64 = 10_000_000;
pub const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;
const TICKS_PER_MS: i64 = 10_000;
/// 0001-01-01 and the last tick of 9999-12-31.
const TICKS_MIN: i64 = -719_162 * TICKS_PER_DAY;
const TICKS_MAX: i64 = 2_932_897 * TICKS_PER_DAY - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DateTime {
    ticks: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

impl DateTime {
    pub fn from_ticks(ticks: i64) -> Option<Self> {
        (TICKS_MIN..=TICKS_MAX).contains(&ticks).then_some(DateTime { ticks })
    }

    pub fn from_timestamp_ms(ms: i64) -> Option<Self> {
        DateTime::from_ticks(ms.checked_mul(TICKS_PER_MS)?)
    }

    /// `None` if the date or the time does not exist.
    pub fn from_parts(date: (i64, i64, i64), time: (i64, i64, i64), fraction_ticks: i64) -> Option<Self> {
        let (year, month, day) = date;
        let (hour, minute, second) = time;
        let is_date =
            (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
        if !is_date || !is_time || !(0..TICKS_PER_SECOND).contains(&fraction_ticks) {
            return None;
        }
        let seconds = (hour * 60 + minute) * 60 + second;
        let days = days_since_epoch(Date { year, month, day });
        DateTime::from_ticks(days * TICKS_PER_DAY + seconds * TICKS_PER_SECOND + fraction_ticks)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_suffix('Z').unwrap_or(text).as_bytes();
        let date = (digits(&mut rest, 4)?, separated(&mut rest, b'-')?, separated(&mut rest, b'-')?);
        if rest.is_empty() {
            return DateTime::from_parts(date, (0, 0, 0), 0);
        }
        expect(&mut rest, b'T').or_else(|| expect(&mut rest, b' '))?;
        let time = (digits(&mut rest, 2)?, separated(&mut rest, b':')?, separated(&mut rest, b':')?);
        let fraction_ticks = if rest.is_empty() { 0 } else { fraction(&mut rest)? };
        rest.is_empty().then(|| DateTime::from_parts(date, time, fraction_ticks))?
    }

    pub fn ticks(self) -> i64 {
        self.ticks
    }

    pub fn timestamp_ms(self) -> i64 {
        self.ticks.div_euclid(TICKS_PER_MS)
    }

    pub fn date(self) -> Date {
        date_of(self.days())
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        self.ticks.div_euclid(TICKS_PER_DAY)
    }

    pub fn ticks_of_day(self) -> i64 {
        self.ticks.rem_euclid(TICKS_PER_DAY)
    }

    /// Hour, minute, second.
    pub fn time(self) -> (i64, i64, i64) {
        let seconds = self.ticks_of_day() / TICKS_PER_SECOND;
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    pub fn fraction_ticks(self) -> i64 {
        self.ticks_of_day() % TICKS_PER_SECOND
    }

    /// Adds months and keeps the time of day. A day that the new month does not have becomes its last day.
    pub fn add_months(self, months: i64) -> Option<Self> {
        let date = self.date();
        let months = (date.year * 12 + date.month - 1).checked_add(months)?;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        if !(1..=9999).contains(&year) {
            return None;
        }
        let day = date.day.min(days_in_month(year, month));
        DateTime::from_ticks(days_since_epoch(Date { year, month, day }) * TICKS_PER_DAY + self.ticks_of_day())
    }
}

/// `2024-10-14T14:20:30.6660000Z`
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Date { year, month, day }, (hour, minute, second)) = (self.date(), self.time());
        let fraction = self.fraction_ticks();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

// Parsing.

fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (own, after) = rest.split_at_checked(count)?;
    *rest = after;
    own.iter().try_fold(0, |n, byte| byte.is_ascii_digit().then(|| n * 10 + i64::from(byte - b'0')))
}

fn expect(rest: &mut &[u8], byte: u8) -> Option<()> {
    let (first, after) = rest.split_first()?;
    (*first == byte).then(|| *rest = after)
}

/// Reads the separator and two digits.
fn separated(rest: &mut &[u8], separator: u8) -> Option<i64> {
    expect(rest, separator)?;
    digits(rest, 2)
}

/// Reads a point and one to seven digits, as ticks.
fn fraction(rest: &mut &[u8]) -> Option<i64> {
    expect(rest, b'.')?;
    let count = rest.len();
    if !(1..=7).contains(&count) {
        return None;
    }
    Some(digits(rest, count)? * 10i64.pow(7 - count as u32))
}

// Calendar arithmetic. A year here begins in March, so that the leap day is its last day.
//
//   year of era 0 ┬ March … February │ 1 │ … │ 399      an era is 400 years, 146,097 days

const DAYS_PER_ERA: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

pub fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days between 1970-01-01 and this date.
fn days_since_epoch(date: Date) -> i64 {
    let year = date.year - i64::from(date.month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;
    era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - DAYS_TO_EPOCH
}

fn date_of(days: i64) -> Date {
    let days = days + DAYS_TO_EPOCH;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    Date { year: era * 400 + year_of_era + i64::from(month <= 2), month, day }
}

#[cfg(test)]
mod tests;
