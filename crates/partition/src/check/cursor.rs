//! Keyspace cursor: reads a keyspace in chunks and never holds more than `CHUNK` and one row.

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, Direction, Limit, Snapshot, keyspace};

/// The items that 32 rows point at take 64 MB of memory if they have the maximum size.
const CHUNK: Limit = Limit { rows: 32, bytes: 1 << 20 };

pub struct KeyspaceCursor {
    rest: Option<(Bytes, Bytes)>,
}

impl KeyspaceCursor {
    pub fn new(range: (Bytes, Bytes)) -> Self {
        KeyspaceCursor { rest: Some(range) }
    }

    /// `None` after the last row.
    pub async fn next(&mut self, snapshot: &AnySnapshot) -> Result<Option<Vec<Pair>>> {
        let Some((from, to)) = self.rest.take() else { return Ok(None) };
        let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
        if let (true, Some((last, _))) = (chunk.more, chunk.pairs.last()) {
            self.rest = Some((keyspace::after(last), to));
        }
        Ok((!chunk.pairs.is_empty()).then_some(chunk.pairs))
    }
}
