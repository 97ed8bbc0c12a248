//! Date and time functions beyond the documented samples.

use super::*;

#[test]
fn accepted_datetime_text() {
    for yes in [
        "2024-12-12",
        "2024-12-12Z",
        "2024-12-12T20:21:25",
        "2024-12-12 20:21:25Z",
        "2024-12-12T20:21:25.1",
        "2024-12-12T20:21:25.1234567Z",
        "2024-02-29",
        "2000-02-29",
        "0001-01-01",
        "9999-12-31T23:59:59.9999999Z",
    ] {
        check(&[(&format!("IS_DATETIME('{yes}')"), "true")]);
    }
    for no in [
        "",
        "Z",
        "2024",
        "2024-12",
        "2024-1-1",
        "24-12-12",
        "2024-12-12T",
        "2024-12-12T20Z",
        "2024-12-12T20:21",
        "2024-12-12 20:21:25.",
        "2024-12-12T20:21:25.12345678",
        "2024-12-12T20:21:25+01:00",
        "2024-12-12  20:21:25",
        "2024-12-12t20:21:25",
        "2024-12-12T20:21:25z",
        "2024-12-12ZZ",
        " 2024-12-12",
        "2024-12-12 ",
        "2023-02-29",
        "1900-02-29",
        "2024-04-31",
        "2024-13-01",
        "2024-00-01",
        "2024-01-00",
        "0000-01-01",
        "2024-12-12T24:00:00",
        "2024-12-12T20:60:00",
        "2024-12-12T20:21:60",
        "２024-12-12",
        "+024-12-12",
    ] {
        check(&[(&format!("IS_DATETIME('{no}')"), "false")]);
    }
}

#[test]
fn datetime_add() {
    check(&[
        ("DATETIMEADD('mm', 1, '2024-01-31')", r#""2024-02-29T00:00:00.0000000Z""#),
        ("DATETIMEADD('yyyy', -1, '2024-02-29T01:02:03.4')", r#""2023-02-28T01:02:03.4000000Z""#),
        ("DATETIMEADD('M', -13, '2024-01-31')", r#""2022-12-31T00:00:00.0000000Z""#),
        ("DATETIMEADD('Day', 1, '2024-02-28')", r#""2024-02-29T00:00:00.0000000Z""#),
        ("DATETIMEADD('ms', 1, '2024-01-01')", r#""2024-01-01T00:00:00.0010000Z""#),
        ("DATETIMEADD('mcs', 1, '2024-01-01')", r#""2024-01-01T00:00:00.0000010Z""#),
        ("DATETIMEADD('ns', 250, '2024-01-01')", r#""2024-01-01T00:00:00.0000002Z""#),
        ("DATETIMEADD('n', 90, '2024-01-01')", r#""2024-01-01T01:30:00.0000000Z""#),
        ("DATETIMEADD('ns', 1, '9999-12-31T23:59:59.9999999')", r#""9999-12-31T23:59:59.9999999Z""#),
        ("DATETIMEADD('ns', 100, '9999-12-31T23:59:59.9999999')", "undefined"),
        ("DATETIMEADD('dd', -1, '0001-01-01')", "undefined"),
        ("DATETIMEADD('yyyy', 9223372036854775807, '2024-01-01')", "undefined"),
        ("DATETIMEADD('dd', -9223372036854775808, '2024-01-01')", "undefined"),
        ("DATETIMEADD('dd', 1.5, '2024-01-01')", "undefined"),
        ("DATETIMEADD('week', 1, '2024-01-01')", "undefined"),
        ("DATETIMEADD('', 1, '2024-01-01')", "undefined"),
        ("DATETIMEADD('dd', 1, '2024-01-32')", "undefined"),
        ("DATETIMEADD('dd', undefined, '2024-01-01')", "undefined"),
        ("DATETIMEADD(undefined, 1, '2024-01-01')", "undefined"),
        ("DATETIMEADD('dd', 1, null)", "undefined"),
    ]);
}

#[test]
fn datetime_bin() {
    check(&[
        ("DATETIMEBIN('2021-01-08T18:35:00', 'dd', 7)", r#""2021-01-07T00:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-01-08T18:35:00', 'dd', 7, '1601-01-01')", r#""2021-01-04T00:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-05-08', 'yyyy')", r#""2021-01-01T00:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-05-08', 'mm', 3)", r#""2021-04-01T00:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-05-08', 'mm', 1, '2020-01-15')", r#""2021-04-15T00:00:00.0000000Z""#),
        ("DATETIMEBIN('1969-12-31T23:00:00', 'dd')", r#""1969-12-31T00:00:00.0000000Z""#),
        ("DATETIMEBIN('1960-01-01', 'yyyy', 25)", r#""1945-01-01T00:00:00.0000000Z""#),
        ("DATETIMEBIN('2021-01-01', 'dd', 1, '1600-12-31')", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'dd', 0)", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'dd', -1)", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'dd', 1.5)", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'dd', undefined)", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'dd', 1, undefined)", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'dd', 9223372036854775807)", r#""1970-01-01T00:00:00.0000000Z""#),
        ("DATETIMEBIN('1960-01-01', 'dd', 9223372036854775807)", "undefined"),
        ("DATETIMEBIN('2021-01-01', 'yyyy', 9223372036854775807)", "undefined"),
        ("DATETIMEBIN('0001-01-01', 'yyyy', 3)", "undefined"),
    ]);
}

#[test]
fn datetime_diff_counts_boundaries() {
    check(&[
        ("DATETIMEDIFF('yyyy', '2023-12-31T23:59:59', '2024-01-01')", "1"),
        ("DATETIMEDIFF('hh', '2024-01-01T00:59:59', '2024-01-01T01:00:00')", "1"),
        ("DATETIMEDIFF('hh', '2024-01-01T01:00:00', '2024-01-01T01:59:59')", "0"),
        ("DATETIMEDIFF('dd', '1969-12-31', '1970-01-02')", "2"),
        ("DATETIMEDIFF('ns', '2024-01-01', '2024-01-01T00:00:00.0000001')", "100"),
        ("DATETIMEDIFF('ns', '0001-01-01', '9999-12-31')", "315537811200000000000"),
        ("DATETIMEDIFF('dd', 'x', '2024-01-01')", "undefined"),
        ("DATETIMEDIFF('dd', '2024-01-01', undefined)", "undefined"),
        ("DATETIMEDIFF(1, '2024-01-01', '2024-01-01')", "undefined"),
    ]);
}

#[test]
fn datetime_parts() {
    let at = "'2016-05-29T08:30:12.1301617'";
    for (part, want) in [
        ("year", "2016"),
        ("yy", "2016"),
        ("month", "5"),
        ("m", "5"),
        ("d", "29"),
        ("hour", "8"),
        ("minute", "30"),
        ("n", "30"),
        ("s", "12"),
        ("ms", "130"),
        ("microsecond", "130161"),
        ("NS", "130161700"),
        ("h", "undefined"),
    ] {
        check(&[(&format!("DATETIMEPART('{part}', {at})"), want)]);
    }
    check(&[
        ("DAY('2024-01-31')", "31"),
        ("DAY('2024-01-31T12')", "undefined"),
        ("YEAR(2024)", "undefined"),
        ("MONTH(undefined)", "undefined"),
        ("DATETIMEFROMPARTS(2020, 2, 29)", r#""2020-02-29T00:00:00.0000000Z""#),
        ("DATETIMEFROMPARTS(2021, 2, 29)", "undefined"),
        ("DATETIMEFROMPARTS(2021, 2, 28, 24)", "undefined"),
        ("DATETIMEFROMPARTS(2021, 2, 28, 23, 59, 59, 9999999)", r#""2021-02-28T23:59:59.9999999Z""#),
        ("DATETIMEFROMPARTS(2021, 2, 28, 23, 59, 59, 10000000)", "undefined"),
        ("DATETIMEFROMPARTS(2021, 2, 28, -1)", "undefined"),
        ("DATETIMEFROMPARTS(2021, 2, 28.5)", "undefined"),
        ("DATETIMEFROMPARTS(2021, 2, undefined)", "undefined"),
        ("DATETIMEFROMPARTS(9223372036854775807, 1, 1)", "undefined"),
    ]);
}

#[test]
fn ticks_and_timestamps() {
    check(&[
        ("DATETIMETOTICKS('1601-01-01')", "-116444736000000000"),
        ("DATETIMETOTICKS('1969-12-31T23:59:59.9999999')", "-1"),
        ("DATETIMETOTIMESTAMP('1969-12-31T23:59:59.9999999')", "-1"),
        ("DATETIMETOTIMESTAMP('2020-01-01T00:00:00.0019')", "1577836800001"),
        ("TICKSTODATETIME(15973607943002652)", r#""2020-08-13T23:19:54.3002652Z""#),
        ("TICKSTODATETIME(-621355968000000000)", r#""0001-01-01T00:00:00.0000000Z""#),
        ("TICKSTODATETIME(-621355968000000001)", "undefined"),
        ("TICKSTODATETIME(2534023007999999999)", r#""9999-12-31T23:59:59.9999999Z""#),
        ("TICKSTODATETIME(2534023008000000000)", "undefined"),
        ("TIMESTAMPTODATETIME(-11644473600000)", r#""1601-01-01T00:00:00.0000000Z""#),
        ("TIMESTAMPTODATETIME(9223372036854775807)", "undefined"),
        ("TIMESTAMPTODATETIME(1.5)", "undefined"),
        ("TIMESTAMPTODATETIME('0')", "undefined"),
        ("TIMESTAMPTODATETIME(undefined)", "undefined"),
    ]);
}

#[test]
fn current_time_functions() {
    check(&[
        ("NOW()", r#""2024-10-14T14:20:30.6660000Z""#),
        ("GETCURRENTDATETIME()", r#""2024-10-14T14:20:30.6660000Z""#),
        ("GETCURRENTDATETIMESTATIC()", r#""2024-10-14T14:20:29.6660000Z""#),
        ("GETCURRENTTIMESTAMP()", "1728915630666"),
        ("GETCURRENTTIMESTAMPSTATIC()", "1728915629666"),
        ("GETCURRENTTICKS()", "17289156306660000"),
        ("GETCURRENTTICKSSTATIC()", "17289156296660000"),
        ("AGO('dd', -1)", r#""2024-10-15T14:20:30.6660000Z""#),
        ("AGO('dd', -9223372036854775808)", "undefined"),
        ("AGO('dd', '1')", "undefined"),
        ("NOW('dd')", "undefined"),
        ("NOW('dd', undefined)", "undefined"),
    ]);
}

#[test]
fn datetime_format() {
    let at = "'2024-03-05 04:07:09.0340000'";
    for (pattern, want) in [
        ("yyyyMMdd", "20240305"),
        ("yyyy-MM-dd [HH:mm:ss]", "2024-03-05 [04:07:09]"),
        ("y yy yyy yyyyy", "24 24 2024 02024"),
        ("M MMM MMMM d ddd dddd", "3 Mar March 5 Tue Tuesday"),
        ("h hh H m s", "4 04 4 7 9"),
        ("f ff fff fffffff", "0 03 034 0340000"),
        ("F FF FFF FFFFFFF", " 03 034 034"),
        ("t tt", "A AM"),
        ("K z zz zzz", "Z +0 +00 +00:00"),
        ("'day' d \\\"M\\\" %d", "day 5 M 5"),
        ("\\\\y\\\\\\\\", "y\\"),
        ("ABC äöü", "ABC äöü"),
        ("", ""),
        ("\\\\", ""),
        ("'open", "open"),
    ] {
        let quoted = format!("DATETIMEFORMAT({at}, \"{pattern}\")");
        let want = json::to_string(&Value::from(want));
        assert_eq!(value_of(&quoted), want, "{pattern}");
    }
    check(&[
        ("DATETIMEFORMAT('2024-03-05T12:00:00', 'h tt')", r#""12 PM""#),
        ("DATETIMEFORMAT('2024-03-05T00:00:00', 'h tt')", r#""12 AM""#),
        ("DATETIMEFORMAT('x', 'yyyy')", "undefined"),
        ("DATETIMEFORMAT('2024-03-05', 1)", "undefined"),
        ("DATETIMEFORMAT('2024-03-05', undefined)", "undefined"),
    ]);
}
