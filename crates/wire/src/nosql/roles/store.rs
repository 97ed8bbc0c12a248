//! The newest good file of roles.
//!
//! Promise: a request is judged by the whole of one file. A file that cannot be read, or has anything wrong in it, is reported once and
//! changes nothing; the one before it holds until a good one comes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pleiad_model::{Error, Result};

use super::{Roles, parse};
use crate::nosql::file_stamp::FileStamp;

pub struct RoleStore {
    path: PathBuf,
    page: Mutex<LoadedRoles>,
}

struct LoadedRoles {
    roles: Arc<Roles>,
    stamp: Option<FileStamp>,
}

impl RoleStore {
    pub fn open(path: PathBuf) -> Result<RoleStore> {
        let stamp = FileStamp::of(&path);
        let roles = Arc::new(read(&path)?);
        Ok(RoleStore { path, page: Mutex::new(LoadedRoles { roles, stamp }) })
    }

    pub fn roles(&self) -> Arc<Roles> {
        self.page().roles.clone()
    }

    /// Reads the file again if it is another one than last time, good or not.
    pub fn refresh(&self) {
        let stamp = FileStamp::of(&self.path);
        if self.page().stamp == stamp {
            return;
        }
        let read = read(&self.path);
        let mut page = self.page();
        page.stamp = stamp;
        match read {
            Ok(roles) => {
                page.roles = Arc::new(roles);
                tracing::info!(path = %self.path.display(), "roles were read again");
            }
            Err(error) => tracing::error!(%error, "the file of roles is not taken; the one before it still holds"),
        }
    }

    fn page(&self) -> MutexGuard<'_, LoadedRoles> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Roles> {
    let text = std::fs::read(path)
        .map_err(|error| Error::invalid(format!("cannot read the roles in {}: {error}", path.display())))?;
    parse(&text).map_err(|error| Error::invalid(format!("{}: {}", path.display(), error.message)))
}
