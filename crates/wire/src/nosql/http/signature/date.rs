//! Dates as clients send them: RFC 1123 text in GMT.
//!
//! `Thu, 27 Apr 2017 00:51:12 GMT` is 1,493,254,272,000 ms. Some clients send the date in lower case, as they signed
//! it, so case is ignored. The day of the week is not checked: the signature covers it and nothing depends on it.

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Days before each month of a year that starts in March, so that a leap day is the last day.
const DAYS_BEFORE_FROM_MARCH: [u64; 12] = [0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337];
/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_EPOCH: u64 = 719_468;

/// Milliseconds since 1970-01-01 UTC.
pub(super) fn parse_ms(text: &str) -> Option<u64> {
    let (_, rest) = text.trim().split_once(',')?;
    let mut words = rest.split_ascii_whitespace();
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    let is_gmt = zone.eq_ignore_ascii_case("gmt") || zone.eq_ignore_ascii_case("utc");
    if !is_gmt || words.next().is_some() {
        return None;
    }
    let days = days_since_epoch(number(year, 1970, 9999)?, month_from_march(month)?, number(day, 1, 31)?)?;
    Some((days * 86_400 + seconds_of_day(time)?) * 1000)
}

fn seconds_of_day(time: &str) -> Option<u64> {
    let mut parts = time.split(':');
    let (hour, minute) = (number(parts.next()?, 0, 23)?, number(parts.next()?, 0, 59)?);
    // 60 is a leap second; it counts as the first second of the next minute.
    let second = number(parts.next()?, 0, 60)?;
    parts.next().is_none().then_some(hour * 3600 + minute * 60 + second)
}

/// March is 0 and February 11.
fn month_from_march(name: &str) -> Option<u64> {
    let at = MONTHS.iter().position(|month| name.eq_ignore_ascii_case(month))?;
    Some((at as u64 + 10) % 12)
}

fn days_since_epoch(year: u64, month_from_march: u64, day: u64) -> Option<u64> {
    let year = if month_from_march >= 10 { year - 1 } else { year };
    let leap_days = year / 4 - year / 100 + year / 400;
    let before = DAYS_BEFORE_FROM_MARCH.get(month_from_march as usize)?;
    Some(year * 365 + leap_days + before + day - 1 - DAYS_TO_EPOCH)
}

fn number(digits: &str, min: u64, max: u64) -> Option<u64> {
    if digits.len() > 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|value| (min..=max).contains(value))
}
