//! Admission with a clock that the tests control: clients that reach the limit, changes of the limit and clocks set
//! back never get more than the share, and clients below the share are never throttled.

use proptest::prelude::*;

use super::*;

const LOW: RequestClass = RequestClass { priority: Priority::Low, bucket: None };
const HIGH: RequestClass = RequestClass { priority: Priority::High, bucket: None };

fn config(share_ru: f64) -> GovernorConfig {
    GovernorConfig { share_ru, enforced: true, burst: false, caps: Caps::default() }
}

fn governor(share_ru: f64) -> Governor {
    governed(&config(share_ru))
}

fn governed(config: &GovernorConfig) -> Governor {
    let governor = Governor::default();
    governor.set(config, None);
    governor
}

/// Admits and settles one request; returns its charge if it was admitted.
fn spend(governor: &Governor, now_ms: u64, class: RequestClass, ru: f64) -> Result<f64, Throttled> {
    let admission = governor.admit(now_ms, class)?;
    governor.settle(now_ms, admission, ru, None);
    Ok(ru)
}

/// How many of `requests` at one time are admitted.
fn admitted(governor: &Governor, now_ms: u64, class: RequestClass, requests: usize) -> usize {
    (0..requests).filter(|_| spend(governor, now_ms, class, 1.0).is_ok()).count()
}

#[test]
fn s54_the_share_of_a_second_is_admitted_and_no_more() {
    let governor = governor(100.0);
    assert_eq!(admitted(&governor, 5_000, HIGH, 250), 100);
    assert_eq!(admitted(&governor, 5_999, HIGH, 10), 0);
    assert_eq!(admitted(&governor, 6_000, HIGH, 250), 100);
}

#[test]
fn an_expensive_request_is_admitted_on_the_last_unit_and_charged_to_later_seconds() {
    let governor = governor(100.0);
    assert!(spend(&governor, 0, HIGH, 350.0).is_ok());
    let refusal = spend(&governor, 400, HIGH, 1.0).unwrap_err();
    assert_eq!((refusal.retry_after_ms, refusal.share_ru, refusal.used_ru), (2_600, 100.0, 350.0));
    assert!(spend(&governor, 2_999, HIGH, 1.0).is_err());
    assert_eq!(admitted(&governor, 3_000, HIGH, 250), 50);
}

/// A write of 40,769 RU locked a partition of 400 RU/s for 100 seconds.
#[test]
fn one_request_locks_its_partition_for_five_seconds_at_most() {
    let governor = governor(400.0);
    assert!(spend(&governor, 0, HIGH, 40_769.0).is_ok());
    let refusal = spend(&governor, 0, HIGH, 1.0).unwrap_err();
    assert_eq!((refusal.retry_after_ms, refusal.used_ru), (6_000, 2_400.0));
    assert_eq!(admitted(&governor, 5_999, HIGH, 1), 0);
    assert_eq!(admitted(&governor, 6_000, HIGH, 500), 400);
    assert_eq!(governor.usage().total_ru(), 41_169.0, "the client is told the whole charge");
    assert_eq!(governor.usage().forgiven_ru(), 38_369.0);
}

#[test]
fn one_request_locks_its_pool_and_its_bucket_for_five_seconds_at_most() {
    let pool = Arc::new(governor(100.0));
    let caps = Caps { percent: [10, 0, 0, 0, 0], default_bucket: BucketId::new(1) };
    let pair = [Governor::default(), Governor::default()];
    pair[0].set(&config(100.0), Some(pool.clone()));
    pair[1].set(&GovernorConfig { caps, ..config(100.0) }, Some(pool));
    assert!(spend(&pair[1], 0, HIGH, 9_000.0).is_ok());
    let waits = pair.each_ref().map(|governor| spend(governor, 0, HIGH, 1.0).unwrap_err().retry_after_ms);
    assert_eq!(waits, [6_000, 6_000]);
    assert_eq!(pair.each_ref().map(|governor| admitted(governor, 6_000, HIGH, 5)), [5, 5]);
}

#[test]
fn a_request_is_admitted_after_its_retry_time() {
    let governor = governor(10.0);
    let mut now_ms = 123;
    for price in [3.0, 25.0, 400.0, 10.0, 1.0] {
        if let Err(refusal) = spend(&governor, now_ms, HIGH, price) {
            now_ms += refusal.retry_after_ms;
            assert!(spend(&governor, now_ms, HIGH, price).is_ok(), "{price} at {now_ms}");
        }
    }
}

#[test]
fn no_request_is_throttled_without_enforcement() {
    let governor = governed(&GovernorConfig { enforced: false, ..config(1.0) });
    assert_eq!(admitted(&governor, 0, HIGH, 500), 500);
    assert_eq!(governor.usage().total_ru(), 500.0);
}

#[test]
fn a_new_share_applies_immediately() {
    let governor = governor(100.0);
    assert_eq!(admitted(&governor, 0, HIGH, 200), 100);
    governor.set(&config(150.0), None);
    assert_eq!(admitted(&governor, 0, HIGH, 200), 50);
    governor.set(&config(10.0), None);
    assert_eq!(admitted(&governor, 1_000, HIGH, 200), 0, "the use above the smaller share is debt");
}

#[test]
fn clock_jumps_give_no_extra_budget() {
    let governor = governor(100.0);
    assert_eq!(admitted(&governor, 3_600_000, HIGH, 150), 100);
    assert_eq!(admitted(&governor, 0, HIGH, 150), 0, "an hour back starts no new second");
    assert_eq!(admitted(&governor, 1_000, HIGH, 150), 100, "and throttles for no hour");
    assert_eq!(admitted(&governor, 900_000_000, HIGH, 150), 100, "days ahead give one second's share");
}

#[test]
fn low_priority_is_throttled_first() {
    let governor = governor(100.0);
    admitted(&governor, 0, HIGH, 70);
    let (low, high) = (admitted(&governor, 1_000, LOW, 100), admitted(&governor, 1_000, HIGH, 70));
    assert_eq!((low, high), (30, 70));
}

#[test]
fn low_priority_gets_all_that_high_priority_leaves() {
    let governor = governor(100.0);
    assert_eq!(admitted(&governor, 0, LOW, 150), 100);
    assert_eq!(admitted(&governor, 5_000, LOW, 150), 100);
}

#[test]
fn throttled_high_priority_has_the_next_second_for_itself() {
    let governor = governor(100.0);
    assert_eq!((admitted(&governor, 0, LOW, 90), admitted(&governor, 0, HIGH, 50)), (90, 10));
    assert_eq!((admitted(&governor, 1_000, LOW, 90), admitted(&governor, 1_000, HIGH, 50)), (0, 50));
    assert_eq!((admitted(&governor, 2_000, LOW, 90), admitted(&governor, 2_000, HIGH, 50)), (50, 50));
}

#[test]
fn a_bucket_is_capped_and_other_requests_are_not() {
    let bucket = BucketId::new(2);
    let caps = Caps { percent: [0, 20, 0, 0, 0], default_bucket: None };
    let governor = governed(&GovernorConfig { caps, ..config(100.0) });
    let class = RequestClass { bucket, ..RequestClass::default() };
    assert_eq!(admitted(&governor, 0, class, 50), 20);
    assert_eq!(spend(&governor, 0, class, 1.0).unwrap_err().exceeded, ExceededLimit::Bucket);
    assert_eq!(admitted(&governor, 0, HIGH, 200), 80);
    let undefined = RequestClass { bucket: BucketId::new(3), ..RequestClass::default() };
    assert_eq!(admitted(&governor, 1_000, undefined, 200), 100);
    assert!(BucketId::new(0).is_none() && BucketId::new(6).is_none() && BucketId::new(5).is_some());
}

#[test]
fn requests_without_a_bucket_use_the_default_bucket() {
    let caps = Caps { percent: [10, 0, 0, 0, 0], default_bucket: BucketId::new(1) };
    let governor = governed(&GovernorConfig { caps, ..config(100.0) });
    assert_eq!(admitted(&governor, 0, HIGH, 50), 10);
}

#[test]
fn idle_minutes_are_saved_for_a_burst() {
    let governor = governed(&GovernorConfig { burst: true, ..config(100.0) });
    admitted(&governor, 0, HIGH, 1);
    // At most five minutes are saved, 30,000 RU; no second provides more than 3,000.
    let at = |second: u64| admitted(&governor, 900_000 + second * 1000, HIGH, 4_000);
    assert_eq!((0..12).map(at).collect::<Vec<_>>(), [vec![3_000; 10], vec![1_100, 100]].concat());
}

#[test]
fn a_large_share_saves_nothing() {
    let governor = governed(&GovernorConfig { burst: true, ..config(3_000.0) });
    admitted(&governor, 0, HIGH, 1);
    assert_eq!(admitted(&governor, 900_000, HIGH, 5_000), 3_000);
}

#[test]
fn the_governors_of_a_pool_share_its_budget() {
    let pool = Arc::new(governor(100.0));
    let pair = [Governor::default(), Governor::default()];
    pair.iter().for_each(|governor| governor.set(&config(100.0), Some(pool.clone())));
    assert_eq!(admitted(&pair[0], 0, HIGH, 70) + admitted(&pair[1], 0, HIGH, 70), 100);
    assert_eq!(pair[1].usage().total_ru(), 30.0);
}

#[test]
fn a_cancelled_request_costs_nothing() {
    let governor = governor(10.0);
    for _ in 0..50 {
        let admission = governor.admit(0, HIGH).unwrap();
        governor.cancel(0, admission);
    }
    assert_eq!(admitted(&governor, 0, HIGH, 20), 10);
}

#[test]
fn many_threads_get_no_more_than_one() {
    const THREADS: usize = 8;
    let governor = governor(1_000.0);
    let second_begins = std::sync::Barrier::new(THREADS);
    let work = || {
        let of_second = |second: u64| {
            second_begins.wait();
            admitted(&governor, second * 1000, HIGH, 400)
        };
        (0..5).map(of_second).sum::<usize>()
    };
    let total: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(total, 5_000);
    assert_eq!(governor.usage().total_ru(), 5_000.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn s92_no_window_gets_more_than_its_budget(
        share in 1u32..500,
        steps in prop::collection::vec((0u64..700, 1u32..40_000), 1..200),
    ) {
        let governor = governor(share.into());
        let (mut now_ms, mut spent): (u64, Vec<(u64, f64)>) = (0, Vec::new());
        for (wait_ms, centi) in steps {
            now_ms += wait_ms;
            let price = f64::from(centi) / 100.0;
            let forgiven = governor.usage().forgiven_ru();
            if spend(&governor, now_ms, HIGH, price).is_ok() {
                spent.push((now_ms / 1000, price - (governor.usage().forgiven_ru() - forgiven)));
            }
        }
        for from in 0..=now_ms / 1000 {
            for to in from..=now_ms / 1000 {
                let inside: Vec<f64> =
                    spent.iter().filter(|(second, _)| (from..=to).contains(second)).map(|(_, price)| *price).collect();
                let last = inside.last().copied().unwrap_or(0.0);
                let budget = f64::from(share) * (to - from + 1) as f64;
                prop_assert!(inside.iter().sum::<f64>() < budget + last + 0.005, "seconds {from} to {to}");
            }
        }
    }

    #[test]
    fn requests_below_the_share_are_never_throttled(
        share in 50u32..500,
        seconds in prop::collection::vec(prop::collection::vec((0u64..1000, 1u32..100), 0..20), 1..20),
    ) {
        let governor = governor(share.into());
        for (second, mut requests) in seconds.into_iter().enumerate() {
            requests.sort_unstable();
            let total: u32 = requests.iter().map(|(_, part)| part).sum();
            for (ms, part) in requests {
                // Scaled so that the second's requests together stay just below the share.
                let price = f64::from(part) / f64::from(total) * f64::from(share) * 0.99;
                prop_assert!(spend(&governor, second as u64 * 1000 + ms, HIGH, price.max(0.01)).is_ok());
            }
        }
    }

    #[test]
    fn a_changing_share_never_admits_more_than_the_largest(
        shares in prop::collection::vec(1u32..200, 1..10),
        asks in prop::collection::vec(0u64..400, 1..300),
    ) {
        let governor = Governor::default();
        let (mut now_ms, mut counts) = (0, std::collections::BTreeMap::<u64, u32>::new());
        for (at, wait_ms) in asks.into_iter().enumerate() {
            now_ms += wait_ms;
            governor.set(&config(shares[at % shares.len()].into()), None);
            *counts.entry(now_ms / 1000).or_default() += u32::from(spend(&governor, now_ms, HIGH, 1.0).is_ok());
        }
        let most = shares.iter().max().copied().unwrap_or(0);
        prop_assert!(counts.values().all(|count| *count <= most));
    }
}
