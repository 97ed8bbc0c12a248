//! From an expression to the condition that its truth implies.

use std::ops::Bound;

use pleiad_model::Value;
use pleiad_model::policy::PathStep as IndexStep;
use pleiad_text::TextQuery;

use super::{Condition, Lookup, Near, StringTest, Tally, Type, What, Word};
use crate::block::{Block, Like, Node, Source, SourceOf, Step};
use crate::expr::aggregate::AggregateKind;
use crate::expr::full_text::{Ask, FullText, Terms};
use crate::language::ast::{BinaryOp, SubqueryForm, UnaryOp};

/// Where in the item each slot lies; `None` for slots that hold something computed.
pub struct Paths {
    slots: Vec<Option<Vec<IndexStep>>>,
}

impl Paths {
    pub fn of(block: &Block) -> Self {
        let mut paths = Paths { slots: vec![Some(Vec::new())] };
        block.sources.iter().for_each(|source| paths.bind(source));
        paths
    }

    fn bind(&mut self, source: &Source) {
        let place = match &source.of {
            SourceOf::Scalar(node) => self.path(node),
            SourceOf::Rows(_) => None,
        };
        self.slots.push(place.map(|mut path| {
            if source.each {
                path.push(IndexStep::Element);
            }
            path
        }));
    }

    /// The place of a value that is read from the item as it is.
    pub fn path(&self, node: &Node) -> Option<Vec<IndexStep>> {
        match node {
            Node::Slot(slot) => self.slots.get(*slot)?.clone(),
            Node::Path { slot, steps } => {
                let mut path = self.slots.get(*slot)?.clone()?;
                path.extend(steps.iter().map(|step| IndexStep::Property(step.text.clone())));
                Some(path)
            }
            Node::Access { base, steps } => {
                let path = self.path(base)?;
                steps.iter().try_fold(path, |mut path, step| {
                    path.push(match step {
                        Step::Property(name) => IndexStep::Property(name.text.clone()),
                        Step::Index(Node::Constant(Value::Number(_))) => IndexStep::Element,
                        Step::Index(_) => return None,
                    });
                    Some(path)
                })
            }
            _ => None,
        }
    }

    /// All of these hold; those that say nothing are left out.
    pub fn all<'b>(&self, nodes: impl Iterator<Item = &'b Node>) -> Option<Condition<'b>> {
        let mut conditions: Vec<Condition<'b>> = nodes.filter_map(|node| self.condition(node)).collect();
        match conditions.len() {
            0 => None,
            1 => conditions.pop(),
            _ => Some(Condition::All(conditions)),
        }
    }

    fn any<'b>(&self, nodes: impl Iterator<Item = &'b Node>) -> Option<Condition<'b>> {
        nodes.map(|node| self.condition(node)).collect::<Option<Vec<_>>>().map(Condition::Any)
    }

    fn condition<'b>(&self, node: &'b Node) -> Option<Condition<'b>> {
        match node {
            Node::Constant(Value::Bool(true)) => None,
            Node::Constant(_) | Node::Undefined => Some(Condition::Nothing),
            Node::And(nodes) => self.all(nodes.iter()),
            Node::Or(nodes) => self.any(nodes.iter()),
            Node::Slot(_) | Node::Path { .. } | Node::Access { .. } => self.equal(node, &Value::Bool(true)),
            Node::Unary { op: UnaryOp::Not, operand } => match operand.as_ref() {
                Node::Slot(_) | Node::Path { .. } | Node::Access { .. } => self.equal(operand, &Value::Bool(false)),
                _ => None,
            },
            Node::Binary { first, rest } => match rest.as_slice() {
                [(op, second)] => self.compare(*op, first, second),
                _ => None,
            },
            Node::In { not: false, operand, list } => self.is_in(operand, list),
            Node::Between { not: false, operand, low, high } => {
                let range = (Bound::Included(low.constant()?.clone()), Bound::Included(high.constant()?.clone()));
                self.range(operand, range.0, range.1)
            }
            Node::Like { not: false, operand, pattern: Like::Known { text, escape, pattern } } => {
                let what = like(text, *escape, StringTest::Like(pattern));
                Some(Condition::Is(Lookup { path: self.path(operand)?, what }))
            }
            Node::Call { function, arguments } => self.call(function.name, node, arguments),
            Node::FullText(call) => match call.ask {
                Ask::All => self.searches(call).map(Condition::All),
                Ask::Any => self.searches(call).map(Condition::Any),
                Ask::Length | Ask::Score(_) => None,
            },
            Node::Subquery { form: SubqueryForm::Exists, block } => self.exists(block),
            _ => None,
        }
    }

    // Comparisons.

    fn compare<'b>(&self, op: BinaryOp, first: &'b Node, second: &'b Node) -> Option<Condition<'b>> {
        match (first.is_constant(), second.is_constant()) {
            (false, true) => self.against(op, first, second),
            (true, false) => self.against(flipped(op)?, second, first),
            _ => None,
        }
    }

    fn against<'b>(&self, op: BinaryOp, node: &'b Node, constant: &'b Node) -> Option<Condition<'b>> {
        // Undefined equals nothing and is on no side of anything.
        let Some(value) = constant.constant() else { return op.is_comparison().then_some(Condition::Nothing) };
        if let Node::Call { function, arguments } = node {
            return self.call_against(op, function.name, arguments, value);
        }
        match op {
            BinaryOp::Equal => self.equal(node, value),
            BinaryOp::Less => self.range(node, Bound::Unbounded, Bound::Excluded(value.clone())),
            BinaryOp::LessOrEqual => self.range(node, Bound::Unbounded, Bound::Included(value.clone())),
            BinaryOp::Greater => self.range(node, Bound::Excluded(value.clone()), Bound::Unbounded),
            BinaryOp::GreaterOrEqual => self.range(node, Bound::Included(value.clone()), Bound::Unbounded),
            _ => None,
        }
    }

    fn equal<'b>(&self, node: &'b Node, value: &Value) -> Option<Condition<'b>> {
        let path = self.path(node)?;
        Some(Condition::Is(Lookup { path, what: equal(value) }))
    }

    /// Only values of one type are between two others.
    fn range<'b>(&self, node: &'b Node, low: Bound<Value>, high: Bound<Value>) -> Option<Condition<'b>> {
        let path = self.path(node)?;
        let types = [type_of_bound(&low), type_of_bound(&high)];
        match types {
            [Some(None), _] | [_, Some(None)] => Some(Condition::Nothing),
            [Some(Some(a)), Some(Some(b))] if a != b => Some(Condition::Nothing),
            _ => Some(Condition::Is(Lookup { path, what: What::Range(low, high) })),
        }
    }

    fn is_in<'b>(&self, operand: &'b Node, list: &'b [Node]) -> Option<Condition<'b>> {
        let path = self.path(operand)?;
        let mut any = Vec::with_capacity(list.len());
        for entry in list {
            match entry {
                Node::Constant(value) => any.push(Condition::Is(Lookup { path: path.clone(), what: equal(value) })),
                Node::Undefined => {}
                _ => return None,
            }
        }
        Some(Condition::Any(any))
    }

    // Functions.

    fn call<'b>(&self, name: &str, node: &'b Node, arguments: &'b [Node]) -> Option<Condition<'b>> {
        let first = arguments.first()?;
        let constant = |at: usize| arguments.get(at).and_then(Node::constant);
        let is = |what| Some(Condition::Is(Lookup { path: self.path(first)?, what }));
        let ignores_case = arguments.len() > 2 && constant(2) != Some(&Value::Bool(false));
        match name {
            "IS_DEFINED" => is(What::Defined),
            "IS_NULL" => is(What::Equal(Value::Null)),
            "IS_BOOL" | "IS_BOOLEAN" => is(What::Type(Type::Bool)),
            "IS_NUMBER" | "IS_FINITE_NUMBER" | "IS_INTEGER" => is(What::Type(Type::Number)),
            "IS_STRING" => is(What::Type(Type::String)),
            "IS_ARRAY" => is(What::Type(Type::Array)),
            "IS_OBJECT" => is(What::Type(Type::Object)),
            "STRINGEQUALS" | "STARTSWITH" if !ignores_case => match (name, constant(1)?) {
                ("STRINGEQUALS", text @ Value::String(_)) => is(What::Equal(text.clone())),
                ("STARTSWITH", Value::String(text)) => is(What::Prefix(text.clone())),
                _ => Some(Condition::Nothing),
            },
            "STRINGEQUALS" | "STARTSWITH" | "CONTAINS" | "ENDSWITH" | "REGEXMATCH" => {
                let Node::Call { function, .. } = node else { return None };
                let rest = arguments.get(1..)?;
                if !rest.iter().all(Node::is_constant) {
                    return None;
                }
                is(What::Strings(StringTest::Call(function, rest)))
            }
            "ARRAY_CONTAINS" => self.array_contains(first, arguments),
            "ARRAY_CONTAINS_ANY" => self.elements(first, arguments.get(1..)?).map(Condition::Any),
            "ARRAY_CONTAINS_ALL" => self.elements(first, arguments.get(1..)?).map(Condition::All),
            "ST_WITHIN" | "ST_INTERSECTS" | "_ST_WITHIN" | "_ST_INTERSECTS" => self.near(arguments, 0.0),
            _ => None,
        }
    }

    /// `f(path, …) op constant`
    fn call_against<'b>(
        &self,
        op: BinaryOp,
        name: &str,
        arguments: &'b [Node],
        value: &Value,
    ) -> Option<Condition<'b>> {
        use BinaryOp::{Equal, Less, LessOrEqual};
        let constant = |at: usize| arguments.get(at).and_then(Node::constant);
        match (name, op, value) {
            ("ST_DISTANCE" | "_ST_DISTANCE", Less | LessOrEqual, Value::Number(distance)) => {
                self.near(arguments, distance.as_f64())
            }
            ("LEFT", Equal, Value::String(text)) => self.begins(arguments.first()?, text),
            ("SUBSTRING", Equal, Value::String(text)) if constant(1)?.as_i64() == Some(0) => {
                self.begins(arguments.first()?, text)
            }
            _ => None,
        }
    }

    /// What begins with the first characters of a string begins with them.
    fn begins<'b>(&self, node: &'b Node, text: &str) -> Option<Condition<'b>> {
        Some(Condition::Is(Lookup { path: self.path(node)?, what: What::Prefix(text.to_owned()) }))
    }

    fn array_contains<'b>(&self, array: &'b Node, arguments: &'b [Node]) -> Option<Condition<'b>> {
        let wanted = arguments.get(1)?;
        match (array, wanted) {
            // `ARRAY_CONTAINS(["a", "b"], c.tag)`
            (Node::Constant(Value::Array(values)), path) if arguments.len() == 2 => {
                let path = self.path(path)?;
                let is = |value| Condition::Is(Lookup { path: path.clone(), what: equal(value) });
                Some(Condition::Any(values.iter().map(is).collect()))
            }
            (path, Node::Constant(value)) => Some(contains(self.path(path)?, value)),
            _ => None,
        }
    }

    fn elements<'b>(&self, array: &'b Node, wanted: &'b [Node]) -> Option<Vec<Condition<'b>>> {
        let path = self.path(array)?;
        wanted.iter().map(|node| Some(contains(path.clone(), node.constant()?))).collect()
    }

    fn near<'b>(&self, arguments: &'b [Node], distance: f64) -> Option<Condition<'b>> {
        let [first, second] = arguments else { return None };
        let (path, region) = match (first.constant(), second.constant()) {
            (None, Some(region)) => (self.path(first)?, region),
            (Some(region), None) => (self.path(second)?, region),
            _ => return None,
        };
        Some(Condition::Near(Near { path, region, distance }))
    }

    // Full text.

    /// For each term of a call, what a text has in which it occurs; `None` if that cannot be told of one of them.
    pub fn searches<'b>(&self, call: &'b FullText) -> Option<Vec<Condition<'b>>> {
        let (path, language) = (self.path(&call.text)?, call.analyzer.language());
        let Terms::Known(terms) = &call.terms else { return None };
        let word = |word| Condition::Word(Word { path: path.clone(), language, word });
        let term = |term: &'b TextQuery| {
            let words: Vec<Condition<'b>> = term.needed()?.map(word).collect();
            Some(if words.is_empty() { Condition::Nothing } else { Condition::All(words) })
        };
        terms.iter().map(term).collect()
    }

    /// What an aggregate asks of texts, if that is all it asks.
    pub fn tally<'b>(&self, kind: AggregateKind, node: &'b Node) -> Option<Tally<'b>> {
        match (kind, node) {
            (AggregateKind::Count, Node::Constant(_)) => Some(Tally::Items),
            (AggregateKind::Sum, Node::FullText(call)) if call.ask == Ask::Length => {
                Some(Tally::Words { path: self.path(&call.text)?, language: call.analyzer.language() })
            }
            (AggregateKind::CountIf, Node::FullText(call)) if call.ask == Ask::All => {
                let Terms::Known(terms) = &call.terms else { return None };
                let [term] = terms.as_slice() else { return None };
                let (path, language) = (self.path(&call.text)?, call.analyzer.language());
                Some(Tally::Hits(Word { path, language, word: term.keyword()? }))
            }
            _ => None,
        }
    }

    /// Some row of the subquery meets all of its filters, so the item has values that do.
    fn exists<'b>(&self, block: &'b Block) -> Option<Condition<'b>> {
        if !matches!(block.output, crate::block::Output::Rows(_)) {
            return None;
        }
        let mut inner = Paths { slots: self.slots.clone() };
        inner.slots.truncate(block.base);
        if inner.slots.len() != block.base {
            return None;
        }
        block.sources.iter().for_each(|source| inner.bind(source));
        inner.all(block.filters.iter().map(|filter| &filter.node))
    }
}

/// An element that equals the value, or has at least its properties.
fn contains<'b>(mut path: Vec<IndexStep>, value: &Value) -> Condition<'b> {
    path.push(IndexStep::Element);
    let Value::Object(object) = value else { return Condition::Is(Lookup { path, what: equal(value) }) };
    let has = |(name, value): (&str, &Value)| {
        let mut path = path.clone();
        path.push(IndexStep::Property(name.to_owned()));
        Condition::Is(Lookup { path, what: equal(value) })
    };
    let mut all: Vec<Condition<'b>> = object.iter().map(has).collect();
    all.push(Condition::Is(Lookup { path: path.clone(), what: What::Type(Type::Object) }));
    Condition::All(all)
}

fn equal<'b>(value: &Value) -> What<'b> {
    match value {
        Value::Array(_) => What::Type(Type::Array),
        Value::Object(_) => What::Type(Type::Object),
        scalar => What::Equal(scalar.clone()),
    }
}

/// The pattern's beginning without wildcards finds it, or the pattern is tried on every string.
fn like<'b>(text: &str, escape: Option<char>, test: StringTest<'b>) -> What<'b> {
    let mut prefix = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            c if Some(c) == escape => prefix.extend(rest.next().or(escape)),
            // Only a run of `%` at the very end makes the prefix all there is to know; the item is tested anyway.
            '%' | '_' | '[' if prefix.is_empty() => return What::Strings(test),
            '%' | '_' | '[' => return What::Prefix(prefix),
            c => prefix.push(c),
        }
    }
    What::Equal(Value::String(prefix))
}

/// `None`: no bound. `Some(None)`: a bound that nothing is beside (arrays, objects).
fn type_of_bound(bound: &Bound<Value>) -> Option<Option<u8>> {
    let (Bound::Included(value) | Bound::Excluded(value)) = bound else { return None };
    Some(match value {
        Value::Null => Some(0),
        Value::Bool(_) => Some(1),
        Value::Number(_) => Some(2),
        Value::String(_) => Some(3),
        Value::Array(_) | Value::Object(_) => None,
    })
}

fn flipped(op: BinaryOp) -> Option<BinaryOp> {
    use BinaryOp::*;
    Some(match op {
        Equal => Equal,
        NotEqual => NotEqual,
        Less => Greater,
        Greater => Less,
        LessOrEqual => GreaterOrEqual,
        GreaterOrEqual => LessOrEqual,
        _ => return None,
    })
}
