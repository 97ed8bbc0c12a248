//! What a page owes, partition by partition.
//!
//! Promise: what the partitions are paid together is what the client is told. Each is paid for what was read there; the
//! rows that are given are paid for in proportion.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_partition::{Partition, price};

use super::report::ScanStats;
use crate::Admitted;
use crate::meter::{Meter, Visit};

#[derive(Default)]
pub struct PageCost {
    parts: Vec<PartitionCost>,
}

struct PartitionCost {
    /// None where somebody else pays for the request as a whole.
    visit: Option<Visit<Arc<Partition>>>,
    /// At one replica.
    charge_ru: f64,
}

impl PageCost {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The request at one more partition; what it does there is noted with `read`.
    pub fn enter(&mut self, meter: &Meter, at: &Admitted, partition: &Arc<Partition>) -> Result<()> {
        let visit = meter.enter(at, partition.clone())?;
        self.parts.push(PartitionCost { visit: Some(visit), charge_ru: 0.0 });
        Ok(())
    }

    /// The request is at this partition already.
    pub fn within(&mut self) {
        self.parts.push(PartitionCost { visit: None, charge_ru: 0.0 });
    }

    /// What was read at the partition that was entered at this place.
    pub fn read(&mut self, at: usize, work: &ScanStats) {
        if let Some(part) = self.parts.get_mut(at) {
            part.charge_ru += price::query(work.items, work.item_bytes, work.index_rows);
        }
    }

    /// What one more query of the same page owes.
    pub fn absorb(&mut self, other: PageCost) {
        self.parts.extend(other.parts);
    }

    pub fn last(&self) -> usize {
        self.parts.len().saturating_sub(1)
    }

    /// Nothing was done at any of them.
    pub fn leave(self, meter: &Meter) {
        self.parts.into_iter().filter_map(|part| part.visit).for_each(|visit| meter.leave(visit));
    }

    /// `rows_ru` is what the rows cost that were made of what was read.
    pub fn pay(self, meter: &Meter, at: &Admitted, rows_ru: f64) -> f64 {
        if self.parts.is_empty() {
            return at.read_ru(price::QUERY_RU + rows_ru);
        }
        let read_ru: f64 = self.parts.iter().map(|part| part.charge_ru).sum();
        for PartitionCost { visit, charge_ru } in self.parts {
            let share_ru = charge_ru + rows_ru * charge_ru / read_ru.max(price::QUERY_RU);
            if let Some(visit) = visit {
                meter.pay(visit, at.read_ru(share_ru), None);
            }
        }
        at.read_ru(read_ru + rows_ru)
    }
}
