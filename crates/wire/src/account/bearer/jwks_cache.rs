//! JWKS cache: an issuer's key set, fetched again when it may have changed.
//!
//! Guarantees: tokens are verified with the newest valid set. Issuers rotate their keys: a token with a key id that is
//! not in the set triggers a fetch, at most twice a minute whatever clients send; in addition a URL is fetched every
//! hour and a file is read when it has changed. A set that cannot be fetched, or contains no usable key, changes
//! nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, StatusCode};
use pleiad_model::{Error, Result};

use super::{Issuer, JsonWebKeySet, Principal};
use crate::account::AuthError;
use crate::account::file_stamp::FileStamp;
use crate::http_client::Remote;

const FETCH_INTERVAL_MIN: Duration = Duration::from_secs(30);
const REFRESH_INTERVAL: Duration = Duration::from_secs(3600);

pub struct JwksCache {
    issuer: Issuer,
    source: JwksSource,
    keys: Mutex<Arc<JsonWebKeySet>>,
    /// When the set was last fetched, and the stamp of its file. The holder of this lock fetches; other tasks wait for
    /// the result.
    last_fetch: tokio::sync::Mutex<(Instant, Option<FileStamp>)>,
}

/// Where the key set is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwksLocation {
    File(PathBuf),
    Url(String),
}

enum JwksSource {
    File(PathBuf),
    Url(Remote),
}

impl JwksCache {
    pub async fn open(issuer: Issuer, location: &JwksLocation) -> Result<JwksCache> {
        let source = JwksSource::of(location)?;
        let last_fetch = tokio::sync::Mutex::new((Instant::now(), source.stamp()));
        let cannot =
            |error: Error| Error::new(error.kind, format!("cannot take the token keys of {location}: {error}"));
        let keys = source.fetch().await.map_err(cannot)?;
        Ok(JwksCache { issuer, source, keys: Mutex::new(Arc::new(keys)), last_fetch })
    }

    pub(in crate::account) fn check(&self, jwt: &str, now_ms: u64) -> Result<Principal, AuthError> {
        let now_s = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
        super::check(&self.issuer, &self.keys(), jwt, now_s)
    }

    /// Returns true if a token with an unknown key is worth checking again.
    pub async fn refetch_for_unknown_key(&self) -> bool {
        let before = self.keys();
        let mut last_fetch = self.last_fetch.lock().await;
        // Another task may have fetched the set while this one waited for the lock.
        if !Arc::ptr_eq(&before, &self.keys()) {
            return true;
        }
        if last_fetch.0.elapsed() < FETCH_INTERVAL_MIN {
            return false;
        }
        *last_fetch = (Instant::now(), self.source.stamp());
        self.fetch().await
    }

    /// A changed file is read immediately, a URL is fetched again after an hour.
    pub async fn refresh(&self) {
        let mut last_fetch = self.last_fetch.lock().await;
        let stamp = self.source.stamp();
        if last_fetch.1 != stamp || (stamp.is_none() && last_fetch.0.elapsed() >= REFRESH_INTERVAL) {
            *last_fetch = (Instant::now(), stamp);
            self.fetch().await;
        }
    }

    async fn fetch(&self) -> bool {
        match self.source.fetch().await {
            Ok(keys) => {
                *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
                true
            }
            Err(error) => {
                tracing::error!(%error, "cannot load the token keys; keeping the previous ones");
                false
            }
        }
    }

    fn keys(&self) -> Arc<JsonWebKeySet> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for JwksLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwksLocation::File(path) => path.display().fmt(f),
            JwksLocation::Url(url) => f.write_str(url),
        }
    }
}

impl JwksSource {
    fn of(location: &JwksLocation) -> Result<JwksSource> {
        match location {
            JwksLocation::File(path) => Ok(JwksSource::File(path.clone())),
            JwksLocation::Url(url) => {
                let remote = Remote::new(url)?;
                remote.map(JwksSource::Url).ok_or_else(|| Error::invalid(format!("{url} is not a URL of token keys")))
            }
        }
    }

    fn stamp(&self) -> Option<FileStamp> {
        match self {
            JwksSource::File(path) => FileStamp::of(path),
            JwksSource::Url(_) => None,
        }
    }

    async fn fetch(&self) -> Result<JsonWebKeySet> {
        match self {
            JwksSource::File(path) => read(path),
            JwksSource::Url(remote) => {
                let (status, body) = remote.send_request(Request::get("/"), Vec::new()).await?;
                match status {
                    StatusCode::OK => JsonWebKeySet::parse(&body),
                    status => Err(Error::unavailable(format!("it answered with {status}"))),
                }
            }
        }
    }
}

/// The file is small and read only after a change: not worth a blocking thread.
fn read(path: &Path) -> Result<JsonWebKeySet> {
    JsonWebKeySet::parse(&std::fs::read(path).map_err(|error| Error::invalid(error.to_string()))?)
}

#[cfg(test)]
mod tests;
