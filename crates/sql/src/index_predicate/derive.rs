//! Derives index predicates: from an expression, the predicate on paths that its truth implies.

use std::ops::Bound;

use pleiad_model::Value;
use pleiad_model::policy::PathStep as IndexStep;
use pleiad_text::TextQuery;

use super::{
    IndexPredicate, PathPredicate, SpatialPredicate, StringTest, TermPredicate, TextAggregate, ValuePredicate,
    ValueType,
};
use crate::block::{AccessStep, Block, LikeOperand, RowSource, RowSourceKind, ScalarExpr};
use crate::expr::aggregate::AggregateKind;
use crate::expr::full_text::{FullText, FullTextFunction, SearchTerms};
use crate::parse::ast::{BinaryOp, SubqueryForm, UnaryOp};

/// The path in the item of each slot; `None` for slots with a computed value.
pub struct Paths {
    slots: Vec<Option<Vec<IndexStep>>>,
}

impl Paths {
    pub fn of(block: &Block) -> Self {
        let mut paths = Paths { slots: vec![Some(Vec::new())] };
        block.sources.iter().for_each(|source| paths.bind(source));
        paths
    }

    fn bind(&mut self, source: &RowSource) {
        let source_path = match &source.kind {
            RowSourceKind::Scalar(node) => self.path(node),
            RowSourceKind::Rows(_) => None,
        };
        self.slots.push(source_path.map(|mut path| {
            if source.unnest {
                path.push(IndexStep::Element);
            }
            path
        }));
    }

    /// The path of a value that is read from the item unchanged.
    pub fn path(&self, node: &ScalarExpr) -> Option<Vec<IndexStep>> {
        match node {
            ScalarExpr::Slot(slot) => self.slots.get(*slot)?.clone(),
            ScalarExpr::Path { slot, steps } => {
                let mut path = self.slots.get(*slot)?.clone()?;
                path.extend(steps.iter().map(|step| IndexStep::Property(step.text.clone())));
                Some(path)
            }
            ScalarExpr::Access { base, steps } => {
                let path = self.path(base)?;
                steps.iter().try_fold(path, |mut path, step| {
                    path.push(match step {
                        AccessStep::Property(name) => IndexStep::Property(name.text.clone()),
                        AccessStep::Index(ScalarExpr::Constant(Value::Number(_))) => IndexStep::Element,
                        AccessStep::Index(_) => return None,
                    });
                    Some(path)
                })
            }
            _ => None,
        }
    }

    /// The conjunction of the nodes. Nodes without an index predicate are left out.
    pub fn conjunction<'b>(&self, nodes: impl Iterator<Item = &'b ScalarExpr>) -> Option<IndexPredicate<'b>> {
        let mut predicates: Vec<IndexPredicate<'b>> = nodes.filter_map(|node| self.predicate(node)).collect();
        match predicates.len() {
            0 => None,
            1 => predicates.pop(),
            _ => Some(IndexPredicate::And(predicates)),
        }
    }

    fn disjunction<'b>(&self, nodes: impl Iterator<Item = &'b ScalarExpr>) -> Option<IndexPredicate<'b>> {
        nodes.map(|node| self.predicate(node)).collect::<Option<Vec<_>>>().map(IndexPredicate::Or)
    }

    /// The comparisons and calls in an expression that an index can evaluate.
    pub fn collect_projected<'b>(&self, node: &'b ScalarExpr, found: &mut Vec<IndexPredicate<'b>>) {
        let predicate = match node {
            ScalarExpr::Binary { .. }
            | ScalarExpr::In { .. }
            | ScalarExpr::Between { .. }
            | ScalarExpr::Like { .. }
            | ScalarExpr::Call { .. } => self.predicate(node),
            _ => None,
        };
        match predicate {
            Some(predicate) => found.push(predicate),
            None => node.each_child(&mut |child| self.collect_projected(child, found)),
        }
    }

    fn predicate<'b>(&self, node: &'b ScalarExpr) -> Option<IndexPredicate<'b>> {
        match node {
            ScalarExpr::Constant(Value::Bool(true)) => None,
            ScalarExpr::Constant(_) | ScalarExpr::Undefined => Some(IndexPredicate::Never),
            ScalarExpr::And(nodes) => self.conjunction(nodes.iter()),
            ScalarExpr::Or(nodes) => self.disjunction(nodes.iter()),
            ScalarExpr::Slot(_) | ScalarExpr::Path { .. } | ScalarExpr::Access { .. } => {
                self.equal(node, &Value::Bool(true))
            }
            ScalarExpr::Unary { op: UnaryOp::Not, operand } => match operand.as_ref() {
                ScalarExpr::Slot(_) | ScalarExpr::Path { .. } | ScalarExpr::Access { .. } => {
                    self.equal(operand, &Value::Bool(false))
                }
                _ => None,
            },
            ScalarExpr::Binary { first, rest } => match rest.as_slice() {
                [(op, second)] => self.compare(*op, first, second),
                _ => None,
            },
            ScalarExpr::In { not: false, operand, list } => self.is_in(operand, list),
            ScalarExpr::Between { not: false, operand, low, high } => {
                let range = (Bound::Included(low.constant()?.clone()), Bound::Included(high.constant()?.clone()));
                self.range(operand, range.0, range.1)
            }
            ScalarExpr::Like { not: false, operand, pattern: LikeOperand::Known { text, escape, pattern } } => {
                let value = like(text, *escape, StringTest::Like(pattern));
                Some(IndexPredicate::Path(PathPredicate { path: self.path(operand)?, value }))
            }
            ScalarExpr::Call { function, arguments } => self.call(function.name, node, arguments),
            ScalarExpr::FullText(call) => match call.function {
                FullTextFunction::All => self.term_predicates(call).map(IndexPredicate::And),
                FullTextFunction::Any => self.term_predicates(call).map(IndexPredicate::Or),
                FullTextFunction::Length | FullTextFunction::Score(_) => None,
            },
            ScalarExpr::Subquery { form: SubqueryForm::Exists, block } => self.exists(block),
            _ => None,
        }
    }

    // Comparisons.

    fn compare<'b>(&self, op: BinaryOp, first: &'b ScalarExpr, second: &'b ScalarExpr) -> Option<IndexPredicate<'b>> {
        match (first.is_constant(), second.is_constant()) {
            (false, true) => self.compare_constant(op, first, second),
            (true, false) => self.compare_constant(flipped(op)?, second, first),
            _ => None,
        }
    }

    fn compare_constant<'b>(
        &self,
        op: BinaryOp,
        node: &'b ScalarExpr,
        constant: &'b ScalarExpr,
    ) -> Option<IndexPredicate<'b>> {
        // A comparison with undefined is never true.
        let Some(value) = constant.constant() else { return op.is_comparison().then_some(IndexPredicate::Never) };
        if let ScalarExpr::Call { function, arguments } = node {
            return self.compare_call(op, function.name, arguments, value);
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

    fn equal<'b>(&self, node: &'b ScalarExpr, value: &Value) -> Option<IndexPredicate<'b>> {
        let path = self.path(node)?;
        Some(IndexPredicate::Path(PathPredicate { path, value: equal(value) }))
    }

    /// Values compare only within one type: bounds of different types match nothing.
    fn range<'b>(&self, node: &'b ScalarExpr, low: Bound<Value>, high: Bound<Value>) -> Option<IndexPredicate<'b>> {
        let path = self.path(node)?;
        let types = [type_of_bound(&low), type_of_bound(&high)];
        match types {
            [Some(None), _] | [_, Some(None)] => Some(IndexPredicate::Never),
            [Some(Some(a)), Some(Some(b))] if a != b => Some(IndexPredicate::Never),
            _ => Some(IndexPredicate::Path(PathPredicate { path, value: ValuePredicate::Range(low, high) })),
        }
    }

    fn is_in<'b>(&self, operand: &'b ScalarExpr, list: &'b [ScalarExpr]) -> Option<IndexPredicate<'b>> {
        let path = self.path(operand)?;
        let mut any = Vec::with_capacity(list.len());
        for entry in list {
            match entry {
                ScalarExpr::Constant(value) => {
                    any.push(IndexPredicate::Path(PathPredicate { path: path.clone(), value: equal(value) }))
                }
                ScalarExpr::Undefined => {}
                _ => return None,
            }
        }
        Some(IndexPredicate::Or(any))
    }

    // Functions.

    fn call<'b>(&self, name: &str, node: &'b ScalarExpr, arguments: &'b [ScalarExpr]) -> Option<IndexPredicate<'b>> {
        let first = arguments.first()?;
        let constant = |at: usize| arguments.get(at).and_then(ScalarExpr::constant);
        let is = |value| Some(IndexPredicate::Path(PathPredicate { path: self.path(first)?, value }));
        let ignores_case = arguments.len() > 2 && constant(2) != Some(&Value::Bool(false));
        match name {
            "IS_DEFINED" => is(ValuePredicate::Defined),
            "IS_NULL" => is(ValuePredicate::Equal(Value::Null)),
            "IS_BOOL" | "IS_BOOLEAN" => is(ValuePredicate::Type(ValueType::Bool)),
            "IS_NUMBER" | "IS_FINITE_NUMBER" | "IS_INTEGER" => is(ValuePredicate::Type(ValueType::Number)),
            "IS_STRING" => is(ValuePredicate::Type(ValueType::String)),
            "IS_ARRAY" => is(ValuePredicate::Type(ValueType::Array)),
            "IS_OBJECT" => is(ValuePredicate::Type(ValueType::Object)),
            "STRINGEQUALS" | "STARTSWITH" if !ignores_case => match (name, constant(1)?) {
                ("STRINGEQUALS", text @ Value::String(_)) => is(ValuePredicate::Equal(text.clone())),
                ("STARTSWITH", Value::String(text)) => is(ValuePredicate::Prefix(text.clone())),
                _ => Some(IndexPredicate::Never),
            },
            "STRINGEQUALS" | "STARTSWITH" | "CONTAINS" | "ENDSWITH" | "REGEXMATCH" => {
                let ScalarExpr::Call { function, .. } = node else { return None };
                let rest = arguments.get(1..)?;
                if !rest.iter().all(ScalarExpr::is_constant) {
                    return None;
                }
                is(ValuePredicate::Strings(StringTest::Call(function, rest)))
            }
            "ARRAY_CONTAINS" => self.array_contains(first, arguments),
            "ARRAY_CONTAINS_ANY" => self.contains_elements(first, arguments.get(1..)?).map(IndexPredicate::Or),
            "ARRAY_CONTAINS_ALL" => self.contains_elements(first, arguments.get(1..)?).map(IndexPredicate::And),
            "ST_WITHIN" | "ST_INTERSECTS" | "_ST_WITHIN" | "_ST_INTERSECTS" => self.spatial(arguments, 0.0),
            _ => None,
        }
    }

    /// `f(path, …) op constant`
    fn compare_call<'b>(
        &self,
        op: BinaryOp,
        name: &str,
        arguments: &'b [ScalarExpr],
        value: &Value,
    ) -> Option<IndexPredicate<'b>> {
        use BinaryOp::{Equal, Less, LessOrEqual};
        let constant = |at: usize| arguments.get(at).and_then(ScalarExpr::constant);
        match (name, op, value) {
            ("ST_DISTANCE" | "_ST_DISTANCE", Less | LessOrEqual, Value::Number(distance)) => {
                self.spatial(arguments, distance.as_f64())
            }
            ("LEFT", Equal, Value::String(text)) => self.has_prefix(arguments.first()?, text),
            ("SUBSTRING", Equal, Value::String(text)) if constant(1)?.as_i64() == Some(0) => {
                self.has_prefix(arguments.first()?, text)
            }
            _ => None,
        }
    }

    /// A string whose first characters equal `text` has the prefix `text`.
    fn has_prefix<'b>(&self, node: &'b ScalarExpr, text: &str) -> Option<IndexPredicate<'b>> {
        Some(IndexPredicate::Path(PathPredicate {
            path: self.path(node)?,
            value: ValuePredicate::Prefix(text.to_owned()),
        }))
    }

    fn array_contains<'b>(&self, array: &'b ScalarExpr, arguments: &'b [ScalarExpr]) -> Option<IndexPredicate<'b>> {
        let wanted = arguments.get(1)?;
        match (array, wanted) {
            // `ARRAY_CONTAINS(["a", "b"], c.tag)`
            (ScalarExpr::Constant(Value::Array(values)), path) if arguments.len() == 2 => {
                let path = self.path(path)?;
                let is = |value| IndexPredicate::Path(PathPredicate { path: path.clone(), value: equal(value) });
                Some(IndexPredicate::Or(values.iter().map(is).collect()))
            }
            (path, ScalarExpr::Constant(value)) => Some(contains(self.path(path)?, value)),
            _ => None,
        }
    }

    fn contains_elements<'b>(
        &self,
        array: &'b ScalarExpr,
        wanted: &'b [ScalarExpr],
    ) -> Option<Vec<IndexPredicate<'b>>> {
        let path = self.path(array)?;
        wanted.iter().map(|node| Some(contains(path.clone(), node.constant()?))).collect()
    }

    fn spatial<'b>(&self, arguments: &'b [ScalarExpr], distance: f64) -> Option<IndexPredicate<'b>> {
        let [first, second] = arguments else { return None };
        let (path, region) = match (first.constant(), second.constant()) {
            (None, Some(region)) => (self.path(first)?, region),
            (Some(region), None) => (self.path(second)?, region),
            _ => return None,
        };
        Some(IndexPredicate::Spatial(SpatialPredicate { path, region, distance }))
    }

    // Full text.

    /// Per term of a call, the words that a text must contain for a match; `None` if this is not known for one of the
    /// terms.
    pub fn term_predicates<'b>(&self, call: &'b FullText) -> Option<Vec<IndexPredicate<'b>>> {
        let (path, language) = (self.path(&call.text)?, call.analyzer.language());
        let SearchTerms::Known(terms) = &call.terms else { return None };
        let word = |word| IndexPredicate::Term(TermPredicate { path: path.clone(), language, word });
        let term = |term: &'b TextQuery| {
            let words: Vec<IndexPredicate<'b>> = term.required_words()?.map(word).collect();
            Some(if words.is_empty() { IndexPredicate::Never } else { IndexPredicate::And(words) })
        };
        terms.iter().map(term).collect()
    }

    /// The text aggregate, if full-text statistics can answer this aggregate.
    pub fn text_aggregate<'b>(&self, kind: AggregateKind, node: &'b ScalarExpr) -> Option<TextAggregate<'b>> {
        match (kind, node) {
            (AggregateKind::Count, ScalarExpr::Constant(_)) => Some(TextAggregate::Items),
            (AggregateKind::Sum, ScalarExpr::FullText(call)) if call.function == FullTextFunction::Length => {
                Some(TextAggregate::Words { path: self.path(&call.text)?, language: call.analyzer.language() })
            }
            (AggregateKind::CountIf, ScalarExpr::FullText(call)) if call.function == FullTextFunction::All => {
                let SearchTerms::Known(terms) = &call.terms else { return None };
                let [term] = terms.as_slice() else { return None };
                let (path, language) = (self.path(&call.text)?, call.analyzer.language());
                Some(TextAggregate::Hits(TermPredicate { path, language, word: term.keyword()? }))
            }
            _ => None,
        }
    }

    /// `EXISTS` is true if some row of the subquery passes all its filters, so the item has values that satisfy them.
    fn exists<'b>(&self, block: &'b Block) -> Option<IndexPredicate<'b>> {
        if !matches!(block.output, crate::block::Output::Rows(_)) {
            return None;
        }
        let mut inner = Paths { slots: self.slots.clone() };
        inner.slots.truncate(block.base);
        if inner.slots.len() != block.base {
            return None;
        }
        block.sources.iter().for_each(|source| inner.bind(source));
        inner.conjunction(block.filters.iter().map(|filter| &filter.node))
    }
}

/// Some element equals the value or, for objects, has at least its properties.
fn contains<'b>(mut path: Vec<IndexStep>, value: &Value) -> IndexPredicate<'b> {
    path.push(IndexStep::Element);
    let Value::Object(object) = value else { return IndexPredicate::Path(PathPredicate { path, value: equal(value) }) };
    let has = |(name, value): (&str, &Value)| {
        let mut path = path.clone();
        path.push(IndexStep::Property(name.to_owned()));
        IndexPredicate::Path(PathPredicate { path, value: equal(value) })
    };
    let mut all: Vec<IndexPredicate<'b>> = object.iter().map(has).collect();
    all.push(IndexPredicate::Path(PathPredicate {
        path: path.clone(),
        value: ValuePredicate::Type(ValueType::Object),
    }));
    IndexPredicate::And(all)
}

fn equal<'b>(value: &Value) -> ValuePredicate<'b> {
    match value {
        Value::Array(_) => ValuePredicate::Type(ValueType::Array),
        Value::Object(_) => ValuePredicate::Type(ValueType::Object),
        scalar => ValuePredicate::Equal(scalar.clone()),
    }
}

/// The pattern's prefix before its first wildcard limits the range; without such a prefix the pattern is tested on
/// every indexed string.
fn like<'b>(text: &str, escape: Option<char>, test: StringTest<'b>) -> ValuePredicate<'b> {
    let mut prefix = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            c if Some(c) == escape => prefix.extend(rest.next().or(escape)),
            // The prefix is exact only if all that follows is `%`; the filter is evaluated on the item anyway.
            '%' | '_' | '[' if prefix.is_empty() => return ValuePredicate::Strings(test),
            '%' | '_' | '[' => return ValuePredicate::Prefix(prefix),
            c => prefix.push(c),
        }
    }
    ValuePredicate::Equal(Value::String(prefix))
}

/// `None`: unbounded. `Some(None)`: a bound without an order (arrays, objects).
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
