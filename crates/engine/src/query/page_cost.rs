//! Page cost: the request charge of one result page, split over the partitions that produced it.
//!
//! Invariant: the charges settled with the partitions add up to the charge reported to the client, up to rounding. Each
//! partition is charged for what was read there, as soon as it was read; the charge for the returned rows is divided in
//! proportion. Nothing is settled inside a transaction, which is charged as a whole.

use std::borrow::Cow;
use std::sync::Arc;

use pleiad_model::Result;
use pleiad_partition::{Partition, price};

use super::report::ScanStats;
use crate::meter::Meter;
use crate::session::SessionToken;
use crate::{Admission, Admitted};

pub struct PageCost<'m> {
    meter: &'m Meter,
    at: &'m Admitted,
    partitions: Vec<PartitionCost<'m>>,
}

struct PartitionCost<'m> {
    /// `None` inside a transaction, which is charged as a whole.
    admission: Option<Admission<'m>>,
    /// The charge of what was read, at one replica.
    charge_ru: f64,
}

impl<'m> PageCost<'m> {
    pub fn new(meter: &'m Meter, at: &'m Admitted) -> Self {
        PageCost { meter, at, partitions: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// How many admissions there are; the position of the next one.
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Admits the request at one more partition; returns its position. `add_work` adds what it reads there.
    pub async fn admit(&mut self, partition: &Arc<Partition>) -> Result<usize> {
        let admission = self.meter.admit(self.at, Cow::Owned(partition.clone()), None).await?;
        Ok(self.push(Some(admission)))
    }

    /// Adds a partition at which the request is already admitted; returns its position.
    pub fn add_unmetered(&mut self) -> usize {
        self.push(None)
    }

    fn push(&mut self, admission: Option<Admission<'m>>) -> usize {
        self.partitions.push(PartitionCost { admission, charge_ru: 0.0 });
        self.partitions.len() - 1
    }

    /// Checks the session at the partition in this position. A transaction reads its own snapshot.
    pub fn check_session(&mut self, position: usize, session: Option<&SessionToken>) -> Result<()> {
        let admission = self.partitions.get_mut(position).and_then(|partition| partition.admission.as_mut());
        admission.map_or(Ok(()), |admission| admission.check_session(self.at, session))
    }

    /// Adds the charge of what was read at the partition in this position.
    pub fn add_work(&mut self, position: usize, work: &ScanStats) {
        self.charge(position, price::query(work.items, work.item_bytes, work.index_rows));
    }

    /// Adds the charge of looking for one item at the partition in this position.
    pub fn add_lookup(&mut self, position: usize) {
        self.charge(position, price::MISS_RU);
    }

    fn charge(&mut self, position: usize, charge_ru: f64) {
        let Some(partition) = self.partitions.get_mut(position) else { return };
        partition.charge_ru += charge_ru;
        if let Some(admission) = &mut partition.admission {
            admission.charge_at_least(self.at.read_ru(partition.charge_ru));
        }
    }

    /// Cancels the admissions from this position on: what was done there is done again, or another partition throttled
    /// the request before anything was done.
    pub fn cancel_from(&mut self, position: usize) {
        let cancelled = self.partitions.drain(position..);
        cancelled.filter_map(|partition| partition.admission).for_each(|mut admission| admission.waive());
    }

    /// Settles with all partitions; returns the total charge. `rows_ru` is the charge for the returned rows.
    pub fn settle(self, rows_ru: f64) -> f64 {
        let at = self.at;
        // A page of a transaction that reads nothing.
        if self.partitions.is_empty() {
            return at.read_ru(price::QUERY_RU + rows_ru);
        }
        let read_ru: f64 = self.partitions.iter().map(|partition| partition.charge_ru).sum();
        let settle = |PartitionCost { admission, charge_ru }| {
            let share_ru = at.read_ru(charge_ru + rows_ru * charge_ru / read_ru.max(price::QUERY_RU));
            let Some(mut admission) = admission else { return share_ru };
            admission.charge_at_least(share_ru);
            admission.settle()
        };
        self.partitions.into_iter().map(settle).sum()
    }
}
