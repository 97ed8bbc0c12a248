//! Role store: the newest valid roles file.
//!
//! Invariant: each request is checked against one complete file. A file that cannot be read, or contains an error, is
//! reported once and changes nothing; the previous one stays in effect until a valid one replaces it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pleiad_model::{Error, Result};

use super::{Roles, parse};
use crate::account::file_stamp::FileStamp;

pub struct RoleStore {
    path: PathBuf,
    loaded: Mutex<LoadedRoles>,
}

struct LoadedRoles {
    roles: Arc<Roles>,
    stamp: Option<FileStamp>,
}

impl RoleStore {
    pub fn open(path: PathBuf) -> Result<RoleStore> {
        let stamp = FileStamp::of(&path);
        let roles = Arc::new(read(&path)?);
        Ok(RoleStore { path, loaded: Mutex::new(LoadedRoles { roles, stamp }) })
    }

    pub fn roles(&self) -> Arc<Roles> {
        self.loaded().roles.clone()
    }

    /// Reads the file again if its stamp has changed since the last attempt, successful or not.
    pub fn refresh(&self) {
        let stamp = FileStamp::of(&self.path);
        if self.loaded().stamp == stamp {
            return;
        }
        let read = read(&self.path);
        let mut loaded = self.loaded();
        loaded.stamp = stamp;
        match read {
            Ok(roles) => {
                loaded.roles = Arc::new(roles);
                tracing::info!(path = %self.path.display(), "reloaded the roles file");
            }
            Err(error) => tracing::error!(%error, "cannot load the roles file; keeping the previous one"),
        }
    }

    fn loaded(&self) -> MutexGuard<'_, LoadedRoles> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Roles> {
    let text = std::fs::read(path)
        .map_err(|error| Error::invalid(format!("cannot read the roles in {}: {error}", path.display())))?;
    parse(&text).map_err(|error| Error::invalid(format!("{}: {error}", path.display())))
}
