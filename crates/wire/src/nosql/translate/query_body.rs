//! The body of a query: `{"query": "…", "parameters": […], "resumeFilter": {…}}`, or the bare text.
//!
//! Guarantees: no property is ignored. One that this server does not know is an error, because a client that sends it
//! relies on its effect.
//!
//! ```text
//!   resumeFilter    {"value": [170, "a"], "rid": "…", "exclude": false}        one value for each key of ORDER BY
//!   value           null, true, 170, "a"                                       itself
//!                   []                                                         undefined
//!                   {"type": "array", "low": 1, "high": 2}, "type": "object"   an array or object by its hash
//! ```
//!
//! SDKs: JavaScript, Python, Java, Go and Rust send `query` and `parameters`; .NET sends all of them.

use std::borrow::Cow;

use pleiad_engine::{DistinctHash, Parameters, ResumeFilter, SortValue};
use pleiad_model::resource_id::{ContainerRid, ItemRid};
use pleiad_model::{Error, Number, Object, Result, Value};

use crate::nosql::operation::Operation;

pub struct QueryBody {
    pub text: String,
    pub parameters: Parameters,
    resume_filter: Option<Value>,
}

/// Change feeds have no sorted rows to resume.
const CHANGE_FEED_PROPERTIES: &[&str] = &["query", "parameters", "enableQueryOnPreviousImage"];
/// The compatibility level is that of plans which a client falls back to. It does not change a query's rows.
const PROPERTIES: &[&str] = &["query", "parameters", "resumeFilter", "clientQLCompatibilityLevel"];
const RESUME_PROPERTIES: &[&str] = &["value", "rid", "exclude"];
const HASH_PROPERTIES: &[&str] = &["type", "low", "high"];

impl QueryBody {
    pub fn of(operation: &Operation<'_>) -> Result<QueryBody> {
        QueryBody::with_properties(operation, PROPERTIES)
    }

    /// `{"query": "…", "parameters": […], "enableQueryOnPreviousImage": false}`
    pub fn of_change_feed(operation: &Operation<'_>) -> Result<QueryBody> {
        let body = QueryBody::with_properties(operation, CHANGE_FEED_PROPERTIES)?;
        let is_flag = || {
            operation.json()?.get("enableQueryOnPreviousImage").map_or(Ok(false), |flag| {
                flag.as_bool().ok_or_else(|| Error::invalid("enableQueryOnPreviousImage is true or false."))
            })
        };
        if !operation.options.bare_query && is_flag()? {
            return Err(Error::unsupported("A change feed query over previous images"));
        }
        Ok(body)
    }

    fn with_properties(operation: &Operation<'_>, properties: &[&str]) -> Result<QueryBody> {
        if operation.options.bare_query {
            let text = str::from_utf8(&operation.body).map_err(|_| Error::invalid("The query is not UTF-8."))?;
            return Ok(QueryBody { text: text.to_owned(), parameters: Parameters::default(), resume_filter: None });
        }
        let body = operation.json()?;
        if let Some(object) = body.as_object() {
            check_properties("The body of a query", object, properties)?;
        }
        let text = body.get("query").and_then(Value::as_str).or(body.as_str());
        let text =
            text.ok_or_else(|| Error::invalid("The body of a query is {\"query\": \"…\", \"parameters\": […]}."))?;
        Ok(QueryBody {
            text: text.to_owned(),
            parameters: Parameters::from_value(body.get("parameters"))?,
            resume_filter: body.get("resumeFilter").filter(|filter| **filter != Value::Null).cloned(),
        })
    }

    /// The position in the rows of this container at which the query resumes.
    pub fn resume_filter(&self, container: ContainerRid) -> Result<Option<ResumeFilter>> {
        self.resume_filter.as_ref().map(|filter| resume_filter(filter, container)).transpose()
    }

    /// For queries over other resources than items.
    pub fn check_no_resume_filter(&self) -> Result<()> {
        match self.resume_filter {
            Some(_) => Err(Error::invalid("Only a query over items can have a resumeFilter.")),
            None => Ok(()),
        }
    }
}

fn check_properties(what: &str, object: &Object, known: &[&str]) -> Result<()> {
    match object.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => {
            let known = known.join(", ");
            Err(Error::invalid(format!("{what} has the unknown property {name:?}. Its properties are {known}.")))
        }
        None => Ok(()),
    }
}

fn resume_filter(filter: &Value, container: ContainerRid) -> Result<ResumeFilter> {
    let invalid = |what: &str| Error::invalid(format!("The resumeFilter is invalid: {what}."));
    let object = filter.as_object().ok_or_else(|| invalid("it must be an object"))?;
    check_properties("The resumeFilter", object, RESUME_PROPERTIES)?;
    let values = object.get("value").and_then(Value::as_array);
    let values = values.ok_or_else(|| invalid("value must be an array with a value for each key of ORDER BY"))?;
    let values = values.iter().map(resume_value).collect::<Result<_>>()?;
    let docnum = match object.get("rid") {
        None | Some(Value::Null) => None,
        Some(rid) => {
            let rid = rid.as_str().and_then(ItemRid::parse).filter(|rid| rid.container == container);
            Some(rid.ok_or_else(|| invalid("rid must be the _rid of an item of this container"))?.docnum)
        }
    };
    let exclude = match object.get("exclude") {
        None => false,
        Some(exclude) => exclude.as_bool().ok_or_else(|| invalid("exclude must be true or false"))?,
    };
    Ok(ResumeFilter { values, docnum, exclude })
}

fn resume_value(value: &Value) -> Result<SortValue<'static>> {
    match value {
        Value::Array(items) if items.is_empty() => Ok(SortValue::Undefined),
        Value::Array(_) => Err(invalid_hash()),
        Value::Object(hash) => {
            check_properties("A value of the resumeFilter", hash, HASH_PROPERTIES)?;
            let half = |name| hash.get(name).and_then(Value::as_number).and_then(sixty_four_bits);
            let (low, high) = half("low").zip(half("high")).ok_or_else(invalid_hash)?;
            match hash.get("type").and_then(Value::as_str) {
                Some("array") => Ok(SortValue::Array(DistinctHash { low, high })),
                Some("object") => Ok(SortValue::Object(DistinctHash { low, high })),
                _ => Err(invalid_hash()),
            }
        }
        scalar => Ok(SortValue::Scalar(Cow::Owned(scalar.clone()))),
    }
}

/// Clients send the bits as a signed number.
fn sixty_four_bits(number: Number) -> Option<u64> {
    match number {
        Number::Int(n) => Some(n.cast_unsigned()),
        Number::UInt(n) => Some(n),
        Number::Float(_) => None,
    }
}

fn invalid_hash() -> Error {
    Error::invalid(
        "A value of the resumeFilter is a scalar, [] for undefined, or the hash of an array or object: \
         {\"type\": \"array\" or \"object\", \"low\", \"high\"}, both integers of 64 bits.",
    )
}
