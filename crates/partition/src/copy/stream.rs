//! Bulk copy: streams all rows of the parents, keyspace by keyspace, into the children.
//!
//! Rows are read and written in key order, so that they can be ingested into a child: a k-way merge takes the smallest
//! key of all parents next. Item rows come first and determine the child of each docnum; index rows, which contain only
//! the docnum, come last.

use pleiad_model::{Error, Result};
use pleiad_storage::keyspace::{self, RowPlacement, Tag};
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, AnyStore, Batch, Direction, Limit, Snapshot, Store};

use super::docnum_bitmap::DocnumBitmap;
use super::{Copy, CopyFigures};
use crate::record::RecordView;
use crate::shard_state::ShardState;
use crate::version_row::epk_of;

const CHUNK: Limit = Limit { rows: 4096, bytes: 1 << 20 };
/// Bytes buffered for each child before they are ingested as a file.
const INGEST_BYTES: usize = 16 << 20;

impl Copy {
    pub(super) async fn stream<E: From<Error>>(
        &mut self,
        snapshot: &AnySnapshot,
        on_progress: &mut impl AsyncFnMut(&CopyFigures) -> Result<(), E>,
    ) -> Result<(), E> {
        for (seen, parent) in self.seen_lsn.iter_mut().zip(&self.parents) {
            *seen = lsn_in(snapshot, parent.range.shard).await?;
        }
        let mut sinks: Vec<Sink> = self.children.iter().map(|child| Sink::new(child.shard)).collect();
        for tag in keyspace::COPIED_TAGS {
            let mut rows = Merged::new(self.parents.iter().map(|parent| keyspace::range(parent.range.shard, tag)));
            while let Some(chunk) = rows.next(snapshot).await? {
                for row in &chunk {
                    let child = self.destination(tag, row, &sinks)?;
                    if let Some(sink) = sinks.get_mut(child) {
                        self.figures.terms += sink.put(tag, row)?;
                    }
                    self.figures.rows += 1;
                    self.figures.bytes += (row.0.len() + row.1.len()) as u64;
                }
                for sink in &mut sinks {
                    sink.flush(&self.store, INGEST_BYTES).await?;
                }
                self.figures.items = sinks.iter().map(|sink| sink.state.items).sum();
                on_progress(&self.figures).await?;
            }
        }
        for sink in &mut sinks {
            sink.flush(&self.store, 1).await?;
        }
        self.states = sinks.into_iter().map(|sink| sink.state).collect();
        Ok(())
    }

    fn destination(&self, tag: Tag, (key, value): &Pair, sinks: &[Sink]) -> Result<usize> {
        let last = sinks.len().saturating_sub(1);
        if last == 0 {
            return Ok(0);
        }
        Ok(match keyspace::placement(tag, key)? {
            RowPlacement::AtEpk(epk) => self.child_of(&epk),
            RowPlacement::WithItem(docnum) => {
                sinks.iter().position(|sink| sink.docnums.contains(docnum)).unwrap_or(last)
            }
            RowPlacement::InValue if tag == Tag::Doc => self.child_of(RecordView::read(value)?.epk),
            RowPlacement::InValue if tag == Tag::Version => self.child_of(epk_of(value)?),
            RowPlacement::InValue => self.child_of(value),
        })
    }
}

/// The LSN of a shard in a snapshot.
pub async fn lsn_in(snapshot: &AnySnapshot, shard: u64) -> Result<u64> {
    let row = snapshot.get_many(&[keyspace::state(shard)]).await?.pop().flatten();
    Ok(row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default().lsn)
}

/// Collects the rows of one child.
struct Sink {
    shard: u64,
    batch: Batch,
    docnums: DocnumBitmap,
    state: ShardState,
}

impl Sink {
    fn new(shard: u64) -> Sink {
        let (batch, docnums, state) = Default::default();
        Sink { shard, batch, docnums, state }
    }

    /// Returns the number of index rows that will follow for this row.
    fn put(&mut self, tag: Tag, (key, value): &Pair) -> Result<u64> {
        self.batch.put(keyspace::with_shard(key, self.shard), value);
        if tag != Tag::Doc {
            return Ok(0);
        }
        let record = RecordView::read(value)?;
        self.docnums.insert(record.docnum);
        self.state.items += 1;
        self.state.item_bytes += record.body().len() as u64;
        Ok(u64::from(record.terms))
    }

    async fn flush(&mut self, store: &AnyStore, bytes_min: usize) -> Result<()> {
        if self.batch.bytes() >= bytes_min {
            store.ingest(&self.batch).await?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// Merges one keyspace of several shards into one ordered stream.
struct Merged {
    sources: Vec<MergeInput>,
}

struct MergeInput {
    rest: Option<(bytes::Bytes, bytes::Bytes)>,
    rows: std::iter::Peekable<std::vec::IntoIter<Pair>>,
}

impl Merged {
    fn new(ranges: impl Iterator<Item = (bytes::Bytes, bytes::Bytes)>) -> Merged {
        let source = |range| MergeInput { rest: Some(range), rows: Vec::new().into_iter().peekable() };
        Merged { sources: ranges.map(source).collect() }
    }

    /// The next rows, as many as can be ordered without reading from the store again.
    async fn next(&mut self, snapshot: &AnySnapshot) -> Result<Option<Vec<Pair>>> {
        for source in &mut self.sources {
            source.fill(snapshot).await?;
        }
        self.sources.retain_mut(|source| source.rows.peek().is_some());
        let rows = match self.sources.as_mut_slice() {
            [] => return Ok(None),
            [only] => only.rows.by_ref().collect(),
            many => smallest_first(many),
        };
        Ok(Some(rows))
    }
}

/// Stops when one input has no buffered rows left: the next smallest row may be its.
fn smallest_first(sources: &mut [MergeInput]) -> Vec<Pair> {
    let mut rows = Vec::new();
    loop {
        let mut least: Option<(usize, &[u8])> = None;
        for (at, source) in sources.iter_mut().enumerate() {
            let Some((key, _)) = source.rows.peek() else { return rows };
            let fields = key.get(8..).unwrap_or_default();
            if least.is_none_or(|(_, best)| fields < best) {
                least = Some((at, fields));
            }
        }
        let next = least.map(|(at, _)| at).and_then(|at| sources.get_mut(at)).and_then(|source| source.rows.next());
        match next {
            Some(row) => rows.push(row),
            None => return rows,
        }
    }
}

impl MergeInput {
    async fn fill(&mut self, snapshot: &AnySnapshot) -> Result<()> {
        if self.rows.peek().is_some() {
            return Ok(());
        }
        let Some((from, to)) = self.rest.take() else { return Ok(()) };
        let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
        if let (true, Some((last, _))) = (chunk.more, chunk.pairs.last()) {
            self.rest = Some((keyspace::after(last), to));
        }
        self.rows = chunk.pairs.into_iter().peekable();
        Ok(())
    }
}
