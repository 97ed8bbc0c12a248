//! Date and time functions.
//!
//! Input is `YYYY-MM-DD[(T| )hh:mm:ss[.f…]][Z]` and nothing else; output always has seven fraction digits and `Z`. A
//! result outside of the years 1 to 9999 is undefined.

mod calendar; // DateTime: calendar arithmetic, parsing, printing
mod part; // date parts: year, month, … nanosecond
mod format; // DATETIMEFORMAT

use std::borrow::Cow;

use pleiad_model::{Number, Result, Value};

use super::arguments::{integer, integer_value, or_default, string, text};
use super::{Function, Varies};
use crate::expr::{Context, Datum};
pub use calendar::DateTime;
use part::DatePart;

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("AGO", 2, |args, cx| datetime_text(shifted_now(args, cx, i64::checked_neg), cx))
        .varying(Varies::PerCall),
    Function::between("NOW", 0, 2, now).varying(Varies::PerCall),
    Function::exactly("DAY", 1, |args, _| integer_value(datetime(args, 0).map(|at| DatePart::Day.of(at)))),
    Function::exactly("MONTH", 1, |args, _| integer_value(datetime(args, 0).map(|at| DatePart::Month.of(at)))),
    Function::exactly("YEAR", 1, |args, _| integer_value(datetime(args, 0).map(|at| DatePart::Year.of(at)))),
    Function::exactly("DATETIMEADD", 3, |args, cx| datetime_text(add(args), cx)),
    Function::between("DATETIMEBIN", 2, 4, |args, cx| datetime_text(bin(args), cx)),
    Function::exactly("DATETIMEDIFF", 3, |args, _| Ok(difference(args))),
    Function::exactly("DATETIMEFORMAT", 2, formatted),
    Function::between("DATETIMEFROMPARTS", 3, 7, |args, cx| datetime_text(from_parts(args), cx)),
    Function::exactly("DATETIMEPART", 2, |args, _| {
        integer_value(date_part(args, 0).zip(datetime(args, 1)).map(|(p, at)| p.of(at)))
    }),
    Function::exactly("DATETIMETOTICKS", 1, |args, _| integer_value(datetime(args, 0).map(DateTime::ticks))),
    Function::exactly("DATETIMETOTIMESTAMP", 1, |args, _| integer_value(datetime(args, 0).map(DateTime::timestamp_ms))),
    Function::exactly("GETCURRENTDATETIME", 0, |_, cx| datetime_text(current(cx), cx)).varying(Varies::PerCall),
    Function::exactly("GETCURRENTDATETIMESTATIC", 0, |_, cx| datetime_text(started(cx), cx)).varying(Varies::PerRun),
    Function::exactly("GETCURRENTTICKS", 0, |_, cx| integer_value(current(cx).map(DateTime::ticks)))
        .varying(Varies::PerCall),
    Function::exactly("GETCURRENTTICKSSTATIC", 0, |_, cx| integer_value(started(cx).map(DateTime::ticks)))
        .varying(Varies::PerRun),
    Function::exactly("GETCURRENTTIMESTAMP", 0, |_, cx| integer_value(current(cx).map(DateTime::timestamp_ms)))
        .varying(Varies::PerCall),
    Function::exactly("GETCURRENTTIMESTAMPSTATIC", 0, |_, cx| integer_value(started(cx).map(DateTime::timestamp_ms)))
        .varying(Varies::PerRun),
    Function::exactly("TICKSTODATETIME", 1, |args, cx| {
        datetime_text(integer(args, 0).and_then(DateTime::from_ticks), cx)
    }),
    Function::exactly("TIMESTAMPTODATETIME", 1, |args, cx| {
        datetime_text(integer(args, 0).and_then(DateTime::from_timestamp_ms), cx)
    }),
];

/// The earliest origin of `DATETIMEBIN`: the Windows epoch.
const ORIGIN_EARLIEST: &str = "1601-01-01";

fn datetime(args: &[Datum<'_>], position: usize) -> Option<DateTime> {
    DateTime::parse(string(args, position)?)
}

fn date_part(args: &[Datum<'_>], position: usize) -> Option<DatePart> {
    DatePart::parse(string(args, position)?)
}

fn datetime_text<'a>(at: Option<DateTime>, cx: &Context<'_>) -> Result<Datum<'a>> {
    text(at.map(|at| at.to_string()), cx)
}

// The clock.

fn current(cx: &Context<'_>) -> Option<DateTime> {
    DateTime::from_timestamp_ms(i64::try_from(cx.env.now_ms()).ok()?)
}

fn started(cx: &Context<'_>) -> Option<DateTime> {
    DateTime::from_timestamp_ms(i64::try_from(cx.started_ms).ok()?)
}

/// `NOW()` or `NOW(part, n)`.
fn now<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    datetime_text(if args.is_empty() { current(cx) } else { shifted_now(args, cx, Some) }, cx)
}

fn shifted_now(args: &[Datum<'_>], cx: &Context<'_>, direction: fn(i64) -> Option<i64>) -> Option<DateTime> {
    date_part(args, 0)?.add(current(cx)?, direction(integer(args, 1)?)?)
}

// Arithmetic.

fn add(args: &[Datum<'_>]) -> Option<DateTime> {
    date_part(args, 0)?.add(datetime(args, 2)?, integer(args, 1)?)
}

fn bin(args: &[Datum<'_>]) -> Option<DateTime> {
    let size = or_default(args, 2, 1, || integer(args, 2)).filter(|size| *size > 0)?;
    let origin = or_default(args, 3, DateTime::from_ticks(0)?, || datetime(args, 3))?;
    if origin < DateTime::parse(ORIGIN_EARLIEST)? {
        return None;
    }
    date_part(args, 1)?.bin(datetime(args, 0)?, size, origin)
}

/// A difference in nanoseconds can need more than 64 bits; it is then returned as a double.
fn difference<'a>(args: &[Datum<'_>]) -> Datum<'a> {
    let crossed = date_part(args, 0)?.boundaries(datetime(args, 1)?, datetime(args, 2)?);
    let number = i64::try_from(crossed).map_or(Number::Float(crossed as f64), Number::Int);
    Some(Cow::Owned(Value::Number(number)))
}

/// Year, month, day, and optionally hour, minute, second and 100 ns units.
fn from_parts(args: &[Datum<'_>]) -> Option<DateTime> {
    let argument = |position| or_default(args, position, 0, || integer(args, position));
    let date = (argument(0)?, argument(1)?, argument(2)?);
    DateTime::from_parts(date, (argument(3)?, argument(4)?, argument(5)?), argument(6)?)
}

fn formatted<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let (Some(at), Some(pattern)) = (datetime(args, 0), string(args, 1)) else { return Ok(None) };
    text(Some(format::format(at, pattern)), cx)
}
