//! Randomised simulation: writes, reads, paged reads, offers, splits, merges, held jobs, snapshots, restores, clock
//! jumps, failing stores and crashes, in random order.
//!
//! It checks what clients can observe: no acknowledged write is lost or duplicated, every paged read is complete
//! however partitions change during it, no partition provides more than its share, and every job ends. A restore leaves
//! what was acknowledged when its snapshot was taken, or, if it fails, everything as it was. A seed decides which
//! operations run and in which order; jobs have threads of their own, whose timing no seed repeats. A failure prints
//! the line that runs it again:
//!
//! ```text
//! PLEIAD_SIMULATION_SEED=0x9c41 cargo test --release -p pleiad-engine simulation
//! PLEIAD_SIMULATION_SEEDS=1000  …runs that many seeds
//! ```

mod model; // what was acknowledged to clients
mod paged_read; // paged reads with saved cursors
mod world; // the account, its clock and its store

use model::Model;
use paged_read::PagedReads;
use pleiad_model::env::{Env, ManualEnv};
use world::SimWorld;

const SEEDS: u64 = 20;
const STEPS: u64 = 1500;
/// Short enough that some requests exceed the provisioned throughput.
const STEP_MS: u64 = 5;

/// Random choices that the seed determines.
pub struct SeededRng(ManualEnv);

impl SeededRng {
    fn below(&self, end: u64) -> u64 {
        self.0.random_u64() % end.max(1)
    }

    fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&self, of: &[T]) -> Option<T> {
        of.get(usize::try_from(self.below(of.len() as u64)).unwrap_or(0)).copied()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn s28_s47_s48_s49_partition_changes_are_invisible_to_clients() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        let digits = text.trim_start_matches("0x");
        u64::from_str_radix(digits, if digits == text { 10 } else { 16 }).ok()
    };
    let seeds = match number("PLEIAD_SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PLEIAD_SIMULATION_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        // Printed first: a test that fails shows what it printed.
        println!("PLEIAD_SIMULATION_SEED={seed:#x} cargo test --release -p pleiad-engine simulation");
        let summary = simulate(seed).await;
        println!("{summary}");
    }
}

async fn simulate(seed: u64) -> String {
    let rng = SeededRng(ManualEnv::at(0, seed));
    let mut world = SimWorld::open(seed).await;
    let (mut model, mut paged_reads) = (Model::default(), PagedReads::default());
    for _ in 0..STEPS {
        world.pass_ms(STEP_MS);
        step(&rng, &mut world, &mut model, &mut paged_reads).await;
        if !world.is_healthy() {
            world.restart().await;
        }
        model.resolve_uncertain(&mut world).await;
    }
    world.finish_jobs().await;
    paged_reads.finish(&world, &model).await;
    model.check(&world).await;
    world.check().await;
    format!("{}; {} writes, {} paged reads", world.summary(), model.writes, paged_reads.ended)
}

async fn step(rng: &SeededRng, world: &mut SimWorld, model: &mut Model, paged_reads: &mut PagedReads) {
    match rng.below(100) {
        0..35 => model.write(rng, world, 1).await,
        35..45 => model.write(rng, world, 8).await,
        45..60 => model.read(rng, world).await,
        60..84 => paged_reads.page(rng, world, model).await,
        84..88 => world.split(rng).await,
        88..91 => world.merge(rng).await,
        91..93 => world.change_offer(rng).await,
        93..96 => world.hold_or_release(rng),
        96..98 => world.pass_time(rng),
        98 if rng.one_in(2) => take_snapshot(world, model).await,
        98 => restore(world, model, paged_reads).await,
        _ if rng.one_in(2) => world.fail_soon(rng),
        _ => world.restart().await,
    }
}

async fn take_snapshot(world: &mut SimWorld, model: &mut Model) {
    if world.take_snapshot().await {
        model.take_snapshot();
    }
}

async fn restore(world: &mut SimWorld, model: &mut Model, paged_reads: &mut PagedReads) {
    if model.has_snapshot() && world.restore().await {
        model.restore();
        paged_reads.note_restore();
    }
}
