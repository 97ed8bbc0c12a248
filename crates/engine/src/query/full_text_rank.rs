//! Full-text ranking: ORDER BY a full-text score, and full-text statistics, from a full-text index.
//!
//! Invariant: the rows are those of a scan. Items that have one of the terms are found through the index and scored.
//! All others have the score 0, or none if they have no text, so that the newest of them are enough, and their text is
//! not analyzed. Statistics are sums over index rows, if every item has its rows and no item is dead.
//!
//! ```text
//! ORDER BY _FullTextScore(c.text, ["swim"], …) DESC
//!    hits   rows of "swim" ──▶ items ──▶ scores
//!    rest   items from the newest on, as many as are still wanted
//! ```

use pleiad_model::Result;
use pleiad_partition::index::TermRange;
use pleiad_partition::index::full_text::{decode_length, length_range, word_range};
use pleiad_partition::index::full_text_id;
use pleiad_partition::snapshot::{IndexEntry, resume_after};
use pleiad_sql::index_predicate::TextAggregate;
use pleiad_sql::run::RowPipeline;
use pleiad_storage::Direction;

use super::index_lookup::{DocnumList, IndexSearcher, PostingList, intersection, sorted_unique};
use super::index_spec::IndexSpec;
use super::merge::{PageExecutor, PlannedSlice};
use super::planner::AccessPath;
use super::reader::PartitionReader;
use super::report::ScanStats;
use super::route::PartitionSlice;
use super::stop::Stop;

impl<'p> PageExecutor<'p> {
    /// Items that may have a score above 0; `None` if the query has no such order, or if no index can find them.
    pub(super) fn hits(&self, slice: &PartitionSlice, planned: &PlannedSlice) -> Result<Option<DocnumList>, Stop> {
        let Some(order) = self.text_score.as_ref().filter(|_| !planned.reader.has_overlay()) else { return Ok(None) };
        let cx = self.task.context();
        let searcher =
            IndexSearcher::new(&planned.reader, self.container.schema.usable_index(), &cx, &self.task.deadline);
        let Some(PostingList { docnums: mut hits, .. }) = searcher.find(&order.predicate, 0)? else { return Ok(None) };
        if planned.reader.has_unindexed(slice)? {
            let Some(unindexed) = searcher.unindexed(0)? else { return Ok(None) };
            hits.extend(unindexed);
            hits = sorted_unique(hits);
        }
        // An index lookup for the filter excludes some of them.
        Ok(Some(match &planned.access_path {
            AccessPath::IndexLookup(found) => intersection(hits, found.docnums.clone()),
            _ => hits,
        }))
    }

    /// Scans the items that may have a score, then as many of the rest as are wanted.
    pub(super) fn scan_by_score(
        &self,
        pipeline: &mut RowPipeline<'p>,
        slice: &PartitionSlice,
        planned: PlannedSlice,
        hits: DocnumList,
        work: &mut ScanStats,
    ) -> Result<(), Stop> {
        let indexes = self.text_score.iter().map(|order| IndexSpec::FullText(order.path.clone())).collect();
        let PlannedSlice { access_path, cost_us, reader } = planned;
        let scored = PlannedSlice {
            access_path: AccessPath::IndexLookup(PostingList { docnums: hits, indexes }),
            cost_us,
            reader,
        };
        work.add_plan(&scored.access_path);
        if self.task.query.report.indexes {
            work.add_path(slice.partition.range.id, &scored.access_path);
        }
        pipeline.expect_hits(true);
        pipeline.expect_order(false);
        self.scan(&scored, slice, 0, &[], pipeline, work)?;
        let PlannedSlice { access_path: AccessPath::IndexLookup(PostingList { docnums: hits, .. }), reader, .. } =
            scored
        else {
            return Ok(());
        };
        if pipeline.admits_unscored(u64::MAX) {
            pipeline.expect_hits(false);
            let rest = PlannedSlice { access_path, cost_us, reader };
            self.slice_scan(&rest, slice, &hits).run_newest_first(&rest.access_path, pipeline, work)?;
        }
        Ok(())
    }

    /// The value of each aggregate in this slice; `None` if items have to be read.
    pub(super) fn text_counts(
        &self,
        slice: &PartitionSlice,
        reader: &PartitionReader,
        work: &mut ScanStats,
    ) -> Result<Option<Vec<u64>>, Stop> {
        let Some(aggregates) = &self.text_aggregates else { return Ok(None) };
        if !reader.is_within(&slice.keys) || reader.has_unindexed(slice)? {
            return Ok(None);
        }
        let Some(items) = reader.count(slice)? else { return Ok(None) };
        let mut figures = Vec::with_capacity(aggregates.len());
        for aggregate in aggregates {
            let figure = match aggregate {
                TextAggregate::Items => Some(items),
                TextAggregate::Words { path, language } => {
                    let is_indexed = self.container.schema.usable_index().full_text(path) == Some(*language);
                    let length = |(value, _): &IndexEntry| decode_length(value).map_or(0, u64::from);
                    let sum = || self.sum(reader, full_text_id(path, *language), length_range(), &length, work);
                    is_indexed.then(sum).transpose()?
                }
                TextAggregate::Hits(term) => {
                    let is_indexed = self.container.schema.usable_index().full_text(&term.path) == Some(term.language);
                    let id = full_text_id(&term.path, term.language);
                    is_indexed.then(|| self.sum(reader, id, word_range(term.word), &|_| 1, work)).transpose()?
                }
            };
            let Some(figure) = figure else { return Ok(None) };
            figures.push(figure);
        }
        Ok(Some(figures))
    }

    /// The indexes whose rows are summed.
    pub(super) fn text_count_indexes(&self) -> Vec<IndexSpec> {
        let path = |aggregate: &TextAggregate<'_>| match aggregate {
            TextAggregate::Items => None,
            TextAggregate::Words { path, .. } => Some(path.clone()),
            TextAggregate::Hits(term) => Some(term.path.clone()),
        };
        self.text_aggregates.iter().flatten().filter_map(path).map(IndexSpec::FullText).collect()
    }

    fn sum(
        &self,
        reader: &PartitionReader,
        path: u64,
        mut range: TermRange,
        of: &dyn Fn(&IndexEntry) -> u64,
        work: &mut ScanStats,
    ) -> Result<u64, Stop> {
        let mut sum = 0u64;
        loop {
            self.task.deadline.check()?;
            let (rows, more) = reader.index_entries(path, &range, Direction::Forward, usize::MAX)?;
            work.index_rows += rows.len() as u64;
            sum += rows.iter().map(of).sum::<u64>();
            match rows.last() {
                Some(last) if more => range.from = resume_after(last, Direction::Forward),
                _ => return Ok(sum),
            }
        }
    }
}
