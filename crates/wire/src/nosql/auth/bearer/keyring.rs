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

use super::{Issuer, KeySet, Principal};
use crate::nosql::auth::AuthError;
use crate::nosql::file_stamp::FileStamp;
use crate::outbound::Remote;

const BETWEEN_FETCHES: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_secs(3600);

pub struct Keyring {
    issuer: Issuer,
    source: Source,
    keys: Mutex<Arc<KeySet>>,
    /// When the set was asked for last, and which file it was. Who holds this asks; the others wait for what they get.
    asked: tokio::sync::Mutex<(Instant, Option<FileStamp>)>,
}

/// Where the set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    File(PathBuf),
    Url(String),
}

enum Source {
    File(PathBuf),
    Url(Remote),
}

impl Keyring {
    pub async fn open(issuer: Issuer, place: &KeyPlace) -> Result<Keyring> {
        let source = Source::of(place)?;
        let asked = tokio::sync::Mutex::new((Instant::now(), source.stamp()));
        let cannot = |error: Error| Error::new(error.kind, format!("cannot take the token keys of {place}: {error}"));
        let keys = source.fetch().await.map_err(cannot)?;
        Ok(Keyring { issuer, source, keys: Mutex::new(Arc::new(keys)), asked })
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

    fn keys(&self) -> Arc<KeySet> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyPlace::File(path) => path.display().fmt(f),
            KeyPlace::Url(url) => f.write_str(url),
        }
    }
}

impl Source {
    fn of(place: &KeyPlace) -> Result<Source> {
        match place {
            KeyPlace::File(path) => Ok(Source::File(path.clone())),
            KeyPlace::Url(url) => {
                let remote = Remote::new(url)?;
                remote.map(Source::Url).ok_or_else(|| Error::invalid(format!("{url} is not a URL of token keys")))
            }
        }
    }

    fn stamp(&self) -> Option<FileStamp> {
        match self {
            Source::File(path) => FileStamp::of(path),
            Source::Url(_) => None,
        }
    }

    async fn fetch(&self) -> Result<KeySet> {
        match self {
            Source::File(path) => read(path),
            Source::Url(remote) => {
                let (status, body) = remote.ask(Request::get("/"), Vec::new()).await?;
                match status {
                    StatusCode::OK => KeySet::parse(&body),
                    status => Err(Error::unavailable(format!("it answered with {status}"))),
                }
            }
        }
    }
}

/// Small, and read when it has changed: not worth another thread.
fn read(path: &Path) -> Result<KeySet> {
    KeySet::parse(&std::fs::read(path).map_err(|error| Error::invalid(error.to_string()))?)
}

#[cfg(test)]
mod tests;
