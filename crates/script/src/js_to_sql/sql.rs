//! SQL syntax tree of a translated function, and its text.
//!
//! Invariant: every operator is in parentheses and every name is quoted, so that the text is equivalent to the tree,
//! whatever names a script uses.

use std::fmt;

use pleiad_model::{Value, json};

use super::FluentQuery;

#[derive(Clone, Debug, PartialEq)]
pub enum Sql {
    Path {
        alias: String,
        keys: Vec<PathKey>,
    },
    Literal(Value),
    Object(Vec<(String, Sql)>),
    Compare(Comparison, Box<(Sql, Sql)>),
    Arithmetic(&'static str, Box<(Sql, Sql)>),
    And(Box<(Sql, Sql)>),
    Or(Box<(Sql, Sql)>),
    Not(Box<Sql>),
    /// False instead of undefined.
    OrFalse(Box<Sql>),
    /// Neither missing nor null, false, zero or empty.
    Truthy(Box<Sql>),
    Call(&'static str, Vec<Sql>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathKey {
    Name(String),
    Index(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub fn parse(operator: &str) -> Option<Comparison> {
        match operator {
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessOrEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterOrEqual),
            _ => None,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl Sql {
    pub fn root(alias: &str) -> Sql {
        Sql::Path { alias: alias.to_owned(), keys: Vec::new() }
    }

    pub fn unary_call(function: &'static str, value: Sql) -> Sql {
        Sql::Call(function, vec![value])
    }

    pub fn compare(comparison: Comparison, left: Sql, right: Sql) -> Sql {
        Sql::Compare(comparison, Box::new((left, right)))
    }

    /// True exactly if this is not true.
    pub fn negated(self) -> Sql {
        Sql::Not(Box::new(Sql::OrFalse(Box::new(self))))
    }

    /// A property of this value; None if it is unknown.
    pub fn member(&self, name: &str) -> Option<Sql> {
        match self {
            Sql::Path { .. } => self.child(PathKey::Name(name.to_owned())),
            Sql::Object(properties) => {
                properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    pub fn index(&self, at: u32) -> Option<Sql> {
        self.child(PathKey::Index(at))
    }

    fn child(&self, key: PathKey) -> Option<Sql> {
        let Sql::Path { alias, keys } = self else { return None };
        let keys = keys.iter().cloned().chain([key]).collect();
        Some(Sql::Path { alias: alias.clone(), keys })
    }

    /// The number of nodes in this tree.
    pub fn node_count(&self) -> usize {
        match self {
            Sql::Path { keys, .. } => 1 + keys.len(),
            Sql::Literal(_) => 1,
            Sql::Object(properties) => 1 + properties.iter().map(|(_, value)| value.node_count()).sum::<usize>(),
            Sql::Compare(_, sides) | Sql::Arithmetic(_, sides) | Sql::And(sides) | Sql::Or(sides) => {
                1 + sides.0.node_count() + sides.1.node_count()
            }
            Sql::Not(inner) | Sql::OrFalse(inner) | Sql::Truthy(inner) => 1 + inner.node_count(),
            Sql::Call(_, arguments) => 1 + arguments.iter().map(Sql::node_count).sum::<usize>(),
        }
    }

    /// Whether this is a path to a property: only these can be sorted by or joined.
    pub fn is_property_path(&self) -> bool {
        matches!(self, Sql::Path { keys, .. } if !keys.is_empty())
    }
}

impl fmt::Display for FluentQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SELECT VALUE {} FROM r", self.row)?;
        for (alias, inner) in &self.joins {
            write!(f, " JOIN {alias} IN {inner}")?;
        }
        for (at, filter) in self.filters.iter().enumerate() {
            write!(f, " {} {filter}", if at == 0 { "WHERE" } else { "AND" })?;
        }
        match &self.order {
            Some((key, direction)) => write!(f, " ORDER BY {key}{direction}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sql::Path { alias, keys } => write_path(alias, keys, f),
            Sql::Literal(value) => f.write_str(&json::to_string(value)),
            Sql::Object(properties) => write_object(properties, f),
            Sql::Compare(comparison, sides) => write!(f, "({} {} {})", sides.0, comparison.symbol(), sides.1),
            Sql::Arithmetic(operator, sides) => write!(f, "({} {operator} {})", sides.0, sides.1),
            Sql::And(sides) => write!(f, "({} AND {})", sides.0, sides.1),
            Sql::Or(sides) => write!(f, "({} OR {})", sides.0, sides.1),
            Sql::Not(inner) => write!(f, "(NOT {inner})"),
            Sql::OrFalse(inner) => write!(f, "({inner} ?? false)"),
            Sql::Truthy(inner) => write_truthy(inner, f),
            Sql::Call(name, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(Sql::to_string).collect();
                write!(f, "{name}({})", arguments.join(", "))
            }
        }
    }
}

fn write_path(alias: &str, keys: &[PathKey], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(alias)?;
    keys.iter().try_for_each(|key| match key {
        PathKey::Name(name) => write!(f, "[{}]", quoted(name)),
        PathKey::Index(at) => write!(f, "[{at}]"),
    })
}

fn write_object(properties: &[(String, Sql)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let members: Vec<String> = properties.iter().map(|(name, value)| format!("{}: {value}", quoted(name))).collect();
    write!(f, "{{{}}}", members.join(", "))
}

/// Equality with a value of another type is undefined or false, depending on the SQL engine; `??` makes both false.
fn write_truthy(value: &Sql, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "(IS_DEFINED({value}) AND (NOT IS_NULL({value}))")?;
    for falsy in ["false", "0", "\"\""] {
        write!(f, " AND (NOT (({value} = {falsy}) ?? false))")?;
    }
    f.write_str(")")
}

fn quoted(name: &str) -> String {
    json::to_string(&Value::from(name))
}
