//! Cosmos DB for NoSQL over HTTP. Modules are listed in reading order.

mod http; // one request, from its request line to its response
pub mod address; // the resource that a path names
pub mod auth; // authentication: the caller of a request
pub mod resource_token; // resource tokens: credentials issued for a permission
mod permissions; // authorization by resource token
pub mod roles; // role-based access control: principals, data actions, scopes
mod file_stamp; // detects that a file has changed
pub mod role_access; // authorization by bearer token and roles
pub(crate) mod request; // headers and bodies, decoded into types
pub mod binary_json; // Cosmos binary JSON bodies
pub mod batch; // many operations in one body, and their results
pub mod hybrid_row; // HybridRow records, used by the .NET SDK
mod session; // session tokens as text
pub mod continuation; // signed continuation tokens
pub(crate) mod translate; // requests to engine calls, engine responses to replies
mod query_metrics; // query metrics headers
mod encode; // resources as JSON
pub(crate) mod status; // errors as status and substatus codes
pub(crate) mod reply; // status, headers, body

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

use ::http::HeaderValue;
use bytes::Bytes;
use pleiad_engine::{AccountHost, Engine};
use pleiad_model::Consistency;
use pleiad_model::env::OffsetEnv;

use crate::metrics::Metrics;
use auth::SigningKeys;
use continuation::TokenSigner;
use role_access::BearerAccess;

/// The properties that the account reports about itself.
#[derive(Clone, Debug)]
pub struct Account {
    /// Not `localhost`: one SDK ignores the addresses it receives if the account has this name.
    pub id: String,
    pub region: String,
    /// The default consistency level; a request may ask for a weaker one.
    pub consistency: Consistency,
}

/// The HTTP front end of one account.
pub struct Frontend {
    account_host: Arc<AccountHost>,
    keys: SigningKeys,
    access: Arc<BearerAccess>,
    account: Account,
    /// The clock that tests may advance; `None` if test controls are disabled.
    clock: Option<Arc<OffsetEnv>>,
    tokens: Arc<TokenSigner>,
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
    access: &'f BearerAccess,
    tokens: &'f Arc<TokenSigner>,
}

impl Frontend {
    pub async fn new(
        account_host: Arc<AccountHost>,
        keys: SigningKeys,
        account: Account,
        metrics: Arc<Metrics>,
        certificate: Option<Bytes>,
        body_bytes_max: usize,
        https_only: bool,
    ) -> Self {
        let engine = account_host.engine();
        // Snapshots of the account have the same secret, so tokens stay valid after a restore.
        let tokens = Arc::new(TokenSigner::new(&engine.catalog.secret().await));
        let (activity_seed, activity_count) = (engine.random_u64(), AtomicU64::new(0));
        let started = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(engine.now_ms()));
        let started = HeaderValue::from_str(&started).unwrap_or(HeaderValue::from_static(""));
        Frontend {
            account_host,
            keys,
            access: Arc::default(),
            account,
            clock: None,
            tokens,
            metrics,
            certificate,
            body_bytes_max,
            https_only,
            activity_seed,
            activity_count,
            started,
            next_transport_request_id: AtomicU64::new(1),
        }
    }

    /// Accepts bearer tokens of the configured issuer, in addition to emulator tokens.
    pub fn with_bearer_access(mut self, access: Arc<BearerAccess>) -> Self {
        self.access = access;
        self
    }

    /// Enables the test controls; tests may advance this clock.
    pub fn with_test_controls(mut self, clock: Arc<OffsetEnv>) -> Self {
        self.clock = Some(clock);
        self
    }

    fn request_context<'f>(&'f self, engine: &'f Engine) -> RequestContext<'f> {
        RequestContext { engine, account: &self.account, access: &self.access, tokens: &self.tokens }
    }
}
