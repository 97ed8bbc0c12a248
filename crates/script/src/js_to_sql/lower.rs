//! Lowering: from a JavaScript syntax tree to equivalent SQL, where possible.
//!
//! Guarantees: the result is None unless the SQL is known to be equivalent. SQL has three truth values where JavaScript
//! has two: a comparison with a missing value is undefined. Under AND and OR that makes no difference, because
//! undefined rejects a row as false does; where it would, below a NOT or in a projection, `Sql::OrFalse` makes it
//! false.

use pleiad_model::Value;

use super::js::Js;
use super::sql::{Comparison, Sql};

/// The SQL expression of each parameter of a function.
pub struct LambdaScope {
    names: Vec<(String, Sql)>,
}

/// Every object inherits these properties.
const INHERITED_NAMES: [&str; 13] = [
    "length",
    "constructor",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "__proto__",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

impl LambdaScope {
    /// None if a name occurs twice, or there are more names than values.
    pub fn of(parameters: &[String], values: impl IntoIterator<Item = Sql>) -> Option<LambdaScope> {
        let names: Vec<(String, Sql)> = parameters.iter().cloned().zip(values).collect();
        let is_unique = (1..names.len()).all(|at| names[..at].iter().all(|(name, _)| *name != names[at].0));
        (names.len() == parameters.len() && is_unique).then_some(LambdaScope { names })
    }

    fn get(&self, name: &str) -> Option<&Sql> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn is_undefined(&self, js: &Js) -> bool {
        matches!(js, Js::Name(name) if name == "undefined" && self.get(name).is_none())
    }
}

/// Lowers an expression in a position where only its truth value matters.
pub fn condition(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    match js {
        Js::Binary("&&", left, right) => Some(Sql::And(condition_pair(left, right, scope)?)),
        Js::Binary("||", left, right) => Some(Sql::Or(condition_pair(left, right, scope)?)),
        Js::Bool(flag) => Some(Sql::Literal(Value::Bool(*flag))),
        _ => boolean(js, scope).or_else(|| truthy(js, scope)),
    }
}

fn condition_pair(left: &Js, right: &Js, scope: &LambdaScope) -> Option<Box<(Sql, Sql)>> {
    Some(Box::new((condition(left, scope)?, condition(right, scope)?)))
}

fn truthy(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    let path = path(js, scope)?;
    matches!(path, Sql::Path { .. }).then(|| Sql::Truthy(Box::new(path)))
}

/// Lowers an expression whose value is a boolean in JavaScript, too.
fn boolean(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    match js {
        Js::Not(inner) => Some(condition(inner, scope)?.negated()),
        Js::Binary(operator @ ("===" | "=="), left, right) => equal(operator, left, right, scope),
        Js::Binary("!==", left, right) => Some(equal("===", left, right, scope)?.negated()),
        Js::Binary("!=", left, right) => Some(equal("==", left, right, scope)?.negated()),
        Js::Binary(operator, left, right) => ordering_comparison(Comparison::parse(operator)?, left, right, scope),
        Js::Call(target, method, arguments) => method_test(target, method, arguments, scope),
        _ => None,
    }
}

/// Lowers a row expression, or a part of one.
pub fn projection(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    match js {
        Js::Object(properties) => {
            let lowered = properties.iter().map(|(name, value)| Some((name.clone(), projection(value, scope)?)));
            Some(Sql::Object(lowered.collect::<Option<_>>()?))
        }
        Js::Name(_) | Js::Member(..) | Js::Index(..) => path(js, scope),
        _ => literal(js).map(Sql::Literal).or_else(|| Some(Sql::OrFalse(Box::new(boolean(js, scope)?)))),
    }
}

fn path(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    match js {
        Js::Name(name) => scope.get(name).cloned(),
        Js::Member(target, name) if !INHERITED_NAMES.contains(&name.as_str()) => path(target, scope)?.member(name),
        Js::Index(target, at) => path(target, scope)?.index(*at),
        _ => None,
    }
}

fn literal(js: &Js) -> Option<Value> {
    match js {
        Js::Null => Some(Value::Null),
        Js::Bool(flag) => Some(Value::Bool(*flag)),
        Js::Number(n) => Some(Value::from(*n)),
        Js::Text(text) => Some(Value::from(text.as_str())),
        Js::Minus(inner) => match **inner {
            Js::Number(n) => Some(Value::from(-n)),
            _ => None,
        },
        _ => None,
    }
}

/// Lowers a comparison of a value with a literal. Comparisons of two values are not translated: in JavaScript two
/// objects are equal only if they are identical, and undefined equals undefined.
fn equal(operator: &str, left: &Js, right: &Js, scope: &LambdaScope) -> Option<Sql> {
    let fixed = |js: &Js| literal(js).is_some() || scope.is_undefined(js);
    let (value, fixed) = match (fixed(left), fixed(right)) {
        (false, true) => (left, right),
        (true, false) => (right, left),
        _ => return None,
    };
    if let Js::TypeOf(of) = value {
        return type_is(of, fixed, scope);
    }
    match literal(fixed) {
        None => Some(missing_check(operator, path(value, scope)?)),
        Some(Value::Null) if operator == "==" => Some(missing_check(operator, path(value, scope)?)),
        Some(Value::Null) => Some(Sql::unary_call("IS_NULL", path(value, scope)?)),
        Some(literal) => {
            let value = operand(value, scope)?;
            Some(Sql::compare(Comparison::Equal, value, Sql::Literal(literal)))
        }
    }
}

/// `=== undefined`, and `== null`, which also means undefined.
fn missing_check(operator: &str, value: Sql) -> Sql {
    let is_missing = Sql::unary_call("IS_DEFINED", value.clone()).negated();
    if operator == "===" { is_missing } else { Sql::Or(Box::new((is_missing, Sql::unary_call("IS_NULL", value)))) }
}

fn type_is(of: &Js, name: &Js, scope: &LambdaScope) -> Option<Sql> {
    let Js::Text(name) = name else { return None };
    let value = path(of, scope)?;
    match name.as_str() {
        "undefined" => Some(Sql::unary_call("IS_DEFINED", value).negated()),
        "string" => Some(Sql::unary_call("IS_STRING", value)),
        "number" => Some(Sql::unary_call("IS_NUMBER", value)),
        "boolean" => Some(Sql::unary_call("IS_BOOL", value)),
        _ => None,
    }
}

fn ordering_comparison(comparison: Comparison, left: &Js, right: &Js, scope: &LambdaScope) -> Option<Sql> {
    let (left, right) = (comparable(left, scope)?, comparable(right, scope)?);
    let is_fixed = matches!((&left, &right), (Sql::Literal(_), Sql::Literal(_)));
    (!is_fixed).then(|| Sql::compare(comparison, left, right))
}

/// A number, a string, or a value that may be one.
fn comparable(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    match literal(js) {
        Some(literal @ (Value::Number(_) | Value::String(_))) => Some(Sql::Literal(literal)),
        Some(_) => None,
        None => operand(js, scope),
    }
}

/// An operand of a comparison: a path, arithmetic on one, or its lower or upper case.
fn operand(js: &Js, scope: &LambdaScope) -> Option<Sql> {
    match js {
        Js::Binary(operator, left, right) => arithmetic(operator, left, right, scope),
        Js::Call(target, method, arguments) if arguments.is_empty() => {
            let function = match method.as_str() {
                "toLowerCase" => "LOWER",
                "toUpperCase" => "UPPER",
                _ => return None,
            };
            Some(Sql::unary_call(function, path(target, scope)?))
        }
        _ => path(js, scope).filter(|value| matches!(value, Sql::Path { .. })),
    }
}

/// The right operand must be a number, so that `+` is not a concatenation and no division is by zero.
fn arithmetic(operator: &'static str, left: &Js, right: &Js, scope: &LambdaScope) -> Option<Sql> {
    let Js::Number(n) = right else { return None };
    let is_safe = matches!(operator, "+" | "-" | "*") || matches!(operator, "/" | "%") && *n != 0.0;
    is_safe.then_some(())?;
    let operands = Box::new((operand(left, scope)?, Sql::Literal(Value::from(*n))));
    Some(Sql::Arithmetic(operator, operands))
}

fn method_test(target: &Js, method: &str, arguments: &[Js], scope: &LambdaScope) -> Option<Sql> {
    let [argument] = arguments else { return None };
    let (value, argument) = (path(target, scope)?, literal(argument)?);
    matches!(value, Sql::Path { .. }).then_some(())?;
    match (method, &argument) {
        ("startsWith", Value::String(_)) => Some(Sql::Call("STARTSWITH", vec![value, Sql::Literal(argument)])),
        ("endsWith", Value::String(_)) => Some(Sql::Call("ENDSWITH", vec![value, Sql::Literal(argument)])),
        ("includes", Value::String(_)) => Some(includes(value, argument)),
        _ => None,
    }
}

/// `includes` finds a string in a string or an element in an array: JavaScript has one name for both.
fn includes(value: Sql, argument: Value) -> Sql {
    let with = |function| Sql::Call(function, vec![value.clone(), Sql::Literal(argument.clone())]);
    Sql::Or(Box::new((with("CONTAINS"), with("ARRAY_CONTAINS"))))
}
