//! Query steps: run a query as clients page through it.
//!
//! Checked for every query: the rows are the same with page sizes of 100, 1 and 2; every result page except the last is
//! full, and only the last has no continuation. The server merges results across partitions. Pages of a client that
//! merges itself may be short or empty.
//!
//! ```text
//! query any order   key ["x"]   +plan          its words
//! @least = 7                                   parameters, if any
//! SELECT VALUE c.id FROM c WHERE c.n >= @least
//! ----
//! plan index /n/? on 1 partition               what a word with a plus requests
//! "b"                                          a row per line
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pleiad_model::{Object, Value, json};

use crate::Result;
use crate::client::{Response, authorization};
use crate::line::Words;
use crate::page::{ARROW, Step};
use crate::render;
use crate::runner::{Runner, add, parse, with};

const PAGE_SIZES: [usize; 3] = [100, 1, 2];
const PAGES_MAX: usize = 300;
/// The query features that the JavaScript SDK announces.
const FEATURES: &str = "NonValueAggregate,Aggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top,\
                        CompositeAggregate,GroupBy,MultipleAggregates,NonStreamingOrderBy,ListAndSetAggregate,CountIf,\
                        HybridSearch,WeightedRankFusion,HybridSearchSkipOrderByRewrite";
/// Replaces a value that depends on the number of partitions, in worlds whose number is not the one that pages assume.
const OMITTED: &str = "…";

type Headers = Vec<(String, String)>;

/// The rows of all pages in the order received, and the first response.
struct Paged {
    rows: Vec<Value>,
    first: Response,
}

enum Outcome {
    Rows(Paged),
    Rejected(Response, Option<Value>),
}

impl Runner<'_> {
    pub fn query(&mut self, step: &Step) -> Result<Vec<String>> {
        let words = &step.words;
        let body = body(&self.expand(step.body.as_deref().unwrap_or_default()))?;
        if words.has("plan") {
            return self.query_plan(step, &body);
        }
        match (words.has("error"), self.first_pass(step, &body)?) {
            (true, Outcome::Rows(_)) => Ok(vec!["no error".to_owned()]),
            (true, Outcome::Rejected(response, body)) => Ok(self.error_lines(&response, body.as_ref())),
            (false, Outcome::Rejected(response, body)) => {
                Ok(vec![format!("refused {}", self.error_lines(&response, body.as_ref()).join(" "))])
            }
            (false, Outcome::Rows(paged)) => {
                self.other_passes(step, &body, &paged.rows)?;
                Ok(self.result_lines(words, &paged))
            }
        }
    }

    /// A table of expressions and their values: one query for all, or one query each if that fails.
    pub fn values(&mut self, step: &Step) -> Result<Vec<String>> {
        let expressions: Vec<&str> = step.body.as_deref().unwrap_or_default().lines().collect();
        let from = match step.words.rest.as_slice() {
            [] => String::new(),
            rest => format!(" {}", rest.join(" ")),
        };
        let all = self.evaluate(step, &expressions, &from)?;
        let values = match all {
            Ok(values) => values,
            Err(_) => {
                let mut each = Vec::new();
                for expression in &expressions {
                    each.extend(self.evaluate(step, &[expression], &from)?.unwrap_or_else(|refusal| vec![refusal]));
                }
                each
            }
        };
        Ok(expressions.iter().zip(values).map(|(expression, value)| format!("{expression}{ARROW}{value}")).collect())
    }

    fn evaluate(&mut self, step: &Step, expressions: &[&str], from: &str) -> Result<Result<Vec<String>>> {
        let boxed: Vec<String> = expressions.iter().map(|expression| format!("{{\"v\":{expression}}}")).collect();
        let body = body(&self.expand(&format!("SELECT VALUE [{}]{from}", boxed.join(","))))?;
        match self.first_pass(step, &body)? {
            Outcome::Rejected(response, body) => Ok(Err(self.error_lines(&response, body.as_ref()).join(" "))),
            Outcome::Rows(paged) => {
                let [Value::Array(values)] = paged.rows.as_slice() else {
                    return Err(format!("{} rows where one should be", paged.rows.len()));
                };
                let shown = |value: &Value| value.get("v").map_or_else(|| "undefined".to_owned(), json::to_string);
                Ok(Ok(values.iter().map(|value| self.masks.mask(&shown(value))).collect()))
            }
        }
    }

    // ---- requests -------------------------------------------------------------------------------------------

    fn first_pass(&mut self, step: &Step, body: &str) -> Result<Outcome> {
        self.pass(step, body, PAGE_SIZES[0])
    }

    fn other_passes(&mut self, step: &Step, body: &str, rows: &[Value]) -> Result<()> {
        for size in &PAGE_SIZES[1..] {
            match self.pass(step, body, *size)? {
                Outcome::Rows(paged) if paged.rows == rows => {}
                // A split between two result pages changes the order of partitions.
                Outcome::Rows(paged) if step.words.has("any") && sorted(&paged.rows) == sorted(rows) => {}
                Outcome::Rows(paged) => {
                    let shown: Vec<String> = paged.rows.iter().map(json::to_string).collect();
                    return Err(format!("by pages of {size} the rows are {}", shown.join(" ")));
                }
                Outcome::Rejected(response, body) => {
                    let why = self.error_lines(&response, body.as_ref()).join(" ");
                    return Err(format!("by pages of {size} it is refused: {why}"));
                }
            }
        }
        Ok(())
    }

    fn pass(&mut self, step: &Step, body: &str, size: usize) -> Result<Outcome> {
        let path = self.path("docs");
        let headers = with(&self.query_headers(step, &path)?, "x-ms-max-item-count", &size.to_string());
        let (first, json) = self.exchange("POST", &path, headers.clone(), body)?;
        if first.status >= 300 {
            return Ok(Outcome::Rejected(first, json));
        }
        let mut rows = render::rows(json.as_ref()).to_vec();
        let mut next = first.header("x-ms-continuation").map(str::to_owned);
        let mut row_count = rows.len();
        let mut pages = 1;
        // A client that merges gets pages of one partition each.
        let may_be_short = step.words.option("across") == Some("client");
        while let Some(token) = next {
            if row_count != size && !may_be_short {
                return Err(format!("page {pages} of {size} rows has {row_count} and another follows"));
            }
            if step.words.has("restart") && pages == 1 {
                self.server.restart()?;
            }
            if step.words.has("split") && pages == 1 {
                self.split()?;
            }
            let (response, json) = self.exchange("POST", &path, with(&headers, "x-ms-continuation", &token), body)?;
            if response.status >= 300 {
                return Ok(Outcome::Rejected(response, json));
            }
            row_count = render::rows(json.as_ref()).len();
            pages += 1;
            if row_count == 0 && !may_be_short || pages > PAGES_MAX {
                return Err(format!("page {pages} of {size} rows is empty, or there is no end of pages"));
            }
            rows.extend_from_slice(render::rows(json.as_ref()));
            next = response.header("x-ms-continuation").map(str::to_owned);
        }
        Ok(Outcome::Rows(Paged { rows, first }))
    }

    fn query_headers(&self, step: &Step, path: &str) -> Result<Headers> {
        let words = &step.words;
        let mut headers: Headers =
            step.headers.iter().map(|(name, value)| (name.to_lowercase(), self.expand(value))).collect();
        let key = words.option("key").map(|key| self.expand(key));
        let across = words.option("across");
        let implied = [
            (true, "x-ms-documentdb-isquery", "True"),
            (true, "content-type", "application/query+json"),
            (key.is_some(), "x-ms-documentdb-partitionkey", key.as_deref().unwrap_or_default()),
            (across.is_none(), "x-pleiad-cross-partition", "true"),
            (across == Some("client"), "x-ms-documentdb-query-enablecrosspartition", "True"),
            (words.has_flag("plan") || words.has_flag("indexes"), "x-ms-cosmos-populateindexmetrics", "true"),
            (words.has_flag("metrics"), "x-ms-documentdb-populatequerymetrics", "true"),
            (words.has_flag("advice"), "x-ms-cosmos-populatequeryadvice", "true"),
        ];
        for (_, name, value) in implied.iter().filter(|(applies, ..)| *applies) {
            add(&mut headers, name, value);
        }
        headers.extend(authorization(None, "POST", path)?);
        Ok(headers)
    }

    fn query_plan(&mut self, step: &Step, body: &str) -> Result<Vec<String>> {
        let path = self.path("docs");
        let mut headers = self.query_headers(step, &path)?;
        add(&mut headers, "x-ms-cosmos-is-query-plan-request", "True");
        add(&mut headers, "x-ms-cosmos-supported-query-features", FEATURES);
        let (response, json) = self.exchange("POST", &path, headers, body)?;
        match json {
            Some(plan) if response.status == 200 => Ok(render::pretty(&without_empty(&plan), &mut self.masks)),
            json => Ok(self.error_lines(&response, json.as_ref())),
        }
    }

    // ---- rendering ------------------------------------------------------------------------------------------

    fn result_lines(&mut self, words: &Words, paged: &Paged) -> Vec<String> {
        let mut lines: Vec<String> =
            words.flags.iter().flat_map(|ask| self.diagnostic_lines(ask, &paged.first)).collect();
        let rows = paged.rows.iter().map(|row| json::to_string(&visible_row(words, row)));
        let mut rows: Vec<String> = rows.collect();
        if words.has("any") {
            rows.sort_unstable();
        }
        lines.extend(rows.iter().map(|row| self.masks.mask(row)));
        if paged.rows.is_empty() {
            lines.push("no rows".to_owned());
        }
        lines
    }

    fn diagnostic_lines(&self, ask: &str, answer: &Response) -> Vec<String> {
        let line = match ask {
            "plan" => answer.header("x-pleiad-query-plan").filter(|plan| !plan.is_empty()).map(str::to_owned),
            "charge" => answer.header("x-ms-request-charge").map(str::to_owned),
            "metrics" => answer.header("x-ms-documentdb-query-metrics").map(counts),
            "indexes" => indexes(answer),
            "advice" => return vec![format!("advice {}", advice(answer))],
            _ => return Vec::new(),
        };
        match line {
            Some(_) if !self.server.shows_plans => vec![format!("{ask} {OMITTED}")],
            line => vec![format!("{ask} {}", line.as_deref().unwrap_or("none"))],
        }
    }

    /// Status, then a line per diagnostic: `SC1001 9-13 Syntax error, …`; and the SDK plan, if the client has to merge.
    fn error_lines(&mut self, response: &Response, body: Option<&Value>) -> Vec<String> {
        let status = match response.header("x-ms-substatus") {
            Some(substatus) => format!("{}/{substatus}", response.status),
            None => response.status.to_string(),
        };
        let Some(body) = body else { return vec![status] };
        let mut lines = vec![status];
        lines.extend(diagnostics(render::message(body)).into_iter().map(|line| self.masks.mask(&line)));
        if let Some(plan) = body.get("additionalErrorInfo").and_then(Value::as_str).and_then(|text| parse(text).ok()) {
            lines.extend(render::pretty(&without_empty(&plan), &mut self.masks));
        }
        lines
    }
}

/// Whether a world that does not show plans has replaced the value of this line.
pub fn is_omitted(line: &str, wanted: &str) -> bool {
    line.strip_suffix(OMITTED).is_some_and(|ask| wanted.starts_with(ask))
}

/// `@name = value` lines, then the query text.
fn body(written: &str) -> Result<String> {
    let mut parameters = Vec::new();
    let mut text = written;
    while text.starts_with('@') {
        let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (name, value) = line.split_once(" = ").ok_or_else(|| format!("`{line}` gives no parameter a value"))?;
        parameters.push(Value::from(Object::new().with("name", name).with("value", parse(value)?)));
        text = rest;
    }
    let mut body = Object::new().with("query", text);
    if !parameters.is_empty() {
        body.set("parameters", parameters);
    }
    Ok(json::to_string(&body.into()))
}

/// Items without their system properties, also where they are nested in a row.
fn visible_row(words: &Words, row: &Value) -> Value {
    match row {
        Value::Object(object) if object.get("_self").is_none() => {
            let members = object.iter().map(|(name, value)| (name, visible_row(words, value)));
            members.fold(Object::new(), |tidied, (name, value)| tidied.with(name, value)).into()
        }
        row => render::visible(words, row),
    }
}

/// A plan without its empty members.
fn without_empty(plan: &Value) -> Value {
    let Value::Object(object) = plan else { return plan.clone() };
    let mut result = Object::new();
    for (name, value) in object.iter().filter(|(_, value)| !is_empty(value)) {
        result.set(name, if name == "queryInfo" { self::without_empty(value) } else { value.clone() });
    }
    result.into()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        value => matches!(value.as_str(), Some("" | "None")),
    }
}

fn diagnostics(message: &str) -> Vec<String> {
    let errors = parse(message).ok().and_then(|body| Some(body.get("errors")?.as_array()?.to_vec()));
    let Some(errors) = errors else { return message.lines().map(str::to_owned).collect() };
    let diagnostic = |error: &Value| {
        let at = |end: &str| error.get("location").and_then(|at| at.get(end)).map_or_else(String::new, json::to_string);
        let text = |name: &str| match error.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(code) => json::to_string(code),
            None => "-".to_owned(),
        };
        let line = Some(at("line")).filter(|line| line != "1" && !line.is_empty());
        let below = line.map_or_else(String::new, |line| format!(" (line {line}, column {})", at("column")));
        format!("{} {}-{}{below} {}", text("code"), at("start"), at("end"), text("message"))
    };
    errors.iter().map(diagnostic).collect()
}

/// `retrieved 7 output 3`
fn counts(metrics: &str) -> String {
    let count = |wanted: &str| {
        metrics
            .split(';')
            .filter_map(|pair| pair.split_once('='))
            .find(|(name, _)| *name == wanted)
            .map_or("?", |pair| pair.1)
    };
    format!("retrieved {} output {}", count("retrievedDocumentCount"), count("outputDocumentCount"))
}

/// `QA1002 PL1000(@min)`, or `none`
fn advice(answer: &Response) -> String {
    let Some(header) = answer.header("x-ms-cosmos-query-advice") else { return "none".to_owned() };
    let decoded = percent_encoding::percent_decode_str(header).decode_utf8_lossy();
    let rule = |entry: &Value| {
        let id = entry.get("Id").and_then(Value::as_str).unwrap_or("?");
        let parameters = entry.get("Params").and_then(Value::as_array).unwrap_or_default();
        let parameters: Vec<&str> = parameters.iter().filter_map(Value::as_str).collect();
        if parameters.is_empty() { id.to_owned() } else { format!("{id}({})", parameters.join(", ")) }
    };
    match parse(&decoded) {
        Ok(Value::Array(entries)) => entries.iter().map(rule).collect::<Vec<_>>().join(" "),
        _ => format!("not a list: {header}"),
    }
}

/// `utilized /price/? high precise; potential (/a ASC, /b ASC) high precise`, or `none`
fn indexes(answer: &Response) -> Option<String> {
    let decoded = STANDARD.decode(answer.header("x-ms-cosmos-index-utilization")?).ok()?;
    let utilization = json::parse(&decoded).ok()?;
    let kinds =
        ["UtilizedSingleIndexes", "UtilizedCompositeIndexes", "PotentialSingleIndexes", "PotentialCompositeIndexes"];
    let of_kind = |kind: &&str| {
        let name = if kind.starts_with("Utilized") { "utilized" } else { "potential" };
        let list = utilization.get(kind).and_then(Value::as_array).unwrap_or_default();
        list.iter().map(|index| format!("{name} {}", described(index))).collect::<Vec<_>>()
    };
    let lines: Vec<String> = kinds.iter().flat_map(of_kind).collect();
    Some(if lines.is_empty() { "none".to_owned() } else { lines.join("; ") })
}

fn described(index: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = match index.get("IndexSpecs").and_then(Value::as_array) {
        Some(specs) => format!("({})", specs.iter().map(text).collect::<Vec<_>>().join(", ")),
        None => index.get("IndexSpec").map(text).unwrap_or_default(),
    };
    let impact = index.get("IndexImpactScore").map(text).unwrap_or_default().to_lowercase();
    let precise = if index.get("FilterPreciseSet") == Some(&Value::Bool(true)) { " precise" } else { "" };
    format!("{spec} {impact}{precise}")
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(json::to_string).collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_precede_the_text() {
        let sent = body("@a = 1\n@b = \"x = y\"\nSELECT @a\nFROM c").unwrap();
        let wanted =
            r#"{"query":"SELECT @a\nFROM c","parameters":[{"name":"@a","value":1},{"name":"@b","value":"x = y"}]}"#;
        assert_eq!(sent, wanted);
    }

    #[test]
    fn diagnostics_have_code_and_position() {
        let message =
            r#"{"errors":[{"severity":"Error","location":{"start":9,"end":13},"code":"SC1001","message":"No."}]}"#;
        assert_eq!(diagnostics(message), ["SC1001 9-13 No."]);
        assert_eq!(diagnostics(&message.replace("\"SC1001\"", "2206")), ["2206 9-13 No."]);
        assert_eq!(diagnostics("plain"), ["plain"]);
    }
}
