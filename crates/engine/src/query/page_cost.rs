//! Page cost: the request charge of one result page, split over the partitions that produced it.
//!
//! Invariant: the charges settled with the partitions add up to the charge reported to the client, up to rounding. Each
//! partition is charged for what was read there; the charge for the returned rows is divided in proportion. Nothing is
//! settled for a page that reads no partition, or inside a transaction, which is charged as a whole.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_partition::{Partition, price};

use super::report::ScanStats;
use crate::Admitted;
use crate::meter::{Meter, Visit};

#[derive(Default)]
pub struct PageCost {
    partitions: Vec<PartitionCost>,
}

struct PartitionCost {
    /// `None` inside a transaction, which is charged as a whole.
    visit: Option<Visit<Arc<Partition>>>,
    /// The charge at one replica.
    charge_ru: f64,
}

impl PageCost {
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Admits the request at one more partition; `add_work` adds what it reads there.
    pub fn enter(&mut self, meter: &Meter, at: &Admitted, partition: &Arc<Partition>) -> Result<()> {
        let visit = meter.enter(at, partition.clone())?;
        self.partitions.push(PartitionCost { visit: Some(visit), charge_ru: 0.0 });
        Ok(())
    }

    /// Adds a partition at which the request is already admitted.
    pub fn add_unmetered(&mut self) {
        self.partitions.push(PartitionCost { visit: None, charge_ru: 0.0 });
    }

    /// Adds the charge of what was read at the partition in this position.
    pub fn add_work(&mut self, at: usize, work: &ScanStats) {
        if let Some(partition) = self.partitions.get_mut(at) {
            partition.charge_ru += price::query(work.items, work.item_bytes, work.index_rows);
        }
    }

    /// Adds the cost of another query of the same page.
    pub fn append(&mut self, other: PageCost) {
        self.partitions.extend(other.partitions);
    }

    pub fn last(&self) -> usize {
        self.partitions.len().saturating_sub(1)
    }

    /// Cancels all admissions: nothing was done at any partition.
    pub fn leave(self, meter: &Meter) {
        self.partitions.into_iter().filter_map(|partition| partition.visit).for_each(|visit| meter.leave(visit));
    }

    /// Settles with all partitions; returns the total charge. `rows_ru` is the charge for the returned rows.
    pub fn pay(self, meter: &Meter, at: &Admitted, rows_ru: f64) -> f64 {
        if self.partitions.is_empty() {
            return at.read_ru(price::QUERY_RU + rows_ru);
        }
        let read_ru: f64 = self.partitions.iter().map(|partition| partition.charge_ru).sum();
        for PartitionCost { visit, charge_ru } in self.partitions {
            let share_ru = charge_ru + rows_ru * charge_ru / read_ru.max(price::QUERY_RU);
            if let Some(visit) = visit {
                meter.pay(visit, at.read_ru(share_ru), None);
            }
        }
        at.read_ru(read_ru + rows_ru)
    }
}
