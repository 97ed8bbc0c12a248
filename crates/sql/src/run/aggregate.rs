//! Hash aggregation for `GROUP BY`.
//!
//! Groups are keyed by the memcomparable encoding of their keys, so `1` and `1.0` are one group.
//! Guarantees: groups are returned in the order of these bytes, regardless of the order of the rows. With `ORDER BY`,
//! which sorts by keys of the group, the bytes begin with its keys:
//!
//! ```text
//! GROUP BY c.a, c.b                      a │ b
//! GROUP BY c.a, c.b ORDER BY c.b DESC    b, inverted │ a │ b
//! ```

use std::collections::HashMap;

use pleiad_model::{Error, Kind, Result, Value};

use super::resume_key::ResumeKey;
use crate::block::Grouping;
use crate::document::{Bindings, GroupRow};
use crate::expr::aggregate::Aggregator;
use crate::expr::{Context, evaluate};
use crate::sort_encoding::{self, SortValue};

pub struct GroupTable<'q> {
    grouping: &'q Grouping,
    groups: HashMap<Vec<u8>, GroupEntry>,
    /// Buffer, reused for every row.
    key: Vec<u8>,
    /// Only groups after this one.
    pub after: Option<ResumeKey>,
    /// Only groups before this one; the others exceeded the memory limit and are left to a later page.
    pub ceiling: Option<Vec<u8>>,
    bytes: usize,
}

struct GroupEntry {
    keys: Vec<Option<Value>>,
    aggregators: Vec<Aggregator>,
}

/// The memory limit for groups. Beyond it, the groups with the largest keys are left to a later page.
const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The estimated size of a group without its keys.
const GROUP_BYTES: usize = 160;

impl<'q> GroupTable<'q> {
    pub fn new(grouping: &'q Grouping) -> Self {
        GroupTable { grouping, groups: HashMap::new(), key: Vec::new(), after: None, ceiling: None, bytes: 0 }
    }

    pub fn add(&mut self, rows: Bindings<'_>, cx: &Context<'_>) -> Result<()> {
        self.key.clear();
        for key in &self.grouping.order {
            let value = evaluate(&key.node, rows, cx)?;
            sort_encoding::encode_key(&SortValue::of(value.as_deref()), key.descending, &mut self.key);
        }
        for node in &self.grouping.keys {
            sort_encoding::encode(evaluate(node, rows, cx)?.as_deref(), &mut self.key);
        }
        if self.ceiling.as_ref().is_some_and(|ceiling| self.key >= *ceiling) {
            return Ok(());
        }
        if let Some(after) = &self.after
            && after.has_passed(&self.key)?
        {
            return Ok(());
        }
        if let Some(grown) = self.add_to_existing(rows, cx)? {
            self.bytes = self.bytes.saturating_add_signed(grown);
        } else {
            // Rare: the keys are evaluated again for a new group, so that rows of existing groups need not own them.
            let own = |node| Ok(evaluate(node, rows, cx)?.map(|key| key.into_owned()));
            let keys = self.grouping.keys.iter().map(own).collect::<Result<_>>()?;
            self.insert_group(keys);
            let grown = self.add_to_existing(rows, cx)?.unwrap_or(0);
            self.bytes = self.bytes.saturating_add_signed(grown);
        }
        self.enforce_memory_limit();
        Ok(())
    }

    /// Adds the row to the group of the current key and returns by how many bytes it grew; `None` if the group does not
    /// exist.
    fn add_to_existing(&mut self, rows: Bindings<'_>, cx: &Context<'_>) -> Result<Option<isize>> {
        let Some(entry) = self.groups.get_mut(self.key.as_slice()) else { return Ok(None) };
        let mut grown = 0;
        for ((_, argument), aggregator) in self.grouping.aggregates.iter().zip(&mut entry.aggregators) {
            let held = aggregator.held_bytes() as isize;
            aggregator.add(evaluate(argument, rows, cx)?.as_deref(), cx)?;
            grown += aggregator.held_bytes() as isize - held;
        }
        Ok(Some(grown))
    }

    /// Counts rows that need not be read.
    pub fn count_rows(&mut self, rows: u64) {
        self.key.clear();
        if !self.groups.contains_key(self.key.as_slice()) {
            self.insert_group(Vec::new());
        }
        if let Some(entry) = self.groups.get_mut(self.key.as_slice()) {
            entry.aggregators.iter_mut().for_each(|aggregator| aggregator.count_values(rows));
        }
    }

    /// Adds one precomputed total per aggregate, for rows that need not be read.
    pub fn add_text_counts(&mut self, totals: &[u64]) {
        self.count_rows(0);
        if let Some(entry) = self.groups.get_mut(&[][..]) {
            entry.aggregators.iter_mut().zip(totals).for_each(|(aggregator, total)| aggregator.add_text_count(*total));
        }
    }

    fn insert_group(&mut self, keys: Vec<Option<Value>>) {
        let aggregators = self.grouping.aggregates.iter().map(|(kind, _)| Aggregator::new(*kind)).collect();
        let entry = GroupEntry { keys, aggregators };
        self.bytes += entry.bytes(&self.key);
        self.groups.insert(self.key.clone(), entry);
    }

    /// Leaves the upper half of the groups to a later page until the rest fits. At least one group stays.
    fn enforce_memory_limit(&mut self) {
        while self.bytes > GROUP_BYTES_MAX && self.groups.len() > 1 {
            self.drop_upper_half();
        }
    }

    fn drop_upper_half(&mut self) {
        let mut keys: Vec<Vec<u8>> = self.groups.keys().cloned().collect();
        let half = keys.len() / 2;
        let (_, middle, _) = keys.select_nth_unstable(half);
        self.lower_ceiling(middle.clone());
    }

    fn lower_ceiling(&mut self, ceiling: Vec<u8>) {
        self.groups.retain(|key, _| *key < ceiling);
        self.bytes = self.groups.iter().map(|(key, entry)| entry.bytes(key)).sum();
        self.ceiling = Some(ceiling);
    }

    /// Merges the groups of another pipeline of the same query.
    pub fn merge(&mut self, other: GroupTable<'q>) -> Result<()> {
        let lower = match (&self.ceiling, other.ceiling) {
            (Some(own), Some(theirs)) => Some(own.clone().min(theirs)),
            (own, theirs) => own.clone().or(theirs),
        };
        for (key, entry) in other.groups {
            match self.groups.get_mut(&key) {
                Some(own) => {
                    for (own, theirs) in own.aggregators.iter_mut().zip(entry.aggregators) {
                        let held = own.held_bytes();
                        own.merge(theirs)?;
                        self.bytes = self.bytes + own.held_bytes() - held;
                    }
                }
                None => {
                    self.bytes += entry.bytes(&key);
                    self.groups.insert(key, entry);
                }
            }
        }
        if let Some(ceiling) = lower {
            self.lower_ceiling(ceiling);
        }
        self.enforce_memory_limit();
        Ok(())
    }

    /// Fails if some groups did not fit: a subquery or `DISTINCT` needs all of them.
    pub fn check_complete(&self) -> Result<()> {
        let message =
            "The groups of one subquery, or of DISTINCT with GROUP BY, take more memory than they may. Filter more.";
        match &self.ceiling {
            None => Ok(()),
            Some(_) => Err(Error::new(Kind::TooLarge, message)),
        }
    }

    /// All groups in order. With `single_group` (no `GROUP BY`) there is one group even without rows.
    pub fn finish(self, single_group: bool) -> Vec<GroupRow> {
        self.finish_keyed(single_group).into_iter().map(|(_, group)| group).collect()
    }

    pub fn finish_keyed(mut self, single_group: bool) -> Vec<(Vec<u8>, GroupRow)> {
        if single_group && self.groups.is_empty() && self.after.is_none() {
            self.key.clear();
            self.insert_group(Vec::new());
        }
        let mut groups: Vec<(Vec<u8>, GroupEntry)> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        groups.into_iter().map(|(key, entry)| (key, entry.finish())).collect()
    }
}

impl GroupEntry {
    fn bytes(&self, key: &[u8]) -> usize {
        let each = self.aggregators.len() * size_of::<Aggregator>() + self.keys.len() * size_of::<Option<Value>>();
        GROUP_BYTES + 2 * key.len() + each + self.aggregators.iter().map(Aggregator::held_bytes).sum::<usize>()
    }

    fn finish(self) -> GroupRow {
        GroupRow { keys: self.keys, aggregates: self.aggregators.into_iter().map(Aggregator::finish).collect() }
    }
}
