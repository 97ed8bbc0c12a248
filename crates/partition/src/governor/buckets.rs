//! Throughput buckets: numbered parts of the share, each with a cap.
//!
//! Invariant: a request in a bucket is admitted only while the bucket has used less than its percentage of the share in
//! this second; its debt is carried over and limited, as in the whole window. A cap reserves nothing, and an undefined
//! bucket has no cap.

use std::sync::atomic::{AtomicU64, Ordering};

use super::window::Window;

pub const BUCKETS: usize = 5;

/// 1 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketId(u8);

impl BucketId {
    pub fn new(number: i64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| (1..=BUCKETS as u8).contains(number)).map(BucketId)
    }

    pub fn number(self) -> u8 {
        self.0
    }

    fn at(self) -> usize {
        usize::from(self.0).saturating_sub(1)
    }
}

/// The percentage of each bucket (0: no cap), and the bucket of requests that name none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    pub percent: [u8; BUCKETS],
    pub default_bucket: Option<BucketId>,
}

#[derive(Debug, Default)]
pub struct Buckets {
    /// A byte for each cap, then the number of the default bucket.
    caps: AtomicU64,
    used: [AtomicU64; BUCKETS],
}

impl Buckets {
    pub fn set(&self, caps: Caps) {
        let [a, b, c, d, e] = caps.percent;
        let default = caps.default_bucket.map_or(0, BucketId::number);
        self.caps.store(u64::from_le_bytes([a, b, c, d, e, default, 0, 0]), Ordering::Relaxed);
    }

    pub fn default_bucket(&self) -> Option<BucketId> {
        let [.., default, _, _] = self.caps.load(Ordering::Relaxed).to_le_bytes();
        BucketId::new(default.into())
    }

    /// `Err` has the cap that was reached, and how much of it is used.
    pub fn reserve(&self, bucket: BucketId, now_ms: u64, share: u64, reserved: u64) -> Result<(), (u64, u64)> {
        let (Some(cap), Some(used)) = (self.cap(bucket, share), self.used.get(bucket.at())) else { return Ok(()) };
        let mut reached = 0;
        let next = |word| {
            let window = Window::unpack(word).roll(now_ms, cap, 0).window;
            reached = window.used_centi;
            (reached < cap).then(|| window.add(reserved).pack())
        };
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map(drop).map_err(|_| (cap, reached))
    }

    pub fn charge(&self, bucket: BucketId, now_ms: u64, share: u64, centi: u64, reserved: u64) {
        let (Some(cap), Some(used)) = (self.cap(bucket, share), self.used.get(bucket.at())) else { return };
        let next = |word| {
            let (settled, _) = Window::unpack(word).roll(now_ms, cap, 0).window.settle(centi, reserved, cap, cap);
            Some(settled.pack())
        };
        let _ = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    fn cap(&self, bucket: BucketId, share: u64) -> Option<u64> {
        let percent = *self.caps.load(Ordering::Relaxed).to_le_bytes().get(bucket.at())?;
        (percent > 0).then(|| (share.saturating_mul(percent.into()) / 100).max(1))
    }
}
