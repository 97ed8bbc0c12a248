//! Crash recovery: after a crash every acknowledged write is there, complete, with all of its index rows and totals.
//!
//! The real binary is killed (SIGKILL) under load, repeatedly, on the same data directory. A kill leaves the page cache
//! intact, so further tests simulate a power failure and also remove what was not synced. A failure prints the seed,
//! which repeats the random choices, though not the timing of threads:
//!
//! ```text
//! PLEIAD_CRASH_SEED=0x9c41 cargo test --release -p pleiad --test crash
//! ```
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic is how a test fails

#[path = "crash/rng.rs"]
mod rng; // seeded random numbers
#[path = "crash/client.rs"]
mod client; // signed requests
#[path = "crash/load.rs"]
mod load; // clients under load, and the state that each expects
#[path = "crash/power_loss.rs"]
mod power_loss; // simulated power failure: loses data that was not synced
#[path = "crash/restore.rs"]
mod restore; // restores of account snapshots
#[path = "crash/container_churn.rs"]
mod container_churn; // containers that are created and deleted
#[path = "crash/server.rs"]
mod server; // the server process
#[path = "crash/damage.rs"]
mod damage; // damaged write-ahead logs
#[path = "crash/failing_disk.rs"]
mod failing_disk; // a disk that fails and works again

use std::time::Duration;

use load::{Workload, create_containers};
use pleiad_model::env::{Env, SystemEnv};
use power_loss::{PowerFailure, UnsyncedData};
use rng::SeededRng;
use server::{RunMode, Site};

const KILLS: u64 = 26;
const POWER_FAILURES: u64 = 8;

/// Prints the seed, so that the output of a failed test contains it.
fn seeded_rng(test: &str) -> SeededRng {
    let given = std::env::var("PLEIAD_CRASH_SEED").ok();
    let parse = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal seed");
    let seed = given.map_or_else(|| SystemEnv.random_u64() & 0xFFFF_FFFF, parse);
    println!("{test}: PLEIAD_CRASH_SEED={seed:#x}");
    SeededRng::new(seed)
}

fn random_delay(rng: &mut SeededRng, from_ms: u64, to_ms: u64) -> Duration {
    Duration::from_millis(rng.between(from_ms, to_ms))
}

/// A site whose containers exist and are synced to disk.
fn site() -> Site {
    let site = Site::new();
    let server = site.start(RunMode::Serve);
    create_containers(&server);
    server.kill();
    site
}

#[track_caller]
fn check_nothing_lost(workload: &mut Workload, site: &Site, mode: RunMode) -> server::Server {
    let server = site.start(mode);
    let differences = workload.compare(&server);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    server
}

#[test]
fn a_kill_loses_no_acknowledged_write_and_leaves_no_partial_write() {
    let mut rng = seeded_rng("kill");
    let (site, mut workload) = (site(), Workload::new(&mut rng));
    for round in 0..KILLS {
        let mode = if round % 2 == 0 { RunMode::Dev } else { RunMode::Serve };
        if rng.one_in(4) {
            site.kill_during_start(mode, random_delay(&mut rng, 0, 60));
        }
        let server = check_nothing_lost(&mut workload, &site, mode);
        workload.work_until_killed(server, random_delay(&mut rng, 20, 600));
        site.inspect();
    }
    check_nothing_lost(&mut workload, &site, RunMode::Serve).kill();
    println!("{} acknowledged writes, {} items at the end", workload.acknowledged(), workload.items());
    assert!(workload.acknowledged() > KILLS * 20, "the load was too light to test anything");
}

#[test]
fn a_power_failure_loses_no_write_that_serve_acknowledged() {
    let mut rng = seeded_rng("power");
    let (mut site, mut workload) = (site(), Workload::new(&mut rng));
    let mut power = PowerFailure::new(&mut site);
    let mut lost_bytes = 0;
    for round in 0..POWER_FAILURES {
        let server = check_nothing_lost(&mut workload, &site, RunMode::Serve);
        workload.work_until_killed(server, random_delay(&mut rng, 100, 700));
        let unsynced = if round % 2 == 0 { UnsyncedData::Lost } else { UnsyncedData::PartlyKept(&mut rng) };
        lost_bytes += power.cut(unsynced).bytes;
        site.inspect();
    }
    check_nothing_lost(&mut workload, &site, RunMode::Serve).kill();
    println!("{} acknowledged writes; {lost_bytes} unsynced bytes were lost", workload.acknowledged());
    assert!(workload.acknowledged() > POWER_FAILURES * 20, "the load was too light to test anything");
}

#[test]
fn a_new_data_directory_survives_a_power_failure() {
    let mut site = Site::new();
    let mut power = PowerFailure::new(&mut site);
    let server = site.start(RunMode::Serve);
    create_containers(&server);
    server.kill();
    power.cut(UnsyncedData::Lost);
    let mut rng = seeded_rng("new directory");
    check_nothing_lost(&mut Workload::new(&mut rng), &site, RunMode::Serve).kill();
    site.inspect();
}

/// Shows that the simulated power failure loses data, and that `dev` loses each write completely or not at all.
#[test]
fn a_power_failure_loses_only_unsynced_writes_of_dev() {
    let mut rng = seeded_rng("power, dev");
    let (mut site, mut workload) = (site(), Workload::without_container_churn(&mut rng));
    let mut power = PowerFailure::new(&mut site);
    site.flags = ["--sync-interval-ms", "3600000"].map(str::to_owned).to_vec();
    for round in 0..4 {
        let server = site.start(RunMode::Dev);
        workload.compare(&server); // the current state becomes the expected one
        workload.work_until_killed(server, random_delay(&mut rng, 200, 400));
        let unsynced = if round % 2 == 0 { UnsyncedData::Lost } else { UnsyncedData::PartlyKept(&mut rng) };
        let all_lost = matches!(unsynced, UnsyncedData::Lost);
        let loss = power.cut(unsynced);
        site.inspect();
        let server = site.start(RunMode::Dev);
        let lost = workload.compare(&server);
        println!("{loss:?}; {} items differ from their acknowledged state", lost.len());
        assert!(!all_lost || !lost.is_empty(), "the simulated power failure lost nothing");
        server.kill();
    }
}

/// The sync interval bounds the loss even under continuous writes.
#[test]
fn dev_syncs_within_its_interval_under_load() {
    let mut rng = seeded_rng("power, dev, busy");
    let (mut site, mut workload) = (site(), Workload::without_container_churn(&mut rng));
    let mut power = PowerFailure::new(&mut site);
    site.flags = ["--sync-interval-ms", "50"].map(str::to_owned).to_vec();
    workload.work_until_killed(site.start(RunMode::Dev), Duration::from_millis(700));
    power.cut(UnsyncedData::Lost);
    let server = site.start(RunMode::Dev);
    workload.compare(&server);
    assert_ne!(workload.items(), 0, "no sync within 700 ms");
    server.kill();
}

/// Whenever the kill happens, the account has either its previous state or that of the snapshot, completely.
#[test]
fn a_kill_during_a_restore_leaves_the_old_or_the_restored_account() {
    let mut rng = seeded_rng("restore");
    let site = site();
    let mut account = restore::Account::prepare(&site);
    for round in 0..KILLS {
        let mode = if round % 2 == 0 { RunMode::Dev } else { RunMode::Serve };
        account.restore_until_killed(site.start(mode), random_delay(&mut rng, 0, 150));
        account.check(site.start(mode));
    }
    site.inspect();
    println!("{account}");
}

#[test]
fn a_power_failure_during_a_restore_leaves_the_old_or_the_restored_account() {
    let mut rng = seeded_rng("restore, power");
    let mut site = site();
    let mut power = PowerFailure::new(&mut site);
    let mut account = restore::Account::prepare(&site);
    for round in 0..POWER_FAILURES {
        account.restore_until_killed(site.start(RunMode::Serve), random_delay(&mut rng, 0, 250));
        power.cut(if round % 2 == 0 { UnsyncedData::Lost } else { UnsyncedData::PartlyKept(&mut rng) });
        account.check(site.start(RunMode::Serve));
    }
    site.inspect();
    println!("{account}");
}

/// One flipped bit, a cut and a missing file, in both modes: the server does not start, nothing is changed, and the
/// operator can write out what is left, or accept the loss. Then no number is assigned twice.
#[test]
fn a_damaged_log_is_reported_and_a_loss_must_be_accepted() {
    for (mode, damage) in [(RunMode::Serve, 0), (RunMode::Serve, 1), (RunMode::Serve, 2), (RunMode::Dev, 0)] {
        let mut site = site();
        let server = site.start(mode);
        let lsns = damage::write_items(&server, 0);
        let written = damage::ids(&server);
        damage::wait_until_noted(&site);
        server.kill();
        let log = damage::newest_log(&site);
        damage::DAMAGE[damage](&log);
        damage::check_refused(&site, mode, &log);

        let output = site.path("salvaged");
        let (is_whole, report) = site.run(&["salvage", "--out", output.to_str().unwrap()]);
        assert!(!is_whole && report.contains("cannot be read") | report.contains("is missing"), "{report}");
        if damage == 0 {
            let salvaged = damage::salvaged_ids(&output.join("crash/plain.ndjson"));
            assert!(salvaged.is_subset(&written) && salvaged.len() + 60 > written.len(), "{}", salvaged.len());
            let last = written.iter().max_by_key(|id| id.parse::<u64>().unwrap()).unwrap();
            assert!(salvaged.contains(last), "what is behind the damage can be read");
        }

        site.flags.push("--accept-data-loss".to_owned());
        let server = site.start(mode);
        let left = damage::ids(&server);
        assert!(left.is_subset(&written) && left.len() < written.len(), "{} of {}", left.len(), written.len());
        let again = damage::write_items(&server, 1000);
        assert!(again.is_disjoint(&lsns), "an LSN was assigned twice");
        server.kill();
        assert!(site.data().join("damaged-1").is_dir());
        site.flags.clear();
        let server = site.start(mode);
        assert!(left.is_subset(&damage::ids(&server)));
        server.kill();
        site.inspect();
    }
}

#[test]
fn a_second_server_is_kept_out_although_the_lock_file_is_gone() {
    let site = site();
    let server = site.start(RunMode::Serve);
    std::fs::remove_file(site.data().join("store/LOCK")).unwrap();
    let message = site.fail_to_start(RunMode::Serve);
    assert!(message.contains("another Pleiad uses this directory"), "{message}");
    server.kill();
    site.start(RunMode::Serve).kill();
}

/// A full disk, a broken one and one that was mounted read-only: writes fail, reads work, and writes work again without
/// a restart when the disk does. Nothing acknowledged is lost, and no failed write shows in part.
#[test]
fn a_failing_disk_stops_writes_until_it_works_again() {
    for (error, mode) in [("ENOSPC", RunMode::Serve), ("EIO", RunMode::Serve), ("EROFS", RunMode::Dev)] {
        let mut site = site();
        let disk = failing_disk::FailingDisk::new(&mut site);
        let server = site.start(mode);
        damage::write_items(&server, 0);
        let before = damage::ids(&server);
        for round in 1..3 {
            disk.fail(error);
            let id = 10_000 * round;
            let failed = damage::try_upsert(&mut server.client(), id);
            assert_eq!(failed.status, 503, "{error}: {:?}", failed.body);
            assert_eq!(damage::try_upsert(&mut server.client(), id + 1).status, 503, "{error}");
            let seen = damage::ids(&server);
            assert!(before.is_subset(&seen) && !seen.contains(&id.to_string()), "{error}: reads work");
            disk.work();
            let began = std::time::Instant::now();
            while damage::try_upsert(&mut server.client(), id + 2).status == 503 {
                assert!(began.elapsed() < Duration::from_secs(60), "{error}: writes do not work again");
                std::thread::sleep(Duration::from_millis(50));
            }
            damage::write_items(&server, 1_000 * round);
        }
        let after = damage::ids(&server);
        assert!(before.is_subset(&after) && after.contains("10002") && after.contains("20002"));
        server.kill();
        site.variables.clear();
        site.inspect();
        let server = site.start(mode);
        assert_eq!(damage::ids(&server), after, "{error}");
        server.kill();
    }
}
