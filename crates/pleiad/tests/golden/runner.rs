//! Page runner: executes the setup lines and the requests of a page, and saves answers for later requests.
//!
//! Checked for every response: it echoes the activity id, has a request charge, and its body, if any, is JSON; an error
//! has the name of its status in `code` (S87).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Object, Value, json};

use crate::Result;
use crate::client::{Request, Response, authorization, date};
use crate::line::Words;
use crate::masks::Masks;
use crate::page::{Page, Step};
use crate::render;
use crate::world::Server;

/// The newest version that SDKs send.
const VERSION: &str = "2020-07-15";
/// The last version that allows a container without a partition key.
const VERSION_FIXED: &str = "2016-07-11";
const ACTIVITY: &str = "6f0e5a2e-94d0-4bd4-8ad8-3d2a7e1f4c11";
const PAGES_MAX: usize = 200;
const SPLITS_MAX: u32 = 3;
/// Effects of background work must be visible within this time.
const EVENTUALLY_TIMEOUT: Duration = Duration::from_secs(20);
/// Relative paths of the management API for the current container.
const MANAGEMENT_PATHS: [&str; 4] = ["partitions", "keys", "statistics", "throughput"];
/// Feeds below the page's database; other relative paths are below the current container.
const BELOW_DATABASE: [&str; 3] = ["colls", "users", "clientencryptionkeys"];

/// A response with everything that a page can show of it.
pub struct Answer {
    pub response: Response,
    pub body: Option<Value>,
    /// The number of rows of each result page, if continuations were followed.
    pub pages: Vec<usize>,
}

pub struct Runner<'a> {
    pub server: &'a mut Server,
    database: String,
    container: String,
    /// Container definitions, from which `item` extracts the partition key.
    definitions: HashMap<String, ContainerDefinition>,
    saved: HashMap<String, Answer>,
    /// The number of listed items so far, the source of generated ids.
    item_count: u32,
    /// How often each container was split, in the splitting world.
    splits: HashMap<String, u32>,
    pub masks: Masks,
}

/// Runs a page; returns the answers of the steps that state an expected one, rendered in the notation of a page.
pub fn run(page: &Page, server: &mut Server) -> Result<Vec<Vec<String>>> {
    let database = server.next_database();
    let masks = Masks::new(&database, server.client.port);
    let (container, definitions, saved, item_count, splits) = Default::default();
    let mut runner = Runner { server, database, container, definitions, saved, item_count, splits, masks };
    let answers = runner.create_database(page).and_then(|()| runner.steps(page));
    runner.clear()?;
    answers
}

impl Runner<'_> {
    fn steps(&mut self, page: &Page) -> Result<Vec<Vec<String>>> {
        let mut answers = Vec::new();
        for step in &page.steps {
            if self.server.splits && !step.is_setup() {
                self.try_split()?;
            }
            let answer = self.step(step).map_err(|why| format!("line {}: {why}", step.line))?;
            if step.is_answered() {
                answers.push(answer);
            }
        }
        Ok(answers)
    }

    fn step(&mut self, step: &Step) -> Result<Vec<String>> {
        match step.words.first.as_str() {
            "settings" | "database" => Ok(Vec::new()),
            "container" => self.container(&step.words),
            "item" => self.create_numbered_items(&step.words, 1),
            "items" if step.body.is_some() => self.create_listed_items(step),
            "items" => self.create_numbered_items(&step.words, count(&step.words)?),
            "query" => self.query(step),
            "values" => self.values(step),
            "in" => {
                self.container = step.words.rest.first().cloned().ok_or("in which container?")?;
                Ok(Vec::new())
            }
            _ => self.request(step),
        }
    }

    // ---- setup ----------------------------------------------------------------------------------------------

    fn create_database(&mut self, page: &Page) -> Result<()> {
        let line = page.steps.iter().find(|step| step.words.first == "database");
        let headers = line.map_or(Vec::new(), |step| throughput(&step.words));
        let body = format!(r#"{{"id":"{}"}}"#, self.database);
        let (response, _) = self.send("POST", "/dbs", headers, &body)?;
        must_succeed(&response)
    }

    /// `container people   key /dept   version 1   throughput 400   {"defaultTtl":-1}`
    fn container(&mut self, words: &Words) -> Result<Vec<String>> {
        let id = words.rest.first().ok_or("a container needs a name")?;
        let mut definition = Object::new().with("id", id.as_str());
        let mut headers = throughput(words);
        match words.options("key") {
            [] => headers.push(("x-ms-version".to_owned(), VERSION_FIXED.to_owned())),
            paths => definition.set("partitionKey", partition_key(paths, words.option("version"))),
        }
        if let Some(Value::Object(more)) = words.body.as_deref().map(parse).transpose()? {
            more.iter().for_each(|(name, value)| definition.set(name, value.clone()));
        }
        let definition = Value::from(definition);
        let (response, _) =
            self.send("POST", &format!("/dbs/{}/colls", self.database), headers, &json::to_string(&definition))?;
        must_succeed(&response)?;
        let definition = ContainerDefinition::create(&definition).map_err(|e| e.to_string())?;
        self.definitions.insert(id.clone(), definition);
        self.container = id.clone();
        self.item_count = 0;
        Ok(Vec::new())
    }

    /// `item {"id":"1"}`, or `items 100 {"id":"<n>"}` for n from 1 to 100: in the current container, under the key that
    /// they contain.
    fn create_numbered_items(&mut self, words: &Words, count: u32) -> Result<Vec<String>> {
        let written = words.body.as_deref().ok_or("an item is a JSON object")?;
        for n in 1..=count {
            let body = self.expand(&written.replace("<n>", &n.to_string()));
            self.create_item(&body)?;
        }
        Ok(Vec::new())
    }

    /// `items {"pk":"a"}` and a line per item: adds the common members, and a number as id if the item has none.
    fn create_listed_items(&mut self, step: &Step) -> Result<Vec<String>> {
        let common = step.words.body.as_deref().map(parse).transpose()?;
        for line in step.body.as_deref().unwrap_or_default().lines() {
            let Value::Object(own) = parse(&self.expand(line))? else { return Err(format!("`{line}` is no item")) };
            self.item_count += 1;
            let mut item = Object::new();
            if own.get("id").is_none() {
                item.set("id", self.item_count.to_string());
            }
            let common = common.as_ref().and_then(Value::as_object).into_iter().flat_map(|common| common.iter());
            for (name, value) in own.iter().chain(common.filter(|(name, _)| own.get(name).is_none())) {
                item.set(name, value.clone());
            }
            self.create_item(&json::to_string(&item.into()))?;
        }
        Ok(Vec::new())
    }

    fn create_item(&mut self, body: &str) -> Result<()> {
        let item = parse(body)?;
        let key = self.definitions.get(&self.container).and_then(|definition| definition.partition_key.as_ref());
        let key = key.map(|definition| PartitionKey::extract(definition, &item).to_json());
        let headers = key.into_iter().map(|key| ("x-ms-documentdb-partitionkey".to_owned(), key)).collect();
        let path = self.path("docs");
        let (response, _) = self.send("POST", &path, headers, body)?;
        must_succeed(&response)
    }

    /// Deletes all databases, so that the next page starts with an empty account.
    fn clear(&mut self) -> Result<()> {
        let (_, databases) = self.send("GET", "/dbs", Vec::new(), "")?;
        for database in render::rows(databases.as_ref()) {
            let link = database.get("_self").and_then(Value::as_str).ok_or("a database without _self")?;
            let (response, _) = self.send("DELETE", &format!("/{link}"), Vec::new(), "")?;
            must_succeed(&response)?;
        }
        Ok(())
    }

    // ---- requests -------------------------------------------------------------------------------------------

    fn request(&mut self, step: &Step) -> Result<Vec<String>> {
        let words = &step.words;
        let answer = match words.option("eventually") {
            Some(rows) => self.poll(step, rows.parse().map_err(|_| format!("{rows} is no number of rows"))?)?,
            None => self.answer(step)?,
        };
        if !step.is_answered() {
            must_succeed(&answer.response)?;
        }
        let shown = render::answer(words, &answer, &mut self.masks);
        if let Some(name) = words.option("as") {
            self.saved.insert(name.to_owned(), answer);
        }
        Ok(shown)
    }

    /// Repeats the request until it returns this many rows; after a timeout the last response is the answer.
    fn poll(&mut self, step: &Step, rows: usize) -> Result<Answer> {
        let began = Instant::now();
        loop {
            let answer = self.answer(step)?;
            if render::rows(answer.body.as_ref()).len() == rows || began.elapsed() > EVENTUALLY_TIMEOUT {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn answer(&mut self, step: &Step) -> Result<Answer> {
        let words = &step.words;
        let path = self.path(words.rest.first().ok_or("which path?")?);
        let headers = self.headers(step, &path)?;
        let body = self.expand(words.body.as_deref().or(step.body.as_deref()).unwrap_or_default());
        let (response, json) = self.exchange(&words.first, &path, headers.clone(), &body)?;
        let mut answer = Answer { pages: vec![render::rows(json.as_ref()).len()], response, body: json };
        while words.has_flag("pages") && answer.pages.len() < PAGES_MAX {
            let Some(token) = answer.response.header("x-ms-continuation") else { break };
            let next = with(&headers, "x-ms-continuation", token);
            if words.has("split") && answer.pages.len() == 1 {
                self.split()?;
            }
            let (response, json) = self.exchange(&words.first, &path, next, &body)?;
            answer.pages.push(render::rows(json.as_ref()).len());
            answer.body = render::joined(answer.body.take(), json);
            answer.response = response;
        }
        while words.has_flag("changes") && answer.response.status == 200 && answer.pages.len() < PAGES_MAX {
            let position = answer.response.header("etag").ok_or("a change feed without an etag")?;
            let next = with(&headers, "if-none-match", position);
            if words.has("split") && answer.pages.len() == 1 {
                self.split()?;
            }
            let (response, json) = self.exchange(&words.first, &path, next, &body)?;
            answer.pages.push(render::rows(json.as_ref()).len());
            answer.body = if json.is_some() { render::joined(answer.body.take(), json) } else { answer.body };
            answer.response = response;
        }
        Ok(answer)
    }

    fn headers(&self, step: &Step, path: &str) -> Result<Vec<(String, String)>> {
        let words = &step.words;
        let given = step.headers.iter().map(|(name, value)| (name.to_lowercase(), self.expand(value)));
        let mut headers: Vec<(String, String)> = given.collect();
        let key = words.option("key").map(|key| self.expand(key));
        let implied = [
            (key.is_some(), "x-ms-documentdb-partitionkey", key.as_deref().unwrap_or_default()),
            (words.has("upsert"), "x-ms-documentdb-is-upsert", "True"),
            (words.has("query"), "x-ms-documentdb-isquery", "True"),
            (words.has("batch") || words.has("bulk"), "x-ms-cosmos-is-batch-request", "True"),
            (words.has("batch"), "x-ms-cosmos-batch-atomic", "True"),
            (words.has("bulk"), "x-ms-cosmos-batch-continue-on-error", "True"),
            (words.has("query"), "content-type", "application/query+json"),
            (words.body.is_some() || step.body.is_some(), "content-type", "application/json"),
        ];
        for (_, name, value) in implied.iter().filter(|(applies, ..)| *applies) {
            add(&mut headers, name, value);
        }
        for (name, value) in authorization(words.option("signed"), &words.first, path)? {
            add(&mut headers, &name, &value);
        }
        Ok(headers)
    }

    /// `docs` is below the current container, `colls` below the page's database, `/offers` is absolute.
    pub fn path(&self, written: &str) -> String {
        let path = self.expand(written);
        let first = path.split(['/', '?']).next().unwrap_or_default();
        match first {
            "" => path,
            managed if MANAGEMENT_PATHS.contains(&managed) => {
                format!("/_pleiad/v1/containers/{}/{}/{path}", self.database, self.container)
            }
            feed if BELOW_DATABASE.contains(&feed) => format!("/dbs/{}/{path}", self.database),
            _ => format!("/dbs/{}/colls/{}/{path}", self.database, self.container),
        }
    }

    /// Sends a request that is signed with the account's key, as all setup requests are.
    fn send(
        &mut self,
        method: &str,
        path: &str,
        mut headers: Vec<(String, String)>,
        body: &str,
    ) -> Result<(Response, Option<Value>)> {
        headers.extend(authorization(None, method, path)?);
        self.exchange(method, path, headers, body)
    }

    pub fn exchange(
        &mut self,
        method: &str,
        path: &str,
        mut headers: Vec<(String, String)>,
        body: &str,
    ) -> Result<(Response, Option<Value>)> {
        add(&mut headers, "x-ms-version", VERSION);
        add(&mut headers, "x-ms-activity-id", ACTIVITY);
        if let Some((_, date)) = headers.iter().find(|(name, _)| name == "x-ms-date") {
            self.masks.learn_date(date);
        }
        let request = Request { method, path, headers, body: body.as_bytes() };
        let response = self.server.client.send(&request)?;
        let json = match response.body.as_slice() {
            [] => None,
            text => Some(json::parse(text).map_err(|e| format!("the answer is not JSON: {e}"))?),
        };
        check_response(path, &response, json.as_ref())?;
        self.masks.learn(&response, json.as_ref());
        Ok((response, json))
    }

    /// Splits the current container before a request, a few times per container, if it has a partition key. Failed
    /// splits are ignored.
    fn try_split(&mut self) -> Result<()> {
        let is_keyed = |definition: &ContainerDefinition| definition.partition_key.is_some();
        let times = self.splits.entry(self.container.clone()).or_default();
        if *times >= SPLITS_MAX || !self.definitions.get(&self.container).is_some_and(is_keyed) {
            return Ok(());
        }
        *times += 1;
        let path = self.path("partitions/split?wait=true");
        self.send("POST", &path, Vec::new(), "").map(drop)
    }

    /// Splits the largest partition of the current container, and waits for the job.
    pub fn split(&mut self) -> Result<()> {
        let path = self.path("partitions/split?wait=true");
        let (response, _) = self.send("POST", &path, Vec::new(), "")?;
        must_succeed(&response)
    }

    // ---- placeholders in angle brackets ---------------------------------------------------------------------

    /// `<db>`, `<first.etag>` of the answer saved `as first`, `<x*2048>` for 2,048 times x.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('<') {
            out += before;
            match after.split_once('>').and_then(|(inner, after)| Some((self.placeholder(inner)?, after))) {
                Some((value, after)) => {
                    out += &value;
                    rest = after;
                }
                None => {
                    out.push('<');
                    rest = after;
                }
            }
        }
        out + rest
    }

    fn placeholder(&self, inner: &str) -> Option<String> {
        if inner == "db" {
            return Some(self.database.clone());
        }
        if let Some((text, count)) = inner.rsplit_once('*') {
            return Some(text.repeat(count.parse().ok()?));
        }
        if let Some(time) = inner.strip_prefix("date ") {
            let (time, earlier_s) = time.split_once(" - ").unwrap_or((time, "0"));
            let now_s: u64 = self.placeholder(time)?.parse().ok()?;
            return Some(date(now_s.checked_sub(earlier_s.parse().ok()?)?, 0));
        }
        let (name, path) = inner.split_once('.')?;
        self.saved.get(name)?.find(path)
    }
}

impl Answer {
    pub fn header_of(&self, ask: &str) -> Option<&str> {
        let name = match ask {
            "charge" => "x-ms-request-charge",
            "session" => "x-ms-session-token",
            "range" => "x-ms-documentdb-partitionkeyrangeid",
            "continuation" => "x-ms-continuation",
            "minimum" => "x-ms-cosmos-min-throughput",
            "owner" => "x-ms-alt-content-path",
            "position" => "etag",
            name => name,
        };
        self.response.header(name)
    }

    /// A header, or a property: `etag`, `_rid`, `Offers.0._self`.
    fn find(&self, path: &str) -> Option<String> {
        if let Some(value) = self.header_of(path) {
            return Some(value.to_owned());
        }
        let step = |at: &Value, name: &str| match at.as_array() {
            Some(items) => items.get(name.parse::<usize>().ok()?).cloned(),
            None => at.get(name).cloned(),
        };
        let found = path.split('.').try_fold(self.body.clone()?, |at, name| step(&at, name))?;
        Some(found.as_str().map_or_else(|| json::to_string(&found), str::to_owned))
    }
}

fn check_response(path: &str, response: &Response, body: Option<&Value>) -> Result<()> {
    let is_free = path.starts_with("/_pleiad");
    let charge = response.header("x-ms-request-charge").and_then(|charge| charge.parse::<f64>().ok());
    let checks = [
        (response.header("x-ms-activity-id") == Some(ACTIVITY), "does not echo the activity id"),
        (charge.is_some_and(|charge| charge > 0.0 || is_free || response.status == 429), "has no request charge"),
        (body.is_none() || response.header("content-type") == Some("application/json"), "is not marked as JSON"),
        (
            response.status < 400 || response.body.is_empty() || render::is_failure(response.status, body),
            "has no code and message",
        ),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Err(format!("the answer ({}) {what}", response.status)),
        None => Ok(()),
    }
}

fn must_succeed(response: &Response) -> Result<()> {
    if response.status < 300 {
        return Ok(());
    }
    Err(format!("the request must succeed: {} {}", response.status, String::from_utf8_lossy(&response.body)))
}

fn count(words: &Words) -> Result<u32> {
    let count = words.rest.first().ok_or("how many items?")?;
    count.parse().map_err(|e| format!("{count}: {e}"))
}

fn throughput(words: &Words) -> Vec<(String, String)> {
    let manual = words.option("throughput").map(|ru| ("x-ms-offer-throughput".to_owned(), ru.to_owned()));
    let autoscale = words.option("autoscale").map(|max| format!("{{\"maxThroughput\":{max}}}"));
    manual
        .into_iter()
        .chain(autoscale.map(|settings| ("x-ms-cosmos-offer-autopilot-settings".to_owned(), settings)))
        .collect()
}

fn partition_key(paths: &[String], version: Option<&str>) -> Object {
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let version: i64 = if version == Some("1") { 1 } else { 2 };
    let paths: Vec<Value> = paths.iter().map(|path| Value::from(path.as_str())).collect();
    Object::new().with("paths", paths).with("kind", kind).with("version", version)
}

pub fn parse(text: &str) -> Result<Value> {
    json::parse(text.as_bytes()).map_err(|e| format!("{e} in `{text}`"))
}

/// Adds the header unless the page sets it itself.
pub fn add(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    if !headers.iter().any(|(have, _)| have == name) {
        headers.push((name.to_owned(), value.to_owned()));
    }
}

pub fn with(headers: &[(String, String)], name: &str, value: &str) -> Vec<(String, String)> {
    let mut headers: Vec<_> = headers.iter().filter(|(have, _)| have != name).cloned().collect();
    headers.push((name.to_owned(), value.to_owned()));
    headers
}
