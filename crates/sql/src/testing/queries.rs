//! Random queries.

use pleiad_model::{Value, json};

use super::Choices;
use super::filters::Writer;
use crate::Parameters;

/// A query as a client sends it.
#[derive(Clone, Debug)]
pub struct TestQuery {
    pub text: String,
    pub parameters: Vec<Value>,
}

impl TestQuery {
    pub fn parameters(&self) -> Parameters {
        Parameters::from_value(Some(&Value::Array(self.parameters.clone()))).unwrap_or_default()
    }
}

impl std::fmt::Display for TestQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.text)?;
        match self.parameters.is_empty() {
            true => Ok(()),
            false => write!(f, "\n  with {}", json::to_string(&Value::Array(self.parameters.clone()))),
        }
    }
}

/// A query over the names that `document` generates, often with values of these documents. Nearly all pass `check`.
pub fn query(choices: &mut Choices<'_>, documents: &[Value]) -> TestQuery {
    let mut writer = Writer { choices, aliases: Vec::new(), parameters: Vec::new(), next_alias: 0, documents };
    let from = writer.from();
    let filter = match writer.choices.below(5) {
        0 => String::new(),
        4 => format!(" WHERE {}", writer.composite_pair()),
        depth => format!(" WHERE {}", writer.filter(depth - 1)),
    };
    let tail = QueryTail { from, filter };
    let text = match writer.choices.below(8) {
        0 | 1 => writer.groups(&tail),
        2..=4 => writer.ordered(&tail),
        _ => writer.plain(&tail),
    };
    TestQuery { text, parameters: writer.parameters }
}

/// Sort paths; those in policies are more frequent.
const ORDERS: &[&str] = &[".a", ".b", ".n", ".s", ".s", ".a", ".n", ".s", ".o.a", ".pk", "[\"\"]", ".id", "._ts", ".t"];

struct QueryTail {
    from: String,
    filter: String,
}

impl Writer<'_, '_> {
    fn from(&mut self) -> String {
        let mut bind = |aliases: &[&str]| self.aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        match self.choices.below(12) {
            0 => {
                bind(&["c", "j"]);
                "FROM c JOIN j IN c.t".to_owned()
            }
            1 => {
                bind(&["c", "j"]);
                "FROM c JOIN j IN c.o".to_owned()
            }
            2 => {
                bind(&["c", "j", "k"]);
                "FROM c JOIN j IN c.o JOIN k IN c.t".to_owned()
            }
            3 => {
                bind(&["j"]);
                "FROM j IN c.t".to_owned()
            }
            4 => {
                bind(&["j"]);
                "FROM c.o j".to_owned()
            }
            5 => {
                bind(&["c"]);
                self.aliases.push("x".to_owned());
                let filter = self.filter(1);
                self.aliases = vec!["c".to_owned(), "j".to_owned()];
                format!("FROM c JOIN (SELECT VALUE x FROM x IN c.t WHERE {filter}) AS j")
            }
            _ => {
                bind(&["c"]);
                "FROM c".to_owned()
            }
        }
    }

    fn plain(&mut self, tail: &QueryTail) -> String {
        let distinct = if self.choices.once_in(4) { "DISTINCT " } else { "" };
        let (top, page) = self.bounds();
        let selected = self.select_list();
        format!("SELECT {distinct}{top}{selected} {}{}{page}", tail.from, tail.filter)
    }

    fn ordered(&mut self, tail: &QueryTail) -> String {
        let keys = 1 + self.choices.below(3);
        let keys: Vec<String> = match self.choices.once_in(6) {
            true => vec![format!("_FullTextScore({}.s, [\"ab\", \"ab abc\"], 20, 60, [5, 1]) DESC", self.aliases[0])],
            false => (0..keys).map(|_| self.order_key()).collect(),
        };
        let (top, page) = self.bounds();
        let distinct = if self.choices.once_in(6) { "DISTINCT " } else { "" };
        let selected = self.select_list();
        format!("SELECT {distinct}{top}{selected} {}{} ORDER BY {}{page}", tail.from, tail.filter, keys.join(", "))
    }

    fn order_key(&mut self) -> String {
        let alias = self.aliases[0].clone();
        let path = self.choices.pick(ORDERS);
        let direction = self.choices.pick(&["", " ASC", " DESC"]);
        format!("{alias}{path}{direction}")
    }

    fn groups(&mut self, tail: &QueryTail) -> String {
        let aggregates: Vec<String> = (0..1 + self.choices.below(2)).map(|_| self.aggregate()).collect();
        if self.choices.once_in(2) {
            return format!("SELECT VALUE {} {}{}", aggregates[0], tail.from, tail.filter);
        }
        let mut keys: Vec<String> = (0..1 + self.choices.below(2)).map(|_| self.group_key()).collect();
        keys.dedup();
        let (top, page) = self.bounds();
        let named = keys.iter().enumerate().map(|(at, key)| format!("{key} AS k{at}"));
        let added = aggregates.iter().enumerate().map(|(at, sum)| format!("{sum} AS g{at}"));
        let selected = named.chain(added).collect::<Vec<_>>().join(", ");
        let order = self.group_order(&keys);
        format!("SELECT {top}{selected} {}{} GROUP BY {}{order}{page}", tail.from, tail.filter, keys.join(", "))
    }

    /// Sometimes `ORDER BY` some of the keys, if they are paths of the item.
    fn group_order(&mut self, keys: &[String]) -> String {
        if !self.choices.once_in(3) || keys.iter().any(|key| !key.starts_with("c.")) {
            return String::new();
        }
        let first = self.choices.below(keys.len());
        let sorted = keys.iter().skip(first).rev();
        let sorted: Vec<String> =
            sorted.map(|key| format!("{key}{}", self.choices.pick(&["", " ASC", " DESC"]))).collect();
        format!(" ORDER BY {}", sorted.join(", "))
    }

    fn group_key(&mut self) -> String {
        let alias = self.aliases[self.choices.below(self.aliases.len())].clone();
        alias + self.choices.pick(&[".a", ".b", ".n", ".s", ".o", ".t"])
    }

    fn aggregate(&mut self) -> String {
        let function = self.choices.pick(&["COUNT", "SUM", "MIN", "MAX", "AVG", "MAKELIST", "MAKESET"]);
        match self.choices.below(3) {
            0 => match self.choices.below(5) {
                4 => format!("COUNTIF({})", self.filter(0)),
                0 => format!("SUM(_FullTextWordCount({}.s))", self.aliases[0]),
                1 => format!("COUNTIF({})", self.full_text()),
                _ => "COUNT(1)".to_owned(),
            },
            _ => format!("{function}({})", self.path()),
        }
    }

    /// `TOP`, or `OFFSET … LIMIT …`, or neither.
    fn bounds(&mut self) -> (String, String) {
        let number = |choices: &mut Choices<'_>| choices.pick(&["0", "1", "2", "3", "5", "12"]);
        match self.choices.below(6) {
            0 => (format!("TOP {} ", number(self.choices)), String::new()),
            1 => (String::new(), format!(" OFFSET {} LIMIT {}", number(self.choices), number(self.choices))),
            _ => (String::new(), String::new()),
        }
    }

    fn select_list(&mut self) -> String {
        match self.choices.below(8) {
            0 if self.aliases.len() == 1 => "*".to_owned(),
            1 => format!("VALUE {}", self.path()),
            2 => format!("VALUE {{\"x\": {}, \"y\": [{}, {}]}}", self.path(), self.path(), self.literal()),
            3 => format!("{} AS x, {} AS y", self.path(), self.path()),
            4 => format!("VALUE {}", self.literal()),
            5 => format!("VALUE {}", self.filter_value()),
            _ => format!("VALUE {}", self.aliases[0]),
        }
    }

    fn filter_value(&mut self) -> String {
        self.filter(1)
    }
}
