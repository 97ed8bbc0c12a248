//! Progress of a global secondary index: its cursors in the change feed of the source.
//!
//! A cursor is an EPK range with an LSN, as in the change feed's continuations, so splits and merges of the source
//! leave it valid.
//!
//! Invariant: the cursors are durable. The indexer never reads again up to a cursor's LSN, and the purge may remove
//! versions up to it; during the initial build, up to the LSN at which the build ends.
//!
//! ```text
//! [00 ──── 7F)  lsn 40, build until 812     initial build: latest versions, ordered by LSN
//! [7F ──── FF)  lsn 977                     afterwards: all versions
//! ```

use parking_lot::Mutex;
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::{Error, Object, Result, Value};

/// The position in one EPK range of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCursor {
    pub keys: EpkRange,
    /// Applied up to here.
    pub lsn: u64,
    /// During the initial build: the LSN at which it ends. Changes after it are read from versions.
    pub build_until: Option<u64>,
}

impl SourceCursor {
    /// The index does not need versions up to this LSN.
    fn trim_limit(&self) -> u64 {
        self.build_until.unwrap_or(self.lsn)
    }

    /// The fraction of the initial build that is done.
    fn built_fraction(&self) -> f64 {
        match self.build_until {
            Some(until) if until > 0 => self.lsn as f64 / until as f64,
            _ => 1.0,
        }
    }
}

/// The progress of one index; all catalog versions of its container share it.
#[derive(Debug, Default)]
pub struct IndexProgress(Mutex<ProgressState>);

#[derive(Clone, Debug, Default)]
struct ProgressState {
    cursors: Vec<SourceCursor>,
    behind_since_ms: Option<u64>,
}

impl IndexProgress {
    /// Empty before the build has begun.
    pub fn cursors(&self) -> Vec<SourceCursor> {
        self.0.lock().cursors.clone()
    }

    pub(crate) fn set(&self, cursors: Vec<SourceCursor>) {
        self.0.lock().cursors = cursors;
    }

    /// Records whether the source has changes that the index has not applied.
    pub(crate) fn set_behind(&self, is_behind: bool, now_ms: u64) {
        let mut state = self.0.lock();
        state.behind_since_ms = is_behind.then(|| state.behind_since_ms.unwrap_or(now_ms));
    }

    pub fn is_built(&self) -> bool {
        let state = self.0.lock();
        !state.cursors.is_empty() && state.cursors.iter().all(|cursor| cursor.build_until.is_none())
    }

    /// Of the initial build.
    pub fn percent(&self) -> u64 {
        let state = self.0.lock();
        let built: f64 = state.cursors.iter().map(SourceCursor::built_fraction).sum();
        (100.0 * built / state.cursors.len().max(1) as f64) as u64
    }

    /// For how long the source has had changes that the index has not applied.
    pub fn behind_ms(&self, now_ms: u64) -> u64 {
        self.0.lock().behind_since_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms))
    }

    /// The LSN up to which the index needs no versions of these keys.
    pub(crate) fn trim_limit(&self, keys: &EpkRange) -> u64 {
        let state = self.0.lock();
        let of_these = state.cursors.iter().filter(|cursor| cursor.keys.intersect(keys).is_some());
        of_these.map(SourceCursor::trim_limit).min().unwrap_or(0)
    }

    pub(super) fn load(row: &Value) -> Result<IndexProgress> {
        let cursors = row.get("stretches").and_then(Value::as_array).ok_or_else(corrupt)?;
        let cursors = cursors.iter().map(parse_cursor).collect::<Result<_>>()?;
        Ok(IndexProgress(Mutex::new(ProgressState { cursors, behind_since_ms: None })))
    }
}

pub(super) fn to_object(cursors: &[SourceCursor]) -> Object {
    let one = |cursor: &SourceCursor| {
        let keys = &cursor.keys;
        let object = Object::new().with("min", keys.min.to_string()).with("max", keys.max.to_string());
        let object = object.with("lsn", cursor.lsn);
        Value::from(cursor.build_until.into_iter().fold(object, |object, until| object.with("until", until)))
    };
    Object::new().with("stretches", cursors.iter().map(one).collect::<Vec<_>>())
}

fn parse_cursor(row: &Value) -> Result<SourceCursor> {
    let key = |name| EffectiveKey::parse(row.get(name).and_then(Value::as_str).unwrap_or("?"));
    let number = |value: &Value| value.as_i64().and_then(|n| u64::try_from(n).ok()).ok_or_else(corrupt);
    Ok(SourceCursor {
        keys: EpkRange { min: key("min")?, max: key("max")? },
        lsn: number(row.get("lsn").ok_or_else(corrupt)?)?,
        build_until: row.get("until").map(number).transpose()?,
    })
}

fn corrupt() -> Error {
    Error::corrupt("progress of a global secondary index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip_and_the_slowest_cursor_limits_trimming() {
        let middle = EffectiveKey::parse("20000000000000000000000000000000").unwrap();
        let keys = [
            EpkRange { min: EffectiveKey::MIN, max: middle.clone() },
            EpkRange { min: middle, max: EffectiveKey::MAX },
        ];
        let [low, high] = keys.clone();
        let building = SourceCursor { keys: low, lsn: 40, build_until: Some(80) };
        let following = SourceCursor { keys: high, lsn: 77, build_until: None };
        let row = Value::from(to_object(&[building.clone(), following.clone()]));
        let progress = IndexProgress::load(&row).unwrap();
        assert_eq!(progress.cursors(), [building, following]);
        assert_eq!(keys.each_ref().map(|keys| progress.trim_limit(keys)), [80, 77]);
        assert_eq!((progress.is_built(), progress.percent()), (false, 75));
        assert_eq!(
            IndexProgress::default().trim_limit(&keys[0]),
            0,
            "before the build begins, all versions are needed"
        );
        assert!(IndexProgress::load(&Value::from(Object::new())).is_err());
    }

    #[test]
    fn lag_is_measured_from_the_first_report() {
        let progress = IndexProgress::default();
        progress.set_behind(true, 100);
        progress.set_behind(true, 200);
        assert_eq!(progress.behind_ms(350), 250);
        progress.set_behind(false, 400);
        assert_eq!(progress.behind_ms(450), 0);
    }
}
