//! What RocksDB is told, and why.
//!
//! Promise: an idle store costs no CPU and next to no memory, a start costs a handful of small files,
//! and no acknowledged write depends on a default we did not choose.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DBCompressionType,
    DBRecoveryMode, DataBlockIndexType, LogLevel, Options, ReadOptions, ReadTier, WriteOptions,
};

use crate::store::Durability;

/// What a deployment may want to choose.
#[derive(Clone, Debug)]
pub struct RocksOptions {
    /// Blocks of files kept uncompressed, their indexes and filters included. Filled as it is used.
    pub block_cache_bytes: usize,
    /// Whole items and ids that were read lately. Filled as it is used.
    pub row_cache_bytes: usize,
    /// One write buffer; there are up to three while the disk is behind. Filled as it is used.
    pub write_buffer_bytes: usize,
    /// Threads that flush and compact. They sleep while there is nothing to do.
    pub background_jobs: i32,
    /// Files held open. A file is up to 64 MB; the rest of the process needs descriptors too.
    pub open_files_max: i32,
}

impl Default for RocksOptions {
    fn default() -> Self {
        RocksOptions {
            block_cache_bytes: 32 << 20,
            row_cache_bytes: 8 << 20,
            write_buffer_bytes: 16 << 20,
            background_jobs: 2,
            open_files_max: 512,
        }
    }
}

/// Stores of one directory share it: files that a kept state has in common with another are cached once.
pub fn block_cache(chosen: &RocksOptions) -> Cache {
    Cache::new_hyper_clock_cache(chosen.block_cache_bytes, 0)
}

pub fn engine(chosen: &RocksOptions, blocks: &Cache) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table(blocks));
    options.set_max_background_jobs(chosen.background_jobs);
    options.set_max_open_files(chosen.open_files_max);
    recovery(&mut options);
    levels(&mut options, chosen);
    quiet(&mut options);
    options
}

/// After a crash the log ends in bytes that were on their way: a record cut short, or pages of one that
/// reached the disk out of order. Nobody was told that those writes succeeded. "Point in time" replays
/// up to the first record that is not whole and opens; everything acknowledged as synced lies before it,
/// since we acknowledge nothing behind a failed sync. The alternatives serve us worse: "absolute
/// consistency" refuses to open after any crash during a write, "tolerate corrupted tail" forgives a short
/// record but not a torn page, "skip" would replay what came after a hole. A log file that should be
/// there in full and is not (deleted, truncated by hand) is found by comparing with the manifest.
fn recovery(options: &mut Options) {
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_manual_wal_flush(false); // a returned write is with the operating system
    options.set_skip_stats_update_on_db_open(true); // it would read a block of every file
    options.set_max_manifest_file_size(4 << 20); // replayed at every start
}

/// Levelled, so that reads meet few files. LZ4 for what is rewritten soon, Zstandard for the bottom, where
/// nine tenths of the bytes stay.
fn levels(options: &mut Options, chosen: &RocksOptions) {
    options.set_write_buffer_size(chosen.write_buffer_bytes);
    options.set_max_write_buffer_number(3);
    // A look-up that the write buffer cannot answer should not search it: most are for older rows, or
    // ask whether a new id is taken.
    options.set_memtable_prefix_bloom_ratio(0.02);
    options.set_memtable_whole_key_filtering(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_target_file_size_base(64 << 20);
    options.set_max_bytes_for_level_base(256 << 20);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options.set_bytes_per_sync(1 << 20); // flushes reach the disk evenly and leave it to the log's syncs
    // Feeds and expiries are queues: written at one end, deleted at the other. Without this a reader at
    // the old end steps over every tombstone until compaction happens to come by.
    options.add_compact_on_deletion_collector_factory(4096, 1024, 0.5);
}

/// Nothing ticks: no statistics on a timer, a log of warnings only, in two small files.
fn quiet(options: &mut Options) {
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    // Obsolete files are deleted in the background, not by the request that let go of them last.
    options.set_avoid_unnecessary_blocking_io(true);
}

/// Filters and indexes are cut into blocks and cached like data, so that the cache's size is the whole
/// price: a large store in a small cache keeps the parts it uses. Inserting asks first whether the id is
/// taken, so filters answer "no" most of the time and the bottom level keeps its own.
fn table(blocks: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(blocks);
    table.set_block_size(8 * 1024);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash); // a get finds its row without a search
    table.set_data_block_hash_ratio(0.75);
    table.set_bloom_filter(10.0, false);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(4096);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_top_level_index_and_filter(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table
}

/// Reads that never touch the disk.
pub fn read_at_hand() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_read_tier(ReadTier::BlockCache);
    options
}

pub fn write(durability: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(durability == Durability::Synced);
    options
}

/// A write that would rather fail, having done nothing, than wait for a flush.
pub fn write_at_once() -> WriteOptions {
    let mut options = write(Durability::Written);
    options.set_no_slowdown(true);
    options
}

/// A compaction that gives space back: down to the last level, beside the ordinary ones.
pub fn compact() -> CompactOptions {
    let mut options = CompactOptions::default();
    options.set_exclusive_manual_compaction(false);
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    options
}
