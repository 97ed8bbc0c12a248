//! Stack traces as script authors see them.

use super::{frame_position, script_frames, truncated};

#[test]
fn frame_positions_exclude_the_factory_prefix() {
    assert_eq!(frame_position("    at main (<input>:3:14)"), Some((3, 14)));
    assert_eq!(frame_position("    at main (<input>:1:20)"), Some((1, 15)));
    assert_eq!(frame_position("    at apply (native)"), None);
    assert_eq!(frame_position("    at x (api.js:3:14)"), None);
}

#[test]
fn frames_of_internal_files_are_removed() {
    let frames = "    at main (<input>:3:14)\n    at apply (native)\n    at run (api.js:7:7)\n";
    assert_eq!(script_frames(frames, "import"), "   at main (import:3:14)");
}

#[test]
fn long_text_is_truncated_between_characters() {
    assert_eq!(truncated("aä".to_owned(), 3), "aä");
    assert_eq!(truncated("aäb".to_owned(), 2), "a…");
}
