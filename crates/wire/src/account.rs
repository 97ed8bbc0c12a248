//! The account's credentials: keys, resource tokens, bearer tokens and roles. A credential that is valid gives a
//! `Caller`; what a caller may do is decided with the operation at hand.
//!
//! Invariant: a `Caller` exists only for a client that proved to have a key of the account, or that has an unexpired
//! token signed by this account or by the trusted issuer, or, in `dev`, an emulator token with the text of the primary key.
//! Secrets are compared in constant time and never printed. This module knows no protocol and no API: how a client
//! presents a credential (a header, a handshake) is the API's.
//!
//! Modules are listed in reading order.

pub mod keys; // the four account keys, and the ways to prove that a client has one
pub mod bearer; // tokens of a trusted issuer
mod emulator_token; // tokens that test suites make for an emulator
pub mod token_signer; // signs what the server gives to clients and gets back
pub mod resource_token; // credentials issued for a permission
mod file_stamp; // detects that a file has changed
pub mod roles; // role-based access control: principals, data actions, scopes

use std::path::PathBuf;
use std::sync::Arc;

use pleiad_model::Result;

use bearer::Issuer;
pub use bearer::Principal;
use bearer::jwks_cache::{JwksCache, JwksLocation};
pub use keys::AccountKeyring;
use resource_token::ResourceToken;
use roles::Roles;
use roles::store::RoleStore;
pub use token_signer::TokenSigner;

/// The maximum difference between a client's clock and the server's, either way.
pub const SKEW_MS_MAX: u64 = 15 * 60 * 1000;

/// What credentials are verified against.
pub struct AccountAccess {
    pub keys: AccountKeyring,
    pub tokens: Arc<TokenSigner>,
    pub bearer: Arc<BearerAccess>,
    /// Whether emulator tokens are accepted: by `dev` only. They contain the primary key as text, do not have to expire,
    /// and pass for tokens of an identity provider.
    pub emulator_tokens: bool,
}

/// The accepted issuer and the roles of its principals. Without an issuer, at most emulator tokens are accepted; without
/// roles the issuer's principals may do nothing.
#[derive(Default)]
pub struct BearerAccess {
    jwks_cache: Option<JwksCache>,
    role_store: Option<RoleStore>,
}

/// The time at which a credential is checked. The two clocks differ only if a test has advanced the server's: clients
/// sign dates with their own clocks, which the test has not advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthTime {
    pub now_ms: u64,
    pub wall_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// One of the two read-write keys.
    ReadWrite,
    /// One of the two read-only keys.
    ReadOnly,
    /// An emulator token: data access as with a read-write key, but no management of databases and containers.
    Data,
    /// A resource token: the access that its permission grants.
    Permitted(ResourceToken),
    /// A token from the issuer: the access that the principal's roles grant.
    Principal(Principal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// There is no credential.
    Missing,
    /// The credential, or the date it belongs to, cannot be parsed; contains the reason.
    Malformed(&'static str),
    /// No key of the account produced this signature; contains the string that the server expected to be signed.
    BadSignature { string_to_sign: String },
    /// Signed, but too long ago or too far in the future.
    Skewed,
    /// Signed with a read-only key, but not a read.
    ReadOnlyKey,
    /// A resource token that this account did not issue.
    BadToken,
    /// A resource token after its expiry.
    Expired,
    /// A bearer token that is not an emulator token of this account, while no issuer is trusted.
    AadNotAccepted,
    /// An invalid bearer token; contains the reason.
    Bearer(&'static str),
    /// A bearer token signed with a key that is not in the cached key set, but may be in the issuer's current one.
    UnknownKey,
}

impl AccountAccess {
    /// The issuer of a bearer token writes its own clock's time into it, which tests do not advance.
    pub fn check_bearer(&self, jwt: &str, at: AuthTime) -> Result<Caller, AuthError> {
        let emulated = match self.emulator_tokens {
            true => emulator_token::check(&self.keys, jwt, at.wall_ms),
            false => Err(AuthError::AadNotAccepted),
        };
        match (emulated, &self.bearer.jwks_cache) {
            (Err(_), Some(jwks_cache)) => jwks_cache.check(jwt, at.wall_ms).map(Caller::Principal),
            (emulated, _) => emulated,
        }
    }

    pub fn check_resource_token(&self, signature: &str, at: AuthTime) -> Result<Caller, AuthError> {
        let token = ResourceToken::redeem(signature, &self.tokens).ok_or(AuthError::BadToken)?;
        if at.now_ms / 1000 >= token.expires_s {
            return Err(AuthError::Expired);
        }
        Ok(Caller::Permitted(token))
    }
}

impl BearerAccess {
    /// From the location of the issuer's keys and the roles file. Without roles a token identifies a principal that may
    /// do nothing.
    pub async fn open(issuer: Issuer, keys: &JwksLocation, roles: Option<PathBuf>) -> Result<BearerAccess> {
        let jwks_cache = JwksCache::open(issuer, keys).await?;
        Ok(BearerAccess { jwks_cache: Some(jwks_cache), role_store: roles.map(RoleStore::open).transpose()? })
    }

    /// Reloads keys and roles that have changed.
    pub async fn refresh(&self) {
        if let Some(role_store) = &self.role_store {
            role_store.refresh();
        }
        if let Some(jwks_cache) = &self.jwks_cache {
            jwks_cache.refresh().await;
        }
    }

    /// An issuer may have rotated its keys: true if a token with an unknown key is worth checking again.
    pub async fn refetch_for_unknown_key(&self) -> bool {
        match &self.jwks_cache {
            Some(jwks_cache) => jwks_cache.refetch_for_unknown_key().await,
            None => false,
        }
    }

    pub fn roles(&self) -> Arc<Roles> {
        self.role_store.as_ref().map(RoleStore::roles).unwrap_or_default()
    }
}
