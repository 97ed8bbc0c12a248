//! What a script is called with.
//!
//! Promise: facts only. Bodies and arguments are JSON text that the caller has checked; a script that gets text which
//! is no JSON sees a syntax error, nothing worse.

/// One call of one script.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    pub entry: EntryPoint,
    pub collection: Collection,
    /// Whether `console.log` is kept.
    pub is_logging: bool,
}

/// Where a script is entered, and with what.
#[derive(Clone, Debug)]
pub enum EntryPoint {
    Procedure {
        arguments: Vec<String>,
    },
    /// Before an operation; may change the request's body.
    PreTrigger {
        operation: OperationType,
        request_body: Option<String>,
    },
    /// After an operation, in its transaction.
    PostTrigger {
        operation: OperationType,
        request_body: Option<String>,
        response_body: Option<String>,
    },
}

/// The collection a script runs in.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// `dbs/…rid…/colls/…rid…`
    pub self_link: String,
    /// `dbs/shop/colls/orders`
    pub alt_link: String,
    /// What `getMaxResourceQuota` and `getResourceQuotaCurrentUsage` answer with.
    pub quota_max: String,
    pub quota_used: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationType {
    Create,
    Replace,
    Upsert,
    Delete,
}

impl OperationType {
    pub fn name(self) -> &'static str {
        match self {
            OperationType::Create => "Create",
            OperationType::Replace => "Replace",
            OperationType::Upsert => "Upsert",
            OperationType::Delete => "Delete",
        }
    }
}

impl EntryPoint {
    /// The word by which the realm knows what is there: a response, a body that can be set.
    pub(crate) fn mode(&self) -> &'static str {
        match self {
            EntryPoint::Procedure { .. } => "procedure",
            EntryPoint::PreTrigger { .. } => "pre",
            EntryPoint::PostTrigger { .. } => "post",
        }
    }

    pub(crate) fn arguments(&self) -> &[String] {
        match self {
            EntryPoint::Procedure { arguments } => arguments,
            EntryPoint::PreTrigger { .. } | EntryPoint::PostTrigger { .. } => &[],
        }
    }

    fn operation(&self) -> Option<OperationType> {
        match self {
            EntryPoint::Procedure { .. } => None,
            EntryPoint::PreTrigger { operation, .. } | EntryPoint::PostTrigger { operation, .. } => Some(*operation),
        }
    }

    fn request_body(&self) -> Option<&str> {
        match self {
            EntryPoint::Procedure { .. } => None,
            EntryPoint::PreTrigger { request_body, .. } | EntryPoint::PostTrigger { request_body, .. } => {
                request_body.as_deref()
            }
        }
    }

    fn response_body(&self) -> Option<&str> {
        match self {
            EntryPoint::PostTrigger { response_body, .. } => response_body.as_deref(),
            EntryPoint::Procedure { .. } | EntryPoint::PreTrigger { .. } => None,
        }
    }
}

impl ScriptCall {
    /// What the realm asks for by name, when a script does.
    pub(crate) fn fact(&self, name: &str) -> Option<&str> {
        match name {
            "selfLink" => Some(&self.collection.self_link),
            "altLink" => Some(&self.collection.alt_link),
            "maxResourceQuota" => Some(&self.collection.quota_max),
            "resourceQuotaCurrentUsage" => Some(&self.collection.quota_used),
            "operationType" => self.entry.operation().map(OperationType::name),
            "requestBody" => self.entry.request_body(),
            "responseBody" => self.entry.response_body(),
            _ => None,
        }
    }
}
