//! A container's scripts: stored procedures, triggers and user-defined functions.
//!
//! Invariant: the text is stored and returned unchanged. It is not parsed: whether it is a function turns out when it
//! first runs, as in the service. Each version has one `Program`, so that it is compiled once per thread. A change of
//! a script does not change the version and etag of its container.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pleiad_model::item::{ITEM_BYTES_MAX, check_resource_name};
use pleiad_model::resource_id::{ContainerRid, ScriptKind, ScriptRid};
use pleiad_model::{Error, Fact, Kind, Object, Result, Value};
use pleiad_script::{OperationType, Program};

use super::precondition::{ConditionalRid, PutMode, Versioned};
use super::publish::CatalogChange;
use super::tree::{CatalogVersion, Container};
use super::{Catalog, rows};

#[cfg(test)]
mod tests;

const STORED_PROCEDURES_MAX: usize = 100;
const TRIGGERS_MAX: usize = 25;
const USER_DEFINED_FUNCTIONS_MAX: usize = 50;

/// The limit of an item applies to the text of a script.
const SCRIPT_BYTES_MAX: usize = ITEM_BYTES_MAX;

/// One version of a script.
pub struct Script {
    pub rid: ScriptRid,
    pub version: CatalogVersion,
    pub definition: ScriptDefinition,
    pub(crate) program: Program,
}

/// A script as a client defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptDefinition {
    pub id: String,
    pub body: String,
    /// Set in triggers.
    pub trigger: Option<TriggerDefinition>,
}

/// When a trigger may run. SDKs spell the values differently and expect them back as they sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerDefinition {
    pub when: TriggerType,
    pub operation: TriggerOperation,
    when_text: String,
    operation_text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerType {
    Pre,
    Post,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerOperation {
    All,
    Create,
    Replace,
    Delete,
    Upsert,
    /// Operations that may change an existing item.
    Update,
}

/// The scripts of one container, ordered by kind and creation.
#[derive(Clone, Default)]
pub struct Scripts {
    all: BTreeMap<(ScriptKind, u64), Arc<Script>>,
}

impl Script {
    pub(super) fn new(rid: ScriptRid, version: CatalogVersion, definition: ScriptDefinition) -> Self {
        let program = Program::new(definition.id.as_str(), definition.body.as_str());
        Script { rid, version, definition, program }
    }
}

impl Versioned for Script {
    type Rid = ScriptRid;

    fn rid(&self) -> ScriptRid {
        self.rid
    }

    fn version(&self) -> CatalogVersion {
        self.version
    }
}

impl ScriptDefinition {
    pub fn parse(kind: ScriptKind, value: &Value) -> Result<Self> {
        let id = required(value, "id")?;
        check_resource_name(id)?;
        let body = required(value, "body")?;
        if body.len() > SCRIPT_BYTES_MAX {
            let message = format!("Request size is too large: a script has at most {SCRIPT_BYTES_MAX} bytes.");
            return Err(Error::new(Kind::TooLarge, message));
        }
        let trigger = (kind == ScriptKind::Trigger).then(|| TriggerDefinition::parse(value)).transpose()?;
        Ok(ScriptDefinition { id: id.to_owned(), body: body.to_owned(), trigger })
    }

    pub fn to_object(&self) -> Object {
        let object = Object::new().with("id", self.id.as_str()).with("body", self.body.as_str());
        match &self.trigger {
            None => object,
            Some(trigger) => object
                .with("triggerType", trigger.when_text.as_str())
                .with("triggerOperation", trigger.operation_text.as_str()),
        }
    }
}

impl TriggerDefinition {
    fn parse(value: &Value) -> Result<Self> {
        let (when_text, operation_text) = (required(value, "triggerType")?, required(value, "triggerOperation")?);
        let when = one_of("triggerType", when_text, &[("Pre", TriggerType::Pre), ("Post", TriggerType::Post)])?;
        let operation = one_of("triggerOperation", operation_text, &TriggerOperation::WORDS)?;
        Ok(TriggerDefinition {
            when,
            operation,
            when_text: when_text.to_owned(),
            operation_text: operation_text.to_owned(),
        })
    }
}

impl TriggerOperation {
    const WORDS: [(&str, TriggerOperation); 6] = [
        ("All", TriggerOperation::All),
        ("Create", TriggerOperation::Create),
        ("Replace", TriggerOperation::Replace),
        ("Delete", TriggerOperation::Delete),
        ("Upsert", TriggerOperation::Upsert),
        ("Update", TriggerOperation::Update),
    ];

    pub fn covers(self, operation: OperationType) -> bool {
        match self {
            TriggerOperation::All => true,
            TriggerOperation::Create => operation == OperationType::Create,
            TriggerOperation::Replace => operation == OperationType::Replace,
            TriggerOperation::Delete => operation == OperationType::Delete,
            TriggerOperation::Upsert => operation == OperationType::Upsert,
            TriggerOperation::Update => matches!(operation, OperationType::Replace | OperationType::Upsert),
        }
    }
}

impl Scripts {
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Script>> {
        self.all.values()
    }

    pub fn of(&self, kind: ScriptKind) -> impl Iterator<Item = &Arc<Script>> {
        self.all.range((kind, 0)..=(kind, u64::MAX)).map(|(_, script)| script)
    }

    pub fn named(&self, kind: ScriptKind, id: &str) -> Option<&Arc<Script>> {
        self.of(kind).find(|script| script.definition.id == id)
    }

    pub fn get(&self, rid: ScriptRid) -> Option<&Arc<Script>> {
        self.all.get(&(rid.kind, rid.number)).filter(|script| script.rid == rid)
    }

    pub(super) fn put(&mut self, script: Script) -> Arc<Script> {
        let script = Arc::new(script);
        self.all.insert((script.rid.kind, script.rid.number), script.clone());
        script
    }

    fn check_count(&self, kind: ScriptKind) -> Result<()> {
        let most = count_max(kind);
        if self.of(kind).count() < most {
            return Ok(());
        }
        let message = format!("A container has at most {most} {}.", Plural(kind));
        Err(Error::new(Kind::QuotaExceeded, message))
    }
}

impl Catalog {
    /// Returns the stored version, and true if the script is new.
    pub async fn put_script(
        &self,
        container: ContainerRid,
        kind: ScriptKind,
        definition: ScriptDefinition,
        mode: PutMode<ScriptRid>,
    ) -> Result<(Arc<Script>, bool)> {
        let mut change = self.begin().await;
        let mut scripts = Scripts::clone(&change.container(container)?.scripts);
        let old = mode.resource_to_replace(scripts.named(kind, &definition.id), |rid| scripts.get(rid).cloned())?;
        let number = match &old {
            Some(old) => old.rid.number,
            // A change creates one script at most, so the number of the change is unique and increasing.
            None => {
                scripts.check_count(kind)?;
                change.version.number
            }
        };
        let script = scripts.put(Script::new(ScriptRid { container, kind, number }, change.version, definition));
        rows::put_script(&mut change.batch, &script);
        change.set_scripts(container, scripts)?;
        self.publish(change).await?;
        Ok((script, old.is_none()))
    }

    pub async fn delete_script(&self, target: impl Into<ConditionalRid<ScriptRid>>) -> Result<()> {
        let (target, mut change) = (target.into(), self.begin().await);
        let rid = target.rid;
        let mut scripts = Scripts::clone(&change.container(rid.container)?.scripts);
        let script = scripts.get(rid).cloned().ok_or(Fact::ResourceMissing)?;
        target.check(script.version)?;
        rows::delete_script(&mut change.batch, &script);
        scripts.all.remove(&(rid.kind, rid.number));
        change.set_scripts(rid.container, scripts)?;
        self.publish(change).await
    }
}

impl CatalogChange {
    fn container(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        Ok(self.tree.container_by_rid(rid).cloned().ok_or(Fact::OwnerMissing)?)
    }

    fn set_scripts(&mut self, rid: ContainerRid, scripts: Scripts) -> Result<()> {
        let old = self.container(rid)?;
        let mut owner = self.owner(rid.database)?;
        owner.put_container(Arc::new(Container { scripts: Arc::new(scripts), ..Container::clone(&old) }));
        self.tree.put_database(owner);
        Ok(())
    }
}

fn count_max(kind: ScriptKind) -> usize {
    match kind {
        ScriptKind::StoredProcedure => STORED_PROCEDURES_MAX,
        ScriptKind::Trigger => TRIGGERS_MAX,
        ScriptKind::UserDefinedFunction => USER_DEFINED_FUNCTIONS_MAX,
    }
}

struct Plural(ScriptKind);

impl fmt::Display for Plural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ScriptKind::StoredProcedure => "stored procedures",
            ScriptKind::Trigger => "triggers",
            ScriptKind::UserDefinedFunction => "user-defined functions",
        })
    }
}

fn required<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    let missing = || {
        Error::invalid(format!(
            "The input content is invalid because the required properties - '{name}; ' - are missing"
        ))
    };
    let found = value.get(name).filter(|found| **found != Value::Null).ok_or_else(missing)?;
    found.as_str().ok_or_else(|| Error::invalid(format!("The input content is invalid: '{name}' must be a string.")))
}

/// Parses an enumerated value; case does not matter.
fn one_of<T: Copy>(name: &str, text: &str, words: &[(&str, T)]) -> Result<T> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Error::invalid(format!(
            "The input content is invalid: '{name}' is {text:?}; it must be one of {}.",
            known.join(", ")
        ))
    })
}
