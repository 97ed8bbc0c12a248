//! A keyspace, a chunk at a time: never more than `CHUNK` and one row are held.

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, Direction, Limit, Snapshot, keyspace};

/// Whoever reads the items that 32 rows point at holds 64 MB if they are of the largest.
const CHUNK: Limit = Limit { rows: 32, bytes: 1 << 20 };

pub struct KeyspaceCursor {
    rest: Option<(Bytes, Bytes)>,
}

impl KeyspaceCursor {
    pub fn new(range: (Bytes, Bytes)) -> Self {
        KeyspaceCursor { rest: Some(range) }
    }

    /// `None` behind the last row.
    pub async fn next(&mut self, snapshot: &AnySnapshot) -> Result<Option<Vec<Pair>>> {
        let Some((from, to)) = self.rest.take() else { return Ok(None) };
        let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
        if let (true, Some((last, _))) = (chunk.more, chunk.pairs.last()) {
            self.rest = Some((keyspace::after(last), to));
        }
        Ok((!chunk.pairs.is_empty()).then_some(chunk.pairs))
    }
}
