//! Cosmos DB for NoSQL: operations and their replies, and the protocols that carry them. Modules are listed in reading
//! order.

pub mod operation; // what a request asks for, whatever protocol carries it
pub mod sdk; // what is known about particular SDKs
pub mod http; // HTTP: decoder, encoder, signatures
pub mod address; // the resource that a path names
mod permissions; // authorization by resource token
mod required_access; // the data actions that an operation needs
mod role_access; // authorization by bearer token and roles
pub mod binary_json; // Cosmos binary JSON bodies
pub mod batch; // many operations in one body, and their results
pub mod hybrid_row; // HybridRow records, used by the .NET SDK
mod session; // session tokens as text
pub mod continuation; // signed continuation tokens
pub(crate) mod translate; // operations to engine calls, engine responses to replies
mod query_metrics; // query metrics as text
mod encode; // resources as JSON
pub mod status; // errors as status and substatus codes
pub mod reply; // status, body, metadata

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

use ::http::HeaderValue;
use bytes::Bytes;
use pleiad_engine::{AccountHost, Engine};
use pleiad_model::Consistency;
use pleiad_model::env::OffsetEnv;

use crate::account::{AccountAccess, Caller, TokenSigner};
use crate::metrics::Metrics;
use operation::Operation;
use reply::Handled;
use status::Status;

/// The properties that the account reports about itself.
#[derive(Clone, Debug)]
pub struct Account {
    /// Not `localhost`: one SDK ignores the addresses it receives if the account has this name.
    pub id: String,
    pub region: String,
    /// The default consistency level; a request may ask for a weaker one.
    pub consistency: Consistency,
}

/// The NoSQL API of one account, whatever the protocol.
pub struct NosqlApi {
    account_host: Arc<AccountHost>,
    access: Arc<AccountAccess>,
    account: Account,
}

/// The HTTP front end of one account.
pub struct Frontend {
    api: NosqlApi,
    /// The clock that tests may advance; `None` if test controls are disabled.
    clock: Option<Arc<OffsetEnv>>,
    metrics: Arc<Metrics>,
    /// The certificate of the authority that signed the server's certificate, for clients to download.
    certificate: Option<Bytes>,
    body_bytes_max: usize,
    /// Reject requests that arrive in clear text.
    https_only: bool,
    activity_seed: u64,
    activity_count: AtomicU64,
    /// When the server started, as an HTTP date.
    started: HeaderValue,
    next_transport_request_id: AtomicU64,
}

/// The context of one request. It uses one engine throughout, even if the account is restored meanwhile.
pub struct RequestContext<'f> {
    engine: &'f Engine,
    account: &'f Account,
    access: &'f AccountAccess,
    tokens: &'f Arc<TokenSigner>,
}

impl NosqlApi {
    pub fn new(account_host: Arc<AccountHost>, account: Account, access: Arc<AccountAccess>) -> Self {
        NosqlApi { account_host, access, account }
    }

    /// Executes an operation, on the engine that replaces the current one if the account is restored meanwhile.
    pub async fn execute(&self, operation: &Operation<'_>, caller: &Caller) -> Handled {
        let mut engine = self.account_host.engine();
        loop {
            let handled = self.request_context(&engine).dispatch(operation, caller).await;
            match self.account_host.replacement_for(&engine, is_unavailable(&handled)).await? {
                None => return handled,
                Some(next) => engine = next,
            }
        }
    }

    fn request_context<'f>(&'f self, engine: &'f Engine) -> RequestContext<'f> {
        RequestContext { engine, account: &self.account, access: &self.access, tokens: &self.access.tokens }
    }
}

/// Whether the engine declined to execute the request, as opposed to reporting an outcome: after a restore the request
/// then runs on the new engine.
fn is_unavailable(handled: &Handled) -> bool {
    matches!(handled, Err(error) if error.failure.status == Status::ServiceUnavailable)
}

impl Frontend {
    pub fn new(
        api: NosqlApi,
        metrics: Arc<Metrics>,
        certificate: Option<Bytes>,
        body_bytes_max: usize,
        https_only: bool,
    ) -> Self {
        let engine = api.account_host.engine();
        let (activity_seed, activity_count) = (engine.random_u64(), AtomicU64::new(0));
        let started = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(engine.now_ms()));
        let started = HeaderValue::from_str(&started).unwrap_or(HeaderValue::from_static(""));
        let (clock, next_transport_request_id) = (None, AtomicU64::new(1));
        Frontend {
            api,
            clock,
            metrics,
            certificate,
            body_bytes_max,
            https_only,
            activity_seed,
            activity_count,
            started,
            next_transport_request_id,
        }
    }

    /// Enables the test controls; tests may advance this clock.
    pub fn with_test_controls(mut self, clock: Arc<OffsetEnv>) -> Self {
        self.clock = Some(clock);
        self
    }
}
