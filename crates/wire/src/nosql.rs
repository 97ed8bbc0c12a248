//! Cosmos DB for NoSQL: operations and their replies, and the protocols that carry them. Modules are listed in reading
//! order.

pub mod trusted_proxies; // the peers whose forwarding headers count
pub mod operation; // what a request asks for, whatever protocol carries it
pub mod sdk; // what is known about particular SDKs
pub mod http; // HTTP: decoder, encoder, signatures
pub mod address; // the resource that a path names
mod permissions; // authorization by resource token
mod required_actions; // what a caller must be allowed to do for an operation
pub mod authority; // authorization by key, resource token, or bearer token and roles
pub mod binary_json; // Cosmos binary JSON bodies
pub mod batch; // many operations in one body, and their results
pub mod hybrid_row; // HybridRow records, used by the .NET SDK
mod session; // session tokens as text
pub mod continuation; // signed continuation tokens
pub(crate) mod translate; // operations to engine calls, engine responses to replies
mod query_metrics; // query metrics as text
mod encode; // resources as JSON
pub mod messages; // errors as sentences
pub mod status; // errors as status and substatus codes
pub mod reply; // status, body, metadata

use std::sync::Arc;

use pleiad_engine::{AccountHost, Engine};
use pleiad_model::Consistency;

use crate::account::{AccountAccess, Caller, TokenSigner};
use operation::Operation;
use reply::Handled;
use trusted_proxies::TrustedProxies;

/// The properties that the account reports about itself, and what its settings say about responses.
#[derive(Clone, Debug)]
pub struct Account {
    /// Not `localhost`: one SDK ignores the addresses it receives if the account has this name.
    pub id: String,
    pub region: String,
    /// The default consistency level; a request may ask for a weaker one.
    pub consistency: Consistency,
    /// In the change feed of all versions, a delete has the deleted item.
    pub previous_images: bool,
    /// The address of the account, `https://cosmos.example/`. Without one, clients get the address that they used.
    pub public_endpoint: Option<String>,
    pub trusted_proxies: TrustedProxies,
}

/// The NoSQL API of one account, whatever the protocol.
pub struct NosqlApi {
    pub(crate) account_host: Arc<AccountHost>,
    access: Arc<AccountAccess>,
    pub(crate) account: Account,
}

/// The context of one request. It uses one engine throughout, even if the account is restored meanwhile.
pub struct RequestContext<'f> {
    engine: &'f Engine,
    account: &'f Account,
    access: &'f AccountAccess,
    tokens: &'f Arc<TokenSigner>,
    caller: &'f Caller,
}

impl NosqlApi {
    pub fn new(account_host: Arc<AccountHost>, account: Account, access: Arc<AccountAccess>) -> Self {
        NosqlApi { account_host, access, account }
    }

    /// Executes an operation, on the engine that replaces the current one if the account is restored meanwhile.
    pub async fn execute(&self, operation: &Operation<'_>, caller: &Caller) -> Handled {
        let mut engine = self.account_host.engine();
        loop {
            let handled = self.request_context(&engine, caller).dispatch(operation).await;
            match self.account_host.replacement_for(&engine, is_declined(&handled)).await? {
                None => return handled,
                Some(next) => engine = next,
            }
        }
    }

    fn request_context<'f>(&'f self, engine: &'f Engine, caller: &'f Caller) -> RequestContext<'f> {
        RequestContext { engine, account: &self.account, access: &self.access, tokens: &self.access.tokens, caller }
    }
}

/// Whether the engine declined to execute the request, as opposed to reporting an outcome: after a restore the request
/// then runs on the new engine.
pub(crate) fn is_declined(handled: &Handled) -> bool {
    handled.as_ref().is_err_and(|error| error.failure.is_declined)
}
