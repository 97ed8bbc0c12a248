//! Rows of database copies in progress.
//!
//! ```text
//! {"from":"Sl8fAA==","to":"test-7","shards":[12,13],"started":1700000000000}
//! ```

use super::*;
use crate::catalog::copy::DatabaseCopy;

const COPY: u8 = b'b';

pub fn put_copy(batch: &mut Batch, copy: &DatabaseCopy) {
    let shards: Vec<Value> = copy.shards.iter().map(|&shard| Value::from(shard)).collect();
    let row = Object::new()
        .with("from", copy.from.to_string())
        .with("to", copy.to.as_str())
        .with("shards", shards)
        .with("started", copy.started_ms);
    put(batch, COPY, &copy.id.to_be_bytes(), row);
}

pub fn delete_copy(batch: &mut Batch, id: u64) {
    batch.delete(keyspace::catalog(COPY, &id.to_be_bytes()));
}

pub async fn load_copies(store: &AnyStore, tree: &mut CatalogTree) -> Result<()> {
    for (key, row) in scan(store, COPY).await? {
        let copy = load_copy(u64::from_be_bytes(*tail(&key)?), &json::parse(&row)?)?;
        tree.copies.insert(copy.id, Arc::new(copy));
    }
    Ok(())
}

fn load_copy(id: u64, row: &Value) -> Result<DatabaseCopy> {
    let corrupt = || Error::corrupt("row of a database copy");
    let shard = |shard: &Value| shard.as_i64().and_then(|n| u64::try_from(n).ok()).ok_or_else(corrupt);
    let shards = row.get("shards").and_then(Value::as_array).ok_or_else(corrupt)?;
    Ok(DatabaseCopy {
        id,
        from: DatabaseRid::parse(text(row, "from")?).ok_or_else(corrupt)?,
        to: text(row, "to")?.to_owned(),
        shards: shards.iter().map(shard).collect::<Result<_>>()?,
        started_ms: number(row, "started")?,
    })
}
