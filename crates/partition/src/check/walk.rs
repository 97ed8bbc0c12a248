//! A keyspace, a chunk at a time: never more than `CHUNK_ROWS` rows are held.

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, Direction, Snapshot, keyspace};

/// Of the largest items this is 64 MB; of the rows that point at items next to nothing.
const CHUNK_ROWS: usize = 32;

pub struct Walk {
    rest: Option<(Bytes, Bytes)>,
}

impl Walk {
    pub fn new(range: (Bytes, Bytes)) -> Self {
        Walk { rest: Some(range) }
    }

    /// `None` behind the last row.
    pub async fn next(&mut self, snapshot: &AnySnapshot) -> Result<Option<Vec<Pair>>> {
        let Some((from, to)) = self.rest.take() else { return Ok(None) };
        let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK_ROWS).await?;
        if let Some((last, _)) = chunk.get(CHUNK_ROWS - 1) {
            self.rest = Some((keyspace::after(last), to));
        }
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}
