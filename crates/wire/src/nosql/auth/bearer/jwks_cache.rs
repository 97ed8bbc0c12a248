//! Where an issuer's keys come from, and when they are fetched again.
//!
//! Promise: tokens are judged by the newest good set. Issuers change their keys: a token that names a key which is not in the set has it
//! fetched again, but not more often than twice a minute, whatever is sent; and it is fetched every hour besides. A set that cannot
//! be had, or has nothing in it for us, changes nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, StatusCode};
use pleiad_model::{Error, Result};

use super::{Issuer, JsonWebKeySet, Principal};
use crate::http_client::Remote;
use crate::nosql::auth::AuthError;
use crate::nosql::file_stamp::FileStamp;

const BETWEEN_FETCHES: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_secs(3600);

pub struct JwksCache {
    issuer: Issuer,
    source: JwksSource,
    keys: Mutex<Arc<JsonWebKeySet>>,
    /// When the set was asked for last, and which file it was. Who holds this asks; the others wait for what they get.
    asked: tokio::sync::Mutex<(Instant, Option<FileStamp>)>,
}

/// Where the set is.
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
    pub async fn open(issuer: Issuer, place: &JwksLocation) -> Result<JwksCache> {
        let source = JwksSource::of(place)?;
        let asked = tokio::sync::Mutex::new((Instant::now(), source.stamp()));
        let cannot = |error: Error| Error::new(error.kind, format!("cannot take the token keys of {place}: {error}"));
        let keys = source.fetch().await.map_err(cannot)?;
        Ok(JwksCache { issuer, source, keys: Mutex::new(Arc::new(keys)), asked })
    }

    pub(in crate::nosql::auth) fn check(&self, jwt: &str, now_ms: u64) -> Result<Principal, AuthError> {
        let now_s = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
        super::check(&self.issuer, &self.keys(), jwt, now_s)
    }

    /// Whether it is worth trying again a token whose key was not known.
    pub async fn look_again(&self) -> bool {
        let before = self.keys();
        let mut asked = self.asked.lock().await;
        // Somebody else may have asked while we waited for our turn.
        if !Arc::ptr_eq(&before, &self.keys()) {
            return true;
        }
        if asked.0.elapsed() < BETWEEN_FETCHES {
            return false;
        }
        *asked = (Instant::now(), self.source.stamp());
        self.fetch().await
    }

    /// A file that has changed is taken at once, an answer of a server after an hour.
    pub async fn refresh(&self) {
        let mut asked = self.asked.lock().await;
        let stamp = self.source.stamp();
        if asked.1 != stamp || (stamp.is_none() && asked.0.elapsed() >= EVERY) {
            *asked = (Instant::now(), stamp);
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
                tracing::error!(%error, "the token keys are not taken; those before still hold");
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
    fn of(place: &JwksLocation) -> Result<JwksSource> {
        match place {
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
                let (status, body) = remote.ask(Request::get("/"), Vec::new()).await?;
                match status {
                    StatusCode::OK => JsonWebKeySet::parse(&body),
                    status => Err(Error::unavailable(format!("it answered with {status}"))),
                }
            }
        }
    }
}

/// Small, and read when it has changed: not worth another thread.
fn read(path: &Path) -> Result<JsonWebKeySet> {
    JsonWebKeySet::parse(&std::fs::read(path).map_err(|error| Error::invalid(error.to_string()))?)
}

#[cfg(test)]
mod tests;
