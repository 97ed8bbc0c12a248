//! Suggestions for unknown function names: names from other dialects, and names with one typing error.

use crate::expr::functions;

/// Names in other dialects, and what to write instead.
#[rustfmt::skip]
const FOREIGN_NAMES: [(&[&str], &str); 20] = [
    (&["LEN", "STRLEN", "CHAR_LENGTH", "DATALENGTH"], "LENGTH(text)"),
    (&["SUBSTR", "MID"], "SUBSTRING(text, start, length), counting from 0"),
    (&["ISNULL", "IFNULL", "NVL", "COALESCE"], "value ?? otherwise, or IS_NULL(value) to test"),
    (&["ISDEFINED", "EXISTS_PROPERTY"], "IS_DEFINED(c.name)"),
    (&["NOW", "GETDATE", "SYSDATE", "CURRENT_TIMESTAMP", "GETUTCDATE", "SYSUTCDATETIME"], "GetCurrentDateTime()"),
    (&["UNIX_TIMESTAMP", "UNIXTIMESTAMP"], "GetCurrentTimestamp(), in milliseconds"),
    (&["CHARINDEX", "INSTR", "POSITION", "LOCATE", "INDEXOF"], "INDEX_OF(text, part)"),
    (&["UCASE", "TOUPPER", "TOUPPERCASE"], "UPPER(text)"),
    (&["LCASE", "TOLOWER", "TOLOWERCASE"], "LOWER(text)"),
    (&["CEIL"], "CEILING(number)"),
    (&["POW"], "POWER(base, exponent)"),
    (&["TRUNCATE"], "TRUNC(number)"),
    (&["RANDOM", "NEWID"], "RAND()"),
    (&["IF"], "IIF(condition, value, otherwise)"),
    (&["STRING", "STR", "TO_STRING", "CSTR"], "ToString(value)"),
    (&["CAST", "CONVERT", "TO_NUMBER", "PARSE"], "StringToNumber(text) or ToString(value)"),
    (&["ARRAY_SIZE", "SIZE", "ARRAYLENGTH", "CARDINALITY"], "ARRAY_LENGTH(list)"),
    (&["STARTS_WITH", "BEGINSWITH", "BEGINS_WITH"], "STARTSWITH(text, start)"),
    (&["ENDS_WITH"], "ENDSWITH(text, end)"),
    (&["REGEXP_LIKE", "REGEX", "RLIKE", "MATCHES"], "RegexMatch(text, pattern)"),
];

/// No function name is longer, so longer names have no suggestion.
const NAME_CHARS_MAX: usize = 40;

pub(super) fn function(name: &str) -> Option<String> {
    let upper = name.to_ascii_uppercase();
    let foreign = FOREIGN_NAMES.iter().find(|(names, _)| names.contains(&upper.as_str()));
    if let Some((_, replacement)) = foreign {
        return Some(format!("Write {replacement}."));
    }
    similar_function(&upper).map(|found| format!("Did you mean {found}?"))
}

/// A function whose name differs in one inserted, deleted or replaced letter, in two swapped letters, or in
/// underscores.
fn similar_function(upper: &str) -> Option<&'static str> {
    if !upper.is_ascii() || upper.len() > NAME_CHARS_MAX {
        return None;
    }
    let exists = |candidate: &str| functions::find(candidate).map(|function| function.name);
    exists(&upper.replace('_', "")).or_else(|| typing_errors(upper).find_map(|candidate| exists(&candidate)))
}

fn typing_errors(name: &str) -> impl Iterator<Item = String> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    let at = 0..=name.len();
    at.flat_map(move |at| {
        let (left, right) = name.split_at(at);
        let less = right.get(1..).map(|right| format!("{left}{right}"));
        let swapped = right.get(..2).map(|pair| format!("{left}{}{}{}", &pair[1..], &pair[..1], &right[2..]));
        let typed = LETTERS.chars().flat_map(move |letter| {
            let more = format!("{left}{letter}{right}");
            let other = right.get(1..).map(|right| format!("{left}{letter}{right}"));
            [Some(more), other]
        });
        [less, swapped].into_iter().chain(typed).flatten()
    })
}
