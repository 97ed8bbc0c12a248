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
const KEPT: &str = "kept";
/// In milliseconds: far longer than any job takes here.
const SETTLED_AFTER_LOOKS: usize = 60_000;

pub struct SimWorld {
    live: Arc<AccountHost>,
    /// The engine that serves the account.
    pub engine: Arc<Engine>,
    script: FaultPlan,
    env: Arc<ManualEnv>,
    limits: PartitionLimits,
    held: Option<JobStep>,
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
        let (script, env) = (FaultPlan::default(), Arc::new(ManualEnv::at(1_700_000_000_000, seed)));
        let store = Arc::new(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())));
        let engine = reopen_at(store, limits, env.clone()).await;
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Manual(1000)).await.unwrap();
        let (live, spent) = (live(engine), BTreeMap::new());
        SimWorld { engine: live.engine(), live, script, env, limits, held: None, spent, restarts: 0, restores: 0 }
    }

    pub fn at(&self) -> Admitted {
        admit(&self.engine, "c")
    }

    /// Whether a write may have to wait until the held job is released.
    pub fn is_fenced(&self) -> bool {
        matches!(self.held, Some(JobStep::Fence | JobStep::Publish))
    }

    pub fn is_healthy(&self) -> bool {
        self.engine.check_ready().is_ok()
    }

    /// Restarts as after a crash: committed writes are there, whatever jobs were doing.
    pub async fn restart(&mut self) {
        let (store, _) = self.engine.catalog.hands();
        self.live.close().await;
        self.script.restart();
        self.live = live(reopen_at(store, self.limits, self.env.clone()).await);
        self.restarts += 1;
        self.begin_anew();
    }

    /// Switches to the engine that serves now; holds and budgets start anew.
    fn begin_anew(&mut self) {
        self.engine = self.live.engine();
        self.held = None;
        self.spent.clear();
    }

    /// Takes the snapshot, replacing the one before; true if it was taken.
    pub async fn keep(&self) -> bool {
        let taken = self.live.take_snapshot(KEPT, true).await;
        refused_with_reason(taken).is_some()
    }

    /// True if the account is as it was when the snapshot was taken; otherwise the restore failed and nothing has
    /// changed.
    pub async fn restore(&mut self) -> bool {
        let restored = refused_with_reason(self.live.restore(KEPT).await).is_some();
        self.begin_anew();
        if self.engine.is_retired() {
            self.restart().await; // the store failed so badly that no engine serves the account
        }
        self.restores += u64::from(restored);
        restored
    }

    pub fn fail_soon(&self, chance: &SeededRng) {
        let calls =
            [FaultPoint::Commit, FaultPoint::CommitKept, FaultPoint::Ingest, FaultPoint::Read, FaultPoint::TakeOver];
        let Some(call) = chance.pick(&calls) else { return };
        self.script.fail(call, usize::try_from(chance.below(20)).unwrap());
    }

    pub fn pass_time(&self, chance: &SeededRng) {
        self.env.advance_ms([10, 1_000, 60_000, 3_600_000][usize::try_from(chance.below(4)).unwrap()]);
    }

    pub fn pass_ms(&self, ms: u64) {
        self.env.advance_ms(ms);
    }

    /// Lets time pass until throttled requests may be retried.
    pub fn wait(&self) {
        self.pass_ms(1000);
    }

    pub fn hold_or_release(&mut self, chance: &SeededRng) {
        const STEPS: [JobStep; 6] =
            [JobStep::Prepare, JobStep::Copy, JobStep::CatchUp, JobStep::Fence, JobStep::Publish, JobStep::Drop];
        if let Some(step) = self.held.take() {
            self.engine.release_jobs_at(step);
        } else if let Some(step) = chance.pick(&STEPS) {
            self.engine.hold_jobs_at(step);
            self.held = Some(step);
        }
    }

    fn ids(&self) -> Vec<u32> {
        self.engine.partitions(C).unwrap().iter().map(|report| report.range.id).collect()
    }

    pub async fn split(&mut self, chance: &SeededRng) {
        let ids = self.ids();
        if ids.len() < PARTITIONS_MAX && !self.is_fenced() {
            let range = if chance.once_in(2) { None } else { chance.pick(&ids) };
            refused_with_reason(self.engine.split(C, range, None).await);
        }
    }

    pub async fn merge(&mut self, chance: &SeededRng) {
        let (ids, count) = (self.ids(), 2 + usize::try_from(chance.below(2)).unwrap());
        let windows: Vec<&[u32]> = ids.windows(count).collect();
        if let Some(neighbours) = chance.pick(&windows).filter(|_| !self.is_fenced()) {
            refused_with_reason(self.engine.merge(C, neighbours).await);
        }
    }

    /// Changes the provisioned throughput: an increase makes partitions split; a decrease leaves them as they are.
    pub async fn reserve(&mut self, chance: &SeededRng) {
        let ru = 400 + 100 * i64::try_from(chance.below(80)).unwrap();
        let tree = self.engine.catalog.tree();
        let offer = tree.offer(OfferOwner::Container(self.at().container().rid)).unwrap().rid;
        if !self.is_fenced() {
            let asked = OfferChange::To(ThroughputRequest::Manual(ru));
            refused_with_reason(self.engine.catalog.replace_offer(offer, asked, None).await);
        }
    }

    /// S65 to S68: a partition provides its share in every second, what is left of the first one, and one request
    /// beyond.
    pub fn paid<T>(&mut self, answer: &EngineResponse<T>) {
        let Some(place) = answer.place.filter(|_| self.limits.governance.enforced) else { return };
        let (at, tree) = (self.at(), self.engine.catalog.tree());
        let offer = tree.offer(OfferOwner::Container(at.container().rid)).unwrap();
        let share_ru = f64::from(offer.throughput.ceiling_ru()) / at.container().partitions.len() as f64;
        let now_ms = self.env.now_ms();
        let first = || Spent { since_ms: now_ms, ru: 0.0, largest_ru: 0.0, share_max_ru: 0.0 };
        let spent = self.spent.entry(place.range).or_insert_with(first);
        spent.ru += answer.charge_ru;
        spent.largest_ru = spent.largest_ru.max(answer.charge_ru);
        spent.share_max_ru = spent.share_max_ru.max(share_ru);
        let seconds = (now_ms - spent.since_ms) as f64 / 1000.0 + 1.0;
        let most_ru = spent.share_max_ru * seconds + 8.0 * spent.largest_ru;
        assert!(spent.ru <= most_ru, "range {} charged {} RU, at most {most_ru} allowed", place.range, spent.ru);
    }

    /// Waits until all jobs have ended. Jobs that were aborted because the store failed start again after the restart.
    pub async fn settle(&mut self) {
        self.restart().await;
        for _ in 0..SETTLED_AFTER_LOOKS {
            if self.engine.catalog.tree().jobs.is_empty() {
                self.engine.catalog.chores().ended().await;
                if self.engine.catalog.tree().jobs.is_empty() {
                    return;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("jobs did not end: {:?}", self.engine.jobs());
    }

    pub async fn check(&self) {
        all_erased(&self.engine).await;
        assert_sound(&self.engine).await;
        let full = self.engine.partitions(C).unwrap();
        let full = full.iter().filter(|report| report.item_bytes > report.item_bytes_max && !report.is_stuck).count();
        assert_eq!(full, 0, "partitions exceed their size limit and are not split");
    }

    pub fn told(&self) -> String {
        let jobs = self.engine.jobs();
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

fn live(engine: Arc<Engine>) -> Arc<AccountHost> {
    AccountHost::new(Arc::into_inner(engine).expect("the engine has no other owner yet"))
}

/// The result of an operator's request; `None` if it was rejected for a valid reason or because the store is failing.
fn refused_with_reason<T>(asked: pleiad_model::Result<T>) -> Option<T> {
    let error = match asked {
        Ok(done) => return Some(done),
        Err(error) => error,
    };
    let known =
        matches!(error.kind, Kind::Invalid | Kind::Locked | Kind::Moved { .. } | Kind::Internal | Kind::Unavailable);
    assert!(known, "{error:?}");
    None
}
