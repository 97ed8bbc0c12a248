//! Dataset cache: data that is loaded once and reused by later runs.
//!
//! Invariant: cached data was loaded completely, by the same loader, from the same items; anything else is deleted and
//! loaded again. When the items change, the data of the old ones is deleted.
//!
//! ```text
//! ~/.cache/pleiad/bench-query/5f3c…-1000000/pleiad/data      one directory per system
//!                                           pleiad/loaded    hash of the recipe, written last
//! ```

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::data;
use crate::Result;

/// The directory of the systems' data for one number of items.
pub struct DatasetCache {
    pub dir: PathBuf,
    items: u64,
}

impl DatasetCache {
    pub fn open(root: &Path, items: u64) -> Result<DatasetCache> {
        let generation = format!("{:016x}", data::fingerprint());
        remove_outdated(root, &generation)?;
        let dir = root.join(format!("{generation}-{items}"));
        fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        Ok(DatasetCache { dir, items })
    }

    /// The directory of one system; `load` fills it unless it was already loaded with the same `recipe`.
    pub fn load_once(&self, system: &str, recipe: &str, load: impl FnOnce(&Path) -> Result) -> Result<PathBuf> {
        let (system_dir, recipe) = (self.dir.join(system), hash(recipe));
        let (data, loaded) = (system_dir.join("data"), system_dir.join("loaded"));
        if fs::read_to_string(&loaded).is_ok_and(|with| with == recipe) {
            return Ok(data);
        }
        eprintln!("loading {} items into {system}; the data is cached in {}…", self.items, system_dir.display());
        remove(&system_dir)?;
        fs::create_dir_all(&data).map_err(|e| format!("cannot create {}: {e}", data.display()))?;
        load(&data)?;
        fs::write(&loaded, recipe).map_err(|e| format!("cannot write {}: {e}", loaded.display()))?;
        Ok(data)
    }

    /// Writes all items, one per line, to a temporary file.
    pub fn write_lines(&self) -> Result<tempfile::NamedTempFile> {
        let file = tempfile::Builder::new().suffix(".ndjson").tempfile_in(&self.dir).map_err(|e| e.to_string())?;
        let mut out = BufWriter::new(&file);
        let mut line = String::new();
        for n in 0..self.items {
            line.clear();
            data::write_body(n, &mut line);
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(|e| format!("cannot write the items: {e}"))?;
        }
        out.flush().map_err(|e| format!("cannot write the items: {e}"))?;
        drop(out);
        Ok(file)
    }
}

fn remove_outdated(root: &Path, generation: &str) -> Result {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(generation) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(dir: &Path) -> Result {
    match fs::remove_dir_all(dir) {
        Err(e) if dir.exists() => Err(format!("cannot remove {}: {e}", dir.display())),
        _ => Ok(()),
    }
}

fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_loaded_once_and_again_when_the_recipe_changes_or_loading_failed() {
        let root = tempfile::tempdir().unwrap();
        let cache = DatasetCache::open(root.path(), 3).unwrap();
        let mut loads = 0;
        let mut load = |recipe: &str, outcome: Result| {
            let loaded = cache.load_once("one", recipe, |dir| {
                loads += 1;
                assert!(fs::read_dir(dir).unwrap().next().is_none(), "the directory is empty");
                fs::write(dir.join("x"), "").unwrap();
                outcome
            });
            (loaded.is_ok(), loads)
        };
        assert_eq!(load("a", Ok(())), (true, 1));
        assert_eq!(load("a", Ok(())), (true, 1));
        assert_eq!(load("b", Err(String::new())), (false, 2));
        assert_eq!(load("b", Ok(())), (true, 3));
    }

    #[test]
    fn data_of_other_items_is_deleted() {
        let root = tempfile::tempdir().unwrap();
        let old = root.path().join("0000000000000000-3");
        fs::create_dir(&old).unwrap();
        let cache = DatasetCache::open(root.path(), 3).unwrap();
        assert!(!old.exists() && cache.dir.exists());
        assert_eq!(fs::read_to_string(cache.write_lines().unwrap()).unwrap().lines().count(), 3);
    }
}
