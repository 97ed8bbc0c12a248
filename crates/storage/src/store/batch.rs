//! Write batch: changes that are applied atomically, and guards that they depend on.
//!
//! Guarantees: changes apply in the order they were added, so the last one to a key wins. Guards are checked before
//! the first change, against the store as it was before the whole batch; if one fails, nothing is written.
//!
//! The committer concatenates the batches of all waiting transactions, so that must be cheap: the bytes of all
//! changes lie in one arena, and a change stores only the lengths of its two parts. Appending is two memory copies,
//! building allocates nothing per change, clearing keeps the memory.
//!
//! ```text
//! arena    d7 │ {"id":…} │ x7a │ │ x7b …
//! changes  Put 2,8         Delete 3,0 …        lengths, not offsets: nothing to rebase
//! ```

use bytes::Bytes;

/// One change or guard, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchWrite<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        key: &'a [u8],
    },
    /// Removes `[from, to)`; nothing if the range is empty.
    DeleteRange {
        from: &'a [u8],
        to: &'a [u8],
    },
    /// Holds if the value of `key` is exactly `value`; `None` means that the key does not exist.
    Expect {
        key: &'a [u8],
        value: Option<&'a [u8]>,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Batch {
    arena: Vec<u8>,
    changes: Vec<BatchEntry>,
    // Separate from the changes: a store checks all guards first, and most batches have none or one.
    guard_arena: Vec<u8>,
    guards: Vec<BatchEntry>,
}

#[derive(Clone, Copy, Debug)]
struct BatchEntry {
    kind: BatchOpKind,
    first_bytes: usize,
    second_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum BatchOpKind {
    Put,
    Delete,
    DeleteRange,
    ExpectValue,
    ExpectNone,
}

impl Batch {
    pub fn new() -> Self {
        Batch::default()
    }

    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        push(&mut self.arena, &mut self.changes, BatchOpKind::Put, key.as_ref(), value.as_ref());
    }

    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        push(&mut self.arena, &mut self.changes, BatchOpKind::Delete, key.as_ref(), &[]);
    }

    pub fn delete_range(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        push(&mut self.arena, &mut self.changes, BatchOpKind::DeleteRange, from.as_ref(), to.as_ref());
    }

    /// Makes the whole batch depend on the value of `key`.
    pub fn expect(&mut self, key: impl AsRef<[u8]>, value: Option<Bytes>) {
        let kind = if value.is_some() { BatchOpKind::ExpectValue } else { BatchOpKind::ExpectNone };
        push(&mut self.guard_arena, &mut self.guards, kind, key.as_ref(), &value.unwrap_or_default());
    }

    /// Moves the changes and guards of `other` to the end of this batch; `other` is empty afterwards.
    pub fn append(&mut self, other: &mut Batch) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else {
            self.arena.extend_from_slice(&other.arena);
            self.changes.extend_from_slice(&other.changes);
            self.guard_arena.extend_from_slice(&other.guard_arena);
            self.guards.extend_from_slice(&other.guards);
        }
        other.clear();
    }

    /// True if there are neither changes nor guards.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.guards.is_empty()
    }

    /// The number of changes, without guards.
    pub fn op_count(&self) -> usize {
        self.changes.len()
    }

    /// The size of keys and values of all changes.
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }

    /// The changes in the order they were added.
    pub fn ops(&self) -> impl Iterator<Item = BatchWrite<'_>> {
        iter_writes(&self.arena, &self.changes)
    }

    /// The guards, always `BatchWrite::Expect`.
    pub fn guards(&self) -> impl Iterator<Item = BatchWrite<'_>> {
        iter_writes(&self.guard_arena, &self.guards)
    }

    pub fn clear(&mut self) {
        self.arena.clear();
        self.changes.clear();
        self.guard_arena.clear();
        self.guards.clear();
    }
}

fn push(arena: &mut Vec<u8>, entries: &mut Vec<BatchEntry>, kind: BatchOpKind, first: &[u8], second: &[u8]) {
    arena.reserve(first.len() + second.len());
    arena.extend_from_slice(first);
    arena.extend_from_slice(second);
    entries.push(BatchEntry { kind, first_bytes: first.len(), second_bytes: second.len() });
}

fn iter_writes<'a>(arena: &'a [u8], entries: &'a [BatchEntry]) -> impl Iterator<Item = BatchWrite<'a>> {
    entries.iter().scan(arena, |rest, entry| {
        let (first, tail) = rest.split_at_checked(entry.first_bytes)?;
        let (second, tail) = tail.split_at_checked(entry.second_bytes)?;
        *rest = tail;
        Some(entry.kind.with_parts(first, second))
    })
}

impl BatchOpKind {
    fn with_parts<'a>(self, first: &'a [u8], second: &'a [u8]) -> BatchWrite<'a> {
        match self {
            BatchOpKind::Put => BatchWrite::Put { key: first, value: second },
            BatchOpKind::Delete => BatchWrite::Delete { key: first },
            BatchOpKind::DeleteRange => BatchWrite::DeleteRange { from: first, to: second },
            BatchOpKind::ExpectValue => BatchWrite::Expect { key: first, value: Some(second) },
            BatchOpKind::ExpectNone => BatchWrite::Expect { key: first, value: None },
        }
    }
}

#[cfg(test)]
mod tests;
