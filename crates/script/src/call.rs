//! Script call: the input of one call.
//!
//! Bodies and arguments are JSON text that the caller has validated; invalid JSON leads to nothing worse than a syntax
//! error in the script.

/// One call of one script.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    pub entry: EntryPoint,
    pub collection: Collection,
    /// Whether the output of `console.log` is collected.
    pub is_logging: bool,
}

/// How a script is entered, and its input.
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
    /// Returned by `getMaxResourceQuota` and `getResourceQuotaCurrentUsage`.
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
    /// Passed to the realm, which derives from it whether there is a response and which body can be set.
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
    /// A property of the call that the realm requests by name when a script needs it.
    pub(crate) fn property(&self, name: &str) -> Option<&str> {
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
