//! Transactional batch and bulk: many operations in one request, all or nothing, or each on its own.
//!
//! Guarantees: a batch is one transaction on one logical partition, in the order of its operations; when one fails,
//! nothing is written, and the others report a failed dependency. In bulk every operation has its own outcome. Those of
//! one logical partition run in their order and become durable together; different logical partitions run concurrently.
//! A bulk request that stops at the first failure instead runs and commits its operations one by one.
//!
//! ```text
//! batch   create a · replace b (404) · read c     424 · 404 · 424
//! bulk    create a · replace b (404) · read c     201 · 404 · 200
//! ```

mod join_all; // polls several futures on one task

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::patch::Patch;
use pleiad_model::{Error, Fact, Result, Value};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{
    ItemKey, OperationEffect, Precondition, Record, Rejected, Transaction, Verb, WriteError, price,
};

use crate::item::{ItemRead, draft, key_mismatch, key_of_request};
use crate::patch::PreparedPatch;
use crate::write_retry::{WriteOutcome, WriteTarget, check_writable};
use crate::{Action, Admitted, Engine, EngineResponse, FeedRange, SessionToken, WriteOptions};

pub const BATCH_OPERATIONS_MAX: usize = 100;

pub struct BatchOperation {
    /// A body that cannot be parsed fails its operation, not the request.
    pub action: Result<BatchAction>,
    /// The target item, where the body does not name it.
    pub id: Option<String>,
    /// In bulk every operation has its own key.
    pub key: Option<PartitionKey>,
    pub options: WriteOptions,
    /// The version that the client already has, for a read.
    pub known_etag: Option<String>,
}

impl BatchOperation {
    fn is_read(&self) -> bool {
        matches!(self.action, Ok(BatchAction::Read))
    }
}

pub enum BatchAction {
    Create(Value),
    Upsert(Value),
    Replace(Value),
    Patch(Patch),
    Read,
    Delete,
}

impl BatchAction {
    /// What a caller needs to be allowed for it.
    pub fn required_action(&self) -> Action {
        match self {
            BatchAction::Create(_) => Action::CreateItem,
            BatchAction::Upsert(_) => Action::UpsertItem,
            BatchAction::Replace(_) | BatchAction::Patch(_) => Action::ReplaceItem,
            BatchAction::Read => Action::ReadItem,
            BatchAction::Delete => Action::DeleteItem,
        }
    }
}

#[derive(Debug)]
pub struct BatchOperationResult {
    pub result: Result<OperationOutcome>,
    pub charge_ru: f64,
}

#[derive(Debug)]
pub enum OperationOutcome {
    Created(Record),
    Replaced(Record),
    Read(Record),
    /// The client already has this version.
    Unchanged(Record),
    Deleted,
}

impl Engine {
    /// Runs a transactional batch: all or nothing, in one logical partition.
    pub async fn run_batch(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        operations: &[BatchOperation],
        session: Option<&SessionToken>,
    ) -> EngineResponse<Vec<BatchOperationResult>> {
        if let Err(error) = check_actions(at, operations) {
            return EngineResponse::failed(error);
        }
        let allowed = || if operations.iter().all(BatchOperation::is_read) { Ok(()) } else { check_writable(at) };
        let key = match check_count(operations).and_then(|()| allowed()).and_then(|()| key_of_request(at, key)) {
            Ok(key) => key,
            Err(error) => return EngineResponse::failed(error),
        };
        let operations: Vec<(usize, &BatchOperation)> = operations.iter().enumerate().collect();
        let group = BatchGroup { logical: LogicalKey::new(at.container().schema.key.as_ref(), &key), key, operations };
        let answer = self.run_group(at, &group, FailureMode::Abort, session).await;
        EngineResponse {
            result: answer.result.map(in_request_order),
            served_by: answer.served_by,
            charge_ru: answer.charge_ru,
        }
    }

    /// Runs each operation on its own. `range` is the partition key range that the client expects them in. Without
    /// `continue_on_error`, no operation runs after the first failure.
    pub async fn run_bulk(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        range: Option<u32>,
        operations: &[BatchOperation],
        continue_on_error: bool,
        session: Option<&SessionToken>,
    ) -> EngineResponse<Vec<BatchOperationResult>> {
        let checked = check_actions(at, operations)
            .and_then(|()| check_count(operations))
            .and_then(|()| range.map_or(Ok(()), |range| at.check_current(&FeedRange::PartitionKeyRange(range))));
        if let Err(error) = checked {
            return EngineResponse::failed(error);
        }
        let (groups, mut answers) = groups(at, key, operations);
        let groups = if continue_on_error { groups } else { one_by_one(groups) };
        let (mut served_by, mut charge_ru) = (None, 0.0);
        let mut collect = |group: &BatchGroup<'_>, answer: EngineResponse<Vec<(usize, BatchOperationResult)>>| {
            (served_by, charge_ru) = (answer.served_by.or(served_by), charge_ru + answer.charge_ru);
            match answer.result {
                Ok(done) => answers.extend(done),
                Err(error) => answers.extend(group.all_failed(&error)),
            }
        };
        if continue_on_error {
            let running = groups.iter().map(|group| self.run_group(at, group, FailureMode::Isolated, session));
            let done = join_all::join_all(running.collect()).await;
            groups.iter().zip(done).for_each(|(group, answer)| collect(group, answer));
        } else {
            let mut failed = false;
            for group in &groups {
                let answer = match failed {
                    true => EngineResponse::priced(Err(failed_dependency()), 0.0),
                    false => self.run_group(at, group, FailureMode::Isolated, session).await,
                };
                failed |= answer.result.as_ref().map_or(true, |done| done.iter().any(|(_, one)| one.result.is_err()));
                collect(group, answer);
            }
        }
        EngineResponse { result: Ok(in_request_order(answers)), served_by, charge_ru }
    }

    async fn run_group(
        &self,
        at: &Admitted,
        group: &BatchGroup<'_>,
        failure: FailureMode,
        session: Option<&SessionToken>,
    ) -> EngineResponse<Vec<(usize, BatchOperationResult)>> {
        let ts_s = self.now_s();
        self.with_current_partition(at, &group.logical, |mut target| async move {
            let outcome = self.run_operations(at, &mut target, group, failure, session, ts_s).await;
            (target.admission, outcome)
        })
        .await
    }

    /// Runs the operations of a group in one transaction. Each is charged as soon as it has run.
    async fn run_operations(
        &self,
        at: &Admitted,
        target: &mut WriteTarget<'_>,
        group: &BatchGroup<'_>,
        failure: FailureMode,
        session: Option<&SessionToken>,
        ts_s: u32,
    ) -> Result<WriteOutcome<Vec<(usize, BatchOperationResult)>>, WriteError> {
        let WriteTarget { partition, container, admission } = target;
        // Writes alone do not depend on what the client has seen.
        admission.check_session(at, session.filter(|_| group.has_read()))?;
        let mut tx = partition.begin_latched(&container.schema, group.logical.clone(), ts_s).await;
        let mut answers = Vec::with_capacity(group.operations.len());
        for (number, operation) in &group.operations {
            let answer = self.run_operation(at, &mut tx, group, operation).await;
            let failed = answer.result.is_err();
            admission.charge(answer.charge_ru);
            answers.push((*number, answer));
            if failed && failure == FailureMode::Abort {
                return abort_batch(tx, answers, group).await;
            }
        }
        let charge_ru = answers.iter().map(|(_, answer)| answer.charge_ru).sum();
        let lsn = tx.commit().await?;
        Ok(WriteOutcome { value: answers, lsn, charge_ru })
    }

    async fn run_operation(
        &self,
        at: &Admitted,
        tx: &mut Transaction<'_>,
        group: &BatchGroup<'_>,
        operation: &BatchOperation,
    ) -> BatchOperationResult {
        match self.try_operation(at, tx, group, operation).await {
            Ok((done, charge_ru)) => BatchOperationResult { result: Ok(done), charge_ru },
            Err(Rejected { error, charge_ru }) => BatchOperationResult { result: Err(error), charge_ru },
        }
    }

    async fn try_operation(
        &self,
        at: &Admitted,
        tx: &mut Transaction<'_>,
        group: &BatchGroup<'_>,
        operation: &BatchOperation,
    ) -> Result<(OperationOutcome, f64), Rejected> {
        if !operation.is_read() {
            check_writable(at)?;
        }
        let (key, options) = (Some(&group.key), &operation.options);
        match operation.action.as_ref().map_err(Error::clone)? {
            BatchAction::Create(body) => {
                let draft = draft(at, key, body.clone(), options, None)?;
                write_result(tx.put(Verb::Create, &draft, &Precondition::None).await?)
            }
            BatchAction::Upsert(body) => {
                let draft = draft(at, key, body.clone(), options, None)?;
                write_result(tx.put(Verb::Upsert, &draft, &options.condition).await?)
            }
            BatchAction::Replace(body) => {
                let draft = draft(at, key, body.clone(), options, Some(group.item(operation)?))?;
                write_result(tx.put(Verb::Replace, &draft, &options.condition).await?)
            }
            BatchAction::Patch(patch) => {
                let (change, target) = (PreparedPatch::new(at, patch)?, group.item(operation)?);
                write_result(change.apply(at, &*self.env, tx, key, &target, &options.condition).await?)
            }
            BatchAction::Read => {
                let missing = || Rejected { error: Fact::ItemMissing.into(), charge_ru: at.read_ru(price::MISS_RU) };
                let record = tx.read(&group.item(operation)?).await?.ok_or_else(missing)?;
                let read = ItemRead::new(record, operation.known_etag.as_deref());
                let charge_ru = at.read_ru(read.charge_ru());
                Ok((OperationOutcome::from(read), charge_ru))
            }
            BatchAction::Delete => {
                let effect = tx.delete(&group.item(operation)?, &options.condition).await?;
                Ok((OperationOutcome::Deleted, effect.charge_ru))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureMode {
    Abort,
    Isolated,
}

/// Operations on one logical partition, with their positions in the request.
struct BatchGroup<'o> {
    logical: LogicalKey,
    key: PartitionKey,
    operations: Vec<(usize, &'o BatchOperation)>,
}

impl BatchGroup<'_> {
    fn has_read(&self) -> bool {
        self.operations.iter().any(|(_, operation)| operation.is_read())
    }

    fn item(&self, operation: &BatchOperation) -> Result<ItemKey> {
        let key = operation.id.as_ref().map(|id| self.logical.clone().item(id));
        Ok(key.ok_or(Fact::BatchItemUnnamed)?)
    }

    /// The results when the group as a whole failed.
    fn all_failed(&self, error: &Error) -> Vec<(usize, BatchOperationResult)> {
        let to_failure = |(number, _): &(usize, &BatchOperation)| {
            (*number, BatchOperationResult { result: Err(error.clone()), charge_ru: 0.0 })
        };
        self.operations.iter().map(to_failure).collect()
    }
}

/// Rolls back a batch whose last result is a failure: nothing is written.
async fn abort_batch(
    tx: Transaction<'_>,
    mut answers: Vec<(usize, BatchOperationResult)>,
    group: &BatchGroup<'_>,
) -> Result<WriteOutcome<Vec<(usize, BatchOperationResult)>>, WriteError> {
    let charge_ru = answers.iter().map(|(_, answer)| answer.charge_ru).sum();
    let Some((failed_number, BatchOperationResult { result: Err(error), charge_ru: price_ru })) = answers.pop() else {
        return Err(Error::internal("a batch ended without a failure").into());
    };
    let lsn = tx.lsn();
    let error = match tx.abort(Rejected { error, charge_ru: price_ru }).await {
        WriteError::Outdated => return Err(WriteError::Outdated),
        WriteError::Failed(rejected) => rejected.error,
    };
    let answer = |(number, _): &(usize, &BatchOperation)| {
        let (result, charge_ru) =
            if *number == failed_number { (Err(error.clone()), price_ru) } else { (Err(failed_dependency()), 0.0) };
        (*number, BatchOperationResult { result, charge_ru })
    };
    Ok(WriteOutcome { value: group.operations.iter().map(answer).collect(), lsn, charge_ru })
}

fn failed_dependency() -> Error {
    Fact::FailedDependency.into()
}

/// Operations that cannot be parsed fail one by one, with an error of their own.
fn check_actions(at: &Admitted, operations: &[BatchOperation]) -> Result<()> {
    operations
        .iter()
        .filter_map(|operation| operation.action.as_ref().ok())
        .try_for_each(|action| at.check(action.required_action()))
}

fn check_count(operations: &[BatchOperation]) -> Result<()> {
    match operations.len() {
        0 => Err(Fact::BatchEmpty.into()),
        1..=BATCH_OPERATIONS_MAX => Ok(()),
        operations => Err(Fact::BatchTooLong { operations, operations_max: BATCH_OPERATIONS_MAX }.into()),
    }
}

/// Groups operations by logical partition, in request order; those without a usable key get their error here.
fn groups<'o>(
    at: &Admitted,
    key: Option<&PartitionKey>,
    operations: &'o [BatchOperation],
) -> (Vec<BatchGroup<'o>>, Vec<(usize, BatchOperationResult)>) {
    let (mut groups, mut rejected) = (Vec::<BatchGroup<'o>>::new(), Vec::new());
    for (number, operation) in operations.iter().enumerate() {
        let key = match key_of_operation(at, key, operation) {
            Ok(key) => key,
            Err(error) => {
                rejected.push((number, BatchOperationResult { result: Err(error), charge_ru: 0.0 }));
                continue;
            }
        };
        match groups.iter_mut().find(|group| group.key == key) {
            Some(group) => group.operations.push((number, operation)),
            None => {
                let logical = LogicalKey::new(at.container().schema.key.as_ref(), &key);
                groups.push(BatchGroup { logical, key, operations: vec![(number, operation)] });
            }
        }
    }
    (groups, rejected)
}

/// A request for one key is confined to it, whatever its operations name: the client was authorized for that key.
fn key_of_operation(at: &Admitted, key: Option<&PartitionKey>, operation: &BatchOperation) -> Result<PartitionKey> {
    match (&operation.key, key) {
        (Some(own), Some(of_request)) if own != of_request => Err(key_mismatch(of_request, own)),
        (own, given) => key_of_request(at, own.as_ref().or(given)),
    }
}

/// Groups of one operation each, in request order.
fn one_by_one(groups: Vec<BatchGroup<'_>>) -> Vec<BatchGroup<'_>> {
    let mut single: Vec<BatchGroup<'_>> = groups
        .into_iter()
        .flat_map(|BatchGroup { logical, key, operations }| {
            operations.into_iter().map(move |operation| BatchGroup {
                logical: logical.clone(),
                key: key.clone(),
                operations: vec![operation],
            })
        })
        .collect();
    single.sort_by_key(|group| group.operations.first().map(|(number, _)| *number));
    single
}

fn in_request_order(mut answers: Vec<(usize, BatchOperationResult)>) -> Vec<BatchOperationResult> {
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn write_result(effect: OperationEffect) -> Result<(OperationOutcome, f64), Rejected> {
    let OperationEffect { record, created, charge_ru } = effect;
    let record = record.ok_or_else(|| Error::internal("a write left no item"))?;
    Ok((if created { OperationOutcome::Created(record) } else { OperationOutcome::Replaced(record) }, charge_ru))
}

impl From<ItemRead> for OperationOutcome {
    fn from(ItemRead { record, is_unchanged }: ItemRead) -> Self {
        if is_unchanged { OperationOutcome::Unchanged(record) } else { OperationOutcome::Read(record) }
    }
}

#[cfg(test)]
mod tests;
