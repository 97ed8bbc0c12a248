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
pub fn query(chance: &mut Choices<'_>, documents: &[Value]) -> TestQuery {
    let mut writer = Writer { chance, aliases: Vec::new(), parameters: Vec::new(), fresh: 0, documents };
    let from = writer.from();
    let filter = match writer.chance.below(5) {
        0 => String::new(),
        4 => format!(" WHERE {}", writer.together()),
        depth => format!(" WHERE {}", writer.filter(depth - 1)),
    };
    let rest = QueryTail { from, filter };
    let text = match writer.chance.below(8) {
        0 | 1 => writer.groups(&rest),
        2..=4 => writer.ordered(&rest),
        _ => writer.plain(&rest),
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
        match self.chance.below(12) {
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

    fn plain(&mut self, rest: &QueryTail) -> String {
        let distinct = if self.chance.once_in(4) { "DISTINCT " } else { "" };
        let (top, page) = self.bounds();
        let what = self.what();
        format!("SELECT {distinct}{top}{what} {}{}{page}", rest.from, rest.filter)
    }

    fn ordered(&mut self, rest: &QueryTail) -> String {
        let keys = 1 + self.chance.below(3);
        let keys: Vec<String> = match self.chance.once_in(6) {
            true => vec![format!("_FullTextScore({}.s, [\"a\", \"ab abc\"], 20, 60, [5, 1]) DESC", self.aliases[0])],
            false => (0..keys).map(|_| self.order_key()).collect(),
        };
        let (top, page) = self.bounds();
        let distinct = if self.chance.once_in(6) { "DISTINCT " } else { "" };
        let what = self.what();
        format!("SELECT {distinct}{top}{what} {}{} ORDER BY {}{page}", rest.from, rest.filter, keys.join(", "))
    }

    fn order_key(&mut self) -> String {
        let alias = self.aliases[0].clone();
        let path = self.chance.pick(ORDERS);
        let direction = self.chance.pick(&["", " ASC", " DESC"]);
        format!("{alias}{path}{direction}")
    }

    fn groups(&mut self, rest: &QueryTail) -> String {
        let aggregates: Vec<String> = (0..1 + self.chance.below(2)).map(|_| self.aggregate()).collect();
        if self.chance.once_in(2) {
            return format!("SELECT VALUE {} {}{}", aggregates[0], rest.from, rest.filter);
        }
        let mut keys: Vec<String> = (0..1 + self.chance.below(2)).map(|_| self.group_key()).collect();
        keys.dedup();
        let (top, page) = self.bounds();
        let named = keys.iter().enumerate().map(|(at, key)| format!("{key} AS k{at}"));
        let added = aggregates.iter().enumerate().map(|(at, sum)| format!("{sum} AS g{at}"));
        let what = named.chain(added).collect::<Vec<_>>().join(", ");
        format!("SELECT {top}{what} {}{} GROUP BY {}{page}", rest.from, rest.filter, keys.join(", "))
    }

    fn group_key(&mut self) -> String {
        let alias = self.aliases[self.chance.below(self.aliases.len())].clone();
        alias + self.chance.pick(&[".a", ".b", ".n", ".s", ".o", ".t"])
    }

    fn aggregate(&mut self) -> String {
        let function = self.chance.pick(&["COUNT", "SUM", "MIN", "MAX", "AVG", "MAKELIST", "MAKESET"]);
        match self.chance.below(3) {
            0 => match self.chance.below(5) {
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
        let number = |chance: &mut Choices<'_>| chance.pick(&["0", "1", "2", "3", "5", "12"]);
        match self.chance.below(6) {
            0 => (format!("TOP {} ", number(self.chance)), String::new()),
            1 => (String::new(), format!(" OFFSET {} LIMIT {}", number(self.chance), number(self.chance))),
            _ => (String::new(), String::new()),
        }
    }

    fn what(&mut self) -> String {
        match self.chance.below(8) {
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
