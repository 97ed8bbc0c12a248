//! Random filters: every operator and function that an index can evaluate, and similar ones that it cannot.

use pleiad_model::{Object, Value, json};

use super::Choices;
use super::documents::{NAMES, number, scalar, shape, string, value};

/// Writes scalars over the aliases in scope.
pub(super) struct Writer<'c, 'b> {
    pub choices: &'c mut Choices<'b>,
    /// The item, or the part that `FROM` selects, then the elements of arrays.
    pub aliases: Vec<String>,
    pub parameters: Vec<Value>,
    pub next_alias: usize,
    /// The documents that the query will run over, so that it matches some.
    pub documents: &'c [Value],
}

type FilterMember = (&'static str, &'static str);

/// Paths of composite indexes, in the notation of policies and of queries.
pub(super) const PAIRS: &[(FilterMember, FilterMember)] =
    &[(("/a", ".a"), ("/n", ".n")), (("/n", ".n"), ("/s", ".s")), (("/s", ".s"), ("/a", ".a"))];

const OPERATORS: &[&str] = &["=", "=", "=", "<", "<=", ">", ">=", "!="];
const PATTERNS: &[&str] = &[
    "a%", "%a", "%b%", "a_", "a", "ab%", "[a]", "[a-b]%", "a[^b]c", "a!%b", "!", "%", "_", "", "a[b", "!!%", "ab!%%",
    "x%", "[a", "a\\\\%", "%!_%",
];
const REGULAR: &[&str] = &["a", "^a", "b$", "a.c", "^(a|b)+$", "A", "[[:alpha:]]", "^$", "x{3}", "a\\\\b"];
const TYPES: &[&str] = &[
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_INTEGER",
    "IS_FINITE_NUMBER",
];
const TERMS: &[&str] = &["a", "ab", "AB", "abc", "b", "x", "ab abc", "abc ab", "the", "", "1", "aé"];
const SEARCHES: &[&str] = &["STARTSWITH", "CONTAINS", "ENDSWITH", "STRINGEQUALS"];

impl Writer<'_, '_> {
    pub fn filter(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.predicate();
        }
        match self.choices.below(12) {
            0..=3 => self.predicate(),
            10 | 11 => self.composite_pair(),
            4 | 5 => format!("({} AND {})", self.filter(depth - 1), self.filter(depth - 1)),
            6 | 7 => format!("({} OR {})", self.filter(depth - 1), self.filter(depth - 1)),
            8 => format!("NOT ({})", self.filter(depth - 1)),
            _ => self.exists(depth - 1),
        }
    }

    /// An equality and a predicate on a second path, which a composite index can evaluate together.
    pub fn composite_pair(&mut self) -> String {
        let Some(document) = self.documents.get(self.choices.below(self.documents.len().min(256))) else {
            return self.predicate();
        };
        let (first, second) = PAIRS[self.choices.below(PAIRS.len())];
        let value = |path: &str| document.get(path.trim_start_matches('/')).cloned();
        let (Some(one), Some(other)) = (value(first.0), value(second.0)) else { return self.predicate() };
        let alias = self.aliases[0].clone();
        let equal = format!("{alias}{} = {}", first.1, self.constant(one));
        let rest = self.matching_predicate(&format!("{alias}{}", second.1), other);
        let more = if self.choices.once_in(3) { format!(" AND {}", self.predicate()) } else { String::new() };
        format!("({equal} AND {rest}{more})")
    }

    fn predicate(&mut self) -> String {
        if !self.choices.once_in(3)
            && let Some((path, value)) = self.known_value()
        {
            return self.matching_predicate(&path, value);
        }
        match self.choices.below(22) {
            0..=3 => self.comparison(),
            4 => self.between(),
            5 => self.in_list(),
            6 => self.like(),
            7 | 8 => self.search(),
            9 => self.regular(),
            10 | 11 => format!("{}({})", self.choices.pick(TYPES), self.path()),
            12 | 13 => self.array_contains(),
            14 => self.prefix_function(),
            15 | 16 => self.spatial(),
            17 => self.bare_scalar(),
            18 => self.unindexable(),
            19 | 20 => self.full_text(),
            _ => self.key_predicate(),
        }
    }

    // Operands.

    /// A path in the item, or in the element of an array.
    pub fn path(&mut self) -> String {
        let alias = self.aliases[self.choices.below(self.aliases.len())].clone();
        // Elements are often scalars themselves.
        if alias != self.aliases[0] && self.choices.once_in(2) {
            return alias;
        }
        let top = NAMES[self.choices.below(NAMES.len())].1;
        let below = match self.choices.below(12) {
            0 => ".a",
            1 => ".n",
            2 => "[0]",
            3 => "[1].a",
            4 => "[\"b\"]",
            _ => "",
        };
        match self.choices.below(24) {
            22 => format!("{alias}.id"),
            23 => format!("{alias}._ts"),
            _ => format!("{alias}{top}{below}"),
        }
    }

    fn array(&mut self) -> String {
        let alias = self.aliases[0].clone();
        alias + self.choices.pick(&[".t", ".t", ".o", ".a", ".o.a"])
    }

    pub fn literal(&mut self) -> String {
        let value = if self.choices.once_in(6) { value(self.choices, 2) } else { scalar(self.choices) };
        self.constant(value)
    }

    /// As a literal or as a parameter.
    fn constant(&mut self, value: Value) -> String {
        if !self.choices.once_in(4) {
            return json::to_string(&value);
        }
        let name = format!("@p{}", self.parameters.len());
        self.parameters.push(Object::new().with("name", name.as_str()).with("value", value).into());
        name
    }

    fn text(&mut self) -> String {
        let text = string(self.choices);
        self.constant(Value::String(text))
    }

    /// A path in the item and the value of some document at it.
    fn known_value(&mut self) -> Option<(String, Value)> {
        let document = self.documents.get(self.choices.below(self.documents.len().min(256)))?;
        // Strings are chosen more often: they have the most edge cases.
        const STRINGS: (&str, &str) = ("s", ".s");
        let (name, path) = *NAMES.get(self.choices.below(NAMES.len() + 4)).unwrap_or(&STRINGS);
        let value = document.get(name)?.clone();
        Some((format!("{}{path}", self.aliases[0]), value))
    }

    fn not(&mut self) -> &'static str {
        if self.choices.once_in(5) { "NOT " } else { "" }
    }

    // Predicates.

    /// A predicate that is true of a value, or nearly so.
    fn matching_predicate(&mut self, path: &str, value: Value) -> String {
        let op = self.choices.pick(OPERATORS);
        match (value, self.choices.below(7)) {
            (Value::String(text), 0) => {
                let part: String = text.chars().take(text.chars().count() * (1 + self.choices.below(3)) / 3).collect();
                format!("STARTSWITH({path}, {})", self.constant(Value::String(part)))
            }
            (Value::String(text), 1) => {
                let tail: String = text.chars().skip(text.chars().count() / 2).collect();
                format!("CONTAINS({path}, {})", self.constant(Value::String(tail)))
            }
            (Value::Array(items), _) if !items.is_empty() => {
                let item = items[self.choices.below(items.len().min(256))].clone();
                format!("ARRAY_CONTAINS({path}, {}, true)", self.constant(item))
            }
            (value, 2) => format!("{path} IN ({}, {})", self.literal(), self.constant(value)),
            (value, 3) => format!("{path} BETWEEN {} AND {}", self.literal(), self.constant(value)),
            (value, _) => format!("{path} {op} {}", self.constant(value)),
        }
    }

    fn comparison(&mut self) -> String {
        let op = self.choices.pick(OPERATORS);
        match self.choices.below(8) {
            0 => format!("{} {op} {}", self.literal(), self.path()),
            1 => format!("{} {op} {}", self.path(), self.path()),
            2 => format!("{} {op} undefined", self.path()),
            _ => format!("{} {op} {}", self.path(), self.literal()),
        }
    }

    fn between(&mut self) -> String {
        let (path, not) = (self.path(), self.not());
        match self.choices.below(3) {
            0 => format!("{path} {not}BETWEEN {} AND {}", self.literal(), self.literal()),
            1 => format!("{path} {not}BETWEEN {} AND {}", self.text(), self.text()),
            _ => {
                let (low, high) = (number(self.choices), number(self.choices));
                format!("{path} {not}BETWEEN {} AND {}", self.constant(low), self.constant(high))
            }
        }
    }

    fn in_list(&mut self) -> String {
        let (path, not) = (self.path(), self.not());
        let mut list: Vec<String> = Vec::new();
        for _ in 0..1 + self.choices.below(3) {
            list.push(if self.choices.once_in(8) { self.path() } else { self.literal() });
        }
        format!("{path} {not}IN ({})", list.join(", "))
    }

    fn like(&mut self) -> String {
        let (path, not) = (self.path(), self.not());
        let pattern = self.choices.pick(PATTERNS);
        let escape = if self.choices.once_in(2) { " ESCAPE '!'" } else { "" };
        format!("{path} {not}LIKE \"{pattern}\"{escape}")
    }

    fn search(&mut self) -> String {
        let function = self.choices.pick(SEARCHES);
        let flag = self.choices.pick(&["", "", ", true", ", false", ", null", ", undefined"]);
        let what = if self.choices.once_in(8) { self.literal() } else { self.text() };
        format!("{function}({}, {what}{flag})", self.path())
    }

    pub fn full_text(&mut self) -> String {
        let (function, terms) = match self.choices.below(3) {
            0 => ("FullTextContains", 1),
            1 => ("FullTextContainsAll", 2),
            _ => ("FullTextContainsAny", 2),
        };
        let path = if self.choices.once_in(3) { self.path() } else { format!("{}.s", self.aliases[0]) };
        let terms: Vec<String> = (0..terms).map(|_| format!("{:?}", self.choices.pick(TERMS))).collect();
        format!("{function}({path}, {})", terms.join(", "))
    }

    fn regular(&mut self) -> String {
        let pattern = self.choices.pick(REGULAR);
        let flags = self.choices.pick(&["", "", ", \"i\"", ", \"m\"", ", \"\""]);
        format!("REGEXMATCH({}, \"{pattern}\"{flags})", self.path())
    }

    fn array_contains(&mut self) -> String {
        match self.choices.below(6) {
            0 => format!("ARRAY_CONTAINS([{}, {}], {})", self.literal(), self.literal(), self.path()),
            1 => format!("ARRAY_CONTAINS_ANY({}, {}, {})", self.array(), self.literal(), self.literal()),
            2 => format!("ARRAY_CONTAINS_ALL({}, {}, {})", self.array(), self.literal(), self.literal()),
            3 => format!("ARRAY_CONTAINS({}, {{\"a\": {}}}, {})", self.array(), self.literal(), self.flag()),
            4 => format!("ARRAY_CONTAINS({}, {}, {})", self.array(), self.literal(), self.flag()),
            _ => format!("ARRAY_CONTAINS({}, {})", self.array(), self.literal()),
        }
    }

    fn flag(&mut self) -> &'static str {
        self.choices.pick(&["true", "false"])
    }

    fn prefix_function(&mut self) -> String {
        let length = self.choices.below(4);
        match self.choices.below(3) {
            0 => format!("LEFT({}, {length}) = {}", self.path(), self.text()),
            1 => format!("SUBSTRING({}, {}, {length}) = {}", self.path(), self.choices.below(2), self.text()),
            _ => format!("UPPER({}) = {}", self.path(), self.text()),
        }
    }

    fn spatial(&mut self) -> String {
        let alias = self.aliases[0].clone();
        let shape = shape(self.choices);
        let shape = self.constant(shape);
        let (one, other) = match self.choices.once_in(3) {
            true => (shape, alias + ".loc"),
            false => (alias + ".loc", shape),
        };
        let metres = self.choices.pick(&["0", "112", "1000", "500000", "1e7", "-1", "null"]);
        match self.choices.below(5) {
            0 => format!("ST_WITHIN({one}, {other})"),
            1 => format!("ST_INTERSECTS({one}, {other})"),
            2 => format!("{metres} > ST_DISTANCE({one}, {other})"),
            3 => format!("ST_DISTANCE({one}, {other}) > {metres}"),
            _ => format!("ST_DISTANCE({one}, {other}) <= {metres}"),
        }
    }

    fn bare_scalar(&mut self) -> String {
        match self.choices.below(6) {
            0 => "true".to_owned(),
            1 => self.choices.pick(&["false", "null", "undefined", "1"]).to_owned(),
            2 => format!("NOT {}", self.path()),
            _ => self.path(),
        }
    }

    /// An expression that no index can evaluate.
    fn unindexable(&mut self) -> String {
        let (path, literal) = (self.path(), self.literal());
        match self.choices.below(6) {
            0 => format!("({path} ?? {literal}) = {}", self.literal()),
            1 => format!("(IS_DEFINED({path}) ? {literal} : {}) = {}", self.path(), self.literal()),
            2 => format!("ARRAY_LENGTH({path}) >= {}", self.choices.below(3)),
            3 => format!("{path} + 1 = {literal}"),
            4 => format!("({path} = {literal}) = {}", self.flag()),
            _ => format!("(SELECT VALUE COUNT(1) FROM z IN {}) > {}", self.array(), self.choices.below(3)),
        }
    }

    /// A predicate on the partition key, which routes a query.
    fn key_predicate(&mut self) -> String {
        let alias = self.aliases[0].clone();
        let level = self.choices.pick(&["pk", "pk", "n"]);
        match self.choices.below(3) {
            0 => format!("{alias}.{level} = {}", self.literal()),
            1 => format!("{alias}.pk IN ({}, {})", self.literal(), self.literal()),
            _ => format!("({alias}.pk = {} AND {alias}.n = {})", self.literal(), self.literal()),
        }
    }

    fn exists(&mut self, depth: usize) -> String {
        let alias = format!("e{}", self.next_alias);
        self.next_alias += 1;
        let array = self.array();
        self.aliases.push(alias.clone());
        let join = match self.choices.once_in(4) {
            true => {
                let inner = format!("e{}", self.next_alias);
                self.next_alias += 1;
                let join = format!(" JOIN {inner} IN {alias}.a");
                self.aliases.push(inner);
                join
            }
            false => String::new(),
        };
        let what = self.choices.pick(&["VALUE 1", "*", "VALUE COUNT(1)", "VALUE undefined"]);
        let what = if what == "*" { format!("VALUE {alias}") } else { what.to_owned() };
        let filter = self.filter(depth);
        let depth_before = self.aliases.len() - 1 - usize::from(!join.is_empty());
        self.aliases.truncate(depth_before);
        format!("EXISTS(SELECT {what} FROM {alias} IN {array}{join} WHERE {filter})")
    }
}
