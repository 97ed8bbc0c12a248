//! Masks: replace values that differ from run to run by stable names: `<db>`, `<rid1>`, `<etag2>`, `<ts>`, `<date>`.
//!
//! Invariant: within a page, equal values have the same name and different values have different names, numbered in the
//! order in which the page shows them. So a page shows whether an etag is the same as before.

use std::collections::HashMap;

use pleiad_model::Value;

use crate::client::Response;

/// Etags of feeds are small numbers and are shown unmasked.
const ETAG_BYTES_MIN: usize = 20;
/// A run of one character of at least this length is written `<x*2048>`.
const RUN_MIN: usize = 40;

/// The kinds that are not numbered: two requests may or may not fall into the same second.
const DATE: &str = "date";
const USED: &str = "used";

pub struct Masks {
    /// Texts that are known when the page starts.
    fixed: [(String, &'static str); 2],
    /// Values that get a name when they are shown, longest first, with their kind.
    known: Vec<(String, &'static str)>,
    names: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
}

impl Masks {
    pub fn new(database: &str, port: u16) -> Masks {
        let fixed = [(database.to_owned(), "<db>"), (format!("localhost:{port}"), "localhost:<port>")];
        Masks { fixed, known: Vec::new(), names: HashMap::new(), counts: HashMap::new() }
    }

    pub fn learn(&mut self, response: &Response, body: Option<&Value>) {
        if let Some(etag) = response.header("etag").filter(|etag| etag.len() > ETAG_BYTES_MIN) {
            self.note(etag.trim_matches('"'), "etag");
        }
        // The usage within a second depends on when the second began.
        if let Some(used) = response.header("x-pleiad-throttle-used") {
            self.note(used, USED);
        }
        if let Some(body) = body {
            self.learn_value(body);
        }
    }

    fn learn_value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn_value(item)),
            Value::Object(object) => object.iter().for_each(|(name, value)| match (name, value.as_str()) {
                ("_rid" | "offerResourceId", Some(rid)) => self.note(rid, "rid"),
                ("_self" | "resource", Some(link)) => {
                    link.split('/').skip(1).step_by(2).for_each(|rid| self.note(rid, "rid"))
                }
                ("_etag", Some(etag)) => self.note(etag.trim_matches('"'), "etag"),
                _ => self.learn_value(value),
            }),
            _ => {}
        }
    }

    /// The error for a rejected signature contains the signed date.
    pub fn learn_date(&mut self, date: &str) {
        self.note(&date.to_lowercase(), DATE);
    }

    fn note(&mut self, text: &str, kind: &'static str) {
        if text.len() >= 4 && !self.known.iter().any(|(known, _)| known == text) {
            self.known.push((text.to_owned(), kind));
            self.known.sort_by_key(|(known, _)| std::cmp::Reverse(known.len()));
        }
    }

    /// The text with names instead of values.
    pub fn mask(&mut self, text: &str) -> String {
        let mut out = runs(&self.fixed.iter().fold(text.to_owned(), |text, (known, name)| text.replace(known, name)));
        // Names are numbered in the order in which the values appear.
        let mut found: Vec<_> = self
            .known
            .iter()
            .filter_map(|(known, kind)| Some((out.find(known.as_str())?, known.clone(), *kind)))
            .collect();
        found.sort_by_key(|(at, known, _)| (*at, std::cmp::Reverse(known.len())));
        let named: Vec<(String, String)> =
            found.into_iter().map(|(_, known, kind)| (self.name(&known, kind), known)).collect();
        let mut by_length = named;
        by_length.sort_by_key(|(_, known)| std::cmp::Reverse(known.len()));
        for (name, known) in by_length {
            out = out.replace(&known, &name);
        }
        out
    }

    fn name(&mut self, text: &str, kind: &'static str) -> String {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        if [DATE, USED].contains(&kind) {
            return format!("<{kind}>");
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("<{kind}{count}>");
        self.names.insert(text.to_owned(), name.clone());
        name
    }
}

/// Writes long runs of one character in the notation that pages use in requests.
fn runs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let count = rest.chars().take_while(|next| *next == c).count();
        let (run, after) = rest.split_at(count * c.len_utf8());
        if count >= RUN_MIN {
            out += &format!("<{c}*{count}>");
        } else {
            out += run;
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_name() {
        let mut masks = Masks::new("golden7", 1);
        masks.note("AAAAAQ==", "rid");
        masks.note("AAAAAYAAAAE=", "rid");
        assert_eq!(masks.mask("dbs/AAAAAQ==/colls/AAAAAYAAAAE=/"), "dbs/<rid1>/colls/<rid2>/");
        assert_eq!(masks.mask("dbs/golden7 AAAAAYAAAAE="), "dbs/<db> <rid2>");
    }

    #[test]
    fn long_runs_are_counted() {
        assert_eq!(runs(&format!("a{}b", "é".repeat(50))), "a<é*50>b");
    }
}
