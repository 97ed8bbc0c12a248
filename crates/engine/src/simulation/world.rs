//! Simulated environment: the account, its clock and its store, with operator actions, disk failures and crashes.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleiad_model::Kind;
use pleiad_model::env::{Env, ManualEnv};
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Memory};

use super::SeededRng;
use crate::testing::*;
use crate::{
    AccountHost, Admitted, ContainerName, Engine, EngineResponse, Governance, JobKind, JobStep, OfferChange,
    OfferOwner, PartitionLimits, ThroughputRequest,
};

pub const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };
const PARTITIONS_MAX: usize = 24;
/// The name of the only snapshot.
const SNAPSHOT: &str = "kept";
/// One poll per millisecond: far longer than any job takes here.
const SETTLE_POLLS_MAX: usize = 60_000;

pub struct SimWorld {
    host: Arc<AccountHost>,
    /// The engine that serves the account.
    pub engine: Arc<Engine>,
    fault_plan: FaultPlan,
    env: Arc<ManualEnv>,
    limits: PartitionLimits,
    held_step: Option<JobStep>,
    spent: BTreeMap<u32, Spent>,
    restarts: u64,
    restores: u64,
}

/// The RUs that one partition has charged, and what bounds them.
struct Spent {
    since_ms: u64,
    ru: f64,
    largest_ru: f64,
    share_max_ru: f64,
}

impl SimWorld {
    pub async fn open(seed: u64) -> SimWorld {
        let governance = Governance { enforced: seed % 2 == 1, ..LIMITS.governance };
        let limits = PartitionLimits {
            partition_ru_max: 1000,
            partition_ru_initial: 1000,
            partition_bytes_max: 12_000,
            governance,
            ..LIMITS
        };
        let (fault_plan, env) = (FaultPlan::default(), Arc::new(ManualEnv::at(1_700_000_000_000, seed)));
        let store = Arc::new(AnyStore::Faulty(Faulty::new(Memory::new(), fault_plan.clone())));
        let engine = reopen_at(store, limits, env.clone()).await;
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Manual(1000)).await.unwrap();
        let (host, spent) = (new_host(engine), BTreeMap::new());
        SimWorld {
            engine: host.engine(),
            host,
            fault_plan,
            env,
            limits,
            held_step: None,
            spent,
            restarts: 0,
            restores: 0,
        }
    }

    pub fn at(&self) -> Admitted {
        admit(&self.engine, "c")
    }

    /// Whether a write may have to wait until the held job is released.
    pub fn is_fenced(&self) -> bool {
        matches!(self.held_step, Some(JobStep::Fence | JobStep::Publish))
    }

    pub fn is_healthy(&self) -> bool {
        self.engine.check_ready().is_ok()
    }

    /// Restarts as after a crash: committed writes are there, whatever jobs were doing.
    pub async fn restart(&mut self) {
        let (store, _) = self.engine.catalog.store_and_committer();
        self.host.close().await;
        self.fault_plan.restart();
        self.host = new_host(reopen_at(store, self.limits, self.env.clone()).await);
        self.restarts += 1;
        self.use_current_engine();
    }

    /// Switches to the engine that serves now; holds and budgets start anew.
    fn use_current_engine(&mut self) {
        self.engine = self.host.engine();
        self.held_step = None;
        self.spent.clear();
    }

    /// Takes the snapshot, replacing the one before; true if it was taken.
    pub async fn take_snapshot(&self) -> bool {
        let taken = self.host.take_snapshot(&whole(&self.host.engine()), SNAPSHOT, true).await;
        ok_or_tolerated(taken).is_some()
    }

    /// True if the account is as it was when the snapshot was taken; otherwise the restore failed and nothing has
    /// changed.
    pub async fn restore(&mut self) -> bool {
        let restored = ok_or_tolerated(self.host.restore(&whole(&self.host.engine()), SNAPSHOT).await).is_some();
        self.use_current_engine();
        if self.engine.is_retired() {
            self.restart().await; // the store failed so badly that no engine serves the account
        }
        self.restores += u64::from(restored);
        restored
    }

    pub fn fail_soon(&self, rng: &SeededRng) {
        let calls = [
            FaultPoint::Commit,
            FaultPoint::CommitApplied,
            FaultPoint::Ingest,
            FaultPoint::Read,
            FaultPoint::MakeCurrent,
        ];
        let Some(call) = rng.pick(&calls) else { return };
        self.fault_plan.fail(call, usize::try_from(rng.below(20)).unwrap());
    }

    pub fn pass_time(&self, rng: &SeededRng) {
        self.env.advance_ms([10, 1_000, 60_000, 3_600_000][usize::try_from(rng.below(4)).unwrap()]);
    }

    pub fn pass_ms(&self, ms: u64) {
        self.env.advance_ms(ms);
    }

    /// Lets time pass until throttled requests may be retried.
    pub fn wait(&self) {
        self.pass_ms(1000);
    }

    pub fn hold_or_release(&mut self, rng: &SeededRng) {
        const STEPS: [JobStep; 6] =
            [JobStep::Prepare, JobStep::Copy, JobStep::CatchUp, JobStep::Fence, JobStep::Publish, JobStep::Drop];
        if let Some(step) = self.held_step.take() {
            self.engine.catalog.jobs().release(step);
        } else if let Some(step) = rng.pick(&STEPS) {
            self.engine.catalog.jobs().hold(step);
            self.held_step = Some(step);
        }
    }

    fn ids(&self) -> Vec<u32> {
        self.engine
            .partitions(&at_container(&self.engine, C).unwrap())
            .unwrap()
            .iter()
            .map(|report| report.range.id)
            .collect()
    }

    pub async fn split(&mut self, rng: &SeededRng) {
        let ids = self.ids();
        if ids.len() < PARTITIONS_MAX && !self.is_fenced() {
            let range = if rng.one_in(2) { None } else { rng.pick(&ids) };
            ok_or_tolerated(self.engine.split(at_container(&self.engine, C).unwrap(), range, None).await);
        }
    }

    pub async fn merge(&mut self, rng: &SeededRng) {
        let (ids, count) = (self.ids(), 2 + usize::try_from(rng.below(2)).unwrap());
        let windows: Vec<&[u32]> = ids.windows(count).collect();
        if let Some(neighbors) = rng.pick(&windows).filter(|_| !self.is_fenced()) {
            ok_or_tolerated(self.engine.merge(at_container(&self.engine, C).unwrap(), neighbors).await);
        }
    }

    /// Changes the provisioned throughput: an increase makes partitions split; a decrease leaves them as they are.
    pub async fn change_offer(&mut self, rng: &SeededRng) {
        let ru = 400 + 100 * i64::try_from(rng.below(80)).unwrap();
        let tree = self.engine.catalog.tree();
        let offer = tree.offer(OfferOwner::Container(self.at().container().rid)).unwrap().rid;
        if !self.is_fenced() {
            let change = OfferChange::To(ThroughputRequest::Manual(ru));
            ok_or_tolerated(self.engine.catalog.replace_offer(offer, change, None).await);
        }
    }

    /// S65 to S68: a partition provides at most its share for the elapsed time and one second more, plus eight times
    /// its largest request, because up to eight are in flight.
    pub fn check_charge<T>(&mut self, answer: &EngineResponse<T>) {
        let Some(served_by) = answer.served_by.filter(|_| self.limits.governance.enforced) else { return };
        let (at, tree) = (self.at(), self.engine.catalog.tree());
        let offer = tree.offer(OfferOwner::Container(at.container().rid)).unwrap();
        let share_ru = f64::from(offer.throughput.ceiling_ru()) / at.container().partitions.len() as f64;
        let now_ms = self.env.now_ms();
        let first = || Spent { since_ms: now_ms, ru: 0.0, largest_ru: 0.0, share_max_ru: 0.0 };
        let spent = self.spent.entry(served_by.range).or_insert_with(first);
        spent.ru += answer.charge_ru;
        spent.largest_ru = spent.largest_ru.max(answer.charge_ru);
        spent.share_max_ru = spent.share_max_ru.max(share_ru);
        let seconds = (now_ms - spent.since_ms) as f64 / 1000.0 + 1.0;
        let most_ru = spent.share_max_ru * seconds + 8.0 * spent.largest_ru;
        assert!(spent.ru <= most_ru, "range {} charged {} RU, at most {most_ru} allowed", served_by.range, spent.ru);
    }

    /// Waits until all jobs have ended. Jobs that were aborted because the store failed start again after the restart.
    pub async fn finish_jobs(&mut self) {
        self.restart().await;
        for _ in 0..SETTLE_POLLS_MAX {
            if self.engine.catalog.tree().jobs.is_empty() {
                self.engine.catalog.tasks().wait_idle().await;
                if self.engine.catalog.tree().jobs.is_empty() {
                    return;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("jobs did not end: {:?}", self.engine.catalog.jobs().reports());
    }

    pub async fn check(&self) {
        wait_until_shards_dropped(&self.engine).await;
        assert_sound(&self.engine).await;
        let full = self.engine.partitions(&at_container(&self.engine, C).unwrap()).unwrap();
        let full =
            full.iter().filter(|report| report.item_bytes > report.item_bytes_max && !report.is_unsplittable).count();
        assert_eq!(full, 0, "partitions exceed their size limit and are not split");
    }

    pub fn summary(&self) -> String {
        let jobs = self.engine.catalog.jobs().reports();
        let count =
            |kind| jobs.iter().filter(|report| report.task.repartition().is_some_and(|job| job.kind == kind)).count();
        let (splits, merges) = (count(JobKind::Split), count(JobKind::Merge));
        let partitions = self.ids().len();
        format!(
            "{} restarts, {} restores; since the last {splits} splits and {merges} merges; {partitions} partitions",
            self.restarts, self.restores
        )
    }
}

fn new_host(engine: Arc<Engine>) -> Arc<AccountHost> {
    AccountHost::new(Arc::into_inner(engine).expect("the engine has no other owner yet"))
}

/// The result of an operator's request; `None` if it was rejected for a valid reason or because the store is failing.
fn ok_or_tolerated<T>(result: pleiad_model::Result<T>) -> Option<T> {
    let error = match result {
        Ok(done) => return Some(done),
        Err(error) => error,
    };
    let known =
        matches!(error.kind, Kind::Invalid | Kind::Locked | Kind::Moved { .. } | Kind::Internal | Kind::Unavailable);
    assert!(known, "{error:?}");
    None
}
