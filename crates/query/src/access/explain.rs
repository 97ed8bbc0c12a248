//! Conditions as text, for people and for the headers that SDKs read.

use std::fmt::Write;

use pleiad_model::policy::Step;

/// A path as an indexing policy writes it, without its end: `/a/[]/"b c"`.
pub fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Element => text.push_str("/[]"),
            Step::Property(name) if is_plain(name) => {
                text.push('/');
                text.push_str(name);
            }
            Step::Property(name) => {
                // Writing to a String cannot fail.
                let _ = write!(text, "/\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
            }
        }
    }
    text
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}
