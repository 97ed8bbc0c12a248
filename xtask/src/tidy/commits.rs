//! Commit subjects: at most 72 characters, beginning with the area that changes (`sql: reject NaN in LIMIT`).

use crate::shell::{self, Result};

/// Subjects up to this commit are older than the rule.
const BASE: &str = "3d3829c7de562c3527e3d01ce5ca7e04ff938d50";
const SUBJECT_CHARS_MAX: usize = 72;

/// Checks the commits since the base. A clone without it (a shallow one) has nothing to compare with.
pub fn check() -> Result<Vec<String>> {
    let git = |args: &[&str]| shell::output(shell::command("git", args).current_dir(shell::root()));
    if git(&["cat-file", "-e", &format!("{BASE}^{{commit}}")]).is_err() {
        return Ok(Vec::new());
    }
    let log = git(&["log", "--no-merges", "--format=%h %s", &format!("{BASE}..HEAD")])?;
    Ok(log.lines().filter_map(of_commit).collect())
}

pub fn of_commit(line: &str) -> Option<String> {
    let (hash, subject) = line.split_once(' ').unwrap_or((line, ""));
    let chars = subject.chars().count();
    if chars > SUBJECT_CHARS_MAX {
        return Some(format!("{hash}: the subject has {chars} characters, more than {SUBJECT_CHARS_MAX}"));
    }
    (!has_area(subject)).then(|| format!("{hash}: the subject names no area: `{subject}`"))
}

/// `sql: …`, `engine/query: …`, `docs, xtask: …`
fn has_area(subject: &str) -> bool {
    let is_area = |area: &str| {
        let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/".contains(c);
        !area.is_empty() && area.chars().all(name)
    };
    subject.split_once(": ").is_some_and(|(areas, rest)| !rest.is_empty() && areas.split(", ").all(is_area))
}
