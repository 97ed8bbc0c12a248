//! Golden page parser: setup lines, requests, and after each `----` the expected answer.
//!
//! ```text
//! # S12: what this page shows.
//! container people   key /dept              a step
//!
//! GET docs/1   key ["Sales"]   +etag        a step that has an answer
//! If-None-Match: *                            its headers
//! ----
//! 200                                         its answer, up to the next blank line
//!
//! values                                    a table of expressions and their values
//! 1 + 1 → 2
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::line::{self, Words};
use crate::query;
use crate::world::Settings;

const ANSWER: &str = "----";
const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"];
const SETUP: [&str; 6] = ["settings", "database", "container", "in", "item", "items"];
const QUERIES: [&str; 2] = ["query", "values"];
/// Between an expression and its value.
pub const ARROW: &str = " → ";

pub struct Page {
    path: PathBuf,
    lines: Vec<String>,
    pub settings: Settings,
    pub steps: Vec<Step>,
}

pub struct Step {
    /// Counted from 1, as editors do.
    pub line: usize,
    pub words: Words,
    pub headers: Vec<(String, String)>,
    /// The lines after the headers, if the first line has no body.
    pub body: Option<String>,
    /// The lines of the page with the expected answer; a step without them must only succeed.
    answer: Option<Range<usize>>,
}

impl Page {
    pub fn load(path: &Path) -> Result<Page> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Page::parse(path, &text).map_err(|why| format!("{}: {why}", path.display()))
    }

    pub fn parse(path: &Path, text: &str) -> Result<Page> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (mut steps, mut at) = (Vec::new(), 0);
        while at < lines.len() {
            if is_skipped(&lines[at]) {
                at += 1;
                continue;
            }
            let step = Step::parse(&lines, &mut at)?;
            steps.push(step);
        }
        let settings = Settings::of(steps.iter().filter(|step| step.words.first == "settings").map(|step| &step.words));
        Ok(Page { path: path.to_owned(), lines, settings, steps })
    }

    /// `items/create.page`
    pub fn name(&self) -> String {
        let path = self.path.to_string_lossy().replace('\\', "/");
        path.rsplit_once("tests/golden/").map_or(path.clone(), |(_, name)| name.to_owned())
    }

    pub fn differences(&self, answers: &[Vec<String>]) -> Vec<String> {
        let ranges = self.steps.iter().filter_map(|step| Some((step, step.answer.clone()?)));
        let pairs = ranges.zip(answers).filter(|((_, range), answer)| !is_expected(&self.lines[range.clone()], answer));
        pairs.map(|((step, range), answer)| self.difference(step, &self.lines[range], answer)).collect()
    }

    fn difference(&self, step: &Step, wanted: &[String], got: &[String]) -> String {
        let request = self.lines.get(step.line - 1).map_or("", String::as_str);
        let same = wanted.iter().zip(got).take_while(|(wanted, got)| wanted == got).count();
        let rest = (&wanted[same..], &got[same..]);
        let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(wanted, got)| wanted == got).count();
        let marked =
            |mark: char, lines: &[String]| lines.iter().map(|line| format!("\n  {mark} {line}")).collect::<String>();
        [
            format!("line {}: {request}", step.line),
            marked(' ', &got[..same]),
            marked('-', &rest.0[..rest.0.len() - tail]),
            marked('+', &rest.1[..rest.1.len() - tail]),
            marked(' ', &got[got.len() - tail..]),
        ]
        .concat()
    }

    /// Writes the page with these answers instead of its own.
    pub fn write(&self, answers: &[Vec<String>]) -> Result<()> {
        let mut lines = self.lines.clone();
        let ranges: Vec<_> = self.steps.iter().filter_map(|step| step.answer.clone()).collect();
        for (range, answer) in ranges.into_iter().zip(answers).rev() {
            lines.splice(range, answer.iter().cloned());
        }
        std::fs::write(&self.path, lines.join("\n") + "\n")
            .map_err(|e| format!("cannot write {}: {e}", self.path.display()))
    }
}

impl Step {
    pub fn is_setup(&self) -> bool {
        SETUP.contains(&self.words.first.as_str())
    }

    fn parse(lines: &[String], at: &mut usize) -> Result<Step> {
        let line = *at + 1;
        let words = line::parse(&lines[*at]).map_err(|why| format!("line {line}: {why}"))?;
        if !starts_step(&lines[*at]) {
            return Err(format!("line {line}: `{}` begins neither a question nor a step", words.first));
        }
        *at += 1;
        if words.first == "values" {
            return Ok(Step::of_values(line, words, take(lines, at, |line| !line.is_empty()), lines));
        }
        let rest = take(lines, at, |line| !line.is_empty() && line != ANSWER && !starts_step(line));
        let (headers, body) = headers_and_body(&lines[rest]);
        let answered = lines.get(*at).is_some_and(|line| line == ANSWER);
        *at += usize::from(answered);
        let answer = answered.then(|| take(lines, at, |line| !line.is_empty()));
        Ok(Step { line, words, headers, body, answer })
    }

    /// Each line is an expression and, unless the page is new, its expected value.
    fn of_values(line: usize, words: Words, table: Range<usize>, lines: &[String]) -> Step {
        let expression = |line: &String| line.split_once(ARROW).map_or(line.as_str(), |pair| pair.0).to_owned();
        let expressions: Vec<String> = lines[table.clone()].iter().map(expression).collect();
        Step { line, words, headers: Vec::new(), body: Some(expressions.join("\n")), answer: Some(table) }
    }

    pub fn is_answered(&self) -> bool {
        self.answer.is_some()
    }
}

fn take(lines: &[String], at: &mut usize, wanted: impl Fn(&str) -> bool) -> Range<usize> {
    let start = *at;
    while lines.get(*at).is_some_and(|line| wanted(line)) {
        *at += 1;
    }
    start..*at
}

fn is_skipped(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn starts_step(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    METHODS.contains(&word) || SETUP.contains(&word) || QUERIES.contains(&word)
}

fn is_expected(wanted: &[String], got: &[String]) -> bool {
    let same = |(wanted, got): (&String, &String)| wanted == got || query::is_omitted(got, wanted);
    wanted.len() == got.len() && wanted.iter().zip(got).all(same)
}

/// `Name: value` lines first; the remaining lines are the body, unchanged.
fn headers_and_body(lines: &[String]) -> (Vec<(String, String)>, Option<String>) {
    let headers: Vec<_> = lines.iter().map_while(|line| header(line)).collect();
    let body = lines[headers.len()..].join("\n");
    (headers, Some(body).filter(|body| !body.is_empty()))
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| (name.to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Page {
        Page::parse(Path::new("tests/golden/x.page"), text).unwrap()
    }

    #[test]
    fn a_page_is_steps_with_headers_bodies_and_answers() {
        let page =
            parse("# S1\ncontainer c key /pk\n\nPUT docs/1 key [1]\nIf-Match: a:b\n{\n}\n----\n412\n\nGET docs/1\n");
        assert_eq!(page.steps.len(), 3);
        assert_eq!(page.steps[1].headers, [("If-Match".to_owned(), "a:b".to_owned())]);
        assert_eq!(page.steps[1].body.as_deref(), Some("{\n}"));
        assert!(page.steps[1].is_answered() && !page.steps[2].is_answered());
    }

    #[test]
    fn a_table_of_values_is_request_and_answer() {
        let page = parse("values from c\n1 + 1 → 2\nc.x\n\nin c\n");
        assert_eq!(page.steps[0].body.as_deref(), Some("1 + 1\nc.x"));
        assert_eq!(page.differences(&[vec!["1 + 1 → 2".to_owned(), "c.x → undefined".to_owned()]]).len(), 1);
        assert_eq!(page.steps.len(), 2);
    }

    #[test]
    fn a_wrong_answer_is_shown_line_by_line() {
        let page = parse("GET docs/1\n----\n200\n{\"a\":1}\n");
        assert!(page.differences(&[vec!["200".to_owned(), "{\"a\":1}".to_owned()]]).is_empty());
        let shown = page.differences(&[vec!["200".to_owned(), "{\"a\":2}".to_owned()]]);
        assert_eq!(shown, ["line 1: GET docs/1\n    200\n  - {\"a\":1}\n  + {\"a\":2}"]);
    }

    #[test]
    fn an_unknown_step_is_an_error() {
        assert!(Page::parse(Path::new("x"), "containr c").is_err());
    }
}
