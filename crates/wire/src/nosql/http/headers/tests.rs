use std::collections::BTreeSet;
use std::fmt::Write;

use super::table::BODY_PROPERTIES;
use super::*;

/// All names in the source of the code that reads headers.
fn read_names() -> BTreeSet<&'static str> {
    let sources = [include_str!("../decode.rs"), include_str!("../../http.rs")];
    let literals = sources.into_iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    literals.filter(|text| (text.starts_with("x-ms-") || text.starts_with("x-pleiad-")) && is_name(text)).collect()
}

#[test]
fn the_decoder_reads_exactly_the_headers_that_are_obeyed() {
    let obeyed: BTreeSet<&str> =
        TABLE.iter().filter(|known| known.effect == HeaderEffect::Obeyed).map(|known| known.name).collect();
    assert_eq!(read_names(), obeyed);
}

#[test]
fn names_are_sorted_for_the_search() {
    assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
    assert!(TABLE.iter().all(|known| known.name == known.name.to_ascii_lowercase()));
}

#[test]
fn a_refused_header_names_its_feature_unless_its_value_is_harmless() {
    assert_eq!(check("x-ms-enumeration-direction", "Reverse"), Some("Reading a feed in reverse order"));
    assert_eq!(check("x-ms-enumeration-direction", "Forward"), None);
    assert_eq!(check("x-ms-client-id", "7"), None);
    assert_eq!(check("x-custom", "7"), None);
}

#[test]
fn a_name_is_new_once_and_only_so_many_names_are_remembered() {
    let names = SeenNames::default();
    assert!(names.is_new("x-ms-one") && !names.is_new("x-ms-one"));
    let logged = (0..1000).filter(|n| names.is_new(&format!("x-ms-{n}"))).count();
    assert_eq!(logged + 1, UNKNOWN_MAX);
}

const INTRODUCTION: &str = "\
# Headers and body properties

What the server does with each `x-ms-` header that the SDKs send, and with those that documentation
and older clients have. \"Sent by\" is recorded from the requests of the Python, JavaScript, Java,
.NET and Go SDKs; the Rust SDK is not recorded, but the headers in its source are in the list. A
header that is not in this list has no effect and is logged once, as a warning. The standard headers
`Accept`, `Authorization`, `A-IM`, `Content-Type`, `Date`, `If-Match`, `If-Modified-Since`,
`If-None-Match` and `Prefer` have their usual meaning; `Cache-Control` has no effect.

This page is generated from the table in `crates/wire/src/nosql/http/headers/table.rs`.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let of = |kept: fn(&HeaderEffect) -> bool| TABLE.iter().filter(move |known| kept(&known.effect));
    page.push_str("\n## Obeyed\n\n| header | sent by |\n|---|---|\n");
    for known in of(|effect| *effect == HeaderEffect::Obeyed) {
        writeln!(page, "| `{}` | {} |", known.name, known.sent_by.join(", ")).unwrap();
    }
    page.push_str("\n## Without effect\n\n| header | because | sent by |\n|---|---|---|\n");
    for known in of(|effect| matches!(effect, HeaderEffect::None(_))) {
        let HeaderEffect::None(reason) = known.effect else { continue };
        writeln!(page, "| `{}` | {reason} | {} |", known.name, known.sent_by.join(", ")).unwrap();
    }
    page.push_str("\n## Refused\n\nA request with one of these gets 501 with the name of the feature.\n\n");
    page.push_str("| header | feature | accepted value |\n|---|---|---|\n");
    for known in of(|effect| matches!(effect, HeaderEffect::Refused { .. })) {
        let HeaderEffect::Refused { feature, except } = known.effect else { continue };
        let except = if except.is_empty() { "none" } else { except };
        writeln!(page, "| `{}` | {feature} | {except} |", known.name).unwrap();
    }
    page.push_str("\n## Body properties\n\nMembers of a request's body that are not part of a resource.\n\n");
    page.push_str("| body | property | effect |\n|---|---|---|\n");
    for (body, property, effect) in BODY_PROPERTIES {
        writeln!(page, "| {body} | `{property}` | {effect} |").unwrap();
    }
    page
}

/// `UPDATE_HEADERS=1 cargo test -p pleiad-wire headers` writes the page.
#[test]
fn the_page_is_the_text_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/headers.md");
    if std::env::var_os("UPDATE_HEADERS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), page(), "run with UPDATE_HEADERS=1");
}
