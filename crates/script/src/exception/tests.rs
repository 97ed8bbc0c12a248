//! Stack traces as script authors see them.

use super::{for_authors, place, shortened};

#[test]
fn a_frame_has_a_line_and_a_column_without_what_we_put_before_it() {
    assert_eq!(place("    at main (<input>:3:14)"), Some((3, 14)));
    assert_eq!(place("    at main (<input>:1:20)"), Some((1, 15)));
    assert_eq!(place("    at apply (native)"), None);
    assert_eq!(place("    at x (api.js:3:14)"), None);
}

#[test]
fn frames_of_the_api_are_left_out() {
    let frames = "    at main (<input>:3:14)\n    at apply (native)\n    at run (api.js:7:7)\n";
    assert_eq!(for_authors(frames, "import"), "   at main (import:3:14)");
}

#[test]
fn long_text_is_cut_between_characters() {
    assert_eq!(shortened("aä".to_owned(), 3), "aä");
    assert_eq!(shortened("aäb".to_owned(), 2), "a…");
}
