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

use std::time::Duration;

use load::{Fleet, create_containers};
use pleiad_model::env::{Env, SystemEnv};
use power_loss::{Luck, Power};
use rng::Chance;
use server::{Face, Site};

const KILLS: u64 = 26;
const POWER_CUTS: u64 = 8;

/// Prints the seed, so that the output of a failed test contains it.
fn seed(test: &str) -> Chance {
    let given = std::env::var("PLEIAD_CRASH_SEED").ok();
    let parse = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal seed");
    let seed = given.map_or_else(|| SystemEnv.random_u64() & 0xFFFF_FFFF, parse);
    println!("{test}: PLEIAD_CRASH_SEED={seed:#x}");
    Chance::new(seed)
}

fn moment(chance: &mut Chance, from_ms: u64, to_ms: u64) -> Duration {
    Duration::from_millis(chance.between(from_ms, to_ms))
}

/// A site whose containers exist and are synced to disk.
fn site() -> Site {
    let site = Site::new();
    let server = site.start(Face::Serve);
    create_containers(&server);
    server.kill();
    site
}

#[track_caller]
fn check_nothing_lost(fleet: &mut Fleet, site: &Site, face: Face) -> server::Server {
    let server = site.start(face);
    let differences = fleet.compare(&server);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    server
}

#[test]
fn a_kill_loses_no_acknowledged_write_and_leaves_none_half_done() {
    let mut chance = seed("kill");
    let (site, mut fleet) = (site(), Fleet::new(&mut chance));
    for round in 0..KILLS {
        let face = if round % 2 == 0 { Face::Dev } else { Face::Serve };
        if chance.once_in(4) {
            site.stillborn(face, moment(&mut chance, 0, 60));
        }
        let server = check_nothing_lost(&mut fleet, &site, face);
        fleet.work_until_killed(server, moment(&mut chance, 20, 600));
        site.inspect();
    }
    check_nothing_lost(&mut fleet, &site, Face::Serve).kill();
    println!("{} acknowledged writes, {} items at the end", fleet.acknowledged(), fleet.items());
    assert!(fleet.acknowledged() > KILLS * 20, "the load was too light to test anything");
}

#[test]
fn a_power_cut_loses_nothing_that_serve_acknowledged() {
    let mut chance = seed("power");
    let (mut site, mut fleet) = (site(), Fleet::new(&mut chance));
    let mut power = Power::new(&mut site);
    let mut lost_bytes = 0;
    for round in 0..POWER_CUTS {
        let server = check_nothing_lost(&mut fleet, &site, Face::Serve);
        fleet.work_until_killed(server, moment(&mut chance, 100, 700));
        let luck = if round % 2 == 0 { Luck::None } else { Luck::Some(&mut chance) };
        lost_bytes += power.cut(luck).bytes;
        site.inspect();
    }
    check_nothing_lost(&mut fleet, &site, Face::Serve).kill();
    println!("{} acknowledged writes; {lost_bytes} unsynced bytes were lost", fleet.acknowledged());
    assert!(fleet.acknowledged() > POWER_CUTS * 20, "the load was too light to test anything");
}

#[test]
fn a_directory_made_a_moment_ago_survives_a_power_cut() {
    let mut site = Site::new();
    let mut power = Power::new(&mut site);
    let server = site.start(Face::Serve);
    create_containers(&server);
    server.kill();
    power.cut(Luck::None);
    let mut chance = seed("new directory");
    check_nothing_lost(&mut Fleet::new(&mut chance), &site, Face::Serve).kill();
    site.inspect();
}

/// Shows that the simulated power failure loses data, and that `dev` loses each write completely or not at all.
#[test]
fn a_power_cut_takes_from_dev_what_was_not_synced_yet_and_leaves_the_rest_sound() {
    let mut chance = seed("power, dev");
    let (mut site, mut fleet) = (site(), Fleet::without_scratch(&mut chance));
    let mut power = Power::new(&mut site);
    site.flags = ["--sync-interval-ms", "3600000"].map(str::to_owned).to_vec();
    for round in 0..4 {
        let server = site.start(Face::Dev);
        fleet.compare(&server); // the current state becomes the expected one
        fleet.work_until_killed(server, moment(&mut chance, 200, 400));
        let luck = if round % 2 == 0 { Luck::None } else { Luck::Some(&mut chance) };
        let unlucky = matches!(luck, Luck::None);
        let loss = power.cut(luck);
        site.inspect();
        let server = site.start(Face::Dev);
        let lost = fleet.compare(&server);
        println!("{loss:?}; {} items differ from their acknowledged state", lost.len());
        assert!(!unlucky || !lost.is_empty(), "the simulated power failure lost nothing");
        server.kill();
    }
}

/// The sync interval bounds the loss even under continuous writes.
#[test]
fn a_busy_dev_syncs_as_often_as_it_promised() {
    let mut chance = seed("power, dev, busy");
    let (mut site, mut fleet) = (site(), Fleet::without_scratch(&mut chance));
    let mut power = Power::new(&mut site);
    site.flags = ["--sync-interval-ms", "50"].map(str::to_owned).to_vec();
    fleet.work_until_killed(site.start(Face::Dev), Duration::from_millis(700));
    power.cut(Luck::None);
    let server = site.start(Face::Dev);
    fleet.compare(&server);
    assert_ne!(fleet.items(), 0, "no sync within 700 ms");
    server.kill();
}

/// Whenever the kill happens, the account has either its previous state or that of the snapshot, completely.
#[test]
fn a_kill_during_a_restore_leaves_one_account_or_the_other() {
    let mut chance = seed("restore");
    let site = site();
    let mut account = restore::Account::prepare(&site);
    for round in 0..KILLS {
        let face = if round % 2 == 0 { Face::Dev } else { Face::Serve };
        account.restore_until_killed(site.start(face), moment(&mut chance, 0, 150));
        account.check(site.start(face));
    }
    site.inspect();
    println!("{account}");
}

#[test]
fn a_power_cut_during_a_restore_leaves_one_account_or_the_other() {
    let mut chance = seed("restore, power");
    let mut site = site();
    let mut power = Power::new(&mut site);
    let mut account = restore::Account::prepare(&site);
    for round in 0..POWER_CUTS {
        account.restore_until_killed(site.start(Face::Serve), moment(&mut chance, 0, 250));
        power.cut(if round % 2 == 0 { Luck::None } else { Luck::Some(&mut chance) });
        account.check(site.start(Face::Serve));
    }
    site.inspect();
    println!("{account}");
}
