//! Cosmos DB for NoSQL over HTTP. Read in this order.

mod http; // one request, from its first line to its answer
pub mod address; // which resource a path names
pub mod auth; // who is asking
pub mod resource_token; // what a permission is worth to whoever carries it
mod permissions; // what it allows
pub mod roles; // which principal may do what where
mod file_stamp; // whether a file has changed
pub mod role_access; // what a bearer token is worth
pub(crate) mod request; // headers and bodies, read as types
pub mod binary_json; // bodies in Cosmos's binary form
pub mod batch; // many operations in one body, and their results
pub mod hybrid_row; // records as one SDK sends and wants them
mod session; // session tokens as text
pub mod continuation; // where the next page starts, signed
pub(crate) mod translate; // requests to the engine, answers from it
mod query_metrics; // how a page of a query was made
mod encode; // resources as JSON
pub(crate) mod status; // failures as numbers
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

/// What the account says of itself.
#[derive(Clone, Debug)]
pub struct Account {
    /// Not `localhost`: one SDK takes that as a sign to ignore the addresses it is given.
    pub id: String,
    pub region: String,
    /// What reads promise unless they ask for less.
    pub consistency: Consistency,
}

/// Answers HTTP requests for one account.
pub struct Frontend {
    live: Arc<AccountHost>,
    keys: SigningKeys,
    access: Arc<BearerAccess>,
    account: Account,
    /// Where tests may steer the server, the clock that they may move.
    clock: Option<Arc<OffsetEnv>>,
    tokens: Arc<TokenSigner>,
    metrics: Arc<Metrics>,
    /// The authority that signed our certificate, for clients to download.
    certificate: Option<Bytes>,
    body_bytes_max: usize,
    /// Refuse what arrives in clear text.
    https_only: bool,
    activity_seed: u64,
    activities: AtomicU64,
    /// Since when the server is what it is, as clients write dates.
    started: HeaderValue,
    requests: AtomicU64,
}

/// Answers one request: from one engine, whatever happens to the account meanwhile.
pub struct RequestContext<'f> {
    engine: &'f Engine,
    account: &'f Account,
    access: &'f BearerAccess,
    tokens: &'f Arc<TokenSigner>,
}

impl Frontend {
    pub async fn new(
        live: Arc<AccountHost>,
        keys: SigningKeys,
        account: Account,
        metrics: Arc<Metrics>,
        certificate: Option<Bytes>,
        body_bytes_max: usize,
        https_only: bool,
    ) -> Self {
        let engine = live.engine();
        // A snapshot of the account has the same secret.
        let tokens = Arc::new(TokenSigner::new(&engine.catalog.secret().await));
        let (activity_seed, activities) = (engine.random_u64(), AtomicU64::new(0));
        let started = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(engine.now_ms()));
        let started = HeaderValue::from_str(&started).unwrap_or(HeaderValue::from_static(""));
        Frontend {
            live,
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
            activities,
            started,
            requests: AtomicU64::new(1),
        }
    }

    /// Takes bearer tokens of others than an emulator's.
    pub fn open_to(mut self, access: Arc<BearerAccess>) -> Self {
        self.access = access;
        self
    }

    /// Lets tests steer the server, and move this clock of its.
    pub fn steered(mut self, clock: Arc<OffsetEnv>) -> Self {
        self.clock = Some(clock);
        self
    }

    fn gateway<'f>(&'f self, engine: &'f Engine) -> RequestContext<'f> {
        RequestContext { engine, account: &self.account, access: &self.access, tokens: &self.tokens }
    }
}
