//! Dates and day numbers, checked for every day; text and ticks, checked by round trip.

use proptest::prelude::*;

use super::*;

#[test]
fn every_day_converts_to_its_date_and_back() {
    let mut date = Date { year: 1, month: 1, day: 1 };
    for days in TICKS_MIN / TICKS_PER_DAY..=TICKS_MAX / TICKS_PER_DAY {
        assert_eq!((date_of(days), days_since_epoch(date)), (date, days));
        date.day += 1;
        if date.day > days_in_month(date.year, date.month) {
            date = Date { year: date.year, month: date.month + 1, day: 1 };
        }
        if date.month > 12 {
            date = Date { year: date.year + 1, month: 1, day: 1 };
        }
    }
    assert_eq!(date, Date { year: 10_000, month: 1, day: 1 });
}

proptest! {
    #[test]
    fn text_round_trips(ticks in TICKS_MIN..=TICKS_MAX) {
        let at = DateTime::from_ticks(ticks).unwrap();
        prop_assert_eq!(DateTime::parse(&at.to_string()), Some(at));
    }

    #[test]
    fn text_sorts_as_time_does(a in TICKS_MIN..=TICKS_MAX, b in TICKS_MIN..=TICKS_MAX) {
        let text = |ticks| DateTime::from_ticks(ticks).unwrap().to_string();
        prop_assert_eq!(a.cmp(&b), text(a).cmp(&text(b)));
    }

    #[test]
    fn any_text_is_safe(text in ".{0,40}") {
        DateTime::parse(&text);
    }
}
